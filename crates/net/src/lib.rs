//! A network of emulated links, pure: which way packets go, and their walk hop by hop at logical
//! time ([`Network`]). What it consists of is a `fastpath_spec::Topology`.
//!
//! ```text
//!  Topology ─▶ Network ── push(now, edge, frame) ──▶ pipe ▶ router ▶ pipe ▶ … ── pop(now) ──▶ edge
//! ```
//!
//! Read first: `network.rs`.
#![forbid(unsafe_code)]

mod bridge;
mod fate;
pub mod ledger;
mod neighbor;
mod network;
mod observer;
mod openflow;
mod part;
mod pool;
mod route;
mod router;
mod schedule;
mod speaker;

pub use fate::{Conservation, Reason};
pub use network::{Delivery, Edge, EdgeId, Network, Options};
pub use observer::{Observer, Passage, PipeId, Place};
pub use openflow::{Executors, MakeExecutor};
pub use part::Part;
pub use pool::{FRAME_MAX, Frame, FramePool, SegmentRun, Segments};
pub use route::{Fib, NextHop, Route, Routes};
pub use schedule::{LinkChange, ScheduleFull};
