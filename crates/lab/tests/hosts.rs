//! A host is a machine of its own where programs look: its name, its names, its directories, its
//! processes.
#![cfg(target_os = "linux")]

mod common;

use common::{run, start, up};
use std::fs;
use std::io::Read;

/// Two hosts with IPv4 and IPv6 addresses on one link.
fn pair(a: &str) -> String {
    format!("[host.a]\n{a}\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n")
}

#[test]
fn a_host_has_its_name_and_knows_all_names() {
    let Some(lab) = up("a_host_has_its_name_and_knows_all_names", &pair("")) else { return };
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let look = "hostname; getent ahostsv4 b | head -1; getent ahostsv6 b | head -1; getent hosts a | wc -l";
    let (_, text) = run(&lab, "a", &["sh", "-c", look]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "a");
    assert!(lines[1].starts_with("10.1.1.3 ") && lines[2].starts_with("fd00:0:0:1::3 "), "{text}");
    assert_eq!(lines[3], "1");
    assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), machine);
    if fs::exists("/etc/resolv.conf").unwrap() {
        let (_, text) = run(&lab, "a", &["grep", "-c", "nameserver", "/etc/resolv.conf"]);
        assert_eq!(text, "0\n", "there is no way to a name server");
    }
}

#[test]
fn programs_of_a_host_share_its_private_directories_and_others_do_not_see_them() {
    let test = "programs_of_a_host_share_its_private_directories_and_others_do_not_see_them";
    let keys = "private = ['/var/tmp', '/mnt']\nbinds = ['/etc/passwd:/etc/group:ro']";
    let Some(lab) = up(test, &pair(keys)) else { return };
    let (_, text) =
        run(&lab, "a", &["sh", "-c", "ls -A /var/tmp /mnt | grep -c fp; echo 1 > /mnt/fp-private"]);
    assert_eq!(text, "0\n", "they are empty at first");
    let (_, text) =
        run(&lab, "a", &["sh", "-c", "cat /mnt/fp-private; cmp /etc/passwd /etc/group && echo same"]);
    assert_eq!(text, "1\nsame\n");
    let (output, _) = run(&lab, "a", &["sh", "-c", ": >> /etc/group"]);
    assert!(!output.status.success(), "it is read-only");
    let (output, _) = run(&lab, "b", &["test", "-e", "/mnt/fp-private"]);
    assert!(!output.status.success() && !fs::exists("/mnt/fp-private").unwrap());
    let name = lab.name().to_owned();
    drop(lab);
    assert!(fastpath_lab::list().iter().all(|lab| lab.name != name), "they end with the lab");
}

#[test]
fn programs_of_a_host_with_a_pid_namespace_see_each_other_only() {
    let test = "programs_of_a_host_with_a_pid_namespace_see_each_other_only";
    let keys = "pid_namespace = true\nenv = { A = 'b' }\nprivate = '/mnt'";
    let Some(lab) = up(test, &pair(keys)) else { return };
    let mut server = start(&lab, "a", &["sh", "-c", "echo ready; exec sleep 1000"]);
    server.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).unwrap();
    let look = "until read name < /proc/2/comm && test $name = sleep; do :; done
        hostname; echo $A; for of in /proc/[0-9]*; do read name < $of/comm; echo $name; done
        test -w /proc/sys/net/ipv4/ip_forward && echo net
        test -w /proc/sys/kernel/hostname || echo protected; pwd";
    let (_, text) = run(&lab, "a", &["sh", "-c", look]);
    let directory = std::env::current_dir().unwrap();
    // The first process, the server, and the one that looks.
    assert_eq!(text, format!("a\nb\ncat\nsleep\nsh\nnet\nprotected\n{}\n", directory.display()));
    // Its programs end with it, and the lab goes on.
    let (_, text) = run(&lab, "a", &["sh", "-c", "kill -9 1; echo alive"]);
    assert_eq!(text, "alive\n", "the first process is not to be killed from inside");
    let (output, text) = run(&lab, "b", &["ping", "-n", "-c1", "-W20", "a"]);
    assert!(output.status.success(), "{text}");
    drop(lab);
    assert!(!server.wait().unwrap().success());
}
