//! Connection tracking: which packets belong to which connection, and what state it is in.
//!
//! ```text
//!   packet ─▶ PacketView ─▶ Conntrack::track ─▶ Tracked: new, est, rel, rpl, inv
//!              (caller)          │                └─▶ Translation: the addresses of NAT (caller)
//!                                ├─ index: tuple ─▶ connection and direction
//!                                ├─ tcp: states and windows
//!                                └─ expiry: earliest deadline first
//! ```
//!
//! A connection has two tuples: that of its first packet, and that of replies. Without NAT one is
//! the reverse of the other. Tuples are unique in a zone.
//!
//! The semantics are those of the `ct` action of Open vSwitch over its userspace data path: its
//! states, its timeouts, and TCP windows as in Guido van Rooij, "Real Stateful TCP Packet Filtering
//! in IP Filter" (2001). Checksums are not verified.
//!
//! There is no clock here, no I/O and no frame: time is an argument, and the caller parses and
//! edits packets.
//!
//! Read first: `tuple.rs`, `table.rs`, then `tcp.rs`.
#![forbid(unsafe_code)]

mod alg;
mod connection;
mod expect;
mod expiry;
mod follow;
mod ftp;
mod index;
mod nat;
mod sequence;
mod slab;
mod state;
mod store;
mod table;
mod tcp;
mod text;
mod timeouts;
mod tuple;
mod view;

pub use alg::Alg;
pub use connection::ConnectionInfo;
pub use follow::PayloadEdit;
pub use nat::{NatRequest, NatSide, NatSpec, PortChoice};
pub use sequence::SegmentShift;
pub use state::CtState;
pub use table::{
    Commit, Conntrack, ConntrackCounters, ConntrackLimits, NotCommitted, TrackRequest, Tracked, Translation,
};
pub use tcp::TcpPhase;
pub use timeouts::{TimeoutKind, Timeouts};
pub use tuple::FlowTuple;
pub use view::{PacketKind, PacketView, TcpSegment, tcp_flags};
