//! The state that a fast pipe hands over when it becomes a general pipe.

use crate::counters::{Counters, Volume};
use crate::delay_line::DelayLine;
use crate::impairment::Loss;
use crate::packet::Held;
use crate::qdisc::Queue;
use crate::serialiser::Serialiser;
use crate::spec::PipeSpec;
use fastpath_units::{Rng, Time};

/// The parameters and the state of a pipe at one instant, packets included.
pub(crate) struct PipeState<P> {
    pub(crate) spec: PipeSpec,
    pub(crate) loss: Loss,
    pub(crate) queue: Queue<P>,
    /// The packet on the wire.
    pub(crate) sending: Option<Held<P>>,
    pub(crate) serialiser: Serialiser,
    pub(crate) line: DelayLine<P>,
    /// The latest exit time given to a packet.
    pub(crate) last_exit: Time,
    /// The packets that were pushed and have not left.
    pub(crate) held: Volume,
    pub(crate) counters: Box<Counters>,
    pub(crate) rng: Rng,
}

impl<P> PipeState<P> {
    /// Returns the state of an empty pipe. `rng` makes all its random decisions.
    pub(crate) fn new(spec: &PipeSpec, rng: Rng) -> PipeState<P> {
        PipeState {
            spec: spec.clone(),
            loss: Loss::new(&spec.loss),
            queue: Queue::new(&spec.queue),
            sending: None,
            serialiser: Serialiser::of(spec),
            line: DelayLine::default(),
            last_exit: Time::ZERO,
            held: Volume::default(),
            counters: Box::default(),
            rng,
        }
    }
}
