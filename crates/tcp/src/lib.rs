//! A TCP without payload, in the time of its caller: for traffic of descriptions in virtual time.
//! It sends and receives as Linux does: SACK, RACK-TLP, proportional rate reduction, delayed
//! acknowledgements, ECN, Reno and CUBIC.
//!
//! ```text
//!  write(bytes) ─▶ Sender ── transmit ──▶ Segment ──▶ … ──▶ receive ─▶ Receiver ─▶ received()
//!                    ▲                                                    │
//!                    └───────── receive ◀── … ◀── Segment ◀── transmit ───┘
//! ```
//!
//! Nothing here reads a clock or draws a random number: the same segments at the same times give
//! the same answers. There is no library for it: smoltcp 0.12 to 0.14 discards the SACK ranges it
//! receives, and others are parts of kernels.
//!
//! Read first: `connection.rs`, then `sender.rs`.
#![forbid(unsafe_code)]

mod congestion;
mod connection;
mod cubic;
mod frame;
mod growth;
mod receiver;
mod rtt;
mod scoreboard;
#[cfg(test)]
mod scoreboard_tests;
mod segment;
mod sender;
mod window;

pub use congestion::CongestionControl;
pub use connection::{Connection, TcpOptions};
pub use frame::{FrameForm, parse_segment};
pub use segment::{SACK_BLOCKS, Segment, StreamRange};
pub use sender::SenderCounts;
