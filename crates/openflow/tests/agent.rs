//! The agent against controllers written with the same messages: what controllers may do, what they
//! receive, and what happens to those that misbehave. Time is real here, but nothing waits longer
//! than an answer takes.
#![cfg(target_os = "linux")]

mod bundles;
mod common;
mod defaults;
mod later;
mod orders;
mod resume;
mod tls;
mod v10;

use common::{Harness, Peer, until};
use fastpath_openflow::message::{
    Async, Hello, Message, NO_BUFFER, PacketOut, PortMod, Reply, Request, Role, RoleMessage, TableMod,
};
use fastpath_switch::flow::flags;
use fastpath_switch::{
    Action, Band, BandKind, Bucket, Field, FieldMatch, FlowFilter, FlowMod, GroupCommand, GroupKind,
    GroupMod, Instructions, Limits, Match, MeterCommand, MeterMod, port,
};
use fastpath_units::Rng;
use std::sync::mpsc;

/// A flow that sends everything from one port to another.
fn wire(from: u32, to: u32) -> FlowMod {
    let matching = Match::new(&[FieldMatch::exact(Field::InPort, from.into())]).unwrap();
    FlowMod::add(0, 10, matching, Instructions::apply([Action::output(to)]))
}

fn flow(request: FlowMod) -> Message {
    Message::FlowMod { buffer_id: NO_BUFFER, request }
}

/// A frame of an experimental EtherType.
fn frame(n: u8) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5][..], &[n; 46]].concat()
}

#[test]
fn after_a_barrier_a_rule_is_in_force() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    for n in 0..50 {
        let to = 2 + u32::from(n % 2);
        controller.say(&flow(wire(1, to)));
        controller.barrier();
        harness.send(1, &frame(n));
        assert_eq!(harness.receive(to), frame(n));
    }
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
    assert_eq!((accounting.received, accounting.sent), (50, 50));
}

#[test]
fn only_a_controller_that_changes_rules_faster_than_structures_are_built_waits() {
    let (go, when) = mpsc::channel();
    let harness = Harness::patient(when);
    let (mut busy, mut other) = (harness.controller(), harness.controller());
    // Both in one write, so that they are read together.
    let mut bytes = Vec::new();
    flow(wire(1, 2)).encode(1, &mut bytes);
    Message::BarrierRequest.encode(2, &mut bytes);
    busy.write(&bytes);
    assert_eq!(busy.hear(), Message::BarrierReply);
    busy.say(&flow(wire(2, 1)));
    let mut count = || {
        let request = Request::Aggregate(FlowFilter::all());
        other.say(&Message::MultipartRequest { flags: 0, request });
        let Message::MultipartReply { reply: Reply::Aggregate { flows, .. }, .. } = other.hear() else {
            panic!("no reply")
        };
        flows
    };
    assert_eq!((0..20).map(|_| count()).max(), Some(1));
    // One for the structures of the empty switch and one for those with the first flow.
    go.send(()).unwrap();
    go.send(()).unwrap();
    drop(go);
    busy.barrier();
    assert_eq!(count(), 2);
    assert!(harness.stop().balances());
}

#[test]
fn packets_go_to_the_controller_and_back() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let miss = Instructions::apply([Action::output(port::CONTROLLER)]);
    controller.say(&flow(FlowMod { cookie: 77, ..FlowMod::add(0, 0, Match::any(), miss) }));
    controller.barrier();
    harness.send(2, &frame(9));
    let Message::PacketIn(packet) = controller.hear() else { panic!("no packet-in") };
    assert_eq!((packet.reason, packet.cookie, packet.table_id), (0, 77, 0));
    assert_eq!((packet.data, packet.buffer_id, packet.total_len), (frame(9), NO_BUFFER, 60));
    assert_eq!(packet.matching.field(Field::InPort).unwrap().value, 2);
    let out = |actions: Vec<Action>, data| PacketOut {
        buffer_id: NO_BUFFER,
        in_port: 2,
        fields: Vec::new(),
        actions,
        data,
    };
    controller.say(&Message::PacketOut(out(vec![Action::output(port::FLOOD)], frame(8))));
    assert_eq!((harness.receive(1), harness.receive(3)), (frame(8), frame(8)));
    controller.say(&Message::PacketOut(PacketOut { buffer_id: 5, ..out(Vec::new(), frame(1)) }));
    assert_eq!(controller.refusal(), (1, 8), "a buffer that is not there");
    controller.say(&Message::PacketOut(out(Vec::new(), vec![1, 2, 3])));
    assert_eq!(controller.refusal(), (1, 12), "three bytes are not a packet");
    controller.say(&Message::PacketOut(out(vec![Action::output(1)], Vec::new())));
    controller.barrier();
    controller.say(&Message::PacketOut(PacketOut { in_port: 99, ..out(Vec::new(), frame(1)) }));
    assert_eq!(controller.refusal(), (1, 11), "a port that is not there");
}

