//! The outcome of a run: counts, latencies, and the use of each unit.

use fastpath_units::{Distribution, Duration};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The outcome of a workload that was offered to a machine with a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Frames that arrived.
    pub offered: u64,
    /// Frames that left, copies included.
    pub forwarded: u64,
    /// Frames lost, by unit and reason: `cpu queue full`, `egress underflow`, `link loss`.
    pub dropped: BTreeMap<String, u64>,
    /// Copies that links with `duplicate` have made. Offered + copied = forwarded + dropped + held.
    #[serde(skip_serializing_if = "is_zero")]
    pub copied: u64,
    /// Frames inside when nothing could move any more: 0 unless there is a deadlock.
    pub held: u64,
    /// Frames offered per second after the warm-up.
    pub offered_pps: f64,
    /// Frames forwarded per second after the warm-up.
    pub forwarded_pps: f64,
    /// From the last bit in to the last bit out, of the frames that arrived after the warm-up;
    /// `None` if none left.
    pub latency_us: Option<Latency>,
    /// The same by traffic class, 0 first; `None` if no frame of a class left. Empty if the workload
    /// has one class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latency_by_class_us: Vec<Option<Latency>>,
    /// The mean latency of all frames with its 95 % interval; `None` if too few frames left.
    pub latency_interval_us: Option<LatencyInterval>,
    /// Whether the run stopped because the workload's precision was reached; `None` for a workload
    /// without one.
    pub is_precise: Option<bool>,
    /// Usage by unit.
    pub units: BTreeMap<String, Use>,
    /// The unit that limits the throughput. [`run`](crate::run()) guesses it from the losses,
    /// [`find_bottleneck`](crate::find_bottleneck) determines it. If no frame is lost, the busiest
    /// unit.
    pub bottleneck: String,
    /// The smallest share of its frames that any flow got through.
    pub worst_flow_share: f64,
    /// Frames that left after a later frame of their flow.
    pub order_violations: u64,
    /// Which server waits for which unit, if nothing could move any more while frames were inside.
    pub deadlock: Option<Deadlock>,
    /// Events handled.
    pub events: u64,
    /// Simulated seconds, to the last event.
    pub seconds: f64,
    /// The run's fingerprint; in JSON a text of 16 hexadecimal digits, because a number there may
    /// lose digits.
    #[serde(serialize_with = "hex")]
    pub trace_hash: u64,
}

impl Outcome {
    /// The share of the offered frames that were forwarded, from their rates after the warm-up.
    pub fn share(&self) -> f64 {
        if self.offered_pps == 0.0 { 0.0 } else { self.forwarded_pps / self.offered_pps }
    }

    /// Frames lost under one key of [`Outcome::dropped`], 0 if none.
    pub fn dropped_at(&self, place: &str) -> u64 {
        self.dropped.get(place).copied().unwrap_or(0)
    }
}

/// Latency in microseconds: quantiles within 0.1 %, mean and maximum exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 99 of 100 frames were faster.
    pub p99: f64,
    /// The slowest frame.
    pub max: f64,
}

impl Latency {
    /// Returns the figures of a distribution; `None` without frames.
    pub(crate) fn of(latency: &Distribution) -> Option<Latency> {
        let us = |duration: Duration| duration.as_ps() as f64 / 1e6;
        Some(Latency {
            mean: latency.mean_ps()? / 1e6,
            p50: us(latency.quantile(0.5)?),
            p99: us(latency.quantile(0.99)?),
            max: us(latency.max()?),
        })
    }
}

/// The mean latency in microseconds, from means of batches after the warm-up that the MSER rule
/// cuts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyInterval {
    /// The mean.
    pub mean: f64,
    /// The low end of the 95 % interval.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// Frames that the rule left out at the start.
    pub warm_up_frames: u64,
    /// False if the run is short compared with the correlation of successive latencies. The
    /// interval then covers the true mean less often than 95 %: make the duration longer.
    pub is_long_enough: bool,
}

/// The use of a unit over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Use {
    /// The share of its servers, cores, threads or ports that held a packet, over time; for a link
    /// the share of its rate in use.
    pub busy: f64,
    /// The share of time in which its arithmetic units computed; microengines only.
    pub computing: Option<f64>,
    /// u: the fraction of memory time hidden behind the computation of other threads; microengines
    /// only.
    pub hidden: Option<f64>,
    /// Packets waiting in all its queues, averaged over time; for a link all packets inside, the
    /// delay line included.
    pub queue_mean: f64,
    /// The most packets waiting in one of its queues; for links the most packets inside.
    pub queue_max: u64,
    /// Counters of links only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkUse>,
}

/// Counters of the links of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkUse {
    /// Links that carried frames.
    pub links: u64,
    /// Packets on which a queue discipline set ECN CE.
    pub marked: u64,
    /// Packets delivered with flipped bits.
    pub corrupted: u64,
    /// Copies made.
    pub duplicated: u64,
}

/// A circle of waiting, in sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// `pci server 0 holds packet 3 and waits for room in cpu`, and so on.
    pub waits: Vec<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Serialises a fingerprint as text.
pub(crate) fn hex<S: Serializer>(hash: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{hash:016x}"))
}
