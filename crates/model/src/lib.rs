//! Cost models of packet processing: fit them to measurements, predict with them, size systems with
//! them. Every answer has an interval.
//!
//! | question | module |
//! |---|---|
//! | What does a packet cost, by least squares? | [`fit`] over a [`table`], in [`terms`] |
//! | How well does it predict points that were not fitted? | [`check`] |
//! | What is the distribution of latency samples? | [`latency`] |
//! | What is the throughput elsewhere? How many cores does a link need? | [`predict`], [`cores`] |
//! | How much faster do several workers run one network? | [`scaling`] |
//! | Does a machine carry an emulated network? | [`capacity`] |
//! | SCION's platform index | [`index`] |
//! | Which rate do threads on engines sustain? Which task goes where? | [`budget`], [`assign`] |
//! | Exact queueing formulas, an oracle for simulators | [`queueing`] |
//! | Does this crate reproduce published figures? | [`publications`] |
//!
//! A table of points, a fit with intervals, and a prediction:
//!
//! ```
//! use fastpath_model::Table;
//! use fastpath_model::fit::{FitOptions, fit};
//! use fastpath_model::predict::{PredictionQuery, predict};
//!
//! // Nanoseconds on one core by frame size and by table lookups.
//! let table = Table::from_csv(
//!     "bytes,lookups,T_ns
//!      64,0,45.2
//!      64,10,85.6
//!      512,0,90.1
//!      512,10,131.2
//!      1518,0,191.8
//!      1518,10,232.7",
//! )?;
//! let cost = fit(&table, "T_ns", "const,bytes,lookups", &FitOptions::default())?;
//! let per_lookup = cost.coefficients["lookups"];
//! assert!(per_lookup.low < 4.07 && 4.07 < per_lookup.high);
//!
//! let at = vec![("bytes".to_owned(), 256.0), ("lookups".to_owned(), 5.0)];
//! let query = PredictionQuery {
//!     transfer: None,
//!     cores: 4.0,
//!     line_gbit: Some(100.0),
//!     packet_cap: None,
//!     at,
//! };
//! let throughput = predict(&cost.model(), &query)?.throughput_pps;
//! assert!(throughput.low > 40e6 && throughput.high < 60e6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pure: the input is text or numbers, the output is serialisable structs. The crate reads no file
//! and no clock and draws no random number. Read first: `estimate.rs`, then `fit/mod.rs`.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod assign;
pub mod budget;
pub mod capacity;
mod cell;
pub mod check;
pub mod column_unit;
pub mod cores;
pub mod dist;
mod estimate;
pub mod families;
pub mod fcs;
pub mod fit;
pub mod index;
pub mod latency;
mod linear;
pub mod model;
pub mod output;
pub mod platform;
pub mod predict;
pub mod publications;
pub mod published;
pub mod queueing;
pub mod regime;
pub mod scaling;
pub mod table;
pub mod terms;
#[cfg(test)]
mod testing;

pub use estimate::{Bounded, Estimate};
pub use table::Table;
pub use terms::Terms;
