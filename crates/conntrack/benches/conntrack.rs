//! The time to commit a connection, and to find one of a million; each figure is one packet, and
//! beside them is what the memory allows: reads of lines at random, and a map of the standard
//! library. A lookup reads a slot of the index and then a line, so it cannot be faster than
//! `slot_and_line`. On huge pages, as in the program:
//!
//! `GLIBC_TUNABLES=glibc.malloc.hugetlb=1 cargo bench -p fastpath-conntrack`

#![allow(missing_docs)]

use divan::{Bencher, black_box};
use fastpath_conntrack::{
    Commit, Conntrack, ConntrackLimits, FlowTuple, PacketKind, PacketView, TcpSegment, TrackRequest,
    tcp_flags,
};
use fastpath_units::{Duration, Rng, Time};
#[expect(clippy::disallowed_types, reason = "compared with; nothing iterates over it")]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

fn main() {
    divan::main();
}

const COUNT: u64 = 1_000_000;
/// Packets of a burst.
const BURST: usize = 32;

fn tuple(number: u64) -> FlowTuple {
    let (src, src_port) = (0x0a00_0000 + u128::from(number >> 8), 1024 + (number & 0xff) as u16);
    FlowTuple { src, dst: 0xc000_0201, src_port, dst_port: 80, protocol: 6, is_v6: false }
}

fn packet(number: u64) -> PacketView<'static> {
    let segment = TcpSegment { flags: tcp_flags::SYN, seq: 1, ack: 1, window: 1000, ..TcpSegment::default() };
    PacketView { tuple: tuple(number), kind: PacketKind::Tcp(segment), payload: &[] }
}

fn commit_request() -> TrackRequest {
    TrackRequest { commit: Commit::Yes, ..TrackRequest::default() }
}

fn table(count: u64) -> Conntrack {
    let mut table = Conntrack::new(ConntrackLimits { connections: 1 << 21, per_zone: 1 << 21 }, 1);
    for number in 0..count {
        table.track(Time::ZERO, &packet(number), &commit_request());
    }
    table
}

/// What the other figures contain of the benchmark itself: a random number and its packet.
#[divan::bench(sample_count = 20, sample_size = 100_000)]
fn packet_alone(bencher: Bencher<'_, '_>) {
    let mut rng = Rng::new(1);
    bencher.bench_local(|| packet(rng.below(COUNT)));
}

/// Packets of random connections, one after the other.
#[divan::bench(args = [1_000, 1_000_000], sample_count = 20, sample_size = 100_000)]
fn lookup(bencher: Bencher<'_, '_>, count: u64) {
    let mut table = table(count);
    let mut rng = Rng::new(1);
    bencher.bench_local(|| table.track(Time::ZERO, &packet(rng.below(count)), &TrackRequest::default()));
}

/// The same, in bursts whose connections are fetched first. One packet of 32 does that for all.
#[divan::bench(args = [1_000, 1_000_000], sample_count = 20, sample_size = 96_000)]
fn lookup_in_bursts(bencher: Bencher<'_, '_>, count: u64) {
    let mut table = table(count);
    let mut rng = Rng::new(1);
    let mut burst = [FlowTuple::default(); BURST];
    let mut packets = [packet(0); BURST];
    let mut at = BURST;
    bencher.bench_local(|| {
        if at == BURST {
            at = 0;
            for (packet_of, key) in packets.iter_mut().zip(&mut burst) {
                *packet_of = packet(rng.below(count));
                *key = packet_of.tuple;
            }
            table.prefetch(&burst);
        }
        at += 1;
        table.track(Time::ZERO, &packets[at - 1], &TrackRequest::default())
    });
}

/// New connections, one a microsecond, of which each ends after its timeout of 30 s.
#[divan::bench(sample_count = 10, sample_size = 100_000)]
fn commit(bencher: Bencher<'_, '_>) {
    let mut table = table(0);
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        let now = Time::ZERO.saturating_add(Duration::from_us(number));
        table.track(now, &packet(number), &commit_request())
    });
}

/// New connections beside a million others, in place of ones that end.
#[divan::bench(sample_count = 10, sample_size = 100_000)]
fn replace(bencher: Bencher<'_, '_>) {
    let mut table = table(COUNT);
    let mut number = COUNT;
    let mut now = Time::ZERO.saturating_add(Duration::from_secs(30));
    bencher.bench_local(|| {
        number += 1;
        now = now.saturating_add(Duration::from_ns(1000));
        table.track(now, &packet(number), &commit_request())
    });
}

/// A cache line.
#[derive(Clone)]
#[repr(align(64))]
struct MemoryLine([u64; 8]);

/// Memory of the size of a table: slots with the numbers of lines, and lines.
fn memory(count: u64) -> (Vec<u64>, Vec<MemoryLine>) {
    let slots = (2 * count).next_power_of_two();
    let mut rng = Rng::new(2);
    ((0..slots).map(|_| rng.below(count)).collect(), vec![MemoryLine([1; 8]); count as usize])
}

/// A slot at random and its line. The next place depends on what was read.
#[divan::bench(args = [1_000, 1_000_000], sample_count = 20, sample_size = 100_000)]
fn slot_and_line(bencher: Bencher<'_, '_>, count: u64) {
    let (slots, lines) = memory(count);
    let mut rng = Rng::new(1);
    let mut before = 0;
    bencher.bench_local(|| {
        let at = (rng.next_u64() + before) as usize & (slots.len() - 1);
        before = lines[slots[at] as usize].0[3];
        before
    });
}

/// The same, of which many may be under way.
#[divan::bench(args = [1_000, 1_000_000], sample_count = 20, sample_size = 100_000)]
fn slot_and_line_at_once(bencher: Bencher<'_, '_>, count: u64) {
    let (slots, lines) = memory(count);
    let mut rng = Rng::new(1);
    bencher.bench_local(|| {
        let at = rng.next_u64() as usize & (slots.len() - 1);
        lines[slots[at] as usize].0[3]
    });
}

/// The hash of a tuple by two products.
#[derive(Default)]
struct Products(u64);

impl Hasher for Products {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15_d6e8_feb8_6659_fd93;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A map of the standard library (hashbrown), whose values are lines.
#[divan::bench(args = [1_000, 1_000_000], sample_count = 20, sample_size = 100_000)]
fn map(bencher: Bencher<'_, '_>, count: u64) {
    let key = |number| {
        let FlowTuple { src, dst, src_port, dst_port, .. } = tuple(number);
        (src as u64 | u64::from(src_port) << 32, dst as u64 | u64::from(dst_port) << 32)
    };
    #[expect(clippy::disallowed_types, reason = "compared with; nothing iterates over it")]
    let mut map: HashMap<(u64, u64), MemoryLine, BuildHasherDefault<Products>> = HashMap::default();
    map.extend((0..count).map(|number| (key(number), MemoryLine([1; 8]))));
    let mut rng = Rng::new(1);
    bencher.bench_local(|| black_box(map.get(&key(rng.below(count))).map(|line| line.0[3])));
}
