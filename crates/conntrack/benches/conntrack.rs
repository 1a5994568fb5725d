//! The time to commit a connection, and to find one of a million. `cargo bench -p
//! fastpath-conntrack`; each figure is one packet.

#![allow(missing_docs)]

use divan::Bencher;
use fastpath_conntrack::{
    Commit, Conntrack, ConntrackLimits, FlowTuple, PacketKind, PacketView, TcpSegment, TrackRequest,
    tcp_flags,
};
use fastpath_units::{Duration, Rng, Time};

fn main() {
    divan::main();
}

const COUNT: u64 = 1_000_000;

fn tuple(number: u64) -> FlowTuple {
    let (src, src_port) = (0x0a00_0000 + u128::from(number >> 8), 1024 + (number & 0xff) as u16);
    FlowTuple { src, dst: 0xc000_0201, src_port, dst_port: 80, protocol: 6, is_v6: false }
}

fn segment(flags: u16) -> PacketKind {
    PacketKind::Tcp(TcpSegment { flags, seq: 1, ack: 1, window: 1000, ..TcpSegment::default() })
}

fn table(count: u64) -> Conntrack {
    let mut table = Conntrack::new(ConntrackLimits { connections: 1 << 21, per_zone: 1 << 21 }, 1);
    let commit = TrackRequest { commit: Commit::Yes, ..TrackRequest::default() };
    for number in 0..count {
        table.track(Time::ZERO, &PacketView { tuple: tuple(number), kind: segment(tcp_flags::SYN) }, &commit);
    }
    table
}

/// Packets of random ones of a million connections.
#[divan::bench(args = [1_000, 1_000_000], sample_count = 20, sample_size = 100_000)]
fn lookup(bencher: Bencher<'_, '_>, count: u64) {
    let mut table = table(count);
    let mut rng = Rng::new(1);
    bencher.bench_local(|| {
        let packet = PacketView { tuple: tuple(rng.below(count)), kind: segment(tcp_flags::SYN) };
        table.track(Time::ZERO, &packet, &TrackRequest::default())
    });
}

/// New connections, one a microsecond, of which each ends after its timeout of 30 s.
#[divan::bench(sample_count = 10, sample_size = 100_000)]
fn commit(bencher: Bencher<'_, '_>) {
    let mut table = table(0);
    let commit = TrackRequest { commit: Commit::Yes, ..TrackRequest::default() };
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        let now = Time::ZERO.saturating_add(Duration::from_us(number));
        table.track(now, &PacketView { tuple: tuple(number), kind: segment(tcp_flags::SYN) }, &commit)
    });
}

/// New connections beside a million others, in place of ones that end.
#[divan::bench(sample_count = 10, sample_size = 100_000)]
fn replace(bencher: Bencher<'_, '_>) {
    let mut table = table(COUNT);
    let commit = TrackRequest { commit: Commit::Yes, ..TrackRequest::default() };
    let mut number = COUNT;
    let mut now = Time::ZERO.saturating_add(Duration::from_secs(30));
    bencher.bench_local(|| {
        number += 1;
        now = now.saturating_add(Duration::from_ns(1000));
        table.track(now, &PacketView { tuple: tuple(number), kind: segment(tcp_flags::SYN) }, &commit)
    });
}
