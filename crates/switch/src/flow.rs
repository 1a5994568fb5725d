//! Flow entries and the requests that add, change and delete them.
//!
//! Read first: OpenFlow 1.3.5 §6.4, §7.3.4.2.

use crate::action::Action;
use crate::matching::Match;
use crate::port;
use fastpath_units::{Duration, Time};
use std::cmp::Reverse;
use std::ops::AddAssign;
use std::sync::Arc;

/// Bits of [`FlowMod::flags`] (OFPFF_).
pub mod flags {
    /// Tell the controller when the flow goes.
    pub const SEND_FLOW_REM: u16 = 1 << 0;
    /// Refuse a flow that overlaps one of the same priority.
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    /// Set counters to zero.
    pub const RESET_COUNTS: u16 = 1 << 2;
    /// Do not count packets.
    pub const NO_PACKET_COUNTS: u16 = 1 << 3;
    /// Do not count bytes.
    pub const NO_BYTE_COUNTS: u16 = 1 << 4;
    /// All of them.
    pub const ALL: u16 = 0x1f;
}

/// Every table, in deletions and requests (OFPTT_ALL).
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

/// What identifies a flow in its table, ordered as lookup goes: higher priorities first. Between
/// flows of equal priority that overlap (which §5.3 leaves undefined) the smaller match wins,
/// whenever they were added.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank {
    priority: Reverse<u16>,
    matching: Match,
}

/// What happens to a packet that matches: at most one instruction of each kind (§5.9).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Instructions {
    /// Pass this meter first.
    pub meter: Option<u32>,
    /// Execute these at once, in this order.
    pub apply: Vec<Action>,
    /// Whether the action set is emptied.
    pub clear: ClearActions,
    /// Write these to the action set.
    pub write: Vec<Action>,
    /// Change the bits of `mask` in the metadata to those of `value`.
    pub metadata: Option<WriteMetadata>,
    /// Go on in this later table.
    pub goto: Option<u8>,
}

/// Whether the action set is emptied before actions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ClearActions {
    /// It stays.
    #[default]
    Keep,
    /// It is emptied.
    Clear,
}

/// A write-metadata instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteMetadata {
    /// New bits.
    pub value: u64,
    /// Which bits change.
    pub mask: u64,
}

/// A flow entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Distinguishes this entry from an earlier or later one of the same rank.
    pub serial: u64,
    /// The controller's mark.
    pub cookie: u64,
    /// Bits of [`flags`].
    pub flags: u16,
    /// Seconds without a packet until it goes; 0 for never.
    pub idle_timeout: u16,
    /// Seconds until it goes; 0 for never.
    pub hard_timeout: u16,
    /// What it does.
    pub instructions: Arc<Instructions>,
    /// What it matched.
    pub counters: Counters,
    /// When it was added.
    pub added: Time,
    /// When it last matched, or was added.
    pub last_used: Time,
}

/// A request to change flows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowMod {
    /// What to do.
    pub command: FlowCommand,
    /// In which table; [`ALL_TABLES`] in deletions.
    pub table_id: u8,
    /// The mark of added flows; with `cookie_mask`, which flows to modify or delete.
    pub cookie: u64,
    /// Bits of the cookie that restrict modifications and deletions; 0 for no restriction.
    pub cookie_mask: u64,
    /// Seconds; see [`Flow`].
    pub idle_timeout: u16,
    /// Seconds; see [`Flow`].
    pub hard_timeout: u16,
    /// Priority of added flows, and of those meant by strict commands.
    pub priority: u16,
    /// Deletions: only flows that output to this port; [`port::ANY`] for all.
    pub out_port: u32,
    /// Deletions: only flows that use this group; [`ANY_GROUP`] for all.
    pub out_group: u32,
    /// Bits of [`flags`].
    pub flags: u16,
    /// Which packets, or which flows.
    pub matching: Match,
    /// What to do with the packets.
    pub instructions: Instructions,
}

/// What to do with flows (OFPFC_).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowCommand {
    /// Add; replaces the flow of the same match and priority.
    Add,
    /// Change the instructions of all flows within the match.
    Modify,
    /// Change the instructions of the flow of this match and priority.
    ModifyStrict,
    /// Delete all flows within the match.
    Delete,
    /// Delete the flow of this match and priority.
    DeleteStrict,
}

