//! The pipe against its executable specification, with random links, traffic and changes; and
//! properties that every pipe has.

use fastpath_link::oracle::Oracle;
use fastpath_link::{
    AredSpec, Change, Exit, Fate, Limit, LossSpec, Packet, Pipe, PipeSpec, QueueSpec, RedIdle, RedSpec,
};
use fastpath_units::{Bytes, Duration, Probability, Rate, Rng, Time};
use proptest::prelude::*;

/// One call of a pipe.
#[derive(Clone, Debug)]
enum Operation {
    Push {
        len: u32,
        traffic_class: u8,
    },
    Pop,
    Change(Box<Change>),
    /// Turns the pipe into a general pipe.
    Generalise,
}

/// How far time moves before an operation.
#[derive(Clone, Debug)]
enum Gap {
    None,
    Ps(u64),
    /// Thousandths of the transmission time of 1500 bytes.
    Frames(u64),
    /// To the next exit.
    Exit,
    /// To when the next packet to exit leaves or left the queue.
    Departure,
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    prop_oneof![
        Just(None),
        prop::sample::select(vec![
            1,
            3,
            7,
            1_000,
            64_000,
            1_500_000,
            10_000_000,
            100_000_000_000,
            800_000_000_000
        ])
        .prop_map(Rate::from_bps),
        (1u64..=800_000_000_000).prop_map(Rate::from_bps),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![(0u32..8).prop_map(Limit::Packets), (0u64..6000).prop_map(|n| Limit::Bytes(Bytes(n)))]
}

fn probability(max: f64) -> impl Strategy<Value = Probability> {
    (0.0..=max).prop_map(|p| Probability::new(p).expect("0 … 1"))
}

fn red() -> impl Strategy<Value = RedSpec> {
    let idle = prop_oneof![Just(RedIdle::Time), Just(RedIdle::Ns2), Just(RedIdle::Linux)];
    let flags = (any::<(bool, bool)>(), idle);
    (limit(), 0u64..5, 0u64..8, 1u64..1500, probability(1.0), probability(1.0), flags).prop_map(
        |(limit, min, span, unit, weight, max_p, ((gentle, ecn), idle))| {
            let unit = if matches!(limit, Limit::Bytes(_)) { unit } else { 1 };
            let (min, max) = (min * unit, (min + span) * unit);
            RedSpec { limit, min, max, weight, max_p, gentle, ecn, mean_packet: Bytes(unit), idle }
        },
    )
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        Just(QueueSpec::default()),
        limit().prop_map(QueueSpec::DropTail),
        red().prop_map(QueueSpec::Red),
        Just(QueueSpec::Red(RedSpec::default())),
    ]
}

/// Disciplines that fast pipes do not support: a limit in time, and adaptive RED with intervals
/// that are short enough for a test.
fn general_queue() -> impl Strategy<Value = QueueSpec> {
    let longest = prop_oneof![0u64..1_000_000_000, 0u64..1_000_000_000_000];
    let by_time = longest.prop_map(|ps| QueueSpec::DropTailTime(Duration::from_ps(ps)));
    prop_oneof![ared(), by_time]
}

fn is_fast(queue: &QueueSpec) -> bool {
    !matches!(queue, QueueSpec::Ared(_) | QueueSpec::DropTailTime(_))
}

fn ared() -> impl Strategy<Value = QueueSpec> {
    (red(), 1u64..5_000_000_000, prop::option::of(1u64..1_000_000_000_000)).prop_map(|(red, ps, target)| {
        let target = target.map(Duration::from_ps);
        QueueSpec::Ared(AredSpec { red, interval: Duration::from_ps(ps), target })
    })
}

fn delay() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(0), 0u64..1000, 0u64..2_000_000_000_000].prop_map(Duration::from_ps)
}

fn loss() -> impl Strategy<Value = LossSpec> {
    prop_oneof![Just(LossSpec::Never), probability(1.0).prop_map(LossSpec::Uniform)]
}

prop_compose! {
    fn spec()(rate in rate(), overhead in prop::sample::select(vec![0, 24, 38]), delay in delay(),
              loss in prop_oneof![3 => Just(LossSpec::Never), 1 => loss()], queue in prop_oneof![4 => queue(), 1 => general_queue()])
        -> PipeSpec {
        PipeSpec { rate, overhead, delay, loss, queue, ..PipeSpec::default() }
    }
}

