//! Changes of the topology of a running network: what stays is not disturbed, what is removed is
//! counted, and the state at the end is that of a fresh start.

use fastpath_net::{Delivery, EdgeId, Fib, Network, Options, Routes, TopologyChange};
use fastpath_spec::{
    Description, LinkDescription, NO_FILES, NodeDescription, NodeId, NodeRole, Topology, parse_change,
    resolve, resolve_in_place_of, segment,
};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::{Ip, ethernet};
use proptest::prelude::*;
use std::net::IpAddr;

const OPTIONS: Options = Options::with_seed(1);
/// Changes per case, and how far apart they are at most.
const CHANGES: usize = 12;
const APART: Duration = Duration::from_ms(4);
/// Longer than a frame is in the network, or waits in a router.
const DRAINED: Duration = Duration::from_secs(10);
/// Longer than switches keep learned addresses.
const AGED: Duration = Duration::from_secs(400);

/// Switches and routers, and the links that there can be between them.
const INSIDE: [(&str, NodeRole); 5] = [
    ("s0", NodeRole::Switch),
    ("s1", NodeRole::Switch),
    ("s2", NodeRole::Switch),
    ("r0", NodeRole::Router),
    ("r1", NodeRole::Router),
];
const HOSTS: usize = 6;
/// Values without chance: the state of a random generator is not that of a fresh start.
const VALUES: [&str; 5] = [
    "rate = 'unlimited'",
    "delay = '1ms'",
    "rate = '10Mbit'\nqueue = '20p'",
    "rate = '1Mbit'\ndelay = '3ms'\nqueue = '4p'",
    "delay = '2ms'\nslots = { min = '1ms', max = '1ms' }",
];

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// A frame that arrived: time, host and interface, length, headers.
type Arrived = (Time, String, usize, Vec<u8>);

/// What there is of the network of a test.
#[derive(Clone, Debug)]
struct Parts {
    /// By host: the node inside that it is on, as an index into [`INSIDE`], and its values.
    hosts: [Option<(usize, usize)>; HOSTS],
    /// By pair of nodes inside: the values of their link.
    inside: [[Option<usize>; INSIDE.len()]; INSIDE.len()],
    /// Where the lists of nodes and links begin.
    turn: usize,
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    (rng.next_u64() % bound as u64) as usize
}

impl Parts {
    fn new() -> Parts {
        let mut parts = Parts { hosts: [None; HOSTS], inside: Default::default(), turn: 0 };
        parts.hosts[0] = Some((0, 1));
        parts.hosts[1] = Some((3, 1));
        parts.inside[0][3] = Some(1);
        parts
    }

    fn vary(&mut self, rng: &mut Rng) {
        for _ in 0..=below(rng, 3) {
            match below(rng, 4) {
                0 => self.turn = below(rng, HOSTS),
                1 => {
                    let (a, b) = (below(rng, INSIDE.len()), below(rng, INSIDE.len()));
                    let values = below(rng, VALUES.len());
                    let link = &mut self.inside[a.min(b)][a.max(b)];
                    *link = if link.is_some() && below(rng, 2) == 0 { None } else { Some(values) };
                }
                _ => {
                    let (host, place) = (below(rng, HOSTS), below(rng, INSIDE.len()));
                    let gone = host > 0 && below(rng, 3) == 0;
                    self.hosts[host] = (!gone).then(|| (place, below(rng, VALUES.len())));
                }
            }
        }
    }

    fn description(&self) -> Description {
        let mut nodes: Vec<NodeDescription> =
            INSIDE.iter().map(|(name, role)| NodeDescription::new(*role, *name)).collect();
        let mut links = Vec::new();
        let mut link = |name: String, a: &str, b: &str, values: usize| {
            let values = parse_change(VALUES[values]).unwrap();
            links.push(LinkDescription { name: Some(name), values, ..LinkDescription::new(a, b) });
        };
        for (host, place) in self.hosts.iter().enumerate() {
            let Some((at, values)) = *place else { continue };
            let name = format!("h{host}");
            link(format!("to-{name}"), &name, INSIDE[at].0, values);
            nodes.push(NodeDescription::host(name));
        }
        for (a, b) in (0..INSIDE.len()).flat_map(|a| (a + 1..INSIDE.len()).map(move |b| (a, b))) {
            if let Some(values) = self.inside[a][b] {
                link(format!("{}-{}", INSIDE[a].0, INSIDE[b].0), INSIDE[a].0, INSIDE[b].0, values);
            }
        }
        let turn = self.turn;
        nodes.rotate_left(turn % HOSTS);
        links.rotate_left(turn.min(1));
        Description { nodes, links, ..Description::default() }
    }
}

