//! Changes the interfaces, addresses, routes and neighbours of a host that stays.
//!
//! ```text
//!  begin:   what goes loses its addresses and routes, and its name
//!           what stays loses and gets names, addresses, neighbours
//!           what is new is made
//!           routes
//!  finish:  what goes is removed
//!  drop:    without `finish`, the same steps back
//! ```
//!
//! What is old goes first: a new address or next router may be an old address of the host. An
//! interface that goes stays until the end under another name, because it could not be made again
//! with its port. An address, route or neighbour that is in both stays all the time.

use crate::host::host_namespace::HostNamespace;
use crate::host::{HostError, add_interface, answer_arp, failed, interface_route, settle_ipv6, tap_end};
use crate::kernel::netlink::{LinkParameters, Netlink};
use fastpath_engine::port::TapPort;
use fastpath_net::Route;
use fastpath_spec::{Interface, Node};
use ipnet::IpNet;
use nix::libc::{EADDRNOTAVAIL, EBUSY, ENODEV, ENOENT, ESRCH};
use nix::net::if_::if_nametoindex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// The neighbours of one interface.
type Stations = Vec<(IpAddr, [u8; 6])>;
/// Routes by destination: the index of the interface, and the next router.
type RoutesBy = BTreeMap<IpNet, (u32, Option<IpAddr>)>;

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
    /// The interfaces that there were, by their indices in the kernel.
    indices: Vec<u32>,
    /// The interfaces that were made.
    added: Vec<String>,
    is_finished: bool,
}

/// A state of a host: before or after.
#[derive(Clone, Copy)]
struct Side<'s> {
    node: &'s Node,
    routes: &'s RoutesBy,
}

/// An interface that there was: what it is on both sides. `None` where the host does not have it.
struct AdjustedPart<'s> {
    index: u32,
    from: Option<(&'s Interface, &'s Stations)>,
    to: Option<(&'s Interface, &'s Stations)>,
}

impl HostChange<'_> {
    /// Returns whether nothing changes in the host.
    pub(crate) fn is_empty(&self) -> bool {
        let same = |(index, former): (usize, &Option<usize>)| {
            former.is_some_and(|former| {
                let (old, new) = (&self.old.0.interfaces[former], &self.new.0.interfaces[index]);
                (&old.name, old.mac, &old.addresses, old.mtu) == (&new.name, new.mac, &new.addresses, new.mtu)
                    && self.old_neighbors[former] == self.neighbors[index]
            })
        };
        self.old.0.interfaces.len() == self.new.0.interfaces.len()
            && self.stays.iter().enumerate().all(same)
            && named_routes(self.old) == named_routes(self.new)
    }

    /// Returns whether its interfaces stay as they are, in their order.
    pub(crate) fn keeps_interfaces(&self) -> bool {
        let own = |node: &Node, place: usize| {
            let interface = &node.interfaces[place];
            (interface.mac, interface.addresses.clone(), interface.mtu)
        };
        let (old, new) = (self.old.0, self.new.0);
        let same = |(place, former): (usize, &Option<usize>)| {
            *former == Some(place) && own(old, place) == own(new, place)
        };
        old.interfaces.len() == new.interfaces.len() && self.stays.iter().enumerate().all(same)
    }

    /// Returns the interfaces that there were, in their order.
    fn pieces(&self, indices: &[u32]) -> Vec<AdjustedPart<'_>> {
        let piece = |(former, &index): (usize, &u32)| {
            let place = self.stays.iter().position(|stays| *stays == Some(former));
            let to = place.map(|place| (&self.new.0.interfaces[place], &self.neighbors[place]));
            let from = Some((&self.old.0.interfaces[former], &self.old_neighbors[former]));
            AdjustedPart { index, from, to }
        };
        indices.iter().enumerate().map(piece).collect()
    }
}

impl AdjustedPart<'_> {
    fn back(self) -> Self {
        AdjustedPart { index: self.index, from: self.to, to: self.from }
    }

    /// Whether its MAC address or its MTU changes. With the address the kernel forgets all
    /// neighbours (`neigh_changeaddr`), and with an MTU below 1280 IPv6.
    fn has_other_parameters(&self) -> bool {
        let parameters = |side: Option<(&Interface, &Stations)>| side.map(|(it, _)| (it.mac, it.mtu));
        self.to.is_some() && self.from.is_some() && parameters(self.from) != parameters(self.to)
    }

    /// The name on the way from one to the other, or of an interface that goes.
    fn passing_name(&self) -> String {
        format!("fpold{}", self.index)
    }
}

