//! The flow that a packet adds by a template.

use super::bits::Bits;
use super::learn::{Learn, Source, Spec, Target};
use crate::action::{Action, Extension};
use crate::flow::{FlowMod, Instructions, flags};
use crate::key::Key;
use crate::matching::Match;
use crate::port;
use std::sync::Arc;

impl Learn {
    /// Returns the flow that a packet adds; `None` if it lacks a field, or the flow cannot be.
    pub fn flow(&self, key: &Key) -> Option<FlowMod> {
        let value = |source| match source {
            Source::Value(value) => Some(value),
            Source::Packet(bits) => bits.of(key),
        };
        let matching = Match::new(&self.fields(value)?).ok()?;
        let mut actions = Vec::new();
        let (idle, hard) = (self.fin_idle_timeout, self.fin_hard_timeout);
        if (idle, hard) != (0, 0) {
            actions.push(Action::Extension(Arc::new(Extension::FinTimeout { idle, hard })));
        }
        for Spec { source, target } in &self.specs {
            let value = value(*source)?;
            match *target {
                Target::Match(_) => {}
                Target::Load(to) => actions.push(load(to, value)),
                Target::Output => actions.push(match port::of_16_bits(value as u32) {
                    port::TABLE => {
                        let resubmit =
                            Extension::Resubmit { in_port: None, table: Some(0), is_original: false };
                        Action::Extension(Arc::new(resubmit))
                    }
                    number => Action::output(number),
                }),
            }
        }
        let (idle_timeout, hard_timeout) = (self.idle_timeout, self.hard_timeout);
        let flags = if self.send_flow_rem { flags::SEND_FLOW_REM } else { 0 };
        let instructions = Instructions::apply(actions);
        let add = FlowMod::add(self.table, self.priority, matching, instructions);
        Some(FlowMod { cookie: self.cookie, idle_timeout, hard_timeout, flags, ..add })
    }
}

/// A load of bits, as an action.
fn load(to: Bits, value: u128) -> Action {
    let (value, mask) = ((value & to.ones()) << to.from, to.mask());
    Action::Extension(Arc::new(Extension::Set { field: to.field, value, mask, is_load: true }))
}
