//! Events of scripts: when they happen, what they do, and what is said of those that do nothing.

use fastpath_emulab::parse;
use fastpath_link::LinkState;
use fastpath_spec::{Topology, Traffic};
use fastpath_traffic::ArrivalModel;
use fastpath_units::{Duration, Time};

const NETWORK: &str = "set ns [new Simulator]\nset n0 [$ns node]\nset n1 [$ns node]\n\
    set l [$ns duplex-link $n0 $n1 2Mb 10ms DropTail]\n";
const UDP: &str = "set udp [new Agent/UDP]\n$ns attach-agent $n0 $udp\nset null [new Agent/Null]\n\
    $ns attach-agent $n1 $null\n$ns connect $udp $null\n";
const CBR: &str = "set cbr [new Application/Traffic/CBR]\n$cbr attach-agent $udp\n";

fn read(body: &str) -> (Topology, Vec<String>) {
    let text = format!("{NETWORK}{body}\n$ns run\n");
    match parse(&text) {
        Ok((topology, warnings)) => {
            let warnings = warnings.iter().map(ToString::to_string);
            (topology, warnings.filter(|said| !said.ends_with("packets are lost")).collect())
        }
        Err(mistakes) => panic!("{text}{}", mistakes.iter().map(|m| format!("{m}\n")).collect::<String>()),
    }
}

