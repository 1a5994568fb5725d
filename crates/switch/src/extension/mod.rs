//! Actions of Open vSwitch beyond the specification (ovs-actions(7)).
//!
//! ```text
//!   text (ofctl/) ──┐                     ┌── interpreter
//!                   ├──▶ Extension ──────▶├── perform() here: one function per action
//!   messages ───────┘                     └── compiled tables, in Rust
//! ```
//!
//! To add one: its variant in `action.rs`, its arm in [`perform`], its words in
//! `ofctl/extension.rs`, its bytes in the crate of messages.

pub(crate) mod bits;
pub(crate) mod conjunction;
pub(crate) mod ct;
pub(crate) mod learn;
mod learned;
mod payload;
mod perform;
mod read;
pub(crate) mod spread;
pub(crate) mod track;

pub use crate::action::{Controller, Ct, Extension, Zone};
pub use bits::Bits;
pub use conjunction::{Clause, decide};
pub use learn::{Learn, Source, Spec, Target};
pub(crate) use perform::perform;
pub use spread::{Algorithm, Bundle, HashFields, Multipath};

/// The most resubmits of a packet inside each other (Open vSwitch: 64).
pub const DEPTH_MAX: usize = 64;
/// The most resubmits of a packet (Open vSwitch: 4096).
pub const RESUBMITS_MAX: usize = 4096;
