//! Disciplines that decide at dequeue, against their oracles: with random links and arrivals every
//! drop, mark and time is equal to the picosecond.

mod queues;

use fastpath_link::oracle;
use fastpath_link::{
    Classes, CodelSpec, DropEnd, DropReason, DrrShare, DrrSpec, DualPi2Spec, DualScheduler, Ecn, Fate,
    FqCodelSpec, Framing, Limit, MahimahiSpec, Packet, Peak, PieSpec, Pipe, PipeSpec, PolicerSpec, PrioSpec,
    QueueSpec, SojournSpec, TokenBucketSpec, Verdict,
};
use fastpath_units::{Bytes, Duration, Probability, Rate, Rng, Time};
use proptest::prelude::*;
use queues::{queue, span};
use std::collections::BTreeMap;

type ArrivalList = Vec<(Time, Packet<()>)>;
type Fates = BTreeMap<usize, (Time, Fate)>;

/// Sends the arrivals through a pipe that is popped only at `next_at`.
fn through_a_pipe(spec: &PipeSpec, arrivals: &ArrivalList, seed: u64) -> Fates {
    let mut pipe: Pipe<usize> = Pipe::new(spec, Rng::new(seed));
    let mut fates = Fates::new();
    let mut last = Time::ZERO;
    let mut next = 0;
    loop {
        let arrival = arrivals.get(next).map(|(at, _)| *at);
        let Some(now) = pipe.next_at().into_iter().chain(arrival).min() else { break };
        while let Some(exit) = pipe.pop(now) {
            assert!(last <= exit.at && exit.at <= now, "exits are in order and not late");
            last = exit.at;
            fates.insert(exit.packet.data, (exit.at, exit.fate));
        }
        if arrival == Some(now) {
            let (_, Packet { len, flow, traffic_class, .. }) = arrivals[next];
            if let Verdict::Dropped(reason, id) =
                pipe.push(now, Packet { flow, traffic_class, ..Packet::new(len, next) })
            {
                fates.insert(id, (now, Fate::Dropped(reason)));
            }
            next += 1;
        }
        assert!(pipe.conserved(), "{:?} {:?}", pipe.counters(), pipe.held());
    }
    assert_eq!(pipe.held().packets, 0);
    fates
}

/// Arrivals with bursts and pauses, at one to three times the rate.
fn arrivals(rate: Rate) -> impl Strategy<Value = ArrivalList> {
    let full = rate.transmission(Bytes(1500), Default::default()).0.as_ps();
    let gap = prop_oneof![
        6 => Just(0u64),
        6 => 0..full,
        3 => full..2 * full,
        1 => full..full * 40,
    ];
    let packet = (gap, 40u32..1515, 0u32..6, any::<u8>());
    prop::collection::vec(packet, 1..400).prop_map(|packets| {
        let mut now = Time::ZERO;
        let arrive = |(gap, len, flow, traffic_class)| {
            now += Duration::from_ps(gap);
            (now, Packet { flow, traffic_class, ..Packet::new(len, ()) })
        };
        packets.into_iter().map(arrive).collect()
    })
}

