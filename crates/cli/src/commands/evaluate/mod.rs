//! `fastpath evaluate`: published evaluations, run again and compared with the originals.

#[cfg(target_os = "linux")]
mod emulator;
mod models;
#[cfg(target_os = "linux")]
mod prediction;
mod simulator;

use crate::Answer;
use clap::{Args, Subcommand};
use fastpath::evaluations::EvaluationText;
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};

/// Re-run published evaluations and compare with the original figures.
#[derive(Args)]
pub(crate) struct EvaluateCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    #[cfg(target_os = "linux")]
    Emulator(emulator::EmulatorCommand),
    Models(models::ModelsCommand),
    #[cfg(target_os = "linux")]
    Prediction(prediction::PredictionCommand),
    Simulator(simulator::SimulatorCommand),
}

impl EvaluateCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        match self.action {
            #[cfg(target_os = "linux")]
            Action::Emulator(command) => command.run(),
            Action::Models(command) => command.run(),
            #[cfg(target_os = "linux")]
            Action::Prediction(command) => command.run(),
            Action::Simulator(command) => command.run(),
        }
    }
}

/// A figure of an evaluation.
trait Figure: Serialize {
    fn pass(&self) -> bool;
}

/// Prints one JSON object, or a table followed by remarks. The answer is yes if every figure
/// passes.
fn tell<F: Figure>(figures: &[F], as_json: bool, text: &EvaluationText) -> anyhow::Result<Answer> {
    let passed = figures.iter().filter(|figure| figure.pass()).count();
    let mut out = io::stdout().lock();
    if as_json {
        writeln!(out, "{}", json!({ "results": figures, "passed": passed, "total": figures.len() }))?;
    } else {
        tell_people(&mut out, text, (passed, figures.len()))?;
    }
    Ok(if passed == figures.len() { Answer::Yes } else { Answer::No })
}

fn tell_people(
    out: &mut impl Write,
    text: &EvaluationText,
    (passed, total): (usize, usize),
) -> io::Result<()> {
    writeln!(out, "{}", text.table)?;
    if !text.remarks.is_empty() {
        writeln!(out, "\n{}", text.remarks.join("\n"))?;
    }
    writeln!(out, "{passed} of {total} figures pass")
}
