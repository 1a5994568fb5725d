//! A replay with several workers: each runs one part of the network, with the results of one.
//!
//! ```text
//!              ┌─▶ worker 0: part 0 ─┐  frames,   ┌─▶ captures of its hosts
//!  captures ───┤                     ├─ records ──┤
//!  (read by 0) └─▶ worker 1: part 1 ─┘            └─▶ merged by worker 0: times, per-packet log
//! ```
//!
//! The parts run side by side as far as nothing can come from another one (a window), then exchange
//! what has left them. No result depends on which worker was faster.
//!
//! Read first: `worker.rs`, then `records.rs`.

mod barrier;
mod exchange;
mod merge;
mod part;
mod reader;
mod records;
mod tracker;
mod worker;

use super::captures::BytesRead;
use super::delays::RealisedDelays;
use super::ends::{Ends, Exits};
use super::pairs::PairDelays;
use super::rows::{Rows, TimeColumns};
use super::run::{Inputs, Observers, ReplayObserver};
use super::traffic::{FlowCounts, TrafficRun};
use crate::error::{Error, Result};
use exchange::Exchange;
use fastpath_link::Counters;
use fastpath_net::{CutError, Edge, FrameAccounting, Network, Options, Partition, Windows};
use fastpath_spec::{NodeId, Topology};
use merge::Merger;
use part::{PartResults, PartRun};
use reader::Reader;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::thread;
use tracker::{PartObserver, Tracker};
pub use worker::WorkerProfile;
use worker::{MainTasks, PartWorker};

/// A replay that is ready to run.
pub(super) struct ParallelRun<'a> {
    pub(super) topology: &'a Topology,
    pub(super) partition: &'a Partition,
    pub(super) options: Options,
    pub(super) edges: &'a [Edge],
    pub(super) traffic: TrafficRun,
    pub(super) ends: Ends,
    pub(super) inputs: Inputs<'a>,
    pub(super) start_ns: u64,
    /// What follows frames, and where their rows go; `None` without.
    pub(super) observers: Option<(Observers, Rows)>,
}

/// What the workers found together.
pub(super) struct ParallelResults {
    pub(super) accounting: FrameAccounting,
    pub(super) columns: TimeColumns,
    pub(super) jitter: Vec<RealisedDelays>,
    /// By pipe.
    pub(super) counters: Vec<Counters>,
    pub(super) pairs: Vec<PairDelays>,
    pub(super) traffic: TrafficRun,
    pub(super) out_of_order: u64,
    pub(super) above_mtu: u64,
    pub(super) left_out: BTreeMap<u16, u64>,
    pub(super) problems: Vec<Error>,
    pub(super) profiles: Vec<WorkerProfile>,
}

type WorkerOutcome = Result<(PartResults, WorkerProfile)>;

impl ParallelRun<'_> {
    /// Runs the parts to the end of the run.
    pub(super) fn play(
        self,
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<ParallelResults> {
        let (partition, pipes) = (self.partition, 2 * self.topology.links.len());
        match &self.observers {
            Some(((_, log), _)) => {
                let logs = log.is_some();
                self.play_observed(|part| Tracker::new(partition, part, pipes, logs), progress)
            }
            None => self.play_observed(|_| (), progress),
        }
    }

    fn play_observed<O: PartObserver>(
        self,
        observer: impl Fn(usize) -> O + Sync,
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<ParallelResults> {
        let ParallelRun { topology, partition, options, edges, traffic, ends, inputs, start_ns, observers } =
            self;
        let count = partition.count();
        let Ends { entrances, longest, exits } = ends;
        let part_of_edge = |edge: usize| partition.part_of(edges[edge].node);
        let share = |(part, exits)| {
            Mutex::new(Some((traffic.sent_by(|node: NodeId| partition.part_of(node) == part), exits)))
        };
        let shares: Vec<Mutex<Option<(TrafficRun, Exits)>>> =
            split(exits, count, part_of_edge).into_iter().enumerate().map(share).collect();
        let mut main = MainTasks {
            entrances: entrances.iter().map(|edge| part_of_edge(edge.0 as usize)).collect(),
            reader: Reader::new(inputs, start_ns, &entrances, &longest),
            merger: observers.map(|(observers, rows)| Merger::new(count, observers, rows)),
            progress,
            reported: 0,
        };
        let (exchange, windows) = (Exchange::new(count), Windows::new(partition));
        let start = |part: usize| {
            let share = shares[part].lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            let (traffic, exits) = share.expect("each part starts once");
            let mut network = Network::observed(topology.clone(), options.clone(), observer(part));
            network.cut(partition, part);
            PartRun::new(network, traffic, exits, (entrances.len(), start_ns))
        };
        let work = |part: usize, main: Option<&mut MainTasks<'_>>| -> WorkerOutcome {
            let guard = exchange.barrier.guard();
            let run = start(part);
            let mut worker = PartWorker { exchange: &exchange, windows: &windows, part, count, run, main };
            let profile = worker.work()?;
            guard.done();
            Ok((worker.run.finish(partition, part)?, profile))
        };
        let outcomes = all(side_by_side(count, &mut main, work))?;
        let MainTasks { reader, merger, .. } = main;
        let (pairs, columns) = finish(merger, topology, edges)?;
        let results = ParallelResults {
            accounting: FrameAccounting::default(),
            columns,
            jitter: Vec::new(),
            counters: Vec::new(),
            pairs,
            traffic,
            out_of_order: reader.out_of_order,
            above_mtu: reader.above_mtu,
            left_out: reader.captures.left_out(),
            problems: reader.captures.into_problems(),
            profiles: Vec::new(),
        };
        results.with_parts(outcomes, partition, options.pool_limit.get())
    }
}

