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

mod clock;
pub mod control;
mod engine;
mod ledger;
pub mod port;
mod report;
mod sys;
mod worker;

pub use clock::Clock;
pub use engine::{AttachError, Options, Panicked, Ports, Running, StartError, Stopper, attach, start};
pub use report::{Books, Lateness, LinkReport, PipeReport, PortReport, Report};
pub use worker::Idle;
