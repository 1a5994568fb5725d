//! Connections of TCP and QUIC at ports of the engine. Both hosts of a transfer share it: what one
//! of them makes for the other waits for the other's next turn.

use super::hosts::{TrafficError, locked, path_of};
use fastpath_net::{HostTransfer, Routes, TransferTerms};
use fastpath_spec::{NodeId, Topology};
use fastpath_traffic::{TransferReport, TransferSide};
use fastpath_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// All transfers of a topology.
#[derive(Clone, Debug)]
pub(crate) struct PortTransfers {
    topology: Arc<Topology>,
    transfers: Vec<Arc<Mutex<SharedTransfer>>>,
}

/// What both hosts use.
#[derive(Debug)]
struct SharedTransfer {
    transfer: HostTransfer,
    /// Frames by the door at which they leave.
    waiting: BTreeMap<u32, VecDeque<Vec<u8>>>,
}

/// A transfer at an interface of one of its hosts.
pub(crate) struct PortTransfer {
    topology: Arc<Topology>,
    shared: Arc<Mutex<SharedTransfer>>,
    side: TransferSide,
    door: u32,
}

impl PortTransfers {
    /// Prepares the transfers of a topology with a seed.
    ///
    /// # Errors
    /// A host has no route to the other.
    pub(crate) fn new(topology: &Topology, seed: u64) -> Result<PortTransfers, TrafficError> {
        let mut transfers = Vec::new();
        let routes = (!topology.transfers.is_empty()).then(|| Routes::compute(topology));
        for (traffic, routes) in topology.transfers.iter().zip(routes.iter().cycle()) {
            let path = path_of(topology, routes, (&traffic.name, traffic.from, traffic.to))?;
            let anchor = Instant::now();
            let terms = TransferTerms { seed, stop: traffic.stop, anchor };
            let transfer = HostTransfer::new((topology, routes), traffic, &path, terms, &door(traffic.from));
            transfers.push(Arc::new(Mutex::new(SharedTransfer { transfer, waiting: BTreeMap::new() })));
        }
        Ok(PortTransfers { topology: Arc::new(topology.clone()), transfers })
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// The transfers at an interface of a host.
    pub(crate) fn of(&self, host: NodeId, interface: usize) -> Vec<PortTransfer> {
        let mut found = Vec::new();
        for shared in &self.transfers {
            let ends = locked(shared).transfer.ends();
            for (side, _) in
                [TransferSide::From, TransferSide::To].into_iter().zip(ends).filter(|end| end.1 == host)
            {
                let (topology, shared) = (Arc::clone(&self.topology), Arc::clone(shared));
                found.push(PortTransfer { topology, shared, side, door: door(ends[0])(host, interface) });
            }
        }
        found
    }

    /// Whether nothing more happens: all is complete, or their stops have passed.
    pub(crate) fn are_over(&self, now: Time) -> bool {
        self.transfers.iter().all(|shared| locked(shared).transfer.is_over(now))
    }

    /// The results so far, in the order of the description.
    pub(crate) fn reports(&self, now: Time) -> Vec<TransferReport> {
        self.transfers.iter().map(|shared| locked(shared).transfer.report(&self.topology, now)).collect()
    }
}

impl PortTransfer {
    /// Returns the next frame that leaves here now.
    pub(crate) fn transmit(&self, now: Time) -> Option<Vec<u8>> {
        let mut shared = locked(&self.shared);
        let SharedTransfer { transfer, waiting } = &mut *shared;
        transfer.advance(now);
        while let Some((door, frame)) = transfer.transmit(now) {
            waiting.entry(door).or_default().push_back(frame.to_vec());
        }
        waiting.get_mut(&self.door)?.pop_front()
    }

    /// Takes a frame that has arrived here. `false`: it is not of this transfer.
    pub(crate) fn deliver(&self, now: Time, frame: &[u8]) -> bool {
        let transfer = &mut locked(&self.shared).transfer;
        let [from, _] = transfer.ends();
        transfer.deliver(&self.topology, (now, self.side), frame, &door(from))
    }

    /// When it does something next.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let shared = locked(&self.shared);
        let waits = shared.waiting.get(&self.door).is_some_and(|frames| !frames.is_empty());
        if waits { Some(Time::ZERO) } else { shared.transfer.next_at() }
    }
}

/// Numbers the interfaces of the hosts of a transfer that begins at `from`.
fn door(from: NodeId) -> impl Fn(NodeId, usize) -> u32 {
    move |host, interface| u32::from(host != from) << 31 | interface as u32
}
