//! The cost of the next pending time among many pipes: the earliest is popped and rescheduled (the
//! "hold" model), with the wheel and with a heap. And the cost of a packet through many pipes. Run
//! with `cargo bench -p fastpath-link --bench wheel`.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fastpath_link::{Limit, LossSpec, Packet, PipeInit, PipeSpec, Pipes, QueueSpec, Wheel};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn main() {
    divan::main();
}

const PIPES: [u32; 5] = [1, 10, 1_000, 100_000, 1_000_000];
const HOLDS: u64 = 100_000;

/// A packet every 50 ns into a random pipe with rate, delay, loss and a queue. Packets that are due
/// leave in the order of the wheel.
#[divan::bench(args = PIPES)]
fn packets_through_many_pipes(bencher: Bencher, count: u32) {
    let spec = PipeSpec {
        rate: Rate::from_bps((20_000_000_000 / u64::from(count)).max(128_000)),
        delay: Duration::from_us(1000),
        loss: LossSpec::Uniform(Probability::new(0.01).expect("1 %")),
        queue: QueueSpec::DropTail(Limit::Packets(1000)),
        ..PipeSpec::default()
    };
    let plan = |id: usize| PipeInit { spec: &spec, rng: Rng::stream(1, id as u64) };
    let mut pipes: Pipes<u32> = Pipes::new((0..count as usize).map(plan), 1 << 16);
    let (mut now, mut rng) = (Time::ZERO, Rng::new(2));
    let mut run = |packets: u64| {
        for _ in 0..packets {
            now += Duration::from_ns(50);
            let id = rng.below(count.into()) as u32;
            let _ = black_box(pipes.push(now, id, Packet::new(64, id)));
            while let Some(exit) = pipes.pop(now) {
                black_box(exit);
            }
        }
    };
    // Until queues and delay lines are in a steady state.
    run(u64::from(count) * 4 + 100_000);
    bencher.counter(ItemsCount::new(HOLDS)).bench_local(|| run(HOLDS));
}

/// The common operations.
trait Order {
    fn new(pipes: usize) -> Self;
    fn schedule(&mut self, id: u32, at: Time);
    fn next_at(&self) -> Option<Time>;
    fn pop_due(&mut self, now: Time) -> Option<(Time, u32)>;
}

/// Each pipe is rescheduled at up to twice the mean interval, so that pipes are popped every 50 ns.
#[divan::bench(args = PIPES, types = [Wheel, Heap])]
fn hold_at_20_mpps<T: Order>(bencher: Bencher, pipes: u32) {
    hold::<T>(bencher, pipes, 2 * 50_000 * u64::from(pipes));
}

/// Each pipe is rescheduled within 100 ms: a thousand pipes are popped 20 000 times per second.
#[divan::bench(args = PIPES, types = [Wheel, Heap])]
fn hold_within_100_ms<T: Order>(bencher: Bencher, pipes: u32) {
    hold::<T>(bencher, pipes, 100_000_000_000);
}

fn hold<T: Order>(bencher: Bencher, pipes: u32, span: u64) {
    let mut rng = Rng::new(1);
    let mut order = T::new(pipes as usize);
    for id in 0..pipes {
        order.schedule(id, Time::from_ps(rng.below(span)));
    }
    bencher.counter(ItemsCount::new(HOLDS)).bench_local(|| {
        for _ in 0..HOLDS {
            let now = order.next_at().expect("all pipes are pending");
            let (at, id) = order.pop_due(now).expect("one is due");
            order.schedule(id, black_box(at) + Duration::from_ps(rng.below(span)));
        }
    });
}

impl Order for Wheel {
    fn new(pipes: usize) -> Wheel {
        Wheel::new(pipes)
    }
    fn schedule(&mut self, id: u32, at: Time) {
        self.schedule(id, at);
    }
    fn next_at(&self) -> Option<Time> {
        self.next_at()
    }
    fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        self.pop_due(now)
    }
}

/// The alternative: the heap of the standard library. The hold model reschedules only popped pipes.
struct Heap(BinaryHeap<Reverse<(Time, u32)>>);

impl Order for Heap {
    fn new(pipes: usize) -> Heap {
        Heap(BinaryHeap::with_capacity(pipes))
    }
    fn schedule(&mut self, id: u32, at: Time) {
        self.0.push(Reverse((at, id)));
    }
    fn next_at(&self) -> Option<Time> {
        self.0.peek().map(|first| first.0.0)
    }
    fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        self.0.peek().filter(|first| first.0.0 <= now)?;
        self.0.pop().map(|first| first.0)
    }
}