prop_compose! {
    fn change()(rate in prop::option::of(rate()), overhead in prop::option::of(0u32..40),
                delay in prop::option::of(delay()), loss in prop::option::weighted(0.1, loss()),
                queue in prop::option::of(queue())) -> Change {
        Change { rate, overhead, delay, loss, queue, ..Change::default() }
    }
}

fn operation() -> impl Strategy<Value = (Gap, Operation)> {
    let gap = prop_oneof![
        4 => Just(Gap::None),
        1 => (0u64..3).prop_map(Gap::Ps),
        4 => (0u64..3000).prop_map(Gap::Frames),
        2 => Just(Gap::Exit),
        2 => Just(Gap::Departure),
    ];
    let operation = prop_oneof![
        8 => (0u32..2000, 0u8..8).prop_map(|(len, traffic_class)| Operation::Push { len, traffic_class }),
        4 => Just(Operation::Pop),
        1 => change().prop_map(|change| Operation::Change(Box::new(change))),
        1 => Just(Operation::Generalise),
    ];
    (gap, operation)
}

fn operations() -> impl Strategy<Value = Vec<(Gap, Operation)>> {
    prop::collection::vec(operation(), 1..80)
}

fn moved(now: Time, gap: &Gap, pipe: &Pipe<u32>) -> Time {
    let frame = match pipe.spec().rate {
        Some(rate) => rate.transmission(Bytes(1500), Default::default()).0.as_ps(),
        None => 1_000_000,
    };
    match gap {
        Gap::None => now,
        Gap::Ps(n) => now + Duration::from_ps(*n),
        Gap::Frames(n) => now + Duration::from_ps((u128::from(frame) * u128::from(*n) / 1000) as u64),
        Gap::Exit => pipe.next_at().unwrap_or(now).max(now),
        Gap::Departure => pipe.next_at().map_or(now, |at| at.saturating_sub(pipe.spec().delay)).max(now),
    }
}

/// Exits to compare: time, packet, traffic class, fate.
type Out = Vec<(Time, u32, u8, Fate)>;

fn record(out: &mut Out, exit: Exit<u32>) {
    out.push((exit.at, exit.packet.data, exit.packet.traffic_class, exit.fate));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pipe_does_exactly_what_its_specification_does(spec in spec(), seed: u64, operations in operations()) {
        let mut pipe = Pipe::new(&spec, Rng::new(seed));
        let mut oracle = Oracle::new(&spec, Rng::new(seed));
        let mut now = Time::ZERO;
        // In a general pipe an event may not be an exit.
        let mut fast = is_fast(&spec.queue);
        let (mut ours, mut theirs) = (Out::new(), Out::new());
        for (i, (gap, operation)) in operations.into_iter().enumerate() {
            now = moved(now, &gap, &pipe);
            match operation {
                Operation::Push { len, traffic_class } => {
                    let packet = Packet { traffic_class, ..Packet::new(len, i as u32) };
                    prop_assert_eq!(pipe.push(now, packet), oracle.push(now, packet), "packet {}", i);
                }
                Operation::Pop => {
                    while let Some(exit) = pipe.pop(now) {
                        record(&mut ours, exit);
                    }
                    while let Some(exit) = oracle.pop(now) {
                        record(&mut theirs, exit);
                    }
                }
                Operation::Change(change) => {
                    pipe.change(now, &change);
                    oracle.change(now, &change);
                }
                Operation::Generalise => {
                    generalise(&mut pipe, now);
                    fast = false;
                }
            }
            prop_assert_eq!(&ours, &theirs);
            prop_assert!(pipe.conserved(), "{:?} {:?}", pipe.counters(), pipe.held());
        }
        // The remaining packets leave at next_at and at no other time.
        while let Some(at) = pipe.next_at() {
            if at > now {
                prop_assert_eq!(pipe.pop(at.saturating_sub(Duration::from_ps(1))), None);
            }
            now = at.max(now);
            match pipe.pop(now) {
                Some(exit) => {
                    prop_assert_eq!(exit.at, at);
                    record(&mut ours, exit);
                }
                None => prop_assert!(!fast, "next_at of a fast pipe is an exit"),
            }
        }
        while let Some(exit) = oracle.pop(Time::MAX) {
            record(&mut theirs, exit);
        }
        prop_assert_eq!(ours, theirs);
        prop_assert_eq!(pipe.held().packets, 0);
        prop_assert!(pipe.conserved());
    }
}

