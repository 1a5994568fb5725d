//! Traffic: its hosts, its rate, and the link that a load is a share of.

use super::{InvalidValue, Resolver, is_name, nearest_or};
use crate::description::{TrafficDescription, TrafficKind};
use crate::path::SpecPath;
use crate::topology::{Family, LinkId, NodeId, NodeKind, Topology, Traffic};
use fastpath_link::PipeSpec;
use fastpath_traffic::{Arrivals, Model, VOICE};
use fastpath_units::{Rate, Time};
use std::collections::{BTreeSet, VecDeque};

/// The first UDP port of traffic that names none, as of iperf(1).
const PORT: u16 = 5001;
const ETHERNET: u32 = 14;
const UDP: u32 = 8;

impl Resolver<'_> {
    pub(super) fn traffic(&mut self) {
        let mut names = BTreeSet::new();
        for (index, traffic) in self.description.traffic.iter().enumerate() {
            let path = |key: &str| SpecPath::of("traffic", index).key(key);
            let (from, to) = (&traffic.from, &traffic.to);
            let ends = [(from, "from"), (to, "to")].map(|(name, key)| self.host_named(path(key), name));
            let name = match &traffic.name {
                Some(name) => name.clone(),
                None => free_name(&names, &format!("{from}-{to}")),
            };
            if !is_name(&name) || !names.insert(name.clone()) {
                let what = format!("'{}' cannot be the name of this traffic", name.escape_debug());
                self.mistake(path("name"), what, "write another name: letters, digits, '_', '-', '.'");
            }
            let [Some(from), Some(to)] = ends else { continue };
            if from == to {
                self.mistake(path("to"), "traffic goes to the host that sends it", "write another host");
                continue;
            }
            if traffic.stop.is_some_and(|stop| stop <= traffic.start) {
                self.mistake(path("stop"), "traffic stops before it starts", "write a later time");
            }
            match self.model(traffic, from, to) {
                Ok(model) => self.topology.traffic.push(Traffic {
                    name,
                    from,
                    to,
                    model,
                    start: Time::ZERO + traffic.start,
                    stop: traffic.stop.map(|stop| Time::ZERO + stop),
                    port: traffic.port.unwrap_or(PORT.saturating_add(index as u16)),
                    dscp: traffic.dscp,
                }),
                Err((key, what, instead)) => {
                    self.mistakes.push(InvalidValue { path: path(key), what, instead });
                }
            }
        }
    }

    fn host_named(&mut self, path: SpecPath, name: &str) -> Option<NodeId> {
        let found = self.node_ids.get(name).copied();
        let is_host = |id: NodeId| matches!(self.topology.node(id).kind, NodeKind::Host { .. });
        let Some(id) = found.filter(|id| is_host(*id)) else {
            let what = match found {
                Some(_) => format!("{name} is not a host, and traffic is between hosts"),
                None => format!("there is no host '{name}'"),
            };
            let hosts = self.topology.hosts().map(|(_, node)| node.name.as_str());
            let instead = nearest_or(name, hosts, "write the name of a host");
            if !name.is_empty() {
                self.mistake(path, what, instead);
            }
            return None;
        };
        Some(id)
    }

    /// The model of traffic, or the key that is wrong, what is wrong, and what to write.
    fn model(
        &self,
        traffic: &TrafficDescription,
        from: NodeId,
        to: NodeId,
    ) -> Result<Model, (&'static str, String, String)> {
        let wrong = |key, what: &str, instead: &str| Err((key, what.to_owned(), instead.to_owned()));
        let is_given = traffic.rate.is_some() || traffic.load.is_some();
        if let TrafficKind::Voice = traffic.kind {
            return match is_given || traffic.size.is_some() {
                true => {
                    wrong("kind", "voice has a rate and a size of its own", "leave rate, load and size out")
                }
                false => Ok(VOICE),
            };
        }
        let size = traffic.size_or_default();
        let mtu = self.topology.node(from).interfaces.iter().map(|interface| interface.mtu).min();
        let most = mtu.unwrap_or(u32::MAX).saturating_sub(self.ip_header() + UDP);
        if size > most {
            let what = format!("a packet of {size} bytes does not fit into the MTU of its sender");
            return Err(("size", what, format!("write at most {most}")));
        }
        let rate = match (traffic.rate, &traffic.load) {
            (Some(rate), _) => rate,
            (None, Some((share, link))) => {
                let Some(&link) = self.link_ids.get(link) else {
                    let known = self.link_ids.keys().map(|name| format!("{} of {name}", share));
                    let known: Vec<String> = known.collect();
                    let wanted = format!("{share} of {link}");
                    let otherwise = "write the name of a link, by default its ends: \"80% of a-b\"";
                    let instead = nearest_or(&wanted, known.iter().map(String::as_str), otherwise);
                    return Err(("load", format!("there is no link '{link}'"), instead));
                };
                let Some(pipe) = pipe_on_the_way(&self.topology, from, to, link) else {
                    let what = format!("{} is not on the way", self.topology.link(link).name);
                    return Err(("load", what, "write a link between the two hosts".to_owned()));
                };
                let Some(link_rate) = pipe.rate else {
                    let what = format!("{} has no constant rate", self.topology.link(link).name);
                    return Err(("load", what, "write rate = \"2Mbit\" in place of load".to_owned()));
                };
                let wire = size + UDP + self.ip_header() + ETHERNET + pipe.overhead;
                let payload = share.get() * link_rate.as_bps() as f64 * f64::from(size) / f64::from(wire);
                Rate::from_bps(payload.round() as u64).unwrap_or(link_rate)
            }
            (None, None) => {
                return wrong(
                    "from",
                    "traffic has no rate",
                    "write rate = \"2Mbit\", or load = \"80% of a-b\"",
                );
            }
        };
        let arrivals = match traffic.kind {
            TrafficKind::Constant | TrafficKind::Voice => Arrivals::Constant(rate),
            TrafficKind::Poisson => Arrivals::Poisson(rate),
            // A load is the mean over on and off periods.
            TrafficKind::OnOff { on, off } => {
                let unit = Model { arrivals: Arrivals::OnOff { rate, on, off }, size };
                let share = unit.mean_bps() / rate.as_bps() as f64;
                let rate = match traffic.load {
                    Some(_) => Rate::from_bps((rate.as_bps() as f64 / share).round() as u64).unwrap_or(rate),
                    None => rate,
                };
                Arrivals::OnOff { rate, on, off }
            }
        };
        Ok(Model { arrivals, size })
    }

    fn ip_header(&self) -> u32 {
        if self.description.family == Some(Family::V6) { 40 } else { 20 }
    }
}

