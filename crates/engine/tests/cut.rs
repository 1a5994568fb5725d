//! One connected network on several workers in real time: frames pass from one to another.
#![cfg(target_os = "linux")]

mod common;

use common::{finish, options};
use fastpath_engine::port::{Burst, Memory, MemoryEnd, Port, PortCounters, PortError};
use fastpath_engine::{
    CaptureFilter, ChangeError, EdgePorts, Idle, Late, Notice, Options, Report, Running, Workers, start,
};
use fastpath_link::{Change, JitterCorrelation, JitterLaw, JitterSpec, LinkState, Reorder};
use fastpath_net::{Difference, EdgeId, Frame, FramePool};
use fastpath_spec::trace::{Format, Timeline};
use fastpath_spec::{Direction, Group, LinkId, Start, Topology, TraceEnd, TraceSource, Track};
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Instant;

/// Three hosts at each end of two switches that are a millisecond apart.
const DUMBBELL: &str = "[switch.s1]\n[switch.s2]\n[host.a1]\n[host.a2]\n[host.a3]\n[host.b1]\n[host.b2]\n[host.b3]\n\
    [[link]]\nname = 'middle'\nbetween = ['s1', 's2']\ndelay = '1ms'\n\
    [[link]]\nbetween = ['a1', 's1']\n[[link]]\nbetween = ['a2', 's1']\n[[link]]\nbetween = ['a3', 's1']\n\
    [[link]]\nbetween = ['b1', 's2']\n[[link]]\nbetween = ['b2', 's2']\n[[link]]\nbetween = ['b3', 's2']\n";
const MIDDLE: LinkId = LinkId(0);

fn topology(text: &str) -> Topology {
    fastpath_spec::parse(text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
}

fn run_topology(
    topology: Topology,
    workers: usize,
    options: Options,
    special: Option<Box<dyn Port>>,
) -> (Running, Vec<MemoryEnd>) {
    let count: usize = topology.hosts().map(|(_, host)| host.interfaces.len()).sum();
    let (mut ports, ends): (EdgePorts, Vec<MemoryEnd>) = (0..count as u32)
        .map(|edge| {
            let (port, end) = Memory::new("m", 1 << 20);
            ((EdgeId(edge), Box::new(port) as Box<dyn Port>), end)
        })
        .unzip();
    if let Some(special) = special {
        ports[1].1 = special;
    }
    let workers = Some(Workers::Count(workers.try_into().unwrap()));
    (start(topology, ports, Options { workers, ..options }).unwrap(), ends)
}

fn run(text: &str, workers: usize, options: Options) -> (Running, Vec<MemoryEnd>) {
    run_topology(topology(text), workers, options, None)
}

/// The address of a host: the first ones are `a`, the others `b`.
fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, 1 + host as u8]
}

