//! Descriptions and changes of ports (OpenFlow 1.0.0 §5.2.1, §5.3.3, §5.4.4).

use super::port_number;
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::modify::PortMod;
use crate::message::packet::PortDescription;
use fastpath_wire::MacAddr;

/// Bits of features that are the same in both versions: the speeds up to 10 Gbit/s.
const SPEEDS: u32 = 0x7f;
/// Medium, negotiation and pause: four bits lower than in OpenFlow 1.3, which has more speeds.
const OTHERS: u32 = 0xf80;
/// OFPPS_LINK_DOWN, the only bit of the state that both versions have.
const LINK_DOWN: u32 = 1;
/// Bytes of `struct ofp_phy_port`.
pub(crate) const LEN: usize = 48;

/// Reads a port. Its speeds are not in the message.
pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<PortDescription, Fault> {
    let number = port_number::read(r)?;
    let hw_addr = MacAddr(r.array()?);
    let name = r.text(16)?;
    let (config, state) = (r.u32()?, r.u32()? & LINK_DOWN);
    let features = [r.u32()?, r.u32()?, r.u32()?, r.u32()?].map(widen_features);
    Ok(PortDescription { number, hw_addr, name, config, state, features, speeds: [0, 0] })
}

/// Writes a port, which must have a number of OpenFlow 1.0.
pub(crate) fn write(out: &mut Vec<u8>, port: &PortDescription) {
    port_number::write(out, port.number);
    out.extend_from_slice(&port.hw_addr.0);
    out.text(&port.name, 16);
    out.u32(port.config);
    out.u32(port.state & LINK_DOWN);
    port.features.iter().for_each(|features| out.u32(narrow_features(*features)));
}

pub(crate) fn read_mod(mut r: ByteReader<'_>) -> Result<PortMod, Fault> {
    let (port, hw_addr) = (port_number::read(&mut r)?, MacAddr(r.array()?));
    let (config, mask, advertise) = (r.u32()?, r.u32()?, widen_features(r.u32()?));
    r.skip(4)?;
    r.end()?;
    Ok(PortMod { port, hw_addr, config, mask, advertise })
}

pub(crate) fn write_mod(out: &mut Vec<u8>, request: &PortMod) {
    port_number::write(out, request.port);
    out.extend_from_slice(&request.hw_addr.0);
    [request.config, request.mask, narrow_features(request.advertise), 0]
        .into_iter()
        .for_each(|number| out.u32(number));
}

pub(crate) fn widen_features(bits: u32) -> u32 {
    bits & SPEEDS | (bits & OTHERS) << 4
}

fn narrow_features(bits: u32) -> u32 {
    bits & SPEEDS | bits >> 4 & OTHERS
}
