//! NATs in virtual time: mapping and filtering as applications see them, hole punching,
//! hairpinning, ICMP errors, fragments, and frame accounting.

use fastpath_net::{EdgeId, Network, Options};
use fastpath_units::{Duration, Time};
use fastpath_wire::build::{Ip, Tcp, tcp_flags};
use fastpath_wire::translate::{Content, FlowAddresses, Quoted};
use fastpath_wire::{Headers, MacAddr, NetworkLayer, ipv4};
use proptest::prelude::*;
use std::net::SocketAddrV4;

/// The hosts: a is behind NAT x, b behind NAT y, s (and t, for a second address) outside.
const NET: &str = "
[host.a]
address = '10.0.1.2/24'
[host.b]
address = '10.0.2.2/24'
[host.s]
address = '198.51.100.2/24'
[host.t]
address = '203.0.113.2/24'
[host.a2]
address = '10.0.3.2/24'
[nat.x]
inside = ['a-x', 'a2-x']
addresses = { core-x = '192.0.2.2/24' }
XKEYS
[nat.y]
inside = ['b-y']
addresses = { core-y = '192.0.3.2/24' }
YKEYS
[router.core]
[[link]]
between = ['a', 'x']
delay = '1ms'
[[link]]
between = ['a2', 'x']
[[link]]
between = ['b', 'y']
[[link]]
between = ['core', 'x']
mtu = 1400
delay = '5ms'
[[link]]
between = ['core', 'y']
[[link]]
between = ['core', 's']
[[link]]
between = ['core', 't']
";

const A: EdgeId = EdgeId(0);
const B: EdgeId = EdgeId(1);
const S: EdgeId = EdgeId(2);
const T: EdgeId = EdgeId(3);
const A2: EdgeId = EdgeId(4);
const DEPENDENCES: [&str; 3] = ["endpoint-independent", "address-dependent", "address-and-port-dependent"];

struct Lab {
    network: Network,
    now: Time,
}

/// A packet that a host received.
type Got = (EdgeId, FlowAddresses);

fn end(text: &str) -> SocketAddrV4 {
    text.parse().unwrap()
}

fn ip(src: SocketAddrV4, dst: SocketAddrV4) -> Ip {
    let [from, to] = [71, 72].map(MacAddr::from_index);
    Ip { id: 9, dont_fragment: false, ..Ip::between((from, (*src.ip()).into()), (to, (*dst.ip()).into())) }
}

fn udp(src: &str, dst: SocketAddrV4) -> Vec<u8> {
    let src = end(src);
    ip(src, dst).udp(src.port(), dst.port(), b"hello")
}

fn tcp(src: &str, dst: SocketAddrV4, flags: u8) -> Vec<u8> {
    let src = end(src);
    ip(src, dst).tcp(&Tcp { src_port: src.port(), dst_port: dst.port(), flags, ..Tcp::default() }, &[])
}

