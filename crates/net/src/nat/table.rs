//! The mappings and sessions of a NAT: RFC 4787 (UDP), RFC 5382 (TCP), RFC 5508 (ICMP queries).
//!
//! ```text
//!  inside endpoint [+ remote] ──▶ mapping ◀── outside endpoint
//!                                   │
//!                                   └─▶ sessions, one per remote endpoint: filter, timer, TCP state
//! ```
//!
//! A mapping lives as long as it has sessions. A session ends some time after its last packet; it
//! makes no difference before the next packet comes, so the table needs no timer of its own. The
//! slow and obvious twin of this file is `oracle.rs`.

use super::ports::Ports;
use super::protocol::NatProtocol;
use crate::fate::Reason;
use fastpath_spec::{Dependence, NatSettings, Pooling, Rebinding};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::build::tcp_flags;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

/// One packet, as the table sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Time,
    pub(crate) protocol: NatProtocol,
    /// The flags of TCP; 0 for other protocols.
    pub(crate) flags: u8,
}

/// The state of a NAT at an instant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NatCounters {
    /// Mappings now.
    pub mappings: u64,
    /// Sessions now.
    pub sessions: u64,
    /// Sessions since the start.
    pub sessions_created: u64,
}

/// A session of a NAT: a mapping used with one remote endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatSession {
    /// Its protocol.
    pub protocol: NatProtocol,
    /// The endpoint of the inside host.
    pub inside: SocketAddrV4,
    /// The endpoint in its place outside.
    pub outside: SocketAddrV4,
    /// The endpoint of the other host. Its port is 0 for ICMP.
    pub remote: SocketAddrV4,
    /// When it ends if no packet comes.
    pub expires: Time,
}

/// The number of a mapping. Numbers are not used again.
type Id = u64;
type InsideKey = (NatProtocol, SocketAddrV4, Option<(Ipv4Addr, u16)>);

#[derive(Debug)]
struct Mapping {
    key: InsideKey,
    outside: SocketAddrV4,
    sessions: u32,
}

#[derive(Debug)]
struct Session {
    expires: Time,
    /// Its entry in [`NatTable::deadlines`], at or before `expires`.
    scheduled: Time,
    tcp: TcpState,
}

/// What has been seen of a TCP connection, by direction: outbound, inbound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TcpState {
    seen: [bool; 2],
    fin: [bool; 2],
    reset: bool,
}

/// The direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Out = 0,
    In = 1,
}

impl TcpState {
    /// RFC 5382 §5: a connection is established once both sides have sent, until both have closed
    /// or one has reset it.
    fn is_established(&self) -> bool {
        self.seen == [true; 2] && !self.is_closed()
    }

    fn is_closed(&self) -> bool {
        self.reset || self.fin == [true; 2]
    }

    pub(super) fn see(&mut self, way: Way, flags: u8) {
        let is_first = flags & (tcp_flags::SYN | tcp_flags::ACK) == tcp_flags::SYN;
        if is_first && self.is_closed() {
            // The same endpoints open another connection.
            *self = TcpState::default();
        }
        self.seen[way as usize] = true;
        self.fin[way as usize] |= flags & tcp_flags::FIN > 0;
        self.reset |= flags & tcp_flags::RST > 0;
    }

    pub(super) fn timeout(&self, protocol: NatProtocol, settings: &NatSettings) -> Duration {
        let timeouts = &settings.timeouts;
        match protocol {
            NatProtocol::Udp => timeouts.udp,
            NatProtocol::Icmp => timeouts.icmp,
            NatProtocol::Tcp if self.is_established() => timeouts.tcp,
            NatProtocol::Tcp => timeouts.tcp_transitory,
        }
    }
}

