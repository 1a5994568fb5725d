//! `fastpath evaluate prediction`: the accuracy of fitted models on this machine.

use super::tell;
use crate::Answer;
use crate::commands::measure::{effort, show};
use crate::view;
use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use fastpath_evaluate::{
    PredictionOptions, RestrictedPlatform, predict, predict_families, predict_from_records, predict_published,
};
use fastpath_measure::Slowdown;
use std::path::PathBuf;

/// Measure how well fitted models predict other points and platforms.
///
/// A model of half of a grid of frame sizes and steps predicts the other half. Criterion: a median
/// error of 1 %, and 95 % of the points within 5 %. The costs measured here and two host records
/// predict a restricted platform. Criterion: 95 % of its points lie in the stated interval. Costs
/// of known shapes are predicted from samples: 90 to 99 % of new points must lie in their interval,
/// whose width is shown. The exit code is 1 if a criterion is missed, and 2 if the machine is too
/// noisy to tell.
#[derive(Args)]
pub(super) struct PredictionCommand {
    /// Take two minutes instead of six: fewer packets and rounds.
    #[arg(long)]
    quick: bool,
    /// Measure this machine under each of these restrictions, as platforms of their own.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "slower-core,narrow-copies")]
    platform: Vec<Restriction>,
    /// Measure another build of this program too, as a platform of its own. May be repeated.
    #[arg(long, value_name = "PROGRAM")]
    build: Vec<PathBuf>,
    /// Factor by which slower-core is slower.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.6)]
    slowdown: f64,
    /// Write the records to this directory.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Measure nothing: compute the figures from the records that --output wrote to this directory.
    #[arg(long, alias = "records", value_name = "DIR", conflicts_with_all = ["output", "build", "quick"])]
    input: Option<PathBuf>,
    /// Measure nothing: show only how well costs of known shapes are predicted.
    #[arg(long, conflicts_with_all = ["input", "output", "build", "platform", "slowdown"])]
    families: bool,
    /// Measure nothing: show how well a part of published measurements predicts the rest.
    #[arg(long, conflicts_with_all = ["input", "output", "build", "platform", "slowdown", "families"])]
    published: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Restriction {
    /// A core that does additional work after each operation.
    SlowerCore,
    /// Copies without wide vectors. Needs glibc on x86.
    NarrowCopies,
}

impl PredictionCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let slowdown = Slowdown::new(self.slowdown)?;
        let mut figures = match &self.input {
            _ if self.published => predict_published(effort(self.quick))?,
            _ if self.families => Vec::new(),
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
                // The step has the time left: a bar would guess it again for each platform.
                let bar = crate::progress::bar(0, "{msg} {pos}/{len} ({elapsed})");
                let figures = predict(&options, &show(&bar))?;
                bar.finish_and_clear();
                figures
            }
        };
        if !self.published {
            figures.extend(predict_families(effort(self.quick))?);
        }
        let answer = tell(&figures, self.json, view::prediction(&figures))?;
        let missed = figures.iter().any(|f| !f.pass && !f.noisy);
        let noisy = figures.iter().any(|f| f.noisy);
        ensure!(missed || !noisy, "the machine was too noisy to tell: measure again on a quieter machine");
        Ok(answer)
    }
}
