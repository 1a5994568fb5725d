//! A link in a machine is the link of a network: the same values and the same frames give the same
//! departures, to the picosecond.

use fastpath_link::{Alteration, Fate, Packet, Pipe, Verdict};
use fastpath_sim::workload::{Arrivals, Workload};
use fastpath_sim::{Machine, Outcome, Program, Visit, observe, run, shipped};
use fastpath_units::{Duration, Rng, Time};
use proptest::prelude::*;

/// A machine of one link with these values.
fn machine(values: &str) -> Machine {
    let text = format!(
        "name = 'm'\nsource = 's'\nports = {{ count = 1, rate = '10Gbit' }}\n[[link]]\nname = 'link'\n{values}"
    );
    Machine::parse("m.toml", &text).unwrap()
}

fn program() -> Program {
    Program::parse("p.toml", "name = 'p'\nsource = 's'\n[[stage]]\nname = 'cross'\non = 'link'").unwrap()
}

/// The number of each frame that leaves, and when it entered and left.
type Departures = Vec<(u64, Time, Time)>;

fn simulated(values: &str, frames: &[(Time, u32)], seed: u64) -> (Departures, Outcome) {
    let arrivals = Arrivals::List(frames.to_vec());
    let duration = Duration::from_secs(1000);
    let workload = Workload { arrivals, duration, flows: 1, ..Workload::default() };
    let mut departures = Vec::new();
    let mut observer = |visit: Visit| departures.push((visit.packet, visit.start, visit.end));
    let outcome = observe(&machine(values), &program(), &workload, seed, &mut observer).unwrap();
    (departures, outcome)
}

/// The departures from direction a → b of the only link of a network with these values.
fn in_a_network(values: &str, frames: &[(Time, u32)], seed: u64) -> Departures {
    let text = format!("host = {{ a = {{}}, b = {{}} }}\n[[link]]\nbetween = ['a', 'b']\n{values}");
    let (topology, _) = fastpath_spec::parse(&text).unwrap();
    let mut pipe: Pipe<(u64, Time)> = Pipe::new(&topology.links[0].pipes[0], Rng::stream(seed, 0));
    let mut departures = Vec::new();
    let pop_until = |pipe: &mut Pipe<(u64, Time)>, limit: Time, departures: &mut Departures| {
        while let Some(now) = pipe.next_at().filter(|&at| at <= limit) {
            while let Some(exit) = pipe.pop(now) {
                let (number, entered) = exit.packet.data;
                match exit.fate {
                    Fate::Dropped(_) => continue,
                    Fate::Delivered { .. } => {}
                    Fate::Altered(Alteration { copies, .. }) => {
                        for _ in 0..copies {
                            match pipe.copies_at() {
                                Some(at) => pipe.put_copy(at, exit.packet),
                                None => departures.push((number, entered, exit.at)),
                            }
                        }
                    }
                }
                departures.push((number, entered, exit.at));
            }
        }
    };
    for (number, &(at, size)) in (0..).zip(frames) {
        pop_until(&mut pipe, at, &mut departures);
        let packet = Packet::new(size - 4, (number, at));
        let _: Verdict<_> = pipe.push(at, packet);
    }
    pop_until(&mut pipe, Time::MAX, &mut departures);
    departures
}

fn one_of(values: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(values)
        .prop_map(|value| if value.is_empty() { String::new() } else { format!("{value}\n") })
}

/// Values of a link: every queue discipline and every impairment.
fn values() -> impl Strategy<Value = String> {
    let rate = one_of(&["", "rate = '1Mbit'", "rate = '7Mbit'", "rate = '100Mbit'"]);
    let delay = one_of(&["", "delay = '3ms'", "delay = '20ms'"]);
    let loss = one_of(&["", "loss = '5%'", "loss = '40%'"]);
    let queue = one_of(&[
        "",
        "queue = '10p'",
        "queue = '20ms'",
        "queue = { kind = 'drop-head', limit = '8p' }",
        "queue = { kind = 'sojourn', longest = '10ms', limit = '30p' }",
        "queue = { kind = 'red', limit = '20p' }",
        "queue = { kind = 'ared', limit = '40p' }",
        "queue = { kind = 'codel', limit = '30p' }",
        "queue = { kind = 'fq-codel' }",
        "queue = { kind = 'pie', limit = '30p' }",
        "queue = { kind = 'dualpi2' }",
        "queue = { kind = 'token-bucket', rate = '500kbit', burst = '3KiB', limit = '20p' }",
        "queue = { kind = 'prio', bands = [{ dscp = 'EF', limit = '9p' }, { limit = '20p' }] }",
        "queue = { kind = 'drr', classes = [{ dscp = 'EF', limit = '9p' }, { quantum = '400B', limit = '20p' }] }",
    ]);
    let jitter = one_of(&["", "jitter = { law = 'normal', sd = '2ms' }"]);
    let rest = one_of(&[
        "",
        "duplicate = '20%'",
        "reorder = '25%'",
        "reorder = { probability = '50%', gap = 3 }",
        "corrupt = '10%'",
        "overhead = 'ethernet'",
        "slots = { min = '1ms', max = '2ms', packets = 4 }",
    ]);
    (rate, delay, loss, queue, jitter, rest).prop_map(|(a, b, c, d, e, f)| format!("{a}{b}{c}{d}{e}{f}"))
}

