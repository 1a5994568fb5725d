//! A router inside the engine: IP forwarding as RFC 1812 and RFC 8200 ask of it.
//!
//! ```text
//!  frame ─▶ for this MAC? ─▶ IP? ─▶ for me? ──▶ TTL ─▶ route ─▶ MTU ─▶ next hop's MAC ─▶ out
//!             │               │        │          │       │       │            │
//!             drop        ARP (slow)  slow      ICMP    ICMP  fragment/ICMP   ask, wait
//! ```
//!
//! Forwarding is this file; what a router says for itself (ARP, ND, echo, ICMP errors) is
//! `speaker.rs`. What it is not: multicast is not routed, and no routing protocol is spoken (routes
//! are static).

use crate::fate::{Act, Reason};
use crate::neighbor::{Neighbors, Parked, Question, Station};
use crate::pool::{Frame, FramePool};
use crate::route::{Fib, NextHop, Routes};
use fastpath_spec::segment;
use fastpath_spec::{Interface, NodeId, NodeKind, Topology};
use fastpath_units::Time;
use fastpath_wire::icmp::Problem;
use fastpath_wire::{Headers, MacAddr, Network, build, ipv4, ipv6};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;

#[derive(Debug)]
pub(crate) struct Router {
    ports: Vec<Port>,
    own: BTreeSet<IpAddr>,
    fib: Fib,
    neighbors: Neighbors,
}

/// An interface as forwarding needs it.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) mac: MacAddr,
    pub(crate) mtu: usize,
    pub(crate) addresses: Vec<IpNet>,
    /// Who hears what is sent here.
    medium: Medium,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    /// One other station: every frame that comes is meant for this one, whatever its MAC says, so
    /// that captures taken elsewhere can be replayed through routers.
    PointToPoint,
    /// A segment with switches: frames flooded past are for others.
    Shared,
}

/// A frame being handled, and where answers go.
pub(crate) struct Work<'a> {
    pub(crate) at: Time,
    pub(crate) interface: usize,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) acts: &'a mut Vec<Act>,
}

impl Work<'_> {
    pub(crate) fn drop(&mut self, frame: Frame, reason: Reason) {
        self.acts.push(Act::Drop(frame, reason));
    }

    /// Sends a frame of the router's own making.
    pub(crate) fn originate(&mut self, interface: usize, bytes: &[u8]) {
        self.acts.push(match self.pool.insert(bytes) {
            Some(frame) => Act::Originate { interface, frame },
            None => Act::Starve,
        });
    }
}

impl Router {
    pub(crate) fn new(topology: &Topology, id: NodeId, routes: &Routes) -> Router {
        let interfaces = &topology.node(id).interfaces;
        let ports: Vec<Port> = interfaces.iter().map(|interface| Port::new(topology, interface)).collect();
        let own = ports.iter().flat_map(|port| port.addresses.iter().map(IpNet::addr)).collect();
        let mut neighbors = Neighbors::default();
        for index in 0..interfaces.len() {
            for (node, far) in segment::stations(topology, id, index) {
                let station = &topology.node(node).interfaces[far];
                for address in station.addresses.iter().filter(|_| node != id) {
                    if let Some(mac) = station.mac {
                        neighbors.learn((index, address.addr()), mac, |_| unreachable!("nothing waits yet"));
                    }
                }
            }
        }
        Router { ports, own, fib: Fib::new(routes.of(id)), neighbors }
    }

    /// When the next frame is given up that waits for a neighbor to answer.
    #[inline]
    pub(crate) fn gives_up_at(&self) -> Option<Time> {
        self.neighbors.gives_up_at()
    }

    /// Drops the frames whose next hop has not answered in time, and tells their senders (RFC 1812
    /// §5.2.7.1).
    pub(crate) fn give_up(&mut self, at: Time, pool: &mut FramePool, acts: &mut Vec<Act>) {
        while let Some(Parked { frame, came_by: interface }) = self.neighbors.give_up(at) {
            let headers = Headers::parse(pool.bytes(&frame));
            let mut work = Work { at, interface, pool, acts };
            self.complain(&mut work, frame, &headers, Problem::HostUnreachable, Reason::Unresolved);
        }
    }

    /// Frames that wait for a neighbor to answer.
    pub(crate) fn held(&self) -> usize {
        self.neighbors.held()
    }

    pub(crate) fn receive(
        &mut self,
        at: Time,
        interface: usize,
        frame: Frame,
        pool: &mut FramePool,
        acts: &mut Vec<Act>,
    ) {
        let headers = Headers::parse(pool.bytes(&frame));
        let mut work = Work { at, interface, pool, acts };
        let port = &self.ports[interface];
        if port.medium == Medium::Shared && !headers.dst.is_multicast() && headers.dst != port.mac {
            return work.drop(frame, Reason::NotAddressed);
        }
        match headers.network {
            Network::Ipv4(_) if headers.ipv4_checksum_ok(work.pool.bytes(&frame)) == Some(false) => {
                work.drop(frame, Reason::Malformed);
            }
            Network::Ipv4(ip) => self.ip(&mut work, frame, &headers, ip.dst.into()),
            Network::Ipv6(ip) => self.ip(&mut work, frame, &headers, ip.dst.into()),
            Network::Arp => self.arp(&mut work, frame, &headers),
            Network::Other => work.drop(frame, Reason::NotAddressed),
            Network::Malformed(_) => work.drop(frame, Reason::Malformed),
        }
    }

    fn ip(&mut self, work: &mut Work, frame: Frame, headers: &Headers, dst: IpAddr) {
        if self.own.contains(&dst) {
            self.local(work, frame, headers);
        } else if headers.dst.is_multicast() || is_confined(dst) {
            // Neighbor discovery is multicast to groups nobody else listens to.
            self.group(work, frame, headers);
        } else {
            self.forward(work, frame, headers, dst);
        }
    }

