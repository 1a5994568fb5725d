//! Events per second of the kernel: `cargo bench -p fastpath-sim`. The counter is events.

use divan::counter::ItemsCount;
use fastpath_sim::classic;

fn main() {
    divan::main();
}

#[divan::bench]
fn mm1(bencher: divan::Bencher) {
    let events = classic::mm1(1_000_000, 1).events;
    bencher.counter(ItemsCount::new(events)).bench(|| classic::mm1(1_000_000, 1));
}

#[divan::bench]
fn pipe32(bencher: divan::Bencher) {
    let events = classic::pipe32(30_000, 1).events;
    bencher.counter(ItemsCount::new(events)).bench(|| classic::pipe32(30_000, 1));
}
