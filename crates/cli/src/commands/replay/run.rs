//! A replay under way: the network driven in virtual time from the captures to the output files.

use super::follow::Follower;
use super::merge::{Entry, Merge};
use super::place::Place;
use crate::commands::switch::executor;
use anyhow::{Context, ensure};
use fastpath_engine::DelayReport;
use fastpath_net::ledger::{self, Ledger};
use fastpath_net::{Conservation, Delivery, EdgeId, Executors, FRAME_MAX, Network, Options, Reason};
use fastpath_spec::{LinkId, Topology};
use fastpath_units::Time;
use fastpath_wire::pcap::{LINKTYPE_ETHERNET, Writer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Memory for the frames in flight: 0.8 s of 10 Gbit/s.
const POOL_LIMIT: NonZeroUsize = NonZeroUsize::new(1 << 30).unwrap();
const PS_PER_NS: u64 = 1000;

/// Who watches: `--times`, and the ledger if there is one.
type Observers = (Follower, Option<Ledger<Book>>);

/// See the head of this file.
pub(crate) struct Run {
    network: Network<Observers>,
    /// By capture: where its frames enter.
    entrances: Vec<EdgeId>,
    /// By edge: which of `outputs` takes what is delivered there.
    exits: Vec<Option<usize>>,
    outputs: Vec<Output>,
    times: Box<dyn Write>,
    /// Time zero, nanoseconds since 1970.
    start_ns: u64,
    now: Time,
    /// Frames that could not enter.
    refused: BTreeMap<Reason, u64>,
    /// Packets of a capture that were older than one before them.
    disordered: u64,
}

/// The jitter of one direction of a link.
#[derive(Serialize)]
pub(crate) struct Jitter {
    link: String,
    pub(crate) from: String,
    pub(crate) to: String,
    #[serde(flatten)]
    pub(crate) delays: DelayReport,
}

struct Output {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl Run {
    /// A network at rest whose time zero is `start_ns` after 1970.
    pub(crate) fn new(
        topology: Topology,
        seed: u64,
        start_ns: u64,
        ledger: Option<&Path>,
    ) -> anyhow::Result<Run> {
        let options = Options { executors: Executors::new(executor), ..Options::new(seed, POOL_LIMIT) };
        let ledger = ledger.map(|path| Book::create(path, &topology, start_ns)).transpose()?;
        let network = Network::observed(topology, options, (Follower::default(), ledger.map(Ledger::new)));
        let edges = network.edges().len();
        Ok(Run {
            exits: vec![None; edges],
            network,
            entrances: Vec::new(),
            outputs: Vec::new(),
            times: Box::new(io::sink()),
            start_ns,
            now: Time::ZERO,
            refused: BTreeMap::new(),
            disordered: 0,
        })
    }

    /// Finds the edges of the captures and outputs, and creates the output files.
    pub(crate) fn attach(
        &mut self,
        inputs: &[Place],
        outputs: &[Place],
        times: Option<&Path>,
    ) -> anyhow::Result<()> {
        self.entrances =
            inputs.iter().map(|place| place.edge(&self.network)).collect::<anyhow::Result<_>>()?;
        for (index, place) in outputs.iter().enumerate() {
            for edge in place.edges(&self.network)? {
                let exit = &mut self.exits[edge.0 as usize];
                ensure!(exit.is_none(), "{place}: this interface has an output already; give it one");
                *exit = Some(index);
            }
        }
        self.outputs =
            outputs.iter().map(|place| Output::create(&place.file)).collect::<anyhow::Result<_>>()?;
        if let Some(path) = times {
            self.times = Box::new(create(path)?);
            writeln!(self.times, "index,in_ps,out_ps").context("--times")?;
        }
        Ok(())
    }

    /// Plays everything. Gives back what was wrong with captures that ended early.
    pub(crate) fn play(&mut self, mut captures: Merge) -> anyhow::Result<Vec<anyhow::Error>> {
        let (mut spent, mut latest_ns) = (None, self.start_ns);
        while let Some(entry) = captures.next(spent.take()) {
            self.disordered += u64::from(entry.ns < latest_ns);
            latest_ns = latest_ns.max(entry.ns);
            self.advance(self.time_of(&entry)?)?;
            self.enter(&entry);
            spent = Some(entry);
        }
        self.drain()?;
        Ok(captures.into_problems())
    }

    /// Lets out what is inside. Where traces start over for ever it ends when no frame is left, or
    /// when those that are have waited for two rounds of the longest: their link is paused for
    /// good.
    fn drain(&mut self) -> anyhow::Result<()> {
        let mut still_since = None;
        while let Some(at) = self.network.next_at() {
            if let (Some(round), true) = (self.network.endless_round(), self.network.is_still()) {
                let since = *still_since.get_or_insert(at);
                let waited = at.since(since) > round.saturating_add(round);
                if waited || self.network.conservation().held == 0 {
                    break;
                }
            } else {
                still_since = None;
            }
            self.advance(at)?;
        }
        Ok(())
    }

    /// The delays asked for and got, of each direction of a link that has jitter at the end.
    pub(crate) fn jitter(&self) -> Vec<Jitter> {
        let topology = self.network.topology();
        let directions = (0..topology.links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        let report = |(link, index): (usize, usize)| {
            let pipe = self.network.pipe(LinkId(link as u32), index);
            let delays = DelayReport::of(&pipe.spec(), pipe.delays()?)?;
            let link = &topology.links[link];
            let [from, to] = [index, 1 - index].map(|end| topology.node(link.ends[end].0).name.clone());
            Some(Jitter { link: link.name.clone(), from, to, delays })
        };
        directions.filter_map(report).collect()
    }

    /// Completes the files and balances the books.
    pub(crate) fn finish(mut self) -> anyhow::Result<Conservation> {
        let start_ps = self.start_ps();
        self.network.observer_mut().0.write_rest(start_ps, &mut self.times).context("--times")?;
        self.times.flush().context("--times")?;
        for output in self.outputs {
            output.writer.finish().with_context(|| output.path.display().to_string())?;
        }
        if self.disordered > 0 {
            let count = self.disordered;
            eprintln!(
                "fastpath: packets older than one before them in their capture: {count}; they entered late"
            );
        }
        let mut books = self.network.conservation();
        for (reason, count) in self.refused {
            books.entered += count;
            *books.dropped.entry(reason.name()).or_default() += count;
        }
        if let Some(ledger) = self.network.into_observer().1 {
            ledger.into_sink().finish()?;
        }
        assert!(books.holds(), "frames were lost or made unaccounted: {books:?}");
        Ok(books)
    }

    fn time_of(&self, entry: &Entry) -> anyhow::Result<Time> {
        let after_ns = entry.ns.saturating_sub(self.start_ns);
        let at = after_ns.checked_mul(PS_PER_NS).map(Time::from_ps);
        at.context("the captures span more than 213 days; shift the times of one (editcap -t)")
    }

    /// Lets time pass to `at`: writes what is due and the rows that are complete.
    fn advance(&mut self, at: Time) -> anyhow::Result<()> {
        // Time does not run backwards: what a capture holds out of order enters late.
        self.now = self.now.max(at);
        while let Some(delivery) = self.network.pop(self.now) {
            self.write(&delivery)?;
            self.network.pool_mut().free(delivery.frame);
        }
        let start_ps = self.start_ps();
        self.network.observer_mut().0.write_closed(start_ps, &mut self.times).context("--times")
    }

    /// The frame of a capture leaves its host, as long as it was on the wire; what a snap length
    /// cut is zeros.
    fn enter(&mut self, entry: &Entry) {
        let Some(mut frame) = self.network.pool_mut().alloc(entry.wire_len) else {
            let reason = if entry.wire_len > FRAME_MAX { Reason::TooBig } else { Reason::PoolFull };
            *self.refused.entry(reason).or_default() += 1;
            self.network.observer_mut().0.refused(self.now, reason);
            return;
        };
        let (known, unknown) = self.network.pool_mut().bytes_mut(&mut frame).split_at_mut(entry.data.len());
        known.copy_from_slice(&entry.data);
        unknown.fill(0);
        if entry.data.len() < entry.wire_len {
            self.network.observer_mut().0.cut(&frame, entry.data.len());
        }
        self.network.push(self.now, self.entrances[entry.capture], frame);
    }

    fn write(&mut self, delivery: &Delivery) -> anyhow::Result<()> {
        let captured = self.network.observer_mut().0.captured(&delivery.frame);
        let Some(index) = self.exits[delivery.edge.0 as usize] else { return Ok(()) };
        let bytes = self.network.pool().bytes(&delivery.frame);
        let ns = self.start_ns + delivery.at.as_ns();
        let output = &mut self.outputs[index];
        let written = output.writer.write_packet(ns, bytes.len() as u32, &bytes[..captured]);
        written.with_context(|| output.path.display().to_string())
    }

    fn start_ps(&self) -> u128 {
        u128::from(self.start_ns) * u128::from(PS_PER_NS)
    }
}

/// The file of the ledger, and the first thing that went wrong with it.
struct Book {
    path: PathBuf,
    writer: ledger::Writer<BufWriter<File>>,
    failure: io::Result<()>,
}

impl Book {
    fn create(path: &Path, topology: &Topology, start_ns: u64) -> anyhow::Result<Book> {
        let writer = ledger::Writer::new(create(path)?, topology, start_ns);
        let writer = writer.with_context(|| path.display().to_string())?;
        Ok(Book { path: path.to_owned(), writer, failure: Ok(()) })
    }

    fn finish(self) -> anyhow::Result<()> {
        let written = self.failure.and_then(|()| self.writer.finish());
        written.map(drop).with_context(|| self.path.display().to_string())
    }
}

impl ledger::Sink for Book {
    fn take(&mut self, entry: ledger::Entry, bytes: &[u8]) {
        if self.failure.is_ok() {
            self.failure = self.writer.write(&entry, bytes);
        }
    }
}

impl Output {
    fn create(path: &Path) -> anyhow::Result<Output> {
        let writer = Writer::new(create(path)?, LINKTYPE_ETHERNET);
        Ok(Output { path: path.to_owned(), writer: writer.with_context(|| path.display().to_string())? })
    }
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path);
    Ok(BufWriter::new(file.with_context(|| format!("{}: cannot write this file", path.display()))?))
}
