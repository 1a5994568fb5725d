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
//! A thread that forwards takes the newest state of the tables at the start of a burst. So a
//! change is in force for the next burst when [`Control::change`] returns. A controlling thread
//! takes the lock for a batch of requests, which delays other controlling threads only. With an
//! executor that has no forwarder the data path takes the lock once a burst. Slow work (building
//! lookup structures, compiling) is done by the builder thread without the lock.
//!
//! A data path has one worker or several. A port is polled by one of them, or has a channel for
//! each, between which the kernel splits flows; any worker sends by any port (`attached.rs`). So
//! frames of a flow stay in order. Each worker has a forwarder, a pool and counters of its own
//! (`workers.rs`), and a barrier waits for the bursts of all.
//!
//! Read first: `datapath.rs`, then `control.rs`.

mod accounting;
mod attached;
mod builder;
mod control;
mod datapath;
pub mod interface;
mod links;
mod node;
mod packet_ins;
mod port_change;
mod queue_control;
mod running;
mod workers;

pub use accounting::{SwitchAccounting, WorkerSummary};
pub use attached::SwitchPort;
pub use control::Control;
pub use datapath::Datapath;
pub use fastpath_link::port_queues::{
    PolicingSpec, PortQueueSpec, QUEUES_MAX, QueueCounters, QueueRates, queue_memory,
};
pub use links::LinkWatch;
pub use node::NodeExecutor;
pub use packet_ins::{PacketInLimit, QueuedPacketIn};
pub use port_change::QueueSpecs;
pub use running::{SwitchRunning, serve, serve_node, serve_workers};
pub use workers::WORKERS_MAX;
