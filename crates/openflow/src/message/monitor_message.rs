//! Messages about flow monitors before OpenFlow 1.4, which has statistics in their place: to end a
//! monitor, and that updates are paused or resumed. In OpenFlow 1.0 they are of Nicira, in 1.3 of
//! the ONF.

use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::flow_update::{FlowUpdate, MonitorRequest};
use super::multipart::{Reply, Request};
use super::nx_bits::NICIRA;
use super::{Message, ONF};
use fastpath_switch::FlowFilter;

/// OFPFMC_DELETE.
const DELETE: u8 = 2;
/// NXT_FLOW_MONITOR_CANCEL, the first of the messages.
const NICIRA_CANCEL: u32 = 21;
/// ONFT_FLOW_MONITOR_CANCEL.
const ONF_CANCEL: u32 = 1870;

/// Reads a message of Nicira or of the ONF after its type; `None` if it is another.
pub(crate) fn read(author: u32, kind: u32, mut r: ByteReader<'_>) -> Result<Option<Message>, Fault> {
    let first = if author == ONF { ONF_CANCEL } else { NICIRA_CANCEL };
    let update = match kind.wrapping_sub(first) {
        0 => {
            let cancel =
                MonitorRequest { id: r.u32()?, command: DELETE, flags: 0, filter: FlowFilter::all() };
            r.end()?;
            let request = Request::FlowMonitor(vec![cancel]);
            return Ok(Some(Message::MultipartRequest { flags: 0, request }));
        }
        1 => FlowUpdate::Paused,
        2 => FlowUpdate::Resumed,
        _ => return Ok(None),
    };
    r.end()?;
    Ok(Some(Message::MultipartReply { flags: 0, reply: Reply::FlowMonitor(vec![update]) }))
}

/// Writes the body of a message; returns false, and writes nothing, if it is another.
pub(crate) fn write(author: u32, out: &mut Vec<u8>, message: &Message) -> bool {
    let (place, id) = match message {
        Message::MultipartRequest { request: Request::FlowMonitor(requests), .. } => match requests[..] {
            [MonitorRequest { id, command: DELETE, .. }] => (0, Some(id)),
            _ => return false,
        },
        Message::MultipartReply { reply: Reply::FlowMonitor(updates), .. } => match updates[..] {
            [FlowUpdate::Paused] => (1, None),
            [FlowUpdate::Resumed] => (2, None),
            _ => return false,
        },
        _ => return false,
    };
    out.u32(author);
    out.u32(place + if author == NICIRA { NICIRA_CANCEL } else { ONF_CANCEL });
    id.into_iter().for_each(|id| out.u32(id));
    true
}
