//! Tests of the interpreter, and of the requests that configure the switch.

use super::*;
use crate::field::Field;
use crate::flow::{ANY_GROUP, FlowCommand, FlowMod, RemovedReason, WriteMetadata, flags};
use crate::group::{Bucket, GroupCommand, GroupMod};
use crate::limits::Limits;
use crate::matching::{FieldMatch, Match};
use crate::meter::{self, Band, BandKind, MeterCommand, MeterMod};
use crate::port::{LinkState, Port};
use fastpath_units::Duration;
use fastpath_wire::MacAddr;
use fastpath_wire::build::Ip;
use std::ops::Bound;

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// A switch with ports 1 to 4 and four tables.
fn switch() -> Switch {
    let mut switch = Switch::new(Limits { tables: 4, flows: 8, ..Limits::default() });
    (1..=4).for_each(|port| switch.set_port(port, Port::up()));
    switch
}

fn frame(ttl: u8) -> Vec<u8> {
    let end = |n: u8| (MacAddr::from_index(n.into()), [192, 0, 2, n].into());
    Ip { ttl, ..Ip::between(end(1), end(2)) }.udp(1000, 53, b"x")
}

fn ipv4(more: &[FieldMatch]) -> Match {
    let mut fields = vec![FieldMatch::exact(Field::EthType, 0x0800)];
    fields.extend(more);
    Match::new(&fields).unwrap()
}

fn udp_to(port: u16) -> Match {
    ipv4(&[FieldMatch::exact(Field::IpProto, 17), FieldMatch::exact(Field::UdpDst, port.into())])
}

fn out(port: u32) -> Instructions {
    Instructions::apply([Action::output(port)])
}

fn add(switch: &mut Switch, table: u8, priority: u16, matching: Match, instructions: Instructions) {
    switch.flow_mod(Time::ZERO, &FlowMod::add(table, priority, matching, instructions)).unwrap();
}

/// Returns the ports that a packet leaves by, in order; 0 stands for a drop, CONTROLLER for a
/// packet-in.
fn ports(outcomes: &[PacketOutcome]) -> Vec<u32> {
    let port = |outcome: &PacketOutcome| match outcome {
        PacketOutcome::Output { port, .. } => *port,
        PacketOutcome::Controller(_) => port::CONTROLLER,
        PacketOutcome::Drop(_) | PacketOutcome::Learn(_) => 0,
    };
    outcomes.iter().map(port).collect()
}

fn run(switch: &mut Switch, frame: &[u8]) -> Vec<u32> {
    ports(&interp(switch, at(1), 1, frame))
}

#[test]
fn the_highest_priority_wins_and_is_counted() {
    let mut switch = switch();
    add(&mut switch, 0, 1, Match::any(), out(2));
    add(&mut switch, 0, 9, udp_to(53), out(3));
    assert_eq!(run(&mut switch, &frame(64)), [3]);
    let counts: Vec<_> = switch.tables()[0].flows().map(|(_, flow)| flow.counters.packets).collect();
    assert_eq!(counts, [1, 0]);
    assert_eq!(switch.tables()[0].hits(), (1, 1));
    assert_eq!(switch.port(3).unwrap().counters.tx_packets, 1);
}

#[test]
fn without_a_table_miss_flow_a_miss_is_dropped_and_with_one_it_says_no_match() {
    let mut switch = switch();
    assert_eq!(interp(&mut switch, at(1), 1, &frame(64)), [PacketOutcome::Drop(DropReason::TableMiss)]);
    add(&mut switch, 0, 0, Match::any(), out(port::CONTROLLER));
    let outcomes = interp(&mut switch, at(1), 1, &frame(64));
    assert!(
        matches!(&outcomes[..], [PacketOutcome::Controller(p)] if p.reason == PacketInReason::NoMatch && p.context.in_port == 1)
    );
    add(&mut switch, 0, 1, Match::any(), out(port::CONTROLLER));
    let outcomes = interp(&mut switch, at(1), 1, &frame(64));
    assert!(matches!(&outcomes[..], [PacketOutcome::Controller(p)] if p.reason == PacketInReason::Action));
}

