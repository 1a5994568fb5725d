//! Reordering as in netem: some packets skip the delay and so overtake those under way.

use super::chance::{Chance, Dice};
use fastpath_units::Rng;

/// Which packets skip the delay: after each `gap` − 1 that did not, one does with this chance, and
/// if it does the count begins anew. With a gap of 1 every packet has the chance. Without a delay
/// nothing is overtaken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReorderSpec {
    /// How likely a packet whose turn it is skips.
    pub chance: Chance,
    /// At least 1.
    pub gap: u32,
}

/// Reordering at work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skipper {
    pub(crate) gap: u32,
    pub(crate) dice: Dice,
    delayed: u32,
}

impl Skipper {
    pub(crate) fn new(spec: ReorderSpec) -> Skipper {
        Skipper { gap: spec.gap, dice: Dice::new(spec.chance), delayed: 0 }
    }

    pub(crate) fn spec(&self) -> ReorderSpec {
        ReorderSpec { chance: self.dice.chance, gap: self.gap }
    }

    /// True if the packet at hand skips the delay. One draw when it is a packet's turn, else none.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
        if self.delayed.saturating_add(1) < self.gap || !self.dice.roll(rng) {
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
    fn with_certainty_every_gapth_packet_skips() {
        let mut skipper = Skipper::new(ReorderSpec { chance: Probability::ALWAYS.into(), gap: 3 });
        let mut rng = Rng::new(1);
        let skips: Vec<bool> = (0..7).map(|_| skipper.draw(&mut rng)).collect();
        assert_eq!(skips, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn without_a_gap_the_share_is_the_chance() {
        let quarter = Probability::new(0.25).expect("a probability");
        let mut skipper = Skipper::new(ReorderSpec { chance: quarter.into(), gap: 1 });
        let mut rng = Rng::new(3);
        let skips = (0..100_000).filter(|_| skipper.draw(&mut rng)).count() as f64;
        assert!((skips - 25_000.0).abs() < 3.291 * (100_000.0f64 * 0.25 * 0.75).sqrt(), "{skips}");
    }
}
