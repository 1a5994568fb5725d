//! A host: a network namespace with one TAP per interface of the topology's node, its addresses and
//! routes. The namespace of a router (`kind = "kernel"`) forwards too.

pub(crate) mod container;
pub(crate) mod first;
pub(crate) mod host_namespace;
pub(crate) mod mounts;
pub(crate) mod neighbors;
pub(crate) mod nodes;

use crate::attach::NotFound;
use crate::host::first::Inside;
use crate::host::host_namespace::HostNamespace;
use crate::host::mounts::View;
use crate::host::neighbors::KnownNeighbors;
use crate::kernel::namespace::{Namespace, NotPermitted};
use crate::kernel::netlink::{AddressMonitor, LinkParameters, Netlink};
use fastpath_engine::port::{OpenError, TapPort};
use fastpath_net::Route;
use fastpath_spec::{Interface, Node, NodeId};
use ipnet::IpNet;
use nix::net::if_::if_nametoindex;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::process::{Child, ChildStdin};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A host of a running lab.
#[derive(Debug)]
pub struct Host {
    /// Its name in the topology.
    pub name: String,
    /// What another topology changes while programs run.
    placement: Mutex<Placement>,
    /// The namespace in which its programs run.
    pub namespace: HostNamespace,
    /// The other namespaces and the cgroup of its programs.
    pub(crate) inside: Inside,
    /// Variables of its programs.
    pub(crate) env: BTreeMap<String, String>,
    /// The first process of its PID namespace.
    pub(crate) first: Option<Child>,
    /// The standard input of the first process of its container, which waits for its end.
    pub(crate) _input: Option<ChildStdin>,
}

/// A host in the topology.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Placement {
    node: NodeId,
    addresses: Vec<IpNet>,
}

/// What the programs of a host are given.
#[derive(Debug)]
pub(crate) struct HostParts {
    pub(crate) namespace: HostNamespace,
    pub(crate) inside: Inside,
    pub(crate) env: BTreeMap<String, String>,
}

/// Why a host could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Network namespaces are not permitted here.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// The namespace that it is attached to is not there.
    #[error("host {host}: {source}")]
    NoNamespace {
        /// The host.
        host: String,
        /// The reason.
        source: NotFound,
    },
    /// Two hosts are attached to the same namespace.
    #[error("hosts {} and {} are in the same network namespace: attach one of them", hosts[0], hosts[1])]
    SameNamespace {
        /// The hosts.
        hosts: [String; 2],
    },
    /// A host is attached without the privilege.
    #[error("host {host}: attach needs root: run as root, or remove attach")]
    AttachNeedsRoot {
        /// The host.
        host: String,
    },
    /// Its container did not start.
    #[error("host {host}: its container: {source}")]
    Container {
        /// The host.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// The first process of its PID namespace did not start.
    #[error("host {host}: pid_namespace: {source}")]
    First {
        /// The host.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// Something that the spec names is not on this machine.
    #[error("host {host}: {key}: {what}: {instead}")]
    Missing {
        /// The host.
        host: String,
        /// The key of the spec.
        key: &'static str,
        /// The missing program or right.
        what: String,
        /// What to do.
        instead: String,
    },
    /// Its directories could not be made.
    #[error("host {host}: making its directories: {source}")]
    Files {
        /// The host.
        host: String,
        /// The reason.
        source: io::Error,
    },
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
        /// The reason.
        source: io::Error,
    },
}

impl Host {
    /// Makes the namespace of `node` with its interfaces, addresses and routes. Returns the host
    /// and its ports in the order of the interfaces, which end with the namespace.
    ///
    /// The hosts send nothing until a program in them does: see `Quiet`.
    pub fn new(
        id: NodeId,
        node: &Node,
        routes: &[Route],
        neighbors: &KnownNeighbors,
    ) -> Result<(Host, Vec<TapPort>), HostError> {
        let make = |place: usize, _: &mut Netlink| tap_end(node, &node.interfaces[place]);
        Host::with_ends((id, node), routes, neighbors, &make)
    }

