//! Cutting a topology into parts that exchange no frames, so that each can run on a core of its
//! own.
//!
//! Frames end at hosts, so links meet only at routers and switches: what those join stays together.
//! A part keeps the order of nodes and links and each link its stream of random numbers, so that
//! frames fare as in the whole.

use crate::network::EdgeId;
use fastpath_spec::{Event, LinkId, NodeId, NodeKind, Topology, Track};
use std::num::NonZeroUsize;

/// Some of a topology's links with the nodes at their ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// What the part is, numbered from zero.
    pub topology: Topology,
    /// What each of its links is in the whole.
    pub links: Vec<LinkId>,
    /// What each of its edges is in the whole.
    pub edges: Vec<EdgeId>,
}

impl Part {
    /// Splits a topology into at most `count` parts of about equally many links, which together are
    /// the whole. A topology with groups stays in one part.
    pub fn split(topology: &Topology, count: NonZeroUsize) -> Vec<Part> {
        let components = components(topology);
        // Links of a group may have to start together, at the first packet of any: they stay in one
        // part.
        if count.get() == 1 || components.len() <= 1 || !topology.groups.is_empty() {
            return vec![Part::whole(topology)];
        }
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count.get().min(components.len())];
        let mut by_size: Vec<Vec<usize>> = components;
        // The largest first, each to the group with the least, which keeps the groups within a
        // third of the best.
        by_size.sort_by_key(|links| std::cmp::Reverse(links.len()));
        for links in by_size {
            groups.iter_mut().min_by_key(|group| group.len()).expect("at least one").extend(links);
        }
        groups.iter_mut().for_each(|links| links.sort_unstable());
        groups.sort();
        groups.iter().map(|links| Part::of(topology, links)).collect()
    }

    fn whole(topology: &Topology) -> Part {
        let edges = topology.hosts().map(|(_, host)| host.interfaces.len()).sum::<usize>();
        Part {
            topology: topology.clone(),
            links: (0..topology.links.len() as u32).map(LinkId).collect(),
            edges: (0..edges as u32).map(EdgeId).collect(),
        }
    }

    /// The part with these links, in their order.
    fn of(topology: &Topology, links: &[usize]) -> Part {
        let mut place = vec![None; topology.links.len()];
        for (number, &link) in links.iter().enumerate() {
            place[link] = Some(LinkId(number as u32));
        }
        let mut part = Topology {
            seed: topology.seed,
            links: links.iter().map(|&link| topology.links[link].clone()).collect(),
            ..Topology::default()
        };
        let (mut edges, mut edge) = (Vec::new(), 0);
        for node in &topology.nodes {
            let is_host = matches!(node.kind, NodeKind::Host { .. });
            let mut copy = node.clone();
            copy.interfaces.clear();
            for interface in &node.interfaces {
                if let Some(link) = place[interface.link.0 as usize] {
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
        let of_part = |event: &Event| Some(Event { link: place[event.link.0 as usize]?, ..event.clone() });
        part.events = topology.events.iter().filter_map(of_part).collect();
        let of_part = |track: &Track| Some(Track { link: place[track.link.0 as usize]?, ..track.clone() });
        part.tracks = topology.tracks.iter().filter_map(of_part).collect();
        Part { topology: part, links: links.iter().map(|&link| LinkId(link as u32)).collect(), edges }
    }
}

/// The links, by what joins them; in the order of their first links.
fn components(topology: &Topology) -> Vec<Vec<usize>> {
    let mut leader: Vec<usize> = (0..topology.links.len()).collect();
    let find = |leader: &mut Vec<usize>, mut link: usize| {
        while leader[link] != link {
            leader[link] = leader[leader[link]];
            link = leader[link];
        }
        link
    };
    for node in topology.nodes.iter().filter(|node| !matches!(node.kind, NodeKind::Host { .. })) {
        let mut links = node.interfaces.iter().map(|interface| interface.link.0 as usize);
        let Some(first) = links.next() else { continue };
        for link in links {
            let (a, b) = (find(&mut leader, first), find(&mut leader, link));
            // The lower number leads.
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
