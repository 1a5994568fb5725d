//! Several workers of a switch do what the interpreter does: the frames of a flow leave each port
//! in the same order, and everything is counted once, while other rules come and go.
#![cfg(target_os = "linux")]

use fastpath::switching::{FrameSplit, ServerOptions, SwitchServer, executor_for};
use fastpath_engine::Notice;
use fastpath_engine::port::{Memory, MemoryEnd, Port};
use fastpath_engine::switching::{
    Control, Datapath, PacketInLimit, PortQueueSpec, QueueRates, SwitchPort, SwitchRunning, serve_workers,
};
use fastpath_ofctl as ofctl;
use fastpath_spec::DataPathChoice;
use fastpath_switch::bridging::{Bridging, Mirror, MirrorCounters, MirrorOutput, MirrorSelection};
use fastpath_switch::flow::{Counters, FlowCommand};
use fastpath_switch::{
    Action, Field, FieldMatch, FlowMod, Instructions, Limits, Match, PacketOutcome, Switch, interp,
};
use fastpath_units::{Rate, Rng, Time};
use fastpath_wire::MacAddr;
use fastpath_wire::build::Ip;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ports by which frames arrive.
const ENTRANCES: u32 = 6;
/// The output of the mirror.
const MIRROR: u32 = 7;
/// Kinds of flows: each has a rule of its own.
const KINDS: u32 = 9;
/// Flows in each direction.
const FLOWS: u32 = 90;
/// Frames that arrive by each port in a round: all of them fit into a queue of a port.
const FRAMES: usize = 40;
const ROUNDS: u32 = 40;

const RULES: &str = "
group_id=1,type=select,bucket=weight:1,output:3,bucket=weight:2,output:4
group_id=2,type=all,bucket=output:5,bucket=output:6
group_id=3,type=ff,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3
table=1,priority=0,actions=output:2
table=2,priority=9,ip,ct_state=+trk+new,actions=ct(commit,zone=7),output:5
table=2,priority=9,ip,ct_state=+trk+est,actions=output:6
table=2,priority=0,actions=drop";

/// What flows of a kind do. Those of kind 8 change from round to round.
const ACTIONS: [&str; KINDS as usize] = [
    "output:2",
    "group:1",
    "group:2",
    "group:3",
    "learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),resubmit(,1)",
    "ct(zone=7,table=2)",
    "NORMAL",
    "dec_ttl,set_queue:1,output:4,mod_dl_src:02:00:00:00:00:99,FLOOD",
    "output:1",
];

/// A switch that runs, and the switch that the interpreter executes.
struct Pair {
    control: Control,
    running: SwitchRunning,
    ends: Vec<MemoryEnd>,
    model: Switch,
    offered: u64,
}

/// Frames in order, by the port that they left by, their flow and their direction.
type Left = BTreeMap<(u32, u32, u32), Vec<Vec<u8>>>;

#[test]
fn two_workers_and_three_send_the_frames_of_each_flow_as_the_interpreter_does() {
    for workers in [2, 3] {
        let mut pair = Pair::new(NonZeroUsize::new(workers).unwrap(), &rules());
        let queues = BTreeMap::from([(
            1,
            QueueRates { max: Rate::from_bps(10_000_000_000), ..QueueRates::default() },
        )]);
        pair.control.set_queues(4, Some(PortQueueSpec { rate: None, queues }));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let control = pair.control.clone();
            let stop = &stop;
            scope.spawn(move || change_others(&control, stop));
            let mut rng = Rng::new(workers as u64);
            for round in 0..ROUNDS {
                pair.change_kind_8(round);
                pair.round(&mut rng, round);
            }
            stop.store(true, Ordering::Relaxed);
        });
        pair.compare_counters();
        let packets = pair.running.stop();
        assert!(packets.balances() && packets.dropped.keys().all(|why| *why != "port"), "{packets:?}");
    }
}

#[test]
fn a_meter_that_several_workers_share_passes_its_burst_once() {
    let rules = "meter=1,pktps,burst,bands=type=drop,rate=1,burst_size=50\nactions=meter:1,output:5";
    let mut pair = Pair::new(NonZeroUsize::new(3).unwrap(), rules);
    for port in 1..=ENTRANCES - 2 {
        let frame = frame(port, 0, 0);
        pair.offered += pair.ends[port as usize - 1].send([&frame[..]; 100]) as u64;
    }
    pair.settle();
    let passed = pair.ends[4].recv(usize::MAX, |_| ());
    // One more for each second that this took.
    assert!((50..60).contains(&passed), "{passed} of {}", pair.offered);
}

