//! Sends captures, and the traffic of the description, through a network in virtual time. The same
//! network, captures and seed give the same bytes and times on every machine.
//!
//! ```text
//!  a.pcap ─┐                                         ┌─▶ b.pcap      (nanoseconds)
//!  c.pcap ─┼─▶ merge by time ─▶ Network ─▶ deliveries ┼─▶ d.pcap
//!  traffic ┘                       └─▶ follow         └─▶ results of flows
//!                                        └─▶ times file, columns     (picoseconds)
//! ```
//!
//! Time zero of the run is the earliest time of the captures. Memory is bounded: one packet of each
//! capture, and what the network holds. Read first: `run.rs`, then `follow.rs`.

mod arrays;
mod attachment;
mod captures;
mod delays;
mod ends;
mod follow;
mod links;
mod pairs;
mod parallel;
mod rows;
mod run;
mod traffic;
mod transfers;
mod workers;

use crate::error::{Error, Result};
use crate::load::{DEFAULT_SEED, Loaded};
use crate::switching::compiled;
use arrays::Arrays;
pub use arrays::{FrameLengths, FramesAt};
pub use attachment::{CaptureAt, HostInterface};
pub use captures::BytesRead;
pub(crate) use captures::Captures;
pub use delays::RealisedDelays;
use ends::Ends;
use fastpath_net::{Edge, FrameAccounting, Network, Options, Partition};
use fastpath_spec::{NodeId, Topology};
use fastpath_traffic::{FlowReport, TransferReport};
use fastpath_units::{Duration, Time};
pub use links::DirectionResults;
pub use pairs::PairDelays;
pub use parallel::WorkerProfile;
use parallel::{ParallelResults, ParallelRun};
use rows::Rows;
pub use rows::TimeColumns;
use run::{Inputs, ReplayObserver, ReplayRun, observers, times_file};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use traffic::TrafficRun;
use transfers::TransferRun;
pub use workers::{WorkerCount, Workers, expected_speedup};

/// A replay to be run: a network, the captures that enter it, and the files that are written.
///
/// ```no_run
/// use fastpath::{Replay, load};
///
/// let network = load("examples/two-hosts.toml")?;
/// let summary = Replay::new(&network).input("a=in.pcap")?.output("b=out.pcap")?.seed(7).run()?;
/// println!("{} of {} frames arrived", summary.accounting.delivered, summary.accounting.total_in());
/// # Ok::<(), fastpath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay {
    topology: Topology,
    inputs: Vec<CaptureAt>,
    outputs: Vec<CaptureAt>,
    times: Option<PathBuf>,
    packet_log: Option<PathBuf>,
    seed: u64,
    until: Option<Time>,
    sample: Option<Duration>,
    workers: WorkerCount,
    partition_seed: Option<u64>,
}

/// The results of a replay.
#[derive(Debug)]
pub struct ReplaySummary {
    /// Where all frames are: in = delivered + dropped (by reason) + held.
    pub accounting: FrameAccounting,
    /// Configured and realised delay of each direction of a link that has jitter.
    pub jitter: Vec<RealisedDelays>,
    /// The delays between hosts of the frames that were delivered, in the order of the hosts. Empty
    /// if only hosts sent, by the traffic of the description, and no file of times was written.
    pub pairs: Vec<PairDelays>,
    /// What was sent and received of the traffic of the description, in its order.
    pub traffic: Vec<FlowReport>,
    /// What came of the connections of the description, in its order.
    pub transfers: Vec<TransferReport>,
    /// What went over each direction of the links, in the order of the description.
    pub links: Vec<DirectionResults>,
    /// The seed that was used.
    pub seed: u64,
    /// Time zero of the run, nanoseconds since 1970; 0 without captures.
    pub start_ns: u64,
    /// Packets with a time before that of their predecessor in the same capture. They entered at
    /// the time of their predecessor.
    pub out_of_order: u64,
    /// Frames of captures that are longer than the MTU of the interface at which they entered. A
    /// host would not send them: they are super-packets of its kernel, or of a network with another
    /// MTU.
    pub above_mtu: u64,
    /// Packets of captures that are neither Ethernet frames nor IP packets, by the link type of
    /// their capture. They did not enter.
    pub left_out: BTreeMap<u16, u64>,
    /// Captures that could not be read to their end. Their complete packets were used.
    pub problems: Vec<Error>,
    /// How the workers spent their time; `None` with one. Nothing else in the results depends on
    /// the workers.
    pub workers: Option<Workers>,
}

