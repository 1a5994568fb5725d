//! The Gilbert–Elliott channel: a good and a bad state, each with its own loss probability. E. O.
//! Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", Bell System Technical
//! Journal 42(5), 1963. Parameters and order of steps as in `tc netem loss gemodel`.

use fastpath_units::{Probability, Rng};
use std::fmt;

/// Parameters of the channel. It starts in the good state. `Default` loses nothing.
///
/// The simple Gilbert model is `loss_in_bad` = 1, `loss_in_good` = 0; the Bernoulli model is that
/// with `to_good` = 1 − `to_bad`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct GilbertElliott {
    /// Probability per packet of going from good to bad (p).
    pub to_bad: Probability,
    /// Probability per packet of going from bad to good (r).
    pub to_good: Probability,
    /// Probability of loss in the bad state (1 − h).
    pub loss_in_bad: Probability,
    /// Probability of loss in the good state (1 − k).
    pub loss_in_good: Probability,
}

impl GilbertElliott {
    /// Returns the share of packets lost in the long run: π_bad·(1 − h) + π_good·(1 − k) with π_bad
    /// = p/(p + r).
    pub fn share(&self) -> f64 {
        let (p, r) = (self.to_bad.get(), self.to_good.get());
        let bad = if p == 0.0 { 0.0 } else { p / (p + r) };
        bad * self.loss_in_bad.get() + (1.0 - bad) * self.loss_in_good.get()
    }

    /// See [`LossSpec::variance_inflation`](super::LossSpec::variance_inflation): losses j packets
    /// apart have the covariance π_good·π_bad·(k − h)²·(1 − p − r)ʲ, a geometric series.
    pub fn variance_inflation(&self) -> f64 {
        let (p, r, share) = (self.to_bad.get(), self.to_good.get(), self.share());
        if share <= 0.0 || share >= 1.0 || p == 0.0 || r == 0.0 {
            return 1.0;
        }
        let bad = p / (p + r);
        let apart = self.loss_in_bad.get() - self.loss_in_good.get();
        let memory = 1.0 - p - r;
        1.0 + 2.0 * bad * (1.0 - bad) * apart * apart * memory / (1.0 - memory) / (share * (1.0 - share))
    }
}

impl fmt::Display for GilbertElliott {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GilbertElliott { to_bad, to_good, loss_in_bad, loss_in_good } = self;
        write!(f, "gilbert-elliott {to_bad} {to_good} {loss_in_bad} {loss_in_good}")
    }
}

/// The state of the channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    law: GilbertElliott,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Good,
    Bad,
}

impl Channel {
    pub(crate) fn new(law: GilbertElliott) -> Channel {
        Channel { law, state: State::Good }
    }

    /// Returns true if the current packet is lost. Two draws: the state of the next packet, then
    /// the loss of this one.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
        let (leave, other, loss) = match self.state {
            State::Good => (self.law.to_bad, State::Bad, self.law.loss_in_good),
            State::Bad => (self.law.to_good, State::Good, self.law.loss_in_bad),
        };
        if leave.draw(rng) {
            self.state = other;
        }
        loss.draw(rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(p: f64, r: f64, bad: f64, good: f64) -> GilbertElliott {
        let [to_bad, to_good, loss_in_bad, loss_in_good] =
            [p, r, bad, good].map(|p| Probability::new(p).expect("a probability"));
        GilbertElliott { to_bad, to_good, loss_in_bad, loss_in_good }
    }

    #[test]
    fn certain_transitions_alternate_between_the_states() {
        let mut channel = Channel::new(law(1.0, 1.0, 1.0, 0.0));
        let mut rng = Rng::new(1);
        let lost: Vec<bool> = (0..6).map(|_| channel.draw(&mut rng)).collect();
        assert_eq!(lost, [false, true, false, true, false, true]);
    }

    /// Losses are correlated: the variance of their number in n packets is n·π(1−π)·(1+ρ)/(1−ρ)
    /// plus that of the independent draws within the states, for a chain with the correlation ρ = 1
    /// − p − r.
    #[test]
    fn the_share_lost_is_the_stationary_one() {
        for (seed, p, r, bad, good) in [
            (1, 0.01, 0.1, 1.0, 0.0),
            (2, 0.05, 0.3, 0.5, 0.001),
            (3, 0.3, 0.3, 0.9, 0.2),
            (4, 0.0, 0.5, 1.0, 0.1),
        ] {
            let law = law(p, r, bad, good);
            let (mut channel, mut rng) = (Channel::new(law), Rng::new(seed));
            let n = 200_000.0;
            let lost = (0..200_000).filter(|_| channel.draw(&mut rng)).count() as f64;
            let (in_bad, rho) = (p / (p + r), 1.0 - p - r);
            let between = (bad - good).powi(2) * in_bad * (1.0 - in_bad) * (1.0 + rho) / (1.0 - rho);
            let within = in_bad * bad * (1.0 - bad) + (1.0 - in_bad) * good * (1.0 - good);
            let sigma = (n * (between + within)).sqrt();
            // ± 3.291 σ: a correct channel fails at one seed in a thousand.
            assert!((lost - n * law.share()).abs() <= 3.291 * sigma + 1.0, "{law}: {lost} of {n}");
        }
    }

    #[test]
    fn bursts_of_the_gilbert_model_have_geometric_lengths() {
        let (mut channel, mut rng) = (Channel::new(law(0.05, 0.4, 1.0, 0.0)), Rng::new(7));
        let mut lengths = [0f64; 8];
        let mut run = 0;
        for _ in 0..400_000 {
            if channel.draw(&mut rng) {
                run += 1;
            } else if run > 0 {
                lengths[run.min(8) - 1] += 1.0;
                run = 0;
            }
        }
        let bursts: f64 = lengths.iter().sum();
        let share = |i: i32| if i < 7 { 0.4 * 0.6f64.powi(i) } else { 0.6f64.powi(7) };
        let chi2: f64 =
            (0..8).map(|i| (lengths[i as usize] - bursts * share(i)).powi(2) / (bursts * share(i))).sum();
        // χ² with 7 degrees of freedom: 24.3 is its 99.9 % quantile.
        assert!(chi2 < 24.3, "{chi2} {lengths:?}");
    }
}
