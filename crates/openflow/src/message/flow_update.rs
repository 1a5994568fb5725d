//! Flow monitors: requests to be told of changes of flows, and the updates (OpenFlow 1.4
//! §7.3.5.20).
//!
//! | version | statistics | to end a monitor, paused, resumed |
//! |---|---|---|
//! | 1.0 | NXST_FLOW_MONITOR | messages of Nicira |
//! | 1.3 | those of the ONF (extension 187) | messages of the ONF |
//! | 1.4 | OFPMP_FLOW_MONITOR | a command, events |

use super::ONF;
use super::bytes::{ByteReader, Write, measured};
use super::fault::Fault;
use super::flow_form::FlowForm;
use super::oxm;
use fastpath_switch::{FlowFilter, Instructions, Match};

/// Bits of [`MonitorRequest::flags`] (OFPFMF_).
pub mod monitor_flags {
    /// Flows that are there already are told at once.
    pub const INITIAL: u16 = 1 << 0;
    /// Flows that are added are told.
    pub const ADD: u16 = 1 << 1;
    /// Flows that are removed are told.
    pub const REMOVED: u16 = 1 << 2;
    /// Flows whose instructions or cookie change are told.
    pub const MODIFY: u16 = 1 << 3;
    /// The instructions are told.
    pub const INSTRUCTIONS: u16 = 1 << 4;
    /// Changes of this controller are told in full.
    pub const NO_ABBREV: u16 = 1 << 5;
    /// Changes of other controllers are not told.
    pub const ONLY_OWN: u16 = 1 << 6;
    /// All flags.
    pub const ALL: u16 = 0x7f;
}

/// One request of OFPMP_FLOW_MONITOR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MonitorRequest {
    /// The number of the monitor, which the controller chooses.
    pub id: u32,
    /// OFPFMC_: 0 add, 1 modify, 2 delete.
    pub command: u8,
    /// Bits of [`monitor_flags`].
    pub flags: u16,
    /// The flows that are monitored. Their cookies do not matter.
    pub filter: FlowFilter,
}

/// One update of OFPMP_FLOW_MONITOR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowUpdate {
    /// A flow, and what has become of it.
    Full(FullUpdate),
    /// The flow mod of the controller itself with this transaction id is in force.
    Abbreviated(u32),
    /// Changes are not told from here on, except that flows go, because the controller does not
    /// read them.
    Paused,
    /// All changes have been told.
    Resumed,
}

/// A flow, and what has become of it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the specification names them")]
pub struct FullUpdate {
    /// OFPFME_: 0 initial, 1 added, 2 removed, 3 modified.
    pub event: u16,
    pub table_id: u8,
    /// OFPRR_ of a removed flow; 0 otherwise.
    pub reason: u8,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub priority: u16,
    pub cookie: u64,
    pub matching: Match,
    /// Empty unless the monitor asks for them.
    pub instructions: Instructions,
}

/// OFPFME_ABBREV.
const ABBREVIATED: u16 = 4;
/// OFPFME_PAUSED.
const PAUSED: u16 = 5;
/// OFPFME_RESUMED.
const RESUMED: u16 = 6;
/// NXFME_ABBREV.
const OLD_ABBREVIATED: u16 = 3;
/// The statistics of the ONF.
pub(crate) const ONF_FLOW_MONITOR: u32 = 1870;

/// Reads what precedes statistics of the ONF about monitors, if it is there.
pub(crate) fn is_of_onf(r: &mut ByteReader<'_>) -> bool {
    let mut after = *r;
    let is_there = (after.u32(), after.u32()) == (Ok(ONF), Ok(ONF_FLOW_MONITOR));
    if is_there {
        *r = after;
    }
    is_there
}

/// How updates say a flow before OpenFlow 1.4.
pub(crate) struct OldForm {
    /// Reads the match, of which the length is given, and the instructions.
    pub(crate) read: fn(ByteReader<'_>, usize) -> Result<(Match, Instructions), Fault>,
    /// Writes them, and the length of the match at the given place.
    pub(crate) write: fn(&mut Vec<u8>, usize, &FullUpdate),
}

impl MonitorRequest {
    pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<MonitorRequest, Fault> {
        let (id, out_port, out_group) = (r.u32()?, r.u32()?, r.u32()?);
        let (flags, table_id, command) = (r.u16()?, r.u8()?, r.u8()?);
        let matching = oxm::read_match(r)?;
        let filter = FlowFilter { table_id, out_port, out_group, matching, ..FlowFilter::all() };
        Ok(MonitorRequest { id, command, flags, filter })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        [self.id, self.filter.out_port, self.filter.out_group].into_iter().for_each(|number| out.u32(number));
        out.u16(self.flags);
        out.u8(self.filter.table_id);
        out.u8(self.command);
        oxm::write_match(out, &self.filter.matching);
    }
}

impl MonitorRequest {
    /// Reads a request of OpenFlow 1.3.
    pub(crate) fn read_13(r: &mut ByteReader<'_>) -> Result<MonitorRequest, Fault> {
        let (id, flags, _, out_port, table_id) = (r.u32()?, r.u16()?, r.u16()?, r.u32()?, r.u8()?);
        r.skip(3)?;
        let filter = FlowFilter { table_id, out_port, matching: oxm::read_match(r)?, ..FlowFilter::all() };
        Ok(MonitorRequest { id, command: 0, flags, filter })
    }

