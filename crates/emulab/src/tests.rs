//! Golden tables: scripts and what becomes of them.

use super::*;
use fastpath_link::{Change, Limit, LinkState, LossSpec, PipeSpec, QueueSpec, RedIdle, RedSpec};
use fastpath_spec::{Direction, Link, NodeKind};
use fastpath_units::{Duration, Probability, Rate, Time};

const FIGURE_2_1: &str = include_str!("../../../examples/emulab-fig2-1.ns");

fn topology(text: &str) -> Topology {
    match parse(text) {
        Ok((topology, _)) => topology,
        Err(mistakes) => panic!("{}", mistakes.iter().map(|m| format!("{m}\n")).collect::<String>()),
    }
}

/// Two nodes and what follows.
fn script(rest: &str) -> String {
    format!("set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n{rest}\n$ns run\n")
}

fn mistakes(text: &str) -> Vec<String> {
    parse(text).err().into_iter().flatten().map(|mistake| mistake.to_string()).collect()
}

fn warnings(text: &str) -> Vec<String> {
    parse(text).expect("a valid script").1.iter().map(Warning::to_string).collect()
}

fn rate(text: &str) -> Option<Rate> {
    Some(text.parse().unwrap())
}

fn pipe(rate_text: &str, ms: u64) -> PipeSpec {
    PipeSpec {
        rate: rate(rate_text),
        overhead: 0,
        delay: Duration::from_ms(ms),
        loss: LossSpec::Never,
        queue: QueueSpec::DropTail(Limit::Packets(50)),
        ..PipeSpec::default()
    }
}

fn names(topology: &Topology) -> Vec<&str> {
    topology.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn uniform(p: f64) -> LossSpec {
    LossSpec::Uniform(Probability::new(p).unwrap())
}

#[test]
fn the_script_of_figure_2_1_gives_its_topology() {
    let net = topology(FIGURE_2_1);
    assert_eq!(names(&net), ["n0", "n1", "n2", "n3", "r0", "r1"]);
    let kinds: Vec<NodeKind> = net.nodes.iter().map(|node| node.kind.clone()).collect();
    let (host, router) = (NodeKind::host(), NodeKind::router());
    assert_eq!(kinds, [&host, &host, &host, &host, &router, &router].map(NodeKind::clone));
    let red = QueueSpec::Red(RedSpec { gentle: false, idle: RedIdle::Ns2, ..RedSpec::default() });
    let expected = [
        ("n0-r0", pipe("100Mbit", 10)),
        ("n1-r0", pipe("10Mbit", 25)),
        ("n2-r1", pipe("100Mbit", 10)),
        ("n3-r1", pipe("10Mbit", 10)),
        ("r0-r1", PipeSpec { queue: red, ..pipe("1.5Mbit", 100) }),
    ];
    let links: Vec<(&str, [PipeSpec; 2])> =
        net.links.iter().map(|l| (l.name.as_str(), l.pipes.clone())).collect();
    assert_eq!(links, expected.map(|(name, pipe)| (name, [pipe.clone(), pipe])));
    let first = |node: usize| net.nodes[node].interfaces[0].addresses[0].to_string();
    assert_eq!([0, 1, 2, 3].map(first), ["10.1.1.2/24", "10.1.2.2/24", "10.1.3.2/24", "10.1.4.2/24"]);
    assert_eq!(
        warnings(FIGURE_2_1),
        ["13:9: routers, because they have several neighbours: r0, r1; the other nodes are hosts"]
    );
}

#[test]
fn every_example_is_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the examples") {
        let path = entry.expect("an example").path();
        let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else { continue };
        if !matches!(extension, "ns" | "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let beside = |name: &str| {
            std::fs::read_to_string(format!("{folder}/{name}")).map_err(|error| error.to_string())
        };
        let parsed = match extension {
            "ns" => super::parse(&text),
            _ => fastpath_spec::read(&text, &beside).map(|(spec, warnings)| (spec.topology, warnings)),
        };
        let mistakes = parsed.err().map(|mistakes| mistakes.0).unwrap_or_default();
        assert!(mistakes.is_empty(), "{}: {mistakes:?}", path.display());
        seen += 1;
    }
    assert!(seen >= 7, "{seen} examples in {folder}");
}

