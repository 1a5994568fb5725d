//! Cost models of packet processing, with honest intervals: fit them, predict with them, size with
//! them.
//!
//! | question | module |
//! |---|---|
//! | What does a packet cost, by least squares? | [`fit`] over a [`table`], in [`terms`] |
//! | How well does it predict points it has not seen? | [`check`] |
//! | What do latency samples say? | [`latency`] |
//! | What will it do on another platform? How many cores? | [`predict`], [`cores`] |
//! | SCION's platform index | [`index`] |
//! | Threads × engines: does it fit the packet's time? Which task on which engine? | [`budget`], [`assign`] |
//! | Exact queueing theory, an oracle for simulators | [`queueing`] |
//! | Do the published numbers come out? | [`seeds`] |
//!
//! Pure: text in, plain serialisable structs out. It reads no file and no clock and draws no random
//! number. Read first: `estimate.rs`, then `fit.rs`.
#![forbid(unsafe_code)]

pub mod assign;
pub mod budget;
mod caps;
mod cell;
pub mod check;
pub mod column_unit;
pub mod cores;
pub mod dist;
mod estimate;
pub mod fcs;
pub mod fit;
#[cfg(test)]
mod fit_tests;
pub mod index;
pub mod latency;
mod linear;
pub mod model;
pub mod platform;
pub mod predict;
pub mod queueing;
pub mod regime;
mod robust;
pub mod seeds;
mod select;
pub mod table;
pub mod terms;
#[cfg(test)]
mod testing;

pub use estimate::{Bounded, Estimate};
pub use table::Table;
pub use terms::Terms;
