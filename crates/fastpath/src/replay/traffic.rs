//! The traffic of a description in virtual time: what hosts send, and what of it arrives.
//!
//! ```text
//!  [[traffic]] ─▶ Packets, frame ─┐                      ┌─▶ port and address ─▶ Received
//!                                 ├─ by time ─▶ Network ─┤
//!  [[traffic]] ─▶ Packets, frame ─┘                      └─▶ Received … ─▶ FlowReport
//! ```
//!
//! A flow has random numbers of its own, by its name and the seed: it sends the same packets
//! whatever else is sent. Its frames have the addresses that the hosts have in a lab, and take the
//! route of their kernels. Frames that corrupt on the way are discarded by their checksum, as a
//! kernel does.

use crate::error::{Error, Result};
use fastpath_net::{Edge, EdgeId, FlowFrame, HostPath, Routes};
use fastpath_spec::{NodeId, Topology, Traffic};
use fastpath_traffic::{FlowEnds, FlowHeader, FlowReport, Packets, Received, Sent};
use fastpath_units::Time;
use fastpath_wire::checksum::is_intact;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// All traffic of a topology.
#[derive(Clone)]
pub(super) struct TrafficRun {
    flows: Vec<ReplayFlow>,
    /// The next packet of each flow that has one. At one time the first flow is first.
    pending: BinaryHeap<Reverse<(Time, usize)>>,
    /// By edge: the flows that are received there.
    received_at: Vec<Vec<usize>>,
    /// Whether links corrupt frames, so that checksums must be verified.
    verifies: bool,
}

/// What was sent and received of a flow.
pub(super) type FlowCounts = (Sent, Received);

/// A flow from its host to the other.
#[derive(Clone)]
struct ReplayFlow {
    traffic: Traffic,
    stop: Time,
    packets: Packets,
    edge: EdgeId,
    frame: FlowFrame,
    sent: Sent,
    received: Received,
}

impl TrafficRun {
    /// Prepares all traffic of the topology of a network. Nothing is sent from `until` on.
    pub(super) fn new(
        topology: &Topology,
        edges: &[Edge],
        seed: u64,
        until: Option<Time>,
    ) -> Result<TrafficRun> {
        let mut received_at = vec![Vec::new(); edges.len()];
        // Routes of a large topology take a while.
        let routes = (!topology.traffic.is_empty()).then(|| Routes::compute(topology));
        let flows = topology.traffic.iter().zip(routes.iter().cycle());
        let flows =
            flows.map(|(traffic, routes)| ReplayFlow::new((topology, edges), routes, traffic, (seed, until)));
        let flows: Vec<ReplayFlow> = flows.collect::<Result<_>>()?;
        for (index, flow) in flows.iter().enumerate() {
            let own = edges.iter().enumerate().filter(|(_, edge)| edge.node == flow.traffic.to);
            own.for_each(|(edge, _)| received_at[edge].push(index));
        }
        let pending = flows.iter().enumerate();
        let pending =
            pending.filter_map(|(index, flow)| Some(Reverse((flow.packets.next_at()?, index)))).collect();
        let verifies = can_corrupt(topology);
        Ok(TrafficRun { flows, pending, received_at, verifies })
    }

    /// The number of flows.
    pub(super) fn count(&self) -> usize {
        self.flows.len()
    }

    /// The time of the next packet.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.pending.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next packet, which there is: the index of its flow, the edge at which it enters,
    /// and its bytes.
    pub(super) fn take(&mut self) -> (usize, EdgeId, &[u8]) {
        let mut first = self.pending.peek_mut().expect("a packet is pending");
        let Reverse((_, index)) = *first;
        let flow = &mut self.flows[index];
        let (at, size) = flow.packets.next().expect("its packet is pending");
        match flow.packets.next_at() {
            Some(next) => *first = Reverse((next, index)),
            None => _ = PeekMut::pop(first),
        }
        let flow = &mut self.flows[index];
        let header = FlowHeader { sequence: flow.sent.packets, sent: at }.to_bytes();
        flow.sent.packets += 1;
        flow.sent.bytes += u64::from(size);
        (index, flow.edge, flow.frame.with_header(&header))
    }