    pub(crate) fn write_13(&self, out: &mut Vec<u8>) {
        out.u32(self.id);
        out.u16(self.flags);
        let at = out.len();
        out.u16(0);
        out.u32(self.filter.out_port);
        out.u8(self.filter.table_id);
        out.zeros(3);
        write_measured(out, at, &self.filter.matching);
    }
}

/// Writes a match, and its length without the padding at `at`.
pub(crate) fn write_measured(out: &mut Vec<u8>, at: usize, matching: &Match) {
    let start = out.len();
    oxm::write_match(out, matching);
    let len = [out[start + 2], out[start + 3]];
    out[at..at + 2].copy_from_slice(&len);
}

impl FlowUpdate {
    /// Reads an update of a version before OpenFlow 1.4.
    pub(crate) fn read_old(r: &mut ByteReader<'_>, form: &OldForm) -> Result<FlowUpdate, Fault> {
        let mut r = measured(r)?;
        let event = r.u16()?;
        if event == OLD_ABBREVIATED {
            let xid = r.u32()?;
            r.end()?;
            return Ok(FlowUpdate::Abbreviated(xid));
        }
        let (reason, priority, idle_timeout, hard_timeout) = (r.u16()?, r.u16()?, r.u16()?, r.u16()?);
        let (match_len, table_id) = (usize::from(r.u16()?), r.u8()?);
        r.skip(1)?;
        let (cookie, (matching, instructions)) = (r.u64()?, (form.read)(r, match_len)?);
        if event > OLD_ABBREVIATED {
            return Err(Fault::BadLen);
        }
        let (event, reason) = (event + 1, u8::try_from(reason).map_err(|_| Fault::BadLen)?);
        Ok(FlowUpdate::Full(FullUpdate {
            event,
            table_id,
            reason,
            idle_timeout,
            hard_timeout,
            priority,
            cookie,
            matching,
            instructions,
        }))
    }

    /// Writes an update of a version before OpenFlow 1.4. Flows that were there already are told as
    /// added.
    pub(crate) fn write_old(&self, out: &mut Vec<u8>, form: &OldForm) {
        let start = out.len();
        out.u16(0);
        match self {
            FlowUpdate::Abbreviated(xid) => {
                out.u16(OLD_ABBREVIATED);
                out.u32(*xid);
            }
            // They are messages of their own.
            FlowUpdate::Paused | FlowUpdate::Resumed => {}
            FlowUpdate::Full(update) => {
                let FullUpdate { reason, priority, idle_timeout, hard_timeout, .. } = *update;
                [update.event.saturating_sub(1), reason.into(), priority, idle_timeout, hard_timeout]
                    .into_iter()
                    .for_each(|number| out.u16(number));
                let at = out.len();
                out.u16(0);
                out.u8(update.table_id);
                out.u8(0);
                out.u64(update.cookie);
                (form.write)(out, at, update);
            }
        }
        out.length(start, start);
    }

    pub(crate) fn read(r: &mut ByteReader<'_>, form: &FlowForm) -> Result<FlowUpdate, Fault> {
        let mut r = measured(r)?;
        let event = r.u16()?;
        if event == ABBREVIATED {
            let xid = r.u32()?;
            r.end()?;
            return Ok(FlowUpdate::Abbreviated(xid));
        }
        if matches!(event, PAUSED | RESUMED) {
            r.skip(4)?;
            r.end()?;
            return Ok(if event == PAUSED { FlowUpdate::Paused } else { FlowUpdate::Resumed });
        }
        let (table_id, reason) = (r.u8()?, r.u8()?);
        let (idle_timeout, hard_timeout, priority) = (r.u16()?, r.u16()?, r.u16()?);
        r.skip(4)?;
        let (cookie, matching) = (r.u64()?, oxm::read_match(&mut r)?);
        let instructions = (form.read)(r)?;
        Ok(FlowUpdate::Full(FullUpdate {
            event,
            table_id,
            reason,
            idle_timeout,
            hard_timeout,
            priority,
            cookie,
            matching,
            instructions,
        }))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, form: &FlowForm) {
        let start = out.len();
        out.u16(0);
        match self {
            FlowUpdate::Abbreviated(xid) => {
                out.u16(ABBREVIATED);
                out.u32(*xid);
            }
            FlowUpdate::Paused | FlowUpdate::Resumed => {
                out.u16(if *self == FlowUpdate::Paused { PAUSED } else { RESUMED });
                out.u32(0);
            }
            FlowUpdate::Full(update) => {
                out.u16(update.event);
                out.u8(update.table_id);
                out.u8(update.reason);
                [update.idle_timeout, update.hard_timeout, update.priority]
                    .into_iter()
                    .for_each(|number| out.u16(number));
                out.u32(0);
                out.u64(update.cookie);
                oxm::write_match(out, &update.matching);
                (form.write)(out, &update.instructions);
            }
        }
        out.length(start, start);
    }
}
