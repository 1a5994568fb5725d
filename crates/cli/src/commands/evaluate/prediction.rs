//! `fastpath evaluate prediction`: the accuracy of fitted models on this machine.

use super::tell;
use crate::Answer;
use crate::commands::measure::{bar, effort, show};
use crate::view;
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use fastpath_evaluate::{PredictionOptions, RestrictedPlatform, predict, predict_from_records};
use fastpath_measure::Slowdown;
use std::path::PathBuf;

/// Measure how well fitted models predict other points and platforms.
///
/// Half of a grid of frame sizes and steps predicts the other half: 1 % median error, 95 % of the
/// points within 5 %. The costs measured here and two host records predict a restricted platform:
/// 95 % of its points lie in the stated interval. The exit code is 1 if a criterion is missed, 2 if
/// the machine is too noisy to tell.
#[derive(Args)]
pub(super) struct PredictionCommand {
    /// Take two minutes instead of six: fewer packets and rounds.
    #[arg(long)]
    quick: bool,
    /// Restrictions of this platform, each measured as a platform of its own.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "slower-core,narrow-copies")]
    platform: Vec<Restriction>,
    /// Another build of this program, as one more platform (may be repeated).
    #[arg(long, value_name = "PROGRAM")]
    build: Vec<PathBuf>,
    /// Slowdown of slower-core.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.6)]
    slowdown: f64,
    /// Keep the records in this directory.
    #[arg(short, long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Compute the figures from the records in this directory, without measuring.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["output", "build", "quick"])]
    records: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Restriction {
    /// A core slowed down by additional work after each operation.
    SlowerCore,
    /// Copies without wide vectors, where the C library is glibc on x86.
    NarrowCopies,
}

impl PredictionCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let slowdown = Slowdown::new(self.slowdown)?;
        let figures = match &self.records {
            Some(directory) => predict_from_records(directory)?,
            None => {
                let platforms = self.platform.iter().map(|restriction| match restriction {
                    Restriction::SlowerCore => RestrictedPlatform::SlowerCore(slowdown),
                    Restriction::NarrowCopies => RestrictedPlatform::NarrowCopies,
                });
                let options = PredictionOptions {
                    effort: effort(self.quick),
                    program: std::env::current_exe().context("finding this program")?,
                    platforms: platforms.collect(),
                    builds: self.build,
                    output: self.output,
                };
                let bar = bar();
                let figures = predict(&options, &show(&bar))?;
                bar.finish_and_clear();
                figures
            }
        };
        let answer = tell(&figures, self.json, view::prediction(&figures))?;
        let missed = figures.iter().any(|f| !f.pass && !f.noisy);
        let noisy = figures.iter().any(|f| f.noisy);
        ensure!(missed || !noisy, "the machine was too noisy to tell: measure again on a quieter machine");
        Ok(answer)
    }
}
