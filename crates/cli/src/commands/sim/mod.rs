//! `fastpath sim`: what a machine that need not exist does with a workload.
//!
//! ```text
//! MACHINE ─┐
//! program ─┼─▶ fastpath::simulate (texts, changed by --set) ─▶ fastpath_sim ─▶ outcome ─▶ show (tables), JSON
//! workload ┘
//! ```
//!
//! Read first: `question.rs`.

mod compare;
mod experiment;
mod list;
pub(super) mod plot;
pub(super) mod question;
mod show;

use crate::{Answer, print};
use anyhow::Context;
use clap::{Args, Subcommand};
use fastpath_sim::case::Input;
use fastpath_sim::run::{TraceError, trace};
use fastpath_sim::{Outcome, Remedy, Visit, find_bottleneck, observe, remedy, run};
use indicatif::{ProgressBar, ProgressStyle};
use question::Question;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// With no more than this share lost, nothing needs to be moved.
const CARRIES: f64 = 0.999;
/// Visits between two looks at the progress bar.
const VISITS_PER_LOOK: u64 = 1 << 16;

/// Simulate a packet processor: throughput, where frames are lost, latency, utilisation, and what
/// limits it.
///
/// The exit code is 1 if the simulated machine deadlocks.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Workloads: line-rate | constant | poisson | on-off | links | pcap=FILE, then fields
  rate=10Mpps (or 5Gbit), size=64 (or imix), ports=4 (or 0+2), flows=64, duration=10ms,
  on=100us, off=100us, priorities=1, groups=1; links,rate=128kbit,links=480 are multiplexed links
  warm-up=1ms is not counted (otherwise a tenth of the duration); precision=1% stops before the end once the
  95 % interval of the mean latency is within 1 % of it

Examples:
  fastpath sim --list
  fastpath sim ixp1200 --program linkem --workload line-rate,size=64,ports=4,duration=100ms
  fastpath sim xeon-e5-2687wv4 --program netcope --set program.h=10 --set machine.cpu.cores=8 --json
  fastpath sim mine.toml --program mine-program.toml --workload pcap=uplink.pcap --trace run.json
  fastpath sim compare ixp1200 ixp1200-egress2 --program linkem --workload line-rate,size=1518
  fastpath sim experiment sixteen-hosts --plot throughput.html
  fastpath measure host -o host.jsonl && fastpath measure pipeline --size 64,512,1514 -o costs.jsonl
  fastpath sim this-host=host.jsonl --program pipeline=costs.jsonl --workload line-rate,size=64")]
pub(crate) struct Sim {
    #[command(subcommand)]
    action: Option<Action>,
    /// A shipped machine (see --list), a machine file (TOML), or this-host=RECORDS of `fastpath
    /// measure host`.
    #[arg(required_unless_present = "list")]
    machine: Option<String>,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    plot: plot::Plot,
    /// List the shipped machines and programs.
    #[arg(long, conflicts_with = "machine")]
    list: bool,
    /// Write every visit of a packet to a unit to this file; open it in https://ui.perfetto.dev.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Widen the bottleneck and run again, even where nothing is lost.
    #[arg(long)]
    remedy: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    Compare(compare::Compare),
    Experiment(experiment::Experiment),
}

/// A finished run.
struct Finished {
    machine: String,
    program: String,
    outcome: Outcome,
    /// What it took, in real seconds.
    elapsed: f64,
    remedy: Option<Remedy>,
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Some(Action::Compare(command)) => return command.run(),
            Some(Action::Experiment(command)) => return command.run(),
            None => {}
        }
        let mut out = io::stdout().lock();
        if self.list {
            list::show(&mut out, self.json)?;
            return Ok(Answer::Yes);
        }
        let machine = self.machine.as_deref().context("name a machine, or --list")?;
        let input = self.question.case(machine)?.input()?;
        let mut finished = simulate(&input, self.trace.as_deref())?;
        let is_short = finished.outcome.share() < CARRIES && !self.json;
        if (self.remedy || is_short) && finished.outcome.deadlock.is_none() {
            finished.remedy = remedy_of(&input, &finished.outcome)?;
        }
        self.plot.write(input.seed, vec![finished.row(&self.question)])?;
        if self.json {
            writeln!(out, "{}", finished.json()?)?;
        } else {
            show::one(&mut out, &finished)?;
        }
        Ok(finished.answer())
    }
}