/// The host of an edge and the number of its interface.
fn host_at(topology: &Topology, edge: EdgeId) -> (NodeId, usize) {
    let interfaces = topology.hosts().flat_map(|(id, node)| (0..node.interfaces.len()).map(move |i| (id, i)));
    interfaces.into_iter().nth(edge.0 as usize).expect("an edge")
}

fn edge_of(topology: &Topology, host: NodeId) -> Option<EdgeId> {
    let before = topology.hosts().take_while(|(id, _)| *id != host).map(|(_, node)| node.interfaces.len());
    (!topology.node(host).interfaces.is_empty()).then(|| EdgeId(before.sum::<usize>() as u32))
}

/// A datagram from the first interface of a host to another host, as the host would send it; a
/// broadcast if there is no way.
fn datagram(topology: &Topology, from: NodeId, to: NodeId, len: usize) -> Option<(EdgeId, Vec<u8>)> {
    let own = topology.node(from).interfaces.first()?;
    let v4 = |node: NodeId, index: usize| {
        let addresses = &topology.node(node).interfaces[index].addresses;
        addresses.iter().map(|address| address.addr()).find(IpAddr::is_ipv4)
    };
    let edge = edge_of(topology, from)?;
    let payload = vec![0x5a; len];
    let way = v4(to, 0).filter(|_| !topology.node(to).interfaces.is_empty()).and_then(|there| {
        let hop = Fib::new(Routes::compute(topology).of(from)).lookup(there)?;
        let next = hop.via.unwrap_or(there);
        let stations = segment::stations(topology, from, 0);
        let (node, index) = stations.into_iter().find(|&(node, index)| v4(node, index) == Some(next))?;
        Some((topology.node(node).interfaces[index].mac?, there))
    });
    Some(match way {
        Some(next) => (edge, Ip::between((own.mac?, v4(from, 0)?), next).udp(5, 6, &payload)),
        None => (edge, ethernet(MacAddr([255; 6]), own.mac?, 0x88b5, &payload)),
    })
}

fn push(network: &mut Network, at: Time, (edge, bytes): &(EdgeId, Vec<u8>)) {
    let frame = network.pool_mut().insert(bytes).expect("the pool is not full");
    network.push(at, *edge, frame);
}

/// What arrives until `until`.
fn collect(network: &mut Network, until: Time) -> Vec<Arrived> {
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, frame }) = network.pop(until) {
        let (host, interface) = host_at(network.topology(), edge);
        let host = network.topology().node(host);
        let place = format!("{}/{}", host.name, host.interfaces[interface].name);
        // The payloads are all the same.
        let bytes = network.pool().bytes(&frame);
        out.push((at, place, bytes.len(), bytes[..bytes.len().min(HEADERS)].to_vec()));
        network.pool_mut().free(frame);
    }
    out
}

fn check_accounting(network: &Network) {
    let accounting = network.accounting();
    assert!(accounting.balances(), "{accounting:?}");
    assert_eq!(network.pool().live() as u64, accounting.held, "{accounting:?}");
    for link in 0..network.topology().links.len() as u32 {
        assert!((0..2).all(|pipe| network.pipe(fastpath_spec::LinkId(link), pipe).conserved()));
    }
}

/// Sends a frame between two random hosts.
fn send(networks: &mut [&mut Network], now: Time, rng: &mut Rng) {
    let topology = networks[0].topology();
    let hosts: Vec<NodeId> = topology.hosts().map(|(id, _)| id).collect();
    let (from, to) = (hosts[below(rng, hosts.len())], hosts[below(rng, hosts.len())]);
    let len = 18 + below(rng, 1000);
    let Some(frame) = datagram(topology, from, to, len) else { return };
    networks.iter_mut().for_each(|network| push(network, now, &frame));
}

