//! Segments in super-packets cross a network exactly as frames with their own bytes do.

use fastpath_net::{Delivery, EdgeId, Frame, FramePool, Network, Options};
use fastpath_spec as spec;
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp, tcp_flags};
use fastpath_wire::segment::SuperPacket;
use fastpath_wire::vnet::{Gso, GsoKind};
use std::net::IpAddr;
use std::num::NonZeroUsize;

/// A link with many impairments, a router with a small MTU, and a switch.
const SPEC: &str = r#"
[host.a]
[host.b]
[host.c]
[host.d]
[host.e]
[router.r]
[switch.s]
[[link]]
between = ["a", "b"]
rate = "2Mbit"
queue = { kind = "red", limit = "60p", min = "6p", max = "18p", probability = 0.1, ecn = true }
loss = "5%"
corrupt = "20%"
duplicate = "20%"
[[link]]
between = ["a", "r"]
delay = "1ms"
[[link]]
between = ["r", "c"]
mtu = 700

[[link]]
between = ["d", "s"]
rate = "5Mbit"
queue = { kind = "fq-codel" }
[[link]]
between = ["s", "e"]
duplicate = "10%"
"#;

const OPTIONS: Options = Options::with_seed(7);

type Arrived = Vec<(Time, EdgeId, Vec<u8>)>;

/// A super-packet: edge, bytes and segmentation.
type Sent = (EdgeId, Vec<u8>, Gso);

/// Allocates the segments of a super-packet: inside it, or with their own bytes.
fn segments(pool: &mut FramePool, (edge, bytes, gso): &Sent, in_super_packet: bool) -> Vec<(EdgeId, Frame)> {
    if in_super_packet {
        let mut slot = pool.alloc_super_packet().expect("the pool is not full");
        pool.truncate(&mut slot, bytes.len());
        pool.bytes_mut(&mut slot).copy_from_slice(bytes);
        let segments = pool.keep_super_packet(slot, *gso).expect("a super-packet");
        return segments.map(|segment| (*edge, segment)).collect();
    }
    let packet = SuperPacket::new(bytes, *gso).expect("a super-packet");
    let cut = |i| {
        let mut frame = pool.alloc(packet.len_of(i)).expect("the pool is not full");
        packet.write(i, pool.bytes_mut(&mut frame));
        (*edge, frame)
    };
    (0..packet.count()).map(cut).collect()
}

/// Returns all deliveries with their bytes.
fn run(traffic: &[Sent], in_super_packet: bool) -> Arrived {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let mut network = Network::new(topology, OPTIONS);
    for (number, sent) in traffic.iter().enumerate() {
        let mut burst = segments(network.pool_mut(), sent, in_super_packet);
        network.push_burst(Time::ZERO + Duration::from_us(500 * number as u64), &mut burst);
    }
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, mut frame }) = network.pop(Time::ZERO + Duration::from_secs(60)) {
        assert!(network.pool_mut().copy_out(&mut frame));
        out.push((at, edge, network.pool().bytes(&frame).to_vec()));
        network.pool_mut().free(frame);
    }
    assert!(network.accounting().balances());
    assert_eq!(network.pool().live(), 0);
    out
}

#[test]
fn segments_in_super_packets_are_delivered_like_separate_frames() {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let interfaces: Vec<_> = topology.hosts().flat_map(|(_, host)| &host.interfaces).collect();
    let mut rng = Rng::new(5);
    let traffic: Vec<Sent> = (0..1500u16)
        .map(|number| {
            let edge = rng.below(interfaces.len() as u64) as usize;
            let (from, (_, peer)) = (interfaces[edge], topology.peer(interfaces[edge]));
            let to = interfaces[rng.below(interfaces.len() as u64) as usize];
            // To the router if there is one, otherwise to the MAC of the destination, which can be
            // on another segment.
            let mac = if peer.addresses.is_empty() { to.mac } else { peer.mac };
            let end = |mac: Option<MacAddr>, address: IpAddr| (mac.expect("assigned"), address);
            let ends = (end(from.mac, from.addresses[0].addr()), end(mac, to.addresses[0].addr()));
            let ip = Ip { traffic_class: 2, dont_fragment: number % 2 == 0, ..Ip::between(ends.0, ends.1) };
            let payload = vec![number as u8; rng.below(6000) as usize];
            let (bytes, kind) = if number % 3 == 0 {
                (ip.udp(1000, number, &payload), GsoKind::Udp)
            } else {
                let flags = tcp_flags::ACK | rng.below(256) as u8;
                let tcp = Tcp { src_port: 1000, dst_port: number, flags, ..Tcp::default() };
                (ip.tcp(&tcp, &payload), GsoKind::TcpV4)
            };
            let size = 400 + rng.below(1000) as u16;
            (EdgeId(edge as u32), bytes, Gso { kind, size, ecn: false })
        })
        .collect();
    let [expected, found] = [false, true].map(|in_super_packet| run(&traffic, in_super_packet));
    assert!(expected.len() > 1000, "{}", expected.len());
    assert!(found == expected);
}

/// A router copies all segments out. The slow link behind it queues them.
const SLOW: &str = r#"
[host.a]
[host.b]
[router.r]
[[link]]
between = ["a", "r"]
[[link]]
between = ["r", "b"]
rate = "1Mbit"
queue = "1000000p"
"#;

#[test]
fn segments_copied_out_by_a_router_respect_the_limit_of_the_pool() {
    let (topology, _) = spec::parse(SLOW).expect("a valid spec");
    let interfaces: Vec<_> = topology.hosts().flat_map(|(_, host)| &host.interfaces).collect();
    let (_, router) = topology.peer(interfaces[0]);
    let ends = [(interfaces[0].mac, interfaces[0]), (router.mac, interfaces[1])]
        .map(|(mac, interface)| (mac.expect("assigned"), interface.addresses[0].addr()));
    let bytes = Ip::between(ends[0], ends[1]).tcp(&Tcp::default(), &[7; 60_000]);
    let sent = (EdgeId(0), bytes, Gso { kind: GsoKind::TcpV4, size: 1000, ecn: false });
    let options = Options { pool_limit: NonZeroUsize::new(8 << 20).unwrap(), ..OPTIONS };
    let mut network = Network::new(topology, options);
    for number in 0..1000 {
        // Like a port, skip the super-packet if the pool is full.
        if let Some(slot) = network.pool_mut().alloc_super_packet() {
            network.pool_mut().free(slot);
            let mut burst = segments(network.pool_mut(), &sent, true);
            network.push_burst(Time::ZERO + Duration::from_us(number), &mut burst);
            network.advance(Time::ZERO + Duration::from_us(number));
        }
    }
    let frames = network.accounting();
    assert!(frames.balances() && frames.held > 5000, "{frames:?}");
    assert!(frames.dropped.values().sum::<u64>() > 10_000, "{frames:?}");
    assert!(network.pool().reserved() <= 8 << 20, "{}", network.pool().reserved());
}
