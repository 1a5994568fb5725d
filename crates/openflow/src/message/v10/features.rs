//! The features reply, which lists the ports (OpenFlow 1.0.0 §5.3.1).

use super::port;
use crate::message::bytes::{ByteReader, Write};
use crate::message::control::Features;
use crate::message::fault::Fault;

pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<Features, Fault> {
    let (datapath_id, buffers, tables) = (r.u64()?, r.u32()?, r.u8()?);
    r.skip(3)?;
    let (capabilities, actions) = (r.u32()?, r.u32()?);
    let mut ports = Vec::new();
    while !r.is_empty() {
        ports.push(port::read(r)?);
    }
    Ok(Features { datapath_id, buffers, tables, auxiliary_id: 0, capabilities, actions, ports })
}

/// Writes the reply. Ports that find no room in one message are left out.
pub(crate) fn write(out: &mut Vec<u8>, features: &Features) {
    const PORTS_MAX: usize = (u16::MAX as usize - 32) / port::LEN;
    out.u64(features.datapath_id);
    out.u32(features.buffers);
    out.u8(features.tables);
    out.zeros(3);
    out.u32(features.capabilities);
    out.u32(features.actions);
    features.ports.iter().take(PORTS_MAX).for_each(|one| port::write(out, one));
}
