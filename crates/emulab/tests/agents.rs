//! Agents and sources of traffic of ns-2 and Emulab: what they send, and when.

mod common;

use common::{at, mistakes, read};
use fastpath_spec::{Topology, Traffic};
use fastpath_traffic::{ArrivalModel, PeriodLaw};
use fastpath_units::{Duration, Rate};

fn ends<'t>(topology: &'t Topology, traffic: &Traffic) -> [&'t str; 2] {
    [traffic.from, traffic.to].map(|node| topology.node(node).name.as_str())
}

fn rate(bps: u64) -> Rate {
    Rate::from_bps(bps).unwrap()
}

const UDP: &str = "set udp [new Agent/UDP]\n$ns attach-agent $n1 $udp\nset null [new Agent/Null]\n\
    $ns attach-agent $n0 $null\n$ns connect $udp $null\n$udp set fid_ 2\n";

#[test]
fn a_cbr_source_sends_between_its_start_and_its_stop() {
    let (topology, warnings) = read(&format!(
        "{UDP}set cbr [new Application/Traffic/CBR]\n$cbr attach-agent $udp\n$cbr set type_ CBR\n\
         $cbr set packet_size_ 1000\n$cbr set rate_ 1mb\n$cbr set random_ false\n\
         $ns at 0.1 \"$cbr start\"\n$ns at 4.5 \"$cbr stop\"\n$ns at 5 \"$cbr start\"\n\
         proc finish {{}} {{\n  global ns\n  $ns flush-trace\n  exit 0\n}}\n$ns at 6.5 \"finish\""
    ));
    assert_eq!(warnings, [""; 0]);
    let [first, second] = &topology.traffic[..] else { panic!("{:?}", topology.traffic) };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("cbr", "cbr-2"));
    assert_eq!(ends(&topology, first), ["n1", "n0"]);
    assert_eq!((first.start, first.stop), (at(0.1), Some(at(4.5))));
    assert_eq!((second.start, second.stop), (at(5.0), Some(at(6.5))), "the script ends");
    assert_eq!((first.model.arrivals, first.model.size), (ArrivalModel::Constant(rate(1_000_000)), 1000));
}

#[test]
fn sources_have_the_defaults_of_ns_2() {
    let source = |class: &str, more: &str| {
        let text = format!(
            "{UDP}set s [new Application/Traffic/{class}]\n$s attach-agent $udp\n{more}$ns at 1 \"$s start\""
        );
        let (topology, warnings) = read(&text);
        assert_eq!(warnings, [""; 0]);
        (topology.traffic[0].model.arrivals, topology.traffic[0].model.size, topology.traffic[0].stop)
    };
    let half = Duration::from_ms(500);
    let (on, off) = (PeriodLaw::Exponential(half), PeriodLaw::Exponential(half));
    assert_eq!(source("CBR", ""), (ArrivalModel::Constant(rate(448_000)), 210, None));
    assert_eq!(source("Exponential", ""), (ArrivalModel::OnOff { rate: rate(64_000), on, off }, 210, None));
    let pareto = |mean, shape| PeriodLaw::Pareto { mean, shape };
    let (on, off) = (pareto(Duration::from_ms(200), 1.2), pareto(half, 1.2));
    let burst = "$s set burst_time_ 200ms\n$s set shape_ 1.2\n$s set rate_ 1Mb\n";
    assert_eq!(source("Pareto", burst).0, ArrivalModel::OnOff { rate: rate(1_000_000), on, off });
    // ns-2 makes an interval a rate at once, of the size that it knows then.
    let (interval, size) = ("$s set interval_ 0.005\n", "$s set packetSize_ 500\n");
    assert_eq!(
        source("CBR", &format!("{size}{interval}")),
        (ArrivalModel::Constant(rate(800_000)), 500, None)
    );
    assert_eq!(
        source("CBR", &format!("{interval}{size}")),
        (ArrivalModel::Constant(rate(336_000)), 500, None)
    );
    assert_eq!(source("Poisson", "$s set interval_ 0.01\n").0, ArrivalModel::Poisson(rate(168_000)));
    // The fourth packet would leave at 1.015.
    let counted = source("CBR", "$s set interval_ 0.005\n$s set maxpkts_ 3\n");
    let stop = counted.2.unwrap();
    assert!(stop > at(1.010) && stop < at(1.015), "{stop}");
}