/// A frame of an experimental EtherType.
fn frame(from: usize, to: [u8; 6], number: u16) -> Vec<u8> {
    let mut frame = [to, mac(from)].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Waits for `count` frames and returns their numbers; gives up after ten seconds.
fn receive(end: &MemoryEnd, count: usize) -> Vec<u16> {
    let (mut numbers, start) = (Vec::new(), Instant::now());
    while numbers.len() < count && start.elapsed().as_secs() < 10 {
        end.recv(count, |bytes| numbers.push(u16::from_be_bytes([bytes[14], bytes[15]])));
        std::thread::yield_now();
    }
    numbers
}

/// Every host says where it is, and all others hear it.
fn introduce(ends: &[MemoryEnd]) {
    for (host, end) in ends.iter().enumerate() {
        end.send([frame(host, [0xff; 6], 0).as_slice()]);
        for other in (0..ends.len()).filter(|other| *other != host) {
            assert_eq!(receive(&ends[other], 1), [0], "from {host} to {other}");
        }
    }
}

/// Host `i` of the first three sends to host `i + 3`, and back.
fn exchange(ends: &[MemoryEnd], count: u16) {
    for number in 1..=count {
        for (from, end) in ends.iter().enumerate().take(6) {
            end.send([frame(from, mac((from + 3) % 6), number).as_slice()]);
        }
    }
    for end in ends {
        assert_eq!(receive(end, usize::from(count)), (1..=count).collect::<Vec<_>>());
    }
}

fn path(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fastpath-cut-{test}-{}.pcapng", std::process::id()))
}

#[test]
fn frames_cross_between_workers_in_order_and_are_accounted_for() {
    for (idle, workers) in [(Idle::Busy, 2), (Idle::Save, 2), (Idle::Sleep, 2), (Idle::Save, 8)] {
        let (running, ends) = run(DUMBBELL, workers, options(idle));
        introduce(&ends);
        exchange(&ends, 200);
        let report = finish(running);
        assert_eq!((report.workers.len(), report.accounting.held), (2, 0), "{idle:?}");
        assert!(report.accounting.balances(), "{:?}", report.accounting);
        assert_eq!(report.ports.iter().map(|port| port.counters.tx_frames).sum::<u64>(), 30 + 1200);
        let middle = &report.links[0].directions;
        for direction in middle {
            let frames = (direction.frames_in, direction.frames_out, direction.held);
            assert_eq!((frames, direction.lateness.unwrap().frames), ((603, 603, 0), 603));
        }
        assert_eq!(report.workers.iter().map(|worker| worker.passed_on).collect::<Vec<_>>(), [603, 603]);
        assert_eq!(report.workers.iter().map(|worker| worker.ports).collect::<Vec<_>>(), [3, 3]);
    }
}

/// The comments of the packets of a pcapng file, in its order (draft-ietf-opsawg-pcapng, §4.3).
fn comments(file: &[u8]) -> Vec<String> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut comments, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let (kind, len) = (word(at), word(at + 4));
        let options = at + 28 + word(at + 20).next_multiple_of(4);
        if kind == 6 && word(options) & 0xffff == 1 {
            let comment = &file[options + 4..options + 4 + (word(options) >> 16)];
            comments.push(String::from_utf8(comment.to_vec()).unwrap());
        }
        at += len;
    }
    comments
}

/// The entries of a log, in its order: key and value.
fn log(path: &PathBuf) -> Vec<BTreeMap<String, String>> {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        (key.to_owned(), value.to_owned())
    };
    comments(&std::fs::read(path).unwrap())
        .iter()
        .map(|comment| comment.split(' ').map(pair).collect())
        .collect()
}

#[test]
fn one_log_has_the_frames_of_all_workers_in_order_with_one_number_each() {
    let path = path("log");
    let options = Options { packet_log: Some(path.clone()), ..options(Idle::Save) };
    let (running, ends) = run(DUMBBELL, 2, options);
    introduce(&ends);
    exchange(&ends, 50);
    let report = finish(running);
    let entries = log(&path);
    std::fs::remove_file(&path).unwrap();
    assert!(report.packet_log.unwrap().is_complete() && report.workers.len() == 2);
    let time = |text: &str| text.replace('.', "").parse::<u64>().unwrap();
    let ends: Vec<u64> = entries.iter().map(|entry| time(&entry["delivered"])).collect();
    assert!(ends.is_sorted(), "in the order of time");
    let mut hops: BTreeMap<&str, Vec<&BTreeMap<String, String>>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.contains_key("frame")) {
        hops.entry(&entry["frame"]).or_default().push(entry);
    }
    // Three links each. The middle one takes a millisecond, to the picosecond.
    assert_eq!(hops.len(), 6 + 300);
    for hops in hops.values() {
        assert_eq!(hops.len(), 3, "{hops:?}");
        let spent = |hop: &BTreeMap<String, String>| time(&hop["delivered"]) - time(&hop["queued"]);
        // A frame that came late, on a busy machine, reaches the switch then.
        assert!(spent(hops[1]) >= 1_000_000_000 && spent(hops[0]) == 0 && spent(hops[2]) == 0, "{hops:?}");
        assert_eq!(hops[1]["delivered"], hops[2]["queued"]);
    }
    let exact =
        hops.values().filter(|hops| time(&hops[1]["delivered"]) - time(&hops[1]["queued"]) == 1_000_000_000);
    assert!(exact.count() > 100, "most frames are in time");
}

