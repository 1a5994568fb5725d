//! Changes the interfaces, addresses, routes and neighbours of a host that stays.
//!
//! What is new is added first ([`Adjustment::begin`]) and removed again if the change of the lab
//! fails ([`Drop`]). What is old is removed at the end ([`Adjustment::finish`]).

use crate::host::host_namespace::HostNamespace;
use crate::host::{HostError, add_interface, answer_arp, failed, interface_route};
use crate::kernel::netlink::{LinkParameters, Netlink};
use fastpath_engine::port::TapPort;
use fastpath_net::Route;
use fastpath_spec::Node;
use ipnet::IpNet;
use nix::net::if_::if_nametoindex;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// The neighbours of one interface.
type Stations = Vec<(IpAddr, [u8; 6])>;
/// Routes by destination: the interface and the next router.
type RoutesBy = BTreeMap<IpNet, (String, Option<IpAddr>)>;

/// A host before and after a change.
pub(crate) struct HostChange<'t> {
    pub(crate) old: (&'t Node, &'t [Route]),
    pub(crate) new: (&'t Node, &'t [Route]),
    /// The stations that each interface knew before.
    pub(crate) old_neighbors: Vec<Stations>,
    pub(crate) neighbors: Vec<Stations>,
    /// By new interface: the former number of one that stays.
    pub(crate) stays: Vec<Option<usize>>,
}

/// A change of a host that is half done. Dropping it undoes it.
pub(crate) struct Adjustment<'t> {
    namespace: &'t HostNamespace,
    change: HostChange<'t>,
    /// The additions, in the order in which they were made.
    added: Vec<Added>,
    is_finished: bool,
}

/// Something that was added to a host.
enum Added {
    Interface(String),
    Address(String, IpNet),
    Route(IpNet),
    Neighbors(String, Vec<IpAddr>),
}

impl HostChange<'_> {
    /// Returns whether nothing changes in the host.
    pub(crate) fn is_empty(&self) -> bool {
        let same = |(index, former): (usize, &Option<usize>)| {
            former.is_some_and(|former| {
                let (old, new) = (&self.old.0.interfaces[former], &self.new.0.interfaces[index]);
                (old.mac, &old.addresses, old.mtu) == (new.mac, &new.addresses, new.mtu)
                    && self.old_neighbors[former] == self.neighbors[index]
            })
        };
        self.old.0.interfaces.len() == self.new.0.interfaces.len()
            && self.stays.iter().enumerate().all(same)
            && self.old_routes() == self.new_routes()
    }

    fn old_routes(&self) -> RoutesBy {
        routes(self.old)
    }

    fn new_routes(&self) -> RoutesBy {
        routes(self.new)
    }

    /// Returns the names of interfaces that are removed.
    fn removed(&self) -> impl Iterator<Item = &str> {
        let interfaces = self.old.0.interfaces.iter().enumerate();
        interfaces.filter(|(index, _)| !self.stays.contains(&Some(*index))).map(|(_, i)| i.name.as_str())
    }

    /// Returns the new and former numbers of interfaces that stay.
    fn kept(&self) -> impl Iterator<Item = (usize, usize)> {
        self.stays.iter().enumerate().filter_map(|(index, former)| Some((index, (*former)?)))
    }
}

fn routes((node, routes): (&Node, &[Route])) -> RoutesBy {
    let named = |route: &Route| {
        let interface = interface_route(node, route)?;
        Some((route.prefix, (interface.name.clone(), route.via)))
    };
    routes.iter().filter_map(named).collect()
}

impl<'t> Adjustment<'t> {
    /// Adds what is new: interfaces, addresses, routes, neighbours. Returns the ports of the new
    /// interfaces with their numbers.
    pub(crate) fn begin(
        namespace: &'t HostNamespace,
        change: HostChange<'t>,
    ) -> Result<(Adjustment<'t>, Vec<(usize, TapPort)>), HostError> {
        let mut adjustment = Adjustment { namespace, change, added: Vec::new(), is_finished: false };
        let node = adjustment.change.new.0;
        let taps =
            namespace.within(|| adjustment.add()).map_err(failed(node, "lo", || "joining it".into()))??;
        Ok((adjustment, taps))
    }

