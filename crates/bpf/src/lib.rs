//! Links and switches that hold no packet, as BPF programs in the kernel (`clsact`).
//!
//! Where a packet need not wait it need not leave the kernel. A [`KernelPath`] is such a part of a
//! network: pipes without rate, delay and queue
//! ([`InstantSpec`](fastpath_link::instant::InstantSpec)), and learning switches. User space is the
//! specification: the tests compare the program with `fastpath_link::Pipe`, draw by draw.
//!
//! Programs are written by an assembler ([`asm`]) when they are needed, and loaded by bpf(2), so
//! neither a compiler nor a loader is needed. They end with the process.
//!
//! Linux only. Read first: `path.rs`, then `program.rs`, `pass.rs` and `bridge.rs`.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

pub mod asm;
mod bridge;
mod draw;
mod frame;
pub mod helpers;
mod layout;
mod log;
mod maps;
mod pass;
mod path;
mod path_state;
mod program;
pub mod types;

pub use layout::{PipeCounts, SwitchCounts};
pub use path::{
    KernelPath, PathError, PathFate, PathLocation, PathLog, PathPort, PathRecord, PathSpec, Towards,
};
