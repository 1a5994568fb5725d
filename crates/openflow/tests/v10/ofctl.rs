//! `ovs-ofctl` of Open vSwitch against the agent, without `-O` and with `-O OpenFlow10`.

use super::flows;
use crate::common::{Harness, until};
use crate::frame;
use fastpath_switch::{Action, Field, FieldMatch, Match, port};
use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// The options of `ovs-ofctl` with which each test runs.
const OPTIONS: [&[&str]; 2] = [&[], &["-O", "OpenFlow10"]];

/// `ovs-ofctl` with these options, for the switch of a harness.
pub(crate) struct Ofctl<'a> {
    pub(crate) harness: &'a Harness,
    pub(crate) options: &'a [&'a str],
}

impl Ofctl<'_> {
    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let mut program = Command::new("ovs-ofctl");
        let at = format!("tcp:{}", self.harness.address());
        program.arg("--timeout=60").args(self.options).args([command, &at]).args(arguments);
        program
    }

    /// Returns what a command prints, and whether it has succeeded.
    pub(crate) fn try_run(&self, command: &str, arguments: &[&str]) -> (bool, String) {
        let output = self.command(command, arguments).output().expect("it starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns what a command prints, which must succeed.
    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> String {
        let (is_done, text) = self.try_run(command, arguments);
        assert!(is_done, "{:?} {command} {arguments:?}: {text}", self.options);
        text
    }

    /// Returns the flows that `dump-flows` prints, without what changes with time.
    pub(crate) fn dump_flows(&self, arguments: &[&str]) -> Vec<String> {
        let text = self.run("dump-flows", arguments);
        let flows = text.lines().filter(|line| line.starts_with(" cookie="));
        let part = |line: &str| {
            let parts = line.trim().split(", ").filter(|part| {
                !["duration=", "idle_age=", "hard_age="].iter().any(|age| part.starts_with(age))
            });
            parts.collect::<Vec<_>>().join(", ")
        };
        flows.map(part).collect()
    }
}

/// Runs a test with each of the options, unless `ovs-ofctl` is not installed.
fn with_ofctl(name: &str, test: impl Fn(&Ofctl<'_>)) {
    with_ofctl_of(name, &OPTIONS, Harness::new, test);
}

/// Runs a test with each of these options, on a switch of its own.
pub(crate) fn with_ofctl_of(
    name: &str,
    options: &[&[&str]],
    harness: impl Fn() -> Harness,
    test: impl Fn(&Ofctl<'_>),
) {
    match Command::new("ovs-ofctl").arg("--version").stdout(Stdio::null()).status() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: {name}: ovs-ofctl is not installed");
            return;
        }
        status => assert!(status.expect("it starts").success()),
    }
    for options in options {
        let harness = harness();
        test(&Ofctl { harness: &harness, options });
        let accounting = harness.stop();
        assert!(accounting.balances(), "{accounting:?}");
    }
}

#[test]
fn ovs_ofctl_dumps_the_flows_of_the_file_in_openflow_1_3_as_they_were_added() {
    let name = "ovs_ofctl_dumps_the_flows_of_the_file_in_openflow_1_3_as_they_were_added";
    let options: &[&[&str]] = &[&["-O", "OpenFlow13", "--no-stats", "--no-names"]];
    with_ofctl_of(name, options, Harness::new, |ofctl| {
        let lines = include_str!("../flow_lines.txt").lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            ofctl.run("add-flow", &[line]);
            let dumped = ofctl.run("dump-flows", &[]);
            let shown: Vec<&str> =
                dumped.lines().map(str::trim).filter(|one| one.contains("actions=")).collect();
            assert_eq!(shown, [line]);
            ofctl.run("del-flows", &[]);
        }
    });
}