#[test]
fn loops_arrays_and_procedures_build_a_chain() {
    let text = r#"
set ns [new Simulator]
set count 4
proc chain {nodes bandwidth {delay 5ms}} {
    global ns
    for {set i 1} {$i < [llength $nodes]} {incr i} {
        set from [lindex $nodes [expr $i - 1]]
        $ns duplex-link $from [lindex $nodes $i] $bandwidth $delay DropTail
    }
}
for {set i 0} {$i < $count} {incr i} {
    set nodes($i) [$ns node]   ;# named nodes-0, nodes-1, …
    lappend all $nodes($i)
}
if {$count > 3 && [info exists nodes(3)]} {
    chain $all [format "%.1fMb" [expr {10 / 4.0}]]
} else {
    error "never"
}
foreach {x y} {0 2  1 3} { set last "$x$y" }
while {$last > 10} { incr last -1 ; if {$last == 12} break }
set extra($last) [$ns node]
$ns duplex-link $extra(12) $nodes(0) \
    1Mb 1ms DropTail
$ns run
"#;
    let net = topology(text);
    assert_eq!(names(&net), ["nodes-0", "nodes-1", "nodes-2", "nodes-3", "extra-12"]);
    assert_eq!(net.links.len(), 4);
    assert_eq!(net.links[2].name, "nodes-2-nodes-3");
    assert_eq!(net.links[2].pipes[0], pipe("2.5Mbit", 5));
    assert_eq!(net.links[3].pipes[1], pipe("1Mbit", 1));
}

#[test]
fn a_lan_is_a_switch_with_half_the_delay_on_each_link() {
    let text = script(
        "set c [$ns node]\nset lan [$ns make-lan \"$a $b $c\" 100Mb 10ms]\ntb-set-lan-loss $lan 0.19\n\
         tb-set-node-lan-params $b $lan 40ms 20Mb 0.05\ntb-set-lan-simplex-params $lan $c 1ms 1Mb 0 2ms 2Mb 0.5\n\
         tb-set-ip-lan $b $lan 192.168.1.77\ntb-set-netmask $lan 255.255.254.0",
    );
    let net = topology(&text);
    assert_eq!(names(&net), ["a", "b", "c", "lan"]);
    assert_eq!(net.nodes[3].kind, NodeKind::Switch);
    let pipes = |index: usize| net.links[index].pipes.clone();
    let lossy = |p: f64, pipe: PipeSpec| PipeSpec { loss: uniform(p), ..pipe };
    // 1 − √(1 − 0.19) = 0.1: two links lose 19 % together.
    let default = lossy(1.0 - 0.81f64.sqrt(), pipe("100Mbit", 5));
    assert_eq!(pipes(0), [default.clone(), default]);
    assert_eq!(pipes(1), [lossy(0.05, pipe("20Mbit", 40)), lossy(0.05, pipe("20Mbit", 40))]);
    assert_eq!(pipes(2), [pipe("1Mbit", 1), lossy(0.5, pipe("2Mbit", 2))]);
    let address = |node: usize| {
        net.nodes[node].interfaces[0].addresses.iter().find(|a| a.addr().is_ipv4()).unwrap().to_string()
    };
    assert_eq!([0, 1, 2].map(address), ["192.168.0.2/23", "192.168.1.77/23", "192.168.0.3/23"]);
}

