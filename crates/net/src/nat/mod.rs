//! A NAT: a router that translates the IPv4 addresses and ports of packets between its inside and
//! its outside (RFC 4787, RFC 5382, RFC 5508). IPv6 packets are forwarded as they are.
//!
//! ```text
//!  inside ──▶ source := outside endpoint of the mapping ──────────────────▶ outside
//!     ▲                       │ to an address of the pool (hairpinning)
//!     └── destination := inside endpoint, if the filter passes ◀── pool ◀── outside
//! ```
//!
//! Packets between two inside links, and between two outside links, are forwarded as they are.
//! Packets from outside to inside addresses are dropped. What a NAT drops, it drops silently: RFC
//! 5382 REQ-4a permits that for unsolicited SYNs. This file decides; `forward.rs` forwards.
//!
//! Read first: `table.rs`.

mod forward;
mod fragments;
#[cfg(test)]
mod oracle;
mod ports;
mod protocol;
mod table;

use crate::fate::Reason;
use crate::pool::Frame;
use crate::rx_context::RxContext;
use fastpath_spec::{NatSettings, Node, NodeKind, Rebinding};
use fastpath_units::{Rng, Time};
use fastpath_wire::translate::{Content, FlowAddresses, Quoted, Rewrite};
use fastpath_wire::{Headers, Ipv4};
use fragments::{Fragments, PacketKey};
use ipnet::IpNet;
pub use protocol::NatProtocol;
use std::net::{Ipv4Addr, SocketAddrV4};
pub use table::{NatCounters, NatSession};
use table::{NatTable, Seen};

/// The state of a NAT.
#[derive(Debug)]
pub(crate) struct Nat {
    /// By interface.
    inside: Vec<bool>,
    pool: Vec<Ipv4Addr>,
    hairpinning: bool,
    table: NatTable,
    fragments: Fragments<Translation>,
}

/// How a packet is translated, and where it is forwarded then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Translation {
    rewrite: Rewrite,
    dst: Ipv4Addr,
}

/// What a NAT does with a packet.
enum Decision {
    /// It is forwarded.
    Forward(Translation),
    /// It has been translated, and is forwarded.
    Forwarded(Ipv4Addr),
    /// It waits for the first fragment.
    Wait,
    Drop(Reason),
}

impl Nat {
    /// Creates the NAT of a node; `None` if the node is none, or has no IPv4 address outside.
    pub(crate) fn of(node: &Node, seed: u64, stream: u64) -> Option<Nat> {
        let NodeKind::Nat { nat: spec, .. } = &node.kind else { return None };
        let settings: NatSettings = spec.settings.clone();
        let inside: Vec<bool> =
            (0..node.interfaces.len()).map(|index| spec.inside.contains(&index)).collect();
        let outside = node.interfaces.iter().zip(&inside).filter(|(_, inside)| !**inside);
        let own = outside.flat_map(|(interface, _)| &interface.addresses).find_map(|net| match net {
            IpNet::V4(net) => Some(net.addr()),
            IpNet::V6(_) => None,
        })?;
        let pool = if settings.pool.is_empty() { vec![own] } else { settings.pool.clone() };
        Some(Nat {
            inside,
            pool: pool.clone(),
            hairpinning: settings.hairpinning,
            fragments: Fragments::new(settings.timeouts.fragments),
            table: NatTable::new(settings, pool, Rng::stream(seed, stream)),
        })
    }

    /// Takes over the mappings and waiting fragments of `old`, the same NAT before a change of the
    /// topology, unless its addresses or interfaces have changed. `place` returns the number of a
    /// former interface.
    pub(crate) fn take_over(&mut self, old: &mut Nat, place: impl Fn(usize) -> Option<usize>) {
        let stays = |(index, inside)| place(index) == Some(index) && self.inside.get(index) == Some(inside);
        if self.pool == old.pool && old.inside.iter().enumerate().all(stays) {
            std::mem::swap(&mut self.table, &mut old.table);
            std::mem::swap(&mut self.fragments, &mut old.fragments);
        }
    }

    /// Returns the outside addresses.
    pub(crate) fn pool(&self) -> &[Ipv4Addr] {
        &self.pool
    }

    /// Returns whether packets of an interface are translated.
    pub(crate) fn is_inside(&self, interface: usize) -> bool {
        self.inside[interface]
    }

    /// Gives the mappings other outside endpoints at `at`.
    pub(crate) fn rebind(&mut self, at: Time, rebinding: Rebinding) {
        self.table.rebind(at, rebinding);
    }

    pub(crate) fn expires_at(&self) -> Option<Time> {
        self.fragments.expires_at()
    }

    pub(crate) fn pop_expired(&mut self, at: Time) -> Option<Frame> {
        self.fragments.pop_expired(at)
    }