/// The rules of the kinds of flows, in both directions.
fn rules() -> String {
    let flow = |(kind, actions): (usize, &&str)| {
        let port = 1000 + kind;
        format!(
            "priority=5,udp,tp_dst={port},actions={actions}\npriority=5,udp,tp_src={port},actions={actions}\n"
        )
    };
    let kinds: String = ACTIONS.iter().enumerate().map(flow).collect();
    format!("{RULES}\n{kinds}")
}

/// A frame of a flow; those of direction 1 are replies.
fn frame(flow: u32, direction: u32, number: u32) -> Vec<u8> {
    let end = |side: u32| {
        let ip = Ipv4Addr::from_bits(0x0a00_0000 | side << 16 | flow);
        (MacAddr::from_index(side << 16 | flow), IpAddr::V4(ip))
    };
    let ports = [20_000 + flow as u16, 1000 + (flow % KINDS) as u16];
    let [from, to] = if direction == 0 { [0, 1] } else { [1, 0] };
    let payload: Vec<u8> = [flow, direction, number].iter().flat_map(|word| word.to_be_bytes()).collect();
    Ip::between(end(from), end(to)).udp(ports[from as usize], ports[to as usize], &payload)
}

/// Returns flow and direction of a frame that has left.
fn flow_of(frame: &[u8]) -> (u32, u32) {
    let word = |from_end: usize| {
        let at = frame.len() - from_end;
        u32::from_be_bytes(frame[at..at + 4].try_into().unwrap())
    };
    (word(12), word(8))
}

/// Adds and deletes rules that match nothing, so that programs are replaced and rebuilt.
fn change_others(control: &Control, stop: &AtomicBool) {
    let mut rng = Rng::new(99);
    let request = |command, number: u64| {
        let other = FieldMatch::exact(Field::EthDst, (0x0600_0000_0000 + number).into());
        let add =
            FlowMod::add(0, 50, Match::new(&[other]).unwrap(), Instructions::apply([Action::output(1)]));
        FlowMod { command, ..add }
    };
    while !stop.load(Ordering::Relaxed) {
        let command = if rng.below(3) == 0 { FlowCommand::DeleteStrict } else { FlowCommand::Add };
        let request = request(command, rng.below(500));
        control.change(|switch, now| switch.flow_mod(now, &request)).unwrap();
    }
    for number in 0..500 {
        let request = request(FlowCommand::DeleteStrict, number);
        control.change(|switch, now| switch.flow_mod(now, &request)).unwrap();
    }
}

impl Pair {
    fn new(workers: NonZeroUsize, rules: &str) -> Pair {
        let mut switch = Switch::new(Limits { tables: 3, ..Limits::default() });
        let (mut ports, mut ends) = (Vec::new(), Vec::new());
        for number in 1..=MIRROR {
            let (port, end) = Memory::new(&format!("p{number}"), 1 << 20);
            ports.push(SwitchPort { number, channels: vec![Box::new(port) as Box<dyn Port>] });
            ends.push(end);
            switch.set_port(number, fastpath_switch::Port::up());
        }
        let lines = ofctl::parse(rules, &BTreeMap::new()).unwrap();
        ofctl::load(&mut switch, Time::ZERO, &lines).unwrap();
        let selection = MirrorSelection { from: [2].into(), to: [5].into(), ..MirrorSelection::default() };
        let (output, counters) = (MirrorOutput::Port(MIRROR), MirrorCounters::default());
        let mirrors = vec![Mirror { selection, output, snap_len: None, counters }];
        switch.set_bridging(Bridging { mirrors, ..Bridging::default() });
        let model = switch.clone();
        let code = executor_for(&mut switch, workers, &|why| panic!("{why}"));
        let control = Control::with_workers(switch, code, PacketInLimit::default(), workers, || ()).unwrap();
        let memory = NonZeroUsize::new(16 << 20).unwrap();
        let datapaths = Datapath::workers(&control, ports, memory, &Notice::none());
        assert_eq!(datapaths.len(), workers.get());
        let running = serve_workers(&control, datapaths).unwrap();
        Pair { control, running, ends, model, offered: 0 }
    }

    /// Lets the flows of kind 8 leave by another port than in the last round.
    fn change_kind_8(&mut self, round: u32) {
        for field in [Field::UdpDst, Field::UdpSrc] {
            let exact = [(Field::EthType, 0x0800), (Field::IpProto, 17), (field, 1008)]
                .map(|(field, value)| FieldMatch::exact(field, value));
            let what = Instructions::apply([Action::output(1 + round % ENTRANCES)]);
            let modify = FlowMod::add(0, 5, Match::new(&exact).unwrap(), what);
            let modify = FlowMod { command: FlowCommand::ModifyStrict, ..modify };
            self.control.change(|switch, now| switch.flow_mod(now, &modify)).unwrap();
            self.model.flow_mod(Time::ZERO, &modify).unwrap();
        }
    }