    fn add(&mut self) -> Result<Vec<(usize, TapPort)>, HostError> {
        let Adjustment { change, added, .. } = self;
        let node = change.new.0;
        let mut netlink = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
        answer_arp(node);
        let mut taps = Vec::new();
        for (place, _) in change.stays.iter().enumerate().filter(|(_, former)| former.is_none()) {
            let interface = &node.interfaces[place];
            if index(&interface.name).is_ok() {
                // A program of the host made it. It is not removed.
                let what = || "making it".to_owned();
                let taken =
                    io::Error::new(io::ErrorKind::AlreadyExists, "the host has an interface of this name");
                return Err(failed(node, &interface.name, what)(taken));
            }
            // The interface may exist before an error.
            added.push(Added::Interface(interface.name.clone()));
            taps.push((place, add_interface(node, interface, &change.neighbors[place], &mut netlink)?));
        }
        for (place, former) in change.kept() {
            let (new, old) = (&node.interfaces[place], &change.old.0.interfaces[former]);
            let name = new.name.as_str();
            let index = index(name).map_err(failed(node, name, || "its index".into()))?;
            if (old.mac, old.mtu) != (new.mac, new.mtu) {
                let parameters = LinkParameters { mac: new.mac.map(|mac| mac.0), mtu: Some(new.mtu) };
                let what = || format!("setting {parameters:?}");
                netlink.bring_up(index, parameters).map_err(failed(node, name, what))?;
            }
            for &address in new.addresses.iter().filter(|address| !old.addresses.contains(address)) {
                let what = || format!("address {address}");
                netlink.add_address(index, address).map_err(failed(node, name, what))?;
                added.push(Added::Address(name.to_owned(), address));
            }
            let known = &change.old_neighbors[former];
            let more: Stations =
                change.neighbors[place].iter().filter(|station| !known.contains(station)).copied().collect();
            netlink.add_neighbors(index, &more).map_err(failed(node, name, || "its neighbours".into()))?;
            let unknown = |ip: &IpAddr| known.iter().all(|(other, _)| other != ip);
            let unknown = more.iter().map(|(ip, _)| *ip).filter(unknown).collect();
            added.push(Added::Neighbors(name.to_owned(), unknown));
        }
        let former = change.old_routes();
        for (prefix, (name, via)) in change.new_routes() {
            if !former.contains_key(&prefix) {
                let what = || format!("route to {prefix}");
                let index = index(&name).map_err(failed(node, &name, what))?;
                netlink.add_route(index, prefix, via).map_err(failed(node, &name, what))?;
                added.push(Added::Route(prefix));
            }
        }
        Ok(taps)
    }

    /// Removes what is old. Returns what could not be removed.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.is_finished = true;
        let node = self.change.new.0;
        let done = self.namespace.within(|| self.remove());
        let problems = done.unwrap_or_else(|error| vec![error.to_string()]);
        problems.into_iter().map(|problem| format!("host {}: {problem}", node.name)).collect()
    }

    fn remove(&self) -> Vec<String> {
        let change = &self.change;
        let mut problems = Vec::new();
        let mut netlink = match Netlink::open() {
            Ok(netlink) => netlink,
            Err(error) => return vec![format!("opening netlink: {error}")],
        };
        let mut note = |what: String, result: io::Result<()>| {
            problems.extend(result.err().map(|error| format!("{what}: {error}")));
        };
        let (former, routes) = (change.old_routes(), change.new_routes());
        for (prefix, (name, via)) in &routes {
            if former.get(prefix).is_some_and(|before| before != &(name.clone(), *via)) {
                let set = index(name).and_then(|index| netlink.replace_route(index, *prefix, *via));
                note(format!("route to {prefix}"), set);
            }
        }
        let removed: Vec<&str> = change.removed().collect();
        for (prefix, (name, via)) in &former {
            // Routes end with their interface.
            if !routes.contains_key(prefix) && !removed.contains(&name.as_str()) {
                let set = index(name).and_then(|index| netlink.remove_route(index, *prefix, *via));
                note(format!("route to {prefix}"), set);
            }
        }
        for (place, former) in change.kept() {
            let (new, old) = (&change.new.0.interfaces[place], &change.old.0.interfaces[former]);
            let Ok(index) = index(&new.name) else { continue };
            for &address in old.addresses.iter().filter(|address| !new.addresses.contains(address)) {
                note(format!("address {address}"), netlink.remove_address(index, address));
            }
            let stays = |ip: &IpAddr| change.neighbors[place].iter().any(|(other, _)| other == ip);
            let gone = change.old_neighbors[former].iter().map(|(ip, _)| *ip).filter(|ip| !stays(ip));
            netlink.remove_neighbors(index, &gone.collect::<Vec<_>>());
        }
        for name in removed {
            note(format!("interface {name}"), index(name).and_then(|index| netlink.remove_link(index)));
        }
        problems
    }

    /// Removes what was added, and restores what was changed.
    fn undo(&mut self) -> io::Result<()> {
        answer_arp(self.change.old.0);
        let mut netlink = Netlink::open()?;
        for added in std::mem::take(&mut self.added).into_iter().rev() {
            // What was not added is not there.
            let _ = match added {
                Added::Interface(name) => index(&name).and_then(|index| netlink.remove_link(index)),
                Added::Address(name, address) => {
                    index(&name).and_then(|index| netlink.remove_address(index, address))
                }
                Added::Route(prefix) => {
                    let (name, via) = &self.change.new_routes()[&prefix];
                    index(name).and_then(|index| netlink.remove_route(index, prefix, *via))
                }
                Added::Neighbors(name, addresses) => {
                    index(&name).map(|index| netlink.remove_neighbors(index, &addresses))
                }
            };
        }
        for (place, former) in self.change.kept() {
            let (new, old) = (&self.change.new.0.interfaces[place], &self.change.old.0.interfaces[former]);
            let index = index(&old.name)?;
            if (old.mac, old.mtu) != (new.mac, new.mtu) {
                let parameters = LinkParameters { mac: old.mac.map(|mac| mac.0), mtu: Some(old.mtu) };
                netlink.bring_up(index, parameters)?;
            }
            netlink.add_neighbors(index, &self.change.old_neighbors[former])?;
        }
        Ok(())
    }
}

impl Drop for Adjustment<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            let namespace = self.namespace;
            // A namespace that cannot be joined has ended.
            let _ = namespace.within(|| self.undo());
        }
    }
}

fn index(name: &str) -> io::Result<u32> {
    Ok(if_nametoindex(name)?)
}
