//! Experiments on one machine: every host of a topology is a network namespace whose interfaces are
//! TAPs held by the engine, real programs run in the hosts, and the audit measures what the network
//! really does.
//!
//! ```text
//!  namespace a                 this process                 namespace b
//!  ┌─────────────┐     ┌──────────────────────────┐     ┌─────────────┐
//!  │ ping   eth0 │◀TAP▶│ engine: pipes, routers … │◀TAP▶│ eth0  iperf │
//!  └─────────────┘     └──────────────────────────┘     └─────────────┘
//! ```
//!
//! The namespaces have no names in the file system: they live as descriptors of the process that
//! brought the lab up, so the kernel removes the interfaces when that process ends, even by `kill
//! -9`. What may then remain (programs in the namespaces, the state directory) is what [`down`]
//! cleans.
//!
//! Linux only; the crate is empty elsewhere. Read first: `lab.rs`, then `namespace.rs`; for the
//! audit `audit/mod.rs`.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

pub mod audit;
mod enter;
mod host;
pub mod interpose;
mod lab;
mod leftovers;
pub mod namespace;
pub mod netlink;
pub mod shell;
mod state;

pub use enter::{EnterError, exec};
pub use host::{Host, HostError};
pub use lab::{Lab, UpError, control_socket};
pub use leftovers::programs_in;
pub use namespace::{Namespace, NotPermitted};
pub use state::{ClaimError, DownError, Listed, down, list};

/// Says visibly that a test could not run here, on stderr and in the file that the test command
/// reads.
#[cfg(test)]
fn skip(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {why}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FASTPATH_SKIP_LOG") {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("writing the log of skipped tests");
    }
}