    /// As [`Host::new`], with interfaces that `make` makes.
    pub(crate) fn with_ends<E: HostEnd>(
        (id, node): (NodeId, &Node),
        routes: &[Route],
        neighbors: &KnownNeighbors,
        make: &MakeEnd<'_, E>,
    ) -> Result<(Host, Vec<E>), HostError> {
        let namespace = Namespace::new()?;
        let work = || -> Result<Vec<E>, HostError> {
            quieten(node);
            let mut netlink = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
            bring_up_loopback(&mut netlink).map_err(failed(node, "lo", || "bringing it up".into()))?;
            let mut taps = Vec::new();
            for (place, interface) in node.interfaces.iter().enumerate() {
                let end = make(place, &mut netlink)?;
                taps.push(add_interface(node, interface, &neighbors.of(id, place), &mut netlink, end)?);
            }
            for route in routes {
                add_route(node, route, &node.interfaces[route.interface].name, &mut netlink)?;
            }
            for (name, value) in node.kind.setup().into_iter().flat_map(|setup| &setup.sysctls) {
                write_sysctl(name, value).map_err(failed(node, "lo", || format!("{name} = {value}")))?;
            }
            Ok(taps)
        };
        let taps =
            namespace.within(work).map_err(failed(node, "lo", || "joining the namespace".into()))??;
        let host = Host::bare(node.name.clone(), Vec::new(), namespace);
        host.place(id, node);
        Ok((host, taps))
    }

    /// Returns a host of no topology, whose programs see the files of the machine. Its interfaces
    /// are those that the namespace has.
    pub fn bare(name: String, addresses: Vec<IpNet>, namespace: Namespace) -> Host {
        let (inside, env) = (Inside::View(View::default()), BTreeMap::new());
        let host = Host::of(name, HostParts { namespace: HostNamespace::Own(namespace), inside, env });
        host.placement.lock().unwrap_or_else(PoisonError::into_inner).addresses = addresses;
        host
    }

    /// Returns a host that has no place in a topology yet.
    pub(crate) fn of(name: String, parts: HostParts) -> Host {
        let HostParts { namespace, inside, env } = parts;
        let placement = Mutex::new(Placement { node: NodeId(0), addresses: Vec::new() });
        Host { name, placement, namespace, inside, env, first: None, _input: None }
    }

    /// Gives it the number and the addresses of `node`.
    pub(crate) fn place(&self, id: NodeId, node: &Node) {
        let addresses = node.interfaces.iter().flat_map(|interface| interface.addresses.clone()).collect();
        *self.placement.lock().unwrap_or_else(PoisonError::into_inner) = Placement { node: id, addresses };
    }

    /// Returns its node in the topology.
    pub fn node(&self) -> NodeId {
        self.placement.lock().unwrap_or_else(PoisonError::into_inner).node
    }

    /// Returns its addresses with prefix lengths, in the order of the interfaces.
    pub fn addresses(&self) -> Vec<IpNet> {
        self.placement.lock().unwrap_or_else(PoisonError::into_inner).addresses.clone()
    }

    /// Returns whether its namespace exists. The namespace of a host with `attach` may have ended.
    pub fn is_there(&self) -> bool {
        match &self.namespace {
            HostNamespace::Own(_) => true,
            HostNamespace::Attached(namespace) => namespace.is_there(),
        }
    }

    /// Returns its first address, IPv4 before IPv6, by which others reach it.
    pub fn address(&self) -> Option<IpAddr> {
        let all: Vec<IpAddr> = self.addresses().iter().map(IpNet::addr).collect();
        all.iter().find(|address| address.is_ipv4()).or(all.first()).copied()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut first) = self.first.take() {
            // It ends with its input, once the processes of its PID namespace are reaped. This
            // process may reap those that it started later.
            drop(first.stdin.take());
            thread::spawn(move || first.wait());
        }
    }
}

/// An interface of a host, just made in its namespace, as what is behind it sees it.
pub(crate) trait HostEnd: Send {
    /// Says whether the interface has a carrier.
    fn set_carrier(&mut self, is_on: bool) -> io::Result<()>;
    /// Drops what the interface has sent so far.
    fn discard_waiting(&mut self) -> io::Result<()>;
}

/// Makes an interface of a host in the namespace of the thread, by its number, down.
pub(crate) type MakeEnd<'m, E> = dyn Fn(usize, &mut Netlink) -> Result<E, HostError> + Sync + 'm;

impl HostEnd for TapPort {
    fn set_carrier(&mut self, is_on: bool) -> io::Result<()> {
        TapPort::set_carrier(self, is_on)
    }

    fn discard_waiting(&mut self) -> io::Result<()> {
        TapPort::discard_waiting(self)
    }
}

/// Makes a TAP the interface of a host, in the namespace of the thread.
pub(crate) fn tap_end(node: &Node, interface: &Interface) -> Result<TapPort, HostError> {
    TapPort::open(&interface.name)
        .and_then(|tap| tap.leave_to_namespace().map(|()| tap))
        .map_err(|source| HostError::Tap { host: node.name.clone(), source })
}

