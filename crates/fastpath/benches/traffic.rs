//! The cost of a generated packet in virtual time, from its model to its receiver: `cargo bench -p
//! fastpath --bench traffic`.
//!
//! One flow of 64-byte frames (with FCS) crosses one link at 90 % of its rate. `items` are packets:
//! the throughput is packets per second on one core.
//!
//! In a network of a hundred routers `items` are packets at nodes (packet-hops), with one worker
//! and with several.

use divan::counter::ItemsCount;
use fastpath::Replay;
use fastpath::net::Partition;
use fastpath::replay::WorkerCount;
use fastpath::spec::{Topology, parse};
use fastpath::units::Rng;
use std::fmt::Write;
use std::num::NonZeroUsize;

fn main() {
    divan::main();
}

/// Payload of a frame of 60 bytes.
const PAYLOAD: u32 = 18;
const PACKETS: u64 = 1_000_000;

/// A network in which `kind` sends a million packets, or about as many.
fn network(kind: &str) -> Topology {
    // 60 bytes at 10 Gbit/s are 48 ns.
    let rate = 9_000_000_000_u64 * u64::from(PAYLOAD) / 60;
    let stop_ns = PACKETS * u64::from(PAYLOAD) * 8 * 1_000_000_000 / rate;
    let text = format!(
        "family = 'v4'\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Gbit'\ndelay = '10us'\nqueue = '1000p'\n\
         [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = '{kind}'\nsize = {PAYLOAD}\nrate = '{rate}bit'\nstop = '{stop_ns}ns'\n"
    );
    parse(&text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
}

#[divan::bench(args = ["constant", "poisson"], sample_count = 5)]
fn one_link(bencher: divan::Bencher, kind: &str) {
    let topology = network(kind);
    bencher.counter(ItemsCount::new(PACKETS)).bench(|| {
        let summary = Replay::through(topology.clone()).run().expect("it runs");
        assert!(summary.traffic[0].received > PACKETS * 9 / 10);
        summary
    });
}

/// A grid of ten by ten routers, each with a host that sends to another nearby.
fn grid() -> Topology {
    let mut rng = Rng::new(1);
    let mut text = "family = 'v4'\n".to_owned();
    let link = |a: String, b: String| {
        format!("[[link]]\nbetween = ['{a}', '{b}']\nrate = '10Gbit'\ndelay = '1ms'\nqueue = '1000p'\n")
    };
    let (mut links, mut traffic) = (String::new(), String::new());
    for at in 0..100_u64 {
        let (x, y) = (at % 10, at / 10);
        let _ = writeln!(text, "[router.r{at}]\n[host.h{at}]");
        links += &link(format!("h{at}"), format!("r{at}"));
        if x < 9 {
            links += &link(format!("r{at}"), format!("r{}", at + 1));
        }
        if y < 9 {
            links += &link(format!("r{at}"), format!("r{}", at + 10));
        }
        let near = |place: u64, rng: &mut Rng| (place + rng.below(9)).saturating_sub(4).min(9);
        let to = 10 * near(y, &mut rng) + near(x, &mut rng);
        if to != at {
            let _ = writeln!(
                traffic,
                "[[traffic]]\nname = 'f{at}'\nfrom = 'h{at}'\nto = 'h{to}'\nkind = 'poisson'\nsize = 200\n\
                 rate = '16Mbit'\nstop = '1s'"
            );
        }
    }
    parse(&(text + &links + &traffic)).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
}

#[divan::bench(args = [1, 2, 4], sample_count = 3, sample_size = 1)]
fn hundred_routers(bencher: divan::Bencher, workers: usize) {
    let topology = grid();
    let workers = NonZeroUsize::new(workers).expect("above 0");
    // The traffic lasts a second.
    let hops = Partition::new(&topology, workers).expected_hops_per_s().expect("there is traffic");
    bencher.counter(ItemsCount::new(hops)).bench(|| {
        let replay = Replay::through(topology.clone()).workers(WorkerCount::AtMost(workers));
        let summary = replay.run().expect("it runs");
        assert_eq!(summary.accounting.total_dropped(), 0);
        summary
    });
}