    pub(crate) fn held(&self) -> usize {
        self.fragments.held()
    }

    pub(crate) fn counters(&mut self, at: Time) -> NatCounters {
        self.table.counters(at)
    }

    pub(crate) fn sessions(&mut self, at: Time) -> Vec<NatSession> {
        self.table.sessions(at).collect()
    }

    fn is_ours(&self, address: Ipv4Addr) -> bool {
        self.pool.contains(&address)
    }

    /// Decides about a packet whose source or destination is to be translated. ICMP errors are
    /// translated here, because no error is sent about them.
    fn decide(&mut self, rx: &mut RxContext, frame: &mut Frame, headers: &Headers, ip: &Ipv4) -> Decision {
        let key = PacketKey::new(rx.interface, ip);
        if ip.fragment_offset > 0 {
            return match self.fragments.later(rx.at, key) {
                Some(translation) => Decision::Forward(translation),
                None => Decision::Wait,
            };
        }
        let Some(flow) = FlowAddresses::of(rx.pool.bytes(frame), headers) else {
            return Decision::Drop(Reason::NatProtocol);
        };
        if flow.content == Content::IcmpError {
            let translated = self.error(rx, frame, headers, ip);
            return translated.map_or(Decision::Drop(Reason::NatFiltered), Decision::Forwarded);
        }
        let from_inside = self.inside[rx.interface];
        let to_pool = self.is_ours(ip.dst);
        if from_inside && to_pool && !self.hairpinning {
            return Decision::Drop(Reason::NatFiltered);
        }
        let (protocol, flags) = match flow.content {
            Content::Udp => (NatProtocol::Udp, 0),
            Content::Tcp { flags } => (NatProtocol::Tcp, flags),
            // A query that is not from inside has no mapping, nor has a reply from inside.
            Content::IcmpRequest if from_inside => (NatProtocol::Icmp, 0),
            Content::IcmpReply if !from_inside => (NatProtocol::Icmp, 0),
            _ => return Decision::Drop(Reason::NatFiltered),
        };
        let seen = Seen { at: rx.at, protocol, flags };
        match self.endpoints(seen, from_inside, to_pool, &flow) {
            Ok(rewrite) => {
                let dst = rewrite.dst.map_or(ip.dst, |end| *end.ip());
                Decision::Forward(Translation { rewrite, dst })
            }
            Err(reason) => Decision::Drop(reason),
        }
    }

    fn endpoints(
        &mut self,
        seen: Seen,
        from_inside: bool,
        to_pool: bool,
        flow: &FlowAddresses,
    ) -> Result<Rewrite, Reason> {
        let mut rewrite = Rewrite::default();
        if from_inside {
            rewrite.src = Some(self.table.outbound(seen, flow.src, flow.dst)?);
        }
        if to_pool {
            let remote = rewrite.src.unwrap_or(flow.src);
            rewrite.dst = Some(self.table.inbound(seen, flow.dst, remote)?);
        }
        Ok(rewrite)
    }

    /// Translates an ICMP error (RFC 5508 §4.2) and returns its new destination. `None`: it is
    /// about no session.
    fn error(
        &mut self,
        rx: &mut RxContext,
        frame: &mut Frame,
        headers: &Headers,
        ip: &Ipv4,
    ) -> Option<Ipv4Addr> {
        let quoted = Quoted::of(rx.pool.bytes(frame), headers)?;
        let protocol = match quoted.flow.content {
            Content::Udp => NatProtocol::Udp,
            Content::Tcp { .. } => NatProtocol::Tcp,
            Content::IcmpRequest | Content::IcmpReply => NatProtocol::Icmp,
            Content::IcmpError => return None,
        };
        let FlowAddresses { src: sender, dst: receiver, .. } = quoted.flow;
        let (mut inner, mut outer) = (Rewrite::default(), Rewrite::default());
        let portless = |address: &Ipv4Addr| Some(SocketAddrV4::new(*address, 0));
        if self.inside[rx.interface] {
            // About a packet that came from outside, or round by hairpinning. RFC 5508 REQ-5: the
            // source is an outside address, also for errors of routers inside.
            let outside = self.table.outside_of(rx.at, protocol, receiver, sender)?;
            inner.dst = Some(outside);
            outer.src = portless(outside.ip());
        }
        let mut dst = ip.dst;
        if self.is_ours(ip.dst) {
            let remote = inner.dst.unwrap_or(receiver);
            let inside = self.table.inside_of(rx.at, protocol, sender, remote)?;
            inner.src = Some(inside);
            outer.dst = portless(inside.ip());
            dst = *inside.ip();
        }
        quoted.rewrite(rx.pool.bytes_mut(frame), headers, &inner, &outer);
        Some(dst)
    }
}