/// Runs all workers, each on a thread, the first on this one.
fn side_by_side<M>(
    count: usize,
    main: &mut M,
    work: impl Fn(usize, Option<&mut M>) -> WorkerOutcome + Sync,
) -> Vec<WorkerOutcome> {
    thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = (1..count).map(|part| scope.spawn(move || work(part, None))).collect();
        let first = work(0, Some(main));
        let join = |other: thread::ScopedJoinHandle<'_, WorkerOutcome>| {
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        std::iter::once(first).chain(others.into_iter().map(join)).collect()
    })
}

impl ParallelResults {
    /// Adds the results of the parts.
    fn with_parts(
        mut self,
        outcomes: Vec<(PartResults, WorkerProfile)>,
        partition: &Partition,
        pool_limit: usize,
    ) -> Result<ParallelResults> {
        let (parts, profiles): (Vec<PartResults>, Vec<WorkerProfile>) = outcomes.into_iter().unzip();
        // The whole network would have needed no more memory than its parts together.
        if parts.iter().map(|part| part.reserved).sum::<usize>() > pool_limit {
            return Err(CutError::PoolFull.into());
        }
        let (mut flows, mut delays): (Vec<Vec<FlowCounts>>, Vec<_>) = (Vec::new(), Vec::new());
        for part in parts {
            self.accounting.add(part.accounting);
            flows.push(part.flows);
            delays.extend(part.delays);
            self.counters.resize(part.counters.len(), Counters::default());
            self.counters.iter_mut().zip(part.counters).for_each(|(all, of_part)| *all += of_part);
        }
        if !self.accounting.balances() {
            return Err(Error::Accounting(format!("{:?}", self.accounting)));
        }
        delays.sort_by_key(|(pipe, _)| *pipe);
        self.jitter = delays.into_iter().map(|(_, delays)| delays).collect();
        self.traffic.take_counts(&flows, |node| partition.part_of(node));
        self.profiles = profiles;
        Ok(self)
    }
}

/// Returns all results, or the error of the first worker that failed by itself.
fn all(outcomes: Vec<WorkerOutcome>) -> Result<Vec<(PartResults, WorkerProfile)>> {
    let (mut results, mut failure) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(result) => results.push(result),
            // The others are interrupted.
            Err(Error::Interrupted) if failure.is_some() => {}
            Err(error) => {
                if failure.as_ref().is_none_or(|known| matches!(known, Error::Interrupted)) {
                    failure = Some(error);
                }
            }
        }
    }
    failure.map_or(Ok(results), Err)
}

/// Completes what follows frames.
fn finish(
    merger: Option<Merger>,
    topology: &Topology,
    edges: &[Edge],
) -> Result<(Vec<PairDelays>, TimeColumns)> {
    let Some(Merger { mut follower, log, mut rows, .. }) = merger else { return Ok(Default::default()) };
    let pairs = std::mem::take(&mut follower.pairs).delays(topology, edges);
    follower.store_rest(&mut rows)?;
    let columns = rows.finish()?;
    if let Some(log) = (follower, log).into_log() {
        log.into_sink().finish()?;
    }
    Ok((pairs, columns))
}

/// Gives each file to the part of its edges.
fn split(exits: Exits, count: usize, part: impl Fn(usize) -> usize) -> Vec<Exits> {
    let Exits { places, files } = exits;
    let mut parts: Vec<Exits> = (0..count)
        .map(|_| Exits { places: places.clone(), files: files.iter().map(|_| None).collect() })
        .collect();
    for (index, file) in files.into_iter().enumerate() {
        let edge = places.iter().position(|place| *place == Some(index));
        parts[edge.map_or(0, &part)].files[index] = file;
    }
    parts
}
