//! Networks in virtual time, hop by hop: hosts, routers, switches, and their error cases.

use fastpath_link::{Change, PipeSpec};
use fastpath_net::{Delivery, EdgeId, Network, Options};
use fastpath_spec::{Direction, Event, LinkId, NodeKind, Topology};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};
use fastpath_wire::arp::Arp;
use fastpath_wire::build::Ip;
use fastpath_wire::nd::Solicitation;
use fastpath_wire::{Headers, MacAddr, NetworkLayer, icmp, protocol};
use proptest::prelude::*;
use std::net::IpAddr;

const OPTIONS: Options = Options::with_seed(1);

const A: EdgeId = EdgeId(0);
const B: EdgeId = EdgeId(1);

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_ms(n)
}

fn pipe(mbit: u64, delay_ms: u64) -> PipeSpec {
    PipeSpec {
        rate: Rate::from_bps(mbit * 1_000_000),
        delay: Duration::from_ms(delay_ms),
        ..PipeSpec::default()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// `a — r0 — r1 — b`; hosts have .2, routers .1 and .3 in 10.0.{0,1,2}.0/24 and fd00:{0,1,2}::/64.
fn chain(pipes: [PipeSpec; 3]) -> Topology {
    let mut topology = Topology::default();
    let nodes = [
        ("a", NodeKind::host()),
        ("r0", NodeKind::router()),
        ("r1", NodeKind::router()),
        ("b", NodeKind::host()),
    ]
    .map(|(name, kind)| topology.add_node(name, kind));
    for (i, pipe) in pipes.into_iter().enumerate() {
        let link = topology.connect(format!("l{i}"), nodes[i], nodes[i + 1], [pipe.clone(), pipe]);
        for (node, interface) in topology.link(link).ends {
            let host = match (topology.node(node).kind.is_edge(), topology.node(node).name.as_str()) {
                (true, _) => 2,
                (false, "r0") => 1,
                (false, _) => 3,
            };
            topology.nodes[node.0 as usize].interfaces[interface].addresses = vec![
                format!("10.0.{i}.{host}/24").parse().unwrap(),
                format!("fd00:0:0:{i}::{host}/64").parse().unwrap(),
            ];
        }
    }
    topology
}

fn two_hosts(pipe: PipeSpec) -> Topology {
    let mut topology = Topology::default();
    let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
    topology.connect("l", a, b, [pipe.clone(), pipe]);
    topology
}

/// The MAC that [`Topology::connect`] assigns to an end of a link.
fn mac(link: u32, end: u32) -> MacAddr {
    MacAddr::from_index(2 * link + end)
}

fn between(src: &str, dst: &str) -> Ip {
    Ip::between((mac(0, 0), ip(src)), (mac(0, 1), ip(dst)))
}

fn push(network: &mut Network, at: Time, edge: EdgeId, bytes: &[u8]) {
    let frame = network.pool_mut().insert(bytes).unwrap();
    network.push(at, edge, frame);
}

/// Pops all frames up to `until`: (time, edge, bytes).
fn collect(network: &mut Network, until: Time) -> Vec<(Time, EdgeId, Vec<u8>)> {
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, frame }) = network.pop(until) {
        assert!(at <= until);
        out.push((at, edge, network.pool().bytes(&frame).to_vec()));
        network.pool_mut().free(frame);
    }
    out
}

/// Like [`collect`], in bursts of at most `len_max` frames.
fn collect_bursts(network: &mut Network, until: Time, len_max: usize) -> Vec<(Time, EdgeId, Vec<u8>)> {
    let (mut out, mut due) = (Vec::new(), Vec::new());
    loop {
        network.pop_burst(until, len_max, &mut due);
        assert!(due.len() <= len_max);
        if due.is_empty() {
            return out;
        }
        for Delivery { at, edge, frame } in due.drain(..) {
            out.push((at, edge, network.pool().bytes(&frame).to_vec()));
            network.pool_mut().free(frame);
        }
    }
}

/// Pushes one frame at `a` at time 0 and returns the deliveries at all edges.
fn answer(topology: Topology, bytes: &[u8]) -> Vec<(Time, EdgeId, Vec<u8>)> {
    let mut network = Network::new(topology, OPTIONS);
    push(&mut network, Time::ZERO, A, bytes);
    let out = collect(&mut network, ms(10_000));
    let frames = network.accounting();
    assert!(frames.balances() && frames.held == 0, "{frames:?}");
    assert_eq!(network.pool().live(), 0);
    out
}