    /// Counts a frame that reaches an edge, if it is of a flow.
    pub(super) fn deliver(&mut self, at: Time, edge: EdgeId, frame: &[u8]) {
        for &index in &self.received_at[edge.0 as usize] {
            let ReplayFlow { frame: own, received, .. } = &mut self.flows[index];
            let Some(payload) = own.payload_of(frame) else { continue };
            if let Some(header) = FlowHeader::parse(payload).filter(|_| !self.verifies || is_intact(frame)) {
                received.count(at, header, payload.len());
            }
            return;
        }
    }

    /// Returns the traffic that the given nodes send, and that any node receives.
    pub(super) fn sent_by(&self, is_sender: impl Fn(NodeId) -> bool) -> TrafficRun {
        let mut own = self.clone();
        own.pending.retain(|Reverse((_, flow))| is_sender(self.flows[*flow].traffic.from));
        own
    }

    /// Returns the counts of every flow.
    pub(super) fn counts(self) -> Vec<FlowCounts> {
        self.flows.into_iter().map(|flow| (flow.sent, flow.received)).collect()
    }

    /// Takes the counts of every flow from the parts in which it was sent and received.
    pub(super) fn take_counts(&mut self, parts: &[Vec<FlowCounts>], part: impl Fn(NodeId) -> usize) {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.sent = parts[part(flow.traffic.from)][index].0;
            flow.received = parts[part(flow.traffic.to)][index].1.clone();
        }
    }

    /// The results of every flow, in the order of the description.
    pub(super) fn reports(&self, topology: &Topology) -> Vec<FlowReport> {
        let report = |flow: &ReplayFlow| {
            let [from, to] =
                [flow.traffic.from, flow.traffic.to].map(|host| topology.node(host).name.as_str());
            let (start, end) = (flow.traffic.start.min(flow.stop), flow.stop);
            let Sent { packets, bytes, .. } = flow.sent;
            // In virtual time every packet leaves when it is due.
            let sent = Sent { asked: packets, asked_bytes: bytes, ..flow.sent };
            flow.received.report(FlowEnds { name: &flow.traffic.name, from, to, start, end }, sent)
        };
        self.flows.iter().map(report).collect()
    }
}

/// Finds the path of traffic between two hosts.
pub(super) fn path_of_traffic(
    topology: &Topology,
    routes: &Routes,
    name: &str,
    (from, to): (NodeId, NodeId),
) -> Result<HostPath> {
    let wrong = |what: String| Error::Argument(format!("traffic {name}: {what}"));
    for host in [from, to].map(|id| topology.node(id)) {
        if !host.kind.is_edge() {
            let what = format!("{} is a kernel router, which sends and receives only in a lab", host.name);
            return Err(wrong(format!("{what}; name a host")));
        }
    }
    HostPath::find(topology, routes, from, to).ok_or_else(|| {
        let [from, to] = [from, to].map(|host| &topology.node(host).name);
        wrong(format!(
            "{from} has no route to an address of {to}; join them by links, or give them addresses"
        ))
    })
}

/// The edge at an interface of a host.
pub(super) fn edge_of(edges: &[Edge], node: NodeId, interface: usize) -> EdgeId {
    let at = Edge { node, interface };
    let edge = edges.iter().position(|edge| *edge == at).expect("an interface of a host is an edge");
    EdgeId(edge as u32)
}

/// Whether a link may corrupt frames.
pub(super) fn can_corrupt(topology: &Topology) -> bool {
    let mut pipes = topology.links.iter().flat_map(|link| &link.pipes);
    pipes.any(|pipe| pipe.corrupt.is_some())
        || topology.events.iter().any(|event| event.change.corrupt.is_some())
}

impl ReplayFlow {
    fn new(
        (topology, edges): (&Topology, &[Edge]),
        routes: &Routes,
        traffic: &Traffic,
        (seed, until): (u64, Option<Time>),
    ) -> Result<ReplayFlow> {
        let name = &traffic.name;
        let wrong = |what: String| Error::Argument(format!("traffic {name}: {what}"));
        let stop = [traffic.stop, until].into_iter().flatten().min().ok_or_else(|| {
            wrong("it does not stop; write stop = \"10s\" for it, or give --until 10s".to_owned())
        })?;
        let path = path_of_traffic(topology, routes, name, (traffic.from, traffic.to))?;
        let edge = edge_of(edges, traffic.from, path.interface);
        Ok(ReplayFlow {
            traffic: traffic.clone(),
            stop,
            packets: traffic.packets(traffic.start, stop, seed),
            edge,
            frame: FlowFrame::new(&path, traffic),
            sent: Sent::default(),
            received: Received::default(),
        })
    }
}
