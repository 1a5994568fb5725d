//! The connections, and what a packet does to them.

use crate::alg::Alg;
use crate::connection::{ConnectionInfo, ConnectionRest, TrackedConnection};
use crate::expect::{Expectation, Expectations};
use crate::expiry::Expiry;
use crate::follow::{PayloadEdit, follow};
use crate::index::{ConnectionIndex, IndexEntry};
use crate::nat::{self, NatRequest, NatSide, NatSpec};
use crate::state::CtState;
use crate::store::ConnectionStore;
use crate::tcp::{TcpVerdict, may_begin};
use crate::timeouts::{TimeoutKind, Timeouts};
use crate::tuple::FlowTuple;
use crate::view::{PacketKind, PacketView};
use fastpath_units::{Rng, Time};
use std::collections::BTreeMap;

/// Connections that one packet looks at because their time has come.
const EXPIRED_PER_PACKET: usize = 16;
/// Packets whose connections are fetched at the same time.
const BURST: usize = 32;
/// Connections whose lines take a megabyte.
const LARGE: usize = 1 << 14;

/// The most connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConntrackLimits {
    /// In all zones.
    pub connections: usize,
    /// In one zone.
    pub per_zone: usize,
}

impl Default for ConntrackLimits {
    /// Returns 2^20 connections, of which one zone may have all.
    fn default() -> ConntrackLimits {
        ConntrackLimits { connections: 1 << 20, per_zone: 1 << 20 }
    }
}

/// The connections of all zones.
#[derive(Clone, Debug)]
pub struct Conntrack {
    limits: ConntrackLimits,
    timeouts: Timeouts,
    index: ConnectionIndex,
    connections: ConnectionStore,
    expectations: Expectations,
    expiry: Expiry,
    zones: BTreeMap<u16, usize>,
    counters: ConntrackCounters,
    rng: Rng,
    /// The last two zones of packets, the last one first.
    recent_zones: [u16; 2],
    /// The latest time that was given: time does not go back.
    now: Time,
}

/// What happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConntrackCounters {
    /// Connections that were committed.
    pub committed: u64,
    /// Connections that ended by their timeout.
    pub expired: u64,
    /// Connections that a packet could not commit, because there were as many as there may be.
    pub full: u64,
    /// Connections that a packet could not commit, because no tuple was free.
    pub exhausted: u64,
    /// Packets that were invalid.
    pub invalid: u64,
}

/// Whether a packet commits its connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Commit {
    /// It does not.
    #[default]
    No,
    /// It does, if there is none yet.
    Yes,
    /// It does. A connection that began from the other side ends.
    Force,
}

/// What a packet asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrackRequest {
    /// The zone.
    pub zone: u16,
    /// Whether it commits the connection.
    pub commit: Commit,
    /// NAT.
    pub nat: Option<NatRequest>,
    /// The protocol whose further connections are expected, if a connection is committed.
    pub alg: Option<Alg>,
    /// Bits of the mark to set: values and mask.
    pub mark: Option<(u32, u32)>,
    /// Bits of the label to set: values and mask.
    pub label: Option<(u128, u128)>,
    /// How the packet was translated in this zone before.
    pub before: CtState,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tracked {
    /// The state of the packet.
    pub state: CtState,
    /// The mark of the connection; 0 without one.
    pub mark: u32,
    /// Its label.
    pub label: u128,
    /// The tuple of the first packet of the connection; without one, that of this packet.
    pub original: FlowTuple,
    /// How the packet is to be changed.
    pub translation: Option<Translation>,
    /// How its payload is to be changed, by a helper.
    pub payload: Option<Box<PayloadEdit>>,
    /// Why the connection was not committed.
    pub not_committed: Option<NotCommitted>,
}

/// How a packet is changed. In an error of ICMP the packet inside, which travelled in the other
/// direction, has the reverse tuples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The tuple of packets in this direction before.
    pub from: FlowTuple,
    /// Their tuple afterwards.
    pub to: FlowTuple,
}

/// Why a connection was not committed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NotCommitted {
    /// There are as many connections as there may be.
    Full,
    /// Every tuple that was tried belongs to another connection.
    Exhausted,
}

impl Conntrack {
    /// Returns a table without connections. The seed decides hashes and random ports.
    pub fn new(limits: ConntrackLimits, seed: u64) -> Conntrack {
        let mut rng = Rng::new(seed);
        Conntrack {
            limits,
            timeouts: Timeouts::default(),
            index: ConnectionIndex::new(rng.next_u64()),
            connections: ConnectionStore::default(),
            expectations: Expectations::default(),
            expiry: Expiry::default(),
            zones: BTreeMap::new(),
            counters: ConntrackCounters::default(),
            rng,
            recent_zones: [0; 2],
            now: Time::ZERO,
        }
    }

