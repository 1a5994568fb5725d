//! A change of the topology for one worker. The control side prepares it and frees what is left of
//! it, so that the worker only moves what stays (decision 036).

use crate::edge_port::EdgePort;
use crate::port::Port;
use fastpath_net::{EdgeId, Partition, TopologyChange};
use std::sync::Arc;

/// What a worker needs for a change of its topology. The worker sends it back with what it needs no
/// longer.
pub(crate) struct WorkerChange {
    /// `None` while the worker changes its network.
    pub(crate) network: Option<TopologyChange>,
    /// By edge of the new topology: the port of one that is new or gets another port.
    pub(crate) ports: Vec<Option<Box<dyn Port>>>,
    /// Empty, with room for the edges of the new topology.
    pub(crate) edges: Vec<EdgePort>,
    /// The new part of the worker, where the network is cut.
    pub(crate) cut: Option<ChangedCut>,
    /// Empty, with room for the edges of the old one.
    pub(crate) former: Vec<Option<EdgePort>>,
}

/// The parts of the new topology, and the edges of the worker's part.
pub(crate) struct ChangedCut {
    pub(crate) partition: Arc<Partition>,
    pub(crate) edges: Vec<EdgeId>,
}

impl WorkerChange {
    /// Prepares the change of a worker that has `former` edges. It has no ports yet.
    pub(crate) fn new(network: TopologyChange, former: usize, cut: Option<ChangedCut>) -> WorkerChange {
        let edges = cut.as_ref().map_or(network.edges_from().len(), |cut| cut.edges.len());
        WorkerChange {
            network: Some(network),
            ports: std::iter::repeat_with(|| None).take(edges).collect(),
            edges: Vec::with_capacity(edges),
            former: Vec::with_capacity(former),
            cut,
        }
    }

    /// Returns whether there are new ports.
    pub(crate) fn has_ports(&self) -> bool {
        self.ports.iter().any(Option::is_some)
    }
}
