//! Segments of super-packets that are kept whole cross a network as frames with bytes of their own do, and nobody sees the
//! difference.

use fastpath_net::{Delivery, EdgeId, Frame, Network, Observer, Options, Passage, Place, Reason, spec};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, Tcp, tcp_flags};
use fastpath_wire::segment::SuperPacket;
use fastpath_wire::vnet::{Gso, GsoKind};
use std::net::IpAddr;
use std::num::NonZeroUsize;

/// A link that does everything to packets, and hosts behind a router that cuts them, and a switch.
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
[[link]]
between = ["s", "e"]
duplicate = "10%"
"#;

const OPTIONS: Options = Options { seed: 7, pool_limit: NonZeroUsize::new(64 << 20).unwrap() };

/// Keeps all bytes it is shown.
#[derive(Default)]
struct Shown(Vec<Vec<u8>>);

impl Observer for Shown {
    fn left(&mut self, passage: Passage<'_>) {
        self.0.push(passage.bytes.to_vec());
    }
    fn refused(&mut self, _at: Time, _place: Place, _frame: &Frame, bytes: &[u8], _reason: Reason) {
        self.0.push(bytes.to_vec());
    }
}

type Arrived = Vec<(Time, EdgeId, Vec<u8>)>;

/// A super-packet, where it enters and how it is cut.
type Sent = (EdgeId, Vec<u8>, Gso);

/// What comes out in the end, cut then, and the observer.
fn run<O: Observer + Default>(traffic: &[Sent], is_whole: bool) -> (Arrived, O) {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let mut network = Network::observed(topology, OPTIONS, O::default());
    for (number, (edge, bytes, gso)) in traffic.iter().enumerate() {
        let pool = network.pool_mut();
        let mut burst: Vec<(EdgeId, Frame)> = if is_whole {
            let mut slot = pool.alloc_whole().expect("there is room");
            pool.truncate(&mut slot, bytes.len());
            pool.bytes_mut(&mut slot).copy_from_slice(bytes);
            let segments = pool.keep_whole(slot, *gso).expect("a super-packet");
            segments.map(|segment| (*edge, segment)).collect()
        } else {
            let packet = SuperPacket::new(bytes, *gso).expect("a super-packet");
            let frames = (0..packet.count()).map(|i| {
                let mut frame = pool.alloc(packet.len_of(i)).expect("there is room");
                packet.write(i, pool.bytes_mut(&mut frame));
                (*edge, frame)
            });
            frames.collect()
        };
        network.push_burst(Time::ZERO + Duration::from_us(500 * number as u64), &mut burst);
    }
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, mut frame }) = network.pop(Time::ZERO + Duration::from_secs(60)) {
        network.pool_mut().cut(&mut frame);
        out.push((at, edge, network.pool().bytes(&frame).to_vec()));
        network.pool_mut().free(frame);
    }
    assert!(network.conservation().holds());
    assert_eq!(network.pool().live(), 0);
    let shown = std::mem::take(network.observer_mut());
    (out, shown)
}

#[test]
fn segments_are_cut_before_anybody_looks() {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let interfaces: Vec<_> = topology.hosts().flat_map(|(_, host)| &host.interfaces).collect();
    let mut rng = Rng::new(5);
    let traffic: Vec<Sent> = (0..1500u16)
        .map(|number| {
            let edge = rng.below(interfaces.len() as u64) as usize;
            let (from, (_, peer)) = (interfaces[edge], topology.peer(interfaces[edge]));
            let to = interfaces[rng.below(interfaces.len() as u64) as usize];
            // To a router, if there is one; otherwise to whoever it is, who may be elsewhere.
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
    let [(expected, ()), (found, ())] = [false, true].map(|is_whole| run(&traffic, is_whole));
    assert!(expected.len() > 1000, "{}", expected.len());
    assert!(found == expected);
    let [(expected, all), (found, shown)] = [false, true].map(|is_whole| run::<Shown>(&traffic, is_whole));
    assert!(found == expected && shown.0 == all.0 && all.0.len() > 1000);
}
