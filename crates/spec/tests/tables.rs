//! Golden tables: specs and what becomes of them.

use fastpath_link::{
    AredSpec, Cells, Chance, Change, Classes, CodelSpec, CorruptSpec, DrrShare, DrrSpec, DualPi2Spec,
    DualScheduler, Ecn, FourState, FqCodelSpec, Framing, GilbertElliott, JitterCorrelation, JitterLaw,
    JitterSpec, Limit, LinkState, LossPlan, LossSpec, Outage, PacketFilter, Peak, PieSpec, PipeSpec,
    PrioSpec, QueueSpec, RedIdle, RedSpec, Reorder, ReorderSpec, Runs, SlotSpec, SlotWait, SojournSpec,
    TokenBucketSpec,
};
use fastpath_spec::{
    DataPathChoice, Direction, EngineSettings, Event, Idle, Late, Link, LinkId, NodeId, NodeKind, Topology,
    Warning, Workers, parse, parse_change, read,
};
use fastpath_units::{Bytes, Duration, Probability, Rate, Time};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

const LEAST: &str = r#"
[host.a]
[host.b]
[[link]]
between  = ["a", "b"]      # ends; per-direction values as a_to_b = { rate = "256kbit" }
rate     = "10Mbit"        # bits on the wire per second; absent = unlimited
delay    = "25ms"
loss     = "1%"
queue    = "50p"           # or "64KiB", or a table for RED and the other disciplines
overhead = 0               # bytes on the wire beyond the captured frame
"#;

fn topology(text: &str) -> Topology {
    match parse(text) {
        Ok((topology, _)) => topology,
        Err(mistakes) => panic!("{}", mistakes.iter().map(|m| format!("{m}\n")).collect::<String>()),
    }
}

fn mistakes(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
    }
}

fn warnings(text: &str) -> Vec<String> {
    parse(text).expect("a valid spec").1.iter().map(Warning::to_string).collect()
}

fn rate(text: &str) -> Option<Rate> {
    Some(text.parse().unwrap())
}

fn only_link(text: &str) -> Link {
    topology(text).links.remove(0)
}

#[test]
fn the_least_spec_is_two_hosts_and_a_link() {
    let net = topology(LEAST);
    assert_eq!(warnings(LEAST), Vec::<String>::new());
    let pipe = PipeSpec {
        rate: rate("10Mbit"),
        overhead: 0,
        delay: Duration::from_ms(25),
        loss: LossSpec::Uniform(Probability::new(0.01).unwrap()),
        queue: QueueSpec::DropTail(Limit::Packets(50)),
        ..PipeSpec::default()
    };
    assert_eq!(net.links[0].pipes, [pipe.clone(), pipe]);
    assert_eq!(net.links[0].name, "a-b");
    assert_eq!(net.links[0].ends, [(NodeId(0), 0), (NodeId(1), 0)]);
    let addresses =
        |i: usize| net.nodes[i].interfaces[0].addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(addresses(0), ["10.1.1.2/24", "fd00:0:0:1::2/64"]);
    assert_eq!(addresses(1), ["10.1.1.3/24", "fd00:0:0:1::3/64"]);
}

#[test]
fn a_direction_overrides_its_link() {
    let link = only_link(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '5ms'\n\
         a_to_b = { rate = '256kbit', queue = '64KiB', overhead = 'ethernet' }\nb_to_a = { loss = 0.5 }",
    );
    let [there, back] = link.pipes;
    assert_eq!((there.rate, back.rate), (rate("256kbit"), rate("10Mbit")));
    assert_eq!(there.queue, QueueSpec::DropTail(Limit::Bytes(Bytes(65536))));
    assert_eq!((there.overhead, back.overhead), (24, 0));
    assert_eq!((there.delay, back.delay), (Duration::from_ms(5), Duration::from_ms(5)));
    assert_eq!((there.loss, back.loss), (LossSpec::Never, LossSpec::Uniform(Probability::new(0.5).unwrap())));
}

#[test]
fn a_red_queue_takes_its_thresholds_from_its_limit() {
    let red = |queue: &str| {
        let text =
            format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit'\nqueue = {queue}");
        only_link(&text).pipes[0].queue.clone()
    };
    assert_eq!(red("{ kind = 'red' }"), QueueSpec::Red(RedSpec::default()));
    let bytes =
        RedSpec { limit: Limit::Bytes(Bytes(100_000)), min: 10_000, max: 30_000, ..RedSpec::default() };
    assert_eq!(red("{ kind = 'red', limit = '100kB' }"), QueueSpec::Red(bytes));
    let all = "{ kind = 'red', limit = '20p', min = '2p', max = '9p', weight = 0.5, probability = '2%', \
               gentle = false, ecn = true, mean_packet = '1kB', idle = 'ns-2' }";
    let expected = RedSpec {
        limit: Limit::Packets(20),
        min: 2,
        max: 9,
        weight: Probability::new(0.5).unwrap(),
        max_p: Probability::new(0.02).unwrap(),
        gentle: false,
        ecn: true,
        mean_packet: Bytes(1000),
        idle: RedIdle::Ns2,
    };
    assert_eq!(red(all), QueueSpec::Red(expected));
}