fn icmp_kind(bytes: &[u8]) -> (u8, u8, u16) {
    let NetworkLayer::Ipv4(ip) = Headers::parse(bytes).network else { panic!("not IPv4: {bytes:02x?}") };
    assert_eq!(ip.protocol, protocol::ICMP);
    let at = ip.payload_offset();
    (bytes[at], bytes[at + 1], u16::from_be_bytes([bytes[at + 6], bytes[at + 7]]))
}

#[test]
fn frames_between_two_hosts_arrive_at_the_times_of_clicks_link_unqueue() {
    let spec = PipeSpec { rate: Rate::from_bps(100_000), delay: Duration::from_ms(5), ..PipeSpec::default() };
    let mut network = Network::new(two_hosts(spec), OPTIONS);
    for len in [20, 20, 1600, 20, 1600, 20] {
        push(&mut network, Time::ZERO, A, &vec![0xee; len]);
    }
    let out = collect(&mut network, ms(1000));
    let tenths_of_ms: Vec<u64> = out.iter().map(|(at, _, _)| at.as_ps() / 100_000_000).collect();
    assert_eq!(tenths_of_ms, [66, 82, 1362, 1378, 2658, 2674]);
    assert!(
        out.iter().all(|(at, edge, bytes)| *edge == B && at.as_ps() % 100_000_000 == 0 && bytes[0] == 0xee)
    );
}

#[test]
fn a_packet_crosses_routers_at_exact_times_and_its_ttl_is_decremented() {
    // 125 bytes are 1000 bits: 10 µs at 100 Mbit/s, 100 µs at 10, 1 ms at 1.
    let topology = chain([pipe(100, 10), pipe(1, 100), pipe(10, 25)]);
    let sent = between("10.0.0.2", "10.0.2.2").udp(5, 6, &[7; 125 - 42]);
    let out = answer(topology, &sent);
    let (at, edge, bytes) = &out[0];
    assert_eq!((out.len(), *edge), (1, B));
    assert_eq!(at.as_ps(), (135_000 + 10 + 1000 + 100) * 1_000_000);
    let headers = Headers::parse(bytes);
    let NetworkLayer::Ipv4(ip) = headers.network else { panic!() };
    assert_eq!((ip.ttl, headers.ipv4_checksum_ok(bytes)), (62, Some(true)));
    assert_eq!((headers.src, headers.dst), (mac(2, 0), mac(2, 1)));
    assert_eq!(bytes[14 + 20..], sent[14 + 20..], "only the headers changed");
}

#[test]
fn ipv6_crosses_routers_too() {
    let out = answer(
        chain([pipe(10, 1), pipe(10, 1), pipe(10, 1)]),
        &between("fd00::2", "fd00:0:0:2::2").udp(5, 6, b"six"),
    );
    let NetworkLayer::Ipv6(ip) = Headers::parse(&out[0].2).network else { panic!() };
    assert_eq!((out.len(), out[0].1, ip.hop_limit), (1, B, 62));
}

#[test]
fn traceroute_sees_every_router() {
    let ideal = || chain([PipeSpec::default(), PipeSpec::default(), PipeSpec::default()]);
    let probe = |ttl, dst| Ip { ttl, ..between("10.0.0.2", dst) }.udp(5, 33434, b"probe");
    // (TTL, destination, (source, type and code of the ICMP error)); `None`: the packet reaches b.
    let table = [
        (1, "10.0.2.2", Some(("10.0.0.1", 11, 0))),
        (2, "10.0.2.2", Some(("10.0.1.3", 11, 0))),
        (3, "10.0.2.2", None),
        (64, "10.0.0.1", Some(("10.0.0.1", 3, 3))),
        (64, "10.0.1.3", Some(("10.0.1.3", 3, 3))),
        (64, "192.0.2.1", Some(("10.0.0.1", 3, 0))),
    ];
    for (ttl, dst, expected) in table {
        let out = answer(ideal(), &probe(ttl, dst));
        let (_, edge, bytes) = &out[0];
        match expected {
            None => assert_eq!((out.len(), *edge), (1, B)),
            Some((from, kind, code)) => {
                assert_eq!((out.len(), *edge), (1, A), "{ttl} {dst}");
                let (found_kind, found_code, _) = icmp_kind(bytes);
                assert_eq!(
                    Headers::parse(bytes).addresses(),
                    Some((ip(from), ip("10.0.0.2"))),
                    "{ttl} {dst}"
                );
                assert_eq!((found_kind, found_code), (kind, code), "{ttl} {dst}");
            }
        }
    }
}

