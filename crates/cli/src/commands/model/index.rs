//! `fastpath model index`: SCION's platform index, cross-validated, and the rates it predicts.

use super::platforms;
use crate::{Answer, print};
use anyhow::Context;
use clap::{Args, ValueEnum};
use fastpath_model::Bounded;
use fastpath_model::index::{Index, LENGTH_BYTES, Variant, index};
use fastpath_model::platform::Platform;
use fastpath_model::publications::scion;
use fastpath_units::Duration;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;

/// SCION's performance index over measured platforms, and the rate it predicts on another.
///
/// Without files the three platforms of SCION's document are used.
#[derive(Args)]
pub(super) struct IndexCommand {
    /// Platforms: tables with platform, coremark or score, a copy rate and rate_pps; or host
    /// records.
    files: Vec<PathBuf>,
    /// Which M and N: M = 1; M = 400; M = 400 and N = 1 µs as SCION's program; M fitted; M and N
    /// fitted.
    #[arg(long, default_value = "tuned")]
    variant: VariantWord,
    /// The weight M of copying, in place of a variant.
    #[arg(long, conflicts_with = "variant")]
    m: Option<f64>,
    /// The fixed time N per packet, with --m; such as 1us.
    #[arg(long, requires = "m")]
    n: Option<Duration>,
    /// Packet length in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = LENGTH_BYTES)]
    length: f64,
    /// Predict the rate on this platform: FILE or FILE:NAME.
    #[arg(long, value_name = "PLATFORM")]
    to: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum VariantWord {
    Plain,
    Tuned,
    Program,
    FitM,
    FitMn,
}

impl IndexCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        anyhow::ensure!(
            self.length.is_finite() && self.length > 0.0,
            "--length {}: must be above 0",
            self.length
        );
        let (platforms, source) = self.platforms()?;
        let found = index(&platforms, self.length, self.variant()).with_context(|| source.clone())?;
        let predicted = match &self.to {
            None => None,
            Some(text) => {
                let platform = platforms::one(text)?;
                anyhow::ensure!(
                    platform.score_kind == platforms[0].score_kind,
                    "`{}` carries a score of another kind: measure both with the same",
                    platform.name
                );
                Some((platform.name.clone(), found.predict(&platform)))
            }
        };
        let mut out = io::stdout().lock();
        if self.json {
            let mut value = serde_json::to_value(&found)?;
            value["source"] = json!(source);
            value["predicted_pps"] = json!(predicted.as_ref().map(|(_, rate)| rate));
            writeln!(out, "{value}")?;
        } else {
            show(&mut out, &source, &found, predicted)?;
        }
        Ok(Answer::Yes)
    }

    fn platforms(&self) -> anyhow::Result<(Vec<Platform>, String)> {
        if self.files.is_empty() {
            return Ok((scion::platforms().to_vec(), "the platforms of SCION's document".to_owned()));
        }
        let mut all = Vec::new();
        for path in &self.files {
            all.extend(platforms::load(path)?);
        }
        let names: Vec<String> = self.files.iter().map(|f| f.display().to_string()).collect();
        Ok((all, names.join(", ")))
    }

    fn variant(&self) -> Variant {
        if let Some(m) = self.m {
            return Variant::Given { m, n_s: self.n.map_or(0.0, Duration::as_secs_f64) };
        }
        match self.variant {
            VariantWord::Plain => Variant::Plain,
            VariantWord::Tuned => Variant::Tuned,
            VariantWord::Program => Variant::Program,
            VariantWord::FitM => Variant::FitM,
            VariantWord::FitMn => Variant::FitMN,
        }
    }
}

fn show(
    out: &mut impl Write,
    source: &str,
    found: &Index,
    predicted: Option<(String, Bounded)>,
) -> io::Result<()> {
    writeln!(
        out,
        "{source}: M = {}, N = {} µs, L = {} B",
        print::bounded(found.m),
        print::bounded(found.n_s.scaled(1e6)),
        found.length_bytes
    )?;
    let mut table =
        print::table(["platform", "index", "without the factor 8", "predicted by the others, error %"]);
    for platform in &found.platforms {
        let error = platform.left_out_error_pct.map_or(String::new(), |x| format!("{x:+.1}"));
        table.add_row([
            platform.name.clone(),
            print::number(platform.index),
            print::number(platform.index_without_factor_8),
            error,
        ]);
    }
    writeln!(out, "{table}\nindex {}", print::bounded(found.index))?;
    if let Some((low, high)) = found.pairwise_error_pct {
        writeln!(out, "one platform predicts another with an error of {low:+.1} to {high:+.1} %")?;
    }
    if let Some((name, rate)) = predicted {
        writeln!(out, "{name}: {} packets/s", print::bounded(rate))?;
    }
    found.warnings.iter().try_for_each(|warning| writeln!(out, "note: {warning}"))
}