#[test]
fn link_parameters_of_every_kind() {
    let text = script(
        "set l [$ns duplex-link $a $b 10Mb 0.02 GRED]\ntb-set-link-loss $l 0.05\n\
         tb-set-link-simplex-params $l $b 100ms 50Mb 0.2\nset q [[$ns link $a $b] queue]\n\
         $q set limit_ 40\n$q set thresh_ 4\n$q set maxthresh_ 12\n$q set linterm_ 20\n$q set setbit_ true\n\
         $ns queue-limit $b $a 7\nset m [$ns simplex-link $a $b 1Mb 1ms DropTail]\n\
         $ns simplex-link $b $a 2Mb 2ms DropTail\ntb-set-ip-link $a $l 10.0.0.1\ntb-set-ip-interface $b $a 10.9.0.9",
    );
    let net = topology(&text);
    assert_eq!(net.links.len(), 2, "two simplex links make one");
    let red = RedSpec {
        limit: Limit::Packets(40),
        min: 4,
        max: 12,
        max_p: Probability::new(0.05).unwrap(),
        ecn: true,
        idle: RedIdle::Ns2,
        ..RedSpec::default()
    };
    let there = PipeSpec { queue: QueueSpec::Red(red), loss: uniform(0.05), ..pipe("10Mbit", 20) };
    let back = QueueSpec::Red(RedSpec { limit: Limit::Packets(7), idle: RedIdle::Ns2, ..RedSpec::default() });
    let back = PipeSpec { queue: back, loss: uniform(0.2), ..pipe("50Mbit", 100) };
    let Link { name, pipes, .. } = &net.links[0];
    assert_eq!((name.as_str(), pipes), ("l", &[there, back]));
    assert_eq!(net.links[1].pipes, [pipe("1Mbit", 1), pipe("2Mbit", 2)]);
    let address = |node: usize, i: usize| net.nodes[node].interfaces[i].addresses[0].to_string();
    assert_eq!((address(0, 0), address(1, 0)), ("10.0.0.1/24".to_owned(), "10.0.0.2/24".to_owned()));
    assert_eq!((address(1, 1), address(0, 1)), ("10.9.0.9/24".to_owned(), "10.9.0.2/24".to_owned()));
}

#[test]
fn events_are_in_the_order_of_time() {
    let text = script(
        "set l [$ns duplex-link $a $b 10Mb 20ms DropTail]\ntb-set-link-loss $l 0.1\n\
         $ns at 1m \"$l up\"\n$ns at 10.5 \"$l down; $l bandwidth 5Mb duplex\"\n$ns at 20 {$l plr 0.3}\n\
         $ns at 5 \"$l delay 7\"\nset q [[$ns link $b $a] queue]\n$ns at 70 \"$q set limit_ 9\"\n$ns at 80 \"finish\"",
    );
    let net = topology(&text);
    let nothing = Change::default();
    let expected = [
        (5_000, Direction::Both, Change { delay: Some(Duration::from_ms(7)), ..nothing.clone() }),
        (10_500, Direction::Both, Change { state: Some(LinkState::Down), ..nothing.clone() }),
        (10_500, Direction::Both, Change { rate: Some(rate("5Mbit")), ..nothing.clone() }),
        (20_000, Direction::Both, Change { loss: Some(uniform(0.3)), ..nothing.clone() }),
        (60_000, Direction::Both, Change { state: Some(LinkState::Up), ..nothing.clone() }),
        (
            70_000,
            Direction::Backward,
            Change { queue: Some(QueueSpec::DropTail(Limit::Packets(9))), ..nothing },
        ),
    ];
    let found: Vec<_> = net.events.iter().map(|e| (e.at, e.direction, e.change.clone())).collect();
    assert_eq!(found, expected.map(|(ms, d, c)| (Time::ZERO + Duration::from_ms(ms), d, c)));
    assert!(
        warnings(&text).iter().any(|w| w.starts_with("12:1: this event is ignored")),
        "{:?}",
        warnings(&text)
    );
}

#[test]
fn what_does_not_concern_the_network_is_ignored_with_a_warning() {
    let text = script(
        "$ns duplex-link $a $b 1Mb 1ms DropTail\n$ns duplex-link-op $a $b orient right\ntb-set-node-os $a FBSD-STD\n\
         tb-set-hardware $b pc850\nset m [new Agent/Message]\n$ns multicast\nset n [new Trace/Drop]\n\
         Agent/UDP set x 1\nset f [open out.nam w]\n$ns namtrace-all $f\nset p [$a disk-agent]\n\
         puts \"two nodes\"\nproc finish {} {\n  exec nam\n}\nif {[catch {error x}]} {set caught 1}",
    );
    let expected = [
        "6:1: tb-set-node-os is ignored: it does not concern the network",
        "7:1: tb-set-hardware is ignored: it does not concern the network",
        "8:8: Agent/Message is ignored: run real programs in the hosts",
        "9:1: $ns multicast is ignored: multicast is not routed",
        "10:8: Trace/Drop is ignored: run real programs in the hosts",
        "11:1: x of Agent/UDP is ignored: no object of this class is made after it",
        "12:8: open is ignored",
        "14:8: disk-agent is ignored: it does not concern the network",
        "15:1: the script says: two nodes",
        "16:1: this procedure is never called",
        "19:25: the variable 'caught' is set and never read",
    ];
    assert_eq!(warnings(&text), expected);
    assert_eq!(topology(&text).links.len(), 1);
}

