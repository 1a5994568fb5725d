//! Flow monitors: requests to be told of changes of flows, and the updates (OpenFlow 1.4
//! §7.3.5.20).

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

impl FlowUpdate {
    pub(crate) fn read(r: &mut ByteReader<'_>, form: &FlowForm) -> Result<FlowUpdate, Fault> {
        let mut r = measured(r)?;
        let event = r.u16()?;
        if event == ABBREVIATED {
            let xid = r.u32()?;
            r.end()?;
            return Ok(FlowUpdate::Abbreviated(xid));
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
