//! Ports, their counters and their changes (OpenFlow 1.4 §7.2.1, §7.3.4.4, §7.3.5.7): what only
//! some ports have is in properties.

use super::properties;
use crate::message::bytes::{ByteReader, Write, measured};
use crate::message::fault::Fault;
use crate::message::modify::PortMod;
use crate::message::multipart::PortStats;
use crate::message::packet::{PortDescription, read_age, write_age};
use fastpath_switch::PortCounters;
use fastpath_wire::MacAddr;

/// OFPPDPT_ETHERNET, OFPPMPT_ETHERNET, OFPPSPT_ETHERNET.
const ETHERNET: u16 = 0;

/// Reads a port. Properties other than that of Ethernet are skipped.
pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<PortDescription, Fault> {
    let (number, len) = (r.u32()?, usize::from(r.u16()?));
    let mut r = r.part(len.checked_sub(6).ok_or(Fault::BadLen)?, Fault::BadLen)?;
    r.skip(2)?;
    let hw_addr = MacAddr(r.array()?);
    r.skip(2)?;
    let name = r.text(16)?;
    let (config, state) = (r.u32()?, r.u32()?);
    let (mut features, mut speeds) = ([0; 4], [0; 2]);
    properties::read(&mut r, |kind, body| {
        if kind == ETHERNET {
            body.skip(4)?;
            for number in features.iter_mut().chain(&mut speeds) {
                *number = body.u32()?;
            }
        }
        Ok(())
    })?;
    Ok(PortDescription { number, hw_addr, name, config, state, features, speeds })
}

pub(crate) fn write(out: &mut Vec<u8>, port: &PortDescription) {
    let start = out.len();
    out.u32(port.number);
    out.u32(0);
    out.extend_from_slice(&port.hw_addr.0);
    out.u16(0);
    out.text(&port.name, 16);
    out.u32(port.config);
    out.u32(port.state);
    properties::write(out, ETHERNET, |out| {
        out.u32(0);
        port.features.iter().chain(&port.speeds).for_each(|number| out.u32(*number));
    });
    out.length(start, start + 4);
}

pub(crate) fn read_mod(mut r: ByteReader<'_>) -> Result<PortMod, Fault> {
    let port = r.u32()?;
    r.skip(4)?;
    let hw_addr = MacAddr(r.array()?);
    r.skip(2)?;
    let mut request = PortMod { port, hw_addr, config: r.u32()?, mask: r.u32()?, advertise: 0 };
    properties::read(&mut r, |kind, body| match kind {
        ETHERNET => {
            request.advertise = body.u32()?;
            body.end()
        }
        other => Err(properties::unknown(other, body)),
    })?;
    Ok(request)
}

pub(crate) fn write_mod(out: &mut Vec<u8>, request: &PortMod) {
    out.u32(request.port);
    out.u32(0);
    out.extend_from_slice(&request.hw_addr.0);
    out.u16(0);
    out.u32(request.config);
    out.u32(request.mask);
    properties::write(out, ETHERNET, |out| out.u32(request.advertise));
}

pub(crate) fn read_stats(r: &mut ByteReader<'_>) -> Result<PortStats, Fault> {
    let mut r = measured(r)?;
    r.skip(2)?;
    let (port, age) = (r.u32()?, read_age(&mut r)?);
    let counters = PortCounters {
        rx_packets: r.u64()?,
        tx_packets: r.u64()?,
        rx_bytes: r.u64()?,
        tx_bytes: r.u64()?,
        rx_dropped: r.u64()?,
        tx_dropped: r.u64()?,
    };
    r.skip(2 * 8)?;
    properties::read(&mut r, |_, _| Ok(()))?;
    Ok(PortStats { port, counters, age })
}

/// Writes the counters of a port. The error counters are 0.
pub(crate) fn write_stats(out: &mut Vec<u8>, stats: &PortStats) {
    let (c, start) = (&stats.counters, out.len());
    out.u32(0);
    out.u32(stats.port);
    write_age(out, stats.age);
    let counts = [c.rx_packets, c.tx_packets, c.rx_bytes, c.tx_bytes, c.rx_dropped, c.tx_dropped];
    counts.into_iter().for_each(|count| out.u64(count));
    out.zeros(2 * 8);
    properties::write(out, ETHERNET, |out| out.zeros(4 + 4 * 8));
    out.length(start, start);
}
