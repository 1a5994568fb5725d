//! Actions of OpenFlow 1.0 as those of this crate.
//!
//! | OpenFlow 1.0 | here |
//! |---|---|
//! | set a VLAN id or priority | set-field; push and set-field where the match says that there is no tag; [`Action::ModVlanVid`] or [`Action::ModVlanPcp`] where it does not say |
//! | set a transport port | set-field of the match's protocol; where it does not say, of TCP, UDP and SCTP: those of other protocols do nothing |
//! | enqueue | [`Extension::Enqueue`] |
//!
//! What is written leaves out the actions that OpenFlow 1.0 does not have.
//!
//! Read first: OpenFlow 1.0.0 §5.2.4.

use super::port_number;
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use crate::message::nx_action;
use fastpath_switch::{Action, Extension, Field, Match, Refusal, port};
use fastpath_wire::{ethertype, protocol};
use std::sync::Arc;

/// OFPAT_ numbers.
const OUTPUT: u16 = 0;
const SET_VLAN_VID: u16 = 1;
const SET_VLAN_PCP: u16 = 2;
const STRIP_VLAN: u16 = 3;
const SET_DL_SRC: u16 = 4;
const SET_DL_DST: u16 = 5;
const SET_NW_SRC: u16 = 6;
const SET_NW_DST: u16 = 7;
const SET_NW_TOS: u16 = 8;
const SET_TP_SRC: u16 = 9;
const SET_TP_DST: u16 = 10;
const ENQUEUE: u16 = 11;
const VENDOR: u16 = 0xffff;
/// A bit for each type from OFPAT_OUTPUT to OFPAT_ENQUEUE.
pub(crate) const SUPPORTED: u32 = (1 << (ENQUEUE + 1)) - 1;

/// OFPVID_PRESENT.
const PRESENT: u16 = 0x1000;

/// What is known of the packets of an action list.
struct PacketFacts {
    /// Whether they have a tag, where that is known.
    is_tagged: Option<bool>,
    ip_proto: Option<u8>,
}

/// Reads actions until the end. `matching` is that of their flow; the packets of a packet-out may
/// be any.
pub(crate) fn read(mut r: ByteReader<'_>, matching: &Match) -> Result<Vec<Action>, Fault> {
    let mut known = PacketFacts::of(matching);
    let mut actions = Vec::new();
    while !r.is_empty() {
        let (kind, len) = (r.u16()?, usize::from(r.u16()?));
        if len < 8 || !len.is_multiple_of(8) || len - 4 > r.len() {
            return Err(Refusal::ActionBadLen(kind).into());
        }
        let body = r.part(len - 4, Fault::ActionBadLen)?;
        read_one(kind, body, &mut known, &mut actions)?;
    }
    Ok(actions)
}

fn read_one(
    kind: u16,
    mut r: ByteReader<'_>,
    known: &mut PacketFacts,
    actions: &mut Vec<Action>,
) -> Result<(), Fault> {
    let wanted = match kind {
        SET_DL_SRC | SET_DL_DST | ENQUEUE => 12,
        VENDOR => {
            actions.push(nx_action::read(r, |inside| read(inside, &Match::any()))?);
            return Ok(());
        }
        OUTPUT..ENQUEUE => 4,
        _ => return Err(Refusal::ActionBadType(kind).into()),
    };
    if r.len() != wanted {
        return Err(Refusal::ActionBadLen(kind).into());
    }
    let bounded = |value: u16, ones: u16| match value & !ones {
        0 => Ok(value),
        _ => Err(Fault::from(Refusal::ActionBadArgument(value.into()))),
    };
    match kind {
        OUTPUT => actions.push(Action::Output { port: port_number::read(&mut r)?, max_len: r.u16()? }),
        SET_VLAN_VID => {
            let id = bounded(r.u16()?, 0xfff)?;
            known.set_tag(Field::VlanVid, id | PRESENT, Action::ModVlanVid(id), actions);
        }
        SET_VLAN_PCP => {
            let level = bounded(r.u8()?.into(), 7)?;
            known.set_tag(Field::VlanPcp, level, Action::ModVlanPcp(level as u8), actions);
        }
        STRIP_VLAN => {
            // There may be another tag below.
            known.is_tagged = known.is_tagged.filter(|is_tagged| !is_tagged);
            actions.push(Action::PopVlan);
        }
        SET_DL_SRC => actions.push(Action::SetField(Field::EthSrc, r.number(6)?)),
        SET_DL_DST => actions.push(Action::SetField(Field::EthDst, r.number(6)?)),
        SET_NW_SRC => actions.push(Action::SetField(Field::Ipv4Src, r.number(4)?)),
        SET_NW_DST => actions.push(Action::SetField(Field::Ipv4Dst, r.number(4)?)),
        SET_NW_TOS => {
            let tos = bounded(r.u8()?.into(), 0xfc)?;
            actions.push(Action::SetField(Field::IpDscp, u128::from(tos >> 2)));
        }
        SET_TP_SRC => known.set_port(SRC_PORTS, r.u16()?, actions),
        SET_TP_DST => known.set_port(DST_PORTS, r.u16()?, actions),
        _ => actions.push(read_enqueue(&mut r)?),
    }
    Ok(())
}

fn read_enqueue(r: &mut ByteReader<'_>) -> Result<Action, Fault> {
    let to = port_number::read(r)?;
    r.skip(6)?;
    let queue = r.u32()?;
    if !has_queues(to) {
        return Err(Refusal::ActionBadOutPort(to).into());
    }
    Ok(Action::Extension(Arc::new(Extension::Enqueue { port: to, queue })))
}

