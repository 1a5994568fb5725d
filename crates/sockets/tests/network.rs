//! Sockets over links, switches, routers and NAT, in virtual time.

use fastpath_link::Change;
use fastpath_sockets::{
    BindError, Datagram, Discarded, Event, LinkChangeError, SendError, SocketId, VirtualNetwork,
};
use fastpath_spec::Direction;
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::pcap::CaptureReader;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

fn network(spec: &str) -> VirtualNetwork {
    VirtualNetwork::from_spec(spec, 7).expect("a valid spec")
}

/// Runs until nothing happens, and returns what arrived.
fn drain(network: &mut VirtualNetwork) -> Vec<(SocketId, Datagram)> {
    let mut found = Vec::new();
    while let Some(at) = network.next_at() {
        network.advance(at).unwrap();
        while let Some(event) = network.next_event() {
            if let Event::Arrived { socket } = event {
                found.push((socket, network.receive(socket).unwrap()));
            }
        }
    }
    found
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_ms(ms)
}

#[test]
fn datagrams_pass_switches_and_routers_both_ways() {
    let mut network = network(
        "[host.a]\n[host.b]\n[host.c]\n[switch.s]\n[router.r]\n\
         [[link]]\nbetween = ['a', 's']\ndelay = '1ms'\n[[link]]\nbetween = ['b', 's']\n\
         [[link]]\nbetween = ['s', 'r']\n[[link]]\nbetween = ['r', 'c']\ndelay = '2ms'",
    );
    let [a, b, c] = ["a", "b", "c"].map(|host| network.bind(host, 9).unwrap());
    for to in [b, c] {
        let to = network.address(to);
        network.send_marked(a, to, 1, b"question").unwrap();
    }
    let found = drain(&mut network);
    let times: Vec<(SocketId, Time, u8)> =
        found.iter().map(|(socket, datagram)| (*socket, datagram.at, datagram.ecn)).collect();
    assert_eq!(times, [(b, at(1), 1), (c, at(3), 1)]);
    for (socket, datagram) in found {
        assert_eq!((datagram.from, &datagram.payload[..]), (network.address(a), &b"question"[..]));
        network.send(socket, datagram.from, b"").unwrap();
    }
    let answers = drain(&mut network);
    assert_eq!(answers.iter().map(|(socket, _)| *socket).collect::<Vec<_>>(), [a, a]);
    // The switch has not learned where b is when the first datagram comes, and floods it.
    assert_eq!(network.discarded(), Discarded { not_ours: 1, ..Discarded::default() });
}

#[test]
fn a_nat_changes_what_the_server_sees_and_answers_come_back() {
    let mut network = network(
        "[host.inside]\n[nat.n]\ninside = ['inside-n']\n[host.server]\n\
         [[link]]\nbetween = ['inside', 'n']\n[[link]]\nbetween = ['n', 'server']\ndelay = '5ms'",
    );
    let inside = network.bind("inside", 5000).unwrap();
    let server = network.bind("server", 443).unwrap();
    network.send(inside, network.address(server), b"hello").unwrap();
    let (socket, datagram) = drain(&mut network).remove(0);
    assert_eq!(socket, server);
    assert_ne!(datagram.from.ip(), network.address(inside).ip());
    network.send(server, datagram.from, b"back").unwrap();
    let (socket, datagram) = drain(&mut network).remove(0);
    assert_eq!((socket, &datagram.payload[..], datagram.at), (inside, &b"back"[..], at(10)));
}

#[test]
fn the_same_seed_gives_the_same_times_losses_and_bits() {
    let run = |seed| {
        let spec = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\nloss = '5%'\n\
                    corrupt = '5%'\njitter = { law = \"normal\", sd = '1ms' }\ndelay = '5ms'";
        let mut network = VirtualNetwork::from_spec(spec, seed).unwrap();
        let [a, b] = ["a", "b"].map(|host| network.bind(host, 0).unwrap());
        let (to, mut rng) = (network.address(b), Rng::new(3));
        for _ in 0..500 {
            network.send(a, to, &vec![1; rng.below(1400) as usize]).unwrap();
            let later = network.now() + Duration::from_us(rng.below(2000));
            network.advance(later).unwrap();
        }
        let found: Vec<(Time, usize)> =
            drain(&mut network).iter().map(|(_, datagram)| (datagram.at, datagram.payload.len())).collect();
        (found, network.discarded())
    };
    let (found, discarded) = run(1);
    assert_eq!((found.clone(), discarded), run(1));
    assert_ne!(found, run(2).0);
    assert!(discarded.bad_checksum > 10 && found.len() > 350, "{discarded:?} {}", found.len());
}

#[test]
fn links_change_while_datagrams_are_on_them() {
    let mut network = network("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '10ms'");
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 1).unwrap());
    let to = network.address(b);
    network.send(a, to, b"slow").unwrap();
    network.advance(at(4)).unwrap();
    let link = network.network().topology().link_named("a-b").unwrap();
    let change = Change { delay: Some(Duration::from_ms(1)), ..Change::default() };
    network.network_mut().apply(at(4), link, Direction::Both, &change);
    network.send(a, to, b"fast").unwrap();
    let times: Vec<Time> = drain(&mut network).iter().map(|(_, datagram)| datagram.at).collect();
    assert_eq!(times, [at(10), at(10)], "no overtaking");
}

