//! A running network of emulated links: routes, routers, switches, and the hop-by-hop forwarding of
//! frames in virtual time. This crate is pure: time and random numbers are arguments.
//!
//! ```text
//!  Topology ─▶ Network ── push(now, edge, frame) ──▶ pipe ▶ router ▶ pipe ▶ … ── pop(now) ──▶ edge
//! ```
//!
//! A [`Network`] is built from a resolved [`Topology`](fastpath_spec::Topology).
//!
//! ```
//! use fastpath_net::{EdgeId, Network, Options};
//! use fastpath_units::Time;
//!
//! let spec = "[host.a]\n[host.b]\n\
//!             [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '25ms'";
//! let (topology, _warnings) = fastpath_spec::parse(spec).expect("a valid spec");
//! let mut network = Network::new(topology, Options::default());
//!
//! // A frame of 1250 bytes enters at host a, which is edge 0.
//! let frame = network.pool_mut().insert(&[0; 1250]).expect("the pool is not full");
//! network.push(Time::ZERO, EdgeId(0), frame);
//!
//! // It arrives at host b after 1 ms of transmission and 25 ms of delay.
//! let now = network.next_at().expect("a frame is in the network");
//! let delivery = network.pop(now).expect("the frame is due");
//! assert_eq!((delivery.at.to_string().as_str(), delivery.edge), ("26ms", EdgeId(1)));
//! network.pool_mut().free(delivery.frame);
//! assert!(network.accounting().balances());
//! ```
//!
//! Read first: `network.rs`.
#![forbid(unsafe_code)]

mod accounting;
mod bridge;
pub mod capture;
mod change;
mod cut;
mod cut_pipes;
pub mod data_path;
mod difference;
mod fate;
mod flow_frame;
pub mod flows;
mod host_path;
mod host_transfer;
mod id;
mod nat;
mod neighbor;
mod network;
mod next_hop_cache;
mod observer;
mod openflow;
mod options;
pub mod packet_log;
mod part;
mod partition;
mod pool;
mod route;
mod router;
mod router_slow_path;
mod rx_context;
pub mod sample;
mod schedule;
mod spanning_tree;
mod windows;
mod wiring;

pub use accounting::FrameAccounting;
pub use change::TopologyChange;
pub use cut::CutError;
pub use cut_pipes::Crossings;
pub use difference::Difference;
pub use fate::Reason;
pub use flow_frame::FlowFrame;
pub use host_path::{HostPath, NoPath};
pub use host_transfer::{DoorOf, HostTransfer, TransferTerms};
pub use id::{Edge, EdgeId, Location, PipeId};
pub use nat::{NatCounters, NatProtocol, NatSession};
pub use network::{Delivery, Network};
pub use observer::{FrameTag, Observer, Passage, Turn};
pub use openflow::{Executors, MakeExecutor};
pub use options::Options;
pub use part::{Part, PartsError};
pub use partition::{BelowLookahead, Cut, JoinedLinks, NoCut, NodesJoined, Partition, previous_hops};
pub use pool::{FRAME_MAX, Frame, FramePool, SegmentFrames, SegmentRun, UnusedMemory};
pub use route::{Fib, NextHop, Route, Routes};
pub use schedule::{LinkChange, ScheduleFull};
pub use windows::{PartClock, Windows};