#[test]
fn metadata_and_the_action_set_travel_between_tables() {
    let mut switch = switch();
    let first = Instructions {
        write: vec![Action::output(2)],
        metadata: Some(WriteMetadata { value: 0xff, mask: 0x0f }),
        goto: Some(2),
        ..Instructions::default()
    };
    add(&mut switch, 0, 0, Match::any(), first);
    let metadata = Match::new(&[FieldMatch::exact(Field::Metadata, 0x0f)]).unwrap();
    let second = Instructions { write: vec![Action::SetField(Field::EthDst, 7)], ..Instructions::default() };
    add(&mut switch, 2, 5, metadata, second);
    let outcomes = interp(&mut switch, at(1), 1, &frame(64));
    assert!(
        matches!(&outcomes[..], [PacketOutcome::Output { port: 2, frame, .. }] if frame[..6] == [0, 0, 0, 0, 0, 7])
    );
    let clear = Instructions { clear: ClearActions::Clear, ..Instructions::default() };
    add(&mut switch, 2, 6, Match::any(), clear);
    assert_eq!(interp(&mut switch, at(1), 1, &frame(64)), [PacketOutcome::Drop(DropReason::NoOutput)]);
}

#[test]
fn applied_changes_are_seen_by_the_next_table() {
    let mut switch = switch();
    let rewrite =
        Instructions { goto: Some(1), ..Instructions::apply([Action::SetField(Field::UdpDst, 99)]) };
    add(&mut switch, 0, 1, udp_to(53), rewrite);
    add(&mut switch, 1, 1, udp_to(99), out(4));
    assert_eq!(run(&mut switch, &frame(64)), [4]);
}

#[test]
fn reserved_ports_mean_what_the_specification_says() {
    let mut switch = switch();
    for (to, expected) in [
        (port::IN_PORT, vec![1]),
        (port::ALL, vec![2, 3, 4]),
        (port::FLOOD, vec![2, 3, 4]),
        (port::CONTROLLER, vec![port::CONTROLLER]),
        (1, vec![0]),
        (77, vec![0]),
    ] {
        add(&mut switch, 0, 1, Match::any(), out(to));
        assert_eq!(run(&mut switch, &frame(64)), expected, "{to:#x}");
    }
    let refused = |to| {
        let request = FlowMod::add(0, 1, Match::any(), out(to));
        switch.clone().flow_mod(at(0), &request).unwrap_err().numbers()
    };
    for to in [port::TABLE, port::ANY] {
        assert_eq!(refused(to), (2, 4), "{to:#x}");
    }
}

#[test]
fn a_packet_out_enters_the_tables_by_the_table_port() {
    let mut switch = switch();
    add(&mut switch, 0, 1, udp_to(53), out(3));
    let actions = [Action::output(2), Action::output(port::TABLE)];
    let outcomes = packet_out(&mut switch, at(1), port::CONTROLLER, &actions, &frame(64)).unwrap();
    assert_eq!(ports(&outcomes), [2, 3]);
    let refusal = packet_out(&mut switch, at(1), 99, &actions, &frame(64)).unwrap_err();
    assert_eq!(refusal.numbers(), (1, 11));
}

#[test]
fn an_exhausted_ttl_goes_to_the_controller_and_no_further() {
    let mut switch = switch();
    add(&mut switch, 0, 1, ipv4(&[]), Instructions::apply([Action::DecNwTtl, Action::output(2)]));
    assert_eq!(run(&mut switch, &frame(2)), [2]);
    let outcomes = interp(&mut switch, at(1), 1, &frame(1));
    assert!(
        matches!(&outcomes[..], [PacketOutcome::Controller(p), PacketOutcome::Drop(DropReason::InvalidTtl)]
        if p.reason == PacketInReason::InvalidTtl && p.frame == frame(1))
    );
}

#[test]
fn groups_copy_choose_and_fail_over() {
    let mut switch = switch();
    let plain = |port: u32| Bucket::new([Action::output(port)]);
    let to = |port: u32| Bucket { watch_port: port, ..plain(port) };
    let mut group = |kind, buckets: &[Bucket]| {
        let command = if switch.group(1).is_some() { GroupCommand::Modify } else { GroupCommand::Add };
        switch.group_mod(at(0), &GroupMod { command, id: 1, kind, buckets: buckets.to_vec() }).unwrap();
        add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::Group(1)]));
        run(&mut switch, &frame(64))
    };
    assert_eq!(
        group(GroupKind::All, &[plain(2), plain(1), plain(3)]),
        [2, 0, 3],
        "not back where it came from"
    );
    assert_eq!(group(GroupKind::Indirect, &[plain(4)]), [4]);
    assert_eq!(group(GroupKind::Select, &[to(2), Bucket { weight: 1, ..to(3) }]), [3]);
    assert_eq!(group(GroupKind::FastFailover, &[to(2), to(3)]), [2]);
    switch.set_port(2, Port { link: LinkState::Down, ..Port::up() });
    assert_eq!(run(&mut switch, &frame(64)), [3]);
    switch.set_port(3, Port { link: LinkState::Down, ..Port::up() });
    assert_eq!(run(&mut switch, &frame(64)), [0]);
    let group = switch.group(1).unwrap();
    assert_eq!((group.counters.packets, group.bucket_counters[1].packets), (6, 1));
}