/// Sets up an interface of `node` that was just made in the namespace of the thread, with its
/// addresses and neighbours. Returns what is behind it.
pub(crate) fn add_interface<E: HostEnd>(
    node: &Node,
    interface: &Interface,
    neighbors: &[(IpAddr, [u8; 6])],
    netlink: &mut Netlink,
    mut end: E,
) -> Result<E, HostError> {
    let name = interface.name.as_str();
    let index =
        if_nametoindex(name).map_err(io::Error::from).map_err(failed(node, name, || "its index".into()))?;
    let v6 = interface.addresses.iter().filter(|address| address.addr().is_ipv6()).count();
    settle_ipv6(node, interface);
    let quiet = if v6 > 0 { Quiet::begin(name, &mut end) } else { None };
    let parameters = LinkParameters { mac: interface.mac.map(|mac| mac.0), mtu: Some(interface.mtu) };
    netlink
        .bring_up(index, parameters)
        .map_err(failed(node, name, || format!("bringing it up ({parameters:?})")))?;
    for &address in &interface.addresses {
        netlink.add_address(index, address).map_err(failed(node, name, || format!("address {address}")))?;
    }
    if let Some(quiet) = quiet {
        // The kernel adds a link-local address.
        let ended = quiet.end(index, v6 + 1, netlink, &mut end);
        ended.map_err(failed(node, name, || "awaiting its addresses".into()))?;
    }
    netlink.add_neighbors(index, neighbors).map_err(failed(node, name, || "its neighbours".into()))?;
    Ok(end)
}

/// Says whether an interface has IPv6. Where it is not configured, its router solicitations and MLD
/// reports would load the links.
pub(crate) fn settle_ipv6(node: &Node, interface: &Interface) {
    let has_v6 = interface.addresses.iter().any(|address| address.addr().is_ipv6());
    let is_off = !has_v6 && !interface.addresses.is_empty() && !needs_link_local(node);
    let setting = format!("net/ipv6/conf/{}/disable_ipv6", interface.name);
    let value = if is_off { "1" } else { "0" };
    // Writing it makes the kernel look at the addresses again.
    if fs::read_to_string(format!("/proc/sys/{setting}")).is_ok_and(|was| was.trim() != value) {
        set(&setting, value);
    }
}

/// Keeps an interface from reporting the multicast groups of its own addresses (MLD, RFC 9777 §6.1)
/// while it is set up.
///
/// Each host would send four reports, and a switch floods them: a million frames in a star of 500.
/// No station of a lab needs them, because the switches flood multicast frames. Reports that a
/// program causes later are sent as usual, and so are answers to queries.
struct Quiet {
    monitor: AddressMonitor,
    /// The settings to restore: paths below /proc/sys, and values.
    former: Vec<(String, String)>,
}

impl Quiet {
    /// In version 1 the kernel reports a group in the call that joins it. In version 2 it does so
    /// some timer interrupts later (Linux, mld_ifc_event), and nothing tells when.
    ///
    /// It repeats the report after a random time up to the interval: 24 days.
    const SETTINGS: [(&str, &str); 2] =
        [("mldv1_unsolicited_report_interval", "2147483647"), ("force_mld_version", "1")];
    /// A kernel that detects duplicates in spite of `accept_dad` takes up to two seconds.
    const ADDRESS_WAIT_MAX: Duration = Duration::from_secs(1);

    /// To be called while the interface is down. `None` where the settings are read-only or the
    /// kernel has no IPv6; then the interface is not quiet.
    fn begin(name: &str, end: &mut dyn HostEnd) -> Option<Quiet> {
        let monitor = AddressMonitor::open().ok()?;
        let mut former = Vec::new();
        for (setting, value) in Quiet::SETTINGS {
            let setting = format!("net/ipv6/conf/{name}/{setting}");
            let was = fs::read_to_string(format!("/proc/sys/{setting}")).ok()?;
            if !set(&setting, value) {
                return None;
            }
            former.push((setting, was));
        }
        // A carrier that appears on an interface that is down is noticed up to a second later
        // (Linux, link_watch.c), and groups are reported again then. On one that is up it is
        // noticed at once.
        let _ = end.set_carrier(false);
        Some(Quiet { monitor, former })
    }

