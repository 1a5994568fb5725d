//! `fastpath evaluate`: published evaluations, run again and compared with the originals.

#[cfg(target_os = "linux")]
mod capacity;
#[cfg(target_os = "linux")]
mod emulator;
mod models;
#[cfg(target_os = "linux")]
mod prediction;
#[cfg(target_os = "linux")]
mod registered;
mod simulator;

use crate::Answer;
use crate::view::{self, EvaluationText, Figure, Figures};
use clap::Args;

/// Re-run published evaluations and compare with the original figures.
#[derive(Args)]
pub(crate) struct EvaluateCommand {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    Action {
        #[cfg(target_os = "linux")]
        Capacity(capacity::CapacityCommand),
        #[cfg(target_os = "linux")]
        Emulator(emulator::EmulatorCommand),
        Models(models::ModelsCommand),
        #[cfg(target_os = "linux")]
        Prediction(prediction::PredictionCommand),
        #[cfg(target_os = "linux")]
        Registered(registered::RegisteredCommand),
        Simulator(simulator::SimulatorCommand),
    }
}

impl EvaluateCommand {
    pub(crate) fn run(self) -> anyhow::Result<Answer> {
        self.action.run()
    }
}

/// Prints the figures. The answer is yes if every figure passes.
fn tell<F: Figure>(figures: &[F], as_json: bool, text: EvaluationText) -> anyhow::Result<Answer> {
    let figures = Figures { figures, text };
    view::print(&figures, as_json)?;
    Ok(if figures.passed() == figures.figures.len() { Answer::Yes } else { Answer::No })
}