/// Returns whether packets may be enqueued to a port: an ordinary one, that of entry, or LOCAL.
fn has_queues(to: u32) -> bool {
    port_number::is_ordinary(to) || matches!(to, port::IN_PORT | port::LOCAL)
}

/// The fields of a transport port, of TCP, UDP and SCTP.
const SRC_PORTS: [Field; 3] = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc];
const DST_PORTS: [Field; 3] = [Field::TcpDst, Field::UdpDst, Field::SctpDst];

impl PacketFacts {
    fn of(matching: &Match) -> PacketFacts {
        let tag = matching.field(Field::VlanVid);
        let is_tagged = tag.and_then(|tag| match tag.value & u128::from(PRESENT) {
            0 => (tag.mask & u128::from(PRESENT) != 0).then_some(false),
            _ => Some(true),
        });
        let ip_proto = matching.field(Field::IpProto).map(|proto| proto.value as u8);
        PacketFacts { is_tagged, ip_proto }
    }

    /// Adds what sets a field of the tag, or pushes a tag with it. `either` does what the packet
    /// needs.
    fn set_tag(&mut self, field: Field, value: u16, either: Action, actions: &mut Vec<Action>) {
        match self.is_tagged {
            None => actions.push(either),
            Some(is_tagged) => {
                actions.extend((!is_tagged).then_some(Action::PushVlan(ethertype::VLAN)));
                actions.push(Action::SetField(field, value.into()));
            }
        }
        self.is_tagged = Some(true);
    }

    fn set_port(&self, [tcp, udp, sctp]: [Field; 3], number: u16, actions: &mut Vec<Action>) {
        let set = |field| Action::SetField(field, number.into());
        match self.ip_proto {
            Some(protocol::TCP) => actions.push(set(tcp)),
            Some(protocol::UDP) => actions.push(set(udp)),
            Some(protocol::SCTP) => actions.push(set(sctp)),
            _ => actions.extend([tcp, udp, sctp].map(set)),
        }
    }
}

/// Writes actions.
pub(crate) fn write(out: &mut Vec<u8>, mut actions: &[Action]) {
    while !actions.is_empty() {
        let used = write_first(out, actions);
        actions = &actions[used..];
    }
}

/// Writes the first of these actions. Returns how many of them that was.
fn write_first(out: &mut Vec<u8>, actions: &[Action]) -> usize {
    use Action::SetField;
    match actions {
        [SetField(a, first), SetField(b, second), SetField(c, third), ..]
            if first == second && second == third && [SRC_PORTS, DST_PORTS].contains(&[*a, *b, *c]) =>
        {
            write_one(out, &actions[0]);
            3
        }
        [first, ..] => {
            write_one(out, first);
            1
        }
        [] => 0,
    }
}

fn write_one(out: &mut Vec<u8>, one: &Action) {
    match *one {
        Action::Output { port, max_len } => {
            if let Some(number) = port_number::narrow(port) {
                action(out, OUTPUT, 8, |out| {
                    out.u16(number);
                    out.u16(max_len);
                });
            }
        }
        // A push is part of setting what follows.
        Action::ModVlanVid(id) => action(out, SET_VLAN_VID, 8, |out| out.u16(id)),
        Action::ModVlanPcp(level) => action(out, SET_VLAN_PCP, 8, |out| out.u8(level)),
        Action::PopVlan => action(out, STRIP_VLAN, 8, |_| {}),
        Action::SetField(field, value) if has_set(field) => write_set_field(out, field, value),
        Action::Extension(ref extension) => match **extension {
            Extension::Enqueue { port, queue } if has_queues(port) && port_number::narrow(port).is_some() => {
                action(out, ENQUEUE, 16, |out| {
                    port_number::write(out, port);
                    out.zeros(6);
                    out.u32(queue);
                });
            }
            _ => nx_action::write(out, extension, write),
        },
        ref other => nx_action::write_for_10(out, other),
    }
}

/// Returns whether OpenFlow 1.0 has an action that sets a field.
fn has_set(field: Field) -> bool {
    use Field::{EthDst, EthSrc, IpDscp, Ipv4Dst, Ipv4Src, VlanPcp, VlanVid};
    matches!(field, VlanVid | VlanPcp | EthSrc | EthDst | Ipv4Src | Ipv4Dst | IpDscp)
        || SRC_PORTS.contains(&field)
        || DST_PORTS.contains(&field)
}

fn write_set_field(out: &mut Vec<u8>, field: Field, value: u128) {
    let (kind, len, bytes, value) = match field {
        Field::VlanVid => (SET_VLAN_VID, 8, 2, value & 0xfff),
        Field::VlanPcp => (SET_VLAN_PCP, 8, 1, value),
        Field::EthSrc => (SET_DL_SRC, 16, 6, value),
        Field::EthDst => (SET_DL_DST, 16, 6, value),
        Field::Ipv4Src => (SET_NW_SRC, 8, 4, value),
        Field::Ipv4Dst => (SET_NW_DST, 8, 4, value),
        Field::IpDscp => (SET_NW_TOS, 8, 1, value << 2),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => (SET_TP_SRC, 8, 2, value),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => (SET_TP_DST, 8, 2, value),
        _ => return,
    };
    action(out, kind, len, |out| out.number(value, bytes));
}

/// Writes one action of `len` bytes.
fn action(out: &mut Vec<u8>, kind: u16, len: u16, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.u16(kind);
    out.u16(len);
    body(out);
    out.zeros(start + usize::from(len) - out.len());
}