#[derive(Debug)]
pub(crate) struct NatTable {
    settings: NatSettings,
    pool: Vec<Ipv4Addr>,
    /// How far paired addresses have moved on in the pool.
    turn: usize,
    rng: Rng,
    next: Id,
    sessions_created: u64,
    mappings: BTreeMap<Id, Mapping>,
    by_inside: BTreeMap<InsideKey, Id>,
    by_outside: BTreeMap<(NatProtocol, SocketAddrV4), Id>,
    sessions: BTreeMap<(Id, SocketAddrV4), Session>,
    /// The mappings of the sessions between an inside and a remote endpoint.
    flows: BTreeSet<(NatProtocol, SocketAddrV4, SocketAddrV4, Id)>,
    /// One entry per session.
    deadlines: BTreeSet<(Time, Id, SocketAddrV4)>,
    /// The outside ports in use.
    ports: BTreeMap<(NatProtocol, Ipv4Addr), Ports>,
}

impl NatTable {
    /// Creates an empty table that translates to the addresses of `pool`, of which there is one at
    /// least.
    pub(crate) fn new(settings: NatSettings, pool: Vec<Ipv4Addr>, rng: Rng) -> NatTable {
        NatTable {
            settings,
            pool,
            turn: 0,
            rng,
            next: 0,
            sessions_created: 0,
            mappings: BTreeMap::new(),
            by_inside: BTreeMap::new(),
            by_outside: BTreeMap::new(),
            sessions: BTreeMap::new(),
            flows: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            ports: BTreeMap::new(),
        }
    }