#[test]
fn a_bucket_is_live_by_its_port_or_by_its_group() {
    let mut switch = switch();
    let down = Port { link: LinkState::Down, ..Port::up() };
    let mut add_group = |id, kind, buckets: &[Bucket]| {
        let command = GroupCommand::Add;
        switch.group_mod(at(0), &GroupMod { command, id, kind, buckets: buckets.to_vec() }).unwrap();
    };
    let by =
        |watch_port, watch_group, to| Bucket { watch_port, watch_group, ..Bucket::new([Action::output(to)]) };
    add_group(1, GroupKind::FastFailover, &[by(4, ANY_GROUP, 4)]);
    add_group(2, GroupKind::FastFailover, &[by(2, 1, 2), by(3, ANY_GROUP, 3)]);
    add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::Group(2)]));
    for (port_2, port_4, expected) in
        [(Port::up(), Port::up(), 2), (Port::up(), down, 2), (down, Port::up(), 0), (down, down, 3)]
    {
        switch.set_port(2, port_2);
        switch.set_port(4, port_4);
        // A bucket that is live by its group still sends to its port, which drops the frame.
        assert_eq!(run(&mut switch, &frame(64)), [expected], "{port_2:?} {port_4:?}");
    }
}

#[test]
fn a_modified_group_goes_on_counting_and_its_buckets_begin_anew() {
    let mut switch = switch();
    let to = |command, port| {
        let buckets = vec![Bucket::new([Action::output(port)])];
        GroupMod { command, id: 1, kind: GroupKind::Indirect, buckets }
    };
    switch.group_mod(at(0), &to(GroupCommand::Add, 2)).unwrap();
    add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::Group(1)]));
    assert_eq!(run(&mut switch, &frame(64)), [2]);
    switch.group_mod(at(5), &to(GroupCommand::Modify, 3)).unwrap();
    assert_eq!(run(&mut switch, &frame(64)), [3]);
    let group = switch.group(1).unwrap();
    let counted = (group.counters.packets, group.bucket_counters[0].packets, group.added);
    assert_eq!(counted, (2, 1, at(0)));
}

#[test]
fn chains_of_groups_end_at_a_limit_however_they_come_about() {
    use GroupCommand::{Add, Modify};
    let mut switch = Switch::new(Limits { chain: 4, ..Limits::default() });
    (1..=2).for_each(|number| switch.set_port(number, Port::up()));
    let mut request = |command, id, next: Option<u32>| {
        let bucket = match (id % 2, next) {
            (_, None) => Bucket::new([Action::output(2)]),
            (0, Some(next)) => Bucket::new([Action::Group(next)]),
            (_, Some(next)) => Bucket { weight: 1, watch_group: next, ..Bucket::new([Action::output(2)]) },
        };
        let kind = if bucket.watch_group == ANY_GROUP { GroupKind::All } else { GroupKind::Select };
        let request = GroupMod { command, id, kind, buckets: vec![bucket] };
        switch.group_mod(at(0), &request).map(drop).map_err(|refusal| refusal.numbers())
    };
    assert_eq!(request(Add, 1, None), Ok(()));
    (2..=4).for_each(|id| assert_eq!(request(Add, id, Some(id - 1)), Ok(())));
    assert_eq!(request(Add, 5, Some(4)), Err((6, 5)), "by packets and liveness in turn");
    // From below: group 1 has three groups above it.
    assert_eq!(request(Add, 10, None), Ok(()));
    assert_eq!(request(Modify, 1, Some(10)), Err((6, 5)));
    // A chain that has become shorter may be extended at its other end, but not beyond the limit.
    assert_eq!(request(Modify, 2, None), Ok(()));
    assert_eq!(request(Add, 5, Some(4)), Ok(()));
    assert_eq!(request(Add, 6, Some(5)), Err((6, 5)));
    assert_eq!(request(Modify, 2, Some(1)), Err((6, 5)));
    assert_eq!(request(Modify, 2, Some(5)), Err((6, 7)), "a loop is called one");
}

