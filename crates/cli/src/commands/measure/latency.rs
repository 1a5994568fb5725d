//! `fastpath measure latency`: the time of a packet in a unit, and the cost of each operation.

use super::{Output, bar, show, tool, warn};
use crate::{Answer, print};
use anyhow::ensure;
use clap::{Args, ValueEnum};
use fastpath_measure::Watch;
use fastpath_measure::{
    Between, EXTRAS, LATENCY_SIZES, OperationCost, Progress, UnitLatency, latency, operation,
};
use fastpath_report::{Record, fields};
use fastpath_sim::experiment::t_f;
use fastpath_units::Duration;
use serde_json::{Map, json};
use std::io::{self, Write};

/// Measure the latency of a unit by packet size, and operation costs.
///
/// A packet goes from a generator through a forward unit to a swap unit and back. The latency is that
/// of equation 1 of the published experiment: half of the time between the probes, less the time of
/// the swap unit. Operations are measured on units with memory ports.
#[derive(Args)]
pub(super) struct LatencyCommand {
    /// Frame lengths in bytes; by default 64 to 1500 as published.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(60..=9000))]
    size: Vec<u32>,
    /// Packets per size.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(8..=10_000_000))]
    packets: u32,
    /// What connects the units.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "memory")]
    between: Vec<Place>,
    /// Do not measure the costs of operations.
    #[arg(long)]
    no_operations: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// Memory ports, on one core.
    Memory,
    /// Namespaces, with the engine on another core.
    Namespaces,
    /// The simulated CN6880s of the published experiment, in virtual time; sizes are with FCS.
    Simulator,
}

impl Place {
    fn latency(self, size: usize, packets: usize, progress: Progress<'_>) -> anyhow::Result<UnitLatency> {
        Ok(match self {
            Place::Memory => latency(Between::Memory, size, packets, progress)?,
            Place::Namespaces => latency(Between::Namespaces, size, packets, progress)?,
            Place::Simulator => {
                ensure!(
                    (64..=1518).contains(&size),
                    "--size {size}: the simulated ports take 64 to 1518 bytes"
                );
                // One packet at a time, 10,000 per second, with seed 1.
                let us = t_f(size as u32, Duration::from_us(100) * packets as u64, 1);
                UnitLatency::of(&us.into_iter().map(|us| 1000.0 * us).collect::<Vec<_>>())?
            }
        })
    }
}

impl LatencyCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let file = self.output.open()?;
        let bar = bar();
        let sizes: Vec<usize> = match self.size.len() {
            0 => LATENCY_SIZES.to_vec(),
            _ => self.size.iter().map(|&size| size as usize).collect(),
        };
        let (mut records, mut lost) = (Vec::new(), Vec::new());
        let mut out = io::stdout().lock();
        let titles = [
            "between",
            "size B",
            "median t_f ns",
            "core mean",
            "core sd",
            "outliers",
            "generator to generator ns",
        ];
        let mut table = print::table(titles);
        for (place, &size) in
            self.between.iter().flat_map(|place| sizes.iter().map(move |size| (place, size)))
        {
            let watch = Watch::start();
            let found = place.latency(size, self.packets as usize, &show(&bar))?;
            let between = place.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
            let mut parameters = Map::new();
            parameters.insert("size".to_owned(), json!(size));
            parameters.insert("between".to_owned(), json!(between));
            table.add_row([
                between,
                size.to_string(),
                print::number(found.median_ns),
                print::number(found.t_f_ns.mixture.core_mean),
                print::number(found.t_f_ns.mixture.core_sd),
                found.t_f_ns.outliers.to_string(),
                found.round_trip_ns.map_or("–".to_owned(), print::number),
            ]);
            if found.lost > 0 {
                lost.push(format!("{} of {size} bytes", found.lost));
            }
            records.push(self.record("latency", &watch, parameters, fields(&found)));
        }
        let mut costs = print::table(["operation", "ns each", "R²"]);
        let mut untold = Vec::new();
        for extra in EXTRAS.into_iter().filter(|_| !self.no_operations) {
            let watch = Watch::start();
            let found: OperationCost = operation(extra, u64::from(self.packets), &show(&bar))?;
            let mut parameters = Map::new();
            parameters.insert("operation".to_owned(), json!(extra));
            let name = json!(extra).as_str().unwrap_or_default().to_owned();
            if found.cost_ns.low == 0.0 {
                untold.push(name.clone());
            }
            costs.add_row([name, print::estimate(found.cost_ns), format!("{:.4}", found.r2)]);
            records.push(self.record("operations", &watch, parameters, fields(&found)));
        }
        bar.finish_and_clear();
        self.output.write(file, &records)?;
        if self.output.json {
            for record in &records {
                writeln!(out, "{}", serde_json::to_string(record)?)?;
            }
        } else {
            writeln!(out, "{table}")?;
            if !self.no_operations {
                writeln!(out, "{costs}")?;
            }
            if !untold.is_empty() {
                writeln!(
                    out,
                    "note: {}: the interval begins at 0, so the cost may be none; use more --packets or a quieter machine",
                    untold.join(", ")
                )?;
            }
        }
        if !lost.is_empty() {
            eprintln!(
                "fastpath: note: packets that did not come back within a second are left out: {}",
                lost.join(", ")
            );
        }
        if let Some(worst) = records.iter().find(|r| r.provenance.disturbance.disturbed).or(records.first()) {
            warn(worst);
        }
        Ok(Answer::Yes)
    }

    fn record(
        &self,
        kind: &str,
        watch: &Watch,
        parameters: Map<String, serde_json::Value>,
        results: Map<String, serde_json::Value>,
    ) -> Record {
        // No random choice is made: the seed is 0.
        let provenance = watch.provenance(&tool(), 0, u64::from(self.packets));
        Record { kind: kind.to_owned(), provenance, parameters, results, platform: None }
    }
}
