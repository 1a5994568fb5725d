//! Discrete events in virtual time, and the machines built of them.
//!
//! ```text
//! machine + program + workload + seed ──► run ──► outcome
//!                                          │
//!                                       kernel (time, insertion) ──► units
//! ```
//!
//! Pure: no clock, no I/O, no threads; the same seed gives the same [`trace::TraceHash`] on any machine.
//! Parallelism belongs between runs, not inside one.
//!
//! Read first: `kernel.rs`, then `classic.rs`, the two smallest models.
#![forbid(unsafe_code)]

pub mod classic;
pub mod kernel;
pub mod random;
pub mod stats;
pub mod trace;
