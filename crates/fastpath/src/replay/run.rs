//! A running replay: drives the network in virtual time from captures and traffic to the output
//! files.

use super::arrays::Arrays;
use super::captures::{BytesRead, Captures};
use super::delays::{RealisedDelays, realised_delays};
use super::ends::{Ends, create, names};
use super::follow::Follower;
use super::links::{self, DirectionResults, QueueSampler};
use super::pairs::PairDelays;
use super::rows::{Rows, TimeColumns};
use super::traffic::TrafficRun;
use super::transfers::TransferRun;
use crate::error::{Error, Result};
use crate::log_file::LogFile;
use fastpath_net::packet_log::PacketLog;
use fastpath_net::{Delivery, Edge, EdgeId, FRAME_MAX, FrameAccounting, Network, Observer, Reason};
use fastpath_spec::Topology;
use fastpath_traffic::{FlowReport, TransferReport};
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;
use std::mem;
use std::ops::ControlFlow;
use std::path::Path;

const PS_PER_NS: u64 = 1000;
/// Packets between two reports of progress.
pub(super) const PACKETS_PER_REPORT: u64 = 4096;

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
    transfers: TransferRun,
    ends: Ends,
    rows: Rows,
    /// Time zero, nanoseconds since 1970.
    start_ns: u64,
    now: Time,
    /// Looks at queues, if it is asked to.
    sampler: Option<QueueSampler>,
    /// Frames that could not enter.
    refused: BTreeMap<Reason, u64>,
    /// Packets with a time before that of their predecessor.
    out_of_order: u64,
    /// Frames that were longer than the interface at which they entered allows.
    above_mtu: u64,
}

/// Creates the observers of a replay.
pub(super) fn observers(topology: &Topology, start_ns: u64, packet_log: Option<&Path>) -> Result<Observers> {
    let log = packet_log.map(|path| LogFile::create(path, topology, start_ns)).transpose()?;
    Ok((Follower::default(), log.map(PacketLog::new)))
}

impl<O: ReplayObserver> ReplayRun<O> {
    /// An idle network whose time zero is `start_ns` after 1970. Its hosts send `traffic`.
    pub(super) fn new(
        network: Network<O>,
        (traffic, transfers): (TrafficRun, TransferRun),
        ends: Ends,
        start_ns: u64,
    ) -> ReplayRun<O> {
        ReplayRun {
            network,
            traffic,
            transfers,
            ends,
            rows: Rows::Nowhere,
            start_ns,
            now: Time::ZERO,
            sampler: None,
            refused: BTreeMap::new(),
            out_of_order: 0,
            above_mtu: 0,
        }
    }

    /// Sets where the times of every frame go.
    pub(super) fn rows_to(&mut self, rows: Rows) {
        self.rows = rows;
    }

    /// Has queues sampled.
    pub(super) fn sample(&mut self, interval: Option<Duration>) {
        self.sampler = interval.map(QueueSampler::new);
    }

    /// What went over links.
    pub(super) fn links(&mut self) -> Vec<DirectionResults> {
        let sampler = self.sampler.take();
        links::results(self.network.topology(), &links::counters(&self.network, |_| true), sampler)
    }

