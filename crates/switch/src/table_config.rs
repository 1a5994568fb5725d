//! What a table does when it is full or nearly so, as values (OpenFlow 1.4 §7.3.4.1).

/// Bit of [`TableMod::config`], deprecated: what packets do that match no flow, in OpenFlow 1.1 and
/// 1.2.
pub const DEPRECATED: u32 = 3;
/// Bit of [`TableMod::config`]: a full table removes flows for new ones (OFPTC_EVICTION).
pub const EVICTION: u32 = 1 << 2;
/// Bit of [`TableMod::config`]: controllers are told when the table is nearly full, and when it is
/// not so any more (OFPTC_VACANCY_EVENTS).
pub const VACANCY_EVENTS: u32 = 1 << 3;

/// OFPT_TABLE_MOD. Before OpenFlow 1.4 it has no properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableMod {
    /// The table, or all.
    pub table_id: u8,
    /// OFPTC_ bits.
    pub config: u32,
    /// How flows are chosen for eviction (OFPTMPEF_). A controller cannot choose.
    pub eviction: Option<u32>,
    /// The thresholds of vacancy events.
    pub vacancy: Option<Vacancy>,
}

/// Free room in percent of the most flows of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vacancy {
    /// Below this, the table is nearly full.
    pub down: u8,
    /// Above this, it is not so any more.
    pub up: u8,
    /// The free room now. 0 in requests.
    pub now: u8,
}

/// The configuration of a table: a reply of OFPMP_TABLE_DESC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableConfig {
    /// The table.
    pub table_id: u8,
    /// OFPTC_ bits.
    pub config: u32,
    /// How flows are chosen for eviction (OFPTMPEF_).
    pub eviction: Option<u32>,
    /// The thresholds of vacancy events.
    pub vacancy: Option<Vacancy>,
}

/// OFPT_TABLE_STATUS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableStatus {
    /// OFPTR_: 3 vacancy down, 4 vacancy up.
    pub reason: u8,
    /// The table.
    pub table: TableConfig,
}
