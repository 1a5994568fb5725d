//! From the objects of a script to a description.

use crate::ns_queue::{NsQueue, QueueParameter};
use crate::simulator::{Act, LinkEnd, Pipe, ScriptLink, Simulator};
use crate::{flows, programs};
use fastpath_link::{Change, LinkState, LossSpec, QueueSpec};
use fastpath_spec::{
    Built, Description, DirectionDescription, EventDescription, KernelRouter, LinkDescription, LinkNames,
    NodeDescription, NodeRole, OnLink, SpecPath, is_name,
};
use fastpath_text::mistake::{Code, Remarks, several};
use fastpath_units::{Probability, Time};
use ipnet::{IpNet, Ipv4Net};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the description of the objects of a script. Mistakes and warnings go to the remarks.
pub(crate) fn build(simulator: &Simulator, remarks: &mut Remarks) -> Built {
    let mut built = Built::default();
    if simulator.nodes.is_empty() {
        remarks.mistake(0, "the script makes no nodes", "write set n0 [$ns node]");
        return built;
    }
    if !simulator.ran {
        remarks.warn(Code::Unused, 0, "the script has no '$ns run'");
    }
    built.description.routing.is_dynamic = simulator.has_dynamic_routes;
    warn_of_unused(simulator, remarks);
    add_nodes(simulator, &mut built, remarks);
    add_links(simulator, &mut built, remarks);
    add_events(simulator, &mut built);
    add_commands(simulator, &mut built);
    let names: Vec<String> = built.description.nodes.iter().map(|node| node.name.clone()).collect();
    for (traffic, at) in flows::traffic(simulator, &names, remarks) {
        built.place(SpecPath::of("traffic", built.description.traffic.len()), at);
        built.description.traffic.push(traffic);
    }
    built
}

/// Warns of events that nothing starts, and of parameters that a queue does not have.
fn warn_of_unused(simulator: &Simulator, remarks: &mut Remarks) {
    for list in simulator.lists.iter().filter(|list| !list.is_started) {
        let name = simulator.name(list.made).unwrap_or("timeline");
        let events = list.events.iter().map(|event| event.place);
        let what =
            format!("{name} is never started: its events do not happen; write $ns at 0 \"${name} start\"");
        std::iter::once(list.made.at)
            .chain(events)
            .for_each(|place| remarks.warn(Code::Unused, place, what.clone()));
    }
    for group in simulator.groups.iter().filter(|group| !group.is_used) {
        let name = simulator.name(group.made).unwrap_or("the group");
        remarks.warn(Code::Unused, group.made.at, format!("{name} has no events"));
    }
    for program in simulator.programs.iter().filter(|program| !program.is_used) {
        if let Some(made) = program.made {
            let name = simulator.name(made).unwrap_or("the program");
            remarks.warn(
                Code::Unused,
                made.at,
                format!("{name} is never started; write $ns at 0 \"${name} start\""),
            );
        }
    }
    for model in simulator.error_models.iter().filter(|model| model.links.is_empty()) {
        let name = simulator.name(model.made).unwrap_or("the ErrorModel");
        let what = format!("{name} is on no link; write $ns lossmodel ${name} $n0 $n1");
        remarks.warn(Code::Unused, model.made.at, what);
    }
    for value in simulator.class_values.iter().filter(|value| !value.is_used) {
        let what =
            format!("{} of {} is ignored: no object of this class is made after it", value.key, value.class);
        remarks.warn(Code::Unused, value.place, what);
    }
    let becomes_red = |link: usize| {
        let reds = simulator.events.iter().filter(|event| event.link == link);
        reds.into_iter().any(|event| event.act == Act::Queue(QueueParameter::Red(true)))
    };
    for setting in &simulator.red_settings {
        let pipes = simulator.links[setting.link].pipes.iter().zip(setting.ends);
        let is_red = pipes
            .filter(|(_, marked)| *marked)
            .any(|(pipe, _)| pipe.as_ref().is_some_and(|pipe| pipe.queue.red));
        if !is_red && !becomes_red(setting.link) {
            remarks.warn(
                Code::Ignored,
                setting.place,
                format!("{} is ignored: the queue is not RED", setting.name),
            );
        }
    }
}

