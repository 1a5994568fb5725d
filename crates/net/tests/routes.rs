//! Routes that follow the states of links, and flows over several shortest paths, in virtual time.

use fastpath_link::{Change, LinkState};
use fastpath_net::{Delivery, EdgeId, Network, Options};
use fastpath_spec::{Direction, LinkId, Topology, parse};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::Ip;
use proptest::prelude::*;
use std::net::IpAddr;

fn network(text: &str) -> Network {
    Network::new(parse(text).expect("a valid spec").0, Options::with_seed(1))
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_ms(ms)
}

fn address(topology: &Topology, name: &str) -> IpAddr {
    topology.node(topology.node_named(name).unwrap()).interfaces[0].addresses[0].addr()
}

/// A datagram from one host to another. Routers on point-to-point links take any MAC address.
fn datagram(topology: &Topology, from: &str, to: &str, ports: (u16, u16)) -> Vec<u8> {
    let node = topology.node(topology.node_named(from).unwrap());
    let interface = &node.interfaces[0];
    let gateway = topology.peer(interface).1.mac.unwrap_or(MacAddr::BROADCAST);
    let ip = Ip::between(
        (interface.mac.unwrap(), interface.addresses[0].addr()),
        (gateway, address(topology, to)),
    );
    ip.udp(ports.0, ports.1, b"0123456789")
}

fn push(network: &mut Network, at: Time, edge: EdgeId, bytes: &[u8]) {
    let frame = network.pool_mut().insert(bytes).unwrap();
    network.push(at, edge, frame);
}

/// Pops all frames up to `until`: times and edges.
fn collect(network: &mut Network, until: Time) -> Vec<(Time, EdgeId)> {
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, frame }) = network.pop(until) {
        out.push((at, edge));
        network.pool_mut().free(frame);
    }
    out
}

fn state(state: LinkState) -> Change {
    Change { state: Some(state), ..Change::default() }
}

