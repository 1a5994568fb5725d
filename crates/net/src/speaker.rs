//! What a router says for itself, off the fast path: answers to ARP, neighbor discovery and echo
//! requests, questions for neighbors, and ICMP errors.

use crate::fate::{Act, Reason};
use crate::neighbor::Station;
use crate::pool::Frame;
use crate::router::{Router, Work};
use fastpath_wire::arp::{Arp, Operation};
use fastpath_wire::icmp::{self, Problem};
use fastpath_wire::nd::{Neighbor, Role, Solicitation};
use fastpath_wire::{Headers, Network, protocol};
use std::net::IpAddr;

impl Router {
    /// An ARP message: learns from it and answers for the interface's own addresses (RFC 826).
    pub(crate) fn arp(&mut self, work: &mut Work, frame: Frame, headers: &Headers) {
        let Some(arp) = Arp::parse(work.pool.bytes(&frame), headers) else {
            return work.drop(frame, Reason::Malformed);
        };
        self.learn(work, arp.sender_ip.into(), arp.sender_mac);
        let port = self.port(work.interface);
        let mine = port.addresses.iter().any(|net| net.addr() == IpAddr::V4(arp.target_ip));
        if mine && arp.operation == Operation::Request {
            let answer = arp.answer(port.mac).to_frame();
            work.originate(work.interface, &answer);
        }
        match mine {
            true => work.acts.push(Act::Absorb(frame)),
            false => work.drop(frame, Reason::NotAddressed),
        }
    }

    /// A packet to a group or confined to the link: neighbor discovery, or nothing for us.
    pub(crate) fn group(&mut self, work: &mut Work, frame: Frame, headers: &Headers) {
        match self.neighbor_discovery(work, &frame, headers) {
            Heard::ForUs => work.acts.push(Act::Absorb(frame)),
            Heard::ForOthers => work.drop(frame, Reason::NotAddressed),
        }
    }

    /// A packet to one of the router's own addresses.
    pub(crate) fn local(&mut self, work: &mut Work, frame: Frame, headers: &Headers) {
        if self.neighbor_discovery(work, &frame, headers) == Heard::ForUs {
            return work.acts.push(Act::Absorb(frame));
        }
        let bytes = work.pool.bytes(&frame);
        if let Some(reply) = icmp::echo_reply(bytes, headers) {
            work.originate(work.interface, &reply);
        } else if headers.transport.is_some_and(|transport| transport.protocol == protocol::UDP) {
            // What traceroute expects of its last hop.
            self.say(work, &frame, headers, Problem::PortUnreachable);
        }
        work.acts.push(Act::Absorb(frame));
    }

    /// Drops a packet and tells its sender why.
    pub(crate) fn complain(
        &mut self,
        work: &mut Work,
        frame: Frame,
        headers: &Headers,
        problem: Problem,
        reason: Reason,
    ) {
        self.say(work, &frame, headers, problem);
        work.drop(frame, reason);
    }

    /// Asks who has an address.
    pub(crate) fn ask(&self, work: &mut Work, (interface, ip): Station) {
        let port = self.port(interface);
        let question = match (port.address_towards(ip), ip) {
            (Some(IpAddr::V4(own)), IpAddr::V4(target)) => Arp::request(port.mac, own, target).to_frame(),
            (Some(IpAddr::V6(source)), IpAddr::V6(target)) => {
                Solicitation { source, source_mac: port.mac, target }.to_frame()
            }
            _ => return,
        };
        work.originate(interface, &question);
    }

    fn neighbor_discovery(&mut self, work: &mut Work, frame: &Frame, headers: &Headers) -> Heard {
        match Neighbor::parse(work.pool.bytes(frame), headers) {
            Some(Neighbor::Solicitation(question)) => {
                self.learn(work, question.source.into(), question.source_mac);
                let port = self.port(work.interface);
                if !port.addresses.iter().any(|net| net.addr() == IpAddr::V6(question.target)) {
                    return Heard::ForOthers;
                }
                let answer = question.answer(port.mac, Role::Router);
                work.originate(work.interface, &answer);
                Heard::ForUs
            }
            Some(Neighbor::Advertisement(answer)) => {
                self.learn(work, answer.target.into(), answer.target_mac);
                Heard::ForUs
            }
            None => Heard::ForOthers,
        }
    }

    /// Sends an ICMP error back where the packet came from, from the address of that interface.
    fn say(&self, work: &mut Work, frame: &Frame, headers: &Headers, problem: Problem) {
        let port = self.port(work.interface);
        let source = match headers.network {
            Network::Ipv4(ip) => IpAddr::V4(ip.src),
            Network::Ipv6(ip) => IpAddr::V6(ip.src),
            Network::Arp | Network::Other | Network::Malformed(_) => return,
        };
        let Some(from) = port.address_towards(source) else { return };
        if let Some(message) = icmp::error(work.pool.bytes(frame), headers, problem, (port.mac, from)) {
            work.originate(work.interface, &message);
        }
    }
}

/// Whom a message was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heard {
    ForUs,
    ForOthers,
}
