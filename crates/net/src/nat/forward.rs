//! How a router forwards the packets that its NAT translates.

use super::fragments::PacketKey;
use super::{Decision, Translation};
use crate::fate::{NodeAction, Reason};
use crate::pool::Frame;
use crate::route::NextHop;
use crate::router::Router;
use crate::rx_context::RxContext;
use fastpath_units::Time;
use fastpath_wire::icmp::IcmpError;
use fastpath_wire::translate::{Content, FlowAddresses};
use fastpath_wire::{Headers, Ipv4};
use std::net::IpAddr;

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
