//! Detects cache sizes from memory latency as a function of the working set. The latency curve is a
//! staircase with one plateau per cache.
//!
//! A plateau ends at the last size whose latency is within a factor of [`RISE`] of its level. The
//! next plateau begins where the curve is flat again over an octave. The confidence of an edge
//! comes from bootstrapping (Efron 1979): the readings of each size are resampled with replacement,
//! and the edges are detected in each resample. The confidence is the share of resamples that put
//! the edge at the same size.

use fastpath_units::Rng;
use fastpath_units::stats::median;
use serde::{Deserialize, Serialize};

/// Ratio of latency to the plateau's level above which the plateau has ended.
const RISE: f64 = 1.35;
/// Rise over an octave below which the curve counts as flat.
const FLAT: f64 = 1.20;
/// Shortest plateau, in sizes: an octave, which is three sizes at two per octave.
const PLATEAU: usize = 3;
const RESAMPLES: usize = 200;

/// A cache boundary in the latency curve.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CacheEdge {
    /// Cache level: 1 is the smallest cache.
    pub level: usize,
    /// Largest measured working set that fits, bytes.
    pub fits_bytes: usize,
    /// Smallest measured working set that does not fit, bytes.
    pub exceeds_bytes: usize,
    /// Load latency of the cache, ns.
    pub ns: f64,
    /// Share of resamples that put this edge at the same size, 0 … 1.
    pub confidence: f64,
    /// Cache size that the kernel reports, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<usize>,
}

impl CacheEdge {
    /// Returns whether the measured size agrees with the size that the kernel reports. Returns
    /// `None` if the kernel reports none.
    pub fn agrees(&self) -> Option<bool> {
        // The cache also holds the stack and kernel data. It can therefore measure up to an
        // octave smaller.
        self.declared_bytes.map(|d| d as f64 >= self.fits_bytes as f64 * 0.99 && d <= 2 * self.exceeds_bytes)
    }
}

/// Detects the cache edges. `readings` holds several latencies per size, ns; `sizes` increase.
pub(super) fn edges(sizes: &[usize], readings: &[Vec<f64>], rng: &mut Rng) -> Vec<CacheEdge> {
    let curve: Vec<f64> = readings.iter().map(|r| median(r.iter().copied())).collect();
    let found = plateaus(&curve);
    let mut votes = vec![0usize; found.len()];
    for _ in 0..RESAMPLES {
        let mut resample = |r: &Vec<f64>| median(r.iter().map(|_| r[rng.below(r.len() as u64) as usize]));
        let again = plateaus(&readings.iter().map(&mut resample).collect::<Vec<_>>());
        for (vote, edge) in votes.iter_mut().zip(&found) {
            *vote += usize::from(again.iter().any(|other| other.0 == edge.0));
        }
    }
    found
        .iter()
        .zip(votes)
        .enumerate()
        .map(|(i, (&(end, ns), votes))| CacheEdge {
            level: i + 1,
            fits_bytes: sizes[end],
            exceeds_bytes: sizes[end + 1],
            ns,
            confidence: votes as f64 / RESAMPLES as f64,
            declared_bytes: None,
        })
        .collect()
}

/// Returns the index of the last size and the level of each plateau except the last one.
fn plateaus(curve: &[f64]) -> Vec<(usize, f64)> {
    let mut ends = Vec::new();
    let mut start = 0;
    while start + PLATEAU < curve.len() {
        let level = median(curve[start..start + PLATEAU].iter().copied());
        // Search from the right, so that a single disturbed size does not end a plateau.
        let within = |ns: &f64| *ns <= RISE * level;
        let Some(end) = curve[start..].iter().rposition(within).map(|i| start + i) else { break };
        if end + 1 >= curve.len() {
            break;
        }
        ends.push((end, level));
        let flat = |i: &usize| curve[i + PLATEAU - 1] <= FLAT * curve[*i];
        match (end + 1..curve.len().saturating_sub(PLATEAU - 1)).find(flat) {
            Some(next) => start = next,
            None => break,
        }
    }
    ends
}

/// Returns the data cache sizes of the first core from sysfs, bytes, in increasing order.
pub(super) fn declared() -> Vec<usize> {
    let read = |index: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    let data = (0..8).filter(|&i| read(i, "type").is_some_and(|kind| kind != "Instruction"));
    let mut sizes: Vec<usize> = data.filter_map(|i| bytes(&read(i, "size")?)).collect();
    sizes.sort_unstable();
    sizes
}

/// Parses a cache size such as `48K` or `2M` into bytes.
fn bytes(text: &str) -> Option<usize> {
    let unit = text.bytes().last()?;
    let scale = match unit {
        b'K' => 1 << 10,
        b'M' => 1 << 20,
        b'G' => 1 << 30,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<usize>().ok().map(|n| n * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean load latency, ns, of a modelled machine: 32 KiB at 1 ns, 1 MiB at 4 ns, and
    /// memory at 80 ns.
    fn machine(bytes: usize) -> f64 {
        let within = |cache: f64| (cache / bytes as f64).min(1.0);
        let (l1, l2) = (within(32768.0), within(1_048_576.0));
        l1 + 4.0 * (l2 - l1) + 80.0 * (1.0 - l2)
    }

    fn sizes() -> Vec<usize> {
        (7..28).flat_map(|k| [1 << k, 3 << (k - 1)]).collect()
    }

    #[test]
    fn caches_are_detected_in_noise_with_high_confidence() {
        let mut rng = Rng::new(11);
        let noisy = |size: &usize, rng: &mut Rng| {
            (0..9).map(|_| machine(*size) * (1.0 + 0.05 * rng.unit_f64())).collect::<Vec<_>>()
        };
        let readings: Vec<Vec<f64>> = sizes().iter().map(|size| noisy(size, &mut rng)).collect();
        let found = edges(&sizes(), &readings, &mut rng);
        let summary: Vec<(usize, usize)> = found.iter().map(|e| (e.fits_bytes, e.exceeds_bytes)).collect();
        assert_eq!(summary, [(32 << 10, 48 << 10), (1 << 20, 3 << 19)]);
        assert!(found.iter().all(|e| e.confidence > 0.95), "{found:?}");
        assert!((found[0].ns - 1.0).abs() < 0.1 && (found[1].ns - 4.0).abs() < 0.7, "{found:?}");
    }

    #[test]
    fn a_flat_curve_has_no_edges() {
        let readings = vec![vec![3.0, 3.1, 2.9]; 40];
        assert_eq!(edges(&sizes()[..40], &readings, &mut Rng::new(1)), []);
    }

    #[test]
    fn an_edge_with_inconsistent_readings_has_low_confidence() {
        let mut readings: Vec<Vec<f64>> = sizes().iter().map(|s| vec![machine(*s); 9]).collect();
        let last = sizes().iter().position(|&s| s == 32 << 10).unwrap();
        readings[last] = vec![1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0];
        let found = edges(&sizes(), &readings, &mut Rng::new(3));
        assert!(found[0].confidence < 0.9 && found[0].confidence > 0.3, "{found:?}");
    }

    #[test]
    fn cache_sizes_of_the_kernel_are_parsed() {
        assert_eq!(
            [bytes("48K"), bytes("2M"), bytes("512"), bytes("x")],
            [Some(48 << 10), Some(2 << 20), Some(512), None]
        );
    }
}
