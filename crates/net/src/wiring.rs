//! The connections of a running network: the running node or the edge at the end of each pipe.
//!
//! ```text
//!  edge ──first pipe──▶ NodePort ─▶ RunningNode ──pipe──▶ NodePort ─▶ RunningNode ──pipe──▶ edge
//! ```
//!
//! A pipe stores its end as one number, its label ([`PipeEnd::label`]).

use crate::bridge::Bridge;
use crate::id::EdgeId;
use crate::openflow::OpenFlowNode;
use crate::options::Options;
use crate::pool::Frame;
use crate::route::Routes;
use crate::router::Router;
use crate::spanning_tree;
use fastpath_link::Pipes;
use fastpath_spec::{KernelForwarder, NodeId, NodeKind, Topology};
use fastpath_units::Time;

/// The end of a pipe: an edge, the index of a [`NodePort`], or another part of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PipeEnd {
    Edge(EdgeId),
    Node(usize),
    Away,
}

/// An interface of a router or switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodePort {
    /// The index in [`Wiring::nodes`].
    pub(crate) node: usize,
    pub(crate) interface: usize,
}

/// A router or switch with its state.
#[derive(Debug)]
pub(crate) struct RunningNode {
    pub(crate) id: NodeId,
    pub(crate) state: NodeState,
}

/// The state of a node, by its kind.
#[derive(Debug)]
pub(crate) enum NodeState {
    Router(Box<Router>),
    Switch(Bridge),
    OpenFlow(Box<OpenFlowNode>),
}

/// The running nodes of a topology and the pipes between them.
pub(crate) struct Wiring {
    pub(crate) nodes: Vec<RunningNode>,
    pub(crate) node_ports: Vec<NodePort>,
    /// By edge: the pipe that leads away from it.
    pub(crate) first_pipes: Vec<u32>,
}

impl PipeEnd {
    const NODE: u32 = 1 << 31;
    const AWAY: u32 = u32::MAX;

    pub(crate) fn label(self) -> u32 {
        match self {
            PipeEnd::Edge(EdgeId(edge)) => edge,
            PipeEnd::Node(port) => PipeEnd::NODE | port as u32,
            PipeEnd::Away => PipeEnd::AWAY,
        }
    }

    /// Returns whether a label is that of an edge. Such a label is the number of the edge.
    pub(crate) fn is_edge(label: u32) -> bool {
        label & PipeEnd::NODE == 0
    }

    /// Returns the end with this label.
    pub(crate) fn of_label(label: u32) -> PipeEnd {
        match label & PipeEnd::NODE {
            0 => PipeEnd::Edge(EdgeId(label)),
            _ if label == PipeEnd::AWAY => PipeEnd::Away,
            _ => PipeEnd::Node((label & !PipeEnd::NODE) as usize),
        }
    }
}

impl RunningNode {
    /// Returns the number of frames that wait in the node.
    pub(crate) fn held(&self) -> usize {
        match &self.state {
            NodeState::Router(router) => router.held(),
            NodeState::Switch(_) | NodeState::OpenFlow(_) => 0,
        }
    }

    /// Returns when the next waiting frame expires.
    pub(crate) fn expires_at(&self) -> Option<Time> {
        match &self.state {
            NodeState::Router(router) => router.expires_at(),
            NodeState::Switch(_) | NodeState::OpenFlow(_) => None,
        }
    }
}

/// Returns the pipe that leads away from a node by one of its interfaces.
pub(crate) fn outgoing(topology: &Topology, node: NodeId, interface: usize) -> u32 {
    let attached = &topology.node(node).interfaces[interface];
    2 * attached.link.0 + attached.end as u32
}

impl Wiring {
    /// Builds the running nodes and labels each pipe with its end.
    pub(crate) fn of(topology: &Topology, options: &Options, pipes: &mut Pipes<Frame>) -> Wiring {
        let hosts = || topology.hosts().map(|(_, node)| node.interfaces.len());
        let mut wiring = Wiring {
            nodes: Vec::new(),
            node_ports: Vec::new(),
            first_pipes: Vec::with_capacity(hosts().sum()),
        };
        let has = |is: fn(&NodeKind) -> bool| topology.nodes.iter().any(|node| is(&node.kind));
        // Routes and spanning trees are expensive for many hosts; compute them only if needed.
        let is_static = !topology.routing.is_dynamic;
        let routes = (is_static && has(NodeKind::is_engine_router)).then(|| Routes::compute(topology));
        let has_switches = has(|kind| matches!(kind, NodeKind::Switch));
        let mut forwarding = if has_switches { spanning_tree::forwarding(topology) } else { Vec::new() };
        for (i, node) in topology.nodes.iter().enumerate() {
            let id = NodeId(i as u32);
            let state = match &node.kind {
                NodeKind::Host { .. }
                | NodeKind::Uplink { .. }
                | NodeKind::KernelRouter { forwarder: KernelForwarder::Namespace, .. } => {
                    wiring.add_edges(topology, id, pipes);
                    continue;
                }
                NodeKind::Router { .. }
                | NodeKind::Nat { .. }
                | NodeKind::KernelRouter { forwarder: KernelForwarder::Engine, .. } => {
                    NodeState::Router(Box::new(Router::new(topology, id, routes.as_ref(), options.seed)))
                }
                NodeKind::Switch => NodeState::Switch(Bridge::new(std::mem::take(&mut forwarding[i]))),
                NodeKind::OpenFlow { lines, .. } => {
                    NodeState::OpenFlow(Box::new(OpenFlowNode::new(node, lines, &options.executors)))
                }
            };
            wiring.add_node(topology, RunningNode { id, state }, pipes);
        }
        wiring
    }

    fn add_edges(&mut self, topology: &Topology, node: NodeId, pipes: &mut Pipes<Frame>) {
        for interface in 0..topology.node(node).interfaces.len() {
            let away = outgoing(topology, node, interface);
            // The opposite pipe of the link ends where `away` begins.
            pipes.set_label(away ^ 1, PipeEnd::Edge(EdgeId(self.first_pipes.len() as u32)).label());
            self.first_pipes.push(away);
        }
    }

    fn add_node(&mut self, topology: &Topology, node: RunningNode, pipes: &mut Pipes<Frame>) {
        for interface in 0..topology.node(node.id).interfaces.len() {
            let away = outgoing(topology, node.id, interface);
            pipes.set_label(away ^ 1, PipeEnd::Node(self.node_ports.len()).label());
            self.node_ports.push(NodePort { node: self.nodes.len(), interface });
        }
        self.nodes.push(node);
    }
}