impl Replay {
    /// A replay through a loaded network, with the seed of its description.
    pub fn new(network: &Loaded) -> Replay {
        Replay::through(network.spec.topology.clone())
    }

    /// A replay through a topology, with the seed that the topology names or [`DEFAULT_SEED`].
    pub fn through(topology: Topology) -> Replay {
        let seed = topology.seed.unwrap_or(DEFAULT_SEED);
        let (inputs, outputs) = (Vec::new(), Vec::new());
        Replay {
            topology,
            inputs,
            outputs,
            times: None,
            packet_log: None,
            seed,
            until: None,
            sample: None,
            workers: WorkerCount::ONE,
            partition_seed: None,
        }
    }

    /// Adds a capture that enters at a host: `HOST=FILE` or `HOST:INTERFACE=FILE`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the text has another form.
    pub fn input(mut self, capture: &str) -> Result<Replay> {
        self.inputs.push(capture.parse().map_err(Error::Argument)?);
        Ok(self)
    }

    /// Adds a file for the frames that reach a host: `HOST=FILE` or `HOST:INTERFACE=FILE`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the text has another form.
    pub fn output(mut self, capture: &str) -> Result<Replay> {
        self.outputs.push(capture.parse().map_err(Error::Argument)?);
        Ok(self)
    }

    /// Adds captures that enter.
    pub fn inputs(mut self, captures: impl IntoIterator<Item = CaptureAt>) -> Replay {
        self.inputs.extend(captures);
        self
    }

    /// Adds files for frames that leave.
    pub fn outputs(mut self, captures: impl IntoIterator<Item = CaptureAt>) -> Replay {
        self.outputs.extend(captures);
        self
    }

    /// Writes the exact times of every frame to a CSV file: `index,in_ps,out_ps`, or the drop
    /// reason in place of `out_ps`.
    pub fn times(mut self, file: impl Into<PathBuf>) -> Replay {
        self.times = Some(file.into());
        self
    }

    /// Writes a per-packet log (pcapng; times and drop reasons as packet comments).
    pub fn packet_log(mut self, file: impl Into<PathBuf>) -> Replay {
        self.packet_log = Some(file.into());
        self
    }

    /// Sets the seed of all random choices.
    pub fn seed(mut self, seed: u64) -> Replay {
        self.seed = seed;
        self
    }

    /// Lets nothing enter from this time of the run on. What is in the network then arrives.
    /// Traffic of the description that has no `stop` needs it.
    pub fn until(mut self, until: Duration) -> Replay {
        self.until = Some(Time::ZERO + until);
        self
    }

    /// Samples the queues of all links ([`DirectionResults::queue`]), the first time after one
    /// interval. The network then runs on one worker.
    ///
    /// # Panics
    /// The interval is 0.
    pub fn sample_queues(mut self, interval: Duration) -> Replay {
        assert!(interval > Duration::ZERO, "an interval has a length");
        self.sample = Some(interval);
        self
    }

    /// Sets how many workers run the network side by side. The results are the same for every
    /// number. There are fewer workers if the network cannot be cut into that number of parts, and
    /// one if hosts answer each other over connections, or queues are sampled.
    pub fn workers(mut self, workers: WorkerCount) -> Replay {
        self.workers = workers;
        self
    }

    /// Cuts the network at random for its workers, to test that the results do not depend on the
    /// parts.
    pub fn partition_seed(mut self, seed: u64) -> Replay {
        self.partition_seed = Some(seed);
        self
    }

    /// Uses the capture as input of the first host of a network.
    ///
    /// # Errors
    /// [`Error::Argument`] if the network has no host.
    pub fn at_first_host(mut self, capture: &Path) -> Result<Replay> {
        let first = self.topology.hosts().next().map(|(_, host)| CaptureAt::new(&host.name, capture));
        self.inputs.push(first.ok_or_else(|| Error::argument("there is no host to replay at"))?);
        Ok(self)
    }

    /// Uses the first host of a network of two hosts as the source of `input`, and writes what
    /// reaches the second to `output`.
    ///
    /// # Errors
    /// [`Error::Argument`] if the network does not have exactly two hosts.
    pub fn between_two_hosts(mut self, input: &Path, output: &Path) -> Result<Replay> {
        let hosts: Vec<&str> = self.topology.hosts().map(|(_, host)| host.name.as_str()).collect();
        let [first, second] = hosts[..] else {
            return Err(Error::Argument(format!(
                "the network has {} hosts: name them with --in HOST=FILE --out HOST=FILE",
                hosts.len()
            )));
        };
        let (first, second) = (CaptureAt::new(first, input), CaptureAt::new(second, output));
        self.inputs.push(first);
        self.outputs.push(second);
        Ok(self)
    }

