//! The engine in real time between memory ports, and the control socket on it.
#![cfg(target_os = "linux")]

mod common;

use common::{finish, options, two_hosts};
use fastpath_engine::control::{self, Changes, Request, Response, Setting};
use fastpath_engine::port::{Burst, Memory, MemoryEnd, Port, PortCounters, PortError};
use fastpath_engine::{Idle, Late, Options, Report, Running, StartError, Workers, start};
use fastpath_link::{Limit, PipeSpec, QueueSpec};
use fastpath_net::{EdgeId, Frame, FramePool};
use fastpath_spec::{NodeKind, Topology};
use fastpath_units::{Duration, Rate, Time};
use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

fn run(pipe: PipeSpec, options: Options) -> (Running, [MemoryEnd; 2]) {
    let [(a, end_a), (b, end_b)] = ["a", "b"].map(|name| Memory::new(name, 1 << 20));
    let ports: Vec<(EdgeId, Box<dyn Port>)> = vec![(EdgeId(1), Box::new(b)), (EdgeId(0), Box::new(a))];
    (start(two_hosts(pipe, [None, None]), ports, options).unwrap(), [end_a, end_b])
}

/// Waits for `count` frames and returns them; gives up after ten seconds.
fn receive(end: &MemoryEnd, count: usize) -> Vec<Vec<u8>> {
    let (mut frames, start) = (Vec::new(), Instant::now());
    while frames.len() < count && start.elapsed().as_secs() < 10 {
        end.recv(count, |bytes| frames.push(bytes.to_vec()));
        std::thread::yield_now();
    }
    frames
}

fn delayed(ms: u64) -> PipeSpec {
    PipeSpec { delay: Duration::from_ms(ms), ..PipeSpec::default() }
}

fn socket_path(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fastpath-{test}-{}.sock", std::process::id()))
}

#[test]
fn frames_arrive_whole_in_order_and_not_early() {
    for idle in [Idle::Busy, Idle::Save, Idle::Sleep] {
        let (running, [a, b]) = run(delayed(20), options(idle));
        let frames: Vec<Vec<u8>> = (0..200u8).map(|i| vec![i; 60 + usize::from(i)]).collect();
        let sent_at = Instant::now();
        assert_eq!(a.send(frames.iter().map(Vec::as_slice)), 200);
        let received = receive(&b, 200);
        assert!(sent_at.elapsed().as_millis() >= 20, "{:?}", sent_at.elapsed());
        assert_eq!(received, frames);
        let report = finish(running);
        assert_eq!((report.accounting.total_in, report.accounting.delivered), (200, 200));
        assert_eq!(report.ports[0].counters.rx_frames, 200);
        assert_eq!(report.ports[1].counters.tx_frames, 200);
        assert_eq!(report.ports[1].lateness.frames, 200);
        assert_eq!(report.links[0].directions[0].frames_out, 200);
    }
}

/// Two hundred frames over a link without delay.
fn run_with_tolerance(tolerance: Duration, late: Late) -> Report {
    let options = Options { tolerance: Some(tolerance), late: Some(late), ..options(Idle::Busy) };
    let (running, [a, _b]) = run(PipeSpec::default(), options);
    assert_eq!(a.send((0..200).map(|_| [7u8; 60].as_slice())), 200);
    let done = |report: Report| report.accounting.total_in == 200 && report.accounting.held == 0;
    while !done(running.report().unwrap()) {}
    finish(running)
}

#[test]
fn a_broken_tolerance_names_the_direction_of_the_link() {
    // Nothing is released within a nanosecond, and everything within an hour.
    let report = run_with_tolerance(Duration::from_ns(1), Late::Deliver);
    let [forward, backward] = &report.links[0].directions;
    let lateness = forward.lateness.unwrap();
    assert_eq!((lateness.frames, lateness.late, backward.lateness.unwrap().frames), (200, 200, 0));
    assert_eq!(lateness.within[lateness.within.len() - 1], 200);
    assert!(report.is_broken() && report.lateness.late == 200);
    let broken = report.broken();
    assert_eq!(broken.len(), 1);
    assert!(broken[0].starts_with("link a-b, a → b: 200 frames more than 1ns late"), "{broken:?}");

    let report = run_with_tolerance(Duration::from_secs(3600), Late::Deliver);
    assert!(!report.is_broken() && report.broken().is_empty());
    assert_eq!(report.accounting.delivered, 200);
    assert!(report.workers[0].busy_s > 0.0 && report.workers[0].load <= 1.0, "{:?}", report.workers);
}

