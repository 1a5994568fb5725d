//! Agents of TCP and what sends over them: connections, their sizes and times, and what is said of
//! the differences from ns-2.

mod common;

use common::{at, mistakes};
use fastpath_spec::{Topology, TransferTraffic};
use fastpath_traffic::{CongestionControl, Workload};
use fastpath_units::{Bytes, Time};

/// What the script describes, and the warnings but for those of every network and every agent.
fn read(body: &str) -> (Topology, Vec<String>) {
    let (topology, warnings) = common::read(body);
    (topology, warnings.into_iter().filter(|said| !said.contains("of Linux here")).collect())
}

/// Name, start, stop and size of each transfer.
fn shapes(topology: &Topology) -> Vec<(&str, Time, Option<Time>, Option<u64>)> {
    let size = |one: &TransferTraffic| match &one.model.workload {
        Workload::Bulk(size) => size.map(|Bytes(size)| size),
        other => panic!("{other:?}"),
    };
    topology.transfers.iter().map(|one| (one.name.as_str(), one.start, one.stop, size(one))).collect()
}

const TCP: &str = "set tcp [new Agent/TCP/Reno]\n$ns attach-agent $n0 $tcp\nset sink [new Agent/TCPSink]\n\
    $ns attach-agent $n1 $sink\n$ns connect $tcp $sink\n$tcp set fid_ 1\n$tcp set class_ 2\n";
const FTP: &str = "set ftp [new Application/FTP]\n$ftp attach-agent $tcp\n$ftp set type_ FTP\n";
const FINISH: &str = "proc finish {} { exit 0 }\n";

#[test]
fn ftp_over_tcp_is_a_transfer_from_its_start_to_its_stop() {
    let (topology, warnings) = read(&format!(
        "{TCP}{FTP}{FINISH}$ns at 1.0 \"$ftp start\"\n$ns at 4.0 \"$ftp stop\"\n$ns at 5.0 \"$ftp start\"\n$ns at 9 finish"
    ));
    let again = "20:1: ftp sends over a new connection from here: in ns-2 the first one goes on";
    assert_eq!(warnings, [again]);
    let expected = [("ftp", at(1.0), Some(at(4.0)), None), ("ftp-2", at(5.0), Some(at(9.0)), None)];
    assert_eq!(shapes(&topology), expected);
    let [first, _] = &topology.transfers[..] else { panic!("two") };
    assert_eq!([first.from, first.to].map(|node| topology.node(node).name.as_str()), ["n0", "n1"]);
    assert_eq!(first.model.congestion, CongestionControl::Reno);
    assert!(!first.model.ecn && first.model.flows == 1 && topology.traffic.is_empty());
    // Without an end it lasts as the run does.
    let (topology, warnings) = read(&format!("{TCP}{FTP}$ns at 1.0 \"$ftp start\""));
    assert_eq!((shapes(&topology), warnings), (vec![("ftp", at(1.0), None, None)], vec![]));
}

