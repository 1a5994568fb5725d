//! What observation costs a worker: frames per second and lateness with a reader of `GET /events`
//! (an open dashboard), with a capture of another link, and with neither, in turns.
//!
//! `cargo bench -p fastpath --bench observed`
#![cfg(target_os = "linux")]

use fastpath::capture::{CaptureOptions, capture_to};
use fastpath::engine::port::{BURST, Memory, MemoryEnd, Port};
use fastpath::engine::{EdgePorts, Idle, Notice, Options, start};
use fastpath::net::EdgeId;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SPEC: &str = "[host.a]\n[host.b]\n[host.c]\n[host.d]\n\
    [[link]]\nbetween = ['a', 'b']\nrate = '100Gbit'\ndelay = '10us'\nqueue = '1000p'\n[[link]]\nbetween = ['c', 'd']\n";
const RUN: Duration = Duration::from_secs(2);
const ROUNDS: usize = 7;
const OBSERVERS: [&str; 3] = ["none", "dashboard", "capture of another link"];

fn main() {
    let mut found = [const { Vec::new() }; OBSERVERS.len()];
    for _ in 0..ROUNDS {
        for (observer, found) in found.iter_mut().enumerate() {
            found.push(run(observer));
        }
    }
    println!("{:<26} {:>14} {:>10}   medians of {ROUNDS} runs in turns", "observer", "frames/s", "p99, us");
    for (name, mut runs) in OBSERVERS.into_iter().zip(found) {
        let mut middle = |of: fn(&(f64, f64)) -> f64| {
            runs.sort_by(|a, b| of(a).total_cmp(&of(b)));
            of(&runs[ROUNDS / 2])
        };
        let (rate, late) = (middle(|run| run.0), middle(|run| run.1));
        println!("{name:<26} {rate:>14.0} {late:>10.1}");
    }
}

/// Returns the frames per second of the first link, and the 99th percentile of their lateness.
fn run(observer: usize) -> (f64, f64) {
    let socket = std::env::temp_dir().join(format!("fastpath-observed-{}.sock", std::process::id()));
    let topology = fastpath::spec::parse(SPEC).expect("a valid spec").0;
    let (mut ports, mut ends): (EdgePorts, Vec<MemoryEnd>) = (Vec::new(), Vec::new());
    for edge in 0..4 {
        let (port, end) = Memory::new("memory", 4 << 20);
        ports.push((EdgeId(edge), Box::new(port) as Box<dyn Port>));
        ends.push(end);
    }
    let options = Options {
        idle: Some(Idle::Busy),
        notice: Notice::none(),
        control: Some(socket.clone()),
        ..Options::new(fastpath::net::Options::default())
    };
    let running = start(topology, ports, options).expect("memory ports start");
    let stop = AtomicBool::new(false);
    let rate = std::thread::scope(|scope| {
        match observer {
            1 => drop(scope.spawn(|| follow(&socket, &stop))),
            2 => drop(scope.spawn(|| {
                let links = vec!["c-d".to_owned()];
                let options = CaptureOptions { links, ..CaptureOptions::default() };
                capture_to(&socket, &options, &mut io::sink(), &stop)
            })),
            _ => {}
        }
        let (frame, begin, mut received) = ([0x5a; 64], Instant::now(), 0);
        while begin.elapsed() < RUN {
            ends[0].send((0..BURST).map(|_| frame.as_slice()));
            received += ends[1].recv(2 * BURST, |_| ());
        }
        let rate = received as f64 / begin.elapsed().as_secs_f64();
        stop.store(true, Ordering::Release);
        rate
    });
    let report = running.stop().expect("the worker lives");
    assert!(report.accounting.balances());
    let lateness = report.links[0].directions[0].lateness.expect("it leads to a host");
    (rate, lateness.p99_us)
}

/// Reads events as a browser does.
fn follow(socket: &Path, stop: &AtomicBool) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    let mut buffer = [0; 1 << 16];
    while !stop.load(Ordering::Acquire) {
        // A timeout only looks at `stop`.
        let _ = stream.read(&mut buffer);
    }
    Ok(())
}
