//! A delay: every packet is held for a time, whatever the number of others. Examples are the
//! pipeline of a switch ASIC, a cable, and a clock domain that packets cross.
//!
//! ```toml
//! [[delay]]
//! name = "pipeline"
//! fixed = "400ns"                   # per packet
//! per_byte = "0.1ns"                # per byte
//! law = { kind = "exponential" }    # the time above is the mean of this law
//! ```
//!
//! There is no server and no queue, so a delay never loses a packet and limits nothing. With a law
//! other than the constant one a packet can overtake another, and so it can if the time depends on
//! the size.

use super::behaviour::{Setup, Surroundings, UnitModel, UnitType};
use crate::environment::{Environment, What};
use crate::keys::read_table;
use crate::law::TimeLaw;
use crate::outcome::Use;
use crate::queue::Full;
use crate::route::OpGroup;
use crate::spec::{Name, PerByte, out_of_range};
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Duration, Time};

#[derive(Clone, Debug)]
pub(crate) struct DelaySpec {
    name: Name,
    fixed: Duration,
    per_byte: PerByte,
    law: TimeLaw,
}

read_table!(DelaySpec as "delay", "{ name = \"pipeline\", fixed = \"400ns\" }": {
    name,
    fixed = Duration::ZERO,
    per_byte = PerByte::default(),
    law = TimeLaw::Constant,
});

impl UnitType for DelaySpec {
    fn name(&self) -> &Name {
        &self.name
    }

    fn check(&mut self, _machine: &Surroundings, remarks: &mut Remarks) {
        if (self.fixed + self.per_byte.times(1)).is_zero() {
            out_of_range(&self.name, "fixed or per_byte", "above 0", remarks);
        }
    }

    fn shares(&self, _work: &[OpGroup]) -> bool {
        self.law != TimeLaw::Constant
    }

    /// It passes several packets on at once.
    fn mixes_instants(&self) -> bool {
        true
    }
}

pub(crate) struct DelayLine {
    spec: DelaySpec,
    inside: TimeWeighted,
}

impl UnitModel for DelayLine {
    type Spec = DelaySpec;

    fn new(spec: &DelaySpec, _setup: &Setup) -> DelayLine {
        DelayLine { spec: spec.clone(), inside: TimeWeighted::default() }
    }

    fn offer(&mut self, env: &mut Environment, packet: u32) -> bool {
        env.start(packet);
        self.inside.set(env.now(), self.inside.level() + 1);
        let size = env.packets[packet as usize].size;
        let span = self.spec.law.draw(self.spec.fixed + self.spec.per_byte.times(size), &mut env.rng);
        env.after(span, What::Done, packet);
        true
    }

    fn handle(&mut self, env: &mut Environment, _what: What, packet: u32) {
        self.inside.set(env.now(), self.inside.level() - 1);
        env.end_leg(packet, 0);
        env.pass_on(packet, None);
    }

    fn release(&mut self, _env: &mut Environment, _server: u32) {}

    fn full(&self) -> Full {
        Full::Drop
    }

    fn usage(&self, end: Time) -> Use {
        Use { queue_mean: self.inside.mean(end), queue_max: self.inside.max(), ..Use::default() }
    }
}
