//! Loss: which packets are lost, at random or by plan. Each law with state has its own file.

use super::{
    Bounded, BoundedState, Chance, ChanceState, FourState, GilbertElliott, LossPlan, Runs, four_state,
    gilbert_elliott, loss_plan, runs,
};
use crate::content::PacketFilter;
use crate::packet::Held;
use fastpath_units::{Probability, Rng, Time};
use std::fmt;

/// A law of packet loss.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum LossSpec {
    /// No packet is lost; nothing is drawn.
    #[default]
    Never,
    /// Each packet is lost with this probability, independently: one draw per packet.
    Uniform(Probability),
    /// Each packet is lost with a probability, correlated with the decision before, as in netem.
    Correlated(Chance),
    /// Each packet concerned is lost with a probability, with a bound on losses in a row.
    Bounded(Bounded),
    /// A good and a bad state, each with a loss probability.
    GilbertElliott(GilbertElliott),
    /// Four states: bursts of losses with received packets in them, and isolated losses.
    FourState(FourState),
    /// Runs of losses with lengths drawn from tables.
    Runs(Runs),
    /// Deterministic: by packet number, by byte, or by time.
    Plan(LossPlan),
}

impl LossSpec {
    /// Returns true if no packet is ever lost.
    pub fn is_never(&self) -> bool {
        *self == LossSpec::Never
    }

    /// Returns true if the loss may depend on the time or on the packet.
    pub(crate) fn asks_for_packets(&self) -> bool {
        matches!(self, LossSpec::Plan(_) | LossSpec::Bounded(_))
    }

    /// Returns true if the loss depends on [`Packet::flow`](crate::Packet::flow) or
    /// [`Packet::content`](crate::Packet::content).
    pub(crate) fn reads_headers(&self) -> bool {
        match self {
            LossSpec::Plan(LossPlan::Bytes(_)) => true,
            LossSpec::Plan(LossPlan::Numbers { of, .. }) | LossSpec::Bounded(Bounded { of, .. }) => {
                *of != PacketFilter::All
            }
            _ => false,
        }
    }

    /// Returns the variance of the number of losses among n packets over n·share·(1 − share), the
    /// variance of independent losses, for large n. `None` for netem's correlation and for plans.
    pub fn variance_inflation(&self) -> Option<f64> {
        match self {
            LossSpec::Never | LossSpec::Uniform(_) => Some(1.0),
            LossSpec::Correlated(_) | LossSpec::Plan(_) => None,
            LossSpec::Bounded(law) => Some(law.variance_inflation()),
            LossSpec::GilbertElliott(law) => Some(law.variance_inflation()),
            LossSpec::FourState(law) => Some(law.variance_inflation()),
            LossSpec::Runs(law) => Some(law.variance_inflation()),
        }
    }

    /// Returns the share of packets lost in the long run. With netem's correlation it differs from
    /// the configured probability.
    pub fn share(&self) -> f64 {
        match self {
            LossSpec::Never => 0.0,
            LossSpec::Uniform(p) => p.get(),
            LossSpec::Correlated(chance) => chance.share(),
            LossSpec::Bounded(law) => law.share(),
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
    /// Writes the law and its parameters, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Never => f.write_str("0%"),
            LossSpec::Uniform(p) => p.fmt(f),
            LossSpec::Correlated(chance) => chance.fmt(f),
            LossSpec::Bounded(law) => law.fmt(f),
            LossSpec::GilbertElliott(law) => law.fmt(f),
            LossSpec::FourState(law) => law.fmt(f),
            LossSpec::Runs(law) => law.fmt(f),
            LossSpec::Plan(plan) => plan.fmt(f),
        }
    }
}

/// The state of a loss law.
#[derive(Debug)]
pub(crate) enum Loss {
    Never,
    Uniform(Probability),
    Law(Box<Law>),
}

/// A law with state.
#[derive(Debug)]
pub(crate) struct Law {
    spec: LossSpec,
    state: State,
}

#[derive(Debug)]
enum State {
    Correlated(ChanceState),
    Bounded(BoundedState),
    GilbertElliott(gilbert_elliott::Channel),
    Markov(four_state::Chain),
    Runs(runs::RunLoss),
    Plan(loss_plan::LossPlanState),
}

impl Loss {
    pub(crate) fn new(spec: &LossSpec) -> Loss {
        let state = match spec {
            LossSpec::Never => return Loss::Never,
            LossSpec::Uniform(p) => return Loss::Uniform(*p),
            LossSpec::Correlated(chance) => State::Correlated(ChanceState::new(*chance)),
            LossSpec::Bounded(law) => State::Bounded(BoundedState::new(*law)),
            LossSpec::GilbertElliott(law) => State::GilbertElliott(gilbert_elliott::Channel::new(*law)),
            LossSpec::FourState(law) => State::Markov(four_state::Chain::new(*law)),
            LossSpec::Runs(law) => State::Runs(runs::RunLoss::new(law.clone())),
            LossSpec::Plan(plan) => State::Plan(loss_plan::LossPlanState::new(plan.clone())),
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

    /// Applies a law. A new law starts from its initial state; the same law keeps its state.
    pub(crate) fn change(&mut self, spec: &LossSpec) {
        if self.spec() != *spec {
            *self = Loss::new(spec);
        }
    }

    /// Returns true if `packet`, which arrives at `now`, is lost.
    pub(crate) fn draw_at<P>(&mut self, now: Time, packet: &Held<P>, rng: &mut Rng) -> bool {
        if let Loss::Law(law) = self {
            match &mut law.state {
                State::Plan(planned) => return planned.draw(now, packet.header()),
                State::Bounded(bounded) => return bounded.draw(packet.content, rng),
                _ => {}
            }
        }
        self.draw(rng)
    }

    /// Returns true if the current packet is lost, by a law without packet and time.
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
            State::Correlated(chance) => chance.draw(rng),
            State::GilbertElliott(channel) => channel.draw(rng),
            State::Markov(chain) => chain.draw(rng),
            State::Runs(runner) => runner.draw(rng),
            // A pipe with such a law is a general pipe, which calls `draw_at`.
            State::Plan(_) | State::Bounded(_) => false,
        }
    }
}