    /// Sends frames of one direction by all ports, and compares what leaves.
    fn round(&mut self, rng: &mut Rng, round: u32) {
        let direction = round % 2;
        let mut expected = Left::new();
        for port in 1..=ENTRANCES {
            // The flows of a port in this direction arrive by no other.
            let flows: Vec<u32> =
                (0..FLOWS).filter(|flow| 1 + (flow / KINDS + direction) % ENTRANCES == port).collect();
            let frames: Vec<Vec<u8>> = (0..FRAMES)
                .map(|number| {
                    let flow = flows[rng.below(flows.len() as u64) as usize];
                    frame(flow, direction, round << 16 | number as u32)
                })
                .collect();
            for frame in &frames {
                for outcome in interp(&mut self.model, Time::ZERO, port, frame) {
                    if let PacketOutcome::Output { port, frame, .. } = outcome {
                        let (flow, direction) = flow_of(&frame);
                        expected.entry((port, flow, direction)).or_default().push(frame);
                    }
                }
            }
            let sent = self.ends[port as usize - 1].send(frames.iter().map(Vec::as_slice));
            assert_eq!(sent, FRAMES);
            self.offered += sent as u64;
        }
        let count: usize = expected.values().map(Vec::len).sum();
        self.settle();
        let mut left = Left::new();
        for (port, end) in (1..).zip(&self.ends) {
            end.recv(usize::MAX, |frame| {
                let (flow, direction) = flow_of(frame);
                left.entry((port, flow, direction)).or_default().push(frame.to_vec());
            });
        }
        assert!(count > FRAMES * 3, "only {count} frames leave in round {round}");
        for (key, frames) in &expected {
            assert_eq!(left.get(key), Some(frames), "port, flow, direction {key:?} in round {round}");
        }
        assert_eq!(left.len(), expected.len(), "round {round}");
    }

    /// Waits until nothing is under way.
    fn settle(&self) {
        loop {
            let packets = self.control.accounting();
            if packets.received == self.offered && packets.held == 0 && packets.balances() {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn compare_counters(&self) {
        let of = |switch: &Switch| {
            let flows = switch.tables().iter().flat_map(|table| table.flows());
            let flows: Vec<_> = flows.map(|(rank, flow)| (rank.clone(), flow.counters)).collect();
            let hits: Vec<_> = switch.tables().iter().map(|table| table.hits()).collect();
            let ports: Vec<_> = switch.ports().map(|(number, port)| (number, port.counters)).collect();
            let groups: Vec<(u32, Counters, Vec<Counters>)> = switch
                .groups()
                .map(|(id, group)| (id, group.counters, group.bucket_counters.clone()))
                .collect();
            (flows, hits, ports, groups)
        };
        let (flows, hits, ports, groups) = self.control.read(|switch, _| of(switch));
        let expected = of(&self.model);
        assert_eq!(flows, expected.0);
        assert_eq!((hits, ports), (expected.1, expected.2));
        assert_eq!(groups, expected.3);
        assert!(groups.iter().all(|(_, counted, _)| counted.packets > 0), "{groups:?}");
    }
}

#[test]
fn a_switch_serves_with_workers_and_refuses_what_they_cannot_do() {
    let options = |workers: usize, ports: u32| ServerOptions {
        ports: (1..=ports).map(|number| (format!("p{number}"), "memory".parse().unwrap())).collect(),
        workers: NonZeroUsize::new(workers).unwrap(),
        notice: Notice::none(),
        ..ServerOptions::default()
    };
    let start = |options| SwitchServer::start(Switch::new(Limits::default()), options);
    let refused = |options| start(options).err().map(|error| error.to_string()).unwrap();
    let server = start(options(2, 3)).unwrap();
    assert_eq!(server.polled(), [vec![1, 3], vec![2]]);
    let summary = server.stop();
    assert!(summary.packets.balances() && summary.workers.len() == 2, "{summary:?}");

    let few = refused(options(3, 2));
    assert!(few.contains("--workers 3") && few.contains("there are 2"), "{few}");
    let kernel = refused(ServerOptions { data_path: DataPathChoice::Kernel, ..options(2, 2) });
    assert!(kernel.contains("write --data-path user"), "{kernel}");
    let many = refused(options(65, 100));
    assert!(many.contains("at most 64"), "{many}");
    let flows = refused(ServerOptions { split: FrameSplit::Flows, ..options(2, 2) });
    assert!(flows.contains("--split flow") && flows.contains("NAME=IFACE"), "{flows}");
    let one = refused(ServerOptions { split: FrameSplit::Flows, ..options(1, 2) });
    assert!(one.contains("nothing to split"), "{one}");
}
