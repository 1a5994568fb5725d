//! Discrete events in virtual time, and the machines built of them.
//!
//! ```text
//! machine + program + workload + seed ──► run ──► outcome
//!                                          │
//!                                       kernel (time, insertion) ──► units
//! ```
//!
//! A **machine** is ports, memories and units, a **program** says what each packet costs where, a
//! **workload** is what arrives: three texts ([`machine`], [`program`], [`workload`]). [`run::run`]
//! takes every frame through the units (`unit/`, one file each) and says what came of it
//! ([`outcome`]). [`shipped`] are the machines and programs that come with the crate,
//! [`experiment`] the published set-ups to run them in, [`validation`] holds them against what was
//! published about them.
//!
//! [`case`] is what a run is of while its numbers can still be changed, [`sweep`] many of them.
//!
//! Pure: no clock, no I/O, no threads; the same seed gives the same [`trace::TraceHash`] on any
//! machine. Parallelism belongs between runs, not inside one.
//!
//! Read first: `kernel.rs`, then `classic.rs`, the two smallest models, then `run.rs`.
#![forbid(unsafe_code)]

pub mod bottleneck;
mod cache;
pub mod case;
pub mod classic;
mod environment;
pub mod experiment;
pub mod kernel;
pub mod machine;
mod memory;
pub mod outcome;
pub mod parameter;
mod ports;
pub mod program;
mod queue;
pub mod random;
mod route;
pub mod run;
pub mod scheduler;
pub mod shipped;
mod spec;
pub mod stats;
pub mod sweep;
pub mod trace;
mod unit;
pub mod validation;
pub mod workload;

pub use bottleneck::{Remedy, find_bottleneck, remedy};
pub use machine::Machine;
pub use outcome::Outcome;
pub use ports::PortsSpec;
pub use program::Program;
pub use run::{observe, run};
pub use spec::{Clock, Problem, SpecError};
pub use trace::Visit;
pub use workload::Workload;
