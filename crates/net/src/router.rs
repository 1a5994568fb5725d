//! A router: IP forwarding according to RFC 1812 and RFC 8200.
//!
//! ```text
//!  frame ─▶ MAC ok? ─▶ IP? ─▶ own address? ─▶ TTL ─▶ route ─▶ MTU ─▶ MAC of the next hop ─▶ out
//!             │         │          │           │       │       │              │
//!            drop   ARP (slow)   slow        ICMP    ICMP  fragment/ICMP   request, wait
//! ```
//!
//! This file is the forwarding path. ARP, ND, echo replies and ICMP errors are in
//! `router_slow_path.rs`. Multicast is not routed. There is no routing protocol: routes are static
//! or follow the states of links (`route.rs`).

use crate::fate::{NodeAction, Reason};
use crate::nat::Nat;
use crate::neighbor::{NeighborKey, Neighbors, RequestState, UnresolvedFrame};
use crate::next_hop_cache::{KnownHop, NextHopCache};
use crate::pool::{Frame, FramePool};
use crate::route::{Fib, NextHop, Routes};
use crate::rx_context::RxContext;
use fastpath_spec::segment;
use fastpath_spec::{Interface, NodeId, Topology};
use fastpath_units::{Rng, Time};
use fastpath_wire::icmp::IcmpError;
use fastpath_wire::translate::Rewrite;
use fastpath_wire::{Headers, MacAddr, NetworkLayer, build, ipv4, ipv6};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The first of the random streams that choose the hash functions of routers. Those of links are
/// below.
const HASH_STREAM: u64 = 1 << 48;

#[derive(Debug)]
pub(crate) struct Router {
    ports: Vec<Port>,
    own: BTreeSet<IpAddr>,
    fib: Fib,
    /// The number of the link states of which `fib` is the table; `None`: it stays.
    fib_version: Option<u64>,
    /// What distinguishes its choice among several next hops from that of other routers.
    hash_seed: u64,
    neighbors: Neighbors,
    /// What routes and neighbors say about recent destinations.
    recent: NextHopCache,
    pub(crate) nat: Option<Box<Nat>>,
}

/// The properties of an interface that forwarding uses.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) mac: MacAddr,
    pub(crate) mtu: usize,
    pub(crate) addresses: Vec<IpNet>,
    medium: Medium,
}

/// The segment of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    /// A link to one other station. The router accepts frames with any unicast MAC address, so that
    /// captures from other networks can be replayed through routers.
    PointToPoint,
    /// A segment with switches. The router drops flooded frames for other MAC addresses.
    Shared,
}

impl Router {
    /// Creates the router of a node. Without `routes` it needs [`Router::update_routes`]. `seed` is
    /// that of the run, for the random choices of a NAT and among equal paths.
    pub(crate) fn new(topology: &Topology, id: NodeId, routes: Option<&Routes>, seed: u64) -> Router {
        let interfaces = &topology.node(id).interfaces;
        let mut ports: Vec<Port> =
            interfaces.iter().map(|interface| Port::new(topology, interface)).collect();
        // Random streams of pipes have lower numbers; that of the first link is the same in a part.
        let stream = interfaces
            .first()
            .map_or(0, |first| 2 * u64::from(topology.link(first.link).stream) + first.end as u64);
        let nat = Nat::of(topology.node(id), seed, stream + (1 << 40)).map(Box::new);
        if let Some(nat) = &nat {
            // An address of the pool may be that of an inside host, which answers for it there.
            let outside = ports.iter_mut().enumerate().filter(|(index, _)| !nat.is_inside(*index));
            for (_, port) in outside {
                nat.pool().iter().for_each(|&address| port.add_address(address.into()));
            }
        }
        let own = ports.iter().flat_map(|port| port.addresses.iter().map(IpNet::addr)).collect();
        let mut known = BTreeMap::new();
        for index in 0..interfaces.len() {
            for (node, far) in segment::stations(topology, id, index) {
                let station = &topology.node(node).interfaces[far];
                for address in station.addresses.iter().filter(|_| node != id) {
                    if let Some(mac) = station.mac.filter(|mac| !mac.is_multicast()) {
                        known.insert((index, address.addr()), mac);
                    }
                }
            }
        }
        let fib = routes.map(|routes| Fib::of_router(topology, routes.of(id)));
        Router {
            ports,
            own,
            fib_version: fib.is_none().then_some(u64::MAX),
            fib: fib.unwrap_or_default(),
            hash_seed: Rng::stream(seed, HASH_STREAM | stream).next_u64(),
            neighbors: Neighbors::knowing(known),
            recent: NextHopCache::default(),
            nat,
        }
    }

