//! A checked network as passive data: nodes, links, interfaces, scheduled changes. It is the result
//! of [`resolve`](crate::resolve()); `fastpath_net::Network` runs it.
//!
//! Indices ([`NodeId`], [`LinkId`]) point into the vectors of one [`Topology`]. Code that builds
//! one by hand keeps `links[l].ends` and `nodes[n].interfaces` consistent; [`Topology::connect`]
//! does.

use crate::look::Look;
use crate::mistake::several;
use crate::node_kind::{KernelForwarder, NodeKind};
use crate::trace::Timeline;
use crate::trace_source::{TraceEnd, TraceSource};
use fastpath_link::{Change, PipeSpec};
use fastpath_traffic::{Packets, SourceModel, TransferModel};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::MacAddr;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The index of a node in [`Topology::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// The index of a link in [`Topology::links`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);

/// The MTU of an interface whose spec gives none: bytes above Ethernet.
pub const DEFAULT_MTU: u32 = 1500;

/// A whole network, checked and complete: every address assigned, every name unique.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Topology {
    /// The seed of the random generators, unless the command line gives one.
    pub seed: Option<u64>,
    /// The only family of IP addresses; `None`: both are assigned.
    pub family: Option<Family>,
    /// How the routers of the engine choose routes.
    pub routing: Routing,
    /// Nodes in the order of the spec.
    pub nodes: Vec<Node>,
    /// Links in the order of the spec.
    pub links: Vec<Link>,
    /// Scheduled changes, in the order of time.
    pub events: Vec<Event>,
    /// Commands that a lab starts on hosts, in the order of time.
    pub commands: Vec<HostCommand>,
    /// What hosts send to each other without programs, in the order of the spec.
    pub traffic: Vec<Traffic>,
    /// What hosts send each other over connections of TCP or QUIC.
    pub transfers: Vec<TransferTraffic>,
    /// The traces that pipes follow, in the order of links, then of pipes.
    pub tracks: Vec<Track>,
    /// Links whose traces start together.
    pub groups: Vec<Group>,
    /// Starts and stops of the traces of groups, in the order of time.
    pub trace_events: Vec<TraceEvent>,
    /// What happens to the mappings of NATs, in the order of time.
    pub nat_events: Vec<NatEvent>,
}

/// How the routers of the engine choose routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Routing {
    /// Routes avoid links with a direction that is down, from the instant of the change.
    pub is_dynamic: bool,
    /// Flows are spread over all shortest paths.
    pub is_multipath: bool,
}

impl Routing {
    /// The words of `routes` in a spec: static, dynamic.
    pub(crate) const WORDS: [&str; 2] = ["static", "dynamic"];
}

/// A family of IP addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The words of a spec, in the order of [`Family::ALL`].
    pub(crate) const WORDS: [&str; 2] = ["v4", "v6"];
    /// Both families.
    pub(crate) const ALL: [Family; 2] = [Family::V4, Family::V6];

    /// Returns the family of an address.
    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Returns its word in a spec.
    pub fn word(self) -> &'static str {
        Family::WORDS[self as usize]
    }
}

/// A host, router or switch.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Unique in the topology.
    pub name: String,
    /// What it does with frames.
    pub kind: NodeKind,
    /// One for each attached link, in the order of the links.
    pub interfaces: Vec<Interface>,
    /// How pictures show it.
    pub look: Look,
}

impl Topology {
    /// Returns the datapath id of an OpenFlow node: the given one, or its number among the OpenFlow
    /// nodes, from 1.
    pub fn datapath_id(&self, id: NodeId) -> Option<u64> {
        let NodeKind::OpenFlow { controllers, .. } = &self.node(id).kind else { return None };
        let before = &self.nodes[..id.0 as usize];
        let number =
            || 1 + before.iter().filter(|node| matches!(node.kind, NodeKind::OpenFlow { .. })).count();
        Some(controllers.dpid.unwrap_or_else(|| number() as u64))
    }
}

/// One end of a link, at a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Interface {
    /// `eth0`, `eth1`, … in the order of the links, unless the link gives another name.
    pub name: String,
    /// The link it belongs to.
    pub link: LinkId,
    /// The end of the link: 0 (the first of `between`) or 1.
    pub end: usize,
    /// The hardware address. `None` only for a host that is attached to a real port.
    pub mac: Option<MacAddr>,
    /// The addresses with their prefix lengths. Empty on switches.
    pub addresses: Vec<IpNet>,
    /// The MTU: the largest packet above Ethernet, bytes.
    pub mtu: u32,
}

/// Two pipes between two interfaces.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Unique in the topology. Without a name in the spec it is `a-b`.
    pub name: String,
    /// The node and the index of its interface, at end 0 and end 1.
    pub ends: [(NodeId, usize); 2],
    /// The pipe from end 0 to end 1, and the one from end 1 to end 0.
    pub pipes: [PipeSpec; 2],
    /// The number of its random stream. It is the index of the link in the whole topology, and
    /// stays the same in a part of it.
    pub stream: u32,
}

/// A change of a link's parameters at a time of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When, from the start of the run.
    pub at: Time,
    /// Which link.
    pub link: LinkId,
    /// Which of its pipes.
    pub direction: Direction,
    /// What changes.
    pub change: Change,
}

/// What happens to the traces of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceAction {
    /// They start, from their beginning.
    Start,
    /// They stop. The values of their last steps stay, and links have their own rates again in
    /// place of opportunities.
    Stop,
}

/// The start or the end of the traces of a group at a time of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// When, from the start of the run.
    pub at: Time,
    /// The index of the group.
    pub group: usize,
    /// What happens.
    pub action: TraceAction,
}

/// How the mappings of a NAT change at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rebinding {
    /// Each mapping gets another outside port.
    Port,
    /// Each mapping gets another outside address of the pool, and another port.
    Address,
}

/// An instant, or a first one, at which the mappings of a NAT change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatEvent {
    /// When, from the start of the run.
    pub at: Time,
    /// The time from one change to the next, above 0; `None`: once.
    pub every: Option<Duration>,
    /// The NAT.
    pub nat: NodeId,
    /// What changes.
    pub rebinding: Rebinding,
}

/// A command that starts on a host at a time of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostCommand {
    /// When, from the start of the run.
    pub at: Time,
    /// The host.
    pub host: NodeId,
    /// The command (sh(1)).
    pub command: String,
}

/// What one host sends to another: UDP datagrams.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic {
    /// Its place among the traffic of the description.
    pub place: usize,
    /// Unique among traffic.
    pub name: String,
    /// The host that sends.
    pub from: NodeId,
    /// The host that receives.
    pub to: NodeId,
    /// When packets are sent, and their size.
    pub model: SourceModel,
    /// When it starts.
    pub start: Time,
    /// When it stops; `None`: with the run.
    pub stop: Option<Time>,
    /// The UDP port at the receiver, and at the sender.
    pub port: u16,
    /// The differentiated services code point (RFC 2474).
    pub dscp: u8,
}

impl Traffic {
    /// Returns the packets sent from `start` on, before `stop`, in a run with `seed`. They do not
    /// depend on other traffic: their random numbers are those of the name.
    pub fn packets(&self, start: Time, stop: Time, seed: u64) -> Packets {
        self.model.packets(start, stop, stream(&self.name, seed))
    }
}

/// What two hosts send each other over connections of TCP.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferTraffic {
    /// Its place among the traffic of the description.
    pub place: usize,
    /// Unique among traffic.
    pub name: String,
    /// The host that opens the connections.
    pub from: NodeId,
    /// The host that they lead to.
    pub to: NodeId,
    /// What its ends do.
    pub model: TransferModel,
    /// When it starts.
    pub start: Time,
    /// When it stops; `None`: with the run, or when it is complete.
    pub stop: Option<Time>,
    /// The TCP or UDP port at the second host.
    pub port: u16,
    /// The differentiated services code point (RFC 2474) of both ends.
    pub dscp: u8,
}

impl TransferTraffic {
    /// Returns the random numbers of a run with `seed`. They do not depend on other traffic.
    pub fn rng(&self, seed: u64) -> Rng {
        stream(&self.name, seed)
    }
}

/// The random numbers of traffic: those of its name.
fn stream(name: &str, seed: u64) -> Rng {
    // FNV-1a. The streams of links have small numbers.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    Rng::stream(seed, name.bytes().fold(0xcbf2_9ce4_8422_2325, step) | 1 << 63)
}

/// A trace that a pipe follows.
#[derive(Clone, PartialEq, Debug)]
pub struct Track {
    /// Which link.
    pub link: LinkId,
    /// Which of its pipes.
    pub pipe: usize,
    /// Where it comes from.
    pub source: TraceSource,
    /// The values.
    pub timeline: Timeline,
    /// What comes after its end.
    pub end: TraceEnd,
    /// The position at which it begins.
    pub offset: Duration,
    /// The group it starts with, as an index into [`Topology::groups`]. Without a group it starts
    /// with the run.
    pub group: Option<usize>,
}

/// Links that are changed together and whose traces start together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Unique among groups.
    pub name: String,
    /// When the traces start.
    pub start: Start,
    /// In the order of the spec.
    pub links: Vec<LinkId>,
}

/// When the traces of a group start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At a time of the run.
    At(Time),
    /// When the first packet enters any of the links.
    FirstPacket,
    /// On a command of the control interface.
    Command,
}

/// One pipe of a link, or both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From end 0 to end 1 (`a_to_b` when the link is `between = ["a", "b"]`).
    Forward,
    /// From end 1 to end 0.
    Backward,
    /// Both at once.
    Both,
}

impl Direction {
    /// Returns the indices into [`Link::pipes`].
    pub fn pipes(self) -> std::ops::Range<usize> {
        match self {
            Direction::Forward => 0..1,
            Direction::Backward => 1..2,
            Direction::Both => 0..2,
        }
    }
}

impl Topology {
    /// Returns the node with this name.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|i| NodeId(i as u32))
    }

    /// Returns the link with this name.
    pub fn link_named(&self, name: &str) -> Option<LinkId> {
        self.links.iter().position(|link| link.name == name).map(|i| LinkId(i as u32))
    }

    /// Returns the index of the group with this name.
    pub fn group_named(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.name == name)
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// Returns a link.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0 as usize]
    }

    /// Returns the node and interface at the other end of an interface's link.
    pub fn peer(&self, interface: &Interface) -> (NodeId, &Interface) {
        let (node, index) = self.link(interface.link).ends[1 - interface.end];
        (node, &self.node(node).interfaces[index])
    }

    /// Whether it has traffic of its own: datagrams or connections.
    pub fn has_traffic(&self) -> bool {
        !self.traffic.is_empty() || !self.transfers.is_empty()
    }

    /// Returns the nodes at which frames enter and leave the network, in the order of the spec:
    /// hosts, and the namespaces of a lab that forward.
    pub fn hosts(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.kind.is_edge())
            .map(|(i, node)| (NodeId(i as u32), node))
    }

    /// Returns the names of the nodes on which commands start, in the order of the spec.
    pub fn hosts_with_commands(&self) -> Vec<&str> {
        let timed: BTreeSet<NodeId> = self.commands.iter().map(|command| command.host).collect();
        let nodes = self.nodes.iter().zip((0..).map(NodeId));
        let commanded = nodes.filter(|(node, id)| !node.kind.exec().is_empty() || timed.contains(id));
        commanded.map(|(node, _)| node.name.as_str()).collect()
    }

    /// Returns what to say where kernel routers are not namespaces: the engine emulates them.
    /// `None` if there are none.
    pub fn emulation_notice(&self) -> Option<String> {
        let emulated = |node: &&Node| {
            matches!(node.kind, NodeKind::KernelRouter { forwarder: KernelForwarder::Engine, .. })
        };
        let names: Vec<&str> = self.nodes.iter().filter(emulated).map(|node| node.name.as_str()).collect();
        let names = (!names.is_empty()).then(|| several(names.into_iter()))?;
        Some(format!(
            "the engine forwards for {names}: only a lab runs routers of kind = \"kernel\" in the kernel"
        ))
    }

    /// Returns the topology as a lab runs it: the kernel forwards in kernel routers, which are
    /// edges of the network as hosts are.
    pub fn with_namespaces(mut self) -> Topology {
        for node in &mut self.nodes {
            if let NodeKind::KernelRouter { forwarder, .. } = &mut node.kind {
                *forwarder = KernelForwarder::Namespace;
            }
        }
        self
    }

    /// Adds a node without interfaces.
    pub fn add_node(&mut self, name: impl Into<String>, kind: NodeKind) -> NodeId {
        self.nodes.push(Node { name: name.into(), kind, interfaces: Vec::new(), look: Look::default() });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a link between two nodes, with an interface at each. MAC addresses are numbered in
    /// order; the caller assigns IP addresses.
    pub fn connect(&mut self, name: impl Into<String>, a: NodeId, b: NodeId, pipes: [PipeSpec; 2]) -> LinkId {
        let link = LinkId(self.links.len() as u32);
        let ends = [(a, 0), (b, 1)].map(|(node, end)| {
            let interfaces = &mut self.nodes[node.0 as usize].interfaces;
            interfaces.push(Interface {
                name: format!("eth{}", interfaces.len()),
                link,
                end,
                mac: Some(MacAddr::from_index(2 * link.0 + end as u32)),
                addresses: Vec::new(),
                mtu: DEFAULT_MTU,
            });
            (node, interfaces.len() - 1)
        });
        self.links.push(Link { name: name.into(), ends, pipes, stream: link.0 });
        link
    }
}
