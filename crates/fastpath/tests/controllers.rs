//! OpenFlow nodes of one network, each with an agent of its own, and a controller for them.
#![cfg(target_os = "linux")]

use fastpath_engine::port::{Memory, MemoryEnd, Port};
use fastpath_engine::{EdgePorts, Notice, start};
use fastpath_net::EdgeId;
use fastpath_openflow::message::{
    Features, Hello, Message, NO_BUFFER, PacketIn, PacketOut, decode, frame_len,
};
use fastpath_switch::{Action, Field, FieldMatch, FlowMod, Instructions, Match, port};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;

/// A line of two switches between two hosts.
fn spec(test: &str, s1: &str, s2: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("controllers-{test}.toml"));
    let text = format!(
        "[host.a]\n[host.b]\n[openflow.s1]\n{s1}\n[openflow.s2]\n{s2}\n[[link]]\nbetween = ['a', 's1']\n\
         delay = '1ms'\n[[link]]\nbetween = ['s1', 's2']\n[[link]]\nbetween = ['s2', 'b']\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn ports() -> (EdgePorts, Vec<MemoryEnd>) {
    let made = (0..2u32).map(|edge| {
        let (port, end) = Memory::new(&format!("edge{edge}"), 1 << 20);
        ((EdgeId(edge), Box::new(port) as Box<dyn Port>), end)
    });
    made.unzip()
}

fn frame(last: u8) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame[59] = last;
    frame
}

fn received(end: &MemoryEnd) -> u8 {
    loop {
        let mut last = None;
        end.recv(1, |frame| last = Some(frame[59]));
        match last {
            Some(last) => return last,
            None => std::thread::yield_now(),
        }
    }
}

