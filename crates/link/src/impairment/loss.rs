//! Loss: which packets are lost, by chance or by plan.
//!
//! The laws beyond one independent draw per packet have a file each.

use super::{Chance, Dice, FourState, GilbertElliott, four_state, gilbert_elliott};
use fastpath_units::{Probability, Rng};
use std::fmt;

/// How packets are lost.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum LossSpec {
    /// No packet is lost; nothing is drawn.
    #[default]
    Never,
    /// Each packet is lost with this probability, independently: one draw per packet.
    Uniform(Probability),
    /// By chance with memory, as in netem.
    Correlated(Chance),
    /// A good and a bad state with a loss probability each.
    GilbertElliott(GilbertElliott),
    /// Four states: bursts of losses, some packets of a burst surviving, and lone losses.
    FourState(FourState),
}

impl LossSpec {
    /// True if no packet is ever lost.
    pub fn is_never(&self) -> bool {
        *self == LossSpec::Never
    }

    /// The share of packets lost in the long run; for [`LossSpec::Correlated`] the probability asked for.
    pub fn share(&self) -> f64 {
        match self {
            LossSpec::Never => 0.0,
            LossSpec::Uniform(p) => p.get(),
            LossSpec::Correlated(chance) => chance.probability.get(),
            LossSpec::GilbertElliott(law) => law.share(),
            LossSpec::FourState(law) => law.share(),
        }
    }
}

impl From<Probability> for LossSpec {
    fn from(p: Probability) -> LossSpec {
        if p.is_never() { LossSpec::Never } else { LossSpec::Uniform(p) }
    }
}

impl fmt::Display for LossSpec {
    /// In a few words, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Never => f.write_str("0%"),
            LossSpec::Uniform(p) => p.fmt(f),
            LossSpec::Correlated(chance) => chance.fmt(f),
            LossSpec::GilbertElliott(law) => law.fmt(f),
            LossSpec::FourState(law) => law.fmt(f),
        }
    }
}

/// A loss law at work.
#[derive(Debug)]
pub(crate) enum Loss {
    Never,
    Uniform(Probability),
    Law(Box<Law>),
}

/// A law that remembers.
#[derive(Debug)]
pub(crate) struct Law {
    spec: LossSpec,
    state: State,
}

#[derive(Debug)]
enum State {
    Correlated(Dice),
    GilbertElliott(gilbert_elliott::Channel),
    Markov(four_state::Chain),
}

impl Loss {
    pub(crate) fn new(spec: &LossSpec) -> Loss {
        let state = match spec {
            LossSpec::Never => return Loss::Never,
            LossSpec::Uniform(p) => return Loss::Uniform(*p),
            LossSpec::Correlated(chance) => State::Correlated(Dice::new(*chance)),
            LossSpec::GilbertElliott(law) => State::GilbertElliott(gilbert_elliott::Channel::new(*law)),
            LossSpec::FourState(law) => State::Markov(four_state::Chain::new(*law)),
        };
        Loss::Law(Box::new(Law { spec: spec.clone(), state }))
    }

    pub(crate) fn spec(&self) -> LossSpec {
        match self {
            Loss::Never => LossSpec::Never,
            Loss::Uniform(p) => LossSpec::Uniform(*p),
            Loss::Law(law) => law.spec.clone(),
        }
    }

    /// Takes a new law, which starts afresh; the same one goes on.
    pub(crate) fn change(&mut self, spec: &LossSpec) {
        if self.spec() != *spec {
            *self = Loss::new(spec);
        }
    }

    /// True if the packet at hand is lost.
    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut Rng) -> bool {
        match self {
            Loss::Never => false,
            Loss::Uniform(p) => p.draw(rng),
            Loss::Law(law) => law.draw(rng),
        }
    }
}

impl Law {
    fn draw(&mut self, rng: &mut Rng) -> bool {
        match &mut self.state {
            State::Correlated(dice) => dice.roll(rng),
            State::GilbertElliott(channel) => channel.draw(rng),
            State::Markov(chain) => chain.draw(rng),
        }
    }
}