/// §6.5, §7.3.4.3: OFPGMFC_INVALID_GROUP is (6, 1), OFPGMFC_WATCH_UNSUPPORTED is (6, 6).
#[test]
fn weights_and_watches_are_refused_in_groups_that_use_every_bucket() {
    let mut switch = switch();
    let mut request = |id, kind, bucket: Bucket| {
        let request = GroupMod { command: GroupCommand::Add, id, kind, buckets: vec![bucket] };
        switch.group_mod(at(0), &request).map(drop).map_err(|refusal| refusal.numbers())
    };
    let bucket = || Bucket::new([Action::output(2)]);
    let weighted = || Bucket { weight: 1, ..bucket() };
    let watching = || Bucket { watch_port: 2, ..bucket() };
    assert_eq!(request(1, GroupKind::Select, Bucket { weight: 1, ..watching() }), Ok(()));
    assert_eq!(request(2, GroupKind::FastFailover, watching()), Ok(()));
    assert_eq!(request(3, GroupKind::FastFailover, Bucket { weight: 1, ..watching() }), Ok(()));
    assert_eq!(request(6, GroupKind::Select, bucket()), Err((6, 1)), "it would never send anything");
    for (id, kind) in [(4, GroupKind::All), (5, GroupKind::Indirect)] {
        assert_eq!(request(id, kind, weighted()), Err((6, 1)), "{kind:?}");
        assert_eq!(request(id, kind, watching()), Err((6, 6)), "{kind:?}");
        assert_eq!(request(id, kind, Bucket { watch_group: 1, ..bucket() }), Err((6, 6)), "{kind:?}");
        assert_eq!(request(id, kind, bucket()), Ok(()), "{kind:?}");
    }
}

#[test]
fn a_bucket_works_on_its_own_copy() {
    let mut switch = switch();
    let bucket = Bucket::new([Action::SetField(Field::EthDst, 7), Action::output(2)]);
    let request = GroupMod { command: GroupCommand::Add, id: 1, kind: GroupKind::All, buckets: vec![bucket] };
    switch.group_mod(at(0), &request).unwrap();
    add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::Group(1), Action::output(3)]));
    let outcomes = interp(&mut switch, at(1), 1, &frame(64));
    assert!(matches!(&outcomes[1], PacketOutcome::Output { port: 3, frame: f, .. } if *f == frame(64)));
}

#[test]
fn loops_of_groups_are_refused_and_their_product_is_bounded() {
    let mut switch = switch();
    let mut request = |command, id, to: &[Action]| {
        let buckets = vec![Bucket::new(to.to_vec()), Bucket::new(to.to_vec())];
        switch
            .group_mod(at(0), &GroupMod { command, id, kind: GroupKind::All, buckets })
            .map_err(|e| e.numbers())
    };
    assert_eq!(request(GroupCommand::Add, 1, &[Action::Group(1)]), Err((6, 7)));
    assert_eq!(request(GroupCommand::Add, 1, &[Action::Group(2)]), Err((2, 9)));
    assert_eq!(request(GroupCommand::Add, 1, &[Action::output(2)]), Ok(vec![]));
    for id in 2..40 {
        assert_eq!(request(GroupCommand::Add, id, &[Action::Group(id - 1)]), Ok(vec![]));
    }
    assert_eq!(request(GroupCommand::Modify, 1, &[Action::Group(39)]), Err((6, 7)));
    assert_eq!(request(GroupCommand::Delete, 1, &[]), Err((6, 9)));
    add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::Group(39)]));
    let outcomes = interp(&mut switch, at(1), 1, &frame(64));
    assert!(
        outcomes.len() == OUTCOMES_MAX + 1
            && outcomes.last() == Some(&PacketOutcome::Drop(DropReason::TooManyCopies))
    );
    // Lists of outputs multiply over tables, too.
    (5..9).for_each(|number| switch.set_port(number, Port::up()));
    let floods = Instructions::apply(vec![Action::output(port::FLOOD); 256]);
    for table in 0..4 {
        let what = Instructions { goto: (table < 3).then_some(table + 1), ..floods.clone() };
        add(&mut switch, table, 2, Match::any(), what);
    }
    let outcomes = interp(&mut switch, at(2), 1, &frame(64));
    assert_eq!(outcomes.len(), OUTCOMES_MAX + 1);
    assert_eq!(outcomes.last(), Some(&PacketOutcome::Drop(DropReason::TooManyCopies)));
}

