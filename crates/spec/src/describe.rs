//! From a topology back to a description with nothing left out: every name, address and value is
//! given. Resolving it again gives the same topology.

use crate::description::{
    Description, DirectionDescription, EventDescription, GroupDescription, LinkDescription, NodeDescription,
    NodeRole, OnLink, RuleSource, TrafficDescription, TrafficKind,
};
use crate::engine_settings::EngineSettings;
use crate::nat::NatDescription;
use crate::node_kind::{HostSetup, NodeKind};
use crate::pipe;
use crate::topology::{
    Direction, Event, Family, HostCommand, Interface, Link, LinkId, NatEvent, Node, Topology, TraceEvent,
    Track, Traffic, TransferTraffic,
};
use crate::trace::Timeline;
use crate::trace_source::{TraceDescription, TraceEnd};
use fastpath_link::PipeSpec;
use fastpath_traffic::ArrivalModel;
use fastpath_units::Time;

/// Returns the description of a topology, with nothing left out.
///
/// Values that no description can express are left out: values below zero in a table of jitter, as
/// tables of `tc` have them, and opportunities that no trace gives.
pub fn describe(topology: &Topology) -> Description {
    let mut group_of: Vec<Option<&str>> = vec![None; topology.links.len()];
    for group in &topology.groups {
        for link in &group.links {
            group_of[link.0 as usize] = Some(&group.name);
        }
    }
    let links = group_of.iter().enumerate();
    let groups = topology.groups.iter();
    Description {
        seed: topology.seed,
        family: topology.family,
        routing: topology.routing,
        nodes: topology.nodes.iter().map(|node| describe_node(topology, node)).collect(),
        links: links.map(|(id, group)| describe_link(topology, LinkId(id as u32), *group)).collect(),
        events: topology
            .events
            .iter()
            .map(|event| describe_event(topology, event))
            .chain(topology.trace_events.iter().map(|event| describe_trace_event(topology, *event)))
            .chain(topology.nat_events.iter().map(|event| describe_nat_event(topology, *event)))
            .chain(topology.commands.iter().map(|command| describe_command(topology, command)))
            .collect(),
        traffic: describe_all_traffic(topology),
        groups: groups
            .map(|group| GroupDescription { name: group.name.clone(), start: group.start })
            .collect(),
        engine: EngineSettings::default(),
    }
}

fn describe_traffic(topology: &Topology, traffic: &Traffic) -> TrafficDescription {
    let (kind, rate) = match traffic.model.arrivals {
        ArrivalModel::Constant(rate) => (TrafficKind::Constant, rate),
        ArrivalModel::Poisson(rate) => (TrafficKind::Poisson, rate),
        ArrivalModel::OnOff { rate, on, off } => (TrafficKind::OnOff { on, off }, rate),
    };
    let [from, to] = [traffic.from, traffic.to].map(|host| &topology.node(host).name);
    TrafficDescription {
        name: Some(traffic.name.clone()),
        rate: Some(rate),
        size: Some(traffic.model.size),
        start: traffic.start.since(Time::ZERO),
        stop: traffic.stop.map(|stop| stop.since(Time::ZERO)),
        port: Some(traffic.port),
        dscp: traffic.dscp,
        ..TrafficDescription::new(from, to, kind)
    }
}

/// Datagrams and transfers, in their order.
fn describe_all_traffic(topology: &Topology) -> Vec<TrafficDescription> {
    let datagrams = topology.traffic.iter().map(|one| (one.place, describe_traffic(topology, one)));
    let transfers = topology.transfers.iter().map(|one| (one.place, describe_transfer(topology, one)));
    let mut all: Vec<_> = datagrams.chain(transfers).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, described)| described).collect()
}

fn describe_transfer(topology: &Topology, traffic: &TransferTraffic) -> TrafficDescription {
    let [from, to] = [traffic.from, traffic.to].map(|host| &topology.node(host).name);
    TrafficDescription {
        name: Some(traffic.name.clone()),
        start: traffic.start.since(Time::ZERO),
        stop: traffic.stop.map(|stop| stop.since(Time::ZERO)),
        port: Some(traffic.port),
        dscp: traffic.dscp,
        ..TrafficDescription::new(from, to, TrafficKind::Transfer(traffic.model.clone()))
    }
}