/// Random changes under traffic. Then a network that was started with the last description behaves
/// as the changed one does.
fn ends_as_a_fresh_start(seed: u64, changes: usize, keeps_addresses: bool) {
    let mut rng = Rng::new(seed);
    let mut parts = Parts::new();
    let topology = resolve(&parts.description(), NO_FILES).expect("a valid description").0;
    let mut network = Network::new(topology, OPTIONS);
    let mut now = Time::ZERO;
    for change in 0..changes {
        for _ in 0..below(&mut rng, 8) {
            now = now.saturating_add(Duration::from_ps(rng.next_u64() % (APART.as_ps() / 8)));
            send(&mut [&mut network], now, &mut rng);
            if below(&mut rng, 3) == 0 {
                collect(&mut network, now);
            }
        }
        if change + 1 == changes {
            // A router remembers who has an address, and a request on the way may be old.
            now = now.saturating_add(DRAINED);
            collect(&mut network, now);
        }
        parts.vary(&mut rng);
        let description = parts.description();
        let new = match keeps_addresses {
            true => resolve_in_place_of(&description, NO_FILES, network.topology()),
            false => resolve(&description, NO_FILES),
        };
        let new = new.expect("a valid description").0;
        let names = |topology: &Topology| -> Vec<String> {
            let all = topology.nodes.iter().flat_map(|node| &node.interfaces);
            all.map(|interface| interface.name.clone()).collect()
        };
        let fresh = resolve(&description, NO_FILES).expect("a valid description").0;
        assert_eq!(names(&new), names(&fresh));
        let change = TopologyChange::new(network.topology(), new.clone(), &OPTIONS);
        drop(network.rearrange(now, change));
        assert_eq!(*network.topology(), new);
        check_accounting(&network);
    }
    now = now.saturating_add(AGED);
    collect(&mut network, now);
    assert!(network.is_quiescent());
    let mut fresh = Network::new(network.topology().clone(), OPTIONS);
    fresh.advance(now);
    for _ in 0..40 {
        now = now.saturating_add(Duration::from_ps(rng.next_u64() % APART.as_ps()));
        send(&mut [&mut network, &mut fresh], now, &mut rng);
    }
    let end = now.saturating_add(Duration::from_secs(10));
    assert_eq!(collect(&mut network, end), collect(&mut fresh, end));
    check_accounting(&network);
}

/// The untouched part of a network with chance in every link: two switches and a router.
const UNTOUCHED: &str = r#"
[host.a]
[host.b]
[host.c]
[host.d]
[switch.s]
[switch.t]
[router.r]
[[link]]
between = ["a", "s"]
rate = "10Mbit"
queue = "20p"
loss = "3%"
[[link]]
between = ["b", "s"]
delay = "2ms"
jitter = { law = "normal", sd = "1ms" }
[[link]]
between = ["s", "r"]
rate = "20Mbit"
delay = "1ms"
queue = { kind = "codel" }
loss = { probability = "5%", correlation = "30%" }
[[link]]
between = ["r", "t"]
delay = "1ms"
duplicate = "10%"
[[link]]
between = ["c", "t"]
rate = "5Mbit"
queue = { kind = "red", min = "5p", max = "15p", limit = "30p" }
[[link]]
between = ["d", "r"]
delay = "3ms"
reorder = "10%"
trace = { poisson = "8Mbit", length = "100ms", seed = 3 }
"#;

fn untouched() -> Description {
    fastpath_spec::read(UNTOUCHED, NO_FILES).expect("a valid spec").0.description
}

/// The same with some of up to eight more hosts: on the switches and the router of the untouched
/// part, on a switch behind them, and on one of their own.
fn with_others(rng: &mut Rng, others: &mut [Option<usize>; 8]) -> Description {
    let other = &mut others[below(rng, 8)];
    *other = if other.is_some() { None } else { Some(below(rng, VALUES.len())) };
    let mut description = untouched();
    let leaf = (below(rng, 2) == 0).then(|| NodeDescription::new(NodeRole::Switch, "leaf"));
    let alone = NodeDescription::new(NodeRole::Switch, "alone");
    let first = below(rng, 2) == 0;
    let mut add_link = |link: LinkDescription| match first {
        true => description.links.insert(0, link),
        false => description.links.push(link),
    };
    let mut nodes = vec![alone];
    for (number, values) in others.iter().enumerate() {
        let Some(values) = *values else { continue };
        let place = ["s", "t", "r", "leaf", "leaf", "alone", "alone", "r"][number];
        if place == "leaf" && leaf.is_none() {
            continue;
        }
        let name = format!("x{number}");
        let values = parse_change(VALUES[values]).unwrap();
        add_link(LinkDescription { values, ..LinkDescription::new(name.as_str(), place) });
        nodes.push(NodeDescription::host(name));
    }
    if let Some(leaf) = leaf {
        add_link(LinkDescription::new("leaf", "t"));
        nodes.push(leaf);
    }
    for node in nodes {
        match first {
            true => description.nodes.insert(0, node),
            false => description.nodes.push(node),
        }
    }
    description
}