#[test]
fn normal_learns_and_floods_also_to_the_machine_itself() {
    let mut switch = switch();
    switch.set_port(port::LOCAL, Port::up());
    add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::output(port::NORMAL)]));
    let mut send = |second, in_port, to: u8, from: u8| {
        let mut frame = frame(64);
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]);
        let outcomes = interp(&mut switch, at(second), in_port, &frame);
        outcomes
            .iter()
            .filter_map(|o| if let PacketOutcome::Output { port, .. } = o { Some(*port) } else { None })
            .collect::<Vec<_>>()
    };
    let flooded = send(1, 1, 0xb, 0xa);
    assert!(
        flooded.contains(&2) && flooded.ends_with(&[port::LOCAL]) && !flooded.contains(&1),
        "{flooded:?}"
    );
    assert_eq!(send(2, port::LOCAL, 0xa, 0xb), [1]);
    assert_eq!(send(3, 1, 0xb, 0xa), [port::LOCAL]);
    assert!(send(400, 1, 0xb, 0xa).len() > 1, "forgotten");
}

#[test]
fn deleting_a_group_or_meter_takes_its_flows_along() {
    let mut switch = switch();
    let bucket = Bucket::new([Action::output(2)]);
    let mut group =
        GroupMod { command: GroupCommand::Add, id: 1, kind: GroupKind::All, buckets: vec![bucket] };
    switch.group_mod(at(0), &group).unwrap();
    let bands = vec![Band { kind: BandKind::Drop, rate: 1, burst: 1 }];
    let mut meter = MeterMod { command: MeterCommand::Add, id: 1, flags: meter::flags::PKTPS, bands };
    switch.meter_mod(at(0), &meter).unwrap();
    add(&mut switch, 0, 1, Match::any(), Instructions::apply([Action::Group(1)]));
    add(&mut switch, 1, 1, Match::any(), Instructions { meter: Some(1), ..out(2) });
    assert_eq!((switch.group_references(1), switch.meter_references(1)), (1, 1));
    group.command = GroupCommand::Delete;
    let removed = switch.group_mod(at(0), &group).unwrap();
    assert_eq!(
        removed.iter().map(|r| (r.table_id, r.reason)).collect::<Vec<_>>(),
        [(0, RemovedReason::GroupDelete)]
    );
    meter.command = MeterCommand::Delete;
    let removed = switch.meter_mod(at(0), &meter).unwrap();
    assert_eq!(
        removed.iter().map(|r| (r.table_id, r.reason)).collect::<Vec<_>>(),
        [(1, RemovedReason::MeterDelete)]
    );
}

#[test]
fn a_meter_drops_and_remarks() {
    let mut switch = switch();
    let mut meter = |kind| {
        let bands = vec![Band { kind, rate: 1, burst: 1 }];
        let flags = meter::flags::PKTPS | meter::flags::BURST;
        let command = if switch.meter(1).is_some() { MeterCommand::Modify } else { MeterCommand::Add };
        switch.meter_mod(at(1), &MeterMod { command, id: 1, flags, bands }).unwrap();
        add(&mut switch, 0, 1, Match::any(), Instructions { meter: Some(1), ..out(2) });
        let mut frame = frame(64);
        edit::set_field(&mut frame, Field::IpDscp, 18);
        [(); 2].map(|()| match &interp(&mut switch, at(1), 1, &frame)[..] {
            [PacketOutcome::Output { frame, .. }] => Headers::parse(frame).traffic_class() >> 2,
            _ => 0,
        })
    };
    assert_eq!(meter(BandKind::Drop), [18, 0]);
    assert_eq!(meter(BandKind::DscpRemark(1)), [18, 20]);
}

