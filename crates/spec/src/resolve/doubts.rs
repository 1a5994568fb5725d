//! Warnings about values that are valid and do not have the effect that they seem to have: a
//! probability with correlation, jitter cut at zero, a bucket below a frame, a ring of switches,
//! static routes over a link that goes down, traffic without an address, a rendezvous point that is
//! nowhere.

use super::Resolver;
use crate::kernel_router::ProtocolKind;
use crate::mistake::{Code, several};
use crate::node_kind::NodeKind;
use crate::path::SpecPath;
use crate::topology::{LinkId, NodeId, Topology};
use fastpath_link::{Chance, CorruptSpec, JitterSpec, LinkState, LossSpec, PipeSpec, QueueSpec};
use fastpath_units::{Bytes, Duration, Probability};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// Ethernet header, bytes.
const ETHERNET: u32 = 14;
/// The shortest frame, without FCS.
const FRAME_MIN: u32 = 60;
/// The relative difference from which the share of a probability with correlation is worth a word,
/// and the share of delays cut at zero.
const SHARE_DIFFERENCE: f64 = 0.01;
const CUT_SHARE: f64 = 0.001;

impl Resolver<'_> {
    /// Makes the checks of values. The topology has its addresses.
    pub(super) fn doubts(&mut self) {
        let (mut notices, mut shares) = (Vec::new(), Shares::new());
        for (number, link) in self.topology.links.iter().enumerate() {
            // Most links have the same values in both directions: one sentence is enough.
            let mut said = BTreeSet::new();
            for (end, pipe) in link.pipes.iter().enumerate() {
                let (node, interface) = link.ends[end];
                said.extend(of_pipe(pipe, self.topology.node(node).interfaces[interface].mtu, &mut shares));
            }
            let path = || self.link_path(LinkId(number as u32));
            notices.extend(said.into_iter().map(|text| (path(), format!("link {}: {text}", link.name))));
        }
        notices.extend(blocked(&self.topology).map(|(link, text)| (self.link_path(link), text)));
        notices.extend(self.static_routes());
        notices.extend(without_address(&self.topology));
        notices.extend(rendezvous_points(&self.topology));
        notices.into_iter().for_each(|(path, text)| self.warn(Code::Unexpected, path, text));
    }

    /// The first event that takes a link down which other links could replace: static routes stay.
    fn static_routes(&self) -> Option<(SpecPath, String)> {
        let has_daemon = self.topology.nodes.iter().any(|node| node.kind.daemon().is_some());
        if self.topology.routing.is_dynamic || has_daemon {
            return None;
        }
        let events = self.description.events.iter().enumerate();
        let mut down = events.filter(|(_, event)| event.values.state == Some(LinkState::Down));
        down.find_map(|(index, event)| {
            let group = event.group.as_ref().and_then(|name| self.group_ids.get(name.as_str()));
            let of_group = group.into_iter().flat_map(|group| &self.topology.groups[*group].links);
            let named = event.links.iter().filter_map(|name| self.link_ids.get(name));
            let link = named.chain(of_group).find(|link| is_bypassed(&self.topology, **link))?;
            let text = format!(
                "link {} goes down, and routes are static: no packet goes another way; write routes = \"dynamic\" at the top",
                self.topology.link(*link).name
            );
            Some((SpecPath::of("events", index).key("state"), text))
        })
    }
}

/// The shares of chances so far, by their bits: each costs milliseconds, and most links are alike.
type Shares = BTreeMap<[u64; 2], f64>;

fn of_pipe(pipe: &PipeSpec, mtu: u32, shares: &mut Shares) -> Vec<String> {
    let mut said = Vec::new();
    for loss in [&pipe.loss, &pipe.egress_loss] {
        if let LossSpec::Correlated(chance) = loss {
            said.extend(correlated("loss", "loses", *chance, shares));
        }
    }
    said.extend(correlated("duplicate", "duplicates", pipe.duplicate.chance, shares));
    if let Some(CorruptSpec::Packets(chance)) = pipe.corrupt {
        said.extend(correlated("corrupt", "corrupts", chance, shares));
    }
    said.extend(pipe.jitter.as_deref().and_then(|jitter| cut(jitter, pipe.delay)));
    said.extend(bucket(pipe, mtu));
    said
}

