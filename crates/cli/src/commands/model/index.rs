//! `fastpath model index`: SCION's performance index, cross-validated, and the rates it predicts.

use crate::Answer;
use anyhow::Context;
use clap::{Args, ValueEnum};
use fastpath::model_text as text;
use fastpath::records::read_platform;
use fastpath_model::index::{Variant, common_length, index, predict_rate};
use fastpath_model::output::IndexOutput;
use fastpath_model::platform::Platform;
use fastpath_model::publications::scion;
use fastpath_units::Duration;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Compute SCION's performance index of platforms, and predict rates.
///
/// Without files the three platforms of Hugly 2024 are used.
#[derive(Args)]
pub(super) struct IndexCommand {
    /// Platforms: tables with the columns platform, coremark or score, a copy rate and rate_pps; or
    /// host records.
    files: Vec<PathBuf>,
    /// Choice of M and N: plain (M = 1), tuned (M = 400), program (M = 400, N = 1 µs), or fitted.
    #[arg(long, default_value = "tuned")]
    variant: VariantArg,
    /// Weight M of copying, instead of a variant.
    #[arg(long, conflicts_with = "variant")]
    m: Option<f64>,
    /// Fixed time N per packet, with --m; such as 1us.
    #[arg(long, requires = "m")]
    n: Option<Duration>,
    /// Packet length in bytes, if the platforms do not state it [default: 172].
    #[arg(long, value_name = "BYTES")]
    length: Option<f64>,
    /// Predict the rate on this platform: FILE or FILE:NAME.
    #[arg(long, value_name = "PLATFORM")]
    to: Option<String>,
    /// Print one JSON object.
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
        if let Some(length) = self.length {
            anyhow::ensure!(length.is_finite() && length > 0.0, "--length {length}: must be above 0");
        }
        let (platforms, source) = self.platforms()?;
        let length = common_length(&platforms, self.length).with_context(|| source.clone())?;
        let found = index(&platforms, length, self.variant()).with_context(|| source.clone())?;
        let predicted = match &self.to {
            None => None,
            Some(text) => {
                let platform = read_platform(text)?;
                anyhow::ensure!(
                    platform.score_kind == platforms[0].score_kind,
                    "`{}` carries a score of another kind: measure both with the same benchmark",
                    platform.name
                );
                let rate = predict_rate(&platforms, length, self.variant(), &platform)?;
                Some((platform.name, rate))
            }
        };
        let mut out = io::stdout().lock();
        if self.json {
            let predicted_pps = predicted.map(|(_, rate)| rate);
            let output = IndexOutput { index: found, source, predicted_pps };
            writeln!(out, "{}", serde_json::to_value(&output)?)?;
        } else {
            text::index(&mut out, &source, &found, predicted)?;
        }
        Ok(Answer::Yes)
    }

    fn platforms(&self) -> anyhow::Result<(Vec<Platform>, String)> {
        if self.files.is_empty() {
            return Ok((scion::platforms().to_vec(), "the platforms of Hugly 2024".to_owned()));
        }
        let mut all = Vec::new();
        for path in &self.files {
            all.extend(fastpath::records::read_platforms(path)?);
        }
        let names: Vec<String> = self.files.iter().map(|f| f.display().to_string()).collect();
        Ok((all, names.join(", ")))
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
