//! What the next pending time costs among many pipes: the earliest is popped and scheduled anew
//! (the "hold" model), by the wheel and by the heap it was preferred to; and what a packet costs
//! through many pipes. Run with `cargo bench -p fastpath-link --bench wheel`.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use fastpath_link::{Limit, LossSpec, Packet, PipeInit, PipeSpec, Pipes, QueueSpec, Wheel};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};

fn main() {
    divan::main();
}

const PIPES: [u32; 5] = [1, 10, 1_000, 100_000, 1_000_000];
const HOLDS: u64 = 100_000;

/// A packet every 50 ns into one of the pipes in turn of a random order, each at rate, delay, loss
/// and a queue; what is due leaves in the order of the wheel.
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
            let _ = black_box(pipes.push(now, id, Packet { len: 64, flow: 0, traffic_class: 0, data: id }));
            while let Some(exit) = pipes.pop(now) {
                black_box(exit);
            }
        }
    };
    // Every queue and delay line as full as it will be.
    run(u64::from(count) * 4 + 100_000);
    bencher.counter(ItemsCount::new(HOLDS)).bench_local(|| run(HOLDS));
}

/// What both can do.
trait Order {
    fn new(pipes: usize) -> Self;
    fn schedule(&mut self, id: u32, at: Time);
    fn next_at(&self) -> Option<Time>;
    fn pop_due(&mut self, now: Time) -> Option<(Time, u32)>;
}

/// Each pipe anew at up to twice the mean later, so that all of them together pop every 50 ns.
#[divan::bench(args = PIPES, types = [Wheel, Heap])]
fn hold_at_20_mpps<T: Order>(bencher: Bencher, pipes: u32) {
    hold::<T>(bencher, pipes, 2 * 50_000 * u64::from(pipes));
}

/// Each pipe anew within 100 ms: a thousand of them pop 20 000 times a second.
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

/// The alternative: a 4-ary heap that knows where each pipe is.
struct Heap {
    heap: Vec<(Time, u32)>,
    places: Vec<Option<u32>>,
}

impl Heap {
    fn put(&mut self, place: usize, entry: (Time, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = Some(place as u32);
    }

    fn up(&mut self, mut place: usize, entry: (Time, u32)) {
        while place > 0 && entry < self.heap[(place - 1) / 4] {
            self.put(place, self.heap[(place - 1) / 4]);
            place = (place - 1) / 4;
        }
        self.put(place, entry);
    }

    fn down(&mut self, mut place: usize, entry: (Time, u32)) {
        loop {
            let first = 4 * place + 1;
            let children = first..(first + 4).min(self.heap.len());
            match children.min_by_key(|&child| self.heap[child]) {
                Some(child) if self.heap[child] < entry => {
                    self.put(place, self.heap[child]);
                    place = child;
                }
                _ => break,
            }
        }
        self.put(place, entry);
    }
}

impl Order for Heap {
    fn new(pipes: usize) -> Heap {
        Heap { heap: Vec::new(), places: vec![None; pipes] }
    }
    fn schedule(&mut self, id: u32, at: Time) {
        match self.places[id as usize] {
            None => {
                self.heap.push((at, id));
                self.up(self.heap.len() - 1, (at, id));
            }
            Some(place) if self.heap[place as usize].0 < at => self.down(place as usize, (at, id)),
            Some(place) => self.up(place as usize, (at, id)),
        }
    }
    fn next_at(&self) -> Option<Time> {
        self.heap.first().map(|&(at, _)| at)
    }
    fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        let &first = self.heap.first().filter(|first| first.0 <= now)?;
        let last = self.heap.pop()?;
        self.places[first.1 as usize] = None;
        if !self.heap.is_empty() {
            self.down(0, last);
        }
        Some(first)
    }
}
