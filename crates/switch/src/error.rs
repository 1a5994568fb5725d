//! Why a switch refuses a change, with the numbers that OpenFlow 1.3.5 §7.4.4 gives the reason.

/// A refused flow, group, meter or port change, or packet-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it, the specification numbers it")]
pub enum Refusal {
    #[error("table {0} does not exist; send to a table below the number in the features reply")]
    RequestBadTable(u8),
    #[error("port {0:#x} cannot be where a packet comes from; name a port of the switch or CONTROLLER")]
    RequestBadPort(u32),
    #[error("action type {0} is not known")]
    ActionBadType(u16),
    #[error("action type {0} has the wrong length")]
    ActionBadLen(u16),
    #[error(
        "output to port {0:#x} is not possible; name an existing port or a reserved one that is supported"
    )]
    ActionBadOutPort(u32),
    #[error("an action has an argument it cannot have: {0:#x}")]
    ActionBadArgument(u32),
    #[error("more actions than the {0} a list may hold")]
    ActionTooMany(usize),
    #[error("queue {0} does not exist")]
    ActionBadQueue(u32),
    #[error("group {0} does not exist; add it first")]
    ActionBadOutGroup(u32),
    #[error("the match does not promise the header that set-field {0} changes; match its prerequisites")]
    ActionMatchInconsistent(&'static str),
    #[error("tags of EtherType {0:#06x} cannot be pushed")]
    ActionBadTag(u16),
    #[error("field {0} cannot be set")]
    ActionBadSetType(&'static str),
    #[error("the value is too wide for field {0}")]
    ActionBadSetArgument(&'static str),
    #[error("instruction type {0} is not known")]
    InstructionUnknown(u16),
    #[error("goto-table {0} does not lead to a later table")]
    InstructionBadTable(u8),
    #[error("an instruction is there twice")]
    InstructionDuplicate,
    #[error("a match field is not known: class {class:#06x} field {field}")]
    MatchBadField { class: u16, field: u8 },
    #[error("field {0} has a value it cannot have")]
    MatchBadValue(&'static str),
    #[error("field {0} cannot be matched under this mask")]
    MatchBadMask(&'static str),
    #[error("field {0} is matched without its prerequisite")]
    MatchBadPrerequisite(&'static str),
    #[error("field {0} is matched twice")]
    MatchDuplicate(&'static str),
    #[error("field {0} asks for ones where its mask has zeros")]
    MatchBadWildcards(&'static str),
    #[error("table {0} is full")]
    FlowTableFull(u8),
    #[error("table {0} does not exist; flows go to one table, and only deletions to all (255)")]
    FlowBadTable(u8),
    #[error("a flow of the same priority overlaps")]
    FlowOverlap,
    #[error("flow command {0} is not known")]
    FlowBadCommand(u8),
    #[error("flow flags {0:#06x} are not known")]
    FlowBadFlags(u16),
    #[error("group {0} exists already")]
    GroupExists(u32),
    #[error("group {0} is not a number a group may have")]
    GroupInvalid(u32),
    #[error("more groups than the {0} there is room for")]
    GroupsFull(usize),
    #[error("more buckets than the {0} a group of this type may have")]
    GroupTooManyBuckets(usize),
    #[error("group {0} would make a chain of more than the {1} groups one may have")]
    GroupTooDeep(u32, usize),
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
    #[error("port {0:#x} does not exist")]
    PortUnknown(u32),
    #[error("meter {0} exists already")]
    MeterExists(u32),
    #[error("meter {0} is not a meter a flow or request may name")]
    MeterInvalid(u32),
    #[error("meter {0} does not exist")]
    MeterUnknown(u32),
    #[error("meter command {0} is not known")]
    MeterBadCommand(u16),
    #[error("meter flags {0:#06x} are not a combination there is")]
    MeterBadFlags(u16),
    #[error("a band of meter {0} has a rate it cannot have")]
    MeterBadRate(u32),
    #[error("a band of meter {0} has a burst it cannot have")]
    MeterBadBurst(u32),
    #[error("band type {0} is not known")]
    MeterBadBand(u16),
    #[error("a dscp-remark band of meter {0} has a precedence level it cannot have")]
    MeterBadBandValue(u32),
    #[error("more meters than the {0} there is room for")]
    MetersFull(usize),
    #[error("more bands than the {0} a meter may have")]
    MeterTooManyBands(usize),
}

impl Refusal {
    /// The `type` and `code` of the OpenFlow error message (§7.4.4).
    pub const fn numbers(&self) -> (u16, u16) {
        match self {
            Refusal::RequestBadTable(_) => (1, 9),
            Refusal::RequestBadPort(_) => (1, 11),
            Refusal::ActionBadType(_) => (2, 0),
            Refusal::ActionBadLen(_) => (2, 1),
            Refusal::ActionBadOutPort(_) => (2, 4),
            Refusal::ActionBadArgument(_) => (2, 5),
            Refusal::ActionTooMany(_) => (2, 7),
            Refusal::ActionBadQueue(_) => (2, 8),
            Refusal::ActionBadOutGroup(_) => (2, 9),
            Refusal::ActionMatchInconsistent(_) => (2, 10),
            Refusal::ActionBadTag(_) => (2, 12),
            Refusal::ActionBadSetType(_) => (2, 13),
            Refusal::ActionBadSetArgument(_) => (2, 15),
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
            Refusal::GroupInvalid(_) => (6, 1),
            Refusal::GroupsFull(_) => (6, 3),
            Refusal::GroupTooManyBuckets(_) => (6, 4),
            Refusal::GroupTooDeep(..) => (6, 5),
            Refusal::GroupLoop(_) => (6, 7),
            Refusal::GroupUnknown(_) => (6, 8),
            Refusal::GroupChained(_) => (6, 9),
            Refusal::GroupBadType(_) => (6, 10),
            Refusal::GroupBadCommand(_) => (6, 11),
            Refusal::GroupBadBucket(_) => (6, 12),
            Refusal::GroupBadWatch(_) => (6, 13),
            Refusal::PortUnknown(_) => (7, 0),
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
        }
    }
}
