//! Flow monitors before OpenFlow 1.4: what `ovs-ofctl monitor watch:` prints is what it prints with
//! Open vSwitch 3.1; and the order of updates and of other replies.

use crate::common::{Harness, Peer};
use crate::later::harness;
use crate::v10::ofctl::{Ends, Ofctl, with_ofctl_of};
use crate::wire;
use fastpath_openflow::message::flow_update::monitor_flags as flags;
use fastpath_openflow::message::{FlowUpdate, Message, MonitorRequest, NO_BUFFER, Reply, Request};
use fastpath_switch::{Action, FlowCommand, FlowFilter, FlowMod, Instructions, Version};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

/// The flows before the monitor.
const BEFORE: [&str; 2] =
    ["in_port=1,cookie=1,actions=output:2", "table=1,tcp,cookie=2,idle_timeout=100,actions=output:3"];

/// What changes then.
const CHANGES: [&[&str]; 9] = [
    &["add-flow", "in_port=2,cookie=3,actions=output:2"],
    &["add-flow", "in_port=2,cookie=3,actions=output:3"],
    &["mod-flows", "in_port=2,actions=output:2,output:3"],
    &["mod-flows", "--strict", "in_port=5,priority=7,actions=output:2"],
    &["mod-flows", "in_port=5,cookie=9,actions=output:2"],
    &["mod-flows", "in_port=5,actions=output:2"],
    &["del-flows", "in_port=2"],
    &["del-flows", "--strict", "in_port=5,priority=7"],
    &["del-flows"],
];

/// What is printed: a blank begins a message.
const PRINTED: [(&str, &[&str]); 4] = [
    (
        "watch:",
        &[
            "",
            "ADDED table=0 cookie=0x1 in_port=1 actions=output:2",
            "ADDED table=1 idle_timeout=100 cookie=0x2 tcp actions=output:3",
            "",
            "ADDED table=0 cookie=0x3 in_port=2 actions=output:2",
            "",
            "ADDED table=0 cookie=0x3 in_port=2 actions=output:3",
            "",
            "MODIFIED table=0 cookie=0 in_port=2 actions=output:2,output:3",
            "",
            "ADDED table=0 cookie=0 in_port=5 actions=output:2",
            "",
            "MODIFIED table=0 cookie=0x9 in_port=5 actions=output:2",
            "",
            "MODIFIED table=0 cookie=0 in_port=5 actions=output:2",
            "",
            "DELETED reason=delete table=0 cookie=0 in_port=2 actions=output:2,output:3",
            "",
            "DELETED reason=delete table=0 cookie=0 in_port=5 actions=output:2",
            "",
            "DELETED reason=delete table=0 cookie=0x1 in_port=1 actions=output:2",
            "DELETED reason=delete table=1 idle_timeout=100 cookie=0x2 tcp actions=output:3",
        ],
    ),
    (
        "watch:!initial,out_port=2",
        &[
            "",
            "",
            "ADDED table=0 cookie=0x3 in_port=2 actions=output:2",
            "",
            "ADDED table=0 cookie=0x3 in_port=2 actions=output:3",
            "",
            "MODIFIED table=0 cookie=0 in_port=2 actions=output:2,output:3",
            "",
            "ADDED table=0 cookie=0 in_port=5 actions=output:2",
            "",
            "MODIFIED table=0 cookie=0x9 in_port=5 actions=output:2",
            "",
            "MODIFIED table=0 cookie=0 in_port=5 actions=output:2",
            "",
            "DELETED reason=delete table=0 cookie=0 in_port=2 actions=output:2,output:3",
            "",
            "DELETED reason=delete table=0 cookie=0 in_port=5 actions=output:2",
            "",
            "DELETED reason=delete table=0 cookie=0x1 in_port=1 actions=output:2",
        ],
    ),
    (
        "watch:table=1",
        &[
            "",
            "ADDED table=1 idle_timeout=100 cookie=0x2 tcp actions=output:3",
            "",
            "DELETED reason=delete table=1 idle_timeout=100 cookie=0x2 tcp actions=output:3",
        ],
    ),
    (
        "watch:!add,!actions",
        &[
            "",
            "ADDED table=0 cookie=0x1 in_port=1",
            "ADDED table=1 idle_timeout=100 cookie=0x2 tcp",
            "",
            "MODIFIED table=0 cookie=0 in_port=2",
            "",
            "MODIFIED table=0 cookie=0x9 in_port=5",
            "",
            "MODIFIED table=0 cookie=0 in_port=5",
            "",
            "DELETED reason=delete table=0 cookie=0 in_port=2",
            "",
            "DELETED reason=delete table=0 cookie=0 in_port=5",
            "",
            "DELETED reason=delete table=0 cookie=0x1 in_port=1",
            "DELETED reason=delete table=1 idle_timeout=100 cookie=0x2 tcp",
        ],
    ),
];

