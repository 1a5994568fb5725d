//! The emulated link, pure and exact.
//!
//! ```text
//!             push                                                              pop
//!  packet ──▶ loss ──▶ qdisc (the R queue) ──▶ serialiser at the rate ──▶ delay line (the P queue) ──▶ exit
//! ```
//!
//! A [`Pipe`] is one direction of a link (Rizzo's two-queue model: a bandwidth queue, then a delay
//! line); a link is two pipes. A pipe is advanced lazily: nothing happens at the instant a packet
//! leaves the queue unless somebody looks, because between two pushes the future of a pipe is
//! decided. So a pipe has one pending event, the next exit, and thousands of pipes share one
//! [`Wheel`].
//!
//! ```
//! use fastpath_link::{Packet, Pipe, PipeSpec, Wheel};
//! use fastpath_units::{Rng, Time};
//!
//! let spec = PipeSpec { rate: "10Mbit".parse().ok(), delay: "25ms".parse()?, ..PipeSpec::default() };
//! let mut pipes = [Pipe::new(&spec, Rng::stream(7, 0)), Pipe::new(&spec, Rng::stream(7, 1))];
//! let mut wheel = Wheel::new(pipes.len());
//!
//! // After a push, a change and a pop, tell the wheel when the pipe has something next.
//! let _ = pipes[1].push(Time::ZERO, Packet { len: 1250, flow: 0, traffic_class: 0, data: "frame" });
//! if let Some(at) = pipes[1].next_at() {
//!     wheel.schedule(1, at);
//! }
//!
//! // 1250 bytes at 10 Mbit/s are 1 ms on the wire, then 25 ms under way.
//! let now = wheel.next_at().expect("one pipe is pending");
//! let (at, id) = wheel.pop_due(now).expect("it is due");
//! assert_eq!((at.to_string(), id), ("26ms".to_owned(), 1));
//! assert_eq!(pipes[1].pop(now).map(|exit| exit.packet.data), Some("frame"));
//! # Ok::<(), fastpath_units::ParseError>(())
//! ```
//!
//! Time and chance are arguments. Read first: `packet.rs`, then `spec.rs`, then `pipe.rs`. A new
//! queue discipline is a file in `qdisc/`, a new impairment a file in `impairment/`.
#![forbid(unsafe_code)]

mod counters;
mod delay_line;
mod delays;
mod fast_pipe;
mod fast_serialiser;
mod framing;
mod general_pipe;
mod impairment;
mod math;
mod opportunities;
pub mod oracle;
mod packet;
mod pipe;
mod pipe_params;
mod pipe_set;
mod pipes;
mod qdisc;
mod serialiser;
mod slots;
mod spec;
mod store;
mod wheel;

pub use counters::{Counters, Volume};
pub use delays::Delays;
pub use framing::{Cells, Framing};
pub use impairment::{
    Chance, CorruptSpec, Corruption, Duplication, FourState, GilbertElliott, JitterCorrelation, JitterLaw,
    JitterSpec, LossPlan, LossSpec, Outage, Reorder, ReorderSpec, Runs,
};
pub use opportunities::{Opportunities, OpportunitiesError};
pub use packet::{Alteration, DropReason, Exit, Fate, Packet, Verdict};
pub use pipe::Pipe;
pub use pipe_set::{PipeInit, PipeRef};
pub use pipes::Pipes;
pub use qdisc::{
    AredSpec, Classes, CodelSpec, DrrShare, DrrSpec, DualPi2Spec, DualScheduler, Ecn, FqCodelSpec, Limit,
    Peak, PieSpec, PrioSpec, QueueSpec, RedSpec, SojournSpec, TokenBucketSpec,
};
pub use slots::{SlotSpec, SlotWait};
pub use spec::{Change, LinkState, PipeSpec};
pub use store::PopLimit;
pub use wheel::Wheel;
