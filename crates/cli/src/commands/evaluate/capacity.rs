//! `fastpath evaluate capacity`: how well this machine's capacity is predicted.

use crate::commands::measure::{bar, show, tool};
use crate::{Answer, view};
use clap::Args;
use fastpath::capacity::CapacityRecord;
use fastpath_evaluate::{PointKind, evaluate_capacity};
use fastpath_measure::Effort;

/// Predict random networks on this machine, then measure them.
///
/// Topologies, queue disciplines and loads are random. Each network is predicted first, then
/// measured twice. Criteria, for each kind and for all: 95 % intervals cover 90 to 99 % of the
/// speeds; the median error is at most 3.7 %, or 1.5 times the median difference of two
/// measurements; at least 95 % of the answers whether a load is carried are right, and at most 2 %
/// are a wrong yes. A point takes one or two seconds. The exit code is 1 if a criterion is missed.
#[derive(Args)]
pub(super) struct CapacityCommand {
    /// Number of networks.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    points: u32,
    /// Kinds of points, which take turns: ports in memory, namespaces at TAP ports, whole labs with
    /// links in the kernel, TCP transfers in labs
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind,
        default_value = "in-memory,tap,lab,tcp")]
    kinds: Vec<PointKind>,
    /// The first seed of the networks and of the loads.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use the record of an earlier measurement of this machine, as `fastpath check --capacity`
    /// does. By default the machine is measured for a minute first.
    #[arg(long)]
    cached: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Reads a kind of points.
fn kind(word: &str) -> Result<PointKind, String> {
    let names = PointKind::ALL.map(PointKind::name);
    let place = names.iter().position(|name| *name == word);
    place.map(|place| PointKind::ALL[place]).ok_or_else(|| format!("write some of {}", names.join(", ")))
}

impl CapacityCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let (tool, bar) = (tool(), bar());
        let cached = if self.cached { CapacityRecord::cached(&tool) } else { None };
        let record = match cached {
            Some(record) => record,
            None => CapacityRecord::measure(&tool, Effort::Full, &show(&bar))?,
        };
        let amount = (self.points as usize, self.seed);
        let found = evaluate_capacity(&record.costs, &self.kinds, amount, &show(&bar));
        bar.finish_and_clear();
        let found = found?;
        eprintln!("fastpath: costs {}", record.describe());
        view::print(&found, self.json)?;
        Ok(if found.passed == found.total { Answer::Yes } else { Answer::No })
    }
}