    /// Returns the timeouts, to change them.
    pub fn timeouts_mut(&mut self) -> &mut Timeouts {
        &mut self.timeouts
    }

    /// Returns what happened so far.
    pub fn counters(&self) -> ConntrackCounters {
        self.counters
    }

    /// Returns the number of connections at a time.
    pub fn len(&mut self, now: Time) -> usize {
        self.expire(now, usize::MAX);
        self.connections.len()
    }

    /// Returns whether there is no connection at a time.
    pub fn is_empty(&mut self, now: Time) -> bool {
        self.len(now) == 0
    }

    /// Returns when to look for ended connections again; `None`: there is no connection.
    pub fn next_at(&self) -> Option<Time> {
        self.expiry.next_at()
    }

    /// Returns the connections at a time, in the order of their zones and tuples.
    pub fn list(&self, now: Time) -> Vec<ConnectionInfo> {
        let all = self.connections.iter().filter(|(_, one)| one.deadline > now);
        let mut list: Vec<ConnectionInfo> = all.map(|(id, _)| self.connections.info(id)).collect();
        list.sort_by_key(|one| (one.zone, one.original));
        list
    }

    /// Ends the connections of a zone, or all. Returns how many.
    pub fn flush(&mut self, zone: Option<u16>) -> usize {
        let before = self.connections.len();
        match zone {
            None => {
                self.connections = ConnectionStore::default();
                self.expectations.clear();
                self.index.clear();
                self.expiry.clear();
                self.zones.clear();
            }
            Some(zone) => {
                let of_zone = self.connections.iter().filter(|(_, one)| one.zone == zone);
                let ids: Vec<u32> = of_zone.map(|(id, _)| id).collect();
                ids.into_iter().for_each(|id| self.remove(id));
            }
        }
        before - self.connections.len()
    }

    /// Finds the connection of a packet, takes the packet over, and commits a connection if that is
    /// asked for and there is none.
    pub fn track(&mut self, now: Time, packet: &PacketView<'_>, request: &TrackRequest) -> Tracked {
        self.now = self.now.max(now);
        if request.zone != self.recent_zones[0] {
            self.recent_zones = [request.zone, self.recent_zones[0]];
        }
        self.expire(self.now, EXPIRED_PER_PACKET);
        let mut found = self.find(packet, request);
        if let Some((id, true)) = found
            && request.commit == Commit::Force
        {
            self.remove(id);
            found = None;
        }
        let Some((id, is_reply)) = found else { return self.without(packet, request) };
        let Some(state) = self.state_of(id, is_reply, packet, request) else {
            // It was over, and the packet begins another.
            self.remove(id);
            return self.without(packet, request);
        };
        self.finish(id, is_reply, state, (packet, request))
    }

    /// Returns whether the connections are more than the cache holds.
    pub fn is_large(&self) -> bool {
        self.connections.len() >= LARGE
    }

    /// Fetches what tracking packets with these tuples reads into the cache: their connections may
    /// be far apart, and are then read at the same time, not one after the other. They are expected
    /// in the zones of the last packets.
    pub fn prefetch(&self, tuples: &[FlowTuple]) {
        let [last, other] = self.recent_zones;
        self.prefetch_in(last, tuples);
        if other != last {
            self.prefetch_in(other, tuples);
        }
    }

    fn prefetch_in(&self, zone: u16, tuples: &[FlowTuple]) {
        for burst in tuples.chunks(BURST) {
            let mut hashes = [0; BURST];
            for (hash, tuple) in hashes.iter_mut().zip(burst) {
                *hash = self.index.hash(tuple, zone);
                self.index.prefetch(*hash);
            }
            for hash in &hashes[..burst.len()] {
                // The first with this hash is nearly always the one.
                if let Some((entry, ())) = self.index.find(*hash, |_| Some(())) {
                    self.connections.prefetch(entry.id);
                }
            }
        }
    }

    /// Returns what is known of a packet that cannot be tracked.
    pub fn untrackable(&mut self) -> Tracked {
        self.counters.invalid += 1;
        Tracked { state: CtState::TRACKED | CtState::INVALID, ..Tracked::default() }
    }

