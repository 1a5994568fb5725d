//! Controllers of OpenFlow 1.0, beside those of 1.3 on the same switch.

mod nxm;
pub(crate) mod ofctl;
mod testcontroller;

use crate::common::{Harness, Peer, until};
use crate::{flow, frame, wire};
use fastpath_openflow::agent::Versions;
use fastpath_openflow::message::{
    Async, Config, FlowStats, Hello, Message, NO_BUFFER, Nicira, PacketOut, PortMod, Reply, Request, Role,
    RoleMessage, TableMod, table_config,
};
use fastpath_switch::flow::{ALL_TABLES, flags};
use fastpath_switch::{
    Action, Field, FieldMatch, FlowCommand, FlowFilter, FlowMod, Instructions, Limits, Match, Version, port,
};
use fastpath_units::Rng;

/// A flow of OpenFlow 1.0.
fn of_10(request: FlowMod) -> Message {
    flow(FlowMod { version: Version::V10, ..request })
}

/// The flows that a controller sees.
fn flows(peer: &mut Peer) -> Vec<FlowStats> {
    let mut all = Vec::new();
    peer.say(&Message::MultipartRequest { flags: 0, request: Request::Flow(FlowFilter::all()) });
    loop {
        match peer.hear() {
            Message::MultipartReply { flags, reply: Reply::Flow(flows) } => {
                all.extend(flows);
                if flags == 0 {
                    return all;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn ask(peer: &mut Peer, request: Request) -> Reply {
    peer.say(&Message::MultipartRequest { flags: 0, request });
    match peer.hear() {
        Message::MultipartReply { flags: 0, reply } => reply,
        other => panic!("{other:?}"),
    }
}

/// Asks for packets that match no flow.
fn want_misses(peer: &mut Peer) {
    peer.say(&Message::SetConfig(Config { flags: 0, miss_send_len: 128 }));
    peer.barrier();
}

fn packet_in(peer: &mut Peer) -> (u8, u32, Vec<u8>) {
    match peer.hear() {
        Message::PacketIn(packet) => {
            assert_eq!((packet.buffer_id, usize::from(packet.total_len)), (NO_BUFFER, packet.data.len()));
            let in_port = packet.matching.field(Field::InPort).expect("a port of entry").value as u32;
            (packet.reason, in_port, packet.data)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_connection_has_the_highest_common_version() {
    let harness = Harness::new();
    let (mut old, mut new) = (harness.controller_10(), harness.controller());
    old.say(&Message::EchoRequest(vec![1]));
    assert_eq!(old.hear(), Message::EchoReply(vec![1]));
    // A hello of a later version that has both.
    let mut both = harness.stranger();
    both.say(&Message::Hello(Hello { version: 6, bitmap: Some(0x52) }));
    both.barrier();
    old.say(&of_10(FlowMod { priority: 9, cookie: 5, ..wire(1, 2) }));
    old.barrier();
    let seen = flows(&mut new);
    assert_eq!((seen.len(), seen[0].priority, seen[0].cookie), (1, 9, 5));
    assert_eq!(seen[0].instructions, Instructions::apply([Action::output(2)]));
    let seen = flows(&mut old);
    assert_eq!((seen[0].matching.clone(), seen[0].table_id), (wire(1, 2).matching, 0));
    harness.send(1, &frame(1));
    assert_eq!(harness.receive(2), frame(1));
    // A message of another version than the agreed one.
    old.write(&[4, 5, 0, 8, 0, 0, 0, 1]);
    assert_eq!(old.refusal(), (1, 0));
    new.write(&[1, 5, 0, 8, 0, 0, 0, 1]);
    assert_eq!(new.refusal(), (1, 0));
    old.barrier();
}

#[test]
fn a_version_that_is_not_allowed_is_refused() {
    for (allowed, refused) in [(Version::V10, Version::V13), (Version::V13, Version::V10)] {
        let harness = Harness::of_versions(Versions::only(allowed));
        let mut peer = harness.stranger();
        peer.greet_in(refused);
        assert_eq!(peer.refusal(), (0, 0));
        assert!(peer.is_closed());
        let mut peer = harness.stranger();
        peer.greet_in(allowed);
        peer.barrier();
    }
}

#[test]
fn the_features_have_the_ports() {
    let harness = Harness::with_more_ports(2);
    let mut controller = harness.controller_10();
    controller.say(&Message::FeaturesRequest);
    let Message::FeaturesReply(features) = controller.hear() else { panic!("no features") };
    assert_eq!((features.datapath_id, features.buffers, features.tables), (42, 0, 254));
    assert_eq!((features.actions, features.capabilities), (0xfff, 0xc7));
    let ports: Vec<(u32, &str)> =
        features.ports.iter().map(|port| (port.number, port.name.as_str())).collect();
    assert_eq!(
        ports,
        [(1, "p1"), (2, "p2"), (3, "p3"), (1000, "port1000"), (1001, "port1001"), (port::LOCAL, "local")]
    );
    assert_eq!(features.ports[0].hw_addr, harness.hw_addr(1));
    let Reply::PortDesc(again) = ask(&mut controller, Request::PortDesc(port::ANY)) else {
        panic!("no ports")
    };
    assert_eq!(again, features.ports);
    let Reply::Table(tables) = ask(&mut controller, Request::Table) else { panic!("no tables") };
    assert_eq!((tables.len(), tables[3].name.as_str()), (254, "table3"));
    assert_eq!(tables[0].entries, Limits::default().flows as u32);
}

#[test]
fn packets_that_match_no_flow_go_to_controllers_of_openflow_10_that_want_them() {
    let harness = Harness::new();
    let (mut old, mut deaf, mut new) =
        (harness.controller_10(), harness.controller_10(), harness.controller());
    deaf.barrier();
    want_misses(&mut old);
    harness.send(2, &frame(1));
    assert_eq!(packet_in(&mut old), (0, 2, frame(1)));
    // No controller sees the flow that does it.
    for peer in [&mut old, &mut new] {
        assert_eq!(flows(peer), []);
        let Reply::Aggregate { flows, .. } = ask(peer, Request::Aggregate(FlowFilter::all())) else {
            panic!("no counters")
        };
        assert_eq!(flows, 0);
        let Reply::Table(tables) = ask(peer, Request::Table) else { panic!("no tables") };
        assert_eq!((tables[0].active, tables[0].lookups, tables[0].matched), (0, 1, 0));
    }
    // No controller deletes it.
    for delete in
        [FlowMod::delete_all(), FlowMod { command: FlowCommand::DeleteStrict, ..FlowMod::delete_all() }]
    {
        new.say(&flow(delete.clone()));
        new.barrier();
        harness.send(2, &frame(2));
        assert_eq!(packet_in(&mut old), (0, 2, frame(2)));
        old.say(&of_10(delete));
        old.barrier();
        harness.send(2, &frame(3));
        assert_eq!(packet_in(&mut old), (0, 2, frame(3)));
    }
    // No controller changes it: a change of all flows adds one where there is none.
    let all =
        FlowMod { command: FlowCommand::Modify, ..FlowMod::add(0, 0, Match::any(), Instructions::default()) };
    new.say(&flow(FlowMod { instructions: Instructions::apply([Action::output(3)]), ..all.clone() }));
    new.barrier();
    assert_eq!(flows(&mut new), []);
    let sends = FlowMod { priority: 7, instructions: Instructions::apply([Action::output(1)]), ..all };
    old.say(&of_10(FlowMod { table_id: ALL_TABLES, ..sends }));
    old.barrier();
    let seen = flows(&mut new);
    assert_eq!((seen.len(), seen[0].priority), (1, 7));
    harness.send(2, &frame(4));
    assert_eq!(harness.receive(1), frame(4));
    new.say(&flow(FlowMod::delete_all()));
    new.barrier();
    harness.send(2, &frame(5));
    assert_eq!(packet_in(&mut old), (0, 2, frame(5)));
    // The others have received nothing.
    deaf.barrier();
    new.barrier();
}

#[test]
fn a_flow_for_all_packets_takes_the_place_of_the_hidden_one_until_it_goes() {
    let harness = Harness::new();
    let (mut old, mut new) = (harness.controller_10(), harness.controller());
    want_misses(&mut old);
    harness.send(2, &frame(1));
    assert_eq!(packet_in(&mut old), (0, 2, frame(1)));
    let miss = FlowMod::add(0, 0, Match::any(), Instructions::apply([Action::output(3)]));
    let strict = FlowMod { flags: flags::CHECK_OVERLAP, ..miss.clone() };
    new.say(&flow(strict));
    new.barrier();
    harness.send(2, &frame(2));
    assert_eq!(harness.receive(3), frame(2));
    assert_eq!(flows(&mut new)[0].counters.packets, 1, "the packet before matched no flow");
    new.say(&flow(FlowMod { command: FlowCommand::DeleteStrict, ..miss.clone() }));
    new.barrier();
    harness.send(2, &frame(3));
    assert_eq!(packet_in(&mut old), (0, 2, frame(3)));
    // One that expires.
    new.say(&flow(FlowMod { hard_timeout: 1, flags: flags::SEND_FLOW_REM, ..miss }));
    for peer in [&mut old, &mut new] {
        assert!(matches!(peer.hear(), Message::FlowRemoved(removed) if removed.reason == 1));
    }
    harness.send(2, &frame(4));
    assert_eq!(packet_in(&mut old), (0, 2, frame(4)));
    // Without the controller there is no such flow.
    drop(old);
    until(|| (harness.flow_count() == 0).then_some(()));
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
}

#[test]
fn the_hidden_flow_takes_no_room_and_is_not_evicted() {
    let limits = Limits { flows: 3, ..Limits::default() };
    let harness = Harness::of_versions_holding("1.0,1.4".parse().unwrap(), limits);
    let (mut old, mut new) = (harness.controller_10(), harness.stranger());
    new.greet_in(Version::V14);
    let wire = |number: u32| {
        let matching = Match::new(&[FieldMatch::exact(Field::InPort, number.into())]).unwrap();
        flow(FlowMod::add(0, 5, matching, Instructions::apply([Action::output(1)])))
    };
    (11..=13).for_each(|number| new.say(&wire(number)));
    new.barrier();
    // The table is full.
    want_misses(&mut old);
    let is_missed = |old: &mut Peer, n: u8| {
        harness.send(2, &frame(n));
        assert_eq!(packet_in(old), (0, 2, frame(n)));
    };
    is_missed(&mut old, 1);
    new.say(&wire(14));
    assert_eq!(new.refusal(), (5, 1));
    let config = table_config::EVICTION;
    new.say(&Message::TableMod(TableMod { table_id: 0, config, eviction: None, vacancy: None }));
    (14..=30).for_each(|number| new.say(&wire(number)));
    new.barrier();
    is_missed(&mut old, 2);
    assert_eq!(flows(&mut new).len(), 3);
    let Reply::Table(tables) = ask(&mut new, Request::Table) else { panic!("no tables") };
    assert_eq!(tables[0].active, 3);
}

#[test]
fn a_controller_that_the_switch_dials_receives_misses_at_once() {
    let (harness, listener) = Harness::dialling();
    let mut controller = Peer::answer(&listener);
    controller.greet_in(Version::V10);
    controller.barrier();
    harness.send(1, &frame(1));
    assert_eq!(packet_in(&mut controller), (0, 1, frame(1)));
    // As a learning controller answers it.
    let out = |data| PacketOut {
        buffer_id: NO_BUFFER,
        in_port: 1,
        fields: Vec::new(),
        actions: vec![Action::output(port::FLOOD)],
        data,
    };
    controller.say(&Message::PacketOut(out(frame(1))));
    assert_eq!((harness.receive(2), harness.receive(3)), (frame(1), frame(1)));
    // OFPP_NONE as the port of entry: from the controller.
    let mut bytes =
        vec![1, 13, 0, 84, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 8, 0, 0, 0, 8, 0, 2, 0, 0];
    bytes.extend(frame(7));
    controller.write(&bytes);
    assert_eq!(harness.receive(2), frame(7));
    controller.say(&Message::PacketOut(PacketOut { in_port: 99, ..out(frame(2)) }));
    assert_eq!(controller.refusal(), (0xb0c2, 0), "an error of Nicira");
    controller.say(&Message::PacketOut(PacketOut { buffer_id: 5, ..out(Vec::new()) }));
    assert_eq!(controller.refusal(), (1, 8));
}

#[test]
fn every_connection_learns_of_events_in_its_version() {
    let harness = Harness::new();
    let (mut old, mut new) = (harness.controller_10(), harness.controller());
    let reported = FlowMod { flags: flags::SEND_FLOW_REM, cookie: 5, ..wire(1, port::CONTROLLER) };
    old.say(&of_10(reported));
    old.barrier();
    new.barrier();
    harness.send(1, &frame(3));
    for peer in [&mut old, &mut new] {
        assert_eq!(packet_in(peer), (1, 1, frame(3)));
    }
    new.say(&flow(FlowMod::delete_all()));
    for peer in [&mut old, &mut new] {
        let Message::FlowRemoved(removed) = peer.hear() else { panic!("no flow-removed") };
        assert_eq!((removed.cookie, removed.reason, removed.packets, removed.bytes), (5, 2, 1, 60));
        assert_eq!(removed.matching, wire(1, 2).matching);
    }
    let hw_addr = harness.hw_addr(2);
    old.say(&Message::PortMod(PortMod { port: 2, hw_addr, config: 1, mask: 1, advertise: 0 }));
    for peer in [&mut old, &mut new] {
        let Message::PortStatus(status) = peer.hear() else { panic!("no port-status") };
        assert_eq!((status.reason, status.port.number, status.port.config), (2, 2, 1));
        assert_eq!((status.port.hw_addr, status.port.name.as_str()), (hw_addr, "p2"));
    }
    harness.set_link(3, port::LinkState::Down);
    for peer in [&mut old, &mut new] {
        let Message::PortStatus(status) = peer.hear() else { panic!("no port-status") };
        assert_eq!((status.port.number, status.port.state & 1), (3, 1));
    }
    // Not after it has switched packet-ins off, or has another number.
    old.say(&Message::Nicira(Nicira::SetAsync(Async { packet_in: [0, 0], ..Async::DEFAULT })));
    old.say(&of_10(wire(1, port::CONTROLLER)));
    old.barrier();
    harness.send(1, &frame(4));
    assert_eq!(packet_in(&mut new), (1, 1, frame(4)));
    old.say(&Message::Nicira(Nicira::SetAsync(Async::DEFAULT)));
    old.say(&Message::Nicira(Nicira::SetControllerId(7)));
    old.barrier();
    harness.send(1, &frame(5));
    assert_eq!(packet_in(&mut new), (1, 1, frame(5)));
    old.barrier();
}

#[test]
fn roles_are_shared_by_both_versions() {
    let harness = Harness::new();
    let (mut old, mut new) = (harness.controller_10(), harness.controller());
    let master = Message::RoleRequest(RoleMessage { role: Role::Master, generation_id: 1 });
    new.say(&master);
    assert!(matches!(new.hear(), Message::RoleReply(reply) if reply.role == Role::Master));
    old.say(&Message::Nicira(Nicira::RoleRequest(Role::Master)));
    assert_eq!(old.hear(), Message::Nicira(Nicira::RoleReply(Role::Master)));
    new.say(&flow(wire(1, 2)));
    assert_eq!(new.refusal(), (1, 10));
    new.say(&master);
    assert!(matches!(new.hear(), Message::RoleReply(reply) if reply.role == Role::Master));
    old.say(&of_10(wire(1, 2)));
    assert_eq!(old.refusal(), (1, 5), "a slave of OpenFlow 1.0 has no permission");
    old.say(&Message::Nicira(Nicira::RoleRequest(Role::Equal)));
    assert_eq!(old.hear(), Message::Nicira(Nicira::RoleReply(Role::Equal)));
    old.say(&of_10(wire(1, 2)));
    old.barrier();
}

#[test]
fn a_flow_of_openflow_10_pushes_a_tag_where_there_is_none_and_restores_the_queue() {
    let harness = Harness::new();
    let mut controller = harness.controller_10();
    let from_1 = wire(1, 2).matching;
    let actions = [Action::ModVlanVid(5), Action::SetQueue(3), Action::output(2), Action::SetQueue(0)];
    controller.say(&of_10(FlowMod::add(0, 1, from_1, Instructions::apply(actions.clone()))));
    controller.barrier();
    let tagged = |id: u8| [&frame(1)[..12], &[0x81, 0, 0, id], &frame(1)[12..]].concat();
    harness.send(1, &frame(1));
    assert_eq!(harness.receive(2), tagged(5));
    harness.send(1, &tagged(9));
    assert_eq!(harness.receive(2), tagged(5));
    assert_eq!(flows(&mut controller)[0].instructions, Instructions::apply(actions));
    // In OpenFlow 1.3 as Open vSwitch shows it.
    let shown = flows(&mut harness.controller());
    let set = Action::SetField(Field::VlanVid, 0x1005);
    assert_eq!(shown[0].instructions.apply[..2], [Action::PushVlan(0x8100), set]);
}

#[test]
fn a_flow_of_openflow_13_that_10_cannot_say_is_shown_without_the_rest() {
    let harness = Harness::new();
    let (mut old, mut new) = (harness.controller_10(), harness.controller());
    let matching = [FieldMatch::exact(Field::InPort, 1), FieldMatch::exact(Field::Metadata, 5)];
    let instructions =
        Instructions { goto: Some(4), ..Instructions::apply([Action::output(2), Action::CopyTtlIn]) };
    new.say(&flow(FlowMod::add(3, 9, Match::new(&matching).unwrap(), instructions)));
    new.barrier();
    let seen = flows(&mut old);
    assert_eq!((seen.len(), seen[0].table_id, seen[0].matching.clone()), (1, 3, wire(1, 2).matching));
    assert_eq!(seen[0].instructions, Instructions::apply([Action::output(2)]));
}

#[test]
fn messages_with_wrong_bytes_are_done_or_refused_and_the_agent_goes_on() {
    let harness = Harness::new();
    let mut good = harness.controller();
    let mut bad = harness.controller_10();
    want_misses(&mut bad);
    let packet = PacketOut {
        buffer_id: NO_BUFFER,
        in_port: 1,
        fields: Vec::new(),
        actions: vec![Action::output(2)],
        data: frame(1),
    };
    let right = [
        of_10(FlowMod { idle_timeout: 60, ..wire(1, 2) }),
        of_10(FlowMod { command: FlowCommand::Delete, table_id: ALL_TABLES, ..wire(1, 2) }),
        Message::PacketOut(packet),
        Message::MultipartRequest { flags: 0, request: Request::Flow(FlowFilter::all()) },
        Message::QueueGetConfigRequest { port: 1 },
        Message::Nicira(Nicira::FlowModTableId(true)),
    ];
    let mut rng = Rng::new(1);
    for round in 0..100u8 {
        for message in &right {
            let mut bytes = Vec::new();
            fastpath_openflow::message::Codec::new(Version::V10).encode(7, message, &mut bytes);
            for _ in 0..=rng.below(3) {
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
