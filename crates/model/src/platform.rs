//! A platform as a model sees it: its integer score, its copy rate, and the forwarding rate
//! measured on it.

use crate::table::{Table, TableError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The benchmark of an integer score. Scores of different kinds are never compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreKind {
    /// EEMBC CoreMark, iterations/s of one core.
    Coremark,
    /// This project's own integer score of one core.
    Own,
}

/// A platform.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Platform {
    /// Its name, for reports.
    pub name: String,
    /// Integer score of one core, above 0.
    pub score: f64,
    /// The benchmark of the score.
    pub score_kind: ScoreKind,
    /// Copy (memmove) rate in **bit/s**, above 0. Benchmarks print MiB/s: see [`bits_from_mib`].
    pub copy_bits_per_s: f64,
    /// Forwarding rate of the program measured on it, packets/s.
    #[serde(default)]
    pub rate_pps: Option<f64>,
    /// Packet length of that measurement, bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_bytes: Option<f64>,
    /// The test of the wire it was measured over, to tell whether the wire was the limit.
    #[serde(default)]
    pub wire: Option<LineRateTest>,
}

/// A test of a wire and its driver with one large frame size (Hugly 2024, "Where might the time
/// go").
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct LineRateTest {
    /// Frames/s reached.
    pub packets_per_s: f64,
    /// Frame size, bytes.
    pub frame_bytes: f64,
    /// Nominal bit rate.
    pub bits_per_s: f64,
}

/// Converts a copy rate in MiB/s (2²⁰ B) to bit/s.
pub fn bits_from_mib(mib_per_s: f64) -> f64 {
    mib_per_s * 1_048_576.0 * 8.0
}

impl LineRateTest {
    /// Returns the per-packet overhead in seconds: po = t(m) − 8·m/R.
    pub fn overhead_s(&self) -> f64 {
        1.0 / self.packets_per_s - 8.0 * self.frame_bytes / self.bits_per_s
    }

    /// Returns the time to send a packet of `bytes`, t(L) = po + 8·L/R, in seconds.
    pub fn transmission_s(&self, bytes: f64) -> f64 {
        self.overhead_s() + 8.0 * bytes / self.bits_per_s
    }
}

/// Why a table of platforms cannot be read.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum PlatformError {
    /// The table is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A column is missing under all its names.
    #[error("no column for {what} (have: {have}): name it one of {names}")]
    NoColumn {
        /// The contents that the missing column would have.
        what: &'static str,
        /// The columns of the table.
        have: String,
        /// The accepted names.
        names: String,
    },
}

/// Column names of a copy rate, each with bit/s per unit. Gib/s is not among them, because Hugly
/// 2024 uses it for 10⁹ bit/s.
const COPY_COLUMNS: [(&str, f64); 6] = [
    ("copy_bits_per_s", 1.0),
    ("copy_bytes_per_s", 8.0),
    ("copy_mib_per_s", 8.0 * 1_048_576.0),
    ("memmove_mib_per_s", 8.0 * 1_048_576.0),
    ("copy_gbit_per_s", 1e9),
    ("memmove_gbit_per_s", 1e9),
];
const SCORE_COLUMNS: [(&str, ScoreKind); 2] = [("coremark", ScoreKind::Coremark), ("score", ScoreKind::Own)];
const LENGTH_COLUMNS: [(&str, ()); 4] =
    [("packet_size", ()), ("packet_bytes", ()), ("packet_length", ()), ("frame_bytes", ())];
const RATE_COLUMNS: [(&str, f64); 4] =
    [("rate_pps", 1.0), ("packets_per_s", 1.0), ("rate_kpps", 1e3), ("rate_mpps", 1e6)];

/// Reads platforms from CSV text: columns `platform`, `coremark` or `score` (per core), a copy rate
/// with its unit in the name, and optionally the measured `rate_pps` and its
/// `packet_size` in bytes.
///
/// # Errors
/// [`PlatformError`] for a table that is wrong or lacks a column.
pub fn from_csv(text: &str) -> Result<Vec<Platform>, PlatformError> {
    let table = Table::from_csv(text)?;
    let (name, ()) = column(&table, "the name", &[("platform", ()), ("name", ()), ("host", ())])?;
    let (score, score_kind) = column(&table, "the integer score per core", &SCORE_COLUMNS)?;
    let (copy, copy_unit) = column(&table, "the copy rate", &COPY_COLUMNS)?;
    let rates = match column(&table, "the measured rate", &RATE_COLUMNS) {
        Ok((rate, unit)) => table.numbers(rate)?.into_iter().map(|r| Some(r * unit)).collect(),
        Err(_) => vec![None; table.len()],
    };
    let lengths = match column(&table, "the packet length", &LENGTH_COLUMNS) {
        Ok((length, ())) => table.numbers(length)?.into_iter().map(Some).collect(),
        Err(_) => vec![None; table.len()],
    };
    let (names, scores, copies) = (table.texts(name)?, table.numbers(score)?, table.numbers(copy)?);
    let rows = names.into_iter().zip(scores).zip(copies).zip(rates).zip(lengths);
    Ok(rows
        .map(|((((name, score), copy), rate_pps), packet_bytes)| Platform {
            name,
            score,
            score_kind,
            copy_bits_per_s: copy * copy_unit,
            rate_pps,
            packet_bytes,
            wire: None,
        })
        .collect())
}

/// Returns the first of the known names that the table has, with its meaning.
fn column<T: Copy>(
    table: &Table,
    what: &'static str,
    known: &[(&'static str, T)],
) -> Result<(&'static str, T), PlatformError> {
    let found = known.iter().find(|(name, _)| table.names().iter().any(|n| n == name));
    found.copied().ok_or_else(|| PlatformError::NoColumn {
        what,
        have: table.names().join(", "),
        names: known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_read_with_the_copy_rate_s_unit() {
        let text =
            "platform,coremark,memmove_mib_per_s,rate_pps\nAPU2,3044,248,45377\nCI,28659,8102,736357\n";
        let read = from_csv(text).expect("a table of platforms");
        assert_eq!((read[0].name.as_str(), read[1].rate_pps), ("APU2", Some(736_357.0)));
        assert_eq!(read[0].copy_bits_per_s, 248.0 * 8.0 * 1_048_576.0);
        assert_eq!(from_csv("host,score,copy_gbit_per_s\nx,5,2\n").expect("a table")[0].copy_bits_per_s, 2e9);
    }

    #[test]
    fn a_copy_rate_without_unit_is_refused() {
        let error = from_csv("platform,coremark,memmove\nx,1,2\n").unwrap_err().to_string();
        assert!(
            error.starts_with("no column for the copy rate (have: platform, coremark, memmove)"),
            "{error}"
        );
    }
}