#[test]
fn a_port_without_packet_ins_suppresses_those_of_table_misses_only() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let to_controller = || Instructions::apply([Action::output(port::CONTROLLER)]);
    controller.say(&Message::PortMod(PortMod {
        port: 1,
        hw_addr: harness.hw_addr(1),
        config: port::config::NO_PACKET_IN,
        mask: port::config::NO_PACKET_IN,
        advertise: 0,
    }));
    assert!(matches!(controller.hear(), Message::PortStatus(_)));
    // The table-miss flow: its packets of port 1 stay, those of port 2 are sent.
    controller.say(&flow(FlowMod::add(0, 0, Match::any(), to_controller())));
    controller.barrier();
    harness.send(1, &frame(1));
    harness.send(2, &frame(2));
    let Message::PacketIn(packet) = controller.hear() else { panic!("no packet-in") };
    assert_eq!((packet.reason, packet.data), (0, frame(2)));
    // A flow with the action: its packets of port 1 are sent, too (§7.2.1).
    controller.say(&flow(FlowMod::add(0, 10, Match::any(), to_controller())));
    controller.barrier();
    harness.send(1, &frame(3));
    let Message::PacketIn(packet) = controller.hear() else { panic!("no packet-in") };
    assert_eq!((packet.reason, packet.data), (1, frame(3)));
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
    assert_eq!(accounting.dropped["no-packet-in"], 1);
}

#[test]
fn one_master_many_slaves_and_old_elections_do_not_count() {
    let harness = Harness::new();
    let [mut a, mut b] = [harness.controller(), harness.controller()];
    let role = |role, generation_id| Message::RoleRequest(RoleMessage { role, generation_id });
    let answer = |peer: &mut Peer| match peer.hear() {
        Message::RoleReply(reply) => (reply.role, reply.generation_id),
        other => panic!("{other:?}"),
    };
    a.say(&role(Role::NoChange, 0));
    assert_eq!(answer(&mut a), (Role::Equal, u64::MAX));
    a.say(&role(Role::Master, 5));
    assert_eq!(answer(&mut a), (Role::Master, 5));
    b.say(&role(Role::Master, 4));
    assert_eq!(b.refusal(), (11, 0), "stale");
    b.say(&role(Role::Master, 6));
    assert_eq!(answer(&mut b), (Role::Master, 6));
    // The first is a slave now: it may read, not change, and receives port changes only.
    a.say(&flow(wire(1, 2)));
    assert_eq!(a.refusal(), (1, 10));
    a.say(&Message::PacketOut(PacketOut {
        buffer_id: NO_BUFFER,
        in_port: 1,
        fields: Vec::new(),
        actions: Vec::new(),
        data: frame(1),
    }));
    assert_eq!(a.refusal(), (1, 10));
    a.say(&Message::MultipartRequest { flags: 0, request: Request::Desc });
    assert!(matches!(a.hear(), Message::MultipartReply { reply: Reply::Desc(_), .. }));
    let miss = Instructions::apply([Action::output(port::CONTROLLER)]);
    b.say(&flow(FlowMod::add(0, 0, Match::any(), miss)));
    b.barrier();
    harness.send(1, &frame(1));
    assert!(matches!(b.hear(), Message::PacketIn(_)));
    let down = PortMod { port: 3, hw_addr: harness.hw_addr(3), config: 1, mask: 1, advertise: 0 };
    b.say(&Message::PortMod(down));
    assert!(
        matches!(a.hear(), Message::PortStatus(status) if (status.port.number, status.port.config) == (3, 1))
    );
    assert!(matches!(b.hear(), Message::PortStatus(_)));
    // Serial numbers wrap around (§6.3.6).
    a.say(&role(Role::Slave, 6 + (1 << 63) - 1));
    assert_eq!(answer(&mut a).0, Role::Slave);
}

