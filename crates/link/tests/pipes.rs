//! Many pipes against single ones: the same exits, in the order of time and then of pipes. And a
//! million links with exact times.

use fastpath_link::{
    Change, Exit, Fate, Limit, LossSpec, Packet, Pipe, PipeInit, PipeSpec, Pipes, PopLimit, QueueSpec,
    RedSpec, Verdict,
};
use fastpath_units::{Bytes, Duration, Probability, Rate, Rng, Time};
use proptest::prelude::*;

const PIPES: u32 = 6;

#[derive(Clone, Debug)]
enum Operation {
    Push {
        id: u32,
        len: u32,
    },
    /// Several packets at once.
    PushRun {
        id: u32,
        lens: Vec<u32>,
    },
    PopUntil(u64),
    /// Up to the next exit of any pipe.
    PopNext,
    Change {
        id: u32,
        change: Box<Change>,
    },
}

/// Rates and delays for which exits of several pipes often coincide.
fn spec() -> impl Strategy<Value = PipeSpec> {
    let rate = prop::sample::select(vec![None, Rate::from_bps(8_000_000), Rate::from_bps(3_000_000)]);
    let delay = prop::sample::select(vec![0, 100_000_000, 1_000_000_000]).prop_map(Duration::from_ps);
    let queue = prop::sample::select(vec![
        QueueSpec::default(),
        QueueSpec::DropTail(Limit::Packets(3)),
        QueueSpec::DropTail(Limit::Bytes(Bytes(500))),
        QueueSpec::DropHead(Limit::Packets(3)),
        QueueSpec::Red(RedSpec { min: 1, max: 3, ..RedSpec::default() }),
    ]);
    let loss = prop::sample::select(vec![LossSpec::Never, LossSpec::Uniform(Probability::new(0.2).unwrap())]);
    (rate, delay, queue, loss).prop_map(|(rate, delay, queue, loss)| PipeSpec {
        rate,
        delay,
        queue,
        loss,
        ..PipeSpec::default()
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let len = prop::sample::select(vec![64u32, 100, 125, 1500]);
    prop_oneof![
        6 => (0..PIPES, len.clone()).prop_map(|(id, len)| Operation::Push { id, len }),
        3 => (0..PIPES, prop::collection::vec(len, 0..8)).prop_map(|(id, lens)| Operation::PushRun { id, lens }),
        2 => (0u64..400_000_000).prop_map(Operation::PopUntil),
        4 => Just(Operation::PopNext),
        1 => (0..PIPES, spec()).prop_map(|(id, spec)| Operation::Change { id, change: Box::new(Change::to(&spec)) }),
    ]
}

/// Single pipes. The next one is found by comparing all.
struct Naive(Vec<Pipe<u32>>);

impl Naive {
    fn next(&self) -> Option<(Time, usize)> {
        self.0.iter().enumerate().filter_map(|(id, pipe)| Some((pipe.next_at()?, id))).min()
    }

    fn pop_until(&mut self, now: Time, out: &mut Vec<Left>) {
        while let Some((at, id)) = self.next().filter(|&(at, _)| at <= now) {
            out.extend(std::iter::from_fn(|| self.0[id].pop(at)).map(|exit| left(id as u32, exit)));
        }
    }
}

/// Pipe, time, packet, fate.
type Left = (u32, Time, u32, Fate);

fn left(id: u32, exit: Exit<u32>) -> Left {
    (id, exit.at, exit.packet.data, exit.fate)
}

/// Pops runs of at most three packets from pipes with even labels, and single packets between runs.
fn pop_until(pipes: &mut Pipes<u32>, now: Time, out: &mut Vec<Left>) {
    loop {
        let fate = Fate::Delivered { marked: false };
        let take = |label, at, data| out.push((label, at, data, fate));
        if pipes.pop_run(PopLimit { until: now, packets_max: 3 }, |label| label % 2 == 0, take) == 0 {
            let Some((id, exit)) = pipes.pop(now) else { return };
            out.push(left(id, exit));
        }
    }
}

/// Packets of a run, numbered from `first`.
fn run(lens: Vec<u32>, first: u32) -> impl Iterator<Item = Packet<u32>> + Clone {
    lens.into_iter().zip(first..).map(|(len, data)| Packet::new(len, data))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_pipes_behave_as_single_pipes_in_order_of_time(
        specs in prop::collection::vec(spec(), PIPES as usize),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let rng = |id: usize| Rng::stream(1, id as u64);
        let plan = |(id, spec)| PipeInit { spec, rng: rng(id) };
        let mut pipes = Pipes::new(specs.iter().enumerate().map(plan), 4);
        (0..PIPES).for_each(|id| pipes.set_label(id, id));
        let mut naive = Naive(specs.iter().enumerate().map(|(id, spec)| Pipe::new(spec, rng(id))).collect());
        let (mut now, mut ours, mut theirs) = (Time::ZERO, Vec::new(), Vec::new());
        for (i, operation) in operations.into_iter().enumerate() {
            match operation {
                Operation::Push { id, len } => {
                    let packet = Packet::new(len, i as u32);
                    prop_assert_eq!(pipes.push(now, id, packet), naive.0[id as usize].push(now, packet));
                }
                Operation::PushRun { id, lens } => {
                    let packets = run(lens, 100 * i as u32);
                    let (mut refused, mut expected) = (Vec::new(), Vec::new());
                    pipes.push_run(now, id, packets.clone(), |reason, data| refused.push((reason, data)));
                    for packet in packets {
                        if let Verdict::Dropped(reason, data) = naive.0[id as usize].push(now, packet) {
                            expected.push((reason, data));
                        }
                    }
                    prop_assert_eq!(refused, expected);
                }
                Operation::PopUntil(_) | Operation::PopNext => {
                    now = match operation {
                        Operation::PopUntil(span) => now + Duration::from_ps(span),
                        _ => pipes.next_at().unwrap_or(now).max(now),
                    };
                    pop_until(&mut pipes, now, &mut ours);
                    naive.pop_until(now, &mut theirs);
                }
                Operation::Change { id, change } => {
                    pipes.change(now, id, &change);
                    naive.0[id as usize].change(now, &change);
                }
            }
            prop_assert_eq!(&ours, &theirs);
            prop_assert_eq!(pipes.next_at(), naive.next().map(|(at, _)| at));
        }
        for (id, single) in naive.0.iter().enumerate() {
            let one = pipes.pipe(id as u32);
            prop_assert_eq!((one.spec(), one.counters(), one.held()), (single.spec(), single.counters(), single.held()));
            prop_assert!(one.conserved());
        }
    }

    #[test]
    fn recording_departures_changes_no_exit_and_returns_when_each_packet_left_its_queue(
        specs in prop::collection::vec(spec(), PIPES as usize),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let plan = |(id, spec)| PipeInit { spec, rng: Rng::stream(1, id as u64) };
        let mut pipes = Pipes::new(specs.iter().enumerate().map(plan), 4);
        let mut recording = Pipes::recording_departures(specs.iter().enumerate().map(plan), 4);
        let mut now = Time::ZERO;
        for (i, operation) in operations.into_iter().enumerate() {
            match operation {
                Operation::Push { id, len } => {
                    let packet = Packet::new(len, i as u32);
                    prop_assert_eq!(pipes.push(now, id, packet), recording.push(now, id, packet));
                }
                Operation::PushRun { id, lens } => {
                    let packets = run(lens, 100 * i as u32);
                    let (mut refused, mut expected) = (Vec::new(), Vec::new());
                    pipes.push_run(now, id, packets.clone(), |reason, data| refused.push((reason, data)));
                    recording.push_run(now, id, packets, |reason, data| expected.push((reason, data)));
                    prop_assert_eq!(refused, expected);
                }
                Operation::PopUntil(_) | Operation::PopNext => {
                    now = match operation {
                        Operation::PopUntil(span) => now + Duration::from_ps(span),
                        _ => pipes.next_at().unwrap_or(now).max(now),
                    };
                    while let Some((id, exit)) = recording.pop(now) {
                        prop_assert_eq!(pipes.pop(now), Some((id, exit)));
                        match recording.departed(id) {
                            Some(departed) => prop_assert!(departed <= exit.at, "{} {}", departed, exit.at),
                            None => prop_assert!(matches!(exit.fate, Fate::Dropped(_))),
                        }
                    }
                    prop_assert_eq!(pipes.pop(now), None);
                }
                Operation::Change { id, change } => {
                    pipes.change(now, id, &change);
                    recording.change(now, id, &change);
                }
            }
        }
    }
}

/// Virtual time: every packet of a million links of 128 kbit/s leaves at its exact time.
#[test]
fn a_million_links_of_128_kbit_are_all_exact() {
    const LINKS: u32 = 1_000_000;
    const LENS: [u32; 3] = [64, 1514, 97];
    // The transmission time of one byte at 128 kbit/s.
    const BYTE: Duration = Duration::from_ps(62_500_000);
    let spec = PipeSpec { rate: Rate::from_bps(128_000), delay: Duration::from_ms(5), ..PipeSpec::default() };
    let plan = |_| PipeInit { spec: &spec, rng: Rng::new(0) };
    let mut pipes = Pipes::new((0..LINKS as usize).map(plan), LENS.len() * LINKS as usize);
    // Each link starts at a different instant.
    let start = |id: u32| Time::from_ps(u64::from(id) * 1_001);
    for id in 0..LINKS {
        for len in LENS {
            let packet = Packet::new(len, ());
            assert_eq!(pipes.push(start(id), id, packet), Verdict::Queued);
        }
    }
    let (mut sent, mut latest) = (vec![0u8; LINKS as usize], Time::ZERO);
    while let Some((id, exit)) = pipes.pop(Time::MAX) {
        let number = usize::from(sent[id as usize]);
        let bytes: u32 = LENS[..=number].iter().sum();
        let wire = Duration::from_ps(BYTE.as_ps() * u64::from(bytes));
        assert_eq!(exit.at, start(id) + wire + Duration::from_ms(5), "packet {number} of link {id}");
        assert!(exit.at >= latest, "links leave in order");
        (latest, sent[id as usize]) = (exit.at, sent[id as usize] + 1);
    }
    assert!(sent.iter().all(|&n| usize::from(n) == LENS.len()));
}
