//! The outcomes of packets: what a switch sends, gives to its controllers, or drops.

use crate::continuation::Continuation;
use crate::cookies::FlowsOfCookies;
use crate::flow::{FlowMod, Rank};
use crate::key::PipelineFields;
pub use crate::reason::PacketInReason;
use std::collections::BTreeSet;

/// The most outcomes of one packet: bounds the product of output lists, floods and groups of
/// groups. The outcome after these is [`DropReason::TooManyCopies`], and it is the last.
pub const OUTCOMES_MAX: usize = 4096;

/// The fate of a packet, or of a copy of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketOutcome {
    /// It leaves the switch.
    Output {
        /// The port.
        port: u32,
        /// The queue of the port; 0 is the default queue.
        queue: u32,
        /// The frame as it leaves.
        frame: Vec<u8>,
    },
    /// It is sent to the controllers.
    Controller(Box<PacketIn>),
    /// It changes flows, before the next packet ([`Switch::learn`](crate::Switch::learn)).
    Learn(Box<Learned>),
    /// It ends here.
    Drop(DropReason),
}

/// How a packet changes the flows of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Learned {
    /// It adds or renews a flow.
    Flow {
        /// The flow.
        flow: FlowMod,
        /// The most flows of its cookie in its table; 0 for no limit.
        limit: u32,
    },
    /// It lowers the timeouts of a flow.
    Timeouts {
        /// The table.
        table_id: u8,
        /// Priority and match of the flow.
        rank: Rank,
        /// Its serial number.
        serial: u64,
        /// The idle timeout in seconds; 0 leaves it.
        idle: u16,
        /// The hard timeout in seconds; 0 leaves it.
        hard: u16,
    },
}

/// What packets that learn have changed for executors. A flow that is renewed and timeouts that are
/// lowered do not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LearnedChange {
    /// Nothing: a full table does not change either.
    None,
    /// Flows of the tables that were learned into.
    Flows,
    /// Flows of other tables too: some went with the flow that had taught them.
    OtherTables,
}

impl Learned {
    /// Returns the table whose flows it changes.
    pub fn table_id(&self) -> u8 {
        match self {
            Learned::Flow { flow, .. } => flow.table_id,
            Learned::Timeouts { table_id, .. } => *table_id,
        }
    }
}

/// Returns whether a table has room for another flow of its cookie, beside those that the same
/// packet has added before. A flow that is there is renewed in any case.
pub fn has_room_for((flow, limit): (&FlowMod, u32), table: &impl FlowsOfCookies, before: &[Learned]) -> bool {
    if limit == 0 {
        return true;
    }
    let (limit, count) = (limit as usize, table.count(flow.cookie));
    if count + before.len() < limit {
        return true;
    }
    let rank = Rank::new(flow.priority, flow.matching.clone());
    let of_packet = before.iter().filter_map(|one| match one {
        Learned::Flow { flow: other, .. }
            if (other.table_id, other.cookie) == (flow.table_id, flow.cookie) =>
        {
            Some(Rank::new(other.priority, other.matching.clone()))
        }
        _ => None,
    });
    let added: BTreeSet<Rank> = of_packet.filter(|rank| !table.has(rank, flow.cookie)).collect();
    count + added.len() < limit || added.contains(&rank) || table.has(&rank, flow.cookie)
}

/// A packet-in: a packet for the controllers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketIn {
    /// Why it is sent.
    pub reason: PacketInReason,
    /// The table whose flow sent it.
    pub table_id: u8,
    /// The cookie of that flow; all ones if no flow sent it.
    pub cookie: u64,
    /// The most bytes of the frame to send; [`port::NO_BUFFER`](crate::port::NO_BUFFER) for all.
    pub max_len: u16,
    /// Port of entry, metadata and tunnel id.
    pub context: PipelineFields,
    /// The number of the controllers that it is for.
    pub controller: u16,
    /// Bytes for the controller.
    pub userdata: Vec<u8>,
    /// What is left to do for a packet that is paused.
    pub continuation: Option<Box<Continuation>>,
    /// The frame as it is now.
    pub frame: Vec<u8>,
}

/// Why a packet, or a copy of it, is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// The frame is shorter than an Ethernet header.
    Runt,
    /// The port of entry does not exist or receives no frames.
    Ingress,
    /// No flow matched, and there is no table-miss flow.
    TableMiss,
    /// The pipeline ended without an output: no action was an output and the action set had none.
    NoOutput,
    /// A drop band of a meter.
    Meter,
    /// Its TTL was invalid (0 or 1).
    InvalidTtl,
    /// The output port does not exist, is down, or does not forward.
    Egress,
    /// The output port is the port of entry, without the reserved port IN_PORT (§7.2.5); or there
    /// is no other port to flood to.
    NoOtherPort,
    /// The group has no bucket, or no live one.
    NoBucket,
    /// Outputs and groups made more than [`OUTCOMES_MAX`] outcomes.
    TooManyCopies,
    /// A table miss at a port that is configured without packet-ins (OFPPC_NO_PACKET_IN).
    NoPacketIn,
    /// More resubmits, or deeper ones, than a packet may have.
    TooManyResubmits,
    /// Its connection could not be committed: there are as many as there may be.
    ConnectionsFull,
    /// Its connection could not be committed: no address and port is free (`nat`).
    NoFreeTuple,
    /// Its port of entry does not carry its VLAN, or it ends in its VLAN tag (OFPP_NORMAL).
    Vlan,
    /// The port of entry is the output of a mirror, or the port behind which its destination is.
    MirrorPort,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [DropReason; 16] = [
        DropReason::Runt,
        DropReason::Ingress,
        DropReason::TableMiss,
        DropReason::NoOutput,
        DropReason::Meter,
        DropReason::InvalidTtl,
        DropReason::Egress,
        DropReason::NoOtherPort,
        DropReason::NoBucket,
        DropReason::TooManyCopies,
        DropReason::NoPacketIn,
        DropReason::TooManyResubmits,
        DropReason::ConnectionsFull,
        DropReason::NoFreeTuple,
        DropReason::Vlan,
        DropReason::MirrorPort,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Runt => "runt",
            DropReason::Ingress => "ingress",
            DropReason::TableMiss => "table-miss",
            DropReason::NoOutput => "no-output",
            DropReason::Meter => "meter",
            DropReason::InvalidTtl => "invalid-ttl",
            DropReason::Egress => "egress",
            DropReason::NoOtherPort => "no-other-port",
            DropReason::NoBucket => "no-bucket",
            DropReason::TooManyCopies => "too-many-copies",
            DropReason::NoPacketIn => "no-packet-in",
            DropReason::TooManyResubmits => "too-many-resubmits",
            DropReason::ConnectionsFull => "connections-full",
            DropReason::NoFreeTuple => "no-free-tuple",
            DropReason::Vlan => "vlan",
            DropReason::MirrorPort => "mirror-port",
        }
    }
}
