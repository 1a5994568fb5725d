//! The contract of the oracles of queue disciplines.

use crate::packet::{DropReason, Fate, Packet};
use crate::qdisc::{Limit, QueueSpec};
use fastpath_units::{Rate, Rng, Time};
use std::collections::BTreeMap;
use std::fmt;

/// The oracle of a discipline.
pub(super) enum DisciplineOracle {
    /// The discipline decides at arrival and serves in order of arrival.
    Admission(Box<dyn AdmissionOracle>),
    /// The discipline holds its packets and also decides at dequeue.
    Queue(Box<dyn QueueOracle>),
}

/// An arriving packet and the queue that it finds.
#[derive(Debug)]
pub(super) struct Arrival<'a> {
    pub(super) now: Time,
    pub(super) packet: Packet<()>,
    /// The lengths of the queued packets in bytes, including the packet on the wire.
    pub(super) queue: &'a [u64],
    /// When the queue became empty last.
    pub(super) idle_since: Time,
    pub(super) rate: Option<Rate>,
}

impl Arrival<'_> {
    /// Returns true if the packet fits `limit`.
    pub(super) fn fits(&self, limit: Limit) -> bool {
        match limit {
            Limit::Packets(max) => self.queue.len() < max as usize,
            Limit::Bytes(max) => self.queue.iter().sum::<u64>() + u64::from(self.packet.len) <= max.0,
        }
    }
}

/// An admission policy as its definition states it.
pub(super) trait AdmissionOracle: fmt::Debug {
    /// Decides about an arrival: queued, with true if it is marked, or dropped.
    fn admit(&mut self, arrival: &Arrival<'_>, rng: &mut Rng) -> Result<bool, DropReason>;

    /// Applies new parameters and keeps the state. False if the policy has to start from its
    /// initial state.
    fn reconfigure(&mut self, _: &QueueSpec) -> bool {
        false
    }
}

/// A discipline as its definition states it.
pub(super) trait QueueOracle {
    /// A packet arrives.
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>);

    /// The wire is free.
    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket>;

    /// Returns when to ask again if packets wait and none may be sent at `now`.
    fn later(&self, _now: Time) -> Option<Time> {
        None
    }
}

/// A packet in an oracle.
#[derive(Clone, Copy, Debug)]
pub(super) struct OraclePacket {
    /// Its number among the arrivals.
    pub(super) id: usize,
    /// Its arrival (tstamp).
    pub(super) arrived: Time,
    pub(super) len: u64,
    pub(super) flow: u32,
    pub(super) traffic_class: u8,
    /// True if this queue set CE.
    pub(super) marked: bool,
}

impl OraclePacket {
    pub(super) fn is_ect(&self) -> bool {
        self.traffic_class & 3 > 0
    }

    pub(super) fn mark(&mut self) {
        self.marked = true;
        self.traffic_class |= 3;
    }
}

/// The state of the link at an arrival or a departure, and where drops are noted.
#[derive(Debug)]
pub(super) struct OracleContext<'a> {
    pub(super) now: Time,
    /// The bytes on the wire, if a packet is being sent.
    pub(super) on_wire: Option<u64>,
    /// Bytes on the wire of each frame in addition to its length.
    pub(super) overhead: u64,
    /// When the wire became free; zero without a rate.
    pub(super) wire_free: Time,
    /// The random generator, drawn in the same order as in the pipe.
    pub(super) rng: &'a mut Rng,
    pub(super) fates: &'a mut BTreeMap<usize, (Time, Fate)>,
}

impl OracleContext<'_> {
    pub(super) fn drop(&mut self, packet: OraclePacket, reason: DropReason) {
        self.fates.insert(packet.id, (self.now, Fate::Dropped(reason)));
    }

    /// Returns true if `packet` fits `limit` with the `queue` of its class, and with the packet on
    /// the wire if that is of its class.
    pub(super) fn fits_class(
        &self,
        limit: Limit,
        packet: OraclePacket,
        queue: &[OraclePacket],
        is_class_on_wire: bool,
    ) -> bool {
        let mut all: Vec<u64> = queue.iter().map(|packet| packet.len).collect();
        if is_class_on_wire {
            all.extend(self.on_wire);
        }
        match limit {
            Limit::Packets(max) => all.len() < max as usize,
            Limit::Bytes(max) => all.iter().sum::<u64>() + packet.len <= max.0,
        }
    }

    /// Returns true if `len` more bytes fit `limit` with `queue` and the packet on the wire.
    pub(super) fn fits(&self, limit: Limit, len: u64, queue: &[OraclePacket]) -> bool {
        let on_wire = self.on_wire.into_iter();
        match limit {
            Limit::Packets(max) => on_wire.count() + queue.len() < max as usize,
            Limit::Bytes(max) => on_wire.sum::<u64>() + bytes(queue) + len <= max.0,
        }
    }
}

pub(super) fn bytes(queue: &[OraclePacket]) -> u64 {
    queue.iter().map(|packet| packet.len).sum()
}
