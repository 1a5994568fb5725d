//! Tests `fastpath lab` as users and scripts call it.
#![cfg(target_os = "linux")]

mod common;

use common::{as_ordinary_user, skip, without_namespaces};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
const SPEC: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"2ms\"\n";

/// Ends a lab that a failed test leaves.
struct Ending<'p>(&'p Place, Child);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.run(&["down", "net"]);
        let _ = self.1.wait();
    }
}

/// A spec file and a state directory for one test, removed on drop.
struct Place {
    directory: PathBuf,
}

impl Place {
    fn new(test: &str) -> Place {
        let directory = std::env::temp_dir().join(format!("fastpath-lab-{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("net.toml"), SPEC).unwrap();
        Place { directory }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_behind(&[PROGRAM], arguments)
    }

    /// Returns the command with a prefix; `words` is the prefix and ends with the program.
    fn command_behind(&self, words: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .arg("lab")
            .args(arguments)
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command.env("FASTPATH_STATE_DIR", self.directory.join("state")).env_remove("FASTPATH_LAB");
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        self.run_behind(&[PROGRAM], arguments)
    }

    fn run_behind(&self, words: &[&str], arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command_behind(words, arguments).output().unwrap();
        let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        (status.code().unwrap_or(-1), text)
    }

    /// Starts `lab up` and waits until the lab is up. Returns `None` and reports a skip if that is
    /// not permitted.
    fn up(&self, test: &str) -> Option<Child> {
        let mut command = self.command(&["up", "net.toml"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if first_line(&mut child).contains("is up") {
            return Some(child);
        }
        let output = child.wait_with_output().unwrap();
        skip_if_not_permitted(test, &String::from_utf8_lossy(&output.stderr));
        None
    }

    fn labs_left(&self) -> usize {
        fs::read_dir(self.directory.join("state")).map_or(0, Iterator::count)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Returns the first line that a process prints, or an empty string if it exits without one.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

fn skip_if_not_permitted(test: &str, text: &str) {
    assert!(text.contains("not permitted") || text.contains("may not be opened"), "{text}");
    skip(test, text);
}

/// Counts processes whose environment names the state directory of the test: the lab's and those
/// started in it.
fn processes_of(place: &Place) -> usize {
    let wanted = format!("FASTPATH_STATE_DIR={}", place.directory.join("state").display());
    let entries = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path().join("environ")));
    entries
        .filter_map(|file| fs::read(file).ok())
        .filter(|environment| {
            environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .count()
}

#[test]
fn run_returns_the_exit_code_of_its_command_and_leaves_nothing_behind() {
    let place = Place::new("code");
    let script = format!("{PROGRAM} lab exec a -- sh -c 'test \"$FASTPATH_HOST\" = a && exit 7'");
    let (code, text) = place.run(&["run", "net.toml", "--", "sh", "-c", &script]);
    if code == 2 {
        return skip_if_not_permitted("lab run", &text);
    }
    assert_eq!(code, 7, "{text}");
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

#[test]
fn an_ordinary_user_runs_a_lab_and_leaves_nothing_behind() {
    let test = "lab run without root";
    let Some(user) = as_ordinary_user() else { return skip(test, "no user namespaces here") };
    let place = Place::new("rootless");
    let on_a = ["run", "net.toml", "--on", "a", "--", "sh", "-c", "test \"$(id -u)\" = 0 && exit 7"];
    let (code, text) = place.run_behind(&[&user[..], &[PROGRAM]].concat(), &on_a);
    if code == 2 {
        return skip_if_not_permitted(test, &text);
    }
    assert_eq!(code, 7, "{text}");
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

#[test]
fn an_ordinary_user_s_host_shows_its_own_interfaces_in_sys() {
    let test = "sys of a host without root";
    let Some(user) = as_ordinary_user() else { return skip(test, "no user namespaces here") };
    let place = Place::new("sys");
    let look = "fastpath=$0; ls /sys/class/net; exec $fastpath lab exec b -- ls /sys/class/net";
    let on_a = ["run", "net.toml", "--on", "a", "--", "sh", "-c", look, PROGRAM];
    let (code, text) = place.run_behind(&[&user[..], &[PROGRAM]].concat(), &on_a);
    if code == 2 {
        return skip_if_not_permitted(test, &text);
    }
    let names: Vec<&str> = text.lines().take(4).collect();
    assert_eq!((code, &names[..]), (0, &["eth0", "lo", "eth0", "lo"][..]), "{text}");
}

#[test]
fn without_namespaces_an_audit_replays_the_capture_next_to_the_spec() {
    let test = "lab run --audit without namespaces";
    let Some(prison) = without_namespaces() else { return skip(test, "no user namespaces here") };
    let place = Place::new("replay");
    let words = [&prison[..], &[PROGRAM]].concat();
    let audit = ["run", "net.toml", "--audit", "--json"];
    let (code, text) = place.run_behind(&words, &audit);
    assert!(code == 2 && text.contains("not permitted") && text.contains("net.pcap"), "{code}: {text}");
    let file = fs::File::create(place.directory.join("net.pcap")).unwrap();
    let mut writer = fastpath_wire::pcap::Writer::new(file, 1).unwrap();
    for i in 0..3_u64 {
        writer.write_packet(1_000_000_000 + 10_000 * i, 500, &[2; 60]).unwrap();
    }
    writer.finish().unwrap();
    let Output { status, stdout, stderr } = place.command_behind(&words, &audit).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success() && said.contains("in virtual time instead"), "{said}");
    let books: serde_json::Value = serde_json::from_slice(&stdout).expect("one JSON object");
    assert!(books.is_object(), "{books}");
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

#[test]
fn run_prints_frame_accounting_as_json_beside_what_the_command_prints() {
    let place = Place::new("json");
    let Output { status, stdout, stderr } =
        place.command(&["run", "net.toml", "--json", "--", "echo", "hello"]).output().unwrap();
    if status.code() == Some(2) {
        return skip_if_not_permitted("lab run --json", &String::from_utf8_lossy(&stderr));
    }
    // What the command prints is beside it.
    let books: serde_json::Value = serde_json::from_slice(&stdout).expect("one JSON object");
    assert_eq!(status.code(), Some(0));
    assert!(String::from_utf8_lossy(&stderr).contains("hello\n"));
    // On a host too, and beside commands of the spec.
    let spec = fs::read_to_string(place.directory.join("net.toml")).unwrap();
    let spec = spec.replace("[host.a]", "[host.a]\nexec = 'echo made'");
    fs::write(place.directory.join("exec.toml"), spec).unwrap();
    let words = ["run", "exec.toml", "--json", "--on", "a", "--", "echo", "hello"];
    let on = place.command(&words).output().unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&on.stdout).is_ok(), "{on:?}");
    assert!(String::from_utf8_lossy(&on.stderr).contains("hello\n"));
    assert!(books["conservation"]["in"].is_u64() && books["links"].is_array(), "{books}");
    // The result can be reproduced from itself alone.
    let run = &books["run"];
    assert_eq!((run["seed"].as_u64(), run["version"].as_str()), (Some(1), Some(env!("CARGO_PKG_VERSION"))));
    assert!(run["machine"]["kernel"].is_string(), "{run}");
    fs::write(place.directory.join("again.json"), run["spec"].to_string()).unwrap();
    let again = Command::new(PROGRAM).arg("check").arg(place.directory.join("again.json")).output().unwrap();
    assert!(again.status.success(), "{again:?}");
}

#[test]
fn run_on_a_host_reaches_the_others_by_name() {
    let place = Place::new("on");
    let (code, text) = place.run(&["run", "net.toml", "--on", "b", "--", "getent", "hosts", "a"]);
    if code == 2 {
        return skip_if_not_permitted("lab run --on", &text);
    }
    assert!(code == 0 && text.contains('a'), "{code}: {text}");
}

#[test]
fn a_lab_of_many_hosts_raises_the_limit_of_open_files_or_names_it() {
    let test = "the limit of open files";
    let place = Place::new("files");
    let hosts: String = (0..40).map(|n| format!("[host.h{n}]\n")).collect();
    let links: String = (0..40).map(|n| format!("[[link]]\nbetween = [\"h{n}\", \"s\"]\n")).collect();
    fs::write(place.directory.join("forty.toml"), format!("{hosts}[switch.s]\n{links}")).unwrap();
    let run = ["run", "forty.toml", "--on", "h39", "--", "true"];
    let (code, text) = place.run_behind(&["sh", "-c", "ulimit -Sn 100; exec \"$@\"", "sh", PROGRAM], &run);
    if code == 2 {
        return skip_if_not_permitted(test, &text);
    }
    assert_eq!(code, 0, "{text}");
    let Some(user) = as_ordinary_user() else { return skip(test, "no user namespaces here") };
    let limited = ["sh", "-c", "ulimit -n 100; exec \"$@\"", "sh", PROGRAM];
    let (code, text) = place.run_behind(&[&user[..], &limited].concat(), &run);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("40 hosts with 40 interfaces need 2") && text.contains("may have 100"), "{text}");
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

/// A host that prepares itself, and one that does something later.
const PREPARED: &str = "
    [host.a]
    exec = ['echo one > made', 'test -s made && echo two >> made', 'echo not so; exit 3']
    [host.b]
    [[link]]
    between = ['a', 'b']
    [[event]]
    at = '20ms'
    host = 'b'
    exec = 'until test -s made; do sleep 0.01; done; cat made > later'
";

fn commands_of_hosts_run(test: &str, prefix: &[&str]) {
    let place = Place::new(test);
    fs::write(place.directory.join("exec.toml"), PREPARED).unwrap();
    let words = [prefix, &[PROGRAM]].concat();
    let command = ["run", "exec.toml", "--", "timeout", "60", "sh", "-c"];
    let script = "cat made; until test -s later; do sleep 0.01; done";
    let (code, text) = place.run_behind(&words, &[&command[..], &[script]].concat());
    if code == 2 {
        return skip_if_not_permitted(test, &text);
    }
    assert_eq!(code, 0, "{text}");
    // They ran in their order before the command.
    assert!(text.starts_with("one\ntwo\n"), "{text}");
    assert!(text.contains("host a: exec 'echo not so; exit 3': exit status 3: not so"), "{text}");
    assert_eq!(place.labs_left(), 0);
}

#[test]
fn commands_of_hosts_run_once_the_lab_is_up_and_at_their_times() {
    commands_of_hosts_run("commands", &[]);
}

#[test]
fn commands_of_hosts_run_in_the_lab_of_an_ordinary_user() {
    let test = "exec without root";
    let Some(user) = as_ordinary_user() else { return skip(test, "no user namespaces here") };
    commands_of_hosts_run("exec-rootless", &user);
}

#[test]
fn a_command_that_does_not_end_ends_with_the_lab() {
    let test = "endless";
    let place = Place::new(test);
    let number = format!("3{}", std::process::id());
    let spec = format!("[host.a]\nexec = 'sleep {number} &'\n{}", SPEC.replace("[host.a]", ""));
    fs::write(place.directory.join("net.toml"), spec).unwrap();
    let command = ["run", "net.toml", "--", "pgrep", "-fx", &format!("sleep {number}")];
    let (code, text) = place.run(&command);
    if code == 2 {
        return skip_if_not_permitted(test, &text);
    }
    assert_eq!(code, 0, "{text}");
    assert_eq!(processes_with(&format!("sleep {number}")), Vec::<String>::new());
    assert_eq!(place.labs_left(), 0);
}

#[test]
fn a_containerlab_file_runs_with_its_interfaces_and_commands() {
    let place = Place::new("clab");
    let text = "topology:
  defaults: {kind: linux, image: none}
  nodes:
    a: {exec: ['sh -c \"ls /sys/class/net > made\"'], env: {WORD: said}}
    b:
    vendor: {kind: nokia_srlinux}
  links:
    - endpoints: ['a:up7', 'b:eth1']
    - endpoints: ['a:eth2', 'vendor:ethernet-1/1']
";
    fs::write(place.directory.join("pair.clab.yml"), text).unwrap();
    let refused = place.run(&["up", "pair.clab.yml"]);
    assert!(
        refused.1.contains("pair.clab.yml:6:20: node vendor: a lab has no kind nokia_srlinux"),
        "{refused:?}"
    );
    let command = ["run", "--kinds", "linux", "--images", "ignore", "pair.clab.yml", "--", "sh", "-c"];
    let (code, text) = place.run(&[&command[..], &["cat made; echo $FASTPATH_LAB"]].concat());
    if code == 2 {
        return skip_if_not_permitted("containerlab", &text);
    }
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("eth2\nlo\nup7\npair\n"), "{text}");
    assert!(text.contains("image of a, b is ignored: --images ignore"), "{text}");
    let toml = place.run(&["run", "--kinds", "linux", "net.toml", "--", "true"]);
    assert!(toml.0 == 2 && toml.1.contains("only files of containerlab (.yml)"), "{toml:?}");
}

#[test]
fn down_without_a_name_spares_a_lab_of_another_session() {
    let place = Place::new("session");
    let mut up = place.command_behind(&["setsid", PROGRAM], &["up", "net.toml"]);
    let mut up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if !first_line(&mut up).contains("is up") {
        let output = up.wait_with_output().unwrap();
        return skip_if_not_permitted("lab down", &String::from_utf8_lossy(&output.stderr));
    }
    let (code, text) = place.run(&["down"]);
    assert!(code == 2 && text.contains("fastpath lab down net") && text.contains("--yes"), "{code}: {text}");
    assert_eq!(up.try_wait().unwrap(), None, "it is up");
    let (code, text) = place.run(&["down", "--yes"]);
    assert!(code == 0 && text.contains("lab net is down"), "{code}: {text}");
    assert!(up.wait().unwrap().success());
}

#[test]
fn exec_errors_list_the_existing_labs_and_hosts() {
    let place = Place::new("exec");
    let (code, text) = place.run(&["exec", "a", "--", "true"]);
    assert!(code == 2 && text.contains("no lab is up"), "{code}: {text}");
    let (code, text) = place.run(&["list"]);
    assert!(code == 0 && text.contains("no lab is up; start one with"), "{code}: {text}");
    let (code, text) = place.run(&["run", "net.toml", "ping", "b"]);
    assert!(code == 2 && text.contains("fastpath lab run net.toml -- ping b"), "{code}: {text}");
    let Some(mut up) = place.up("lab exec") else { return };
    let (code, text) = place.run(&["exec", "c", "--", "true"]);
    assert!(code == 2 && text.contains("no host c (have: a, b); programs run on hosts"), "{code}: {text}");
    let mut ctl = Command::new(PROGRAM);
    ctl.args(["ctl", "--lab", "other", "links"]).env("FASTPATH_STATE_DIR", place.directory.join("state"));
    let said = String::from_utf8(ctl.output().unwrap().stderr).unwrap();
    assert!(said.contains("no lab other is up (up: net)"), "{said}");
    let (code, text) = place.run(&["exec", "other", "a", "--", "true"]);
    assert!(code == 2 && text.contains("no lab other is up (up: net)"), "{code}: {text}");
    let (code, text) = place.run(&["exec", "net", "--", "true"]);
    assert!(code == 2 && text.contains("net is a lab") && text.contains("(have: a, b)"), "{code}: {text}");
    for (argv, expected) in [(["sh", "-c", "exit 9"].as_slice(), 9), (&["no-such-program"], 127)] {
        let (code, text) = place.run(&[&["exec", "net", "a", "--"], argv].concat());
        assert_eq!(code, expected, "{text}");
    }
    let (code, text) = place.run(&["up", "net.toml"]);
    assert!(code == 2 && text.contains(&format!("process {}", up.id())), "{code}: {text}");
    let (code, text) = place.run(&["down"]);
    assert_eq!(code, 0, "{text}");
    assert!(up.wait().unwrap().success());
    assert_eq!(place.labs_left(), 0);
}

#[test]
fn down_removes_the_remains_of_a_killed_engine() {
    let place = Place::new("killed");
    let Some(mut up) = place.up("kill -9") else { return };
    let mut inside = place.command(&["exec", "a", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
    let mut inside = inside.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut inside), "ready\n");
    up.kill().unwrap();
    up.wait().unwrap();
    // Its programs end with it.
    assert!(!inside.wait().unwrap().success());
    let (_, text) = place.run(&["list"]);
    assert!(text.contains("net (dead"), "{text}");
    let (code, text) = place.run(&["exec", "net", "a", "--", "true"]);
    assert!(code == 2 && text.contains("lab net is dead") && text.contains("lab down net"), "{code}: {text}");
    let (code, text) = place.run(&["exec", "a", "--", "true"]);
    let expected =
        "no lab is up: the process of net was killed; `fastpath lab down net` removes what it left";
    assert!(code == 2 && text.contains(expected), "{code}: {text}");
    let (code, text) = place.run(&["down", "other"]);
    assert!(code == 2 && text.contains("no lab other (have: net, which is dead)"), "{code}: {text}");
    let (code, text) = place.run(&["down"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
    // The name is free again.
    let Some(mut up) = place.up("kill -9") else { return };
    assert_eq!(place.run(&["down", "net.toml"]).0, 0);
    up.wait().unwrap();
}

#[test]
fn down_ends_a_lab_that_is_being_started_and_its_name_is_free() {
    let test = "lab down during lab up";
    let place = Place::new("race");
    let hosts: String = (0..120).map(|n| format!("[host.h{n}]\n")).collect();
    let links: String = (0..120).map(|n| format!("[[link]]\nbetween = [\"h{n}\", \"s\"]\n")).collect();
    fs::write(place.directory.join("big.toml"), format!("{hosts}[switch.s]\n{links}")).unwrap();
    for _ in 0..3 {
        let mut command = place.command(&["up", "big.toml"]);
        let mut up = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The name is claimed, and the hosts are being made.
        while !place.directory.join("state/big/holder.json").exists() {
            if up.try_wait().unwrap().is_some() {
                let output = up.wait_with_output().unwrap();
                return skip_if_not_permitted(test, &String::from_utf8_lossy(&output.stderr));
            }
            std::thread::yield_now();
        }
        let (code, text) = place.run(&["down", "big"]);
        assert!(code == 0 && text.contains("lab big is down"), "{code}: {text}");
        assert_eq!(place.labs_left(), 0);
        up.wait().unwrap();
    }
    assert_eq!(processes_of(&place), 0);
}

/// Returns the processes with these words in their command line.
fn processes_with(words: &str) -> Vec<String> {
    let lines =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(words)).collect()
}

/// Returns the command line of a program that sleeps, which no other test starts, and a script that
/// starts it in ways that leave everything that a program can leave.
fn shedding(test: &str) -> (String, String) {
    let sleep = format!("sleep 1000.{}{:03}", std::process::id(), test.len());
    let script = format!(
        "env -i {sleep} & unshare -n {sleep} & setsid {sleep} & env -i setsid unshare -n {sleep} &
        sh -c '{sleep} & exit'; echo ready; exit 3"
    );
    (sleep, script)
}

/// Brings a lab up behind `prefix`, starts programs in it that leave everything that they can, and
/// ends the lab.
fn programs_end_with_their_lab(test: &str, prefix: &[&str]) {
    let place = Place::new(test);
    let words = [prefix, &[PROGRAM]].concat();
    let mut up = place.command_behind(&words, &["up", "net.toml"]);
    let mut up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if !first_line(&mut up).contains("is up") {
        let output = up.wait_with_output().unwrap();
        return skip_if_not_permitted(test, &String::from_utf8_lossy(&output.stderr));
    }
    let (sleep, script) = shedding(test);
    let mut inside = place.command_behind(&words, &["exec", "a", "--", "sh", "-c", &script]);
    let mut inside = inside.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut inside), "ready\n");
    assert_eq!(inside.wait().unwrap().code(), Some(3));
    let (code, text) = place.run_behind(&words, &["down"]);
    assert!(code == 0 && text.contains("lab net is down"), "{code}: {text}");
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert!(up.wait().unwrap().success());
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

#[test]
fn programs_without_the_environment_or_namespace_of_a_lab_end_with_it() {
    programs_end_with_their_lab("shed", &[]);
}

#[test]
fn programs_end_with_the_lab_of_an_ordinary_user() {
    let test = "shed-rootless";
    let Some(user) = as_ordinary_user() else { return skip(test, "no user namespaces here") };
    let place = Place::new(test);
    let (sleep, script) = shedding(test);
    let exec = "exec \"$0\" lab exec a -- sh -c \"$1\"";
    let run = ["run", "net.toml", "--", "sh", "-c", exec, PROGRAM, &script];
    let (code, text) = place.run_behind(&[&user[..], &[PROGRAM]].concat(), &run);
    if code == 2 {
        return skip_if_not_permitted(test, &text);
    }
    assert!(code == 3 && text.contains("ready"), "{code}: {text}");
    assert_eq!(processes_with(&sleep), Vec::<String>::new());
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

#[test]
fn programs_end_with_a_lab_of_root_without_cgroups() {
    let test = "shed-namespace";
    let covered = "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"";
    let prefix = ["unshare", "-m", "sh", "-c", covered, "sh"];
    let permitted = Command::new(prefix[0]).args(&prefix[1..]).arg("true").output();
    if !permitted.is_ok_and(|output| output.status.success()) {
        return skip(test, "no mount namespaces here");
    }
    programs_end_with_their_lab(test, &prefix);
}

#[test]
fn a_signal_ends_run_and_its_command_and_leaves_nothing_behind() {
    let place = Place::new("signal");
    let mut command = place.command(&["run", "net.toml", "--", "sh", "-c", "echo ready; exec sleep 1000"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if first_line(&mut run) != "ready\n" {
        let output = run.wait_with_output().unwrap();
        return skip_if_not_permitted("lab run and a signal", &String::from_utf8_lossy(&output.stderr));
    }
    let pid = nix::unistd::Pid::from_raw(run.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(128 + 15));
    assert_eq!((place.labs_left(), processes_of(&place)), (0, 0));
}

#[test]
fn links_are_shown_by_load_and_names_are_completed() {
    let place = Place::new("top");
    let Some(child) = place.up("links_are_shown_by_load_and_names_are_completed") else { return };
    let _lab = Ending(&place, child);
    let words = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).env("FASTPATH_STATE_DIR", place.directory.join("state"));
        let Output { stdout, stderr, .. } = command.env_remove("FASTPATH_LAB").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&stderr), "", "{words:?}");
        String::from_utf8(stdout).unwrap()
    };
    let sample: serde_json::Value = serde_json::from_str(&words(&["ctl", "top", "--json"])).unwrap();
    let links = sample["links"].as_array().unwrap();
    assert_eq!(links.len(), 2, "{sample}");
    for key in ["link", "queued_frames", "queueing_delay_us", "in_bps", "dropped", "late"] {
        assert!(!links[0][key].is_null(), "{key}: {sample}");
    }
    let table = words(&["ctl", "top", "--interval", "1ms"]);
    assert!(table.contains("a-b") && !table.contains('\u{1b}'), "{table:?}");
    assert!(words(&["ctl", "links"]).contains("waits"));
    for (line, expected) in [
        ("ctl set", "a-b\n"),
        ("ctl --lab net set", "a-b\n"),
        ("ctl set a-b --from", "a\nb\n"),
        ("ctl set a-b --rate", ""),
        ("lab exec", "a\nb\n"),
        ("lab exec net", "a\nb\n"),
        ("lab down", "net\n"),
    ] {
        let typed: Vec<&str> = ["complete", "--"].into_iter().chain(line.split(' ')).collect();
        assert_eq!(words(&typed), expected, "{line}");
    }
    // The script of bash puts the names among the completions.
    let script = "PATH=\"$1:$PATH\"; source <(fastpath completions bash); COMP_WORDS=(fastpath ctl set a); \
                  COMP_CWORD=3; _fastpath_with_names fastpath a set; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "bash"]).arg(PathBuf::from(PROGRAM).parent().unwrap());
    bash.env("FASTPATH_STATE_DIR", place.directory.join("state")).env_remove("FASTPATH_LAB");
    let said = bash.output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).lines().any(|line| line == "a-b"), "{said:?}");
}

#[test]
fn exec_opens_a_shell_and_needs_no_separator() {
    let place = Place::new("shell");
    let Some(mut up) = place.up("a shell on a host") else { return };
    let mut command = place.command(&["exec", "a"]);
    command.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = command.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"echo $FASTPATH_HOST $PS1\nexit 3\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a (a) $\n");
    assert_eq!(output.status.code(), Some(3));
    let words = ["exec", "b", "sh", "-c", "echo $FASTPATH_HOST -- $0", "x"];
    assert_eq!(place.run(&words), (0, "b -- x\n".to_owned()));
    assert_eq!(place.run(&["exec", "net", "b", "echo", "--", "-x"]), (0, "-- -x\n".to_owned()));
    assert_eq!(place.run(&["exec", "net", "b", "--", "echo", "y"]), (0, "y\n".to_owned()));
    let (code, text) = place.run(&["down", "net"]);
    assert_eq!(code, 0, "{text}");
    up.wait().unwrap();
}

#[test]
fn a_lab_changes_to_another_spec_and_shows_its_nodes() {
    let place = Place::new("apply");
    let Some(mut up) = place.up("lab apply") else { return };
    let next = "[host.c]\n[host.a]\n[host.b]\n[router.r]\n[[link]]\nbetween = ['a', 'b']\ndelay = '3ms'\n\
                [[link]]\nbetween = ['c', 'r']\n[[link]]\nbetween = ['r', 'b']\n";
    fs::write(place.directory.join("next.toml"), next).unwrap();
    let (code, text) = place.run(&["apply", "next.toml", "--dry-run"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("+ host     c") && text.contains("delay: 2ms → 3ms"), "{text}");
    assert!(text.ends_with("lab net would change: 4 added, 2 changed, 0 removed\n"), "{text}");
    let (code, text) = place.run(&["apply", "next.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(code == 0 && json["changes"][0]["name"] == "c", "{text}");
    assert!(place.run(&["apply", "next.toml"]).1.ends_with("lab net: no difference\n"));
    let (_, text) = place.run(&["inspect", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let nodes = json["nodes"].as_array().unwrap();
    let states: Vec<_> = nodes.iter().map(|node| (node["name"].clone(), node["state"].clone())).collect();
    let expected = [("c", "running"), ("a", "running"), ("b", "running"), ("r", "emulated")];
    assert_eq!(states, expected.map(|(name, state)| (name.into(), state.into())));
    let namespace = fs::metadata(nodes[0]["namespace"].as_str().unwrap());
    assert!(namespace.is_ok(), "{text}");
    // A mistake changes nothing, and says where it is.
    fs::write(place.directory.join("bad.toml"), next.replace("'c', 'r'", "'c', 'q'")).unwrap();
    let (code, text) = place.run(&["apply", "bad.toml"]);
    assert!(
        code == 2 && text.contains("bad.toml:9:") && text.contains("there is no node 'q'"),
        "{code}: {text}"
    );
    assert!(place.run(&["apply", "next.toml"]).1.ends_with("lab net: no difference\n"));
    assert_eq!(place.run(&["down"]).0, 0);
    up.wait().unwrap();
}

/// Two switches in a row that track UDP, in zones of their own.
const TRACKING: &str = r#"[host.a]
[host.b]
[openflow.s1]
rules = """
table=0,priority=9,udp,actions=ct(commit,zone=1,exec(set_field:7->ct_mark)),NORMAL
table=0,priority=1,actions=NORMAL
"""
[openflow.s2]
rules = """
table=0,priority=9,udp,actions=ct(commit,zone=2),NORMAL
table=0,priority=1,actions=NORMAL
"""
[[link]]
between = ["a", "s1"]
delay = "1ms"
[[link]]
between = ["s1", "s2"]
[[link]]
between = ["s2", "b"]
"#;

#[test]
fn connections_are_listed_by_zone_and_node_and_ended() {
    let place = Place::new("connections");
    fs::write(place.directory.join("net.toml"), TRACKING).unwrap();
    let Some(child) = place.up("ctl connections") else { return };
    let _lab = Ending(&place, child);
    let ctl = |words: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["ctl", "connections"]).args(words.split_whitespace());
        command.env("FASTPATH_STATE_DIR", place.directory.join("state")).env_remove("FASTPATH_LAB");
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let listed = |words: &str| {
        let (code, said, refused) = ctl(words);
        assert_eq!((code, refused.as_str()), (Some(0), ""), "{words}");
        said.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(listed(""), [""; 0]);
    // The name has an address of IPv6 too.
    let send = "b=$(getent ahostsv4 b | head -n 1) && echo > /dev/udp/${b%% *}/$0";
    for port in ["5301", "5302", "5303"] {
        let (code, text) = place.run(&["exec", "a", "--", "bash", "-c", send, port]);
        assert_eq!(code, 0, "{text}");
    }
    // The packets may still be on their way.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let all = loop {
        let all = listed("");
        if all.len() == 6 {
            break all;
        }
        assert!(std::time::Instant::now() < end, "{all:#?}");
    };
    let of = |lines: &[String], words: [&str; 2]| {
        lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
    };
    assert_eq!([of(&all, ["s1: udp,", "zone=1,"]), of(&all, ["s2: udp,", "zone=2"])], [3, 3], "{all:#?}");
    let first = listed("1");
    assert_eq!((first.len(), of(&first, ["udp,orig=(src=", ",mark=7"])), (3, 3), "{first:#?}");
    assert!(first.iter().all(|line| line.starts_with("udp,")), "one node needs no name: {first:#?}");
    assert_eq!(of(&first, [",dport=5302)", ",reply=(src="]), 1, "{first:#?}");
    assert_eq!((listed("--node s2").len(), listed("2 --node s1").len(), listed("3").len()), (3, 0, 0));
    let json: serde_json::Value = serde_json::from_str(&ctl("--node s2 --json").1).unwrap();
    let one = &json["connections"][0];
    assert_eq!(
        (&one["node"], &one["zone"], &one["protocol"]),
        (&"s2".into(), &2.into(), &17.into()),
        "{json}"
    );
    // End those of a zone, of a node, and of none that exists.
    assert_eq!(listed("1 --node s2 --flush"), ["0 connections ended"]);
    assert_eq!(listed("1 --flush"), ["3 connections ended"]);
    assert_eq!((listed("1").len(), listed("2").len()), (0, 3));
    let (code, _, why) = ctl("--node s3 --flush");
    assert!(code == Some(2) && why.contains("no OpenFlow node is called 's3'"), "{code:?} {why}");
    assert_eq!(ctl("--flush --json").0, Some(2));
    assert_eq!(listed("--node s2 --flush"), ["3 connections ended"]);
    assert_eq!(listed(""), [""; 0]);
}
