//! What a run found.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// What came of offering a workload to a machine running a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Frames that arrived.
    pub offered: u64,
    /// Frames that left.
    pub forwarded: u64,
    /// Frames lost, by place and reason: `cpu queue full`, `egress underflow`.
    pub dropped: BTreeMap<String, u64>,
    /// Frames inside when nothing could move any more: 0 unless there is a deadlock.
    pub held: u64,
    /// Frames offered per second after the warm-up.
    pub offered_pps: f64,
    /// Frames forwarded per second after the warm-up.
    pub forwarded_pps: f64,
    /// From the last bit in to the last bit out, of the frames that arrived after the warm-up;
    /// `None` if none left.
    pub latency_us: Option<Latency>,
    /// The mean latency of all frames with its 95 % interval; `None` if too few left.
    pub latency_interval_us: Option<LatencyInterval>,
    /// Whether the run stopped because the workload's precision was reached; `None` if it asks for
    /// none.
    pub is_precise: Option<bool>,
    /// Usage by unit.
    pub units: BTreeMap<String, Use>,
    /// The unit that limits the throughput: where frames are lost, or else the busiest.
    pub bottleneck: String,
    /// The share of its frames the flow got through that fared worst.
    pub worst_flow_share: f64,
    /// Frames that left after a later frame of their flow.
    pub order_violations: u64,
    /// Who waits for whom, if nothing could move any more while frames were inside.
    pub deadlock: Option<Deadlock>,
    /// Events handled.
    pub events: u64,
    /// Simulated seconds, to the last event.
    pub seconds: f64,
    /// The run's fingerprint; 16 hexadecimal digits in JSON, whose numbers cannot hold it.
    #[serde(serialize_with = "hex")]
    pub trace_hash: u64,
}

impl Outcome {
    /// The share of the offered frames that were forwarded, from their rates after the warm-up.
    pub fn share(&self) -> f64 {
        if self.offered_pps == 0.0 { 0.0 } else { self.forwarded_pps / self.offered_pps }
    }

    /// Frames lost at one place, 0 if none.
    pub fn dropped_at(&self, place: &str) -> u64 {
        self.dropped.get(place).copied().unwrap_or(0)
    }
}

/// Quantiles of latency in microseconds, to 3 digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 99 of 100 were faster.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

/// The mean latency in microseconds, by means of batches after the warm-up the MSER rule cuts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyInterval {
    /// The mean.
    pub mean: f64,
    /// The low end of the 95 % interval.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// Frames the rule left out at the start.
    pub warm_up_frames: u64,
}

/// How much of a unit was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Use {
    /// The share of its servers, cores, threads or ports that held a packet, over time.
    pub busy: f64,
    /// The share of time its arithmetic units computed; microengines only.
    pub computing: Option<f64>,
    /// u: the fraction of memory time hidden behind other threads' computation; microengines only.
    pub hidden: Option<f64>,
    /// Packets waiting before it, in all its queues, averaged over time.
    pub queue_mean: f64,
    /// Most packets waiting in one of its queues.
    pub queue_max: u64,
}

/// A circle of waiting, in sentences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    /// `pci server 0 holds packet 3 and waits for room in cpu`, and so on.
    pub waits: Vec<String>,
}

/// Serialises a fingerprint as text.
pub(crate) fn hex<S: Serializer>(hash: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{hash:016x}"))
}
