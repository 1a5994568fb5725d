//! A topology split into parts gives the same frames at the same picoseconds as the whole.

use fastpath_net::{Delivery, EdgeId, Network, Options, Part};
use fastpath_spec::{self as spec, Topology};
use fastpath_units::{Duration, Rng, Time};
use std::num::NonZeroUsize;

/// Two routed networks, a switched network, three parallel links between two hosts, and an event.
const SPEC: &str = r#"
[host.a]
[host.b]
[host.c]
[host.d]
[host.e]
[host.f]
[router.r]
[router.q]
[switch.s]
[[link]]
between = ["a", "r"]
rate = "10Mbit"
loss = "10%"
[[link]]
between = ["c", "s"]
jitter = { law = "normal", sd = "1ms" }
delay = "10ms"
[[link]]
between = ["r", "b"]
delay = "3ms"
[[link]]
between = ["d", "s"]
duplicate = "20%"
[[link]]
between = ["e", "f"]
name = "one"
loss = "30%"
[[link]]
between = ["e", "f"]
name = "two"
corrupt = "50%"
[[link]]
between = ["f", "e"]
name = "three"
delay = "1ms"
trace = { poisson = "2Mbit", length = "100ms", seed = 3 }
[[link]]
between = ["a", "q"]
loss = "5%"
[[link]]
between = ["q", "d"]
rate = "1Mbit"
[[event]]
at = "50ms"
link = "two"
delay = "7ms"
"#;

const OPTIONS: Options = Options::with_seed(7);

fn whole() -> Topology {
    spec::parse(SPEC).expect("a valid spec").0
}

/// A frame from an edge to another host: by way of its router, or to the MAC of that host.
fn frame(topology: &Topology, edge: usize, number: u16, rng: &mut Rng) -> Vec<u8> {
    let interfaces: Vec<_> = topology.hosts().flat_map(|(_, host)| &host.interfaces).collect();
    let interface = interfaces[edge];
    let (_, peer) = topology.peer(interface);
    let target = interfaces[(edge + usize::from(number)) % interfaces.len()];
    let mac = |mac: Option<fastpath_wire::MacAddr>| mac.expect("assigned");
    let to = if peer.addresses.is_empty() { mac(target.mac) } else { mac(peer.mac) };
    let address = |interface: &fastpath_spec::Interface| interface.addresses[0].addr();
    let ends = ((mac(interface.mac), address(interface)), (to, address(target)));
    let payload = vec![number as u8; rng.below(1200) as usize];
    fastpath_wire::build::Ip::between(ends.0, ends.1).udp(1000, number, &payload)
}

/// Returns all deliveries of a part, with the edges of the whole topology.
fn run(part: &Part, traffic: &[(Time, EdgeId, Vec<u8>)]) -> Vec<(Time, EdgeId, Vec<u8>)> {
    let mut network = Network::new(part.topology.clone(), OPTIONS);
    for (at, edge, bytes) in traffic {
        if let Some(local) = part.edges.iter().position(|global| global == edge) {
            let frame = network.pool_mut().insert(bytes).unwrap();
            network.push(*at, EdgeId(local as u32), frame);
        }
    }
    let mut out = Vec::new();
    while let Some(Delivery { at, edge, frame }) = network.pop(Time::ZERO + Duration::from_secs(60)) {
        out.push((at, part.edges[edge.0 as usize], network.pool().bytes(&frame).to_vec()));
        network.pool_mut().free(frame);
    }
    assert!(network.accounting().balances());
    out
}

