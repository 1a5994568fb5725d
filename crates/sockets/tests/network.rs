//! Sockets over links, switches, routers and NAT, in virtual time.

use fastpath_link::Change;
use fastpath_sockets::{BindError, Datagram, Discarded, Event, SendError, SocketId, VirtualNetwork};
use fastpath_spec::Direction;
use fastpath_units::{Duration, Rng, Time};
use std::net::SocketAddr;

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
    let nobody: SocketAddr = match own {
        SocketAddr::V4(own) => {
            let [x, y, z, _] = own.ip().octets();
            SocketAddr::from(([x, y, z, own.ip().octets()[3] ^ 3 ^ 1], 7))
        }
        SocketAddr::V6(_) => unreachable!("IPv4 comes first"),
    };
    assert!(matches!(
        network.send(a, nobody, b"").unwrap_err(),
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
    // A port that nobody has, and one that is closed.
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
