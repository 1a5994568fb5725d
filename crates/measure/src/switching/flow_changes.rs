//! Measures how fast a controller changes flows by OpenFlow 1.3, and what that costs in memory and
//! in forwarding. The switch is the one that `fastpath switch` runs, with memory ports: agent,
//! lookup structures made beside it, and a data path on a core of its own with frames at a fixed
//! rate. The controller sends without waiting, and ends each phase with a barrier.
//!
//! A **stop** is the time of one turn of the data path, at most a burst, without the time for which
//! the scheduler gave its core to another thread (`/proc/thread-self/schedstat`). What a hypervisor
//! takes is part of it.

use super::rules::{self, IN, OUT};
use super::{SwitchError, SwitchQuestion};
use crate::emulate::resident;
use crate::{Progress, pin};
use fastpath_engine::Notice;
use fastpath_engine::port::{Memory, MemoryEnd, Port};
use fastpath_engine::switching::{Control, Datapath, PacketInLimit, serve_node};
use fastpath_jit::Compiled;
use fastpath_openflow::agent::{Agent, Doorbell, FailMode, Listen, Options, Security, Versions};
use fastpath_openflow::message::{HEADER_LEN, Header, Hello, Message, NO_BUFFER, Request, VERSION};
use fastpath_switch::flow::FlowCommand;
use fastpath_switch::workload::{self, Filter};
use fastpath_switch::{Action, FlowFilter, FlowMod, Instructions, Match, Port as SwitchPort};
use fastpath_units::stats::{quantile, sorted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Frames offered per second.
const OFFERED: f64 = 1e6;
/// Frames of a turn at most.
const BURST: usize = 32;
/// Bytes of messages that are written together.
const WRITE: usize = 1 << 16;
/// Memory of the rings of the ports, bytes.
const RING: usize = 1 << 20;
/// Memory for frames in the data path.
const POOL: NonZeroUsize = NonZeroUsize::new(32 << 20).expect("not zero");
/// Memory is read once it has not changed for this long.
const QUIET: Duration = Duration::from_secs(1);
/// Or after this long.
const SETTLE: Duration = Duration::from_secs(20);
/// The ports to which a changed rule sends in turn, from [`OUT`]: a frame that leaves by the rule
/// before the last is told from one by the next.
const TURNS: u64 = 4;
/// Added to the priorities of routes, so that no flow of the tables is changed.
const ABOVE: u16 = 0x7000;
/// The steps that progress counts.
const PHASES: usize = 8;
/// Types of messages (OFPT_).
const ERROR: u8 = 1;
const MULTIPART_REPLY: u8 = 19;
const BARRIER_REPLY: u8 = 21;

/// A phase of changes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ChangePhase {
    /// From the first message until the reply to the last.
    pub seconds: f64,
    /// Flows per second.
    pub per_second: f64,
    /// The longest stop of forwarding, µs.
    pub stop_us: f64,
    /// The longest turn of the data path on the clock, µs: with what the scheduler gave to others.
    pub wall_us: f64,
}

/// Changes that are each confirmed by a barrier.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Barriers {
    /// Their number.
    pub count: u64,
    /// Median time from the change until the reply, µs.
    pub median_us: f64,
    /// Its 99th percentile, µs.
    pub p99_us: f64,
    /// Frames that were offered after a reply and left by an earlier rule.
    pub stale: u64,
}

/// What changes of flows cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowChanges {
    /// Flows that were added, changed and deleted: routes of IPv4.
    pub flows: usize,
    /// Adds.
    pub add: ChangePhase,
    /// Strict modifications of each.
    pub modify: ChangePhase,
    /// One request for the sums of all counters.
    pub aggregate: ChangePhase,
    /// Strict deletions of each.
    pub delete_strict: ChangePhase,
    /// One deletion of all, after they were added again.
    pub delete_all: ChangePhase,
    /// Barriers after changes of one rule.
    pub barriers: Barriers,
    /// Resident memory per flow while all are there, bytes.
    pub bytes_per_flow: f64,
    /// Resident memory per flow that is kept after the deletion, bytes.
    pub bytes_kept_per_flow: f64,
    /// The longest stop of forwarding of all phases, µs.
    pub longest_stop_us: f64,
    /// Frames that passed, per second.
    pub packets_per_second: f64,
    /// Frames that were offered and did not leave.
    pub lost: u64,
}