#[test]
fn any_number_of_parts_gives_the_same_bytes_at_the_same_picoseconds() {
    let topology = whole();
    let edges = topology.hosts().map(|(_, host)| host.interfaces.len()).sum::<usize>();
    let mut rng = Rng::new(11);
    let traffic: Vec<_> = (0..2000u16)
        .map(|number| {
            let edge = usize::from(number) % edges;
            let at = Time::ZERO + Duration::from_us(100 * u64::from(number));
            (at, EdgeId(edge as u32), frame(&topology, edge, number, &mut rng))
        })
        .collect();
    let outcome = |count: usize| {
        let parts = Part::split(&topology, NonZeroUsize::new(count).unwrap());
        let mut out: Vec<_> = parts.iter().flat_map(|part| run(part, &traffic)).collect();
        // A stable sort: frames with equal time and edge keep their order.
        out.sort_by_key(|(at, edge, _)| (*at, *edge));
        (parts.len(), out)
    };
    let (one, expected) = outcome(1);
    assert!(one == 1 && expected.len() > 1000, "{}", expected.len());
    for (count, parts) in [(2, 2), (3, 3), (6, 6), (100, 6)] {
        let (found, out) = outcome(count);
        assert_eq!(found, parts);
        assert!(out == expected, "in {count} parts");
    }
}

#[test]
fn one_part_equals_the_whole() {
    let topology = whole();
    let parts = Part::split(&topology, NonZeroUsize::MIN);
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].topology, topology);
    assert!(parts[0].links.iter().enumerate().all(|(place, link)| link.0 as usize == place));
    assert!(parts[0].edges.iter().enumerate().all(|(place, edge)| edge.0 as usize == place));
    assert_eq!(Part::split(&Topology::default(), NonZeroUsize::MIN).len(), 1);
}

#[test]
fn parts_have_similar_sizes() {
    let mut topology = Topology::default();
    for link in 0..100 {
        let ends =
            ["a", "b"].map(|end| topology.add_node(format!("{end}{link}"), fastpath_spec::NodeKind::host()));
        topology.connect(format!("l{link}"), ends[0], ends[1], Default::default());
    }
    let sizes: Vec<usize> =
        Part::split(&topology, NonZeroUsize::new(3).unwrap()).iter().map(|part| part.links.len()).collect();
    assert_eq!(sizes, [34, 33, 33]);
}

#[test]
fn parts_of_a_new_topology_stay_where_they_run() {
    let old = "[host.a]\n[host.b]\n[host.c]\n[host.d]\n[[link]]\nbetween = ['a', 'b']\n\
               [[link]]\nbetween = ['c', 'd']\n";
    let whole = |text: &str| spec::parse(text).expect("a valid spec").0;
    let parts = Part::split(&whole(old), NonZeroUsize::new(2).unwrap());
    let part_of = |name: &str| parts.iter().position(|part| part.topology.link_named(name).is_some());
    let follow = |more: &str| Part::follow(&whole(&format!("{more}{old}")), 2, part_of);
    let names = |part: &Part| part.topology.links.iter().map(|link| link.name.clone()).collect::<Vec<_>>();
    // A new component goes to the part with fewer links, and one that a part has stays there.
    let more = "[host.e]\n[switch.s]\n[[link]]\nbetween = ['e', 's']\n[[link]]\nbetween = ['a', 's']\n\
                [[link]]\nname = 'a-b-2'\nbetween = ['a', 'b']\n";
    let followed = follow(more).unwrap();
    assert_eq!(
        followed.iter().map(names).collect::<Vec<_>>(),
        [vec!["e-s", "a-s", "a-b"], vec!["a-b-2", "c-d"]]
    );
    let followed =
        Part::follow(&whole("[host.c]\n[host.d]\n[[link]]\nbetween = ['c', 'd']"), 2, part_of).unwrap();
    assert_eq!(followed.iter().map(names).collect::<Vec<_>>(), [vec![], vec!["c-d".to_owned()]]);
    let joined = whole(
        "[host.a]\n[host.d]\n[router.b]\n[router.c]\n[[link]]\nbetween = ['a', 'b']\n\
                        [[link]]\nbetween = ['c', 'd']\n[[link]]\nbetween = ['b', 'c']",
    );
    let why = Part::follow(&joined, 2, part_of).unwrap_err().to_string();
    assert!(why.starts_with("links a-b and c-d run on different workers"), "{why}");
    assert!(why.contains("write workers = 1"), "{why}");
}
