//! Where the programs of hosts run: keys, and the mistakes in them.

use fastpath_spec::{Attach, HostOrigin, HostSettings, parse, resolve};
use fastpath_spec::{Description, NO_FILES, NodeDescription, NodeRole};
use std::path::Path;

const LINK: &str = "[host.z]\n[[link]]\nbetween = ['a', 'z']\n";

fn settings(keys: &str) -> HostSettings {
    let (topology, _) = parse(&format!("[host.a]\n{keys}\n{LINK}")).expect("a valid spec");
    topology.nodes[0].kind.host_settings().cloned().unwrap()
}

fn said(keys: &str) -> Vec<String> {
    let mistakes = parse(&format!("[host.a]\n{keys}\n{LINK}")).expect_err("a mistake");
    mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead)).collect()
}

#[test]
fn every_key_is_read() {
    let container = settings(
        "rootfs = 'files'\ncommand = 'sleep 9'\nenv = { A = 'b=c' }\n\
         binds = ['x:/y', '/p:/q:ro']\nprivate = '/var/run'\npid_namespace = true",
    );
    assert_eq!(container.origin, HostOrigin::RootFs("files".to_owned()));
    assert_eq!(container.command, ["sh", "-c", "sleep 9"]);
    assert_eq!(container.env.get("A").map(String::as_str), Some("b=c"));
    let binds: Vec<String> = container.binds.iter().map(ToString::to_string).collect();
    assert_eq!(binds, ["x:/y", "/p:/q:ro"]);
    assert_eq!((container.private, container.pid_namespace), (vec!["/var/run".to_owned()], true));
    assert_eq!(settings("command = ['a', 'b']\nimage = 'i'").command, ["a", "b"]);
    let attached = HostOrigin::Attached(Attach::Pid(12));
    assert_eq!(settings("attach = 'pid:12'").origin, attached);
    assert_eq!(settings(""), HostSettings::default());
}

#[test]
fn relative_paths_are_those_of_the_description() {
    let mut host = settings("rootfs = 'files'\nbinds = ['x:/y', '/p:/q']");
    host.below(Path::new("/spec"));
    assert_eq!(host.origin, HostOrigin::RootFs("/spec/files".to_owned()));
    assert_eq!([&host.binds[0].source, &host.binds[1].source], ["/spec/x", "/p"]);
}

#[test]
fn what_names_nothing_is_answered_with_what_to_write() {
    for (keys, expected) in [
        ("attach = 'blue'", "'blue' is not a network namespace; write \"netns:NAME\""),
        ("attach = 'netns:'", "'netns:' is not a network namespace; "),
        ("attach = 'netns:a/b'", "'netns:a/b' is not a network namespace; "),
        ("attach = 'pid:0'", "'pid:0' is not a network namespace; "),
        ("attach = 'pid:x'", "'pid:x' is not a network namespace; "),
        ("attach = 'container:--all'", "'container:--all' is not a network namespace; "),
        ("image = ''", "image = '' names nothing; write image = "),
        ("image = '-h'", "image = '-h' names nothing; write image = "),
        ("image = 'x'\nrootfs = 'y'", "image and rootfs are both given; write one of them"),
        ("image = 'x'\ncommand = []", "command names no program; write command = "),
        ("env = { 'A=' = '1' }", "'A=' cannot be a variable; "),
        ("env = { A = 1 }", "A is a whole number, not text; write A = "),
        ("binds = ['x']", "'x' does not place a path of this machine in a host; write "),
        ("binds = ['x:y']", "'x:y' does not place a path of this machine in a host; "),
        ("binds = ['x:/y:z']", "'x:/y:z' does not place a path of this machine in a host; "),
        ("private = ['run']", "'run' is not a directory that a host can have; write its path"),
        ("private = ['/a/../b']", "'/a/../b' is not a directory that a host can have; "),
        ("private = ['/']", "'/' is not a directory that a host can have; "),
        ("command = 'x'", "a has a command and is not a container; write image or rootfs too"),
        ("attach = 'pid:1'\nprivate = '/x'", "a is pid:1, which a lab does not change, and has private; "),
        ("port = 'eth9'\nimage = 'x'", "a has a port, where no programs run, and image; "),
    ] {
        let said = said(keys);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{keys}: {said:#?}");
    }
    let twice =
        parse("[host.a]\nattach = 'pid:7'\n[host.b]\nattach = 'pid:7'\n[[link]]\nbetween = ['a', 'b']");
    assert!(twice.unwrap_err()[0].what.starts_with("pid:7 is already a"));
}

#[test]
fn only_hosts_have_settings_of_a_host() {
    let mut router = NodeDescription::new(NodeRole::Router, "r");
    router.host.pid_namespace = true;
    let description = Description { nodes: vec![router], ..Description::default() };
    let mistakes = resolve(&description, NO_FILES).unwrap_err();
    assert_eq!(mistakes[0].what, "router r has pid_namespace, and only hosts have it");
}
