//! The table of connections and an obvious one agree on random packets: a list that is searched
//! from its beginning, with every deadline looked at. NAT is checked by what must hold of it.

#![allow(missing_docs)]

use fastpath_conntrack::{
    Commit, Conntrack, ConntrackLimits, CtState, FlowTuple, NatRequest, NatSide, NatSpec, NotCommitted,
    PacketKind, PacketView, PortChoice, TcpSegment, TimeoutKind, Timeouts, TrackRequest, Tracked, tcp_flags,
};
use fastpath_units::{Duration, Rng, Time};
use std::collections::BTreeSet;

/// A connection of the obvious table. Only its tuples, its progress and its deadline.
struct Twin {
    zone: u16,
    tuples: [FlowTuple; 2],
    packets: [usize; 2],
    deadline: Time,
    mark: u32,
}

/// The obvious table: packets of UDP and ICMP, whose states a count of packets says.
struct Obvious {
    twins: Vec<Twin>,
    limits: ConntrackLimits,
    timeouts: Timeouts,
}

impl Obvious {
    fn place(&self, tuple: &FlowTuple, zone: u16) -> Option<(usize, usize)> {
        let of = |twin: &Twin| twin.tuples.iter().position(|own| own == tuple);
        let mut all = self.twins.iter().enumerate().filter(|(_, twin)| twin.zone == zone);
        all.find_map(|(at, twin)| Some((at, of(twin)?)))
    }

    /// Returns state and mark. `reply` is the tuple of replies that the other table chose, for a
    /// connection with NAT.
    fn track(
        &mut self,
        now: Time,
        packet: &PacketView<'_>,
        request: &TrackRequest,
        reply: Option<FlowTuple>,
    ) -> (CtState, u32, Option<NotCommitted>) {
        self.twins.retain(|twin| twin.deadline > now);
        let mut found = self.place(&packet.tuple, request.zone);
        if let Some((at, 1)) = found
            && request.commit == Commit::Force
        {
            self.twins.remove(at);
            found = None;
        }
        let is_icmp = packet.tuple.is_icmp();
        let Some((at, direction)) = found else { return self.without(now, packet, request, reply) };
        let twin = &mut self.twins[at];
        let rpl = if direction == 1 { CtState::REPLY } else { CtState::default() };
        let state = match packet.kind {
            PacketKind::IcmpError => CtState::RELATED | rpl,
            _ => {
                twin.packets[direction] += 1;
                let kind = match (is_icmp, twin.packets[1] > 0) {
                    (true, false) => TimeoutKind::IcmpFirst,
                    (true, true) => TimeoutKind::IcmpReply,
                    (false, false) => TimeoutKind::OtherMultiple,
                    (false, true) => TimeoutKind::OtherBoth,
                };
                twin.deadline = now.saturating_add(self.timeouts.get(kind));
                if twin.packets[1] > 0 { CtState::ESTABLISHED | rpl } else { CtState::NEW }
            }
        };
        if let Some((value, mask)) = request.mark {
            twin.mark = twin.mark & !mask | value & mask;
        }
        (state | CtState::TRACKED, twin.mark, None)
    }

    fn without(
        &mut self,
        now: Time,
        packet: &PacketView<'_>,
        request: &TrackRequest,
        reply: Option<FlowTuple>,
    ) -> (CtState, u32, Option<NotCommitted>) {
        let is_icmp = packet.tuple.is_icmp();
        if packet.kind == PacketKind::IcmpError || is_icmp && packet.tuple.dst_port != 8 << 8 {
            return (CtState::TRACKED | CtState::INVALID, 0, None);
        }
        let state = CtState::TRACKED | CtState::NEW;
        if request.commit == Commit::No {
            return (state, 0, None);
        }
        let of_zone = self.twins.iter().filter(|twin| twin.zone == request.zone).count();
        if self.twins.len() >= self.limits.connections || of_zone >= self.limits.per_zone {
            return (state, 0, Some(NotCommitted::Full));
        }
        let is_nat = matches!(request.nat, Some(NatRequest::New(_)));
        let reply = if is_nat { reply } else { Some(packet.tuple.reversed()) };
        let Some(reply) = reply.filter(|reply| self.place(reply, request.zone).is_none()) else {
            return (state, 0, Some(NotCommitted::Exhausted));
        };
        let first = if is_icmp { TimeoutKind::IcmpFirst } else { TimeoutKind::OtherFirst };
        let mark = request.mark.map_or(0, |(value, mask)| value & mask);
        self.twins.push(Twin {
            zone: request.zone,
            tuples: [packet.tuple, reply],
            packets: [1, 0],
            deadline: now.saturating_add(self.timeouts.get(first)),
            mark,
        });
        (state, mark, None)
    }
}

