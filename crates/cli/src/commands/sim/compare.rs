//! `fastpath sim compare`: the same simulation on several machines.

use super::plot::Plot;
use super::question::Question;
use super::workers::SimWorkers;
use crate::progress::bar;
use crate::{Answer, view};
use anyhow::Context;
use clap::Args;
use fastpath::replay::WorkerCount;
use fastpath::simulate::{Simulation, SimulationRun, side_by_side};

/// Run the same program and workload on several machines.
///
/// The table has a row for each machine.
#[derive(Args)]
pub(super) struct Compare {
    /// Shipped machines or machine files.
    #[arg(required = true, num_args = 2.., value_name = "MACHINE")]
    machines: Vec<String>,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    plot: Plot,
    #[command(flatten)]
    workers: SimWorkers,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let workers = self.workers.count();
        let simulations = self.machines.iter().map(|name| self.question.simulation(name));
        let simulations = simulations.collect::<anyhow::Result<Vec<_>>>()?;
        let bar = bar(simulations.len() as u64, "{pos}/{len} machines ({elapsed})");
        let run = |simulation: &Simulation| -> anyhow::Result<SimulationRun> {
            let input = simulation.case()?.input()?;
            let run = fastpath::simulate::run(&input, None, WorkerCount::ONE, None);
            bar.inc(1);
            // Called as asked for: two files may hold machines of one name.
            let name = simulation.machine.clone();
            Ok(SimulationRun { machine: name.clone(), ..run.context(name)? })
        };
        let all = side_by_side(&simulations, workers.count().get(), run);
        bar.finish_and_clear();
        let all = all.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        // They do not name the machine.
        let parameters = simulations[0].parameters();
        let rows = all.iter().map(|run| run.row(parameters.clone())).collect();
        self.plot.write(self.question.seed(), rows, None)?;
        view::print(all.as_slice(), self.json)?;
        Ok(if all.iter().any(|f| f.outcome.deadlock.is_some()) { Answer::No } else { Answer::Yes })
    }
}
