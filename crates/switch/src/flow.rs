//! Flow entries, and the requests that add, change and delete them.
//!
//! Read first: OpenFlow 1.3.5 §6.4, §7.3.4.2.

use crate::action::{Action, Extension};
use crate::extension::conjunction::Clause;
use crate::matching::Match;
use crate::port;
use crate::version::Version;
use fastpath_units::{Duration, Time};
use std::cmp::Reverse;
use std::ops::AddAssign;
use std::sync::Arc;

/// Bits of [`FlowMod::flags`] (OFPFF_).
pub mod flags {
    /// Send a flow-removed message when the flow is removed.
    pub const SEND_FLOW_REM: u16 = 1 << 0;
    /// Refuse a flow that overlaps another of the same priority.
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    /// Reset the counters.
    pub const RESET_COUNTS: u16 = 1 << 2;
    /// Do not count packets.
    pub const NO_PACKET_COUNTS: u16 = 1 << 3;
    /// Do not count bytes.
    pub const NO_BYTE_COUNTS: u16 = 1 << 4;
    /// All flags.
    pub const ALL: u16 = 0x1f;
    /// The flow is not of a controller ([`Switch::add_hidden`](crate::Switch::add_hidden)). No
    /// request has this flag.
    pub(crate) const HIDDEN: u16 = 1 << 15;
}

/// All tables, in deletions and requests (OFPTT_ALL).
pub const ALL_TABLES: u8 = 0xff;
/// Any group, in deletions and requests (OFPG_ANY).
pub const ANY_GROUP: u32 = 0xffff_ffff;

/// Packets and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// Bytes of whole frames, without FCS.
    pub bytes: u64,
}

/// The identity of a flow in its table: priority and match. Ranks are ordered as lookup goes:
/// higher priorities first. §5.3 leaves flows of equal priority that overlap undefined; here the
/// smaller match wins, whenever the flows were added.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank {
    priority: Reverse<u16>,
    matching: Match,
}

/// The instructions for a packet that matches: at most one of each type (§5.9).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Instructions {
    /// Apply this meter first.
    pub meter: Option<u32>,
    /// Execute these immediately, in this order.
    pub apply: Vec<Action>,
    /// Whether to clear the action set.
    pub clear: ClearActions,
    /// Write these to the action set.
    pub write: Vec<Action>,
    /// Change the bits of `mask` in the metadata to those of `value`.
    pub metadata: Option<WriteMetadata>,
    /// Continue in this later table.
    pub goto: Option<u8>,
}

/// Whether to clear the action set before actions are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ClearActions {
    /// Keep it.
    #[default]
    Keep,
    /// Clear it.
    Clear,
}

/// A write-metadata instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WriteMetadata {
    /// The new bits.
    pub value: u64,
    /// The bits that change.
    pub mask: u64,
}

/// A flow entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// A serial number: distinguishes this flow from an earlier or later one of the same rank.
    pub serial: u64,
    /// The cookie, which the controller chooses.
    pub cookie: u64,
    /// Bits of [`flags`].
    pub flags: u16,
    /// Seconds without a packet until it is removed; 0 for never.
    pub idle_timeout: u16,
    /// Seconds until it is removed; 0 for never.
    pub hard_timeout: u16,
    /// A full table that evicts removes flows of the lowest importance first.
    pub importance: u16,
    /// Its instructions.
    pub instructions: Arc<Instructions>,
    /// The packets that it matched.
    pub counters: Counters,
    /// The time at which it was added.
    pub added: Time,
    /// The time at which it was added, or last learned again: its hard timeout starts there.
    pub renewed: Time,
    /// The time at which it last matched, or was added or learned.
    pub last_used: Time,
}