#[test]
fn mistakes_are_named() {
    let mut network = network("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nmtu = 1280");
    let said = |error: BindError| error.to_string();
    assert_eq!(said(network.bind("x", 1).unwrap_err()), "no host x (have: a, b)");
    let a = network.bind("a", 1).unwrap();
    assert_eq!(said(network.bind("a", 1).unwrap_err()), "port 1 of host a is in use");
    let own = network.address(a);
    let other: SocketAddr = "192.0.2.1:7".parse().unwrap();
    let wrong = said(network.bind_to("b", Some(own.ip()), 1).unwrap_err());
    assert!(wrong.starts_with(&format!("host b has no address {} (has: ", own.ip())), "{wrong}");
    let error = network.send(a, other, b"").unwrap_err();
    assert_eq!(error.to_string(), "host a has no route to 192.0.2.1");
    let unused: SocketAddr = match own {
        SocketAddr::V4(own) => {
            let [x, y, z, _] = own.ip().octets();
            SocketAddr::from(([x, y, z, own.ip().octets()[3] ^ 3 ^ 1], 7))
        }
        SocketAddr::V6(_) => unreachable!("IPv4 comes first"),
    };
    assert!(matches!(
        network.send(a, unused, b"").unwrap_err(),
        SendError::NoNeighbor { .. } | SendError::NoRoute { .. }
    ));
    let b = network.bind("b", 1).unwrap();
    let to = network.address(b);
    assert_eq!(
        network.send(a, to, &[0; 1253]).unwrap_err().to_string(),
        "a payload of 1253 bytes does not fit: at most 1252 over eth0"
    );
    network.advance(at(1)).unwrap();
    assert_eq!(
        network.advance(Time::ZERO).unwrap_err().to_string(),
        "time runs back: the network is at 1ms and was asked for 0s"
    );
    // A port without a socket.
    network.close(b);
    network.send(a, to, b"").unwrap();
    assert!(drain(&mut network).is_empty());
    assert_eq!(network.discarded().no_socket, 1);
}

#[test]
fn timers_go_off_in_order_before_packets_of_the_same_instant() {
    let mut network = network("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '1ms'");
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 1).unwrap());
    network.send(a, network.address(b), b"x").unwrap();
    for (ms, key) in [(2, 3), (1, 1), (1, 2), (0, 0)] {
        network.set_timer(at(ms), key);
    }
    network.advance(at(5)).unwrap();
    let events: Vec<Event> = std::iter::from_fn(|| network.next_event()).collect();
    let timer = |key| Event::Timer { key };
    assert_eq!(events, [timer(0), timer(1), timer(2), Event::Arrived { socket: b }, timer(3)]);
}

