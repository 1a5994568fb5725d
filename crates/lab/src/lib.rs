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
//! | room | what is in it |
//! |---|---|
//! | `lab.rs` | a running lab: everything below, brought up and ended together |
//! | `apply/` | another description becomes that of a running lab |
//! | `host/` | a host: its namespace, interfaces, files and container |
//! | `attach/` | hosts in namespaces that exist |
//! | `programs/` | programs in hosts: started, entered, ended |
//! | `routing/`, `uplink/` | daemons of kernel routers; ways to the network of the machine |
//! | `state/` | the files of a running lab, and its name |
//! | `limits/` | what the machine has for a lab |
//! | `kernel/` | namespaces, and netlink(7) |
//! | `traffic/` | traffic of the spec, by sockets or by ports |
//! | `interpose.rs`, `shell.rs` | impairments without a lab |
//! | `machine_interface.rs`, `no_forwarding.rs` | interfaces, and no forwarding between them |
//!
//! Linux only; the crate is empty elsewhere. Read first: `lab.rs`, then `kernel/namespace.rs`.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod apply;
mod attach;
mod host;
pub mod interpose;
mod kernel;
mod kernel_path;
mod lab;
mod limits;
mod link;
mod machine_interface;
mod no_forwarding;
mod programs;
mod routing;
pub mod shell;
mod state;
mod text;
mod traffic;
mod uplink;

pub use apply::{ApplyError, ApplyMode};
pub use attach::NotFound;
pub use host::host_namespace::{AttachedNamespace, HostNamespace};
pub use host::neighbors::KnownNeighbors;
pub use host::{Host, HostError};
pub use kernel::namespace::{Namespace, NotPermitted};
pub use kernel::{namespace, netlink};
pub use kernel_path::{DataPathError, KernelFacilities};
pub use lab::{Lab, UpError, control_socket};
pub use limits::NotEnough;
pub use limits::open_files::TooManyFiles;
pub use link::{LabLink, LinkError};
pub use machine_interface::MachineInterface;
pub use no_forwarding::{ForwardingError, NoForwarding};
pub use programs::enter::{EnterError, NO_PROGRAMS, exec, exec_shell, is_host};
pub use routing::DaemonError;
pub use state::claim::ForeignDirectory;
pub use state::inspect::{InspectedLab, InspectedNode, InspectedProgram, inspect, log};
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
