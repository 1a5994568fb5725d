//! The match part of a flow: protocol keywords such as `tcp`, and fields by the names of OpenFlow
//! and of ovs-ofctl.

use crate::ct_state::parse_state;
use crate::{PortNames, Wrong, subfield, value, wrong};
use fastpath_switch::Refusal;
use fastpath_switch::field::{FIELDS, Field, REGISTERS, VLAN_PRESENT};
use fastpath_switch::nxm::{self, NamedBits};
use fastpath_switch::port;
use fastpath_switch::{FieldMatch, Match};

/// The keywords for EtherType and protocol: name, EtherType, protocol.
pub(crate) const PROTOCOLS: &[(&str, u16, Option<u8>)] = &[
    ("tcp", 0x0800, Some(6)),
    ("udp", 0x0800, Some(17)),
    ("icmp", 0x0800, Some(1)),
    ("sctp", 0x0800, Some(132)),
    ("tcp6", 0x86dd, Some(6)),
    ("udp6", 0x86dd, Some(17)),
    ("icmp6", 0x86dd, Some(58)),
    ("sctp6", 0x86dd, Some(132)),
    ("ip", 0x0800, None),
    ("ipv6", 0x86dd, None),
    ("arp", 0x0806, None),
    ("mpls", 0x8847, None),
    ("mplsm", 0x8848, None),
];

/// The reserved ports, by the names of ovs-ofctl.
pub(crate) const RESERVED: &[(&str, u32)] = &[
    ("in_port", port::IN_PORT),
    ("table", port::TABLE),
    ("normal", port::NORMAL),
    ("flood", port::FLOOD),
    ("all", port::ALL),
    ("controller", port::CONTROLLER),
    ("local", port::LOCAL),
];

/// The words for fragments: value and mask of `nw_frag`.
pub(crate) const FRAGMENTS: &[(&str, u128, u128)] =
    &[("no", 0, 3), ("yes", 1, 1), ("first", 1, 3), ("later", 3, 3), ("not_later", 0, 2)];

/// The flags of TCP, from bit 0 (RFC 9293 §3.1, RFC 3168, RFC 7560 for the ninth).
const TCP_FLAGS: [&str; 12] =
    ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"];

/// What a match says of its packets: names like `tp_dst` and actions like `mod_vlan_vid` depend on
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Meaning {
    pub(crate) eth_type: Option<u16>,
    pub(crate) ip_proto: Option<u8>,
    /// Whether the packets have a VLAN tag; `None`: some may.
    pub(crate) is_tagged: Option<bool>,
}

