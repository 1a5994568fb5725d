//! The emulated link, pure and exact.
//!
//! ```text
//!             push                                                              pop
//!  packet ──▶ loss ──▶ qdisc (the R queue) ──▶ serialiser at the rate ──▶ delay line (the P queue) ──▶ exit
//! ```
//!
//! A [`Pipe`] is one direction of a link (Rizzo's two-queue model: a bandwidth queue, then a delay line);
//! a link is two pipes. A pipe is advanced lazily: nothing happens at the instant a packet leaves the queue
//! unless somebody looks, because between two pushes the future of a pipe is decided. So a pipe has one
//! pending event, the next exit, and thousands of pipes share one [`Wheel`].
//!
//! Time and chance are arguments. Read first: `packet.rs`, then `spec.rs`, then `pipe.rs`. A new queue
//! discipline is a file in `qdisc/`, a new impairment a file in `impairment/`.
#![forbid(unsafe_code)]

mod counters;
mod impairment;
pub mod oracle;
mod packet;
mod pipe;
mod qdisc;
mod serialiser;
mod spec;
mod wheel;

pub use counters::{Counters, Tally};
pub use impairment::LossSpec;
pub use packet::{DropReason, Exit, Fate, Packet, Verdict};
pub use pipe::Pipe;
pub use qdisc::{Limit, QueueSpec, RedSpec};
pub use spec::{Change, PipeSpec};
pub use wheel::Wheel;
