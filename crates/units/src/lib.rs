//! Exact quantities: [`Time`], [`Duration`], [`Rate`], [`Bytes`], [`Probability`], and the seeded
//! [`Rng`].
//!
//! Everything here is a value; nothing reads a clock. Time is integer picoseconds, so a frame of
//! `n` bits at rate `r` occupies the wire for exactly `n/r` with the remainder carried to the next
//! frame ([`Rate::transmission`]). Text forms (`"25ms"`, `"1.5Mbit"`, `"64KiB"`, `"1%"`) parse
//! exactly, with integer arithmetic, and print back to something that parses to the same value.
//!
//! Read first: `time.rs`, then `rate.rs`.
#![forbid(unsafe_code)]

mod bytes;
mod parse;
mod probability;
mod rate;
mod rng;
mod time;

pub use bytes::Bytes;
pub use parse::ParseError;
pub use probability::Probability;
pub use rate::{Fraction, Rate};
pub use rng::Rng;
pub use time::{Duration, Time};
