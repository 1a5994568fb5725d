//! Builds a packet from the fields of a match: for tracing and tests.

use crate::fields::Fields;
use crate::print::print_field;
use crate::{PortNames, words};
use fastpath_switch::Match;
use fastpath_switch::edit;
use fastpath_switch::field::{ETHERTYPE_PBB, Field, VLAN_PRESENT};
use fastpath_switch::key::{Key, PipelineFields};
use fastpath_wire::{Headers, MacAddr, build, ethertype, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A packet built from a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    /// The port of entry; 1 if the text has none.
    pub in_port: u32,
    /// The frame; fields that the text does not have get ordinary values.
    pub frame: Vec<u8>,
    /// Those fields and their values, as a text.
    pub assumed: String,
}

/// The fields that are reported if the text does not have them.
const COMMON: [Field; 16] = [
    Field::InPort,
    Field::EthSrc,
    Field::EthDst,
    Field::EthType,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::IpProto,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::ArpOp,
];

/// Builds the packet of a text with fields as in a rule.
///
/// Returns the mistake and its remedy.
pub fn parse_packet(text: &str, ports: &PortNames) -> Result<Described, String> {
    let mut fields = Fields::new(ports);
    for word in words(text) {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        fields.add(key, value).map_err(|wrong| format!("{}; {}", wrong.what, wrong.instead))?;
    }
    let (matching, _) = fields.finish().map_err(|wrong| format!("{}; {}", wrong.what, wrong.instead))?;
    let in_port = matching.field(Field::InPort).map_or(1, |field| field.value as u32);
    let frame = frame(&matching);
    let key = Key::extract(
        &frame,
        &Headers::parse(&frame),
        PipelineFields { in_port, ..PipelineFields::default() },
    );
    let missing = COMMON.into_iter().filter(|field| matching.field(*field).is_none());
    let assumed = missing.filter_map(|field| Some(print_field(field, key.get(field)?, field.ones())));
    let assumed = assumed.collect::<Vec<_>>().join(",");
    Ok(Described { in_port, frame, assumed })
}

/// Builds an ordinary frame of the match's protocols, then sets the fields of the match.
fn frame(matching: &Match) -> Vec<u8> {
    let value = |field: Field| matching.field(field).map(|f| f.value);
    let kind = value(Field::EthType).map_or(0x0800, |kind| kind as u16);
    let proto = value(Field::IpProto).map(|proto| proto as u8);
    let mut frame = base(kind, proto);
    if let Some(vid) = value(Field::VlanVid).filter(|vid| vid & u128::from(VLAN_PRESENT) != 0) {
        edit::push_vlan(&mut frame, ethertype::VLAN);
        edit::set_field(&mut frame, Field::VlanVid, vid);
    }
    // Types first: they determine which other fields exist.
    for of_type in [true, false] {
        for field in matching.fields() {
            let is_type = matches!(field.field, Field::Icmpv4Type | Field::Icmpv6Type);
            if is_type == of_type && !matches!(field.field, Field::EthType | Field::IpProto | Field::VlanVid)
            {
                edit::set_field(&mut frame, field.field, field.value);
            }
        }
    }
    frame
}

fn base(kind: u16, proto: Option<u8>) -> Vec<u8> {
    let macs = [MacAddr::from_index(1), MacAddr::from_index(2)];
    let v4: [IpAddr; 2] = [Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(192, 0, 2, 2).into()];
    let documentation = |host| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host));
    let is_v6 = kind == ethertype::IPV6;
    let addresses = if is_v6 { [documentation(1), documentation(2)] } else { v4 };
    let ip = build::Ip::between((macs[0], addresses[0]), (macs[1], addresses[1]));
    match (kind, proto) {
        (ethertype::IPV4 | ethertype::IPV6, Some(protocol::TCP)) => {
            ip.tcp(&build::Tcp { src_port: 1024, dst_port: 80, ..build::Tcp::default() }, &[])
        }
        (ethertype::IPV4 | ethertype::IPV6, proto) => {
            let mut frame = ip.udp(1024, 9, &[0; 40]);
            if let Some(proto) = proto.filter(|proto| *proto != protocol::UDP) {
                edit::set_field(&mut frame, Field::IpProto, proto.into());
            }
            frame
        }
        _ => {
            let mut frame = [&macs[1].0[..], &macs[0].0, &kind.to_be_bytes(), &[0; 46]].concat();
            match kind {
                ethertype::ARP => frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]),
                // An entry with the bottom-of-stack bit.
                ethertype::MPLS | ethertype::MPLS_UPSTREAM => frame[16..18].copy_from_slice(&[1, 64]),
                ETHERTYPE_PBB => frame[20..32].copy_from_slice(&[macs[1].0, macs[0].0].concat()),
                _ => {}
            }
            frame
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_fields_of_its_text() {
        for text in [
            "in_port=3,tcp,nw_dst=10.0.0.1,tp_dst=443",
            "udp,dl_vlan=7,dl_vlan_pcp=3,nw_src=10.1.1.1",
            "icmp6,icmp_type=135,nd_target=2001:db8::9",
            "arp,arp_op=1,arp_spa=10.0.0.1",
            "mpls,mpls_label=100,mpls_bos=1",
            "dl_type=0x88e7,pbb_isid=77",
            "ip,nw_proto=89",
            "sctp,tp_dst=9",
        ] {
            let ports = PortNames::new();
            let mut fields = Fields::new(&ports);
            for word in words(text) {
                let (key, value) =
                    word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
                fields.add(key, value).unwrap();
            }
            let (matching, _) = fields.finish().unwrap();
            let Described { in_port, frame, .. } = parse_packet(text, &ports).unwrap();
            let context = PipelineFields { in_port, ..PipelineFields::default() };
            let key = Key::extract(&frame, &Headers::parse(&frame), context);
            assert!(matching.matches(&key), "{text}: {frame:02x?}");
        }
        assert!(parse_packet("tp_dst=80", &PortNames::new()).is_err());
    }

    #[test]
    fn fields_that_the_text_does_not_have_are_reported() {
        let ports = PortNames::from([("lan".to_owned(), 4)]);
        let packet =
            parse_packet("in_port=lan,tcp,nw_dst=10.0.0.1,dl_src=02:00:00:00:00:07", &ports).unwrap();
        assert_eq!(packet.in_port, 4);
        let assumed = "dl_dst=02:00:00:00:00:02,nw_src=192.0.2.1,tp_src=1024,tp_dst=80";
        assert_eq!(packet.assumed, assumed);
        let packet = parse_packet("", &ports).unwrap();
        assert!(packet.assumed.starts_with("in_port=1,dl_src="), "{}", packet.assumed);
        let all = format!("in_port=lan,tcp,nw_dst=10.0.0.1,dl_src=02:00:00:00:00:07,{assumed}");
        assert_eq!(parse_packet(&all, &ports).unwrap().assumed, "");
    }
}
