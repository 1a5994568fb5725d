//! Simulates packet processors: discrete events in virtual time, and machines built of units.
//!
//! ```text
//! machine + program + workload + seed ──► run ──► outcome
//!                                          │
//!                                       kernel (time, insertion) ──► units
//! ```
//!
//! A **machine** has ports, memories and units, a **program** gives the cost of each packet at each
//! unit, and a **workload** is the arriving traffic. All three are texts ([`machine`], [`program`],
//! [`workload`]). [`run()`] takes every frame through the units and returns the [`Outcome`]:
//!
//! ```
//! use fastpath_sim::{Machine, Program, Workload, find_bottleneck, run};
//!
//! let machine = Machine::parse("router.toml", r#"
//!     name = "router"
//!     source = "an example"
//!     ports = { count = 2, rate = "10Gbit" }
//!     [[cores]]
//!     name = "cpu"
//!     cores = 2
//!     clock = "2GHz"
//!     [[line]]
//!     name = "wire"
//! "#)?;
//! let program = Program::parse("forward.toml", r#"
//!     name = "forward"
//!     source = "an example"
//!     stage = [
//!         { name = "route", on = "cpu", steps = [{ compute = 400 }] },
//!         { name = "send", on = "wire" },
//!     ]
//! "#)?;
//! let workload: Workload = "poisson,rate=12Mpps,size=64,duration=5ms".parse()?;
//!
//! let mut outcome = run(&machine, &program, &workload, 1)?;
//! find_bottleneck(&machine, &program, &workload, 1, &mut outcome)?;
//! // Two cores of 200 ns per packet forward 10 Mpps.
//! assert!((outcome.forwarded_pps / 10e6 - 1.0).abs() < 0.01);
//! assert_eq!(outcome.bottleneck, "cpu");
//! assert_eq!(outcome.offered, outcome.forwarded + outcome.dropped_at("cpu queue full"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`shipped`] has the machines and programs that come with the crate, [`experiment`] runs
//! published set-ups on them, and [`validation`] compares them with the publications.
//! [`bottleneck`] finds the unit that limits by trying. [`case`] is the input of a run with
//! parameters that can be changed by name, and [`sweep`] runs many of them.
//!
//! A unit of type `link` is a link of `fastpath-link`, described with the keys of a network spec.
//!
//! Pure: no clock, no I/O, no threads. The same seed gives the same [`trace::TraceHash`] on any
//! computer. [`cut`] divides a run in two parts for two threads, with the same results.
//!
//! Read first: `kernel.rs`, then `classic.rs`, the two smallest models, then `run.rs`. A new unit
//! type is a file in `unit/` and a line in `unit/mod.rs`. A new machine or program is a file in
//! `machines/` or `programs/`.
#![forbid(unsafe_code)]

pub mod bottleneck;
mod cache;
pub mod case;
pub mod classic;
mod customers;
pub mod cut;
pub mod describe;
mod ended;
mod environment;
#[cfg(test)]
mod every_word_tests;
mod examples;
pub mod experiment;
mod framing;
pub mod kernel;
mod keys;
mod law;
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

pub use bottleneck::{Remedy, find_bottleneck, find_bottleneck_by, remedy, remedy_by};
pub use framing::Framing;
pub use machine::Machine;
pub use outcome::Outcome;
pub use ports::{OtherPorts, PortRange, PortsSpec};
pub use program::Program;
pub use run::{observe, run};
pub use spec::{Clock, SpecError};
pub use trace::Visit;
pub use workload::Workload;