    /// Runs the replay to its end.
    ///
    /// # Errors
    /// Unknown hosts, a file named twice, files that cannot be read or written, captures that span
    /// more than 213 days. A capture that is damaged further on is not an error: see
    /// [`ReplaySummary::problems`].
    pub fn run(self) -> Result<ReplaySummary> {
        self.run_with_progress(&mut |_| {})
    }

    /// Like [`Replay::run`]; calls `progress` now and then.
    ///
    /// # Errors
    /// As for [`Replay::run`].
    pub fn run_with_progress(self, progress: &mut dyn FnMut(BytesRead)) -> Result<ReplaySummary> {
        let has_traffic = self.topology.has_traffic();
        if self.inputs.is_empty() && !has_traffic {
            let what = "nothing to replay: give --in HOST=FILE, or IN.pcap and OUT.pcap, or write [[traffic]] in the spec";
            return Err(Error::argument(what));
        }
        let mut go_on = |read| {
            progress(read);
            ControlFlow::Continue(())
        };
        self.play(&[], TimesIn::Files, &mut go_on).map(|(summary, _)| summary)
    }

    /// Runs the replay to its end, with frames in memory beside the captures. Their times count
    /// from time zero of the run: the earliest time of the captures. Also returns the times of
    /// every frame. `progress` is called now and then, and may end the run.
    ///
    /// # Errors
    /// As for [`Replay::run`]; times that are not in order; [`Error::Interrupted`] if `progress`
    /// ends the run.
    pub fn run_columns(
        self,
        frames: &[FramesAt],
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<(ReplaySummary, TimeColumns)> {
        self.play(frames, TimesIn::Memory, progress)
    }

    fn play(
        self,
        frames: &[FramesAt],
        times: TimesIn,
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<(ReplaySummary, TimeColumns)> {
        let logs = self.times.iter().chain(&self.packet_log).map(PathBuf::as_path);
        refuse_overwriting(&self.inputs, &self.outputs, logs)?;
        let captures = Captures::open(self.inputs.iter().map(|capture| capture.file.as_path()))?;
        let start_ns = captures.start_ns().unwrap_or(0);
        let inputs = Inputs { captures, arrays: Arrays::new(frames)?, until: self.until };
        let follows = !self.inputs.is_empty()
            || !frames.is_empty()
            || self.times.is_some()
            || self.packet_log.is_some()
            || matches!(times, TimesIn::Memory);
        let is_whole = !self.topology.transfers.is_empty() || self.sample.is_some();
        let partition = self.workers.partition(&self.topology, self.partition_seed).filter(|_| !is_whole);
        if let Some(partition) = partition.filter(|partition| partition.count() > 1) {
            return self.play_in_parts(&partition, (frames, inputs), (start_ns, times, follows), progress);
        }
        if follows {
            let observers = observers(&self.topology, start_ns, self.packet_log.as_deref())?;
            self.play_observed(observers, (frames, inputs), (start_ns, times), progress)
        } else {
            self.play_observed((), (frames, inputs), (start_ns, times), progress)
        }
    }

    fn options(&self) -> Options {
        Options { executors: compiled(|_| {}), ..Options::with_seed(self.seed) }
    }

    /// Finds where frames enter and leave, and creates the output files.
    fn ends(&self, topology: &Topology, edges: &[Edge], frames: &[FramesAt]) -> Result<Ends> {
        let places = self.inputs.iter().map(|input| &input.at).chain(frames.iter().map(|frames| &frames.at));
        Ends::attach(topology, edges, places, &self.outputs)
    }

    /// Starts what keeps the times of every frame.
    fn rows(&self, times: TimesIn, topology: &Topology, edges: &[Edge], start_ns: u64) -> Result<Rows> {
        match (times, &self.times) {
            (TimesIn::Memory, _) => Ok(Rows::Columns(TimeColumns::default())),
            (TimesIn::Files, Some(path)) => times_file(path, topology, edges, start_ns),
            (TimesIn::Files, None) => Ok(Rows::Nowhere),
        }
    }

    fn play_observed<O: ReplayObserver>(
        mut self,
        observer: O,
        (frames, inputs): (&[FramesAt], Inputs),
        (start_ns, times): (u64, TimesIn),
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<(ReplaySummary, TimeColumns)> {
        let topology = std::mem::take(&mut self.topology);
        let network = Network::observed(topology, self.options(), observer);
        let edges: Vec<Edge> = network.edges().collect();
        let traffic = TrafficRun::new(network.topology(), &edges, self.seed, self.until)?;
        let transfers = TransferRun::new(network.topology(), &edges, self.seed, self.until)?;
        let ends = self.ends(network.topology(), &edges, frames)?;
        let rows = self.rows(times, network.topology(), &edges, start_ns)?;
        let mut run = ReplayRun::new(network, (traffic, transfers), ends, start_ns);
        run.rows_to(rows);
        run.sample(self.sample);
        let (problems, left_out) = run.play(inputs, progress)?;
        let (jitter, traffic, transfers) = (run.realised_delays(), run.flows(), run.transfers());
        let out_of_order = run.out_of_order();
        let (pairs, above_mtu, links) = (run.pairs(), run.above_mtu(), run.links());
        let (accounting, columns) = run.finish()?;
        let summary = ReplaySummary {
            accounting,
            jitter,
            pairs,
            traffic,
            transfers,
            links,
            seed: self.seed,
            start_ns,
            out_of_order,
            above_mtu,
            left_out,
            problems,
            workers: None,
        };
        Ok((summary, columns))
    }

    fn play_in_parts(
        self,
        partition: &Partition,
        (frames, inputs): (&[FramesAt], Inputs),
        (start_ns, times, follows): (u64, TimesIn, bool),
        progress: &mut dyn FnMut(BytesRead) -> ControlFlow<()>,
    ) -> Result<(ReplaySummary, TimeColumns)> {
        let topology = &self.topology;
        let edges = edges(topology);
        let log = |_| observers(topology, start_ns, self.packet_log.as_deref());
        let observers = follows.then_some(()).map(log).transpose()?;
        let traffic = TrafficRun::new(topology, &edges, self.seed, self.until)?;
        let ends = self.ends(topology, &edges, frames)?;
        let rows = self.rows(times, topology, &edges, start_ns)?;
        let options = self.options();
        let observers = observers.map(|observers| (observers, rows));
        let run = ParallelRun {
            topology,
            partition,
            options,
            edges: &edges,
            traffic,
            ends,
            inputs,
            start_ns,
            observers,
        };
        let ParallelResults {
            accounting,
            columns,
            jitter,
            counters,
            pairs,
            traffic,
            out_of_order,
            above_mtu,
            left_out,
            problems,
            profiles,
        } = run.play(progress)?;
        let summary = ReplaySummary {
            accounting,
            jitter,
            pairs,
            traffic: traffic.reports(topology),
            transfers: Vec::new(),
            links: links::results(topology, &counters, None),
            seed: self.seed,
            start_ns,
            out_of_order,
            above_mtu,
            left_out,
            problems,
            workers: Some(Workers::new(partition, profiles)),
        };
        Ok((summary, columns))
    }
}

/// Returns the edges of a network in the order of [`Network::edges`].
fn edges(topology: &Topology) -> Vec<Edge> {
    let of_host = |(node, host): (NodeId, &fastpath_spec::Node)| {
        (0..host.interfaces.len()).map(move |interface| Edge { node, interface })
    };
    topology.hosts().flat_map(of_host).collect()
}

/// Where the times of frames go.
enum TimesIn {
    /// To the times file, if one is named.
    Files,
    /// To columns in memory.
    Memory,
}

/// Refuses an output that is also an input, or that is named twice.
fn refuse_overwriting<'p>(
    inputs: &[CaptureAt],
    outputs: &'p [CaptureAt],
    logs: impl Iterator<Item = &'p Path>,
) -> Result<()> {
    let mut taken: Vec<PathBuf> =
        inputs.iter().filter_map(|capture| fs::canonicalize(&capture.file).ok()).collect();
    for file in outputs.iter().map(|capture| capture.file.as_path()).chain(logs) {
        // A file that does not exist yet has no canonical form; two names of it differ only in
        // their directory.
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if taken.contains(&path) {
            let file = file.display();
            return Err(Error::Argument(format!("{file}: named twice; give every output a file of its own")));
        }
        taken.push(path);
    }
    Ok(())
}