#[test]
fn late_frames_are_dropped_where_configured_and_the_accounting_balances() {
    let report = run_with_tolerance(Duration::from_ns(1), Late::Drop);
    let accounting = &report.accounting;
    assert_eq!((accounting.delivered, accounting.dropped["late"], report.lateness.late), (0, 200, 200));
    assert!(report.is_broken());
    let report = run_with_tolerance(Duration::from_secs(3600), Late::Drop);
    assert_eq!((report.accounting.delivered, report.accounting.dropped.len()), (200, 0));
}

#[test]
fn several_workers_are_one_engine() {
    let path = socket_path("workers");
    let mut topology = Topology::default();
    let mut ports: Vec<(EdgeId, Box<dyn Port>)> = Vec::new();
    let mut ends: Vec<MemoryEnd> = Vec::new();
    for link in 0..5 {
        let nodes = ["a", "b"].map(|end| topology.add_node(format!("{end}{link}"), NodeKind::host()));
        topology.connect(format!("l{link}"), nodes[0], nodes[1], [delayed(1), delayed(1)]);
        for end in 0..2 {
            let (port, far) = Memory::new("m", 1 << 20);
            ports.push((EdgeId(2 * link + end), Box::new(port)));
            ends.push(far);
        }
    }
    let workers = Some(Workers::Count(3.try_into().unwrap()));
    let options = Options { workers, control: Some(path.clone()), ..options(Idle::Save) };
    let running = start(topology, ports, options).unwrap();
    let set = |link: &str, delay: &str| {
        let set = [("delay".to_owned(), delay.into())].into_iter().collect();
        let setting = Setting { link: Some(link.into()), set, ..Setting::default() };
        let request = Request::Set(Changes { changes: vec![setting], at: None });
        assert!(matches!(control::call(&path, &request).unwrap(), Response::Done(_)));
    };
    set("l3", "2ms");
    for link in 0..5u8 {
        let edge = 2 * usize::from(link);
        assert_eq!(ends[edge].send([[link; 60].as_slice(); 10]), 10);
        assert_eq!(receive(&ends[edge + 1], 10), [[link; 60]; 10]);
    }
    let report = finish(running);
    assert_eq!((report.workers.len(), report.accounting.delivered), (3, 50));
    assert_eq!(report.workers.iter().map(|worker| worker.ports).sum::<usize>(), 10);
    for (number, link) in report.links.iter().enumerate() {
        let [forward, backward] = &link.directions;
        assert_eq!((link.name.as_str(), forward.frames_out), (format!("l{number}").as_str(), 10));
        assert_eq!((forward.lateness.unwrap().frames, backward.frames_in), (10, 0));
        assert_eq!(forward.delay, if number == 3 { "2ms" } else { "1ms" });
        assert_eq!(report.ports[2 * number].counters.rx_frames, 10);
    }
    assert!(!path.exists());
}

#[test]
fn frames_that_arrive_faster_than_they_are_released_wait_at_the_ports() {
    const PORTS: u32 = 16;
    const FRAMES: usize = 4000;
    let mut topology = Topology::default();
    let mut ports: Vec<(EdgeId, Box<dyn Port>)> = Vec::new();
    let mut ends: Vec<MemoryEnd> = Vec::new();
    for link in 0..PORTS / 2 {
        let nodes = ["a", "b"].map(|end| topology.add_node(format!("{end}{link}"), NodeKind::host()));
        topology.connect(format!("l{link}"), nodes[0], nodes[1], Default::default());
        for end in 0..2 {
            let (port, far) = Memory::new("m", 1 << 20);
            assert_eq!(far.send((0..FRAMES).map(|_| [7u8; 60].as_slice())), FRAMES);
            ports.push((EdgeId(2 * link + end), Box::new(port)));
            ends.push(far);
        }
    }
    let workers = Some(Workers::Count(1.try_into().unwrap()));
    let running = start(topology, ports, Options { workers, ..options(Idle::Busy) }).unwrap();
    for end in &ends {
        assert_eq!(receive(end, FRAMES).len(), FRAMES);
    }
    let report = finish(running);
    assert_eq!(report.accounting.delivered, u64::from(PORTS) * FRAMES as u64);
    // All of them together would take 64 bytes each, 4 MB.
    assert!(report.workers[0].pool_bytes <= 1 << 20, "{}", report.workers[0].pool_bytes);
}

