//! What a running agent is told: ports that come and go, other controllers, another mode.

use super::common::{Harness, Peer, until};
use super::{flow, frame, wire};
use fastpath_engine::port::Memory;
use fastpath_openflow::agent::{Dial, FailMode, Listen, PortInfo, Remotes, Security, Target, Versions};
use fastpath_openflow::message::{Message, Reply, Request, Role};
use fastpath_switch::FlowFilter;
use fastpath_wire::MacAddr;
use std::net::{Ipv4Addr, TcpListener};

fn remotes(fail_mode: FailMode) -> Remotes {
    let versions = Versions::default();
    Remotes { datapath_id: 42, versions, dial: Vec::new(), listen: Vec::new(), tls: None, fail_mode }
}

/// A place to dial, and the order to do so.
fn controller() -> (TcpListener, Dial) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = Target { security: Security::Plain, host: "127.0.0.1".to_owned(), port };
    (listener, Dial::new(target))
}

fn flows(controller: &mut Peer) -> u32 {
    let request = Request::Aggregate(FlowFilter::all());
    controller.say(&Message::MultipartRequest { flags: 0, request });
    match controller.hear() {
        Message::MultipartReply { reply: Reply::Aggregate { flows, .. }, .. } => flows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn controllers_learn_of_ports_that_come_and_go() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    controller.barrier();
    let (port, end) = Memory::new("new", 1 << 16);
    harness.control().attach(9, Box::new(port));
    let info = PortInfo { name: "new".to_owned(), hw_addr: MacAddr::from_index(9) };
    harness.agent().add_port(9, info);
    let Message::PortStatus(added) = controller.hear() else { panic!("no port-status") };
    assert_eq!((added.reason, added.port.number, &*added.port.name), (0, 9, "new"));
    controller.say(&flow(wire(1, 9)));
    controller.barrier();
    harness.send(1, &frame(1));
    until(|| (end.recv(1, |bytes| assert_eq!(bytes, frame(1))) == 1).then_some(()));
    harness.agent().remove_port(9);
    assert!(harness.control().detach(9).is_some());
    let Message::PortStatus(removed) = controller.hear() else { panic!("no port-status") };
    assert_eq!(
        (removed.reason, &*removed.port.name, removed.port.hw_addr),
        (1, "new", MacAddr::from_index(9))
    );
    harness.send(1, &frame(2));
    controller.barrier();
    let accounting = until(|| {
        let accounting = harness.control().accounting();
        (accounting.received == 2).then_some(accounting)
    });
    assert!(accounting.balances() && accounting.dropped["egress"] == 1, "{accounting:?}");
}

#[test]
fn controllers_that_stay_keep_their_connections_and_flows_go_with_the_first_and_the_last() {
    let harness = Harness::new();
    let mut answered = harness.controller();
    answered.say(&flow(wire(1, 2)));
    answered.barrier();
    let ((first, dial_first), (second, dial_second)) = (controller(), controller());
    let both = vec![dial_first.clone(), dial_second.clone()];
    let listen = vec![Listen { security: Security::Plain, at: (Ipv4Addr::LOCALHOST, 0).into() }];
    let follow = |dial: Vec<Dial>| {
        let listen = listen.clone();
        harness.agent().follow(Remotes { dial, listen, ..remotes(FailMode::Secure) });
    };
    follow(both);
    let (mut one, mut two) = (Peer::answer(&first), Peer::answer(&second));
    one.greet();
    two.greet();
    assert_eq!(flows(&mut one), 0, "a switch gets its first controllers without flows");
    one.say(&flow(wire(1, 3)));
    one.barrier();
    let connected = until(|| {
        let state = harness.agent().state();
        state.dialled.iter().all(|one| one.role.is_some()).then_some(state)
    });
    assert_eq!(connected.dialled[1].target, dial_second.target);
    assert_eq!(connected.dialled[0].role, Some(Role::Equal));
    // The other order, and then only one of them.
    follow(vec![dial_second.clone(), dial_first]);
    one.barrier();
    two.barrier();
    follow(vec![dial_second]);
    assert!(one.is_closed());
    assert_eq!(flows(&mut two), 1, "it keeps its connection, and the switch its flows");
    follow(Vec::new());
    assert!(two.is_closed());
    assert_eq!(flows(&mut answered), 0);
}

#[test]
fn the_mode_changes_while_the_switch_runs() {
    let harness = Harness::new();
    let mut controller = harness.controller();
    assert_eq!(flows(&mut controller), 0);
    let listen = vec![Listen { security: Security::Plain, at: (Ipv4Addr::LOCALHOST, 0).into() }];
    harness.agent().follow(Remotes { listen: listen.clone(), ..remotes(FailMode::Standalone) });
    until(|| (flows(&mut controller) == 1).then_some(()));
    harness.agent().follow(Remotes { listen, ..remotes(FailMode::Secure) });
    until(|| (flows(&mut controller) == 0).then_some(()));
}

#[test]
fn a_switch_listens_where_it_is_told_and_says_where_it_cannot() {
    let harness = Harness::new();
    let (taken, dial) = controller();
    let at = |port: u16| Listen { security: Security::Plain, at: (Ipv4Addr::LOCALHOST, port).into() };
    let free = controller().1.target.port;
    let listen = vec![at(free), at(dial.target.port)];
    harness.agent().follow(Remotes { listen, ..remotes(FailMode::Secure) });
    let deaf = until(|| Some(harness.agent().state().deaf).filter(|deaf| !deaf.is_empty()));
    assert_eq!(deaf[0].0, at(dial.target.port));
    let mut peer = Peer::connect((Ipv4Addr::LOCALHOST, free).into());
    peer.greet();
    peer.barrier();
    // Another datapath id: the controller has to connect again to learn it.
    harness.agent().follow(Remotes { datapath_id: 7, listen: vec![at(free)], ..remotes(FailMode::Secure) });
    assert!(peer.is_closed());
    let mut peer = Peer::connect((Ipv4Addr::LOCALHOST, free).into());
    peer.greet();
    peer.say(&Message::FeaturesRequest);
    let Message::FeaturesReply(features) = peer.hear() else { panic!("no features") };
    assert_eq!(features.datapath_id, 7);
    drop(taken);
}

#[test]
fn a_controller_with_tls_is_not_dialled_without_certificates() {
    let harness = Harness::new();
    let (listener, dial) = controller();
    let target = Target { security: Security::Tls, ..dial.target };
    harness.agent().follow(Remotes { dial: vec![Dial::new(target)], ..remotes(FailMode::Secure) });
    let failure = until(|| harness.agent().state().dialled.first()?.failure.clone());
    assert!(failure.contains("certificate"), "{failure}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}
