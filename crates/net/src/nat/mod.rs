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
//! 5382 REQ-4a permits that for unsolicited SYNs. This file decides; `router.rs` forwards.
//!
//! Read first: `table.rs`.

mod fragments;
#[cfg(test)]
mod oracle;
mod ports;
mod table;

use crate::fate::{NodeAction, Reason};
use crate::pool::Frame;
use crate::route::NextHop;
use crate::router::{Router, RxContext};
use fastpath_spec::{NatSettings, Node, NodeKind};
use fastpath_units::{Rng, Time};
use fastpath_wire::icmp::IcmpError;
use fastpath_wire::translate::{Content, FlowAddresses, Quoted, Rewrite};
use fastpath_wire::{Headers, Ipv4};
use fragments::{Fragments, PacketKey};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
pub use table::{NatCounters, NatProtocol, NatSession};
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

impl Router {
    /// Processes an IPv4 packet that a NAT received and that is not for a group.
    pub(crate) fn translate(&mut self, rx: &mut RxContext, mut frame: Frame, headers: &Headers, ip: &Ipv4) {
        let Some(nat) = &self.nat else { return rx.drop(frame, Reason::NatProtocol) };
        let (from_inside, to_pool) = (nat.inside[rx.interface], nat.is_ours(ip.dst));
        if !to_pool {
            if self.owns(ip.dst.into()) {
                return self.local(rx, frame, headers);
            }
            let hop = self.route(ip.dst.into());
            let to_inside = hop.is_some_and(|hop| nat.inside[hop.interface]);
            if to_inside && !from_inside {
                return rx.drop(frame, Reason::NatFiltered);
            }
            if hop.is_none() || to_inside || !from_inside {
                return self.forward(rx, frame, headers, ip.dst.into());
            }
        }
        if to_pool && self.is_local_query(rx, &frame, headers) {
            return self.local(rx, frame, headers);
        }
        if ip.ttl <= 1 {
            return self.drop_with_error(rx, frame, headers, IcmpError::HopLimit, Reason::TtlExpired);
        }
        let Some(nat) = &mut self.nat else { return };
        match nat.decide(rx, &mut frame, headers, ip) {
            Decision::Forwarded(dst) => {
                let headers = Headers::parse(rx.pool.bytes(&frame));
                self.forward(rx, frame, &headers, dst.into());
            }
            Decision::Forward(translation) => {
                self.forward_translated(rx, frame, headers, &translation);
                if ip.more_fragments && ip.fragment_offset == 0 {
                    self.release_fragments(rx, ip, translation);
                }
            }
            Decision::Wait => {
                let Some(nat) = &mut self.nat else { return };
                if let Some(oldest) = nat.fragments.wait(rx.at, PacketKey::new(rx.interface, ip), frame) {
                    rx.drop(oldest, Reason::NatFragment);
                }
            }
            Decision::Drop(reason) => rx.drop(frame, reason),
        }
    }

    /// Whether a packet is an ICMP query, which the NAT answers itself.
    fn is_local_query(&self, rx: &RxContext, frame: &Frame, headers: &Headers) -> bool {
        let flow = FlowAddresses::of(rx.pool.bytes(frame), headers);
        flow.is_some_and(|flow| flow.content == Content::IcmpRequest)
    }

    fn forward_translated(
        &mut self,
        rx: &mut RxContext,
        frame: Frame,
        headers: &Headers,
        translation: &Translation,
    ) {
        let dst = IpAddr::V4(translation.dst);
        let Some(NextHop { interface, via }) = self.route(dst) else {
            return self.drop_with_error(rx, frame, headers, IcmpError::NoRoute, Reason::NoRoute);
        };
        self.send_on(rx, frame, headers, (interface, via.unwrap_or(dst)), Some(&translation.rewrite));
    }

    /// Translates the fragments that came before the first one as it was.
    fn release_fragments(&mut self, rx: &mut RxContext, ip: &Ipv4, translation: Translation) {
        let Some(nat) = &mut self.nat else { return };
        for waiting in nat.fragments.first(rx.at, PacketKey::new(rx.interface, ip), translation) {
            let headers = Headers::parse(rx.pool.bytes(&waiting.frame));
            let mut rx = RxContext {
                at: rx.at,
                interface: waiting.interface,
                pool: &mut *rx.pool,
                actions: &mut *rx.actions,
            };
            self.forward_translated(&mut rx, waiting.frame, &headers, &translation);
        }
    }

    /// Drops the fragments whose first one has not come by `at`.
    pub(crate) fn expire_fragments(&mut self, at: Time, actions: &mut Vec<NodeAction>) {
        let Some(nat) = &mut self.nat else { return };
        while let Some(frame) = nat.pop_expired(at) {
            actions.push(NodeAction::Drop(frame, Reason::NatFragment));
        }
    }
}
