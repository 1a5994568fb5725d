//! How messages about flows differ between versions.

use super::bytes::ByteReader;
use super::fault::Fault;
use fastpath_switch::Instructions;

/// What a version says of a flow, and how.
#[derive(Debug)]
pub(crate) struct FlowForm {
    /// Whether messages have the importance of flows, which padding has the place of before
    /// OpenFlow 1.4.
    pub(crate) has_importance: bool,
    pub(crate) read: fn(ByteReader<'_>) -> Result<Instructions, Fault>,
    pub(crate) write: fn(&mut Vec<u8>, &Instructions),
}