#[test]
fn ports_that_are_shut_take_and_send_nothing() {
    let mut switch = switch();
    add(&mut switch, 0, 1, Match::any(), out(2));
    for (port, config, expected) in [
        (1, port::config::NO_RECV, DropReason::Ingress),
        (1, port::config::PORT_DOWN, DropReason::Ingress),
        (2, port::config::NO_FWD, DropReason::Egress),
        (2, port::config::PORT_DOWN, DropReason::Egress),
    ] {
        switch.port_mod(port, config, config).unwrap();
        assert_eq!(interp(&mut switch, at(1), 1, &frame(64)), [PacketOutcome::Drop(expected)]);
        switch.port_mod(port, 0, config).unwrap();
    }
    assert_eq!(switch.port_mod(9, 0, 0).unwrap_err().numbers(), (7, 0));
    assert_eq!(interp(&mut switch, at(1), 1, &[0; 13]), [PacketOutcome::Drop(DropReason::Runt)]);
}

/// §7.2.1: the bit is about packets that miss in a table.
#[test]
fn a_port_without_packet_ins_suppresses_those_of_table_misses_only() {
    let mut switch = switch();
    switch.set_port(1, Port { config: port::config::NO_PACKET_IN, ..Port::up() });
    add(&mut switch, 0, 0, Match::any(), out(port::CONTROLLER));
    assert_eq!(interp(&mut switch, at(1), 1, &frame(64)), [PacketOutcome::Drop(DropReason::NoPacketIn)]);
    add(&mut switch, 0, 10, Match::any(), out(port::CONTROLLER));
    let outcomes = interp(&mut switch, at(1), 1, &frame(64));
    assert!(matches!(&outcomes[..], [PacketOutcome::Controller(p)] if p.reason == PacketInReason::Action));
    add(&mut switch, 0, 20, ipv4(&[]), Instructions::apply([Action::DecNwTtl]));
    let outcomes = interp(&mut switch, at(1), 1, &frame(1));
    assert!(matches!(&outcomes[0], PacketOutcome::Controller(p) if p.reason == PacketInReason::InvalidTtl));
}

#[test]
fn an_identical_flow_is_replaced_with_its_counters_unless_they_are_reset() {
    let mut switch = switch();
    add(&mut switch, 0, 1, Match::any(), out(2));
    run(&mut switch, &frame(64));
    let packets =
        |switch: &Switch| switch.tables()[0].flows().map(|(_, f)| f.counters.packets).collect::<Vec<_>>();
    add(&mut switch, 0, 1, Match::any(), out(3));
    assert_eq!(packets(&switch), [1]);
    let reset = FlowMod { flags: flags::RESET_COUNTS, ..FlowMod::add(0, 1, Match::any(), out(3)) };
    switch.flow_mod(at(0), &reset).unwrap();
    assert_eq!(packets(&switch), [0]);
}

#[test]
fn modifications_and_deletions_mean_the_right_flows() {
    let mut switch = switch();
    for (cookie, port, priority) in [(1, 53, 1), (2, 54, 2), (3, 55, 2)] {
        let request =
            FlowMod { cookie, ..FlowMod::add(0, priority, udp_to(port), out(u32::from(port) - 51)) };
        switch.flow_mod(at(0), &request).unwrap();
    }
    let delete = |switch: &mut Switch, request: FlowMod| {
        let mut cookies: Vec<_> =
            switch.flow_mod(at(0), &request).unwrap().iter().map(|r| r.flow.cookie).collect();
        cookies.sort_unstable();
        cookies
    };
    let all = FlowMod { table_id: 0, ..FlowMod::delete_all() };
    let strict = FlowMod { command: FlowCommand::DeleteStrict, matching: udp_to(53), ..all.clone() };
    assert!(delete(&mut switch.clone(), strict.clone()).is_empty(), "another priority");
    assert_eq!(delete(&mut switch.clone(), FlowMod { priority: 1, ..strict }), [1]);
    assert_eq!(delete(&mut switch.clone(), FlowMod { matching: ipv4(&[]), ..all.clone() }), [1, 2, 3]);
    assert_eq!(delete(&mut switch.clone(), FlowMod { out_port: 3, ..all.clone() }), [2]);
    assert_eq!(delete(&mut switch.clone(), FlowMod { cookie: 2, cookie_mask: 2, ..all.clone() }), [2, 3]);
    assert_eq!(delete(&mut switch.clone(), FlowMod { matching: udp_to(77), ..all.clone() }), [0; 0]);
    let modify = FlowMod { command: FlowCommand::Modify, instructions: out(4), matching: udp_to(53), ..all };
    switch.flow_mod(at(0), &modify).unwrap();
    assert_eq!(run(&mut switch, &frame(64)), [4]);
    assert_eq!(
        switch.tables()[0].flows().filter(|(_, f)| *f.instructions == out(4)).count(),
        2,
        "54 goes to 3, 55 to 4"
    );
}

