//! The emulated link, pure and exact.
//!
//! ```text
//!       push                                                                  pop
//!  packet ──▶ loss ──▶ qdisc (R queue) ──▶ serialiser ──▶ delay line (P queue) ──▶ exit
//! ```
//!
//! A [`Pipe`] is one direction of a link: a bandwidth queue, then a delay line, as in Dummynet (L.
//! Rizzo, "Dummynet: A Simple Approach to the Evaluation of Network Protocols", ACM CCR 27(1),
//! 1997). A link is two pipes. Between two pushes the future of a pipe is determined, so a pipe
//! advances only when it is called. It has one pending event, the next exit, and thousands of pipes
//! share one [`Wheel`]. [`Pipes`] combines both.
//!
//! ```
//! use fastpath_link::{Packet, Pipe, PipeSpec, Wheel};
//! use fastpath_units::{Rng, Time};
//!
//! let (rate, delay) = ("10Mbit".parse().ok(), "25ms".parse()?);
//! let spec = PipeSpec { rate, delay, ..PipeSpec::default() };
//! let mut pipes = [Pipe::new(&spec, Rng::stream(7, 0)), Pipe::new(&spec, Rng::stream(7, 1))];
//! let mut wheel = Wheel::new(pipes.len());
//!
//! // After a push, a change or a pop, schedule the next event of the pipe.
//! let packet = Packet::new(1250, "frame");
//! let _ = pipes[1].push(Time::ZERO, packet);
//! if let Some(at) = pipes[1].next_at() {
//!     wheel.schedule(1, at);
//! }
//!
//! // 1250 bytes at 10 Mbit/s take 1 ms on the wire, then 25 ms of propagation delay.
//! let now = wheel.next_at().expect("one pipe is pending");
//! let (at, id) = wheel.pop_due(now).expect("it is due");
//! assert_eq!((at.to_string(), id), ("26ms".to_owned(), 1));
//! assert_eq!(pipes[1].pop(now).map(|exit| exit.packet.data), Some("frame"));
//! # Ok::<(), fastpath_units::ParseError>(())
//! ```
//!
//! Time and random generators are arguments: nothing here reads a clock, so a run is repeatable
//! from its seed. The crate `fastpath` has examples: a pipe in virtual time, 10⁴ pipes on a wheel,
//! and a comparison of queue disciplines.
//!
//! Read first: `packet.rs`, then `spec.rs`, then `pipe.rs`. A new queue discipline is a file in
//! `qdisc/`, a file in `oracle/` and a line in `disciplines.rs`. A new impairment is a file in
//! `impairment/`.
#![forbid(unsafe_code)]

#[macro_use]
mod disciplines;

mod content;
mod counters;
mod cross;
mod delay_line;
mod delays;
mod fast_pipe;
mod fast_queue;
mod fast_serialiser;
mod framing;
mod general_pipe;
mod impairment;
pub mod instant;
mod opportunities;
pub mod oracle;
mod packet;
mod pipe;
mod pipe_params;
mod pipe_set;
mod pipe_state;
mod pipes;
pub mod port_queues;
mod qdisc;
mod serialiser;
mod slots;
mod spec;
mod store;

pub use content::{PacketContent, PacketFilter};
pub use counters::{Counters, CrossCounters, QueueState, Volume};
pub use cross::{CrossLaw, CrossSpec};
pub use delays::Delays;
pub use fastpath_wheel::Wheel;
pub use framing::{Cells, Framing};
pub use impairment::{
    Bounded, ByteChange, Chance, CorruptSpec, Corruption, Duplication, FourState, GilbertElliott,
    JitterCorrelation, JitterLaw, JitterSpec, LossPlan, LossSpec, Outage, Reorder, ReorderSpec, Runs,
};
pub use opportunities::{Opportunities, OpportunitiesError};
pub use packet::{Alteration, DropReason, Exit, Fate, Packet, Verdict};
pub use pipe::Pipe;
pub use pipe_set::{PipeInit, PipeRef};
pub use pipes::Pipes;
pub use qdisc::*;
pub use slots::{SlotSpec, SlotWait};
pub use spec::{Change, LinkState, PipeSpec};
pub use store::PopLimit;