/// A request to change flows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowMod {
    /// The command.
    pub command: FlowCommand,
    /// The table; [`ALL_TABLES`] in deletions.
    pub table_id: u8,
    /// The cookie of added flows. With `cookie_mask`, it restricts modifications and deletions.
    pub cookie: u64,
    /// The bits of the cookie that restrict modifications and deletions; 0 for no restriction.
    pub cookie_mask: u64,
    /// What a modification restricted to cookies sets the cookies of its flows to; `None` if they
    /// stay. Only messages of Nicira for OpenFlow 1.0 can say it.
    pub new_cookie: Option<u64>,
    /// Seconds; see [`Flow`].
    pub idle_timeout: u16,
    /// Seconds; see [`Flow`].
    pub hard_timeout: u16,
    /// See [`Flow`]. Messages before OpenFlow 1.4 do not say it: 0.
    pub importance: u16,
    /// The priority of added flows, and of the flow that a strict command applies to.
    pub priority: u16,
    /// Deletions: only flows that output to this port; [`port::ANY`] for all.
    pub out_port: u32,
    /// Deletions: only flows that use this group; [`ANY_GROUP`] for all.
    pub out_group: u32,
    /// Bits of [`flags`].
    pub flags: u16,
    /// The packets that an added flow matches, or the flows that a command applies to.
    pub matching: Match,
    /// The instructions for the packets.
    pub instructions: Instructions,
    /// The version whose rules the request follows. In OpenFlow 1.0, actions may need headers that
    /// the match does not require, an addition resets the counters, and a modification may name
    /// all tables. A modification without a restriction to cookies also changes the cookies of its
    /// flows (not to all ones), and adds a flow if there are none.
    pub version: Version,
}

/// The command of a flow request (OFPFC_; the numbers are the protocol's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FlowCommand {
    /// Adds a flow; replaces the flow of the same match and priority.
    Add = 0,
    /// Changes the instructions of all flows within the match.
    Modify = 1,
    /// Changes the instructions of the flow of this match and priority.
    ModifyStrict = 2,
    /// Deletes all flows within the match.
    Delete = 3,
    /// Deletes the flow of this match and priority.
    DeleteStrict = 4,
}

/// Selects flows for a statistics request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowFilter {
    /// The table, or [`ALL_TABLES`].
    pub table_id: u8,
    /// Only flows that output to this port; [`port::ANY`] for all.
    pub out_port: u32,
    /// Only flows that use this group; [`ANY_GROUP`] for all.
    pub out_group: u32,
    /// The required bits of the cookie.
    pub cookie: u64,
    /// The bits of the cookie to compare; 0 for no restriction.
    pub cookie_mask: u64,
    /// Only flows within this match.
    pub matching: Match,
}

/// A flow that was removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// The table it was in.
    pub table_id: u8,
    /// Its priority and match.
    pub rank: Rank,
    /// The flow, with its last counters.
    pub flow: Flow,
    /// Why it was removed.
    pub reason: RemovedReason,
    /// The time of removal.
    pub at: Time,
}

/// A flow, as plans hold it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Priority and match.
    pub rank: Rank,
    /// The serial number of the flow, for crediting counters.
    pub serial: u64,
    /// The flow's cookie.
    pub cookie: u64,
    /// Its instructions.
    pub instructions: Arc<Instructions>,
}

/// Why a flow was removed (OFPRR_; the numbers are the protocol's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RemovedReason {
    /// No packet matched for its idle timeout.
    IdleTimeout = 0,
    /// Its hard timeout passed.
    HardTimeout = 1,
    /// A flow-mod deleted it.
    Delete = 2,
    /// Its group was deleted.
    GroupDelete = 3,
    /// Its meter was deleted.
    MeterDelete = 4,
    /// The table was full, and another flow needed its place.
    Eviction = 5,
}

