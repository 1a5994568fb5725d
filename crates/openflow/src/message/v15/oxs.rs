//! Counters and ages as lists of fields (OXS, OpenFlow 1.5.1 §7.2.4).

use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::packet::{read_age, write_age};
use fastpath_switch::Counters;
use fastpath_units::Duration;

/// OFPXSC_OPENFLOW_BASIC.
const BASIC: u16 = 0x8002;
const DURATION: u8 = 0;
const IDLE_TIME: u8 = 1;
const FLOW_COUNT: u8 = 3;
const PACKET_COUNT: u8 = 4;
const BYTE_COUNT: u8 = 5;

/// Statistics of a flow, or of several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) age: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) flows: Option<u32>,
    pub(crate) counters: Counters,
}

/// Reads statistics with their padding. Unknown fields are skipped.
pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Statistics, Fault> {
    reader.skip(2)?;
    let len = usize::from(reader.u16()?);
    let mut r = reader.part(len.checked_sub(4).ok_or(Fault::BadLen)?, Fault::BadLen)?;
    reader.skip(len.next_multiple_of(8) - len)?;
    let mut statistics = Statistics::default();
    while !r.is_empty() {
        let (class, head, len) = (r.u16()?, r.u8()?, usize::from(r.u8()?));
        let mut body = r.part(len, Fault::BadLen)?;
        match (class, head >> 1) {
            (BASIC, DURATION) => statistics.age = Some(read_age(&mut body)?),
            (BASIC, IDLE_TIME) => statistics.idle = Some(read_age(&mut body)?),
            (BASIC, FLOW_COUNT) => statistics.flows = Some(body.u32()?),
            (BASIC, PACKET_COUNT) => statistics.counters.packets = body.u64()?,
            (BASIC, BYTE_COUNT) => statistics.counters.bytes = body.u64()?,
            _ => {
                body.rest();
            }
        }
        body.end()?;
    }
    Ok(statistics)
}

/// Writes statistics with their padding.
pub(crate) fn write(out: &mut Vec<u8>, statistics: &Statistics) {
    let start = out.len();
    out.u32(0);
    let ages = [(DURATION, statistics.age), (IDLE_TIME, statistics.idle)];
    for (number, age) in ages.into_iter().filter_map(|(number, age)| Some((number, age?))) {
        write_header(out, number, 8);
        write_age(out, age);
    }
    if let Some(flows) = statistics.flows {
        write_header(out, FLOW_COUNT, 4);
        out.u32(flows);
    }
    let Counters { packets, bytes } = statistics.counters;
    for (number, count) in [(PACKET_COUNT, packets), (BYTE_COUNT, bytes)] {
        write_header(out, number, 8);
        out.u64(count);
    }
    out.length(start, start + 2);
    out.pad(start);
}

fn write_header(out: &mut Vec<u8>, number: u8, len: u8) {
    out.u16(BASIC);
    out.u8(number << 1);
    out.u8(len);
}
