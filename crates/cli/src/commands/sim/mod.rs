//! `fastpath sim`: runs a workload through a simulated packet processor.
//!
//! ```text
//! MACHINE ─┐
//! program ─┼─▶ fastpath::simulate (texts, changed by --set) ─▶ fastpath_sim ─▶ outcome ─▶ show (tables), JSON
//! workload ┘
//! ```
//!
//! Read first: `question.rs`.

mod compare;
pub(super) mod plot;
pub(super) mod question;
mod setup;
mod workers;

use crate::{Answer, view};
use anyhow::Context;
use clap::{Args, Subcommand};
use fastpath::replay::WorkerCount;
use fastpath::sim::case::Input;
use fastpath::simulate::SimulationRun;
use fastpath::units::Time;
use fastpath_report::text as print;
use indicatif::{ProgressBar, ProgressStyle};
use question::Question;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// At this forwarded share or above the bottleneck is not widened.
const CARRIES: f64 = 0.999;

/// Simulate a packet processor.
///
/// The result is throughput, losses, latency, utilisation and the bottleneck. The exit code is 1 if
/// the simulated machine deadlocks.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Workloads: line-rate | constant | poisson | on-off | links | closed | pcap=FILE, then fields
  rate=10Mpps (or 5Gbit), size=64 (or imix), ports=4 (or 0+2), flows=64, duration=10ms,
  on=100us, off=100us, priorities=1, groups=1; links,rate=128kbit,links=480 are multiplexed links,
  closed,population=64,think=10us is a closed network: each customer has one frame inside or thinks
  rate is of constant, poisson and links, on and off are of on-off, size is not of pcap
  (--describe workload has every field)
  warm-up=1ms is not counted (otherwise a tenth of the duration); precision=1% stops before the end once the
  95 % interval of the mean latency is within 1 % of it")]
pub(crate) struct Sim {
    #[command(subcommand)]
    action: Option<Action>,
    /// A shipped machine (see --list), a machine file (TOML), or this-host=RECORDS with the records
    /// of `fastpath measure host`.
    #[arg(required_unless_present_any = ["list", "describe", "print"])]
    machine: Option<String>,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    plot: plot::Plot,
    /// List the shipped machines and programs.
    #[arg(long, conflicts_with = "machine")]
    list: bool,
    /// Describe a block of machine and program files: keys, defaults, ranges, and an example that
    /// runs. Without BLOCK, list the blocks.
    #[arg(long, value_name = "BLOCK", num_args = 0..=1, conflicts_with_all = ["machine", "list"])]
    describe: Option<Option<String>>,
    /// Print a shipped machine or program as a file to start from, with the changes of --set.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["machine", "list", "describe"])]
    print: Option<String>,
    /// Write every visit of a packet to a unit to this file, for https://ui.perfetto.dev.
    #[arg(long, alias = "trace", value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Widen the bottleneck and run again, even if no frame is lost.
    #[arg(long)]
    remedy: bool,
    #[command(flatten)]
    workers: workers::SimWorkers,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    Compare(compare::Compare),
    #[command(alias = "experiment")]
    Setup(setup::Setup),
}

impl Sim {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            Some(Action::Compare(command)) => return command.run(),
            Some(Action::Setup(command)) => return command.run(),
            None => {}
        }
        if self.list {
            view::print(&view::Shipped, self.json)?;
            return Ok(Answer::Yes);
        }
        if let Some(block) = &self.describe {
            view::print(&view::Described::named(block.as_deref())?, self.json)?;
            return Ok(Answer::Yes);
        }
        if let Some(name) = &self.print {
            view::print(&view::ShippedText(self.question.text(name)?), self.json)?;
            return Ok(Answer::Yes);
        }
        let machine = self.machine.as_deref().context("name a machine, or --list")?;
        let simulation = self.question.simulation(machine)?;
        let input = simulation.case()?.input()?;
        let workers = self.workers.count();
        let mut run = simulate(&input, self.timeline.as_deref(), workers)?;
        let is_short = run.outcome.share() < CARRIES && !self.json;
        if (self.remedy || is_short) && run.outcome.deadlock.is_none() {
            run.find_remedy(&input, workers)?;
        }
        self.plot.write(input.seed, vec![run.row(simulation.parameters())], None)?;
        view::print(&run, self.json)?;
        Ok(answer(&run))
    }
}

/// Runs `input`, with a bar on a terminal, or with a trace.
fn simulate(input: &Input, trace: Option<&Path>, workers: WorkerCount) -> anyhow::Result<SimulationRun> {
    let bar = bar(input)?;
    if bar.is_hidden() {
        return Ok(fastpath::simulate::run(input, trace, workers, None)?);
    }
    let start = Instant::now();
    let mut show = |now: Time| {
        bar.set_position(now.as_ns());
        let speed = now.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9);
        bar.set_message(print::number(speed));
    };
    let run = fastpath::simulate::run(input, trace, workers, Some(&mut show));
    bar.finish_and_clear();
    Ok(run?)
}

/// A bar of simulated time; it hides itself where there is no terminal.
fn bar(input: &Input) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template(
        "{bar:30} {percent} % of the simulated time, {msg} simulated s per real s ({elapsed}, {eta} left)",
    )?;
    Ok(ProgressBar::new(input.workload.duration.as_ns().max(1)).with_style(style))
}

/// The answer of a run: no if the machine deadlocked.
fn answer(run: &SimulationRun) -> Answer {
    if run.outcome.deadlock.is_some() { Answer::No } else { Answer::Yes }
}
