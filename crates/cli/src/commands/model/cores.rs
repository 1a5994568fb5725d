//! `fastpath model cores`: how many cores a link needs (the chart of Netcope 2017).

use super::options::point_text;
use super::source::Source;
use crate::Answer;
use clap::Args;
use fastpath::model_text as text;
use fastpath_model::cores::{CoresQuery, FRAMES_BYTES, SPEEDS_GBIT};
use fastpath_model::fcs::FRAMING_BYTES;
use fastpath_model::model::Model;
use fastpath_model::output::CoresOutput;
use fastpath_model::publications::netcope;
use fastpath_units::Rate;
use std::io::{self, Write as _};

/// Count the cores a link needs by speed, frame size and steps.
///
/// Without a model, the constants of Netcope 2017 are used: 38.6 ns + 0.101 ns per byte + 4.07 ns
/// per step.
#[derive(Args)]
pub(super) struct CoresCommand {
    #[command(flatten)]
    source: Source,
    /// Link speeds in Gbit/s, or with a unit [default: those of Ethernet from 10 to 800].
    #[arg(long, value_name = "GBIT,…", value_delimiter = ',', value_parser = speed)]
    speeds: Vec<f64>,
    /// Frame sizes in bytes, with FCS [default: those of RFC 2544]. A model of sizes without FCS
    /// (from records) is evaluated at 4 bytes less.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',')]
    frames: Vec<f64>,
    /// Values of the model's column that is neither a frame size nor set by --at.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "0")]
    steps: Vec<f64>,
    /// Values of the model's other columns, such as cores=1.
    #[arg(long, value_name = "COLUMN=VALUE,…", value_parser = point_text)]
    at: Vec<Vec<(String, f64)>>,
    /// Bytes on the wire in addition to each frame (preamble and inter-frame gap).
    #[arg(long, value_name = "BYTES", default_value_t = FRAMING_BYTES)]
    framing: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// `100` or `100Gbit`, as Gbit/s.
fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(gbit) if gbit.is_finite() && gbit > 0.0 => Ok(gbit),
        Ok(_) => Err("a speed is a finite number above 0".to_owned()),
        Err(_) => {
            text.parse().map(|rate: Rate| rate.as_bps() as f64 / 1e9).map_err(|error| error.to_string())
        }
    }
}

impl CoresCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let (model, description) = match self.source.load()? {
            Some(sourced) => (sourced.model, sourced.description),
            None => (netcope::model(), "Netcope 2017: 38.6 + 0.101·p + 4.07·h ns".to_owned()),
        };
        for (what, values) in [("--frames", &self.frames), ("--steps", &self.steps)] {
            for value in values {
                let least = if what == "--frames" { f64::MIN_POSITIVE } else { 0.0 };
                anyhow::ensure!(
                    value.is_finite() && *value >= least,
                    "{what} {value}: must be a finite number, not negative"
                );
            }
        }
        anyhow::ensure!(
            self.framing.is_finite() && self.framing >= 0.0,
            "--framing {}: must not be negative",
            self.framing
        );
        let or = |given: Vec<f64>, default: &[f64]| if given.is_empty() { default.to_vec() } else { given };
        let question = CoresQuery {
            speeds_gbit: or(self.speeds, &SPEEDS_GBIT),
            frames_bytes: or(self.frames, &FRAMES_BYTES),
            steps: self.steps,
            at: self.at.concat(),
            framing_bytes: self.framing,
        };
        let output = CoresOutput::new(description, &model, &question)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_value(&output)?)?;
        } else {
            let at: String = question.at.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
            text::cores(
                &mut out,
                &[format!("{}{at}", output.model), frames(&model, self.framing)],
                &output.rows,
            )?;
            output.warnings.iter().try_for_each(|warning| writeln!(out, "note: {warning}"))?;
        }
        Ok(Answer::Yes)
    }
}

/// Describes how frame sizes are counted in the query and in the model.
fn frames(model: &Model, framing: f64) -> String {
    let size = model.frame(0.0);
    let why = if size.assumed { " (assumed; if not, give --fcs without)" } else { "" };
    format!(
        "frame sizes include the FCS; line time adds {framing} bytes per frame; sizes in the model are {} FCS{why}",
        size.fcs
    )
}
