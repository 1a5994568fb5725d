//! `fastpath measure latency`: the time of a packet in a unit, and the cost of each operation.

use super::{Output, bar, show, tool, warn};
use crate::Answer;
use clap::{Args, ValueEnum};
use fastpath::measurements::{UnitsBetween, latency, operations, text};
use fastpath_measure::LATENCY_SIZES;
use fastpath_report::Record;
use std::io::{self, Write};

/// Measure the latency of a unit by packet size, and operation costs.
///
/// A packet goes from a generator through a forward unit to a swap unit and back. The latency is
/// that of Hartikainen 2016, equation 1: half of the time between the probes, less the time of the
/// swap unit. Operations are measured on units with memory ports.
#[derive(Args)]
pub(super) struct LatencyCommand {
    /// Frame lengths in bytes; by default 64 to 1500 as published.
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(60..=9000))]
    size: Vec<u32>,
    /// Packets per size.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(8..=10_000_000))]
    packets: u32,
    /// Ports between the units.
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
    /// The simulated CN6880s of Hartikainen 2016, in virtual time; sizes are with FCS.
    Simulator,
}

impl Place {
    fn between(self) -> UnitsBetween {
        match self {
            Place::Memory => UnitsBetween::Memory,
            Place::Namespaces => UnitsBetween::Namespaces,
            Place::Simulator => UnitsBetween::Simulator,
        }
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
        let mut latencies = Vec::new();
        for (place, &size) in
            self.between.iter().flat_map(|place| sizes.iter().map(move |size| (place, size)))
        {
            latencies.push(latency(place.between(), size, self.packets, &tool(), &show(&bar))?);
        }
        let costs = match self.no_operations {
            true => Vec::new(),
            false => operations(u64::from(self.packets), &tool(), &show(&bar))?,
        };
        bar.finish_and_clear();
        let records: Vec<Record> = latencies
            .iter()
            .map(|latency| latency.record.clone())
            .chain(costs.iter().map(|cost| cost.record.clone()))
            .collect();
        self.output.write(file, &records)?;
        let mut out = io::stdout().lock();
        if self.output.json {
            for record in &records {
                writeln!(out, "{}", serde_json::to_string(record)?)?;
            }
        } else {
            text::latency(&mut out, &latencies, &costs)?;
        }
        let lost = latencies.iter().filter(|latency| latency.found.lost > 0);
        let lost: Vec<String> =
            lost.map(|l| format!("{} of {} bytes", l.found.lost, l.record.parameters["size"])).collect();
        if !lost.is_empty() {
            let lost = lost.join(", ");
            eprintln!("fastpath: note: packets that did not return within a second are left out: {lost}");
        }
        if let Some(worst) = records.iter().find(|r| r.provenance.disturbance.disturbed).or(records.first()) {
            warn(worst);
        }
        Ok(Answer::Yes)
    }
}
