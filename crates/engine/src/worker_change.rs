//! A change of the topology for one worker. The control side prepares it and frees what is left of
//! it, so that the worker only moves what stays (decision 036).

use crate::edge_port::EdgePort;
use crate::port::Port;
use fastpath_net::TopologyChange;

/// What a worker needs for a change of its topology. The worker sends it back with what it needs no
/// longer.
pub(crate) struct WorkerChange {
    /// `None` while the worker changes its network.
    pub(crate) network: Option<TopologyChange>,
    /// By edge of the new topology: the port of one that is new or gets another port.
    pub(crate) ports: Vec<Option<Box<dyn Port>>>,
    /// Empty, with room for the edges of the new topology.
    pub(crate) edges: Vec<EdgePort>,
    /// Empty, with room for the edges of the old one.
    pub(crate) former: Vec<Option<EdgePort>>,
}

impl WorkerChange {
    /// Prepares the change of a worker that has `former` edges. It has no ports yet.
    pub(crate) fn new(network: TopologyChange, former: usize) -> WorkerChange {
        let edges = network.edges_from().len();
        WorkerChange {
            network: Some(network),
            ports: std::iter::repeat_with(|| None).take(edges).collect(),
            edges: Vec::with_capacity(edges),
            former: Vec::with_capacity(former),
        }
    }

    /// Returns whether there are new ports.
    pub(crate) fn has_ports(&self) -> bool {
        self.ports.iter().any(Option::is_some)
    }
}
