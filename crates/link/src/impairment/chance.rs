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

/// Steps of the distribution from which [`Chance::share`] is read, and the most iterations.
const SHARE_STEPS: usize = 1 << 12;
const SHARE_ITERATIONS_MAX: usize = 2000;

impl Chance {
    /// Returns the share of hits in the long run. With correlation the mix x of a decision is
    /// (1 − ρ)·u + ρ·y of a uniform number u and the mix y before. So its distribution function
    /// satisfies F(t) = ρ/(1 − ρ) · (G(t/ρ) − G((t − 1 + ρ)/ρ)), where G is the integral of F. The
    /// iteration of this equation converges, and the share is F(probability).
    pub fn share(&self) -> f64 {
        let (p, rho) = (self.probability.get(), self.correlation.get());
        if rho <= 0.0 || p <= 0.0 || p >= 1.0 {
            return p;
        }
        if rho >= 1.0 {
            // The mix stays 0, its initial value.
            return 1.0;
        }
        let width = 1.0 / SHARE_STEPS as f64;
        let mut f: Vec<f64> = (0..=SHARE_STEPS).map(|i| i as f64 * width).collect();
        for _ in 0..SHARE_ITERATIONS_MAX {
            let g = integral(&f, width);
            let next = |i: usize| mixed(&g, i as f64 * width, rho);
            let new: Vec<f64> = (0..=SHARE_STEPS).map(next).collect();
            let change = f.iter().zip(&new).map(|(old, new)| (old - new).abs()).fold(0.0, f64::max);
            f = new;
            if change < 1e-10 {
                break;
            }
        }
        mixed(&integral(&f, width), p, rho).clamp(0.0, 1.0)
    }
}

/// Returns the integral of a function given at steps of `width`, by trapezoids.
fn integral(f: &[f64], width: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let areas = f.windows(2).map(|pair| {
        sum += (pair[0] + pair[1]) / 2.0 * width;
        sum
    });
    std::iter::once(0.0).chain(areas).collect()
}

/// Returns the distribution function of the next mix at `t`, by the integral of the one before.
fn mixed(g: &[f64], t: f64, rho: f64) -> f64 {
    let last = g.len() - 1;
    let at = |x: f64| {
        let place = x * last as f64;
        match place.floor() as usize {
            _ if x <= 0.0 => 0.0,
            below if below < last => g[below] + (place - below as f64) * (g[below + 1] - g[below]),
            // The distribution function is 1 from 1 on.
            _ => g[last] + (x - 1.0),
        }
    };
    rho / (1.0 - rho) * (at(t / rho) - at((t - 1.0 + rho) / rho))
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
    fn the_share_is_that_of_many_decisions() {
        for (p, rho) in [(0.1, 0.25), (0.5, 0.3), (0.3, 0.5), (0.02, 0.1), (0.8, 0.25), (0.45, 0.9)] {
            let (mut state, mut rng) = (chance(p, rho), Rng::new(7));
            let n = 400_000;
            let hits = (0..n).filter(|_| state.draw(&mut rng)).count() as f64 / f64::from(n);
            let share = state.chance.share();
            // Hits come in runs: five times the deviation of independent ones.
            let tolerance = 5.0 * 3.3 * (share * (1.0 - share) / f64::from(n)).sqrt();
            assert!((hits - share).abs() < tolerance, "{p} {rho}: {hits}, expected {share}");
        }
        // What tc-netem(8) loses of `loss 10% 25%`.
        assert!((chance(0.1, 0.25).chance.share() - 0.0175).abs() < 0.0002);
        assert_eq!(
            [(0.1, 0.0), (0.0, 0.5), (1.0, 0.5)].map(|(p, rho)| chance(p, rho).chance.share()),
            [0.1, 0.0, 1.0]
        );
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
