//! A host: a network namespace with one TAP per interface of the topology's node, its addresses and
//! routes.

use crate::namespace::{Namespace, NotPermitted};
use crate::netlink::{LinkParameters, Netlink};
use fastpath_engine::port::{OpenError, TapPort};
use fastpath_net::Route;
use fastpath_spec::{Interface, Node, NodeId};
use ipnet::IpNet;
use nix::net::if_::if_nametoindex;
use std::fs;
use std::io;
use std::net::IpAddr;

/// A host of a running lab.
#[derive(Debug)]
pub struct Host {
    /// Its node in the topology.
    pub node: NodeId,
    /// Its name in the topology.
    pub name: String,
    /// Addresses with prefix lengths, in the order of the interfaces.
    pub addresses: Vec<IpNet>,
    /// The namespace in which its programs run.
    pub namespace: Namespace,
}

/// Why a host could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Network namespaces are not permitted here.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// A TAP could not be opened.
    #[error("host {host}: {source}")]
    Tap {
        /// The host.
        host: String,
        /// The interface, and why.
        source: OpenError,
    },
    /// The kernel refused a setting.
    #[error("host {host}: interface {interface}: {what}: {source}")]
    Configure {
        /// The host.
        host: String,
        /// The interface.
        interface: String,
        /// The setting.
        what: String,
        /// Why.
        source: io::Error,
    },
}

impl Host {
    /// Makes the namespace of `node` with its interfaces, addresses and routes. Returns the host
    /// and its ports in the order of the interfaces, which end with the namespace.
    pub fn new(id: NodeId, node: &Node, routes: &[Route]) -> Result<(Host, Vec<TapPort>), HostError> {
        let namespace = Namespace::new()?;
        let work = || -> Result<Vec<TapPort>, HostError> {
            quieten(node);
            let mut netlink = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
            bring_up_loopback(&mut netlink).map_err(failed(node, "lo", || "bringing it up".into()))?;
            let taps = node.interfaces.iter().map(|interface| attach(node, interface, &mut netlink));
            let taps = taps.collect::<Result<_, _>>()?;
            for route in routes {
                add_route(node, route, &mut netlink)?;
            }
            Ok(taps)
        };
        let taps =
            namespace.within(work).map_err(failed(node, "lo", || "joining the namespace".into()))??;
        let addresses = node.interfaces.iter().flat_map(|i| i.addresses.clone()).collect();
        Ok((Host { node: id, name: node.name.clone(), addresses, namespace }, taps))
    }

    /// Returns its first address, IPv4 before IPv6, by which others reach it.
    pub fn address(&self) -> Option<IpAddr> {
        let addresses = || self.addresses.iter().map(IpNet::addr);
        addresses().find(IpAddr::is_ipv4).or_else(|| addresses().next())
    }
}

fn attach(node: &Node, interface: &Interface, netlink: &mut Netlink) -> Result<TapPort, HostError> {
    let name = interface.name.as_str();
    let tap = TapPort::open(name)
        .and_then(|tap| tap.leave_to_namespace().map(|()| tap))
        .map_err(|source| HostError::Tap { host: node.name.clone(), source })?;
    let index =
        if_nametoindex(name).map_err(io::Error::from).map_err(failed(node, name, || "its index".into()))?;
    if interface.addresses.iter().all(|address| address.addr().is_ipv4()) {
        // IPv6 is not configured; its router solicitations and MLD reports would load the links.
        set(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1");
    }
    let parameters = LinkParameters { mac: interface.mac.map(|mac| mac.0), mtu: Some(interface.mtu) };
    netlink
        .bring_up(index, parameters)
        .map_err(failed(node, name, || format!("bringing it up ({parameters:?})")))?;
    for &address in &interface.addresses {
        netlink.add_address(index, address).map_err(failed(node, name, || format!("address {address}")))?;
    }
    Ok(tap)
}

/// Adds a route, unless the kernel adds it itself for an address.
fn add_route(node: &Node, route: &Route, netlink: &mut Netlink) -> Result<(), HostError> {
    let interface = &node.interfaces[route.interface];
    let own = interface.addresses.iter().any(|address| address.trunc() == route.prefix);
    if route.via.is_none() && own {
        return Ok(());
    }
    let name = interface.name.as_str();
    let what = || match route.via {
        Some(via) => format!("route to {} via {via}", route.prefix),
        None => format!("route to {}", route.prefix),
    };
    let index = if_nametoindex(name).map_err(io::Error::from).map_err(failed(node, name, what))?;
    netlink.add_route(index, route.prefix, route.via).map_err(failed(node, name, what))
}

fn bring_up_loopback(netlink: &mut Netlink) -> io::Result<()> {
    netlink.bring_up(if_nametoindex("lo")?, LinkParameters::default())
}

/// Configures the namespace: hosts take their configuration from the topology only, and
/// unprivileged ping works. Settings can be missing where /proc/sys is read-only or the kernel has
/// no IPv6; then there is a little more background traffic, which the counters show.
fn quieten(node: &Node) {
    for place in ["all", "default"] {
        for (name, value) in [("accept_ra", "0"), ("router_solicitations", "0"), ("accept_dad", "0")] {
            set(&format!("net/ipv6/conf/{place}/{name}"), value);
        }
    }
    set("net/ipv4/ping_group_range", "0 2147483647");
    if node.interfaces.len() > 1 {
        // RFC 1812 §2.2.8.1: hosts are not routers. Each interface answers ARP only for its own
        // addresses.
        set("net/ipv4/conf/all/arp_ignore", "1");
    }
}

fn set(name: &str, value: &str) {
    let _ = fs::write(format!("/proc/sys/{name}"), value);
}

fn failed(node: &Node, interface: &str, what: impl Fn() -> String) -> impl FnOnce(io::Error) -> HostError {
    let (host, interface) = (node.name.clone(), interface.to_owned());
    move |source| HostError::Configure { host, interface, what: what(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;
    use fastpath_spec::{NodeKind, Topology};

    #[test]
    fn interfaces_end_with_the_namespace_and_not_one_by_one_with_their_ports() {
        let test = "interfaces_end_with_the_namespace";
        let mut topology = Topology::default();
        let ends = ["a", "b"].map(|name| topology.add_node(name, NodeKind::Host { port: None }));
        topology.connect("a-b", ends[0], ends[1], Default::default());
        let (host, ports) = match Host::new(ends[0], &topology.nodes[0], &[]) {
            Err(HostError::NotPermitted(why)) => return skip(test, &why.to_string()),
            made => made.unwrap(),
        };
        drop(ports);
        assert!(host.namespace.within(|| if_nametoindex("eth0").is_ok()).unwrap());
    }
}
