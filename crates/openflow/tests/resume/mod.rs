//! Packets that are paused for a controller, and go on when it resumes them.

use crate::common::{Harness, Peer, until};
use crate::frame;
use crate::v10::ofctl::{Ends, with_ofctl_of};
use fastpath_openflow::message::{Message, NO_BUFFER, Nicira, PacketIn, PacketInFormat};
use fastpath_switch::extension::{Bits, Controller, Extension};
use fastpath_switch::outcome::PacketInReason;
use fastpath_switch::{Action, Field, FieldMatch, FlowMod, Instructions, Match, Version, port};
use std::process::Stdio;
use std::sync::Arc;

#[test]
fn ovs_ofctl_resumes_packets_that_pause_in_resubmits_and_clones_and_twice() {
    /// Copies the popped and a loaded register into the frame.
    const SHOW: &str =
        "move:NXM_NX_REG2[]->NXM_OF_ETH_SRC[16..47],move:NXM_NX_REG1[0..15]->NXM_OF_ETH_SRC[0..15]";
    let rules = [
        "in_port=1 actions=load:5->NXM_NX_REG0[],resubmit(,1),LOCAL",
        "table=1 actions=push:NXM_NX_REG0[],controller(pause,userdata=01.02),load:7->NXM_NX_REG1[],\
         resubmit(,2),output:3",
        &format!("table=2 actions=controller(pause),pop:NXM_NX_REG2[],{SHOW},output:2"),
        "in_port=2 actions=load:9->NXM_OF_ETH_SRC[],clone(controller(pause),output:3),output:1",
    ];
    let options: &[&[&str]] = &[&["-O", "OpenFlow10"], &["-O", "OpenFlow13"], &["-O", "OpenFlow15"]];
    let name = "ovs_ofctl_resumes_packets_that_pause_in_resubmits_and_clones_and_twice";
    with_ofctl_of(name, options, Harness::new, |ofctl| {
        rules.iter().for_each(|rule| drop(ofctl.run("add-flow", &[rule])));
        let mut monitor = ofctl.command("monitor", &["resume", "--unixctl=none"]);
        let _monitor = Ends(monitor.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
        let source = |frame: Vec<u8>| frame[6..12].to_vec();
        // While it negotiates the form of packet-ins, what pauses is lost.
        let first = ofctl.harness.send_until(1, &frame(1), 2);
        assert_eq!(source(first), [0, 0, 0, 5, 0, 7]);
        assert_eq!(source(ofctl.harness.receive(3)), [0, 0, 0, 5, 0, 7]);
        assert_eq!(source(ofctl.harness.receive(port::LOCAL)), [0, 0, 0, 5, 0, 7]);
        ofctl.harness.send(2, &frame(1));
        let of_clone = until(|| Some(source(ofctl.harness.receive(3))).filter(|source| source[5] == 9));
        assert_eq!(of_clone, source(ofctl.harness.receive(1)));
    });
}

fn paused(peer: &mut Peer) -> PacketIn {
    match peer.hear() {
        Message::PacketIn(packet) if !packet.continuation.is_empty() => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_controller_may_change_a_paused_packet_but_not_what_is_left_to_do() {
    for version in [Version::V10, Version::V13, Version::V14] {
        let harness = Harness::new();
        let mut peer = harness.stranger();
        peer.greet_in(version);
        peer.say(&Message::Nicira(Nicira::SetPacketInFormat(PacketInFormat::Nxt2)));
        let pause = Controller {
            max_len: port::NO_BUFFER,
            reason: PacketInReason::Action,
            id: 0,
            userdata: Vec::new(),
            meter: None,
            pauses: true,
        };
        let to = Bits { width: 32, ..Bits::all(Field::EthSrc) };
        let show = Extension::Move { from: Bits::register(3), to };
        let apply = [Extension::Controller(pause), show].map(|one| Action::Extension(Arc::new(one)));
        let apply = [&apply[..], &[Action::output(2)]].concat();
        let request = FlowMod { cookie: 5, ..FlowMod::add(0, 1, Match::any(), Instructions::apply(apply)) };
        peer.say(&Message::FlowMod { buffer_id: NO_BUFFER, request });
        peer.barrier();
        harness.send(1, &frame(1));
        let packet = paused(&mut peer);
        assert_eq!((packet.table_id, packet.cookie, &packet.data), (0, 5, &frame(1)));
        let Bits { field, from, .. } = Bits::register(3);
        let in_port = FieldMatch::exact(Field::InPort, 1);
        let register = FieldMatch::masked(field, 0xabcd << from, 0xffff_ffff << from);
        let matching = Match::new(&[in_port, register]).unwrap();
        peer.say(&Message::Resume(PacketIn { matching, data: frame(7), ..packet.clone() }));
        let mut changed = frame(7);
        changed[8..12].copy_from_slice(&[0, 0, 0xab, 0xcd]);
        assert_eq!(harness.receive(2), changed);
        let stale = if version == Version::V10 { (0xb0c2, 0) } else { (0xffff, 35) };
        let mut damaged = packet.clone();
        damaged.continuation[5] ^= 1;
        peer.say(&Message::Resume(damaged));
        assert_eq!(peer.refusal(), stale);
        peer.say(&Message::Resume(PacketIn { continuation: Vec::new(), ..packet.clone() }));
        assert_eq!(peer.refusal(), stale);
        peer.say(&Message::Resume(PacketIn { data: Vec::new(), ..packet }));
        assert_eq!(peer.refusal(), (1, 6));
        assert!(harness.stop().balances());
    }
}