#[test]
fn packets_that_ns_2_sends_in_parts_are_named() {
    let warnings = |more: &str| {
        let text = format!(
            "{UDP}set s [new Application/Traffic/CBR]\n$s attach-agent $udp\n$s set packetSize_ 1400\n{more}$ns at 1 \"$s start\""
        );
        read(&text).1
    };
    let said = "13:8: s: 1400 bytes are one datagram here: ns-2 sends datagrams of";
    assert_eq!(warnings(""), [format!("{said} 1000")]);
    assert_eq!(warnings("$udp set packetSize_ 700\n"), [format!("{said} 700")]);
    assert_eq!(warnings("$udp set packetSize_ 1400\n"), [""; 0]);
}

/// How many packets each of the flows of a source sends until second 9, by name.
fn packets(body: &str) -> Vec<(String, u64)> {
    let text = format!(
        "{UDP}set cbr [new Application/Traffic/CBR]\n$cbr attach-agent $udp\n$cbr set interval_ 0.1\n{body}\n\
         proc finish {{}} {{}}\n$ns at 9 finish\n$ns run\n"
    );
    let (topology, _) = read(&text);
    let of = |traffic: &fastpath_spec::Traffic| {
        let ArrivalModel::Constant(rate) = traffic.model.arrivals else { panic!("a constant rate") };
        let interval = f64::from(traffic.model.size) * 8.0 / rate.as_bps() as f64;
        let lasts = traffic.stop.unwrap_or(at(9.0)).since(traffic.start).as_secs_f64();
        (traffic.name.clone(), (lasts / interval).ceil() as u64)
    };
    topology.traffic.iter().map(of).collect()
}

#[test]
fn packets_are_counted_over_the_life_of_a_constant_source_as_in_ns_2() {
    let sent = |body: &str| packets(body).into_iter().map(|(_, count)| count).collect::<Vec<_>>();
    assert_eq!(sent("$cbr set maxpkts_ 30\n$ns at 1 \"$cbr start\""), [30]);
    // A change goes on counting.
    let change = "$cbr set maxpkts_ 30\n$ns at 1 \"$cbr start\"\n$ns at 2 \"$cbr set rate_ 33600\"";
    assert_eq!(sent(change), [10, 20]);
    // A stop and a start as well.
    let again =
        "$cbr set maxpkts_ 30\n$ns at 1 \"$cbr start\"\n$ns at 3 \"$cbr stop\"\n$ns at 4 \"$cbr start\"";
    assert_eq!(sent(again), [20, 10]);
    // After the last packet each start sends one more.
    let more =
        "$cbr set maxpkts_ 5\n$ns at 1 \"$cbr start\"\n$ns at 3 \"$cbr start\"\n$ns at 4 \"$cbr start\"";
    assert_eq!(sent(more), [5, 1, 1]);
    // A greater count after that is for the next start.
    let greater = "$cbr set maxpkts_ 5\n$ns at 1 \"$cbr start\"\n$ns at 3 \"$cbr set maxpkts_ 8\"\n$ns at 4 \"$cbr start\"";
    assert_eq!(sent(greater), [5, 3]);
    // A smaller one ends it with the packet after.
    let smaller = "$cbr set maxpkts_ 90\n$ns at 1 \"$cbr start\"\n$ns at 2 \"$cbr set maxpkts_ 4\"";
    assert_eq!(sent(smaller), [10, 1]);
}

