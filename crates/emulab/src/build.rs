//! From what a script has made to a topology.

use crate::simulator::{Act, End, Link, Pipe, Queue, Simulator};
use fastpath_link::{Change, LinkState, LossSpec, PipeSpec, QueueSpec};
use fastpath_spec as spec;
use fastpath_spec::address;
use fastpath_spec::mistake::{Remarks, several};
use fastpath_spec::{Direction, Event, LinkId, NodeId, NodeKind, Topology};
use fastpath_units::Probability;
use ipnet::{IpNet, Ipv4Net};
use std::collections::BTreeSet;

/// The topology of a script without mistakes; what does not fit together goes to the remarks.
pub(crate) fn build(simulator: &Simulator, remarks: &mut Remarks) -> Topology {
    let mut topology = Topology::default();
    if simulator.nodes.is_empty() {
        remarks.mistake(0, "the script makes no nodes", "write set n0 [$ns node]");
        return topology;
    }
    if !simulator.ran {
        remarks.warn(0, "the script has no '$ns run'");
    }
    add_nodes(simulator, &mut topology, remarks);
    add_links(simulator, &mut topology, remarks);
    topology.events = events(simulator);
    if remarks.is_clean() {
        for (node, index, error) in address::assign(&mut topology) {
            let link = &simulator.links[topology.node(node).interfaces[index].link.0 as usize];
            let end = topology.node(node).interfaces[index].end;
            let at = link.addresses[end].map_or(link.at, |(_, at)| at);
            remarks.mistake(at, error.to_string(), error.instead());
        }
    }
    topology
}

fn add_nodes(simulator: &Simulator, topology: &mut Topology, remarks: &mut Remarks) {
    let mut neighbours: Vec<BTreeSet<End>> = vec![BTreeSet::new(); simulator.nodes.len()];
    for link in &simulator.links {
        for (end, other) in [(0, 1), (1, 0)] {
            if let End::Node(node) = link.ends[end] {
                neighbours[node].insert(link.ends[other]);
            }
        }
    }
    let all_hosts = neighbours.iter().all(|neighbours| neighbours.len() > 1);
    let mut routers = Vec::new();
    for (index, made) in simulator.nodes.iter().enumerate() {
        // Emulab's own names for what no variable holds.
        let name = simulator.name(*made).map_or_else(|| format!("tbnode-n{}", index + 1), str::to_owned);
        check_name(&name, made.at, remarks);
        if neighbours[index].is_empty() {
            remarks.warn(made.at, format!("{name} has no link"));
        }
        let kind = match neighbours[index].len() {
            2.. if !all_hosts => NodeKind::Router,
            _ => NodeKind::Host { port: None },
        };
        if kind == NodeKind::Router {
            routers.push(name.clone());
        }
        topology.add_node(name, kind);
    }
    let first = simulator.nodes[0].at;
    if all_hosts {
        remarks
            .warn(first, "every node has several neighbours, so all are hosts and none forwards for others");
    } else if !routers.is_empty() {
        let text = format!(
            "routers, because they have several neighbours: {}; the other nodes are hosts",
            several(routers.iter().map(String::as_str))
        );
        remarks.warn(first, text);
    }
    for (index, lan) in simulator.lans.iter().enumerate() {
        let name = simulator.name(lan.made).map_or_else(|| format!("tblan-lan{}", index + 1), str::to_owned);
        check_name(&name, lan.made.at, remarks);
        topology.add_node(name, NodeKind::Switch);
    }
}

fn check_name(name: &str, at: usize, remarks: &mut Remarks) {
    if !spec::is_name(name) {
        let what = format!("'{}' cannot be the name of a node", name.escape_debug());
        remarks.mistake(at, what, "write a variable of up to 32 letters and digits");
    }
}

fn add_links(simulator: &Simulator, topology: &mut Topology, remarks: &mut Remarks) {
    let mut names: BTreeSet<String> =
        simulator.links.iter().filter_map(|link| simulator.name(link.made?)).map(str::to_owned).collect();
    for link in &simulator.links {
        let [a, b] = link.ends.map(|end| match end {
            End::Node(node) => NodeId(node as u32),
            End::Lan(lan) => NodeId((simulator.nodes.len() + lan) as u32),
        });
        let name = match link.made.and_then(|made| simulator.name(made)) {
            Some(name) => name.to_owned(),
            None => {
                let base = format!("{}-{}", topology.node(a).name, topology.node(b).name);
                let numbered = (2..).map(|n| format!("{base}-{n}"));
                let mut candidates = std::iter::once(base.clone()).chain(numbered);
                candidates.find(|name| names.insert(name.clone())).expect("numbers do not end")
            }
        };
        if link.pipes.iter().any(Option::is_none) {
            remarks.warn(link.at, format!("{name} is one way: nothing comes back over it"));
        }
        check_queues(link, remarks);
        let id = topology.connect(name, a, b, link.pipes.each_ref().map(pipe));
        for (end, (node, index)) in topology.link(id).ends.into_iter().enumerate() {
            if let Some((address, _)) = link.addresses[end] {
                let net = Ipv4Net::new(address, link.prefix_length).expect("a length of at most 31");
                topology.nodes[node.0 as usize].interfaces[index].addresses.push(IpNet::V4(net));
            }
        }
    }
}

fn check_queues(link: &Link, remarks: &mut Remarks) {
    for queue in link.pipes.iter().flatten().map(|pipe| &pipe.queue).filter(|queue| queue.red) {
        if queue.min >= queue.max {
            let what = format!("thresh_ {} is not below maxthresh_ {}", queue.min, queue.max);
            remarks.mistake(link.at, what, "write $queue set maxthresh_ with a larger number");
        }
    }
}

fn pipe(pipe: &Option<Pipe>) -> PipeSpec {
    let nothing = || PipeSpec { loss: LossSpec::Uniform(Probability::ALWAYS), ..PipeSpec::default() };
    pipe.as_ref().map_or_else(nothing, Pipe::spec)
}

/// The events in the order of time; both directions in one where they change alike.
fn events(simulator: &Simulator) -> Vec<Event> {
    // As the events so far have left them.
    let queue = |pipe: &Option<Pipe>| pipe.as_ref().map(|pipe| pipe.queue.clone());
    let mut queues: Vec<[Option<Queue>; 2]> =
        simulator.links.iter().map(|link| link.pipes.each_ref().map(queue)).collect();
    let mut sorted: Vec<_> = simulator.events.iter().collect();
    sorted.sort_by_key(|event| event.at);
    let mut events = Vec::new();
    for event in sorted {
        let mut changes: [Option<Change>; 2] = [None, None];
        for (end, queue) in queues[event.link].iter_mut().enumerate() {
            if let Some(queue) = queue.as_mut().filter(|_| event.ends[end]) {
                changes[end] = Some(change(queue, &event.act));
            }
        }
        let mut push = |direction, change| {
            events.push(Event { at: event.at, link: LinkId(event.link as u32), direction, change });
        };
        match changes {
            [Some(forward), Some(backward)] if forward == backward => push(Direction::Both, forward),
            [forward, backward] => {
                forward.into_iter().for_each(|change| push(Direction::Forward, change));
                backward.into_iter().for_each(|change| push(Direction::Backward, change));
            }
        }
    }
    events
}

fn change(queue: &mut Queue, act: &Act) -> Change {
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

/// A RED queue between two events of one instant may have its thresholds crossed for a moment.
fn valid(queue: &Queue) -> QueueSpec {
    Queue { max: queue.max.max(queue.min.saturating_add(1)), ..queue.clone() }.spec()
}
