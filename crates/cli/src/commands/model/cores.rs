//! `fastpath model cores`: how many cores a link needs (the chart of Netcope 2017).

use super::source::Source;
use crate::{Answer, view};
use clap::Args;
use fastpath::models::{LinkCores, SourcedModel};
use fastpath_model::arguments::point;
use fastpath_model::cores::{CoresQuery, FRAMES_BYTES, SPEEDS_GBIT};
use fastpath_model::fcs::FRAMING_BYTES;
use fastpath_units::Rate;

/// Count the cores a link needs by speed, frame size and steps.
///
/// Without a model, the constants of Netcope 2017 apply: 38.6 ns per packet, 0.101 ns per byte and
/// 4.07 ns per step.
#[derive(Args)]
pub(super) struct CoresCommand {
    #[command(flatten)]
    source: Source,
    /// Link speeds in Gbit/s, or with a unit. By default those of Ethernet from 10 to 800 Gbit/s.
    #[arg(long, value_name = "GBIT,…", value_delimiter = ',', value_parser = speed)]
    speeds: Vec<f64>,
    /// Frame sizes in bytes, with FCS. By default those of RFC 2544. If the model was fitted to
    /// sizes without FCS, as in records, 4 bytes are subtracted.
    #[arg(long = "size", alias = "frames", value_name = "BYTES,…", value_delimiter = ',')]
    frames: Vec<f64>,
    /// Values of the model's column that is neither the frame size nor in --point.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "0")]
    steps: Vec<f64>,
    /// Values of the other columns of the model, such as cores=1.
    #[arg(long, alias = "at", value_name = "COLUMN=VALUE,…", value_parser = point)]
    point: Vec<Vec<(String, f64)>>,
    /// Bytes on the wire beyond those of each frame (preamble and inter-frame gap).
    #[arg(long, value_name = "BYTES", default_value_t = FRAMING_BYTES)]
    framing: f64,
    /// Print one JSON object instead of text.
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
        let model = self.source.load()?.unwrap_or_else(SourcedModel::netcope);
        let or = |given: Vec<f64>, default: &[f64]| if given.is_empty() { default.to_vec() } else { given };
        let question = CoresQuery {
            speeds_gbit: or(self.speeds, &SPEEDS_GBIT),
            frames_bytes: or(self.frames, &FRAMES_BYTES),
            steps: self.steps,
            at: self.point.concat(),
            framing_bytes: self.framing,
        };
        view::print(&LinkCores::new(model, question)?, self.json)?;
        Ok(Answer::Yes)
    }
}
