//! Neighbour discovery for IPv6 (RFC 4861): solicitations and advertisements, what ARP is to IPv4.

use crate::build::Ip;
use crate::bytes::{mac, v6};
use crate::checksum::{self, Check};
use crate::{Headers, MacAddr, Network, protocol};
use std::net::{IpAddr, Ipv6Addr};

/// All nodes of a link: ff02::1.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A neighbour discovery message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbor {
    /// Who has an address?
    Solicitation(Solicitation),
    /// An address is at a MAC.
    Advertisement(Advertisement),
}

/// A question (RFC 4861 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicitation {
    /// Who asks; unspecified when checking for duplicates of `target` (RFC 4862).
    pub source: Ipv6Addr,
    /// Where the answer goes: the source link-layer address option, or else the MAC of the frame.
    pub source_mac: MacAddr,
    /// The address asked for.
    pub target: Ipv6Addr,
}

/// An answer (RFC 4861 §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertisement {
    /// The address that was asked for.
    pub target: Ipv6Addr,
    /// Where it is: the target link-layer address option, or else the MAC of the frame.
    pub target_mac: MacAddr,
}

/// Who answers; the R flag of an advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A host.
    Host,
    /// A router.
    Router,
}

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const OPTION_SOURCE_MAC: u8 = 1;
const OPTION_TARGET_MAC: u8 = 2;

impl Neighbor {
    /// Reads a solicitation or advertisement, with every check of RFC 4861 §7.1; `None` when the
    /// frame is something else or must be ignored.
    pub fn parse(frame: &[u8], headers: &Headers) -> Option<Neighbor> {
        let Network::Ipv6(ip) = headers.network else { return None };
        if ip.protocol != protocol::ICMPV6 || ip.hop_limit != 255 {
            return None;
        }
        let message = frame.get(ip.payload_offset..ip.end())?;
        if message.len() < 24 || message[1] != 0 || checksum::check_transport(frame, headers) != Check::Good {
            return None;
        }
        let target = v6(message, 8)?;
        if target.is_multicast() {
            return None;
        }
        match message[0] {
            SOLICITATION => {
                let option = link_layer_option(&message[24..], OPTION_SOURCE_MAC)?;
                if ip.src.is_unspecified() && (option.is_some() || ip.dst != solicited_node(target)) {
                    return None;
                }
                let source_mac = option.unwrap_or(headers.src);
                Some(Neighbor::Solicitation(Solicitation { source: ip.src, source_mac, target }))
            }
            ADVERTISEMENT => {
                let solicited = message[4] & 0x40 != 0;
                if solicited && ip.dst.is_multicast() {
                    return None;
                }
                let option = link_layer_option(&message[24..], OPTION_TARGET_MAC)?;
                Some(Neighbor::Advertisement(Advertisement {
                    target,
                    target_mac: option.unwrap_or(headers.src),
                }))
            }
            _ => None,
        }
    }
}

impl Solicitation {
    /// The question from `source`, as a frame to the solicited-node group of its target.
    pub fn to_frame(&self) -> Vec<u8> {
        let group = solicited_node(self.target);
        let ip = hop_limit_255((self.source_mac, self.source), (multicast_mac(group), group));
        let mut body = self.target.octets().to_vec();
        if !self.source.is_unspecified() {
            body.extend([OPTION_SOURCE_MAC, 1]);
            body.extend(self.source_mac.0);
        }
        ip.icmp(SOLICITATION, 0, 0, &body)
    }

    /// The frame that answers: the target is at `mac`. To the asker, or to all nodes when the asker
    /// has no address yet (RFC 4861 §7.2.4).
    pub fn answer(&self, mac: MacAddr, role: Role) -> Vec<u8> {
        const ROUTER: u32 = 1 << 31;
        const SOLICITED: u32 = 1 << 30;
        const OVERRIDE: u32 = 1 << 29;
        let (to, solicited) = if self.source.is_unspecified() {
            ((multicast_mac(ALL_NODES), ALL_NODES), 0)
        } else {
            ((self.source_mac, self.source), SOLICITED)
        };
        let router = match role {
            Role::Host => 0,
            Role::Router => ROUTER,
        };
        let mut body = self.target.octets().to_vec();
        body.extend([OPTION_TARGET_MAC, 1]);
        body.extend(mac.0);
        hop_limit_255((mac, self.target), to).icmp(ADVERTISEMENT, 0, router | solicited | OVERRIDE, &body)
    }
}

/// The group a node joins for each of its addresses: ff02::1:ffXX:XXXX (RFC 4291 §2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    const PREFIX: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(PREFIX | (address.to_bits() & 0x00ff_ffff))
}

/// The Ethernet group of an IPv6 group: 33:33 and its last four bytes (RFC 2464 §7).
pub fn multicast_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

fn hop_limit_255(from: (MacAddr, Ipv6Addr), to: (MacAddr, Ipv6Addr)) -> Ip {
    Ip { ttl: 255, ..Ip::between((from.0, IpAddr::V6(from.1)), (to.0, IpAddr::V6(to.1))) }
}

/// The MAC in the option `wanted`, if it is there; `None` when the options are broken (length 0 or
/// cut), for which RFC 4861 §4.6 has the whole message ignored.
fn link_layer_option(mut options: &[u8], wanted: u8) -> Option<Option<MacAddr>> {
    let mut found = None;
    while let [kind, words, ..] = *options {
        let len = usize::from(words) * 8;
        if len == 0 || len > options.len() {
            return None;
        }
        if kind == wanted && len == 8 && found.is_none() {
            found = mac(options, 2);
        }
        options = &options[len..];
    }
    options.is_empty().then_some(found)
}