/// Which flows a statistics request is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowFilter {
    /// In this table, or [`ALL_TABLES`].
    pub table_id: u8,
    /// With an output to this port, or [`port::ANY`].
    pub out_port: u32,
    /// Using this group, or [`ANY_GROUP`].
    pub out_group: u32,
    /// With these cookie bits.
    pub cookie: u64,
    /// Which bits; 0 for no restriction.
    pub cookie_mask: u64,
    /// Within this match.
    pub matching: Match,
}

/// A flow that is no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Where it was.
    pub table_id: u8,
    /// Its priority and match.
    pub rank: Rank,
    /// The rest of it, with its last counters.
    pub flow: Flow,
    /// Why it went.
    pub reason: RemovedReason,
    /// When.
    pub at: Time,
}

/// Why a flow went (OFPRR_; the numbers are the protocol's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RemovedReason {
    /// No packet for its idle timeout.
    IdleTimeout = 0,
    /// Its hard timeout.
    HardTimeout = 1,
    /// A flow-mod, or its meter went.
    Delete = 2,
    /// Its group went.
    GroupDelete = 3,
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
    /// The place of a match with a priority.
    pub fn new(priority: u16, matching: Match) -> Rank {
        Rank { priority: Reverse(priority), matching }
    }

    /// The priority; the highest wins.
    pub fn priority(&self) -> u16 {
        self.priority.0
    }

    /// The match.
    pub fn matching(&self) -> &Match {
        &self.matching
    }

    /// Whether this is a table-miss entry: priority 0 and a match of everything (§5.4).
    pub fn is_table_miss(&self) -> bool {
        self.priority() == 0 && self.matching.is_any()
    }
}

impl Instructions {
    /// What a flow with them takes of [`Limits::room`](crate::Limits::room).
    pub(crate) fn room(&self) -> usize {
        1 + self.actions().count()
    }

    /// Only these actions, applied at once.
    pub fn apply(actions: impl Into<Vec<Action>>) -> Instructions {
        Instructions { apply: actions.into(), ..Instructions::default() }
    }

    /// All actions there are.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write)
    }
}

impl FlowMod {
    /// A request to add a flow without timeouts, cookie or flags.
    pub fn add(table_id: u8, priority: u16, matching: Match, instructions: Instructions) -> FlowMod {
        FlowMod {
            command: FlowCommand::Add,
            table_id,
            cookie: 0,
            cookie_mask: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            priority,
            out_port: port::ANY,
            out_group: ANY_GROUP,
            flags: 0,
            matching,
            instructions,
        }
    }

    /// A request to delete every flow of every table.
    pub fn delete_all() -> FlowMod {
        let add = FlowMod::add(ALL_TABLES, 0, Match::any(), Instructions::default());
        FlowMod { command: FlowCommand::Delete, ..add }
    }
}

impl Flow {
    /// What it takes of [`Limits::room`](crate::Limits::room).
    pub(crate) fn room(&self) -> usize {
        self.instructions.room()
    }

    /// When it goes unless a packet matches before, and why; `None` for a flow that stays.
    pub fn deadline(&self) -> Option<(Time, RemovedReason)> {
        let after = |from: Time, seconds: u16, reason| {
            (seconds != 0).then(|| (from.saturating_add(Duration::from_secs(seconds.into())), reason))
        };
        let idle = after(self.last_used, self.idle_timeout, RemovedReason::IdleTimeout);
        let hard = after(self.added, self.hard_timeout, RemovedReason::HardTimeout);
        [idle, hard].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Counts a packet of `len` bytes at `now`.
    pub(crate) fn count(&mut self, now: Time, len: usize) {
        self.credit(Counters { packets: 1, bytes: len as u64 }, now);
    }

    /// Adds what was counted elsewhere, the last of it at `last_used`.
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
        self.instructions.actions().any(|a| matches!(a, Action::Output { port, .. } if *port == wanted))
    }

    /// Whether one of its actions is this group.
    pub fn uses_group(&self, wanted: u32) -> bool {
        self.instructions.actions().any(|a| *a == Action::Group(wanted))
    }
}

impl FlowFilter {
    /// Every flow.
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

    /// The flows that a modification (which ignores ports and groups) or a deletion is about, but
    /// for strictness.
    pub(crate) fn of(request: &FlowMod) -> FlowFilter {
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

    /// Whether a flow passes all but the match and the table.
    pub fn selects(&self, flow: &Flow) -> bool {
        (flow.cookie ^ self.cookie) & self.cookie_mask == 0
            && (self.out_port == port::ANY || flow.outputs_to(self.out_port))
            && (self.out_group == ANY_GROUP || flow.uses_group(self.out_group))
    }
}
