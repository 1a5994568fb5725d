//! Runs a network or a switch in real time, between real ports.
//!
//! ```text
//!   ctl ──socket──▶ control ──commands──▶ ┌────────────── worker ──────────────┐
//!                      ◀──snapshots────── │ Port ▶ Burst ▶ Network ▶ Port      │   one thread, one Clock
//!                   report                └────────────────────────────────────┘
//! ```
//!
//! [`start`] runs a topology. [`switching`] runs a switch of `fastpath-switch`. [`port`] has the
//! kinds of ports, and [`control`] the HTTP interface of a running network. Linux only: on other
//! systems the crate is empty.
//!
//! ```
//! use fastpath_engine::port::Memory;
//! use fastpath_engine::{EdgePorts, Options, start};
//! use fastpath_link::PipeSpec;
//! use fastpath_net::EdgeId;
//! use fastpath_spec::{NodeKind, Topology};
//! use fastpath_units::Duration;
//! use std::num::NonZeroUsize;
//!
//! let mut topology = Topology::default();
//! let [a, b] = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
//! let pipe = PipeSpec { delay: Duration::from_ms(1), ..PipeSpec::default() };
//! topology.connect("a-b", a, b, [pipe.clone(), pipe]);
//!
//! let [(a, end_a), (b, end_b)] = ["a", "b"].map(|name| Memory::new(name, 1 << 20));
//! let ports: EdgePorts = vec![(EdgeId(0), Box::new(a)), (EdgeId(1), Box::new(b))];
//! let memory = NonZeroUsize::new(1 << 24).expect("not zero");
//! let running = start(topology, ports, Options::new(fastpath_net::Options::new(1, memory)))?;
//!
//! end_a.send([[7; 60].as_slice()]);
//! while end_b.recv(1, |frame| assert_eq!(frame, [7; 60])) == 0 {}
//! assert!(running.stop()?.accounting.balances());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Read first: `worker.rs` (the loop), then the crate `fastpath-port`; `engine.rs` starts and stops
//! everything.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod attach;
mod capture;
mod clock;
mod command;
pub mod control;
mod cut_part;
mod data_paths;
mod delays;
mod edge_port;
mod engine;
pub mod headroom;
mod kernel_log;
mod lateness;
mod layout;
mod link_capture;
mod node_switch;
mod open_ports;
mod packet_log;
pub mod priority;
mod pulse;
mod ready;
mod report;
mod sleep_margin;
mod snapshot;
mod switch_report;
pub mod switching;
mod worker;
mod worker_change;
mod worker_clock;
mod worker_group;

pub use attach::{AttachError, attach, attach_named, attach_with};
pub use capture::{CaptureError, CaptureFilter};
pub use clock::Clock;
pub use control::ChangeError;
pub use data_paths::{DataPaths, KernelLink, KernelLinks};
pub use delays::{DelayBias, DelayFigures, DelayReport};
pub use engine::{
    EdgePorts, Options, Panicked, Running, Sampler, StartError, Stopper, memory_default, start,
};
pub use fastpath_bpf as bpf;
pub use fastpath_port::{self as port, Notice};
pub use fastpath_spec::{DataPathChoice, Idle, Late, Workers};
pub use fastpath_sys::large_blocks::LargeBlocks;
pub use fastpath_sys::thread::release_heap;
pub use lateness::BOUNDS_NS;
pub use link_capture::LinkCapture;
pub use node_switch::{NodeSwitch, StartServing};
pub use packet_log::PacketLogReport;
pub use report::{
    CrossReport, FrameAccounting, Interruptions, Lateness, LatenessReport, LinkReport, PipeReport,
    PortReport, Report, WorkerReport,
};
pub use switch_report::{FlowEntry, GroupCounters, SwitchCopy, SwitchPortReport, SwitchReport, TableReport};
pub use worker_group::RearrangeError;
