//! The way of a rootless shell to the network of this machine: `shell.rs`.
//!
//! ```text
//!  shell ─link─▶ a namespace of the user ─up0─▶ pasta or slirp4netns ─▶ sockets of this machine
//!                │ 100.68.0.1 (TCP, UDP) is the loopback interface of the machine
//!                └ masquerades
//! ```

use super::user::{self, Loopback, UserParts, UserProgram};
use super::{UplinkError, configure, default_routes, failed, has_program, nft};
use crate::kernel::namespace::Namespace;
use crate::programs::scope::Boundary;
use std::fs::{self, DirBuilder};
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;

/// Its name in errors: "uplink of the shell".
const NAME: &str = "of the shell";

/// Joins the namespace outside a shell to this machine. `outside` is its address for the shell.
pub(crate) fn join(
    namespace: &Namespace,
    boundary: &Boundary,
    outside: Ipv4Addr,
) -> Result<UserProgram, UplinkError> {
    if !has_program("nft") {
        return Err(UplinkError::Missing { uplink: NAME.to_owned(), program: "nft", package: "nftables" });
    }
    let directory = std::env::temp_dir().join(format!("fastpath-shell-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&directory).map_err(failed(NAME, "a directory"))?;
    let loopback = Loopback::Reached;
    let parts = UserParts { name: NAME, namespace, directory: &directory, boundary, loopback };
    let joined = user::join(&parts, default_routes());
    let removed = fs::remove_dir_all(&directory).map_err(failed(NAME, "removing a directory"));
    let (program, transfer) = joined?;
    removed?;
    let to_machine = transfer.router.map_or_else(String::new, |router| {
        format!("ip daddr {outside} meta l4proto {{ tcp, udp }} dnat ip to {router}")
    });
    let rules = format!(
        "table inet fastpath {{
    chain prerouting {{
        type nat hook prerouting priority -100
        {to_machine}
    }}
    chain postrouting {{
        type nat hook postrouting priority 100
        oifname \"up0\" masquerade
    }}
}}"
    );
    let inside = namespace.within(|| {
        configure(&transfer)?;
        fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
        Ok(nft(&rules))
    });
    let set = inside.and_then(|done| done).map_err(failed(NAME, "its outer interface"))?;
    set.map_err(|text| UplinkError::Program { uplink: NAME.to_owned(), program: "nft", text })?;
    Ok(program)
}