impl RemovedReason {
    /// Returns the number (OFPRR_). Before OpenFlow 1.4 a meter that goes and a full table have
    /// none: the flow was deleted.
    pub fn number_in(self, version: Version) -> u8 {
        match self {
            RemovedReason::MeterDelete | RemovedReason::Eviction if version < Version::V14 => {
                RemovedReason::Delete as u8
            }
            other => other as u8,
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl Counters {
    /// Counts one frame of `len` bytes.
    pub fn count(&mut self, len: usize) {
        self.packets += 1;
        self.bytes += len as u64;
    }
}

impl Rank {
    /// Returns the rank of a match with a priority.
    pub fn new(priority: u16, matching: Match) -> Rank {
        Rank { priority: Reverse(priority), matching }
    }

    /// Returns the priority; the highest wins.
    pub fn priority(&self) -> u16 {
        self.priority.0
    }

    /// Returns the match.
    pub fn matching(&self) -> &Match {
        &self.matching
    }

    /// Returns whether this is a table-miss flow: priority 0 and a match of all packets (§5.4).
    pub fn is_table_miss(&self) -> bool {
        self.priority() == 0 && self.matching.is_any()
    }
}

impl Instructions {
    /// Returns what a flow with them uses of [`Limits::room`](crate::Limits::room).
    pub(crate) fn room(&self) -> usize {
        1 + self.actions().count()
    }

    /// Returns how much memory they take.
    pub fn bytes(&self) -> usize {
        size_of::<Instructions>() + self.actions().map(Action::bytes).sum::<usize>()
    }

    /// Returns instructions that only apply these actions.
    pub fn apply(actions: impl Into<Vec<Action>>) -> Instructions {
        Instructions { apply: actions.into(), ..Instructions::default() }
    }

    /// Returns whether a flow with them uses this meter.
    pub(crate) fn uses_meter(&self, id: u32) -> bool {
        self.meter == Some(id) || self.actions().any(|action| action.meters().contains(&id))
    }

    /// Returns the meters that a flow with them uses.
    pub(crate) fn meters(&self) -> impl Iterator<Item = u32> {
        self.meter.into_iter().chain(self.actions().flat_map(Action::meters))
    }

    /// Returns the clauses of conjunctions that a flow with them is.
    pub fn clauses(&self) -> impl Iterator<Item = Clause> {
        self.apply.iter().filter_map(|action| match action {
            Action::Extension(extension) => match **extension {
                Extension::Conjunction { id, clause, clauses } => Some(Clause { id, clause, clauses }),
                _ => None,
            },
            _ => None,
        })
    }

    /// Returns whether packets find a flow with them only by a conjunction.
    pub fn is_clause(&self) -> bool {
        self.clauses().next().is_some()
    }

    /// Returns all actions, applied and written.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write)
    }
}

impl FlowMod {
    /// Returns a request to add a flow without timeouts, cookie or flags.
    pub fn add(table_id: u8, priority: u16, matching: Match, instructions: Instructions) -> FlowMod {
        FlowMod {
            command: FlowCommand::Add,
            table_id,
            cookie: 0,
            cookie_mask: 0,
            new_cookie: None,
            idle_timeout: 0,
            hard_timeout: 0,
            importance: 0,
            priority,
            out_port: port::ANY,
            out_group: ANY_GROUP,
            flags: 0,
            matching,
            instructions,
            version: Version::V13,
        }
    }

    /// Returns whether it is a modification that also sets cookies, and adds a flow if there is
    /// none to modify.
    pub(crate) fn may_add(&self) -> bool {
        self.version == Version::V10 && self.cookie_mask == 0 && self.cookie != u64::MAX
    }

    /// Returns the cookie that a modification gives to its flows, if it changes their cookies.
    pub(crate) fn modified_cookie(&self) -> Option<u64> {
        if self.may_add() { Some(self.cookie) } else { self.new_cookie }
    }

    /// Returns a request to delete every flow of every table.
    pub fn delete_all() -> FlowMod {
        let add = FlowMod::add(ALL_TABLES, 0, Match::any(), Instructions::default());
        FlowMod { command: FlowCommand::Delete, ..add }
    }
}

impl Flow {
    /// Returns what it uses of [`Limits::room`](crate::Limits::room).
    pub(crate) fn room(&self) -> usize {
        if self.is_hidden() { 0 } else { self.instructions.room() }
    }

    /// Returns whether it is not of a controller: no limit counts it, and no full table evicts it.
    pub fn is_hidden(&self) -> bool {
        self.flags & flags::HIDDEN != 0
    }

    /// Returns whether its removal is reported (OFPFF_SEND_FLOW_REM).
    pub fn is_reported(&self) -> bool {
        self.flags & flags::SEND_FLOW_REM != 0
    }

    /// Returns when it is removed unless a packet matches before, and why; `None` for a flow
    /// without timeouts.
    pub fn deadline(&self) -> Option<(Time, RemovedReason)> {
        let after = |from: Time, seconds: u16, reason| {
            (seconds != 0).then(|| (from.saturating_add(Duration::from_secs(seconds.into())), reason))
        };
        let idle = after(self.last_used, self.idle_timeout, RemovedReason::IdleTimeout);
        let hard = after(self.renewed, self.hard_timeout, RemovedReason::HardTimeout);
        [idle, hard].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Counts a packet of `len` bytes at `now`.
    pub(crate) fn count(&mut self, now: Time, len: usize) {
        self.credit(Counters { packets: 1, bytes: len as u64 }, now);
    }

    /// Adds packets counted elsewhere, the last of them at `last_used`.
    pub(crate) fn credit(&mut self, counted: Counters, last_used: Time) {
        if self.flags & flags::NO_PACKET_COUNTS == 0 {
            self.counters.packets += counted.packets;
        }
        if self.flags & flags::NO_BYTE_COUNTS == 0 {
            self.counters.bytes += counted.bytes;
        }
        self.last_used = self.last_used.max(last_used);
    }

    fn outputs_to(&self, wanted: u32) -> bool {
        self.instructions.actions().any(|action| action.ports().contains(&wanted))
    }

    /// Returns whether one of its actions is this group.
    pub(crate) fn uses_group(&self, wanted: u32) -> bool {
        self.instructions.actions().any(|action| action.groups().contains(&wanted))
    }
}

impl Rule {
    /// Returns the rule of a flow.
    pub fn of((rank, flow): (&Rank, &Flow)) -> Rule {
        let (rank, instructions) = (rank.clone(), Arc::clone(&flow.instructions));
        Rule { rank, serial: flow.serial, cookie: flow.cookie, instructions }
    }
}

impl FlowFilter {
    /// Returns the filter that selects every flow.
    pub fn all() -> FlowFilter {
        FlowFilter {
            table_id: ALL_TABLES,
            out_port: port::ANY,
            out_group: ANY_GROUP,
            cookie: 0,
            cookie_mask: 0,
            matching: Match::any(),
        }
    }

    /// Returns the filter of a modification (which ignores ports and groups) or a deletion. Strict
    /// commands also compare the rank.
    pub fn of(request: &FlowMod) -> FlowFilter {
        let is_delete = matches!(request.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        FlowFilter {
            table_id: request.table_id,
            out_port: if is_delete { request.out_port } else { port::ANY },
            out_group: if is_delete { request.out_group } else { ANY_GROUP },
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            matching: request.matching.clone(),
        }
    }

    /// Returns whether every flow of the tables passes.
    pub(crate) fn selects_all(&self) -> bool {
        let FlowFilter { out_port, out_group, cookie_mask, .. } = *self;
        (out_port, out_group, cookie_mask) == (port::ANY, ANY_GROUP, 0) && self.matching.is_any()
    }

    /// Returns whether a flow passes everything except match and table.
    pub fn selects(&self, flow: &Flow) -> bool {
        // Most filters need not look at the flow.
        (self.cookie_mask == 0 || (flow.cookie ^ self.cookie) & self.cookie_mask == 0)
            && (self.out_port == port::ANY || flow.outputs_to(self.out_port))
            && (self.out_group == ANY_GROUP || flow.uses_group(self.out_group))
    }
}