/// A file in memory that two hold.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_has_the_frames_of_its_hosts_both_ways_with_their_times() {
    let mut network = network(
        "[host.a]\n[host.b]\n[switch.s]\n[[link]]\nbetween = ['a', 's']\ndelay = '1ms'\n\
         [[link]]\nbetween = ['b', 's']\ndelay = '2ms'\nrate = '1Gbit'\n[[link]]\nbetween = ['a', 'b']\nstate = 'down'",
    );
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 9).unwrap());
    let (of_a, of_all) = (Shared::default(), Shared::default());
    network.capture(&["a"], of_a.clone()).unwrap();
    network.capture(&[], of_all.clone()).unwrap();
    let address = network.network().topology().node_named("b").unwrap();
    let to = network.network().topology().node(address).interfaces[0].addresses[0].addr();
    network.send(a, SocketAddr::new(to, 9), &[1; 101]).unwrap();
    let (_, datagram) = drain(&mut network).remove(0);
    network.send(b, datagram.from, b"back").unwrap();
    drain(&mut network);
    network.end_captures().unwrap();
    network.send(a, SocketAddr::new(to, 9), b"after the end").unwrap();

    let packets = |file: &Shared| {
        let bytes = file.0.lock().unwrap().clone();
        let mut reader = CaptureReader::new(&bytes[..]).unwrap();
        let mut found = Vec::new();
        while let Some(packet) = reader.read_packet().unwrap() {
            found.push((packet.ns.unwrap(), packet.interface, packet.data.len()));
        }
        (found, String::from_utf8_lossy(&bytes).into_owned())
    };
    // 143 bytes at 1 Gbit/s take 1144 ns, 46 take 368.
    let (of_a, text) = packets(&of_a);
    assert_eq!(of_a, [(0, 0, 143), (6_001_512, 0, 46)]);
    assert!(text.contains("a:eth0") && text.contains("interface eth0 of host a") && !text.contains("b:eth0"));
    assert!(text.contains("sent=0.000000000000") && text.contains("received=0.006001512000"), "{text}");
    let (of_all, text) = packets(&of_all);
    assert_eq!(of_all, [(0, 0, 143), (3_001_144, 2, 143), (3_001_144, 2, 46), (6_001_512, 0, 46)]);
    assert!(text.contains("b:eth1"), "an interface without frames is in the file");
    assert!(network.capture(&["x"], io::sink()).unwrap_err().to_string().contains("no host x (have: a, b)"));
}

#[test]
fn a_capture_that_cannot_be_written_says_so_once() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut network = network("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']");
    let [a, b] = ["a", "b"].map(|host| network.bind(host, 9).unwrap());
    network.capture(&[], Full).unwrap();
    for _ in 0..100 {
        network.send(a, network.address(b), &[0; 1000]).unwrap();
        drain(&mut network);
    }
    assert_eq!(network.flush_captures().unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert!(network.end_captures().unwrap_err().to_string().contains("earlier error"));
    network.end_captures().unwrap();
}

#[test]
fn sockets_of_every_address_are_those_of_a_family_as_in_linux() {
    let mut network = network("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']");
    let any = ["0.0.0.0", "::"].map(|address| address.parse::<IpAddr>().unwrap());
    let v4 = network.bind_to("b", Some(any[0]), 1).unwrap();
    assert!(matches!(network.bind_to("b", Some(any[1]), 1), Err(BindError::InUse { .. })));
    let dual = network.bind_to("b", Some(any[1]), 2).unwrap();
    let own = network.network().topology().node(network.network().topology().node_named("b").unwrap());
    let own: Vec<IpAddr> = own.interfaces[0].addresses.iter().map(|net| net.addr()).collect();
    assert_eq!(own.iter().map(IpAddr::is_ipv4).collect::<Vec<_>>(), [true, false]);
    assert!(matches!(network.bind_to("b", Some(own[0]), 1), Err(BindError::InUse { .. })));
    let v6 = network.bind_to("b", Some(own[1]), 1).unwrap();
    let a = network.bind("a", 9).unwrap();
    for port in [1, 2] {
        for own in &own {
            network.send(a, SocketAddr::new(*own, port), b"x").unwrap();
        }
    }
    let sockets: Vec<SocketId> = drain(&mut network).iter().map(|(socket, _)| *socket).collect();
    assert_eq!(sockets, [v4, v6, dual, dual]);
}

#[test]
fn values_that_a_trace_sets_cannot_be_changed() {
    let spec = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n[[link]]\nname = 'l'\nbetween = ['a', 'b']\n\
                trace = { file = 'lte.csv', end = 'hold' }";
    let files = |_: &str| Ok("time_s,rate_mbps\n0,1\n10,2\n".to_owned());
    let checked = fastpath_spec::check(spec, &files).into_result();
    let mut network = VirtualNetwork::new(checked.unwrap().0.topology, 1);
    let rate = fastpath_spec::parse_change("rate = '1Mbit'").unwrap();
    let delay = fastpath_spec::parse_change("delay = '1ms'").unwrap();
    let refused = network.change_link("l", Some("a"), &rate).unwrap_err().to_string();
    assert!(refused.contains("rate"), "{refused}");
    network.change_link("l", None, &delay).unwrap();
    network.change_link("a-b", Some("b"), &rate).unwrap();
    network.advance(at(20_000)).unwrap();
    network.change_link("l", Some("a"), &rate).unwrap();
    let said = |refused: Result<(), LinkChangeError>| refused.unwrap_err().to_string();
    assert_eq!(said(network.change_link("x", None, &rate)), "no link x (have: a-b, l)");
    assert_eq!(said(network.change_link("l", Some("x"), &rate)), "link l has no end at x (has: a, b)");
}