#[test]
fn a_core_that_does_not_exist_is_an_error() {
    let ports: Vec<(EdgeId, Box<dyn Port>)> =
        (0..2).map(|edge| (EdgeId(edge), Box::new(Memory::new("m", 64).0) as Box<dyn Port>)).collect();
    let workers = Some(Workers::Cores(vec![100_000]));
    let topology = two_hosts(PipeSpec::default(), [None, None]);
    let error = start(topology, ports, Options { workers, ..options(Idle::Save) }).unwrap_err();
    assert!(error.to_string().starts_with("workers: core 100000 is unavailable (have: ["), "{error}");
}

#[test]
fn without_a_stated_tolerance_late_frames_are_counted_and_nothing_is_broken() {
    let (running, [a, b]) = run(delayed(1), options(Idle::Save));
    a.send([[1u8; 60].as_slice()]);
    assert_eq!(receive(&b, 1).len(), 1);
    let report = finish(running);
    assert_eq!((report.lateness.tolerance.as_str(), report.lateness.stated), ("1ms", false));
    assert!(!report.is_broken());
}

#[test]
fn a_frame_in_flight_at_the_end_counts_as_held() {
    let (running, [a, _b]) = run(delayed(60_000), options(Idle::Save));
    a.send([[1u8; 60].as_slice()]);
    let start = Instant::now();
    while running.report().unwrap().accounting.held == 0 && start.elapsed().as_secs() < 10 {}
    assert_eq!(finish(running).accounting.held, 1);
}

#[test]
fn frames_that_the_port_does_not_accept_are_dropped_and_counted() {
    let (a, end_a) = Memory::new("a", 1 << 20);
    let (b, end_b) = Memory::new("b", 640);
    let ports: Vec<(EdgeId, Box<dyn Port>)> = vec![(EdgeId(0), Box::new(a)), (EdgeId(1), Box::new(b))];
    let topology = two_hosts(PipeSpec::default(), [None, None]);
    let running = start(topology, ports, options(Idle::Busy)).unwrap();
    assert_eq!(end_a.send((0..3000).map(|_| [0u8; 60].as_slice())), 3000);
    let start = Instant::now();
    while running.report().unwrap().accounting.total_in < 3000 && start.elapsed().as_secs() < 10 {}
    let report = finish(running);
    // The ring holds ten, the backlog 1024.
    let accounting = report.accounting;
    assert_eq!(
        (accounting.delivered, accounting.held, accounting.dropped["port-full"]),
        (10, 1024, 3000 - 1034)
    );
    assert_eq!(end_b.recv(100, |_| {}), 10);
}

#[test]
fn a_link_is_changed_while_it_holds_a_frame() {
    let path = socket_path("set");
    let slow = PipeSpec { rate: Rate::from_bps(1000), ..PipeSpec::default() };
    let options = Options { control: Some(path.clone()), ..options(Idle::Save) };
    let (running, [a, b]) = run(slow, options);
    // 1500 bytes at 1 kbit/s take 12 s. At 1 Gbit/s the rest takes 12 µs.
    a.send([[1u8; 1500].as_slice()]);
    while running.report().unwrap().accounting.held == 0 {}
    let change = |from: Option<&str>, values: &[(&str, &str)]| {
        let set = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        let setting =
            Setting { link: Some("a-b".into()), from: from.map(str::to_owned), set, ..Setting::default() };
        let request = Request::Set(Changes { changes: vec![setting], at: None });
        assert!(matches!(control::call(&path, &request), Ok(Response::Done(_))));
    };
    change(None, &[("rate", "1Gbit")]);
    assert_eq!(receive(&b, 1), [[1u8; 1500]]);
    change(Some("b"), &[("queue", "7p"), ("loss", "2%")]);
    let Response::Report(report) = control::call(&path, &Request::Report).unwrap() else { panic!() };
    let [forward, backward] = &report.links[0].directions;
    assert_eq!((forward.rate.as_str(), forward.queue.as_str()), ("1Gbit", "unlimited"));
    assert_eq!((backward.queue.as_str(), backward.loss.as_str()), ("7p", "2%"));
    finish(running);
}