#[test]
fn removed_flows_are_reported_to_controllers_that_asked_for_it() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let reported = FlowMod { flags: flags::SEND_FLOW_REM, cookie: 5, ..wire(1, 2) };
    controller.say(&flow(reported.clone()));
    controller.barrier();
    harness.send(1, &frame(3));
    harness.receive(2);
    controller.say(&flow(FlowMod::delete_all()));
    let Message::FlowRemoved(removed) = controller.hear() else { panic!("no flow-removed") };
    assert_eq!((removed.cookie, removed.reason, removed.packets, removed.bytes), (5, 2, 1, 60));
    controller.say(&flow(FlowMod { hard_timeout: 1, ..reported.clone() }));
    let Message::FlowRemoved(removed) = controller.hear() else { panic!("no flow-removed") };
    assert_eq!((removed.reason, removed.hard_timeout), (1, 1));
    assert!(removed.age.as_ns() >= 1_000_000_000 && removed.age.as_ns() < 60_000_000_000);
    // Not after it has switched the message off.
    controller.say(&Message::SetAsync(Async { flow_removed: [0, 0], ..Async::DEFAULT }));
    controller.say(&flow(reported));
    controller.say(&flow(FlowMod::delete_all()));
    controller.barrier();
}

#[test]
fn long_replies_take_several_messages_and_are_complete() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let n = 3000;
    for i in 0..n {
        let matching = Match::new(&[FieldMatch::exact(Field::EthDst, i)]).unwrap();
        controller.say(&flow(FlowMod::add(
            (i % 3) as u8,
            1,
            matching,
            Instructions::apply([Action::output(2)]),
        )));
    }
    controller.barrier();
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::Flow(FlowFilter::all()) });
    let (mut count, mut messages) = (0, 0);
    loop {
        let Message::MultipartReply { flags, reply: Reply::Flow(flows) } = controller.hear() else {
            panic!()
        };
        count += flows.len();
        messages += 1;
        if flags == 0 {
            break;
        }
    }
    assert_eq!(count, n as usize);
    assert!(messages > 1);
    let one_table = FlowFilter { table_id: 1, ..FlowFilter::all() };
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::Aggregate(one_table) });
    let Message::MultipartReply { reply: Reply::Aggregate { flows, .. }, .. } = controller.hear() else {
        panic!()
    };
    assert_eq!(flows, 1000);
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::TableFeatures(Vec::new()) });
    let mut tables = Vec::new();
    loop {
        let Message::MultipartReply { flags, reply: Reply::TableFeatures(page) } = controller.hear() else {
            panic!()
        };
        tables.extend(page);
        if flags == 0 {
            break;
        }
    }
    assert_eq!(tables.len(), 254);
    // A request for the features of the table, or fewer, succeeds; for more it is refused.
    tables[3].name = "acl".to_owned();
    tables[3].entries -= 1;
    let same = Request::TableFeatures(vec![tables[3].clone()]);
    controller.say(&Message::MultipartRequest { flags: 0, request: same });
    assert!(matches!(controller.hear(), Message::MultipartReply { .. }));
    while !matches!(controller.hear(), Message::MultipartReply { flags: 0, .. }) {}
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::TableFeatures(Vec::new()) });
    let Message::MultipartReply { reply: Reply::TableFeatures(page), .. } = controller.hear() else {
        panic!()
    };
    assert_eq!((&page[3].name[..], page[3].entries), ("acl", tables[3].entries + 1));
    while !matches!(controller.hear(), Message::MultipartReply { flags: 0, .. }) {}
    tables[3].entries += 2;
    let other = Request::TableFeatures(vec![tables[3].clone()]);
    controller.say(&Message::MultipartRequest { flags: 0, request: other });
    assert_eq!(controller.refusal(), (13, 4));
}

/// The bytes of messages, one after the other, their xids counted from `xid` on.
fn together(xid: u32, messages: &[Message]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (xid, message) in (xid..).zip(messages) {
        message.encode(xid, &mut bytes);
    }
    bytes
}

/// A flow to port 2 for an address, with these flags.
fn to_station(station: u128, flags: u16) -> Message {
    let matching = Match::new(&[FieldMatch::exact(Field::EthDst, station)]).unwrap();
    let add = FlowMod::add(0, 1, matching, Instructions::apply([Action::output(2)]));
    flow(FlowMod { flags, ..add })
}