fn any_packet(rng: &mut Rng) -> PacketView<'static> {
    let (src, dst) = (1 + u128::from(rng.below(5)), 1 + u128::from(rng.below(5)));
    let is_v6 = rng.below(4) == 0;
    let is_icmp = rng.below(4) == 0;
    let (protocol, src_port, dst_port) = match (is_icmp, is_v6) {
        (true, false) => (1, rng.below(3) as u16, [8 << 8, 0][rng.below(2) as usize]),
        (true, true) => (17, 9, 9),
        (false, _) => (17, 2000 + rng.below(3) as u16, 2000 + rng.below(3) as u16),
    };
    let tuple = FlowTuple { src, dst, src_port, dst_port, protocol, is_v6 };
    let kind = if rng.below(10) == 0 { PacketKind::IcmpError } else { PacketKind::Other };
    PacketView { tuple, kind, payload: &[] }
}

fn any_request(rng: &mut Rng) -> TrackRequest {
    let spec = NatSpec {
        side: [NatSide::Source, NatSide::Destination][rng.below(2) as usize],
        addresses: (rng.below(4) > 0).then(|| (3, 3 + u128::from(rng.below(4)))),
        is_v6: false,
        ports: (rng.below(2) == 0).then(|| (2000, 2000 + rng.below(3) as u16)),
        choice: [PortChoice::Default, PortChoice::Hash, PortChoice::Random][rng.below(3) as usize],
        is_persistent: rng.below(2) == 0,
    };
    TrackRequest {
        zone: rng.below(2) as u16,
        commit: [Commit::No, Commit::Yes, Commit::Yes, Commit::Force][rng.below(4) as usize],
        nat: [None, None, Some(NatRequest::Existing), Some(NatRequest::New(spec))][rng.below(4) as usize],
        mark: (rng.below(2) == 0).then(|| (rng.next_u64() as u32, 0xff)),
        ..TrackRequest::default()
    }
}

#[test]
fn the_table_and_the_obvious_one_say_the_same_of_random_packets() {
    let (mut committed, mut exhausted, mut translated) = (0, 0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let limits = ConntrackLimits {
            connections: 20 + rng.below(60) as usize,
            per_zone: 15 + rng.below(40) as usize,
        };
        let mut table = Conntrack::new(limits, seed);
        let mut obvious = Obvious { twins: Vec::new(), limits, timeouts: Timeouts::default() };
        let mut now = Time::ZERO;
        for step in 0..2000 {
            let pause = if rng.below(50) == 0 { 70_000 } else { 900 };
            now = now.saturating_add(Duration::from_ms(rng.below(pause)));
            let (packet, request) = (any_packet(&mut rng), any_request(&mut rng));
            let found = table.track(now, &packet, &request);
            let reply = reply_of(&table, now, &packet, &request);
            let wanted = obvious.track(now, &packet, &request, reply);
            let translation = found.state.translation().bits();
            let state = CtState::from_bits(found.state.bits() & !translation);
            assert_eq!(
                (state, found.mark, found.not_committed),
                wanted,
                "seed {seed} step {step} {packet:?} {request:?}"
            );
            check_translation(&found, &packet);
            translated += usize::from(found.translation.is_some());
            exhausted += usize::from(found.not_committed == Some(NotCommitted::Exhausted));
            assert_eq!(table.list(now).len(), obvious.twins.len(), "seed {seed} step {step}");
        }
        check_unique(&table, now);
        assert_eq!(table.len(now), obvious.twins.len(), "seed {seed}");
        committed += table.counters().committed;
        let zone = obvious.twins.iter().filter(|twin| twin.zone == 1).count();
        assert_eq!(table.flush(Some(1)), zone);
        assert_eq!(table.len(now), obvious.twins.len() - zone);
    }
    assert!(committed > 5000 && exhausted > 100 && translated > 1000, "{committed} {exhausted} {translated}");
}

/// Returns the tuple of replies that the table gave to the connection of a packet.
fn reply_of(
    table: &Conntrack,
    now: Time,
    packet: &PacketView<'_>,
    request: &TrackRequest,
) -> Option<FlowTuple> {
    let list = table.list(now);
    let is_it =
        |one: &&fastpath_conntrack::ConnectionInfo| one.original == packet.tuple && one.zone == request.zone;
    list.iter().find(is_it).map(|one| one.reply)
}

/// A translation changes what is asked for only, and begins at the tuple of the packet.
fn check_translation(found: &Tracked, packet: &PacketView<'_>) {
    let Some(translation) = found.translation else { return };
    assert_eq!(translation.from, packet.tuple);
    assert!(found.state.is_translated());
    let is_src = found.state.has(CtState::SRC_NAT);
    let (kept, was) = match is_src {
        true => (translation.to.dst, translation.from.dst),
        false => (translation.to.src, translation.from.src),
    };
    assert_eq!(kept, was);
}