#[test]
fn a_packet_above_the_mtu_is_reported_or_fragmented() {
    let narrow = || {
        let mut topology = chain([PipeSpec::default(), PipeSpec::default(), PipeSpec::default()]);
        topology.nodes[1].interfaces[1].mtu = 600;
        topology.nodes[2].interfaces[0].mtu = 600;
        topology
    };
    let out = answer(narrow(), &between("10.0.0.2", "10.0.2.2").udp(5, 6, &[1; 1000]));
    assert_eq!((out.len(), out[0].1, icmp_kind(&out[0].2)), (1, A, (3, 4, 600)));

    let out = answer(narrow(), &between("fd00::2", "fd00:0:0:2::2").udp(5, 6, &[1; 1000]));
    let NetworkLayer::Ipv6(ip) = Headers::parse(&out[0].2).network else { panic!() };
    assert_eq!((out.len(), out[0].1, out[0].2[ip.payload_offset]), (1, A, 2));

    let may_split = Ip { dont_fragment: false, ..between("10.0.0.2", "10.0.2.2") };
    let sent = may_split.udp(5, 6, &[1; 1000]);
    let out = answer(narrow(), &sent);
    assert!(out.len() == 2 && out.iter().all(|(_, edge, bytes)| *edge == B && bytes.len() <= 614));
    let payload: Vec<u8> = out.iter().flat_map(|(_, _, bytes)| bytes[34..].to_vec()).collect();
    assert_eq!(payload, sent[34..]);
}