/// Frames in bursts and pauses, some at the same instant.
fn frames() -> impl Strategy<Value = Vec<(Time, u32)>> {
    let gap = prop_oneof![Just(0), 1..3_000_000_000_u64, 1..100_000_000_u64];
    proptest::collection::vec((gap, 64..=1518_u32), 1..300).prop_map(|gaps| {
        let mut now = Time::ZERO;
        let frame = |(gap, size)| {
            now += Duration::from_ps(gap);
            (now, size)
        };
        gaps.into_iter().map(frame).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_link_of_a_machine_departs_as_in_a_network(values in values(), frames in frames(), seed: u64) {
        let (departures, outcome) = simulated(&values, &frames, seed);
        prop_assert_eq!(&departures, &in_a_network(&values, &frames, seed), "{}", values);
        let dropped: u64 = outcome.dropped.values().sum();
        prop_assert_eq!(outcome.offered + outcome.copied, outcome.forwarded + dropped);
        prop_assert_eq!((outcome.offered, outcome.held), (frames.len() as u64, 0));
        prop_assert_eq!(outcome.forwarded, departures.len() as u64);
    }
}

#[test]
fn every_flow_can_have_its_own_link() {
    let values = "per = 'flow'\nrate = '1Mbit'\ndelay = '5ms'\nqueue = '1000p'";
    let workload: Workload = "constant,rate=400pps,size=1004,flows=8,duration=1s".parse().unwrap();
    let outcome = run(&machine(values), &program(), &workload, 1).unwrap();
    // 50 frames of 8 ms a second on each of 8 links.
    assert_eq!((outcome.units["link"].link.unwrap().links, outcome.forwarded), (8, outcome.offered));
    assert!((outcome.units["link"].busy - 0.4).abs() < 0.03, "{outcome:?}");
    let shared = run(&machine(&values.replace("flow", "unit")), &program(), &workload, 1).unwrap();
    assert!(shared.latency_us.unwrap().mean > 10.0 * outcome.latency_us.unwrap().mean, "{shared:?}");
}

#[test]
fn linkem_and_dummynet_run_over_the_link() {
    for (machine, program) in [("ixp1200", "linkem-link"), ("pc-850mhz-dummynet", "dummynet-link")] {
        let text = shipped::machine_text(machine).unwrap();
        let delay = |delay: &str| {
            let machine = text.set("link.delay", delay).unwrap().machine().unwrap();
            let program = shipped::program(program).unwrap();
            let workload: Workload = "constant,rate=1kpps,size=64,flows=8,duration=200ms".parse().unwrap();
            let outcome = run(&machine, &program, &workload, 1).unwrap();
            assert_eq!(outcome.forwarded, outcome.offered);
            outcome.latency_us.unwrap().mean
        };
        let difference = delay("30ms") - delay("10ms");
        // Ticks of the emulation task round it.
        assert!((difference - 20_000.0).abs() < 130.0, "{machine}: {difference}");
        // Random loss is the link's, and bits per second are.
        let lossy = text.set("link.loss", "10%").unwrap().machine().unwrap();
        let program = shipped::program(program).unwrap();
        let workload: Workload = "constant,rate=10kpps,size=64,flows=8,duration=1s".parse().unwrap();
        let outcome = run(&lossy, &program, &workload, 1).unwrap();
        let lost = outcome.dropped_at("link loss") as f64 / outcome.offered as f64;
        // 10 000 frames: 4 σ are 1.2 %.
        assert!((lost - 0.1).abs() < 0.012, "{machine}: {lost}");
    }
}

#[test]
fn programs_over_the_link_differ_by_the_link_only() {
    for name in ["linkem", "dummynet"] {
        let text = |name: &str| shipped::program_text(name).unwrap().text;
        let stage = "[[stage]]\nname = \"link\"\non = \"link\"\n\n";
        let over = text(&format!("{name}-link"));
        assert_eq!(over.matches(stage).count(), 1);
        assert_eq!(over.replace(stage, "").replace(&format!("{name}-link"), name), text(name));
    }
}

#[test]
fn mistakes_in_a_link_are_those_of_a_network_spec_with_the_line_of_the_machine() {
    let head = "name = 'm'\nsource = 's'\nports = { count = 1, rate = '1Gbit' }\n";
    for (text, line, says) in [
        ("[[link]]\nname = 'l'\nrate = '10'\n", 6, "unit"),
        ("[[link]]\nname = 'l'\ndelay = '1ms'\nqueue = { kind = 'cake' }\n", 7, "kind 'cake' is not known"),
        ("[[link]]\nname = 'l'\nqueue = { kind = 'codel', target = '0s' }\n", 6, "target"),
        ("[[link]]\nname = 'l'\n\nlatency = '1ms'\n", 7, "link l has no key 'latency'; write delay"),
        ("[[link]]\nname = 'l'\nper = 'packet'\n", 6, "unit"),
        ("[[link]]\nrate = '1Mbit'\n", 4, "name"),
        ("[[link]]\nname = 'l'\ntrace = 'lte.csv'\n", 6, "trace"),
    ] {
        let error = Machine::parse("t.toml", &format!("{head}{text}")).unwrap_err();
        assert!(error.mistakes[0].line == line && error.to_string().contains(says), "{text}: {error}");
    }
}