fn named_routes((node, routes): (&Node, &[Route])) -> BTreeMap<IpNet, (String, Option<IpAddr>)> {
    let named = |route: &Route| {
        let interface = interface_route(node, route)?;
        Some((route.prefix, (interface.name.clone(), route.via)))
    };
    routes.iter().filter_map(named).collect()
}

/// Returns the routes that the kernel has, with the indices of its interfaces by their numbers.
fn routes((node, routes): (&Node, &[Route]), index: impl Fn(usize) -> Option<u32>) -> RoutesBy {
    let indexed = |route: &Route| {
        interface_route(node, route)?;
        Some((route.prefix, (index(route.interface)?, route.via)))
    };
    routes.iter().filter_map(indexed).collect()
}

impl<'t> Adjustment<'t> {
    /// Makes the host what it is to be, except that interfaces that go are still there. Returns the
    /// ports of the new interfaces with their numbers.
    pub(crate) fn begin(
        namespace: &'t HostNamespace,
        change: HostChange<'t>,
    ) -> Result<(Adjustment<'t>, Vec<(usize, TapPort)>), HostError> {
        let (indices, added) = (Vec::new(), Vec::new());
        let mut adjustment = Adjustment { namespace, change, indices, added, is_finished: false };
        let node = adjustment.change.new.0;
        let taps = namespace
            .within(|| adjustment.adjust())
            .map_err(failed(node, "lo", || "joining it".into()))??;
        Ok((adjustment, taps))
    }

    fn adjust(&mut self) -> Result<Vec<(usize, TapPort)>, HostError> {
        let Adjustment { change, added, indices, .. } = self;
        let (old, node) = (change.old.0, change.new.0);
        let mut netlink = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
        let is_own = |name: &str| old.interfaces.iter().any(|interface| interface.name == name);
        for interface in node.interfaces.iter().filter(|interface| !is_own(&interface.name)) {
            if index(&interface.name).is_ok() {
                // A program of the host made it. It is not removed.
                let taken =
                    io::Error::new(io::ErrorKind::AlreadyExists, "the host has an interface of this name");
                return Err(failed(node, &interface.name, || "making it".to_owned())(taken));
            }
        }
        let all = old.interfaces.iter();
        let all: Result<Vec<u32>, HostError> =
            all.map(|it| index(&it.name).map_err(failed(node, &it.name, || "its index".into()))).collect();
        *indices = all?;
        let from = Side { node: old, routes: &routes(change.old, |former| indices.get(former).copied()) };
        let pieces = change.pieces(indices);
        let disturbed = shift(&mut netlink, from, node, &pieces)?;
        let mut taps = Vec::new();
        for (place, _) in change.stays.iter().enumerate().filter(|(_, former)| former.is_none()) {
            let interface = &node.interfaces[place];
            // The interface may exist before an error.
            added.push(interface.name.clone());
            let tap = tap_end(node, interface)?;
            taps.push((place, add_interface(node, interface, &change.neighbors[place], &mut netlink, tap)?));
        }
        let wanted = routes(change.new, |place| index(&node.interfaces[place].name).ok());
        let to = Side { node, routes: &wanted };
        reroute(&mut netlink, from, to, &disturbed)?;
        Ok(taps)
    }

