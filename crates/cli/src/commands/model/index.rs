//! `fastpath model index`: SCION's performance index, cross-validated, and the rates it predicts.

use crate::{Answer, view};
use clap::{Args, ValueEnum};
use fastpath::models::IndexQuestion;
use fastpath_model::index::Variant;
use fastpath_units::Duration;
use std::path::PathBuf;

/// Compute SCION's performance index of platforms, and predict rates.
///
/// Without FILES, the three platforms of Hugly 2024 are used.
#[derive(Args)]
pub(super) struct IndexCommand {
    /// The platforms: host records, or tables with the columns platform, coremark or score, a copy
    /// rate, and rate_pps.
    files: Vec<PathBuf>,
    /// Choice of M and N: plain (M = 1), tuned (M = 400), program (M = 400, N = 1 µs), fit-m or
    /// fit-mn (fitted).
    #[arg(long, default_value = "tuned")]
    variant: VariantArg,
    /// Weight M of copying. It replaces --variant.
    #[arg(long, conflicts_with = "variant")]
    m: Option<f64>,
    /// Fixed time N per packet, such as 1us.
    #[arg(long, requires = "m")]
    n: Option<Duration>,
    /// Packet length in bytes, if the platforms do not state it. By default 172.
    #[arg(long, value_name = "BYTES")]
    length: Option<f64>,
    /// Predict the rate on this platform: FILE or FILE:NAME.
    #[arg(long, value_name = "PLATFORM")]
    to: Option<String>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum VariantArg {
    Plain,
    Tuned,
    Program,
    FitM,
    FitMn,
}

impl IndexCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let variant = self.variant();
        let question = IndexQuestion { files: self.files, variant, length: self.length, to: self.to };
        view::print(&question.answer()?, self.json)?;
        Ok(Answer::Yes)
    }

    fn variant(&self) -> Variant {
        if let Some(m) = self.m {
            return Variant::Given { m, n_s: self.n.map_or(0.0, Duration::as_secs_f64) };
        }
        match self.variant {
            VariantArg::Plain => Variant::Plain,
            VariantArg::Tuned => Variant::Tuned,
            VariantArg::Program => Variant::Program,
            VariantArg::FitM => Variant::FitM,
            VariantArg::FitMn => Variant::FitMN,
        }
    }
}
