//! The traffic of a description on the hosts of a lab, over sockets of their kernels: datagrams
//! (`datagrams.rs`) and connections of TCP (`transfers.rs`).
//!
//! ```text
//!  Pacer of each flow   ─▶ one thread ─ sendmmsg ─▶ sockets in senders ─▶ the network
//!                                                                            │
//!  Received of each flow ◀─ one thread ◀─ recvmmsg ─ sockets in receivers ◀──┘
//! ```
//!
//! Sockets are opened inside the hosts and used from this process, so both ends read one clock and
//! one-way delays need no synchronisation. A packet carries the time at which it was handed to the
//! kernel; arrivals have the kernel's time. Packets that were due while the sending thread did not
//! run leave paced; nothing is sent from the stop of a flow on. Reports count what was due on their
//! own, so that a packet that was not sent is missed.
//!
//! Between interfaces of the machine there are no hosts: there ports of the engine send and receive
//! (`port.rs`), and the results are the same.

mod connection;
mod datagrams;
mod flow;
mod hosts;
mod port;
mod shortfall;
mod transfer_port;
mod transfers;

pub use datagrams::arrival;
pub use hosts::TrafficError;
pub(crate) use port::TrafficPorts;

use crate::host::Host;
use datagrams::SocketFlows;
use fastpath_engine::{Clock, Notice};
use fastpath_spec::Topology;
use fastpath_traffic::{FlowReport, TransferReport};
use fastpath_units::Time;
use flow::LabFlow;
use shortfall::ShortfallThread;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use transfer_port::PortTransfers;
use transfers::SocketTransfers;

/// How long the last datagrams may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two looks at what has arrived.
const ATTENTION: Duration = Duration::from_millis(50);

/// The traffic of a lab. It ends on drop.
#[derive(Debug)]
pub(crate) struct LabTraffic {
    flows: LiveFlows,
    transfers: LiveTransfers,
    /// Says what is not sent. It ends before the traffic does.
    shortfalls: Option<ShortfallThread>,
    clock: Clock,
    /// When the traffic was ended: nothing is due from then on.
    ended: OnceLock<Time>,
}

/// The datagrams of a lab, or between interfaces.
#[derive(Debug)]
enum LiveFlows {
    Sockets(SocketFlows),
    Ports(Arc<Vec<LabFlow>>),
}

impl LiveFlows {
    fn all(&self) -> &[LabFlow] {
        match self {
            LiveFlows::Sockets(sockets) => &sockets.flows,
            LiveFlows::Ports(flows) => flows,
        }
    }

    fn are_sent(&self) -> bool {
        match self {
            LiveFlows::Sockets(sockets) => sockets.is_sent(),
            LiveFlows::Ports(_) => true,
        }
    }
}

/// The results of datagrams and of connections, each in the order of the description.
pub(crate) type TrafficResults = (Vec<FlowReport>, Vec<TransferReport>);

/// The connections of a lab, or between interfaces.
#[derive(Debug)]
enum LiveTransfers {
    Sockets(SocketTransfers),
    Ports(PortTransfers),
}

impl LiveTransfers {
    fn are_over(&self, now: Time) -> bool {
        match self {
            LiveTransfers::Sockets(transfers) => transfers.are_over(),
            LiveTransfers::Ports(transfers) => transfers.are_over(now),
        }
    }

    fn reports(&self, now: Time) -> Vec<TransferReport> {
        match self {
            LiveTransfers::Sockets(transfers) => transfers.reports(now),
            LiveTransfers::Ports(transfers) => transfers.reports(now),
        }
    }
}

impl LabTraffic {
    /// Finds what keeps the traffic of a topology from being sent, before anything is made.
    pub(crate) fn check(topology: &Topology) -> Result<(), TrafficError> {
        hosts::paths(topology)?;
        transfers::check(topology)
    }

    /// Opens the sockets of all traffic and starts it. `None` without traffic.
    pub(crate) fn start(
        topology: &Topology,
        hosts: &[Arc<Host>],
        (seed, clock): (u64, Clock),
        notice: &Notice,
    ) -> Result<Option<LabTraffic>, TrafficError> {
        if topology.traffic.is_empty() && topology.transfers.is_empty() {
            return Ok(None);
        }
        let transfers = SocketTransfers::start(topology, hosts, (seed, clock), notice)?;
        let flows = SocketFlows::start(topology, hosts, (seed, clock), notice)?;
        let shortfalls = ShortfallThread::start(&flows.flows, clock, notice.clone());
        let (flows, transfers) = (LiveFlows::Sockets(flows), LiveTransfers::Sockets(transfers));
        Ok(Some(LabTraffic { flows, transfers, shortfalls, clock, ended: OnceLock::new() }))
    }

    /// The traffic that ports of a running engine send and receive; `None` without traffic.
    pub(crate) fn of_ports(ports: TrafficPorts, clock: Clock, notice: Notice) -> Option<LabTraffic> {
        let TrafficPorts { flows, transfers, .. } = ports;
        if flows.is_empty() && transfers.is_empty() {
            return None;
        }
        let shortfalls = ShortfallThread::start(&flows, clock, notice);
        let (flows, transfers) = (LiveFlows::Ports(flows), LiveTransfers::Ports(transfers));
        Some(LabTraffic { flows, transfers, shortfalls, clock, ended: OnceLock::new() })
    }

    /// Waits until all is sent, and received or lost, or `stop` is set.
    pub(crate) fn wait(&self, stop: &AtomicBool) {
        let mut quiet = Duration::ZERO;
        let mut before = None;
        while !stop.load(Ordering::Relaxed) && quiet < PATIENCE {
            thread::sleep(ATTENTION);
            if !self.flows.are_sent() || !self.transfers.are_over(self.clock.now()) {
                continue;
            }
            let (reports, _) = self.results();
            if reports.iter().all(|flow| flow.lost == 0) {
                return;
            }
            let received: u64 = reports.iter().map(|flow| flow.received).sum();
            quiet =
                if before.replace(received) == Some(received) { quiet + ATTENTION } else { Duration::ZERO };
        }
    }

    /// Ends the traffic and returns the results.
    pub(crate) fn end(mut self) -> TrafficResults {
        self.close();
        self.results()
    }

    /// Returns the results so far.
    pub(crate) fn results(&self) -> TrafficResults {
        let now = self.ended.get().copied().unwrap_or_else(|| self.clock.now());
        (self.flows.all().iter().map(|flow| flow.report(now)).collect(), self.transfers.reports(now))
    }

    fn close(&mut self) {
        // It asks what is due now, which must not be later than the end.
        drop(self.shortfalls.take());
        self.ended.get_or_init(|| self.clock.now());
        if let LiveTransfers::Sockets(transfers) = &mut self.transfers {
            transfers.close();
        }
        if let LiveFlows::Sockets(flows) = &mut self.flows {
            flows.close();
        }
    }
}

impl Drop for LabTraffic {
    fn drop(&mut self) {
        self.close();
    }
}