#[test]
fn ovs_ofctl_shows_the_switch_and_its_counters() {
    with_ofctl("ovs_ofctl_shows_the_switch_and_its_counters", |ofctl| {
        let shown = ofctl.run("show", &[]);
        for words in [
            "OFPT_FEATURES_REPLY (xid=0x2): dpid:000000000000002a",
            "n_tables:254, n_buffers:0",
            "capabilities: FLOW_STATS TABLE_STATS PORT_STATS QUEUE_STATS ARP_MATCH_IP",
            " 1(p1): addr:02:00:00:00:00:01",
            " LOCAL(local): addr:",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
        ofctl.run("add-flow", &["in_port=1,actions=2"]);
        ofctl.harness.send(1, &frame(1));
        ofctl.harness.receive(2);
        let ports = ofctl.run("dump-ports", &[]);
        assert!(ports.contains("4 ports") && ports.contains("rx pkts=1, bytes=60, drop=0"), "{ports}");
        let one = ofctl.run("dump-ports", &["2"]);
        assert!(one.contains("1 ports") && one.contains("tx pkts=1, bytes=60, drop=0"), "{one}");
        let tables = ofctl.run("dump-tables", &[]);
        assert!(tables.contains("table 0 (\"table0\")"), "{tables}");
        assert!(tables.contains("active=1, lookup=1, matched=1"), "{tables}");
        let sum = ofctl.run("dump-aggregate", &[]);
        assert!(sum.contains("packet_count=1 byte_count=60 flow_count=1"), "{sum}");
        assert!(ofctl.run("dump-desc", &[]).contains("Manufacturer: fastpath"));
        assert!(ofctl.run("dump-ports-desc", &[]).contains(" 3(p3): addr:02:00:00:00:00:03"));
        assert!(ofctl.run("queue-stats", &[]).contains("0 queues"));
        assert!(ofctl.run("get-frags", &[]).contains("normal"));
    });
}

/// Flows as they are added, and as they are shown.
const FLOWS: [(&str, &str); 9] = [
    ("in_port=1,actions=2", "in_port=1 actions=output:2"),
    (
        "priority=5,tcp,nw_src=10.0.0.0/8,nw_dst=192.0.2.7,tp_dst=80,actions=mod_nw_dst:10.0.0.1,mod_tp_dst:8080,output:3",
        "priority=5,tcp,nw_src=10.0.0.0/8,nw_dst=192.0.2.7,tp_dst=80 actions=mod_nw_dst:10.0.0.1,mod_tp_dst:8080,output:3",
    ),
    (
        "dl_vlan=100,dl_vlan_pcp=3,idle_timeout=600,actions=strip_vlan,mod_vlan_vid:7,mod_vlan_pcp:2,NORMAL",
        "idle_timeout=600, dl_vlan=100,dl_vlan_pcp=3 actions=strip_vlan,mod_vlan_vid:7,mod_vlan_pcp:2,NORMAL",
    ),
    (
        "dl_vlan=0xffff,hard_timeout=600,actions=mod_vlan_vid:7,FLOOD",
        "hard_timeout=600, vlan_tci=0x0000 actions=mod_vlan_vid:7,FLOOD",
    ),
    ("dl_vlan_pcp=5,actions=drop", "dl_vlan_pcp=5 actions=drop"),
    (
        "arp,arp_op=1,arp_spa=10.0.0.0/24,actions=CONTROLLER:128",
        "arp,arp_spa=10.0.0.0/24,arp_op=1 actions=CONTROLLER:128",
    ),
    (
        "udp,nw_tos=184,actions=mod_nw_tos:16,mod_dl_src:02:00:00:00:00:07,IN_PORT",
        "udp,nw_tos=184 actions=mod_nw_tos:16,mod_dl_src:02:00:00:00:00:07,IN_PORT",
    ),
    (
        "icmp,icmp_type=8,icmp_code=0,actions=enqueue:2:5,ALL",
        "icmp,icmp_type=8,icmp_code=0 actions=enqueue:2:5,ALL",
    ),
    (
        "dl_dst=02:00:00:00:00:09,dl_type=0x88b5,actions=mod_nw_src:10.0.0.2,LOCAL",
        "dl_dst=02:00:00:00:00:09,dl_type=0x88b5 actions=mod_nw_src:10.0.0.2,LOCAL",
    ),
];

#[test]
fn ovs_ofctl_adds_shows_and_deletes_flows() {
    with_ofctl("ovs_ofctl_adds_shows_and_deletes_flows", |ofctl| {
        let mut wanted = Vec::new();
        for (added, shown) in FLOWS {
            ofctl.run("add-flow", &[added]);
            wanted.push(format!("cookie=0x0, table=0, n_packets=0, n_bytes=0, {shown}"));
        }
        let mut seen = ofctl.dump_flows(&[]);
        seen.sort();
        wanted.sort();
        assert_eq!(seen, wanted);
        // The same flow, in both versions.
        let of_tcp = "tcp,nw_src=10.0.0.0/8,nw_dst=192.0.2.7,tp_dst=80";
        assert_eq!(ofctl.dump_flows(&[of_tcp]).len(), 1);
        let seen = flows(&mut ofctl.harness.controller());
        let tcp = seen.iter().find(|flow| flow.priority == 5).expect("it is there");
        let matching = Match::new(&[
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::IpProto, 6),
            FieldMatch::masked(Field::Ipv4Src, 0x0a00_0000, 0xff00_0000),
            FieldMatch::exact(Field::Ipv4Dst, 0xc000_0207),
            FieldMatch::exact(Field::TcpDst, 80),
        ]);
        assert_eq!(tcp.matching, matching.expect("it has no mistake"));
        let actions = [Action::SetField(Field::Ipv4Dst, 0x0a00_0001), Action::SetField(Field::TcpDst, 8080)];
        assert_eq!(tcp.instructions.apply[..2], actions);
        ofctl.run("del-flows", &[of_tcp]);
        assert_eq!(ofctl.dump_flows(&[]).len(), FLOWS.len() - 1);
    });
}

