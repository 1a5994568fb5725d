//! Bundles of the ONF extension, as a controller sends them.

use crate::common::{Harness, Peer};
use crate::{flow, wire};
use fastpath_openflow::message::Message;
use fastpath_switch::{FlowMod, Limits};

const ONF: u32 = 0x4f4e_4600;
const OPEN: u16 = 0;
const CLOSE: u16 = 2;
const COMMIT: u16 = 4;
const DISCARD: u16 = 6;
/// The number of an error of the extension: OFPET_EXPERIMENTER, and 2300 and the code.
const fn refused(code: u16) -> (u16, u16) {
    (0xffff, 2300 + code)
}

fn control(id: u32, step: u16, flags: u16) -> Message {
    let data = [&id.to_be_bytes()[..], &step.to_be_bytes(), &flags.to_be_bytes()].concat();
    Message::Experimenter { experimenter: ONF, kind: 2300, data }
}

/// The message that adds another, with the transaction id `inner`; that of the whole is 7.
fn addition(id: u32, flags: u16, inner: u32, message: &Message) -> Vec<u8> {
    let mut data = [&id.to_be_bytes()[..], &[0, 0], &flags.to_be_bytes()].concat();
    message.encode(inner, &mut data);
    let mut bytes = Vec::new();
    Message::Experimenter { experimenter: ONF, kind: 2301, data }.encode(7, &mut bytes);
    bytes
}

fn add(peer: &mut Peer, id: u32, request: FlowMod) {
    peer.write(&addition(id, 3, 7, &flow(request)));
}

/// Sends a control message and expects its reply.
fn agree(peer: &mut Peer, id: u32, step: u16) {
    peer.say(&control(id, step, 3));
    let Message::Experimenter { experimenter: ONF, kind: 2300, data } = peer.hear() else {
        panic!("no reply to step {step}")
    };
    assert_eq!(data, [&id.to_be_bytes()[..], &(step + 1).to_be_bytes(), &[0, 3]].concat());
}

#[test]
fn a_bundle_changes_all_at_its_commit_and_nothing_before() {
    let harness = Harness::new();
    let mut peer = harness.controller();
    agree(&mut peer, 5, OPEN);
    add(&mut peer, 5, wire(1, 2));
    add(&mut peer, 5, wire(2, 1));
    peer.barrier();
    assert_eq!(harness.flow_count(), 0);
    agree(&mut peer, 5, CLOSE);
    agree(&mut peer, 5, COMMIT);
    assert_eq!(harness.flow_count(), 2);
    // It has ended; a number can be used again, and a commit closes.
    peer.say(&control(5, COMMIT, 3));
    assert_eq!(peer.refusal(), refused(2));
    add(&mut peer, 5, FlowMod::delete_all());
    agree(&mut peer, 5, COMMIT);
    assert_eq!(harness.flow_count(), 0);
    assert!(harness.stop().balances());
}

#[test]
fn a_bundle_with_a_change_that_is_refused_changes_nothing() {
    let harness = Harness::holding(Limits { flows: 2, ..Limits::default() });
    let mut peer = harness.controller();
    peer.say(&flow(wire(3, 1)));
    agree(&mut peer, 1, OPEN);
    add(&mut peer, 1, FlowMod::delete_all());
    for from in 1..=3 {
        add(&mut peer, 1, wire(from, 2));
    }
    peer.say(&control(1, COMMIT, 3));
    // OFPFMFC_TABLE_FULL, then OFPBFC_MSG_FAILED.
    assert_eq!((peer.refusal(), peer.refusal()), ((5, 1), refused(13)));
    assert_eq!(harness.flow_count(), 1);
    agree(&mut peer, 1, OPEN);
    add(&mut peer, 1, wire(1, 2));
    agree(&mut peer, 1, DISCARD);
    assert_eq!(harness.flow_count(), 1);
}

#[test]
fn what_cannot_be_in_a_bundle_is_refused_by_the_numbers_of_the_extension() {
    let harness = Harness::new();
    let mut peer = harness.controller();
    let rule = || flow(wire(1, 2));
    for (bytes, code) in [
        (addition(1, 3, 8, &rule()), 9),
        (addition(1, 3, 7, &Message::BarrierRequest), 10),
        (addition(1, 8, 7, &rule()), 7),
    ] {
        peer.write(&bytes);
        assert_eq!(peer.refusal(), refused(code));
    }
    for (step, id, flags, code) in [(CLOSE, 9, 3, 2), (DISCARD, 9, 3, 2), (12, 9, 3, 6), (OPEN, 9, 4, 7)] {
        peer.say(&control(id, step, flags));
        assert_eq!(peer.refusal(), refused(code), "step {step}");
    }
    agree(&mut peer, 1, OPEN);
    peer.say(&control(1, OPEN, 3));
    assert_eq!(peer.refusal(), refused(3));
    agree(&mut peer, 1, OPEN);
    agree(&mut peer, 1, CLOSE);
    add(&mut peer, 1, wire(1, 2));
    assert_eq!(peer.refusal(), refused(4));
    // Bundles without end have a bound.
    (2..=64).for_each(|id| agree(&mut peer, id, OPEN));
    peer.say(&control(65, OPEN, 3));
    assert_eq!(peer.refusal(), refused(5));
    // Truncated ones are messages of the wrong length.
    let short = Message::Experimenter { experimenter: ONF, kind: 2300, data: vec![0; 5] };
    peer.say(&short);
    assert_eq!(peer.refusal(), (1, 6));
    assert_eq!(harness.flow_count(), 0);
}
