//! Where the caches end, from latencies over the working set: the curve is a staircase of plateaus,
//! one per cache.
//!
//! A plateau ends at the last size whose latency is within [`RISE`] of its level; the next begins
//! where the curve is flat again over an octave. How sure an edge is: the readings of each size are
//! resampled with replacement (Efron 1979), the edges found again, and the share of resamples
//! counted that put this edge at the same size.

use super::median;
use fastpath_units::Rng;
use serde::{Deserialize, Serialize};

/// Above this factor over the level a plateau has ended.
const RISE: f64 = 1.35;
/// Below this factor over an octave the curve is flat.
const FLAT: f64 = 1.20;
/// A plateau spans an octave at least: three sizes at two per octave.
const PLATEAU: usize = 3;
const RESAMPLES: usize = 200;

/// The end of a cache.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CacheEdge {
    /// The cache: 1 is the smallest.
    pub level: usize,
    /// The largest working set that still fits, bytes.
    pub fits_bytes: usize,
    /// The smallest measured that does not, bytes.
    pub exceeds_bytes: usize,
    /// Latency of the cache, ns.
    pub ns: f64,
    /// Share of resamples that find this edge at this size, 0 … 1.
    pub confidence: f64,
    /// What the kernel says the cache holds, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<usize>,
}

impl CacheEdge {
    /// Whether what was found agrees with what the kernel says; `None` where it says nothing.
    pub fn agrees(&self) -> Option<bool> {
        // A full cache holds other things too (the stack, the kernel's), so it may seem an octave
        // step smaller.
        self.declared_bytes.map(|d| d as f64 >= self.fits_bytes as f64 * 0.99 && d <= 2 * self.exceeds_bytes)
    }
}

/// Finds the edges in the readings (ns, several per size) at growing sizes.
pub(super) fn edges(sizes: &[usize], readings: &[Vec<f64>], rng: &mut Rng) -> Vec<CacheEdge> {
    let curve: Vec<f64> = readings.iter().map(|r| median(&mut r.clone())).collect();
    let found = plateaus(&curve);
    let mut votes = vec![0usize; found.len()];
    for _ in 0..RESAMPLES {
        let mut resample = |r: &Vec<f64>| {
            let mut drawn: Vec<f64> = r.iter().map(|_| r[rng.below(r.len() as u64) as usize]).collect();
            median(&mut drawn)
        };
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

/// The last size of each plateau but the last, and its level.
fn plateaus(curve: &[f64]) -> Vec<(usize, f64)> {
    let mut ends = Vec::new();
    let mut start = 0;
    while start + PLATEAU < curve.len() {
        let level = median(&mut curve[start..start + PLATEAU].to_vec());
        // The last one within, so that a single disturbed size does not end a plateau.
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

/// Sizes of the data caches of the first core as the kernel lists them, smallest first.
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

/// `48K`, `2M`
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

    /// A machine with 32 KiB at 1 ns, 1 MiB at 4 ns, and memory at 80 ns: what a load costs on
    /// average.
    fn machine(bytes: usize) -> f64 {
        let within = |cache: f64| (cache / bytes as f64).min(1.0);
        let (l1, l2) = (within(32768.0), within(1_048_576.0));
        l1 + 4.0 * (l2 - l1) + 80.0 * (1.0 - l2)
    }

    fn sizes() -> Vec<usize> {
        (7..28).flat_map(|k| [1 << k, 3 << (k - 1)]).collect()
    }

    #[test]
    fn caches_are_found_through_noise_and_with_confidence() {
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
    fn an_edge_that_readings_disagree_about_is_less_sure() {
        let mut readings: Vec<Vec<f64>> = sizes().iter().map(|s| vec![machine(*s); 9]).collect();
        let last = sizes().iter().position(|&s| s == 32 << 10).unwrap();
        readings[last] = vec![1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0];
        let found = edges(&sizes(), &readings, &mut Rng::new(3));
        assert!(found[0].confidence < 0.9 && found[0].confidence > 0.3, "{found:?}");
    }

    #[test]
    fn sizes_of_the_kernel_are_read() {
        assert_eq!(
            [bytes("48K"), bytes("2M"), bytes("512"), bytes("x")],
            [Some(48 << 10), Some(2 << 20), Some(512), None]
        );
    }
}