/// No two connections of a zone have a tuple in common.
fn check_unique(table: &Conntrack, now: Time) {
    let mut seen = BTreeSet::new();
    for one in table.list(now) {
        assert!(seen.insert((one.zone, one.original)), "{one:?}");
        assert!(one.original == one.reply || seen.insert((one.zone, one.reply)), "{one:?}");
    }
}

const CLIENT: FlowTuple =
    FlowTuple { src: 1, dst: 2, src_port: 4000, dst_port: 80, protocol: 6, is_v6: false };

/// A table, its time, and segments of one connection.
struct Session {
    table: Conntrack,
    now: Time,
}

impl Session {
    fn new() -> Session {
        Session { table: Conntrack::new(ConntrackLimits::default(), 1), now: Time::ZERO }
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.saturating_add(Duration::from_secs(seconds));
    }

    /// Returns the state of a segment that commits.
    fn send(&mut self, is_reply: bool, flags: u16, seq: u32, ack: u32, len: u32) -> CtState {
        let tuple = if is_reply { CLIENT.reversed() } else { CLIENT };
        let kind = PacketKind::Tcp(TcpSegment { flags, seq, ack, window: 1000, len, scale: None });
        let request = TrackRequest { commit: Commit::Yes, ..TrackRequest::default() };
        self.table.track(self.now, &PacketView { tuple, kind, payload: &[] }, &request).state
    }

    fn open(&mut self) {
        self.send(false, SYN, 99, 0, 0);
        self.send(true, SYN | ACK, 499, 100, 0);
        self.send(false, ACK, 100, 500, 0);
    }

    fn count(&mut self) -> usize {
        self.table.len(self.now)
    }
}

use tcp_flags::{ACK, FIN, PSH, RST, SYN};
const NEW: CtState = CtState::NEW;
const EST: CtState = CtState::ESTABLISHED;

fn is(state: CtState, wanted: CtState) -> bool {
    state.has(wanted | CtState::TRACKED) && !state.has(CtState::INVALID)
}

fn is_invalid(state: CtState) -> bool {
    state == CtState::TRACKED | CtState::INVALID
}

#[test]
fn a_handshake_establishes_and_data_stays_within_the_window() {
    let mut session = Session::new();
    assert!(is(session.send(false, SYN, 99, 0, 0), NEW));
    assert!(is(session.send(false, SYN, 99, 0, 0), NEW), "again");
    assert!(is(session.send(true, SYN | ACK, 499, 100, 0), EST | CtState::REPLY));
    assert!(is(session.send(false, ACK, 100, 500, 0), EST));
    assert!(is(session.send(false, ACK | PSH, 100, 500, 1000), EST), "as much as the window");
    assert!(is_invalid(session.send(false, ACK, 50_000, 500, 100)), "beyond it");
    assert!(is_invalid(session.send(false, ACK, 1100, 500 + 200_000, 100)), "acknowledges the future");
    assert!(
        is_invalid(session.send(false, SYN | FIN, 1, 0, 0))
            && is_invalid(session.send(false, FIN, 1100, 0, 0))
    );
}

#[test]
fn timeouts_follow_the_phases_to_the_picosecond() {
    let ps = Duration::from_ps(1);
    let after = |steps: &[(bool, u16, u32, u32)], timeout: u64| {
        let mut session = Session::new();
        session.open();
        steps.iter().for_each(|(reply, flags, seq, ack)| {
            assert!(!session.send(*reply, *flags, *seq, *ack, 0).has(CtState::INVALID));
        });
        let end = Time::ZERO.saturating_add(Duration::from_secs(timeout));
        assert_eq!(session.table.clone().len(end.saturating_sub(ps)), 1, "{steps:?}");
        assert_eq!(session.table.len(end), 0, "{steps:?}");
    };
    let (fin, fin_back) = ((false, FIN | ACK, 100, 500), (true, FIN | ACK, 500, 101));
    after(&[], 24 * 3600);
    after(&[fin], 900);
    // Its FIN acknowledges the first, which is acknowledged last.
    after(&[fin, (true, FIN | ACK, 500, 100)], 45);
    after(&[fin, fin_back, (false, ACK, 101, 501)], 30);
    after(&[(true, RST, 500, 0)], 30);
    let mut first = Session::new();
    first.send(false, SYN, 99, 0, 0);
    first.wait(29);
    assert_eq!(first.count(), 1);
    first.wait(1);
    assert_eq!(first.count(), 0);
}