    /// Computes the routes if link states have changed since the last call.
    #[inline]
    pub(crate) fn update_routes(&mut self, version: u64, compute: impl FnOnce() -> Fib) {
        if self.fib_version.is_some_and(|known| known != version) {
            self.fib = compute();
            self.recent.clear();
            self.fib_version = Some(version);
        }
    }

    /// Takes over what `old`, the same router before a change of the topology, has learned and
    /// holds. `place` returns the number of a former interface. Frames whose interface is gone go
    /// to `lost`.
    pub(crate) fn take_over(
        &mut self,
        old: &mut Router,
        place: impl Fn(usize) -> Option<usize>,
        lost: impl FnMut(Frame),
    ) {
        if let (Some(new), Some(old)) = (&mut self.nat, &mut old.nat) {
            new.take_over(old, &place);
        }
        // Flows keep their paths.
        self.hash_seed = old.hash_seed;
        self.neighbors.take_over(&mut old.neighbors, place, lost);
    }

    /// Takes out the frames that wait for a neighbor or a fragment.
    pub(crate) fn empty(&mut self, mut take: impl FnMut(Frame)) {
        while let Some(frame) = self.nat.as_mut().and_then(|nat| nat.pop_expired(Time::MAX)) {
            take(frame);
        }
        self.neighbors.empty(take);
    }

    /// Returns when the next frame expires that waits for a neighbor.
    #[inline]
    pub(crate) fn expires_at(&self) -> Option<Time> {
        let waiting = self.nat.as_ref().and_then(|nat| nat.expires_at());
        [self.neighbors.expires_at(), waiting].into_iter().flatten().min()
    }

    /// Drops the frames whose next hop has not answered in time, and sends ICMP host unreachable to
    /// their senders (RFC 1812 §5.2.7.1).
    pub(crate) fn expire_neighbors(&mut self, at: Time, pool: &mut FramePool, actions: &mut Vec<NodeAction>) {
        self.expire_fragments(at, actions);
        while let Some(UnresolvedFrame { frame, received_on: interface }) = self.neighbors.pop_expired(at) {
            let headers = Headers::parse(pool.bytes(&frame));
            let mut rx = RxContext { at, interface, pool, actions };
            self.drop_with_error(&mut rx, frame, &headers, IcmpError::HostUnreachable, Reason::Unresolved);
        }
    }

    /// Returns the number of frames that wait for a neighbor.
    pub(crate) fn held(&self) -> usize {
        self.neighbors.held() + self.nat.as_ref().map_or(0, |nat| nat.held())
    }

    /// Returns whether an address is one of the router.
    pub(crate) fn owns(&self, address: IpAddr) -> bool {
        self.own.contains(&address)
    }

    /// Returns the next hop to an address.
    pub(crate) fn route(&self, address: IpAddr) -> Option<NextHop> {
        self.fib.lookup(address)
    }

    pub(crate) fn receive(
        &mut self,
        at: Time,
        interface: usize,
        mut frame: Frame,
        pool: &mut FramePool,
        actions: &mut Vec<NodeAction>,
    ) {
        let headers = Headers::parse(pool.bytes(&frame));
        let mut rx = RxContext { at, interface, pool, actions };
        let port = &self.ports[interface];
        if port.medium == Medium::Shared && !headers.dst.is_multicast() && headers.dst != port.mac {
            return rx.drop(frame, Reason::NotAddressed);
        }
        match headers.network {
            NetworkLayer::Ipv4(_) if headers.ipv4_checksum_ok(rx.pool.bytes(&frame)) == Some(false) => {
                rx.drop(frame, Reason::Malformed);
            }
            NetworkLayer::Ipv4(ip)
                if self.nat.is_some() && !headers.dst.is_multicast() && !is_confined(ip.dst.into()) =>
            {
                self.translate(&mut rx, frame, &headers, &ip);
            }
            NetworkLayer::Ipv4(ip) => match self.recent.get(ip.dst) {
                Some(hop) if ip.ttl > 1 && self.fits(hop, ip.total_len) && !headers.dst.is_multicast() => {
                    count_hop(rx.pool.bytes_mut(&mut frame), &headers);
                    self.transmit(&mut rx, hop.0 as usize, hop.1, frame);
                }
                _ => self.ip(&mut rx, frame, &headers, ip.dst.into()),
            },
            NetworkLayer::Ipv6(ip) => self.ip(&mut rx, frame, &headers, ip.dst.into()),
            NetworkLayer::Arp => self.arp(&mut rx, frame, &headers),
            NetworkLayer::Other => rx.drop(frame, Reason::NotAddressed),
            NetworkLayer::Malformed(_) => rx.drop(frame, Reason::Malformed),
        }
    }