/// Traffic in the untouched part, while other nodes come and go, arrives as in a network without
/// them: to the picosecond, with the same losses.
fn the_untouched_part_is_not_disturbed(seed: u64, changes: usize) {
    let mut rng = Rng::new(seed);
    let topology = resolve(&untouched(), NO_FILES).expect("a valid description").0;
    let (mut changed, mut twin) = (Network::new(topology.clone(), OPTIONS), Network::new(topology, OPTIONS));
    let mut others = [None; 8];
    let mut now = Time::ZERO;
    let mine = |(_, place, ..): &Arrived| !place.starts_with('x');
    for _ in 0..changes {
        for _ in 0..below(&mut rng, 8) {
            now = now.saturating_add(Duration::from_ps(rng.next_u64() % (APART.as_ps() / 8)));
            let hosts: Vec<NodeId> = twin.topology().hosts().map(|(id, _)| id).collect();
            let (from, to) = (hosts[below(&mut rng, 4)], hosts[below(&mut rng, 4)]);
            let Some((edge, bytes)) = datagram(twin.topology(), from, to, 18 + below(&mut rng, 1000)) else {
                continue;
            };
            push(&mut twin, now, &(edge, bytes.clone()));
            let name = &twin.topology().node(from).name;
            let there =
                changed.topology().node_named(name).and_then(|host| edge_of(changed.topology(), host));
            push(&mut changed, now, &(there.expect("it stays"), bytes));
        }
        let description = with_others(&mut rng, &mut others);
        let new = resolve_in_place_of(&description, NO_FILES, changed.topology()).expect("valid").0;
        for node in &twin.topology().nodes {
            let same = new.nodes.iter().find(|other| other.name == node.name).expect("it stays");
            for interface in &node.interfaces {
                let link = &twin.topology().link(interface.link).name;
                let same = same.interfaces.iter().find(|other| new.link(other.link).name == *link);
                let own = |interface: &fastpath_spec::Interface| (interface.mac, interface.addresses.clone());
                assert_eq!(same.map(own), Some(own(interface)));
            }
        }
        let change = changed.prepare(new, &OPTIONS);
        drop(changed.rearrange(now, change));
        check_accounting(&changed);
        if below(&mut rng, 2) == 0 {
            let arrived = collect(&mut changed, now);
            assert_eq!(arrived.into_iter().filter(mine).collect::<Vec<_>>(), collect(&mut twin, now));
        }
    }
    let end = now.saturating_add(Duration::from_secs(10));
    let arrived = collect(&mut changed, end);
    assert_eq!(arrived.into_iter().filter(mine).collect::<Vec<_>>(), collect(&mut twin, end));
    check_accounting(&changed);
}

proptest! {
    #[test]
    fn random_changes_end_as_a_fresh_start(seed: u64, keeps_addresses: bool) {
        ends_as_a_fresh_start(seed, CHANGES, keeps_addresses);
    }

    #[test]
    fn what_stays_is_not_disturbed(seed: u64) {
        the_untouched_part_is_not_disturbed(seed, CHANGES);
    }
}

/// Many changes of one network. `FASTPATH_CHANGES=10000` takes a minute.
#[test]
fn long_series_of_changes_end_as_a_fresh_start_and_disturb_nothing_else() {
    let changes = std::env::var("FASTPATH_CHANGES").map_or(100, |changes| changes.parse().expect("a number"));
    ends_as_a_fresh_start(1, changes, true);
    ends_as_a_fresh_start(2, changes, false);
    the_untouched_part_is_not_disturbed(3, changes);
}
