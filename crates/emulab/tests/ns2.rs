//! Idioms of ns-2 for networks of links: models of links that go down, types of queues, values of
//! classes, losses, and what is refused by name.

use fastpath_emulab::parse;
use fastpath_link::{Limit, LinkState, LossSpec, QueueSpec};
use fastpath_spec::Topology;
use fastpath_units::{Bytes, Duration, Probability, Time};

const NETWORK: &str = "# Two nodes.\nset ns [new Simulator]\nset n0 [$ns node]\nset n1 [$ns node]\n\
    set l [$ns duplex-link $n0 $n1 2Mb 10ms DropTail]\n";

fn parse_with(body: &str) -> Result<(Topology, Vec<String>), Vec<String>> {
    match parse(&format!("{NETWORK}{body}\n$ns run\n")) {
        Ok((topology, warnings)) => Ok((topology, warnings.iter().map(ToString::to_string).collect())),
        Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect()),
    }
}

fn read(body: &str) -> (Topology, Vec<String>) {
    parse_with(body).unwrap_or_else(|mistakes| panic!("{body}: {mistakes:#?}"))
}

fn mistakes(body: &str) -> Vec<String> {
    parse_with(body).expect_err(body)
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// When links go down and up, and which.
fn states(topology: &Topology) -> Vec<(Time, LinkState)> {
    topology.events.iter().filter_map(|event| Some((event.at, event.change.state?))).collect()
}

fn downs_and_ups(times: &[f64]) -> Vec<(Time, LinkState)> {
    let state = |place: usize| if place.is_multiple_of(2) { LinkState::Down } else { LinkState::Up };
    times.iter().enumerate().map(|(place, time)| (at(*time), state(place))).collect()
}

#[test]
fn a_link_goes_down_and_up_at_times() {
    let (topology, warnings) = read("$ns rtmodel-at 1.0 down $n0 $n1\n$ns rtmodel-at 2.5 up $n0 $n1");
    assert_eq!(warnings, [""; 0]);
    assert_eq!(states(&topology), downs_and_ups(&[1.0, 2.5]));
    let (topology, _) = read("$ns rtmodel Manual {down 3} $n1 $n0");
    assert_eq!(states(&topology), downs_and_ups(&[3.0]));
    // In a procedure that is an event too.
    let (topology, _) =
        read("proc p {} { global ns n0 n1\n  $ns rtmodel-at [expr [$ns now] + 1] down $n0 $n1 }\n$ns at 4 p");
    assert_eq!(states(&topology), downs_and_ups(&[5.0]));
}

#[test]
fn a_node_goes_down_with_all_its_links() {
    let (topology, _) = read(
        "set n2 [$ns node]\n$ns duplex-link $n1 $n2 1Mb 1ms DropTail\n$ns make-lan \"$n1 $n2\" 10Mb 1ms\n\
         $ns rtmodel-at 1.0 down $n1",
    );
    let mut links: Vec<_> = topology.events.iter().map(|event| event.link).collect();
    links.sort();
    links.dedup();
    assert_eq!((states(&topology).len(), links.len()), (3, 3));
}

#[test]
fn deterministic_models_have_the_intervals_and_defaults_of_ns_2() {
    for (model, times) in [
        // Up from 0.5 on.
        ("Deterministic {}", vec![2.5, 3.5, 5.5, 6.5, 8.5, 9.5]),
        ("Deterministic {3.0 0.5}", vec![3.5, 4.0, 7.0, 7.5]),
        ("Deterministic {1.0 3.0 0.5}", vec![4.0, 4.5, 7.5, 8.0]),
        ("Deterministic {- 3.0 -}", vec![3.5, 4.5, 7.5, 8.5]),
        ("Deterministic {1.0 1.0 2.0 4.5}", vec![2.0, 4.0]),
        // Links that are down come up at the end.
        ("Deterministic {1.0 1.0 2.0 3.0}", vec![2.0, 3.0]),
        ("Deterministic {0 5 1 4}", vec![]),
    ] {
        let (topology, _) = read(&format!("$ns rtmodel {model} $n0 $n1\n$ns at 10 \"$ns halt\""));
        assert_eq!(states(&topology), downs_and_ups(&times), "{model}");
    }
    let (topology, warnings) = read(
        "rtModel/Deterministic set upInterval_ 4.0\nrtModel set startTime_ 1.0\n$ns rtmodel Deterministic {} $n0 $n1\n\
         $ns at 7 exit",
    );
    assert_eq!((states(&topology), warnings), (downs_and_ups(&[5.0, 6.0]), vec![]));
}

#[test]
fn exponential_models_draw_the_same_times_in_every_run() {
    let run = |more: &str| {
        let text = format!("$ns rtmodel Exponential {{0 10.0 2.0}} $n0 $n1\n{more}$ns at 20000 \"$ns halt\"");
        states(&read(&text).0)
    };
    let first = run("");
    assert_eq!(first, run(""));
    assert_ne!(first, run("$ns rtmodel Exponential {0 10.0 2.0} $n0 $n1\n"), "one stream for all models");
    // The means of about 1,600 intervals of each kind, within four standard errors.
    let gap = |pair: &[(Time, LinkState)]| (pair[0].1, pair[1].0.since(pair[0].0).as_secs_f64());
    for (state, mean) in [(LinkState::Up, 10.0), (LinkState::Down, 2.0)] {
        let gaps: Vec<f64> =
            first.windows(2).map(gap).filter(|(of, _)| *of == state).map(|(_, gap)| gap).collect();
        let found = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!(gaps.len() > 1000, "{}", gaps.len());
        assert!((found / mean - 1.0).abs() < 4.0 / (gaps.len() as f64).sqrt(), "{state:?}: {found}");
    }
}

#[test]
fn mistakes_in_models_are_named() {
    for (body, said) in [
        ("$ns rtmodel-at 1 off $n0 $n1", "6:1: 'off' is neither down nor up; write down or up"),
        ("$ns rtmodel-at 1 down", "6:1: wrong number of arguments; write $ns rtmodel-at 1.0 down $n0 $n1"),
        ("$ns rtmodel-at soon down $n0 $n1", "6:1: 'soon' is not a time; write for example 10.0"),
        (
            "set n2 [$ns node]\n$ns rtmodel-at 1 down $n0 $n2",
            "7:1: no link joins these nodes; write $ns duplex-link for them before",
        ),
        (
            "$ns rtmodel Determinist {} $n0 $n1",
            "6:1: there is no model 'Determinist' of links; write Deterministic",
        ),
        (
            "$ns rtmodel Trace links.tr $n0 $n1",
            "6:1: rtmodel Trace reads a file, and no file is read; write $ns rtmodel-at 1.0 down $n0 $n1 for each of \
             its lines",
        ),
        (
            "$ns rtmodel Deterministic {0 1 0} $n0 $n1",
            "6:1: an interval of 0 has no end of events; write an interval above 0",
        ),
        (
            "$ns rtmodel Deterministic {0 1 1 2 3} $n0 $n1",
            "6:1: wrong number of arguments; write $ns rtmodel Deterministic {START UP DOWN FINISH} $n0 $n1",
        ),
        (
            "$ns rtmodel Deterministic {0 1 1} $n0 $n1",
            "6:1: this model of links never ends; write its finish time, {0.5 2.0 1.0 60}, or $ns at 60 \"$ns halt\"",
        ),
        ("proc p {} { global ns n0 n1\n  $ns rtmodel-at 1 down $n0 $n1 }\n$ns at 4 p", ""),
    ] {
        match said {
            "" => assert!(read(body).1[0].contains("this event is before the one that makes it"), "{body}"),
            said => assert_eq!(mistakes(body), [said], "{body}"),
        }
    }
}

/// The queue from n0 to n2, and the warnings.
fn queue(kind: &str, more: &str) -> (QueueSpec, Vec<String>) {
    let (topology, warnings) = read(&format!(
        "set n2 [$ns node]\n$ns duplex-link $n0 $n2 1Mb 1ms {kind}\nset q [[$ns link $n0 $n2] queue]\n{more}"
    ));
    let warnings = warnings.into_iter().filter(|said| !said.contains("routers")).collect();
    (topology.links[1].pipes[0].queue.clone(), warnings)
}

#[test]
fn a_type_of_queue_that_is_not_there_is_the_nearest_by_name() {
    for (kind, said) in
        [("FQ", "FQ is a fair queue"), ("CBQ", "its classes are ignored"), ("srr", "SRR is a fair")]
    {
        let (queue, warnings) = queue(kind, "");
        assert!(matches!(queue, QueueSpec::FqCodel(_)), "{kind}: {queue:?}");
        assert!(warnings[0].contains(said), "{warnings:?}");
    }
    let (sfq, warnings) = queue("SFQ", "$q set maxqueue_ 60\n$q set buckets_ 32\n");
    let QueueSpec::FqCodel(spec) = sfq else { panic!("{sfq:?}") };
    assert_eq!((spec.flows, spec.codel.limit), (32, Limit::Packets(60)));
    assert!(spec.codel.target >= Duration::from_secs(1000), "no delay control");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let (drr, _) = queue("DRR", "$q set blimit_ 9000\n$q quantum 500\n");
    let QueueSpec::FqCodel(spec) = drr else { panic!("{drr:?}") };
    assert_eq!((spec.codel.limit, spec.quantum, spec.flows), (Limit::Bytes(Bytes(9000)), Bytes(500), 10));
    let (codel, warnings) =
        queue("CoDel", "$q set target_ 0.02\n$q set interval_ 0.2\n$ns queue-limit $n0 $n2 70\n");
    let QueueSpec::Codel(spec) = codel else { panic!("{codel:?}") };
    assert_eq!((spec.target, spec.interval), (Duration::from_ms(20), Duration::from_ms(200)));
    assert_eq!((spec.limit, warnings), (Limit::Packets(70), vec![]));
    let (red, warnings) = queue("PI", "");
    assert!(matches!(red, QueueSpec::Red(_)) && warnings[0].ends_with("PI is RED here"), "{warnings:?}");
    // A step of RED.
    let (red, warnings) = queue("RED", "$q set thresh_ 65\n$q set maxthresh_ 65\n");
    let QueueSpec::Red(spec) = red else { panic!("{red:?}") };
    assert_eq!((spec.min, spec.max), (65, 66));
    assert!(warnings[0].ends_with("thresh_ and maxthresh_ are 65: maxthresh_ is 66 here"), "{warnings:?}");
    let (red, warnings) = queue("RED", "$q set thresh_ 0\n$q set maxthresh_ 0\n");
    assert!(matches!(red, QueueSpec::Red(spec) if (spec.min, spec.max) == (5, 15)));
    assert!(warnings[0].ends_with("thresh_ 0 is 5 here: ns-2 computes it"), "{warnings:?}");
    for (kind, set) in [("DropTail", "buckets_ 3"), ("SFQ", "target_ 0.01"), ("RED", "quantum_ 50")] {
        let (_, warnings) = queue(kind, &format!("$q set {set}\n"));
        let said = "is ignored: this type of queue does not have it";
        assert!(warnings.iter().any(|warning| warning.ends_with(said)), "{kind}: {warnings:?}");
    }
}

#[test]
fn queues_without_a_near_one_are_refused_and_what_follows_is_read() {
    for (kind, said) in [
        (
            "XCP",
            "there is no queue like 'XCP' here: XCP tells senders their rates in headers of its own; write DropTail or RED",
        ),
        (
            "dsRED/edge",
            "there is no queue like 'dsRED/edge' here: DiffServ of ns-2 marks and polices packets by policies; write DropTail or RED",
        ),
        ("DropTial", "there is no queue type 'DropTial'; write DropTail"),
    ] {
        let body =
            format!("set n2 [$ns node]\n$ns duplex-link $n0 $n2 1Mb 1ms {kind}\n$ns queue-limit $n0 $n2 7");
        assert_eq!(mistakes(&body), [format!("7:1: {said}")]);
    }
}

#[test]
fn objects_have_the_values_of_their_class() {
    let (red, warnings) = queue("RED", "");
    assert!(matches!(red, QueueSpec::Red(spec) if spec.max == 15) && warnings.is_empty());
    let body = "Queue set limit_ 70\nQueue/RED set limit_ 90\nQueue/RED set thresh_ 7\nset n2 [$ns node]\n\
        $ns duplex-link $n0 $n2 1Mb 1ms RED\n$ns duplex-link $n1 $n2 1Mb 1ms DropTail\n\
        puts [Queue/RED set thresh_]\n";
    let (topology, warnings) = read(body);
    let limits: Vec<_> = topology.links.iter().map(|link| link.pipes[0].queue.clone()).collect();
    let QueueSpec::Red(red) = &limits[1] else { panic!("{limits:?}") };
    assert_eq!((red.limit, red.min), (Limit::Packets(90), 7));
    assert_eq!(limits[0], QueueSpec::DropTail(Limit::Packets(50)), "it was made before");
    assert_eq!(limits[2], QueueSpec::DropTail(Limit::Packets(70)));
    assert!(warnings.iter().any(|said| said.ends_with("the script says: 7")), "{warnings:?}");
    let tcp = "Agent/TCP set packetSize_ 500\nAgent/TCP/Reno set packetSize_ 700\nApplication/FTP set maxpkts_ 10\n\
        set t [$ns create-connection TCP/Reno $n0 TCPSink $n1 0]\nset f [$t attach-app FTP]\n$ns at 1 \"$f start\"";
    let (topology, _) = read(tcp);
    assert_eq!(topology.transfers[0].model.workload, fastpath_traffic::Workload::Bulk(Some(Bytes(7000))));
    let (_, warnings) = read(
        "Agent/TCP set window_ 5\nDelayLink set avoidReordering_ true\nAgent/Ping instproc recv {a b} {\n}",
    );
    let said = [
        "6:1: window_ of Agent/TCP is ignored: no object of this class is made after it",
        "7:1: avoidReordering_ of DelayLink is ignored: nothing here has it",
        "8:1: recv of Agent/Ping is ignored: no procedure of a class is called",
    ];
    assert_eq!(warnings, said);
    let wrong = mistakes("Agent/TCP set packetSize_ big\nset t [new Agent/TCP]");
    assert_eq!(wrong, ["7:8: 'big' is not a value of packetSize_; write bytes of data, such as 1000"]);
}

#[test]
fn an_error_model_is_the_loss_of_a_direction() {
    let loss = |topology: &Topology, end: usize| topology.links[0].pipes[end].loss.clone();
    let rate = |rate: f64| LossSpec::from(Probability::new(rate).unwrap());
    let model = "set em [new ErrorModel]\n$em unit pkt\n$em set rate_ 0.02\n$em ranvar [new RandomVariable/Uniform]\n\
        $em drop-target [new Agent/Null]\n";
    let (topology, warnings) =
        read(&format!("{model}$ns lossmodel $em $n1 $n0\n$ns at 5 \"$em set rate_ 0.1\""));
    assert_eq!((loss(&topology, 0), loss(&topology, 1)), (rate(0.0), rate(0.02)));
    assert_eq!(topology.events.len(), 1);
    assert!(warnings.iter().all(|said| said.contains("random numbers")), "{warnings:?}");
    let (topology, _) = read("set em [new ErrorModel/Uniform 0.3 pkt]\n[$ns link $n0 $n1] errormodule $em");
    assert_eq!(loss(&topology, 0), rate(0.3));
    let (topology, _) = read("set em [new ErrorModel]\n$ns link-lossmodel $em $n0 $n1\n$em set rate_ 0.4");
    assert_eq!(loss(&topology, 0), rate(0.4));
    let (_, warnings) = read("set em [new ErrorModel]");
    assert_eq!(warnings, ["6:9: em is on no link; write $ns lossmodel $em $n0 $n1"]);
    for (body, said) in [
        (
            "set em [new ErrorModel/TwoState]",
            "6:9: losses of ErrorModel/TwoState are not there: each packet is lost with the same probability; write \
             new ErrorModel, with rate_ and unit pkt",
        ),
        (
            "set em [new ErrorModel]\n$em unit bit\n$ns lossmodel $em $n0 $n1",
            "8:1: errors of bits and bytes are not there: they depend on the sizes of packets; write $em unit pkt",
        ),
        (
            "set em [new ErrorModel]\n$em unit packet",
            "7:1: there is no unit 'packet' of errors; write one of pkt, byte, bit",
        ),
        (
            "set em [new ErrorModel]\n$em set rate_ 2",
            "7:1: '2' is not a loss rate from 0 to 1; write for example 0.05",
        ),
        (
            "$ns lossmodel $n0 $n0 $n1",
            "6:1: '_o2' is not an ErrorModel; write set em [new ErrorModel] before",
        ),
    ] {
        assert_eq!(mistakes(body).len(), 1, "{body}: {:?}", mistakes(body));
        assert!(mistakes(body)[0].starts_with(said.split(';').next().unwrap()), "{:?}", mistakes(body));
    }
}

#[test]
fn what_is_no_network_of_links_is_refused_once_and_by_name() {
    for (body, said) in [
        (
            "Class Sender\nSender instproc init {} { }\nSender instproc go {} { $self next }\nset s [new Sender]\n$s go",
            "6:1: Class: classes of OTcl are not read; write procedures: proc NAME {} { … }",
        ),
        (
            "$ns node-config -adhocRouting AODV -llType LL",
            "6:1: wireless nodes are not emulated; write $ns duplex-link for each pair of neighbours",
        ),
        (
            "set group [Node allocaddr]\nset x [expr $group + 1]",
            "6:12: multicast is not routed: there are no groups; write $ns connect for each receiver",
        ),
        (
            "set n2 [$ns node]\n$ns duplex-link $n0 $n2 1Mb 1ms dsRED/core\nset q [[$ns link $n0 $n2] queue]\n\
             $q set numQueues_ 2\n$q configQ 0 0 20 40 0.02\n$q addPHBEntry 10 0 0",
            "7:1: there is no queue like 'dsRED/core' here: DiffServ of ns-2 drops packets by marks of its own; write \
             DropTail or RED",
        ),
        (
            "$ns node-config -phyType Phy/WirelessPhy\n$n0 set-position 1 2 3\n$ns add-isl intraplane $n0 $n1",
            "6:1: wireless nodes are not emulated; write $ns duplex-link for each pair of neighbours",
        ),
        (
            "set w [new Http/Server $ns $n0]",
            "6:8: Http: web caches are not there; write Application/FTP with send",
        ),
        (
            "set t [new Application/Traffic/Trace]",
            "6:8: Application/Traffic/Trace: traffic of a file is not read; write Application/Traffic/CBR",
        ),
        (
            "source topology.tcl",
            "6:1: 'topology.tcl' is not read: `source` takes tb_compat.tcl only; write its commands here",
        ),
    ] {
        assert_eq!(mistakes(body), [said], "{body}");
    }
}

#[test]
fn commands_of_pictures_headers_and_quantities_are_read() {
    let (_, warnings) = read(
        "remove-all-packet-headers\nadd-packet-header IP TCP\n$ns color 1 red\n$ns namtrace-config x\n\
         $ns set-animation-rate 3ms\n$ns duplex-link-op $n0 $n1 orient right\n$ns duplex-link-op $n0 $n1 queuePos 0.5\n\
         $ns simplex-link-op $n0 $n1 color green\n$ns duplex-link-op $n0 $n1 label fast\n$ns rtproto Static",
    );
    assert_eq!(warnings, [""; 0]);
    let (_, warnings) = read(
        "puts [bw_parse 1.5Mb]\nputs [$ns delay_parse 20ms]\nputs [expr [ns-random] > 0]\n\
         proc show {what file} { puts \"$what\" }\n$ns at 1 \"show up [open out.tr w]\"",
    );
    let said: Vec<_> = warnings
        .iter()
        .filter_map(|said| said.split_once("the script says: "))
        .map(|(_, text)| text)
        .collect();
    assert_eq!(said, ["1500000.0", "0.02", "1", "up"], "{warnings:?}");
}