fn free_name(taken: &BTreeSet<String>, wanted: &str) -> String {
    let others = (2..).map(|number| format!("{wanted}-{number}"));
    let mut candidates = std::iter::once(wanted.to_owned()).chain(others);
    candidates.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// The direction of a link that packets between two hosts cross, if the path with the fewest links
/// leads over it. Other hosts do not forward.
fn pipe_on_the_way(topology: &Topology, from: NodeId, to: NodeId, wanted: LinkId) -> Option<&PipeSpec> {
    // By node: the link and the direction of it that lead there.
    let mut came: Vec<Option<(LinkId, usize)>> = vec![None; topology.nodes.len()];
    let mut waiting = VecDeque::from([from]);
    while let Some(at) = waiting.pop_front() {
        let is_host = matches!(topology.node(at).kind, NodeKind::Host { .. });
        if is_host && at != from {
            continue;
        }
        for interface in &topology.node(at).interfaces {
            let (next, _) = topology.peer(interface);
            if next != from && came[next.0 as usize].is_none() {
                came[next.0 as usize] = Some((interface.link, interface.end));
                waiting.push_back(next);
            }
        }
    }
    let mut at = to;
    while let Some((link, end)) = came[at.0 as usize] {
        if link == wanted {
            return Some(&topology.link(link).pipes[end]);
        }
        at = topology.link(link).ends[end].0;
    }
    None
}
