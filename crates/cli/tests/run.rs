//! Tests `fastpath run` on real interfaces of a network namespace, and the tolerance messages of
//! `run` and `lab`.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");

/// A namespace with the veth pairs va–ha and vb–hb, and a directory; both are removed on drop.
struct Place {
    directory: PathBuf,
    /// Keeps the namespace alive; exits when its standard input closes.
    holder: Child,
}

impl Place {
    /// Returns `None` and reports a skip if namespaces are not permitted.
    fn new(test: &str) -> Option<Place> {
        let script = "ip link add va type veth peer name ha && ip link add vb type veth peer name hb && \
                      for i in va ha vb hb; do ip link set $i up; done && echo ready && exec cat";
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = command.stderr(Stdio::piped()).spawn().unwrap();
        let directory = std::env::temp_dir().join(format!("fastpath-run-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let is_ready = first_line(&mut holder) == "ready\n";
        let place = Place { directory, holder };
        if !is_ready {
            skip(test, "network namespaces are not permitted, or ip(8) is not installed");
            return None;
        }
        Some(place)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-n", program]).current_dir(&self.directory);
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env_remove("FASTPATH_LAB");
        command.stdin(Stdio::null());
        command
    }

    /// Starts `fastpath run` between va and vb, with `way` as the port prefix, and waits until it
    /// runs.
    fn run(&self, way: &str) -> Child {
        let ports = format!("[host.a]\nport = \"{way}va\"\n[host.b]\nport = \"{way}vb\"\n");
        fs::write(self.directory.join("net.toml"), format!("{ports}[[link]]\nbetween = [\"a\", \"b\"]\n"))
            .unwrap();
        let mut command = self.command(PROGRAM);
        command.args(["run", "net.toml"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let line = first_line(&mut child);
        assert!(line.contains("is running"), "{line}");
        child
    }

    fn ip(&self, arguments: &[&str]) -> String {
        let output = self.command("ip").args(arguments).output().unwrap();
        assert!(output.status.success(), "ip {arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        let file = fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

#[test]
fn run_reports_deleted_interfaces_and_ends_with_the_last() {
    let Some(place) = Place::new("deleted") else { return };
    for way in ["packet:", "xdp:"] {
        let run = place.run(way);
        place.ip(&["link", "delete", "va"]);
        place.ip(&["link", "delete", "vb"]);
        let Output { status, stderr, .. } = run.wait_with_output().unwrap();
        let text = String::from_utf8(stderr).unwrap();
        for name in ["va", "vb"] {
            assert!(
                text.contains(&format!("port {name}: the interface is gone; continuing without this port")),
                "{text}"
            );
        }
        assert!(status.code() == Some(1) && text.contains("frames: "), "{status}: {text}");
        for (name, peer) in [("va", "ha"), ("vb", "hb")] {
            place.ip(&["link", "add", name, "type", "veth", "peer", "name", peer]);
            place.ip(&["link", "set", name, "up"]);
        }
    }
}

#[test]
fn run_brings_interfaces_up_and_reports_the_drops_at_one_that_goes_down() {
    let Some(place) = Place::new("down") else { return };
    place.ip(&["link", "set", "vb", "down"]);
    let run = place.run("packet:");
    assert!(place.ip(&["link", "show", "dev", "vb"]).contains(",UP"));
    place.ip(&["link", "set", "vb", "down"]);
    // Neighbour solicitations of its far end enter at va and cannot leave at vb.
    place.ip(&["link", "set", "ha", "down"]);
    place.ip(&["link", "set", "ha", "up"]);
    let report = || {
        let output = place.command(PROGRAM).args(["ctl", "report", "--json"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!((0..1000).any(|_| report().contains("port-down")));
    let provenance = serde_json::from_str::<serde_json::Value>(&report()).unwrap()["run"].clone();
    assert_eq!(
        (provenance["seed"].as_u64(), provenance["version"].is_string()),
        (Some(1), true),
        "{provenance}"
    );
    assert!(
        provenance["spec"]["links"].is_array() && provenance["machine"]["cpu"].is_string(),
        "{provenance}"
    );
    let stopped = place.command(PROGRAM).args(["ctl", "stop"]).status().unwrap();
    let Output { stderr, .. } = run.wait_with_output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(stopped.success());
    assert!(text.contains(" dropped (") && text.contains(" port-down"), "{text}");
}

#[test]
fn run_and_switch_accept_the_same_kinds_of_port() {
    let Some(place) = Place::new("kinds") else { return };
    fs::write(place.directory.join("rules.txt"), "in_port=1 actions=output:2\n").unwrap();
    for kind in ["", "packet:", "xdp:"] {
        let (va, tap) = (format!("{kind}va"), "tap:t0");
        let net = format!(
            "[host.a]\nport = \"{va}\"\n[host.b]\nport = \"{tap}\"\n[[link]]\nbetween = [\"a\", \"b\"]\n"
        );
        fs::write(place.directory.join("net.toml"), net).unwrap();
        let (p1, p2) = (format!("p1={va}"), format!("p2={tap}"));
        let switch = ["switch", "--rules", "rules.txt", "--port", &p1, "--port", &p2, "--port", "p3=memory"];
        for arguments in [&["run", "net.toml"][..], &switch] {
            let mut command = place.command(PROGRAM);
            command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            assert_ne!(first_line(&mut child), "", "{arguments:?}");
            // Neighbour solicitations of ha enter at va and leave at the TAP.
            let received = || {
                place.ip(&["link", "set", "ha", "down"]);
                place.ip(&["link", "set", "ha", "up"]);
                let link = place.ip(&["-j", "-s", "link", "show", "t0"]);
                let link: serde_json::Value = serde_json::from_str(&link).unwrap();
                link[0]["stats64"]["rx"]["packets"].as_u64().unwrap() > 0
            };
            assert!((0..1000).any(|_| received()), "{arguments:?}: no frame passed");
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
            assert!(child.wait().unwrap().success(), "{arguments:?}");
        }
    }
    let output = place.command(PROGRAM).args(["switch", "--port", "p1=dpdk:va"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("'dpdk' is not a kind of port: write IFACE, packet:IFACE, xdp:IFACE"), "{text}");
}

#[test]
fn a_killed_run_leaves_nothing_on_an_interface() {
    let Some(place) = Place::new("killed") else { return };
    let mut run = place.run("xdp:");
    if !place.ip(&["link", "show", "va"]).contains("xdp") {
        run.kill().unwrap();
        run.wait().unwrap();
        return skip(
            "a_killed_run_leaves_nothing_on_an_interface",
            "loading an XDP program is not permitted",
        );
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(!place.ip(&["link", "show", "va"]).contains("xdp"));
    // Another process can use the interface.
    let mut next = place.run("xdp:");
    assert!(place.ip(&["link", "show", "vb"]).contains("xdp"));
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn an_exceeded_tolerance_exits_with_1_and_names_the_link() {
    let test = "an_exceeded_tolerance_exits_with_1_and_names_the_link";
    if Command::new("ping").arg("-V").output().is_err() {
        return skip(test, "ping(8) is not installed");
    }
    let directory = std::env::temp_dir().join(format!("fastpath-tolerance-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let spec = "[engine]\ntolerance = \"3600s\"\n[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\n";
    fs::write(directory.join("net.toml"), spec).unwrap();
    // No frame is released within a nanosecond; every frame is released within an hour. The kernel
    // releases nothing late.
    for (options, expected) in [(["--tolerance", "1ns"].as_slice(), 1), (&[], 0)] {
        let mut command = Command::new(PROGRAM);
        command
            .args(["lab", "run", "net.toml", "--data-path", "user"])
            .args(options)
            .args(["--on", "a", "--", "ping", "-c1", "b"]);
        command.env("FASTPATH_STATE_DIR", directory.join("state")).env_remove("FASTPATH_LAB");
        let Output { status, stderr, .. } = command.current_dir(&directory).output().unwrap();
        let text = String::from_utf8(stderr).unwrap();
        if text.contains("not permitted") {
            skip(test, &text);
            break;
        }
        assert_eq!(status.code(), Some(expected), "{text}");
        let named = text.contains("link a-b, a → b: ") && text.contains("the tolerance of 1ns was exceeded");
        assert_eq!(named, expected == 1, "{text}");
    }
    fs::remove_dir_all(&directory).unwrap();
}
