//! Bulk transfers over QUIC between two hosts, as frames in the time of the caller.
//!
//! ```text
//!  TransferModel ─▶ QuicTransfer ─ transmit ─▶ frame at the first or the second host
//!                      ▲
//!                      └─ deliver ◀─ frame that has arrived at one of them
//! ```
//!
//! The connections are those of [quinn-proto](quinn_proto): its handshake, recovery (RFC 9002),
//! CUBIC and NewReno, pacing, flow control, ECN, discovery of the path's MTU, connection ids and
//! migration. Only the cryptography is not real (`session.rs`, `keys.rs`): packets are not
//! encrypted, and their tags of 16 bytes come from a hash. Sizes and round trips are those of QUIC
//! with TLS 1.3:
//!
//! | message | bytes |
//! |---|---|
//! | client hello, padded to a datagram of 1200 bytes by QUIC | 300 |
//! | server hello | 90 |
//! | encrypted extensions | 16 and the transport parameters, together about 150 |
//! | certificate: two of ECDSA, without compression | 2000 |
//! | certificate verify | 80 |
//! | finished, of each end | 36 |
//!
//! The server's flight is below three client datagrams, so a handshake takes one round trip (RFC
//! 9000 §8.1). There is no 0-RTT, no Retry and no address validation token.
//!
//! Nothing here reads a clock: the caller gives an [`Instant`](std::time::Instant) that stands for
//! time 0, because quinn-proto counts in them. All random numbers (connection ids, packet numbers
//! that are skipped, the order of transport parameters) are those of a generator of the caller: the
//! same seed gives the same packets.
//!
//! Read first: `transfer.rs`, then `flow.rs`.
#![forbid(unsafe_code)]

mod clock;
mod end;
mod flow;
mod frame;
mod keys;
mod session;
mod settings;
mod transfer;

pub use transfer::QuicTransfer;
