//! Queues and their counters (OpenFlow 1.4 §7.3.5.8, §7.3.5.18). Properties of queues are rates in
//! parts of a rate that a port may not have: they are left out.

use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::multipart::{PacketQueue, QueueStats};

/// Bytes of the description of a queue.
const DESCRIPTION: u16 = 16;

pub(crate) fn read_stats(r: &mut ByteReader<'_>) -> Result<QueueStats, Fault> {
    let mut r = measured(r)?;
    r.skip(6)?;
    QueueStats::read(&mut r)
}

pub(crate) fn write_stats(out: &mut Vec<u8>, stats: &QueueStats) {
    let start = out.len();
    out.u64(0);
    stats.write(out);
    out.length(start, start);
}

/// Reads the description of a queue; its properties are skipped.
pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<PacketQueue, Fault> {
    let (port, number, len) = (r.u32()?, r.u32()?, r.u16()?);
    r.skip(usize::from(len.checked_sub(10).ok_or(Fault::BadLen)?))?;
    Ok(PacketQueue { port, number })
}

pub(crate) fn write(out: &mut Vec<u8>, queue: &PacketQueue) {
    out.u32(queue.port);
    out.u32(queue.number);
    out.u16(DESCRIPTION);
    out.zeros(6);
}