/// The fields parsed so far. Names are resolved when all are parsed.
pub(crate) struct Fields<'a> {
    ports: &'a PortNames,
    unresolved: Vec<(&'a str, &'a str)>,
    found: Vec<FieldMatch>,
    meaning: Meaning,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(ports: &'a PortNames) -> Fields<'a> {
        Fields { ports, unresolved: Vec::new(), found: Vec::new(), meaning: Meaning::default() }
    }

    /// Adds one `KEY=VALUE` or keyword of the match.
    pub(crate) fn add(&mut self, key: &'a str, text: Option<&'a str>) -> Result<(), Wrong> {
        if let Some((_, eth_type, ip_proto)) =
            PROTOCOLS.iter().find(|(name, ..)| *name == key && text.is_none())
        {
            self.push(FieldMatch::exact(Field::EthType, (*eth_type).into()));
            if let Some(protocol) = ip_proto {
                self.push(FieldMatch::exact(Field::IpProto, (*protocol).into()));
            }
            return Ok(());
        }
        let Some(text) = text else {
            return wrong(
                format!("'{key}' is neither a protocol nor a setting"),
                "write FIELD=VALUE, or ip, tcp, udp, arp, …",
            );
        };
        match key {
            "dl_type" | "eth_type" => {
                self.push(FieldMatch::exact(Field::EthType, value::number(key, text, 0xffff)?.into()));
            }
            // With ARP this key means the operation, so it is resolved when all are parsed.
            "nw_proto" | "ip_proto" => self.unresolved.insert(0, (key, text)),
            _ => self.unresolved.push((key, text)),
        }
        Ok(())
    }

    fn push(&mut self, field: FieldMatch) {
        match field.field {
            Field::EthType => self.meaning.eth_type = Some(field.value as u16),
            Field::IpProto => self.meaning.ip_proto = Some(field.value as u8),
            Field::VlanVid if field.mask & u128::from(VLAN_PRESENT) != 0 => {
                self.meaning.is_tagged = Some(field.value & u128::from(VLAN_PRESENT) != 0);
            }
            _ => {}
        }
        self.found.push(field);
    }

    /// Returns the match, and the protocols that names in the actions depend on.
    pub(crate) fn finish(mut self) -> Result<(Match, Meaning), Wrong> {
        for (key, text) in std::mem::take(&mut self.unresolved) {
            if key == "vlan_tci" {
                vlan_tci(text)?.into_iter().for_each(|field| self.push(field));
                continue;
            }
            let field = self.resolve(key, text)?;
            self.push(field);
        }
        match Match::new(&self.found) {
            Ok(matching) => Ok((matching, self.meaning)),
            Err(refusal @ Refusal::MatchDuplicate(_)) => wrong(refusal.to_string(), "write it once"),
            Err(refusal) => {
                wrong(refusal.to_string(), "match the prerequisite too, for example tcp before tp_dst")
            }
        }
    }

    fn resolve(&self, key: &str, text: &str) -> Result<FieldMatch, Wrong> {
        let present = u128::from(VLAN_PRESENT);
        match key {
            "in_port" => return Ok(FieldMatch::exact(Field::InPort, port_number(text, self.ports)?.into())),
            "dl_vlan" if text == "0xffff" => return Ok(FieldMatch::exact(Field::VlanVid, 0)),
            "dl_vlan" => {
                let id = u128::from(value::number(key, text, 4095)?);
                return Ok(FieldMatch::exact(Field::VlanVid, present | id));
            }
            "nw_tos" => return Ok(FieldMatch::exact(Field::IpDscp, value::dscp_of_tos(key, text)?)),
            _ => {}
        }
        match key {
            "tcp_flags" if text.starts_with(['+', '-']) => return tcp_flags(text),
            "nw_frag" | "ip_frag" => return fragments(text),
            "ct_state" => return parse_state(text),
            "tun_flags" if text.starts_with(['+', '-']) => {
                return match &text[1..] {
                    "oam" => Ok(FieldMatch::exact(Field::TunFlags, u128::from(text.starts_with('+')))),
                    _ => wrong(format!("tun_flags cannot be '{text}'"), "write +oam or -oam"),
                };
            }
            "actset_output" if !text.eq_ignore_ascii_case("unset") => {
                let port = port_number(text, self.ports)?;
                return Ok(FieldMatch::exact(Field::ActsetOutput, port.into()));
            }
            _ => {}
        }
        if let Some(named) = nxm::by_name(key).filter(|named| is_number(named.bits.field)) {
            return register(named, key, text);
        }
        let field = self.meaning.field(key)?;
        let (value, mask) = value::masked(key, field, text)?;
        Ok(FieldMatch::masked(field, value, mask))
    }
}

/// Parses the TCI of the outermost tag as Open vSwitch prints it: priority in the upper three bits,
/// then the present bit, then the VLAN id; 0 without a tag (ovs-fields(7)).
fn vlan_tci(text: &str) -> Result<Vec<FieldMatch>, Wrong> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffff"));
    let mask = u128::from(value::number("a mask of vlan_tci", mask, 0xffff)?);
    let value = u128::from(value::number("vlan_tci", value, 0xffff)?);
    Ok(FieldMatch::of_tag(value, mask))
}

/// Parses `+FLAG-FLAG…`: flags that are set, and flags that are not.
fn tcp_flags(text: &str) -> Result<FieldMatch, Wrong> {
    let (mut value, mut mask) = (0, 0);
    let mut rest = text;
    while !rest.is_empty() {
        let (sign, more) = rest.split_at(1);
        let end = more.find(['+', '-']).unwrap_or(more.len());
        let (name, more) = more.split_at(end);
        let Some(bit) = TCP_FLAGS.iter().position(|flag| *flag == name).filter(|_| "+-".contains(sign))
        else {
            return wrong(
                format!("tcp_flags cannot be '{text}'"),
                format!("write for example +syn-ack, of {}", TCP_FLAGS[..9].join(", ")),
            );
        };
        if mask & 1 << bit != 0 {
            return wrong(format!("{name} is given twice"), "write it once");
        }
        mask |= 1 << bit;
        value |= u128::from(sign == "+") << bit;
        rest = more;
    }
    Ok(FieldMatch::masked(Field::TcpFlags, value, mask))
}

/// Prints flags as [`tcp_flags`] reads them.
pub(crate) fn print_flags(value: u128, mask: u128) -> String {
    let bits = TCP_FLAGS.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 != 0);
    bits.map(|(bit, name)| format!("{}{name}", if value >> bit & 1 != 0 { '+' } else { '-' })).collect()
}

