//! Match-action switching with the semantics of OpenFlow 1.3.5, as data and functions.
//!
//! ```text
//!  frame ─▶ key ─▶ table 0 ─goto─▶ table n ─▶ action set ─▶ outcomes: (port, frame), to the controller, dropped
//!                  match ▸ meter, apply actions, write actions, metadata
//! ```
//!
//! A [`Switch`] holds tables, groups, meters and ports; [`Switch::flow_mod`] and its siblings
//! change it as the messages of the protocol do, and refuse with the protocol's error numbers.
//! [`interp`] executes it on a packet in the obvious way and is the specification of everything
//! that is faster.
//!
//! No messages, no sockets, no clocks: time is an argument. Read first: `field.rs`, `key.rs`,
//! `matching.rs`, then `switch.rs`, then `interp.rs`. The text followed is OpenFlow Switch
//! Specification 1.3.5; "§" means it.
#![forbid(unsafe_code)]

pub mod action;
mod check;
pub mod edit;
mod error;
pub mod execute;
pub mod field;
pub mod flow;
pub mod group;
pub mod interp;
pub mod key;
mod matching;
pub mod meter;
pub mod normal;
pub mod ofctl;
pub mod plan;
pub mod port;
mod switch;
mod table;
pub mod workload;

pub use action::{Action, ActionSet};
pub use error::Refusal;
pub use execute::{Executor, Outbox, Planned, Verdict};
pub use field::Field;
pub use flow::{
    Counters, Flow, FlowCommand, FlowFilter, FlowMod, Instructions, Rank, Removed, RemovedReason,
};
pub use group::{Bucket, Group, GroupCommand, GroupKind, GroupMod};
pub use interp::{PacketOutcome, interp, interp_by, packet_out};
pub use key::{Depth, Key, PipelineFields};
pub use matching::{FieldMatch, Match, Term};
pub use meter::{Band, BandKind, Meter, MeterCommand, MeterMod};
pub use plan::{Plan, TablePlan};
pub use port::{Port, PortCounters};
pub use switch::{Limits, Switch};
pub use table::{Changes, Table};
