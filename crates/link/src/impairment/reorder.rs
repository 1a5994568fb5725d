//! Reordering as in netem: some packets skip the delay and overtake packets in the delay line.

use super::chance::{Chance, ChanceState};
use fastpath_units::Rng;

/// Which packets skip the delay. After `gap` − 1 delayed packets the next one skips the delay with
/// this chance; if it does, the count restarts. With a gap of 1 every packet has the chance.
/// Without a delay no packet is overtaken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReorderSpec {
    /// The probability that an eligible packet skips the delay.
    pub chance: Chance,
    /// The distance between eligible packets, at least 1.
    pub gap: u32,
}

/// The state of a reordering law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reorderer {
    pub(crate) gap: u32,
    pub(crate) chance: ChanceState,
    delayed: u32,
}

impl Reorderer {
    pub(crate) fn new(spec: ReorderSpec) -> Reorderer {
        Reorderer { gap: spec.gap, chance: ChanceState::new(spec.chance), delayed: 0 }
    }

    pub(crate) fn spec(&self) -> ReorderSpec {
        ReorderSpec { chance: self.chance.chance, gap: self.gap }
    }

    /// Returns true if the current packet skips the delay. One draw for an eligible packet.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
        if self.delayed.saturating_add(1) < self.gap || !self.chance.draw(rng) {
            self.delayed = self.delayed.saturating_add(1);
            return false;
        }
        self.delayed = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Probability;

    #[test]
    fn with_probability_1_one_packet_per_gap_skips() {
        let mut reorderer = Reorderer::new(ReorderSpec { chance: Probability::ALWAYS.into(), gap: 3 });
        let mut rng = Rng::new(1);
        let skips: Vec<bool> = (0..7).map(|_| reorderer.draw(&mut rng)).collect();
        assert_eq!(skips, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn without_a_gap_the_share_is_the_chance() {
        let quarter = Probability::new(0.25).expect("a probability");
        let mut reorderer = Reorderer::new(ReorderSpec { chance: quarter.into(), gap: 1 });
        let mut rng = Rng::new(3);
        let skips = (0..100_000).filter(|_| reorderer.draw(&mut rng)).count() as f64;
        assert!((skips - 25_000.0).abs() < 3.291 * (100_000.0f64 * 0.25 * 0.75).sqrt(), "{skips}");
    }
}
