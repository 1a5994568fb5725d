//! Cross traffic against its twin: the same arrivals, pushed as packets. All other packets have the
//! same fates at the same picosecond.

mod queues;

use fastpath_link::oracle::cross_arrivals;
use fastpath_link::{
    Bounded, Change, CrossLaw, CrossSpec, DropReason, Exit, Fate, Limit, LinkState, LossSpec, Opportunities,
    Packet, PacketContent, PacketFilter, Pipe, PipeInit, PipeSpec, Pipes, QueueSpec, RedSpec, SlotSpec,
    SlotWait, Verdict, Volume,
};
use fastpath_units::{Bytes, Duration, Probability, Rate, Rng, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// What happens at an instant.
#[derive(Clone, Debug)]
enum Step {
    Push { len: u32, flow: u32, traffic_class: u8 },
    Change(Box<Change>),
    Pop,
    Look,
}

type Steps = Vec<(Time, Step)>;
/// The time and the fate of each packet, by the number of its step.
type Fates = BTreeMap<usize, (Time, Fate)>;

/// The number of a packet of cross traffic in the twin.
const CROSS: usize = usize::MAX;

fn packet(len: u32, flow: u32, traffic_class: u8, data: usize) -> Packet<usize> {
    Packet { flow, traffic_class, content: PacketContent::Udp, ..Packet::new(len, data) }
}

fn add(volume: &mut Volume, len: u32) {
    *volume += Volume { packets: 1, bytes: len.into() };
}

/// A pipe, and what became of packets.
struct Run {
    pipe: Pipe<usize>,
    fates: Fates,
    /// The cross traffic of the twin.
    offered: Volume,
    dropped: Volume,
}

impl Run {
    fn new(spec: &PipeSpec, seed: u64) -> Run {
        let [offered, dropped] = [Volume::default(); 2];
        Run { pipe: Pipe::new(spec, Rng::new(seed)), fates: Fates::new(), offered, dropped }
    }

    fn note(&mut self, id: usize, len: u32, at: Time, fate: Fate) {
        if id != CROSS {
            assert_eq!(self.fates.insert(id, (at, fate)), None, "packet {id} has one fate");
        } else if matches!(fate, Fate::Dropped(_)) {
            add(&mut self.dropped, len);
        }
    }

    fn pop(&mut self, now: Time) {
        while let Some(exit) = self.pipe.pop(now) {
            self.note(exit.packet.data, exit.packet.len, exit.at, exit.fate);
        }
    }

    fn push(&mut self, now: Time, packet: Packet<usize>) {
        let len = packet.len;
        if let Verdict::Dropped(reason, id) = self.pipe.push(now, packet) {
            self.note(id, len, now, Fate::Dropped(reason));
        }
    }

    fn step(&mut self, id: usize, now: Time, step: &Step) {
        match step {
            Step::Push { len, flow, traffic_class } => {
                self.push(now, packet(*len, *flow, *traffic_class, id))
            }
            Step::Change(change) => self.pipe.change(now, change),
            Step::Pop => self.pop(now),
            Step::Look => {
                self.pipe.queue(now);
            }
        }
        assert!(self.pipe.conserved());
    }
}

/// Runs with fluid cross traffic, popped only at `next_at` and where a step says so.
fn fluid(spec: &PipeSpec, steps: &Steps, seed: u64, end: Time) -> Run {
    let mut run = Run::new(spec, seed);
    let last = steps.last().map_or(Time::ZERO, |(at, _)| *at);
    for (id, (at, step)) in steps.iter().enumerate() {
        run.step(id, *at, step);
    }
    while let Some(at) = run.pipe.next_at().filter(|at| *at <= end) {
        let before = at.saturating_sub(Duration::from_ps(1));
        if before >= last {
            assert!(run.pipe.pop(before).is_none(), "nothing leaves before next_at");
        }
        run.pop(at);
    }
    run.pop(end);
    run
}

/// Runs with the same arrivals as packets.
fn as_packets(spec: &PipeSpec, steps: &Steps, seed: u64, end: Time) -> Run {
    let cross = spec.cross.expect("there is cross traffic");
    let mut run = Run::new(&PipeSpec { cross: None, ..spec.clone() }, seed);
    let mut arrivals = cross_arrivals(cross, spec.overhead, &Rng::new(seed), Time::ZERO)
        .take_while(|at| *at <= end)
        .peekable();
    let arrive = |run: &mut Run, at| {
        run.pop(at);
        let packet = Packet { flow: CrossSpec::FLOW, ..Packet::new(cross.packet.get(), CROSS) };
        add(&mut run.offered, packet.len);
        run.push(at, packet);
    };
    for (id, (at, step)) in steps.iter().enumerate() {
        while let Some(arrival) = arrivals.next_if(|arrival| arrival <= at) {
            arrive(&mut run, arrival);
        }
        run.step(id, *at, step);
    }
    arrivals.for_each(|at| arrive(&mut run, at));
    run.pop(end);
    run
}

fn rate() -> impl Strategy<Value = Rate> {
    prop::sample::select(vec![64_000, 1_000_000, 7_777_777, 100_000_000])
        .prop_map(|bps| Rate::from_bps(bps).expect("not 0"))
}

fn any_queue() -> impl Strategy<Value = QueueSpec> {
    let red = || {
        QueueSpec::Red(RedSpec {
            weight: Probability::new(0.3).expect("a probability"),
            ..RedSpec::default()
        })
    };
    prop_oneof![
        4 => queues::limit().prop_map(QueueSpec::DropTail),
        1 => queues::span(80_000).prop_map(QueueSpec::DropTailTime),
        1 => Just(()).prop_map(move |()| red()),
        6 => queues::queue(),
    ]
}

/// Cross traffic of 5 % to 160 % of the rate.
fn cross(rate: Rate) -> impl Strategy<Value = CrossSpec> {
    let law = prop::sample::select(vec![CrossLaw::Poisson, CrossLaw::Constant]);
    (5u64..160, law, 40u32..3000).prop_map(move |(share, law, len)| CrossSpec {
        rate: Rate::from_bps(rate.as_bps() / 100 * share).expect("not 0"),
        law,
        packet: NonZeroU32::new(len).expect("not 0"),
    })
}

fn slots() -> impl Strategy<Value = Option<Box<SlotSpec>>> {
    let spec = (0u64..3_000, 0u64..3_000, prop::option::of(1u32..8)).prop_map(|(least, more, packets)| {
        let wait = SlotWait::Between(Duration::from_us(least), Duration::from_us(least + more));
        Box::new(SlotSpec { wait, packets, bytes: None })
    });
    prop::option::weighted(0.2, spec)
}

fn opportunities() -> impl Strategy<Value = Option<Opportunities>> {
    let times = prop::collection::vec(1u64..9_000, 1..6).prop_map(|gaps| {
        let mut at = Duration::ZERO;
        let times: Vec<Duration> = gaps.iter().map(|us| (at += Duration::from_us(*us), at).1).collect();
        Opportunities::new(times).expect("in order")
    });
    prop::option::weighted(0.15, times)
}

/// Changes that leave the cross traffic as it is.
fn change(rate: Rate) -> impl Strategy<Value = Change> {
    let rates = (1u64..300).prop_map(move |share| Rate::from_bps(rate.as_bps() / 100 * share));
    prop_oneof![
        2 => rates.prop_map(|rate| Change { rate: Some(rate), ..Change::default() }),
        2 => any_queue().prop_map(|queue| Change { queue: Some(queue), ..Change::default() }),
        1 => queues::span(5_000).prop_map(|delay| Change { delay: Some(delay), ..Change::default() }),
        2 => any::<bool>().prop_map(|paused| Change { paused: Some(paused), ..Change::default() }),
        2 => any::<bool>().prop_map(|up| {
            let state = if up { LinkState::Up } else { LinkState::Down };
            Change { state: Some(state), ..Change::default() }
        }),
    ]
}

/// Steps with bursts, and pauses in which the pipe becomes empty.
fn steps(rate: Rate) -> impl Strategy<Value = Steps> {
    let full = rate.transmission(Bytes(1500), Default::default()).0.as_ps();
    let gap = prop_oneof![6 => Just(0u64), 6 => 0..full, 3 => full..3 * full, 1 => full..full * 60];
    let push = (40u32..1515, 0u32..6, any::<u8>()).prop_map(|(len, flow, traffic_class)| Step::Push {
        len,
        flow,
        traffic_class,
    });
    let step = prop_oneof![
        20 => push,
        5 => Just(Step::Pop),
        2 => Just(Step::Look),
        1 => change(rate).prop_map(|change| Step::Change(Box::new(change))),
    ];
    prop::collection::vec((gap, step), 1..200).prop_map(|steps| {
        let mut now = Time::ZERO;
        let at = |(gap, step)| {
            now += Duration::from_ps(gap);
            (now, step)
        };
        steps.into_iter().map(at).collect()
    })
}

/// A loss of pushed packets, which carry UDP: packets of cross traffic are none of its business.
fn loss() -> impl Strategy<Value = LossSpec> {
    let law = (0.0..0.3).prop_map(|p| {
        LossSpec::Bounded(Bounded {
            probability: Probability::new(p).expect("a probability"),
            burst_max: None,
            of: PacketFilter::Udp,
        })
    });
    prop_oneof![2 => Just(LossSpec::Never), 1 => law]
}

prop_compose! {
    fn scenario()(rate in rate())
        (queue in any_queue(), cross in cross(rate), steps in steps(rate), slots in slots(), loss in loss(),
         opportunities in opportunities(), overhead in 0u32..60, delay in queues::span(30_000), rate in Just(rate))
        -> (PipeSpec, Steps) {
        let (rate, cross) = (Some(rate), Some(cross));
        let spec = PipeSpec {
            rate, cross, queue, slots, opportunities, overhead, delay, loss, ..PipeSpec::default()
        };
        // Opportunities replace the overhead.
        let overhead = if spec.opportunities.is_some() { 0 } else { overhead };
        (PipeSpec { overhead, ..spec }, steps)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cross_traffic_does_to_others_what_the_same_packets_do((spec, steps) in scenario(), seed: u64) {
        let last = steps.last().map_or(Time::ZERO, |(at, _)| *at);
        let end = last + Duration::from_ms(200);
        let mut fluid = fluid(&spec, &steps, seed, end);
        let mut twin = as_packets(&spec, &steps, seed, end);
        prop_assume!(twin.pipe.queued().packets < CrossSpec::QUEUED_MAX);
        prop_assert_eq!(&fluid.fates, &twin.fates);
        prop_assert_eq!(fluid.pipe.queue(end), twin.pipe.queue(end));
        // With equal queues what is sent is equal too.
        let cross = fluid.pipe.counters().cross;
        prop_assert_eq!((cross.offered, cross.dropped), (twin.offered, twin.dropped));
    }
}

fn kbit(n: u64) -> Rate {
    Rate::from_bps(n * 1000).expect("not 0")
}

fn mbit(n: u64) -> Rate {
    kbit(1000 * n)
}

/// Cross traffic of packets of 1250 bytes: 10 ms each at 1 Mbit/s.
fn of(rate: Rate, law: CrossLaw) -> Option<CrossSpec> {
    Some(CrossSpec { rate, law, packet: NonZeroU32::new(1250).expect("not 0") })
}

fn plain(rate: Rate, cross: Option<CrossSpec>, queue: QueueSpec) -> Pipe<usize> {
    Pipe::new(&PipeSpec { rate: Some(rate), cross, queue, ..PipeSpec::default() }, Rng::new(1))
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_ms(ms)
}

#[test]
fn a_packet_waits_for_the_cross_traffic_before_it_and_an_idle_pipe_for_none() {
    // At half the rate: on the wire from 0 to 10 ms, from 20 to 30 ms, and so on.
    let mut pipe = plain(mbit(1), of(kbit(500), CrossLaw::Constant), QueueSpec::default());
    assert_eq!(pipe.next_at(), None);
    for (at, exit) in [(3, 20), (42, 60), (1_000_000, 1_000_020)] {
        let _ = pipe.push(ms(at), packet(1250, 0, 0, 0));
        assert!(pipe.next_at().is_some());
        let exits: Vec<Time> = std::iter::from_fn(|| pipe.pop(ms(exit + 5))).map(|exit| exit.at).collect();
        assert_eq!((exits, pipe.next_at()), (vec![ms(exit)], None));
    }
    assert_eq!(pipe.counters().pushed.packets, 3, "it is counted apart");
    let cross = pipe.counters().cross;
    assert_eq!((cross.offered.packets, cross.dropped.packets), (50_002, 0));
    assert_eq!(cross.sent + cross.queued(), cross.offered);
}

#[test]
fn a_change_begins_anew_and_what_is_queued_stays() {
    let mut pipe = plain(mbit(1), None, QueueSpec::default());
    let change = |pipe: &mut Pipe<usize>, at, cross| {
        pipe.change(at, &Change { cross: Some(cross), ..Change::default() })
    };
    change(&mut pipe, ms(100), of(mbit(2), CrossLaw::Constant));
    assert_eq!(pipe.spec().cross, of(mbit(2), CrossLaw::Constant));
    // Arrivals at 100, 105, 110 and 115 ms.
    change(&mut pipe, ms(119), None);
    assert_eq!(pipe.queue(ms(119)).volume.packets, 3, "one of four has been sent");
    let _ = pipe.push(ms(119), packet(1250, 0, 0, 0));
    assert_eq!(pipe.pop(ms(1000)).map(|exit| exit.at), Some(ms(150)));
    assert_eq!((pipe.next_at(), pipe.counters().cross.sent.packets), (None, 4));
}

#[test]
fn losses_of_others_are_the_same_with_cross_traffic_and_without() {
    let loss = LossSpec::Uniform(Probability::new(0.3).expect("a probability"));
    let lost = |cross| {
        let rate = Some(mbit(1));
        let spec = PipeSpec { rate, cross, loss: loss.clone(), ..PipeSpec::default() };
        let mut pipe = Pipe::new(&spec, Rng::new(5));
        (0..1000).map(move |i| pipe.push(ms(20 * i), packet(100, 0, 0, 0)) == Verdict::Queued)
    };
    assert!(lost(None).eq(lost(of(kbit(333), CrossLaw::Poisson))));
}

#[test]
fn poisson_arrivals_have_the_rate_and_exponential_gaps() {
    let cross = of(mbit(10), CrossLaw::Poisson).expect("given");
    let times: Vec<Time> = cross_arrivals(cross, 0, &Rng::new(9), Time::ZERO).take(100_000).collect();
    let mut gaps: Vec<f64> =
        times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1000.0).collect();
    let count = gaps.len() as f64;
    // The mean is 1 ms, within 3.29 σ (99.9 %).
    let mean = gaps.iter().sum::<f64>() / count;
    assert!((mean - 1.0).abs() < 3.29 / count.sqrt(), "{mean}");
    // Kolmogorov–Smirnov against the exponential law: below 1.95 / √n at 99.9 %.
    gaps.sort_by(f64::total_cmp);
    let distance = gaps.iter().enumerate().map(|(i, gap)| (1.0 - (-gap).exp() - i as f64 / count).abs());
    assert!(distance.fold(0.0, f64::max) < 1.95 / count.sqrt());
}

#[test]
fn the_overhead_of_the_link_counts_in_the_rate() {
    // 1250 + 1250 bytes on the wire at 2 Mbit/s: a packet each 10 ms.
    let spec = PipeSpec { rate: Some(mbit(100)), overhead: 1250, ..PipeSpec::default() };
    let cross = of(mbit(2), CrossLaw::Constant);
    let mut pipe: Pipe<usize> = Pipe::new(&PipeSpec { cross, ..spec }, Rng::new(1));
    pipe.queue(ms(995));
    assert_eq!(pipe.counters().cross.offered.packets, 100);
}

#[test]
fn a_queue_without_a_limit_is_bounded_and_a_starved_packet_does_not_keep_a_run_from_ending() {
    let mut pipe = plain(mbit(1), of(mbit(1000), CrossLaw::Poisson), QueueSpec::default());
    let queued = pipe.queue(ms(2_000)).volume.packets;
    assert_eq!(queued, CrossSpec::QUEUED_MAX);
    assert!(pipe.counters().cross.dropped.packets > 100_000);

    // Cross traffic has DSCP 0, which is served first and never ends.
    let classes = fastpath_link::Classes::all_in(1).with(0, [0]);
    let bands = vec![Limit::Packets(10); 2];
    let prio = QueueSpec::Prio(fastpath_link::PrioSpec { bands, classes });
    let mut pipe = plain(mbit(100), of(mbit(200), CrossLaw::Constant), prio);
    assert_eq!(pipe.push(ms(10), packet(1250, 0, 46 << 2, 7)), Verdict::Queued);
    let mut now = ms(10);
    while let Some(at) = pipe.next_at() {
        now = at;
        assert_eq!(pipe.pop(now), None);
    }
    assert!(now > ms(60_000) && pipe.held().packets == 1, "{now}");
}

#[test]
fn a_paused_link_with_a_full_queue_has_no_event() {
    let mut pipe = plain(mbit(1), of(kbit(500), CrossLaw::Poisson), QueueSpec::DropTail(Limit::Packets(5)));
    let _ = pipe.push(ms(1), packet(1250, 0, 0, 0));
    pipe.change(ms(2), &Change { paused: Some(true), ..Change::default() });
    while let Some(at) = pipe.next_at() {
        assert_eq!(pipe.pop(at), None);
        assert!(at < ms(10_000));
    }
    assert_eq!(pipe.queue(ms(20_000)).volume.packets, 5);
    pipe.change(ms(20_000), &Change { paused: Some(false), ..Change::default() });
    assert!(pipe.next_at().is_some_and(|at| at <= ms(20_010)));
    assert!(matches!(pipe.pop(ms(20_060)).map(|exit| exit.fate), Some(Fate::Delivered { .. })));
}

#[test]
fn a_link_that_goes_down_drops_its_cross_traffic() {
    let mut pipe = plain(mbit(1), of(mbit(2), CrossLaw::Constant), QueueSpec::default());
    let _ = pipe.push(ms(7), packet(1250, 0, 0, 0));
    pipe.change(ms(12), &Change { state: Some(LinkState::Down), ..Change::default() });
    assert_eq!(pipe.pop(ms(12)).map(|exit| exit.fate), Some(Fate::Dropped(DropReason::Down)));
    assert_eq!((pipe.next_at(), pipe.queue(ms(50)).volume.packets), (None, 0));
    let cross = pipe.counters().cross;
    assert_eq!([cross.offered, cross.sent, cross.dropped].map(|volume| volume.packets), [11, 1, 10]);
}

#[test]
fn a_bound_leaves_out_old_cross_traffic_of_an_idle_pipe_and_no_other() {
    // Twice the rate, in a queue of 20 packets: the state is the same after any long time.
    let (rate, cross) = (Some(mbit(1)), of(mbit(2), CrossLaw::Constant));
    let queue = QueueSpec::DropTail(Limit::Packets(20));
    let spec = PipeSpec { rate, cross, queue, ..PipeSpec::default() };
    let new = || Pipes::new([PipeInit { spec: &spec, rng: Rng::new(1) }].into_iter(), 10);
    let (mut bounded, mut all): (Pipes<usize>, Pipes<usize>) = (new(), new());
    bounded.bound_cross(100);
    let mut exits = [Vec::new(), Vec::new()];
    for (exits, pipes) in exits.iter_mut().zip([&mut bounded, &mut all]) {
        // Arrivals at a multiple of 10 ms find the queue full; in between one packet fits.
        for (id, at) in [3_601_001, 3_601_005, 7_200_001].into_iter().enumerate() {
            exits.extend(std::iter::from_fn(|| pipes.pop(ms(at))));
            let verdict = pipes.push(ms(at), 0, packet(1250, 0, 0, id));
            exits.extend(
                matches!(verdict, Verdict::Dropped(..))
                    .then_some(Exit {
                        at: ms(at),
                        packet: packet(1250, 0, 0, id),
                        fate: Fate::Dropped(DropReason::QueueFull),
                    })
                    .map(|exit| (0, exit)),
            );
        }
        exits.extend(std::iter::from_fn(|| pipes.pop(ms(8_000_000))));
        assert_eq!(pipes.next_at(), None);
    }
    assert_eq!(exits[0], exits[1]);
    let offered = [bounded, all].map(|pipes| pipes.pipe(0).counters().cross.offered.packets);
    assert!(offered[0] <= 300 && offered[1] > 1_440_000, "{offered:?}");
}