/// What is appended to two nodes `a` and `b`, from line 4, with all that is said about it.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "$ns duplex-lnk $a $b 1Mb 1ms DropTail\n$ns duplex-link $a $c 1Mb 1ms DropTail\n$ns duplex-link $a $a 1Mb 1ms DropTail\n\
         $ns duplex-link $a $b 1Mb 1ms\n$ns duplex-link $a $b fast 1ms DropTail\n$ns duplex-link $a $b 1Mb long DropTail\n\
         $ns duplex-link $a $b 1Mb 1ms DropTial",
        &[
            "4:1: the simulator has no command 'duplex-lnk'; write $ns duplex-link",
            "5:1: there is no variable 'c'; write $a",
            "6:1: the link joins a node to itself; write two nodes",
            "7:1: wrong number of arguments; write $ns duplex-link $a $b 10Mb 10ms DropTail",
            "8:1: 'fast' is not a bandwidth; write for example 10Mb",
            "9:1: 'long' is not a delay; write for example 10ms",
            "10:1: there is no queue type 'DropTial'; write DropTail",
        ],
    ),
    (
        "foreach n {1 2} {\n    set x($n) [expr $n +]\n}\nst y 3\nset l [$ns duplex-link $a b 1Mb 1ms RED]\ntb-set-link-loss $l 1.5\n\
         tb-set-ip $a 10.0.0.256\ntb-set-ip-lan $a $l 10.0.0.2\ntb-set-link-loss $l",
        &[
            "5:16: the expression ends too early; write an expression such as {$i * 2 + 1}",
            "7:1: there is no command 'st'; write set",
            "9:1: '1.5' is not a loss rate from 0 to 1; write for example 0.05",
            "10:1: '10.0.0.256' is not an IPv4 address; write for example 10.1.0.2",
            "11:1: l is not a lan; write a lan",
            "12:1: wrong number of arguments; write tb-set-link-loss $link 0.05",
        ],
    ),
    (
        "tb-set-link-los $a $b 0.1\ntb-set-node-oss $a X\ntb-frobnicate\n$ns attach-agnt $a $b\n$ns frobnicate\n\
         $ns lossmodel $a $b $a\ntb-set-noshaping",
        &[
            "4:1: there is no command 'tb-set-link-los'; write tb-set-link-loss",
            "5:1: there is no command 'tb-set-node-oss'; write tb-set-node-os",
            "6:1: there is no command 'tb-frobnicate'; write a command of Emulab, or remove it",
            "7:1: the simulator has no command 'attach-agnt'; write $ns attach-agent",
            "8:1: the simulator has no command 'frobnicate'; write $ns and one of node, after, now, event-group, event-sequence, event-timeline, duplex-link, simplex-link, make-lan, newLan, link, lanlink, queue-limit, rtproto, run, at, attach-agent, connect, create-connection, or remove it",
            "9:1: no link joins b and a; write $ns duplex-link for them before",
            "10:1: wrong number of arguments; write tb-set-noshaping $link 1",
        ],
    ),
    (
        "set l [$ns duplex-link $a $b 1Mb 1ms RED]\nset q [[$ns link $a $b] queue]\n$q set limit_ 0\n$q set thresh_ 30\n$q set wait_ 1",
        &["6:1: '0' is not a value of limit_; write a number from 1"],
    ),
    (
        "$ns duplex-link $a $b 1Mb 1ms RED\nset q [[$ns link $a $b] queue]\n$q set thresh_ 30",
        &["4:1: thresh_ 30 is above maxthresh_ 15; write $queue set maxthresh_ with a larger number"],
    ),
    (
        "$ns duplex-link $a $b 1Mb 1ms DropTail\ntb-set-ip $a 10.0.0.2\ntb-set-ip $b 10.0.0.2",
        &[
            "6:1: 10.0.0.2 is already the address of a; write an address of its own, or none to have one assigned",
        ],
    ),
    (
        "set l [$ns duplex-link $a $b 1Mb 1ms DropTail]\n$ns at soon \"$l down\"\n$ns at 1 \"$l dwn\"\n$ns at 1 \"$l plr 2\"",
        &[
            "5:1: 'soon' is not a time; write for example 10.0",
            "6:1: 'dwn' with 0 values is not an event of a link; write down",
            "7:1: '2' is not a loss rate from 0 to 1; write for example 0.05",
        ],
    ),
    (
        "proc p {} { p }\np\nset z 1",
        &["4:13: calls are nested too deeply (an endless recursion?); write a loop instead"],
    ),
    (
        "$ns rtproto Sesion\n$ns rtproto fast\n$ns rtproto\nset l [$ns duplex-link $a $b 1Mb 1ms DropTail]\n$l quue\n\
         $a program-agnt\nset q [$l queue]\n$q set limt_ 9\n$q frobnicate\n[new RandomVariable/Unifrm] value\n\
         new RandomVariable/Gamma\nset r [new RandomVariable/Uniform]\n$r set avg_ 3\n$r vlaue\n\
         [new RNG] gauss 1 2\n$r use-rng $l\n[new RandomVariable/Weibull] set shape_ 0",
        &[
            "4:1: there is no routing protocol 'Sesion'; write $ns rtproto Session",
            "5:1: there is no routing protocol 'fast'; write $ns rtproto and one of Static, Static-old, Static-ddijk, Session, DV, LS, Algorithmic, Manual",
            "6:1: wrong number of arguments; write $ns rtproto Static",
            "8:1: a link or lan has no command 'quue'; write a command of ns-2 or Emulab, or remove it",
            "9:1: a node has no command 'program-agnt'; write program-agent",
            "11:1: a queue has no 'limt_'; write limit_",
            "12:1: a queue has no command 'frobnicate'; write a command of ns-2 or Emulab, or remove it",
            "13:2: there is no random variable 'RandomVariable/Unifrm'; write new RandomVariable/Uniform",
            "14:1: there is no random variable 'RandomVariable/Gamma'; write new and one of RandomVariable/Constant, RandomVariable/Uniform, RandomVariable/Exponential, RandomVariable/Pareto, RandomVariable/ParetoII, RandomVariable/Normal, RandomVariable/LogNormal, RandomVariable/Weibull",
            "16:1: RandomVariable/Uniform has no 'avg_'; write min_ or max_",
            "17:1: a random variable has no command 'vlaue'; write $variable value, $variable set min_ 1, or $variable use-rng $rng",
            "18:1: an RNG has no command 'gauss' with 2 values; write $rng and one of seed 7, uniform 0 1, integer 10, exponential 1.0, normal 0 1, lognormal 0 1, next-random",
            "19:1: l is not an RNG; write $rng, of set rng [new RNG]",
            "20:1: RandomVariable/Weibull: shape_ 0 is not above 0; write a larger number",
        ],
    ),
    (
        "source other.tcl",
        &["4:1: 'other.tcl' is not read: `source` takes tb_compat.tcl only; write its commands here"],
    ),
    ("set x {\nset y 1", &["4:7: this '{' is never closed; write its '}'"]),
    (
        "while 1 {}",
        &[
            "4:1: the script does more than a description of a network needs (an endless loop?); write a loop that ends",
        ],
    ),
];

