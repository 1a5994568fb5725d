//! A running replay: drives the network in virtual time from captures and traffic to the output
//! files.

use super::arrays::Arrays;
use super::attachment::{CaptureAt, HostInterface};
use super::captures::{BytesRead, Captures};
use super::follow::Follower;
use super::pairs::PairDelays;
use super::rows::{Rows, TimeColumns};
use super::traffic::TrafficRun;
use crate::error::{Error, Result};
#[cfg(target_os = "linux")]
use fastpath_engine::DelayReport;
use fastpath_net::packet_log::{self, PacketLog};
use fastpath_net::{Delivery, Edge, EdgeId, FRAME_MAX, FrameAccounting, Network, Observer, Options, Reason};
#[cfg(target_os = "linux")]
use fastpath_spec::LinkId;
use fastpath_spec::Topology;
use fastpath_traffic::FlowReport;
use fastpath_units::Time;
use fastpath_wire::pcap::{LINKTYPE_ETHERNET, Writer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::mem;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const PS_PER_NS: u64 = 1000;
/// Ethernet header with two VLAN tags, bytes: what an MTU leaves out.
const ETHERNET_TAGGED: usize = 14 + 2 * 4;
/// Packets between two reports of progress.
const PACKETS_PER_REPORT: u64 = 4096;

/// What a replay needs of the observer of its network.
pub(super) trait ReplayObserver: Observer {
    /// Returns what follows each frame; `None` if nothing does.
    fn follower(&mut self) -> Option<&mut Follower>;
    /// Notes a frame that could not enter the network: it has a number, too.
    fn refused_at(&mut self, at: Time, edge: EdgeId, reason: Reason);
    /// Returns the per-packet log, if there is one.
    fn into_log(self) -> Option<PacketLog<LogFile>>;
}

/// The times of frames, and the per-packet log if there is one.
pub(super) type Observers = (Follower, Option<PacketLog<LogFile>>);

impl ReplayObserver for Observers {
    fn follower(&mut self) -> Option<&mut Follower> {
        Some(&mut self.0)
    }

    fn refused_at(&mut self, at: Time, edge: EdgeId, reason: Reason) {
        self.0.refused(at, edge, reason);
        if let Some(log) = &mut self.1 {
            log.skip_number();
        }
    }

    fn into_log(self) -> Option<PacketLog<LogFile>> {
        self.1
    }
}

/// Traffic alone needs neither, and is several times as fast.
impl ReplayObserver for () {
    fn follower(&mut self) -> Option<&mut Follower> {
        None
    }

    fn refused_at(&mut self, _at: Time, _edge: EdgeId, _reason: Reason) {}

    fn into_log(self) -> Option<PacketLog<LogFile>> {
        None
    }
}

/// The frames that enter a replay.
pub(super) struct Inputs<'a> {
    pub(super) captures: Captures,
    pub(super) arrays: Arrays<'a>,
    /// Nothing enters from then on.
    pub(super) until: Option<Time>,
}

/// Where the next frame comes from.
enum FrameSource {
    Capture,
    Array(usize),
    Traffic,
}

/// See the head of this file.
pub(super) struct ReplayRun<O: ReplayObserver> {
    network: Network<O>,
    traffic: TrafficRun,
    /// The edges at which frames enter: of each capture, then of each array.
    entrances: Vec<EdgeId>,
    /// The file for the frames that are delivered at each edge, as an index of `outputs`.
    exits: Vec<Option<usize>>,
    outputs: Vec<OutputCapture>,
    rows: Rows,
    /// Time zero, nanoseconds since 1970.
    start_ns: u64,
    now: Time,
    /// Frames that could not enter.
    refused: BTreeMap<Reason, u64>,
    /// Packets with a time before that of their predecessor.
    out_of_order: u64,
    /// The longest frame of the interface at each entrance, and the frames that were longer.
    longest: Vec<usize>,
    above_mtu: u64,
}

/// Configured and realised delay of one direction of a link.
#[derive(Debug, Serialize)]
pub struct RealisedDelays {
    /// The link.
    pub link: String,
    /// The node at which the direction begins.
    pub from: String,
    /// The node at which it ends.
    pub to: String,
    /// The delays.
    #[cfg(target_os = "linux")]
    #[serde(flatten)]
    pub delays: DelayReport,
    /// No value of this type exists: the report of delays is for Linux.
    #[cfg(not(target_os = "linux"))]
    #[serde(skip)]
    pub delays: std::convert::Infallible,
}