impl Lab {
    fn new(x: &str, y: &str) -> Lab {
        let text = NET.replace("XKEYS", x).replace("YKEYS", y);
        let (topology, _) = fastpath_spec::parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        Lab { network: Network::new(topology, Options::with_seed(7)), now: Time::ZERO }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// Sends frames from a host and returns what arrives anywhere until the network is empty.
    fn send_all(&mut self, from: EdgeId, frames: &[Vec<u8>]) -> Vec<(EdgeId, Vec<u8>)> {
        for bytes in frames {
            let frame = self.network.pool_mut().insert(bytes).unwrap();
            self.network.push(self.now, from, frame);
        }
        let mut arrived = Vec::new();
        // Fragments that wait for a first one that never comes expire after their timeout.
        while let Some(at) = self.network.next_at().filter(|at| at.since(self.now) < Duration::from_secs(2)) {
            self.now = self.now.max(at);
            while let Some(delivery) = self.network.pop(self.now) {
                arrived.push((delivery.edge, self.network.pool().bytes(&delivery.frame).to_vec()));
                self.network.pool_mut().free(delivery.frame);
            }
        }
        let accounting = self.network.accounting();
        assert!(accounting.balances(), "{accounting:?}");
        arrived
    }

    fn send(&mut self, from: EdgeId, frame: Vec<u8>) -> Vec<Got> {
        let flow = |bytes: &[u8]| {
            let headers = Headers::parse(bytes);
            assert_eq!(headers.ipv4_checksum_ok(bytes), Some(true));
            assert_eq!(
                fastpath_wire::checksum::check_transport(bytes, &headers),
                fastpath_wire::checksum::ChecksumStatus::Good
            );
            FlowAddresses::of(bytes, &headers).expect("a packet with ports")
        };
        self.send_all(from, &[frame]).iter().map(|(edge, bytes)| (*edge, flow(bytes))).collect()
    }

    /// Sends a packet that arrives at `to`, and returns its source as seen there.
    fn source_at(&mut self, from: EdgeId, to: EdgeId, frame: Vec<u8>) -> SocketAddrV4 {
        match self.send(from, frame)[..] {
            [(edge, flow)] if edge == to => flow.src,
            ref other => panic!("{other:?}"),
        }
    }

    fn dropped(&self, reason: &str) -> u64 {
        self.network.accounting().dropped.get(reason).copied().unwrap_or(0)
    }
}

fn keys(mapping: &str, filtering: &str) -> String {
    format!("mapping = '{mapping}'\nfiltering = '{filtering}'")
}

#[test]
fn mapping_and_filtering_are_what_a_stun_client_finds() {
    let servers = ["198.51.100.2:1000", "198.51.100.2:1001", "203.0.113.2:1000"].map(end);
    for (m, mapping) in DEPENDENCES.iter().enumerate() {
        for (f, filtering) in DEPENDENCES.iter().enumerate() {
            let mut lab = Lab::new(&keys(mapping, filtering), "");
            // RFC 5780 §4.3: compare the endpoints that servers see.
            let seen = servers.map(|server| {
                let to = if server.ip() == servers[0].ip() { S } else { T };
                lab.source_at(A, to, udp("10.0.1.2:5000", server))
            });
            assert!(seen.iter().all(|end| end.ip() == seen[0].ip()), "paired pooling");
            let differ = [seen[1] != seen[0], seen[2] != seen[0]];
            assert_eq!(differ, [m == 2, m >= 1], "{mapping}: {seen:?}");
            // RFC 5780 §4.4: answers from another port, and from another address.
            let mut lab = Lab::new(&keys(mapping, filtering), "");
            let outside = lab.source_at(A, S, udp("10.0.1.2:5000", servers[0]));
            let passes = [("198.51.100.2:1000", S), ("198.51.100.2:1001", S), ("203.0.113.2:1000", T)]
                .map(|(from, edge)| !lab.send(edge, udp(from, outside)).is_empty());
            assert_eq!(passes, [true, f < 2, f < 1], "{filtering}");
            assert_eq!(lab.dropped("nat-filtered"), passes.iter().filter(|passed| !**passed).count() as u64);
        }
    }
}

/// Both hosts learn each other's outside endpoint from s and send to it, as RFC 5128 §3.3.
fn punch(lab: &mut Lab, send: impl Fn(&str, SocketAddrV4, bool) -> Vec<u8>) -> bool {
    let server = end("198.51.100.2:3478");
    let a = lab.source_at(A, S, send("10.0.1.2:4321", server, true));
    let b = lab.source_at(B, S, send("10.0.2.2:4321", server, true));
    // The first packet of each side opens its own NAT; the second passes.
    let mut arrived = [false; 2];
    for is_first in [true, false] {
        for (edge, from, to) in [(A, "10.0.1.2:4321", b), (B, "10.0.2.2:4321", a)] {
            for (at, flow) in lab.send(edge, send(from, to, is_first)) {
                assert!(flow.src == a || flow.src == b || flow.dst.port() == 4321, "{flow:?}");
                arrived[usize::from(at == B)] |= at == A || at == B;
            }
        }
    }
    arrived == [true; 2]
}

#[test]
fn holes_are_punched_where_theory_says_so() {
    let all = || DEPENDENCES.iter().enumerate();
    for ((xm, x_mapping), (xf, x_filtering)) in all().flat_map(|m| all().map(move |f| (m, f))) {
        for ((ym, y_mapping), (yf, y_filtering)) in all().flat_map(|m| all().map(move |f| (m, f))) {
            let mut lab = Lab::new(&keys(x_mapping, x_filtering), &keys(y_mapping, y_filtering));
            let punched = punch(&mut lab, |from, to, _| udp(from, to));
            // A side whose mapping depends on the peer sends from an endpoint that the peer does
            // not know. Its packets pass if the filter of the peer does not compare ports; then it
            // is reached by an answer to what arrived, which this exchange does not send, unless
            // its old endpoint passes packets from everybody.
            let reaches = |mapping: usize, filter: usize| mapping == 0 || filter < 2;
            let known = |mapping: usize, own_filter: usize| mapping == 0 || own_filter == 0;
            let expected = reaches(xm, yf) && reaches(ym, xf) && known(xm, xf) && known(ym, yf);
            assert_eq!(punched, expected, "x {x_mapping} {x_filtering}, y {y_mapping} {y_filtering}");
        }
    }
}

#[test]
fn tcp_holes_are_punched_by_simultaneous_open() {
    let [default, strict] = ["", "filtering = 'address-and-port-dependent'"];
    for keys in [default, strict] {
        let mut lab = Lab::new(keys, keys);
        let send = |from: &str, to, is_first| {
            tcp(from, to, if is_first { tcp_flags::SYN } else { tcp_flags::SYN | tcp_flags::ACK })
        };
        assert!(punch(&mut lab, send), "RFC 5382 REQ-2");
    }
    let mut lab =
        Lab::new("mapping = 'address-and-port-dependent'\nfiltering = 'address-and-port-dependent'", strict);
    assert!(!punch(&mut lab, |from, to, _| tcp(from, to, tcp_flags::SYN)));
    assert!(lab.dropped("nat-filtered") > 0);
}

#[test]
fn equal_seeds_give_equal_ports_and_different_seeds_do_not() {
    let ports = |seed| {
        let text = NET.replace("XKEYS", "port_preservation = false").replace("YKEYS", "");
        let (topology, _) = fastpath_spec::parse(&text).unwrap();
        let network = Network::new(topology, Options::with_seed(seed));
        let mut lab = Lab { network, now: Time::ZERO };
        [5000, 5001, 5002]
            .map(|port| lab.source_at(A, S, udp(&format!("10.0.1.2:{port}"), end("198.51.100.2:9"))).port())
    };
    assert_eq!(ports(7), ports(7));
    assert_ne!(ports(7), ports(8));
    assert_eq!(ports(9).map(|port| port % 2), [0, 1, 0], "parity is preserved");
}

#[test]
fn a_preserved_port_that_is_taken_is_replaced_and_ports_run_out() {
    let mut lab = Lab::new("ports = '5000-5002'", "");
    let server = end("198.51.100.2:9");
    let mut port = |from: EdgeId, src: &str| {
        let got = lab.send(from, udp(src, server));
        got.first().map(|(_, flow)| flow.src.port())
    };
    assert_eq!(port(A, "10.0.1.2:5000"), Some(5000));
    assert_eq!(port(A2, "10.0.3.2:5000"), Some(5002), "the same parity");
    assert_eq!(port(A2, "10.0.3.2:5002"), Some(5001), "any is left");
    assert_eq!(port(A2, "10.0.3.2:6000"), None);
    assert_eq!(port(A, "10.0.1.2:5000"), Some(5000), "the mapping stays");
    assert_eq!(lab.dropped("nat-ports"), 1);
    lab.wait(Duration::from_secs(301));
    assert_eq!(lab.source_at(A2, S, udp("10.0.3.2:5000", server)).port(), 5000, "free again");
}

#[test]
fn sessions_are_bounded_and_listed() {
    let mut lab = Lab::new("sessions_max = 2\ntimeouts = { udp = '30s' }", "");
    for port in [1, 2, 3] {
        lab.send(A, udp("10.0.1.2:5000", end(&format!("198.51.100.2:{port}"))));
    }
    assert_eq!(lab.dropped("nat-full"), 1);
    let x = lab.network.topology().node_named("x").unwrap();
    let (counters, sessions) = lab.network.nat(lab.now, x).unwrap();
    assert_eq!((counters.mappings, counters.sessions, counters.sessions_created), (1, 2, 2));
    assert_eq!(sessions[1].remote, end("198.51.100.2:2"));
    assert_eq!((sessions[0].inside, sessions[0].outside), (end("10.0.1.2:5000"), end("192.0.2.2:5000")));
    let (counters, sessions) = lab.network.nat(lab.now + Duration::from_secs(31), x).unwrap();
    assert_eq!(
        (counters.mappings, counters.sessions, counters.sessions_created, sessions.len()),
        (0, 0, 2, 0)
    );
    let core = lab.network.topology().node_named("core").unwrap();
    assert_eq!(lab.network.nat(lab.now, core), None);
}

#[test]
fn a_mapping_ends_after_its_timeout_and_only_packets_from_inside_keep_it() {
    let server = end("198.51.100.2:9");
    for (keys, kept) in [("", false), ("inbound_refresh = true", true)] {
        let mut lab = Lab::new(keys, "");
        let outside = lab.source_at(A, S, udp("10.0.1.2:5000", server));
        let answer = |lab: &mut Lab, minutes: u64| {
            lab.wait(Duration::from_secs(60 * minutes));
            !lab.send(S, udp("198.51.100.2:9", outside)).is_empty()
        };
        assert!(answer(&mut lab, 3));
        assert_eq!(answer(&mut lab, 3), kept, "RFC 4787 REQ-5 and REQ-6");
    }
}

#[test]
fn an_established_connection_outlives_one_that_was_reset() {
    let mut lab = Lab::new("", "");
    let server = end("198.51.100.2:80");
    let syn = tcp("10.0.1.2:5000", server, tcp_flags::SYN);
    let outside = lab.source_at(A, S, syn);
    let answer = |flags| tcp("198.51.100.2:80", outside, flags);
    assert_eq!(lab.send(S, answer(tcp_flags::SYN | tcp_flags::ACK)).len(), 1);
    lab.wait(Duration::from_secs(7200));
    assert_eq!(lab.send(S, answer(tcp_flags::ACK)).len(), 1, "124 minutes (RFC 5382 REQ-5)");
    lab.send(A, tcp("10.0.1.2:5000", server, tcp_flags::RST));
    lab.wait(Duration::from_secs(241));
    assert_eq!(lab.send(S, answer(tcp_flags::ACK)).len(), 0, "4 minutes after it was closed");
}

#[test]
fn hosts_inside_reach_each_other_by_outside_endpoints() {
    let mut lab = Lab::new("", "");
    let server = end("198.51.100.2:9");
    let a = lab.source_at(A, S, udp("10.0.1.2:5000", server));
    let b = lab.source_at(A2, S, udp("10.0.3.2:6000", server));
    lab.send(A, udp("10.0.1.2:5000", b));
    let got = lab.send(A2, udp("10.0.3.2:6000", a));
    assert_eq!(
        got,
        [(A, FlowAddresses { content: Content::Udp, src: b, dst: end("10.0.1.2:5000") })],
        "RFC 4787 REQ-9a"
    );
    let direct = lab.send(A, udp("10.0.1.2:5000", end("10.0.3.2:6000")));
    assert_eq!(direct[0].1.src, end("10.0.1.2:5000"), "two inside links are routed");
    let mut lab = Lab::new("hairpinning = false", "");
    let a = lab.source_at(A, S, udp("10.0.1.2:5000", server));
    assert_eq!(lab.send(A2, udp("10.0.3.2:6000", a)), []);
    assert_eq!(lab.dropped("nat-filtered"), 1);
}

#[test]
fn echo_requests_are_mapped_by_identifier_and_the_nat_answers_its_own() {
    let mut lab = Lab::new("", "");
    let (host, server) = (end("10.0.1.2:0"), end("198.51.100.2:0"));
    let source = lab.source_at(A, S, ip(host, server).echo_request(77, 1, b"x"));
    assert_eq!(source, end("192.0.2.2:77"));
    let other = lab.source_at(A2, S, ip(end("10.0.3.2:0"), server).echo_request(77, 1, b"x"));
    assert_ne!(other.port(), 77, "the identifier is taken");
    let got = lab.send(S, ip(server, other).echo_reply(other.port(), 1, b"x"));
    assert_eq!((got[0].0, got[0].1.dst), (A2, end("10.0.3.2:77")));
    let got = lab.send(S, ip(server, source).echo_request(77, 1, b"x"));
    assert_eq!((got[0].0, got[0].1.content), (S, Content::IcmpReply), "the NAT itself");
    let got = lab.send(S, ip(server, host).echo_request(1, 1, b"x"));
    assert_eq!(got[0].1.content, Content::IcmpError, "outside there is no route to the inside");
}

#[test]
fn icmp_errors_reach_the_sender_as_if_there_were_no_nat() {
    let mut lab = Lab::new("", "");
    let (host, server) = (end("10.0.1.2:5000"), end("198.51.100.2:9"));
    // The core router: two hops away.
    let probe = Ip { ttl: 2, ..ip(host, server) }.udp(5000, 9, b"hello");
    let arrived = lab.send_all(A, &[probe]);
    let [(A, bytes)] = &arrived[..] else { panic!("{arrived:?}") };
    let headers = Headers::parse(bytes);
    let quoted = Quoted::of(bytes, &headers).expect("good checksums");
    assert_eq!((quoted.flow.src, quoted.flow.dst), (host, server));
    // The server refuses: its error quotes the translated packet.
    let outside = lab.source_at(A, S, udp("10.0.1.2:5000", server));
    let sent = ip(outside, server).udp(outside.port(), 9, b"hello");
    let from = (MacAddr::from_index(5), (*server.ip()).into());
    let problem = fastpath_wire::icmp::IcmpError::PortUnreachable;
    let error = fastpath_wire::icmp::error(&sent, &Headers::parse(&sent), problem, from).unwrap();
    let arrived = lab.send_all(S, &[error]);
    let [(A, bytes)] = &arrived[..] else { panic!("{arrived:?}") };
    assert_eq!(Quoted::of(bytes, &Headers::parse(bytes)).unwrap().flow.src, host);
    // Of a packet from outside the host says so: the error has the outside address (REQ-5).
    let received = ip(server, host).udp(9, 5000, b"hi");
    let from = (MacAddr::from_index(5), (*host.ip()).into());
    let error = fastpath_wire::icmp::error(&received, &Headers::parse(&received), problem, from).unwrap();
    let arrived = lab.send_all(A, std::slice::from_ref(&error));
    let [(S, bytes)] = &arrived[..] else { panic!("{arrived:?}") };
    let headers = Headers::parse(bytes);
    assert_eq!(headers.addresses().unwrap().0, std::net::IpAddr::from(*outside.ip()));
    assert_eq!(Quoted::of(bytes, &headers).unwrap().flow.dst, outside);
    // About no session: dropped silently (REQ-4).
    lab.wait(Duration::from_secs(600));
    assert_eq!(lab.send_all(A, &[error]), []);
}

#[test]
fn fragments_are_translated_in_any_order() {
    let server = end("198.51.100.2:9");
    for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
        let mut lab = Lab::new("", "");
        let whole = ip(end("10.0.1.2:5000"), server).udp(5000, 9, &[5; 3000]);
        let fragments = ipv4::fragment(&whole, 1200).unwrap();
        let frames = order.map(|place: usize| fragments[place].clone());
        let arrived = lab.send_all(A, &frames);
        assert_eq!(arrived.len(), 3, "{order:?}");
        let mut payload = vec![0; 3008];
        for (edge, bytes) in &arrived {
            let NetworkLayer::Ipv4(ip) = Headers::parse(bytes).network else { panic!("not IPv4") };
            assert_eq!((*edge, ip.src.to_string().as_str()), (S, "192.0.2.2"));
            let part = &bytes[ip.payload_offset()..ip.end()];
            payload[usize::from(ip.fragment_offset)..][..part.len()].copy_from_slice(part);
        }
        let translated = ip(end("192.0.2.2:5000"), server).udp(5000, 9, &[5; 3000]);
        assert_eq!(payload, translated[34..], "{order:?}: with its checksum");
    }
}

