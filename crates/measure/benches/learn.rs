//! The rate at which packets add flows by `learn`, from memory port to memory port: execution,
//! tables, the publication of each flow to the workers, and the builder of lookup structures beside
//! it, as in a running switch.
//!
//! `cargo bench -p fastpath-measure --bench learn`
//!
//! - `new`: every frame comes from another station, and adds a flow.
//! - `limit`: as `new`, with a limit that counts the flows of the cookie.
//! - `known`: the frames come from 1,000 stations, whose flows are renewed.
//! - `plain`: the frames of `new` without `learn`.
#![cfg(target_os = "linux")]

use fastpath_engine::Notice;
use fastpath_engine::port::{BURST, Memory, MemoryEnd, Port};
use fastpath_engine::switching::{Control, Datapath, PacketInLimit, serve_node};
use fastpath_jit::Compiled;
use fastpath_switch::extension::{Bits, Learn, Source, Spec, Target};
use fastpath_switch::{Action, Extension, Field, FlowMod, Instructions, Limits, Match, Switch};
use fastpath_units::Time;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

const FRAMES: u64 = 400_000;
const RUNS: usize = 5;
const KNOWN: u64 = 1000;
/// By name: the limit of `learn` if there is one, and the number of stations.
const KINDS: [(&str, Option<u32>, u64); 4] = [
    ("new", Some(0), FRAMES),
    ("limit", Some(1_000_000), FRAMES),
    ("known", Some(0), KNOWN),
    ("plain", None, FRAMES),
];

fn main() {
    println!("{:>6} {:>12} {:>12} {:>12}   frames/s, of {RUNS} runs", "kind", "median", "least", "most");
    for (kind, limit, stations) in KINDS {
        let mut rates: Vec<f64> = (0..RUNS).map(|_| rate(limit, stations)).collect();
        rates.sort_by(f64::total_cmp);
        println!("{kind:>6} {:>12.0} {:>12.0} {:>12.0}", rates[RUNS / 2], rates[0], rates[RUNS - 1]);
    }
}

/// Returns the frames per second that pass a switch.
fn rate(limit: Option<u32>, stations: u64) -> f64 {
    let mut switch = Switch::new(Limits::default());
    let (mut ports, mut ends) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let (port, end) = Memory::new("p", 1 << 16);
        ports.push((number, Box::new(port) as Box<dyn Port>));
        ends.push(end);
        switch.set_port(number, fastpath_switch::Port::up());
    }
    let learn = limit.map(|limit| Action::Extension(Arc::new(Extension::Learn(learn(limit)))));
    let actions: Vec<Action> = learn.into_iter().chain([Action::output(2)]).collect();
    let rule = FlowMod::add(0, 1, Match::any(), Instructions::apply(actions));
    switch.flow_mod(Time::ZERO, &rule).expect("accepted");
    let executor = Box::new(Compiled::new(&mut switch).expect("machine code"));
    let control = Control::new(switch, executor, PacketInLimit::default(), || ()).expect("a switch");
    let memory = NonZeroUsize::new(16 << 20).expect("not zero");
    let mut datapath = Datapath::new(&control, ports, memory, Notice::none());
    let running = serve_node(&control).expect("a builder");
    let mut pass = |from: u64, to: u64| {
        let mut next = from;
        while next < to {
            let burst: Vec<_> =
                (next..to.min(next + BURST as u64)).map(|number| frame(number % stations)).collect();
            send(&ends, &burst);
            next += burst.len() as u64;
            let mut left = burst.len();
            while left > 0 {
                datapath.iterate();
                left -= ends[1].recv(left, |_| ());
            }
        }
    };
    if stations == KNOWN {
        pass(0, KNOWN);
    }
    let begin = Instant::now();
    pass(0, FRAMES);
    let elapsed = begin.elapsed();
    let learned = control.peek(|switch| switch.tables()[1].len()) as u64;
    assert_eq!(learned, if limit.is_none() { 0 } else { stations });
    drop(running);
    FRAMES as f64 / elapsed.as_secs_f64()
}

/// `learn(table=1,idle_timeout=300,limit=…,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])`.
fn learn(limit: u32) -> Learn {
    let in_port = Bits { field: Field::InPort, from: 0, width: 16 };
    let back = Spec {
        source: Source::Packet(Bits::all(Field::EthSrc)),
        target: Target::Match(Bits::all(Field::EthDst)),
    };
    Learn {
        table: 1,
        priority: 0x8000,
        cookie: 0,
        idle_timeout: 300,
        hard_timeout: 0,
        send_flow_rem: false,
        delete_learned: false,
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        limit,
        result: None,
        specs: vec![back, Spec { source: Source::Packet(in_port), target: Target::Output }],
    }
}

fn send(ends: &[MemoryEnd], burst: &[[u8; 60]]) {
    let sent = ends[0].send(burst.iter().map(<[u8; 60]>::as_slice));
    assert_eq!(sent, burst.len());
}

/// A frame from a station, to no other.
fn frame(station: u64) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&[2, 0xff, 0, 0, 0, 1]);
    frame[6..12].copy_from_slice(&(0x0200_0000_0000 | station).to_be_bytes()[2..]);
    frame
}
