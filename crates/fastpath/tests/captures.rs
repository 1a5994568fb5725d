//! Captures of a running engine between memory ports.
#![cfg(target_os = "linux")]

use fastpath::capture::{CaptureOptions, Captured, capture_to, capture_to_file};
use fastpath::engine::port::{Memory, MemoryEnd, Port};
use fastpath::engine::{Idle, Notice, Options, Running, Workers, start};
use fastpath::net::EdgeId;
use fastpath::wire::pcap::CaptureReader;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Two links without a node in common, so that two workers run them.
const SPEC: &str = "[host.a]\n[host.b]\n[host.c]\n[host.d]\n\
    [[link]]\nbetween = ['a', 'b']\ndelay = '1ms'\n[[link]]\nbetween = ['c', 'd']\nloss = '100%'\n";

struct Network {
    running: Running,
    ends: Vec<MemoryEnd>,
    socket: PathBuf,
}

fn network(test: &str) -> Network {
    let topology = fastpath::spec::parse(SPEC).expect("a valid spec").0;
    let socket = std::env::temp_dir().join(format!("fastpath-capture-{test}-{}.sock", std::process::id()));
    let mut ends = Vec::new();
    let ports = (0..4).map(|edge| {
        let (port, end) = Memory::new("m", 1 << 20);
        ends.push(end);
        (EdgeId(edge), Box::new(port) as Box<dyn Port>)
    });
    let ports = ports.collect();
    let options = Options {
        idle: Some(Idle::Save),
        notice: Notice::none(),
        workers: Some(Workers::Count(2.try_into().unwrap())),
        control: Some(socket.clone()),
        ..Options::new(fastpath::net::Options::default())
    };
    Network { running: start(topology, ports, options).unwrap(), ends, socket }
}

/// Sends `count` frames from the first node of each link, and waits until they have passed.
fn send(network: &Network, count: u64) {
    let target = network.running.report().unwrap().accounting.total_in + 2 * count;
    let mut left = [count; 2];
    loop {
        for (link, left) in left.iter_mut().enumerate() {
            let burst = vec![[link as u8; 1000]; (*left).min(500) as usize];
            *left -= network.ends[2 * link].send(burst.iter().map(|frame| &frame[..])) as u64;
        }
        network.ends[1].recv(usize::MAX, |_| ());
        let accounting = network.running.report().unwrap().accounting;
        if accounting.total_in == target && accounting.held == 0 {
            return;
        }
    }
}

/// An output that takes nothing until it is opened.
struct Gate<'a> {
    is_open: &'a AtomicBool,
    bytes: Vec<u8>,
}

impl Write for Gate<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while !self.is_open.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Captures while `work` runs; `work` is called once the capture has started.
fn captured_while(
    socket: &Path,
    options: &CaptureOptions,
    is_open: &AtomicBool,
    work: impl FnOnce(),
) -> (Captured, Vec<u8>) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (ready, started) = std::sync::mpsc::channel();
        let (stop, options) = (&stop, options.clone());
        let reader = scope.spawn(move || {
            let mut out = Announced { gate: Gate { is_open, bytes: Vec::new() }, ready: Some(ready) };
            let captured = capture_to(socket, &options, &mut out, stop).unwrap();
            (captured, out.gate.bytes)
        });
        started.recv().expect("the capture starts");
        work();
        stop.store(true, Ordering::Release);
        is_open.store(true, Ordering::Release);
        reader.join().unwrap()
    })
}

/// An output that says when its first bytes come: the start of the file.
struct Announced<'a> {
    gate: Gate<'a>,
    ready: Option<std::sync::mpsc::Sender<()>>,
}

