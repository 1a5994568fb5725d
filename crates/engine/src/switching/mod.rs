//! A switch in real time: frames go from ports through an executor to ports, while controllers
//! change the tables.
//!
//! ```text
//!             agent ── change, read, packet_out ──▶ ┌─ Core (locked) ───┐ ◀── finish ── builder (compiles)
//!               ◀── packet-ins ── Exchange ◀──┐     │ Switch + Executor │
//!                                             │     └───────│───────────┘
//!   port ──rx_burst──▶ Burst ── Forwarder ────┴─ newest ◀───┘ publishes   ──▶ backlog ──tx_burst──▶ port
//! ```
//!
//! The thread that forwards takes the newest state of the tables at the start of a burst. So a
//! change is in force for the next burst when [`Control::change`] returns. A controlling thread
//! takes the lock for a batch of requests, which delays other controlling threads only. With an
//! executor that has no forwarder the data path takes the lock once a burst. Slow work (building
//! lookup structures, compiling) is done by the builder thread without the lock.
//!
//! Read first: `datapath.rs`, then `control.rs`.

mod accounting;
mod control;
mod datapath;
pub mod interface;
mod links;
mod node;
mod packet_ins;
mod port_change;
mod port_queues;
mod queue_control;
mod running;

pub use accounting::SwitchAccounting;
pub use control::Control;
pub use datapath::Datapath;
pub use links::LinkWatch;
pub use node::NodeExecutor;
pub use packet_ins::{PacketInLimit, QueuedPacketIn};
pub use port_queues::{PolicingSpec, PortQueueSpec, QUEUES_MAX, QueueCounters, QueueRates, queue_memory};
pub use queue_control::QueueSpecs;
pub use running::{SwitchRunning, serve, serve_node};
