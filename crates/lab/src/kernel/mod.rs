//! What the kernel does for hosts: network namespaces, interfaces, addresses and routes.

pub mod namespace;
pub mod netlink;