#[test]
fn overlaps_are_refused_on_request_and_full_tables_always() {
    let mut switch = switch();
    let request = |priority, matching| FlowMod {
        flags: flags::CHECK_OVERLAP,
        ..FlowMod::add(0, priority, matching, out(2))
    };
    switch.flow_mod(at(0), &request(1, ipv4(&[]))).unwrap();
    let refusal = switch.flow_mod(at(0), &request(1, udp_to(53))).unwrap_err();
    assert_eq!(refusal.numbers(), (5, 3));
    switch.flow_mod(at(0), &request(2, udp_to(53))).unwrap();
    switch.flow_mod(at(0), &request(1, ipv4(&[]))).unwrap();
    for priority in 10..16 {
        switch.flow_mod(at(0), &request(priority, Match::any())).unwrap();
    }
    assert_eq!(switch.flow_mod(at(0), &request(99, Match::any())).unwrap_err().numbers(), (5, 1));
    switch.flow_mod(at(0), &request(10, Match::any())).unwrap();
}

#[test]
fn flows_expire_idle_or_hard_and_not_a_moment_early() {
    let mut switch = switch();
    let timed = |priority, idle_timeout, hard_timeout| FlowMod {
        idle_timeout,
        hard_timeout,
        ..FlowMod::add(0, priority, Match::any(), out(2))
    };
    switch.flow_mod(at(0), &timed(1, 0, 30)).unwrap();
    switch.flow_mod(at(0), &timed(9, 10, 0)).unwrap();
    assert_eq!(switch.next_at(), Some(at(10)));
    interp(&mut switch, at(7), 1, &frame(64));
    assert!(switch.expire(at(10)).is_empty(), "used at 7");
    assert_eq!(switch.next_at(), Some(at(17)));
    assert!(switch.expire(at(17).saturating_sub(Duration::from_ps(1))).is_empty());
    let reasons = |removed: Vec<crate::Removed>| removed.iter().map(|r| r.reason).collect::<Vec<_>>();
    assert_eq!(reasons(switch.expire(at(17))), [RemovedReason::IdleTimeout]);
    assert_eq!(reasons(switch.expire(at(40))), [RemovedReason::HardTimeout]);
    assert_eq!(switch.next_at(), None);
}

#[test]
fn actions_that_the_match_does_not_allow_are_refused() {
    let switch = switch();
    let code = |matching: Match, actions: &[Action]| {
        let request = FlowMod::add(0, 1, matching, Instructions::apply(actions));
        switch.clone().flow_mod(at(0), &request).map_err(|refusal| refusal.numbers())
    };
    let set = Action::SetField;
    assert_eq!(code(Match::any(), &[set(Field::UdpDst, 1)]), Err((2, 10)));
    assert_eq!(code(udp_to(1), &[set(Field::UdpDst, 1)]), Ok(vec![]));
    assert_eq!(code(udp_to(1), &[Action::PushMpls(0x8847), set(Field::UdpDst, 1)]), Err((2, 10)));
    assert_eq!(code(Match::any(), &[Action::PushMpls(0x8847), set(Field::MplsLabel, 1)]), Ok(vec![]));
    assert_eq!(code(Match::any(), &[Action::PopMpls(0x0800), set(Field::Ipv4Dst, 1)]), Ok(vec![]));
    assert_eq!(code(Match::any(), &[set(Field::VlanVid, 0x1001)]), Err((2, 10)));
    assert_eq!(code(Match::any(), &[Action::PushVlan(0x8100), set(Field::VlanVid, 0x1001)]), Ok(vec![]));
    assert_eq!(code(Match::any(), &[Action::PushVlan(0x8100), set(Field::VlanVid, 1)]), Err((2, 15)));
    assert_eq!(code(Match::any(), &[Action::PushVlan(0x0800)]), Err((2, 12)));
    assert_eq!(code(Match::any(), &[set(Field::InPort, 1)]), Err((2, 13)));
    assert_eq!(code(Match::any(), &[Action::Group(1)]), Err((2, 9)));
    assert_eq!(code(Match::any(), &vec![Action::output(2); 300]), Err((2, 7)));
    let goto = |table_id, goto| {
        let instructions = Instructions { goto: Some(goto), ..Instructions::default() };
        switch
            .clone()
            .flow_mod(at(0), &FlowMod::add(table_id, 1, Match::any(), instructions))
            .map_err(|e| e.numbers())
    };
    assert_eq!(
        (goto(1, 1), goto(1, 0), goto(0, 4), goto(0, 3)),
        (Err((3, 2)), Err((3, 2)), Err((3, 2)), Ok(vec![]))
    );
    let metered = FlowMod::add(0, 1, Match::any(), Instructions { meter: Some(1), ..out(2) });
    assert_eq!(switch.clone().flow_mod(at(0), &metered).unwrap_err().numbers(), (12, 2));
}