struct OutputCapture {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

/// Creates the observers of a replay.
pub(super) fn observers(topology: &Topology, start_ns: u64, packet_log: Option<&Path>) -> Result<Observers> {
    let log = packet_log.map(|path| LogFile::create(path, topology, start_ns)).transpose()?;
    Ok((Follower::default(), log.map(PacketLog::new)))
}

impl<O: ReplayObserver> ReplayRun<O> {
    /// An idle network whose time zero is `start_ns` after 1970. Its hosts send the traffic of the
    /// topology before `until`.
    pub(super) fn new(
        topology: Topology,
        options: Options,
        (start_ns, until): (u64, Option<Time>),
        observer: O,
    ) -> Result<ReplayRun<O>> {
        let seed = options.seed;
        let network = Network::observed(topology, options, observer);
        let edges = network.edges().len();
        Ok(ReplayRun {
            exits: vec![None; edges],
            traffic: TrafficRun::new(&network, seed, until)?,
            network,
            entrances: Vec::new(),
            outputs: Vec::new(),
            rows: Rows::Nowhere,
            start_ns,
            now: Time::ZERO,
            refused: BTreeMap::new(),
            out_of_order: 0,
            longest: Vec::new(),
            above_mtu: 0,
        })
    }

    /// Finds the edges of inputs, and creates the output files.
    pub(super) fn attach<'i>(
        &mut self,
        inputs: impl IntoIterator<Item = &'i HostInterface>,
        outputs: &[CaptureAt],
    ) -> Result<()> {
        self.entrances = inputs.into_iter().map(|at| at.edge(&self.network)).collect::<Result<_>>()?;
        let topology = self.network.topology();
        let edges: Vec<_> = self.network.edges().collect();
        let mtu = |edge: &EdgeId| {
            let edge = edges[edge.0 as usize];
            topology.node(edge.node).interfaces[edge.interface].mtu as usize
        };
        self.longest = self.entrances.iter().map(|edge| mtu(edge) + ETHERNET_TAGGED).collect();
        for (index, output) in outputs.iter().enumerate() {
            for edge in output.at.edges(&self.network)? {
                let exit = &mut self.exits[edge.0 as usize];
                if exit.is_some() {
                    let text = format!("{output}: this interface has two outputs; give it one");
                    return Err(Error::Argument(text));
                }
                *exit = Some(index);
            }
        }
        self.outputs =
            outputs.iter().map(|output| OutputCapture::create(&output.file)).collect::<Result<_>>()?;
        Ok(())
    }

    /// Writes the times of every frame to a file.
    pub(super) fn times_to(&mut self, path: &Path) -> Result<()> {
        let topology = self.network.topology();
        let host = |edge: Edge| {
            let node = topology.node(edge.node);
            match node.interfaces.len() {
                1 => node.name.clone(),
                _ => format!("{}:{}", node.name, node.interfaces[edge.interface].name),
            }
        };
        let hosts = self.network.edges().map(host).collect();
        self.rows = Rows::file(path.to_owned(), create(path)?, self.start_ps(), hosts)?;
        Ok(())
    }

    /// Keeps the times of every frame.
    pub(super) fn keep_times(&mut self) {
        self.rows = Rows::Columns(TimeColumns::default());
    }

