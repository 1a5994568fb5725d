//! Connections of TCP and QUIC in virtual time. Unlike datagrams they answer what arrives: the
//! network runs from event to event while there are any.
//!
//! ```text
//!  HostTransfer ─ transmit ─▶ edge ─▶ Network ─▶ delivery ─▶ HostTransfer of this host
//! ```

use super::traffic::{can_corrupt, edge_of, path_of_traffic};
use crate::error::{Error, Result};
use fastpath_net::{Edge, EdgeId, HostTransfer, Routes, TransferTerms};
use fastpath_spec::{NodeId, Topology, TransferTraffic};
use fastpath_traffic::{TransferReport, TransferSide, Workload};
use fastpath_units::Time;
use fastpath_wire::checksum::is_intact;
use std::time::Instant;

/// All transfers of a topology.
pub(super) struct TransferRun {
    transfers: Vec<HostTransfer>,
    /// When each does something next; [`Time::MAX`]: when a frame arrives.
    next: Vec<Time>,
    edges: Vec<Edge>,
    /// By edge: the transfers whose frames arrive there.
    at: Vec<Vec<(usize, TransferSide)>>,
    /// Whether links corrupt frames, so that checksums must be verified.
    verifies: bool,
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
        let verifies = can_corrupt(topology);
        let (mut transfers, anchor) = (Vec::new(), Instant::now());
        for (traffic, routes) in topology.transfers.iter().zip(routes.iter().cycle()) {
            let stop = stop_of(traffic, until)?;
            let path = path_of_traffic(topology, routes, &traffic.name, (traffic.from, traffic.to))?;
            let terms = TransferTerms { seed, stop, anchor };
            let one = HostTransfer::new((topology, routes), traffic, &path, terms, &door(edges));
            for (side, node) in [(TransferSide::From, traffic.from), (TransferSide::To, traffic.to)] {
                let own = edges.iter().enumerate().filter(|(_, edge)| edge.node == node);
                own.for_each(|(edge, _)| at[edge].push((transfers.len(), side)));
            }
            transfers.push(one);
        }
        let mut run = TransferRun { next: Vec::new(), transfers, edges: edges.to_vec(), at, verifies };
        run.next = (0..run.transfers.len()).map(|index| run.wish(index)).collect();
        Ok(run)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    fn wish(&self, index: usize) -> Time {
        self.transfers[index].next_at().unwrap_or(Time::MAX)
    }

    /// When one of them does something next, if nothing arrives.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.next.iter().min().copied().filter(|next| *next < Time::MAX)
    }

    /// Does what is due by `now`.
    pub(super) fn advance(&mut self, now: Time) {
        for index in 0..self.transfers.len() {
            if self.next[index] <= now {
                self.transfers[index].advance(now);
                self.next[index] = self.wish(index);
            }
        }
    }

    /// Returns the next frame that is sent now: by which transfer, and where it enters.
    pub(super) fn transmit(&mut self, now: Time) -> Option<(usize, EdgeId, &[u8])> {
        for index in 0..self.transfers.len() {
            if self.next[index] > now {
                continue;
            }
            let found = self.transfers[index].transmit(now).map(|(door, bytes)| (door, bytes.len()));
            if let Some((door, len)) = found {
                return Some((index, EdgeId(door), self.transfers[index].written(len)));
            }
            self.next[index] = self.wish(index);
        }
        None
    }

    /// Gives a frame that reaches an edge to the transfer it is of.
    pub(super) fn deliver(&mut self, topology: &Topology, now: Time, edge: EdgeId, frame: &[u8]) {
        let at = &self.at[edge.0 as usize];
        if at.is_empty() || (self.verifies && !is_intact(frame)) {
            return;
        }
        let (edges, transfers) = (&self.edges, &mut self.transfers);
        let taken = at
            .iter()
            .find(|(index, side)| transfers[*index].deliver(topology, (now, *side), frame, &door(edges)));
        if let Some(&(index, _)) = taken {
            self.next[index] = self.wish(index);
        }
    }

    /// The results, in the order of the description.
    pub(super) fn reports(&self, topology: &Topology, now: Time) -> Vec<TransferReport> {
        self.transfers.iter().map(|one| one.report(topology, now)).collect()
    }
}

/// The edge of an interface, as a number.
fn door(edges: &[Edge]) -> impl Fn(NodeId, usize) -> u32 + '_ {
    |node, interface| edge_of(edges, node, interface).0
}

/// When a transfer stops, if it is not complete before.
fn stop_of(traffic: &TransferTraffic, until: Option<Time>) -> Result<Option<Time>> {
    let stop = [traffic.stop, until].into_iter().flatten().min();
    let (ends, key) = match traffic.model.workload {
        Workload::Bulk(size) => (size.is_some(), "size = \"10MB\""),
        Workload::Requests { count, .. } => (count.is_some(), "requests = 100"),
    };
    if stop.is_none() && !ends {
        return Err(Error::Argument(format!(
            "traffic {}: it does not stop; write stop = \"10s\" or {key} for it, or give --until 10s",
            traffic.name
        )));
    }
    Ok(stop)
}