#[test]
fn a_count_of_packets_is_named_where_a_source_has_none() {
    for class in ["Exponential", "Pareto", "Poisson"] {
        let text = format!(
            "{UDP}set s [new Application/Traffic/{class}]\n$s attach-agent $udp\n$s set maxpkts_ 3\n$ns at 1 \"$s start\""
        );
        let (topology, warnings) = read(&text);
        assert!(topology.traffic[0].stop.is_none(), "{class}");
        assert!(
            warnings.iter().any(|warning| warning.contains("maxpkts_ is ignored")),
            "{class}: {warnings:?}"
        );
    }
}

#[test]
fn connections_are_made_in_one_command_too() {
    let (topology, warnings) = read(
        "set udp [$ns create-connection UDP $n0 Null $n1 0]\nset cbr [$udp attach-app CBR]\n$cbr set rate_ 200kb\n$cbr start\n\
         set old [new Agent/CBR]\n$ns attach-agent $n0 $old\nset sink [new Agent/LossMonitor]\n\
         $ns attach-agent $n1 $sink\n$ns connect $old $sink\n$old set packetSize_ 100\n$ns at 2 \"$old start\"\n\
         foreach i {1 2} {\n  set both [$ns create-connection-list UDP $n1 Null $n0 1]\n\
         set flow($i) [[lindex $both 0] attach-app Traffic/Pareto]\n  $ns at $i \"$flow($i) start\"\n}",
    );
    assert_eq!(warnings, [""; 0]);
    let found: Vec<_> =
        topology.traffic.iter().map(|t| (t.name.as_str(), ends(&topology, t)[0], t.start)).collect();
    let expected = [
        ("cbr", "n0", at(0.0)),
        ("flow-1", "n1", at(1.0)),
        ("flow-2", "n1", at(2.0)),
        ("old", "n0", at(2.0)),
    ];
    let mut sorted = found.clone();
    sorted.sort_by_key(|(name, ..)| *name);
    assert_eq!(sorted, expected);
}

#[test]
fn what_is_missing_is_said() {
    let cbr = "set cbr [new Application/Traffic/CBR]\n$ns at 1 \"$cbr start\"\n";
    let agent = "set udp [new Agent/UDP]\n$cbr attach-agent $udp\n";
    for (body, said) in [
        (cbr.to_owned(), "7:10: cbr is started and has no agent; write $cbr attach-agent $udp0"),
        (format!("{cbr}{agent}"), "7:10: the agent of cbr is on no node; write $ns attach-agent $n0 $udp0"),
        (
            format!("{cbr}{agent}$ns attach-agent $n0 $udp"),
            "7:10: the agent of cbr is not connected; write $ns connect $udp0 $null0",
        ),
        (format!("{cbr}$cbr set rate_ fast"), "9:1: 'fast' is not a bandwidth; write for example 10Mb"),
        (
            format!("{cbr}$cbr set shape_ 1"),
            "9:1: a Pareto law of shape 1 has no finite mean; write a number above 1, such as 1.5",
        ),
        ("$ns connect $n0 $n1".to_owned(), "7:1: n0 is not an agent; write set udp0 [new Agent/UDP] before"),
        ("set x [new Agent/UPD]".to_owned(), "7:8: there is no class 'Agent/UPD'; write new Agent/UDP"),
    ] {
        assert_eq!(mistakes(&body), [said]);
    }
    // A source that is never started sends nothing.
    assert!(read("set cbr [new Application/Traffic/CBR]").0.traffic.is_empty());
}

#[test]
fn a_router_that_sends_is_one_of_the_kernel() {
    let (topology, _) = read("set u [$ns create-connection UDP $r Null $n1 0]\n[$u attach-app CBR] start");
    let r = topology.node(topology.node_named("r").unwrap());
    assert!(matches!(r.kind, fastpath_spec::NodeKind::KernelRouter { .. }));
    assert_eq!(ends(&topology, &topology.traffic[0]), ["r", "n1"]);
}