/// Starts a monitor; returns the lines that it prints.
fn monitor(ofctl: &Ofctl<'_>, watched: &str) -> (Ends, mpsc::Receiver<String>) {
    let mut command = ofctl.command("monitor", &[watched, "--unixctl=none"]);
    let mut child = Ends(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts"));
    // The reply to the request is printed there, what follows here.
    let replies: Box<dyn Read + Send> = Box::new(child.0.stdout.take().expect("a pipe"));
    let events: Box<dyn Read + Send> = Box::new(child.0.stderr.take().expect("a pipe"));
    let (sender, lines) = mpsc::channel();
    for printed in [replies, events] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let lines = BufReader::new(printed).lines().map_while(Result::ok);
            for line in lines.filter(|line| !line.contains("OFPT_ECHO")) {
                let _ = sender.send(line);
            }
        });
    }
    (child, lines)
}

#[test]
fn ovs_ofctl_prints_the_changes_that_it_watches_as_with_open_vswitch() {
    let options: &[&[&str]] = &[&["-O", "OpenFlow10"], &["-O", "OpenFlow13"]];
    let name = "ovs_ofctl_prints_the_changes_that_it_watches_as_with_open_vswitch";
    for (watched, wanted) in PRINTED {
        with_ofctl_of(name, options, Harness::new, |ofctl| {
            let of_10 = Ofctl { options: &["-O", "OpenFlow10"], ..*ofctl };
            BEFORE.iter().for_each(|flow| drop(of_10.run("add-flow", &[flow])));
            let (_child, lines) = monitor(ofctl, watched);
            let next = || lines.recv_timeout(Duration::from_secs(60)).expect("a line");
            for (place, wanted) in wanted.iter().enumerate() {
                if place > 0 && wanted.is_empty() && wanted_before(place, watched) {
                    change(&of_10);
                }
                let line = next();
                match line.strip_prefix(" event=") {
                    Some(event) => assert_eq!(event, *wanted, "{watched}"),
                    None => assert!(
                        wanted.is_empty() && line.contains("ST_FLOW_MONITOR reply"),
                        "{watched}: {line}, not {wanted}"
                    ),
                }
            }
        });
    }
}

/// Returns whether this is the second message of a monitor: the first shows what was there.
fn wanted_before(place: usize, watched: &str) -> bool {
    let (_, wanted) = PRINTED.iter().find(|(one, _)| *one == watched).expect("it is there");
    wanted[1..place].iter().all(|line| !line.is_empty())
}

fn change(ofctl: &Ofctl<'_>) {
    for change in CHANGES {
        ofctl.run(change[0], &change[1..]);
    }
}

fn request(id: u32, flags: u16) -> Message {
    let one = MonitorRequest { id, command: 0, flags, filter: FlowFilter::all() };
    Message::MultipartRequest { flags: 0, request: Request::FlowMonitor(vec![one]) }
}

fn flow_mod(request: FlowMod) -> Message {
    Message::FlowMod { buffer_id: NO_BUFFER, request }
}

/// Returns the updates of the next message.
fn updates(peer: &mut Peer) -> Vec<FlowUpdate> {
    match peer.hear() {
        Message::MultipartReply { reply: Reply::FlowMonitor(updates), .. } => updates,
        other => panic!("{other:?}"),
    }
}

