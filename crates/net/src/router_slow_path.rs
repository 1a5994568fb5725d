//! The slow path of a router: replies to ARP, Neighbor Discovery and echo requests, requests for
//! neighbors, and ICMP errors. The forwarding path is in `router.rs`, which calls these methods.

use crate::fate::{NodeAction, Reason};
use crate::neighbor::NeighborKey;
use crate::pool::Frame;
use crate::router::Router;
use crate::rx_context::RxContext;
use fastpath_wire::arp::{Arp, ArpOperation};
use fastpath_wire::icmp::{self, IcmpError};
use fastpath_wire::nd::{Neighbor, Role, Solicitation};
use fastpath_wire::{Headers, NetworkLayer, protocol};
use std::net::IpAddr;

impl Router {
    /// Processes an ARP message: learns the sender and answers requests for the addresses of the
    /// interface (RFC 826).
    pub(crate) fn arp(&mut self, rx: &mut RxContext, frame: Frame, headers: &Headers) {
        let Some(arp) = Arp::parse(rx.pool.bytes(&frame), headers) else {
            return rx.drop(frame, Reason::Malformed);
        };
        self.learn(rx, arp.sender_ip.into(), arp.sender_mac);
        let port = self.port(rx.interface);
        let mine = port.addresses.iter().any(|net| net.addr() == IpAddr::V4(arp.target_ip));
        if mine && arp.operation == ArpOperation::Request {
            let answer = arp.answer(port.mac).to_frame();
            rx.originate(rx.interface, &answer);
        }
        match mine {
            true => rx.actions.push(NodeAction::Consume(frame)),
            false => rx.drop(frame, Reason::NotAddressed),
        }
    }

    /// Processes a packet to a multicast group or an address that is not forwarded. The router
    /// accepts Neighbor Discovery only.
    pub(crate) fn group(&mut self, rx: &mut RxContext, frame: Frame, headers: &Headers) {
        match self.neighbor_discovery(rx, &frame, headers) {
            Recipient::Router => rx.actions.push(NodeAction::Consume(frame)),
            Recipient::Other => rx.drop(frame, Reason::NotAddressed),
        }
    }

    /// Processes a packet to an address of the router.
    pub(crate) fn local(&mut self, rx: &mut RxContext, frame: Frame, headers: &Headers) {
        if self.neighbor_discovery(rx, &frame, headers) == Recipient::Router {
            return rx.actions.push(NodeAction::Consume(frame));
        }
        let bytes = rx.pool.bytes(&frame);
        if let Some(reply) = icmp::echo_reply(bytes, headers) {
            rx.originate(rx.interface, &reply);
        } else if headers.transport.is_some_and(|transport| transport.protocol == protocol::UDP) {
            // traceroute expects this error from its last hop.
            self.send_error(rx, &frame, headers, IcmpError::PortUnreachable);
        }
        rx.actions.push(NodeAction::Consume(frame));
    }

    /// Drops a packet and sends an ICMP error to its sender.
    pub(crate) fn drop_with_error(
        &mut self,
        rx: &mut RxContext,
        frame: Frame,
        headers: &Headers,
        problem: IcmpError,
        reason: Reason,
    ) {
        self.send_error(rx, &frame, headers, problem);
        rx.drop(frame, reason);
    }

    /// Sends an ARP request or neighbor solicitation.
    pub(crate) fn send_request(&self, rx: &mut RxContext, (interface, ip): NeighborKey) {
        let port = self.port(interface);
        let request = match (port.address_towards(ip), ip) {
            (Some(IpAddr::V4(own)), IpAddr::V4(target)) => Arp::request(port.mac, own, target).to_frame(),
            (Some(IpAddr::V6(source)), IpAddr::V6(target)) => {
                Solicitation { source, source_mac: port.mac, target }.to_frame()
            }
            _ => return,
        };
        rx.originate(interface, &request);
    }

    fn neighbor_discovery(&mut self, rx: &mut RxContext, frame: &Frame, headers: &Headers) -> Recipient {
        match Neighbor::parse(rx.pool.bytes(frame), headers) {
            Some(Neighbor::Solicitation(solicitation)) => {
                self.learn(rx, solicitation.source.into(), solicitation.source_mac);
                let port = self.port(rx.interface);
                if !port.addresses.iter().any(|net| net.addr() == IpAddr::V6(solicitation.target)) {
                    return Recipient::Other;
                }
                let answer = solicitation.answer(port.mac, Role::Router);
                rx.originate(rx.interface, &answer);
                Recipient::Router
            }
            Some(Neighbor::Advertisement(answer)) => {
                self.learn(rx, answer.target.into(), answer.target_mac);
                Recipient::Router
            }
            None => Recipient::Other,
        }
    }

    /// Sends an ICMP error to the source of a packet, on the interface that received the packet.
    fn send_error(&self, rx: &mut RxContext, frame: &Frame, headers: &Headers, problem: IcmpError) {
        let port = self.port(rx.interface);
        let source = match headers.network {
            NetworkLayer::Ipv4(ip) => IpAddr::V4(ip.src),
            NetworkLayer::Ipv6(ip) => IpAddr::V6(ip.src),
            NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => return,
        };
        let Some(from) = port.address_towards(source) else { return };
        if let Some(message) = icmp::error(rx.pool.bytes(frame), headers, problem, (port.mac, from)) {
            rx.originate(rx.interface, &message);
        }
    }
}

/// The recipient of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recipient {
    Router,
    Other,
}