#[test]
fn two_nodes_dial_one_controller_which_sets_their_rules_and_sends_frames() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let controller = format!("controller = 'tcp:{}'", listener.local_addr().unwrap());
    let path = spec("dialled", &controller, &format!("{controller}\ndpid = '0x2a'"));
    let loaded = fastpath::load(&path).unwrap();
    let options = loaded.engine_options(None, Notice::none()).unwrap();
    let (ports, ends) = ports();
    let running = start(loaded.spec.topology.clone(), ports, options).unwrap();
    let mut peers: BTreeMap<u64, Peer> = BTreeMap::new();
    for _ in 0..2 {
        let mut peer = Peer(listener.accept().unwrap().0, Vec::new());
        peer.say([Message::Hello(Hello::ours()), Message::FeaturesRequest]);
        match peer.hear() {
            Message::FeaturesReply(Features { datapath_id, .. }) => drop(peers.insert(datapath_id, peer)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(peers.keys().copied().collect::<Vec<_>>(), [1, 42]);
    let rule = |in_port: u32, out: u32| {
        let matching = Match::new(&[FieldMatch::exact(Field::InPort, in_port.into())]).unwrap();
        let request = FlowMod::add(0, 9, matching, Instructions::apply([Action::output(out)]));
        Message::FlowMod { buffer_id: NO_BUFFER, request }
    };
    // Frames pass s1 once it has rules; s2 sends them to its controller.
    let [s1, s2] = [1, 42].map(|dpid| peers.remove(&dpid).unwrap());
    let [mut s1, mut s2] = [s1, s2];
    s1.say([rule(1, 2), rule(2, 1), Message::BarrierRequest]);
    assert_eq!(s1.hear(), Message::BarrierReply);
    s2.say([rule(1, port::CONTROLLER), Message::BarrierRequest]);
    assert_eq!(s2.hear(), Message::BarrierReply);
    ends[0].send([&frame(7)[..]]);
    let (data, in_port) = match s2.hear() {
        Message::PacketIn(PacketIn { data, matching, .. }) => (data, matching),
        other => panic!("{other:?}"),
    };
    assert_eq!(data, frame(7));
    assert_eq!(in_port, Match::new(&[FieldMatch::exact(Field::InPort, 1)]).unwrap());
    // The controller sends it on, and another one back.
    let out = |port, last| {
        let packet = PacketOut {
            buffer_id: NO_BUFFER,
            in_port: port::CONTROLLER,
            fields: Vec::new(),
            actions: vec![Action::output(port)],
            data: frame(last).to_vec(),
        };
        Message::PacketOut(packet)
    };
    s2.say([out(2, 8), out(1, 9), Message::BarrierRequest]);
    assert_eq!(s2.hear(), Message::BarrierReply);
    assert_eq!((received(&ends[1]), received(&ends[0])), (8, 9));
    // A rule that replaces the first is in force for the next frame.
    s2.say([rule(1, 2), Message::BarrierRequest]);
    assert_eq!(s2.hear(), Message::BarrierReply);
    ends[0].send([&frame(10)[..]]);
    assert_eq!(received(&ends[1]), 10);
    let report = running.stop().unwrap();
    assert!(report.accounting.balances(), "{:?}", report.accounting);
    assert_eq!(report.accounting.dropped.values().sum::<u64>(), 0);
}

#[test]
fn a_node_may_listen_and_learns_addresses_without_a_controller() {
    let path = spec("listening", "listen = 'ptcp:0'", "fail_mode = 'standalone'");
    let loaded = fastpath::load(&path).unwrap();
    let (sender, notices) = std::sync::mpsc::channel();
    let notice = Notice::new(move |text| drop(sender.send(text.to_owned())));
    let options = loaded.engine_options(None, notice).unwrap();
    let (ports, ends) = ports();
    let running = start(loaded.spec.topology.clone(), ports, options).unwrap();
    let at = notices
        .iter()
        .find_map(|text| Some(text.split_once("openflow s1: listening on ptcp:")?.1.to_owned()));
    let (port, address) = at.as_deref().and_then(|at| at.split_once(':')).unwrap();
    let mut peer = Peer(TcpStream::connect(format!("{address}:{port}")).unwrap(), Vec::new());
    let flood = FlowMod::add(0, 1, Match::any(), Instructions::apply([Action::output(port::FLOOD)]));
    let flood = Message::FlowMod { buffer_id: NO_BUFFER, request: flood };
    peer.say([Message::Hello(Hello::ours()), flood, Message::BarrierRequest]);
    assert_eq!(peer.hear(), Message::BarrierReply);
    for last in 1..4 {
        let (from, to) = if last == 2 { (1, 0) } else { (0, 1) };
        ends[from].send([&frame(last)[..]]);
        assert_eq!(received(&ends[to]), last);
    }
    assert!(running.stop().unwrap().accounting.balances());
}

#[test]
fn an_address_that_is_in_use_is_named_with_its_node() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let loaded = fastpath::load(spec("taken", "", &format!("listen = 'ptcp:{port}'"))).unwrap();
    let options = loaded.engine_options(None, Notice::none()).unwrap();
    let error = start(loaded.spec.topology.clone(), ports().0, options).unwrap_err().to_string();
    assert!(error.contains("openflow s2") && error.contains(&port.to_string()), "{error}");
}

struct Peer(TcpStream, Vec<u8>);

impl Peer {
    fn say(&mut self, messages: impl IntoIterator<Item = Message>) {
        let mut bytes = Vec::new();
        messages.into_iter().for_each(|message| message.encode(1, &mut bytes));
        self.0.write_all(&bytes).unwrap();
    }

    fn hear(&mut self) -> Message {
        loop {
            if let Ok(Some(len)) = frame_len(&self.1)
                && len <= self.1.len()
            {
                let message = decode(&self.1[..len]).unwrap().1;
                self.1.drain(..len);
                match message {
                    Message::Hello(_) | Message::EchoRequest(_) => continue,
                    message => return message,
                }
            }
            let mut bytes = [0; 4096];
            let len = self.0.read(&mut bytes).unwrap();
            assert!(len > 0, "the agent has closed the connection");
            self.1.extend_from_slice(&bytes[..len]);
        }
    }
}