#[test]
fn every_mistake_is_reported_at_once_with_its_place() {
    for (text, expected) in MISTAKES {
        assert_eq!(mistakes(&script(text)), *expected, "{text}");
    }
    assert_eq!(mistakes(""), ["1:1: the script makes no nodes; write set n0 [$ns node]"]);
}

/// The mean of many draws is the mean of the distribution, and a run repeats it.
#[test]
fn random_variables_have_the_distributions_of_ns_2() {
    for (class, set, mean, tolerance) in [
        ("Constant", "$v set val_ 7", 7.0, 1e-9),
        ("Uniform", "$v set min_ 10; $v set max_ 30", 20.0, 0.3),
        ("Exponential", "$v set avg_ 5", 5.0, 0.3),
        ("Pareto", "$v set avg_ 5; $v set shape_ 3", 5.0, 0.3),
        ("ParetoII", "$v set avg_ 5; $v set shape_ 3.5", 5.0, 0.4),
        ("Normal", "$v set avg_ 5; $v set std_ 2", 5.0, 0.1),
        ("LogNormal", "$v set avg_ 1; $v set std_ 0.5", (1.0f64 + 0.125).exp(), 0.1),
        ("Weibull", "$v set shape_ 1; $v set scale_ 4", 4.0, 0.2),
    ] {
        let text = script(&format!(
            "set rng [new RNG]\n$rng seed 9\nset v [new RandomVariable/{class}]\n$v use-rng $rng\n{set}\n\
             set sum 0.0\nfor {{set i 0}} {{$i < 5000}} {{incr i}} {{set sum [expr $sum + [$v value]]}}\n\
             $ns duplex-link $a $b 1Mb [expr $sum / 5000] DropTail"
        ));
        let delay = topology(&text).links[0].pipes[0].delay;
        assert!((delay.as_secs_f64() - mean).abs() < tolerance, "{class}: {delay} for {mean}");
        assert_eq!(topology(&text).links[0].pipes[0].delay, delay, "{class} repeats");
    }
    let text = script(
        "$defaultRNG seed 3\nset l [$ns duplex-link $a $b [expr 1 + [$defaultRNG integer 9]]Mb \
         [expr round([$defaultRNG uniform 10 20])]ms DropTail]",
    );
    assert_eq!(topology(&text).links.len(), 1);
}

