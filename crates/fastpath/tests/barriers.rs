//! After the reply to a barrier no packet leaves by a rule that was replaced before the barrier,
//! whatever arrives meanwhile.
#![cfg(target_os = "linux")]

use fastpath::switching::executor_for;
use fastpath_engine::Notice;
use fastpath_engine::port::{Memory, Port};
use fastpath_engine::switching::{Control, Datapath, PacketInLimit, SwitchPort, serve_workers};
use fastpath_openflow::agent::{Agent, Doorbell, FailMode, Listen, Options, Security, Versions};
use fastpath_openflow::message::{Hello, Message, NO_BUFFER, decode, frame_len};
use fastpath_switch::{Action, Field, FieldMatch, FlowMod, Instructions, Limits, Match, Switch};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The frames between arrival and departure.
const IN_FLIGHT: usize = 512;

#[test]
fn after_each_barrier_under_load_no_packet_leaves_by_the_rule_before() {
    barriers(count(), 1);
}

#[test]
fn after_each_barrier_no_packet_of_any_of_two_workers_leaves_by_the_rule_before() {
    barriers(count(), 2);
}

/// FASTPATH_BARRIERS=10000 takes half a minute.
fn count() -> u32 {
    let count = std::env::var("FASTPATH_BARRIERS").ok().and_then(|count| count.parse().ok());
    count.unwrap_or(300)
}

/// Frames arrive by a port of each worker, and leave by ports of both.
fn barriers(count: u32, workers: usize) {
    let entrances = &[1u32, 4][..workers];
    let workers = NonZeroUsize::new(workers).unwrap();
    let mut switch = Switch::new(Limits { tables: 1, ..Limits::default() });
    let (mut ports, mut ends) = (Vec::new(), Vec::new());
    for number in 1..=4 {
        let (port, end) = Memory::new(&format!("p{number}"), 1 << 20);
        ports.push(SwitchPort { number, channels: vec![Box::new(port) as Box<dyn Port>] });
        ends.push(end);
        switch.set_port(number, fastpath_switch::Port::up());
    }
    let machine_code = executor_for(&mut switch, workers, &|why| panic!("{why}"));
    let doorbell = Doorbell::new().unwrap();
    let limit = PacketInLimit::default();
    let control = Control::with_workers(switch, machine_code, limit, workers, doorbell.ringer()).unwrap();
    let memory = NonZeroUsize::new(16 << 20).unwrap();
    let datapaths = Datapath::workers(&control, ports, memory, &Notice::none());
    let polled: Vec<u32> = control.workers().iter().flat_map(|worker| worker.ports.clone()).collect();
    assert_eq!(polled.len(), 4, "each port is polled once");
    let _running = serve_workers(&control, datapaths).unwrap();
    let options = Options {
        versions: Versions::default(),
        datapath_id: 1,
        ports: BTreeMap::new(),
        listen: vec![Listen { security: Security::Plain, at: (Ipv4Addr::LOCALHOST, 0).into() }],
        snoop: Vec::new(),
        connect: Vec::new(),
        tls: None,
        fail_mode: FailMode::Secure,
        probe_every: Duration::ZERO,
        backoff_max: Duration::from_secs(1),
        links: None,
        notice: Notice::none(),
    };
    let agent = Agent::start(&control, doorbell, options).unwrap();
    let mut peer = Peer(TcpStream::connect(agent.listening()[0]).unwrap(), Vec::new());
    peer.say([Message::Hello(Hello::ours())]);

    let (stop, left) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    // Returns the frames of each entrance that have left by a port.
    let drain = |port: u32| {
        let mut frames = [0; 2];
        ends[port as usize - 1].recv(usize::MAX, |frame| frames[usize::from(frame[59])] += 1);
        for (left, frames) in left.iter().zip(frames) {
            left.fetch_add(frames, Ordering::Relaxed);
        }
        frames
    };
    // Frames arrive all the time, as many as ports have room for: a port may keep others longer.
    let load = &|entrance: usize| {
        let mut frame = [7; 60];
        frame[59] = entrance as u8;
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            if sent - left[entrance].load(Ordering::Relaxed) >= IN_FLIGHT {
                std::thread::yield_now();
            } else {
                sent += ends[entrances[entrance] as usize - 1].send([&frame[..]; 8]);
            }
        }
    };
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for round in 0..count {
            let (port, before) = if round.is_multiple_of(2) { (2, 3) } else { (3, 2) };
            // Changes of others beside it let bases be built.
            let other = FieldMatch::exact(Field::EthDst, (0x0200_0000_0000 + u64::from(round)).into());
            let other = FlowMod::add(0, 1, Match::new(&[other]).unwrap(), Instructions::apply([]));
            let change = FlowMod::add(0, 9, Match::any(), Instructions::apply([Action::output(port)]));
            let mods = [change, other].map(|request| Message::FlowMod { buffer_id: NO_BUFFER, request });
            peer.say(mods.into_iter().chain([Message::BarrierRequest]));
            while peer.hear() != Message::BarrierReply {
                std::thread::yield_now();
            }
            if round == 0 {
                (0..entrances.len()).for_each(|entrance| drop(scope.spawn(move || load(entrance))));
            }
            drain(before);
            // Frames go on to arrive by every entrance, and leave by the new rule.
            let mut arrived = [0; 2];
            while arrived[..entrances.len()].contains(&0) {
                std::thread::yield_now();
                let frames = drain(port);
                (0..2).for_each(|entrance| arrived[entrance] += frames[entrance]);
            }
            assert_eq!(drain(before), [0; 2], "frames left by port {before} after barrier {round}");
        }
    });
    assert!(left[0].load(Ordering::Relaxed) >= count as usize);
}

/// Ends the load, also after a failure.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
                return message;
            }
            let mut bytes = [0; 4096];
            let len = self.0.read(&mut bytes).unwrap();
            assert!(len > 0, "the agent has closed the connection");
            self.1.extend_from_slice(&bytes[..len]);
        }
    }
}