#[test]
fn a_reset_is_exact_and_a_closed_connection_begins_again() {
    let mut session = Session::new();
    session.open();
    assert!(is_invalid(session.send(true, RST, 700, 0, 0)), "somewhere in the window");
    assert!(is(session.send(true, RST, 500, 0, 0), EST));
    assert!(is(session.send(false, SYN, 9000, 0, 0), NEW), "another begins at once");
    assert_eq!(session.table.counters().committed, 2);
}

#[test]
fn a_connection_is_taken_up_in_the_middle_but_not_by_an_answer() {
    let mut session = Session::new();
    assert!(is_invalid(session.send(false, SYN | ACK, 1, 1, 0)));
    assert!(is(session.send(false, ACK, 7000, 9000, 100), NEW));
    assert!(is(session.send(true, ACK, 9000, 7100, 50_000), EST), "a window of unknown scale");
}

/// What `ovs-vswitchd` 3.1 said of these segments.
#[test]
fn a_connection_that_was_taken_up_and_not_answered_is_opened_again() {
    let mut session = Session::new();
    let mut send = |is_reply, flags, (seq, ack), (window, len), scale| {
        let tuple = if is_reply { CLIENT.reversed() } else { CLIENT };
        let kind = PacketKind::Tcp(TcpSegment { flags, seq, ack, window, len, scale });
        let request = TrackRequest { commit: Commit::Yes, ..TrackRequest::default() };
        session.table.track(session.now, &PacketView { tuple, kind, payload: &[] }, &request).state
    };
    assert!(is(send(false, PSH | ACK, (169_696_108, 2_574_342_007), (65_535, 0), None), NEW));
    assert!(is(send(false, ACK, (169_696_108, 2_574_342_007), (1, 0), None), EST));
    assert!(is(send(false, SYN, (4_214_268_062, 0), (65_535, 0), Some(7)), NEW));
    assert!(is_invalid(send(false, PSH | ACK, (4_214_268_063, 2_115_027_679), (65_535, 1400), None)));
    let answer = send(true, SYN | ACK, (2_115_027_679, 4_214_269_463), (65_535, 0), Some(2));
    assert!(is(answer, EST | CtState::REPLY));
    assert!(is(send(false, ACK, (4_214_269_463, 2_115_027_680), (0, 1400), None), EST));
    assert!(is(send(false, ACK, (4_214_270_863, 2_115_027_680), (0, 1400), None), EST));
    assert!(is_invalid(send(false, SYN, (3_564_022_924, 0), (0, 0), Some(7))));
}

#[test]
fn a_full_table_takes_no_connection_until_one_ends() {
    let mut table = Conntrack::new(ConntrackLimits { connections: 2, per_zone: 2 }, 1);
    let mut commit = |seconds: u64, src: u128| {
        let now = Time::ZERO.saturating_add(Duration::from_secs(seconds));
        let packet = PacketView { tuple: FlowTuple { src, ..CLIENT }, kind: syn(), payload: &[] };
        table
            .track(now, &packet, &TrackRequest { commit: Commit::Yes, ..TrackRequest::default() })
            .not_committed
    };
    assert_eq!([commit(0, 5), commit(1, 6), commit(2, 7)], [None, None, Some(NotCommitted::Full)]);
    assert_eq!([commit(30, 8), commit(30, 9)], [None, Some(NotCommitted::Full)]);
    assert_eq!(table.counters().full, 2);
}

fn syn() -> PacketKind {
    PacketKind::Tcp(TcpSegment { flags: SYN, seq: 1, window: 1000, ..TcpSegment::default() })
}

#[test]
fn ports_of_nat_are_unique_until_none_is_left() {
    let mut table = Conntrack::new(ConntrackLimits::default(), 5);
    let spec = NatSpec {
        side: NatSide::Source,
        addresses: Some((100, 101)),
        is_v6: false,
        ports: Some((7000, 7009)),
        choice: PortChoice::Random,
        is_persistent: false,
    };
    let request =
        TrackRequest { commit: Commit::Yes, nat: Some(NatRequest::New(spec)), ..TrackRequest::default() };
    let mut seen = BTreeSet::new();
    for src in 0..20 {
        let packet = PacketView { tuple: FlowTuple { src: 1000 + src, ..CLIENT }, kind: syn(), payload: &[] };
        let found = table.track(Time::ZERO, &packet, &request).translation.expect("translated").to;
        assert!((100..=101).contains(&found.src) && (7000..=7009).contains(&found.src_port), "{found:?}");
        assert!(seen.insert((found.src, found.src_port)), "{found:?}");
    }
    let packet = PacketView { tuple: FlowTuple { src: 5000, ..CLIENT }, kind: syn(), payload: &[] };
    let last = table.track(Time::ZERO, &packet, &request);
    assert_eq!((last.not_committed, last.translation), (Some(NotCommitted::Exhausted), None));
}