fn scenario() -> impl Strategy<Value = (Rate, ArrivalList)> {
    prop::sample::select(vec![64_000, 1_000_000, 7_777_777, 100_000_000]).prop_flat_map(|bps| {
        let rate = Rate::from_bps(bps).expect("in range");
        (Just(rate), arrivals(rate))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_follows_its_pseudocode(
        queue in queue(),
        (rate, arrivals) in scenario(),
        delay in span(30_000),
        overhead in prop_oneof![Just(0), 0u32..60],
        is_limited in prop::bool::weighted(0.9),
        seed: u64,
    ) {
        // Without a rate, PIE, DualPI2 and CoDel have nothing to do.
        let rate = Some(rate).filter(|_| is_limited);
        let spec = PipeSpec { rate, overhead, delay, queue, ..PipeSpec::default() };
        let ours = through_a_pipe(&spec, &arrivals, seed);
        let theirs = oracle::run(&spec, &arrivals, &mut Rng::new(seed));
        prop_assert_eq!(ours, theirs);
    }
}

/// Packets of 1250 bytes, 10 ms each at 1 Mbit/s, every 5 ms for two seconds, of four flows.
fn overload(traffic_class: u8) -> ArrivalList {
    let packet = |i: u32| Packet { flow: i % 4, traffic_class, ..Packet::new(1250, ()) };
    (0..400).map(|i| (Time::ZERO + Duration::from_ms(5) * u64::from(i), packet(i))).collect()
}

fn under_overload(queue: QueueSpec, traffic_class: u8) -> Fates {
    let spec = PipeSpec { rate: Rate::from_bps(1_000_000), queue, ..PipeSpec::default() };
    through_a_pipe(&spec, &overload(traffic_class), 1)
}

/// Returns (packet, ms) of drops with this reason.
fn dropped(fates: &Fates, reason: DropReason) -> Vec<(usize, u64)> {
    let dropped = fates.iter().filter(|(_, (_, fate))| *fate == Fate::Dropped(reason));
    dropped.map(|(id, (at, _))| (*id, at.as_ns() / 1_000_000)).collect()
}

#[test]
fn codel_drops_at_the_head_an_interval_after_the_delay_rose_and_then_at_a_rising_rate() {
    let fates = under_overload(QueueSpec::Codel(CodelSpec::default()), 0);
    let early = dropped(&fates, DropReason::Early);
    // Packet 3, at 30 ms, is the first with more than an MTU behind it. At 130 ms CoDel enters the
    // drop state. The next drops are due 100, 70.7, 57.7, 50 … ms later and happen when the wire is
    // free.
    assert_eq!(early[..7], [(13, 130), (24, 230), (33, 310), (39, 360), (45, 410), (51, 460), (56, 500)]);
}

#[test]
fn pie_lets_a_burst_pass_and_then_drops_down_to_two_packets() {
    // With this weight the probability goes from 0 to 1 in one update: nothing is random.
    let pie = PieSpec { alpha: 1e6, beta: 0.0, ..PieSpec::default() };
    let fates = under_overload(QueueSpec::Pie(pie), 0);
    let early: Vec<usize> = dropped(&fates, DropReason::Early).iter().map(|(id, _)| *id).collect();
    // The burst allowance of 150 ms is renewed until packet 2 (10 ms) and used up by the update at
    // 165 ms, before packet 33. Then all packets are dropped until two wait, and after that every
    // second packet.
    let expected: Vec<usize> = (33..=59).chain((61..400).step_by(2)).collect();
    assert_eq!(early, expected);
}

#[test]
fn ecn_capable_packets_are_marked_where_others_are_dropped() {
    let ecn = CodelSpec { ecn: Ecn::Mark, ..CodelSpec::default() };
    let pie = PieSpec { ecn: Ecn::Mark, mark_below: Probability::ALWAYS, ..PieSpec::default() };
    for queue in [QueueSpec::Codel(ecn), QueueSpec::FqCodel(FqCodelSpec::default()), QueueSpec::Pie(pie)] {
        let marks = |fates: &Fates| {
            fates.values().filter(|(_, fate)| *fate == Fate::Delivered { marked: true }).count()
        };
        let (not_ect, ect) = (under_overload(queue.clone(), 0), under_overload(queue.clone(), 2));
        let drops = [&not_ect, &ect].map(|fates| dropped(fates, DropReason::Early).len());
        assert!(marks(&not_ect) == 0 && drops[0] > 0, "{queue}: {drops:?}");
        assert!(marks(&ect) > 0 && drops[1] < drops[0], "{queue}: {drops:?}");
    }
}

#[test]
fn a_full_drop_head_queue_sends_the_newest() {
    let fates = under_overload(QueueSpec::DropHead(Limit::Packets(3)), 0);
    // 0 is on the wire, 1 and 2 wait. Each arrival pushes out the oldest packet that waits.
    let full = dropped(&fates, DropReason::QueueFull);
    assert_eq!(full[..4], [(3, 25), (5, 35), (7, 45), (9, 55)]);
    assert_eq!(fates[&399].1, Fate::Delivered { marked: false });
}

#[test]
fn packets_that_waited_longer_than_the_limit_expire() {
    let spec = SojournSpec { longest: Duration::from_ms(40), limit: Limit::Packets(1000) };
    let fates = under_overload(QueueSpec::Sojourn(spec), 0);
    // Packet n arrives at 5n ms and would be sent at 10n ms: up to packet 8 it waits at most 40 ms.
    assert_eq!(dropped(&fates, DropReason::Expired)[..3], [(9, 90), (11, 100), (13, 110)]);
}

#[test]
fn a_limit_in_time_follows_the_rate() {
    // Packets of 1250 bytes take 10 ms at 1 Mbit/s and 1 ms at 10 Mbit/s. All arrive at once.
    for (mbit, longest_ms, taken) in [(1, 0, 1), (1, 25, 3), (1, 30, 4), (10, 25, 26), (10, 0, 1)] {
        let queue = QueueSpec::DropTailTime(Duration::from_ms(longest_ms));
        let spec = PipeSpec { rate: Rate::from_bps(mbit * 1_000_000), queue, ..PipeSpec::default() };
        let packet = Packet::new(1250, ());
        let fates = through_a_pipe(&spec, &vec![(Time::ZERO, packet); 40], 1);
        let full = dropped(&fates, DropReason::QueueFull).len();
        assert_eq!(40 - full, taken, "{longest_ms} ms at {mbit} Mbit/s");
    }
}

#[test]
fn fq_codel_serves_every_flow() {
    // Five packets of flow 0 arrive at once, then one of each other flow: the others are served
    // first.
    let packet = |flow| Packet { flow, ..Packet::new(1250, ()) };
    let arrivals: ArrivalList =
        [0, 0, 0, 0, 0, 1, 2, 3].map(|flow| (Time::ZERO, packet(flow))).into_iter().collect();
    let queue = QueueSpec::FqCodel(FqCodelSpec::default());
    let spec = PipeSpec { rate: Rate::from_bps(1_000_000), queue, ..PipeSpec::default() };
    let fates = through_a_pipe(&spec, &arrivals, 1);
    let mut order: Vec<(Time, usize)> = fates.iter().map(|(id, (at, _))| (*at, *id)).collect();
    order.sort();
    // With the quantum of 1514 bytes flow 0 starts a second packet before it has to wait.
    assert_eq!(order.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [0, 1, 5, 6, 7, 2, 3, 4]);
}

/// Returns (packet, ms) in the order of exits, for packets of 1000 bytes that all arrive at once.
fn order(queue: QueueSpec, rate: Option<Rate>, traffic_classes: &[u8]) -> Vec<(usize, u64)> {
    let packet =
        |traffic_class: &u8| (Time::ZERO, Packet { traffic_class: *traffic_class, ..Packet::new(1000, ()) });
    let arrivals: ArrivalList = traffic_classes.iter().map(packet).collect();
    let fates = through_a_pipe(&PipeSpec { rate, queue, ..PipeSpec::default() }, &arrivals, 1);
    let mut order: Vec<(Time, usize)> = fates.iter().map(|(id, (at, _))| (*at, *id)).collect();
    order.sort();
    order.iter().map(|(at, id)| (*id, at.as_ns() / 1_000_000)).collect()
}

#[test]
fn a_token_bucket_passes_its_burst_at_once_or_at_the_peak_and_then_its_rate() {
    let rate = |bps| Rate::from_bps(bps).expect("in range");
    let limit = Limit::Packets(10);
    let bucket = |peak| TokenBucketSpec { rate: rate(1_000_000), burst: Bytes(3000), peak, limit };
    let peak = Peak { rate: rate(2_000_000), burst: Bytes(1000) };
    // 1000 bytes are 8 ms of tokens, or 4 ms at the peak. With a peak rate the bucket has 500 bytes
    // after the fourth packet and none after the fifth.
    for (peak, exits) in [(None, [0, 0, 0, 8, 16, 24]), (Some(peak), [0, 4, 8, 12, 16, 24])] {
        let got = order(QueueSpec::TokenBucket(bucket(peak)), None, &[0; 6]);
        assert_eq!(got.iter().map(|(_, ms)| *ms).collect::<Vec<_>>(), exits, "{peak:?}");
    }
    // The wire behind the bucket takes 4 ms for each packet.
    let got = order(QueueSpec::TokenBucket(bucket(None)), Some(rate(2_000_000)), &[0; 6]);
    assert_eq!(got.iter().map(|(_, ms)| *ms).collect::<Vec<_>>(), [4, 8, 12, 16, 20, 28]);
}

#[test]
fn a_token_bucket_is_never_a_picosecond_late_however_long_the_burst() {
    // Frames of 1000 bytes at a peak of 3 000 001 bit/s: none takes a whole number of picoseconds.
    let rate = |bps| Rate::from_bps(bps).expect("in range");
    let peak = Some(Peak { rate: rate(3_000_001), burst: Bytes(1000) });
    let limit = Limit::Packets(20_000);
    let spec = TokenBucketSpec { rate: rate(7), burst: Bytes(20_000_000), peak, limit };
    let packet = Packet::new(1000, ());
    let queue = QueueSpec::TokenBucket(spec);
    let fates =
        through_a_pipe(&PipeSpec { queue, ..PipeSpec::default() }, &vec![(Time::ZERO, packet); 15_000], 1);
    for (id, (at, _)) in fates {
        let expected = (id as u128 * 8_000 * 1_000_000_000_000).div_ceil(3_000_001);
        assert_eq!(u128::from(at.as_ps()), expected, "frame {id}");
    }
}

#[test]
fn buckets_count_the_bytes_on_the_wire() {
    // 1000 bytes and 250 of overhead take 10 ms of tokens at 1 Mbit/s.
    let rate = Rate::from_bps(1_000_000).expect("in range");
    let (burst, limit) = (Bytes(2500), Limit::Packets(10));
    let bucket = QueueSpec::TokenBucket(TokenBucketSpec { rate, burst, peak: None, limit });
    let policer = QueueSpec::Policer(PolicerSpec { rate, burst, limit });
    let packet = |i: u64| (Time::ZERO + Duration::from_ms(i), Packet::new(1000, ()));
    let arrivals: ArrivalList = (0..30).map(packet).collect();
    let through = |queue: QueueSpec, framing| {
        let spec = PipeSpec { overhead: 250, framing, queue, ..PipeSpec::default() };
        through_a_pipe(&spec, &arrivals, 1)
    };
    let delivered = |fates: &Fates| -> Vec<usize> {
        fates.iter().filter(|(_, (_, fate))| !matches!(fate, Fate::Dropped(_))).map(|(id, _)| *id).collect()
    };
    let fates = through(bucket.clone(), None);
    let ms: Vec<u64> = (0..5).map(|id| fates[&id].0.as_ns() / 1_000_000).collect();
    assert_eq!(ms, [0, 1, 10, 20, 30]);
    let cells = Framing { packet: 125, cells: None };
    assert_eq!(through(bucket, Some(cells))[&2].0.as_ns() / 1_000_000, 7);
    // The bucket has 2500 bytes and fills by 125 a millisecond: a third frame conforms at 10 ms.
    assert_eq!(delivered(&through(policer, None)), [0, 1, 10, 20]);
}

#[test]
fn limits_of_mahimahi_count_what_waits() {
    let spec = |packets, bytes, drop| QueueSpec::Mahimahi(MahimahiSpec { packets, bytes, drop });
    let fates = |queue| under_overload(queue, 0);
    // 0 is on the wire and 1 to 3 wait; drop-tail with a limit of 3 packets would take only two.
    let full = dropped(&fates(spec(Some(3), None, DropEnd::Tail)), DropReason::QueueFull);
    assert_eq!(full[..3], [(7, 35), (9, 45), (11, 55)]);
    // A frame of 1250 bytes counts 1240.
    let three = fates(spec(None, Some(Bytes(3 * 1240)), DropEnd::Tail));
    assert_eq!(dropped(&three, DropReason::QueueFull), full_of(&fates(spec(Some(3), None, DropEnd::Tail))));
    let two = fates(spec(None, Some(Bytes(3 * 1240 - 1)), DropEnd::Tail));
    assert_eq!(full_of(&two), full_of(&fates(spec(Some(2), None, DropEnd::Tail))));
    let newest = fates(spec(Some(3), None, DropEnd::Head));
    assert_eq!(newest[&399].1, Fate::Delivered { marked: false });
}

fn full_of(fates: &Fates) -> Vec<(usize, u64)> {
    dropped(fates, DropReason::QueueFull)
}

#[test]
fn a_band_waits_for_the_bands_before_it() {
    let bands = vec![Limit::Packets(2), Limit::Packets(100)];
    let spec = PrioSpec { bands, classes: Classes::all_in(1).with(0, [46]) };
    let ef = 46 << 2;
    // The first packet is on the wire before the others arrive. The last finds its band full.
    let got = order(QueueSpec::Prio(spec.clone()), Rate::from_bps(8_000_000), &[0, 0, ef, 0, ef, ef]);
    assert_eq!(got, [(5, 0), (0, 1), (2, 2), (4, 3), (1, 4), (3, 5)]);
    // The packet on the wire counts in its band.
    let got = order(QueueSpec::Prio(spec), Rate::from_bps(8_000_000), &[ef, ef, ef, 0]);
    assert_eq!(got, [(2, 0), (0, 1), (1, 2), (3, 3)]);
}

#[test]
fn classes_share_the_rate_in_proportion_to_their_quanta() {
    let share = |quantum| DrrShare { quantum: Bytes(quantum), limit: Limit::Packets(100) };
    let classes = Classes::all_in(1).with(0, [8]);
    let spec = DrrSpec { shares: vec![share(2000), share(1000)], classes };
    let a = 8 << 2;
    let got = order(QueueSpec::Drr(spec), Rate::from_bps(8_000_000), &[a, a, a, a, a, a, a, 0, 0, 0, 0]);
    // The first packet is alone. After it, two packets of class 0 for one of class 1.
    let ids: Vec<usize> = got.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1, 2, 7, 3, 4, 8, 5, 6, 9, 10]);
}

