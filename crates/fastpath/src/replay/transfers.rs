//! Connections of TCP in virtual time. Unlike datagrams they answer what arrives: the network runs
//! from event to event while there are any.
//!
//! ```text
//!  TcpTransfer ─ transmit ─▶ edge ─▶ Network ─▶ delivery ─▶ TcpTransfer of this host
//! ```

use super::traffic::{can_corrupt, edge_of, path_of_traffic};
use crate::error::{Error, Result};
use fastpath_net::{Edge, EdgeId, Fib, HostPath, Routes};
use fastpath_spec::{NodeId, Topology, TransferTraffic};
use fastpath_traffic::{FrameWay, TcpTransfer, TransferEnds, TransferReport, TransferSide, Workload};
use fastpath_units::Time;
use fastpath_wire::Headers;
use fastpath_wire::build::Ip;
use fastpath_wire::checksum::{ChecksumStatus, check_transport};
use std::net::IpAddr;

/// All transfers of a topology.
pub(super) struct TransferRun {
    transfers: Vec<TransferOnHosts>,
    edges: Vec<Edge>,
    /// By edge: the transfers whose frames arrive there.
    at: Vec<Vec<(usize, TransferSide)>>,
    /// Whether links corrupt frames, so that checksums must be verified.
    verifies: bool,
}

struct TransferOnHosts {
    traffic: TransferTraffic,
    transfer: TcpTransfer,
    answering: Answering,
}

/// What the second host of a transfer knows of the ways to others.
struct Answering {
    node: NodeId,
    fib: Fib,
    dscp: u8,
}

impl TransferRun {
    /// Prepares the transfers of a topology. Nothing is sent from `until` on.
    pub(super) fn new(
        topology: &Topology,
        edges: &[Edge],
        seed: u64,
        until: Option<Time>,
    ) -> Result<TransferRun> {
        let mut at = vec![Vec::new(); edges.len()];
        let routes = (!topology.transfers.is_empty()).then(|| Routes::compute(topology));
        let mut transfers = Vec::new();
        for (traffic, routes) in topology.transfers.iter().zip(routes.iter().cycle()) {
            let one = TransferOnHosts::new((topology, edges), routes, traffic, (seed, until))?;
            for (side, node) in [(TransferSide::From, traffic.from), (TransferSide::To, traffic.to)] {
                let own = edges.iter().enumerate().filter(|(_, edge)| edge.node == node);
                own.for_each(|(edge, _)| at[edge].push((transfers.len(), side)));
            }
            transfers.push(one);
        }
        let verifies = can_corrupt(topology);
        Ok(TransferRun { transfers, edges: edges.to_vec(), at, verifies })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// When one of them does something next, if nothing arrives.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.transfers.iter().filter_map(|one| one.transfer.next_at()).min()
    }

    /// Does what is due by `now`.
    pub(super) fn advance(&mut self, now: Time) {
        self.transfers.iter_mut().for_each(|one| one.transfer.advance(now));
    }

    /// Returns the next frame that is sent now: by which transfer, and where it enters.
    pub(super) fn transmit(&mut self, now: Time) -> Option<(usize, EdgeId, &[u8])> {
        for index in 0..self.transfers.len() {
            let transfer = &mut self.transfers[index].transfer;
            if transfer.next_at().is_some_and(|at| at <= now)
                && let Some((door, len)) = transfer.transmit(now)
            {
                return Some((index, EdgeId(door), self.transfers[index].transfer.written(len)));
            }
        }
        None
    }

    /// Gives a frame that reaches an edge to the transfer it is of.
    pub(super) fn deliver(&mut self, topology: &Topology, now: Time, edge: EdgeId, frame: &[u8]) {
        let edges = &self.edges;
        for &(index, side) in &self.at[edge.0 as usize] {
            let TransferOnHosts { transfer, answering, .. } = &mut self.transfers[index];
            let is_intact = || check_transport(frame, &Headers::parse(frame)) == ChecksumStatus::Good;
            if self.verifies && !is_intact() {
                return;
            }
            if transfer.deliver(now, side, frame, &mut |own, to| answering.way((topology, edges), (own, to)))
            {
                return;
            }
        }
    }

    /// The results, in the order of the description.
    pub(super) fn reports(&self, topology: &Topology, now: Time) -> Vec<TransferReport> {
        let report = |one: &TransferOnHosts| {
            let TransferTraffic { name, from, to, model, .. } = &one.traffic;
            let [from, to] = [*from, *to].map(|host| topology.node(host).name.as_str());
            one.transfer.report(model, TransferEnds { name, from, to }, now)
        };
        self.transfers.iter().map(report).collect()
    }
}

impl TransferOnHosts {
    fn new(
        (topology, edges): (&Topology, &[Edge]),
        routes: &Routes,
        traffic: &TransferTraffic,
        (seed, until): (u64, Option<Time>),
    ) -> Result<TransferOnHosts> {
        let wrong = |what: String| Error::Argument(format!("traffic {}: {what}", traffic.name));
        let stop = [traffic.stop, until].into_iter().flatten().min();
        let ends = match traffic.model.workload {
            Workload::Bulk(size) => size.is_some(),
            Workload::Requests { count, .. } => count.is_some(),
        };
        if stop.is_none() && !ends {
            let key =
                if traffic.model.workload.kind() == "tcp" { "size = \"10MB\"" } else { "requests = 100" };
            return Err(wrong(format!(
                "it does not stop; write stop = \"10s\" or {key} for it, or give --until 10s"
            )));
        }
        let path = path_of_traffic(topology, routes, &traffic.name, (traffic.from, traffic.to))?;
        let mtus = [traffic.from, traffic.to].map(|id| topology.node(id));
        let mtu = mtus.iter().flat_map(|node| &node.interfaces).map(|interface| interface.mtu).min();
        let fib = Fib::new(routes.of(traffic.to));
        let answering = Answering { node: traffic.to, fib, dscp: traffic.dscp };
        let way = way(edges, traffic.from, &path, traffic.dscp);
        let times = (traffic.start, stop.unwrap_or(Time::MAX));
        let mut rng = traffic.rng(seed);
        let transfer =
            TcpTransfer::new(&traffic.model, (way, traffic.port, mtu.unwrap_or(1500)), times, &mut rng);
        Ok(TransferOnHosts { traffic: traffic.clone(), transfer, answering })
    }
}

impl Answering {
    /// The way from an address of the host to another.
    fn way(&self, (topology, edges): (&Topology, &[Edge]), (own, to): (IpAddr, IpAddr)) -> Option<FrameWay> {
        let mut path = HostPath::to_address(topology, &self.fib, self.node, to).ok()?;
        path.from.1 = own;
        Some(way(edges, self.node, &path, self.dscp))
    }
}

/// Where the frames of a path enter, and their addresses.
fn way(edges: &[Edge], node: NodeId, path: &HostPath, dscp: u8) -> FrameWay {
    let EdgeId(door) = edge_of(edges, node, path.interface);
    FrameWay { ip: Ip { traffic_class: dscp << 2, ..Ip::between(path.from, path.to) }, door }
}
