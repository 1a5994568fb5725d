//! A switch in real time: frames go from ports through an executor to ports, while controllers
//! change the tables.
//!
//! ```text
//!             agent ── change, read, packet_out ──▶ ┌─ Core (one lock) ─┐ ◀── finish ── builder (compiles)
//!               ◀──── packet-ins, bounded ───────── │ Switch + Executor │
//!                                                   └─────────▲─────────┘
//!   port ──rx_burst──▶ Burst ── one lock a burst ── execute ──┘──▶ backlog ──tx_burst──▶ port
//! ```
//!
//! The thread that forwards takes the lock once per burst. A controlling thread takes it for a
//! batch of requests. So a change is in force for the next burst when [`Control::change`] returns.
//! Slow work (building lookup structures, compiling) is done by the builder thread without the
//! lock.
//!
//! Read first: `datapath.rs`, then `control.rs`.

mod accounting;
mod control;
mod datapath;
mod links;
mod packet_ins;
mod running;

pub use accounting::SwitchAccounting;
pub use control::Control;
pub use datapath::Datapath;
pub use links::LinkWatch;
pub use packet_ins::{PacketInLimit, QueuedPacketIn};
pub use running::{SwitchRunning, serve};
