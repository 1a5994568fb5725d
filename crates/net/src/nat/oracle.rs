//! The slow and obvious twin of `table.rs`: one list of sessions, each with all packets that it has
//! seen. The differential test is here.

use super::protocol::NatProtocol;
use super::table::{NatSession, NatTable, Seen};
use crate::fate::Reason;
use fastpath_spec::{Dependence, NatSettings, NatTimeouts, Pooling, Rebinding};
use fastpath_units::{Duration, Rng, Time};
use fastpath_wire::build::tcp_flags::{ACK, FIN, RST, SYN};
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddrV4};

struct Slow {
    settings: NatSettings,
    pool: Vec<Ipv4Addr>,
    /// The sum of the steps of rebindings.
    turn: usize,
    rng: Rng,
    sessions: Vec<SlowSession>,
    mappings: usize,
}

#[derive(Clone)]
struct SlowSession {
    mapping: usize,
    /// The remote endpoint for which the mapping was made.
    made_for: SocketAddrV4,
    protocol: NatProtocol,
    inside: SocketAddrV4,
    outside: SocketAddrV4,
    remote: SocketAddrV4,
    /// The packets that count: whether from inside, and the TCP flags.
    history: Vec<(bool, u8)>,
    last: Time,
}

impl SlowSession {
    /// The packets of the connection that is open now.
    fn connection(&self) -> &[(bool, u8)] {
        let mut from = 0;
        for (index, (_, flags)) in self.history.iter().enumerate() {
            if flags & (SYN | ACK) == SYN && is_closed(&self.history[from..index]) {
                from = index;
            }
        }
        &self.history[from..]
    }

    fn expires(&self, timeouts: &NatTimeouts) -> Time {
        let packets = self.connection();
        let has_both = [true, false].iter().all(|way| packets.iter().any(|(out, _)| out == way));
        self.last
            + match self.protocol {
                NatProtocol::Udp => timeouts.udp,
                NatProtocol::Icmp => timeouts.icmp,
                NatProtocol::Tcp if has_both && !is_closed(packets) => timeouts.tcp,
                NatProtocol::Tcp => timeouts.tcp_transitory,
            }
    }
}

fn is_closed(packets: &[(bool, u8)]) -> bool {
    let closes = |way: bool| packets.iter().any(|&(out, flags)| out == way && flags & FIN > 0);
    packets.iter().any(|(_, flags)| flags & RST > 0) || (closes(true) && closes(false))
}

impl Slow {
    fn expire(&mut self, at: Time) {
        let timeouts = self.settings.timeouts;
        self.sessions.retain(|session| session.expires(&timeouts) > at);
    }

