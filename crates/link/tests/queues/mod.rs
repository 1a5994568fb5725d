//! Random parameters of queue disciplines.

use fastpath_link::{
    Classes, CodelSpec, DropEnd, DrrShare, DrrSpec, DualPi2Spec, DualScheduler, Ecn, FqCodelSpec, Limit,
    MahimahiSpec, Peak, PieSpec, PolicerSpec, PrioSpec, QueueSpec, SojournSpec, TokenBucketSpec,
};
use fastpath_units::{Bytes, Duration, Probability, Rate};
use proptest::prelude::*;

/// Returns a limit, which often refuses packets.
pub(crate) fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u32..60).prop_map(Limit::Packets),
        (0u64..60_000).prop_map(|n| Limit::Bytes(Bytes(n))),
        Just(Limit::Packets(1000)),
    ]
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop::sample::select(vec![Ecn::Off, Ecn::Mark])
}

/// Returns a time of at least a microsecond.
pub(crate) fn span(max_us: u64) -> impl Strategy<Value = Duration> {
    (1..=max_us).prop_map(Duration::from_us)
}

prop_compose! {
    fn codel()(target in span(8_000), interval in span(100_000), mtu in 0u64..3000, limit in limit(), ecn in ecn())
        -> CodelSpec {
        CodelSpec { target, interval, mtu: Bytes(mtu), limit, ecn }
    }
}

prop_compose! {
    fn fq_codel()(codel in codel(), flows in 1u16..9, quantum in 200u64..4000) -> FqCodelSpec {
        FqCodelSpec { codel, flows, quantum: Bytes(quantum) }
    }
}

prop_compose! {
    // Large weights, so that a short run reaches probabilities of every size.
    fn pie()(target in span(20_000), update in span(20_000), burst in span(50_000), alpha in 0.1..50.0,
             beta in 1.0..200.0, mean_packet in 0u64..1600, mark_below in 0.0..0.5, ecn in ecn(), options: (bool, bool),
             limit in limit())
        -> PieSpec {
        let mark_below = Probability::new(mark_below).expect("a probability");
        let (mean_packet, (derandomize, cap_adjustment)) = (Bytes(mean_packet), options);
        PieSpec { target, update, burst, alpha, beta, mean_packet, mark_below, ecn, derandomize, cap_adjustment, limit }
    }
}

prop_compose! {
    fn dualpi2()(target in span(20_000), update in span(20_000), alpha in 0.1..50.0, beta in 1.0..200.0,
                 coupling in 0.5..4.0, ramp_start in span(3_000), ramp_range in prop_oneof![Just(0), 0u64..3_000],
                 ramp_packets in 0u32..3, limit in limit(), scheduler in prop_oneof![
                     span(60_000).prop_map(DualScheduler::TimeShifted),
                     (0u8..100).prop_map(DualScheduler::Weighted),
                 ]) -> DualPi2Spec {
        let ramp_range = Duration::from_us(ramp_range);
        DualPi2Spec { target, update, alpha, beta, coupling, ramp_start, ramp_range, ramp_packets, scheduler, limit }
    }
}

prop_compose! {
    fn token_bucket()(bps in prop::sample::select(vec![30_000, 500_000, 3_333_333, 50_000_000]), burst in 500u64..8000,
                      limit in limit(), peak in prop::option::of((1u64..4, 1000u64..3000))) -> TokenBucketSpec {
        let rate = |bps| Rate::from_bps(bps).expect("in range");
        let peak = peak.map(|(times, burst)| Peak { rate: rate(bps * times + 7), burst: Bytes(burst) });
        TokenBucketSpec { rate: rate(bps), burst: Bytes(burst), peak, limit }
    }
}

prop_compose! {
    fn policer()(bps in prop::sample::select(vec![30_000, 500_000, 3_333_333, 50_000_000]), burst in 500u64..8000,
                 limit in limit()) -> PolicerSpec {
        PolicerSpec { rate: Rate::from_bps(bps).expect("in range"), burst: Bytes(burst), limit }
    }
}

prop_compose! {
    fn mahimahi()(packets in prop::option::of(1u32..60), bytes in prop::option::of(1u64..60_000), head: bool)
        -> MahimahiSpec {
        let drop = if head { DropEnd::Head } else { DropEnd::Tail };
        MahimahiSpec { packets, bytes: bytes.map(Bytes), drop }
    }
}

/// All DSCPs, distributed over `count` classes.
fn classes(count: usize) -> Classes {
    (0..count as u8).fold(Classes::all_in(0), |classes, class| {
        classes.with(class, (0..64).filter(move |dscp| dscp % count as u8 == class))
    })
}

fn prio() -> impl Strategy<Value = PrioSpec> {
    prop::collection::vec(limit(), 1..5).prop_map(|bands| PrioSpec { classes: classes(bands.len()), bands })
}

fn drr() -> impl Strategy<Value = DrrSpec> {
    let share =
        (1u64..3000, limit()).prop_map(|(quantum, limit)| DrrShare { quantum: Bytes(quantum), limit });
    prop::collection::vec(share, 1..5).prop_map(|shares| DrrSpec { classes: classes(shares.len()), shares })
}

/// Returns a discipline that decides at dequeue, with random parameters.
pub(crate) fn queue() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        3 => dualpi2().prop_map(QueueSpec::DualPi2),
        2 => token_bucket().prop_map(QueueSpec::TokenBucket),
        1 => policer().prop_map(QueueSpec::Policer),
        1 => mahimahi().prop_map(QueueSpec::Mahimahi),
        1 => prio().prop_map(QueueSpec::Prio),
        2 => drr().prop_map(QueueSpec::Drr),
        1 => limit().prop_map(QueueSpec::DropHead),
        1 => (span(50_000), limit())
            .prop_map(|(longest, limit)| QueueSpec::Sojourn(SojournSpec { longest, limit })),
        1 => codel().prop_map(QueueSpec::Codel),
        1 => fq_codel().prop_map(QueueSpec::FqCodel),
        1 => pie().prop_map(QueueSpec::Pie),
    ]
}