#[test]
fn fragments_without_a_first_one_are_held_then_dropped() {
    let mut lab = Lab::new("timeouts = { fragments = '5s' }", "");
    let whole = udp("10.0.1.2:5000", end("198.51.100.2:9"));
    let whole = [&whole[..], &[0; 2000]].concat();
    let mut whole = whole;
    whole[16..18].copy_from_slice(&2033u16.to_be_bytes());
    let fragments = ipv4::fragment(&whole, 1200).unwrap();
    assert_eq!(lab.send_all(A, &fragments[1..]), []);
    assert_eq!(lab.network.accounting().held, 1);
    lab.wait(Duration::from_secs(6));
    lab.network.advance(lab.now);
    let accounting = lab.network.accounting();
    assert_eq!((accounting.held, lab.dropped("nat-fragment")), (0, 1));
    assert!(accounting.balances());
    // No more than 256 wait.
    let mut other = fragments[1].clone();
    for id in 0..300u16 {
        other[18..20].copy_from_slice(&id.to_be_bytes());
        other[24..26].copy_from_slice(&[0, 0]);
        let sum = fastpath_wire::checksum::of(&other[14..34]);
        other[24..26].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(lab.send_all(A, &[other.clone()]), []);
    }
    assert_eq!(lab.network.accounting().held, 256);
}

