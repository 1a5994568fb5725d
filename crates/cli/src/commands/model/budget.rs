//! `fastpath model budget`: the packet rate that threads on engines sustain.

use crate::{Answer, view};
use clap::{Args, ValueEnum};
use fastpath_model::budget::{BudgetQuery, Formula, IXP1200_HZ, Layout, PacketCycles, budget};
use fastpath_model::output::BudgetOutput;

/// Compute the packet rate that threads and engines sustain.
#[derive(Args)]
pub(super) struct BudgetCommand {
    /// Compute and memory cycles per packet of each pipeline stage. A stage has one engine. Compute
    /// may be a range (LOW..HIGH).
    #[arg(long, value_name = "COMPUTE:MEMORY,…", value_delimiter = ',', required_unless_present = "work")]
    stages: Vec<PacketCycles>,
    /// Compute and memory cycles per packet of the whole work, which --engines divides.
    #[arg(long, value_name = "COMPUTE:MEMORY", conflicts_with = "stages", requires = "engines")]
    work: Option<PacketCycles>,
    /// Number of engines that share the work evenly.
    #[arg(long, value_name = "N", requires = "work", value_parser = clap::value_parser!(u32).range(1..))]
    engines: Option<u32>,
    /// Let each engine do the whole work for its share of the packets.
    #[arg(long, requires = "engines")]
    parallel: bool,
    /// Threads per engine.
    #[arg(long, value_name = "N", default_value_t = 4)]
    threads: u32,
    /// Share u of the memory cycles that are hidden by other threads, 0 to 1. By default the whole
    /// range is shown.
    #[arg(long, value_name = "U")]
    hidden: Option<f64>,
    /// Engine clock in Hz. The default is that of the IXP1200.
    #[arg(long, value_name = "HZ", default_value_t = IXP1200_HZ)]
    clock: f64,
    /// Offered load in packets/s.
    #[arg(long, value_name = "PPS")]
    offered: Option<f64>,
    /// Formula of Joglekar 2004 to apply: T_c + (1-u)·T_m, or T_c + (1-u)·T_m/threads.
    #[arg(long, default_value = "per-packet")]
    formula: FormulaArg,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormulaArg {
    PerPacket,
    PerThread,
}

impl BudgetCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let layout = match (self.work, self.engines) {
            (Some(work), Some(engines)) if self.parallel => Layout::Parallel { work, engines },
            (Some(work), Some(engines)) => Layout::even_pipeline(work, engines),
            _ => Layout::Pipelined(self.stages),
        };
        let question = BudgetQuery {
            layout,
            threads: self.threads,
            hidden: self.hidden,
            clock_hz: self.clock,
            offered_pps: self.offered,
            formula: match self.formula {
                FormulaArg::PerPacket => Formula::PerPacket,
                FormulaArg::PerThread => Formula::PerThread,
            },
        };
        let output = BudgetOutput { budget: budget(&question)?, question };
        view::print(&output, self.json)?;
        Ok(Answer::Yes)
    }
}