#[test]
fn requests_sent_together_are_answered_one_after_the_other() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    (0..3000).for_each(|station| controller.say(&to_station(station, 0)));
    let group = |id| {
        let buckets = vec![Bucket::new(vec![Action::output(2)])];
        Message::GroupMod(GroupMod { command: GroupCommand::Add, id, kind: GroupKind::All, buckets })
    };
    (1..=300).for_each(|id| controller.say(&group(id)));
    let band = Band { kind: BandKind::Drop, rate: 100, burst: 0 };
    controller.say(&Message::MeterMod(MeterMod {
        command: MeterCommand::Add,
        id: 1,
        flags: 1,
        bands: vec![band],
    }));
    controller.barrier();
    let ask = |request| Message::MultipartRequest { flags: 0, request };
    // The flow that the last one deletes is still there for the others.
    let requests = [
        ask(Request::Flow(FlowFilter::all())),
        ask(Request::GroupDesc(fastpath_switch::group::ALL)),
        ask(Request::Meter(1)),
        ask(Request::TableFeatures(Vec::new())),
        ask(Request::Group(fastpath_switch::group::ALL)),
        ask(Request::MeterConfig(1)),
        flow(FlowMod::delete_all()),
        ask(Request::Flow(FlowFilter::all())),
        Message::BarrierRequest,
    ];
    controller.write(&together(500, &requests));
    let mut counts = Vec::new();
    for _ in 0..7 {
        let mut count = 0;
        loop {
            let Message::MultipartReply { flags, reply } = controller.hear() else {
                panic!("a reply is missing")
            };
            count += match reply {
                Reply::Flow(flows) => flows.len(),
                Reply::GroupDesc(groups) => groups.len(),
                Reply::Group(groups) => groups.len(),
                Reply::Meter(meters) => meters.len(),
                Reply::MeterConfig(meters) => meters.len(),
                Reply::TableFeatures(tables) => tables.len(),
                other => panic!("{other:?}"),
            };
            if flags == 0 {
                break;
            }
        }
        counts.push(count);
    }
    assert_eq!(counts, [3000, 300, 1, 254, 300, 1, 0]);
    assert_eq!(controller.hear(), Message::BarrierReply);
}

#[test]
fn requests_sent_before_a_controller_closes_are_done() {
    let harness = Harness::new();
    let (mut controller, mut other) = (harness.controller(), harness.controller());
    controller.barrier();
    let flows: Vec<Message> = (0..1000).map(|station| to_station(station, 0)).collect();
    controller.write(&together(1, &flows));
    drop(controller);
    let request = Message::MultipartRequest { flags: 0, request: Request::Aggregate(FlowFilter::all()) };
    until(|| {
        other.say(&request);
        let Message::MultipartReply { reply: Reply::Aggregate { flows, .. }, .. } = other.hear() else {
            panic!("no reply")
        };
        (flows == 1000).then_some(())
    });
}

#[test]
fn statistics_of_many_ports_take_several_messages() {
    let harness = Harness::with_more_ports(1400);
    let mut controller = harness.controller();
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::PortStats(port::ANY) });
    let mut ports = Vec::new();
    loop {
        let Message::MultipartReply { flags, reply: Reply::PortStats(page) } = controller.hear() else {
            panic!()
        };
        ports.extend(page.into_iter().map(|stats| stats.port));
        if flags == 0 {
            break;
        }
    }
    assert_eq!(ports, [1, 2, 3].into_iter().chain(1000..2400).chain([port::LOCAL]).collect::<Vec<_>>());
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::PortStats(2) });
    let Message::MultipartReply { flags: 0, reply: Reply::PortStats(page) } = controller.hear() else {
        panic!()
    };
    assert_eq!(page.len(), 1);
}