    /// Removes the interfaces that go. Returns what could not be removed.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.is_finished = true;
        let node = self.change.new.0;
        let remove = || -> io::Result<()> {
            let mut netlink = Netlink::open()?;
            let pieces = self.change.pieces(&self.indices);
            let mut gone = pieces.iter().filter(|piece| piece.to.is_none());
            gone.try_for_each(|piece| netlink.remove_link(piece.index))
        };
        let done = self.namespace.within(remove).and_then(|done| done);
        done.err()
            .map(|error| format!("host {}: removing an interface: {error}", node.name))
            .into_iter()
            .collect()
    }

    /// Goes back to what the host was.
    fn undo(&self) -> Result<(), HostError> {
        let (old, node) = (self.change.old.0, self.change.new.0);
        let mut netlink = Netlink::open().map_err(failed(node, "lo", || "opening netlink".into()))?;
        let pieces: Vec<AdjustedPart<'_>> =
            self.change.pieces(&self.indices).into_iter().map(AdjustedPart::back).collect();
        let place = |place: usize| {
            let former = (*self.change.stays.get(place)?)?;
            self.indices.get(former).copied()
        };
        let from = Side { node, routes: &routes(self.change.new, place) };
        let wanted = routes(self.change.old, |former| self.indices.get(former).copied());
        for name in &self.added {
            // What was not made is not there.
            let _ = index(name).and_then(|index| netlink.remove_link(index));
        }
        let disturbed = shift(&mut netlink, from, old, &pieces)?;
        reroute(&mut netlink, from, Side { node: old, routes: &wanted }, &disturbed)
    }
}

impl Drop for Adjustment<'_> {
    fn drop(&mut self) {
        if !self.is_finished && !self.indices.is_empty() {
            let namespace = self.namespace;
            // A namespace that cannot be joined has ended.
            let _ = namespace.within(|| self.undo());
        }
    }
}

