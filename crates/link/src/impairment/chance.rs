//! A probability with memory, as `tc netem` has it.

use fastpath_units::{Probability, Rng};
use std::fmt;

/// A probability, and the correlation of one decision with the one before.
///
/// The correlation is netem's: each decision compares the probability with a mix of a fresh uniform
/// number and the mix before, weighted 1 − correlation and correlation. The mix is no longer
/// uniform, so with a correlation above zero the share of hits moves away from the probability
/// (towards 0 below one half, towards 1 above). For bursts with an exact share there is
/// [`GilbertElliott`](super::GilbertElliott).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Chance {
    /// How likely.
    pub probability: Probability,
    /// How much the decision before counts.
    pub correlation: Probability,
}

impl From<Probability> for Chance {
    fn from(probability: Probability) -> Chance {
        Chance { probability, correlation: Probability::NEVER }
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.probability, self.correlation)
    }
}

/// A chance at work: get_crandom of `net/sched/sch_netem.c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice {
    pub(crate) chance: Chance,
    last: u32,
}

impl Dice {
    pub(crate) fn new(chance: Chance) -> Dice {
        Dice { chance, last: 0 }
    }

    /// Decides: one draw.
    pub(crate) fn roll(&mut self, rng: &mut Rng) -> bool {
        let Chance { probability, correlation } = self.chance;
        if correlation.is_never() {
            return probability.draw(rng);
        }
        let rho = (correlation.get() * f64::from(u32::MAX)) as u64 + 1;
        let value = rng.next_u64() >> 32;
        let mixed = (u128::from(value) * ((1u128 << 32) - u128::from(rho))
            + u128::from(self.last) * u128::from(rho))
            >> 32;
        self.last = mixed as u32;
        f64::from(self.last) < probability.get() * 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(p: f64, correlation: f64) -> Dice {
        let [probability, correlation] = [p, correlation].map(|p| Probability::new(p).expect("0 … 1"));
        Dice::new(Chance { probability, correlation })
    }

    #[test]
    fn without_correlation_the_share_is_the_probability() {
        let (mut dice, mut rng) = (dice(0.03, 0.0), Rng::new(5));
        let hits = (0..100_000).filter(|_| dice.roll(&mut rng)).count() as f64;
        // ± 3.291 σ: one seed in a thousand fails.
        assert!((hits - 3000.0).abs() <= 3.291 * (100_000.0f64 * 0.03 * 0.97).sqrt(), "{hits}");
    }

    #[test]
    fn correlation_mixes_as_netem_does() {
        // Uniform numbers mixed with weight c: the decisions repeat each other more often than
        // chance would.
        let (mut dice, mut rng) = (dice(0.5, 0.9), Rng::new(5));
        let hits: Vec<bool> = (0..20_000).map(|_| dice.roll(&mut rng)).collect();
        let repeats = hits.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(repeats > 16_000, "{repeats}");
    }

    #[test]
    fn certainty_is_certain_with_any_correlation() {
        let mut rng = Rng::new(1);
        for correlation in [0.0, 0.5, 1.0] {
            let (mut never, mut always) = (dice(0.0, correlation), dice(1.0, correlation));
            assert!((0..100).all(|_| !never.roll(&mut rng) && always.roll(&mut rng)));
        }
    }
}