/// Measures changes of `flows` flows, then `barriers` changes of one rule.
///
/// # Errors
/// The rules cannot be read, the operating system refuses a socket or a thread, or code generation
/// does not support this machine.
pub fn flow_changes(
    question: &SwitchQuestion,
    flows: usize,
    barriers: u64,
    progress: Progress<'_>,
) -> Result<FlowChanges, SwitchError> {
    progress("making rules", 0, PHASES);
    let mut made = rules::make(question)?;
    let routes = workload::routes(flows, question.seed + 1);
    let exits = OUT..OUT + TURNS as u32;
    exits.clone().for_each(|number| made.switch.set_port(number, SwitchPort::up()));
    let largest = made.largest;
    let executor = Compiled::new(&mut made.switch)?;
    let doorbell = Doorbell::new()?;
    let control = Control::new(made.switch, Box::new(executor), PacketInLimit::default(), doorbell.ringer())?;
    let (mut ports, mut ends) = (Vec::new(), Vec::new());
    for number in std::iter::once(IN).chain(exits) {
        let (port, end) = Memory::new("memory", RING);
        ports.push((number, Box::new(port) as Box<dyn Port>));
        ends.push(end);
    }
    let datapath = Datapath::new(&control, ports, POOL, Notice::none());
    let _builder = serve_node(&control)?;
    let agent = Agent::start(&control, doorbell, options())?;
    let client = Client::connect(agent.listening()[0], largest)?;
    let watched = TrafficWatch { is_counting: AtomicBool::new(true), ..TrafficWatch::default() };
    let (found, traffic) = thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            pin(1);
            Traffic::new(datapath, ends, &made.frames).run(&watched)
        });
        let found = Phases { client, flows: &routes, watched: &watched, progress }.run(barriers);
        watched.is_over.store(true, Ordering::Relaxed);
        (found, traffic.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (found, passed) = (found?, traffic?);
    let barriers = Barriers { stale: passed.stale, ..found.barriers };
    Ok(FlowChanges { barriers, packets_per_second: passed.per_second, lost: passed.lost, ..found })
}

fn options() -> Options {
    Options {
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
    }
}

/// What the thread of the data path and that of the controller tell each other.
#[derive(Debug, Default)]
struct TrafficWatch {
    /// The number of the phase. Turns that began in the one before do not count.
    phase: AtomicU64,
    /// The longest stop since it was last taken, ns.
    stop: AtomicU64,
    /// The longest turn since it was last taken, ns.
    turn: AtomicU64,
    /// Changes of the one rule that were requested.
    requested: AtomicU64,
    /// Those of them that are confirmed.
    confirmed: AtomicU64,
    /// Whether every frame should pass.
    is_counting: AtomicBool,
    is_over: AtomicBool,
}

/// The frames that passed.
struct Passed {
    per_second: f64,
    lost: u64,
    stale: u64,
}

/// The data path, and what is beyond its ports.
struct Traffic<'a> {
    datapath: Datapath,
    entrance: MemoryEnd,
    exits: Vec<MemoryEnd>,
    frames: std::iter::Cycle<std::slice::Iter<'a, Vec<u8>>>,
    offered: u64,
    passed: u64,
    stale: u64,
}

impl<'a> Traffic<'a> {
    fn new(datapath: Datapath, mut ends: Vec<MemoryEnd>, frames: &'a [Vec<u8>]) -> Traffic<'a> {
        let exits = ends.split_off(1);
        let Some(entrance) = ends.pop() else { unreachable!("the first end is that of the entrance") };
        let frames = frames.iter().cycle();
        Traffic { datapath, entrance, exits, frames, offered: 0, passed: 0, stale: 0 }
    }

    /// Forwards until the phases are over. Frames that could not be offered in time are not offered
    /// later.
    fn run(mut self, watched: &TrafficWatch) -> io::Result<Passed> {
        let schedule = SchedulerAccount::of_this_thread()?;
        let start = Instant::now();
        let (mut due_from, mut waited, mut counted) = (start, schedule.waited()?, None);
        while !watched.is_over.load(Ordering::Relaxed) {
            let due = (due_from.elapsed().as_secs_f64() * OFFERED) as usize;
            let count = due.min(BURST);
            // What was due beyond a burst while the thread did not run is not offered.
            due_from = if due > BURST { Instant::now() } else { due_from + per_frames(count) };
            let confirmed = watched.confirmed.load(Ordering::Acquire);
            let frames = self.frames.by_ref().take(count).map(Vec::as_slice);
            self.offered += self.entrance.send(frames) as u64;
            let phase = watched.phase.load(Ordering::Acquire);
            let begin = Instant::now();
            self.datapath.iterate();
            let turn = begin.elapsed().as_nanos() as u64;
            let waits = schedule.waited()?;
            let stop = turn.saturating_sub(waits - std::mem::replace(&mut waited, waits));
            if phase == watched.phase.load(Ordering::Acquire) {
                watched.turn.fetch_max(turn, Ordering::Relaxed);
                watched.stop.fetch_max(stop, Ordering::Relaxed);
            }
            self.receive(confirmed, watched.requested.load(Ordering::Acquire));
            if !watched.is_counting.load(Ordering::Relaxed) && counted.is_none() {
                counted = Some(self.passed(start));
            }
        }
        Ok(counted.unwrap_or_else(|| self.passed(start)))
    }

    fn passed(&self, since: Instant) -> Passed {
        let per_second = self.passed as f64 / since.elapsed().as_secs_f64();
        Passed { per_second, lost: self.offered - self.passed, stale: self.stale }
    }

    /// Takes the frames that have left: by one of the changes from the last that was `confirmed`
    /// before they were offered to the last that was `requested` until now; before the first, by
    /// the tables.
    fn receive(&mut self, confirmed: u64, requested: u64) {
        for (exit, end) in (0..).zip(&mut self.exits) {
            let count = end.recv(usize::MAX, |_| ()) as u64;
            self.passed += count;
            let is_in_force = |change: u64| change == 0 || change % TURNS == exit;
            // With as many changes as ports, every port is that of one of them.
            let newest = requested.min(confirmed + TURNS);
            if count > 0 && !(confirmed..=newest).any(is_in_force) {
                self.stale += count;
            }
        }
    }
}

fn per_frames(count: usize) -> Duration {
    Duration::from_secs_f64(count as f64 / OFFERED)
}

/// The scheduler's account of a thread.
struct SchedulerAccount(File);

impl SchedulerAccount {
    fn of_this_thread() -> io::Result<SchedulerAccount> {
        File::open("/proc/thread-self/schedstat").map(SchedulerAccount)
    }

