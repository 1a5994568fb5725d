//! The cost of a generated packet in virtual time, from its model to its receiver: `cargo bench -p
//! fastpath --bench traffic`.
//!
//! One flow of 64-byte frames (with FCS) crosses one link at 90 % of its rate. `items` are packets:
//! the throughput is packets per second on one core.

use divan::counter::ItemsCount;
use fastpath::Replay;
use fastpath::spec::{Topology, parse};

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