#[test]
fn changes_reach_all_workers_at_one_instant_or_are_refused_with_the_number() {
    let (running, ends) = run(DUMBBELL, 2, options(Idle::Save));
    introduce(&ends);
    let delay = |us| Change { delay: Some(Duration::from_us(us)), ..Change::default() };
    let refused = running.change(None, vec![(MIDDLE, Direction::Both, delay(999))]);
    let Err(ChangeError::BelowLookahead(why)) = refused else { panic!("{refused:?}") };
    assert!(
        why.to_string()
            .starts_with("middle: the network is cut at this link, which is known to be at least 1ms")
    );
    running.change(None, vec![(MIDDLE, Direction::Both, delay(30_000))]).unwrap();
    ends[0].send([frame(0, mac(3), 99).as_slice()]);
    let mut middle = running.report().unwrap().links.remove(0).directions;
    // It is in flight, or has arrived if this took long.
    while middle[0].held == 0 && middle[0].frames_out == 3 {
        middle = running.report().unwrap().links.remove(0).directions;
    }
    assert_eq!((middle[0].frames_in, middle[0].frames_out + middle[0].held), (4, 4), "{middle:?}");
    assert_eq!(receive(&ends[3], 1), [99]);
    assert_eq!(running.pipes(MIDDLE).unwrap().map(|pipe| pipe.delay), [Duration::from_ms(30); 2]);
    let sent_at = Instant::now();
    exchange(&ends, 20);
    assert!(sent_at.elapsed().as_millis() >= 30);
    let down = Change { state: Some(LinkState::Down), ..Change::default() };
    running.change(None, vec![(MIDDLE, Direction::Both, down)]).unwrap();
    ends[0].send([frame(0, mac(3), 7).as_slice()]);
    ends[0].send([frame(0, mac(1), 8).as_slice()]);
    assert_eq!(receive(&ends[1], 1), [8], "beside the link that is down");
    let report = finish(running);
    assert_eq!(report.accounting.dropped.values().sum::<u64>(), 1, "{:?}", report.accounting);
    assert!(report.accounting.balances());
}

#[test]
fn jitter_of_a_change_reorders_over_a_cut_as_on_one_worker() {
    let law = JitterLaw::Exponential { mean: Duration::from_ms(5) };
    let jitter = JitterSpec { law, correlation: JitterCorrelation::None, order: Reorder::Allow };
    for workers in [1, 2] {
        let (running, ends) = run(DUMBBELL, workers, options(Idle::Save));
        introduce(&ends);
        let change = Change { jitter: Some(Some(Box::new(jitter.clone()))), ..Change::default() };
        running.change(None, vec![(MIDDLE, Direction::Forward, change)]).unwrap();
        for number in 1..=200 {
            ends[0].send([frame(0, mac(3), number).as_slice()]);
            let start = Instant::now();
            while start.elapsed().as_micros() < 200 {}
        }
        let numbers = receive(&ends[3], 200);
        let overtaken = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        // About half of the pairs overtake each other.
        assert!(
            numbers.len() == 200 && overtaken > 30,
            "{workers} workers: {overtaken} of {}",
            numbers.len()
        );
        assert_eq!(finish(running).workers.len(), workers);
    }
}

