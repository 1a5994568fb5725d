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

mod attach;
mod clock;
mod command;
pub mod control;
mod delays;
mod engine;
mod lateness;
mod notice;
mod packet_log;
pub mod port;
pub mod priority;
mod ready;
mod report;
mod sleep_margin;
pub mod switching;
mod sys;
mod worker;
mod worker_clock;
mod worker_group;

pub use attach::{AttachError, attach};
pub use clock::Clock;
pub use delays::{DelayBias, DelayFigures, DelayReport};
pub use engine::{EdgePorts, Options, Panicked, Running, StartError, Stopper, start};
pub use fastpath_spec::{Idle, Late, Workers};
pub use lateness::BOUNDS_NS;
pub use notice::Notice;
pub use report::{
    FrameAccounting, Interruptions, Lateness, LatenessReport, LinkReport, PipeReport, PortReport, Report,
    WorkerReport,
};
pub use sys::large_blocks::LargeBlocks;
