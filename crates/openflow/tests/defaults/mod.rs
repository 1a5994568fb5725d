//! What a switch does before a controller has said anything: forwarding without a controller, peers
//! that stay silent, and the events that a new connection receives.

use crate::common::{Harness, Peer};
use crate::{flow, frame, stations};
use fastpath_openflow::message::{Async, Message};
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::{Action, Field, FieldMatch, FlowCommand, FlowMod, Instructions, Match, port};

/// Decrements the TTL of IPv4 packets.
fn dec_ttl() -> FlowMod {
    let ip = Match::new(&[FieldMatch::exact(Field::EthType, 0x0800)]).unwrap();
    FlowMod::add(0, 10, ip, Instructions::apply([Action::DecNwTtl, Action::output(2)]))
}

/// A UDP packet with the last TTL.
fn last_ttl() -> Vec<u8> {
    let mut packet = frame(0);
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14..34].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet
}

#[test]
fn a_switch_without_controllers_forwards_by_learned_addresses_what_no_rule_matches() {
    let from_3 = Match::new(&[FieldMatch::exact(Field::InPort, 3)]).unwrap();
    let rule = FlowMod::add(0, 1, from_3, wire_to(2));
    let harness = Harness::standalone(std::slice::from_ref(&rule));
    harness.send(1, &stations(1, 9));
    assert_eq!((harness.receive(2), harness.receive(3)), (stations(1, 9), stations(1, 9)));
    harness.send(2, &stations(2, 1));
    assert_eq!(harness.receive(1), stations(2, 1));
    // By the rule, until a connection deletes that.
    harness.send(3, &stations(3, 1));
    assert_eq!(harness.receive(2), stations(3, 1));
    let mut peer = harness.controller();
    peer.say(&flow(FlowMod { command: FlowCommand::DeleteStrict, ..rule }));
    peer.barrier();
    harness.send(3, &stations(3, 1));
    assert_eq!(harness.receive(1), stations(3, 1));
    let accounting = harness.stop();
    assert!(accounting.balances(), "{accounting:?}");
    assert_eq!(accounting.sent, 6, "the first to three ports");
}

#[test]
fn a_rule_of_the_user_for_all_packets_stays_in_standalone_mode() {
    let harness = Harness::standalone(&[FlowMod::add(0, 0, Match::any(), wire_to(3))]);
    harness.send(1, &stations(1, 9));
    assert_eq!(harness.receive(3), stations(1, 9));
    assert_eq!(harness.stop().sent, 1);
}

fn wire_to(number: u32) -> Instructions {
    Instructions::apply([Action::output(number)])
}

#[test]
fn a_new_connection_receives_no_packet_ins_for_an_invalid_ttl() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    controller.say(&flow(dec_ttl()));
    let to_controller = Instructions::apply([Action::output(port::CONTROLLER)]);
    controller.say(&flow(FlowMod::add(0, 0, Match::any(), to_controller)));
    controller.say(&Message::GetAsyncRequest);
    let Message::GetAsyncReply(masks) = controller.hear() else { panic!("no masks") };
    harness.send(1, &last_ttl());
    harness.send(1, &frame(5));
    let Message::PacketIn(packet) = controller.hear() else { panic!("no packet-in") };
    assert_eq!(packet.data, frame(5));
    let all = [masks.packet_in[0] | 1 << PacketInReason::InvalidTtl as u32, masks.packet_in[1]];
    controller.say(&Message::SetAsync(Async { packet_in: all, ..masks }));
    controller.barrier();
    harness.send(1, &last_ttl());
    let Message::PacketIn(packet) = controller.hear() else { panic!("no packet-in") };
    assert_eq!((packet.reason, packet.data), (PacketInReason::InvalidTtl as u8, last_ttl()));
}

#[test]
fn silent_peers_give_way_to_a_controller() {
    const CONNECTIONS_MAX: usize = 64;
    let harness = Harness::new();
    let mut first = harness.controller();
    first.barrier();
    let mut silent: Vec<Peer> = (0..2 * CONNECTIONS_MAX).map(|_| harness.stranger()).collect();
    let mut controllers: Vec<Peer> = (0..10).map(|_| harness.controller()).collect();
    controllers.iter_mut().for_each(Peer::barrier);
    first.barrier();
    assert!(silent.iter_mut().take(CONNECTIONS_MAX).all(Peer::is_closed), "the oldest go first");
}
