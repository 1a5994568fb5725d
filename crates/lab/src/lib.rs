//! Labs: every host of a topology is a network namespace. Its interfaces are TAPs that the engine
//! holds. Real programs run in the hosts.
//!
//! ```text
//!  namespace a                 this process                 namespace b
//!  ┌─────────────┐     ┌──────────────────────────┐     ┌─────────────┐
//!  │ ping   eth0 │◀TAP▶│ engine: pipes, routers … │◀TAP▶│ eth0  iperf │
//!  └─────────────┘     └──────────────────────────┘     └─────────────┘
//! ```
//!
//! The namespaces have no names in the file system. They are held by descriptors of the process
//! that brought the lab up, so the kernel removes the interfaces when that process ends, even by
//! `kill -9`. Programs in the hosts are in one cgroup or PID namespace, and end with that process
//! too (`scope.rs`). The state directory may remain; [`down`] removes it.
//!
//! Linux only; the crate is empty elsewhere. Read first: `lab.rs`, then `namespace.rs`.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod adjust;
mod apply;
mod attach;
mod claim;
mod commands;
mod container;
mod differences;
mod ended;
mod enter;
mod first;
mod host;
mod host_namespace;
mod inspect;
pub mod interpose;
mod keeper;
mod lab;
mod lab_files;
mod limits;
mod mounts;
mod names;
pub mod namespace;
mod neighbors;
pub mod netlink;
mod nodes;
mod open_files;
mod process;
mod programs;
mod routing;
mod scope;
pub mod shell;
mod state;
mod text;
mod traffic;
mod uplink;
mod variables;

pub use apply::{ApplyError, ApplyMode};
pub use attach::NotFound;
pub use claim::ForeignDirectory;
pub use enter::{EnterError, NO_PROGRAMS, exec, exec_shell, is_host};
pub use host::{Host, HostError};
pub use host_namespace::{AttachedNamespace, HostNamespace};
pub use inspect::{InspectedLab, InspectedNode, inspect};
pub use lab::{Lab, UpError, control_socket};
pub use limits::NotEnough;
pub use namespace::{Namespace, NotPermitted};
pub use neighbors::KnownNeighbors;
pub use open_files::TooManyFiles;
pub use routing::DaemonError;
pub use state::{ClaimError, DownError, Listed, NoLab, down, list, only_lab};
pub use traffic::{TrafficError, arrival};
pub use uplink::UplinkError;

/// Reports that a test could not run here, on stderr and in the file that the test command reads.
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
