//! What a packet costs in a network, from the store to the store: `cargo bench -p fastpath-net`.
//!
//! Two hosts, 64-byte frames, every packet through rate, queue, delay and loss; bursts of 32 enter, what is
//! due leaves. `items` are packets: divide the time by them.

use divan::counter::ItemsCount;
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_net::{EdgeId, Network, NodeKind, Options, Topology};
use fastpath_units::{Duration, Probability, Rate, Time};
use std::num::NonZeroUsize;

fn main() {
    divan::main();
}

const BURSTS: u64 = 1000;
const BURST: u64 = 32;

fn network(links: usize) -> Network {
    let pipe = PipeSpec {
        rate: Rate::from_bps(100_000_000_000 / links as u64),
        delay: Duration::from_us(10),
        loss: Probability::new(0.001).expect("a probability").into(),
        queue: QueueSpec::DropTail(Limit::Packets(1000)),
        ..PipeSpec::default()
    };
    let mut topology = Topology::default();
    for i in 0..links {
        let [a, b] =
            ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::Host { port: None }));
        topology.connect(format!("l{i}"), a, b, [pipe.clone(), pipe.clone()]);
    }
    Network::new(topology, Options { seed: 1, pool_limit: NonZeroUsize::MAX })
}

/// Packets spaced at 90 % of the rate, round robin over the links.
#[divan::bench(args = [1, 10, 1000, 100_000])]
fn two_hosts(bencher: divan::Bencher, links: usize) {
    let mut network = network(links);
    let frame = [0x5a; 64];
    let mut now = Time::ZERO;
    let mut next = 0;
    bencher.counter(ItemsCount::new(BURSTS * BURST)).bench_local(|| {
        for _ in 0..BURSTS {
            now += Duration::from_ps(BURST * 5690);
            for _ in 0..BURST {
                let handle = network.pool_mut().insert(&frame).expect("room");
                network.push(now, EdgeId(2 * next as u32), handle);
                next = (next + 1) % links;
            }
            while let Some(delivery) = network.pop(now) {
                divan::black_box(network.pool().bytes(&delivery.frame)[0]);
                network.pool_mut().free(delivery.frame);
            }
        }
    });
}