#[test]
fn protocols_that_compute_routes_again_make_routes_dynamic() {
    let with = |protocol: &str| {
        script(&format!("$ns duplex-link $a $b 1Mb 1ms DropTail queue-size 9\n$ns rtproto {protocol}"))
    };
    let extra = "4:1: 'queue-size' and what follows in $ns duplex-link is ignored";
    assert_eq!(warnings(&with("Static")), [extra]);
    assert_eq!(warnings(&with("Session")), [extra]);
    let vectors = "5:1: rtproto DV is Session here: routes change with a link, without messages";
    assert_eq!(warnings(&with("DV")), [extra, vectors]);
    let is_dynamic = |protocol| topology(&with(protocol)).routing.is_dynamic;
    assert_eq!(["Static", "Session", "LS"].map(is_dynamic), [false, true, true]);
}

#[test]
fn expressions_count_as_tcl_does() {
    for (text, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 / 2", "3"),
        ("-7 / 2", "-4"),
        ("-7 % 3", "2"),
        ("7 / 2.0", "3.5"),
        ("1e3", "1000.0"),
        ("10 * 1.5", "15.0"),
        ("2 ** 3 ** 2", "512"),
        ("0x10 + 1", "17"),
        ("1 < 2 && 2 < 1 || !0", "1"),
        ("1 ? 5 : 6", "5"),
        ("{abc} eq {abc}", "1"),
        ("\"a\" == \"b\"", "0"),
        ("int(3.7) + round(3.5) + abs(-2)", "9"),
        ("max(1, 3, 2) - min(4, 2)", "1"),
        ("sqrt(16)", "4.0"),
        ("1 << 4 | 1", "17"),
        ("true", "true"),
        // What is not taken is not computed.
        ("1 > 1 ? 3 / (1 - 1) : 4", "4"),
        ("0 && 1 / 0", "0"),
        ("1 || -{x} ** 2", "1"),
        ("0 ? 1 / 0 ? 2 : 3 : 7", "7"),
    ] {
        let text = format!("set ns [new Simulator]\nset n [$ns node]\nputs [expr {{{text}}}]\n$ns run");
        let said = format!("3:1: the script says: {expected}");
        assert!(warnings(&text).contains(&said), "{text}: {:?}", warnings(&text));
    }
}

