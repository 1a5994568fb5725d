//! Splits a topology into parts that exchange no frames, so that each part can run on its own core.
//!
//! Frames end at hosts. So only routers and switches connect links, and the links of a router or
//! switch stay in one part. Those of a router that is a namespace do too: the routes of a part lead
//! through it. A part keeps the order of nodes and links, and each link keeps its
//! stream of random numbers. The fates of frames are therefore the same as in the whole topology.

use crate::id::EdgeId;
use crate::partition::{NodesJoined, Partition};
use fastpath_spec::{Event, LinkId, Node, NodeId, NodeKind, Topology, Track};
use std::num::NonZeroUsize;

/// A part of a topology: some of its links with the nodes at their ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The topology of the part, numbered from zero.
    pub topology: Topology,
    /// By link of the part: the link of the whole topology.
    pub links: Vec<LinkId>,
    /// By edge of the part: the edge of the whole topology.
    pub edges: Vec<EdgeId>,
}

/// Why a topology cannot take the place of another one that runs in several parts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartsError {
    /// Links of several parts exchange frames in the new topology. One of each is named.
    #[error(
        "links {0} and {1} run on different workers and cannot be joined while they run: write \
         workers = 1 in [engine], or --workers 1, and start the network again"
    )]
    Joined(String, String),
    /// Nodes of several parts are joined.
    #[error(transparent)]
    NodesJoined(#[from] NodesJoined),
    /// The new topology has groups, which need one part.
    #[error(
        "groups need one worker, and the network runs on several: write workers = 1 in [engine], or \
         --workers 1, and start the network again"
    )]
    Groups,
}