/// A probability with netem's correlation, whose share is another.
fn correlated(key: &str, does: &str, chance: Chance, shares: &mut Shares) -> Option<String> {
    let Chance { probability, correlation } = chance;
    let bits = [probability, correlation].map(|p| p.get().to_bits());
    let share = *shares.entry(bits).or_insert_with(|| chance.share());
    let differs = (share - probability.get()).abs() > SHARE_DIFFERENCE * probability.get();
    let what = Probability::new((share * 1e5).round() / 1e5).map_or_else(String::new, |p| p.to_string());
    (!correlation.is_never() && differs).then(|| {
        let instead = if key == "loss" { "; for bursts with an exact share write a Gilbert-Elliott model" } else { "" };
        format!(
            "{key} of {probability} with a correlation of {correlation} {does} {what} of packets, as netem does{instead}"
        )
    })
}

/// Jitter that would make delays negative.
fn cut(jitter: &JitterSpec, delay: Duration) -> Option<String> {
    let share = jitter.law.cut_share(delay);
    let whole = delay.as_ms_f64() + jitter.law.mean_secs() * 1e3;
    let mean = jitter.law.moments(delay).0 * 1e3;
    (share > CUT_SHARE).then(|| {
        format!(
            "{:.1} % of its delays would be negative and are 0: the mean is {mean:.3} ms, not {whole:.3} ms",
            100.0 * share
        )
    })
}

/// A bucket that a frame does not fit into.
fn bucket(pipe: &PipeSpec, mtu: u32) -> Vec<String> {
    let (kind, depths) = match &pipe.queue {
        QueueSpec::TokenBucket(bucket) => {
            let peak = bucket.peak.map(|peak| ("peak_burst", peak.burst));
            ("token bucket", [Some(("burst", bucket.burst)), peak])
        }
        QueueSpec::Policer(policer) => ("policer", [Some(("burst", policer.burst)), None]),
        _ => return Vec::new(),
    };
    let on_wire = |len: u32| {
        let plain = Bytes(u64::from(len) + u64::from(pipe.overhead));
        pipe.framing.map_or(plain, |framing| framing.on_wire(len))
    };
    let (full, least) = (on_wire(ETHERNET + mtu), on_wire(FRAME_MIN));
    let below = depths.into_iter().flatten().filter(|(_, depth)| *depth < full);
    let text = |(key, depth): (&str, Bytes)| {
        let which = if depth < least { "every frame is" } else { "larger frames are" };
        format!(
            "the {key} of its {kind}, {depth}, is below a full frame of {full}: {which} dropped; write {key} = \"{full}\" or more"
        )
    };
    below.map(text).collect()
}

/// The links that close a ring of switches. They carry nothing: the tree is that of IEEE 802.1D
/// with equal costs, rooted at the first switch.
fn blocked(topology: &Topology) -> impl Iterator<Item = (LinkId, String)> {
    let is_switch = |id: NodeId| matches!(topology.node(id).kind, NodeKind::Switch);
    let mut reached = vec![false; topology.nodes.len()];
    let mut tree = BTreeSet::new();
    for root in (0..topology.nodes.len() as u32).map(NodeId).filter(|&id| is_switch(id)) {
        let mut waiting = VecDeque::from([root]);
        while let Some(node) = waiting.pop_front() {
            reached[node.0 as usize] = true;
            for interface in &topology.node(node).interfaces {
                let (far, _) = topology.peer(interface);
                if is_switch(far) && !std::mem::replace(&mut reached[far.0 as usize], true) {
                    tree.insert(interface.link);
                    waiting.push_back(far);
                }
            }
        }
    }
    let links = topology.links.iter().zip((0..).map(LinkId));
    let closing = links.filter(|(link, id)| {
        let between_switches = link.ends.iter().all(|(node, _)| is_switch(*node));
        between_switches && !tree.contains(id)
    });
    let closing: Vec<(LinkId, &str)> = closing.map(|(link, id)| (id, link.name.as_str())).collect();
    let first = closing.first().map(|(id, _)| {
        let names = several(closing.iter().map(|(_, name)| *name));
        let text = format!(
            "switches form a ring, and a spanning tree cuts it: {names} carry no frames; routers use all links"
        );
        (*id, text)
    });
    first.into_iter()
}

