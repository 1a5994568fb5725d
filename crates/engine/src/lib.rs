//! The network of `fastpath-net` driven in real time between real ports.
//!
//! ```text
//!   ctl ──socket──▶ control ──commands──▶ ┌────────────── worker ──────────────┐
//!                      ◀──snapshots────── │ Port ▶ Burst ▶ Network ▶ Port      │   one thread, one Clock
//!                   report                └────────────────────────────────────┘
//! ```
//!
//! Linux only: on other systems the crate is empty, and `fastpath replay` does without it.
//!
//! Read first: `worker.rs` (the loop), then `port/mod.rs`; `engine.rs` starts and stops it all.
#![cfg(target_os = "linux")]

mod audit;
mod clock;
pub mod control;
mod delays;
mod engine;
mod ledger;
mod mail;
pub mod port;
pub mod priority;
mod ready;
mod report;
mod slack;
pub mod switching;
mod sys;
mod team;
mod watch;
mod worker;

pub use audit::BOUNDS_NS;
pub use clock::Clock;
pub use delays::{DelayBias, DelayFigures, DelayReport};
pub use engine::{AttachError, Options, Panicked, Ports, Running, StartError, Stopper, attach, start};
pub use fastpath_spec::{Idle, Late, Workers};
pub use report::{
    Books, Interruptions, Lateness, LinkReport, PipeReport, PortReport, Promise, Report, WorkerReport,
};
pub use sys::large_blocks::LargeBlocks;
