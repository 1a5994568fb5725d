//! Hosts in network namespaces that exist: of `ip netns`, of a process, of a container.
//!
//! ```text
//!  this process                             the namespace of another
//!  ┌────────────────────────────┐  moved    ┌───────────────────────────┐
//!  │ TAP of the engine: fp9-0 ──┼──────────▶│ eth1: address, MAC, routes│
//!  └────────────────────────────┘           └───────────────────────────┘
//! ```
//!
//! The interface is made here and moved there. The engine's descriptor therefore does not hold the
//! namespace, and the interface ends with whatever ends first: this process, or the namespace. The
//! addresses, routes, neighbours and settings of an interface end with it. Nothing else of the
//! namespace is changed, so nothing is left to restore.
//!
//! When an interface was removed, a thread ([`AttachWatch`]) makes it again here, down, so that the
//! port of the engine has one. Then it looks for the namespace until it is there: a container that
//! restarts is attached again.

mod find;
mod watch;

pub use find::NotFound;
pub(crate) use find::find;
pub(crate) use watch::{AttachEvent, AttachWatch, DetachedHosts};

use crate::host::host_namespace::AttachedNamespace;
use crate::host::{HostError, failed};
use crate::kernel::namespace::within_file;
use crate::kernel::netlink::{LinkParameters, Netlink};
use fastpath_engine::port::{TapInterface, TapPort};
use fastpath_net::Route;
use fastpath_spec::{Attach, Interface, Node};
use nix::net::if_::{if_nameindex, if_nametoindex};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;

/// An attached host, and what it gets in its namespace each time that it is attached.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) namespace: AttachedNamespace,
    configuration: Configuration,
    /// By interface.
    taps: Vec<TapInterface>,
}

/// What an attached host gets in its namespace.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) node: Node,
    pub(crate) routes: Vec<Route>,
    /// By interface.
    pub(crate) neighbors: Vec<Vec<(IpAddr, [u8; 6])>>,
}

/// Names of interfaces in the topology, and in a namespace where they were taken.
pub(crate) type Renamed = Vec<(String, String)>;

impl Attachment {
    /// Attaches a host. Returns it with its ports in the order of the interfaces, and the names of
    /// interfaces that differ from those of the topology, which precede them. `events` receives
    /// what happens to the interfaces.
    pub(crate) fn new(
        attach: &Attach,
        configuration: Configuration,
        events: &Sender<AttachEvent>,
    ) -> Result<(Attachment, Vec<TapPort>, Renamed), HostError> {
        let node = &configuration.node;
        let mut ports = Vec::new();
        let mut taps = Vec::new();
        for (place, interface) in node.interfaces.iter().enumerate() {
            let tap_failed = |source| HostError::Tap { host: node.name.clone(), source };
            let name = parked_name();
            let mut port = TapPort::open(&name).map_err(tap_failed)?;
            let sender = events.clone();
            // A lab that ends no longer listens.
            let tell = Box::new(move || _ = sender.send(AttachEvent::Removed(place)));
            let tap = port.outlive_interface(&interface.name, tell);
            taps.push((name, tap.map_err(failed(node, &interface.name, || "keeping it".into()))?));
            ports.push(port);
        }
        let namespace = AttachedNamespace::new(attach.clone());
        let (names, taps) = taps.into_iter().unzip::<_, _, Vec<String>, Vec<_>>();
        let attachment = Attachment { namespace, configuration, taps };
        let all: Vec<(usize, String)> = names.into_iter().enumerate().collect();
        let renamed = attachment.place(&all)?;
        Ok((attachment, ports, renamed))
    }

