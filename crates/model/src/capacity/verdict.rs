//! The verdict on a prediction: what limits the network, and with what it would be carried.

use super::{CapacityError, Demand, EngineCosts, Predicted, predict};
use crate::Estimate;
use serde::{Deserialize, Serialize};

/// Whether the machine carries the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityVerdict {
    /// It does, with all intervals.
    Carries,
    /// It does up to a load: no load is given, or the given one lies within the interval.
    UpTo,
    /// It does not.
    Not,
}

/// What may limit a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// The time of a worker.
    Worker,
    /// Lateness against the tolerance.
    Lateness,
    /// Memory for frames.
    Memory,
    /// More workers than cores.
    Cores,
}

/// A limit, and how much of it the network takes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CapacityLimit {
    /// The kind.
    pub kind: LimitKind,
    /// The limit in words: `worker 1: 137 % of a core`.
    pub what: String,
    /// The share that the network takes: above 1 the limit is exceeded.
    pub share: Estimate,
}

/// What would make a network fit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Remedy {
    /// What to write: `--workers 2`.
    pub with: String,
    /// Packets per second with it.
    pub packets_per_second: Estimate,
    /// Whether the machine then carries the load.
    pub carries: bool,
}

/// Judges a prediction. The limits are in the order of the share that they take.
pub fn judge(demand: &Demand, predicted: &Predicted) -> (CapacityVerdict, Vec<CapacityLimit>) {
    let mut limits = limits(demand, predicted);
    limits.sort_by(|a, b| b.share.value.total_cmp(&a.share.value));
    let is_beyond = |end: fn(&Estimate) -> f64| limits.iter().any(|limit| end(&limit.share) > 1.0);
    // Without a load only what the network takes by itself is against it.
    let verdict = match demand.packets_per_second > 0.0 {
        _ if is_beyond(|share| share.low) => CapacityVerdict::Not,
        true if !is_beyond(|share| share.high) => CapacityVerdict::Carries,
        _ => CapacityVerdict::UpTo,
    };
    (verdict, limits)
}

fn limits(demand: &Demand, predicted: &Predicted) -> Vec<CapacityLimit> {
    let mut limits = Vec::new();
    let mut add = |kind, what: String, share| limits.push(CapacityLimit { kind, what, share });
    if demand.packets_per_second > 0.0 {
        for (number, &load) in predicted.workers.iter().enumerate() {
            let share = percent(load.value);
            let what = match demand.lab_hosts {
                0 => format!("worker {number}: {share} of a core"),
                _ => format!("worker {number} with the hosts: {share} of what they carry"),
            };
            add(LimitKind::Worker, what, load);
        }
        let late = predicted.lateness_p99_us.map(|us| us / demand.tolerance_us);
        let what = match predicted.lateness_p99_us.value {
            us if us.is_finite() => {
                format!(
                    "lateness: 99 % of frames within {us:.0} µs, {:.0} µs are tolerated",
                    demand.tolerance_us
                )
            }
            _ => "lateness: it grows without bound".to_owned(),
        };
        // The one follows from the other above the capacity.
        if predicted.busiest.low < 1.0 && demand.tolerance_us.is_finite() {
            add(LimitKind::Lateness, what, late);
        }
    }
    let held = Estimate {
        value: demand.held_bytes,
        low: demand.held_bytes,
        high: demand.held_bytes + demand.queue_bytes_max,
    };
    let held = held.map(|bytes| bytes / demand.memory_limit);
    let what = format!("memory: frames in links take {} of what they may have", percent(held.value));
    // Queues are full on overload only: that is the network's choice, not the machine's.
    add(LimitKind::Memory, what, Estimate::exact(held.value));
    let share = demand.parts.len() as f64 / demand.cores.max(1) as f64;
    if share > 1.0 {
        let what = format!("{} workers on {} cores", demand.parts.len(), demand.cores);
        // They take turns, which costs speed and is in the prediction: no limit of its own.
        add(LimitKind::Cores, what, Estimate::exact(1.0));
    }
    limits
}

fn percent(share: f64) -> String {
    match share {
        share if share < 0.0995 => format!("{:.1} %", 100.0 * share),
        share => format!("{:.0} %", 100.0 * share),
    }
}

/// Predicts alternatives to a network that is not carried for certain, each with what to write for
/// it. Returns those that carry more, the best first.
///
/// # Errors
/// [`CapacityError`] of an alternative.
pub fn remedies(
    costs: &EngineCosts,
    now: &Predicted,
    alternatives: &[(String, Demand)],
) -> Result<Vec<Remedy>, CapacityError> {
    let mut found = Vec::new();
    for (with, demand) in alternatives {
        let predicted = predict(costs, demand)?;
        let carries = judge(demand, &predicted).0 == CapacityVerdict::Carries;
        let packets_per_second = predicted.packets_per_second;
        if packets_per_second.low > now.packets_per_second.value || carries {
            found.push(Remedy { with: with.clone(), packets_per_second, carries });
        }
    }
    found.sort_by(|a, b| b.packets_per_second.value.total_cmp(&a.packets_per_second.value));
    Ok(found)
}
