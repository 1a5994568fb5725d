//! Flows that packets add (`learn`).
//!
//! ```text
//!   packet ─▶ specs: bits of it, or values ─┬─▶ match of the new flow
//!                                           └─▶ its actions: load, output
//! ```
//!
//! The new flow is in force for the next packet, as in Open vSwitch.

use super::bits::Bits;
use crate::field::Field;
use crate::matching::{FieldMatch, Match};
use crate::{Refusal, port};
use std::collections::BTreeMap;

/// The template of a flow.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Learn {
    /// The table of the new flow.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Its idle timeout in seconds; 0 for none.
    pub idle_timeout: u16,
    /// Its hard timeout in seconds, counted from the last packet that learned it; 0 for none.
    pub hard_timeout: u16,
    /// Whether its removal is reported to controllers.
    pub send_flow_rem: bool,
    /// Whether the learned flows go when no flow is left that teaches this table and cookie.
    pub delete_learned: bool,
    /// What a FIN or RST of TCP lowers the idle timeout of the new flow to; 0 for no change.
    pub fin_idle_timeout: u16,
    /// What a FIN or RST of TCP lowers the hard timeout of the new flow to; 0 for no change.
    pub fin_hard_timeout: u16,
    /// The most flows with this cookie in the table: with as many, no other is added. 0 for no
    /// limit.
    pub limit: u32,
    /// The bit that says whether the limit has let the flow in.
    pub result: Option<Bits>,
    /// Its match and actions.
    pub specs: Vec<Spec>,
}

/// One part of the template.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spec {
    /// Where the value comes from.
    pub source: Source,
    /// What it becomes.
    pub target: Target,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// This value.
    Value(u128),
    /// Bits of the packet.
    Packet(Bits),
}

/// What a value becomes in the new flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Target {
    /// It must be in these bits of packets.
    Match(Bits),
    /// An action puts it into these bits.
    Load(Bits),
    /// An action outputs to the port of this number.
    Output,
}

impl Learn {
    /// Checks that the match of a flow can be made of the template: it says what its fields need.
    pub(crate) fn check_match(&self) -> Result<(), Refusal> {
        // With any value of the packet the match must be possible.
        let fields = self.fields(|source| match source {
            Source::Value(value) => Some(value),
            Source::Packet(_) => Some(0),
        });
        Match::new(&fields.unwrap_or_default()).map(drop)
    }

    /// Returns the fields of the match.
    pub(super) fn fields(&self, value: impl Fn(Source) -> Option<u128>) -> Option<Vec<FieldMatch>> {
        let mut fields: BTreeMap<Field, (u128, u128)> = BTreeMap::new();
        // By field: bits of a tag, or of a register, may be in several specs.
        for Spec { source, target } in &self.specs {
            let Target::Match(bits) = *target else { continue };
            let (value, mask) = ((value(*source)? & bits.ones()) << bits.from, bits.mask());
            let entry = fields.entry(bits.field).or_default();
            *entry = (entry.0 & !mask | value, entry.1 | mask);
        }
        let matched = |(field, (value, mask)): (Field, (u128, u128))| match field {
            Field::VlanTci => FieldMatch::of_tag(value, mask),
            // The port of entry in 16 bits.
            Field::InPort if mask == 0xffff => {
                vec![FieldMatch::exact(field, port::of_16_bits(value as u32).into())]
            }
            _ => vec![FieldMatch { field, value, mask }],
        };
        Some(fields.into_iter().flat_map(matched).collect())
    }
}