    /// Returns whether a packet of `len` bytes may leave by a known hop as it is.
    #[inline]
    fn fits(&self, hop: KnownHop, len: u16) -> bool {
        usize::from(len) <= self.ports[hop.0 as usize].mtu
    }

    fn ip(&mut self, rx: &mut RxContext, frame: Frame, headers: &Headers, dst: IpAddr) {
        if self.own.contains(&dst) {
            self.local(rx, frame, headers);
        } else if headers.dst.is_multicast() || is_confined(dst) {
            // Neighbor Discovery uses multicast groups of the router.
            self.group(rx, frame, headers);
        } else {
            self.forward(rx, frame, headers, dst);
        }
    }

    pub(crate) fn forward(&mut self, rx: &mut RxContext, frame: Frame, headers: &Headers, dst: IpAddr) {
        let lifetime = match headers.network {
            NetworkLayer::Ipv4(ip) => ip.ttl,
            NetworkLayer::Ipv6(ip) => ip.hop_limit,
            _ => return rx.drop(frame, Reason::Malformed),
        };
        if lifetime <= 1 {
            return self.drop_with_error(rx, frame, headers, IcmpError::HopLimit, Reason::TtlExpired);
        }
        // A flow keeps its path. The other direction of a connection may take another one.
        let hash = || spread(headers.flow_hash(), self.hash_seed);
        let Some(NextHop { interface, via }) = self.fib.lookup_flow(dst, hash) else {
            return self.drop_with_error(rx, frame, headers, IcmpError::NoRoute, Reason::NoRoute);
        };
        let neighbor = (interface, via.unwrap_or(dst));
        if let (IpAddr::V4(dst), Some(mac)) = (dst, self.neighbors.resolve(neighbor))
            && self.nat.is_none()
            && self.fib.has_one_hop(dst.into())
        {
            self.recent.insert(dst, (interface as u32, mac));
        }
        self.send_on(rx, frame, headers, neighbor, None);
    }

    /// Sends a packet to a neighbor, with other endpoints if a NAT rewrites them.
    pub(crate) fn send_on(
        &mut self,
        rx: &mut RxContext,
        mut frame: Frame,
        headers: &Headers,
        neighbor: NeighborKey,
        rewrite: Option<&Rewrite>,
    ) {
        let len = match headers.network {
            NetworkLayer::Ipv4(ip) => usize::from(ip.total_len),
            NetworkLayer::Ipv6(ip) => ip.end() - ip.offset,
            _ => return rx.drop(frame, Reason::Malformed),
        };
        let mtu = self.ports[neighbor.0].mtu;
        let may_fragment = matches!(headers.network, NetworkLayer::Ipv4(ip) if !ip.dont_fragment);
        if len > mtu && !may_fragment {
            let problem = IcmpError::TooBig { mtu: mtu as u32 };
            return self.drop_with_error(rx, frame, headers, problem, Reason::TooBig);
        }
        count_hop(rx.pool.bytes_mut(&mut frame), headers);
        if let Some(rewrite) = rewrite {
            rewrite.apply(rx.pool.bytes_mut(&mut frame), headers);
        }
        if len <= mtu {
            return self.dispatch(rx, neighbor, frame);
        }
        self.fragment(rx, neighbor, frame, mtu);
    }

    /// Sends a packet that exceeds the MTU of the next link as fragments. The first fragment reuses
    /// the frame of the packet, so that an observer can follow it; the others are new frames.
    fn fragment(&mut self, rx: &mut RxContext, neighbor: NeighborKey, mut frame: Frame, mtu: usize) {
        let Ok(fragments) = ipv4::fragment(rx.pool.bytes(&frame), mtu) else {
            return rx.drop(frame, Reason::TooBig);
        };
        let Some((first, rest)) = fragments.split_first() else {
            return rx.drop(frame, Reason::TooBig);
        };
        rx.pool.truncate(&mut frame, first.len());
        rx.pool.bytes_mut(&mut frame).copy_from_slice(first);
        self.dispatch(rx, neighbor, frame);
        for fragment in rest {
            match rx.pool.insert(fragment) {
                Some(frame) => {
                    rx.actions.push(NodeAction::CountGenerated);
                    self.dispatch(rx, neighbor, frame);
                }
                None => rx.actions.push(NodeAction::NoBuffer),
            }
        }
    }

