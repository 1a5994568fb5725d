//! Configurations of FRR (frr.conf of `vtysh`), as its user guide describes them.

use super::{Speaker, SpeakerLink, timers};
use fastpath_spec::{ProtocolKind, ProtocolSettings};
use std::fmt::Write;

/// The default area of OSPF.
pub(super) const AREA: &str = "0.0.0.0";
/// The default area address of IS-IS, of private use.
const ISIS_AREA: &str = "49.0001";
/// The seconds between attempts to connect to a BGP neighbor. FRR's default of 120 is for the
/// internet.
pub(super) const CONNECT: u16 = 5;

/// Returns the configuration of a router.
pub(super) fn config(speaker: &Speaker) -> String {
    let mut text = format!("frr defaults traditional\nhostname {}\n", speaker.name);
    let settings = |kind| speaker.settings(kind);
    if let Some(pim) = settings(ProtocolKind::Pim) {
        pim.rp.iter().for_each(|rp| _ = writeln!(text, "ip pim rp {rp} 224.0.0.0/4"));
    }
    for link in &speaker.links {
        interface(&mut text, speaker, link);
    }
    let id = speaker.id;
    if settings(ProtocolKind::Ospf).is_some() {
        // The first calculation after a change starts at once, later ones wait (RFC 8405 §3).
        let throttle = "timers throttle spf 0 50 5000";
        let _ = write!(text, "router ospf\n ospf router-id {id}\n {throttle}\nexit\n");
        let _ = write!(text, "router ospf6\n ospf6 router-id {id}\n {throttle}\nexit\n");
    }
    if let Some(isis) = settings(ProtocolKind::Isis) {
        let (area, level) = (isis.area.as_deref().unwrap_or(ISIS_AREA), isis.level.unwrap_or(2));
        let kind = if level == 1 { "level-1" } else { "level-2-only" };
        let [a, b, c, d] = id.octets();
        let digits = format!("{a:03}{b:03}{c:03}{d:03}");
        let system = format!("{}.{}.{}", &digits[..4], &digits[4..8], &digits[8..]);
        let _ =
            write!(text, "router isis lab\n net {area}.{system}.00\n is-type {kind}\n metric-style wide\n");
        let _ = write!(text, " spf-interval 1\n lsp-gen-interval 1\nexit\n");
    }
    if let Some(bgp) = settings(ProtocolKind::Bgp) {
        bgp_router(&mut text, speaker, bgp);
    }
    text
}

fn interface(text: &mut String, speaker: &Speaker, link: &SpeakerLink) {
    let _ = writeln!(text, "interface {}", link.interface.name);
    if let Some(ospf) = speaker.settings(ProtocolKind::Ospf) {
        let area = ospf.areas.get(link.link).or(ospf.area.as_ref()).map_or(AREA, String::as_str);
        let (hello, dead) = timers(ospf, (10, 40));
        let families = [(link.has_v4(), "ip ospf"), (link.has_v6(), "ipv6 ospf6")];
        for (_, word) in families.into_iter().filter(|(has, _)| *has) {
            let _ = write!(
                text,
                " {word} area {area}\n {word} hello-interval {hello}\n {word} dead-interval {dead}\n"
            );
            if link.is_point_to_point {
                let _ = writeln!(text, " {word} network point-to-point");
            }
            if let Some(cost) = ospf.costs.get(link.link) {
                let _ = writeln!(text, " {word} cost {cost}");
            }
            if !link.is_spoken(ProtocolKind::Ospf) {
                let _ = writeln!(text, " {word} passive");
            }
        }
    }
    if let Some(isis) = speaker.settings(ProtocolKind::Isis) {
        let (hello, dead) = timers(isis, (3, 30));
        if link.has_v4() {
            let _ = writeln!(text, " ip router isis lab");
        }
        if link.has_v6() {
            let _ = writeln!(text, " ipv6 router isis lab");
        }
        let _ = write!(
            text,
            " isis hello-interval {hello}\n isis hello-multiplier {}\n",
            (dead / hello).clamp(2, 100)
        );
        if link.is_point_to_point {
            let _ = writeln!(text, " isis network point-to-point");
        }
        if let Some(cost) = isis.costs.get(link.link) {
            let _ = writeln!(text, " isis metric {cost}");
        }
        if !link.is_spoken(ProtocolKind::Isis) {
            let _ = writeln!(text, " isis passive");
        }
    }
    if let Some(pim) = speaker.settings(ProtocolKind::Pim)
        && link.has_v4()
    {
        let (hello, dead) = timers(pim, (30, 105));
        let _ = write!(text, " ip pim\n ip pim hello {hello} {dead}\n ip igmp\n");
    }
    text.push_str("exit\n");
}

fn bgp_router(text: &mut String, speaker: &Speaker, bgp: &ProtocolSettings) {
    let (keepalive, hold) = timers(bgp, (60, 180));
    let _ = write!(
        text,
        "router bgp {}\n bgp router-id {}\n no bgp ebgp-requires-policy\n bgp bestpath as-path multipath-relax\n timers bgp {keepalive} {}\n",
        speaker.asn,
        speaker.id,
        hold.max(3)
    );
    // By family: the neighbors that are activated in it.
    let mut activated: [Vec<(String, bool)>; 2] = Default::default();
    for link in &speaker.links {
        for (asn, _, addresses) in link.bgp_neighbors() {
            let is_internal = asn == speaker.asn;
            if bgp.unnumbered {
                let name = &link.interface.name;
                let kind = if is_internal { "internal" } else { "external" };
                let _ = write!(
                    text,
                    " neighbor {name} interface remote-as {kind}\n neighbor {name} timers connect {CONNECT}\n"
                );
                activated.iter_mut().for_each(|family| family.push((name.clone(), is_internal)));
                // An interface has one unnumbered session.
                break;
            }
            for address in addresses {
                let _ = write!(
                    text,
                    " neighbor {address} remote-as {asn}\n neighbor {address} timers connect {CONNECT}\n"
                );
                activated[usize::from(address.is_ipv6())].push((address.to_string(), is_internal));
            }
        }
    }
    for (place, family) in ["ipv4", "ipv6"].into_iter().enumerate() {
        let _ = write!(text, " address-family {family} unicast\n  redistribute connected\n");
        for (name, is_internal) in &activated[place] {
            let _ = writeln!(text, "  neighbor {name} activate");
            if *is_internal {
                let _ = writeln!(text, "  neighbor {name} next-hop-self");
            }
        }
        // A session over IPv6 carries no IPv4 unless it is unnumbered.
        if place == 0 && !bgp.unnumbered {
            activated[1].iter().for_each(|(name, _)| _ = writeln!(text, "  no neighbor {name} activate"));
        }
        text.push_str(" exit-address-family\n");
    }
    text.push_str("exit\n");
}