    /// Plays everything. Returns the errors of captures that ended early, and how many packets no
    /// frame was made of, by their link type.
    pub(super) fn play(
        &mut self,
        inputs: Inputs,
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<(Vec<Error>, BTreeMap<u16, u64>)> {
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
            self.settle(at, &mut || report(progress, &captures))?;
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
        let left_out = captures.left_out();
        Ok((captures.into_problems(), left_out))
    }

    /// Lets hosts answer what arrives up to `until`. Without transfers nothing does.
    fn settle(&mut self, until: Time, report: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut steps = 0_u64;
        while !self.transfers.is_empty() {
            let Some(at) = self.next_at().filter(|at| *at <= until) else { break };
            self.step(at, &mut steps, report)?;
        }
        Ok(())
    }

    /// Lets time pass to `at`, where hosts answer what arrives.
    fn step(&mut self, at: Time, steps: &mut u64, report: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.advance(at)?;
        self.answer();
        *steps += 1;
        if steps.is_multiple_of(PACKETS_PER_REPORT) { report() } else { Ok(()) }
    }

    /// When something happens next, if nothing enters.
    fn next_at(&self) -> Option<Time> {
        let transfers = self.transfers.next_at().map(|at| at.max(self.now));
        [self.network.next_at(), transfers].into_iter().flatten().min()
    }

    /// Sends what connections have to send now.
    fn answer(&mut self) {
        self.transfers.advance(self.now);
        let others = self.ends.entrances.len() + self.traffic.count();
        while let Some((transfer, edge, bytes)) = self.transfers.transmit(self.now) {
            self.rows.entering(others + transfer, bytes.len());
            match self.network.pool_mut().insert(bytes) {
                Some(frame) => self.network.push(self.now, edge, frame),
                None => self.refuse(edge, Reason::PoolFull),
            }
        }
    }

    /// The results of the transfers.
    pub(super) fn transfers(&self) -> Vec<TransferReport> {
        self.transfers.reports(self.network.topology(), self.now)
    }

    /// The delays between hosts.
    pub(super) fn pairs(&mut self) -> Vec<PairDelays> {
        let pairs = self.network.observer_mut().follower().map(|follower| mem::take(&mut follower.pairs));
        let edges: Vec<Edge> = self.network.edges().collect();
        pairs.map_or_else(Vec::new, |pairs| pairs.delays(self.network.topology(), &edges))
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
        while let Some(at) = self.next_at() {
            let waits = self.transfers.next_at().is_none();
            if let (Some(round), true, true) =
                (self.network.repeat_period_max(), self.network.is_quiescent(), waits)
            {
                let since = *still_since.get_or_insert(at);
                let waited = at.since(since) > round.saturating_add(round);
                if waited || self.network.accounting().held == 0 {
                    break;
                }
            } else {
                still_since = None;
            }
            self.step(at, &mut steps, report)?;
        }
        Ok(())
    }

    /// Configured and realised delays of each direction of a link that has jitter at the end.
    pub(super) fn realised_delays(&self) -> Vec<RealisedDelays> {
        realised_delays(&self.network, |_| true).into_iter().map(|(_, delays)| delays).collect()
    }

    /// Completes the files. Returns the frame accounting, and the times if they were kept.
    pub(super) fn finish(mut self) -> Result<(FrameAccounting, TimeColumns)> {
        if let Some(follower) = self.network.observer_mut().follower() {
            follower.store_rest(&mut self.rows)?;
        }
        let columns = self.rows.finish()?;
        self.ends.exits.finish()?;
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
        time_of(ns, self.start_ns)
    }

    /// Lets time pass to `at`. Writes what is due and the rows that are complete.
    fn advance(&mut self, at: Time) -> Result<()> {
        while let Some(next) = self.sampler.as_ref().map(QueueSampler::next_at).filter(|next| *next <= at) {
            self.advance_to(next)?;
            self.sampler.as_mut().expect("it has said when").take(&mut self.network);
        }
        self.advance_to(at)
    }

    fn advance_to(&mut self, at: Time) -> Result<()> {
        // Time does not run backwards: a packet that is out of order enters late.
        self.now = self.now.max(at);
        while let Some(delivery) = self.network.pop(self.now) {
            let bytes = self.network.pool().bytes(&delivery.frame);
            self.traffic.deliver(delivery.at, delivery.edge, bytes);
            self.transfers.deliver(self.network.topology(), delivery.at, delivery.edge, bytes);
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
        self.rows.entering(self.ends.entrances.len() + flow, bytes.len());
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
        self.above_mtu += u64::from(wire_len > self.ends.longest[input]);
        let Some(mut frame) = self.network.pool_mut().alloc(wire_len) else {
            let reason = if wire_len > FRAME_MAX { Reason::TooBig } else { Reason::PoolFull };
            self.refuse(self.ends.entrances[input], reason);
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
        self.network.push(self.now, self.ends.entrances[input], frame);
    }

    fn write(&mut self, delivery: &Delivery) -> Result<()> {
        let follower = self.network.observer_mut().follower();
        let captured = follower.map_or(delivery.frame.len(), |follower| follower.captured(&delivery.frame));
        let bytes = self.network.pool().bytes(&delivery.frame);
        self.ends.exits.write(self.start_ns, delivery, bytes, captured)
    }
}

/// Returns the time of the run at `ns` nanoseconds since 1970.
pub(super) fn time_of(ns: u64, start_ns: u64) -> Result<Time> {
    let at = ns.saturating_sub(start_ns).checked_mul(PS_PER_NS).map(Time::from_ps);
    at.ok_or_else(|| {
        Error::argument("the captures span more than 213 days; shift the times of one (editcap -t)")
    })
}

/// Starts the times file.
pub(super) fn times_file(path: &Path, topology: &Topology, edges: &[Edge], start_ns: u64) -> Result<Rows> {
    let start_ps = u128::from(start_ns) * u128::from(PS_PER_NS);
    Rows::file(path.to_owned(), create(path)?, start_ps, names(topology, edges))
}

/// Reports progress; the caller may end the run.
pub(super) fn report(
    progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    captures: &Captures,
) -> Result<()> {
    match progress(captures.bytes_read()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}