fn add_nodes(simulator: &Simulator, built: &mut Built, remarks: &mut Remarks) {
    let mut neighbours: Vec<BTreeSet<LinkEnd>> = vec![BTreeSet::new(); simulator.nodes.len()];
    for link in &simulator.links {
        for (end, other) in [(0, 1), (1, 0)] {
            if let LinkEnd::Node(node) = link.ends[end] {
                neighbours[node].insert(link.ends[other]);
            }
        }
    }
    let commands = simulator.commands.iter();
    let mut runs: BTreeSet<usize> = commands.filter_map(|command| simulator.node_of(&command.what)).collect();
    let why_kernel = if runs.is_empty() { " and traffic" } else { " and programs" };
    runs.extend(flows::nodes(simulator));
    let all_hosts = runs.is_empty() && neighbours.iter().all(|neighbours| neighbours.len() > 1);
    let (mut routers, mut kernel_routers) = (Vec::new(), Vec::new());
    for (index, made) in simulator.nodes.iter().enumerate() {
        // Emulab's own names for what no variable holds.
        let name = simulator.name(*made).map_or_else(|| format!("tbnode-n{}", index + 1), str::to_owned);
        let kind = match neighbours[index].len() {
            2.. if !all_hosts => NodeRole::Router,
            _ => NodeRole::Host,
        };
        let mut node = NodeDescription::new(kind, name);
        if kind == NodeRole::Router {
            let is_kernel = runs.contains(&index);
            node.kernel = is_kernel.then(KernelRouter::default);
            if is_kernel { &mut kernel_routers } else { &mut routers }.push(node.name.clone());
        }
        add_node(built, node, made.at, remarks);
    }
    let first = simulator.nodes[0].at;
    if all_hosts {
        remarks.warn(
            Code::Different,
            first,
            "every node has several neighbours, so all nodes are hosts and none forwards packets",
        );
    }
    let kinds = [("routers", routers, ""), ("kernel routers", kernel_routers, why_kernel)];
    for (what, names, why) in kinds.iter().filter(|(_, names, _)| !names.is_empty()) {
        let names = several(names.iter().map(String::as_str));
        let text =
            format!("{what}, because they have several neighbours{why}: {names}; the other nodes are hosts");
        remarks.warn(Code::Default, first, text);
    }
    for (index, lan) in simulator.lans.iter().enumerate() {
        let name = simulator.name(lan.made).map_or_else(|| format!("tblan-lan{}", index + 1), str::to_owned);
        add_node(built, NodeDescription::new(NodeRole::Switch, name), lan.made.at, remarks);
    }
}

fn add_node(built: &mut Built, node: NodeDescription, at: usize, remarks: &mut Remarks) {
    if !is_name(&node.name) {
        let what = format!("'{}' cannot be the name of a node", node.name.escape_debug());
        remarks.mistake(at, what, "write a variable of up to 32 letters and digits");
    }
    built.add_node(node, at);
}

fn add_links(simulator: &Simulator, built: &mut Built, remarks: &mut Remarks) {
    let given = simulator.links.iter().filter_map(|link| simulator.name(link.made?));
    let mut names = LinkNames::reserving(given);
    let alone = links_without_subnets(simulator);
    if let Some(&first) = alone.first() {
        let what = "the addresses of a link are of several subnets, or of the subnet of another link: each \
                    has a route of its own";
        remarks.warn(Code::Different, simulator.links[first].at, what);
    }
    for (index, link) in simulator.links.iter().enumerate() {
        let nodes = link.ends.map(|end| match end {
            LinkEnd::Node(node) => node,
            LinkEnd::Lan(lan) => simulator.nodes.len() + lan,
        });
        let [a, b] = nodes.map(|node| built.description.nodes[node].name.clone());
        let name = match link.made.and_then(|made| simulator.name(made)) {
            Some(name) => name.to_owned(),
            None => names.name(&a, &b),
        };
        if link.pipes.iter().any(Option::is_none) {
            remarks.warn(Code::Different, link.at, format!("{name} is one way: nothing comes back over it"));
        }
        check_queues(link, remarks);
        for (node, address) in nodes.into_iter().zip(link.addresses) {
            let Some((address, at)) = address else { continue };
            let length = if alone.contains(&index) { 32 } else { link.prefix_length };
            let net = Ipv4Net::new(address, length).expect("a length of at most 32");
            // A node has one address on a link.
            built.place(SpecPath::of("nodes", node).key("addresses").key(&name), at);
            let given = OnLink { link: Some(name.clone()), value: IpNet::V4(net) };
            built.description.nodes[node].addresses.push(given);
        }
        let [forward, backward] = link.pipes.each_ref().map(direction);
        let described = LinkDescription { name: Some(name), forward, backward, ..LinkDescription::new(a, b) };
        built.add_link(described, link.at);
    }
}

