//! Traffic: its hosts, its rate, the link that a load is a share of, and links that cannot carry
//! it.

use super::{InvalidValue, Resolver, nearest_or};
use crate::description::{TrafficDescription, TrafficKind};
use crate::mistake::Code;
use crate::name::is_name;
use crate::node_kind::NodeKind;
use crate::path::SpecPath;
use crate::topology::{Family, LinkId, NodeId, Topology, Traffic, TransferTraffic};
use fastpath_link::PipeSpec;
use fastpath_traffic::{ArrivalModel, QUIC_DATAGRAM_MIN, SourceModel, TransferProtocol, VOICE};
use fastpath_units::{Probability, Rate, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The first UDP port of traffic that names none, as in iperf(1).
const PORT: u16 = 5001;
const ETHERNET: u32 = 14;
const UDP: u32 = 8;
/// In a load: the link on the way with the lowest rate.
const BOTTLENECK: &str = "bottleneck";

/// The key that is wrong, what is wrong, and what to write.
type Wrong = (&'static str, String, String);

/// A direction of a link, as its link and the end at which it begins.
type PipeAt = (LinkId, usize);

impl Resolver<'_> {
    pub(super) fn traffic(&mut self) {
        let (mut names, mut ports) = (BTreeSet::new(), BTreeMap::new());
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
            // The receiver tells flows by their ports.
            let port =
                traffic.port.unwrap_or_else(|| PORT.saturating_add(index.min(usize::from(u16::MAX)) as u16));
            if let Some(other) = ports.insert((to, port), name.clone()) {
                let what = format!("{} receives {other} at port {port} too", traffic.to);
                self.mistake(path("port"), what, "write another port");
            }
            if let TrafficKind::Transfer(model) = &traffic.kind {
                let model = model.clone();
                let (start, stop) = times(traffic);
                let (place, dscp) = (index, traffic.dscp);
                let transfer = TransferTraffic { place, name, from, to, model, start, stop, port, dscp };
                self.refuse_small_mtu(&transfer, path("kind"));
                self.topology.transfers.push(transfer);
                continue;
            }
            match self.model(traffic, from, to) {
                Ok(model) => self.topology.traffic.push(Traffic {
                    place: index,
                    name,
                    from,
                    to,
                    model,
                    start: Time::ZERO + traffic.start,
                    stop: traffic.stop.map(|stop| Time::ZERO + stop),
                    port,
                    dscp: traffic.dscp,
                }),
                Err((key, what, instead)) => {
                    self.mistakes.push(InvalidValue { path: path(key), what, instead });
                }
            }
        }
        self.overloads();
    }

    /// A path of QUIC carries datagrams of 1200 bytes (RFC 9000 §14).
    fn refuse_small_mtu(&mut self, transfer: &TransferTraffic, path: SpecPath) {
        if transfer.model.protocol != TransferProtocol::Quic {
            return;
        }
        let least = QUIC_DATAGRAM_MIN + UDP + self.ip_header();
        let nodes = [transfer.from, transfer.to].map(|id| self.topology.node(id));
        let mtus = nodes.iter().flat_map(|node| node.interfaces.iter().map(|one| (one.mtu, &node.name)));
        if let Some((mtu, host)) = mtus.min().filter(|(mtu, _)| *mtu < least) {
            let what = format!("QUIC needs an MTU of {least}, and a link of {host} has {mtu}");
            self.mistake(path, what, format!("write mtu = {least} or more at that link, or kind = \"tcp\""));
        }
    }

    /// Warns of the directions of links to which traffic offers more than their rate, each once.
    fn overloads(&mut self) {
        // By direction: when how many bits per second are added or end, and whose they are.
        let mut loads: BTreeMap<PipeAt, Vec<(Time, f64, usize)>> = BTreeMap::new();
        for traffic in &self.topology.traffic {
            let (index, size) = (traffic.place, traffic.model.size);
            for (link, end) in way(&self.topology, traffic.from, traffic.to) {
                let pipe = &self.topology.link(link).pipes[end];
                let wire = self.on_the_wire(size, pipe);
                let bps = traffic.model.mean_bps() * f64::from(wire) / f64::from(size);
                let load = loads.entry((link, end)).or_default();
                load.push((traffic.start, bps, index));
                load.extend(traffic.stop.map(|stop| (stop, -bps, index)));
            }
        }
        let mut notices = Vec::new();
        for ((link, end), mut load) in loads {
            let link = self.topology.link(link);
            let Some(rate) = link.pipes[end].rate else { continue };
            // What ends at a time ends before what begins.
            load.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let mut offered = 0.0;
            let beyond = load.into_iter().find(|(_, bps, _)| {
                offered += bps;
                offered > rate.as_bps() as f64 * 1.000_001
            });
            if let Some((at, _, index)) = beyond {
                let offered = offered.round() as u64;
                let offered = Rate::from_bps(offered).map_or_else(String::new, |offered| offered.to_string());
                let what = format!(
                    "traffic offers {offered} to {} from {}, headers included, and its rate is {rate}: packets are lost",
                    link.name,
                    at.since(Time::ZERO),
                );
                notices.push((SpecPath::of("traffic", index), what));
            }
        }
        notices.into_iter().for_each(|(path, what)| self.warn(Code::Unexpected, path, what));
    }

    /// Returns the bytes on a link of a packet with this payload.
    fn on_the_wire(&self, size: u32, pipe: &PipeSpec) -> u32 {
        size + UDP + self.ip_header() + ETHERNET + pipe.overhead
    }

    fn host_named(&mut self, path: SpecPath, name: &str) -> Option<NodeId> {
        let found = self.node_ids.get(name).copied();
        let is_host = |id: NodeId| {
            // The namespace of a kernel router sends as a host does.
            matches!(self.topology.node(id).kind, NodeKind::Host { .. } | NodeKind::KernelRouter { .. })
        };
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

    /// Returns the model of traffic.
    fn model(&self, traffic: &TrafficDescription, from: NodeId, to: NodeId) -> Result<SourceModel, Wrong> {
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
            (None, Some((share, link))) => self.rate_of_load((*share, link), size, (from, to))?,
            (None, None) => {
                return wrong(
                    "from",
                    "traffic has no rate",
                    "write rate = \"2Mbit\", or load = \"80% of a-b\"",
                );
            }
        };
        let arrivals = match &traffic.kind {
            TrafficKind::Constant | TrafficKind::Voice | TrafficKind::Transfer(_) => {
                ArrivalModel::Constant(rate)
            }
            TrafficKind::Poisson => ArrivalModel::Poisson(rate),
            // A load is the mean over on and off periods.
            &TrafficKind::OnOff { on, off } => {
                let unit = SourceModel { arrivals: ArrivalModel::OnOff { rate, on, off }, size };
                let share = unit.mean_bps() / rate.as_bps() as f64;
                let rate = match traffic.load {
                    Some(_) => Rate::from_bps((rate.as_bps() as f64 / share).round() as u64).unwrap_or(rate),
                    None => rate,
                };
                ArrivalModel::OnOff { rate, on, off }
            }
        };
        Ok(SourceModel { arrivals, size })
    }

    /// Returns the rate of payload that is this share of a link between two hosts.
    fn rate_of_load(
        &self,
        (share, name): (Probability, &str),
        size: u32,
        (from, to): (NodeId, NodeId),
    ) -> Result<Rate, Wrong> {
        let way = way(&self.topology, from, to);
        let rate_of = |&(link, end): &PipeAt| self.topology.link(link).pipes[end].rate;
        let pipe = match self.link_ids.get(name) {
            Some(wanted) => way.iter().find(|(link, _)| link == wanted).copied(),
            None if name == BOTTLENECK => {
                way.iter().filter(|at| rate_of(at).is_some()).min_by_key(|at| rate_of(at)).copied()
            }
            None => {
                let known = self.link_ids.keys().map(String::as_str).chain([BOTTLENECK]);
                let known: Vec<String> = known.map(|name| format!("{share} of {name}")).collect();
                let otherwise = "write the name of a link, by default its ends: \"80% of a-b\"";
                let instead =
                    nearest_or(&format!("{share} of {name}"), known.iter().map(String::as_str), otherwise);
                return Err(("load", format!("there is no link '{name}'"), instead));
            }
        };
        let Some((link, end)) = pipe else {
            let what = match name {
                BOTTLENECK => "no link on the way has a rate".to_owned(),
                name => format!("{name} is not on the way"),
            };
            return Err(("load", what, "write a link between the two hosts, or rate = \"2Mbit\"".to_owned()));
        };
        let pipe = &self.topology.link(link).pipes[end];
        let Some(link_rate) = pipe.rate else {
            let what = format!("{name} has no constant rate");
            return Err(("load", what, "write rate = \"2Mbit\" in place of load".to_owned()));
        };
        let wire = self.on_the_wire(size, pipe);
        let payload = share.get() * link_rate.as_bps() as f64 * f64::from(size) / f64::from(wire);
        Ok(Rate::from_bps(payload.round() as u64).unwrap_or(link_rate))
    }

    fn ip_header(&self) -> u32 {
        if self.description.family == Some(Family::V6) { 40 } else { 20 }
    }
}

