//! The cost of a datagram through one link, from `send` to `receive`:
//! `cargo bench -p fastpath-sockets --bench datagrams`.
//!
//! `items` are datagrams. `bursts`: 32 are sent at one instant, and time moves to when the last of
//! them has arrived. `one_at_a_time`: time moves from event to event, as a stack lets it, while
//! datagrams leave one after the other.

use divan::counter::ItemsCount;
use fastpath_sockets::{Event, SocketId, VirtualNetwork};
use fastpath_units::Duration;
use std::net::SocketAddr;

fn main() {
    divan::main();
}

const DATAGRAMS: usize = 32_000;
const BURST: usize = 32;

fn network() -> (VirtualNetwork, SocketId, SocketAddr) {
    let spec = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Gbit'\ndelay = '10us'\nqueue = '1000p'";
    let mut network = VirtualNetwork::from_spec(spec, 1).expect("a valid spec");
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 9).expect("a free port"));
    let to = network.address(b);
    (network, a, to)
}

/// Receives what has arrived. Returns its number.
fn receive(network: &mut VirtualNetwork) -> usize {
    let mut count = 0;
    while let Some(event) = network.next_event() {
        if let Event::Arrived { socket } = event {
            count += usize::from(divan::black_box(network.receive(socket)).is_some());
        }
    }
    count
}

#[divan::bench(args = [64, 1200])]
fn bursts(bencher: divan::Bencher, size: usize) {
    let (mut network, a, to) = network();
    let payload = vec![7; size];
    bencher.counter(ItemsCount::new(DATAGRAMS)).bench_local(|| {
        let mut received = 0;
        for _ in 0..DATAGRAMS / BURST {
            for _ in 0..BURST {
                network.send(a, to, &payload).expect("there is room");
            }
            network.advance(network.now() + Duration::from_us(100)).expect("time goes on");
            received += receive(&mut network);
        }
        assert_eq!(received, DATAGRAMS);
    });
}

#[divan::bench(args = [64, 1200])]
fn one_at_a_time(bencher: divan::Bencher, size: usize) {
    let (mut network, a, to) = network();
    let payload = vec![7; size];
    let apart = Duration::from_us(2);
    bencher.counter(ItemsCount::new(DATAGRAMS)).bench_local(|| {
        let (mut sent, mut received, mut send_at) = (0, 0, network.now());
        while received < DATAGRAMS {
            if sent < DATAGRAMS && network.now() >= send_at {
                network.send(a, to, &payload).expect("there is room");
                sent += 1;
                send_at += apart;
                network.set_timer(send_at, 1);
            }
            let at = network.next_at().expect("something is on its way");
            network.advance(at).expect("time goes on");
            received += receive(&mut network);
        }
    });
}
