//! `fastpath sim compare`: the same simulation on several machines.

use super::plot::Plot;
use super::question::Question;
use super::simulate;
use crate::{Answer, view};
use anyhow::Context;
use clap::Args;
use fastpath::simulate::SimulationRun;

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
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let run = |name: &String| -> anyhow::Result<SimulationRun> {
            let input = self.question.simulation(name)?.case()?.input()?;
            // Called as asked for: two files may hold machines of one name.
            Ok(SimulationRun {
                machine: name.clone(),
                ..simulate(&input, None).with_context(|| name.clone())?
            })
        };
        let all = self.machines.iter().map(run).collect::<anyhow::Result<Vec<_>>>()?;
        // They do not name the machine.
        let parameters = self.question.simulation(&self.machines[0])?.parameters();
        let rows = all.iter().map(|run| run.row(parameters.clone())).collect();
        self.plot.write(self.question.seed(), rows, None)?;
        view::print(all.as_slice(), self.json)?;
        Ok(if all.iter().any(|f| f.outcome.deadlock.is_some()) { Answer::No } else { Answer::Yes })
    }
}