/// Turns the pipe into a general pipe without changing its behaviour.
fn generalise(pipe: &mut Pipe<u32>, now: Time) {
    for loss in [LossSpec::Uniform(Probability::NEVER), LossSpec::Never] {
        pipe.change(now, &Change { egress_loss: Some(loss), ..Change::default() });
    }
}

/// Pushes frames at random times through a fixed rate and delay. Returns (push, exit, len) of
/// delivered frames.
fn flights(rate: Rate, delay: Duration, queue: QueueSpec, frames: &[(u64, u32)]) -> Vec<(Time, Time, u32)> {
    let spec = PipeSpec { rate: Some(rate), delay, queue, ..PipeSpec::default() };
    let mut pipe = Pipe::new(&spec, Rng::new(1));
    let frame = rate.transmission(Bytes(1500), Default::default()).0.as_ps();
    let mut now = Time::ZERO;
    for &(thousandths, len) in frames {
        now += Duration::from_ps((u128::from(frame) * u128::from(thousandths) / 1000) as u64);
        let _ = pipe.push(now, Packet::new(len, now));
    }
    let exits = std::iter::from_fn(|| pipe.pop(Time::MAX));
    exits.map(|exit| (exit.packet.data, exit.at, exit.packet.len)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Between two exits at most the bits of the rate pass. Exits are rounded down to the
    /// picosecond, so that the time between two exits may be short by less than one picosecond.
    #[test]
    fn no_window_carries_more_than_the_rate_and_no_packet_is_early(
        bps in 1u64..=800_000_000_000,
        delay in delay(),
        queue in queue(),
        frames in prop::collection::vec((0u64..2000, 0u32..9000), 1..60),
    ) {
        let rate = Rate::from_bps(bps).expect("in range");
        let flights = flights(rate, delay, queue, &frames);
        for (i, &(push, exit, len)) in flights.iter().enumerate() {
            let own_time = rate.transmission(Bytes(len.into()), Default::default()).0;
            prop_assert!(exit >= push + own_time + delay, "packet {} is early", i);
            let mut bits = 0u128;
            for &(_, later, len) in &flights[i + 1..] {
                prop_assert!(later >= exit, "packets stay in order");
                bits += u128::from(len) * 8;
                let span = u128::from((later - exit).as_ps());
                prop_assert!(bits * 1_000_000_000_000 < (span + 1) * u128::from(bps));
            }
        }
    }

    /// No time, size or rate makes a pipe panic. Past the end of time packets stay in the pipe.
    #[test]
    fn extreme_times_and_sizes_are_survived(
        spec in spec(),
        delay: u64,
        operations in prop::collection::vec((any::<u64>(), any::<u32>(), change()), 1..20),
    ) {
        let fast = is_fast(&spec.queue);
        let mut pipe = Pipe::new(&PipeSpec { delay: Duration::from_ps(delay), ..spec }, Rng::new(1));
        for (now, len, change) in operations {
            let now = Time::from_ps(now);
            let _ = pipe.push(now, Packet { traffic_class: 1, ..Packet::new(len, ()) });
            pipe.change(now, &change);
            let _ = pipe.pop(now);
            prop_assert!(pipe.conserved());
            if let Some(at) = pipe.next_at() {
                let exit = pipe.pop(at).map(|exit| exit.at);
                prop_assert!(exit == Some(at) || (exit.is_none() && !fast), "{:?} at {}", exit, at);
            }
        }
    }

    /// The queue of a fast pipe is that of a general pipe at every instant, and looking at it
    /// changes no exit.
    #[test]
    fn the_queue_is_known_at_every_instant(
        spec in spec(),
        steps in prop::collection::vec((0u64..3_000, 0u32..2000, any::<bool>()), 1..60),
    ) {
        let new = || Pipe::new(&spec, Rng::new(1));
        let (mut seen, mut general, mut unseen) = (new(), new(), new());
        generalise(&mut general, Time::ZERO);
        let mut now = Time::ZERO;
        for (data, (us, len, is_look)) in steps.into_iter().enumerate() {
            now += Duration::from_us(us);
            loop {
                let exits = [&mut seen, &mut general, &mut unseen].map(|pipe| pipe.pop(now));
                prop_assert_eq!(&exits[0], &exits[1]);
                prop_assert_eq!(&exits[0], &exits[2]);
                if exits[0].is_none() {
                    break;
                }
            }
            if is_look {
                prop_assert_eq!(seen.queue(now), general.queue(now));
                continue;
            }
            for pipe in [&mut seen, &mut general, &mut unseen] {
                let _ = pipe.push(now, Packet::new(len, data as u32));
            }
        }
    }
}
