//! Messages that change a switch: flow, group, meter, port and table mods (§7.3.4).

use super::action::{read_buckets, write_buckets};
use super::bytes::{ByteReader, Write};
use super::fault::Fault;
use super::flow_form::FlowForm;
use super::oxm;
use fastpath_switch::{
    Band, BandKind, FlowCommand, FlowMod, GroupCommand, GroupKind, GroupMod, MeterCommand, MeterMod, Refusal,
    Version,
};
use fastpath_wire::MacAddr;

/// No buffered packet (OFP_NO_BUFFER).
pub const NO_BUFFER: u32 = u32::MAX;

/// OFPT_PORT_MOD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortMod {
    /// The number of the port.
    pub port: u32,
    /// Its hardware address, as a check.
    pub hw_addr: MacAddr,
    /// New values of the OFPPC_ bits.
    pub config: u32,
    /// Which bits to change.
    pub mask: u32,
    /// Features to advertise; 0 for no change.
    pub advertise: u32,
}

pub(crate) fn read_flow_mod(mut r: ByteReader<'_>, form: &FlowForm) -> Result<(u32, FlowMod), Fault> {
    let (cookie, cookie_mask, table_id, command) = (r.u64()?, r.u64()?, r.u8()?, r.u8()?);
    let (idle_timeout, hard_timeout, priority, buffer_id) = (r.u16()?, r.u16()?, r.u16()?, r.u32()?);
    let (out_port, out_group, flags) = (r.u32()?, r.u32()?, r.u16()?);
    let importance = Some(r.u16()?).filter(|_| form.has_importance).unwrap_or(0);
    let command = match command {
        0 => FlowCommand::Add,
        1 => FlowCommand::Modify,
        2 => FlowCommand::ModifyStrict,
        3 => FlowCommand::Delete,
        4 => FlowCommand::DeleteStrict,
        _ => return Err(Refusal::FlowBadCommand(command).into()),
    };
    let matching = oxm::read_match(&mut r)?;
    let instructions = (form.read)(r)?;
    let request = FlowMod {
        command,
        table_id,
        cookie,
        cookie_mask,
        new_cookie: None,
        idle_timeout,
        hard_timeout,
        importance,
        priority,
        out_port,
        out_group,
        flags,
        matching,
        instructions,
        version: Version::V13,
    };
    Ok((buffer_id, request))
}

pub(crate) fn write_flow_mod(out: &mut Vec<u8>, buffer_id: u32, request: &FlowMod, form: &FlowForm) {
    out.u64(request.cookie);
    out.u64(request.cookie_mask);
    out.u8(request.table_id);
    out.u8(request.command as u8);
    [request.idle_timeout, request.hard_timeout, request.priority]
        .into_iter()
        .for_each(|number| out.u16(number));
    [buffer_id, request.out_port, request.out_group].into_iter().for_each(|number| out.u32(number));
    out.u16(request.flags);
    out.u16(if form.has_importance { request.importance } else { 0 });
    oxm::write_match(out, &request.matching);
    (form.write)(out, &request.instructions);
}

pub(crate) fn group_kind(number: u8) -> Option<GroupKind> {
    Some(match number {
        0 => GroupKind::All,
        1 => GroupKind::Select,
        2 => GroupKind::Indirect,
        3 => GroupKind::FastFailover,
        _ => return None,
    })
}

pub(crate) fn read_group_mod(mut r: ByteReader<'_>) -> Result<GroupMod, Fault> {
    let (command, kind) = (r.u16()?, r.u8()?);
    r.skip(1)?;
    let id = r.u32()?;
    let command = match command {
        0 => GroupCommand::Add,
        1 => GroupCommand::Modify,
        2 => GroupCommand::Delete,
        _ => return Err(Refusal::GroupBadCommand(command).into()),
    };
    let kind = group_kind(kind).ok_or(Refusal::GroupBadType(kind))?;
    let buckets = read_buckets(r)?;
    Ok(GroupMod { command, id, kind, buckets })
}

pub(crate) fn write_group_mod(out: &mut Vec<u8>, request: &GroupMod) {
    out.u16(match request.command {
        GroupCommand::Add => 0,
        GroupCommand::Modify => 1,
        GroupCommand::Delete => 2,
        other => panic!("{other:?} is a command of OpenFlow 1.5"),
    });
    out.u8(request.kind as u8);
    out.u8(0);
    out.u32(request.id);
    write_buckets(out, &request.buckets);
}

pub(crate) fn read_meter_mod(mut r: ByteReader<'_>) -> Result<MeterMod, Fault> {
    let (command, flags, id) = (r.u16()?, r.u16()?, r.u32()?);
    let command = match command {
        0 => MeterCommand::Add,
        1 => MeterCommand::Modify,
        2 => MeterCommand::Delete,
        _ => return Err(Refusal::MeterBadCommand(command).into()),
    };
    Ok(MeterMod { command, id, flags, bands: read_bands(r)? })
}

pub(crate) fn write_meter_mod(out: &mut Vec<u8>, request: &MeterMod) {
    out.u16(match request.command {
        MeterCommand::Add => 0,
        MeterCommand::Modify => 1,
        MeterCommand::Delete => 2,
    });
    out.u16(request.flags);
    out.u32(request.id);
    request.bands.iter().for_each(|band| write_band(out, band));
}

/// Reads meter bands until the end.
pub(crate) fn read_bands(mut r: ByteReader<'_>) -> Result<Vec<Band>, Fault> {
    let mut bands = Vec::new();
    while !r.is_empty() {
        let (kind, len) = (r.u16()?, usize::from(r.u16()?));
        if len != 16 {
            return Err(Fault::BandBadLen);
        }
        let (rate, burst) = (r.u32()?, r.u32()?);
        let mut rest = r.part(4, Fault::BandBadLen)?;
        let kind = match kind {
            1 => BandKind::Drop,
            2 => BandKind::DscpRemark(rest.u8()?),
            _ => return Err(Refusal::MeterBadBand(kind).into()),
        };
        bands.push(Band { kind, rate, burst });
    }
    Ok(bands)
}

pub(crate) fn write_band(out: &mut Vec<u8>, band: &Band) {
    let (kind, level) = match band.kind {
        BandKind::Drop => (1, 0),
        BandKind::DscpRemark(levels) => (2, levels),
    };
    out.u16(kind);
    out.u16(16);
    out.u32(band.rate);
    out.u32(band.burst);
    out.u8(level);
    out.zeros(3);
}

pub(crate) fn read_port_mod(mut r: ByteReader<'_>) -> Result<PortMod, Fault> {
    let port = r.u32()?;
    r.skip(4)?;
    let hw_addr = MacAddr(r.array()?);
    r.skip(2)?;
    let request = PortMod { port, hw_addr, config: r.u32()?, mask: r.u32()?, advertise: r.u32()? };
    r.skip(4)?;
    r.end()?;
    Ok(request)
}

pub(crate) fn write_port_mod(out: &mut Vec<u8>, request: &PortMod) {
    out.u32(request.port);
    out.u32(0);
    out.extend_from_slice(&request.hw_addr.0);
    out.u16(0);
    [request.config, request.mask, request.advertise, 0].into_iter().for_each(|number| out.u32(number));
}