    /// Plays everything. Returns the errors of captures that ended early.
    pub(super) fn play(
        &mut self,
        inputs: Inputs,
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<Vec<Error>> {
        let Inputs { mut captures, mut arrays, until } = inputs;
        let (mut spent, mut latest_ns, mut packets) = (None, self.start_ns, 0_u64);
        loop {
            let captured = captures.start_ns().map(|ns| self.time_of(ns)).transpose()?;
            let next = [
                captured.map(|at| (at, FrameSource::Capture)),
                arrays.next_at().map(|(at, array)| (at, FrameSource::Array(array))),
                self.traffic.next_at().map(|at| (at, FrameSource::Traffic)),
            ];
            // Of equal times the first.
            let next = next.into_iter().flatten().min_by_key(|(at, _)| *at);
            let Some((at, source)) = next.filter(|(at, _)| until.is_none_or(|until| *at < until)) else {
                break;
            };
            match source {
                FrameSource::Capture => {
                    let packet = captures.next(spent.take()).expect("a capture has a packet");
                    self.out_of_order += u64::from(packet.ns < latest_ns);
                    latest_ns = latest_ns.max(packet.ns);
                    self.advance(at)?;
                    self.number(packet.number);
                    self.enter(packet.capture, &packet.data, packet.wire_len);
                    spent = Some(packet);
                }
                FrameSource::Array(array) => {
                    self.advance(at)?;
                    let bytes = arrays.take(array);
                    self.enter(captures.count() + array, bytes, bytes.len());
                }
                FrameSource::Traffic => {
                    self.advance(at)?;
                    self.send();
                }
            }
            packets += 1;
            if packets.is_multiple_of(PACKETS_PER_REPORT) {
                report(progress, &captures)?;
            }
        }
        self.drain(&mut || report(progress, &captures))?;
        Ok(captures.into_problems())
    }

    /// The delays between hosts.
    pub(super) fn pairs(&mut self) -> Vec<PairDelays> {
        let pairs = self.network.observer_mut().follower().map(|follower| mem::take(&mut follower.pairs));
        pairs.map_or_else(Vec::new, |pairs| pairs.delays(&self.network))
    }

    /// The results of the traffic.
    pub(super) fn flows(&self) -> Vec<FlowReport> {
        self.traffic.reports(self.network.topology())
    }

    /// Packets with a time before that of their predecessor in the same capture.
    pub(super) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Frames that were longer than the MTU of the interface at which they entered.
    pub(super) fn above_mtu(&self) -> u64 {
        self.above_mtu
    }

    /// Runs the network until it is empty. With traces that repeat for ever the run ends when no
    /// frame is left, or when the remaining frames have waited for two rounds of the longest
    /// trace: their link never sends again.
    fn drain(&mut self, report: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let (mut still_since, mut steps) = (None, 0_u64);
        while let Some(at) = self.network.next_at() {
            if let (Some(round), true) = (self.network.repeat_period_max(), self.network.is_quiescent()) {
                let since = *still_since.get_or_insert(at);
                let waited = at.since(since) > round.saturating_add(round);
                if waited || self.network.accounting().held == 0 {
                    break;
                }
            } else {
                still_since = None;
            }
            self.advance(at)?;
            steps += 1;
            if steps.is_multiple_of(PACKETS_PER_REPORT) {
                report()?;
            }
        }
        Ok(())
    }

    /// Configured and realised delays of each direction of a link that has jitter at the end. None
    /// on other systems than Linux: the crate that compares the two is for Linux.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn realised_delays(&self) -> Vec<RealisedDelays> {
        Vec::new()
    }