    /// Waits until `count` addresses of the interface are usable, ends the quiet, and drops what
    /// the kernel has sent by then.
    fn end(self, index: u32, count: usize, netlink: &mut Netlink, end: &mut dyn HostEnd) -> io::Result<()> {
        // Before Linux 4.20 the carrier was on all the time.
        let _ = end.set_carrier(true);
        self.monitor.wait_for(index, count, Quiet::ADDRESS_WAIT_MAX)?;
        // The kernel announces an address while it holds the lock that a request takes, and may
        // send reports before it releases the lock.
        netlink.bring_up(index, LinkParameters::default())?;
        for (setting, was) in &self.former {
            set(setting, was.trim());
        }
        end.discard_waiting()
    }
}

/// Whether the kernel gets a route. The daemon of a router finds the others, and a static
/// route would win over those that it finds.
fn is_wanted(node: &Node, route: &Route) -> bool {
    let is_given = |via| node.kind.routes().contains(&(route.prefix, via));
    node.kind.daemon().is_none_or(|daemon| daemon.static_routes) || route.via.is_none_or(is_given)
}

/// Whether the daemon of a router uses link-local addresses even where there are no others.
fn needs_link_local(node: &Node) -> bool {
    node.kind.daemon().is_some_and(|daemon| daemon.protocols.values().any(|settings| settings.unnumbered))
}

/// Returns the interface of a route that the kernel gets; `None` if it adds the route itself for an
/// address, or if a daemon finds it.
pub(crate) fn interface_route<'n>(node: &'n Node, route: &Route) -> Option<&'n Interface> {
    let interface = &node.interfaces[route.interface];
    let own = interface.addresses.iter().any(|address| address.trunc() == route.prefix);
    (is_wanted(node, route) && (route.via.is_some() || !own)).then_some(interface)
}

/// Adds a route that the kernel gets: see [`interface_route`].
pub(crate) fn add_route(
    node: &Node,
    route: &Route,
    name: &str,
    netlink: &mut Netlink,
) -> Result<(), HostError> {
    if interface_route(node, route).is_none() {
        return Ok(());
    }
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
    if node.kind.is_router() {
        forward();
    }
    answer_arp(node);
}

/// Sets for which addresses the interfaces of the thread's namespace answer ARP.
pub(crate) fn answer_arp(node: &Node) {
    // RFC 1812 §2.2.8.1: hosts are not routers. Where there are several interfaces, each answers
    // only for its own addresses.
    set("net/ipv4/conf/all/arp_ignore", if node.interfaces.len() > 1 { "1" } else { "0" });
}

/// Makes the namespace a router, with what the routers of the engine do where the kernel leaves a
/// choice. To be called before it has interfaces, which copy the settings in `default`.
fn forward() {
    set("net/ipv4/ip_forward", "1");
    set("net/ipv6/conf/all/forwarding", "1");
    for place in ["all", "default"] {
        // Paths may be asymmetric (RFC 1812 §5.3.8: the filter is an option).
        set(&format!("net/ipv4/conf/{place}/rp_filter"), "0");
        set(&format!("net/ipv4/conf/{place}/send_redirects"), "0");
        for family in ["ipv4", "ipv6"] {
            // A route over a link that is down is not used.
            set(&format!("net/{family}/conf/{place}/ignore_routes_with_linkdown"), "1");
        }
    }
}

/// Writes a kernel parameter by its name in sysctl(8): with dots, and a slash for a dot of a name.
fn write_sysctl(name: &str, value: &str) -> io::Result<()> {
    let swapped = name.chars().map(|c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    fs::write(format!("/proc/sys/{}", swapped.collect::<String>()), value)
}

/// Returns whether it could be set.
fn set(name: &str, value: &str) -> bool {
    fs::write(format!("/proc/sys/{name}"), value).is_ok()
}

pub(crate) fn failed(
    node: &Node,
    interface: &str,
    what: impl Fn() -> String,
) -> impl FnOnce(io::Error) -> HostError {
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
        let ends = ["a", "b"].map(|name| topology.add_node(name, NodeKind::host()));
        topology.connect("a-b", ends[0], ends[1], Default::default());
        let (host, ports) =
            match Host::new(ends[0], &topology.nodes[0], &[], &KnownNeighbors::in_topology(&topology)) {
                Err(HostError::NotPermitted(why)) => return skip(test, &why.to_string()),
                made => made.unwrap(),
            };
        drop(ports);
        assert!(host.namespace.within(|| if_nametoindex("eth0").is_ok()).unwrap());
    }
}
