//! Frames whose transport checksum is left for later cross a network as finished ones do, and nobody sees the difference.

use fastpath_net::{Delivery, EdgeId, Frame, Network, Observer, Options, Passage, Place, Reason, spec};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::Ip;
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

/// What comes out in the end, finished then, and the observer.
fn run<O: Observer + Default>(traffic: &[(EdgeId, Vec<u8>)], is_finished: bool) -> (Arrived, O) {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let mut network = Network::observed(topology, OPTIONS, O::default());
    for (number, (edge, bytes)) in traffic.iter().enumerate() {
        let mut frame = network.pool_mut().insert(bytes).unwrap();
        let gso = Gso { kind: GsoKind::Udp, size: u16::MAX, ecn: false };
        if !is_finished && let Ok(packet) = SuperPacket::new(bytes, gso) {
            packet.write_unfinished(0, network.pool_mut().bytes_mut(&mut frame));
            frame.leave_unfinished();
        }
        network.push(Time::ZERO + Duration::from_us(500 * number as u64), *edge, frame);
    }
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, mut frame }) = network.pop(Time::ZERO + Duration::from_secs(60)) {
        network.pool_mut().finish(&mut frame);
        out.push((at, edge, network.pool().bytes(&frame).to_vec()));
        network.pool_mut().free(frame);
    }
    assert!(network.conservation().holds());
    let shown = std::mem::take(network.observer_mut());
    (out, shown)
}

#[test]
fn what_is_left_for_later_is_done_before_anybody_looks() {
    let (topology, _) = spec::parse(SPEC).expect("a valid spec");
    let interfaces: Vec<_> = topology.hosts().flat_map(|(_, host)| &host.interfaces).collect();
    let mut rng = Rng::new(5);
    let traffic: Vec<_> = (0..3000u16)
        .map(|number| {
            let edge = rng.below(interfaces.len() as u64) as usize;
            let (from, (_, peer)) = (interfaces[edge], topology.peer(interfaces[edge]));
            let to = interfaces[rng.below(interfaces.len() as u64) as usize];
            // To a router, if there is one; otherwise to whoever it is, who may be elsewhere.
            let mac = if peer.addresses.is_empty() { to.mac } else { peer.mac };
            let end = |mac: Option<MacAddr>, address: IpAddr| (mac.expect("assigned"), address);
            let ends = (end(from.mac, from.addresses[0].addr()), end(mac, to.addresses[0].addr()));
            let ip = Ip { traffic_class: 2, dont_fragment: number % 2 == 0, ..Ip::between(ends.0, ends.1) };
            (EdgeId(edge as u32), ip.udp(1000, number, &vec![number as u8; rng.below(1300) as usize]))
        })
        .collect();
    let (expected, ()) = run(&traffic, true);
    assert!(expected.len() > 1000, "{}", expected.len());
    let (found, ()) = run(&traffic, false);
    assert!(found == expected);
    let [(expected, all), (found, shown)] =
        [true, false].map(|is_finished| run::<Shown>(&traffic, is_finished));
    assert!(found == expected && shown.0 == all.0 && all.0.len() > 1000);
}