    /// Returns for how long the thread could have run and did not, ns (proc_schedstat: the second
    /// number).
    fn waited(&self) -> io::Result<u64> {
        let mut text = [0; 64];
        let len = self.0.read_at(&mut text, 0)?;
        let text = str::from_utf8(&text[..len]).unwrap_or_default();
        let number = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        number.ok_or_else(|| io::Error::other(format!("/proc/thread-self/schedstat: '{text}'")))
    }
}

/// A controller.
struct Client {
    stream: TcpStream,
    /// What is not sent yet.
    out: Vec<u8>,
    table: u8,
}

impl Client {
    fn connect(address: SocketAddr, table: u8) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut client = Client { stream, out: Vec::with_capacity(2 * WRITE), table };
        client.add(&Message::Hello(Hello { version: VERSION, bitmap: None }))?;
        client.flush()?;
        Ok(client)
    }

    fn add(&mut self, message: &Message) -> io::Result<()> {
        message.encode(0, &mut self.out);
        if self.out.len() < WRITE { Ok(()) } else { self.flush() }
    }

    fn change(&mut self, request: FlowMod) -> io::Result<()> {
        self.add(&Message::FlowMod { buffer_id: NO_BUFFER, request })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Sends a request and waits for the message of this type.
    fn ask(&mut self, request: &Message, reply: u8) -> io::Result<()> {
        self.add(request)?;
        self.flush()?;
        loop {
            let mut head = [0; HEADER_LEN];
            self.stream.read_exact(&mut head)?;
            let header = Header::read(&head).ok_or(io::ErrorKind::InvalidData)?;
            let mut body = vec![0; usize::from(header.len).saturating_sub(HEADER_LEN)];
            self.stream.read_exact(&mut body)?;
            match header.kind {
                kind if kind == reply => return Ok(()),
                ERROR => return Err(io::Error::other(format!("the switch refuses a change: {body:02x?}"))),
                _ => {}
            }
        }
    }

    /// Waits until all changes are in force.
    fn confirm(&mut self) -> io::Result<()> {
        self.ask(&Message::BarrierRequest, BARRIER_REPLY)
    }

    /// What is done with a flow.
    fn flow(&self, (length, matching): &Filter, command: FlowCommand, port: u32) -> FlowMod {
        let what = Instructions::apply([Action::output(port)]);
        FlowMod { command, ..FlowMod::add(self.table, ABOVE + length, matching.clone(), what) }
    }

    /// The rule above all others, sending to the port of this turn.
    fn overriding(&self, turn: u64) -> FlowMod {
        let what = Instructions::apply([Action::output(OUT + (turn % TURNS) as u32)]);
        FlowMod::add(self.table, u16::MAX, Match::any(), what)
    }
}

/// The phases of the measurement.
struct Phases<'a> {
    client: Client,
    flows: &'a [Filter],
    watched: &'a TrafficWatch,
    progress: Progress<'a>,
}

