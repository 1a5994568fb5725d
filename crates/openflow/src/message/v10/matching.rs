//! `struct ofp_match`: 40 bytes, and a bit for each field that is not compared.
//!
//! A field without its prerequisite is ignored, as Open vSwitch does (there: "normalization"), and
//! a match that is written leaves out what OpenFlow 1.0 cannot say.
//!
//! Read first: OpenFlow 1.0.0 §5.2.3.

use super::port_number;
use crate::message::bytes::{ByteReader, Write};
use crate::message::fault::Fault;
use fastpath_switch::{Field, FieldMatch, Match, Refusal};
use fastpath_wire::{ethertype, protocol};

/// OFPFW_ALL.
pub(crate) const ALL: u32 = (1 << 22) - 1;
/// OFPFW_ bits.
const IN_PORT: u32 = 1 << 0;
const DL_VLAN: u32 = 1 << 1;
const DL_SRC: u32 = 1 << 2;
const DL_DST: u32 = 1 << 3;
const DL_TYPE: u32 = 1 << 4;
const NW_PROTO: u32 = 1 << 5;
const TP_SRC: u32 = 1 << 6;
const TP_DST: u32 = 1 << 7;
/// The lowest bits of the six that say how many low bits of an address are not compared.
const NW_SRC_SHIFT: u32 = 8;
const NW_DST_SHIFT: u32 = 14;
const DL_VLAN_PCP: u32 = 1 << 20;
const NW_TOS: u32 = 1 << 21;

/// OFP_VLAN_NONE: the packet has no tag.
const VLAN_NONE: u16 = 0xffff;
/// OFPVID_PRESENT.
const PRESENT: u128 = 0x1000;
/// EtherType of RARP, the fields of which cannot be matched.
const RARP: u16 = 0x8035;

/// The fields as they are in the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Raw {
    wildcards: u32,
    in_port: u16,
    dl_src: u128,
    dl_dst: u128,
    dl_vlan: u16,
    dl_vlan_pcp: u8,
    dl_type: u16,
    nw_tos: u8,
    nw_proto: u8,
    nw_src: u32,
    nw_dst: u32,
    tp_src: u16,
    tp_dst: u16,
}

/// A match, and whether it compares every field.
pub(crate) struct MatchRead {
    pub(crate) matching: Match,
    pub(crate) is_exact: bool,
}

/// Reads a match.
pub(crate) fn read(r: &mut ByteReader<'_>) -> Result<MatchRead, Fault> {
    let raw = Raw::read(r)?;
    let matching = raw.matching()?;
    Ok(MatchRead { matching, is_exact: raw.wildcards & ALL == 0 })
}

/// Writes a match.
pub(crate) fn write(out: &mut Vec<u8>, matching: &Match) {
    Raw::of(matching).write(out);
}

