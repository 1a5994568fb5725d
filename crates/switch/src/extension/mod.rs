//! Actions of Open vSwitch beyond the specification (ovs-actions(7)).
//!
//! ```text
//!   text (ofctl/) ──┐                     ┌── interpreter
//!                   ├──▶ Extension ──────▶├── perform() here: one function per action
//!   messages ───────┘                     └── compiled tables, in Rust
//! ```
//!
//! To add one: its variant, its arm in [`perform`], its words in `ofctl/extension.rs`, its bytes in
//! the crate of messages.

mod bits;
mod conjunction;
mod learn;
mod perform;
mod spread;
#[cfg(test)]
mod tests;

pub use bits::Bits;
pub(crate) use conjunction::{Clause, decide};
pub use learn::{Learn, Source, Spec, Target};
pub(crate) use perform::perform;
pub use spread::{Algorithm, Bundle, HashFields, Multipath, hash_of};

use crate::action::Action;
use crate::outcome::PacketInReason;

/// The most resubmits of a packet inside each other (Open vSwitch: 64).
pub const DEPTH_MAX: usize = 64;
/// The most resubmits of a packet (Open vSwitch: 4096).
pub const RESUBMITS_MAX: usize = 4096;
/// The most values on the stack of a packet.
pub const STACK_MAX: usize = 1024;

/// An action of Open vSwitch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Extension {
    /// Sets the bits of `mask` (`load`, and `set_field` with a mask).
    Set {
        /// The field.
        field: crate::Field,
        /// The new bits, within `mask`.
        value: u128,
        /// The bits that change.
        mask: u128,
        /// Whether it was written as `load`.
        is_load: bool,
    },
    /// Copies bits; nothing happens if the packet lacks one of the fields.
    Move {
        /// The source.
        from: Bits,
        /// The destination, of the same width.
        to: Bits,
    },
    /// Puts bits on the packet's stack.
    Push(Bits),
    /// Takes bits from the stack; of an empty stack nothing happens.
    Pop(Bits),
    /// Sends a copy to the port whose number is in a field (`output:reg0`).
    OutputTo {
        /// The number of the port.
        port: Bits,
        /// The most bytes of a packet-in.
        max_len: u16,
    },
    /// Sends a copy of at most `max_len` bytes out of a port.
    Truncated {
        /// The port.
        port: u32,
        /// Bytes of the frame that are kept.
        max_len: u32,
    },
    /// Looks the packet up in a table, executes what is found, and goes on here.
    Resubmit {
        /// The port of entry in that lookup; `None` for the present one.
        in_port: Option<u32>,
        /// The table; `None` for the present one.
        table: Option<u8>,
    },
    /// Adds or renews a flow.
    Learn(Learn),
    /// Puts the number of a link, chosen by a hash, into a field.
    Multipath(Multipath),
    /// Sends to one of several ports that can send, or puts its number into a field.
    Bundle(Bundle),
    /// Bytes without a meaning here.
    Note(Vec<u8>),
    /// Executes actions on a copy.
    Clone(Vec<Action>),
    /// This flow is one of the clauses of a conjunction.
    Conjunction {
        /// The conjunction.
        id: u32,
        /// The clause, from 0.
        clause: u8,
        /// The number of clauses.
        clauses: u8,
    },
    /// Reports some of the packets to a collector, if there is one: there is none here.
    Sample {
        /// Packets of 65,535 that are reported.
        probability: u16,
        /// The set of collectors.
        collector_set: u32,
        /// Observation domain of IPFIX.
        domain: u32,
        /// Observation point of IPFIX.
        point: u32,
        /// The port that is reported; 0 for none.
        sampling_port: u32,
        /// The direction that is reported: 0 default, 1 ingress, 2 egress.
        direction: u8,
    },
    /// Ends the actions of this packet, at every depth.
    Exit,
    /// Sends a packet-in.
    Controller {
        /// The most bytes of the frame.
        max_len: u16,
        /// The reason that is given.
        reason: PacketInReason,
    },
    /// Sends a copy by a queue of a port; the queue of the packet stays.
    Enqueue {
        /// The port.
        port: u32,
        /// Its queue.
        queue: u32,
    },
    /// Goes back to the default queue.
    PopQueue,
    /// Sets one bit to whether the frame is longer than this.
    CheckLen {
        /// Bytes of the frame without FCS.
        longer_than: u16,
        /// The bit.
        to: Bits,
    },
}

impl Extension {
    /// Returns all actions inside this one.
    pub fn inner(&self) -> &[Action] {
        if let Extension::Clone(actions) = self { actions } else { &[] }
    }

    /// Returns the ports that it may send copies to and that it names.
    pub(crate) fn ports(&self) -> Vec<u32> {
        match self {
            Extension::Truncated { port, .. } | Extension::Enqueue { port, .. } => vec![*port],
            Extension::Bundle(bundle) => bundle.members.clone(),
            Extension::Clone(actions) => actions.iter().flat_map(Action::ports).collect(),
            _ => Vec::new(),
        }
    }
}
