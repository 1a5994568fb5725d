//! Messages of the experimenter Nicira that have the same form in every version of OpenFlow: roles,
//! and what a controller says about the connection.
//!
//! To add a message: its variant, and its arms in [`Nicira::read`], [`Nicira::kind`] and
//! [`Nicira::write`]. What a switch does with it is in `agent/nicira.rs`.
//!
//! Read first: `nicira-ext.h` of Open vSwitch.

use super::bytes::{ByteReader, Write};
use super::control::{Async, Role};
use super::fault::Fault;

/// A message of Nicira.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nicira {
    /// NXT_ROLE_REQUEST: the controller takes a role.
    RoleRequest(Role),
    /// NXT_ROLE_REPLY: the role of the controller.
    RoleReply(Role),
    /// NXT_SET_FLOW_FORMAT: how messages about flows say the match.
    SetFlowFormat(FlowFormat),
    /// NXT_FLOW_MOD_TABLE_ID: whether flow mods have the number of a table in their command.
    FlowModTableId(bool),
    /// NXT_SET_PACKET_IN_FORMAT: how packet-ins look.
    SetPacketInFormat(PacketInFormat),
    /// NXT_SET_ASYNC_CONFIG: which asynchronous messages the controller receives.
    SetAsync(Async),
    /// NXT_SET_CONTROLLER_ID: the number by which actions name this controller.
    SetControllerId(u16),
}

/// How messages about flows say the match (NXFF_).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FlowFormat {
    /// As the version of OpenFlow does.
    #[default]
    Standard,
    /// As a list of fields (NXM).
    Nxm,
}

/// How packet-ins look (NXPIF_).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PacketInFormat {
    /// As the version of OpenFlow says.
    #[default]
    Standard,
    /// NXT_PACKET_IN.
    Nxt,
    /// NXT_PACKET_IN2.
    Nxt2,
}

impl Nicira {
    /// Returns the type (NXT_).
    pub fn kind(&self) -> u32 {
        match self {
            Nicira::RoleRequest(_) => 10,
            Nicira::RoleReply(_) => 11,
            Nicira::SetFlowFormat(_) => 12,
            Nicira::FlowModTableId(_) => 15,
            Nicira::SetPacketInFormat(_) => 16,
            Nicira::SetAsync(_) => 19,
            Nicira::SetControllerId(_) => 20,
        }
    }

    /// Reads the message of type `kind`, after the type.
    pub(crate) fn read(kind: u32, mut r: ByteReader<'_>) -> Result<Nicira, Fault> {
        let message = match kind {
            10 => Nicira::RoleRequest(read_role(&mut r)?),
            11 => Nicira::RoleReply(read_role(&mut r)?),
            12 => Nicira::SetFlowFormat(match r.u32()? {
                0 => FlowFormat::Standard,
                2 => FlowFormat::Nxm,
                other => return Err(Fault::FormatUnsupported(other)),
            }),
            15 => {
                let is_on = r.u8()? != 0;
                r.skip(7)?;
                Nicira::FlowModTableId(is_on)
            }
            16 => Nicira::SetPacketInFormat(match r.u32()? {
                0 => PacketInFormat::Standard,
                1 => PacketInFormat::Nxt,
                2 => PacketInFormat::Nxt2,
                other => return Err(Fault::FormatUnsupported(other)),
            }),
            19 => Nicira::SetAsync(Async::read(&mut r)?),
            20 => {
                r.skip(6)?;
                Nicira::SetControllerId(r.u16()?)
            }
            _ => return Err(Fault::BadSubtype(kind)),
        };
        r.end()?;
        Ok(message)
    }

    /// Writes the message after its type.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Nicira::RoleRequest(role) | Nicira::RoleReply(role) => out.u32(match role {
                // There is no request that changes nothing.
                Role::Equal | Role::NoChange => 0,
                Role::Master => 1,
                Role::Slave => 2,
            }),
            Nicira::SetFlowFormat(format) => out.u32(match format {
                FlowFormat::Standard => 0,
                FlowFormat::Nxm => 2,
            }),
            Nicira::FlowModTableId(is_on) => {
                out.u8((*is_on).into());
                out.zeros(7);
            }
            Nicira::SetPacketInFormat(format) => out.u32(match format {
                PacketInFormat::Standard => 0,
                PacketInFormat::Nxt => 1,
                PacketInFormat::Nxt2 => 2,
            }),
            Nicira::SetAsync(masks) => masks.write(out),
            Nicira::SetControllerId(id) => {
                out.zeros(6);
                out.u16(*id);
            }
        }
    }
}

fn read_role(r: &mut ByteReader<'_>) -> Result<Role, Fault> {
    match r.u32()? {
        0 => Ok(Role::Equal),
        1 => Ok(Role::Master),
        2 => Ok(Role::Slave),
        other => Err(Fault::RoleBad(other)),
    }
}