fn mistakes(body: &str) -> Vec<String> {
    let text = format!("{NETWORK}{body}\n$ns run\n");
    parse(&text).expect_err("a mistake").iter().map(ToString::to_string).collect()
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

fn times(traffic: &[Traffic]) -> Vec<(Time, Option<Time>)> {
    traffic.iter().map(|traffic| (traffic.start, traffic.stop)).collect()
}

fn rates(traffic: &[Traffic]) -> Vec<(u64, u32)> {
    let rate = |traffic: &Traffic| match traffic.model.arrivals {
        ArrivalModel::Constant(rate) => (rate.as_bps(), traffic.model.size),
        other => panic!("{other:?}"),
    };
    traffic.iter().map(rate).collect()
}

fn states(topology: &Topology) -> Vec<(Time, LinkState)> {
    topology.events.iter().filter_map(|event| Some((event.at, event.change.state?))).collect()
}

#[test]
fn a_run_ends_where_the_script_says_wherever_the_procedure_is_written() {
    let finish = "proc finish {} {\n  global ns\n  $ns flush-trace\n  exit 0\n}\n";
    let end = "$ns at 1.0 \"$cbr start\"\n$ns at 5.0 \"finish\"\n";
    for body in [format!("{UDP}{CBR}{end}{finish}"), format!("{UDP}{CBR}{finish}{end}")] {
        let (topology, warnings) = read(&body);
        assert_eq!(warnings, [""; 0]);
        assert_eq!(times(&topology.traffic), [(at(1.0), Some(at(5.0)))]);
    }
    for halt in ["$ns halt", "$ns stop", "exit", "puts end; $ns halt"] {
        let (topology, _) = read(&format!("{UDP}{CBR}$ns at 1 \"$cbr start\"\n$ns at 3 \"{halt}\"\n"));
        assert_eq!(times(&topology.traffic), [(at(1.0), Some(at(3.0)))], "{halt}");
    }
    let (topology, warnings) =
        read(&format!("{UDP}{CBR}$ns at 1 \"$cbr start\"\n$ns at 3 \"fnish\"\n{finish}"));
    assert_eq!(times(&topology.traffic), [(at(1.0), None)]);
    assert!(
        warnings[0].contains("'fnish' is neither an object nor a procedure; write finish"),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("this procedure is never called"), "{warnings:?}");
    let (_, warnings) = read("$ns at 3 exit\n$ns at 4 \"$l down\"");
    assert_eq!(warnings, ["6:1: this event is ignored: the script ends the run before, at 3s"]);
}

#[test]
fn procedures_are_events_and_make_events() {
    let (topology, warnings) = read(
        "proc flap {} {\n  global ns l\n  set now [$ns now]\n  $l down\n  $ns at [expr $now + 1] \"$l up\"\n\
         \x20 $ns after 10.0 flap\n}\n$ns at 5.0 flap\n$ns at 26 exit\n",
    );
    assert_eq!(warnings, [""; 0]);
    let (up, down) = (LinkState::Up, LinkState::Down);
    let expected = [(5.0, down), (6.0, up), (15.0, down), (16.0, up), (25.0, down), (26.0, up)];
    assert_eq!(states(&topology), expected.map(|(seconds, state)| (at(seconds), state)));
    // What a procedure cannot do here is said, and the rest of the script counts.
    let (topology, warnings) = read(
        "proc record {} {\n  global ns\n  set ns [Simulator instance]\n  frobnicate\n  $ns halt\n}\n\
         $ns at 1 record\n$ns at 0.5 \"$l down\"\n",
    );
    assert_eq!(states(&topology).len(), 1);
    assert!(
        warnings[0].starts_with("8:3: the rest of this event is ignored: there is no command"),
        "{warnings:?}"
    );
    let endless = read("proc again {} {\n  global ns\n  $ns after 0.1 again\n}\n$ns at 0 again\n").1;
    assert!(endless[0].contains("events make events without end"), "{endless:?}");
}

#[test]
fn a_timeline_starts_with_its_event() {
    let timeline =
        "set tl [$ns event-timeline]\n$tl at 10.0 \"$cbr start\"\n$tl at 12.0 \"$cbr stop; $l down\"\n";
    let (topology, warnings) = read(&format!("{UDP}{CBR}{timeline}$ns at 5 \"$tl start\"\n"));
    assert_eq!(warnings, [""; 0]);
    assert_eq!(times(&topology.traffic), [(at(15.0), Some(at(17.0)))]);
    assert_eq!(states(&topology), [(at(17.0), LinkState::Down)]);
    let (topology, warnings) = read(&format!("{UDP}{CBR}{timeline}"));
    assert!(topology.traffic.is_empty());
    let never = "tl is never started: its events do not happen; write $ns at 0 \"$tl start\"";
    assert_eq!(warnings.iter().filter(|said| said.ends_with(never)).count(), 3, "{warnings:?}");
    assert!(mistakes(&format!("{UDP}{CBR}{timeline}$ns at 1 \"$tl strat\""))[0].contains("write start"));
}

#[test]
fn the_events_of_a_sequence_follow_each_other() {
    let body = |last: &str| {
        format!(
            "set tl [$ns event-timeline]\n$tl at 4.0 \"$l down\"\n$tl at 6.0 \"$l up\"\n\
             set p [$n0 program-agent -command \"sleep 1\"]\n\
             set seq [$ns event-sequence {{\n  $tl run\n  $p start\n  $tl start\n  $p run\n}}]\n{last}$ns at 2.0 \"$seq run\"\n"
        )
    };
    let (topology, warnings) = read(&body(""));
    assert_eq!(warnings, [""; 0]);
    let times: Vec<Time> = topology.commands.iter().map(|command| command.at).collect();
    assert_eq!(times, [at(8.0), at(8.0)]);
    let expected = [6.0, 8.0, 12.0, 14.0].map(at);
    assert_eq!(states(&topology).iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected);
    // Nothing can follow a program.
    assert_eq!(
        mistakes(&body("$seq append \"$l down\"\n")),
        [
            "15:1: this event waits for the end of a program, and when that is is not known; write $program start \
          before it, or $ns at 10.0 with this event"
        ]
    );
}

#[test]
fn lists_of_events_within_others_and_without_end() {
    // Groups in a timeline, a timeline in a sequence, several events in one.
    let (topology, warnings) = read(
        "set m [$ns duplex-link $n0 $n1 1Mb 1ms DropTail]\nset g [new EventGroup $ns]\n$g add $l\n$g add $m\n\
         set tl [$ns event-timeline]\n$tl at 1.0 \"$g down\"\n$tl at 2.0 \"$g up\"\nset seq [$ns event-sequence]\n\
         $seq append \"$tl run\"\n$seq append \"$l down; $m down\"\n$ns at 0 \"$seq run\"\n$ns at 10 \"$seq start\"\n",
    );
    assert_eq!(warnings, [""; 0]);
    let (down, up) = (LinkState::Down, LinkState::Up);
    let both = |time: f64, state| [(at(time), state), (at(time), state)];
    let once = |from: f64| [both(from + 1.0, down), both(from + 2.0, up), both(from + 2.0, down)].concat();
    assert_eq!(states(&topology), [once(0.0), once(10.0)].concat());
    // An empty list does nothing, and one that starts itself has a bound.
    let (topology, warnings) = read("set tl [$ns event-timeline]\n$ns at 1 \"$tl start\"\n");
    assert!(topology.events.is_empty() && warnings.is_empty(), "{warnings:?}");
    for itself in [
        "set a [$ns event-sequence]\n$a append \"$a run\"\n$ns at 3 \"$a start\"\n",
        "set a [$ns event-timeline]\n$a at 0 \"$a start\"\n$ns at 3 \"$a start\"\n",
    ] {
        let (_, warnings) = read(itself);
        assert!(warnings[0].contains("events make events without end"), "{warnings:?}");
    }
    for (body, said) in [
        (
            "set a [$ns event-timeline]\n$a at soon \"$l down\"",
            "6:1: 'soon' is not a time; write for example 10.0",
        ),
        (
            "set a [$ns event-timeline]\n$a at -1 \"$l down\"",
            "6:1: '-1' is not a time; write for example 10.0",
        ),
        (
            "set a [$ns event-timeline]\n$a append \"$l down\"",
            "6:1: wrong number of arguments; write $timeline at 10.0 \"$link down\"",
        ),
        (
            "set a [$ns event-sequence]\n$a at 1 \"$l down\"",
            "6:1: wrong number of arguments; write $sequence append \"$link down\"",
        ),
        (
            "set g [new EventGroup $ns]\nset h [new EventGroup $ns]\n$h add $g",
            "7:1: g cannot be in a group of events; write links, queues, programs or sources of traffic",
        ),
    ] {
        assert_eq!(mistakes(body), [said], "{body}");
    }
}

#[test]
fn a_group_has_its_events_together() {
    let (topology, warnings) = read(
        "set m [$ns duplex-link $n0 $n1 1Mb 1ms DropTail]\nset both [new EventGroup $ns]\n$both add $l $m\n\
         $ns at 60.0 \"$both down\"\nset one [$ns event-group \"$m\"]\n$ns at 61 \"$one up\"\n",
    );
    assert_eq!(warnings, [""; 0]);
    let named: Vec<_> = topology.events.iter().map(|event| (event.at, event.change.state)).collect();
    let (up, down) = (Some(LinkState::Up), Some(LinkState::Down));
    assert_eq!(named, [(at(60.0), down), (at(60.0), down), (at(61.0), up)]);
    assert_eq!(
        mistakes("set p [$n0 program-agent -command ls]\nset g [new EventGroup $ns]\n$g add $l $p"),
        ["7:1: p is not of the kind of the group's others; write a group for each kind"]
    );
}

#[test]
fn defaults_are_those_of_the_author_of_the_script() {
    let one = |body: &str| rates(&read(&format!("{UDP}{CBR}{body}$ns at 1 \"$cbr start\"\n")).0.traffic)[0];
    let emulab = "source tb_compat.tcl\n";
    assert_eq!(one(""), (448_000, 210));
    assert_eq!(one(emulab), (100_000_000, 210));
    // ns-2 makes an interval a rate at once, of the size that it knows then.
    let (first, last) = ("$cbr set interval_ 0.01\n", "$cbr set packetSize_ 500\n");
    assert_eq!(one(&format!("{first}{last}")), (168_000, 500));
    assert_eq!(one(&format!("{last}{first}")), (400_000, 500));
    assert_eq!(one(&format!("{emulab}{first}{last}")), (400_000, 500));
    assert_eq!(one(&format!("{first}$cbr set rate_ 1Mb\n")), (1_000_000, 210));
}

#[test]
fn values_change_during_the_run() {
    let (topology, warnings) = read(&format!(
        "source tb_compat.tcl\n{UDP}{CBR}$ns at 1 \"$cbr start\"\n$ns at 2 \"$cbr set rate_ 2Mb\"\n\
         $ns at 3 \"$cbr set packetSize_ 900\"\n$ns at 4 \"$cbr stop\"\n$ns at 5 \"$cbr set interval_ 0.1\"\n\
         $ns at 6 \"$cbr start\"\n"
    ));
    assert_eq!(warnings, [""; 0]);
    let expected = [(1.0, Some(2.0)), (2.0, Some(3.0)), (3.0, Some(4.0)), (6.0, None)];
    assert_eq!(times(&topology.traffic), expected.map(|(start, stop)| (at(start), stop.map(at))));
    let expected = [(100_000_000, 210), (2_000_000, 210), (2_000_000, 900), (72_000, 900)];
    assert_eq!(rates(&topology.traffic), expected);
}

#[test]
fn an_agent_sends_a_datagram() {
    let (topology, warnings) = read(&format!("{UDP}$ns at 2.0 \"$udp send 1000\"\n"));
    assert_eq!(warnings, [""; 0]);
    assert_eq!(rates(&topology.traffic), [(8000, 1000)]);
    assert_eq!(times(&topology.traffic), [(at(2.0), Some(at(2.5)))], "a packet a second, for half of one");
    assert_eq!(
        mistakes(&format!("{UDP}$ns at 2 \"$udp sendd 100\""))[0],
        "10:1: an agent has no command 'sendd'; write send"
    );
}

#[test]
fn values_can_be_read() {
    let said = |body: &str| {
        let (_, warnings) = read(&format!("{UDP}{CBR}$ns at 1 \"$cbr start\"\n{body}"));
        warnings.iter().map(|said| said.split_once(": ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    for (read, value) in [
        ("$cbr set rate_", "448000.0"),
        ("$cbr set packetSize_", "210"),
        ("$cbr set interval_", "0.00375"),
        ("$udp set fid_ 7", "7"),
        ("[[$ns link $n0 $n1] queue] set limit_", "50"),
        ("$n1 id", "1"),
        ("$ns now", "0.0"),
        ("[Simulator instance] now", "0.0"),
    ] {
        assert_eq!(said(&format!("puts [{read}]")), [format!("the script says: {value}")], "{read}");
    }
    assert_eq!(
        said("puts [$null set bytes_]"),
        ["the script says: 0", "bytes_ is not known when the script is read: it is read as 0"]
    );
}

#[test]
fn a_sink_of_any_class_is_one() {
    for class in ["Null", "LossMonitor", "UDP", "TCPSink", "MyMeasuringSink"] {
        let body = UDP.replace("Agent/Null", &format!("Agent/{class}"));
        let (topology, _) = read(&format!("{body}{CBR}$ns at 1 \"$cbr start\"\n"));
        assert_eq!(topology.traffic.len(), 1, "{class}");
    }
}

#[test]
fn words_without_effect_are_named() {
    for (body, said) in [
        ("[$l queue] set gentle_ 1", "gentle_ is ignored: the queue is not RED"),
        ("$ns cost $n0 $n1 10", "$ns cost is ignored: paths are those over the fewest links"),
        ("$n0 set-fw-style open", "set-fw-style is ignored: no node filters packets"),
        (
            "set p [new Program $ns]\n$p set node ops\n$p set command ls\n$ns at 1 \"$p start\"",
            "a program on ops is ignored",
        ),
        ("$ns node 1.0.2", "'1.0.2' and what follows in $ns node is ignored"),
        ("new Agent/UDP fast", "'fast' and what follows in new Agent/UDP is ignored"),
        ("set x [new Trace/Drop]\n$x attach 3", "'attach' of an object that is ignored is ignored"),
        ("set rtae 5", "the variable 'rtae' is set and never read"),
        ("proc p {} {\n  set rtae 5\n}\np", "the variable 'rtae' is set and never read"),
        ("set t [new Agent/TCP]\n$t set maxcwnd_ 20", "maxcwnd_ of an agent is ignored: it is TCP of Linux"),
        ("set u [new Agent/UDP]\n$u set fid 2", "fid of an agent is ignored; write fid_"),
        (
            "set c [new Application/Traffic/CBR]\n$c set packetsize_ 5",
            "packetsize_ of a source of traffic is ignored; write packetSize_",
        ),
        ("set c [new Application/Traffic/CBR]", "c sends nothing: it is never started"),
        ("set c [new Application/Traffic/CBR]\n$c set shape_ 2", "shape_ is ignored: this kind of source"),
        ("$ns at 1 \"$ns linktest\"", "'linktest' is ignored: it is for the machines of a testbed"),
        ("set p [$n0 program-agent -command ls]", "p is never started"),
    ] {
        let (_, warnings) = read(body);
        assert!(warnings.iter().any(|warning| warning.contains(said)), "{body}: {warnings:?}");
    }
    for (body, said) in [
        (
            "set c [new Application/Traffic/CBR]\n$c seqt interval_ 0.1",
            "a source of traffic has no command 'seqt'; write set",
        ),
        ("set c [new Application/Traffic/CBR]\n$c foo", "a source of traffic has no command 'foo'"),
        (
            "$ns at 1 \"$l bandwidth 1Mb dupqlex extra\"",
            "wrong number of arguments; write $link bandwidth 10Mb duplex",
        ),
        (
            "$ns at 1 \"$l bandwidth 1Mb dupqlex\"",
            "wrong number of arguments; write $link bandwidth 10Mb duplex",
        ),
        ("set p [$n0 program-agent -command ls]\n$ns at 1 \"$p stop now\"", "wrong number of arguments"),
        ("$ns", "wrong number of arguments; write $ns run"),
        ("if 1 {} else {} {}", "wrong number of arguments for if"),
        ("lsort -backwards {1 2}", "lsort has no option '-backwards'"),
        (
            "proc p {} {\n  global ns\n  $ns node\n}\n$ns at 1 p\nset z [$ns nod]",
            "the simulator has no command 'nod'",
        ),
    ] {
        let found = mistakes(body);
        assert!(found.iter().any(|mistake| mistake.contains(said)), "{body}: {found:?}");
    }
}

#[test]
fn the_type_of_service_is_a_dscp() {
    let body = format!("source tb_compat.tcl\n{UDP}{CBR}$cbr set iptos_ 184\n$ns at 1 \"$cbr start\"\n");
    assert_eq!(read(&body).0.traffic[0].dscp, 46);
}
