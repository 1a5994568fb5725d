//! Why a switch refuses a request, with the numbers that OpenFlow 1.3.5 §7.4.4 assigns to the
//! reason.

use crate::limits::USERDATA_MAX;

/// A refused flow, group, meter or port change, or packet-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it, the specification numbers it")]
pub enum Refusal {
    #[error("table {0} does not exist; use a table below the number in the features reply")]
    RequestBadTable(u8),
    #[error("port {0:#x} cannot be a port of entry; use a port of the switch or CONTROLLER")]
    RequestBadPort(u32),
    #[error("action type {0} is not known")]
    ActionBadType(u16),
    #[error("action type {0} has the wrong length")]
    ActionBadLen(u16),
    #[error("cannot output to port {0:#x}; use an existing port or a supported reserved port")]
    ActionBadOutPort(u32),
    #[error("action argument {0:#x} is not valid")]
    ActionBadArgument(u32),
    #[error("an action list may hold at most {0} actions")]
    ActionTooMany(usize),
    #[error("a flow with conjunction may have no other action; put actions into the flow of its conj_id")]
    ClauseNotAlone,
    #[error(
        "an action set, as of a bucket, has no place for this action; put it into a table, and resubmit to it"
    )]
    NotInSet,
    #[error("ct with exec or with addresses of nat has no commit; write ct(commit,…)")]
    CtNeedsCommit,
    #[error("exec of ct only sets ct_mark and ct_label, by set_field, load or move")]
    NotInExec,
    #[error("userdata of controller has {0} bytes; at most {max} fit beside the packet", max = USERDATA_MAX)]
    UserdataTooLong(usize),
    #[error("queue {0} does not exist")]
    ActionBadQueue(u32),
    #[error("group {0} does not exist; add it first")]
    ActionBadOutGroup(u32),
    #[error("set-field {0} needs a header that the match does not require; match its prerequisites")]
    ActionMatchInconsistent(&'static str),
    #[error("a tag of EtherType {0:#06x} cannot be pushed")]
    ActionBadTag(u16),
    #[error("meter {0} does not exist; add it first")]
    ActionBadMeter(u32),
    #[error("field {0} cannot be set")]
    ActionBadSetType(&'static str),
    #[error("the value is not valid for field {0}")]
    ActionBadSetArgument(&'static str),
    #[error("instruction type {0} is not known")]
    InstructionUnknown(u16),
    #[error("goto-table {0} does not lead to a later table")]
    InstructionBadTable(u8),
    #[error("an instruction occurs twice")]
    InstructionDuplicate,
    #[error("match field {field} of class {class:#06x} is not known")]
    MatchBadField { class: u16, field: u8 },
    #[error("the value is not valid for field {0}")]
    MatchBadValue(&'static str),
    #[error("field {0} cannot be matched under this mask")]
    MatchBadMask(&'static str),
    #[error("field {0} is matched without its prerequisite")]
    MatchBadPrerequisite(&'static str),
    #[error("field {0} is matched twice")]
    MatchDuplicate(&'static str),
    #[error("field {0} has ones where its mask has zeros")]
    MatchBadWildcards(&'static str),
    #[error("table {0} is full")]
    FlowTableFull(u8),
    #[error("table {0} does not exist; only deletions may name all tables (255)")]
    FlowBadTable(u8),
    #[error("a flow of the same priority overlaps")]
    FlowOverlap,
    #[error("flow command {0} is not known")]
    FlowBadCommand(u8),
    #[error("flow flags {0:#06x} are not known")]
    FlowBadFlags(u16),
    #[error("group {0} already exists")]
    GroupExists(u32),
    #[error(
        "group {0} is not valid: its number is reserved, it is indirect without exactly one bucket, or all or indirect with weights"
    )]
    GroupInvalid(u32),
    #[error("select group {0} sends nothing: give at least one bucket a weight (weight:1)")]
    GroupWithoutWeight(u32),
    #[error("the switch may hold at most {0} groups")]
    GroupsFull(usize),
    #[error("more buckets than the limit of {0}")]
    GroupTooManyBuckets(usize),
    #[error("group {0} would make a chain of more than {1} groups")]
    GroupTooDeep(u32, usize),
    #[error("a bucket of group {0} watches a port or group; only select and fast-failover groups may")]
    GroupWatchUnsupported(u32),
    #[error("group {0} would forward to itself")]
    GroupLoop(u32),
    #[error("group {0} does not exist")]
    GroupUnknown(u32),
    #[error("another group forwards to group {0}")]
    GroupChained(u32),
    #[error("group type {0} is not known")]
    GroupBadType(u8),
    #[error("group command {0} is not known")]
    GroupBadCommand(u16),
    #[error("a bucket of group {0} is not valid for the group's type")]
    GroupBadBucket(u32),
    #[error("a bucket of group {0} watches a port or group that does not exist")]
    GroupBadWatch(u32),
    #[error("group {0} has no bucket {1}")]
    GroupUnknownBucket(u32, u32),
    #[error("group {0} has a bucket {1} already")]
    GroupBucketExists(u32, u32),
    #[error("port {0:#x} does not exist")]
    PortUnknown(u32),
    #[error("meter {0} already exists")]
    MeterExists(u32),
    #[error("meter {0} is not a valid meter here")]
    MeterInvalid(u32),
    #[error("meter {0} does not exist")]
    MeterUnknown(u32),
    #[error("meter command {0} is not known")]
    MeterBadCommand(u16),
    #[error("meter flags {0:#06x} are not a valid combination")]
    MeterBadFlags(u16),
    #[error("a band of meter {0} has an invalid rate")]
    MeterBadRate(u32),
    #[error("a band of meter {0} has an invalid burst")]
    MeterBadBurst(u32),
    #[error("band type {0} is not known")]
    MeterBadBand(u16),
    #[error("a dscp-remark band of meter {0} has an invalid precedence level")]
    MeterBadBandValue(u32),
    #[error("the switch may hold at most {0} meters")]
    MetersFull(usize),
    #[error("a meter may have at most {0} bands")]
    MeterTooManyBands(usize),
}

impl Refusal {
    /// Returns the `type` and `code` of the OpenFlow error message (§7.4.4).
    pub const fn numbers(&self) -> (u16, u16) {
        match self {
            Refusal::RequestBadTable(_) => (1, 9),
            Refusal::RequestBadPort(_) => (1, 11),
            Refusal::ActionBadType(_) => (2, 0),
            Refusal::ActionBadLen(_) | Refusal::UserdataTooLong(_) => (2, 1),
            Refusal::ActionBadOutPort(_) => (2, 4),
            Refusal::ActionBadArgument(_) => (2, 5),
            Refusal::ClauseNotAlone | Refusal::NotInSet | Refusal::CtNeedsCommit | Refusal::NotInExec => {
                (2, 5)
            }
            Refusal::ActionTooMany(_) => (2, 7),
            Refusal::ActionBadQueue(_) => (2, 8),
            Refusal::ActionBadOutGroup(_) => (2, 9),
            Refusal::ActionMatchInconsistent(_) => (2, 10),
            Refusal::ActionBadTag(_) => (2, 12),
            Refusal::ActionBadSetType(_) => (2, 13),
            Refusal::ActionBadSetArgument(_) => (2, 15),
            Refusal::ActionBadMeter(_) => (2, 17),
            Refusal::InstructionUnknown(_) => (3, 0),
            Refusal::InstructionBadTable(_) => (3, 2),
            Refusal::InstructionDuplicate => (3, 9),
            Refusal::MatchBadWildcards(_) => (4, 5),
            Refusal::MatchBadField { .. } => (4, 6),
            Refusal::MatchBadValue(_) => (4, 7),
            Refusal::MatchBadMask(_) => (4, 8),
            Refusal::MatchBadPrerequisite(_) => (4, 9),
            Refusal::MatchDuplicate(_) => (4, 10),
            Refusal::FlowTableFull(_) => (5, 1),
            Refusal::FlowBadTable(_) => (5, 2),
            Refusal::FlowOverlap => (5, 3),
            Refusal::FlowBadCommand(_) => (5, 6),
            Refusal::FlowBadFlags(_) => (5, 7),
            Refusal::GroupExists(_) => (6, 0),
            Refusal::GroupInvalid(_) | Refusal::GroupWithoutWeight(_) => (6, 1),
            Refusal::GroupsFull(_) => (6, 3),
            Refusal::GroupTooManyBuckets(_) => (6, 4),
            Refusal::GroupTooDeep(..) => (6, 5),
            Refusal::GroupWatchUnsupported(_) => (6, 6),
            Refusal::GroupLoop(_) => (6, 7),
            Refusal::GroupUnknown(_) => (6, 8),
            Refusal::GroupChained(_) => (6, 9),
            Refusal::GroupBadType(_) => (6, 10),
            Refusal::GroupBadCommand(_) => (6, 11),
            Refusal::GroupBadBucket(_) => (6, 12),
            Refusal::GroupBadWatch(_) => (6, 13),
            Refusal::GroupUnknownBucket(..) => (6, 15),
            Refusal::GroupBucketExists(..) => (6, 16),
            Refusal::PortUnknown(_) => (7, 0),
            other => other.meter_numbers(),
        }
    }

    /// Returns the numbers of refusals of meters.
    const fn meter_numbers(&self) -> (u16, u16) {
        match self {
            Refusal::MeterExists(_) => (12, 1),
            Refusal::MeterInvalid(_) => (12, 2),
            Refusal::MeterUnknown(_) => (12, 3),
            Refusal::MeterBadCommand(_) => (12, 4),
            Refusal::MeterBadFlags(_) => (12, 5),
            Refusal::MeterBadRate(_) => (12, 6),
            Refusal::MeterBadBurst(_) => (12, 7),
            Refusal::MeterBadBand(_) => (12, 8),
            Refusal::MeterBadBandValue(_) => (12, 9),
            Refusal::MetersFull(_) => (12, 10),
            Refusal::MeterTooManyBands(_) => (12, 11),
            // All others are above; OFPMMFC_UNKNOWN.
            _ => (12, 0),
        }
    }
}