    /// Removes connections that have ended, after looking at `most` of them.
    fn expire(&mut self, now: Time, most: usize) {
        for _ in 0..most {
            let Some((at, id)) = self.expiry.pop_due(now) else { return };
            let one = self.connections.line_mut(id);
            if !one.is_live() || one.looked_at != at {
                continue;
            }
            if one.deadline > now {
                one.looked_at = one.deadline;
                let deadline = one.deadline;
                self.look_at(deadline, id);
                continue;
            }
            self.counters.expired += 1;
            self.remove(id);
        }
    }

    /// Returns the connection of a packet, and whether the packet is a reply.
    #[inline]
    fn find(&mut self, packet: &PacketView<'_>, request: &TrackRequest) -> Option<(u32, bool)> {
        if !request.before.is_translated() {
            return self.lookup(&packet.tuple, request.zone);
        }
        // A packet that was translated has the reverse of the tuple of the other direction.
        let (id, is_reply) = self.lookup(&packet.tuple.reversed(), request.zone)?;
        Some((id, !is_reply))
    }

    /// Returns the connection that has a tuple, and whether as that of replies. One that is over is
    /// removed.
    #[inline]
    fn lookup(&mut self, tuple: &FlowTuple, zone: u16) -> Option<(u32, bool)> {
        let connections = &self.connections;
        let is_it = |entry: IndexEntry| connections.direction(entry.id, tuple, zone);
        let (IndexEntry { id, .. }, is_reply) = self.index.find(self.index.hash(tuple, zone), is_it)?;
        if self.connections.line(id).deadline > self.now {
            return Some((id, is_reply));
        }
        self.counters.expired += 1;
        self.remove(id);
        None
    }

    /// Takes a packet over. Returns its state; `None` if the connection is over.
    #[inline]
    fn state_of(
        &mut self,
        id: u32,
        is_reply: bool,
        packet: &PacketView<'_>,
        request: &TrackRequest,
    ) -> Option<CtState> {
        let reply = if is_reply { CtState::REPLY } else { CtState::default() };
        if packet.kind == PacketKind::IcmpError {
            return Some(CtState::RELATED | reply);
        }
        let (verdict, timeout) = match self.connections.rest(id).filter(|rest| !rest.shifts.is_empty()) {
            None => self.connections.line_mut(id).update(packet, is_reply),
            Some(rest) => {
                let packet = as_sent(packet, rest, is_reply, request);
                self.connections.line_mut(id).update(&packet, is_reply)
            }
        };
        if let Some(kind) = timeout {
            self.set_deadline(id, kind);
        }
        match verdict {
            TcpVerdict::Valid => Some(CtState::ESTABLISHED | reply),
            TcpVerdict::StillNew => Some(CtState::NEW),
            TcpVerdict::Invalid => Some(CtState::INVALID),
            TcpVerdict::Restart => None,
        }
    }

    /// Looks at a connection at this time.
    fn look_at(&mut self, at: Time, id: u32) {
        self.expiry.add(at, id);
        if self.expiry.is_stale(self.connections.len()) {
            self.expiry.replace(self.connections.iter().map(|(id, one)| (one.looked_at, id)));
        }
    }

    #[inline]
    fn set_deadline(&mut self, id: u32, kind: TimeoutKind) {
        let deadline = self.now.saturating_add(self.timeouts.get(kind));
        let one = self.connections.line_mut(id);
        one.deadline = deadline;
        if deadline < one.looked_at {
            one.looked_at = deadline;
            self.look_at(deadline, id);
        }
    }