#[test]
fn ovs_ofctl_changes_flows_or_adds_them() {
    with_ofctl("ovs_ofctl_changes_flows_or_adds_them", |ofctl| {
        let head = "table=0, n_packets=0, n_bytes=0";
        ofctl.run("mod-flows", &["cookie=5,in_port=1,actions=2"]);
        assert_eq!(ofctl.dump_flows(&[]), [format!("cookie=0x5, {head}, in_port=1 actions=output:2")]);
        ofctl.run("mod-flows", &["cookie=6,actions=3"]);
        assert_eq!(ofctl.dump_flows(&[]), [format!("cookie=0x6, {head}, in_port=1 actions=output:3")]);
        // The highest priority is that of a flow that compares every field.
        let exact = "tcp,in_port=1,dl_vlan=0xffff,dl_vlan_pcp=0,dl_src=2:0:0:0:0:1,dl_dst=2:0:0:0:0:2,nw_tos=0,\
                     nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1,tp_dst=2,priority=9,actions=2";
        ofctl.run("add-flow", &[exact]);
        let seen = flows(&mut ofctl.harness.controller());
        assert_eq!(seen.iter().map(|flow| flow.priority).collect::<Vec<_>>(), [u16::MAX, 0x8000]);
    });
}

#[test]
fn ovs_ofctl_learns_why_a_request_is_refused() {
    with_ofctl("ovs_ofctl_learns_why_a_request_is_refused", |ofctl| {
        ofctl.run("add-flow", &["check_overlap,in_port=1,actions=2"]);
        for (command, arguments, why) in [
            ("add-flow", ["check_overlap,actions=2"].as_slice(), "OFPFMFC_OVERLAP"),
            ("queue-stats", &["99"], "OFPQOFC_BAD_PORT"),
            ("queue-stats", &["1", "5"], "OFPQOFC_BAD_QUEUE"),
            ("mod-port", &["1", "no-receive-stp"], "NXBRC_UNENCODABLE_ERROR"),
        ] {
            // Commands for statistics print the error and succeed.
            let (_, text) = ofctl.try_run(command, arguments);
            assert!(text.contains(why), "{command} {arguments:?}: {text}");
        }
    });
}