/// When traffic starts and stops.
fn times(traffic: &TrafficDescription) -> (Time, Option<Time>) {
    (Time::ZERO + traffic.start, traffic.stop.map(|stop| Time::ZERO + stop))
}

fn free_name(taken: &BTreeSet<String>, wanted: &str) -> String {
    let others = (2..).map(|number| format!("{wanted}-{number}"));
    let mut candidates = std::iter::once(wanted.to_owned()).chain(others);
    candidates.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Returns the directions of links that packets between two hosts cross, on the path with the
/// fewest links, the last first. Other hosts do not forward.
fn way(topology: &Topology, from: NodeId, to: NodeId) -> Vec<PipeAt> {
    // By node: the link and the end of it from which packets come.
    let mut came: Vec<Option<PipeAt>> = vec![None; topology.nodes.len()];
    let mut waiting = VecDeque::from([from]);
    while let Some(at) = waiting.pop_front() {
        let node = topology.node(at);
        if matches!(node.kind, NodeKind::Host { .. }) && at != from {
            continue;
        }
        for interface in &node.interfaces {
            let (next, _) = topology.peer(interface);
            if next != from && came[next.0 as usize].is_none() {
                came[next.0 as usize] = Some((interface.link, interface.end));
                waiting.push_back(next);
            }
        }
    }
    let step = |&(link, end): &PipeAt| came[topology.link(link).ends[end].0.0 as usize];
    std::iter::successors(came[to.0 as usize], step).collect()
}
