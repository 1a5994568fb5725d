//! The emulated link, pure and exact.
//!
//! ```text
//!             push                                                              pop
//!  packet ──▶ loss ──▶ qdisc (the R queue) ──▶ serialiser at the rate ──▶ delay line (the P queue) ──▶ exit
//! ```
//!
//! A `Pipe` is one direction of a link (Rizzo's two-queue model: a bandwidth queue, then a delay line).
//! It is advanced lazily: nothing happens at the instant a packet leaves the queue unless somebody looks,
//! because between two pushes the future of a pipe is decided. So a pipe has one pending event, the next
//! exit, and thousands of pipes share one `Wheel`.
//!
//! Time and chance are arguments. Read first: `packet.rs`, then `pipe.rs`.
#![forbid(unsafe_code)]

mod packet;

pub use packet::{DropReason, Exit, Fate, Packet, Verdict};