#[test]
fn dualpi2_marks_l4s_traffic_at_once_and_drops_only_when_marks_do_not_help() {
    let spec = DualPi2Spec::default();
    let fates = under_overload(QueueSpec::DualPi2(spec), 1);
    let marked: Vec<usize> = fates
        .iter()
        .filter(|(_, (_, fate))| *fate == Fate::Delivered { marked: true })
        .map(|(id, _)| *id)
        .collect();
    // Packet 3 is the first with two behind it. It has waited 15 ms, which is beyond the ramp.
    assert_eq!(marked[..5], [3, 4, 5, 6, 7]);
    let early = dropped(&fates, DropReason::Early);
    assert!(early[0].1 > 200, "no drop before k·p′ has reached 1: {early:?}");
    // Classic traffic is dropped with p′², or marked if it is ECN-capable.
    let (not_ect, ect) =
        (under_overload(QueueSpec::DualPi2(spec), 0), under_overload(QueueSpec::DualPi2(spec), 2));
    let first = dropped(&not_ect, DropReason::Early)[0];
    assert_eq!(ect[&first.0].1, Fate::Delivered { marked: true });
}

#[test]
fn dualpi2_serves_l4s_traffic_before_a_classic_queue_that_is_not_much_older() {
    let one = |scheduler| QueueSpec::DualPi2(DualPi2Spec { scheduler, ..DualPi2Spec::default() });
    let shifted = one(DualScheduler::TimeShifted(Duration::from_ms(50)));
    let rate = Rate::from_bps(8_000_000);
    let ids = |queue| order(queue, rate, &[0, 0, 0, 1, 1]).iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids(shifted), [0, 3, 4, 1, 2]);
    // One byte of ten is for the classic queue, which has no effect within five packets.
    assert_eq!(ids(one(DualScheduler::Weighted(10))), [0, 3, 4, 1, 2]);
    assert_eq!(ids(one(DualScheduler::Weighted(60))), [0, 1, 3, 2, 4]);
}
