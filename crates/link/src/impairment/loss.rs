//! Random loss.

use fastpath_units::{Probability, Rng};

/// How packets are lost at random, before the queue.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum LossSpec {
    /// No packet is lost; nothing is drawn.
    #[default]
    Never,
    /// Each packet is lost with this probability, independently: one draw per packet.
    Uniform(Probability),
}

impl From<Probability> for LossSpec {
    fn from(p: Probability) -> LossSpec {
        if p.is_never() { LossSpec::Never } else { LossSpec::Uniform(p) }
    }
}

impl LossSpec {
    /// True if the packet at hand is lost.
    pub(crate) fn draw(&self, rng: &mut Rng) -> bool {
        match self {
            LossSpec::Never => false,
            LossSpec::Uniform(p) => p.draw(rng),
        }
    }
}
