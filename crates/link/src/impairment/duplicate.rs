//! Duplicates: packets that leave twice, at once or the second time later.

use super::chance::{Chance, Dice};
use fastpath_units::{Duration, Probability, Rng};

/// Which packets leave twice, and when the second time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Duplication {
    /// How likely a packet is duplicated.
    pub chance: Chance,
    /// How much later than its packet a copy leaves; others may leave between them.
    pub later: Duration,
}

impl Duplication {
    /// True if no packet is ever duplicated.
    pub fn is_never(&self) -> bool {
        self.chance.probability.is_never()
    }
}

impl From<Chance> for Duplication {
    fn from(chance: Chance) -> Duplication {
        Duplication { chance, later: Duration::ZERO }
    }
}

impl From<Probability> for Duplication {
    fn from(probability: Probability) -> Duplication {
        Chance::from(probability).into()
    }
}

/// Duplication at work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicator {
    dice: Dice,
    later: Duration,
}

impl Duplicator {
    pub(crate) fn new(spec: Duplication) -> Duplicator {
        Duplicator { dice: Dice::new(spec.chance), later: spec.later }
    }

    pub(crate) fn spec(&self) -> Duplication {
        Duplication { chance: self.dice.chance, later: self.later }
    }

    /// How many copies leave beside the packet at hand. One draw, none if there never is a copy.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> u8 {
        match self.spec().is_never() {
            true => 0,
            false => u8::from(self.dice.roll(rng)),
        }
    }

    /// How much later they leave, if they do.
    pub(crate) fn later(&self) -> Option<Duration> {
        (!self.later.is_zero()).then_some(self.later)
    }
}
