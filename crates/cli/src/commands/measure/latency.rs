//! `fastpath measure latency`: the time of a packet in a unit, and the cost of each operation.

use super::Output;
use crate::Answer;
use clap::{Args, ValueEnum};
use fastpath::measurements::{LatencyQuestion, UnitsBetween};

/// Measure the latency of a unit by packet size, and operation costs.
///
/// A packet goes from a generator through a forward unit to a swap unit, and back. The latency
/// follows equation 1 of Hartikainen 2016: half of the time between the probes, less the time in
/// the swap unit. Operations are measured on units with memory ports.
#[derive(Args)]
pub(super) struct LatencyCommand {
    /// Frame lengths in bytes. By default the published ones, 64 to 1500.
    #[arg(long, alias = "frames", value_name = "BYTES,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(60..=9000))]
    size: Vec<u32>,
    /// Packets per size.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(8..=10_000_000))]
    packets: u32,
    /// Kind of ports between the units.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "memory")]
    between: Vec<UnitPorts>,
    /// Measure latencies only, not the costs of operations.
    #[arg(long)]
    no_operations: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnitPorts {
    /// Memory ports, on one core.
    Memory,
    /// Packet sockets between namespaces, with the engine on another core.
    Namespaces,
    /// The simulated CN6880s of Hartikainen 2016, in virtual time. Sizes then include the FCS.
    Simulator,
}

impl UnitPorts {
    fn between(self) -> UnitsBetween {
        match self {
            UnitPorts::Memory => UnitsBetween::Memory,
            UnitPorts::Namespaces => UnitsBetween::Namespaces,
            UnitPorts::Simulator => UnitsBetween::Simulator,
        }
    }
}

impl LatencyCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let question = LatencyQuestion {
            between: self.between.iter().map(|ports| ports.between()).collect(),
            sizes: self.size,
            packets: self.packets,
            operations: !self.no_operations,
        };
        self.output.record(|tool, progress| Ok(question.measure(tool, progress)?))
    }
}
