//! The cost of a packet in a pipe: `push` and `pop`, without wheel, frames or ports.
//! Run with `cargo bench -p fastpath-link --bench pipe`.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fastpath_link::{
    CodelSpec, CrossLaw, CrossSpec, Limit, LossSpec, Packet, Pipe, PipeSpec, QueueSpec, RedSpec,
};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};
use std::num::NonZeroU32;

fn main() {
    divan::main();
}

/// Packets per sample. A burst is pushed, then packets that are due are popped.
const PACKETS: u64 = 64_000;
const BURST: u64 = 32;

fn full(queue: QueueSpec) -> PipeSpec {
    PipeSpec {
        rate: Rate::from_bps(10_000_000_000),
        overhead: 24,
        delay: Duration::from_us(100),
        loss: LossSpec::Uniform(Probability::new(0.01).expect("1 %")),
        queue,
        ..PipeSpec::default()
    }
}

/// Offers frames of the given lengths at 95 % of the rate, in bursts, in a steady state.
fn run(bencher: Bencher, spec: &PipeSpec, lens: [u32; 2]) {
    let mut pipe = Pipe::new(spec, Rng::new(1));
    let wire = u64::from(lens[0] + lens[1]) / 2 + 24;
    let gap = Duration::from_ps(wire * 8 * BURST * 100 / 95 * 100);
    let mut now = Time::ZERO;
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for _ in 0..PACKETS / BURST {
            now += gap;
            for i in 0..BURST {
                let len = lens[i as usize % 2];
                let _ = black_box(pipe.push(now, Packet::new(len, 7u32)));
            }
            while let Some(exit) = pipe.pop(now) {
                black_box(exit);
            }
        }
    });
}

#[divan::bench]
fn ideal_64(bencher: Bencher) {
    run(bencher, &PipeSpec::default(), [64, 64]);
}

#[divan::bench]
fn rate_delay_loss_drop_tail_64(bencher: Bencher) {
    run(bencher, &full(QueueSpec::DropTail(Limit::Packets(1000))), [64, 64]);
}

#[divan::bench]
fn rate_delay_loss_drop_tail_mixed(bencher: Bencher) {
    run(bencher, &full(QueueSpec::DropTail(Limit::Packets(1000))), [64, 1514]);
}

#[divan::bench]
fn rate_delay_loss_red_64(bencher: Bencher) {
    run(bencher, &full(QueueSpec::Red(RedSpec::default())), [64, 64]);
}

/// A general pipe.
#[divan::bench]
fn rate_delay_loss_codel_64(bencher: Bencher) {
    run(bencher, &full(QueueSpec::Codel(CodelSpec::default())), [64, 64]);
}

/// As many packets of cross traffic as of others, which have half the rate each.
#[divan::bench]
fn cross_traffic_64(bencher: Bencher) {
    let rate = Rate::from_bps(10_000_000_000).expect("not 0");
    let cross = Some(CrossSpec { rate, law: CrossLaw::Poisson, packet: NonZeroU32::new(64).expect("not 0") });
    let spec = full(QueueSpec::DropTail(Limit::Packets(1000)));
    run(bencher, &PipeSpec { cross, rate: Rate::from_bps(20_000_000_000), ..spec }, [64, 64]);
}
