//! Configurations of BIRD 2 (bird.conf), as its user guide describes them.

use super::frr::{AREA, CONNECT};
use super::{Speaker, timers};
use fastpath_spec::{ProtocolKind, ProtocolSettings};
use fastpath_wire::MacAddr;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

/// Returns the configuration of a router.
pub(super) fn config(speaker: &Speaker) -> String {
    let mut text = format!("router id {};\nprotocol device {{ }}\n", speaker.id);
    text.push_str("protocol direct { ipv4; ipv6; }\n");
    for family in ["ipv4", "ipv6"] {
        let export = "export where source != RTS_DEVICE;";
        let _ = writeln!(text, "protocol kernel {{ merge paths on; {family} {{ {export} }}; }}");
    }
    if let Some(ospf) = speaker.settings(ProtocolKind::Ospf) {
        for (version, family) in [("v2", "ipv4"), ("v3", "ipv6")] {
            let _ = writeln!(
                text,
                "protocol ospf {version} ospf_{family} {{\n  {family} {{ import all; export none; }};"
            );
            ospf_areas(&mut text, speaker, ospf, family == "ipv4");
            text.push_str("}\n");
        }
    }
    if let Some(bgp) = speaker.settings(ProtocolKind::Bgp) {
        bgp_sessions(&mut text, speaker, bgp);
    }
    text
}

fn ospf_areas(text: &mut String, speaker: &Speaker, ospf: &ProtocolSettings, is_v4: bool) {
    let (hello, dead) = timers(ospf, (10, 40));
    let area_of = |link: &str| ospf.areas.get(link).or(ospf.area.as_ref()).map_or(AREA, String::as_str);
    let has = |link: &&super::SpeakerLink| if is_v4 { link.has_v4() } else { link.has_v6() };
    let links: Vec<_> = speaker.links.iter().filter(has).collect();
    let areas: std::collections::BTreeSet<&str> = links.iter().map(|link| area_of(link.link)).collect();
    for area in areas {
        let _ = writeln!(text, "  area {area} {{");
        for link in links.iter().filter(|link| area_of(link.link) == area) {
            let _ = write!(text, "    interface \"{}\" {{ hello {hello}; dead {dead};", link.interface.name);
            if link.is_point_to_point {
                text.push_str(" type ptp;");
            }
            if let Some(cost) = ospf.costs.get(link.link) {
                let _ = write!(text, " cost {cost};");
            }
            if !link.is_spoken(ProtocolKind::Ospf) {
                text.push_str(" stub;");
            }
            text.push_str(" };\n");
        }
        text.push_str("  };\n");
    }
}

fn bgp_sessions(text: &mut String, speaker: &Speaker, bgp: &ProtocolSettings) {
    let (keepalive, hold) = timers(bgp, (60, 180));
    let mut count = 0;
    for link in &speaker.links {
        let name = &link.interface.name;
        for (asn, interface, addresses) in link.bgp_neighbors() {
            let link_local =
                interface.mac.filter(|_| bgp.unnumbered).map(|mac| vec![IpAddr::V6(link_local(mac))]);
            for address in link_local.unwrap_or(addresses) {
                count += 1;
                let place = if bgp.unnumbered { format!("{address}%{name}") } else { address.to_string() };
                let _ = write!(
                    text,
                    "protocol bgp bgp{count} {{\n  local as {}; neighbor {place} as {asn}; direct;\n  keepalive time {keepalive}; hold time {}; connect retry time {CONNECT}; connect delay time 1;\n",
                    speaker.asn,
                    hold.max(3)
                );
                let next_hop = if asn == speaker.asn { " next hop self;" } else { "" };
                if bgp.unnumbered || address.is_ipv4() {
                    let extended = if bgp.unnumbered { " extended next hop;" } else { "" };
                    let _ = writeln!(text, "  ipv4 {{ import all; export all;{next_hop}{extended} }};");
                }
                if address.is_ipv6() {
                    let _ = writeln!(text, "  ipv6 {{ import all; export all;{next_hop} }};");
                }
                text.push_str("}\n");
            }
        }
    }
}

/// Returns the link-local address that the kernel gives an interface (RFC 4291 appendix A).
fn link_local(MacAddr([a, b, c, d, e, f]): MacAddr) -> Ipv6Addr {
    let pair = |high, low| u16::from_be_bytes([high, low]);
    Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f))
}
