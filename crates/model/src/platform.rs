//! What a model needs to know of a machine: its integer score, its copy rate, and what was measured on it.

use serde::{Deserialize, Serialize};

/// Whose integer score it is. Scores of different kinds are never compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreKind {
    /// EEMBC CoreMark, iterations/s of one core.
    Coremark,
    /// This project's own integer score of one core.
    Own,
}

/// A machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Platform {
    /// Its name, for reports.
    pub name: String,
    /// Integer score of one core, above 0.
    pub score: f64,
    /// Whose score it is.
    pub score_kind: ScoreKind,
    /// Copy (memmove) rate in **bit/s**, above 0. Benchmarks print MiB/s: see [`bits_from_mib`].
    pub copy_bits_per_s: f64,
    /// Measured forwarding rate of the program in question, packets/s.
    #[serde(default)]
    pub rate_pps: Option<f64>,
    /// The wire it was measured over, to tell whether that was the limit.
    #[serde(default)]
    pub wire: Option<Wire>,
}

/// What a wire and its driver can send, from a test with one large frame size (seed 002, "Transmission").
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Wire {
    /// Frames/s it reached.
    pub packets_per_s: f64,
    /// With frames of this many bytes.
    pub frame_bytes: f64,
    /// At this nominal bit rate.
    pub bits_per_s: f64,
}

/// bit/s of a copy rate printed in MiB/s (2²⁰ B).
pub fn bits_from_mib(mib_per_s: f64) -> f64 {
    mib_per_s * 1_048_576.0 * 8.0
}

impl Wire {
    /// Per-packet overhead in seconds: po = t(m) − 8·m/R.
    pub fn overhead_s(&self) -> f64 {
        1.0 / self.packets_per_s - 8.0 * self.frame_bytes / self.bits_per_s
    }

    /// Time to send a packet of `bytes`: t(L) = po + 8·L/R, in seconds.
    pub fn transmission_s(&self, bytes: f64) -> f64 {
        self.overhead_s() + 8.0 * bytes / self.bits_per_s
    }
}