#[test]
fn a_controller_that_reads_learns_of_every_removed_flow_next_to_one_that_does_not() {
    let harness = Harness::new();
    let (mut controller, mut deaf) = (harness.controller(), harness.controller());
    deaf.barrier();
    let count = 60_000;
    let flows: Vec<Message> = (0..count).map(|station| to_station(station, flags::SEND_FLOW_REM)).collect();
    controller.write(&together(1, &flows));
    controller.barrier();
    controller.say(&flow(FlowMod::delete_all()));
    controller.say(&Message::BarrierRequest);
    let (mut seen, mut barriers) = (std::collections::BTreeSet::new(), 0);
    while seen.len() < count as usize {
        match controller.hear() {
            Message::FlowRemoved(removed) => {
                let station = removed.matching.field(Field::EthDst).unwrap().value;
                assert!(seen.insert(station), "{station} is reported twice");
            }
            Message::BarrierReply => barriers += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(barriers, 1);
    // Nothing is left over, and the other may still receive.
    controller.barrier();
    assert!(matches!(deaf.hear(), Message::FlowRemoved(_)));
}

#[test]
fn a_link_that_the_data_path_finds_down_is_reported_once() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    controller.barrier();
    harness.set_link(3, port::LinkState::Down);
    harness.set_link(3, port::LinkState::Down);
    let Message::PortStatus(status) = controller.hear() else { panic!("no port status") };
    // OFPPS_LINK_DOWN, and not live.
    assert_eq!((status.reason, status.port.number, status.port.state), (2, 3, 1));
    controller.barrier();
}

#[test]
fn parts_of_a_request_are_kept_apart_and_bounded() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let ask = |flags, tables| Message::MultipartRequest { flags, request: Request::TableFeatures(tables) };
    let hear = |controller: &mut Peer| {
        let mut tables = Vec::new();
        loop {
            match controller.hear() {
                Message::MultipartReply { flags, reply: Reply::TableFeatures(page) } => {
                    tables.extend(page);
                    if flags == 0 {
                        return tables;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    };
    controller.write(&together(1, &[ask(0, Vec::new())]));
    let all = hear(&mut controller);
    let named = |table: usize, name: &str| {
        let mut table = all[table].clone();
        name.clone_into(&mut table.name);
        vec![table]
    };
    // The first part of a request that never ends, then another request in two parts.
    controller.write(&together(2, &[ask(1, named(7, "never"))]));
    controller.write(&together(3, &[ask(1, named(8, "first"))]));
    controller.write(&together(3, &[ask(0, named(9, "second"))]));
    let after = hear(&mut controller);
    assert_eq!(
        [7, 8, 9].map(|table| after[table].name.clone()),
        [all[7].name.clone(), "first".into(), "second".into()]
    );
    // A refused part discards the parts before it.
    controller.write(&together(4, &[ask(1, named(7, "never"))]));
    let mut wrong = together(4, &[ask(1, named(7, "never"))]);
    wrong[17] = 3;
    controller.write(&wrong);
    assert_eq!(controller.refusal(), (13, 3));
    controller.write(&together(4, &[ask(0, Vec::new())]));
    assert_eq!(hear(&mut controller)[7].name, all[7].name);
    // The features of all tables fit, and more do not.
    let parts: Vec<Message> = all.chunks(16).map(|tables| ask(1, tables.to_vec())).collect();
    for part in &parts {
        controller.write(&together(5, std::slice::from_ref(part)));
    }
    controller.write(&together(5, &[ask(0, Vec::new())]));
    assert_eq!(hear(&mut controller).len(), 254);
    let (mut len, mut part) = (0, parts.iter().cycle());
    while len <= 1 << 20 {
        let bytes = together(6, &part.next().cloned().into_iter().collect::<Vec<_>>());
        len += bytes.len();
        controller.write(&bytes);
    }
    assert_eq!(controller.refusal(), (1, 13));
    controller.barrier();
}

#[test]
fn groups_and_meters_are_stored_checked_and_reported() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let group = |id, command, next: Option<u32>| {
        let actions = next.map_or(vec![Action::output(2)], |next| vec![Action::Group(next)]);
        Message::GroupMod(GroupMod { command, id, kind: GroupKind::All, buckets: vec![Bucket::new(actions)] })
    };
    controller.say(&group(1, GroupCommand::Add, None));
    controller.say(&group(2, GroupCommand::Add, Some(1)));
    controller.say(&group(1, GroupCommand::Modify, Some(2)));
    assert_eq!(controller.refusal(), (6, 7), "a loop");
    controller.say(&group(1, GroupCommand::Add, None));
    assert_eq!(controller.refusal(), (6, 0), "it exists");
    controller.say(&group(1, GroupCommand::Delete, None));
    assert_eq!(controller.refusal(), (6, 9), "it is used");
    let band = Band { kind: BandKind::Drop, rate: 100, burst: 0 };
    let meter =
        |flags| Message::MeterMod(MeterMod { command: MeterCommand::Add, id: 1, flags, bands: vec![band] });
    controller.say(&meter(3));
    assert_eq!(controller.refusal(), (12, 5), "kbps and pktps");
    controller.say(&meter(1));
    let metered = Instructions { meter: Some(1), ..Instructions::apply([Action::Group(2)]) };
    controller.say(&flow(FlowMod::add(0, 1, Match::any(), metered)));
    controller.barrier();
    harness.send(1, &frame(4));
    assert_eq!(harness.receive(2), frame(4));
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::Group(2) });
    let Message::MultipartReply { reply: Reply::Group(groups), .. } = controller.hear() else { panic!() };
    assert_eq!((groups[0].id, groups[0].references, groups[0].counters.packets), (2, 1, 1));
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::Meter(1) });
    let Message::MultipartReply { reply: Reply::Meter(meters), .. } = controller.hear() else { panic!() };
    assert_eq!((meters[0].references, meters[0].counters.packets, meters[0].bands.len()), (1, 1, 1));
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::MeterConfig(9) });
    assert_eq!(controller.refusal(), (12, 3), "no such meter");
}

