//! `fastpath replay`: captures through a network, offline, in virtual time, the same bytes for the
//! same seed.
//!
//! ```text
//!  a.pcap ─┐                                       ┌─▶ b.pcap  (nanoseconds)
//!          ├─▶ merge by time ─▶ Network ─▶ delivery ┤
//!  c.pcap ─┘                       └─▶ follow       └─▶ d.pcap
//!                                         └─▶ --times FILE      (picoseconds)
//! ```
//!
//! Time zero of the run is the earliest time of the captures. Memory is bounded: one packet of each
//! capture, and what the network holds. Read first: `run.rs`, then `follow.rs`.

mod follow;
pub(in crate::commands) mod merge;
mod place;
mod run;

use crate::{Answer, spec_file};
use anyhow::{bail, ensure};
use clap::Args;
use fastpath_net::Conservation;
use fastpath_spec::Topology;
use merge::Merge;
use place::Place;
use run::{Jitter, Run};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Send captures through a network, offline and exactly.
///
/// Frames of a capture enter at a host at their times; what reaches a host is written with the
/// times at which it would have arrived. No privileges, no waiting: time is virtual.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fastpath replay dsl.toml in.pcap out.pcap
  fastpath replay net.ns --in client=c.pcap --out server=s.pcap --times times.csv")]
pub(crate) struct Replay {
    /// The network: a spec file (TOML), or an Emulab script (.ns).
    spec: PathBuf,
    /// In a network of two hosts: the capture that enters at the first.
    #[arg(value_name = "IN.pcap", requires = "output", conflicts_with_all = ["inputs", "outputs"])]
    input: Option<PathBuf>,
    /// In a network of two hosts: the file for what reaches the second.
    #[arg(value_name = "OUT.pcap")]
    output: Option<PathBuf>,
    /// A capture that enters at a host; with several interfaces, HOST:INTERFACE=FILE. May be
    /// repeated.
    #[arg(long = "in", value_name = "HOST=FILE")]
    inputs: Vec<Place>,
    /// The file for what reaches a host, or one interface of it. May be repeated.
    #[arg(long = "out", value_name = "HOST=FILE")]
    outputs: Vec<Place>,
    /// Where to write the exact times: index, in_ps, out_ps or why there is none.
    #[arg(long, value_name = "FILE")]
    times: Option<PathBuf>,
    /// Where to write what became of every packet on every link, for Wireshark: times and reasons
    /// are comments.
    #[arg(long, value_name = "FILE.pcapng")]
    ledger: Option<PathBuf>,
    /// The seed of every random choice; otherwise the one in the spec, otherwise 1.
    #[arg(long)]
    seed: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The warnings of the description have been said.
    #[arg(skip)]
    warned: bool,
}

/// The seed when neither the command line nor the spec gives one.
const SEED: u64 = 1;

impl Replay {
    /// A capture that enters at the first host of a network, whose warnings have been said.
    pub(crate) fn at_first_host(
        spec: PathBuf,
        capture: &Path,
        seed: Option<u64>,
        json: bool,
    ) -> anyhow::Result<Replay> {
        let topology = spec_file::load_again(&spec)?.topology;
        let Some((_, host)) = topology.hosts().next() else {
            bail!("{}: there is no host to replay at", spec.display())
        };
        let inputs = vec![Place::new(&host.name, capture)];
        Ok(Replay {
            spec,
            input: None,
            output: None,
            inputs,
            outputs: Vec::new(),
            times: None,
            ledger: None,
            seed,
            json,
            warned: true,
        })
    }

    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        let load = if self.warned { spec_file::load_again } else { spec_file::load };
        let topology = load(&self.spec)?.topology;
        let (inputs, outputs) = self.places(&topology)?;
        ensure!(!inputs.is_empty(), "nothing to replay: give --in HOST=FILE, or IN.pcap and OUT.pcap");
        let notes = self.times.iter().chain(&self.ledger).map(PathBuf::as_path);
        refuse_overwriting(&inputs, &outputs, notes)?;
        let seed = self.seed.or(topology.seed).unwrap_or(SEED);
        let captures = Merge::open(inputs.iter().map(|place| place.file.as_path()))?;
        let start_ns = captures.start_ns().unwrap_or(0);

        let mut run = Run::new(topology, seed, start_ns, self.ledger.as_deref())?;
        run.attach(&inputs, &outputs, self.times.as_deref())?;
        let problems = run.play(captures)?;
        let jitter = run.jitter();
        let conservation = run.finish()?;
        self.print(&conservation, &jitter, seed)?;
        let mut problems = problems.into_iter();
        let Some(first) = problems.next() else { return Ok(Answer::Yes) };
        problems.for_each(|other| eprintln!("fastpath: {other:#}"));
        Err(first)
    }

    /// What the command line says of inputs and outputs, in the one form or the other.
    fn places(&self, topology: &Topology) -> anyhow::Result<(Vec<Place>, Vec<Place>)> {
        let (Some(input), Some(output)) = (&self.input, &self.output) else {
            return Ok((self.inputs.clone(), self.outputs.clone()));
        };
        let hosts: Vec<&str> = topology.hosts().map(|(_, host)| host.name.as_str()).collect();
        let [first, second] = hosts[..] else {
            bail!(
                "{} has {} hosts: say which with --in HOST=FILE --out HOST=FILE",
                self.spec.display(),
                hosts.len()
            )
        };
        Ok((vec![Place::new(first, input)], vec![Place::new(second, output)]))
    }

    fn print(&self, books: &Conservation, jitter: &[Jitter], seed: u64) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let conservation = json!({
                "in": books.total_in(),
                "delivered": books.delivered,
                "dropped": books.dropped,
                "held": books.held,
            });
            let mut all = json!({ "conservation": conservation, "seed": seed });
            if !jitter.is_empty() {
                all["jitter"] = json!(jitter);
            }
            return writeln!(out, "{all}");
        }
        writeln!(out, "in         {:>12}", books.total_in())?;
        writeln!(out, "delivered  {:>12}", books.delivered)?;
        writeln!(out, "dropped    {:>12}", books.total_dropped())?;
        for (reason, count) in &books.dropped {
            writeln!(out, "  {reason:<13}{count:>8}")?;
        }
        writeln!(out, "held       {:>12}", books.held)?;
        writeln!(out, "seed       {seed:>12}")?;
        for Jitter { from, to, delays, .. } in jitter {
            writeln!(out, "delay      {from} → {to}: {delays}")?;
        }
        Ok(())
    }
}

/// An output that is also an input would be empty before it is read.
fn refuse_overwriting<'p>(
    inputs: &[Place],
    outputs: &'p [Place],
    notes: impl Iterator<Item = &'p Path>,
) -> anyhow::Result<()> {
    let mut taken: Vec<PathBuf> =
        inputs.iter().filter_map(|place| fs::canonicalize(&place.file).ok()).collect();
    for file in outputs.iter().map(|place| place.file.as_path()).chain(notes) {
        // A file that does not exist yet has no canonical form; two names of it differ only by
        // their directory.
        let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        ensure!(
            !taken.contains(&path),
            "{}: named twice; give every output a file of its own",
            file.display()
        );
        taken.push(path);
    }
    Ok(())
}
