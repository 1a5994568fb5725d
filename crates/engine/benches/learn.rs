//! The rate at which packets add flows by `learn`, from memory port to memory port: execution,
//! tables, the publication of each flow to the workers, and the builder of lookup structures beside
//! it, as in a running switch.
//!
//! `cargo bench -p fastpath-engine --bench learn`
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
use fastpath_ofctl::PortNames;
use fastpath_switch::{Limits, Switch};
use fastpath_units::Time;
use std::num::NonZeroUsize;
use std::time::Instant;

const FRAMES: u64 = 400_000;
const RUNS: usize = 5;
const KNOWN: u64 = 1000;
const KINDS: [(&str, &str, u64); 4] = [
    (
        "new",
        "learn(table=1,idle_timeout=300,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),",
        FRAMES,
    ),
    (
        "limit",
        "learn(table=1,idle_timeout=300,limit=1000000,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),",
        FRAMES,
    ),
    (
        "known",
        "learn(table=1,idle_timeout=300,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),",
        KNOWN,
    ),
    ("plain", "", FRAMES),
];

fn main() {
    println!("{:>6} {:>12} {:>12} {:>12}   frames/s, of {RUNS} runs", "kind", "median", "least", "most");
    for (kind, learn, stations) in KINDS {
        let mut rates: Vec<f64> = (0..RUNS).map(|_| rate(learn, stations)).collect();
        rates.sort_by(f64::total_cmp);
        println!("{kind:>6} {:>12.0} {:>12.0} {:>12.0}", rates[RUNS / 2], rates[0], rates[RUNS - 1]);
    }
}

/// Returns the frames per second that pass a switch.
fn rate(learn: &str, stations: u64) -> f64 {
    let mut switch = Switch::new(Limits::default());
    let (mut ports, mut ends) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let (port, end) = Memory::new("p", 1 << 16);
        ports.push((number, Box::new(port) as Box<dyn Port>));
        ends.push(end);
        switch.set_port(number, fastpath_switch::Port::up());
    }
    let rules = format!("table=0,actions={learn}output:2");
    let rules = fastpath_ofctl::parse(&rules, &PortNames::new()).expect("rules");
    fastpath_ofctl::load(&mut switch, Time::ZERO, &rules).expect("accepted");
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
    assert_eq!(learned, if learn.is_empty() { 0 } else { stations });
    drop(running);
    FRAMES as f64 / elapsed.as_secs_f64()
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
