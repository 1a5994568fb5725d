//! Topologies shared by the tests of the audit.

use fastpath_link::{PipeSpec, QueueSpec, RedSpec};
use fastpath_spec::{NodeId, NodeKind, Topology};
use fastpath_units::Probability;

/// A pipe with a drop-tail queue of 50 packets.
pub(crate) fn pipe(rate: &str, delay: &str, loss: &str) -> PipeSpec {
    PipeSpec {
        rate: Some(rate.parse().unwrap()),
        delay: delay.parse().unwrap(),
        loss: loss.parse::<Probability>().unwrap().into(),
        queue: QueueSpec::DropTail(fastpath_link::Limit::Packets(50)),
        ..PipeSpec::default()
    }
}

/// Hosts `a` and `b`, 10.0.0.1 and 10.0.0.2, with this pipe in both directions.
pub(crate) fn between(pipe: PipeSpec) -> Topology {
    let mut topology = Topology::default();
    let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
    connect(&mut topology, a, b, pipe, 0);
    topology
}

/// Two hosts left, two right of two routers: 100 and 10 Mbit/s at the sides, 1.5 Mbit/s with RED
/// between.
pub(crate) fn dumbbell() -> Topology {
    let mut topology = Topology::default();
    let [n0, n1, n2, n3] = ["n0", "n1", "n2", "n3"].map(|name| topology.add_node(name, NodeKind::host()));
    let [r0, r1] = ["r0", "r1"].map(|name| topology.add_node(name, NodeKind::router()));
    connect(&mut topology, n0, r0, pipe("100Mbit", "10ms", "0%"), 0);
    connect(&mut topology, n1, r0, pipe("10Mbit", "25ms", "0%"), 1);
    connect(&mut topology, n2, r1, pipe("100Mbit", "10ms", "0%"), 2);
    connect(&mut topology, n3, r1, pipe("10Mbit", "10ms", "0%"), 3);
    let middle = PipeSpec { queue: QueueSpec::Red(RedSpec::default()), ..pipe("1.5Mbit", "100ms", "0%") };
    connect(&mut topology, r0, r1, middle, 4);
    topology
}

/// Connects two nodes by a subnet of their own, 10.0.`number`.0/24.
fn connect(topology: &mut Topology, a: NodeId, b: NodeId, pipe: PipeSpec, number: u8) {
    let name = format!("{}-{}", topology.node(a).name, topology.node(b).name);
    let link = topology.connect(name, a, b, [pipe.clone(), pipe]);
    for (end, (node, interface)) in topology.link(link).ends.into_iter().enumerate() {
        let address = format!("10.0.{number}.{}/24", end + 1).parse().unwrap();
        topology.nodes[node.0 as usize].interfaces[interface].addresses.push(address);
    }
}