#[test]
fn amounts_are_those_of_ns_2() {
    let sizes = |body: &str| {
        let (topology, warnings) = read(&format!("{TCP}{FTP}{body}"));
        let sizes: Vec<_> = shapes(&topology).into_iter().map(|(_, start, _, size)| (start, size)).collect();
        (
            sizes,
            warnings.into_iter().map(|said| said.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>(),
        )
    };
    let one = |body: &str| {
        let (sizes, warnings) = sizes(body);
        assert_eq!(warnings, [""; 0], "{body}");
        assert_eq!(sizes.len(), 1, "{body}");
        sizes[0]
    };
    assert_eq!(one("$ns at 2 \"$ftp send 12345\""), (at(2.0), Some(12_345)));
    assert_eq!(one("$ns at 2 \"$ftp produce 100\""), (at(2.0), Some(100_000)));
    assert_eq!(one("$tcp set packetSize_ 1460\n$ns at 2 \"$ftp produce 100\""), (at(2.0), Some(146_000)));
    assert_eq!(one("$ns at 0 \"$ftp producemore 7\""), (at(0.0), Some(7000)));
    assert_eq!(one("$ftp set maxpkts_ 50\n$ns at 1 \"$ftp start\""), (at(1.0), Some(50_000)));
    // What is told at one time is sent together, and the agent may be told itself.
    assert_eq!(one("$ns at 1 \"$ftp send 10\"\n$ns at 1 \"$ftp send 20\""), (at(1.0), Some(30)));
    // `produce` counts from the first packet.
    let (later, warnings) =
        sizes("$ns at 1 \"$ftp produce 10\"\n$ns at 2 \"$ftp produce 30\"\n$ns at 3 \"$ftp produce 30\"");
    assert_eq!(later, [(at(1.0), Some(10_000)), (at(2.0), Some(20_000))]);
    let said = [
        "ftp sends over a new connection from here: in ns-2 the first one goes on",
        "produce 30 adds nothing: the packets count from the first of the connection",
    ];
    assert_eq!(warnings, said);
    let (endless, warnings) = sizes("$ns at 1 \"$ftp start\"\n$ns at 2 \"$ftp send 10\"");
    assert_eq!(endless, [(at(1.0), None)]);
    assert_eq!(warnings, ["ftp sends without end already: this adds nothing"]);
}

#[test]
fn an_agent_of_tcp_can_be_told_itself() {
    for (told, size) in [
        ("send 5000", Some(5000)),
        ("advance 12", Some(12_000)),
        ("advanceby 3", Some(3000)),
        ("send -1", None),
    ] {
        let (topology, warnings) = read(&format!("{TCP}$ns at 1 \"$tcp {told}\"\n$ns at 3 \"$tcp close\""));
        assert_eq!(warnings, [""; 0], "{told}");
        assert_eq!(shapes(&topology), [("tcp", at(1.0), Some(at(3.0)), size)], "{told}");
    }
}

#[test]
fn connections_are_made_in_every_way_of_ns_2() {
    for body in [
        "set tcp [$ns create-connection TCP/Sack1 $n0 TCPSink/Sack1 $n1 3]\nset ftp [$tcp attach-app FTP]\n",
        "set tcp [$ns create-connection TCP/FullTcp $n0 TCP/FullTcp $n1 3]\nset ftp [$tcp attach-source FTP]\n",
        "set both [$ns create-connection-list TCP $n0 TCPSink/DelAck $n1 3]\nset ftp [new Source/FTP]\n\
         $ftp attach [lindex $both 0]\n",
        "set tcp [new Agent/TCP/FullTcp]\nset other [new Agent/TCP/FullTcp]\n$ns attach-agent $n0 $tcp\n\
         $ns attach-agent $n1 $other\n$ns connect $tcp $other\n$other listen\nset ftp [new Application/FTP]\n\
         $ftp attach-agent $tcp\n",
    ] {
        let (topology, warnings) = read(&format!("{body}$ns at 1 \"$ftp start\"\n"));
        assert_eq!(warnings, [""; 0], "{body}");
        assert_eq!(shapes(&topology), [("ftp", at(1.0), None, None)], "{body}");
    }
}

#[test]
fn a_congestion_control_that_is_not_there_is_the_nearest_by_name() {
    let control = |class: &str, more: &str| {
        let body = TCP.replace("Agent/TCP/Reno", class);
        let (topology, warnings) = common::read(&format!("{body}{FTP}{more}$ns at 1 \"$ftp start\""));
        (topology.transfers[0].model.congestion, warnings)
    };
    let what = "selective and delayed acknowledgements, segments of the MTU and not of packetSize_";
    for (class, more, congestion, said) in [
        ("Agent/TCP", "", CongestionControl::Reno, "Agent/TCP is Reno of Linux here in place of Tahoe: "),
        ("Agent/TCP/Newreno", "", CongestionControl::Reno, "Agent/TCP/Newreno is Reno of Linux here: "),
        ("Agent/TCP/Vegas", "", CongestionControl::Reno, "Vegas is Reno of Linux here in place of Vegas: "),
        ("Agent/TCP/Linux", "", CongestionControl::Reno, "Agent/TCP/Linux is Reno of Linux here: "),
        ("Agent/TCP/Linux", "$tcp select_ca cubic\n", CongestionControl::Cubic, "is CUBIC of Linux here: "),
        ("Agent/TCP/Linux", "$ns at 0 \"$tcp select_ca htcp\"\n", CongestionControl::Cubic, "is CUBIC of"),
    ] {
        let (found, warnings) = control(class, more);
        assert_eq!(found, congestion, "{class}");
        assert!(
            warnings.iter().any(|warning| warning.contains(said) && warning.contains(what)),
            "{warnings:?}"
        );
    }
    let (_, warnings) = control("Agent/TCP", "$tcp set window_ 8000\n$tcp set packetSize_ 552\n");
    assert!(
        warnings[0].ends_with("not of packetSize_ 552, windows of the receiver and not window_ 8000"),
        "{warnings:?}"
    );
    let (_, warnings) = control("Agent/TCP/Linux", "$tcp select_ca htcp\n");
    assert!(warnings.iter().any(|warning| warning.ends_with("htcp is cubic here")), "{warnings:?}");
}

#[test]
fn ecn_of_an_agent_is_that_of_the_connection() {
    let (topology, warnings) = read(&format!("{TCP}{FTP}$tcp set ecn_ 1\n$ns at 1 \"$ftp start\""));
    assert_eq!(warnings, [""; 0]);
    assert!(topology.transfers[0].model.ecn);
}

#[test]
fn what_tcp_does_not_carry_here_is_refused() {
    let start = |source: &str| format!("set s [new {source}]\n$s attach-agent $tcp\n$ns at 1 \"$s start\"\n");
    for (body, said) in [
        (
            format!("{TCP}{}", start("Application/Traffic/CBR")),
            "14:8: s sends at a rate, and its agent is one of TCP; write new Agent/UDP, or Application/FTP for as \
             much as TCP carries",
        ),
        (
            format!("{TCP}{}", start("Application/Telnet")),
            "14:8: s sends keystrokes over TCP, which no traffic here does; write Application/FTP",
        ),
        (
            format!("{}{FTP}$ns at 1 \"$ftp start\"", TCP.replace("Agent/TCP/Reno", "Agent/UDP")),
            "14:10: ftp sends as fast as TCP lets it, and its agent is not one of TCP; write new Agent/TCP",
        ),
        (
            format!("{}{FTP}$ns at 1 \"$ftp start\"", TCP.replace("Agent/TCPSink", "Agent/Null")),
            "14:10: the agent that receives ftp acknowledges nothing; write new Agent/TCPSink for it",
        ),
        (
            format!("{FTP_ALONE}$ns at 1 \"$ftp start\""),
            "7:10: ftp is started and has no agent; write $ftp attach-agent $udp0",
        ),
        (
            format!("{FTP_ALONE}$ns at 1 \"$ftp produce 3\""),
            "8:1: produce counts packets of an agent, and there is none of TCP; write $ftp attach-agent $tcp before",
        ),
        (
            "set t [new Agent/TCP/Newren]".to_owned(),
            "7:8: there is no class 'Agent/TCP/Newren' here; write new Agent/TCP/Newreno",
        ),
        (format!("{TCP}$tcp advanse 3"), "14:1: an agent of TCP has no command 'advanse'; write advance"),
        (
            format!("{TCP}$tcp advance some"),
            "14:1: 'some' is not an amount to advance; write a number from 1, such as 1000",
        ),
        (
            format!("{TCP}$tcp set packetSize_ 0"),
            "14:1: '0' is not a value of packetSize_; write bytes of data, such as 1000",
        ),
        (
            format!("{TCP}$tcp set window_ big"),
            "14:1: 'big' is not a value of window_; write a number of packets, such as 20",
        ),
        (format!("{TCP}$tcp select_ca cubik"), "14:1: there is no congestion control 'cubik'; write cubic"),
    ] {
        assert_eq!(mistakes(&body), [said], "{body}");
    }
}

const FTP_ALONE: &str = "set ftp [new Application/FTP]\n";

#[test]
fn a_source_that_stops_when_it_starts_sends_nothing() {
    let (topology, warnings) =
        read(&format!("{TCP}{FTP}$ns at 1 \"$ftp start\"\n$ns at 1 \"$ftp stop\"\n$ns at 2 \"$ftp stop\""));
    assert!(topology.transfers.is_empty());
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn many_connections_have_names_of_their_own() {
    let (topology, _) = read(
        "for {set i 0} {$i < 5} {incr i} {\n  set tcp($i) [new Agent/TCP/Newreno]\n  $ns attach-agent $n0 $tcp($i)\n\
         \x20 set sink($i) [new Agent/TCPSink]\n  $ns attach-agent $n1 $sink($i)\n  $ns connect $tcp($i) $sink($i)\n\
         \x20 set ftp($i) [$tcp($i) attach-app FTP]\n  $ns at [expr 0.1 * $i] \"$ftp($i) start\"\n}\n",
    );
    let names: Vec<_> = topology.transfers.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["ftp-0", "ftp-1", "ftp-2", "ftp-3", "ftp-4"]);
}