#[test]
fn an_outside_neighbor_reaches_no_inside_address() {
    let text = "[host.a]\n[host.s]\n[nat.x]\ninside = 'a-x'\n[[link]]\nbetween = ['a', 'x']\n[[link]]\nbetween = ['s', 'x']";
    let network = Network::new(fastpath_spec::parse(text).unwrap().0, Options::with_seed(7));
    let mut lab = Lab { network, now: Time::ZERO };
    let packet = |to: &str| udp("10.1.2.2:9", end(to));
    assert_eq!(lab.send(EdgeId(1), packet("10.1.1.2:9")), []);
    assert_eq!(lab.dropped("nat-filtered"), 1);
    let outside = lab.source_at(A, EdgeId(1), udp("10.1.1.2:9", end("10.1.2.2:9")));
    assert_eq!(outside.ip().to_string(), "10.1.2.3", "the address of the outside interface");
    assert_eq!(lab.send(EdgeId(1), packet(&outside.to_string())).len(), 1);
}

#[test]
fn other_protocols_are_dropped_and_ipv6_is_forwarded_as_it_is() {
    let mut lab = Lab::new("", "");
    assert_eq!(lab.send_all(A, &[ip(end("10.0.1.2:0"), end("198.51.100.2:0")).packet(47, b"gre")]), []);
    assert_eq!(lab.dropped("nat-protocol"), 1);
    let address = |name: &str| {
        let topology = lab.network.topology();
        let node = topology.node(topology.node_named(name).unwrap());
        node.interfaces[0].addresses.iter().map(ipnet::IpNet::addr).find(std::net::IpAddr::is_ipv6).unwrap()
    };
    let [from, to] = [71, 72].map(MacAddr::from_index);
    let (host, server) = (address("a"), address("s"));
    let frame = Ip::between((from, host), (to, server)).udp(1, 2, b"six");
    let arrived = lab.send_all(A, &[frame]);
    assert_eq!((arrived.len(), arrived[0].0), (1, S));
    assert_eq!(Headers::parse(&arrived[0].1).addresses().unwrap().0, host);
}

