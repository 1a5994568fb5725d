//! A client of ovsdb-server, for a program that is driven by the database Open_vSwitch as
//! ovs-vswitchd is.
//!
//! ```text
//!  ovs-vsctl ═▶ ovsdb-server ═ JSON-RPC ═▶ Client ─▶ Session ─▶ Replica ─▶ describe ─▶ Vec<BridgeSpec>
//!                            ◀═ transact ═════════◀─ Vec<RowUpdate> ◀─ differences ◀─ status of the switches
//! ```
//!
//! A [`Session`] is the protocol over one connection: bytes and time in, bytes and events out. A
//! [`Client`] is the socket: it connects again after a failure. A [`Replica`] is the rows of the
//! database. [`describe`] is a pure function from rows to bridges. It names everything that is
//! written in the database and not done here.
//!
//! The crate does not store a database, and it does not switch packets.
//!
//! Read first: `session.rs`, then `describe/mod.rs`.
#![forbid(unsafe_code)]

mod client;
mod describe;
mod framing;
mod message;
mod remote;
mod replica;
mod row_update;
mod schema;
mod session;
mod value;

pub use client::{Client, ClientEvent, Duplex, Secure};
pub use describe::{
    BridgeSpec, Configuration, ControllerSpec, FailureMode, InterfaceKind, InterfaceSpec, MirrorDestination,
    MirrorSpec, PortSpec, PortVlans, QosSpec, QueueRate, VlanMode, describe,
};
pub use framing::FramingError;
pub use remote::{ParseRemoteError, Remote};
pub use replica::{DbRow, Replica, ReplicaError};
pub use row_update::{RowUpdate, differences};
pub use session::{Event, Session, SessionError, TransactError};
pub use value::{Atom, Datum, ParseUuidError, Uuid, ValueError};