    /// Configured and realised delays of each direction of a link that has jitter at the end.
    #[cfg(target_os = "linux")]
    pub(super) fn realised_delays(&self) -> Vec<RealisedDelays> {
        let topology = self.network.topology();
        let directions = (0..topology.links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        let report = |(link, index): (usize, usize)| {
            let pipe = self.network.pipe(LinkId(link as u32), index);
            let delays = DelayReport::of(&pipe.spec(), pipe.delays()?)?;
            let link = &topology.links[link];
            let [from, to] = [index, 1 - index].map(|end| topology.node(link.ends[end].0).name.clone());
            Some(RealisedDelays { link: link.name.clone(), from, to, delays })
        };
        directions.filter_map(report).collect()
    }

    /// Completes the files. Returns the frame accounting, and the times if they were kept.
    pub(super) fn finish(mut self) -> Result<(FrameAccounting, TimeColumns)> {
        if let Some(follower) = self.network.observer_mut().follower() {
            follower.store_rest(&mut self.rows)?;
        }
        let columns = self.rows.finish()?;
        for OutputCapture { path, writer } in self.outputs {
            writer.finish().map_err(Error::file(&path))?;
        }
        let mut frames = self.network.accounting();
        for (reason, count) in self.refused {
            frames.entered += count;
            *frames.dropped.entry(reason.name()).or_default() += count;
        }
        if let Some(log) = self.network.into_observer().into_log() {
            log.into_sink().finish()?;
        }
        if frames.balances() { Ok((frames, columns)) } else { Err(Error::Accounting(format!("{frames:?}"))) }
    }

    fn time_of(&self, ns: u64) -> Result<Time> {
        let after_ns = ns.saturating_sub(self.start_ns);
        let at = after_ns.checked_mul(PS_PER_NS).map(Time::from_ps);
        at.ok_or_else(|| {
            Error::argument("the captures span more than 213 days; shift the times of one (editcap -t)")
        })
    }

    /// Lets time pass to `at`. Writes what is due and the rows that are complete.
    fn advance(&mut self, at: Time) -> Result<()> {
        // Time does not run backwards: a packet that is out of order enters late.
        self.now = self.now.max(at);
        while let Some(delivery) = self.network.pop(self.now) {
            self.traffic.deliver(delivery.at, delivery.edge, self.network.pool().bytes(&delivery.frame));
            self.write(&delivery)?;
            self.network.pool_mut().free(delivery.frame);
        }
        match self.network.observer_mut().follower() {
            Some(follower) => follower.store_closed(&mut self.rows),
            None => Ok(()),
        }
    }

    /// Sends the next packet of the traffic.
    fn send(&mut self) {
        let (flow, edge, bytes) = self.traffic.take();
        self.rows.entering(self.entrances.len() + flow, bytes.len());
        match self.network.pool_mut().insert(bytes) {
            Some(frame) => self.network.push(self.now, edge, frame),
            None => self.refuse(edge, Reason::PoolFull),
        }
    }

    /// Numbers the next frame of a capture, as Wireshark does.
    fn number(&mut self, number: u64) {
        if let Some(follower) = self.network.observer_mut().follower() {
            follower.capture_frame = Some(number);
        }
    }

    /// Counts a frame that cannot enter.
    fn refuse(&mut self, edge: EdgeId, reason: Reason) {
        *self.refused.entry(reason).or_default() += 1;
        self.network.observer_mut().refused_at(self.now, edge, reason);
    }

    /// Sends a frame from its host, at its length on the wire. Bytes that a snap length cut are
    /// zero.
    fn enter(&mut self, input: usize, data: &[u8], wire_len: usize) {
        self.rows.entering(input, wire_len);
        self.above_mtu += u64::from(wire_len > self.longest[input]);
        let Some(mut frame) = self.network.pool_mut().alloc(wire_len) else {
            let reason = if wire_len > FRAME_MAX { Reason::TooBig } else { Reason::PoolFull };
            self.refuse(self.entrances[input], reason);
            return;
        };
        let (known, unknown) = self.network.pool_mut().bytes_mut(&mut frame).split_at_mut(data.len());
        known.copy_from_slice(data);
        unknown.fill(0);
        if data.len() < wire_len
            && let Some(follower) = self.network.observer_mut().follower()
        {
            follower.cut(&frame, data.len());
        }
        self.network.push(self.now, self.entrances[input], frame);
    }

    fn write(&mut self, delivery: &Delivery) -> Result<()> {
        let follower = self.network.observer_mut().follower();
        let captured = follower.map_or(delivery.frame.len(), |follower| follower.captured(&delivery.frame));
        let Some(index) = self.exits[delivery.edge.0 as usize] else { return Ok(()) };
        let bytes = self.network.pool().bytes(&delivery.frame);
        let ns = self.start_ns + delivery.at.as_ns();
        let output = &mut self.outputs[index];
        let written = output.writer.write_packet(ns, bytes.len() as u32, &bytes[..captured]);
        written.map_err(Error::file(&output.path))
    }

    fn start_ps(&self) -> u128 {
        u128::from(self.start_ns) * u128::from(PS_PER_NS)
    }
}

/// Reports progress; the caller may end the run.
fn report(progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>, captures: &Captures) -> Result<()> {
    match progress(captures.bytes_read()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// The file of the per-packet log, and the first error of writing it.
pub(super) struct LogFile {
    path: PathBuf,
    writer: packet_log::Writer<BufWriter<File>>,
    failure: io::Result<()>,
}

impl LogFile {
    fn create(path: &Path, topology: &Topology, start_ns: u64) -> Result<LogFile> {
        let writer = packet_log::Writer::new(create(path)?, topology, start_ns).map_err(Error::file(path))?;
        Ok(LogFile { path: path.to_owned(), writer, failure: Ok(()) })
    }

    fn finish(self) -> Result<()> {
        let written = self.failure.and_then(|()| self.writer.finish());
        written.map(drop).map_err(Error::file(&self.path))
    }
}

impl packet_log::Sink for LogFile {
    fn take(&mut self, entry: packet_log::LogEntry, bytes: &[u8]) {
        if self.failure.is_ok() {
            self.failure = self.writer.write(&entry, bytes);
        }
    }

    fn rearranged(&mut self, topology: &Topology) {
        if self.failure.is_ok() {
            self.failure = self.writer.rearrange(topology);
        }
    }
}

impl OutputCapture {
    fn create(path: &Path) -> Result<OutputCapture> {
        let writer = Writer::new(create(path)?, LINKTYPE_ETHERNET).map_err(Error::file(path))?;
        Ok(OutputCapture { path: path.to_owned(), writer })
    }
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let named = |error: io::Error| {
        Error::file(path)(io::Error::new(error.kind(), format!("cannot write this file: {error}")))
    };
    Ok(BufWriter::new(File::create(path).map_err(named)?))
}
