//! The cost of a packet in a network, from allocation to release: `cargo bench -p fastpath-net`.
//!
//! Each link connects two hosts, and each packet passes rate, queue, delay and loss. Bursts of 32
//! packets enter, and all due packets leave. `items` are packets: divide the time by them.

use divan::counter::ItemsCount;
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_net::{EdgeId, Network, Options};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Duration, Probability, Rate, Time};
use std::num::NonZeroUsize;

fn main() {
    divan::main();
}

const BURSTS: u64 = 1000;
const BURST: u64 = 32;

fn network(links: usize) -> Network {
    let pipe = PipeSpec {
        rate: Rate::from_bps((100_000_000_000 / links as u64).max(128_000)),
        delay: Duration::from_us(10),
        loss: Probability::new(0.001).expect("a probability").into(),
        queue: QueueSpec::DropTail(Limit::Packets(1000)),
        ..PipeSpec::default()
    };
    let mut topology = Topology::default();
    for i in 0..links {
        let [a, b] = ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::host()));
        topology.connect(format!("l{i}"), a, b, [pipe.clone(), pipe.clone()]);
    }
    Network::new(topology, Options::new(1, NonZeroUsize::MAX))
}

#[divan::bench(args = [1, 10, 1000, 100_000, 1_000_000])]
fn two_hosts(bencher: divan::Bencher, links: usize) {
    run(bencher, links, 64);
}

#[divan::bench(args = [64, 128, 256, 512, 1024, 1280, 1518])]
fn sizes_on_one_link(bencher: divan::Bencher, size: usize) {
    run(bencher, 1, size);
}

/// Sends packets at 90 % of the rate, round robin over the links.
fn run(bencher: divan::Bencher, links: usize, size: usize) {
    let mut network = network(links);
    let frame = vec![0x5a; size];
    let mut now = Time::ZERO;
    let mut next = 0;
    let (mut burst, mut due) = (Vec::new(), Vec::new());
    bencher.counter(ItemsCount::new(BURSTS * BURST)).bench_local(|| {
        for _ in 0..BURSTS {
            // 8 bits at 100 Gbit/s are 80 ps.
            now += Duration::from_ps(BURST * size as u64 * 89);
            network.pop_burst(now, usize::MAX, &mut due);
            for delivery in due.drain(..) {
                divan::black_box(network.pool().bytes(&delivery.frame)[0]);
                network.pool_mut().free(delivery.frame);
            }
            for _ in 0..BURST {
                let handle = network.pool_mut().insert(&frame).expect("room");
                burst.push((EdgeId(2 * next as u32), handle));
                next = (next + 1) % links;
            }
            network.push_burst(now, &mut burst);
        }
    });
}