/// Whether a link of a router goes down although another way leads around it.
fn is_bypassed(topology: &Topology, link: LinkId) -> bool {
    let is_router = |(id, _): &(NodeId, usize)| topology.node(*id).kind.is_router();
    topology.link(link).ends.iter().any(is_router) && has_way_around(topology, link)
}

/// Whether the ends of a link are joined without it.
fn has_way_around(topology: &Topology, without: LinkId) -> bool {
    let [(from, _), (to, _)] = topology.link(without).ends;
    let mut reached = BTreeSet::from([from]);
    let mut waiting = VecDeque::from([from]);
    while let Some(node) = waiting.pop_front() {
        let interfaces = topology.node(node).interfaces.iter();
        for interface in interfaces.filter(|interface| interface.link != without) {
            let (far, _) = topology.peer(interface);
            // Hosts do not forward.
            let goes_on = far == to || !topology.node(far).kind.is_edge();
            if goes_on && reached.insert(far) {
                waiting.push_back(far);
            }
        }
    }
    reached.contains(&to)
}

/// Traffic from or to a host without an address, of which nothing can be sent.
fn without_address(topology: &Topology) -> impl Iterator<Item = (SpecPath, String)> {
    let has_address =
        |node: NodeId| topology.node(node).interfaces.iter().any(|interface| !interface.addresses.is_empty());
    let datagrams = topology.traffic.iter().map(|one| (one.place, &one.name, [one.from, one.to]));
    let transfers = topology.transfers.iter().map(|one| (one.place, &one.name, [one.from, one.to]));
    let bare = datagrams.chain(transfers).filter_map(move |(place, traffic, ends)| {
        let name = &topology.node(ends.into_iter().find(|node| !has_address(*node))?).name;
        let text = format!("traffic {traffic}: {name} has no IP address, so no packet is sent");
        Some((SpecPath::of("traffic", place), text))
    });
    bare.collect::<Vec<_>>().into_iter()
}

/// Rendezvous points of PIM that no node has. An author's own configuration may add addresses.
fn rendezvous_points(topology: &Topology) -> impl Iterator<Item = (SpecPath, String)> {
    let all = || topology.nodes.iter().flat_map(|node| &node.interfaces);
    let known: BTreeSet<IpAddr> =
        all().flat_map(|interface| &interface.addresses).map(|net| net.addr()).collect();
    let mut found = Vec::new();
    let mut has_config = false;
    for (index, node) in topology.nodes.iter().enumerate() {
        let NodeKind::KernelRouter { settings, .. } = &node.kind else { continue };
        let Some(daemon) = &settings.daemon else { continue };
        has_config |= daemon.config.is_some();
        let rp = daemon.protocols.get(&ProtocolKind::Pim).and_then(|pim| pim.rp);
        if let Some(rp) = rp.filter(|rp| !known.contains(&IpAddr::V4(*rp))) {
            let text = format!(
                "router {}: no node has the address {rp} of its rendezvous point, so no multicast group works",
                node.name
            );
            found.push((SpecPath::of("nodes", index), text));
        }
    }
    if has_config {
        found.clear();
    }
    found.into_iter()
}