#[test]
fn updates_come_before_the_reply_to_a_barrier_and_own_requests_are_told_once() {
    // The errors of a monitor that is there already, and of one that is not.
    let errors = [((0xb0c2, 0), (0xb0c2, 0)), ((0xffff, 6), (0xffff, 8)), ((16, 1), (16, 3))];
    for (version, (exists, unknown)) in [Version::V10, Version::V13, Version::V14].into_iter().zip(errors) {
        let harness = harness();
        let mut peer = harness.stranger();
        peer.greet_in(version);
        peer.say(&request(1, flags::ADD | flags::REMOVED));
        assert_eq!(updates(&mut peer), []);
        for port in 1..=300 {
            peer.say(&flow_mod(FlowMod { version, ..wire(port, 2) }));
        }
        peer.say(&Message::BarrierRequest);
        for _ in 1..=300 {
            assert!(matches!(updates(&mut peer)[..], [FlowUpdate::Abbreviated(_)]));
        }
        assert_eq!(peer.hear(), Message::BarrierReply);
        // A deletion takes several steps, and is told once.
        peer.say(&flow_mod(FlowMod { version, ..FlowMod::delete_all() }));
        peer.say(&Message::BarrierRequest);
        assert!(matches!(updates(&mut peer)[..], [FlowUpdate::Abbreviated(_)]));
        assert_eq!(peer.hear(), Message::BarrierReply);
        peer.say(&request(1, flags::ADD));
        assert_eq!(peer.refusal(), exists);
        let cancel = MonitorRequest { id: 1, command: 2, flags: 0, filter: FlowFilter::all() };
        let cancel = Message::MultipartRequest { flags: 0, request: Request::FlowMonitor(vec![cancel]) };
        peer.say(&cancel);
        if version == Version::V14 {
            assert_eq!(updates(&mut peer), []);
        }
        peer.say(&flow_mod(FlowMod { version, ..wire(1, 2) }));
        peer.barrier();
        peer.say(&cancel);
        assert_eq!(peer.refusal(), unknown);
    }
}

/// What the updates of a watcher say of the flows: the port of each, and its number of actions.
#[derive(Default)]
struct View {
    flows: BTreeMap<u128, usize>,
    paused: usize,
    resumed: usize,
}

impl View {
    fn take(&mut self, update: FlowUpdate) {
        match update {
            FlowUpdate::Paused => self.paused += 1,
            FlowUpdate::Resumed => self.resumed += 1,
            FlowUpdate::Full(update) => {
                let port = update.matching.field(fastpath_switch::Field::InPort).unwrap().value;
                match update.event {
                    2 => drop(self.flows.remove(&port)),
                    _ => drop(self.flows.insert(port, update.instructions.apply.len())),
                }
            }
            FlowUpdate::Abbreviated(_) => panic!("another has changed it"),
        }
    }
}

#[test]
fn a_controller_that_does_not_read_is_told_that_updates_pause_and_then_of_what_has_changed() {
    for version in [Version::V13, Version::V14] {
        let harness = harness();
        let (mut watcher, mut other) = (harness.stranger(), harness.controller());
        watcher.greet_in(version);
        let all = flags::INITIAL | flags::ADD | flags::REMOVED | flags::MODIFY | flags::INSTRUCTIONS;
        watcher.say(&request(1, all));
        assert_eq!(updates(&mut watcher), []);
        watcher.barrier();
        let with = |count: usize| Instructions::apply(vec![Action::output(2); count]);
        (1..=20).for_each(|port| other.say(&flow_mod(FlowMod { instructions: with(1), ..wire(port, 2) })));
        // More than sockets hold: 16 bytes an action.
        for round in 0..600 {
            for port in 1..=20 {
                let instructions = with(100 + round % 7);
                let request = FlowMod { command: FlowCommand::ModifyStrict, instructions, ..wire(port, 2) };
                other.say(&flow_mod(request));
            }
            other.barrier();
        }
        let delete = |port| FlowMod { command: FlowCommand::DeleteStrict, ..wire(port, 2) };
        other.say(&flow_mod(delete(3)));
        other.say(&flow_mod(wire(21, 2)));
        other.say(&flow_mod(wire(22, 2)));
        other.say(&flow_mod(delete(22)));
        other.barrier();
        let mut view = View::default();
        while view.resumed == 0 {
            updates(&mut watcher).into_iter().for_each(|update| view.take(update));
        }
        assert_eq!((view.paused, view.resumed), (1, 1));
        let last = 100 + 599 % 7;
        let mut wanted: BTreeMap<u128, usize> = (1..=20).map(|port| (port, last)).collect();
        wanted.remove(&3);
        wanted.insert(21, 1);
        assert_eq!(view.flows, wanted);
        other.say(&flow_mod(wire(23, 2)));
        updates(&mut watcher).into_iter().for_each(|update| view.take(update));
        assert!(view.flows.contains_key(&23));
        assert!(harness.stop().balances());
    }
}