#[test]
fn reports_of_a_running_network_balance_though_workers_answer_one_after_the_other() {
    let text = DUMBBELL.replace("'1ms'", "'100us'");
    let (running, ends) = run(&text, 2, options(Idle::Save));
    introduce(&ends);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                ends[0].send([frame(0, mac(3), 1).as_slice(); 8]);
                ends[3].recv(64, |_| ());
            }
        });
        for _ in 0..200 {
            let report = running.report().unwrap();
            assert!(report.accounting.balances(), "{:?}", report.accounting);
            for direction in &report.links[0].directions {
                let known = direction.frames_out + direction.held + direction.dropped.values().sum::<u64>();
                assert!(direction.frames_in >= known, "{direction:?}");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    finish(running);
}

#[test]
fn a_group_starts_on_all_workers() {
    let mut topology = topology(DUMBBELL);
    topology.groups.push(Group { name: "g".to_owned(), start: Start::Command, links: vec![MIDDLE] });
    topology.tracks.push(Track {
        link: MIDDLE,
        pipe: 1,
        source: TraceSource::File { path: "trace".to_owned(), format: None },
        timeline: Timeline::read(Format::Csv, "time_s,delay_ms\n0,20\n60,20\n").unwrap(),
        end: TraceEnd::Hold,
        offset: Duration::ZERO,
        group: Some(0),
    });
    let (running, ends) = run_topology(topology, 2, options(Idle::Save), None);
    introduce(&ends);
    assert_eq!(running.start_traces("other"), None);
    running.start_traces("g").unwrap();
    assert_eq!(running.pipes(MIDDLE).unwrap().map(|pipe| pipe.delay), [1, 20].map(Duration::from_ms));
    let sent_at = Instant::now();
    exchange(&ends, 5);
    assert!(sent_at.elapsed().as_millis() >= 20);
    assert_eq!(finish(running).workers.len(), 2);
}

#[test]
fn a_capture_has_the_frames_of_a_cut_link_and_what_it_drops() {
    let text = DUMBBELL.replace("delay = '1ms'", "delay = '1ms'\nloss = '50%'");
    let (running, ends) = run(&text, 2, options(Idle::Save));
    let filter = CaptureFilter { links: vec![MIDDLE], drops: true, ..CaptureFilter::default() };
    let capture = running.capture(&filter).unwrap();
    for number in 0..100 {
        ends[0].send([frame(0, [0xff; 6], number).as_slice()]);
    }
    assert_eq!(receive(&ends[1], 100).len(), 100);
    let through = |report: &Report| {
        let middle = &report.links[0].directions[0];
        (middle.frames_in, middle.held, middle.frames_out)
    };
    let mut report = running.report().unwrap();
    while through(&report).0 < 100 || through(&report).1 > 0 {
        report = running.report().unwrap();
    }
    let file = capture.end();
    let dropped = comments(&file).iter().filter(|comment| comment.starts_with("dropped=loss")).count() as u64;
    let delivered = comments(&file).len() as u64 - dropped;
    assert_eq!((delivered, delivered + dropped), (through(&report).2, 100));
    assert!(delivered > 20 && dropped > 20);
    finish(running);
}

/// A port whose first frame takes a tenth of a second: meanwhile its worker runs nothing.
struct SlowPort(bool);

impl Port for SlowPort {
    fn name(&self) -> &str {
        "slow"
    }

    fn rx_burst(&mut self, _: Time, _: &mut FramePool, _: &mut Burst) -> Result<(), PortError> {
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        if !std::mem::replace(&mut self.0, true) {
            let start = Instant::now();
            while start.elapsed().as_millis() < 100 {}
        }
        frames.drain(..).for_each(|frame| pool.free(frame));
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

#[test]
fn a_worker_that_is_kept_from_its_work_passes_frames_on_late_and_it_is_said() {
    // A frame is on the wire for ten milliseconds.
    let text = DUMBBELL.replace("delay = '1ms'", "delay = '1ms'\nrate = '48kbit'");
    for late in [Late::Deliver, Late::Drop] {
        let tolerance = Some(Duration::from_ms(20));
        let options = Options { tolerance, late: Some(late), ..options(Idle::Save) };
        let (running, ends) = run_topology(topology(&text), 2, options, Some(Box::new(SlowPort(false))));
        // A copy keeps the worker of the first switch, while the other one leaves the wire.
        ends[0].send([frame(0, [0xff; 6], 0).as_slice()]);
        // The worker of the second switch goes on.
        let start = Instant::now();
        while start.elapsed().as_millis() < 150 {
            ends[3].send([frame(3, mac(4), 1).as_slice()]);
            assert_eq!(receive(&ends[4], 1).len(), 1);
        }
        let report = finish(running);
        let lateness = report.links[0].directions[0].lateness.unwrap();
        assert!(lateness.late == 1 && report.lateness.late >= 1, "{lateness:?}");
        let broken = report.broken();
        assert!(
            broken.iter().any(|why| why.starts_with("link middle, s1 → s2: 1 frames more than 20ms late")),
            "{broken:?}"
        );
        assert!(report.is_broken() && report.accounting.balances(), "{:?}", report.accounting);
        let dropped = report.accounting.dropped.get("late").copied().unwrap_or(0);
        assert_eq!(dropped > 0, late == Late::Drop, "{:?}", report.accounting);
        let middle = &report.links[0].directions[0];
        let dropped = middle.dropped.values().sum::<u64>();
        assert_eq!((middle.frames_in, middle.frames_out + dropped), (1, 1), "{middle:?}");
        assert_eq!(
            report.ports[4].counters.tx_frames > report.ports[3].counters.rx_frames,
            late == Late::Deliver
        );
    }
}

#[test]
fn the_topology_changes_while_frames_cross() {
    let (mut running, mut ends) = run(DUMBBELL, 2, options(Idle::Save));
    introduce(&ends);
    assert_eq!(
        ends[0].send(
            (1..=100).map(|number| frame(0, mac(3), number)).collect::<Vec<_>>().iter().map(Vec::as_slice)
        ),
        100
    );
    // A host comes before all others, so that every number changes.
    let first = "[host.a0]\n";
    let link = "[[link]]\nbetween = ['a0', 's1']\n";
    let changed = topology(&format!("{first}{}{link}", DUMBBELL));
    assert_eq!(Difference::of(&topology(DUMBBELL), &changed).links_removed, []);
    running.check_rearrange(&changed).unwrap();
    let (port, end) = Memory::new("m", 1 << 20);
    running.rearrange(changed.clone(), vec![(EdgeId(0), Box::new(port))]).unwrap();
    assert_eq!(receive(&ends[3], 100), (1..=100).collect::<Vec<_>>());
    ends.insert(0, end);
    ends[0].send([frame(9, [0xff; 6], 5).as_slice()]);
    (1..7).for_each(|host| assert_eq!(receive(&ends[host], 1), [5]));
    // Back again, and a link without a delay between nodes of two workers is refused.
    let why =
        running.rearrange(topology(&format!("{DUMBBELL}[[link]]\nbetween = ['a1', 's2']\n")), Vec::new());
    let why = why.unwrap_err().to_string();
    assert!(
        why.contains("run on different workers and cannot be joined by links with a delay below 100us"),
        "{why}"
    );
    running.rearrange(topology(DUMBBELL), Vec::new()).unwrap();
    exchange(&ends[1..], 20);
    let report = finish(running);
    assert!(report.accounting.balances() && report.accounting.held == 0, "{:?}", report.accounting);
    assert_eq!(report.links[0].directions[0].frames_in, report.links[0].directions[0].frames_out);
}

#[test]
fn what_cannot_be_cut_runs_on_one_worker_and_says_so() {
    let said = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let copy = std::sync::Arc::clone(&said);
    let notice = Notice::new(move |text| copy.lock().unwrap().push_str(text));
    let options = Options { notice, ..options(Idle::Save) };
    let (running, ends) = run(&DUMBBELL.replace("1ms", "1ns"), 2, options);
    exchange(&ends, 0);
    assert_eq!(finish(running).workers.len(), 1);
    assert!(
        said.lock().unwrap().contains("1 of the 2 requested workers run: links with a delay below 100us")
    );
}
