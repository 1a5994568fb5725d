//! Exact quantities: [`Time`], [`Duration`], [`Rate`], [`Bytes`], [`Probability`], and the seeded
//! [`Rng`].
//!
//! Every type is a plain value, and nothing reads a clock. Time is counted in integer picoseconds.
//! A frame of `n` bits at rate `r` occupies the wire for exactly `n/r`: the remainder is carried to
//! the next frame ([`Rate::transmission`]). Text forms (`"25ms"`, `"1.5Mbit"`, `"64KiB"`, `"1%"`)
//! parse with integer arithmetic, without rounding. The printed form parses to the same value.
//!
//! ```
//! use fastpath_units::{Bytes, Duration, Fraction, Rate, Rng, Time};
//!
//! // Three frames of 1500 bytes back to back at 7 Mbit/s: 12000 bits take 1714285714 2/7 ps each.
//! let rate: Rate = "7Mbit".parse()?;
//! let (mut now, mut carried) = (Time::ZERO, Fraction::ZERO);
//! for _ in 0..3 {
//!     let (span, left) = rate.transmission(Bytes(1500), carried);
//!     now += span;
//!     carried = left;
//! }
//! // 36000 bits at 7 Mbit/s are 5142857142 6/7 ps: no rounding error adds up.
//! assert_eq!(now.as_ps(), 5_142_857_142);
//! assert_eq!(rate.bytes_in("8ms".parse()?), Bytes(7000));
//! assert_eq!(Duration::from_us(1536).to_string(), "1.536ms");
//!
//! // The same seed gives the same numbers on every machine.
//! assert_eq!(Rng::new(7).next_u64(), Rng::new(7).next_u64());
//! # Ok::<(), fastpath_units::ParseError>(())
//! ```
//!
//! Beside the quantities: [`matrix`], the points of a matrix and their parts.
//!
//! Read first: `time.rs`, then `rate.rs`.
#![forbid(unsafe_code)]

mod bytes;
mod distribution;
pub mod math;
pub mod matrix;
mod parse;
mod probability;
mod rate;
mod rng;
pub mod stats;
mod time;

pub use bytes::Bytes;
pub use distribution::Distribution;
pub use parse::{ParseError, ParseErrorKind};
pub use probability::Probability;
pub use rate::{Fraction, Rate};
pub use rng::Rng;
pub use time::{Duration, Time};
