//! A network of emulated links, pure: what it is ([`Topology`]), how it is written down (spec
//! files, Emulab scripts), which way packets go, and their walk hop by hop at logical time
//! ([`Network`]).
//!
//! ```text
//!  spec.toml ─┐
//!             ├─▶ Topology ─▶ Network ── push(now, edge, frame) ──▶ pipe ▶ router ▶ pipe ▶ … ── pop(now) ──▶ edge
//!  script.ns ─┘
//! ```
//!
//! Read first: `topology.rs`, then `network.rs`.
#![forbid(unsafe_code)]

mod address;
mod bridge;
mod fate;
pub mod ledger;
mod mistake;
mod neighbor;
pub mod netem;
mod network;
pub mod ns;
mod observer;
mod openflow;
mod part;
mod pool;
pub mod preset;
mod queue;
mod real_time;
mod route;
mod router;
mod schedule;
mod segment;
mod speaker;
pub mod spec;
mod topology;
pub mod trace;
mod traced;

pub use fate::{Conservation, Reason};
pub use mistake::{Mistake, Warning};
pub use network::{Delivery, Edge, EdgeId, Network, Options};
pub use observer::{Observer, Passage, PipeId, Place};
pub use openflow::Executors;
pub use part::Part;
pub use pool::{FRAME_MAX, Frame, FramePool, SegmentRun, Segments};
pub use real_time::{Idle, Late, RealTime, Workers};
pub use route::{Fib, NextHop, Route, Routes};
pub use schedule::{LinkChange, ScheduleFull};
pub use topology::{
    DEFAULT_MTU, Direction, End, Event, Group, Interface, Link, LinkId, Node, NodeId, NodeKind, Start,
    Topology, Track,
};
pub use traced::Traced;