#[test]
fn a_hostile_peer_gets_the_right_error_and_disturbs_no_other() {
    let harness = Harness::new();
    let mut good = harness.controller();
    good.say(&flow(wire(1, 2)));
    good.barrier();
    let mut bad = harness.controller();
    bad.write(&[9, 5, 0, 8, 0, 0, 0, 1]);
    assert_eq!(bad.refusal(), (1, 0), "another version");
    bad.write(&[4, 99, 0, 8, 0, 0, 0, 1]);
    assert_eq!(bad.refusal(), (1, 1), "an unknown type");
    bad.write(&[4, 14, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bad.refusal(), (1, 6), "a flow-mod of twelve bytes");
    bad.write(&[4, 18, 0, 16, 0, 0, 0, 1, 0, 77, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bad.refusal(), (1, 2), "an unknown statistic");
    bad.write(&[4, 4, 0, 16, 0, 0, 0, 1, 0, 0, 0x23, 0x21, 0, 0, 0, 0]);
    assert_eq!(bad.refusal(), (1, 3), "an unknown experimenter");
    bad.write(&[4, 4, 0, 16, 0, 0, 0, 1, 0, 0, 0x23, 0x20, 0, 0, 0, 0]);
    assert_eq!(bad.refusal(), (1, 4), "an unknown message of Nicira");
    bad.say(&Message::FeaturesReply(fastpath_openflow::message::Features {
        datapath_id: 1,
        buffers: 0,
        tables: 1,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    }));
    assert_eq!(bad.refusal(), (1, 1), "a message that only switches send");
    bad.say(&flow(FlowMod::add(254, 1, Match::any(), Instructions::default())));
    assert_eq!(bad.refusal(), (5, 2), "a table that is not there");
    // An impossible header: the connection ends, because nothing after it can be decoded.
    bad.write(&[4, 2, 0, 3, 0, 0, 0, 1]);
    assert_eq!(bad.refusal(), (1, 6));
    assert!(bad.is_closed());
    // The first message is not a hello.
    let mut rude = harness.stranger();
    rude.say(&Message::FeaturesRequest);
    assert_eq!(rude.refusal(), (0, 1));
    assert!(rude.is_closed());
    let mut old = harness.stranger();
    old.say(&Message::Hello(Hello { version: 5, bitmap: Some(1 << 5) }));
    assert_eq!(old.refusal(), (0, 0));
    // Half a message and then nothing; and a peer that never reads.
    let mut half = harness.controller();
    half.write(&[4, 14, 0xff, 0xff, 0, 0, 0, 1, 0]);
    let mut deaf = harness.controller();
    for _ in 0..200 {
        deaf.say(&Message::MultipartRequest { flags: 0, request: Request::TableFeatures(Vec::new()) });
    }
    for n in 0..20 {
        harness.send(1, &frame(n));
        assert_eq!(harness.receive(2), frame(n));
        good.barrier();
    }
}

#[test]
fn messages_with_wrong_bytes_are_done_or_refused_and_the_agent_goes_on() {
    let harness = Harness::new();
    let mut good = harness.controller();
    let mut bad = harness.controller();
    let band = Band { kind: BandKind::Drop, rate: 100, burst: 0 };
    let bucket = Bucket::new(vec![Action::PopVlan, Action::output(2)]);
    let packet = PacketOut {
        buffer_id: NO_BUFFER,
        in_port: 1,
        fields: Vec::new(),
        actions: vec![Action::output(2)],
        data: frame(1),
    };
    let right = [
        flow(FlowMod { idle_timeout: 60, ..wire(1, 2) }),
        Message::GroupMod(GroupMod {
            command: GroupCommand::Add,
            id: 1,
            kind: GroupKind::Select,
            buckets: vec![bucket; 2],
        }),
        Message::MeterMod(MeterMod { command: MeterCommand::Add, id: 1, flags: 1, bands: vec![band; 2] }),
        Message::PacketOut(packet),
        Message::MultipartRequest { flags: 0, request: Request::Flow(FlowFilter::all()) },
        Message::TableMod(TableMod { table_id: 0, config: 0, eviction: None, vacancy: None }),
        Message::QueueGetConfigRequest { port: 1 },
    ];
    let mut rng = Rng::new(1);
    for round in 0..100u8 {
        for message in &right {
            let mut bytes = Vec::new();
            message.encode(7, &mut bytes);
            for _ in 0..=rng.below(3) {
                // The header is unchanged, so the start of the next message is known.
                let at = 8 + rng.below(bytes.len() as u64 - 8) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            bad.write(&bytes);
        }
        bad.say(&Message::EchoRequest(vec![round]));
        while bad.hear() != Message::EchoReply(vec![round]) {}
        good.barrier();
    }
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
}

#[test]
fn groups_that_multiply_packets_are_stopped() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    for id in 1..=30 {
        let next = if id == 1 { Action::output(2) } else { Action::Group(id - 1) };
        let buckets = vec![Bucket::new(vec![next]); 2];
        let add = GroupMod { command: GroupCommand::Add, id, kind: GroupKind::All, buckets };
        controller.say(&Message::GroupMod(add));
    }
    controller.say(&flow(FlowMod::add(0, 1, Match::any(), Instructions::apply([Action::Group(30)]))));
    controller.barrier();
    harness.send(1, &frame(1));
    assert_eq!(harness.receive(2), frame(1));
    controller.say(&flow(FlowMod::delete_all()));
    controller.say(&flow(wire(1, 3)));
    controller.barrier();
    harness.send(1, &frame(2));
    assert_eq!(harness.receive(3), frame(2));
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
    assert!(accounting.copied < 10_000 && accounting.dropped["too-many-copies"] > 0, "{accounting:?}");
}

#[test]
fn a_full_switch_refuses_and_keeps_its_flows() {
    let limits = Limits { tables: 2, flows: 3, groups: 2, meters: 1, room: 12, ..Limits::default() };
    let harness = Harness::holding(limits);
    let mut controller = harness.controller();
    let to = |dst: u128, actions: usize| {
        let matching = Match::new(&[FieldMatch::exact(Field::EthDst, dst)]).unwrap();
        flow(FlowMod::add(0, 1, matching, Instructions::apply(vec![Action::output(2); actions])))
    };
    controller.say(&flow(wire(1, 2)));
    (0..3).for_each(|n| controller.say(&to(n, 1)));
    assert_eq!(controller.refusal(), (5, 1), "three flows are in the table");
    let group = |id, actions: usize| {
        let buckets = vec![Bucket::new(vec![Action::output(2); actions])];
        Message::GroupMod(GroupMod { command: GroupCommand::Add, id, kind: GroupKind::Indirect, buckets })
    };
    controller.say(&group(1, 6));
    assert_eq!(controller.refusal(), (6, 4), "6 of 12 are taken; a bucket of six actions takes 7");
    controller.say(&group(1, 4));
    controller.say(&to(0, 3));
    assert_eq!(
        controller.refusal(),
        (5, 1),
        "1 is left; a flow of 3 actions in place of one of 1 takes 2 more"
    );
    controller.say(&group(2, 0));
    controller.say(&group(3, 0));
    assert_eq!(controller.refusal(), (6, 3), "two groups");
    let band = Band { kind: BandKind::Drop, rate: 100, burst: 0 };
    let meter =
        |id| Message::MeterMod(MeterMod { command: MeterCommand::Add, id, flags: 1, bands: vec![band] });
    controller.say(&meter(1));
    controller.say(&meter(2));
    assert_eq!(controller.refusal(), (12, 10), "one meter");
    controller.barrier();
    harness.send(1, &frame(5));
    assert_eq!(harness.receive(2), frame(5));
    // A deleted flow makes room.
    controller.say(&flow(FlowMod::delete_all()));
    controller.say(&to(0, 3));
    controller.barrier();
}

#[test]
fn echoes_and_simple_requests_are_answered() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    controller.say(&Message::EchoRequest(vec![1, 2, 3]));
    assert_eq!(controller.hear(), Message::EchoReply(vec![1, 2, 3]));
    controller.say(&Message::FeaturesRequest);
    assert!(matches!(controller.hear(), Message::FeaturesReply(f) if (f.datapath_id, f.tables) == (42, 254)));
    controller.say(&Message::MultipartRequest { flags: 0, request: Request::PortDesc(port::ANY) });
    let Message::MultipartReply { reply: Reply::PortDesc(ports), .. } = controller.hear() else { panic!() };
    assert_eq!(ports.iter().map(|port| &port.name[..]).collect::<Vec<_>>(), ["p1", "p2", "p3", "local"]);
    controller.say(&Message::QueueGetConfigRequest { port: 99 });
    assert_eq!(controller.refusal(), (9, 0));
    controller.say(&Message::TableMod(TableMod { table_id: 0, config: 8, eviction: None, vacancy: None }));
    assert_eq!(controller.refusal(), (8, 1));
    controller.say(&Message::PortMod(PortMod {
        port: 1,
        hw_addr: harness.hw_addr(2),
        config: 0,
        mask: 0,
        advertise: 0,
    }));
    assert_eq!(controller.refusal(), (7, 1), "the hardware address of another port");
    controller.say(&Message::GetAsyncRequest);
    assert_eq!(controller.hear(), Message::GetAsyncReply(Async::DEFAULT));
}

#[test]
fn a_switch_dials_again_and_learns_addresses_while_no_controller_answers() {
    let (harness, listener) = Harness::dialling();
    let mut controller = Peer::answer(&listener);
    controller.greet();
    controller.barrier();
    drop(controller);
    let mut controller = Peer::answer(&listener);
    controller.greet();
    controller.barrier();
    drop((controller, listener));
    // Without a controller: flooded while unknown, then learned. The mode begins when dialling has
    // failed.
    let (to_1, to_2) = (stations(2, 1), stations(1, 2));
    let flooded = harness.send_until(2, &to_1, 3);
    assert_eq!(flooded, to_1);
    harness.send(1, &to_2);
    while harness.receive(2) != to_2 {}
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
}

#[test]
fn normal_forwards_to_the_local_port() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    let normal = Instructions::apply([Action::output(port::NORMAL)]);
    controller.say(&flow(FlowMod::add(0, 1, Match::any(), normal)));
    controller.say(&flow(wire(3, port::LOCAL)));
    controller.barrier();
    harness.send(port::LOCAL, &stations(7, 1));
    assert_eq!([1, 2, 3].map(|number| harness.receive(number)), [(); 3].map(|()| stations(7, 1)));
    harness.send(1, &stations(1, 7));
    assert_eq!(harness.receive(port::LOCAL), stations(1, 7));
    harness.send(port::LOCAL, &stations(7, 1));
    assert_eq!(harness.receive(1), stations(7, 1));
    harness.send(3, &frame(5));
    assert_eq!(harness.receive(port::LOCAL), frame(5));
    let actions = vec![Action::output(port::NORMAL)];
    let out = PacketOut {
        buffer_id: NO_BUFFER,
        in_port: port::CONTROLLER,
        fields: Vec::new(),
        actions,
        data: stations(9, 1),
    };
    controller.say(&Message::PacketOut(out));
    assert_eq!(harness.receive(1), stations(9, 1), "packet-outs know what was learned");
    let accounting = harness.stop();
    assert!(accounting.balances() && accounting.sent == 3 + 4, "{accounting:?}");
}

/// A frame from one address to another.
fn stations(from: u8, to: u8) -> Vec<u8> {
    let mut frame = frame(from);
    (frame[5], frame[11]) = (to, from);
    frame
}
