//! `fastpath model predict`: predictions of a fitted model, on this machine or another.

use super::fit::answer;
use super::source::Source;
use crate::{Answer, view};
use anyhow::Context;
use clap::Args;
use fastpath::models::check_against;
use fastpath::records::read_platform;
use fastpath_model::arguments::point;
use fastpath_model::output::PredictionOutput;
use fastpath_model::predict::{PredictionQuery, RECORD_SD, TRANSFER_SD, Transfer, predict_point};
use fastpath_units::Rate;
use std::path::PathBuf;

/// Predict costs and throughput from a fitted model.
///
/// The prediction is for the platform of the fit. With --from and --to it is for another platform.
/// With --test the exit code is 1 if the model misses.
#[derive(Args)]
pub(super) struct PredictCommand {
    #[command(flatten)]
    source: Source,
    /// A point to predict: a value for each column of the model. May be repeated.
    #[arg(long, alias = "at", value_name = "COLUMN=VALUE,…", value_parser = point, required_unless_present = "test")]
    point: Vec<Vec<(String, f64)>>,
    /// Predict every row of this table, and compare the predictions with its measurements.
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// The platform of the fit: FILE or FILE:NAME. The file is a host record or a table of
    /// platforms.
    #[arg(long, value_name = "PLATFORM", requires = "to")]
    from: Option<String>,
    /// The platform to predict for, written as for --from.
    #[arg(long, value_name = "PLATFORM", requires = "from")]
    to: Option<String>,
    /// Relative standard deviation of the factor between two platforms.
    #[arg(long, value_name = "SD", default_value_t = TRANSFER_SD)]
    transfer_sd: f64,
    /// Relative standard deviation of the numbers in each platform's record.
    #[arg(long, value_name = "SD", default_value_t = RECORD_SD)]
    record_sd: f64,
    /// Number of cores that forward, each independently.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    cores: f64,
    /// Line rate that may limit the throughput.
    #[arg(long, value_name = "RATE")]
    line: Option<Rate>,
    /// Highest packet rate of the NIC, in packets/s.
    #[arg(long, value_name = "PPS")]
    packet_cap: Option<f64>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl PredictCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let sourced = self.source.load()?.context(
            "no model: name a fit saved from `fastpath model fit --json`, a table with --y and --terms, or --constants",
        )?;
        let transfer = self.transfer()?;
        let predictions = self
            .point
            .iter()
            .map(|at| Ok(predict_point(&sourced.model, &self.query(at, transfer.as_ref()))?))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let checked = match &self.test {
            None => None,
            Some(path) => {
                let fit = sourced.fit.as_ref().context("--test needs a fit, not constants")?;
                Some(check_against(fit, path, &self.source.options()?, transfer.as_ref())?)
            }
        };
        let output = PredictionOutput { model: sourced.description, predictions, check: checked };
        view::print(&output, self.json)?;
        answer(output.check.as_ref())
    }

    fn transfer(&self) -> anyhow::Result<Option<Transfer>> {
        let (Some(from), Some(to)) = (&self.from, &self.to) else { return Ok(None) };
        Ok(Some(Transfer {
            from: read_platform(from)?,
            to: read_platform(to)?,
            record_sd: self.record_sd,
            transfer_sd: self.transfer_sd,
        }))
    }

    fn query(&self, at: &[(String, f64)], transfer: Option<&Transfer>) -> PredictionQuery {
        PredictionQuery {
            transfer: transfer.cloned(),
            cores: self.cores,
            line_gbit: self.line.map(|rate| rate.as_bps() as f64 / 1e9),
            packet_cap: self.packet_cap,
            at: at.to_vec(),
        }
    }
}
