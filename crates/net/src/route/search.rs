//! The search for the routes of one node.

use super::{Family, LiveLinks, NextHop, Route};
use fastpath_spec::{Interface, Node, NodeId, NodeKind, Topology};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The routes found from one node.
pub(super) struct FoundRoutes {
    pub(super) routes: Vec<Route>,
    /// The adjacent routers, each by interface and address.
    pub(super) gateways: Vec<(usize, IpAddr)>,
}

/// A search of routers from one node, breadth-first. Within a distance nodes are in the order of
/// the first hop that leads to them, so the first next hop of a segment wins ties.
pub(super) struct Search<'t> {
    topology: &'t Topology,
    links: &'t LiveLinks,
    from: NodeId,
    family: Family,
    is_multipath: bool,
    // Sets are faster than arrays of flags: among a million links most nodes reach only a few.
    segments_seen: BTreeSet<usize>,
    routers_seen: BTreeSet<NodeId>,
    prefixes_seen: BTreeSet<IpNet>,
    has_default: bool,
    found: FoundRoutes,
}

/// A router that the search has reached.
struct Reached {
    node: NodeId,
    /// The first hops that lead there; none for the node from which the search starts.
    hops: Vec<NextHop>,
    /// The interface by which the first of them enters it.
    entered: Option<usize>,
}

/// What routers of one distance reach first.
#[derive(Default)]
struct Reach {
    /// Segments, and over which next hops of the start.
    segments: Vec<(usize, Vec<NextHop>)>,
    segment_places: BTreeMap<usize, usize>,
    /// The routers of the next distance.
    routers: Vec<Reached>,
    router_places: BTreeMap<NodeId, usize>,
}

impl<'t> Search<'t> {
    pub(super) fn new(
        topology: &'t Topology,
        links: &'t LiveLinks,
        from: NodeId,
        family: Family,
    ) -> Search<'t> {
        Search {
            topology,
            links,
            from,
            family,
            is_multipath: topology.routing.is_multipath && topology.node(from).kind.is_router(),
            segments_seen: BTreeSet::new(),
            routers_seen: BTreeSet::from([from]),
            prefixes_seen: BTreeSet::new(),
            has_default: false,
            found: FoundRoutes { routes: Vec::new(), gateways: Vec::new() },
        }
    }

    pub(super) fn run(mut self) -> FoundRoutes {
        let mut level = vec![Reached { node: self.from, hops: Vec::new(), entered: None }];
        while !level.is_empty() {
            let mut reach = Reach::default();
            for router in &level {
                self.leave(router, &mut reach);
            }
            for (place, hops) in reach.segments {
                self.add_subnets(place, &hops);
            }
            self.routers_seen.extend(reach.routers.iter().map(|reached| reached.node));
            level = reach.routers;
        }
        self.found
    }

    /// Follows the interfaces of a router.
    fn leave(&mut self, router: &Reached, reach: &mut Reach) {
        let node = self.topology.node(router.node);
        // What is not in the topology is behind the nearest uplink.
        let is_uplink = matches!(node.kind, NodeKind::Uplink { .. });
        if is_uplink && !router.hops.is_empty() && !self.has_default {
            self.has_default = true;
            self.add_routes(self.family.default(), &router.hops);
        }
        for index in 0..node.interfaces.len() {
            if !self.is_hidden(node, router.entered, index) {
                self.cross(router, index, reach);
            }
        }
    }

    /// Returns whether the addresses behind an interface are not known where the node was entered:
    /// the IPv4 addresses inside a NAT are not known outside.
    fn is_hidden(&self, node: &Node, entered: Option<usize>, index: usize) -> bool {
        match (&node.kind, entered, self.family) {
            (NodeKind::Nat { nat, .. }, Some(entered), Family::V4) => {
                nat.inside.contains(&index) && !nat.inside.contains(&entered)
            }
            _ => false,
        }
    }

    /// Crosses the segment of an interface, unless a shorter way has.
    fn cross(&mut self, router: &Reached, index: usize, reach: &mut Reach) {
        let (at, links) = (router.node, self.links);
        let place = links.segments.at(at, index);
        if self.segments_seen.contains(&place) || !links.has_interface(self.topology, at, index) {
            return;
        }
        let known = reach.segment_places.get(&place).copied();
        if known.is_some() && (!self.is_multipath || at == self.from) {
            return;
        }
        let own = [NextHop { interface: index, via: None }];
        let hops = if at == self.from { &own[..] } else { &router.hops };
        match known {
            Some(known) => union(&mut reach.segments[known].1, hops),
            None => {
                reach.segment_places.insert(place, reach.segments.len());
                reach.segments.push((place, hops.to_vec()));
            }
        }
        for &(neighbor, far) in &links.segments.all[place].routers {
            if !self.routers_seen.contains(&neighbor) {
                self.enter((router, index), (neighbor, far), reach);
            }
        }
    }

    /// Enters a neighbor by its interface `far`.
    fn enter(
        &mut self,
        (router, index): (&Reached, usize),
        (neighbor, far): (NodeId, usize),
        reach: &mut Reach,
    ) {
        let known = reach.router_places.get(&neighbor).copied();
        if known.is_some() && !self.is_multipath {
            return;
        }
        let here = &self.topology.node(router.node).interfaces[index];
        let there = &self.topology.node(neighbor).interfaces[far];
        let Some(via) = gateway(here, there, self.family) else { return };
        let is_first = router.node == self.from;
        let first = [NextHop { interface: index, via: Some(via) }];
        let hops = if is_first { &first[..] } else { &router.hops };
        match known {
            Some(known) => union(&mut reach.routers[known].hops, hops),
            None => {
                if is_first {
                    self.found.gateways.push((index, via));
                }
                reach.router_places.insert(neighbor, reach.routers.len());
                reach.routers.push(Reached { node: neighbor, hops: hops.to_vec(), entered: Some(far) });
            }
        }
    }

    fn add_subnets(&mut self, place: usize, hops: &[NextHop]) {
        self.segments_seen.insert(place);
        let (links, family) = (self.links, self.family);
        let subnets = &links.segments.all[place].subnets;
        for &prefix in subnets.iter().filter(|subnet| family.has(&subnet.addr())) {
            // A subnet that a link down has cut in two is reached at the nearer part.
            if !self.is_multipath || self.prefixes_seen.insert(prefix) {
                self.add_routes(prefix, hops);
            }
        }
    }

    fn add_routes(&mut self, prefix: IpNet, hops: &[NextHop]) {
        let route = |hop: &NextHop| Route { prefix, via: hop.via, interface: hop.interface };
        self.found.routes.extend(hops.iter().map(route));
    }
}

/// Adds the next hops that are not there yet.
fn union(hops: &mut Vec<NextHop>, others: &[NextHop]) {
    for hop in others {
        if !hops.contains(hop) {
            hops.push(*hop);
        }
    }
}

/// Returns the address of the interface `there` on a subnet that it shares with the interface
/// `here`. An address without a subnet (/32) is on the link for all.
pub(super) fn gateway(here: &Interface, there: &Interface, family: Family) -> Option<IpAddr> {
    let of_family = |net: &&IpNet| family.has(&net.addr());
    let stands_alone = |net: &IpNet| net.prefix_len() == net.max_prefix_len();
    let is_on_link = |net: &&IpNet| {
        let own = here.addresses.iter().filter(of_family);
        stands_alone(net) || own.into_iter().any(|own| own.contains(&net.addr()) || stands_alone(own))
    };
    there.addresses.iter().filter(of_family).find(is_on_link).map(IpNet::addr)
}