impl Part {
    /// Splits a topology into at most `count` parts with similar numbers of links. A topology with
    /// groups stays in one part.
    pub fn split(topology: &Topology, count: NonZeroUsize) -> Vec<Part> {
        let components = components(topology);
        // The first packet on any link of a group can start the traces of all its links, so the
        // links of a group stay in one part.
        if count.get() == 1 || components.len() <= 1 || !topology.groups.is_empty() {
            return vec![Part::whole(topology)];
        }
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count.get().min(components.len())];
        let mut by_size: Vec<Vec<usize>> = components;
        // Each component, the largest first, goes to the smallest part (LPT scheduling). The
        // largest part is at most 4/3 of the optimum (Graham 1969).
        by_size.sort_by_key(|links| std::cmp::Reverse(links.len()));
        for links in by_size {
            groups.iter_mut().min_by_key(|group| group.len()).expect("at least one").extend(links);
        }
        groups.iter_mut().for_each(|links| links.sort_unstable());
        groups.sort();
        groups.iter().map(|links| Part::of(topology, links)).collect()
    }

    /// Splits a topology that takes the place of another one, of which `part` returns the part of a
    /// link by its name. Each link stays in its part, and components without such a link go to
    /// the part with the fewest links. Some of the `count` parts may be empty.
    ///
    /// # Errors
    /// See [`PartsError`].
    pub fn follow(
        topology: &Topology,
        count: usize,
        part: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<Part>, PartsError> {
        if count == 1 {
            return Ok(vec![Part::whole(topology)]);
        }
        if !topology.groups.is_empty() {
            return Err(PartsError::Groups);
        }
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut new = Vec::new();
        for links in components(topology) {
            let name = |link: usize| topology.links[link].name.as_str();
            let mut kept = links.iter().filter_map(|&link| Some((link, part(name(link))?)));
            let Some((first, place)) = kept.next() else {
                new.push(links);
                continue;
            };
            if let Some((other, _)) = kept.find(|(_, other)| *other != place) {
                return Err(PartsError::Joined(name(first).to_owned(), name(other).to_owned()));
            }
            groups[place].extend(links);
        }
        for links in new {
            groups.iter_mut().min_by_key(|group| group.len()).expect("at least one").extend(links);
        }
        groups.iter_mut().for_each(|links| links.sort_unstable());
        Ok(groups.iter().map(|links| Part::of(topology, links)).collect())
    }

    /// Returns the parts of a partition: each has the whole topology and its own edges.
    pub fn of_partition(topology: &Topology, partition: &Partition) -> Vec<Part> {
        let edges: Vec<usize> = topology
            .hosts()
            .flat_map(|(id, host)| host.interfaces.iter().map(move |_| id))
            .map(|node| partition.part_of(node))
            .collect();
        let own = |part: usize| {
            let own = edges.iter().zip(0..).filter(|(of, _)| **of == part);
            own.map(|(_, edge)| EdgeId(edge)).collect()
        };
        (0..partition.count()).map(|part| Part { edges: own(part), ..Part::whole(topology) }).collect()
    }

    fn whole(topology: &Topology) -> Part {
        let edges = topology.hosts().map(|(_, host)| host.interfaces.len()).sum::<usize>();
        Part {
            topology: topology.clone(),
            links: (0..topology.links.len() as u32).map(LinkId).collect(),
            edges: (0..edges as u32).map(EdgeId).collect(),
        }
    }

    /// Returns the part with these links, in the same order.
    fn of(topology: &Topology, links: &[usize]) -> Part {
        let mut new_ids = vec![None; topology.links.len()];
        for (number, &link) in links.iter().enumerate() {
            new_ids[link] = Some(LinkId(number as u32));
        }
        let mut part = Topology {
            seed: topology.seed,
            family: topology.family,
            routing: topology.routing,
            links: links.iter().map(|&link| topology.links[link].clone()).collect(),
            ..Topology::default()
        };
        let (mut edges, mut edge) = (Vec::new(), 0);
        for node in &topology.nodes {
            let is_host = node.kind.is_edge();
            let mut copy = node.clone();
            copy.interfaces.clear();
            for interface in &node.interfaces {
                if let Some(link) = new_ids[interface.link.0 as usize] {
                    let end = (NodeId(part.nodes.len() as u32), copy.interfaces.len());
                    part.links[link.0 as usize].ends[interface.end] = end;
                    copy.interfaces.push(fastpath_spec::Interface { link, ..interface.clone() });
                    edges.extend(is_host.then_some(EdgeId(edge)));
                }
                edge += u32::from(is_host);
            }
            if !copy.interfaces.is_empty() {
                part.nodes.push(copy);
            }
        }
        let of_part = |event: &Event| Some(Event { link: new_ids[event.link.0 as usize]?, ..event.clone() });
        part.events = topology.events.iter().filter_map(of_part).collect();
        let of_part = |track: &Track| Some(Track { link: new_ids[track.link.0 as usize]?, ..track.clone() });
        part.tracks = topology.tracks.iter().filter_map(of_part).collect();
        Part { topology: part, links: links.iter().map(|&link| LinkId(link as u32)).collect(), edges }
    }
}

/// Returns the links of each connected component, in the order of their first links.
fn components(topology: &Topology) -> Vec<Vec<usize>> {
    let mut leader: Vec<usize> = (0..topology.links.len()).collect();
    let find = |leader: &mut Vec<usize>, mut link: usize| {
        while leader[link] != link {
            leader[link] = leader[leader[link]];
            link = leader[link];
        }
        link
    };
    let is_host = |node: &&Node| matches!(node.kind, NodeKind::Host { .. });
    for node in topology.nodes.iter().filter(|node| !is_host(node)) {
        let mut links = node.interfaces.iter().map(|interface| interface.link.0 as usize);
        let Some(first) = links.next() else { continue };
        for link in links {
            let (a, b) = (find(&mut leader, first), find(&mut leader, link));
            // The link with the lower number represents the component.
            leader[a.max(b)] = a.min(b);
        }
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); topology.links.len()];
    for link in 0..topology.links.len() {
        members[find(&mut leader, link)].push(link);
    }
    members.retain(|links| !links.is_empty());
    members
}