/// Runs `input`, with a bar on a terminal, or with a trace.
fn simulate(input: &Input, traced: Option<&Path>) -> anyhow::Result<Finished> {
    let Input { machine, program, workload, seed } = input;
    let start = Instant::now();
    let bar = bar(input)?;
    let mut outcome = match traced {
        Some(path) => {
            let place = || path.display().to_string();
            let file = BufWriter::new(File::create(path).with_context(place)?);
            trace(machine, program, workload, *seed, file).map_err(|error| match error {
                TraceError::Run(error) => anyhow::Error::from(error),
                error @ TraceError::Io(_) => anyhow::Error::from(error).context(place()),
            })?
        }
        // Watching costs a little: only where somebody sees it.
        None if bar.is_hidden() => run(machine, program, workload, *seed)?,
        None => {
            let mut visits = 0;
            let mut look = |visit: Visit| {
                visits += 1;
                if visits % VISITS_PER_LOOK == 0 {
                    bar.set_position(visit.end.as_ns());
                    let speed = visit.end.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9);
                    bar.set_message(print::number(speed));
                }
            };
            observe(machine, program, workload, *seed, &mut look)?
        }
    };
    bar.finish_and_clear();
    let elapsed = start.elapsed().as_secs_f64();
    find_bottleneck(machine, program, workload, *seed, &mut outcome)?;
    let (machine, program) = (machine.name.clone(), program.name().to_owned());
    Ok(Finished { machine, program, outcome, elapsed, remedy: None })
}

fn remedy_of(input: &Input, outcome: &Outcome) -> anyhow::Result<Option<Remedy>> {
    Ok(remedy(&input.machine, &input.program, &input.workload, input.seed, outcome)?)
}

/// A bar of simulated time; it hides itself where there is no terminal.
fn bar(input: &Input) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template(
        "{bar:30} {percent} % of the simulated time, {msg} simulated s per real s ({elapsed}, {eta} left)",
    )?;
    Ok(ProgressBar::new(input.workload.duration.as_ns().max(1)).with_style(style))
}

impl Finished {
    fn events_per_second(&self) -> f64 {
        self.outcome.events as f64 / self.elapsed.max(1e-9)
    }

    fn answer(&self) -> Answer {
        if self.outcome.deadlock.is_some() { Answer::No } else { Answer::Yes }
    }

    /// Where the run is among others and what it found, for records and plots.
    fn row(&self, question: &Question) -> plot::Row {
        let mut place = question.parameters();
        place.insert("machine".to_owned(), json!(self.machine));
        let outcome = &self.outcome;
        let mut found = Map::from_iter([
            ("offered_pps".to_owned(), json!(outcome.offered_pps)),
            ("forwarded_pps".to_owned(), json!(outcome.forwarded_pps)),
            ("share".to_owned(), json!(outcome.share())),
            ("bottleneck".to_owned(), json!(outcome.bottleneck)),
        ]);
        if let Some(l) = &outcome.latency_us {
            for (name, us) in [("mean", l.mean), ("p50", l.p50), ("p99", l.p99), ("max", l.max)] {
                found.insert(format!("latency_{name}_us"), json!(us));
            }
        }
        for (name, unit) in &outcome.units {
            found.insert(format!("busy {name}"), json!(unit.busy));
        }
        (place, found)
    }

    /// The outcome, and what scripts need beside it.
    fn json(&self) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(&self.outcome)?;
        let utilisation: Map<String, Value> =
            self.outcome.units.iter().map(|(name, unit)| (name.clone(), json!(unit.busy))).collect();
        if let Value::Object(top) = &mut value {
            top.insert("machine".to_owned(), json!(self.machine));
            top.insert("program".to_owned(), json!(self.program));
            top.insert("utilisation".to_owned(), Value::Object(utilisation));
            top.insert("elapsed_s".to_owned(), json!(self.elapsed));
            top.insert("events_per_second".to_owned(), json!(self.events_per_second()));
            top.insert("remedy".to_owned(), json!(self.remedy));
        }
        Ok(value)
    }
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    format!("{} %", print::number(100.0 * share))
}
