//! Tests `fastpath switch` with unmodified controllers: Open vSwitch's ovs-ofctl, os-ken's learning
//! switch and router, and Faucet. `cargo xtask test` installs them. A test is skipped if its
//! controller is missing.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Returns an empty directory for one test.
fn bench(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("controllers").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A TCP packet to port 80, with all checksums set to zero.
const FRAME: &str = "02000000000202000000000108004500002800000000400600000a00\
    00010a0000020400005000000000000000005002000000000000";

/// A running switch, killed on drop: the process, its address, and the rest of its output.
struct Serving(Child, String, Lines<BufReader<ChildStdout>>);

impl Serving {
    fn start(arguments: &str) -> Serving {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        command.arg("switch").args(arguments.split_whitespace()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let at = first.strip_prefix("listening on ptcp:").expect(&first);
        let (port, address) = at.split_once(':').unwrap();
        let address = format!("tcp:{address}:{port}");
        Serving(child, address, lines)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        self.2.by_ref().for_each(drop);
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

#[test]
fn ovs_ofctl_drives_the_switch() {
    if !on_path("ovs-ofctl") {
        eprintln!("SKIPPED: ovs_ofctl_drives_the_switch: no ovs-ofctl (Debian: openvswitch-common)");
        return;
    }
    let serving =
        Serving::start("--listen ptcp:0:127.0.0.1 --port p1=memory --port p2=memory --port p3=memory");
    let ofctl = |command: &str, arguments: &[&str]| {
        let output = Command::new("ovs-ofctl")
            .args(["-O", "OpenFlow13", command, &serving.1])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{command} {arguments:?}: {}", text(&output));
        text(&output)
    };
    assert!(ofctl("show", &[]).contains("3(p3): addr:"));
    ofctl("add-meter", &["meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100"]);
    ofctl(
        "add-group",
        &["group_id=1,type=select,bucket=weight:1,actions=output:2,bucket=weight:3,actions=output:3"],
    );
    ofctl("add-flow", &["table=0,priority=100,tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=output:2"]);
    ofctl("add-flow", &["table=0,priority=90,udp,actions=meter:1,group:1"]);
    ofctl("add-flow", &["table=0,priority=80,ipv6,ipv6_label=0x12345,actions=output:3"]);
    let flows = ofctl("dump-flows", &[]);
    for part in [
        "tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=output:2",
        "udp actions=meter:1,group:1",
        "ipv6_label=0x12345",
    ] {
        assert!(flows.contains(part), "{part}: {flows}");
    }
    ofctl("mod-flows", &["tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=output:3"]);
    assert!(ofctl("dump-flows", &["tcp"]).contains("actions=output:3"));
    ofctl("del-flows", &["udp"]);
    assert!(!ofctl("dump-flows", &[]).contains("udp"));
    assert!(ofctl("dump-groups", &[]).contains("type=select"));
    assert!(ofctl("dump-meters", &[]).contains("rate=1000 burst_size=100"));
    assert!(ofctl("meter-stats", &[]).contains("meter:1"));
    assert!(ofctl("dump-table-features", &[]).contains("table 0"));
    ofctl("packet-out", &[&format!("in_port=1 packet={FRAME} actions=TABLE")]);
    assert!(ofctl("dump-ports", &["3"]).contains("tx pkts=1, bytes=54"));
    ofctl("mod-port", &["2", "down"]);
    assert!(ofctl("dump-ports-desc", &[]).contains("PORT_DOWN"));
    ofctl("del-groups", &[]);
    ofctl("del-meters", &[]);
    let bad = Command::new("ovs-ofctl")
        .args(["-O", "OpenFlow13", "add-flow", &serving.1, "ip,actions=group:9"])
        .output()
        .unwrap();
    assert!(text(&bad).contains("OFPBAC_BAD_OUT_GROUP"), "{}", text(&bad));
}

#[test]
fn ovs_ofctl_monitors_the_switch_and_snoops_on_others() {
    let test = "ovs_ofctl_monitors_the_switch_and_snoops_on_others";
    if !on_path("ovs-ofctl") || !on_path("ovs-appctl") {
        eprintln!("SKIPPED: {test}: no ovs-ofctl (Debian: openvswitch-common)");
        return;
    }
    let mut serving =
        Serving::start("--tables 2 --listen ptcp:0:127.0.0.1 --snoop ptcp:0:127.0.0.1 --port p1=memory");
    let second = serving.2.next().unwrap().unwrap();
    let (port, address) = second.strip_prefix("listening on ptcp:").unwrap().split_once(':').unwrap();
    let bench = bench(test);
    let monitor = Watcher::start(&bench, "monitor", &[&serving.1, "65534"]);
    let snoop = Watcher::start(&bench, "snoop", &[&format!("tcp:{address}:{port}")]);
    let out = format!("in_port=1 packet={FRAME} actions=CONTROLLER");
    let words = ["-O", "OpenFlow13", "packet-out", &serving.1, &out];
    let output = Command::new("ovs-ofctl").args(words).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let packet = monitor.wait_for("NXT_PACKET_IN2");
    assert!(packet.contains("in_port=1 (via action) data_len=54"), "{packet}");
    assert!(snoop.wait_for("OFPT_PACKET_OUT").contains("CONTROLLER"));
    snoop.wait_for("OFPT_BARRIER_REPLY");
}

/// A detached `ovs-ofctl` that monitors a switch. It is connected when `start` returns.
struct Watcher {
    control: PathBuf,
    lines: std::cell::RefCell<Lines<BufReader<File>>>,
}

impl Watcher {
    fn start(bench: &Path, what: &str, arguments: &[&str]) -> Watcher {
        let [control, pid, said] =
            ["control", "pid", "said"].map(|name| bench.join(format!("{what}.{name}")));
        // Discard its output: a background process would keep the pipes open.
        let detached = Command::new("ovs-ofctl")
            .args(["-O", "OpenFlow13", what])
            .args(arguments)
            .args(["--detach", "--no-chdir"])
            .args([format!("--unixctl={}", control.display()), format!("--pidfile={}", pid.display())])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(detached.unwrap().success(), "{what} {arguments:?}");
        assert!(Command::new("mkfifo").arg(&said).status().unwrap().success());
        // Open for reading and writing, so that the call does not block until a writer appears.
        let reader = File::options().read(true).write(true).open(&said).unwrap();
        let watcher = Watcher { control, lines: BufReader::new(reader).lines().into() };
        watcher.tell(&["ofctl/set-output-file", &said.to_string_lossy()]);
        watcher
    }

    fn tell(&self, words: &[&str]) {
        let output = Command::new("ovs-appctl").arg("-t").arg(&self.control).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output));
    }

    /// Waits for the next line that contains `words` and returns it.
    fn wait_for(&self, words: &str) -> String {
        let mut lines = self.lines.borrow_mut();
        lines.find_map(|line| Some(line.unwrap()).filter(|line| line.contains(words))).unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tell(&["exit"]);
    }
}

/// Returns a virtual environment made by `cargo xtask test`, if it contains `file`.
fn venv(name: &str, file: &str) -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..").join(name);
    let venv = venv.canonicalize().ok()?;
    venv.join(file).exists().then_some(venv)
}

/// Runs a script in a network namespace in which it can create further namespaces. They all end
/// with their processes.
fn in_namespaces(test: &str, script: &str, venv: Option<PathBuf>, more: &[(&str, &str)]) {
    let Some(venv) = venv else {
        eprintln!("SKIPPED: {test}: the controller is not here (cargo xtask test installs it)");
        return;
    };
    if let Some(program) = ["ping", "curl", "ovs-ofctl"].into_iter().find(|program| !on_path(program)) {
        eprintln!("SKIPPED: {test}: no {program}");
        return;
    }
    // The directory of `ip netns`; the script mounts a private one there.
    fs::create_dir_all("/run/netns").unwrap_or_default();
    let output = Command::new("unshare")
        .args(["-n", "-m", "--propagation", "private", "sh", "-c", script])
        .env("FASTPATH", env!("CARGO_BIN_EXE_fastpath"))
        .env("DIRECTORY", bench(test))
        .env("VENV", &venv)
        .envs(more.iter().copied())
        .output();
    match output {
        Ok(output) if text(&output).contains("unshare failed") => {
            eprintln!("SKIPPED: {test}: namespaces are not permitted here");
        }
        Ok(output) => assert!(output.status.success(), "{}", text(&output)),
        Err(error) => eprintln!("SKIPPED: {test}: unshare: {error}"),
    }
}

#[test]
fn the_learning_switch_of_os_ken_connects_hosts() {
    let venv = venv("osken", "apps/simple_switch_13.py");
    let script = concat!(include_str!("controllers/connected.sh"), include_str!("controllers/learning.sh"));
    in_namespaces("the_learning_switch_of_os_ken_connects_hosts", script, venv, &[]);
}

#[test]
fn the_router_of_os_ken_connects_subnets() {
    let venv = venv("osken", "apps/rest_router.py");
    let script = include_str!("controllers/routing.sh");
    in_namespaces(
        "the_router_of_os_ken_connects_subnets",
        script,
        venv,
        &[("WEB", include_str!("controllers/web.py"))],
    );
}

#[test]
fn faucet_separates_vlans_and_its_access_list_drops_frames() {
    let test = "faucet_separates_vlans_and_its_access_list_drops_frames";
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/controllers/faucet.yaml");
    let script = concat!(include_str!("controllers/connected.sh"), include_str!("controllers/faucet.sh"));
    in_namespaces(test, script, venv("faucet", "bin/faucet"), &[("CONFIG", config)]);
}

#[test]
fn os_ken_controls_two_openflow_nodes_of_a_lab() {
    let test = "os_ken_controls_two_openflow_nodes_of_a_lab";
    if !Path::new("/dev/net/tun").exists() {
        eprintln!("SKIPPED: {test}: no /dev/net/tun");
        return;
    }
    in_namespaces(test, include_str!("controllers/lab.sh"), venv("osken", "apps/simple_switch_13.py"), &[]);
}
