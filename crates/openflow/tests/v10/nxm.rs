//! Messages of Nicira: what an `ofp_match` cannot say, from and to controllers of OpenFlow 1.0.

use super::{ask, of_10};
use crate::common::{Harness, Peer};
use crate::{flow, frame};
use fastpath_openflow::message::{FlowFormat, Message, Nicira, NxFlowStats, PacketInFormat, Reply, Request};
use fastpath_switch::extension::Extension;
use fastpath_switch::flow::flags;
use fastpath_switch::{
    Action, Counters, Field, FieldMatch, FlowCommand, FlowFilter, FlowMod, Instructions, Match, port,
};

/// The register that the tests use: the highest bits of the first four.
const REG0: u128 = 0xffff_ffff << 96;

fn reg0(value: u128) -> FieldMatch {
    FieldMatch::masked(Field::Registers0, value << 96, REG0)
}

fn from_ipv6(cookie: u64) -> FlowMod {
    let fields = [
        reg0(1),
        FieldMatch::exact(Field::EthType, 0x86dd),
        FieldMatch::masked(Field::Ipv6Src, 0x2001_0db8 << 96, 0xffff_ffff << 96),
        FieldMatch::masked(Field::CtState, 0x20, 0x20),
    ];
    let matching = Match::new(&fields).expect("it has no mistake");
    FlowMod { cookie, ..FlowMod::add(0, 7, matching, Instructions::apply([Action::output(2)])) }
}

/// A controller that has chosen the flow format NXM.
fn nxm(harness: &Harness) -> Peer {
    let mut peer = harness.controller_10();
    peer.say(&Message::Nicira(Nicira::SetFlowFormat(FlowFormat::Nxm)));
    peer.barrier();
    peer
}

fn nx_flows(peer: &mut Peer, filter: FlowFilter) -> Vec<NxFlowStats> {
    match ask(peer, Request::NxFlow(filter)) {
        Reply::NxFlow(flows) => flows,
        other => panic!("{other:?}"),
    }
}

fn cookies(peer: &mut Peer) -> Vec<u64> {
    nx_flows(peer, FlowFilter::all()).iter().map(|one| one.flow.cookie).collect()
}

#[test]
fn a_flow_with_registers_and_ipv6_is_added_and_shown_and_reported_whole() {
    let harness = Harness::new();
    let mut controller = nxm(&harness);
    let request = FlowMod { flags: flags::SEND_FLOW_REM, ..from_ipv6(5) };
    controller.say(&of_10(request.clone()));
    controller.barrier();
    let seen = nx_flows(&mut controller, FlowFilter::all());
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].flow.matching, request.matching);
    assert_eq!((seen[0].flow.cookie, seen[0].flow.table_id, seen[0].flow.priority), (5, 0, 7));
    assert_eq!(seen[0].flow.instructions, request.instructions);
    assert!(seen[0].idle_age.is_some() && seen[0].hard_age.is_some());
    // Within a match of Nicira, and by cookie.
    let of_reg0 = |value| FlowFilter { matching: Match::new(&[reg0(value)]).unwrap(), ..FlowFilter::all() };
    assert_eq!(nx_flows(&mut controller, of_reg0(1)).len(), 1);
    assert_eq!(nx_flows(&mut controller, of_reg0(2)), []);
    let of_cookie = |cookie| FlowFilter { cookie, cookie_mask: u64::MAX, ..FlowFilter::all() };
    assert_eq!(nx_flows(&mut controller, of_cookie(6)), []);
    let sum = ask(&mut controller, Request::NxAggregate(of_cookie(5)));
    assert_eq!(sum, Reply::NxAggregate { counters: Counters::default(), flows: 1 });
    // The controller that chose no format is told of the removal in the form of OpenFlow 1.0.
    let mut other = harness.controller_10();
    other.barrier();
    controller.say(&of_10(FlowMod { command: FlowCommand::DeleteStrict, ..request.clone() }));
    let removed = |peer: &mut Peer| match peer.hear() {
        Message::FlowRemoved(removed) => (removed.cookie, removed.table_id, removed.matching),
        other => panic!("{other:?}"),
    };
    assert_eq!(removed(&mut controller), (5, 0, request.matching));
    let lossy = Match::new(&[FieldMatch::exact(Field::EthType, 0x86dd)]).unwrap();
    assert_eq!(removed(&mut other), (5, 0xff, lossy));
}

#[test]
fn cookies_restrict_changes_and_a_change_may_set_others() {
    let harness = Harness::new();
    let mut controller = nxm(&harness);
    for (cookie, priority) in [(1, 1), (2, 2)] {
        controller.say(&of_10(FlowMod { priority, ..from_ipv6(cookie) }));
    }
    let of_1 = FlowMod { command: FlowCommand::Modify, cookie_mask: u64::MAX, ..from_ipv6(1) };
    controller.say(&of_10(of_1.clone()));
    controller.barrier();
    assert_eq!(cookies(&mut controller), [2, 1]);
    controller.say(&of_10(FlowMod { new_cookie: Some(9), ..of_1.clone() }));
    controller.barrier();
    assert_eq!(cookies(&mut controller), [2, 9]);
    // A change restricted to cookies adds nothing.
    controller.say(&of_10(of_1));
    let delete = FlowMod { command: FlowCommand::Delete, cookie: 2, cookie_mask: 3, ..FlowMod::delete_all() };
    controller.say(&of_10(delete));
    controller.barrier();
    assert_eq!(cookies(&mut controller), [9]);
    let restricted = FlowMod { cookie_mask: u64::MAX, ..from_ipv6(1) };
    controller.say(&of_10(restricted));
    assert_eq!(controller.refusal(), (0xb0c2, 0), "an error of Nicira");
}

#[test]
fn packet_ins_have_the_registers_if_the_controller_wants_them() {
    let harness = Harness::new();
    let (mut old, mut plain) = (harness.controller_10(), harness.controller_10());
    old.say(&Message::Nicira(Nicira::SetPacketInFormat(PacketInFormat::Nxt)));
    old.barrier();
    plain.barrier();
    let load = Extension::Set { field: Field::Registers0, value: 5 << 96, mask: REG0, is_load: true };
    let actions = [Action::Extension(load.into()), Action::output(port::CONTROLLER)];
    let in_port = FieldMatch::exact(Field::InPort, 1);
    let matching = Match::new(&[in_port]).unwrap();
    old.say(&of_10(FlowMod {
        cookie: 3,
        ..FlowMod::add(0, 1, matching.clone(), Instructions::apply(actions))
    }));
    old.barrier();
    harness.send(1, &frame(1));
    for (peer, wanted) in [(&mut old, Match::new(&[in_port, reg0(5)]).unwrap()), (&mut plain, matching)] {
        let Message::PacketIn(packet) = peer.hear() else { panic!("no packet-in") };
        assert_eq!((packet.matching, packet.data), (wanted, frame(1)));
    }
}

#[test]
fn formats_of_nicira_are_refused_in_openflow_13() {
    let harness = Harness::new();
    let mut new = harness.controller();
    for choice in [Nicira::SetFlowFormat(FlowFormat::Nxm), Nicira::SetPacketInFormat(PacketInFormat::Nxt)] {
        new.say(&Message::Nicira(choice));
        assert_eq!(new.refusal(), (1, 5));
    }
    // A message of Nicira for flows is not one of OpenFlow 1.3.
    new.write(&[4, 4, 0, 16, 0, 0, 0, 1, 0, 0, 0x23, 0x20, 0, 0, 0, 13]);
    assert_eq!(new.refusal(), (1, 4));
    new.say(&flow(from_ipv6(1)));
    new.barrier();
}