    /// Moves interfaces of this namespace, by their numbers and names here, to the namespace of
    /// the host and configures them there.
    fn place(&self, parked: &[(usize, String)]) -> Result<Renamed, HostError> {
        let node = &self.configuration.node;
        let found = find(self.namespace.name())
            .map_err(|source| HostError::NoNamespace { host: node.name.clone(), source })?;
        let mut own = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
        let there = File::open(&found.path)
            .map_err(failed(node, "lo", || format!("opening {}", self.namespace.name())))?;
        let joining = || failed(node, "lo", || format!("joining {}", self.namespace.name()));
        let mut taken = within_file(&there, names_here).map_err(joining())?;
        let mut placed = Vec::new();
        let mut move_there = |(number, name): &(usize, String)| {
            let wanted = &node.interfaces[*number].name;
            let free = free_name(wanted, &taken);
            let moved = if_nametoindex(name.as_str())
                .map_err(io::Error::from)
                .and_then(|index| own.move_link(index, &free, there.as_fd()));
            moved.map_err(failed(node, wanted, || format!("moving it to {}", self.namespace.name())))?;
            taken.push(free.clone());
            placed.push((*number, free));
            Ok(())
        };
        let moved: Result<(), HostError> = parked.iter().try_for_each(&mut move_there);
        let configured = moved.and_then(|()| {
            within_file(&there, || self.configure(&placed)).map_err(joining()).and_then(|done| done)
        });
        if let Err(error) = configured {
            // The next attempt makes them again.
            let remove = || placed.iter().for_each(|(_, name)| _ = remove(name));
            let _ = within_file(&there, remove);
            return Err(error);
        }
        self.namespace.join(found.path, &placed);
        let renamed = placed.into_iter().map(|(number, name)| (node.interfaces[number].name.clone(), name));
        Ok(renamed.filter(|(wanted, name)| wanted != name).collect())
    }

    /// Configures interfaces by their numbers and names in the thread's namespace.
    fn configure(&self, placed: &[(usize, String)]) -> Result<(), HostError> {
        let Configuration { node, routes, neighbors } = &self.configuration;
        let mut netlink = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
        for (number, name) in placed {
            let interface = &node.interfaces[*number];
            let index =
                if_nametoindex(name.as_str())
                    .map_err(io::Error::from)
                    .map_err(failed(node, name, || "its index".into()))?;
            settle(interface, name);
            let parameters = LinkParameters { mac: interface.mac.map(|mac| mac.0), mtu: Some(interface.mtu) };
            netlink
                .bring_up(index, parameters)
                .map_err(failed(node, name, || format!("bringing it up ({parameters:?})")))?;
            for &address in &interface.addresses {
                netlink
                    .add_address(index, address)
                    .map_err(failed(node, name, || format!("address {address}")))?;
            }
            let known = &neighbors[*number];
            netlink.add_neighbors(index, known).map_err(failed(node, name, || "its neighbours".into()))?;
            for route in routes.iter().filter(|route| route.interface == *number) {
                crate::host::add_route(node, route, name, &mut netlink)?;
            }
        }
        Ok(())
    }
}

/// Settings of one interface, which end with it. Settings can be missing where /proc/sys is
/// read-only or the kernel has no IPv6.
fn settle(interface: &Interface, name: &str) {
    let has_v6 = interface.addresses.iter().any(|address| address.addr().is_ipv6());
    let mut settings = vec![("ipv6", "disable_ipv6", if has_v6 { "0" } else { "1" })];
    settings.extend([("ipv6", "accept_ra", "0"), ("ipv6", "router_solicitations", "0")]);
    settings.extend([("ipv6", "accept_dad", "0"), ("ipv4", "arp_ignore", "1")]);
    for (family, setting, value) in settings {
        let _ = fs::write(format!("/proc/sys/net/{family}/conf/{name}/{setting}"), value);
    }
}

fn remove(name: &str) -> io::Result<()> {
    Netlink::open()?.remove_link(if_nametoindex(name)?)
}

/// Returns the interfaces of the thread's namespace.
fn names_here() -> Vec<String> {
    let all = if_nameindex().into_iter().flat_map(|all| {
        all.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    });
    all.collect()
}

/// Returns `wanted`, or the first free name `eth0`, `eth1`, …
fn free_name(wanted: &str, taken: &[String]) -> String {
    let is_free = |name: &str| taken.iter().all(|taken| taken != name);
    if is_free(wanted) {
        return wanted.to_owned();
    }
    let mut names = (0..).map(|number: u32| format!("eth{number}"));
    names.find(|name| is_free(name)).expect("a namespace has fewer interfaces than there are names")
}

/// Returns a name that no interface has in the namespace of this process.
fn parked_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("fp{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gives_way_to_the_next_free_one() {
        let taken = ["lo", "eth0", "eth2"].map(str::to_owned);
        assert_eq!(free_name("eth1", &taken), "eth1");
        assert_eq!(free_name("eth0", &taken), "eth1");
        assert_eq!(free_name("lo", &taken), "eth1");
    }
}