proptest! {
    #[test]
    fn in_is_delivered_plus_dropped_plus_held(
        packets in prop::collection::vec((0u32..5, 0usize..6, 0u16..4, 0u8..40, 0u64..400), 1..60),
        mapping in 0usize..3, filtering in 0usize..3, sessions_max in 1u32..9,
    ) {
        let keys = format!(
            "{}\nsessions_max = {sessions_max}\nports = '4000-4003'\ntimeouts = {{ udp = '1s', fragments = '500ms' }}",
            keys(DEPENDENCES[mapping], DEPENDENCES[filtering]),
        );
        let mut lab = Lab::new(&keys, &keys);
        let own = ["10.0.1.2", "10.0.2.2", "198.51.100.2", "203.0.113.2", "10.0.3.2"];
        let to = ["192.0.2.2", "192.0.3.2", "198.51.100.2", "10.0.1.2", "10.0.3.2", "10.9.9.9"];
        for (from, dst, port, kind, wait) in packets {
            let (src, dst) = (end(&format!("{}:{}", own[from as usize], 4000 + port)), end(&format!("{}:4001", to[dst])));
            let packet = ip(src, dst);
            let flags = kind & (tcp_flags::SYN | tcp_flags::RST | tcp_flags::FIN);
            let tcp = Tcp { src_port: src.port(), dst_port: dst.port(), flags, ..Tcp::default() };
            let frames = match kind {
                0..10 => vec![packet.udp(src.port(), dst.port(), b"x")],
                10..20 => vec![packet.tcp(&tcp, b"x")],
                20..24 => vec![packet.echo_request(src.port(), 1, b"x")],
                24..28 => vec![packet.echo_reply(dst.port(), 1, b"x")],
                28..32 => vec![Ip { ttl: kind - 27, ..packet }.udp(src.port(), dst.port(), b"x")],
                _ => {
                    let mut all = ipv4::fragment(&packet.udp(src.port(), dst.port(), &[1; 2500]), 900).unwrap();
                    all.rotate_left(usize::from(kind) % 4);
                    all.truncate(3);
                    all
                }
            };
            // `send_all` checks the accounting.
            lab.send_all(EdgeId(from), &frames);
            lab.wait(Duration::from_ms(wait));
        }
        lab.network.advance(lab.now + Duration::from_secs(10));
        let accounting = lab.network.accounting();
        prop_assert!(accounting.balances() && accounting.held == 0, "{:?}", accounting);
    }
}

