//! Duplication: packets that leave twice, at once or with the copy later.

use super::chance::{Chance, ChanceState};
use fastpath_units::{Duration, Probability, Rng};

/// Which packets leave twice, and when the copy leaves.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Duplication {
    /// The probability that a packet is duplicated.
    pub chance: Chance,
    /// The time from the exit of the packet to the exit of its copy. Other packets may leave
    /// between them.
    pub later: Duration,
}

impl Duplication {
    /// Returns true if no packet is ever duplicated.
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

/// The state of a duplication law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicator {
    chance: ChanceState,
    later: Duration,
}

impl Duplicator {
    pub(crate) fn new(spec: Duplication) -> Duplicator {
        Duplicator { chance: ChanceState::new(spec.chance), later: spec.later }
    }

    pub(crate) fn spec(&self) -> Duplication {
        Duplication { chance: self.chance.chance, later: self.later }
    }

    /// Returns the number of copies of the current packet. One draw, unless it never duplicates.
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> u8 {
        match self.spec().is_never() {
            true => 0,
            false => u8::from(self.chance.draw(rng)),
        }
    }

    /// Returns how much later copies leave; `None` if they leave at once.
    pub(crate) fn later(&self) -> Option<Duration> {
        (!self.later.is_zero()).then_some(self.later)
    }
}