/// Makes the interfaces that there were what they are in `node`, without routes. Returns the
/// indices of those whose other routes the kernel may have removed.
fn shift(
    netlink: &mut Netlink,
    from: Side<'_>,
    node: &Node,
    pieces: &[AdjustedPart<'_>],
) -> Result<BTreeSet<u32>, HostError> {
    let mut disturbed = BTreeSet::new();
    answer_arp(node);
    for piece in pieces {
        let Some((before, _)) = piece.from else { continue };
        let name = before.name.as_str();
        let stays = |address: &IpNet| piece.to.is_some_and(|(after, _)| after.addresses.contains(address));
        if piece.to.is_none() {
            for (prefix, (_, via)) in from.routes.iter().filter(|(_, (index, _))| *index == piece.index) {
                let gone = absent(netlink.remove_route(piece.index, *prefix, *via));
                gone.map_err(failed(node, name, || format!("removing the route to {prefix}")))?;
            }
        }
        for &address in before.addresses.iter().filter(|address| !stays(address)) {
            let gone = absent(netlink.remove_address(piece.index, address));
            gone.map_err(failed(node, name, || format!("removing address {address}")))?;
            disturbed.insert(piece.index);
        }
    }
    let name = |side: Option<(&Interface, &Stations)>| side.map(|(interface, _)| interface.name.clone());
    let renamed: Vec<&AdjustedPart<'_>> =
        pieces.iter().filter(|piece| name(piece.from) != name(piece.to)).collect();
    // In two steps: two interfaces may change their names with each other.
    let first = renamed.iter().map(|piece| (*piece, piece.passing_name()));
    let second = renamed.iter().filter_map(|piece| Some((*piece, name(piece.to)?)));
    for (piece, name) in first.chain(second) {
        let was_up = rename(netlink, piece.index, &name);
        if !was_up.map_err(failed(node, &name, || "renaming it".into()))? {
            disturbed.insert(piece.index);
        }
    }
    for piece in pieces {
        if piece.has_other_parameters() {
            disturbed.insert(piece.index);
        }
        configure(netlink, node, piece, disturbed.contains(&piece.index))?;
    }
    Ok(disturbed)
}

/// Gives an interface its parameters, addresses and neighbours.
fn configure(
    netlink: &mut Netlink,
    node: &Node,
    piece: &AdjustedPart<'_>,
    is_disturbed: bool,
) -> Result<(), HostError> {
    let Some((after, neighbors)) = piece.to else { return Ok(()) };
    let (name, index) = (after.name.as_str(), piece.index);
    if piece.has_other_parameters() {
        let parameters = LinkParameters { mac: after.mac.map(|mac| mac.0), mtu: Some(after.mtu) };
        let set = netlink.bring_up(index, parameters);
        set.map_err(failed(node, name, || format!("setting {parameters:?}")))?;
        let macs = (piece.from.and_then(|(before, _)| before.mac), after.mac);
        if let (Some(before), Some(now)) = macs
            && before != now
            // The kernel keeps the link-local address of the former MAC address. Where there is
            // none, the host has no IPv6.
            && netlink.remove_address(index, link_local(before.0)).is_ok()
        {
            let added = present(netlink.add_address(index, link_local(now.0)));
            added.map_err(failed(node, name, || "its link-local address".into()))?;
        }
    }
    let before = piece.from.map_or(&[][..], |(before, _)| &before.addresses[..]);
    if before != after.addresses {
        settle_ipv6(node, after);
    }
    for &address in after.addresses.iter().filter(|address| is_disturbed || !before.contains(address)) {
        let added = present(netlink.add_address(index, address));
        added.map_err(failed(node, name, || format!("address {address}")))?;
    }
    let known = piece.from.map_or(&[][..], |(_, known)| &known[..]);
    let is_gone = |ip: &IpAddr| neighbors.iter().all(|(other, _)| other != ip);
    let gone: Vec<IpAddr> = known.iter().map(|(ip, _)| *ip).filter(is_gone).collect();
    netlink.remove_neighbors(index, &gone);
    let more: Stations =
        neighbors.iter().filter(|station| is_disturbed || !known.contains(station)).copied().collect();
    netlink.add_neighbors(index, &more).map_err(failed(node, name, || "its neighbours".into()))
}

/// Makes the routes of `from` those of `to`.
fn reroute(
    netlink: &mut Netlink,
    from: Side<'_>,
    to: Side<'_>,
    disturbed: &BTreeSet<u32>,
) -> Result<(), HostError> {
    let mut again = Vec::new();
    for (prefix, (index, via)) in to.routes {
        let before = from.routes.get(prefix);
        let done = match before {
            Some(before) if *before == (*index, *via) => match disturbed.contains(index) {
                true => present(netlink.add_route(*index, *prefix, *via)),
                false => continue,
            },
            Some(_) => netlink.replace_route(*index, *prefix, *via),
            None => netlink.add_route(*index, *prefix, *via),
        };
        // A route that goes may lead to the next router another way.
        if done.is_err() {
            again.push((prefix, *index, *via));
        }
    }
    for (prefix, (index, via)) in from.routes.iter().filter(|(prefix, _)| !to.routes.contains_key(prefix)) {
        let gone = absent(netlink.remove_route(*index, *prefix, *via));
        gone.map_err(failed(to.node, "lo", || format!("removing the route to {prefix}")))?;
    }
    for (prefix, index, via) in again {
        let done = netlink.replace_route(index, *prefix, via);
        done.map_err(failed(to.node, "lo", || format!("route to {prefix}")))?;
    }
    Ok(())
}

/// Renames an interface. Returns false if it had to be down meanwhile, which ends routes,
/// neighbours and IPv6 addresses.
fn rename(netlink: &mut Netlink, index: u32, name: &str) -> io::Result<bool> {
    match netlink.rename(index, name) {
        // Before Linux 6.2.
        Err(error) if error.raw_os_error() == Some(EBUSY) => {
            netlink.take_down(index)?;
            netlink.rename(index, name)?;
            netlink.bring_up(index, LinkParameters::default())?;
            Ok(false)
        }
        result => result.map(|()| true),
    }
}

/// The link-local address of an interface (RFC 4291, appendix A).
fn link_local([a, b, c, d, e, f]: [u8; 6]) -> IpNet {
    let parts = [[a ^ 2, b], [c, 0xff], [0xfe, d], [e, f]].map(u16::from_be_bytes);
    let address = Ipv6Addr::new(0xfe80, 0, 0, 0, parts[0], parts[1], parts[2], parts[3]);
    IpNet::new(address.into(), 64).expect("a prefix of IPv6")
}

/// It is to be there: it may be already.
fn present(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// It is to be gone: it may be already, with an address or interface.
fn absent(result: io::Result<()>) -> io::Result<()> {
    const GONE: [i32; 4] = [EADDRNOTAVAIL, ENODEV, ENOENT, ESRCH];
    match result {
        Err(error) if error.raw_os_error().is_some_and(|code| GONE.contains(&code)) => Ok(()),
        other => other,
    }
}

fn index(name: &str) -> io::Result<u32> {
    Ok(if_nametoindex(name)?)
}