#[test]
fn ovs_ofctl_sends_packets_and_changes_ports() {
    with_ofctl("ovs_ofctl_sends_packets_and_changes_ports", |ofctl| {
        let hex: String = frame(7).iter().map(|byte| format!("{byte:02x}")).collect();
        ofctl.run("packet-out", &[&format!("in_port=1,packet={hex},actions=2")]);
        assert_eq!(ofctl.harness.receive(2), frame(7));
        ofctl.run("packet-out", &[&format!("packet={hex},actions=FLOOD")]);
        assert_eq!([1, 2, 3].map(|number| ofctl.harness.receive(number)), [(); 3].map(|()| frame(7)));
        ofctl.run("mod-port", &["2", "down"]);
        assert!(ofctl.run("show", &[]).contains("config:     PORT_DOWN"));
        ofctl.run("mod-port", &["2", "up"]);
        assert!(!ofctl.run("show", &[]).contains("PORT_DOWN"));
    });
}

/// A child that ends with its test.
pub(crate) struct Ends(pub(crate) Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ovs_ofctl_monitors_packets_that_match_no_flow() {
    with_ofctl("ovs_ofctl_monitors_packets_that_match_no_flow", |ofctl| {
        let mut monitor = ofctl.command("monitor", &["65534", "--unixctl=none"]);
        let mut monitor =
            Ends(monitor.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts"));
        let lines = BufReader::new(monitor.0.stderr.take().expect("a pipe")).lines();
        let (found, is_found) = mpsc::channel::<bool>();
        std::thread::spawn(move || {
            let shown = lines.map_while(Result::ok).any(|line| line.contains("in_port=LOCAL"));
            let _ = found.send(shown);
        });
        // While it negotiates the form of packet-ins, it discards them.
        let mut turns = 0u64;
        until(|| {
            if turns.is_multiple_of(10_000) {
                ofctl.harness.send(port::LOCAL, &frame(1));
            }
            turns += 1;
            is_found.try_recv().ok().map(|shown| assert!(shown, "the monitor has ended"))
        });
    });
}

#[test]
fn ovs_ofctl_says_what_openflow_10_cannot_by_messages_of_nicira() {
    const RULES: [(&str, &str); 4] = [
        (
            "table=2,cookie=5,reg0=0x1,ipv6,ct_state=+trk,ipv6_src=2001:db8::/32,actions=load:0x7->NXM_NX_REG1[],2",
            "cookie=0x5, table=2, n_packets=0, n_bytes=0, ct_state=+trk,ipv6,reg0=0x1,ipv6_src=2001:db8::/32 \
             actions=load:0x7->NXM_NX_REG1[],output:2",
        ),
        (
            "tun_id=0x10/0xff,actions=drop",
            "cookie=0x0, table=0, n_packets=0, n_bytes=0, tun_id=0x10/0xff actions=drop",
        ),
        (
            "icmp6,icmp_type=135,nd_target=fe80::1,actions=3",
            "cookie=0x0, table=0, n_packets=0, n_bytes=0, icmp6,icmp_type=135,nd_target=fe80::1 actions=output:3",
        ),
        (
            "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,actions=resubmit(,2)",
            "cookie=0x0, table=0, n_packets=0, n_bytes=0, dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 \
             actions=resubmit(,2)",
        ),
    ];
    // With -O OpenFlow10 alone, Nicira's messages are chosen too.
    with_ofctl("ovs_ofctl_says_what_openflow_10_cannot_by_messages_of_nicira", |ofctl| {
        RULES.iter().for_each(|(added, _)| drop(ofctl.run("add-flow", &[added])));
        let mut seen = ofctl.dump_flows(&[]);
        let mut wanted: Vec<&str> = RULES.iter().map(|(_, shown)| *shown).collect();
        seen.sort();
        wanted.sort_unstable();
        assert_eq!(seen, wanted);
        assert_eq!(ofctl.dump_flows(&["cookie=5/-1"]).len(), 1);
        assert!(ofctl.run("dump-aggregate", &["table=0"]).contains("flow_count=3"));
        ofctl.run("del-flows", &["cookie=5/-1"]);
        assert_eq!(ofctl.dump_flows(&[]).len(), RULES.len() - 1);
    });
}