    /// Returns what is known of a packet of a connection, and sets mark and label.
    #[inline]
    fn finish(
        &mut self,
        id: u32,
        is_reply: bool,
        state: CtState,
        (packet, request): (&PacketView<'_>, &TrackRequest),
    ) -> Tracked {
        let state = state | CtState::TRACKED | request.before.translation();
        self.counters.invalid += u64::from(state.has(CtState::INVALID));
        if request.label.is_some_and(|(value, mask)| value & mask != 0) {
            self.connections.make_rest(id);
        }
        if self.connections.line(id).rest().is_some() {
            return self.finish_with_rest(id, is_reply, state, (packet, request));
        }
        let one = self.connections.line_mut(id);
        if let Some((value, mask)) = request.mark {
            one.set_plain_mark(one.plain_mark() & !mask | value & mask);
        }
        Tracked { state, mark: one.plain_mark(), original: one.plain_tuple(), ..Tracked::default() }
    }

    /// Does that for a connection with a rest.
    fn finish_with_rest(
        &mut self,
        id: u32,
        is_reply: bool,
        mut state: CtState,
        (packet, request): (&PacketView<'_>, &TrackRequest),
    ) -> Tracked {
        let is_valid = !state.has(CtState::INVALID);
        let Some(rest) = self.connections.rest_mut(id) else { return Tracked::default() };
        if let Some((value, mask)) = request.mark {
            rest.mark = rest.mark & !mask | value & mask;
        }
        if let Some((value, mask)) = request.label {
            rest.label = rest.label & !mask | value & mask;
        }
        if is_valid && rest.parent.is_some() {
            state |= CtState::RELATED;
        }
        let is_wanted = request.nat.is_some() && is_valid && !request.before.is_translated();
        let (tuples, has_nat) = (rest.tuples, is_wanted && rest.nat.is_some());
        let translation = rest.nat.filter(|_| is_wanted).map(|side| {
            state |= match (side, is_reply) {
                (NatSide::Source, false) | (NatSide::Destination, true) => CtState::SRC_NAT,
                (NatSide::Destination, false) | (NatSide::Source, true) => CtState::DST_NAT,
            };
            let (own, other) = (usize::from(is_reply), usize::from(!is_reply));
            Translation { from: tuples[own], to: tuples[other].reversed() }
        });
        let original = rest.parent.unwrap_or(tuples[0]);
        let tracked = Tracked {
            state,
            mark: rest.mark,
            label: rest.label,
            original,
            translation,
            ..Tracked::default()
        };
        // A packet that was translated before was read then.
        let is_read = rest.alg.is_some() && is_valid && packet.kind != PacketKind::IcmpError;
        if !is_read || request.before.is_translated() {
            return tracked;
        }
        match follow((&mut self.connections, &mut self.expectations), (id, is_reply), packet, has_nat) {
            Ok(payload) => Tracked { payload, ..tracked },
            Err(_) => {
                let Tracked { mark, label, original, .. } = tracked;
                Tracked { mark, label, original, ..self.untrackable() }
            }
        }
    }

    /// Handles a packet that has no connection.
    fn without(&mut self, packet: &PacketView<'_>, request: &TrackRequest) -> Tracked {
        let begins = match packet.kind {
            PacketKind::IcmpError => false,
            PacketKind::Tcp(segment) => may_begin(&segment),
            PacketKind::Other => !packet.tuple.is_icmp() || packet.tuple.is_request(),
        };
        if !begins {
            return Tracked { original: packet.tuple, ..self.untrackable() };
        }
        let state = CtState::TRACKED | CtState::NEW;
        let expected = self.expectations.find(&packet.tuple, request.zone);
        let alone = match expected.and_then(|one| Some((one, self.connections.rest(one.owner)?))) {
            None => Tracked { state, original: packet.tuple, ..Tracked::default() },
            Some((one, owner)) => Tracked {
                state: state | CtState::RELATED,
                original: one.parent,
                mark: owner.mark,
                label: owner.label,
                ..Tracked::default()
            },
        };
        if request.commit == Commit::No {
            return alone;
        }
        let first = ConnectionRest {
            tuples: [packet.tuple, packet.tuple.reversed()],
            mark: alone.mark,
            label: alone.label,
            alg: request.alg.filter(|alg| alg.reads(packet.tuple.protocol)),
            parent: expected.map(|one| one.parent),
            ..ConnectionRest::default()
        };
        match self.commit(packet, request, first, expected) {
            Ok(id) => {
                let request = TrackRequest { before: CtState::default(), ..*request };
                self.finish(id, false, CtState::NEW, (packet, &request))
            }
            Err(why) => Tracked { not_committed: Some(why), ..alone },
        }
    }

    /// Makes a connection of its first packet.
    fn commit(
        &mut self,
        packet: &PacketView<'_>,
        request: &TrackRequest,
        mut rest: ConnectionRest,
        expected: Option<Expectation>,
    ) -> Result<u32, NotCommitted> {
        let zone = request.zone;
        if self.is_full(zone) {
            // Connections that have ended count until they are removed.
            self.expire(self.now, usize::MAX);
            if self.is_full(zone) {
                self.counters.full += 1;
                return Err(NotCommitted::Full);
            }
        }
        let [first, plain] = rest.tuples;
        let reply = match (request.nat, expected) {
            (Some(_), Some(expected)) => {
                let reply = expected.reply(&first);
                rest.nat = expected.side(&first);
                Some(reply).filter(|reply| self.is_free(reply, zone, &first))
            }
            (Some(NatRequest::New(spec)), None) => {
                rest.nat = Some(spec.side);
                self.reply_of(&spec, &first, zone)
            }
            _ => Some(plain).filter(|reply| self.is_free(reply, zone, &first)),
        };
        let Some(reply) = reply else {
            self.counters.exhausted += 1;
            return Err(NotCommitted::Exhausted);
        };
        rest.tuples[1] = reply;
        let (mut one, timeout) = TrackedConnection::new(zone, packet);
        one.deadline = self.now.saturating_add(self.timeouts.get(timeout));
        one.looked_at = one.deadline;
        let deadline = one.deadline;
        let id = self.connections.insert(one, rest);
        self.index.insert(self.index.hash(&first, zone), IndexEntry { id, is_reply: false });
        if reply != plain {
            self.index.insert(self.index.hash(&reply, zone), IndexEntry { id, is_reply: true });
        }
        self.look_at(deadline, id);
        *self.zones.entry(zone).or_default() += 1;
        self.counters.committed += 1;
        Ok(id)
    }

    fn is_full(&self, zone: u16) -> bool {
        self.connections.len() >= self.limits.connections
            || self.zones.get(&zone).is_some_and(|count| *count >= self.limits.per_zone)
    }

    /// Returns whether a tuple can be that of replies to `first`.
    fn is_free(&mut self, reply: &FlowTuple, zone: u16, first: &FlowTuple) -> bool {
        (reply != first || first.reversed() == *first) && self.lookup(reply, zone).is_none()
    }

    /// Chooses the tuple of replies of a translated connection.
    fn reply_of(&mut self, spec: &NatSpec, first: &FlowTuple, zone: u16) -> Option<FlowTuple> {
        let mut rng = self.rng.clone();
        let index = ConnectionIndex::new(self.index.seed());
        let hash = |tuple: &FlowTuple| index.hash(tuple, zone);
        let found = nat::choose(spec, first, hash, &mut rng, |reply| self.is_free(reply, zone, first));
        self.rng = rng;
        found
    }

    /// Removes a connection that is there.
    fn remove(&mut self, id: u32) {
        let zone = self.connections.line(id).zone;
        let rest = self.connections.remove(id);
        let [first, reply] = rest.tuples;
        self.index.remove(self.index.hash(&first, zone), IndexEntry { id, is_reply: false });
        if reply != first.reversed() {
            self.index.remove(self.index.hash(&reply, zone), IndexEntry { id, is_reply: true });
        }
        rest.expected.iter().for_each(|key| self.expectations.remove(key, id));
        if let Some(count) = self.zones.get_mut(&zone) {
            *count -= 1;
            if *count == 0 {
                self.zones.remove(&zone);
            }
        }
    }
}

/// Returns a segment with the numbers that its sender counts.
fn as_sent<'a>(
    packet: &PacketView<'a>,
    rest: &ConnectionRest,
    is_reply: bool,
    request: &TrackRequest,
) -> PacketView<'a> {
    let PacketKind::Tcp(mut segment) = packet.kind else { return *packet };
    match request.before.is_translated() {
        // What was changed already counts as the receiver does.
        true => segment.seq = rest.shifts.sent(is_reply, segment.seq),
        false => segment.ack = rest.shifts.acknowledged(is_reply, segment.ack),
    }
    PacketView { kind: PacketKind::Tcp(segment), ..*packet }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Duration;

    #[test]
    fn connections_that_come_and_go_leave_no_deadlines_behind() {
        let mut conntrack = Conntrack::new(ConntrackLimits::default(), 1);
        let tuple =
            FlowTuple { src: 1, dst: 2, protocol: 17, src_port: 3, dst_port: 4, ..FlowTuple::default() };
        let packet = PacketView { tuple, kind: PacketKind::Other, payload: &[] };
        let reply = PacketView { tuple: tuple.reversed(), kind: PacketKind::Other, payload: &[] };
        let request = TrackRequest { commit: Commit::Force, ..TrackRequest::default() };
        for turn in 0..20_000 {
            let now = Time::ZERO + Duration::from_us(turn);
            conntrack.track(now, if turn % 2 == 0 { &packet } else { &reply }, &request);
        }
        assert_eq!(conntrack.counters().committed, 20_000);
        assert!(
            conntrack.connections.len() == 1 && conntrack.expiry.len() <= 1200,
            "{}",
            conntrack.expiry.len()
        );
        assert!(conntrack.next_at().is_some());
    }
}