fn describe_node(topology: &Topology, node: &Node) -> NodeDescription {
    let mut described = NodeDescription::new(role(&node.kind), &node.name);
    described.routes = node.kind.routes().to_vec();
    described.look = node.look.clone();
    described.host = node.kind.host_settings().cloned().unwrap_or_default();
    let HostSetup { sysctls, exec } = node.kind.setup().cloned().unwrap_or_default();
    (described.sysctls, described.exec) = (sysctls, exec);
    let has =
        |interface: &Interface, family| interface.addresses.iter().any(|a| Family::of(a.addr()) == family);
    let families =
        Family::ALL.into_iter().filter(|family| topology.family.is_none_or(|only| only == *family));
    let is_whole = |interface: &Interface| families.clone().all(|family| has(interface, family));
    described.assign = node.kind.is_switch() || node.interfaces.iter().all(is_whole);
    match &node.kind {
        NodeKind::Host { .. } => described.port = node.kind.port_name().cloned(),
        NodeKind::KernelRouter { settings, .. } => described.kernel = Some(settings.clone()),
        NodeKind::Nat { nat, .. } => {
            let link = |index: &usize| topology.link(node.interfaces[*index].link).name.clone();
            let inside = nat.inside.iter().map(link).collect();
            described.nat = NatDescription { inside, settings: nat.settings.clone() };
        }
        NodeKind::Uplink { uplink, .. } => described.uplink.clone_from(uplink),
        NodeKind::OpenFlow { rules, controllers, .. } => {
            described.rules = (!rules.is_empty()).then(|| RuleSource::Text(rules.clone()));
            described.controllers.clone_from(controllers);
        }
        NodeKind::Router { .. } | NodeKind::Switch => {}
    }
    if !node.kind.is_switch() {
        for interface in &node.interfaces {
            let link = || Some(topology.link(interface.link).name.clone());
            let addresses = interface.addresses.iter().map(|&value| OnLink { link: link(), value });
            described.addresses.extend(addresses);
            described.macs.extend(interface.mac.map(|value| OnLink { link: link(), value }));
        }
    }
    described
}

fn role(kind: &NodeKind) -> NodeRole {
    match kind {
        NodeKind::Host { .. } => NodeRole::Host,
        NodeKind::Router { .. } | NodeKind::KernelRouter { .. } => NodeRole::Router,
        NodeKind::Nat { .. } => NodeRole::Nat,
        NodeKind::Uplink { .. } => NodeRole::Uplink,
        NodeKind::Switch => NodeRole::Switch,
        NodeKind::OpenFlow { .. } => NodeRole::OpenFlow,
    }
}

fn describe_link(topology: &Topology, id: LinkId, group: Option<&str>) -> LinkDescription {
    let link = topology.link(id);
    let [(a, interface), (b, _)] = link.ends;
    let [forward, backward] = [0, 1].map(|end| describe_pipe(&link.pipes[end], topology.tracks_of(id, end)));
    LinkDescription {
        name: Some(link.name.clone()),
        mtu: Some(topology.node(a).interfaces[interface].mtu),
        interfaces: describe_interfaces(topology, link),
        group: group.map(str::to_owned),
        forward,
        backward,
        ..LinkDescription::new(&topology.node(a).name, &topology.node(b).name)
    }
}

/// The names of the interfaces of a link, where they are not the default.
fn describe_interfaces(topology: &Topology, link: &Link) -> [Option<String>; 2] {
    link.ends.map(|(node, index)| {
        let name = &topology.node(node).interfaces[index].name;
        (*name != format!("eth{index}")).then(|| name.clone())
    })
}

fn describe_pipe(pipe: &PipeSpec, tracks: &[Track]) -> DirectionDescription {
    let mut values = pipe::complete(pipe);
    // Values that opportunities replace for the whole run are refused; the resolver has cleared
    // them.
    let is_lasting =
        |track: &Track| track.end == TraceEnd::Repeat && matches!(track.timeline, Timeline::Opportunities(_));
    if tracks.iter().any(is_lasting) {
        values.rate = values.rate.filter(Option::is_some);
        values.overhead = values.overhead.filter(|bytes| *bytes > 0);
        values.slots = values.slots.filter(Option::is_some);
    }
    let described = |track: &Track| TraceDescription {
        source: track.source.clone(),
        end: track.end,
        offset: track.offset,
    };
    let traces: Vec<TraceDescription> = tracks.iter().map(described).collect();
    DirectionDescription { values, traces: (!traces.is_empty()).then_some(traces) }
}

fn describe_event(topology: &Topology, event: &Event) -> EventDescription {
    let direction = match event.direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
        Direction::Both => "both",
    };
    EventDescription {
        at: event.at.since(Time::ZERO),
        links: vec![topology.link(event.link).name.clone()],
        group: None,
        direction: Some(direction.to_owned()),
        values: event.change.clone(),
        ..EventDescription::default()
    }
}

fn describe_trace_event(topology: &Topology, event: TraceEvent) -> EventDescription {
    EventDescription {
        at: event.at.since(Time::ZERO),
        group: Some(topology.groups[event.group].name.clone()),
        traces: Some(event.action),
        ..EventDescription::default()
    }
}

fn describe_nat_event(topology: &Topology, event: NatEvent) -> EventDescription {
    EventDescription {
        at: event.at.since(Time::ZERO),
        nat: Some(topology.node(event.nat).name.clone()),
        rebind: Some(event.rebinding),
        every: event.every,
        ..EventDescription::default()
    }
}

fn describe_command(topology: &Topology, command: &HostCommand) -> EventDescription {
    EventDescription {
        at: command.at.since(Time::ZERO),
        host: Some(topology.node(command.host).name.clone()),
        exec: Some(command.command.clone()),
        ..EventDescription::default()
    }
}
