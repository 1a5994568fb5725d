//! Keeps the kernel from forwarding between two interfaces of this machine, so that packets pass
//! the network between them and nothing else.
//!
//! A kernel that forwards (`net.ipv4.ip_forward`) would route a packet from one interface to the
//! other itself, beside the network. A rule of policy routing (ip-rule(8)) for each interface drops
//! what arrives there and is not for this machine. It needs CAP_NET_ADMIN and no program, and a
//! container may set it. [`NoForwarding`] removes the rules. After SIGKILL they stay:
//! `ip rule del pref 25832` removes one, and the next run replaces them.

use crate::kernel::netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::fs;
use std::io;

/// The priority of the rules: after the table of local addresses, before all others.
const PRIORITY: u32 = 25_832;

/// The kernel forwards between the interfaces, and cannot be kept from it.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: keeping the kernel from forwarding: {source}; run as root, or turn {setting} off")]
pub struct ForwardingError {
    /// The interface.
    interface: String,
    /// The setting that is on.
    setting: &'static str,
    /// The reason.
    source: io::Error,
}

/// Rules that drop what the kernel would forward. Dropping it removes them.
#[derive(Debug, Default)]
pub struct NoForwarding {
    rules: Vec<RuleMessage>,
}

/// The families, and the setting that allows forwarding.
const FAMILIES: [(AddressFamily, &str, &str); 2] = [
    (AddressFamily::Inet, "net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
    (AddressFamily::Inet6, "net.ipv6.conf.all.forwarding", "/proc/sys/net/ipv6/conf/all/forwarding"),
];

impl NoForwarding {
    /// Keeps the kernel from forwarding what arrives on these interfaces. Does nothing for a family
    /// that it does not forward.
    ///
    /// # Errors
    /// It forwards, and refuses the rules.
    pub fn of(interfaces: &[&str]) -> Result<NoForwarding, ForwardingError> {
        let mut made = NoForwarding::default();
        for (family, setting, path) in FAMILIES {
            if fs::read_to_string(path).is_ok_and(|text| text.trim() != "0") {
                for &interface in interfaces {
                    let failed =
                        |source| ForwardingError { interface: interface.to_owned(), setting, source };
                    made.add(rule(family, interface)).map_err(failed)?;
                }
            }
        }
        Ok(made)
    }

    fn add(&mut self, rule: RuleMessage) -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        // One that a killed run has left.
        let _ = netlink.request(RouteNetlinkMessage::DelRule(rule.clone()), 0);
        netlink.request(RouteNetlinkMessage::NewRule(rule.clone()), NLM_F_CREATE | NLM_F_EXCL)?;
        self.rules.push(rule);
        Ok(())
    }
}

impl Drop for NoForwarding {
    fn drop(&mut self) {
        let Ok(mut netlink) = Netlink::open() else { return };
        for rule in self.rules.drain(..) {
            // A rule that is gone needs no removal.
            let _ = netlink.request(RouteNetlinkMessage::DelRule(rule), 0);
        }
    }
}

fn rule(family: AddressFamily, interface: &str) -> RuleMessage {
    let mut rule = RuleMessage::default();
    rule.header = RuleHeader { family, action: RuleAction::Blackhole, ..RuleHeader::default() };
    rule.attributes = vec![RuleAttribute::Iifname(interface.to_owned()), RuleAttribute::Priority(PRIORITY)];
    rule
}