    fn forward(&mut self, work: &mut Work, mut frame: Frame, headers: &Headers, dst: IpAddr) {
        let (lifetime, len) = match headers.network {
            Network::Ipv4(ip) => (ip.ttl, usize::from(ip.total_len)),
            Network::Ipv6(ip) => (ip.hop_limit, ip.end() - ip.offset),
            _ => return work.drop(frame, Reason::Malformed),
        };
        if lifetime <= 1 {
            return self.complain(work, frame, headers, Problem::HopLimit, Reason::TtlExpired);
        }
        let Some(NextHop { interface, via }) = self.fib.lookup(dst) else {
            return self.complain(work, frame, headers, Problem::NoRoute, Reason::NoRoute);
        };
        let mtu = self.ports[interface].mtu;
        let may_fragment = matches!(headers.network, Network::Ipv4(ip) if !ip.dont_fragment);
        if len > mtu && !may_fragment {
            let problem = Problem::TooBig { mtu: mtu as u32 };
            return self.complain(work, frame, headers, problem, Reason::TooBig);
        }
        count_hop(work.pool.bytes_mut(&mut frame), headers);
        let station = (interface, via.unwrap_or(dst));
        if len <= mtu {
            return self.dispatch(work, station, frame);
        }
        self.fragment(work, station, frame, mtu);
    }

    /// Sends a packet that is too long for the next link in pieces. The first takes the packet's
    /// place, so that an observer sees it go on; the others are new.
    fn fragment(&mut self, work: &mut Work, station: Station, mut frame: Frame, mtu: usize) {
        let Ok(fragments) = ipv4::fragment(work.pool.bytes(&frame), mtu) else {
            return work.drop(frame, Reason::TooBig);
        };
        let Some((first, rest)) = fragments.split_first() else {
            return work.drop(frame, Reason::TooBig);
        };
        work.pool.truncate(&mut frame, first.len());
        work.pool.bytes_mut(&mut frame).copy_from_slice(first);
        self.dispatch(work, station, frame);
        for fragment in rest {
            match work.pool.insert(fragment) {
                Some(frame) => {
                    work.acts.push(Act::Count);
                    self.dispatch(work, station, frame);
                }
                None => work.acts.push(Act::Starve),
            }
        }
    }

    /// Sends a frame to its next hop, or keeps it until the next hop's hardware address is known.
    fn dispatch(&mut self, work: &mut Work, station: Station, frame: Frame) {
        if let Some(mac) = self.neighbors.resolve(station) {
            return self.transmit(work, station.0, mac, frame);
        }
        let acts = &mut *work.acts;
        let parked = Parked { frame, came_by: work.interface };
        let question = self.neighbors.wait(work.at, station, parked, |frame| {
            acts.push(Act::Drop(frame, Reason::Unresolved));
        });
        if question == Question::Ask {
            self.ask(work, station);
        }
    }

    fn transmit(&self, work: &mut Work, interface: usize, mac: MacAddr, mut frame: Frame) {
        build::set_macs(work.pool.bytes_mut(&mut frame), self.ports[interface].mac, mac);
        work.acts.push(Act::Forward { interface, frame });
    }

    /// Notes where a station is, if it belongs on that interface, and sends what waited for it.
    pub(crate) fn learn(&mut self, work: &mut Work, ip: IpAddr, mac: MacAddr) {
        let interface = work.interface;
        if !self.ports[interface].is_on_link(ip) || self.own.contains(&ip) {
            return;
        }
        let mut released = Vec::new();
        self.neighbors.learn((interface, ip), mac, |frame| released.push(frame));
        for frame in released {
            self.transmit(work, interface, mac, frame);
        }
    }

    /// The interface a frame came in by.
    pub(crate) fn port(&self, interface: usize) -> &Port {
        &self.ports[interface]
    }
}

impl Port {
    fn new(topology: &Topology, interface: &Interface) -> Port {
        let (far, _) = topology.peer(interface);
        let medium = match topology.node(far).kind {
            NodeKind::Switch | NodeKind::OpenFlow { .. } => Medium::Shared,
            NodeKind::Host { .. } | NodeKind::Router => Medium::PointToPoint,
        };
        Port {
            mac: interface.mac.unwrap_or_default(),
            mtu: interface.mtu as usize,
            addresses: interface.addresses.clone(),
            medium,
        }
    }

    /// Whether an address is in one of the interface's subnets.
    fn is_on_link(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.contains(&ip))
    }

    /// The interface's address of the same family as `ip`, in the same subnet if there is one.
    pub(crate) fn address_towards(&self, ip: IpAddr) -> Option<IpAddr> {
        let same_family = || self.addresses.iter().filter(|net| net.addr().is_ipv4() == ip.is_ipv4());
        same_family().find(|net| net.contains(&ip)).or_else(|| same_family().next()).map(IpNet::addr)
    }
}

/// Addresses that no router forwards to: groups, the limited broadcast, link-local, loopback,
/// unspecified.
fn is_confined(ip: IpAddr) -> bool {
    ip.is_multicast()
        || ip.is_loopback()
        || ip.is_unspecified()
        || match ip {
            IpAddr::V4(ip) => ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        }
}

/// Counts the hop in the header. The caller has seen that there is a hop left.
fn count_hop(bytes: &mut [u8], headers: &Headers) {
    let _ = match headers.network {
        Network::Ipv4(ip) => ipv4::decrement_ttl(bytes, ip.offset),
        Network::Ipv6(ip) => ipv6::decrement_hop_limit(bytes, ip.offset),
        Network::Arp | Network::Other | Network::Malformed(_) => ipv4::Hop::Forward,
    };
}