/// a – r – (p: 1 ms a link | q: 3 ms a link) – t – b, with events on the link r-p.
fn square(routes: &str) -> String {
    format!(
        "{routes}\n[host.a]\n[router.r]\n[router.p]\n[router.q]\n[router.t]\n[host.b]
        [[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'p']\ndelay = '1ms'
        [[link]]\nbetween = ['r', 'q']\ndelay = '3ms'\n[[link]]\nbetween = ['p', 't']\ndelay = '1ms'
        [[link]]\nbetween = ['q', 't']\ndelay = '3ms'\n[[link]]\nbetween = ['t', 'b']
        [[event]]\nat = '10ms'\nlink = 'p-t'\nDIRECTION\nstate = 'down'
        [[event]]\nat = '20ms'\nlink = 'p-t'\nstate = 'up'"
    )
}

#[test]
fn traffic_leaves_a_link_at_the_instant_at_which_it_goes_down_and_returns_with_it() {
    // One direction is enough: a path needs both.
    for direction in ["", "direction = 'p_to_t'", "direction = 't_to_p'"] {
        let text = square("routes = 'dynamic'").replace("DIRECTION", direction);
        let mut network = network(&text);
        let bytes = datagram(network.topology(), "a", "b", (1, 2));
        let mut delays = Vec::new();
        for at in 0..30 {
            push(&mut network, ms(at), EdgeId(0), &bytes);
            delays.extend(collect(&mut network, ms(at)));
        }
        delays.extend(collect(&mut network, ms(100)));
        let arrived: Vec<u64> = delays.iter().map(|(at, _)| at.as_ns() / 1_000_000).collect();
        // Over p a packet takes 2 ms, over q 6 ms. The packet of 9 ms enters p-t just before it
        // goes down. What propagates then arrives.
        let over_p = (0..10).chain(20..30);
        let mut expected: Vec<u64> = over_p.map(|at| at + 2).chain((10..20).map(|at| at + 6)).collect();
        expected.sort_unstable();
        assert_eq!(arrived, expected, "{direction}");
    }
}

#[test]
fn static_routes_lead_into_a_link_that_is_down() {
    let mut network = network(&square("").replace("DIRECTION", ""));
    let bytes = datagram(network.topology(), "a", "b", (1, 2));
    for at in [5, 15, 25] {
        push(&mut network, ms(at), EdgeId(0), &bytes);
    }
    let times: Vec<u64> =
        collect(&mut network, ms(99)).iter().map(|(at, _)| at.as_ns() / 1_000_000).collect();
    assert_eq!(times, [7, 27]);
}

/// The number of datagrams of different flows that each of `paths` routers forwards.
fn flows_by_path(paths: usize, flows: u32, seed: u64) -> Vec<u64> {
    let mut text = "ecmp = true\n[host.a]\n[router.r]\n[router.t]\n[host.b]\n".to_owned();
    (0..paths).for_each(|path| text += &format!("[router.m{path}]\n"));
    text += "[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['t', 'b']\n";
    for path in 0..paths {
        text += &format!("[[link]]\nbetween = ['r', 'm{path}']\n[[link]]\nbetween = ['m{path}', 't']\n");
    }
    let topology = parse(&text).expect("a valid spec").0;
    let mut network = Network::new(topology, Options::with_seed(seed));
    let mut rng = Rng::new(seed);
    for _ in 0..flows {
        let ports = (rng.next_u64() as u16, rng.next_u64() as u16);
        let bytes = datagram(network.topology(), "a", "b", ports);
        // Every packet of a flow takes the path of the first.
        (0..2).for_each(|_| push(&mut network, ms(1), EdgeId(0), &bytes));
        collect(&mut network, ms(1));
    }
    collect(&mut network, ms(2));
    let frames = network.accounting();
    assert!(frames.balances() && frames.delivered == 2 * u64::from(flows), "{frames:?}");
    let first = 2; // the links of a and b come before
    let pipes = (0..paths as u32).map(|path| network.pipe(LinkId(first + 2 * path), 0));
    let counts: Vec<u64> = pipes.map(|pipe| pipe.counters().pushed.packets).collect();
    assert!(counts.iter().all(|count| count % 2 == 0), "the packets of a flow take one path: {counts:?}");
    counts.iter().map(|count| count / 2).collect()
}

/// A chi-square test of equal shares. The bounds are the quantiles at 1 − 10⁻⁶ of 1, 2, 3 and 7
/// degrees of freedom. With 8 seeds and 4 numbers of paths a correct choice fails with a
/// probability of 3·10⁻⁵; the seeds are fixed, so the test passes always or never.
#[test]
fn flows_spread_evenly_over_shortest_paths() {
    for (paths, bound) in [(2, 23.93), (3, 27.64), (4, 30.67), (8, 40.52)] {
        for seed in 1..=8 {
            let counts = flows_by_path(paths, 2000, seed);
            let mean = 2000.0 / paths as f64;
            let chi2: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum();
            assert!(chi2 < bound, "{paths} paths, seed {seed}: {counts:?}, chi2 {chi2:.1}");
        }
    }
}

#[test]
fn without_ecmp_all_flows_take_the_first_shortest_path() {
    let mut network = network(&square("").replace("DIRECTION", ""));
    for port in 0..50 {
        let bytes = datagram(network.topology(), "a", "b", (port, 9));
        push(&mut network, ms(1), EdgeId(0), &bytes);
    }
    assert!(collect(&mut network, ms(9)).iter().all(|(at, _)| *at < ms(4)));
}

proptest! {
    /// After any changes a network forwards as a new one whose links begin in the same states.
    #[test]
    fn routes_after_changes_are_those_of_a_fresh_start(
        ends in proptest::collection::vec((0usize..6, 0usize..6), 4..12),
        changes in proptest::collection::vec((0usize..18, any::<bool>(), 0u8..3, any::<bool>()), 0..20),
        is_multipath in any::<bool>(),
    ) {
        let mut text = format!("routes = 'dynamic'\necmp = {is_multipath}\n[switch.n5]\n");
        let mut links = String::new();
        for router in 0..5 {
            text += &format!("[router.n{router}]\n[host.h{router}]\n");
            links += &format!("[[link]]\nbetween = ['n{router}', 'h{router}']\ndelay = '1ms'\n");
        }
        for (a, b) in ends.iter().filter(|(a, b)| a != b) {
            links += &format!("[[link]]\nbetween = ['n{a}', 'n{b}']\ndelay = '1ms'\n");
        }
        let mut topology = parse(&(text + &links)).expect("a valid spec").0;
        let mut changed = Network::new(topology.clone(), Options::with_seed(7));
        let probe = |network: &mut Network, at: Time| {
            for from in 0..5u32 {
                for to in (0..5).filter(|to| *to != from) {
                    let names = [format!("h{from}"), format!("h{to}")];
                    let bytes = datagram(network.topology(), &names[0], &names[1], (from as u16, to as u16));
                    push(network, at, EdgeId(from), &bytes);
                }
            }
            let after = collect(network, at + Duration::from_secs(1));
            after.into_iter().map(|(due, edge)| (due.since(at), edge)).collect::<Vec<_>>()
        };
        let mut at = Time::ZERO;
        for (link, is_up, direction, is_probed) in changes {
            let link = LinkId((link % topology.links.len()) as u32);
            let direction = [Direction::Forward, Direction::Backward, Direction::Both][usize::from(direction)];
            let to = if is_up { LinkState::Up } else { LinkState::Down };
            changed.apply(at, link, direction, &state(to));
            for pipe in direction.pipes() {
                topology.links[link.0 as usize].pipes[pipe].state = to;
            }
            // Routers have a table from before the next change, or none.
            if is_probed {
                probe(&mut changed, at);
            }
            at += Duration::from_secs(10);
        }
        let mut fresh = Network::new(topology, Options::with_seed(7));
        prop_assert_eq!(probe(&mut changed, at), probe(&mut fresh, Time::ZERO));
    }
}