#[test]
fn deletion_and_expiry_in_parts_do_what_the_whole_does() {
    let mut whole = Switch::new(Limits { tables: 2, ..Limits::default() });
    let at = |second| Time::ZERO + Duration::from_secs(second);
    for n in 0..280u16 {
        let matching = Match::new(&[FieldMatch::exact(Field::EthDst, n.into())]).unwrap();
        let flags = if n % 3 == 0 { crate::flow::flags::SEND_FLOW_REM } else { 0 };
        let add = FlowMod::add(u8::from(n % 2 == 0), n, matching, Instructions::default());
        let add = FlowMod { flags, hard_timeout: n % 7, idle_timeout: n % 5, ..add };
        whole.flow_mod(at(0), &add).unwrap();
    }
    let mut parts = whole.clone();
    for second in [3, 5, 20] {
        let due: Vec<_> = parts.due(at(second)).collect();
        let mut removed = Vec::new();
        while parts.due(at(second)).next().is_some() {
            removed.extend(parts.expire_some(at(second), 4));
        }
        let all = whole.expire(at(second));
        assert_eq!(removed, all);
        assert!(all.len() <= due.len() && !all.is_empty());
        assert_eq!(whole.next_at(), parts.next_at());
    }
    let request = FlowMod { table_id: 1, ..FlowMod::delete_all() };
    assert_eq!(parts.clear(&request).len(), 0, "some removals are reported");
    let flows: Vec<_> =
        parts.flows_from(1, Bound::Unbounded).map(|(table, rank, _)| (table, rank.clone())).collect();
    let removed: Vec<_> = flows.chunks(2).flat_map(|some| parts.delete(at(30), some)).collect();
    assert_eq!(removed, whole.flow_mod(at(30), &request).unwrap());
    assert!(removed.len() > 2 && parts.tables()[1].is_empty());
    assert_eq!(parts.delete(at(30), &flows), []);
}

#[test]
fn tables_are_cleared_where_every_flow_goes_and_none_is_reported() {
    let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
    let add = |table, flags| FlowMod {
        flags,
        idle_timeout: 9,
        ..FlowMod::add(table, 1, Match::any(), Instructions::default())
    };
    let fill = |switch: &mut Switch| {
        switch.flow_mod(Time::ZERO, &add(0, 0)).unwrap();
        switch.flow_mod(Time::ZERO, &add(1, crate::flow::flags::SEND_FLOW_REM)).unwrap();
    };
    fill(&mut switch);
    let all = FlowMod::delete_all();
    for other in [
        FlowMod { command: FlowCommand::DeleteStrict, ..all.clone() },
        FlowMod { cookie_mask: 1, ..all.clone() },
        FlowMod { out_port: 1, ..all.clone() },
        FlowMod { out_group: 1, ..all.clone() },
        FlowMod { matching: Match::new(&[FieldMatch::exact(Field::InPort, 1)]).unwrap(), ..all.clone() },
        FlowMod { table_id: 2, ..all.clone() },
    ] {
        assert_eq!(switch.clear(&other).len(), 0, "{other:?}");
    }
    let before = switch.generation();
    assert_eq!(switch.clear(&all).len(), 1);
    assert!(switch.generation() > before);
    assert_eq!((switch.tables()[0].len(), switch.tables()[1].len()), (0, 1));
    assert_eq!(switch.flow_mod(Time::ZERO, &all).unwrap().len(), 1);
    assert_eq!(switch.next_at(), None);
    // The tables are as good as new.
    fill(&mut switch);
    assert_eq!(switch.tables()[0].len(), 1);
}
