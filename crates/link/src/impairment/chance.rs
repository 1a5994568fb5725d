//! A probability with correlation, as in `tc netem`.

use fastpath_units::{Probability, Rng};
use std::fmt;

/// A probability, and the correlation of one decision with the one before.
///
/// The correlation is that of netem: each decision compares the probability with a mix of a fresh
/// uniform number and the previous mix, weighted 1 − correlation and correlation. The mix is not
/// uniform. So with a correlation above zero the share of hits differs from the probability: it is
/// closer to 0 below one half and closer to 1 above. For bursts with an exact share use
/// [`GilbertElliott`](super::GilbertElliott).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Chance {
    /// The probability of each decision.
    pub probability: Probability,
    /// The weight of the previous decision.
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

/// The state of a chance: get_crandom of `net/sched/sch_netem.c`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChanceState {
    pub(crate) chance: Chance,
    last: u32,
}

impl ChanceState {
    pub(crate) fn new(chance: Chance) -> ChanceState {
        ChanceState { chance, last: 0 }
    }

    /// Makes one decision, with one draw.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
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

    fn chance(p: f64, correlation: f64) -> ChanceState {
        let [probability, correlation] = [p, correlation].map(|p| Probability::new(p).expect("0 … 1"));
        ChanceState::new(Chance { probability, correlation })
    }

    #[test]
    fn without_correlation_the_share_is_the_probability() {
        let (mut chance, mut rng) = (chance(0.03, 0.0), Rng::new(5));
        let hits = (0..100_000).filter(|_| chance.draw(&mut rng)).count() as f64;
        // ± 3.291 σ: a correct law fails at one seed in a thousand.
        assert!((hits - 3000.0).abs() <= 3.291 * (100_000.0f64 * 0.03 * 0.97).sqrt(), "{hits}");
    }

    #[test]
    fn correlation_mixes_as_netem_does() {
        // Independent decisions would repeat the previous one in about half of the cases.
        let (mut chance, mut rng) = (chance(0.5, 0.9), Rng::new(5));
        let hits: Vec<bool> = (0..20_000).map(|_| chance.draw(&mut rng)).collect();
        let repeats = hits.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(repeats > 16_000, "{repeats}");
    }

    #[test]
    fn probabilities_0_and_1_are_exact_with_any_correlation() {
        let mut rng = Rng::new(1);
        for correlation in [0.0, 0.5, 1.0] {
            let (mut never, mut always) = (chance(0.0, correlation), chance(1.0, correlation));
            assert!((0..100).all(|_| !never.draw(&mut rng) && always.draw(&mut rng)));
        }
    }
}