impl Write for Announced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.ready.take().map(|ready| ready.send(()));
        self.gate.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_has_the_frames_of_all_workers_in_order_and_the_dropped_ones() {
    let network = network("merged");
    send(&network, 10);
    let options = CaptureOptions { drops: true, ..CaptureOptions::default() };
    let work = || send(&network, 3000);
    let (captured, file) = captured_while(&network.socket, &options, &AtomicBool::new(true), work);
    assert_eq!(captured, Captured { frames: 6000, missed: 0, network_ended: false });
    let (mut reader, mut counts, mut last) = (CaptureReader::new(&file[..]).unwrap(), [0; 4], None);
    while let Some(packet) = reader.read_packet().unwrap() {
        counts[packet.interface as usize] += 1;
        assert_eq!(packet.data, [packet.interface as u8 / 2; 1000]);
        assert!(packet.ns >= last, "in the order of time");
        last = packet.ns;
    }
    assert_eq!(counts, [3000, 0, 3000, 0]);
    let one = CaptureOptions { links: vec!["a-b".to_owned()], frames_max: Some(7), ..options };
    let (captured, file) =
        captured_while(&network.socket, &one, &AtomicBool::new(true), || send(&network, 99));
    assert_eq!((captured.frames, captured.missed), (7, 0));
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    assert_eq!(std::iter::from_fn(|| reader.read_packet().unwrap().map(|_| ())).count(), 7);
    assert!(network.running.stop().unwrap().accounting.balances());
}

#[test]
fn a_slow_reader_stops_nothing_and_what_it_misses_is_counted() {
    let network = network("slow");
    let options = CaptureOptions { links: vec!["a-b".to_owned()], ..CaptureOptions::default() };
    let closed = AtomicBool::new(false);
    let count = 60_000;
    let (captured, _) = captured_while(&network.socket, &options, &closed, || send(&network, count));
    assert!(captured.missed > 0, "60 MB do not fit into the queue");
    assert_eq!(captured.frames + captured.missed, count, "{captured:?}");
    let report = network.running.stop().unwrap();
    assert_eq!(report.links[0].directions[0].frames_out, count);
}

#[test]
fn a_request_that_is_wrong_is_refused_and_a_full_disk_ends_the_capture_alone() {
    let network = network("refused");
    let never = AtomicBool::new(false);
    let refusal = |options: CaptureOptions| {
        let error = capture_to(&network.socket, &options, &mut Vec::new(), &never).unwrap_err();
        error.to_string()
    };
    let of = |link: &str| CaptureOptions { links: vec![link.to_owned()], ..CaptureOptions::default() };
    assert!(refusal(of("x & y")).contains("no link"), "{}", refusal(of("x & y")));
    let from = CaptureOptions { from: Some("c".to_owned()), ..of("a-b") };
    assert_eq!(refusal(from), "none of these links starts at 'c'");
    let full = capture_to_file(&network.socket, &of("a-b"), Path::new("/dev/full"), &never).unwrap_err();
    let text = full.to_string();
    assert!(text.starts_with("/dev/full: ") && text.ends_with("the network goes on"), "{text}");
    send(&network, 10);
    // The engine ends a capture whose reader has gone, and all eight places are free again.
    for _ in 0..20 {
        let done = CaptureOptions { frames_max: Some(0), ..of("c-d") };
        assert_eq!(capture_to(&network.socket, &done, &mut Vec::new(), &never).unwrap().frames, 0);
    }
    assert!(network.running.stop().unwrap().accounting.balances());
}

#[test]
fn the_end_of_the_network_is_the_end_of_a_capture() {
    let Network { running, ends, socket } = network("ended");
    let (stop, options) = (AtomicBool::new(false), CaptureOptions::default());
    std::thread::scope(|scope| {
        let (ready, started) = std::sync::mpsc::channel();
        let (stop, options, socket) = (&stop, &options, &socket);
        let reader = scope.spawn(move || {
            let is_open = AtomicBool::new(true);
            let mut out =
                Announced { gate: Gate { is_open: &is_open, bytes: Vec::new() }, ready: Some(ready) };
            capture_to(socket, options, &mut out, stop).unwrap()
        });
        started.recv().unwrap();
        ends[0].send([[7; 60].as_slice()]);
        while ends[1].recv(1, |_| ()) == 0 {}
        running.stop().unwrap();
        let captured = reader.join().unwrap();
        assert_eq!(captured, Captured { frames: 1, missed: 0, network_ended: true });
    });
}
