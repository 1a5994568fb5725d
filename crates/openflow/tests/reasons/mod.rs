//! Why packets are sent to controllers, in each version.

use crate::common::Peer;
use crate::frame;
use crate::later::harness;
use fastpath_openflow::message::{Async, AsyncMask, Message, NO_BUFFER, Nicira, PacketOut};
use fastpath_switch::group::BUCKET_UNNUMBERED;
use fastpath_switch::{
    Action, Bucket, Field, FieldMatch, FlowMod, GroupCommand, GroupKind, GroupMod, Instructions, Match,
    Version, port,
};

fn reason(peer: &mut Peer) -> u8 {
    match peer.hear() {
        Message::PacketIn(packet) => packet.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn packet_ins_say_what_sent_them_as_the_version_can() {
    let up = || Action::output(port::CONTROLLER);
    for (version, wanted) in [(Version::V13, [1, 1, 1, 1, 0]), (Version::V14, [1, 3, 4, 5, 0])] {
        let harness = harness();
        let mut peer = harness.stranger();
        peer.greet_in(version);
        let bucket = Bucket {
            id: BUCKET_UNNUMBERED,
            weight: 0,
            watch_port: port::ANY,
            watch_group: fastpath_switch::flow::ANY_GROUP,
            actions: vec![up()],
        };
        let command = GroupCommand::Add;
        peer.say(&Message::GroupMod(GroupMod {
            command,
            kind: GroupKind::All,
            id: 1,
            buckets: vec![bucket],
        }));
        let write = Instructions { write: vec![up()], ..Instructions::default() };
        let flows = [Instructions::apply([up()]), write, Instructions::apply([Action::Group(1)])];
        for (number, instructions) in (1..).zip(flows) {
            let matching = Match::new(&[FieldMatch::exact(Field::InPort, number)]).unwrap();
            let request = FlowMod::add(0, 1, matching, instructions);
            peer.say(&Message::FlowMod { buffer_id: NO_BUFFER, request });
        }
        let miss = FlowMod::add(0, 0, Match::any(), Instructions::apply([up()]));
        peer.say(&Message::FlowMod { buffer_id: NO_BUFFER, request: miss });
        peer.barrier();
        for number in [1, 2, 3] {
            harness.send(number, &frame(1));
            assert_eq!(reason(&mut peer), wanted[number as usize - 1], "{version:?}: {number}");
        }
        let (fields, actions, data) = (Vec::new(), vec![up()], frame(1));
        let in_port = port::CONTROLLER;
        peer.say(&Message::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port, fields, actions, data }));
        assert_eq!(reason(&mut peer), wanted[3]);
        harness.send(port::LOCAL, &frame(1));
        assert_eq!(reason(&mut peer), wanted[4]);
        assert!(harness.stop().balances());
    }
}

#[test]
fn masks_of_nicira_leave_those_that_they_do_not_name() {
    let harness = harness();
    let mut peer = harness.stranger();
    peer.greet_in(Version::V14);
    peer.say(&Message::ChangeAsync(vec![AsyncMask { message: 5, is_of_slaves: false, mask: 2 }]));
    peer.say(&Message::GetAsyncRequest);
    let Message::GetAsyncReply(before) = peer.hear() else { panic!("no masks") };
    let masks = Async { packet_in: [1 << 4, 0], ..before };
    peer.say(&Message::Nicira(Nicira::SetAsync(masks)));
    peer.say(&Message::GetAsyncRequest);
    let Message::GetAsyncReply(after) = peer.hear() else { panic!("no masks") };
    assert_eq!((after.request_forward, after), ([2, 0], masks));
}
