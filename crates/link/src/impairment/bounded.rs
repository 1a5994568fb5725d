//! Independent hits with a bound on hits in a row, of all packets or of UDP datagrams.

use crate::content::{PacketContent, PacketFilter};
use fastpath_units::{Probability, Rng};
use std::fmt;
use std::num::NonZeroU32;

/// Each packet is hit with a probability, independently; but after `burst_max` hits in a row the
/// next packet passes.
///
/// With a bound the share of hits is lower than the probability: see [`Bounded::share`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounded {
    /// The probability of each decision.
    pub probability: Probability,
    /// The most packets hit in a row; `None`: no bound.
    pub burst_max: Option<NonZeroU32>,
    /// The packets that the law concerns.
    pub of: PacketFilter,
}

impl Bounded {
    /// Returns the share of hits in the long run, of the packets concerned. The number of hits
    /// since the last pass is a Markov chain with P(n) ∝ pⁿ for n ≤ N. So the share is
    /// p·(1 − pᴺ)/(1 − pᴺ⁺¹).
    pub fn share(&self) -> f64 {
        let (mean, _) = self.burst();
        if mean.is_finite() { mean / (mean + 1.0) } else { 1.0 }
    }

    /// See [`LossSpec::variance_inflation`](super::LossSpec::variance_inflation). Bursts between
    /// two passes have independent lengths: renewal theory gives Var(burst)·(1 − share)²/share.
    pub fn variance_inflation(&self) -> f64 {
        let ((_, variance), share) = (self.burst(), self.share());
        if share <= 0.0 || share >= 1.0 {
            return 1.0;
        }
        variance * (1.0 - share) * (1.0 - share) / share
    }

    /// Returns mean and variance of the number of hits between two passes: geometric, cut off at
    /// the bound. P(burst > n) is pⁿ⁺¹ for n < N.
    fn burst(&self) -> (f64, f64) {
        let p = self.probability.get();
        let Some(max) = self.burst_max.filter(|_| p > 0.0) else {
            return (p / (1.0 - p), p / ((1.0 - p) * (1.0 - p)));
        };
        let (mut mean, mut square, mut tail) = (0.0, 0.0, p);
        for n in 0..max.get() {
            mean += tail;
            square += (2.0 * f64::from(n) + 1.0) * tail;
            tail *= p;
            if tail < f64::EPSILON * f64::EPSILON {
                break;
            }
        }
        (mean, square - mean * mean)
    }
}

impl fmt::Display for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.probability.fmt(f)?;
        if let PacketFilter::Udp = self.of {
            f.write_str(" of UDP")?;
        }
        self.burst_max.map_or(Ok(()), |max| write!(f, ", at most {max} in a row"))
    }
}

/// The state of a bounded law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundedState {
    pub(crate) law: Bounded,
    /// Hits since the last packet that passed.
    in_a_row: u32,
}

impl BoundedState {
    pub(crate) fn new(law: Bounded) -> BoundedState {
        BoundedState { law, in_a_row: 0 }
    }

    /// Returns true if a packet with this content is hit. One draw, unless the law does not concern
    /// the packet or the bound lets it pass.
    pub(crate) fn draw(&mut self, content: PacketContent, rng: &mut Rng) -> bool {
        if !self.law.of.takes(content) {
            return false;
        }
        let is_bound = self.law.burst_max.is_some_and(|max| self.in_a_row >= max.get());
        let is_hit = !is_bound && self.law.probability.draw(rng);
        match is_hit {
            true => self.in_a_row += 1,
            false => self.pass(),
        }
        is_hit
    }

    /// Counts a packet that passes without a draw.
    pub(crate) fn pass(&mut self) {
        self.in_a_row = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(p: f64, burst_max: Option<u32>, of: PacketFilter) -> Bounded {
        let probability = Probability::new(p).expect("a probability");
        Bounded { probability, burst_max: burst_max.and_then(NonZeroU32::new), of }
    }

    fn hits(law: Bounded, seed: u64, n: usize) -> Vec<bool> {
        let (mut state, mut rng) = (BoundedState::new(law), Rng::new(seed));
        (0..n).map(|_| state.draw(PacketContent::Udp, &mut rng)).collect()
    }

    /// The slow and obvious law: a packet passes if as many as allowed before it were hit. It draws
    /// for the others.
    fn twin(law: Bounded, seed: u64, n: usize) -> Vec<bool> {
        let (mut rng, mut hits) = (Rng::new(seed), Vec::new());
        for i in 0..n {
            let max = law.burst_max.map_or(usize::MAX, |max| max.get() as usize);
            let must_pass = i >= max && hits[i - max..i].iter().all(|hit| *hit);
            hits.push(!must_pass && law.probability.draw(&mut rng));
        }
        hits
    }

    #[test]
    fn bursts_are_those_of_the_obvious_law() {
        let mut rng = Rng::new(3);
        for seed in 0..200 {
            let burst_max = (rng.below(4) > 0).then(|| 1 + rng.below(5) as u32);
            let law = law(rng.unit_f64(), burst_max, PacketFilter::All);
            assert_eq!(hits(law, seed, 300), twin(law, seed, 300), "{law}");
        }
    }

    #[test]
    fn certain_hits_leave_one_packet_after_each_burst() {
        let hit = hits(law(1.0, Some(2), PacketFilter::All), 1, 7);
        assert_eq!(hit, [true, true, false, true, true, false, true]);
        assert!(hits(law(1.0, None, PacketFilter::All), 1, 50).iter().all(|hit| *hit));
        assert!(hits(law(0.0, Some(1), PacketFilter::All), 1, 50).iter().all(|hit| !hit));
    }

    #[test]
    fn other_packets_pass_without_a_draw_and_do_not_end_a_burst() {
        let law = law(1.0, Some(2), PacketFilter::Udp);
        let (mut state, mut rng) = (BoundedState::new(law), Rng::new(1));
        let contents = [PacketContent::Udp, PacketContent::Other, PacketContent::VersionNegotiation];
        let hit: Vec<bool> = (0..6).map(|i| state.draw(contents[i % contents.len()], &mut rng)).collect();
        assert_eq!(hit, [true, false, true, false, false, true]);
    }

    #[test]
    fn the_share_is_that_of_many_decisions() {
        for (p, max) in [(0.1, None), (0.3, Some(3)), (0.5, Some(1)), (0.9, Some(4)), (1.0, Some(2))] {
            let law = law(p, max, PacketFilter::All);
            let n = 200_000;
            let hit = hits(law, 5, n).iter().filter(|hit| **hit).count() as f64;
            let (n, share) = (n as f64, law.share());
            let sigma = (n * share * (1.0 - share) * law.variance_inflation()).sqrt();
            // ± 3.291 σ: a correct law fails at one seed in a thousand.
            assert!((hit - n * share).abs() <= 3.291 * sigma + 1.0, "{law}: {hit}, expected {}", n * share);
            if let Some(max) = max {
                let closed = p * (1.0 - p.powi(max as i32)) / (1.0 - p.powi(max as i32 + 1));
                assert!(p == 1.0 || (closed - share).abs() < 1e-12, "{closed} {share}");
            }
        }
    }
}
