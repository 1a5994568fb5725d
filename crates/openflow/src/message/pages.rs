//! A reply that does not fit one message is sent as several messages. [`Pages`] splits it between
//! items.

use super::bytes::Write;
use super::flow_update::ONF_FLOW_MONITOR;
use super::multipart::{FLOW_MONITOR, MORE, NXST_FLOW, NXST_FLOW_MONITOR, VENDOR, write_nicira};
use super::{HEADER_LEN, ONF, v10};
use fastpath_switch::Version;

/// OFPT_MULTIPART_REPLY.
const REPLY: u8 = 19;

/// Writes type and flags, and what precedes statistics of the ONF in OpenFlow 1.3.
pub(crate) fn write_head_13(out: &mut Vec<u8>, number: u16, flags: u16) {
    let is_monitor = number == FLOW_MONITOR;
    out.u16(if is_monitor { VENDOR } else { number });
    out.u16(flags);
    out.u32(0);
    if is_monitor {
        out.u32(ONF);
        out.u32(ONF_FLOW_MONITOR);
    }
}

/// The messages of one reply, split between items.
#[derive(Debug)]
pub struct Pages {
    version: Version,
    kind: u16,
    /// The type of statistics of Nicira (NXST_).
    subtype: Option<u32>,
    xid: u32,
    /// Where the current message begins in the output.
    start: usize,
}

impl Pages {
    /// The longest message.
    const MAX: usize = u16::MAX as usize;

    /// The most bytes of a message before its first item.
    const HEAD_MAX: usize = HEADER_LEN + 16;

    /// Begins a reply of type `kind` at the end of `out`.
    pub fn begin(version: Version, out: &mut Vec<u8>, kind: u16, xid: u32) -> Pages {
        match (version, kind) {
            (Version::V10, FLOW_MONITOR) => {
                Pages::begin_message(version, out, VENDOR, Some(NXST_FLOW_MONITOR), xid)
            }
            _ => Pages::begin_message(version, out, kind, None, xid),
        }
    }

    /// Begins a reply of NXST_FLOW, in OpenFlow 1.0.
    pub fn begin_nx_flow(out: &mut Vec<u8>, xid: u32) -> Pages {
        Pages::begin_message(Version::V10, out, VENDOR, Some(NXST_FLOW), xid)
    }

    fn begin_message(
        version: Version,
        out: &mut Vec<u8>,
        kind: u16,
        subtype: Option<u32>,
        xid: u32,
    ) -> Pages {
        let start = out.len();
        out.u8(version.number());
        out.u8(match version {
            Version::V10 => v10::STATS_REPLY,
            _ => REPLY,
        });
        out.u16(0);
        out.u32(xid);
        match version {
            Version::V10 => out.u32(u32::from(kind) << 16),
            Version::V13 => write_head_13(out, kind, 0),
            Version::V14 | Version::V15 => out.u64(u64::from(kind) << 48),
        }
        if let Some(subtype) = subtype {
            write_nicira(out, subtype);
        }
        Pages { version, kind, subtype, xid, start }
    }

    /// Adds an item, and begins a new message if it does not fit the current one. An item that fits
    /// no message is left out. An item that arrived in one message fits one, with few exceptions.
    pub fn item(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let at = out.len();
        write(out);
        if out.len() - self.start <= Pages::MAX {
            return;
        }
        let item = out.split_off(at);
        if item.len() + Pages::HEAD_MAX > Pages::MAX {
            return;
        }
        let flags = self.start + HEADER_LEN + 2;
        out[flags..flags + 2].copy_from_slice(&MORE.to_be_bytes());
        out.length(self.start, self.start + 2);
        *self = Pages::begin_message(self.version, out, self.kind, self.subtype, self.xid);
        out.extend_from_slice(&item);
    }

    /// Ends the last message of this part of the reply. `flags` says whether more parts follow.
    pub fn end(self, out: &mut Vec<u8>, flags: u16) {
        let at = self.start + HEADER_LEN + 2;
        out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
        out.length(self.start, self.start + 2);
    }
}
