//! Neighbor Discovery for IPv6 (RFC 4861): neighbor solicitations and advertisements, the
//! counterpart of ARP.

use crate::build::Ip;
use crate::bytes::{mac, v6};
use crate::checksum::{self, ChecksumStatus};
use crate::{Headers, MacAddr, NetworkLayer, protocol};
use std::net::{IpAddr, Ipv6Addr};

/// The group of all nodes of a link: ff02::1.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A Neighbor Discovery message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbor {
    /// Asks for the MAC address of an IP address.
    Solicitation(Solicitation),
    /// States the MAC address of an IP address.
    Advertisement(Advertisement),
}

/// A neighbor solicitation (RFC 4861 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicitation {
    /// Address of the sender; unspecified in duplicate address detection for `target` (RFC 4862).
    pub source: Ipv6Addr,
    /// MAC address for the answer: the source link-layer address option, or else the source MAC of
    /// the frame.
    pub source_mac: MacAddr,
    /// The requested address.
    pub target: Ipv6Addr,
}

/// A neighbor advertisement (RFC 4861 §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertisement {
    /// The advertised address.
    pub target: Ipv6Addr,
    /// MAC address of `target`: the target link-layer address option, or else the source MAC of the
    /// frame.
    pub target_mac: MacAddr,
}

/// The role of the sender of an advertisement: its R flag.
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
    /// Parses a solicitation or advertisement with all validity checks of RFC 4861 §7.1. Returns
    /// `None` for other frames and for messages that must be ignored.
    pub fn parse(frame: &[u8], headers: &Headers) -> Option<Neighbor> {
        let NetworkLayer::Ipv6(ip) = headers.network else { return None };
        if ip.protocol != protocol::ICMPV6 || ip.hop_limit != 255 {
            return None;
        }
        let message = frame.get(ip.payload_offset..ip.end())?;
        if message.len() < 24
            || message[1] != 0
            || checksum::check_transport(frame, headers) != ChecksumStatus::Good
        {
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
    /// Returns the solicitation as a frame to the solicited-node group of its target.
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

    /// Returns the advertisement that answers this solicitation, as a frame: the target is at
    /// `mac`. The frame goes to the source of the solicitation, or to all nodes if the source is
    /// unspecified (RFC 4861 §7.2.4).
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

/// Returns the solicited-node group of an address: ff02::1:ffXX:XXXX (RFC 4291 §2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    const PREFIX: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(PREFIX | (address.to_bits() & 0x00ff_ffff))
}

/// Returns the Ethernet group of an IPv6 group: 33:33 and its last four bytes (RFC 2464 §7).
pub fn multicast_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

fn hop_limit_255(from: (MacAddr, Ipv6Addr), to: (MacAddr, Ipv6Addr)) -> Ip {
    Ip { ttl: 255, ..Ip::between((from.0, IpAddr::V6(from.1)), (to.0, IpAddr::V6(to.1))) }
}

/// Returns the MAC in the option `wanted`, if that option is present. Returns `None` if the options
/// are malformed (length 0 or truncated): RFC 4861 §4.6 requires such messages to be ignored.
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
