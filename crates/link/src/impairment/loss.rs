//! Loss: which packets are lost, by chance or by plan.
//!
//! The laws beyond one independent draw per packet have a file each.

use super::{
    Chance, Dice, FourState, GilbertElliott, LossPlan, Runs, four_state, gilbert_elliott, loss_plan, runs,
};
use crate::packet::Held;
use fastpath_units::{Probability, Rng, Time};
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
    /// Runs of losses with lengths from a table.
    Runs(Runs),
    /// By plan: these packets, these bytes, these times.
    Plan(LossPlan),
}

impl LossSpec {
    /// True if no packet is ever lost.
    pub fn is_never(&self) -> bool {
        *self == LossSpec::Never
    }

    /// True if what is lost depends on the time or on the packet.
    pub(crate) fn is_planned(&self) -> bool {
        matches!(self, LossSpec::Plan(_))
    }

    /// True if what is lost depends on [`Packet::flow`](crate::Packet::flow).
    pub(crate) fn reads_headers(&self) -> bool {
        matches!(self, LossSpec::Plan(LossPlan::Bytes(_)))
    }

    /// How much more the number of losses among n packets varies than n·share·(1 − share), the
    /// variance with independent losses, as n grows; `None` where there is no such law (netem's
    /// correlation, plans).
    pub fn variance_inflation(&self) -> Option<f64> {
        match self {
            LossSpec::Never | LossSpec::Uniform(_) => Some(1.0),
            LossSpec::Correlated(_) | LossSpec::Plan(_) => None,
            LossSpec::GilbertElliott(law) => Some(law.variance_inflation()),
            LossSpec::FourState(law) => Some(law.variance_inflation()),
            LossSpec::Runs(law) => Some(law.variance_inflation()),
        }
    }

    /// The share of packets lost in the long run; for [`LossSpec::Correlated`] the probability
    /// asked for.
    pub fn share(&self) -> f64 {
        match self {
            LossSpec::Never => 0.0,
            LossSpec::Uniform(p) => p.get(),
            LossSpec::Correlated(chance) => chance.probability.get(),
            LossSpec::GilbertElliott(law) => law.share(),
            LossSpec::FourState(law) => law.share(),
            LossSpec::Runs(law) => law.share(),
            LossSpec::Plan(plan) => plan.share(),
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
            LossSpec::Runs(law) => law.fmt(f),
            LossSpec::Plan(plan) => plan.fmt(f),
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
    Runs(runs::Runner),
    Plan(loss_plan::Planned),
}

impl Loss {
    pub(crate) fn new(spec: &LossSpec) -> Loss {
        let state = match spec {
            LossSpec::Never => return Loss::Never,
            LossSpec::Uniform(p) => return Loss::Uniform(*p),
            LossSpec::Correlated(chance) => State::Correlated(Dice::new(*chance)),
            LossSpec::GilbertElliott(law) => State::GilbertElliott(gilbert_elliott::Channel::new(*law)),
            LossSpec::FourState(law) => State::Markov(four_state::Chain::new(*law)),
            LossSpec::Runs(law) => State::Runs(runs::Runner::new(law.clone())),
            LossSpec::Plan(plan) => State::Plan(loss_plan::Planned::new(plan.clone())),
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

    /// True if `packet`, which comes at `now`, is lost.
    pub(crate) fn draw_at<P>(&mut self, now: Time, packet: &Held<P>, rng: &mut Rng) -> bool {
        if let Loss::Law(law) = self
            && let State::Plan(planned) = &mut law.state
        {
            return planned.draw(now, packet.len, packet.flow);
        }
        self.draw(rng)
    }

    /// True if the packet at hand is lost, by a law that needs to know neither it nor the time.
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
            State::Runs(runner) => runner.draw(rng),
            // A pipe with a plan is rich, and a rich pipe asks `draw_at`.
            State::Plan(_) => false,
        }
    }
}
