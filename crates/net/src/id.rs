//! Identifiers of a running network: edges, pipes, and the locations where a frame can be dropped.
//!
//! Links and nodes keep the identifiers of the topology ([`LinkId`], [`NodeId`]).

use fastpath_spec::{LinkId, NodeId};

/// The index of an edge in [`Network::edges`](crate::Network::edges).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EdgeId(pub u32);

/// An interface of a host, where frames enter and leave the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Edge {
    /// The host.
    pub node: NodeId,
    /// The index in [`Node::interfaces`](fastpath_spec::Node::interfaces).
    pub interface: usize,
}

/// One direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PipeId {
    /// The link.
    pub link: LinkId,
    /// 0 leads from end 0 to end 1, 1 leads back.
    pub index: usize,
}

/// The location of a drop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// One direction of a link.
    Pipe(PipeId),
    /// A router or switch.
    Node(NodeId),
}
