//! Hosts with UDP sockets and timers in virtual time, over any topology of exact links. For those
//! who build protocol stacks: a connection over a lossy link takes microseconds of a test, and the
//! same seed gives the same packets.
//!
//! ```text
//!  stack ── send ──▶ socket ─▶ host ─▶ Network: links, switches, routers, NAT ─▶ host ─▶ socket
//!    ▲                                                                                     │
//!    └────────────────── next_event ◀── advance(to next_at) ◀──────────────────────────────┘
//! ```
//!
//! There is no thread and no clock: time is where [`VirtualNetwork::advance`] has put it.
//!
//! ```
//! use fastpath_sockets::{Event, VirtualNetwork};
//! use fastpath_units::Duration;
//!
//! let spec = "[host.client]\n[host.server]\n\
//!             [[link]]\nbetween = ['client', 'server']\nrate = '8Mbit'\ndelay = '20ms'";
//! let mut network = VirtualNetwork::from_spec(spec, 1)?;
//! let client = network.bind("client", 5000)?;
//! let server = network.bind("server", 443)?;
//! // 958 bytes and 42 of headers: 1 ms of transmission.
//! network.send(client, network.address(server), &[7; 958])?;
//! network.set_timer(network.now() + Duration::from_ms(5), 1);
//!
//! let mut seen = Vec::new();
//! while let Some(at) = network.next_at() {
//!     network.advance(at)?;
//!     while let Some(event) = network.next_event() {
//!         match event {
//!             Event::Timer { key } => seen.push(format!("{at}: timer {key}")),
//!             Event::Arrived { socket } => {
//!                 let datagram = network.receive(socket).expect("it has arrived");
//!                 seen.push(format!("{at}: {} bytes", datagram.payload.len()));
//!             }
//!             Event::Frame { .. } => unreachable!("no interface is raw"),
//!         }
//!     }
//! }
//! assert_eq!(seen, ["5ms: timer 1", "21ms: 958 bytes"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read first: `network.rs`.
#![forbid(unsafe_code)]

mod capture;
mod error;
mod network;
#[cfg(feature = "quinn")]
mod quinn;
#[cfg(feature = "quinn-proto")]
mod quinn_proto;
mod runtime;
#[cfg(feature = "smoltcp")]
mod smoltcp;
mod socket;
mod timers;
#[cfg(feature = "tokio")]
mod tokio;

pub use error::{BindError, LinkChangeError, SendError, TimeRunsBack};
pub use network::{Discarded, Event, VirtualNetwork};
#[cfg(feature = "quinn-proto")]
pub use quinn_proto::ProtoEndpoint;
pub use runtime::{Stalled, VirtualRuntime};
#[cfg(feature = "smoltcp")]
pub use smoltcp::{SmoltcpDevice, smoltcp_now, time_of};
pub use socket::{Datagram, SocketId};
#[cfg(feature = "tokio")]
pub use tokio::{TokioNetwork, TokioSocket};

pub use fastpath_link as link;
pub use fastpath_net as net;
pub use fastpath_spec as spec;
pub use fastpath_units as units;
