//! `fastpath sim compare`: the same question put to several machines.

use super::plot::Plot;
use super::question::Question;
use super::{Finished, show, simulate};
use crate::Answer;
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Run the same program and workload on several machines, a row each.
#[derive(Args)]
pub(super) struct Compare {
    /// Shipped machines or machine files.
    #[arg(required = true, num_args = 2.., value_name = "MACHINE")]
    machines: Vec<String>,
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    plot: Plot,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let run = |name: &String| -> anyhow::Result<Finished> {
            let input = self.question.case(name)?.input()?;
            // Called as asked for: two files may hold machines of one name.
            Ok(Finished { machine: name.clone(), ..simulate(&input, None).with_context(|| name.clone())? })
        };
        let all = self.machines.iter().map(run).collect::<anyhow::Result<Vec<_>>>()?;
        self.plot.write(self.question.seed(), all.iter().map(|f| f.row(&self.question)).collect())?;
        let mut out = io::stdout().lock();
        if self.json {
            let results = all.iter().map(Finished::json).collect::<anyhow::Result<Vec<Value>>>()?;
            writeln!(out, "{}", json!({ "results": results }))?;
        } else {
            show::several(&mut out, &all)?;
        }
        Ok(if all.iter().any(|f| f.outcome.deadlock.is_some()) { Answer::No } else { Answer::Yes })
    }
}
