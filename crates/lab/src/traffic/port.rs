//! The traffic of a description between interfaces of the machine: a host of traffic that names no
//! interface is a port of the engine, which makes the frames of its flows and counts what arrives.
//!
//! ```text
//!  Pacer of each flow ─▶ rx_burst ─▶ the network ─▶ tx_burst ─▶ Received of each flow
//!  connections (transfer_port.rs) ◀─▶
//! ```
//!
//! Frames that corrupt on the way are discarded by their checksum, as a kernel does.

use super::flow::LabFlow;
use super::hosts::{TrafficError, locked, paths};
use super::transfer_port::{PortTransfer, PortTransfers};
use fastpath_engine::port::{Burst, Port, PortCounters, PortError};
use fastpath_net::{FlowFrame, Frame, FramePool, HostPath};
use fastpath_spec::{NodeId, NodeKind, Topology};
use fastpath_traffic::{FlowHeader, Pacer};
use fastpath_units::Time;
use fastpath_wire::checksum::is_intact;
use std::collections::VecDeque;
use std::sync::Arc;

/// The flows of a topology without programs, and the ports of their hosts.
pub(crate) struct TrafficPorts {
    pub(crate) flows: Arc<Vec<LabFlow>>,
    pub(crate) transfers: PortTransfers,
    paths: Vec<HostPath>,
    seed: u64,
}

/// The port of one interface of a host.
struct TrafficPort {
    name: String,
    flows: Arc<Vec<LabFlow>>,
    /// The flows that are sent here.
    outgoing: Vec<PortFlow>,
    /// The flows that arrive at the host: their numbers and frames.
    incoming: Vec<(usize, FlowFrame)>,
    /// The connections of the host.
    transfers: Vec<PortTransfer>,
    counters: PortCounters,
}

/// A flow at its sender.
struct PortFlow {
    index: usize,
    frame: FlowFrame,
    packets: Pacer,
    sequence: u64,
}

impl TrafficPorts {
    /// Prepares the traffic of a topology with a seed.
    ///
    /// # Errors
    /// A flow has no route, or a host of it is an interface of the machine.
    pub(crate) fn new(topology: &Topology, seed: u64) -> Result<TrafficPorts, TrafficError> {
        let outside = |id: NodeId| topology.node(id).kind.port_name().is_some();
        for (name, ends) in traffic_ends(topology) {
            if let Some(id) = ends.into_iter().find(|id| outside(*id)) {
                let host = topology.node(id).name.clone();
                return Err(TrafficError::NoHost { traffic: name.to_owned(), host });
            }
        }
        let flow = |traffic: &fastpath_spec::Traffic| {
            let stop = traffic.stop.unwrap_or(Time::MAX);
            LabFlow::new(topology, traffic, traffic.start, traffic.packets(traffic.start, stop, seed))
        };
        let flows = Arc::new(topology.traffic.iter().map(flow).collect());
        let transfers = PortTransfers::new(topology, seed)?;
        Ok(TrafficPorts { flows, transfers, paths: paths(topology)?, seed })
    }

    /// Returns the ports of a host, one for each interface; none for a host without traffic.
    pub(crate) fn of(&self, topology: &Topology, host: NodeId) -> Vec<Box<dyn Port>> {
        let node = topology.node(host);
        let has_traffic = traffic_ends(topology).any(|(_, ends)| ends.contains(&host));
        if !matches!(node.kind, NodeKind::Host { .. }) || !has_traffic {
            return Vec::new();
        }
        (0..node.interfaces.len()).map(|interface| self.port(&node.name, host, interface)).collect()
    }

    fn port(&self, name: &str, host: NodeId, interface: usize) -> Box<dyn Port> {
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for (index, (flow, path)) in self.flows.iter().zip(&self.paths).enumerate() {
            let traffic = &flow.traffic;
            let frame = FlowFrame::new(path, traffic);
            if traffic.to == host {
                incoming.push((index, frame.clone()));
            }
            if traffic.from == host && path.interface == interface {
                let stop = traffic.stop.unwrap_or(Time::MAX);
                let packets = Pacer::new(traffic.packets(traffic.start, stop, self.seed));
                outgoing.push(PortFlow { index, frame, packets, sequence: 0 });
            }
        }
        let (flows, counters) = (Arc::clone(&self.flows), PortCounters::default());
        let transfers = self.transfers.of(host, interface);
        let name = format!("traffic of {name}");
        Box::new(TrafficPort { name, flows, outgoing, incoming, transfers, counters })
    }
}

/// The names of all traffic, with its hosts.
fn traffic_ends(topology: &Topology) -> impl Iterator<Item = (&str, [NodeId; 2])> {
    let datagrams = topology.traffic.iter().map(|traffic| (&*traffic.name, [traffic.from, traffic.to]));
    datagrams.chain(topology.transfers.iter().map(|traffic| (&*traffic.name, [traffic.from, traffic.to])))
}

impl Port for TrafficPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> String {
        "traffic".to_owned()
    }

    fn rx_burst(&mut self, now: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        while !burst.is_full() {
            let due = self.outgoing.iter_mut().filter_map(|flow| Some((flow.packets.next_at()?, flow)));
            let Some((at, flow)) = due.min_by_key(|(at, _)| *at).filter(|(at, _)| *at <= now) else { break };
            let Some(size) = flow.packets.take(now) else { break };
            let header = FlowHeader { sequence: flow.sequence, sent: at }.to_bytes();
            let Some(frame) = pool.insert(flow.frame.with_header(&header)) else {
                self.counters.rx_no_memory += 1;
                continue;
            };
            self.counters.rx_frames += 1;
            self.counters.rx_bytes += frame.len() as u64;
            flow.sequence += 1;
            let mut sent = locked(&self.flows[flow.index].sent);
            sent.packets += 1;
            sent.bytes += u64::from(size);
            sent.last = Some(now);
            sent.burst_max = 1;
            if let Err(frame) = burst.push(frame) {
                pool.free(frame);
            }
        }
        for transfer in &self.transfers {
            while let Some(bytes) = if burst.is_full() { None } else { transfer.transmit(now) } {
                let Some(frame) = pool.insert(&bytes) else {
                    self.counters.rx_no_memory += 1;
                    continue;
                };
                self.counters.rx_frames += 1;
                self.counters.rx_bytes += frame.len() as u64;
                if let Err(frame) = burst.push(frame) {
                    pool.free(frame);
                }
            }
        }
        Ok(())
    }

    fn tx_burst(
        &mut self,
        now: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        for frame in frames.drain(..) {
            let bytes = pool.bytes(&frame);
            let found = self.incoming.iter().find_map(|(index, own)| Some((*index, own.payload_of(bytes)?)));
            if let Some((index, payload)) = found.filter(|_| is_intact(bytes))
                && let Some(header) = FlowHeader::parse(payload)
            {
                locked(&self.flows[index].received).count(now, header, payload.len());
            }
            if found.is_none() && !self.transfers.is_empty() && is_intact(bytes) {
                _ = self.transfers.iter().any(|transfer| transfer.deliver(now, bytes));
            }
            self.counters.tx_frames += 1;
            self.counters.tx_bytes += frame.len() as u64;
            pool.free(frame);
        }
        Ok(())
    }

    /// `Time::MAX` means never.
    fn next_at(&self) -> Option<Time> {
        let flows = self.outgoing.iter().filter_map(|flow| flow.packets.next_at());
        let transfers = self.transfers.iter().filter_map(PortTransfer::next_at);
        Some(flows.chain(transfers).min().unwrap_or(Time::MAX))
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}