    /// Returns the outside endpoint of a packet from `inside` to `remote`, whose mapping and
    /// session are made if there are none.
    pub(crate) fn outbound(
        &mut self,
        seen: Seen,
        inside: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<SocketAddrV4, Reason> {
        self.expire(seen.at);
        let key = (seen.protocol, inside, depends(self.settings.mapping, remote));
        let found = self.mapping_of(key, remote);
        if let Some(id) = found.filter(|id| self.sessions.contains_key(&(*id, remote))) {
            self.refresh(seen, Way::Out, id, remote);
            return Ok(self.mappings[&id].outside);
        }
        self.may_begin(seen)?;
        let id = match found {
            Some(id) => id,
            None => self.map(key)?,
        };
        self.begin(seen, Way::Out, id, remote);
        Ok(self.mappings[&id].outside)
    }

    /// Returns the inside endpoint of a packet from `remote` to `outside`.
    pub(crate) fn inbound(
        &mut self,
        seen: Seen,
        outside: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<SocketAddrV4, Reason> {
        self.expire(seen.at);
        let id = *self.by_outside.get(&(seen.protocol, outside)).ok_or(Reason::NatFiltered)?;
        let is_tcp = seen.protocol == NatProtocol::Tcp;
        if self.sessions.contains_key(&(id, remote)) {
            // RFC 5382 §5: a TCP connection is idle if neither side sends.
            if is_tcp || self.settings.inbound_refresh {
                self.refresh(seen, Way::In, id, remote);
            }
        } else {
            if !self.passes(id, remote) {
                return Err(Reason::NatFiltered);
            }
            if is_tcp || self.settings.inbound_refresh {
                self.may_begin(seen)?;
                self.begin(seen, Way::In, id, remote);
            }
        }
        Ok(self.mappings[&id].key.1)
    }

    /// Returns the inside endpoint of the session between `outside` and `remote`. Nothing changes:
    /// an ICMP error does not keep a mapping (RFC 5508 REQ-4).
    pub(crate) fn inside_of(
        &mut self,
        at: Time,
        protocol: NatProtocol,
        outside: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Option<SocketAddrV4> {
        self.expire(at);
        let id = *self.by_outside.get(&(protocol, outside))?;
        let is_known = self.sessions.contains_key(&(id, remote)) || self.passes(id, remote);
        is_known.then(|| self.mappings[&id].key.1)
    }

    /// Returns the outside endpoint of the mapping that `inside` uses with `remote`. Nothing
    /// changes.
    pub(crate) fn outside_of(
        &mut self,
        at: Time,
        protocol: NatProtocol,
        inside: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Option<SocketAddrV4> {
        self.expire(at);
        let key = (protocol, inside, depends(self.settings.mapping, remote));
        Some(self.mappings[&self.mapping_of(key, remote)?].outside)
    }

    /// Returns the mapping of packets to `remote`: that of a session, which a packet from outside
    /// may have begun, or else that of the key.
    fn mapping_of(&self, key: InsideKey, remote: SocketAddrV4) -> Option<Id> {
        let (protocol, inside, _) = key;
        let flow = |id| (protocol, inside, remote, id);
        let session = self.flows.range(flow(0)..=flow(Id::MAX)).next().map(|(.., id)| *id);
        session.or_else(|| self.by_inside.get(&key).copied())
    }

    /// Returns the number of mappings and sessions at `at`.
    pub(crate) fn counters(&mut self, at: Time) -> NatCounters {
        self.expire(at);
        NatCounters {
            mappings: self.mappings.len() as u64,
            sessions: self.sessions.len() as u64,
            sessions_created: self.sessions_created,
        }
    }

    /// Returns the sessions at `at`, in the order of their mappings.
    pub(crate) fn sessions(&mut self, at: Time) -> impl Iterator<Item = NatSession> + '_ {
        self.expire(at);
        self.sessions.iter().map(|((id, remote), session)| {
            let Mapping { key: (protocol, inside, _), outside, .. } = self.mappings[id];
            NatSession { protocol, inside, outside, remote: *remote, expires: session.expires }
        })
    }

    /// Whether a packet from `remote` passes the filter of a mapping (RFC 4787 §5).
    fn passes(&self, id: Id, remote: SocketAddrV4) -> bool {
        match self.settings.filtering {
            Dependence::EndpointIndependent => true,
            Dependence::AddressDependent => {
                let [first, last] = [0, u16::MAX].map(|port| (id, SocketAddrV4::new(*remote.ip(), port)));
                self.sessions.range(first..=last).next().is_some()
            }
            Dependence::AddressAndPortDependent => self.sessions.contains_key(&(id, remote)),
        }
    }

    /// Whether there may be another session.
    fn may_begin(&self, seen: Seen) -> Result<(), Reason> {
        if seen.flags & tcp_flags::RST > 0 {
            // There is no connection to reset.
            return Err(Reason::NatFiltered);
        }
        let is_full = self.sessions.len() >= self.settings.sessions_max as usize;
        if is_full { Err(Reason::NatFull) } else { Ok(()) }
    }

    fn begin(&mut self, seen: Seen, way: Way, id: Id, remote: SocketAddrV4) {
        self.sessions_created += 1;
        let mut tcp = TcpState::default();
        tcp.see(way, seen.flags);
        let expires = seen.at.saturating_add(tcp.timeout(seen.protocol, &self.settings));
        self.deadlines.insert((expires, id, remote));
        self.sessions.insert((id, remote), Session { expires, scheduled: expires, tcp });
        if let Some(mapping) = self.mappings.get_mut(&id) {
            mapping.sessions += 1;
            self.flows.insert((mapping.key.0, mapping.key.1, remote, id));
        }
    }

    fn refresh(&mut self, seen: Seen, way: Way, id: Id, remote: SocketAddrV4) {
        let Some(session) = self.sessions.get_mut(&(id, remote)) else { return };
        session.tcp.see(way, seen.flags);
        session.expires = seen.at.saturating_add(session.tcp.timeout(seen.protocol, &self.settings));
        if session.expires < session.scheduled {
            self.deadlines.remove(&(session.scheduled, id, remote));
            self.deadlines.insert((session.expires, id, remote));
            session.scheduled = session.expires;
        }
    }

    /// Makes a mapping without sessions.
    fn map(&mut self, key: InsideKey) -> Result<Id, Reason> {
        let (protocol, inside, _) = key;
        let outside = self.outside_for(protocol, inside).ok_or(Reason::NatPorts)?;
        let id = self.next;
        self.next += 1;
        self.by_inside.insert(key, id);
        self.by_outside.insert((protocol, outside), id);
        self.mappings.insert(id, Mapping { key, outside, sessions: 0 });
        Ok(id)
    }

    /// Takes an outside endpoint that is free.
    fn outside_for(&mut self, protocol: NatProtocol, inside: SocketAddrV4) -> Option<SocketAddrV4> {
        let len = self.pool.len();
        let (start, tries) = match self.settings.pooling {
            Pooling::Paired => (self.paired(*inside.ip()), 1),
            Pooling::Arbitrary => (self.rng.below(len as u64) as usize, len),
        };
        (0..tries).find_map(|step| {
            let address = self.pool[(start + step) % len];
            let ports = self.ports.entry((protocol, address)).or_default();
            let port = ports.take(protocol, inside.port(), &self.settings, &mut self.rng)?;
            Some(SocketAddrV4::new(address, port))
        })
    }

    /// Returns the place in the pool of the address that an inside address is paired with: first
    /// its own, if that is in the pool.
    fn paired(&self, inside: Ipv4Addr) -> usize {
        let own = self.pool.iter().position(|address| *address == inside);
        (own.unwrap_or(inside.to_bits() as usize) + self.turn) % self.pool.len()
    }

    /// Gives each mapping another outside port, or another address and another port, at `at`, in
    /// the order in which the mappings were made. Its sessions stay. No mapping gets an endpoint
    /// that was in use before; without a free one a mapping keeps its own.
    pub(crate) fn rebind(&mut self, at: Time, rebinding: Rebinding) {
        self.expire(at);
        let len = self.pool.len();
        if rebinding == Rebinding::Address && len > 1 {
            self.turn = (self.turn + 1 + self.rng.below(len as u64 - 1) as usize) % len;
        }
        let mut former = Vec::new();
        for id in self.mappings.keys().copied().collect::<Vec<Id>>() {
            let Mapping { key: (protocol, inside, _), outside, .. } = self.mappings[&id];
            let address = match (rebinding, self.settings.pooling) {
                (Rebinding::Port, _) => *outside.ip(),
                (Rebinding::Address, Pooling::Paired) => self.pool[self.paired(*inside.ip())],
                (Rebinding::Address, Pooling::Arbitrary) => self.another(*outside.ip()),
            };
            let ports = self.ports.entry((protocol, address)).or_default();
            let port = ports.take_other(protocol, outside.port(), &self.settings, &mut self.rng);
            let Some(port) = port else { continue };
            former.push((protocol, outside));
            let outside = SocketAddrV4::new(address, port);
            self.by_outside.insert((protocol, outside), id);
            self.mappings.get_mut(&id).expect("it is listed").outside = outside;
        }
        for (protocol, outside) in former {
            self.by_outside.remove(&(protocol, outside));
            if let Some(ports) = self.ports.get_mut(&(protocol, *outside.ip())) {
                ports.free(outside.port());
            }
        }
    }

    /// Draws an address of the pool other than this one, if there is one.
    fn another(&mut self, address: Ipv4Addr) -> Ipv4Addr {
        let others: Vec<Ipv4Addr> = self.pool.iter().copied().filter(|other| *other != address).collect();
        match others.len() {
            0 => address,
            count => others[self.rng.below(count as u64) as usize],
        }
    }

    /// Ends the sessions whose time has come by `at`.
    fn expire(&mut self, at: Time) {
        while let Some(&(due, id, remote)) = self.deadlines.first().filter(|(due, ..)| *due <= at) {
            self.deadlines.remove(&(due, id, remote));
            let Some(session) = self.sessions.get_mut(&(id, remote)) else { continue };
            if session.expires > at {
                session.scheduled = session.expires;
                self.deadlines.insert((session.expires, id, remote));
                continue;
            }
            self.sessions.remove(&(id, remote));
            let Some(mapping) = self.mappings.get_mut(&id) else { continue };
            mapping.sessions -= 1;
            self.flows.remove(&(mapping.key.0, mapping.key.1, remote, id));
            if mapping.sessions == 0 {
                let Mapping { key, outside, .. } = *mapping;
                self.mappings.remove(&id);
                self.by_inside.remove(&key);
                self.by_outside.remove(&(key.0, outside));
                if let Some(ports) = self.ports.get_mut(&(key.0, *outside.ip())) {
                    ports.free(outside.port());
                }
            }
        }
    }
}

/// Returns what a mapping depends on of a remote endpoint.
fn depends(mapping: Dependence, remote: SocketAddrV4) -> Option<(Ipv4Addr, u16)> {
    match mapping {
        Dependence::EndpointIndependent => None,
        Dependence::AddressDependent => Some((*remote.ip(), 0)),
        Dependence::AddressAndPortDependent => Some((*remote.ip(), remote.port())),
    }
}