impl Raw {
    fn read(r: &mut ByteReader<'_>) -> Result<Raw, Fault> {
        let (wildcards, in_port) = (r.u32()?, r.u16()?);
        let (dl_src, dl_dst) = (r.number(6)?, r.number(6)?);
        let (dl_vlan, dl_vlan_pcp) = (r.u16()?, r.u8()?);
        r.skip(1)?;
        let (dl_type, nw_tos, nw_proto) = (r.u16()?, r.u8()?, r.u8()?);
        r.skip(2)?;
        Ok(Raw {
            wildcards,
            in_port,
            dl_src,
            dl_dst,
            dl_vlan,
            dl_vlan_pcp,
            dl_type,
            nw_tos,
            nw_proto,
            nw_src: r.u32()?,
            nw_dst: r.u32()?,
            tp_src: r.u16()?,
            tp_dst: r.u16()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.u32(self.wildcards);
        out.u16(self.in_port);
        out.number(self.dl_src, 6);
        out.number(self.dl_dst, 6);
        out.u16(self.dl_vlan);
        out.u8(self.dl_vlan_pcp);
        out.u8(0);
        out.u16(self.dl_type);
        out.u8(self.nw_tos);
        out.u8(self.nw_proto);
        out.u16(0);
        out.u32(self.nw_src);
        out.u32(self.nw_dst);
        out.u16(self.tp_src);
        out.u16(self.tp_dst);
    }

    fn compares(&self, bit: u32) -> bool {
        self.wildcards & bit == 0
    }

    /// Returns the bits of an address that are compared.
    fn prefix(&self, shift: u32) -> u128 {
        let ignored = self.wildcards >> shift & 0x3f;
        u32::MAX.checked_shl(ignored).unwrap_or(0).into()
    }

    fn matching(&self) -> Result<Match, Fault> {
        let mut fields = Vec::new();
        let mut exact = |bit: u32, field: Field, value: u128| {
            if self.compares(bit) {
                fields.push(FieldMatch::exact(field, value));
            }
        };
        exact(IN_PORT, Field::InPort, port_number::widen(self.in_port).into());
        exact(DL_SRC, Field::EthSrc, self.dl_src);
        exact(DL_DST, Field::EthDst, self.dl_dst);
        exact(DL_TYPE, Field::EthType, self.dl_type.into());
        self.add_vlan(&mut fields);
        if self.compares(DL_TYPE) {
            self.add_network(&mut fields)?;
        }
        Ok(Match::new(&fields)?)
    }

    fn add_vlan(&self, fields: &mut Vec<FieldMatch>) {
        let has_pcp = self.compares(DL_VLAN_PCP);
        match (self.compares(DL_VLAN), self.dl_vlan) {
            // A priority without a tag is ignored, as Open vSwitch does.
            (true, VLAN_NONE) => return fields.push(FieldMatch::exact(Field::VlanVid, 0)),
            (true, id) => {
                fields.push(FieldMatch::exact(Field::VlanVid, PRESENT | u128::from(id & 0xfff)));
            }
            (false, _) if has_pcp => fields.push(FieldMatch::masked(Field::VlanVid, PRESENT, PRESENT)),
            (false, _) => {}
        }
        if has_pcp {
            fields.push(FieldMatch::exact(Field::VlanPcp, u128::from(self.dl_vlan_pcp & 7)));
        }
    }

    fn add_network(&self, fields: &mut Vec<FieldMatch>) -> Result<(), Fault> {
        let [src, dst] = [(self.nw_src, NW_SRC_SHIFT), (self.nw_dst, NW_DST_SHIFT)].map(|(value, shift)| {
            let mask = self.prefix(shift);
            (u128::from(value) & mask, mask)
        });
        let mut addresses = |of_src, of_dst| {
            for (field, (value, mask)) in [(of_src, src), (of_dst, dst)] {
                if mask != 0 {
                    fields.push(FieldMatch::masked(field, value, mask));
                }
            }
        };
        match self.dl_type {
            ethertype::IPV4 => addresses(Field::Ipv4Src, Field::Ipv4Dst),
            ethertype::ARP => addresses(Field::ArpSpa, Field::ArpTpa),
            // Without these fields the flow would be for more packets than was asked for.
            RARP if (src.1, dst.1) != (0, 0) || self.compares(NW_PROTO) => {
                return Err(Refusal::MatchBadPrerequisite(Field::ArpOp.name()).into());
            }
            _ => {}
        }
        match self.dl_type {
            ethertype::IPV4 | ethertype::IPV6 => {
                if self.compares(NW_TOS) {
                    fields.push(FieldMatch::exact(Field::IpDscp, u128::from(self.nw_tos >> 2)));
                }
                if self.compares(NW_PROTO) {
                    fields.push(FieldMatch::exact(Field::IpProto, self.nw_proto.into()));
                    self.add_transport(fields);
                }
            }
            ethertype::ARP if self.compares(NW_PROTO) => {
                fields.push(FieldMatch::exact(Field::ArpOp, self.nw_proto.into()));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_transport(&self, fields: &mut Vec<FieldMatch>) {
        let Some([src, dst]) = transport(self.dl_type, self.nw_proto) else { return };
        for (bit, field, value) in [(TP_SRC, src, self.tp_src), (TP_DST, dst, self.tp_dst)] {
            if self.compares(bit) {
                fields.push(FieldMatch::exact(field, value.into()));
            }
        }
    }

    /// Returns the match that compares as much of `matching` as OpenFlow 1.0 can.
    fn of(matching: &Match) -> Raw {
        let mut raw =
            Raw { wildcards: ALL & !(0x3f << NW_SRC_SHIFT | 0x3f << NW_DST_SHIFT), ..Raw::default() };
        raw.wildcards |= 32 << NW_SRC_SHIFT | 32 << NW_DST_SHIFT;
        for field in matching.fields() {
            raw.put(field);
        }
        raw
    }

    fn put(&mut self, FieldMatch { field, value, mask }: FieldMatch) {
        let is_exact = mask == field.ones();
        let bit = match field {
            Field::InPort => match port_number::narrow(value as u32) {
                Some(number) => {
                    self.in_port = number;
                    IN_PORT
                }
                None => return,
            },
            Field::VlanVid if is_exact && value == 0 => {
                self.dl_vlan = VLAN_NONE;
                DL_VLAN | DL_VLAN_PCP
            }
            Field::VlanVid if is_exact => {
                self.dl_vlan = value as u16 & 0xfff;
                DL_VLAN
            }
            Field::VlanPcp => {
                self.dl_vlan_pcp = value as u8;
                DL_VLAN_PCP
            }
            Field::Ipv4Src | Field::ArpSpa => {
                return put_address(&mut self.wildcards, &mut self.nw_src, NW_SRC_SHIFT, value, mask);
            }
            Field::Ipv4Dst | Field::ArpTpa => {
                return put_address(&mut self.wildcards, &mut self.nw_dst, NW_DST_SHIFT, value, mask);
            }
            _ if !is_exact => return,
            Field::EthSrc => {
                self.dl_src = value;
                DL_SRC
            }
            Field::EthDst => {
                self.dl_dst = value;
                DL_DST
            }
            Field::EthType => {
                self.dl_type = value as u16;
                DL_TYPE
            }
            Field::IpDscp => {
                self.nw_tos = (value as u8) << 2;
                NW_TOS
            }
            Field::IpProto => {
                self.nw_proto = value as u8;
                NW_PROTO
            }
            Field::ArpOp if value < 0x100 => {
                self.nw_proto = value as u8;
                NW_PROTO
            }
            Field::TcpSrc | Field::UdpSrc | Field::SctpSrc | Field::Icmpv4Type | Field::Icmpv6Type => {
                self.tp_src = value as u16;
                TP_SRC
            }
            Field::TcpDst | Field::UdpDst | Field::SctpDst | Field::Icmpv4Code | Field::Icmpv6Code => {
                self.tp_dst = value as u16;
                TP_DST
            }
            _ => return,
        };
        self.wildcards &= !bit;
    }
}

/// Compares an address under a prefix; not at all under another mask.
fn put_address(wildcards: &mut u32, address: &mut u32, shift: u32, value: u128, mask: u128) {
    let ignored = (mask as u32).trailing_zeros();
    if u32::MAX.checked_shl(ignored).is_some_and(|prefix| prefix == mask as u32) {
        *wildcards = *wildcards & !(0x3f << shift) | ignored << shift;
        *address = value as u32;
    }
}

/// Returns the fields that `tp_src` and `tp_dst` mean in packets of these types.
fn transport(dl_type: u16, nw_proto: u8) -> Option<[Field; 2]> {
    Some(match (dl_type, nw_proto) {
        (_, protocol::TCP) => [Field::TcpSrc, Field::TcpDst],
        (_, protocol::UDP) => [Field::UdpSrc, Field::UdpDst],
        (_, protocol::SCTP) => [Field::SctpSrc, Field::SctpDst],
        (ethertype::IPV4, protocol::ICMP) => [Field::Icmpv4Type, Field::Icmpv4Code],
        (ethertype::IPV6, protocol::ICMPV6) => [Field::Icmpv6Type, Field::Icmpv6Code],
        _ => return None,
    })
}