#[test]
fn stop_over_the_socket_ends_the_run_and_removes_the_socket() {
    let path = socket_path("stop");
    let (running, _ends) = run(delayed(1), Options { control: Some(path.clone()), ..options(Idle::Save) });
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(matches!(control::call(&path, &Request::Stop), Ok(Response::Done(_))));
    running.join().unwrap();
    assert!(!path.exists());
    let error = control::call(&path, &Request::Report).unwrap_err().to_string();
    assert!(error.contains("no engine listens there"), "{error}");
}

#[test]
fn a_second_engine_does_not_take_a_live_socket_and_replaces_a_dead_one() {
    let path = socket_path("second");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let with_socket = || Options { control: Some(path.clone()), ..options(Idle::Save) };
    let (running, _ends) = run(delayed(1), with_socket());
    let [(a, _), (b, _)] = ["a", "b"].map(|name| Memory::new(name, 1 << 16));
    let ports: Vec<(EdgeId, Box<dyn Port>)> = vec![(EdgeId(0), Box::new(a)), (EdgeId(1), Box::new(b))];
    let error = start(two_hosts(delayed(1), [None, None]), ports, with_socket()).unwrap_err();
    assert!(error.to_string().contains("another engine listens on this socket"), "{error}");
    assert!(matches!(control::call(&path, &Request::Report), Ok(Response::Report(_))));
    finish(running);
}

#[test]
fn every_edge_needs_one_port() {
    let (a, _end) = Memory::new("a", 1 << 16);
    let ports: Vec<(EdgeId, Box<dyn Port>)> = vec![(EdgeId(0), Box::new(a))];
    let error = start(two_hosts(delayed(1), [None, None]), ports, options(Idle::Save)).unwrap_err();
    assert!(matches!(error, StartError::Ports { count: 0, .. }));
    assert_eq!(error.to_string(), "host b: interface eth0 has 0 ports, it needs one");
}

#[test]
fn a_drop_tail_queue_works_in_real_time_too() {
    let queue = QueueSpec::DropTail(Limit::Packets(10));
    let pipe = PipeSpec { rate: Rate::from_bps(1_000), queue, ..PipeSpec::default() };
    let (running, [a, _b]) = run(pipe, options(Idle::Save));
    assert_eq!(a.send((0..50).map(|_| [0u8; 60].as_slice())), 50);
    while running.report().unwrap().accounting.total_in < 50 {}
    let report = finish(running);
    assert_eq!(report.links[0].directions[0].dropped["queue-full"], 40);
}

/// A port that panics, or whose interface is removed, when the first frame is sent.
struct Broken {
    is_defect: bool,
}

impl Port for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn rx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut Burst) -> Result<(), PortError> {
        Ok(())
    }

    fn tx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut VecDeque<Frame>) -> Result<(), PortError> {
        assert!(!self.is_defect, "a defect of the port");
        Err(PortError::Gone { name: "broken".to_owned() })
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

fn run_broken(is_defect: bool) -> (Running, MemoryEnd) {
    let (a, end) = Memory::new("a", 1 << 16);
    let ports: Vec<(EdgeId, Box<dyn Port>)> =
        vec![(EdgeId(0), Box::new(a)), (EdgeId(1), Box::new(Broken { is_defect }))];
    let running = start(two_hosts(PipeSpec::default(), [None, None]), ports, options(Idle::Save)).unwrap();
    end.send([[0u8; 60].as_slice(), [1u8; 60].as_slice()]);
    (running, end)
}

#[test]
fn the_engine_goes_on_without_a_port_whose_interface_is_gone() {
    let (running, end) = run_broken(false);
    while running.report().unwrap().accounting.total_in < 2 {}
    end.send([[2u8; 60].as_slice()]);
    while running.report().unwrap().accounting.total_in < 3 {}
    let report = finish(running);
    assert_eq!(report.ports[1].failure.as_deref(), Some("port broken: the interface is gone"));
    assert_eq!((report.accounting.delivered, report.accounting.dropped["port-down"]), (0, 3));
}

#[test]
fn a_panic_of_the_worker_is_reported_and_ends_the_run() {
    let (running, _end) = run_broken(true);
    let error = running.join().unwrap_err();
    assert!(error.to_string().contains("a defect of the port"), "{error}");
}

#[test]
fn the_memory_for_frames_is_at_most_the_default_of_the_pool() {
    assert!(fastpath_engine::memory_default() <= FramePool::LIMIT_DEFAULT);
}