    fn outbound(
        &mut self,
        seen: Seen,
        inside: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<SocketAddrV4, Reason> {
        self.expire(seen.at);
        let is_its =
            |session: &&mut SlowSession| (session.protocol, session.inside) == (seen.protocol, inside);
        let exact = self.sessions.iter_mut().filter(is_its).filter(|session| session.remote == remote);
        if let Some(session) = exact.min_by_key(|session| session.mapping) {
            session.history.push((true, seen.flags));
            session.last = seen.at;
            return Ok(session.outside);
        }
        let mapping = self.settings.mapping;
        let same_mapping = |session: &&mut SlowSession| match mapping {
            Dependence::EndpointIndependent => true,
            Dependence::AddressDependent => session.made_for.ip() == remote.ip(),
            Dependence::AddressAndPortDependent => session.made_for == remote,
        };
        let found = self.sessions.iter_mut().filter(is_its).find(same_mapping).map(|session| session.clone());
        self.may_begin(seen)?;
        let mut begun = SlowSession {
            mapping: self.mappings,
            made_for: remote,
            protocol: seen.protocol,
            inside,
            outside: inside,
            remote,
            history: vec![(true, seen.flags)],
            last: seen.at,
        };
        match found {
            Some(of) => {
                (begun.mapping, begun.made_for, begun.outside) = (of.mapping, of.made_for, of.outside)
            }
            None => {
                begun.outside = self.choose(seen.protocol, inside).ok_or(Reason::NatPorts)?;
                self.mappings += 1;
            }
        }
        let outside = begun.outside;
        self.sessions.push(begun);
        Ok(outside)
    }

    fn inbound(
        &mut self,
        seen: Seen,
        outside: SocketAddrV4,
        remote: SocketAddrV4,
    ) -> Result<SocketAddrV4, Reason> {
        self.expire(seen.at);
        let counts = seen.protocol == NatProtocol::Tcp || self.settings.inbound_refresh;
        let is_its = |session: &&SlowSession| session.protocol == seen.protocol && session.outside == outside;
        let passes = |session: &SlowSession| match self.settings.filtering {
            Dependence::EndpointIndependent => true,
            Dependence::AddressDependent => session.remote.ip() == remote.ip(),
            Dependence::AddressAndPortDependent => session.remote == remote,
        };
        let passed = self.sessions.iter().filter(is_its).find(|session| passes(session));
        let passed = passed.ok_or(Reason::NatFiltered)?.clone();
        let same = |session: &&mut SlowSession| {
            session.protocol == seen.protocol && session.outside == outside && session.remote == remote
        };
        match self.sessions.iter_mut().find(same) {
            Some(session) if counts => {
                session.history.push((false, seen.flags));
                session.last = seen.at;
            }
            None if counts => {
                self.may_begin(seen)?;
                let history = vec![(false, seen.flags)];
                self.sessions.push(SlowSession { remote, history, last: seen.at, ..passed.clone() });
            }
            _ => {}
        }
        Ok(passed.inside)
    }

    fn may_begin(&self, seen: Seen) -> Result<(), Reason> {
        match (seen.flags & RST > 0, self.sessions.len() >= self.settings.sessions_max as usize) {
            (true, _) => Err(Reason::NatFiltered),
            (false, true) => Err(Reason::NatFull),
            (false, false) => Ok(()),
        }
    }

    fn choose(&mut self, protocol: NatProtocol, inside: SocketAddrV4) -> Option<SocketAddrV4> {
        let len = self.pool.len();
        let mut addresses: Vec<Ipv4Addr> = self.pool.clone();
        match self.settings.pooling {
            Pooling::Paired => addresses = vec![self.paired(*inside.ip())],
            Pooling::Arbitrary => addresses.rotate_left(self.rng.below(len as u64) as usize),
        }
        addresses.into_iter().find_map(|address| {
            let free = |port: &u16| {
                let end = SocketAddrV4::new(address, *port);
                !self.sessions.iter().any(|session| session.protocol == protocol && session.outside == end)
            };
            let is_icmp = protocol == NatProtocol::Icmp;
            let range = if is_icmp { 0..=65_535 } else { self.settings.ports.clone() };
            let wanted = inside.port();
            if self.settings.port_preservation && range.contains(&wanted) && free(&wanted) {
                return Some(SocketAddrV4::new(address, wanted));
            }
            let count = u64::from(*range.end()) - u64::from(*range.start()) + 1;
            let from = *range.start() + self.rng.below(count) as u16;
            let round = || (from..=*range.end()).chain(*range.start()..from).filter(free);
            let same = |port: &u16| self.settings.port_parity && !is_icmp && port % 2 == wanted % 2;
            round().find(same).or_else(|| round().next()).map(|port| SocketAddrV4::new(address, port))
        })
    }

    fn paired(&self, inside: Ipv4Addr) -> Ipv4Addr {
        let mut from_own = self.pool.clone();
        match self.pool.iter().position(|address| *address == inside) {
            Some(own) => from_own.rotate_left(own),
            None => from_own.rotate_left(u32::from(inside) as usize % self.pool.len()),
        }
        from_own[self.turn % self.pool.len()]
    }

    /// Moves one mapping after the other to an endpoint that none had before and none has now.
    fn rebind(&mut self, at: Time, rebinding: Rebinding) {
        self.expire(at);
        let len = self.pool.len() as u64;
        if rebinding == Rebinding::Address && len > 1 {
            self.turn += 1 + self.rng.below(len - 1) as usize;
        }
        let mut taken: Vec<(NatProtocol, SocketAddrV4)> =
            self.sessions.iter().map(|session| (session.protocol, session.outside)).collect();
        for mapping in 0..self.mappings {
            let Some(session) = self.sessions.iter().find(|s| s.mapping == mapping) else { continue };
            let SlowSession { protocol, inside, outside, .. } = session.clone();
            let mut address = *outside.ip();
            if rebinding == Rebinding::Address {
                address = match self.settings.pooling {
                    Pooling::Paired => self.paired(*inside.ip()),
                    Pooling::Arbitrary if len == 1 => address,
                    Pooling::Arbitrary => {
                        let mut others = self.pool.clone();
                        others.retain(|other| *other != address);
                        others[self.rng.below(len - 1) as usize]
                    }
                };
            }
            let is_icmp = protocol == NatProtocol::Icmp;
            let range = if is_icmp { 0..=65_535 } else { self.settings.ports.clone() };
            let from = *range.start() + self.rng.below(range.len() as u64) as u16;
            let free = |port: &u16| !taken.contains(&(protocol, SocketAddrV4::new(address, *port)));
            let round = || (from..=*range.end()).chain(*range.start()..from).filter(free);
            let parity = self.settings.port_parity && !is_icmp;
            let same = |port: &u16| parity && port % 2 == outside.port() % 2;
            let Some(port) = round().find(same).or_else(|| round().next()) else { continue };
            let outside = SocketAddrV4::new(address, port);
            taken.push((protocol, outside));
            let its = self.sessions.iter_mut().filter(|session| session.mapping == mapping);
            its.for_each(|session| session.outside = outside);
        }
    }
}

#[derive(Clone, Debug)]
struct Step {
    after_ms: u64,
    protocol: u8,
    flags: u8,
    way: u8,
    inside: u16,
    remote: u16,
    outside: usize,
}

fn settings() -> impl Strategy<Value = NatSettings> {
    let dependence = || {
        prop::sample::select(vec![
            Dependence::EndpointIndependent,
            Dependence::AddressDependent,
            Dependence::AddressAndPortDependent,
        ])
    };
    let flags = any::<[bool; 4]>();
    (dependence(), dependence(), flags, 0u16..130, 1u32..30).prop_map(
        |(mapping, filtering, [preserve, parity, arbitrary, refresh], ports, sessions_max)| NatSettings {
            mapping,
            filtering,
            pooling: if arbitrary { Pooling::Arbitrary } else { Pooling::Paired },
            ports: 2000..=2000 + ports % if preserve { 7 } else { 130 },
            port_preservation: preserve,
            port_parity: parity,
            inbound_refresh: refresh,
            timeouts: NatTimeouts {
                udp: Duration::from_ms(50),
                tcp: Duration::from_ms(200),
                tcp_transitory: Duration::from_ms(40),
                icmp: Duration::from_ms(20),
                fragments: Duration::from_ms(10),
            },
            sessions_max,
            ..NatSettings::default()
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flags = prop::sample::select(vec![SYN, SYN | ACK, ACK, FIN | ACK, RST, RST | ACK]);
    let step = (0u64..30, 0u8..3, flags, 0u8..10, 0u16..12, 0u16..6, 0usize..8).prop_map(
        |(after_ms, protocol, flags, way, inside, remote, outside)| Step {
            after_ms: after_ms * after_ms / 30,
            protocol,
            flags,
            way,
            inside,
            remote,
            outside,
        },
    );
    prop::collection::vec(step, 1..120)
}

fn listed(sessions: impl Iterator<Item = NatSession>) -> Vec<NatSession> {
    let mut all: Vec<NatSession> = sessions.collect();
    all.sort_by_key(|session| (session.protocol, session.inside, session.outside, session.remote));
    all
}

proptest! {
    #[test]
    fn the_table_does_what_its_slow_twin_does(
        settings in settings(), steps in steps(), addresses in 1usize..4, seed: u64,
    ) {
        let pool: Vec<Ipv4Addr> = (1..=addresses as u8).map(|last| Ipv4Addr::new(192, 0, 2, last)).collect();
        let mut fast = NatTable::new(settings.clone(), pool.clone(), Rng::new(seed));
        let mut slow = Slow {
            settings: settings.clone(), pool, turn: 0, rng: Rng::new(seed), sessions: Vec::new(), mappings: 0,
        };
        let mut at = Time::ZERO;
        for step in steps {
            at += Duration::from_ms(step.after_ms);
            let protocol = [NatProtocol::Udp, NatProtocol::Tcp, NatProtocol::Icmp][usize::from(step.protocol)];
            let flags = if protocol == NatProtocol::Tcp { step.flags } else { 0 };
            let seen = Seen { at, protocol, flags };
            let inside = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2 + step.inside as u8 % 3), 2000 + step.inside);
            let port = if protocol == NatProtocol::Icmp { 0 } else { 50 + step.remote % 2 };
            let mut remote = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 1 + step.remote as u8 / 2), port);
            let known = slow.sessions.get(step.outside % slow.sessions.len().max(1)).map(|session| session.outside);
            let outside = known.unwrap_or("192.0.2.1:2000".parse().unwrap());
            match step.way {
                0..=3 => prop_assert_eq!(fast.outbound(seen, inside, remote), slow.outbound(seen, inside, remote)),
                9 => {
                    let rebinding = [Rebinding::Port, Rebinding::Address][usize::from(step.remote % 2)];
                    fast.rebind(at, rebinding);
                    slow.rebind(at, rebinding);
                }
                4..=6 => prop_assert_eq!(fast.inbound(seen, outside, remote), slow.inbound(seen, outside, remote)),
                _ => {
                    // Hairpinning: the source is translated first.
                    let first = fast.outbound(seen, inside, outside);
                    prop_assert_eq!(first, slow.outbound(seen, inside, outside));
                    if let Ok(source) = first {
                        remote = source;
                        prop_assert_eq!(fast.inbound(seen, outside, remote), slow.inbound(seen, outside, remote));
                    }
                }
            }
            slow.expire(at);
            let expected = slow.sessions.iter().map(|session| NatSession {
                protocol: session.protocol,
                inside: session.inside,
                outside: session.outside,
                remote: session.remote,
                expires: session.expires(&settings.timeouts),
            });
            let expected = listed(expected);
            prop_assert_eq!(listed(fast.sessions(at)), expected);
            prop_assert!(fast.counters(at).sessions <= u64::from(settings.sessions_max));
            prop_assert!(fast.counters(at).mappings <= fast.counters(at).sessions);
        }
        let left: Vec<_> = fast.sessions(at + Duration::from_secs(1)).collect();
        assert!(left.is_empty(), "{left:?} have not ended");
        prop_assert_eq!(fast.counters(at).mappings, 0, "no mapping without sessions");
    }
}