fn fragments(text: &str) -> Result<FieldMatch, Wrong> {
    if let Some((_, value, mask)) = FRAGMENTS.iter().find(|(word, ..)| *word == text) {
        return Ok(FieldMatch::masked(Field::NwFrag, *value, *mask));
    }
    match value::masked("nw_frag", Field::NwFrag, text) {
        Ok((value, mask)) => Ok(FieldMatch::masked(Field::NwFrag, value, mask)),
        Err(_) => wrong(format!("nw_frag cannot be '{text}'"), "write no, yes, first, later or not_later"),
    }
}

/// Returns whether values are numbers of up to 128 bits, and not of a header.
fn is_number(field: Field) -> bool {
    REGISTERS.contains(&field) || matches!(field, Field::CtMark | Field::CtLabel)
}

/// Parses `VALUE` or `VALUE/MASK` of a register or a mark.
fn register(named: &NamedBits, key: &str, text: &str) -> Result<FieldMatch, Wrong> {
    let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
    let ones = named.bits.ones();
    let mask = mask.map_or(Ok(ones), |mask| subfield::number(key, mask, ones))?;
    let value = subfield::number(key, value, ones)? & mask;
    let from = named.bits.from;
    Ok(FieldMatch::masked(named.bits.field, value << from, mask << from))
}

impl Meaning {
    /// Returns the field of a name, given EtherType and protocol.
    pub(crate) fn field(self, key: &str) -> Result<Field, Wrong> {
        let is_arp = self.eth_type == Some(0x0806);
        let is_v6 = self.eth_type == Some(0x86dd);
        let of_protocol = |tcp, udp, sctp, icmp: (Field, Field)| match self.ip_proto {
            Some(6) => Ok(tcp),
            Some(17) => Ok(udp),
            Some(132) => Ok(sctp),
            Some(1) if !is_v6 => Ok(icmp.0),
            Some(58) if is_v6 => Ok(icmp.1),
            _ => wrong(
                format!("{key} is a field of TCP, UDP, SCTP or ICMP"),
                format!("write for example tcp,{key}=…"),
            ),
        };
        let kinds = (Field::Icmpv4Type, Field::Icmpv6Type);
        let codes = (Field::Icmpv4Code, Field::Icmpv6Code);
        Ok(match key {
            "dl_src" => Field::EthSrc,
            "dl_dst" => Field::EthDst,
            "dl_vlan_pcp" => Field::VlanPcp,
            "nw_src" | "ip_src" if is_arp => Field::ArpSpa,
            "nw_dst" | "ip_dst" if is_arp => Field::ArpTpa,
            "nw_src" | "ip_src" => Field::Ipv4Src,
            "nw_dst" | "ip_dst" => Field::Ipv4Dst,
            "nw_proto" if is_arp => Field::ArpOp,
            "nw_proto" => Field::IpProto,
            "nw_ecn" => Field::IpEcn,
            "tp_src" => of_protocol(Field::TcpSrc, Field::UdpSrc, Field::SctpSrc, kinds)?,
            "tp_dst" => of_protocol(Field::TcpDst, Field::UdpDst, Field::SctpDst, codes)?,
            "icmp_type" if is_v6 => Field::Icmpv6Type,
            "icmp_code" if is_v6 => Field::Icmpv6Code,
            "icmp_type" => Field::Icmpv4Type,
            "icmp_code" => Field::Icmpv4Code,
            "ipv6_label" => Field::Ipv6Flabel,
            "tun_id" => Field::TunnelId,
            _ => match FIELDS.iter().find(|info| info.name == key) {
                Some(info) => info.field,
                None => {
                    return wrong(
                        format!("unknown field '{key}'"),
                        "write an OpenFlow field such as in_port, eth_dst, vlan_vid, nw_src or tp_dst",
                    );
                }
            },
        })
    }
}

/// Parses a port: its number, its reserved name (any case), or its own name.
pub(crate) fn port_number(text: &str, ports: &PortNames) -> Result<u32, Wrong> {
    let lower = text.to_ascii_lowercase();
    let reserved = RESERVED.iter().find(|(name, _)| *name == lower).map(|(_, number)| *number);
    if let Some(number) = ports.get(text).copied().or(reserved) {
        return Ok(number);
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return value::number("a port", text, u32::MAX.into()).map(|number| number as u32);
    }
    let names = ports.keys().map(String::as_str).chain(RESERVED.iter().map(|(name, _)| *name));
    let names: Vec<&str> = names.collect();
    wrong(format!("unknown port '{text}'"), format!("write a number or one of {}", names.join(", ")))
}