#[test]
fn words_lists_and_strings_work_as_in_tcl() {
    for (text, expected) in [
        ("lindex {a {b c} d} 1", "b c"),
        ("lrange {a b c d} 1 end", "b c d"),
        ("llength {a {b c} \"d e\"}", "3"),
        ("list a {b c} {}", "a {b c} {}"),
        ("join [split a.b.c .] -", "a-b-c"),
        ("lsort -integer {10 9 2}", "2 9 10"),
        ("lsearch {x yy z} y*", "1"),
        ("concat {a b} {c d}", "a b c d"),
        ("format {%03d|%-4s|%5.2f|%x} 7 ab 3.14159 255", "007|ab  | 3.14|ff"),
        ("string length \"a\\tb\"", "3"),
        ("string match n* n12", "1"),
        ("set x 5; set y \"$x-${x}\"", "5-5"),
        ("switch b {a {set r 1} b - c {set r 2} default {set r 3}}", "2"),
        ("set i 1; incr i [expr 2+2]", "5"),
        ("set k [list 1 2]; eval lappend k $k; set k", "1 2 1 2"),
        ("array set z {p 1 q 2}; lsort [array names z]", "p q"),
        ("catch {nonsense}", "1"),
    ] {
        let text = format!("set ns [new Simulator]\nset n [$ns node]\nputs [{text}]\n$ns run");
        let said = format!("3:1: the script says: {expected}");
        assert!(warnings(&text).contains(&said), "{text}: {:?}", warnings(&text));
    }
}

#[test]
fn the_budget_of_a_script_bounds_its_memory_and_grows_with_its_network() {
    let spent = "4:1: the script does more than a description of a network needs (an endless loop?); write a loop that ends";
    // Every level of eval holds all the words behind it.
    assert_eq!(mistakes(&script(&"eval ".repeat(30_000))), [spent]);
    let idle = "for {set i 0} {$i < 300000} {incr i} {}";
    assert_eq!(mistakes(&script(idle)), [spent]);
    for greedy in [
        "format %1000d%1000d 1 1 [set x [string repeat a 9]]",
        "set x {*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b}; set y a; for {set i 0} {$i < 21} {incr i} {append y $y}; \
         for {set i 0} {$i < 99} {incr i} {string match $x $y}",
        "set y a; for {set i 0} {$i < 20} {incr i} {append y \" $y\"}; join $y $y",
    ] {
        assert!(!mistakes(&script(greedy)).is_empty(), "{greedy}");
    }
    let links =
        "for {set i 0} {$i < 100000} {incr i} {$ns duplex-link $a $b 1Mb [expr 1 + $i % 9]ms DropTail}";
    let mut tcl = state::Interp::new(Remarks::new(""));
    tcl.run(&script(links));
    assert!(tcl.remarks.is_clean());
    assert_eq!(tcl.simulator.links.len(), 100_000);
}

#[test]
fn a_thousand_nodes_in_a_loop_are_quick() {
    let text = "set ns [new Simulator]\nfor {set i 0} {$i < 1000} {incr i} {\n  set n($i) [$ns node]\n  lappend all $n($i)\n\
                if {$i > 0} { $ns duplex-link $n($i) [lindex $all [expr {($i - 1) / 2}]] 1Mb 1ms DropTail }\n}\n$ns run";
    assert_eq!(topology(text).links.len(), 999);
}

proptest::proptest! {
    #[test]
    fn random_text_never_panics(text in "(\\PC|[\\[\\]$\"{}\\\\;\n ()]|set |\\$ns |expr |foreach |proc ){0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_mangled_script_never_panics(from in 0usize..1200, cut in 0usize..60, with in "[\\PC\n]{0,6}") {
        let mut text: Vec<char> = FIGURE_2_1.chars().collect();
        let from = from.min(text.len());
        let until = (from + cut).min(text.len());
        text.splice(from..until, with.chars());
        let _ = parse(&text.into_iter().collect::<String>());
    }
}
