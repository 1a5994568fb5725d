//! The description of an emulated network, pure: spec files, presets and traces in, a checked
//! [`Topology`] out, or every mistake with its place.
//!
//! ```text
//!  spec.toml ─┐
//!  spec.json ─┼─ reader ─▶ Description ─ resolve ─▶ Topology ─▶ fastpath-net: Network
//!  Rust ──────┘                 ▲                      │
//!                               └────── describe ──────┘
//! ```
//!
//! A topology in a few lines:
//!
//! ```
//! use fastpath_spec::{Description, LinkDescription, NodeDescription};
//! use fastpath_spec::{NO_FILES, parse_change, resolve};
//!
//! let values = parse_change("rate = '10Mbit'\ndelay = '25ms'\nqueue = '50p'")?;
//! let description = Description {
//!     nodes: vec![NodeDescription::host("a"), NodeDescription::host("b")],
//!     links: vec![LinkDescription { values, ..LinkDescription::new("a", "b") }],
//!     ..Description::default()
//! };
//! let (topology, warnings) = resolve(&description, NO_FILES)?;
//! assert_eq!(topology.links[0].name, "a-b");
//! assert!(warnings.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read first: `description.rs`, `topology.rs`, then `reader.rs` and `resolve/mod.rs`.
#![forbid(unsafe_code)]

mod address;
mod bounded;
mod built;
mod canonical;
mod changes;
mod controllers;
mod cross;
mod default_queue;
mod describe;
mod description;
mod effects;
mod engine_settings;
mod event;
mod files;
mod group;
mod host;
mod kernel_router;
mod keys;
mod law;
mod link;
mod look;
mod loss;
mod nat;
mod node;
mod node_kind;
mod pipe;
mod port_name;
pub mod preset;
pub mod queue;
mod reader;
mod resolve;
pub mod rules;
mod schema;
pub mod segment;
mod slots;
mod spec_file;
mod syntax;
mod topology;
mod trace_source;
mod traced;
mod traffic;
mod transfer;
mod uplink;

pub use fastpath_text::link_names::LinkNames;
pub use fastpath_text::mistake;
use fastpath_text::{document, fields, hints, json, link_names, name, path, schema_parts, tree, write};
pub use fastpath_trace as trace;

pub use built::Built;
pub use changes::{change_of_json, is_key, keys, parse_change, parse_changes};
pub use controllers::{ControllerTls, Controllers, FailMode};
pub use default_queue::DEFAULT_QUEUE_PACKETS;
pub use describe::describe;
pub use description::{
    Description, DirectionDescription, EventDescription, GroupDescription, LinkDescription, NodeDescription,
    NodeRole, OnLink, RuleSource, TrafficDescription, TrafficKind,
};
pub use engine_settings::{DataPathChoice, EngineSettings, Idle, Late, Workers, memory};
pub use files::{Files, NO_FILES};
pub use host::{Attach, Bind, HostOrigin, HostSettings, ParseAttachError, ParseBindError};
pub use kernel_router::{DaemonProgram, KernelRouter, ProtocolKind, ProtocolSettings, RoutingDaemon};
pub use keys::{TOP, TopKey};
pub use look::Look;
pub use mistake::{Checked, Mistake, Mistakes, Warning};
pub use name::is_name;
pub use nat::{Dependence, Nat, NatDescription, NatSettings, NatTimeouts, Pooling};
pub use node_kind::{GivenRoutes, HostKind, HostSetup, KernelForwarder, NodeKind};
pub use path::{PathStep, SpecPath};
pub use pipe::{assignment, change_to_json, default_values, difference, values};
pub use port_name::{ParsePortNameError, PortName};
pub use reader::{
    NetworkSpec, check, check_json, check_json_to_draw, check_to_draw, parse, read, read_json, resolve_into,
};
pub use resolve::{InvalidValue, Notice, resolve, resolve_in_place_of};
pub use schema::json_schema;
pub use topology::{
    DEFAULT_MTU, Direction, Event, Family, Group, HostCommand, Interface, Link, LinkId, NatEvent, Node,
    NodeId, Rebinding, Routing, Start, Topology, TraceAction, TraceEvent, Track, Traffic, TransferTraffic,
};
pub use trace_source::{TraceDescription, TraceEnd, TraceSource};
pub use traced::Traced;
pub use uplink::{Forward, ListenAt, ParsePortError, PortProtocol, Uplink};
pub use write::inline;
