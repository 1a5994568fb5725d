//! Loss in runs: the lengths of runs of received and of lost packets are drawn from two tables.
//! Tables measured from a loss trace reproduce its run lengths, which chains with a few states do
//! not. On why run lengths matter: G. Carle and E. W. Biersack, "Survey of Error Recovery
//! Techniques for IP-Based Audio-Visual Multicast Applications", IEEE Network 11(6), 1997.

use fastpath_units::Rng;
use std::fmt;
use std::sync::Arc;

/// Lengths of runs in packets. All entries of a table are equally likely. Tables of one entry make
/// a fixed pattern. The first run passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Runs {
    /// Lengths of runs of packets that pass.
    pub passed: Arc<[u32]>,
    /// Lengths of runs of lost packets.
    pub lost: Arc<[u32]>,
}

impl Runs {
    /// Returns the share of packets lost in the long run: the mean lost run over both means.
    pub fn share(&self) -> f64 {
        let (lost, passed) = (moments(&self.lost).0, moments(&self.passed).0);
        if lost + passed > 0.0 { lost / (lost + passed) } else { 0.0 }
    }

    /// See [`LossSpec::variance_inflation`](super::LossSpec::variance_inflation): by the central
    /// limit theorem of renewal rewards, Var(L·(1−s) − G·s) / (E(L + G)·s·(1−s)).
    pub fn variance_inflation(&self) -> f64 {
        let ((lost, lost_var), (passed, passed_var)) = (moments(&self.lost), moments(&self.passed));
        let share = self.share();
        if share <= 0.0 || share >= 1.0 {
            return 1.0;
        }
        let variance = lost_var * (1.0 - share) * (1.0 - share) + passed_var * share * share;
        variance / ((lost + passed) * share * (1.0 - share))
    }
}

/// Returns the mean and the variance of an entry.
fn moments(table: &[u32]) -> (f64, f64) {
    if table.is_empty() {
        return (0.0, 0.0);
    }
    let n = table.len() as f64;
    let mean = table.iter().map(|run| f64::from(*run)).sum::<f64>() / n;
    (mean, table.iter().map(|run| (f64::from(*run) - mean) * (f64::from(*run) - mean)).sum::<f64>() / n)
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "runs of {:.1} lost after {:.1}", moments(&self.lost).0, moments(&self.passed).0)
    }
}

/// The state of a law of runs.
#[derive(Debug)]
pub(crate) struct RunLoss {
    law: Runs,
    loses: bool,
    left: u32,
}

impl RunLoss {
    pub(crate) fn new(law: Runs) -> RunLoss {
        // As after a lost run: the first draw starts a run that passes.
        RunLoss { law, loses: true, left: 0 }
    }

    /// Returns true if the current packet is lost. One draw at the start of each run, if its table
    /// has more than one entry.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
        // Several empty runs in a row are possible. If all runs are empty, every packet passes.
        for _ in 0..64 {
            if self.left > 0 {
                self.left -= 1;
                return self.loses;
            }
            self.loses = !self.loses;
            let table = if self.loses { &self.law.lost } else { &self.law.passed };
            self.left = match &table[..] {
                [] => 0,
                [only] => *only,
                several => several[rng.below(several.len() as u64) as usize],
            };
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(passed: &[u32], lost: &[u32], seed: u64, n: usize) -> Vec<bool> {
        let mut runner = RunLoss::new(Runs { passed: passed.into(), lost: lost.into() });
        let mut rng = Rng::new(seed);
        (0..n).map(|_| runner.draw(&mut rng)).collect()
    }

    #[test]
    fn tables_of_one_entry_make_a_pattern() {
        let pattern: String =
            losses(&[3], &[2], 1, 12).iter().map(|lost| if *lost { 'x' } else { '.' }).collect();
        assert_eq!(pattern, "...xx...xx..");
        assert!(losses(&[], &[], 1, 5).iter().all(|lost| !lost));
        assert!(losses(&[], &[1], 1, 5).iter().all(|lost| *lost));
    }

    #[test]
    fn runs_have_the_lengths_of_their_tables_and_losses_their_share() {
        let (passed, lost) = ([10, 20, 90], [1, 1, 2, 8]);
        let n = 200_000;
        let seen = losses(&passed, &lost, 4, n);
        let mut runs = std::collections::BTreeMap::new();
        // The last run may be incomplete.
        let changes = seen.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()));
        let all: Vec<(bool, usize)> = changes.collect();
        all[..all.len() - 1].iter().for_each(|run| *runs.entry(*run).or_insert(0.0) += 1.0);
        let total: f64 = runs.iter().filter(|((lost, _), _)| *lost).map(|(_, n)| n).sum();
        let chi2: f64 = [(1, 0.5), (2, 0.25), (8, 0.25)]
            .iter()
            .map(|(len, p)| (runs[&(true, *len)] - total * p).powi(2) / (total * p))
            .sum();
        // χ² with 2 degrees of freedom: 13.8 is its 99.9 % quantile.
        assert!(chi2 < 13.8, "{runs:?}");
        let law = Runs { passed: passed.into(), lost: lost.into() };
        assert!((law.share() - 3.0 / 43.0).abs() < 1e-12);
        let sigma = (n as f64 * law.share() * (1.0 - law.share()) * law.variance_inflation()).sqrt();
        let lost = seen.iter().filter(|lost| **lost).count() as f64;
        // ± 3.291 σ: a correct law fails at one seed in a thousand.
        assert!((lost - n as f64 * law.share()).abs() < 3.291 * sigma, "{lost} ± {sigma}");
    }
}
