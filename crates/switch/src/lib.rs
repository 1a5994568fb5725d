//! Match-action switching with the semantics of OpenFlow 1.3.5, as data and functions.
//!
//! ```text
//!  frame ─▶ key ─▶ table 0 ─goto─▶ table n ─▶ action set ─▶ outcomes: output, packet-in, drop
//!                  match ▸ meter, apply actions, write actions, metadata
//! ```
//!
//! A [`Switch`] holds tables, groups, meters and ports. [`Switch::flow_mod`], [`Switch::group_mod`]
//! and [`Switch::meter_mod`] change it as the messages of the protocol do, and refuse with the
//! protocol's error numbers. [`interp`](interp()) executes a packet in the obvious way; it is the
//! specification of every faster executor.
//!
//! There are no messages, sockets, threads or clocks here: time is an argument.
//!
//! # Modules
//! | for | use |
//! |---|---|
//! | requests, and what they change | [`flow`], [`group`], [`meter`], [`port`] |
//! | actions and match fields, with their names and numbers | [`action`], [`field`] |
//! | executing packets | [`interp`](mod@interp), and for data paths [`execute`] |
//! | connections that packets belong to | [`connections`] |
//! | packets that wait for a controller | [`continuation`] |
//! | what code is generated from, beside plans | [`key`], [`edit`], [`normal`] |
//! | VLANs of ports, and mirrors | [`bridging`] |
//! | generated rule sets and keys, to measure with | [`workload`] |
//!
//! Read first: `field.rs`, `key.rs`, `matching.rs`, then `switch.rs`, then `interp.rs`. "§" refers
//! to the OpenFlow Switch Specification 1.3.5.
#![forbid(unsafe_code)]

pub mod action;
mod beyond;
pub mod bridging;
mod check;
pub mod connections;
pub mod continuation;
mod cookies;
pub mod edit;
mod error;
mod eviction;
pub mod execute;
pub mod extension;
pub mod field;
pub mod flow;
pub mod fullness;
pub mod group;
pub mod interp;
pub mod key;
mod known_instructions;
mod learners;
pub mod limits;
mod matching;
pub mod meter;
pub mod misses;
pub mod mix;
pub mod normal;
mod nsh;
pub mod nxm;
pub mod observe;
pub mod outcome;
pub mod port;
pub mod reason;
mod reported;
mod switch;
mod table;
pub mod table_config;
pub mod trace;
mod version;
mod versions;
pub mod workload;

pub use action::{Action, ActionSet};
pub use bridging::Bridging;
pub use connections::Connections;
pub use continuation::Continuation;
pub use cookies::{CookieCounts, FlowsOfCookies};
pub use error::Refusal;
pub use execute::{Executor, Outbox, Verdict};
pub use extension::Extension;
pub use field::Field;
pub use flow::{
    Counters, Flow, FlowCommand, FlowFilter, FlowMod, Instructions, Rank, Removed, RemovedReason,
};
pub use group::{Bucket, Group, GroupCommand, GroupIdentity, GroupKind, GroupMod};
pub use interp::{FindFlow, interp, interp_by, packet_out};
pub use key::{ConnectionFields, Depth, Key, PipelineFields};
pub use limits::Limits;
pub use matching::{FieldMatch, Match, Term};
pub use meter::{Band, BandKind, Meter, MeterCommand, MeterMod};
pub use outcome::PacketOutcome;
pub use port::{Port, PortCounters};
pub use switch::Switch;
pub use table::{Changes, ClearedFlows, FlowChange, Table};
pub use version::Version;
pub use versions::{ParseVersionsError, Versions};