/// Returns the links on which the given addresses are of several subnets, or of a subnet that is on
/// other links too. The links of a lan are one.
fn links_without_subnets(simulator: &Simulator) -> BTreeSet<usize> {
    let segment = |index: usize| match simulator.links[index].ends[1] {
        LinkEnd::Lan(lan) => simulator.lans[lan].links.first().copied().unwrap_or(index),
        LinkEnd::Node(_) => index,
    };
    // The subnets of each segment, and the segments of each subnet.
    let mut subnets: BTreeMap<usize, BTreeSet<Ipv4Net>> = BTreeMap::new();
    let mut segments: BTreeMap<Ipv4Net, BTreeSet<usize>> = BTreeMap::new();
    for (index, link) in simulator.links.iter().enumerate() {
        for (address, _) in link.addresses.iter().flatten() {
            let net = Ipv4Net::new(*address, link.prefix_length).expect("a length of at most 31").trunc();
            subnets.entry(segment(index)).or_default().insert(net);
            segments.entry(net).or_default().insert(segment(index));
        }
    }
    let has_none = |place: &usize| {
        let own = subnets.get(place).into_iter().flatten();
        own.clone().count() > 1 || own.into_iter().any(|net| segments.get(net).is_some_and(|on| on.len() > 1))
    };
    (0..simulator.links.len()).filter(|&index| has_none(&segment(index))).collect()
}

fn check_queues(link: &ScriptLink, remarks: &mut Remarks) {
    for queue in link.pipes.iter().flatten().map(|pipe| &pipe.queue).filter(|queue| queue.red) {
        // ns-2 has a step at equal thresholds.
        if queue.min == queue.max {
            let what =
                format!("thresh_ and maxthresh_ are {}: maxthresh_ is {} here", queue.min, queue.min + 1);
            remarks.warn(Code::Different, link.at, what);
        }
        if queue.min > queue.max {
            let what = format!("thresh_ {} is above maxthresh_ {}", queue.min, queue.max);
            remarks.mistake(link.at, what, "write $queue set maxthresh_ with a larger number");
        }
    }
}

/// Returns the values of a direction. One that the script did not create loses every packet.
fn direction(pipe: &Option<Pipe>) -> DirectionDescription {
    let values = match pipe {
        Some(Pipe { rate, delay, loss, queue }) => Change {
            rate: Some(*rate),
            delay: Some(*delay),
            loss: Some(LossSpec::from(*loss)),
            queue: Some(valid(queue)),
            ..Change::default()
        },
        None => Change { loss: Some(LossSpec::Uniform(Probability::ALWAYS)), ..Change::default() },
    };
    DirectionDescription { values, traces: None }
}

/// Adds the events in the order of time. Equal changes of both directions are one event.
fn add_events(simulator: &Simulator, built: &mut Built) {
    // The queues after the events so far.
    let queue = |pipe: &Option<Pipe>| pipe.as_ref().map(|pipe| pipe.queue.clone());
    let mut queues: Vec<[Option<NsQueue>; 2]> =
        simulator.links.iter().map(|link| link.pipes.each_ref().map(queue)).collect();
    let mut sorted: Vec<_> = simulator.events.iter().collect();
    sorted.sort_by_key(|event| event.at);
    for event in sorted {
        let mut changes: [Option<Change>; 2] = [None, None];
        for (end, queue) in queues[event.link].iter_mut().enumerate() {
            if let Some(queue) = queue.as_mut().filter(|_| event.ends[end]) {
                changes[end] = Some(change(queue, &event.act));
            }
        }
        let Description { links, events, .. } = &mut built.description;
        let mut push = |direction: Option<&str>, values| {
            events.push(EventDescription {
                at: event.at.since(Time::ZERO),
                links: links[event.link].name.iter().cloned().collect(),
                group: None,
                direction: direction.map(str::to_owned),
                values,
                ..EventDescription::default()
            });
        };
        match changes {
            [Some(forward), Some(backward)] if forward == backward => push(None, forward),
            [forward, backward] => {
                forward.into_iter().for_each(|values| push(Some("forward"), values));
                backward.into_iter().for_each(|values| push(Some("backward"), values));
            }
        }
    }
}

/// Adds the start commands, and the events of programs.
fn add_commands(simulator: &Simulator, built: &mut Built) {
    for (at, node, line) in programs::lines(simulator) {
        let host = Some(built.description.nodes[node].name.clone());
        let at = at.since(Time::ZERO);
        built.description.events.push(EventDescription {
            at,
            host,
            exec: Some(line),
            ..EventDescription::default()
        });
    }
}

fn change(queue: &mut NsQueue, act: &Act) -> Change {
    let mut change = Change::default();
    match act {
        Act::Rate(rate) => change.rate = Some(*rate),
        Act::Delay(delay) => change.delay = Some(*delay),
        Act::Queue(parameter) => {
            queue.set(*parameter);
            change.queue = Some(valid(queue));
        }
        Act::Loss(loss) => change.loss = Some((*loss).into()),
        Act::Up => change.state = Some(LinkState::Up),
        Act::Down => change.state = Some(LinkState::Down),
    }
    change
}

/// Returns a valid queue: between two events at one time the thresholds of RED may be reversed, and
/// they may be equal.
fn valid(queue: &NsQueue) -> QueueSpec {
    NsQueue { max: queue.max.max(queue.min.saturating_add(1)), ..queue.clone() }.spec()
}