impl Phases<'_> {
    fn run(mut self, barriers: u64) -> io::Result<FlowChanges> {
        self.client.confirm()?;
        let empty = resident();
        let add = self.each("adding", 1, FlowCommand::Add, OUT)?;
        let full = settled();
        let modify = self.each("modifying", 2, FlowCommand::ModifyStrict, OUT + 1)?;
        let aggregate = self.phase("counting", 3, |client, _| {
            let request = Request::Aggregate(FlowFilter::all());
            client.ask(&Message::MultipartRequest { flags: 0, request }, MULTIPART_REPLY)
        })?;
        let delete_strict = self.each("deleting", 4, FlowCommand::DeleteStrict, OUT)?;
        self.each("adding again", 5, FlowCommand::Add, OUT)?;
        (self.progress)("confirming", 6, PHASES);
        let barriers = self.barriers(barriers)?;
        self.watched.is_counting.store(false, Ordering::Relaxed);
        let delete_all = self.phase("deleting all", 7, |client, _| {
            client.change(FlowMod::delete_all())?;
            client.confirm()
        })?;
        let kept = settled();
        let stops = [add, modify, aggregate, delete_strict, delete_all].map(|phase| phase.stop_us);
        let per_flow = |bytes: f64| (bytes - empty).max(0.0) / self.flows.len() as f64;
        Ok(FlowChanges {
            flows: self.flows.len(),
            add,
            modify,
            aggregate,
            delete_strict,
            delete_all,
            barriers,
            bytes_per_flow: per_flow(full),
            bytes_kept_per_flow: per_flow(kept),
            longest_stop_us: stops.into_iter().fold(0.0, f64::max),
            packets_per_second: 0.0,
            lost: 0,
        })
    }

    /// Does the same with each flow, then waits for a barrier.
    fn each(&mut self, text: &str, phase: usize, command: FlowCommand, port: u32) -> io::Result<ChangePhase> {
        self.phase(text, phase, |client, flows| {
            for flow in flows {
                client.change(client.flow(flow, command, port))?;
            }
            client.confirm()
        })
    }

    fn phase(
        &mut self,
        text: &str,
        phase: usize,
        run: impl FnOnce(&mut Client, &[Filter]) -> io::Result<()>,
    ) -> io::Result<ChangePhase> {
        (self.progress)(text, phase, PHASES);
        let take = |longest: &AtomicU64| longest.swap(0, Ordering::Relaxed) as f64 / 1e3;
        // Reading the resident memory holds up who wants more.
        self.watched.phase.fetch_add(1, Ordering::AcqRel);
        let _of_before = (take(&self.watched.stop), take(&self.watched.turn));
        let start = Instant::now();
        run(&mut self.client, self.flows)?;
        let seconds = start.elapsed().as_secs_f64();
        let per_second = self.flows.len() as f64 / seconds;
        let (stop_us, wall_us) = (take(&self.watched.stop), take(&self.watched.turn));
        Ok(ChangePhase { seconds, per_second, stop_us, wall_us })
    }

    /// Changes one rule again and again, each time with a barrier.
    fn barriers(&mut self, count: u64) -> io::Result<Barriers> {
        let mut times = Vec::new();
        for turn in 1..=count {
            let start = Instant::now();
            self.watched.requested.store(turn, Ordering::Release);
            self.client.change(self.client.overriding(turn))?;
            self.client.confirm()?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
            self.watched.confirmed.store(turn, Ordering::Release);
        }
        let times = sorted(times);
        let (median_us, p99_us) = (quantile(&times, 0.5), quantile(&times, 0.99));
        Ok(Barriers { count, median_us, p99_us, stale: 0 })
    }
}

/// Returns the resident memory once it has not changed for a while, bytes.
fn settled() -> f64 {
    let (start, mut since, mut last) = (Instant::now(), Instant::now(), resident());
    while since.elapsed() < QUIET && start.elapsed() < SETTLE {
        thread::sleep(Duration::from_millis(50));
        let bytes = resident();
        if (bytes - last).abs() > 0.001 * last {
            since = Instant::now();
        }
        last = bytes;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effort, Rules};

    #[test]
    fn every_phase_moves_all_flows_and_no_frame_leaves_by_a_rule_of_before() {
        let question = SwitchQuestion { rules: Rules::Cidr(100), flows: 64, seed: 1, effort: Effort::Quick };
        let found = flow_changes(&question, 500, 40, &|_, _, _| ()).unwrap();
        assert_eq!((found.flows, found.barriers.count, found.barriers.stale, found.lost), (500, 40, 0, 0));
        for phase in [found.add, found.modify, found.aggregate, found.delete_strict, found.delete_all] {
            assert!(phase.seconds > 0.0 && phase.stop_us <= phase.wall_us, "{phase:?}");
            assert!((phase.per_second * phase.seconds - 500.0).abs() < 1e-6);
        }
        assert!(found.packets_per_second > 0.0);
    }
}
