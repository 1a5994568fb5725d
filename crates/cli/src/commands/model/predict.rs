//! `fastpath model predict`: what a fitted model says about points not measured, here or on another
//! machine.

use super::fit::{answer, tell};
use super::options::point_text;
use super::platforms;
use super::source::{Source, Sourced, table};
use crate::{Answer, print};
use anyhow::{Context, ensure};
use clap::Args;
use fastpath_model::check::{check, elsewhere};
use fastpath_model::predict::{PredictionQuery, RECORD_SD, TRANSFER_SD, Throughput, Transfer, predict};
use fastpath_units::Rate;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// Predict costs and throughput from a fitted model, on this platform or another; with --test, exit
/// 1 if it misses.
#[derive(Args)]
pub(super) struct PredictCommand {
    #[command(flatten)]
    source: Source,
    /// A point to predict: a value for each column of the model (may be repeated).
    #[arg(long, value_name = "COLUMN=VALUE,…", value_parser = point_text, required_unless_present = "test")]
    at: Vec<Vec<(String, f64)>>,
    /// Predict every row of this table and compare with what it measured (with --to, on that
    /// platform).
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// The platform the model was fitted on: FILE or FILE:NAME, a host record or a table of
    /// platforms.
    #[arg(long, value_name = "PLATFORM", requires = "to")]
    from: Option<String>,
    /// The platform to predict for.
    #[arg(long, value_name = "PLATFORM", requires = "from")]
    to: Option<String>,
    /// Relative standard deviation of the scaling between platforms.
    #[arg(long, value_name = "SD", default_value_t = TRANSFER_SD)]
    transfer_sd: f64,
    /// Relative standard deviation of the numbers in each platform's record.
    #[arg(long, value_name = "SD", default_value_t = RECORD_SD)]
    record_sd: f64,
    /// Cores that forward, each independently.
    #[arg(long, default_value_t = 1.0)]
    cores: f64,
    /// The line rate that may be the limit.
    #[arg(long, value_name = "RATE")]
    line: Option<Rate>,
    /// Packets/s a NIC passes at most.
    #[arg(long, value_name = "PPS")]
    packet_cap: Option<f64>,
    /// Print one JSON object.
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
            .at
            .iter()
            .map(|at| self.predict(&sourced, at, transfer.as_ref()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let checked = match &self.test {
            None => None,
            Some(path) => {
                let fit = sourced.fit.as_ref().context("--test needs a fit, not constants")?;
                let (table, place) = (table(path)?, || path.display().to_string());
                let options = self.source.options()?;
                Some(match &transfer {
                    None => check(fit, &table, &options).with_context(place)?,
                    Some(transfer) => elsewhere(fit, &table, &options, transfer).with_context(place)?,
                })
            }
        };
        let mut out = io::stdout().lock();
        if self.json {
            let value = json!({ "model": sourced.description, "predictions": predictions, "check": checked });
            writeln!(out, "{value}")?;
            return answer(checked.as_ref());
        }
        writeln!(out, "{}", sourced.description)?;
        for prediction in &predictions {
            show(&mut out, prediction)?;
        }
        if let Some(check) = &checked {
            tell(&mut out, check)?;
        }
        answer(checked.as_ref())
    }

    fn transfer(&self) -> anyhow::Result<Option<Transfer>> {
        let (Some(from), Some(to)) = (&self.from, &self.to) else { return Ok(None) };
        Ok(Some(Transfer {
            from: platforms::one(from)?,
            to: platforms::one(to)?,
            record_sd: self.record_sd,
            transfer_sd: self.transfer_sd,
        }))
    }

    /// One point: y with its intervals and, where y is a time, the throughput that follows. On
    /// another platform y is that platform's; of its mean nothing is known.
    fn predict(
        &self,
        sourced: &Sourced,
        at: &[(String, f64)],
        transfer: Option<&Transfer>,
    ) -> anyhow::Result<Value> {
        let columns = sourced.model.terms.columns();
        for (name, _) in at {
            ensure!(
                columns.contains(name.as_str()) || self.line.is_some(),
                "--at {name}: the model has no such column (have: {})",
                columns.iter().copied().collect::<Vec<_>>().join(", ")
            );
        }
        let value_of = |name: &str| at.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let y = sourced.model.predict(value_of)?;
        let given: serde_json::Map<String, Value> = at.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
        let mut prediction = json!({ "at": given, "y": y.single, "y_mean": y.mean });
        if let Some(unit) = sourced.model.seconds_per_unit {
            let question = PredictionQuery {
                transfer: transfer.cloned(),
                cores: self.cores,
                line_gbit: self.line.map(|rate| rate.as_bps() as f64 / 1e9),
                packet_cap: self.packet_cap,
                at: at.to_vec(),
            };
            let throughput: Throughput = predict(&sourced.model, &question)?;
            if transfer.is_some() {
                prediction = json!({ "at": prediction["at"], "y": throughput.ns_per_packet.map(|ns| ns / (1e9 * unit)) });
            }
            merge(&mut prediction, serde_json::to_value(throughput)?);
        } else {
            prediction["warnings"] = json!(sourced.model.extrapolations(value_of));
            ensure!(
                transfer.is_none(),
                "y is not a time of known unit, so it cannot be scaled to another platform: name the column like T_ns, or give --y-unit"
            );
        }
        Ok(prediction)
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

fn show(out: &mut impl Write, prediction: &Value) -> anyhow::Result<()> {
    let at: Vec<String> = prediction["at"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name} = {}", print::number(value.as_f64().unwrap_or(f64::NAN))))
        .collect();
    writeln!(out, "\nat {}", at.join(", "))?;
    if let Some(frame) = prediction.get("frame").filter(|frame| !frame.is_null()) {
        let bytes = |name: &str| frame[name].as_f64().map_or(String::new(), print::number);
        let how = frame["fcs"].as_str().unwrap_or_default();
        let assumed = if frame["assumed"] == true { ", assumed" } else { "" };
        writeln!(
            out,
            "  frame          {} bytes {how} FCS{assumed}: {} with it, {} of line time",
            bytes("model_bytes"),
            bytes("with_fcs_bytes"),
            bytes("wire_bytes")
        )?;
    }
    let names = [("y", "y"), ("ns_per_packet", "ns per packet"), ("throughput_pps", "packets/s")];
    for (key, name) in names {
        if let Some(value) = prediction.get(key) {
            let estimate = serde_json::from_value(value.clone())?;
            writeln!(out, "  {name:<14} {}", print::estimate(estimate))?;
        }
    }
    if let Some(limit) = prediction.get("limit").and_then(Value::as_str) {
        writeln!(out, "  limited by     {limit}")?;
    }
    for warning in prediction.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        writeln!(out, "  note: {}", warning.as_str().unwrap_or_default())?;
    }
    Ok(())
}
