//! The description of an emulated network, pure: spec files, presets and traces in, a checked
//! [`Topology`] out, or every mistake with its place.
//!
//! ```text
//!  spec.toml ──▶ reader ──▶ Topology ──▶ fastpath-net: Network
//!    trace files, rule files ──┘ (through one callback, Files)
//! ```
//!
//! Read first: `topology.rs`, then `reader.rs`.
#![forbid(unsafe_code)]

pub mod address;
mod default_queue;
mod effects;
mod engine_settings;
mod fields;
mod loss;
pub mod mistake;
pub mod netem;
mod node;
mod pipe;
mod port_name;
pub mod preset;
pub mod queue;
mod reader;
pub mod rules;
pub mod segment;
mod slots;
mod topology;
pub mod trace;
mod trace_key;
mod traced;
mod tree;
mod write;

pub use default_queue::DEFAULT_QUEUE_PACKETS;
pub use engine_settings::{EngineSettings, Idle, Late, Workers};
pub use mistake::{Mistake, Warning};
pub use pipe::assignment;
pub use port_name::{ParsePortNameError, PortName};
pub use reader::{Spec, is_key, is_name, keys, parse, parse_change, read};
pub use topology::{
    DEFAULT_MTU, Direction, End, Event, Group, Interface, Link, LinkId, Node, NodeId, NodeKind, Start,
    Topology, Track,
};
pub use trace_key::Files;
pub use traced::Traced;
pub use write::{inline, values};
