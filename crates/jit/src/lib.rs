//! Match-action programs as machine code.
//!
//! ```text
//!  Switch ──▶ Live ── plans, rows, code ──▶ Worker::run(port, frame) ──▶ Fate, outcomes
//! ```
//!
//! A [`Live`] switch makes code of the tables of a [`Switch`](fastpath_switch::Switch), keeps it up
//! to date while rules change, and collects what its workers count. A [`Worker`] runs it on one
//! thread. What happens to packets is what [`interp`](fastpath_switch::interp()) says, to the bit.
//!
//! Not the shapes of tables: those are plans (`switch/src/plan`). Not ports, threads or clocks:
//! time is an argument. Read first: `template.rs`, `program.rs`, `native/mod.rs`.

mod cells;
mod executor;
mod live;
mod native;
mod program;
mod template;
mod walk;

pub use executor::Compiled;
pub use live::{Job, JobResult, Live};
pub use native::{CompileError, Fate, Finder, Worker};