#[test]
fn a_router_answers_arp_neighbor_discovery_and_ping() {
    let ideal = || chain([PipeSpec::default(), PipeSpec::default(), PipeSpec::default()]);
    let request = Arp::request(mac(0, 0), "10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap());
    let out = answer(ideal(), &request.to_frame());
    assert_eq!(out[0].2, request.answer(mac(0, 1)).to_frame());

    let request = Solicitation {
        source: "fd00::2".parse().unwrap(),
        source_mac: mac(0, 0),
        target: "fd00::1".parse().unwrap(),
    };
    let out = answer(ideal(), &request.to_frame());
    assert_eq!((out.len(), Headers::parse(&out[0].2).src), (1, mac(0, 1)));

    for (dst, hops) in [("10.0.0.1", 1), ("10.0.1.3", 2)] {
        let request = between("10.0.0.2", dst).echo_request(7, hops, b"hello");
        let out = answer(ideal(), &request);
        assert_eq!(Headers::parse(&out[0].2).addresses(), Some((ip(dst), ip("10.0.0.2"))));
        assert_eq!(icmp_kind(&out[0].2), (0, 0, hops));
    }
}

#[test]
fn packets_to_a_station_with_an_unknown_mac_wait_for_address_resolution() {
    let mut topology = chain([PipeSpec::default(), PipeSpec::default(), PipeSpec::default()]);
    topology.nodes[3].interfaces[0].mac = None;
    let mut network = Network::new(topology, OPTIONS);
    for port in 1..=3 {
        push(&mut network, ms(1), A, &between("10.0.0.2", "10.0.2.2").udp(port, 6, b"wait"));
    }
    let out = collect(&mut network, ms(1));
    assert_eq!((out.len(), out[0].1, network.accounting().held), (1, B, 3), "one request, three waiting");
    let request = Arp::parse(&out[0].2, &Headers::parse(&out[0].2)).unwrap();
    assert_eq!(IpAddr::V4(request.target_ip), ip("10.0.2.2"));
    let its_mac = MacAddr([2, 9, 9, 9, 9, 9]);
    push(&mut network, ms(2), B, &request.answer(its_mac).to_frame());
    let out = collect(&mut network, ms(2));
    let ports: Vec<u16> = out.iter().map(|(_, _, b)| Headers::parse(b).transport.unwrap().src_port).collect();
    assert_eq!(ports, [1, 2, 3]);
    assert!(out.iter().all(|(_, edge, bytes)| *edge == B && Headers::parse(bytes).dst == its_mac));
    assert!(network.accounting().balances() && network.pool().live() == 0);
}

#[test]
fn packets_to_a_silent_station_expire_and_their_senders_get_host_unreachable() {
    let mut network = Network::new(chain([pipe(1000, 1), pipe(1000, 1), pipe(1000, 1)]), OPTIONS);
    for (at, len) in [(0, 10), (1000, 20)] {
        push(&mut network, ms(at), A, &between("10.0.0.2", "10.0.2.9").udp(1, 2, &vec![0; len]));
    }
    let requests = collect(&mut network, ms(2500));
    assert!(
        requests
            .iter()
            .all(|(_, edge, bytes)| *edge == B && Headers::parse(bytes).network == NetworkLayer::Arp)
    );
    assert_eq!((requests.len(), network.accounting().held), (2, 2), "one request per second");
    let errors = collect(&mut network, ms(10_000));
    let kinds: Vec<_> = errors.iter().map(|(_, edge, bytes)| (*edge, icmp_kind(bytes))).collect();
    assert_eq!(kinds, [(A, (3, 1, 0)), (A, (3, 1, 0))], "host unreachable");
    // Two links there, a timeout of three seconds from the arrival of each packet, two links back.
    let times = [errors[0].0, errors[1].0];
    assert!(times[0] > ms(3004) && times[0] < ms(3005) && times[1] > ms(4004) && times[1] < ms(4005));
    let frames = network.accounting();
    assert!(frames.balances() && (frames.held, frames.dropped["unresolved"]) == (0, 2), "{frames:?}");
    assert_eq!((network.next_at(), network.pool().live()), (None, 0));
}

#[test]
fn a_switch_floods_unknown_destinations_and_every_copy_is_counted() {
    let mut topology = Topology::default();
    let switch = topology.add_node("s", NodeKind::Switch);
    for i in 0..4 {
        let host = topology.add_node(format!("h{i}"), NodeKind::host());
        topology.connect(format!("l{i}"), host, switch, [PipeSpec::default(), PipeSpec::default()]);
    }
    let mut network = Network::new(topology, OPTIONS);
    let host = |i: u32| (mac(i, 0), IpAddr::from([10, 0, 0, i as u8 + 1]));
    push(&mut network, ms(0), EdgeId(0), &Ip::between(host(0), host(2)).udp(1, 2, b"?"));
    assert_eq!(collect(&mut network, ms(0)).len(), 3);
    push(&mut network, ms(1), EdgeId(2), &Ip::between(host(2), host(0)).udp(1, 2, b"!"));
    let out = collect(&mut network, ms(1));
    assert_eq!((out.len(), out[0].1), (1, EdgeId(0)));
    let frames = network.accounting();
    assert_eq!((frames.entered, frames.generated, frames.delivered, frames.balances()), (2, 2, 4, true));
}

#[test]
fn a_scheduled_change_takes_effect_at_its_instant() {
    // 1250 bytes take 10 ms at 1 Mbit/s. At 5 ms the rate increases tenfold, so the second half
    // takes 0.5 ms.
    let mut topology = two_hosts(pipe(1, 0));
    topology.events.push(Event {
        at: ms(5),
        link: topology.link_named("l").unwrap(),
        direction: Direction::Both,
        change: Change { rate: Some(Rate::from_bps(10_000_000)), ..Change::default() },
    });
    let out = answer(topology, &[0xaa; 1250]);
    assert_eq!(out[0].0, Time::ZERO + Duration::from_us(5500));
}

#[test]
fn errors_are_never_answered_with_errors() {
    let topology = chain([PipeSpec::default(), PipeSpec::default(), PipeSpec::default()]);
    let offending = between("10.0.0.2", "10.0.2.2").udp(1, 2, b"x");
    let headers = Headers::parse(&offending);
    let from = (mac(0, 0), ip("10.0.0.2"));
    let mut error = icmp::error(&offending, &headers, icmp::IcmpError::HopLimit, from).unwrap();
    // An ICMP error to a destination without a route.
    error[30..34].copy_from_slice(&[192, 0, 2, 1]);
    let fixed = fastpath_wire::checksum::of(&{
        let mut header = error[14..34].to_vec();
        header[10..12].fill(0);
        header
    });
    error[24..26].copy_from_slice(&fixed.to_be_bytes());
    assert_eq!(answer(topology, &error), []);
}

/// Random traffic: (gap in µs, edge, bytes).
fn traffic() -> impl Strategy<Value = Vec<(u64, u32, Vec<u8>)>> {
    let address = prop_oneof![
        Just("10.0.0.2"),
        Just("10.0.2.2"),
        // An address without a station: its resolution fails.
        Just("10.0.2.9"),
        Just("10.0.0.1"),
        Just("10.0.1.3"),
        Just("192.0.2.7"),
        Just("255.255.255.255"),
    ];
    let packet = (address.clone(), address, 0u8..4, 0usize..1600, any::<bool>()).prop_map(
        |(src, dst, ttl, len, dont_fragment)| {
            Ip { ttl, dont_fragment, ..between(src, dst) }.udp(1, 2, &vec![0; len])
        },
    );
    let frame = prop_oneof![
        4 => packet,
        1 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => Just(Arp::request(mac(0, 0), [10, 0, 0, 2].into(), [10, 0, 0, 1].into()).to_frame()),
    ];
    proptest::collection::vec((0u64..2000, 0u32..2, frame), 1..60)
}

fn rough_chain() -> Topology {
    let mut lossy = pipe(1, 3);
    lossy.loss = Probability::new(0.1).unwrap().into();
    let mut topology = chain([pipe(10, 1), lossy, pipe(5, 2)]);
    for (node, interface) in [(1, 1), (2, 0)] {
        topology.nodes[node].interfaces[interface].mtu = 576;
    }
    topology
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_times_at_which_the_caller_pops_change_nothing(sent in traffic(), seed: u64) {
        let run = |pops: u64| {
            let mut rng = Rng::new(seed);
            let mut network = Network::new(rough_chain(), OPTIONS);
            let (mut now, mut out) = (Time::ZERO, Vec::new());
            for (gap, edge, bytes) in &sent {
                let next = now + Duration::from_us(*gap);
                for _ in 0..pops {
                    now += Duration::from_ps(rng.below((next - now).as_ps() + 1));
                    out.extend(collect(&mut network, now));
                }
                now = next;
                push(&mut network, now, EdgeId(*edge), bytes);
            }
            out.extend(collect(&mut network, ms(100_000)));
            (out, network.accounting())
        };
        let often = run(5);
        prop_assert_eq!(&run(0), &often);
        prop_assert!(often.1.balances());
        prop_assert_eq!(often.1.held, 0);
    }

    #[test]
    fn a_burst_has_the_effect_of_its_frames_in_order(sent in traffic(), burst in 1usize..12, len_max in 1usize..5, kind in 0u8..3) {
        let mut lossy = pipe(10, 1);
        lossy.loss = Probability::new(0.2).unwrap().into();
        let topology = || match kind {
            0 => rough_chain(),
            1 => two_hosts(lossy.clone()),
            _ => two_hosts(PipeSpec::default()),
        };
        let [mut singly, mut together] = [(); 2].map(|()| Network::new(topology(), OPTIONS));
        let (mut now, mut expected, mut found) = (Time::ZERO, Vec::new(), Vec::new());
        for (number, frames) in sent.chunks(burst).enumerate() {
            now += Duration::from_us(frames[0].0);
            if kind == 2 && number % 3 == 2 {
                // What waits in the link when it loses its delay is not overtaken.
                let delay = Some(Duration::from_us(300 * (number as u64 / 3 % 2)));
                let change = Change { delay, ..Change::default() };
                for network in [&mut singly, &mut together] {
                    network.apply(now, LinkId(0), Direction::Both, &change);
                }
            }
            let mut batch = Vec::new();
            for (_, edge, bytes) in frames {
                push(&mut singly, now, EdgeId(*edge), bytes);
                batch.push((EdgeId(*edge), together.pool_mut().insert(bytes).unwrap()));
            }
            together.push_burst(now, &mut batch);
            for until in [now, ms(100_000)].into_iter().take(1 + usize::from(frames.len() < burst)) {
                now = until;
                expected.extend(collect(&mut singly, now));
                found.extend(collect_bursts(&mut together, now, len_max));
            }
        }
        prop_assert_eq!(expected, found);
        prop_assert_eq!(singly.accounting(), together.accounting());
        prop_assert_eq!(singly.next_at(), together.next_at());
    }

    #[test]
    fn stepping_by_next_at_drains_the_network(sent in traffic()) {
        let mut network = Network::new(rough_chain(), OPTIONS);
        let mut now = Time::ZERO;
        for (gap, edge, bytes) in &sent {
            now += Duration::from_us(*gap);
            push(&mut network, now, EdgeId(*edge), bytes);
        }
        let mut steps = 0;
        while let Some(at) = network.next_at() {
            prop_assert!(steps < 100_000, "the network never becomes idle");
            steps += 1;
            collect(&mut network, at);
        }
        let frames = network.accounting();
        prop_assert_eq!((frames.held, network.pool().live()), (0, 0));
        prop_assert!(frames.balances());
    }
}
