//! Whether a machine carries an emulated network: packets per second, TCP rate, lateness, memory
//! and start time, each with a 95 % interval, and what limits them.
//!
//! ```text
//!  EngineCosts (measured) ─┐                    ┌─▶ values with intervals
//!                          ├─▶ predict ─▶ judge ┼─▶ limits, each as a share of what there is
//!  Demand (of a network) ──┘                    └─▶ verdict: carries, up to x, not
//! ```
//!
//! A worker's time for a packet is a fitted [`Model`] over counts per delivered packet
//! ([`PacketShape`]).
//! Workers scale by [`ScalingCosts`]. Lateness grows with ρ/(1 − ρ) of the busiest worker's load ρ,
//! as a queueing time does (Kleinrock, *Queueing Systems* I, 1975). Read first: [`Demand`].

mod costs;
mod verdict;

pub use costs::{
    ACKS, COLUMNS, ENGINE_NS, EngineCosts, LabCosts, LatenessCosts, MemoryCosts, PacketShape, StartCosts,
    TCP_GOODPUT,
};
pub use verdict::{CapacityLimit, CapacityVerdict, LimitKind, Remedy, judge, remedies};

use crate::Estimate;
use crate::model::ModelError;
use crate::scaling::PartLoad;
use serde::{Deserialize, Serialize};

/// What a network asks of a machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Demand {
    /// Packets per second that hosts send to each other; 0 if no load is given.
    pub packets_per_second: f64,
    /// What a packet passes, on average over the load.
    pub packet: PacketShape,
    /// The load of each worker; one worker has the whole.
    pub parts: Vec<PartLoad>,
    /// Cores that this process may use.
    pub cores: usize,
    /// Number of links.
    pub links: usize,
    /// Number of interfaces of hosts.
    pub ports: usize,
    /// Bytes of the frames that the delays and rates of links hold at this load.
    pub held_bytes: f64,
    /// Bytes of the frames that all queues hold at most, beside `held_bytes`.
    pub queue_bytes_max: f64,
    /// Bytes that frames may take.
    pub memory_limit: f64,
    /// The largest lateness of a frame that a run allows, in microseconds; infinite where none is
    /// given.
    pub tolerance_us: f64,
    /// Hosts that a lab makes; 0 for a network between interfaces.
    pub lab_hosts: usize,
    /// The slowest link on the way of a TCP connection, bits per second; infinite without a rate.
    pub tcp_bottleneck_bps: f64,
    /// What a full packet of that connection passes.
    pub tcp_packet: PacketShape,
}

/// What a network will do on a machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Predicted {
    /// Packets per second from host to host that the workers carry at most.
    pub packets_per_second: Estimate,
    /// Bits per second that one TCP connection carries at most; none if it was not measured.
    pub tcp_bits_per_second: Option<Estimate>,
    /// Median lateness at the given load, in microseconds. Infinite above the capacity.
    pub lateness_p50_us: Estimate,
    /// 99th percentile of the lateness at the given load, in microseconds.
    pub lateness_p99_us: Estimate,
    /// Resident memory at the given load, in bytes.
    pub memory_bytes: Estimate,
    /// Seconds until the network runs; none if it was not measured.
    pub start_s: Option<Estimate>,
    /// Load of the busiest worker at the given load, as a share of a core.
    pub busiest: Estimate,
    /// Load of each worker, in their order.
    pub workers: Vec<Estimate>,
}

/// Why there is no prediction.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The costs lack a column.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No port of this kind was measured.
    #[error(
        "ports of kind {kind} were not measured (measured: {have}): measure again, as root or with user namespaces"
    )]
    NoPort {
        /// The kind.
        kind: String,
        /// The kinds in the costs.
        have: &'static str,
    },
    /// The network has no worker.
    #[error("a network needs a worker")]
    NoWorker,
}

/// Predicts what `demand` does on the machine of `costs`.
///
/// # Errors
/// [`CapacityError`] if the costs do not cover the demand.
pub fn predict(costs: &EngineCosts, demand: &Demand) -> Result<Predicted, CapacityError> {
    if demand.parts.is_empty() {
        return Err(CapacityError::NoWorker);
    }
    let packet_ns = costs.packet_ns(&demand.packet)?;
    let one_worker = packet_ns.map(|ns| 1e9 / ns.max(1e-3));
    let speedup = costs.scaling.speedup(&demand.parts);
    // Workers beyond the cores take turns.
    let share = (demand.cores as f64 / demand.parts.len() as f64).min(1.0);
    let packets_per_second = match demand.parts.len() {
        1 => one_worker,
        _ => independent(one_worker, speedup.map(|speedup| speedup * share), |rate, factor| rate * factor),
    };
    let load = |capacity: Estimate| capacity.map(|capacity| demand.packets_per_second / capacity);
    let busiest = load(packets_per_second);
    let work = |part: &PartLoad| part.work + part.crossings * costs.scaling.handover.value;
    let most = demand.parts.iter().map(work).fold(0.0, f64::max).max(1e-12);
    let workers = demand.parts.iter().map(|part| busiest.map(|busy| busy * work(part) / most)).collect();
    let lab = costs.lab.as_ref().filter(|_| demand.packet.port == "tap");
    let [lateness_p50_us, lateness_p99_us] = lab.map_or(&costs.lateness, |lab| &lab.lateness).at(busiest);
    let tcp = costs.tcp_bits_per_second(&demand.tcp_packet)?;
    Ok(Predicted {
        packets_per_second,
        tcp_bits_per_second: tcp.zip(costs.lab.as_ref()).map(|(machine, lab)| {
            let link = lab.tcp_fill.map(|share| share * TCP_GOODPUT * demand.tcp_bottleneck_bps);
            lesser(machine, link)
        }),
        lateness_p50_us,
        lateness_p99_us,
        memory_bytes: costs.memory.of(demand),
        start_s: costs.start.of(demand),
        busiest,
        workers,
    })
}

/// The lesser of two quantities.
fn lesser(a: Estimate, b: Estimate) -> Estimate {
    Estimate { value: a.value.min(b.value), low: a.low.min(b.low), high: a.high.min(b.high) }
}

/// Combines two independent positive quantities by a function that rises with both: the relative
/// half-widths add in squares.
fn independent(a: Estimate, b: Estimate, combine: impl Fn(f64, f64) -> f64) -> Estimate {
    let value = combine(a.value, b.value);
    let part = |of: f64, end: f64| if of > 0.0 { end / of - 1.0 } else { 0.0 };
    let below = part(a.value, a.low).hypot(part(b.value, b.low));
    let above = part(a.value, a.high).hypot(part(b.value, b.high));
    Estimate { value, low: value * (1.0 - below).max(0.0), high: value * (1.0 + above) }
}

#[cfg(test)]
mod tests;