/// The first pipe of a link with `values` in its table.
fn pipe_with(values: &str) -> PipeSpec {
    only_link(&format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{values}")).pipes[0].clone()
}

fn p(percent: f64) -> Probability {
    Probability::new(percent / 100.0).unwrap()
}

#[test]
fn every_queue_has_its_words() {
    let queue = |text: &str| pipe_with(&format!("rate = '1Mbit'\nqueue = {text}")).queue;
    assert_eq!(queue("'unlimited'"), QueueSpec::default());
    let late = SojournSpec { longest: Duration::from_ms(20), limit: Limit::Packets(u32::MAX) };
    assert_eq!(queue("'20ms'"), QueueSpec::Sojourn(late));
    let late = SojournSpec { limit: Limit::Packets(9), ..late };
    assert_eq!(queue("{ kind = 'sojourn', longest = '20ms', limit = '9p' }"), QueueSpec::Sojourn(late));
    assert_eq!(queue("{ kind = 'drop-head', limit = '9p' }"), QueueSpec::DropHead(Limit::Packets(9)));
    let by_time = queue("{ kind = 'drop-tail', limit = '20ms' }");
    assert_eq!(by_time, QueueSpec::DropTailTime(Duration::from_ms(20)));
    assert_eq!(queue("{ kind = 'codel' }"), QueueSpec::Codel(CodelSpec::default()));
    let codel = CodelSpec {
        target: Duration::from_ms(1),
        interval: Duration::from_ms(20),
        mtu: Bytes(9000),
        limit: Limit::Packets(77),
        ecn: Ecn::Mark,
    };
    let words = "target = '1ms', interval = '20ms', mtu = '9000B', limit = '77p', ecn = true";
    assert_eq!(queue(&format!("{{ kind = 'codel', {words} }}")), QueueSpec::Codel(codel));
    let fq = FqCodelSpec { codel, flows: 8, quantum: Bytes(300) };
    let words = format!("{{ kind = 'fq-codel', flows = 8, quantum = '300B', {words} }}");
    assert_eq!(queue(&words), QueueSpec::FqCodel(fq));
    let pie = PieSpec {
        target: Duration::from_ms(20),
        update: Duration::from_ms(30),
        burst: Duration::ZERO,
        alpha: 0.25,
        beta: 2.0,
        mean_packet: Bytes(1000),
        mark_below: p(5.0),
        ecn: Ecn::Mark,
        derandomize: true,
        cap_adjustment: true,
        limit: Limit::Bytes(Bytes(65536)),
    };
    let words = "target = '20ms', update = '30ms', burst = '0', alpha = 0.25, beta = 2, mean_packet = '1000B', \
                 mark_below = '5%', ecn = true, derandomize = true, cap_adjustment = true, limit = '64KiB'";
    assert_eq!(queue(&format!("{{ kind = 'pie', {words} }}")), QueueSpec::Pie(pie));
}

#[test]
fn queues_of_classes_and_buckets_have_their_words() {
    let queue = |text: &str| pipe_with(&format!("rate = '1Mbit'\nqueue = {text}")).queue;
    let ared = AredSpec {
        red: RedSpec { limit: Limit::Packets(100), min: 10, max: 30, ..RedSpec::default() },
        interval: Duration::from_ms(250),
        target: None,
    };
    let words = "limit = '100p', min = '10p', interval = '250ms'";
    assert_eq!(queue(&format!("{{ kind = 'ared', {words}, max = '30p' }}")), QueueSpec::Ared(ared));
    let QueueSpec::Ared(by_rate) = queue("{ kind = 'ared' }") else { panic!("another kind") };
    assert_eq!((by_rate.target, by_rate.red.limit), (Some(Duration::from_ms(5)), Limit::Packets(1000)));
    assert_eq!(queue("{ kind = 'dualpi2' }"), QueueSpec::DualPi2(DualPi2Spec::default()));
    let dual = DualPi2Spec {
        target: Duration::from_ms(20),
        coupling: 1.5,
        ramp_range: Duration::ZERO,
        ramp_packets: 2,
        scheduler: DualScheduler::Weighted(10),
        limit: Limit::Packets(99),
        ..DualPi2Spec::default()
    };
    let words = "target = '20ms', coupling = 1.5, ramp_range = '0', ramp_packets = 2, classic_share = 10, limit = '99p'";
    assert_eq!(queue(&format!("{{ kind = 'dualpi2', {words} }}")), QueueSpec::DualPi2(dual));
    let speed = |text| rate(text).expect("a rate");
    let bucket = TokenBucketSpec {
        rate: speed("1Mbit"),
        burst: Bytes(15 << 10),
        peak: Some(Peak { rate: speed("4Mbit"), burst: Bytes(1514) }),
        limit: Limit::Packets(50),
    };
    let words = "rate = '1Mbit', burst = '15KiB', peak = '4Mbit', limit = '50p'";
    assert_eq!(queue(&format!("{{ kind = 'token-bucket', {words} }}")), QueueSpec::TokenBucket(bucket));
    let classes = Classes::all_in(1).with(0, [46, 34, 5]);
    let prio =
        PrioSpec { bands: vec![Limit::Packets(20), Limit::Bytes(Bytes(9000))], classes: classes.clone() };
    let words = "bands = [{ dscp = ['EF', 'AF41', 5], limit = '20p' }, { limit = '9000B' }]";
    assert_eq!(queue(&format!("{{ kind = 'prio', {words} }}")), QueueSpec::Prio(prio));
    let share = |quantum| DrrShare { quantum: Bytes(quantum), limit: Limit::Packets(20) };
    let drr = DrrSpec { shares: vec![share(3000), share(1514)], classes };
    let words =
        "classes = [{ dscp = ['EF', 'AF41', 5], quantum = '3000B', limit = '20p' }, { limit = '20p' }]";
    assert_eq!(queue(&format!("{{ kind = 'drr', {words} }}")), QueueSpec::Drr(drr));
}

#[test]
fn losses_by_plan_and_in_runs_have_their_words() {
    let loss = |text: &str| pipe_with(&format!("loss = {text}")).loss;
    let runs = Runs { passed: [10, 90].into(), lost: [1].into() };
    assert_eq!(loss("{ kind = 'runs', passed = [10, 90], lost = [1] }"), LossSpec::Runs(runs));
    let s = Duration::from_secs;
    let outage = Outage { at: s(10), span: Duration::from_ms(500), every: Some(s(60)) };
    let words = "{ kind = 'outage', start = '10s', for = '500ms', every = '60s' }";
    assert_eq!(loss(words), LossSpec::Plan(LossPlan::Outage(outage)));
    for (words, of) in [("", PacketFilter::All), (", of = 'udp'", PacketFilter::Udp)] {
        let words = format!("{{ kind = 'packets', numbers = [17, 1, 17]{words} }}");
        let numbers = [1, 17].into();
        assert_eq!(loss(&words), LossSpec::Plan(LossPlan::Numbers { numbers, of }));
    }
    let words = "{ kind = 'bytes', offsets = [0, 14600], at = 'egress' }";
    let egress = pipe_with(&format!("loss = {words}")).egress_loss;
    assert_eq!(egress, LossSpec::Plan(LossPlan::Bytes([0, 14600].into())));
}

#[test]
fn loss_has_its_laws_and_its_places() {
    let loss = |text: &str| {
        let pipe = pipe_with(&format!("loss = {text}"));
        (pipe.loss, pipe.egress_loss)
    };
    let never = LossSpec::Never;
    let bursts =
        GilbertElliott { to_bad: p(1.0), to_good: p(25.0), loss_in_bad: p(100.0), loss_in_good: p(0.0) };
    let words = "{ kind = 'gilbert-elliott', to_bad = '1%', to_good = 0.25 }";
    assert_eq!(loss(words), (LossSpec::GilbertElliott(bursts), never.clone()));
    let four = FourState { p13: p(1.0), p31: p(30.0), p32: p(5.0), p23: p(50.0), p14: p(0.5) };
    let words = "{ kind = 'four-state', p13 = '1%', p31 = '30%', p32 = '5%', p23 = '50%', p14 = '0.5%', at = 'egress' }";
    assert_eq!(loss(words), (never, LossSpec::FourState(four)));
    let both = "['1%', { probability = '2%', at = 'egress' }]";
    assert_eq!(loss(both), (LossSpec::Uniform(p(1.0)), LossSpec::Uniform(p(2.0))));
}

#[test]
fn the_wire_has_its_words() {
    let pipe = |text: &str| pipe_with(text);
    assert_eq!(pipe("overhead = 20").overhead, 20);
    assert_eq!((pipe("overhead = 'ethernet'").overhead, pipe("overhead = 'ethernet'").framing), (24, None));
    let framing = |packet, cells| Some(Framing { packet, cells });
    assert_eq!(pipe("overhead = -14").framing, framing(-14, None));
    let cells = NonZeroU32::new(48).map(|payload| Cells { payload, overhead: 5 });
    assert_eq!(pipe("overhead = { bytes = 8, cell = 48, cell_overhead = 5 }").framing, framing(8, cells));
    assert_eq!(parse_change("overhead = 4").unwrap().framing, Some(None));
    let ms = Duration::from_ms;
    let slots = |wait, packets, bytes: Option<u64>| {
        Some(Box::new(SlotSpec { wait, packets, bytes: bytes.map(Bytes) }))
    };
    assert_eq!(pipe("slots = '2ms'").slots, slots(SlotWait::Between(ms(2), ms(2)), None, None));
    let words = "slots = { min = '1ms', max = '2ms', packets = 32, bytes = '64KiB' }";
    assert_eq!(pipe(words).slots, slots(SlotWait::Between(ms(1), ms(2)), Some(32), Some(65536)));
    let law = JitterLaw::Normal { sd: ms(1) };
    let words = "slots = { mean = '8ms', law = { law = 'normal', sd = '1ms' } }";
    assert_eq!(pipe(words).slots, slots(SlotWait::Law(ms(8), law), None, None));
    assert_eq!(parse_change("slots = 'none'").unwrap().slots, Some(None));
    assert_eq!(pipe("state = 'down'").state, LinkState::Down);
    assert_eq!(parse_change("state = 'up'").unwrap().state, Some(LinkState::Up));
    assert_eq!(pipe("loss = { probability = '1%', ecn = true }").loss_ecn, Ecn::Mark);
}

#[test]
fn what_happens_under_way_has_its_words() {
    let ms = Duration::from_ms;
    let jitter = |text: &str| *pipe_with(&format!("jitter = {text}")).jitter.unwrap();
    let plain = |law| JitterSpec { law, correlation: JitterCorrelation::None, order: Reorder::Never };
    assert_eq!(pipe_with("jitter = 'none'").jitter, None);
    assert_eq!(
        jitter("{ law = 'uniform', half_width = '2ms' }"),
        plain(JitterLaw::Uniform { half_width: ms(2) })
    );
    let normal = JitterSpec {
        law: JitterLaw::Normal { sd: ms(2) },
        correlation: JitterCorrelation::HalfLife(ms(50)),
        order: Reorder::Drop,
    };
    assert_eq!(jitter("{ law = 'normal', sd = '2ms', half_life = '50ms', reorder = 'drop' }"), normal);
    let law = JitterLaw::Normal { sd: ms(2) };
    let like_tc = JitterSpec { correlation: JitterCorrelation::PerPacket(p(25.0)), ..plain(law) };
    assert_eq!(jitter("{ law = 'normal', sd = '2ms', correlation = '25%' }"), like_tc);
    let law = JitterLaw::Lognormal { mean: ms(3), sd: ms(2) };
    assert_eq!(jitter("{ law = 'lognormal', mean = '3ms', sd = '2ms' }"), plain(law));
    let law = JitterLaw::Pareto { mean: ms(3), shape: 3.0 };
    assert_eq!(jitter("{ law = 'pareto', mean = '3ms', shape = 3 }"), plain(law));
    assert_eq!(
        jitter("{ law = 'exponential', mean = '3ms' }"),
        plain(JitterLaw::Exponential { mean: ms(3) })
    );
    let law = JitterLaw::Table([1_000_000_000, 2_000_000_000].into());
    assert_eq!(jitter("{ law = 'table', values = ['2ms', '1ms'] }"), plain(law));
    assert_eq!(
        jitter("{ law = 'trace', values = ['2ms', '1ms'] }"),
        plain(JitterLaw::Trace([ms(2), ms(1)].into()))
    );
    let half = Chance { probability: p(25.0), correlation: p(50.0) };
    let pipe = pipe_with("reorder = '25%'\nduplicate = '25%'\ncorrupt = '25%'");
    let quarter = Chance::from(p(25.0));
    assert_eq!(pipe.reorder, Some(ReorderSpec { chance: quarter, gap: 1 }));
    assert_eq!((pipe.duplicate, pipe.corrupt), (quarter.into(), Some(CorruptSpec::Packets(quarter))));
    let table = "{ probability = '25%', correlation = '50%'";
    let pipe = pipe_with(&format!(
        "reorder = {table}, gap = 5 }}\nduplicate = {table} }}\ncorrupt = {{ bits = 1e-6 }}"
    ));
    assert_eq!(pipe.reorder, Some(ReorderSpec { chance: half, gap: 5 }));
    let bits = CorruptSpec::Bits(Probability::new(1e-6).unwrap());
    assert_eq!((pipe.duplicate, pipe.corrupt), (half.into(), Some(bits)));
    assert_eq!(
        pipe_with("loss = { probability = '25%', correlation = '50%' }").loss,
        LossSpec::Correlated(half)
    );
}

#[test]
fn a_change_is_read_with_the_words_of_the_spec() {
    let change = parse_change("rate = 'unlimited'\nqueue = { kind = 'codel' }\nloss = '2%'").unwrap();
    let expected = Change {
        rate: Some(None),
        queue: Some(QueueSpec::Codel(CodelSpec::default())),
        loss: Some(LossSpec::Uniform(p(2.0))),
        ..Change::default()
    };
    assert_eq!(change, expected);
    let wrong =
        |text| parse_change(text).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!(wrong("dealy = '1ms'"), "1:1: a link has no key 'dealy'; write delay");
    assert_eq!(
        wrong(""),
        "1:1: nothing to change; write one of rate, overhead, delay, loss, queue, jitter, reorder, duplicate, corrupt, slots, cross, state"
    );
    assert!(wrong("rate = 'x").starts_with("1:"));
}

#[test]
fn a_link_without_queue_gets_its_bandwidth_times_round_trip_and_says_so() {
    let text = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '100Mbit'\ndelay = '30ms'\n\
                [[link]]\nbetween = ['a', 'b']\nrate = '1Mbit'\n[[link]]\nbetween = ['a', 'b']\n";
    let net = topology(text);
    // 100 Mbit/s × 60 ms = 750 000 bytes = 500 packets.
    assert_eq!(net.links[0].pipes[0].queue, QueueSpec::DropTail(Limit::Packets(500)));
    assert_eq!(net.links[1].pipes[1].queue, QueueSpec::DropTail(Limit::Packets(50)));
    assert_eq!(net.links[2].pipes[0].queue, QueueSpec::default());
    let rule = "(at least 50, at least rate × round trip)";
    assert_eq!(
        warnings(text),
        [
            format!("3:1: no queue given for a-b: drop-tail of 500 packets {rule}"),
            format!("7:1: no queue given for a-b-2: drop-tail of 50 packets {rule}"),
        ]
    );
}

#[test]
fn events_come_in_the_order_of_time() {
    let net = topology(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = '5p'\n\
         [[event]]\nat = '2s'\nlink = 'a-b'\nrate = '1Mbit'\n\
         [[event]]\nat = '1s'\nlink = 'a-b'\ndirection = 'b_to_a'\ndelay = '9ms'\nloss = '0%'",
    );
    let first =
        Change { delay: Some(Duration::from_ms(9)), loss: Some(LossSpec::Never), ..Change::default() };
    let second = Change { rate: Some(rate("1Mbit")), ..Change::default() };
    let at = |s| Time::ZERO + Duration::from_secs(s);
    assert_eq!(
        net.events,
        [
            Event { at: at(1), link: LinkId(0), direction: Direction::Backward, change: first },
            Event { at: at(2), link: LinkId(0), direction: Direction::Both, change: second },
        ]
    );
}

#[test]
fn what_is_given_by_link_lands_on_its_interface() {
    let net = topology(
        "[host.a]\naddress = '192.168.7.9/24'\nroutes = { default = '192.168.7.1' }\n[host.b]\nport = 'eth1'\n[router.r]\n\
         addresses = { up = '192.168.7.1/24', b-r = ['10.1.1.1/24', 'fd01::1/64'] }\nmac = { up = '02:00:00:00:00:03' }\n\
         [[link]]\nbetween = ['a', 'r']\nname = 'up'\n[[link]]\nbetween = ['b', 'r']\nmtu = 9000",
    );
    let addresses = |node: usize, i: usize| {
        net.nodes[node].interfaces[i].addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(addresses(0, 0), "192.168.7.9/24 fd00:0:0:1::2/64");
    assert_eq!(addresses(1, 0), "10.1.1.2/24 fd01::2/64");
    assert_eq!(addresses(2, 0), "192.168.7.1/24 fd00:0:0:1::3/64");
    assert_eq!(addresses(2, 1), "10.1.1.1/24 fd01::1/64");
    assert_eq!(net.nodes[0].kind.routes(), [("0.0.0.0/0".parse().unwrap(), "192.168.7.1".parse().unwrap())]);
    assert_eq!(net.nodes[1].kind, NodeKind::port("eth1".parse().unwrap()));
    assert_eq!(net.nodes[1].interfaces[0].mac, None);
    assert_eq!(net.nodes[1].interfaces[0].mtu, 9000);
    // 02:00:00:00:00:03 was r's on the second link until it was given away.
    let macs: BTreeSet<_> = net.nodes.iter().flat_map(|n| &n.interfaces).filter_map(|i| i.mac).collect();
    assert_eq!(macs.len(), 3);
}

/// Each spec with all that is said about it, in full.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = 10Mbit\ndelay = '5ms'\ndelay = '6ms'",
        &[
            "5:8: this is not TOML: string values must be quoted, expected literal string; write it in \"quotes\"",
            "7:1: this is not TOML: duplicate key; write it once",
        ],
    ),
    ("", &["1:1: there is no host, so nothing can enter or leave; write [host.a]"]),
    ("[host.a", &["1:8: this is not TOML: unclosed table, expected `]`; write the closing bracket or quote"]),
    ("[hots.a]\n[host.b]", &["1:2: the spec has no key 'hots'; write host"]),
    (
        "[host.a]\nadress = '10.0.0.1/24'\n[host.'x y']\n[router.a]",
        &[
            "2:1: host a has no key 'adress'; write address",
            "3:7: 'x y' cannot be the name of a node; write up to 32 letters, digits, '_', '-', '.', a letter or digit first",
            "4:9: there is already a node 'a'; write another name: hosts, routers and switches share one set",
        ],
    ),
    (
        "seed = -1\n[host.alice]\n[host.bob]\n[[link]]\nbetween = ['alice', 'bbo']\nrate = '0Mbit'\ndelay = 25\nloss = '101%'\n\
         queue = '0p'\noverhead = 'wifi'\nmtu = 20\nalice_to_bob = {}\nlos = '1%'\n",
        &[
            "1:8: seed = -1 is out of range; write a number from 0 to 18446744073709551615",
            "5:21: there is no node 'bbo'; write \"bob\"",
            "6:8: '0Mbit' is not a rate: it must be 1bit … 200Tbit (leave it out for unlimited); write rate = \"10Mbit\"",
            "7:9: delay is a whole number, not text; write delay = \"25ms\"",
            "8:8: '101%' is not a probability: it must be 0 … 100 %; write loss = \"1%\"",
            "9:9: queue = \"0p\" drops every packet; write queue = \"50p\"",
            "10:12: overhead 'wifi' is not known; write overhead = \"ethernet\", or a number of bytes",
            "11:7: mtu = 20 is out of range; write a number from 68 to 65521",
            "13:1: link has no key 'los'; write loss",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nrate = '10 Mbyte'\n[[link]]\nbetween = ['a', 'a']\n[[link]]\nbetween = ['a']\n\
         [[link]]\nbetween = ['a', 'b']\ndelay = '-5ms'\nspeed = 3\nb_to_c = {}\nname = 'l'\n[[link]]\nbetween = ['b', 'a']\nname = 'l'",
        &[
            "3:1: link has no ends; write between = [\"a\", \"b\"]",
            "4:8: '10 Mbyte' is not a rate: the unit 'Mbyte' is not known (bit, kbit, Mbit, Gbit, Tbit); write rate = \"10Mbit\"",
            "6:11: the link joins a node to itself; write between = [\"a\", \"b\"]",
            "8:11: between is not a list of two nodes; write between = [\"a\", \"b\"]",
            "11:9: '-5ms' is not a duration: it cannot be negative; write delay = \"25ms\"",
            "12:1: link has no key 'speed'; write one of between, name, mtu, rate, overhead, delay, loss, queue, jitter, reorder, duplicate, corrupt, slots, cross, state, preset, group, trace, interfaces, a_to_b, b_to_a",
            "13:1: link has no key 'b_to_c'; write b_to_a",
            "17:8: there is already a link 'l'; write another name",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[link]\nbetween = ['a', 'b']",
        &["3:1: link is one table, not a list of them; write [[link]]"],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '1Mbit'\na_to_b = { rate = '2Mbit', lss = '1%' }\nb_to_a = { rate = '3Mbit' }",
        &[
            "6:28: a_to_b has no key 'lss'; write loss",
            "7:10: rate is given for the link and for both of its directions; remove rate from the link or from a direction",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'rde', limit = '5p' }\n[[link]]\nbetween = ['a', 'b']\n\
         queue = { kind = 'red', min = '9p', max = '3p' }\n[[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'red', limit = '50p', min = '1KiB' }\n\
         [[link]]\nbetween = ['a', 'b']\nqueue = { limit = '5p' }\n[[link]]\nbetween = ['a', 'b']\nqueue = 50",
        &[
            "5:18: queue kind 'rde' is not known; write \"red\"",
            "8:43: max is not above min; write a larger max, for example three times min",
            "11:46: min is in another unit than limit; write min = \"5p\"",
            "14:9: queue has no kind; write kind = one of \"drop-tail\", \"drop-head\", \"sojourn\", \"red\", \"ared\", \"codel\", \"fq-codel\", \"pie\", \"dualpi2\", \"token-bucket\", \"policer\", \"mahimahi\", \"prio\", \"drr\"",
            "17:9: queue is a whole number, not text; write queue = \"50p\"",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nloss = { kind = 'gilbert', to_bad = 1 }\n[[link]]\nbetween = ['a', 'b']\n\
         loss = { kind = 'four-state', p13 = 0.9, p31 = 0.5, p14 = 0.2, at = 'egres' }\n[[link]]\nbetween = ['a', 'b']\nloss = ['1%', '2%']\n\
         queue = { kind = 'pie', alpha = -1, ecn = 1 }\n[[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'codel', target = '0ms' }\n\
         loss = { kind = 'gilbert-elliott', to_bad = '1%' }",
        &[
            "5:17: 'gilbert' is not a kind of loss; write one of uniform, gilbert-elliott, four-state, runs, outage, packets, bytes",
            "8:8: p13 + p14 is 110.000 %, more than 100 %; write smaller values: both are transitions from the same state",
            "8:69: 'egres' is not a place of loss; write \"egress\"",
            "11:15: loss at ingress is given twice; write one of each, at = \"ingress\" and at = \"egress\"",
            "12:33: alpha = -1 is out of range; write a number from 0 to 1000",
            "15:36: target is 0; write target = \"5ms\"",
            "16:8: loss has no to_good; write to_good = \"25%\"",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\njitter = '2ms'\nreorder = { gap = 0 }\n[[link]]\nbetween = ['a', 'b']\n\
         jitter = { law = 'gauss', sd = '1ms' }\n[[link]]\nbetween = ['a', 'b']\njitter = { law = 'pareto', mean = '1ms', shape = 1.0, reorder = 'no' }\n\
         [[link]]\nbetween = ['a', 'b']\njitter = { law = 'table', values = [] }\ncorrupt = '200%'\nduplicate = { correlation = 0.5 }",
        &[
            "5:10: jitter is text, not a table; write jitter = { law = \"normal\", sd = \"2ms\" }",
            "6:11: reorder has no probability; write probability = \"1%\"",
            "6:19: gap = 0 is out of range; write a number from 1 to 4294967295",
            "9:18: 'gauss' is not a law of jitter; write one of uniform, normal, lognormal, pareto, exponential, table, trace",
            "12:50: shape = 1 is out of range; write a number above 1, up to 1000",
            "12:65: 'no' is not a kind of reordering; write one of never, allow, drop",
            "15:36: values is not a list of times; write values = [\"1ms\", \"2ms\"], or file = \"delays.csv\"",
            "16:11: '200%' is not a probability: it must be 0 … 100 %; write corrupt = \"1%\"",
            "17:13: duplicate has no probability; write probability = \"1%\"",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nslots = { min = '2ms', max = '1ms' }\n[[link]]\nbetween = ['a', 'b']\n\
         slots = { packets = 0 }\nstate = 'dead'\noverhead = -1501\n[[link]]\nbetween = ['a', 'b']\noverhead = { cell_overhead = 5 }\n\
         slots = { min = '1ms', law = { law = 'normal', sd = '1ms' } }\nloss = { probability = '1%', at = 'egress', ecn = true }\n\
         [[link]]\nbetween = ['a', 'b']\njitter = { law = 'normal', sd = '2ms', half_life = '1s', correlation = '1%' }\n\
         slots = { law = { law = 'exponential', mean = '1ms', half_life = '2ms' } }",
        &[
            "5:30: max is below min; write a longer max",
            "8:9: slots have no time; write min = \"800us\", max = \"1ms\"",
            "8:21: packets = 0 is out of range; write a number from 1 to 4294967295",
            "9:9: 'dead' is not a state of a link; write one of up, down",
            "10:12: overhead = -1501 is out of range; write a number from -1500 to 1500",
            "13:30: cell_overhead is given without cell; write cell = 48 too",
            "14:17: slots are given by their bounds and by a law; write min and max, or mean and law",
            "15:8: loss at the egress cannot mark packets; write ecn = true with at = \"ingress\"",
            "18:72: jitter has a half_life and a correlation; write one of them: correlation in time, or from packet to packet",
            "19:9: slots are drawn independently; remove half_life, correlation and reorder",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'prio', bands = [{ dscp = 'EG', limit = '5p' }, { limit = '5p' }, {}] }\n\
         loss = { kind = 'runs', passed = [0], lost = [0] }\n\
         [[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'drr', classes = [{ dscp = 1, limit = '5p' }, { dscp = [1, 64], limit = '5p' }] }\n\
         loss = { kind = 'outage', for = '2s', every = '1s' }\n\
         [[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'token-bucket', rate = '1Mbit', burst = '2KiB', limit = '5p', peak = '1Mbit' }\n\
         loss = { kind = 'packets' }\n\
         [[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'dualpi2', shift = '1ms', classic_share = 10 }\nloss = { kind = 'packets', numbers = [0] }\n\
         [[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'token-bucket', rate = '1Mbit' }",
        &[
            "5:44: 'EG' is not a DSCP; write EF, AF11 … AF43, CS0 … CS7, LE, VA, DF, or 0 … 63",
            "5:84: two entries of bands have no dscp; write dscp in all entries but one: it takes the rest",
            "5:84: entry 3 of bands has no limit; write limit = \"50p\"",
            "6:8: the longest run has 0 packets; write 1 to 4294967295",
            "9:35: every entry of classes has a dscp, so some packets have no class; leave dscp out of one entry: it takes the rest",
            "9:74: DSCP 1 is in two entries of classes; write it in one",
            "9:77: dscp = 64 is out of range; write a number from 0 to 63",
            "10:47: every is not longer than for; write a longer time between the starts of outages",
            "13:87: peak 1Mbit is not above rate 1Mbit: it bounds bursts above the rate; write a higher peak, or none",
            "14:8: loss has no list of numbers; write numbers = [1, 17, 18]",
            "17:60: queue has a shift and a classic_share; write one: a shifted FIFO, or a weighted round robin",
            "18:39: numbers = 0 is out of range; write a number from 1 to 9223372036854775807",
            "21:9: a token bucket needs a rate and a burst; write rate = \"1Mbit\", burst = \"15KiB\"",
        ],
    ),
    (
        "[host.a]\naddress = '10.0.0.2'\nmac = 'zz'\n[host.b]\naddresses = { a_b = '10.0.0.3/24' }\n[switch.s]\naddress = '10.0.0.4/24'\n\
         [host.c]\naddress = '10.0.0.9/24'\n[[link]]\nbetween = ['a', 'b']\n[[link]]\nbetween = ['c', 'b']\n[[link]]\nbetween = ['c', 's']",
        &[
            "2:11: '10.0.0.2' has no prefix length; write \"10.0.0.2/24\"",
            "3:7: 'zz' is not a MAC address; write six bytes in hexadecimal, for example \"02:00:00:00:00:2a\"",
            "5:21: b has no link 'a_b'; write a-b",
            "7:11: switch s forwards frames and has no address; remove it, or write [router.s]",
            "9:11: c has 2 links; write addresses = { c-b = … }",
        ],
    ),
    (
        "[host.a]\naddress = '10.0.0.2/24'\n[host.b]\naddress = '10.0.0.2/24'\n[host.c]\naddress = '10.9.0.2/24'\n[host.d]\naddress = '224.0.0.1/24'\n\
         [switch.s]\n[[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['c', 's']\n[[link]]\nbetween = ['d', 's']",
        &[
            "4:11: 10.0.0.2 is already the address of a; write an address of its own, or none to have one assigned",
            "6:11: 10.9.0.2/24 is outside 10.0.0.0/24, the subnet of its link; write an address in 10.0.0.0/24",
            "8:11: 224.0.0.1 is not a unicast address of a host (multicast); write a unicast address such as 10.0.1.2/24",
            "8:11: 224.0.0.1/24 is outside 10.0.0.0/24, the subnet of its link; write an address in 10.0.0.0/24",
        ],
    ),
    (
        "[host.a]\naddress = '10.0.0.2/24'\nmac = '02:00:00:00:00:09'\n[router.r]\naddresses = { b-r = '10.0.0.9/24' }\nroutes = { '10.7.0.0/16' = '10.8.0.1', 'x' = '10.0.0.1', '10.6.0.0/16' = 'b' }\n\
         [host.b]\nmac = '02:00:00:00:00:09'\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['b', 'r']",
        &[
            "6:40: 'x' is not a subnet to route to; write for example \"192.168.0.0/16\", or default",
            "6:74: 'b' is not an address to route by; write the address of a neighbour, for example \"10.0.1.7\"",
        ],
    ),
    (
        "[host.a]\naddress = '10.0.0.2/24'\nmac = '02:00:00:00:00:09'\n[router.r]\naddresses = { b-r = '10.0.0.9/24' }\nroutes = { '10.7.0.0/16' = '10.8.0.1' }\n\
         [host.b]\nmac = '02:00:00:00:00:09'\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['b', 'r']",
        &[
            "5:21: 10.0.0.0/24 is already the subnet of link a-r; write another subnet: each link has its own",
            "6:28: 10.8.0.1 is not on a subnet of this node; write the address of a neighbour",
            "8:7: 02:00:00:00:00:09 is already the hardware address of a; write one of its own, or none to have one assigned",
        ],
    ),
    (
        "[host.a]\nport = 'eth0'\n[host.b]\nport = 'eth0'\n[host.c]\nport = 'a b'\n[[link]]\nbetween = ['a', 'b']\n[[link]]\nbetween = ['a', 'c']",
        &[
            "1:7: a has one port and several links; write a host for each",
            "3:7: port eth0 is already used by a; write another port",
            "6:8: 'a b' cannot be the name of an interface; write one that `ip link` shows",
        ],
    ),
    (
        "[host.a]\nport = 'dpdk:eth0'\n[host.b]\nport = 'memory:x'\n[[link]]\nbetween = ['a', 'b']",
        &[
            "2:8: 'dpdk' is not a kind of port; write IFACE, packet:IFACE, xdp:IFACE, xdp-native:IFACE, xdp-generic:IFACE, \
             tap:IFACE, memory",
            "4:8: a port of the kind memory has no interface; write memory",
        ],
    ),
    (
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n[[event]]\nlink = 'a_b'\nrate = '1Mbit'\n[[event]]\nat = '1s'\nlink = 'a-b'\n\
         [[event]]\nat = '1s'\nlink = 'a-b'\ndirection = 'up'\nloss = '1%'\ndealy = '1s'",
        &[
            "5:1: event has no time; write at = \"10s\"",
            "6:8: there is no link 'a_b'; write \"a-b\"",
            "8:1: the event changes nothing; write one of rate, overhead, delay, loss, queue, jitter, reorder, duplicate, corrupt, slots, cross, state",
            "14:13: 'up' is not a direction of link a-b; write \"a_to_b\" or \"b_to_a\"",
            "16:1: event has no key 'dealy'; write delay",
        ],
    ),
    (
        "[host.a]\naddress = '10.0.0.1/30'\n[host.b]\n[host.c]\n[switch.s]\n[[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['b', 's']\n[[link]]\nbetween = ['c', 's']",
        &["10:1: 10.0.0.0/30 has no address left for this interface; write a shorter prefix length"],
    ),
];

#[test]
fn every_mistake_is_reported_at_once_with_what_to_write() {
    for (text, expected) in MISTAKES {
        assert_eq!(mistakes(text), *expected, "{text}");
    }
}

#[test]
fn what_works_but_may_surprise_is_a_warning() {
    let text = "[host.a]\n[host.b]\n[host.c]\n[host.d]\n[host.e]\n[[link]]\nbetween = ['a', 'b']\nmtu = 600\n[[link]]\nbetween = ['c', 'd']";
    assert_eq!(
        warnings(text),
        [
            "3:7: no links join c, d to a",
            "5:7: e has no link",
            "6:1: link a-b: IPv6 needs an mtu of 1280, so it gets no IPv6 addresses",
        ]
    );
    assert_eq!(topology(text).nodes[0].interfaces[0].addresses.len(), 1);
    let text = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = { kind = 'drop-tail', limit = '20ms' }\n\
                [[link]]\nbetween = ['a', 'b']\nqueue = '9p'\ntrace = { poisson = '1Mbit' }";
    assert_eq!(
        warnings(text),
        ["3:1: link a-b: its queue is limited in time and never drops, because the link has no rate"]
    );
}

#[test]
fn values_beside_opportunities_that_last_are_refused() {
    const SAID: &str = "a trace says when packets leave, in place of rate, overhead and slots";
    const END: &str = "or end the trace in the spec (end = \"reset\" or \"stop\")";
    let with = |link: &str, rest: &str| {
        format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = '9p'\n{link}\n{rest}")
    };
    let trace = "trace = { poisson = '1Mbit' }";
    let one_way = "a_to_b = { trace = { poisson = '1Mbit' } }";
    let event = "[[event]]\nat = '5s'\nlink = 'a-b'\n";
    for (link, rest, places) in [
        (format!("rate = '1Mbit'\nslots = '1ms'\n{trace}"), String::new(), &["6:8: rate", "7:9: slots"][..]),
        (format!("a_to_b = {{ overhead = 24 }}\n{trace}"), String::new(), &["6:23: overhead"]),
        (format!("rate = '1Mbit'\n{one_way}"), String::new(), &[]),
        (format!("{one_way}\nb_to_a = {{ rate = '1Mbit' }}\nrate = '2Mbit'"), String::new(), &["8:8: rate"]),
        (trace.to_owned(), format!("{event}rate = '1Mbit'\ndelay = '1ms'"), &["10:8: rate"]),
        (one_way.to_owned(), format!("{event}direction = 'b_to_a'\nrate = '1Mbit'"), &[]),
        // Until its traces start a link has its own values.
        (format!("rate = '1Mbit'\ngroup = 'g'\n{trace}"), "[group.g]\nstart = '9s'".to_owned(), &[]),
        (format!("group = 'g'\n{trace}"), format!("[group.g]\nstart = '9s'\n{event}rate = '1Mbit'"), &[]),
    ] {
        let text = with(&link, &rest);
        let expected: Vec<String> = places
            .iter()
            .map(|place| {
                let (at, key) = place.rsplit_once(' ').unwrap();
                format!("{at} link a-b: {SAID}; leave {key} out, {END}")
            })
            .collect();
        match parse(&text) {
            Ok(_) => assert!(expected.is_empty(), "{text}"),
            Err(_) => assert_eq!(mistakes(&text), expected, "{text}"),
        }
    }
    let ends = "trace = { poisson = '1Mbit', length = '9s', end = 'reset' }";
    let said = warnings(&with(ends, &format!("{event}rate = '1Mbit'")));
    // The last opportunity within 9 s ends it.
    assert!(said.len() == 1 && said[0].starts_with(&format!("10:8: link a-b: {SAID}, until 89")), "{said:?}");
}

#[test]
fn an_event_that_a_trace_undoes_is_a_warning() {
    let text = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nqueue = '9p'\ntrace = { file = 't.csv', end = 'hold' }\n\
                [[event]]\nat = '5s'\nlink = 'a-b'\nrate = '1Mbit'\n[[event]]\nat = '10s'\nlink = 'a-b'\nrate = '1Mbit'\n\
                [[event]]\nat = '11s'\nlink = 'a-b'\nrate = '1Mbit'";
    let files = |_: &str| Ok("duration_s,rate_mbps\n10,3\n10,4\n".to_owned());
    let (_, warnings) = read(text, &files).unwrap();
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let expected =
        "link a-b: the trace t.csv sets its rate: the change lasts until the next step of the trace";
    assert_eq!(said, ["10:8", "14:8"].map(|place| format!("{place}: {expected}")));
}

#[test]
fn laws_that_contradict_each_other_or_files_that_are_not_there_are_mistakes() {
    let link = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
    for (values, expected) in [
        (
            "jitter = { law = 'normal', sd = '2ms', reorder = 'never' }\nreorder = '25%'",
            "6:11: jitter has reorder = \"never\", and reorder lets packets overtake; remove one of them",
        ),
        (
            "jitter = { law = 'table', values = ['1ms'], file = 'delays.csv' }",
            "5:52: jitter has values and a file; keep one of them",
        ),
        (
            "jitter = { law = 'table', file = 'delays.csv' }",
            "5:34: delays.csv: no files can be read here; write the path of a file, relative to this file",
        ),
        (
            "queue = { kind = 'ared', target = '5ms', min = '5p' }",
            "5:35: queue has thresholds, and a target from which thresholds are computed; keep target, or min and max",
        ),
        (
            "queue = { kind = 'ared', weight = 0.1 }",
            "5:9: the weight is computed from the rate; remove weight, or write min and max too",
        ),
        ("queue = { kind = 'drop-tail', limit = '0ms' }", "5:39: limit is 0; write limit = \"20ms\""),
    ] {
        assert_eq!(mistakes(&format!("{link}{values}")), [expected], "{values}");
    }
}

proptest::proptest! {
    #[test]
    fn random_text_is_refused_not_crashed_on(text in "(\\PC|[\\[\\]='\"{}.\n]|host|link|between|rate){0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_mangled_spec_is_read_or_refused(cut in 0usize..600, with in "[\\PC\n]{0,5}", until in 0usize..40) {
        let mut text: Vec<char> = LEAST.chars().collect();
        let from = cut.min(text.len());
        let until = (from + until).min(text.len());
        text.splice(from..until, with.chars());
        let _ = parse(&text.into_iter().collect::<String>());
    }
}

#[test]
fn the_engine_table_says_how_to_keep_time() {
    let with = |table: &str| {
        let text = format!("[engine]\n{table}\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n");
        read(&text, &|_| Err(String::new())).unwrap().0.engine
    };
    let all = with("tolerance = '200us'\nlate = 'drop'\nidle = 'busy'\nworkers = 2");
    assert_eq!(all.tolerance, Some(Duration::from_us(200)));
    assert_eq!((all.late, all.idle), (Some(Late::Drop), Some(Idle::Busy)));
    assert_eq!(all.workers, Some(Workers::Count(2.try_into().unwrap())));
    assert_eq!(with("workers = [3, 1]").workers, Some(Workers::Cores(vec![3, 1])));
    assert_eq!(with("workers = 'auto'").workers, Some(Workers::Auto));
    assert_eq!(with("data_path = 'user'").data_path, Some(DataPathChoice::User));
    assert_eq!(with(""), EngineSettings::default());
}

#[test]
fn mistakes_in_the_engine_table_say_what_to_write() {
    let text = "[engine]\ntolerance = '0s'\nlate = 'dorp'\nidle = 'lazy'\nworkers = []\nworker = 1\n";
    assert_eq!(
        mistakes(text)[..5],
        [
            "2:13: a tolerance of 0 cannot be held; write tolerance = \"1ms\"",
            "3:8: 'dorp' is not a value of late; write \"drop\"",
            "4:8: 'lazy' is not a value of idle; write \"busy\" or \"save\" or \"sleep\"",
            "5:11: workers is an empty list; write workers = [0], or \"auto\"",
            "6:1: [engine] has no key 'worker'; write workers",
        ]
    );
}
