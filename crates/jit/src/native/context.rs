//! The state that generated code and Rust share while a packet is executed. Generated code accesses
//! it by the offsets here.

use crate::cells::{FlowCell, PortCell, TableCell};
use fastpath_switch::Key;
use fastpath_switch::outcome::DropReason;
use std::mem::offset_of;

/// The registers of one worker.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    /// The frame as it is now: the caller's buffer or the worker's copy.
    pub(crate) frame: *mut u8,
    pub(crate) len: u64,
    /// The time of the burst in ps.
    pub(crate) now: u64,
    pub(crate) in_port: u64,
    pub(crate) metadata: u64,
    pub(crate) tunnel: u64,
    pub(crate) queue: u64,
    /// Not 0 if something wrote to the action set.
    pub(crate) dirty: u64,
    /// The outcomes of this packet so far.
    pub(crate) emitted: u64,
    /// Results of the callout `find`: row and cell of the rule.
    pub(crate) row: *const u64,
    pub(crate) cell: *const FlowCell,
    /// Result of the callout `parse`: the key.
    pub(crate) key: Key,
    pub(crate) tables: *const TableView,
    pub(crate) table_cells: *const TableCell,
    pub(crate) port_cells: *const PortCell,
    pub(crate) port_flags: *const u8,
}

/// The rows and cells of a table, for generated code.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TableView {
    pub(crate) rows: *const u64,
    pub(crate) cells: *const FlowCell,
    /// Not 0 if the table has changed since its base was built: the callout `find` must be used.
    pub(crate) changed: u64,
}

/// Offsets in a [`Context`].
pub(crate) mod at {
    use super::{Context, offset_of};
    pub(crate) const FRAME: i32 = offset_of!(Context, frame) as i32;
    pub(crate) const LEN: i32 = offset_of!(Context, len) as i32;
    pub(crate) const NOW: i32 = offset_of!(Context, now) as i32;
    pub(crate) const IN_PORT: i32 = offset_of!(Context, in_port) as i32;
    pub(crate) const METADATA: i32 = offset_of!(Context, metadata) as i32;
    pub(crate) const TUNNEL: i32 = offset_of!(Context, tunnel) as i32;
    pub(crate) const QUEUE: i32 = offset_of!(Context, queue) as i32;
    pub(crate) const DIRTY: i32 = offset_of!(Context, dirty) as i32;
    pub(crate) const EMITTED: i32 = offset_of!(Context, emitted) as i32;
    pub(crate) const ROW: i32 = offset_of!(Context, row) as i32;
    pub(crate) const CELL: i32 = offset_of!(Context, cell) as i32;
    pub(crate) const KEY: i32 = offset_of!(Context, key) as i32;
    pub(crate) const TABLES: i32 = offset_of!(Context, tables) as i32;
    pub(crate) const TABLE_CELLS: i32 = offset_of!(Context, table_cells) as i32;
    pub(crate) const PORT_CELLS: i32 = offset_of!(Context, port_cells) as i32;
    pub(crate) const PORT_FLAGS: i32 = offset_of!(Context, port_flags) as i32;
}

/// The answer of generated code is a port below 2³², or this, or [`DROP`] with a reason.
pub(crate) const DONE: u64 = 2 << 32;
/// Set together with the index of a reason in [`REASONS`].
pub(crate) const DROP: u64 = 1 << 32;

/// The reasons that generated code gives.
pub(crate) const REASONS: [DropReason; 5] = [
    DropReason::Runt,
    DropReason::TableMiss,
    DropReason::NoOutput,
    DropReason::Egress,
    DropReason::NoOtherPort,
];

/// Returns the answer that drops a packet for one of [`REASONS`].
pub(crate) fn drop_for(reason: DropReason) -> u64 {
    DROP | REASONS.iter().position(|other| *other == reason).expect("a reason generated code gives") as u64
}
