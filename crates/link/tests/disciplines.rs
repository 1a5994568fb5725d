//! Disciplines that decide at dequeue, against their naive twins: random links and arrivals, drop for drop,
//! mark for mark, picosecond for picosecond.

use fastpath_link::oracle::aqm;
use fastpath_link::{CodelSpec, Ecn, Fate, Limit, Packet, Pipe, PipeSpec, QueueSpec, SojournSpec, Verdict};
use fastpath_units::{Bytes, Duration, Rate, Rng, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Arrivals = Vec<(Time, Packet<()>)>;
type Fates = BTreeMap<usize, (Time, Fate)>;

/// Sends the arrivals through a pipe that is looked at only when it asks for it.
fn through_a_pipe(spec: &PipeSpec, arrivals: &Arrivals, seed: u64) -> Fates {
    let mut pipe: Pipe<usize> = Pipe::new(spec, Rng::new(seed));
    let mut fates = Fates::new();
    let mut last = Time::ZERO;
    let mut next = 0;
    loop {
        let arrival = arrivals.get(next).map(|(at, _)| *at);
        let Some(now) = pipe.next_at().into_iter().chain(arrival).min() else { break };
        while let Some(exit) = pipe.pop(now) {
            assert!(last <= exit.at && exit.at <= now, "exits come in order and in time");
            last = exit.at;
            fates.insert(exit.packet.data, (exit.at, exit.fate));
        }
        if arrival == Some(now) {
            let (_, Packet { len, flow, traffic_class, .. }) = arrivals[next];
            if let Verdict::Dropped(reason, id) =
                pipe.push(now, Packet { len, flow, traffic_class, data: next })
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

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u32..60).prop_map(Limit::Packets),
        (0u64..60_000).prop_map(|n| Limit::Bytes(Bytes(n))),
        Just(Limit::Packets(1000)),
    ]
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::Off, Ecn::Mark])
}

fn span(max_us: u64) -> impl Strategy<Value = Duration> {
    (1..=max_us).prop_map(Duration::from_us)
}

prop_compose! {
    fn codel()(target in span(8_000), interval in span(100_000), mtu in 0u64..3000, limit in limit(), ecn in ecn())
        -> CodelSpec {
        CodelSpec { target, interval, mtu: Bytes(mtu), limit, ecn }
    }
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        limit().prop_map(QueueSpec::DropHead),
        (span(50_000), limit())
            .prop_map(|(longest, limit)| QueueSpec::Sojourn(SojournSpec { longest, limit })),
        codel().prop_map(QueueSpec::Codel),
    ]
}

/// Arrivals around a load of once to thrice the rate in bursts and lulls: what disciplines exist for.
fn arrivals(rate: Rate) -> impl Strategy<Value = Arrivals> {
    let full = rate.transmission(Bytes(1500), Default::default()).0.as_ps();
    let gap = prop_oneof![
        6 => Just(0u64),
        6 => 0..full,
        3 => full..2 * full,
        1 => full..full * 40,
    ];
    let packet = (gap, 40u32..1515, 0u32..6, 0u8..8);
    prop::collection::vec(packet, 1..400).prop_map(|packets| {
        let mut now = Time::ZERO;
        let arrive = |(gap, len, flow, traffic_class)| {
            now += Duration::from_ps(gap);
            (now, Packet { len, flow, traffic_class, data: () })
        };
        packets.into_iter().map(arrive).collect()
    })
}

fn scenario() -> impl Strategy<Value = (Rate, Arrivals)> {
    prop::sample::select(vec![64_000, 1_000_000, 7_777_777, 100_000_000]).prop_flat_map(|bps| {
        let rate = Rate::from_bps(bps).expect("in range");
        (Just(rate), arrivals(rate))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_does_what_its_pseudo_code_does(
        queue in queue(),
        (rate, arrivals) in scenario(),
        delay in span(30_000),
        seed: u64,
    ) {
        let spec = PipeSpec { rate: Some(rate), delay, queue: queue.clone(), ..PipeSpec::default() };
        let ours = through_a_pipe(&spec, &arrivals, seed);
        let mut twin = aqm::twin(&queue);
        let theirs = aqm::run(&mut *twin, Some(rate), delay, &arrivals, &mut Rng::new(seed));
        prop_assert_eq!(ours, theirs);
    }
}