#[test]
fn a_rebinding_moves_mappings_to_other_ports_or_addresses() {
    let pool = "pool = ['192.0.2.10', '192.0.2.11', '192.0.2.12']";
    for (words, moves) in [("rebind = 'port'", false), ("rebind = 'address'", true)] {
        // Packets are sent at 0, 10 and 20 s.
        let event = format!("[[event]]\nat = '5s'\nnat = 'x'\n{words}\nevery = '10s'\n");
        let text = NET.replace("XKEYS", pool).replace("YKEYS", "") + &event;
        let (topology, _) = fastpath_spec::parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        let mut lab = Lab { network: Network::new(topology, Options::with_seed(7)), now: Time::ZERO };
        let (inside, server) = ("10.0.1.2:5000", end("198.51.100.2:1000"));
        let mut seen = vec![lab.source_at(A, S, udp(inside, server))];
        for _ in 0..2 {
            lab.wait(Duration::from_secs(10));
            // What comes from outside to the former endpoint finds no mapping.
            let former = *seen.last().unwrap();
            let lost = lab.dropped("nat-filtered");
            assert_eq!(lab.send(S, udp("198.51.100.2:1000", former)), []);
            assert_eq!(lab.dropped("nat-filtered"), lost + 1);
            seen.push(lab.source_at(A, S, udp(inside, server)));
            let arrived = lab.send(S, udp("198.51.100.2:1000", *seen.last().unwrap()));
            assert!(matches!(&arrived[..], [(A, flow)] if flow.dst == end(inside)), "{arrived:?}");
        }
        assert_eq!(seen[0].port(), 5000, "preserved until the first rebinding");
        for pair in seen.windows(2) {
            assert_ne!(pair[0], pair[1]);
            assert_eq!(pair[0].ip() != pair[1].ip(), moves, "{seen:?}");
        }
    }
}

#[test]
fn an_inside_host_keeps_its_address_if_it_is_in_the_pool() {
    let x = "pool = ['10.0.1.9', '10.0.1.2']\nfiltering = 'endpoint-independent'";
    let (inside, routes) = ("[router.core]", "[router.core]\nroutes = { '10.0.1.0/24' = '192.0.2.2' }");
    let text = NET.replace("XKEYS", x).replace("YKEYS", "").replace(inside, routes);
    let (topology, _) = fastpath_spec::parse(&text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let mut lab = Lab { network: Network::new(topology, Options::with_seed(7)), now: Time::ZERO };
    let server = end("198.51.100.2:1000");
    assert_eq!(lab.source_at(A, S, udp("10.0.1.2:5000", server)), end("10.0.1.2:5000"));
    let arrived = lab.send(S, udp("198.51.100.2:7", end("10.0.1.2:5000")));
    assert!(matches!(&arrived[..], [(A, flow)] if flow.dst == end("10.0.1.2:5000")), "{arrived:?}");
    // The other host has the addresses of the pool.
    let other = lab.source_at(A2, S, udp("10.0.3.2:5000", server));
    assert!(["10.0.1.9", "10.0.1.2"].contains(&other.ip().to_string().as_str()), "{other}");
}
