//! Hosts that exist: network namespaces of others, and interfaces of the machine.
#![cfg(target_os = "linux")]

mod common;

use common::{run, skip_test, up};
use fastpath_engine::{Notice, Options};
use fastpath_lab::netlink::{LinkParameters, Netlink};
use fastpath_lab::{ApplyMode, HostError, Lab, Namespace, UpError};
use fastpath_spec::{NO_FILES, read};
use nix::net::if_::if_nametoindex;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn is_root() -> bool {
    nix::unistd::geteuid().is_root() && Namespace::new().is_ok()
}

/// A process in namespaces of its own, which ends with its input.
struct Stranger(Child);

impl Stranger {
    fn start(namespaces: &[&str], script: &str) -> Stranger {
        let mut command = Command::new("unshare");
        command.args(namespaces).args(["sh", "-c", &format!("{script}; echo ready; exec cat")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Stranger(child)
    }

    fn end(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Brings a lab up whose notices are received.
fn with_notices(name: &str, spec: &str) -> (Result<Lab, UpError>, Receiver<String>) {
    let (sender, notices) = channel();
    let (topology, _) = fastpath_spec::parse(spec).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let notice = Notice::new(move |text: &str| _ = sender.send(text.to_owned()));
    let options = Options { notice, ..Options::new(fastpath_net::Options::default()) };
    (Lab::up(topology, &format!("{name}-{}", std::process::id()), options), notices)
}

fn wait_for(notices: &Receiver<String>, text: &str) {
    let mut seen = Vec::new();
    loop {
        match notices.recv_timeout(PATIENCE) {
            Ok(notice) if notice.contains(text) => return,
            Ok(notice) => seen.push(notice),
            Err(_) => panic!("no notice has {text:?}: {seen:?}"),
        }
    }
}

fn ping(lab: &Lab, from: &str, to: &str) {
    let (output, text) = run(lab, from, &["ping", "-n", "-c1", "-W20", to]);
    assert!(output.status.success(), "{from} to {to}: {text}");
}

/// What a lab could change in a namespace: interfaces, addresses, routes and settings.
fn state_of(namespace: &Namespace) -> String {
    let script = "ip -o link | cut -d: -f2; ip -o address | awk '{ print $2, $4 }'; ip route; ip -6 route
        cd /proc/sys/net && grep -r . ipv4/conf ipv6/conf ipv4/ping_group_range 2> /dev/null | sort";
    let output = namespace.within(|| Command::new("sh").args(["-c", script]).output());
    String::from_utf8(output.unwrap().unwrap().stdout).unwrap()
}

/// Waits for what a lab leaves to be gone: a program that another test is starting has the
/// descriptors of interfaces until it executes.
fn wait_until(what: &str, gone: impl Fn() -> bool) {
    let began = Instant::now();
    while !gone() {
        assert!(began.elapsed() < PATIENCE, "{what} after {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// a – s – b and c.
fn star(a: &str) -> String {
    let links = ["a", "b", "c"].map(|host| format!("[[link]]\nbetween = ['{host}', 's']\n")).concat();
    format!("[host.a]\n{a}\n[host.b]\n[host.c]\n[switch.s]\n{links}")
}

#[test]
fn a_namespace_that_exists_takes_part_and_is_as_before_afterwards() {
    let test = "a_namespace_that_exists_takes_part_and_is_as_before_afterwards";
    if !is_root() {
        return skip_test(test, "not root");
    }
    let namespace = Namespace::new().unwrap();
    // It has an interface of the name that the topology wants.
    let add = || Netlink::open()?.add_bridge("eth0");
    namespace.within(add).unwrap().unwrap();
    let before = state_of(&namespace);
    let path = format!("/proc/{}/fd/{}", std::process::id(), namespace.raw_fd());
    let (lab, notices) = with_notices("attach", &star(&format!("attach = 'netns:{path}'")));
    let lab = lab.unwrap();
    wait_for(&notices, "has an eth0: the interface is eth1 there");
    assert!(state_of(&namespace).contains("eth1"));
    ping(&lab, "a", "b");
    ping(&lab, "c", "a");
    drop(lab);
    wait_until("the namespace is not as before", || state_of(&namespace) == before);
}

#[test]
fn programs_run_in_all_namespaces_of_a_process_and_end_with_the_lab() {
    let test = "programs_run_in_all_namespaces_of_a_process_and_end_with_the_lab";
    if !is_root() {
        return skip_test(test, "not root");
    }
    let stranger = Stranger::start(
        &["--net", "--uts", "--mount"],
        "hostname inner; mount -t tmpfs x /mnt; touch /mnt/seen",
    );
    let (lab, _) =
        with_notices("process", &star(&format!("attach = 'pid:{}'\nenv = {{ A = 'b' }}", stranger.0.id())));
    let lab = lab.unwrap();
    let (_, text) = run(&lab, "a", &["sh", "-c", "hostname; ls /mnt; echo $A"]);
    assert_eq!(text, "inner\nseen\nb\n");
    drop(lab);
    let routes = fs::read_to_string(format!("/proc/{}/net/dev", stranger.0.id())).unwrap();
    assert!(!routes.contains("eth"), "{routes}");
}

#[test]
fn a_host_whose_namespace_ends_is_missed_and_attached_again() {
    let test = "a_host_whose_namespace_ends_is_missed_and_attached_again";
    if !is_root() {
        return skip_test(test, "not root");
    }
    let link: PathBuf = std::env::temp_dir().join(format!("fastpath-attach-{}", std::process::id()));
    let point_to = |stranger: &Stranger| {
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(format!("/proc/{}/ns/net", stranger.0.id()), &link).unwrap();
    };
    let first = Stranger::start(&["--net"], ":");
    point_to(&first);
    let (lab, notices) = with_notices("again", &star(&format!("attach = 'netns:{}'", link.display())));
    let lab = lab.unwrap();
    ping(&lab, "b", "a");
    let listed = || fastpath_lab::list().into_iter().find(|listed| listed.name == lab.name()).unwrap();
    first.end();
    wait_for(&notices, "host a is no longer in netns:");
    assert!(!lab.host("a").unwrap().is_there());
    // The list is written after the notice.
    while listed().detached != ["a"] {
        std::thread::yield_now();
    }
    ping(&lab, "b", "c");
    for _ in 0..2 {
        let next = Stranger::start(&["--net"], ":");
        point_to(&next);
        wait_for(&notices, "host a is in netns:");
        ping(&lab, "b", "a");
        next.end();
        wait_for(&notices, "host a is no longer in netns:");
    }
    drop(lab);
    fs::remove_file(&link).unwrap();
    let names = Command::new("ip").args(["-o", "link"]).output().unwrap().stdout;
    let parked = format!("fp{}-", std::process::id());
    assert!(!String::from_utf8_lossy(&names).contains(&parked), "the interfaces end with the lab");
}

#[test]
fn what_is_not_there_is_named_before_anything_starts() {
    let test = "what_is_not_there_is_named_before_anything_starts";
    if !is_root() {
        return skip_test(test, "not root");
    }
    let refused = |keys: &str| {
        let (lab, _) = with_notices("refused", &star(keys));
        let error = lab.expect_err(keys).to_string();
        assert!(fastpath_lab::list().iter().all(|lab| !lab.name.starts_with("refused-")), "{keys}");
        error
    };
    for (keys, expected) in [
        ("attach = 'netns:no-such'", "host a: no network namespace no-such (have: "),
        ("attach = 'netns:/etc/passwd'", "host a: /etc/passwd is not a network namespace: write "),
        ("attach = 'pid:2147483647'", "host a: no process 2147483647: write "),
        (
            "private = '/no/such'",
            "host a: private: this machine has no directory /no/such: make it once with ",
        ),
        ("binds = '/no/such:/mnt'", "host a: binds: /no/such does not exist: write a path "),
        ("binds = '/etc:/etc/hosts'", "host a: binds: this machine has no directory /etc/hosts to cover: "),
    ] {
        let error = refused(keys);
        assert!(error.starts_with(expected), "{error}");
    }
    let namespace = Namespace::new().unwrap();
    let paths = ["self".to_owned(), std::process::id().to_string()]
        .map(|process| format!("attach = 'netns:/proc/{process}/fd/{}'", namespace.raw_fd()));
    let spec = star(&paths[0]).replace("[host.b]", &format!("[host.b]\n{}", paths[1]));
    let (lab, _) = with_notices("twice", &spec);
    assert!(matches!(lab, Err(UpError::Host(HostError::SameNamespace { .. }))));
    assert!(!state_of(&namespace).contains("eth"));
}

#[test]
fn an_interface_of_the_machine_is_a_host() {
    let test = "an_interface_of_the_machine_is_a_host";
    if !is_root() {
        return skip_test(test, "not root");
    }
    // The machine of this test, and what is behind its interface.
    let (machine, behind) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let connect = || Netlink::open()?.add_veth("fpreal0", "eth0", behind.as_fd());
    machine.within(connect).unwrap().unwrap();
    let configure = || {
        let (mut netlink, index) = (Netlink::open()?, if_nametoindex("eth0")?);
        netlink.bring_up(index, LinkParameters::default())?;
        netlink.add_address(index, "10.9.0.1/24".parse().unwrap())
    };
    behind.within(configure).unwrap().unwrap();
    let spec = "[host.a]\nport = 'fpreal0'\naddress = '10.9.0.1/24'\n[host.b]\naddress = '10.9.0.2/24'\n\
        [[link]]\nbetween = ['a', 'b']\ndelay = '1ms'";
    let Some(lab) = machine.within(|| up(test, spec)).unwrap() else { return };
    assert_eq!(lab.hosts().len(), 1, "no programs run on a port");
    ping(&lab, "b", "10.9.0.1");
}

fn apply(lab: &mut Lab, text: &str) {
    let description = read(text, NO_FILES).expect("a valid spec").0.description;
    lab.apply(&description, NO_FILES, ApplyMode::Change).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn an_attached_host_comes_and_goes_while_a_lab_runs() {
    let test = "an_attached_host_comes_and_goes_while_a_lab_runs";
    if !is_root() {
        return skip_test(test, "not root");
    }
    let namespace = Namespace::new().unwrap();
    let add = || Netlink::open()?.add_bridge("eth0");
    namespace.within(add).unwrap().unwrap();
    let before = state_of(&namespace);
    let base =
        "[host.b]\n[host.c]\n[switch.s]\n[[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['c', 's']\n";
    let path = format!("/proc/{}/fd/{}", std::process::id(), namespace.raw_fd());
    let with = format!("{base}[host.a]\nattach = 'netns:{path}'\n[[link]]\nbetween = ['a', 's']\n");
    let (lab, notices) = with_notices("attach-later", base);
    let mut lab = lab.unwrap();
    for _ in 0..2 {
        apply(&mut lab, &with);
        wait_for(&notices, "has an eth0: the interface is eth1 there");
        ping(&lab, "a", "b");
        ping(&lab, "c", "a");
        // The network behind another host changes: the attached host gets a route.
        let more = format!(
            "[host.far]\n[router.r]\n{with}[[link]]\nbetween = ['r', 's']\n[[link]]\nbetween = ['far', 'r']\n"
        );
        apply(&mut lab, &more);
        ping(&lab, "a", "far");
        ping(&lab, "far", "a");
        apply(&mut lab, base);
        assert!(lab.host("a").is_none());
        wait_until("the namespace is not as before", || state_of(&namespace) == before);
        ping(&lab, "c", "b");
    }
}

#[test]
fn an_interface_of_the_machine_comes_and_goes_while_a_lab_runs() {
    let test = "an_interface_of_the_machine_comes_and_goes_while_a_lab_runs";
    if !is_root() {
        return skip_test(test, "not root");
    }
    let base = "[host.b]\n[switch.s]\n[[link]]\nbetween = ['b', 's']\n";
    let name = format!("fpt{}", std::process::id());
    let with = format!(
        "[host.m]\nport = 'tap:{name}'\n{base}[host.c]\n[[link]]\nbetween = ['m', 's']\n[[link]]\nbetween = ['c', 's']\n"
    );
    let (lab, _) = with_notices("port-later", base);
    let mut lab = lab.unwrap();
    for _ in 0..2 {
        apply(&mut lab, &with);
        assert!(if_nametoindex(name.as_str()).is_ok());
        ping(&lab, "b", "c");
        // The port stays when something else changes.
        apply(&mut lab, &with.replace("[switch.s]", "[switch.s]\n[host.d]\n[[link]]\nbetween = ['d', 's']"));
        ping(&lab, "d", "c");
        apply(&mut lab, base);
        wait_until("the interface stays", || if_nametoindex(name.as_str()).is_err());
    }
}
