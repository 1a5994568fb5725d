//! The four-state Markov chain of losses: S. Salsano, F. Ludovici, A. Ordine, D. Giannuzzi,
//! "Definition of a general and intuitive loss model for packet networks and its implementation in
//! the Netem module in the Linux kernel", 2012; `tc netem loss state`.
//!
//! ```text
//!  isolated loss (4) ◀─p14─ gap, received (1) ─p13─▶ burst, lost (3) ─p32─▶ burst, received (2)
//!                └───── 1 ─────▶           ◀─p31─              ◀─p23─
//! ```

use fastpath_units::{Probability, Rng};
use std::fmt;

/// Transition probabilities, one step per packet. The chain starts in a gap. `p13` + `p14` and
/// `p31` + `p32` are at most 1; any excess is ignored. `Default` loses nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FourState {
    /// From a gap into a burst.
    pub p13: Probability,
    /// From a loss of a burst to the gap.
    pub p31: Probability,
    /// From a loss of a burst to a packet received within the burst.
    pub p32: Probability,
    /// From a packet received within a burst to the next loss.
    pub p23: Probability,
    /// From a gap to an isolated loss, which returns to the gap with the next packet.
    pub p14: Probability,
}

impl FourState {
    /// Returns the share of packets lost in the long run: (π3 + π4) of the stationary distribution,
    /// which follows from the balance of flows π1·p13 = π3·p31, π3·p32 = π2·p23, π1·p14 = π4.
    pub fn share(&self) -> f64 {
        let [_, _, burst, isolated] = self.stationary();
        burst + isolated
    }

    /// Returns the stationary probabilities of gap, received in a burst, lost in a burst, and
    /// isolated loss.
    fn stationary(&self) -> [f64; 4] {
        let [p13, p31, p32, p23, p14] =
            [self.p13, self.p31, self.p32, self.p23, self.p14].map(Probability::get);
        // Unnormalised weights. A burst never entered has none; a burst never left has all.
        let (gap, burst) = if p13 == 0.0 { (1.0, 0.0) } else { (p31, p13) };
        if burst > 0.0 && p32 > 0.0 && p23 == 0.0 {
            return [0.0, 1.0, 0.0, 0.0];
        }
        let received = if p32 == 0.0 || burst == 0.0 { 0.0 } else { burst * p32 / p23 };
        let isolated = gap * p14;
        [gap, received, burst, isolated].map(|weight| weight / (gap + burst + received + isolated))
    }

    /// See [`LossSpec::variance_inflation`](super::LossSpec::variance_inflation): the sum of the
    /// covariances of losses j packets apart, until they vanish.
    pub fn variance_inflation(&self) -> f64 {
        let [p13, p31, p32, p23, p14] =
            [self.p13, self.p31, self.p32, self.p23, self.p14].map(Probability::get);
        let (pi, share) = (self.stationary(), self.share());
        if share <= 0.0 || share >= 1.0 {
            return 1.0;
        }
        // The expected loss of a packet in excess of the share, by the state some packets before.
        let mut beyond = [-share, -share, 1.0 - share, 1.0 - share];
        let mut sum = 0.0;
        for _ in 0..STEPS_MAX {
            let [gap, received, burst, isolated] = beyond;
            beyond = [
                (1.0 - p13 - p14) * gap + p13 * burst + p14 * isolated,
                (1.0 - p23) * received + p23 * burst,
                (1.0 - p31 - p32) * burst + p31 * gap + p32 * received,
                gap,
            ];
            sum += pi[2] * beyond[2] + pi[3] * beyond[3];
            if beyond.iter().all(|value| value.abs() < 1e-12) {
                break;
            }
        }
        1.0 + 2.0 * sum / (share * (1.0 - share))
    }
}

/// The number of packets over which correlation is summed.
const STEPS_MAX: usize = 1_000_000;

impl fmt::Display for FourState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FourState { p13, p31, p32, p23, p14 } = self;
        write!(f, "state {p13} {p31} {p32} {p23} {p14}")
    }
}

/// The state of the chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    law: FourState,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Gap,
    Received,
    Burst,
    Isolated,
}

impl Chain {
    pub(crate) fn new(law: FourState) -> Chain {
        Chain { law, state: State::Gap }
    }

    /// Returns true if the current packet is lost. One draw, except after an isolated loss.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
        let FourState { p13, p31, p32, p23, p14 } = self.law;
        let mut choose = |first: Probability, then: State, second: Probability, or: State, stay: State| {
            let draw = rng.unit_f64();
            match draw {
                _ if draw < first.get() => then,
                _ if draw < first.get() + second.get() => or,
                _ => stay,
            }
        };
        self.state = match self.state {
            State::Gap => choose(p14, State::Isolated, p13, State::Burst, State::Gap),
            State::Burst => choose(p32, State::Received, p31, State::Gap, State::Burst),
            State::Received => {
                choose(p23, State::Burst, Probability::NEVER, State::Received, State::Received)
            }
            State::Isolated => State::Gap,
        };
        matches!(self.state, State::Burst | State::Isolated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(p: [f64; 5]) -> FourState {
        let [p13, p31, p32, p23, p14] = p.map(|p| Probability::new(p).expect("a probability"));
        FourState { p13, p31, p32, p23, p14 }
    }

    fn losses(p: [f64; 5], seed: u64, n: usize) -> Vec<bool> {
        let (mut chain, mut rng) = (Chain::new(law(p)), Rng::new(seed));
        (0..n).map(|_| chain.draw(&mut rng)).collect()
    }

    #[test]
    fn certain_transitions_make_a_fixed_pattern() {
        // Gap, isolated, gap …; and gap, lost, received, lost …
        assert_eq!(losses([0.0, 0.0, 0.0, 0.0, 1.0], 1, 4), [true, false, true, false]);
        assert_eq!(losses([1.0, 0.0, 1.0, 1.0, 0.0], 1, 5), [true, false, true, false, true]);
        assert_eq!(losses([1.0, 0.0, 0.0, 0.0, 0.0], 1, 3), [true, true, true]);
    }

    #[test]
    fn the_stationary_share_agrees_with_iterating_the_chain() {
        for p in [
            [0.02, 0.3, 0.1, 0.5, 0.01],
            [0.1, 0.2, 0.0, 0.0, 0.0],
            [0.1, 0.0, 0.5, 0.25, 0.3],
            [0.0, 0.5, 0.5, 0.5, 0.2],
            [0.1, 0.2, 0.3, 0.0, 0.4],
            [0.0; 5],
        ] {
            let [p13, p31, p32, p23, p14] = p;
            let mut pi = [1.0, 0.0, 0.0, 0.0];
            for _ in 0..20_000 {
                let [gap, received, burst, isolated] = pi;
                let next = [
                    gap * (1.0 - p13 - p14) + burst * p31 + isolated,
                    received * (1.0 - p23) + burst * p32,
                    burst * (1.0 - p31 - p32) + gap * p13 + received * p23,
                    gap * p14,
                ];
                // Half steps, so that a periodic chain converges too.
                pi = std::array::from_fn(|i| (pi[i] + next[i]) / 2.0);
            }
            let share = law(p).share();
            assert!((share - pi[2] - pi[3]).abs() < 1e-9, "{p:?}: {share} {pi:?}");
        }
    }
}
