//! The throughput of a whole worker from memory port to memory port, by frame size and by number of
//! links: ports, classification by port, loss, queue, rate, delay, lateness and accounting. Another
//! thread feeds and empties the ports.
//!
//! `cargo bench -p fastpath-engine --bench worker`
//!
//! Every link has two ports of its own here, so links end at 10³. For more links (10⁵, 10⁶) behind
//! one port see `fastpath measure pipeline --program emulate --links 1000000`, whose loop runs on
//! one core and is compared with its ceiling.
#![cfg(target_os = "linux")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{finish, options};
use fastpath_engine::port::{BURST, Memory, MemoryEnd, Port};
use fastpath_engine::{EdgePorts, Idle, start};
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_net::EdgeId;
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Duration, Probability, Rate};
use std::time::Instant;

const SIZES: [usize; 6] = [64, 128, 256, 512, 1024, 1518];
const LINKS: [usize; 3] = [1, 10, 1000];
const RUN: std::time::Duration = std::time::Duration::from_millis(500);
const RUNS: usize = 5;
/// Bytes of all rings together.
const RINGS: usize = 64 << 20;
/// Rate of all links together: never the limit.
const TOTAL_BPS: u64 = 400_000_000_000;

fn main() {
    println!(
        "{:>6} {:>7} {:>12} {:>12} {:>12}   frames/s, of {RUNS} runs",
        "bytes", "links", "median", "least", "most"
    );
    for links in LINKS {
        for size in SIZES {
            let mut rates: Vec<f64> = (0..RUNS).map(|_| rate(links, size)).collect();
            rates.sort_by(f64::total_cmp);
            println!(
                "{size:>6} {links:>7} {:>12.0} {:>12.0} {:>12.0}",
                rates[RUNS / 2],
                rates[0],
                rates[RUNS - 1]
            );
        }
    }
}

/// Returns the frames per second that arrive at the far ends.
fn rate(links: usize, size: usize) -> f64 {
    let (topology, ports, ends) = network(links);
    let running = start(topology, ports, options(Idle::Busy)).unwrap();
    let frame = vec![0x5a; size];
    let (mut received, mut counted_from) = (0, None);
    let begin = Instant::now();
    loop {
        let elapsed = begin.elapsed();
        // A tenth to warm up.
        if elapsed > RUN / 10 && counted_from.is_none() {
            counted_from = Some((elapsed, received));
        }
        if elapsed > RUN {
            break;
        }
        for pair in ends.chunks_exact(2) {
            pair[0].send((0..BURST).map(|_| frame.as_slice()));
            received += pair[1].recv(2 * BURST, |_| {});
        }
    }
    let elapsed = begin.elapsed();
    let report = finish(running);
    assert!(report.accounting.total_in > 0);
    let (from, before) = counted_from.expect("the run is longer than its warm-up");
    (received - before) as f64 / (elapsed - from).as_secs_f64()
}

/// Links with a memory port at each end.
fn network(links: usize) -> (Topology, EdgePorts, Vec<MemoryEnd>) {
    let pipe = PipeSpec {
        rate: Rate::from_bps(TOTAL_BPS / links as u64),
        delay: Duration::from_us(10),
        loss: Probability::new(0.001).expect("a probability").into(),
        queue: QueueSpec::DropTail(Limit::Packets(1000)),
        ..PipeSpec::default()
    };
    let mut topology = Topology::default();
    let (mut ports, mut ends): (EdgePorts, _) = (Vec::new(), Vec::new());
    for i in 0..links {
        let [a, b] = ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::host()));
        topology.connect(format!("l{i}"), a, b, [pipe.clone(), pipe.clone()]);
        for _ in [a, b] {
            let (port, end) = Memory::new("memory", RINGS / (4 * links));
            ports.push((EdgeId(ports.len() as u32), Box::new(port) as Box<dyn Port>));
            ends.push(end);
        }
    }
    (topology, ports, ends)
}
