//! `fastpath switch` as a user runs it: rule files on captures, explained, and driven by Open vSwitch's and os-ken's
//! own programs.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A directory of its own for each test, emptied first.
fn bench(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("switch").join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn switch(directory: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
    command.arg("switch").args(arguments.split_whitespace()).current_dir(directory).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A TCP packet to a port, with made-up checksums of zero.
fn tcp(dst_port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([4, 0]);
    frame.extend(dst_port.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
    frame
}

/// A pcap with microseconds.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (second, frame) in frames.iter().enumerate() {
        for word in [1_700_000_000 + second as u32, 0, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The frames of a pcap.
fn frames(file: &[u8]) -> Vec<Vec<u8>> {
    let (mut at, mut found) = (24, Vec::new());
    while at < file.len() {
        let len = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        found.push(file[at + 16..at + 16 + len].to_vec());
        at += 16 + len;
    }
    found
}

#[test]
fn captures_go_through_a_rule_file_and_the_books_balance() {
    let bench = bench("offline");
    fs::write(bench.join("in.pcap"), capture(&[tcp(80), tcp(23), tcp(443), tcp(80)])).unwrap();
    let rules = "\
        table=0,priority=20,tcp,tp_dst=23,actions=drop\n\
        table=0,priority=10,in_port=p1,tcp,actions=set_field:00:00:00:00:00:09->eth_dst,goto_table:1\n\
        table=1,tcp,tp_dst=443,idle_timeout=1,actions=output:p3\n\
        table=1,priority=1,actions=output:p2,output:p3\n";
    fs::write(bench.join("rules"), rules).unwrap();
    let output = switch(&bench, "--rules rules --in p1=in.pcap --out p2=two.pcap --out p3=three.pcap --json");
    assert!(output.status.success(), "{}", text(&output));
    let mut expected = tcp(80);
    expected[..6].copy_from_slice(&[0, 0, 0, 0, 0, 9]);
    assert_eq!(
        frames(&fs::read(bench.join("two.pcap")).unwrap()).len(),
        3,
        "443 too: its flow has gone by then"
    );
    assert_eq!(frames(&fs::read(bench.join("three.pcap")).unwrap())[0], expected);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let books = &report["books"];
    assert_eq!((&books["received"], &books["sent"], &books["balance"]), (&4.into(), &6.into(), &true.into()));
    assert_eq!(books["dropped"]["no-output"], 1);
}

#[test]
fn mistakes_in_rules_are_all_told_with_their_lines() {
    let bench = bench("mistakes");
    fs::write(bench.join("rules"), "tcp,actions=output:1\ntp_dst=80,actions=drop\nip,actions=goto_table:0\n")
        .unwrap();
    let output = switch(&bench, "explain --rules rules");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("rules:2: "), "{}", text(&output));
}

#[test]
fn explain_shows_shapes_and_the_way_of_a_packet() {
    let bench = bench("explain");
    let rules = "table=0,ip,nw_dst=10.0.0.0/8,actions=dec_ttl,goto_table:1\ntable=1,tcp,tp_dst=80,actions=group:1\n\
                 group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3\n";
    fs::write(bench.join("rules"), rules).unwrap();
    let output = switch(&bench, "explain --rules rules --trace in_port=4,tcp,nw_dst=10.9.9.9,tp_dst=80");
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in
        ["table 0: 1 rules", "table 1: priority=32768,tcp,tp_dst=80", "leaves by port 2", "leaves by port 3"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A switch that serves, killed when it is dropped: the process, its address, and what it goes on to say.
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
    let frame: String = tcp(80).iter().map(|byte| format!("{byte:02x}")).collect();
    ofctl("packet-out", &[&format!("in_port=1 packet={frame} actions=TABLE")]);
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

/// Four namespaces inside one that goes with its processes: hosts behind a switch that os-ken's application drives.
const LEARNING: &str = r#"
set -e
mount -t tmpfs none /run/netns
ip link set lo up
for i in 1 2 3; do
    ip netns add h$i
    ip link add s$i type veth peer name eth0 netns h$i
    ip link set s$i up
    ip -n h$i addr add 10.0.0.$i/24 dev eth0
    ip -n h$i link set eth0 up
done
"$FASTPATH" switch --connect tcp:127.0.0.1:6653 --max-backoff 1 --port s1 --port s2 --port s3 & switch=$!
"$VENV/bin/osken-manager" --ofp-tcp-listen-port 6653 --ofp-listen-host 127.0.0.1 "$APP" >/dev/null 2>&1 & controller=$!
trap 'kill $switch $controller; wait' EXIT
ip netns exec h1 ping -c 1 -w 30 10.0.0.2
ip netns exec h3 ping -c 3 -i 0.2 -w 30 10.0.0.1
"#;

#[test]
fn os_ken_s_learning_switch_connects_hosts() {
    let test = "os_ken_s_learning_switch_connects_hosts";
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../osken");
    let app = venv.join("apps/simple_switch_13.py");
    if !app.exists() || !on_path("ping") {
        eprintln!("SKIPPED: {test}: no os-ken (cargo xtask test installs it)");
        return;
    }
    fs::create_dir_all("/run/netns").unwrap_or_default();
    let output = Command::new("unshare")
        .args(["-n", "-m", "--propagation", "private", "sh", "-c", LEARNING])
        .env("FASTPATH", env!("CARGO_BIN_EXE_fastpath"))
        .env("VENV", &venv)
        .env("APP", &app)
        .output();
    match output {
        Ok(output) if text(&output).contains("unshare failed") => {
            eprintln!("SKIPPED: {test}: namespaces are not permitted here");
        }
        Ok(output) => assert!(output.status.success(), "{}", text(&output)),
        Err(error) => eprintln!("SKIPPED: {test}: unshare: {error}"),
    }
}