    /// Sends a frame to its next hop, or queues it until the MAC address of the next hop is known.
    fn dispatch(&mut self, rx: &mut RxContext, neighbor: NeighborKey, frame: Frame) {
        if let Some(mac) = self.neighbors.resolve(neighbor) {
            return self.transmit(rx, neighbor.0, mac, frame);
        }
        let actions = &mut *rx.actions;
        let frame = UnresolvedFrame { frame, received_on: rx.interface };
        let request = self.neighbors.enqueue(rx.at, neighbor, frame, |frame| {
            actions.push(NodeAction::Drop(frame, Reason::Unresolved));
        });
        if request == RequestState::Due {
            self.send_request(rx, neighbor);
        }
    }

    fn transmit(&self, rx: &mut RxContext, interface: usize, mac: MacAddr, mut frame: Frame) {
        build::set_macs(rx.pool.bytes_mut(&mut frame), self.ports[interface].mac, mac);
        rx.actions.push(NodeAction::Forward { interface, frame });
    }

    /// Learns the MAC address of a neighbor, if its IP address belongs to the subnets of the
    /// interface, and sends the frames that waited for it.
    pub(crate) fn learn(&mut self, rx: &mut RxContext, ip: IpAddr, mac: MacAddr) {
        let interface = rx.interface;
        if !self.ports[interface].is_on_link(ip) || self.own.contains(&ip) {
            return;
        }
        let mut released = Vec::new();
        self.recent.clear();
        self.neighbors.learn((interface, ip), mac, |frame| released.push(frame));
        for frame in released {
            self.transmit(rx, interface, mac, frame);
        }
    }

    /// Returns an interface.
    pub(crate) fn port(&self, interface: usize) -> &Port {
        &self.ports[interface]
    }
}

impl Port {
    fn new(topology: &Topology, interface: &Interface) -> Port {
        let (far, _) = topology.peer(interface);
        let medium = match topology.node(far).kind.is_switch() {
            true => Medium::Shared,
            false => Medium::PointToPoint,
        };
        Port {
            mac: interface.mac.unwrap_or_default(),
            mtu: interface.mtu as usize,
            addresses: interface.addresses.clone(),
            medium,
        }
    }

    /// Adds an address on a subnet of the interface, if it is on one and not its own already.
    fn add_address(&mut self, address: IpAddr) {
        let on_link = self.addresses.iter().find(|net| net.contains(&address));
        let length = on_link.map(IpNet::prefix_len);
        if self.addresses.iter().all(|net| net.addr() != address)
            && let Some(added) = length.and_then(|length| IpNet::new(address, length).ok())
        {
            self.addresses.push(added);
        }
    }

    /// Returns whether an address is in one of the subnets of the interface.
    fn is_on_link(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.contains(&ip))
    }

    /// Returns the address of the interface to be used as the source of packets to `ip`: one in the
    /// subnet of `ip`, or else the first of the same family.
    pub(crate) fn address_towards(&self, ip: IpAddr) -> Option<IpAddr> {
        let same_family = || self.addresses.iter().filter(|net| net.addr().is_ipv4() == ip.is_ipv4());
        same_family().find(|net| net.contains(&ip)).or_else(|| same_family().next()).map(IpNet::addr)
    }
}

/// Returns the hash of a flow with a function that `seed` chooses (the finaliser of SplitMix64).
fn spread(flow_hash: u32, seed: u64) -> u32 {
    let mut h = seed ^ u64::from(flow_hash);
    h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((h ^ (h >> 31)) >> 32) as u32
}

/// Returns whether packets to an address are not forwarded: multicast, limited broadcast,
/// link-local, loopback, unspecified.
fn is_confined(ip: IpAddr) -> bool {
    ip.is_multicast()
        || ip.is_loopback()
        || ip.is_unspecified()
        || match ip {
            IpAddr::V4(ip) => ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        }
}

/// Decrements the TTL or hop limit. The caller has checked that it is above 1.
fn count_hop(bytes: &mut [u8], headers: &Headers) {
    let _ = match headers.network {
        NetworkLayer::Ipv4(ip) => ipv4::decrement_ttl(bytes, ip.offset),
        NetworkLayer::Ipv6(ip) => ipv6::decrement_hop_limit(bytes, ip.offset),
        NetworkLayer::Arp | NetworkLayer::Other | NetworkLayer::Malformed(_) => ipv4::HopResult::Forward,
    };
}
