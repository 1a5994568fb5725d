//! Events: the commands and traces they start, the NATs they rebind, the links and directions they
//! change, and the changes that a trace undoes or hides.

use super::node::runs_programs;
use super::{InvalidValue, Notice, Resolver, nearest_or};
use crate::description::EventDescription;
use crate::mistake::Code;
use crate::node_kind::NodeKind;
use crate::path::SpecPath;
use crate::topology::{
    Direction, Event, HostCommand, LinkId, NatEvent, NodeId, Rebinding, TraceAction, TraceEvent,
};
use fastpath_link::Change;
use fastpath_units::Time;

impl Resolver<'_> {
    pub(super) fn events(&mut self) {
        for (index, event) in self.description.events.iter().enumerate() {
            if event.host.is_some() || event.exec.is_some() {
                self.command(index, event);
                continue;
            }
            if event.nat.is_some() || event.rebind.is_some() || event.every.is_some() {
                self.rebinding(index, event);
                continue;
            }
            if let Some(action) = event.traces {
                self.traces(index, event, action);
                continue;
            }
            let links = self.links_of_event(index, event);
            let Some(direction) = self.direction(index, event, &links) else { continue };
            let at = Time::ZERO + event.at;
            self.check_beside_traces(index, event, (&links, direction));
            let change = &event.values;
            let made = |link| Event { at, link, direction, change: change.clone() };
            self.topology.events.extend(links.into_iter().map(made));
        }
        self.topology.events.sort_by_key(|event| event.at);
        self.topology.trace_events.sort_by_key(|event| event.at);
        self.topology.nat_events.sort_by_key(|event| event.at);
        self.topology.commands.sort_by_key(|command| command.at);
    }

    /// An event that starts a command on a host.
    fn command(&mut self, index: usize, event: &EventDescription) {
        let path = |key: &str| SpecPath::of("events", index).key(key);
        let (host, command) = match (&event.host, &event.exec) {
            (Some(host), Some(command)) => (host, command),
            (None, _) => {
                return self.mistake(path("exec"), "event has exec and no host", "write host = \"a\"");
            }
            (_, None) => {
                let instead = "write exec = \"iperf3 -c b -t 5\"";
                return self.mistake(path("host"), "event has a host and no exec", instead);
            }
        };
        if !event.links.is_empty() || event.group.is_some() || event.values != Change::default() {
            let instead = "write an event for each";
            return self.mistake(path("exec"), "event has a command and a change of links", instead);
        }
        let nodes = &self.description.nodes;
        let place = nodes.iter().position(|node| node.name == *host && runs_programs(node));
        let Some(place) = place else {
            let what = match nodes.iter().find(|node| node.name == *host) {
                Some(node) => format!("{host} is a {}, and programs run on hosts", node.kind.key()),
                None => format!("there is no host '{host}'"),
            };
            let known = nodes.iter().filter(|node| runs_programs(node)).map(|node| node.name.as_str());
            let instead = nearest_or(host, known, "write the name of a host");
            return self.mistake(path("host"), what, instead);
        };
        let (at, host) = (Time::ZERO + event.at, NodeId(place as u32));
        self.topology.commands.push(HostCommand { at, host, command: command.clone() });
    }

    /// An event that changes the mappings of a NAT.
    fn rebinding(&mut self, index: usize, event: &EventDescription) {
        let path = |key: &str| SpecPath::of("events", index).key(key);
        let (name, rebinding) = match (&event.nat, event.rebind) {
            (Some(name), Some(rebinding)) => (name, rebinding),
            (None, Some(_)) => {
                return self.mistake(path("rebind"), "event has rebind and no nat", "write nat = \"home\"");
            }
            (Some(_), None) => {
                return self.mistake(path("nat"), "event has a nat and no rebind", "write rebind = \"port\"");
            }
            (None, None) => {
                let instead = "write nat = \"home\" and rebind = \"port\", or an event for each instant";
                return self.mistake(path("every"), "event repeats and rebinds no nat", instead);
            }
        };
        let has_links = !event.links.is_empty() || event.group.is_some() || event.traces.is_some();
        if has_links || event.values != Change::default() {
            let instead = "write an event for each";
            return self.mistake(path("rebind"), "event rebinds a NAT and changes links", instead);
        }
        let is_nat = |kind: &NodeKind| matches!(kind, NodeKind::Nat { .. });
        let nodes = &self.topology.nodes;
        let Some(place) = nodes.iter().position(|node| node.name == *name && is_nat(&node.kind)) else {
            let what = match nodes.iter().find(|node| node.name == *name) {
                Some(_) => format!("{name} is not a NAT"),
                None => format!("there is no NAT '{name}'"),
            };
            let known = nodes.iter().filter(|node| is_nat(&node.kind)).map(|node| node.name.as_str());
            let instead = nearest_or(name, known, "write the name of a NAT");
            return self.mistake(path("nat"), what, instead);
        };
        if let (NodeKind::Nat { nat, .. }, Rebinding::Address) = (&nodes[place].kind, rebinding)
            && nat.settings.pool.len() < 2
        {
            let what = format!("{name} has no other address to rebind to");
            let instead = "write a pool of two addresses for the NAT, or rebind = \"port\"";
            return self.mistake(path("rebind"), what, instead);
        }
        let (at, nat) = (Time::ZERO + event.at, NodeId(place as u32));
        self.topology.nat_events.push(NatEvent { at, every: event.every, nat, rebinding });
    }

    /// An event that starts or stops the traces of a group.
    fn traces(&mut self, index: usize, event: &EventDescription, action: TraceAction) {
        let path = |key: &str| SpecPath::of("events", index).key(key);
        if !event.links.is_empty() || event.direction.is_some() || event.values != Change::default() {
            let what = "event has traces and a link, a direction or a value";
            return self.mistake(path("traces"), what, "write group = \"cell\", and an event for each");
        }
        let Some(name) = &event.group else {
            let instead = "write group = \"cell\", a group of links";
            return self.mistake(path("traces"), "event has traces and no group", instead);
        };
        let links = self.links_of_event(index, event);
        let Some(&group) = self.group_ids.get(name.as_str()) else { return };
        let has_trace = self.topology.tracks.iter().any(|track| links.contains(&track.link));
        if !has_trace {
            let what = format!("no link of group {name} follows a trace, so the event has no effect");
            self.notices.push(Notice { code: Code::Ignored, path: path("traces"), what });
        }
        self.topology.trace_events.push(TraceEvent { at: Time::ZERO + event.at, group, action });
    }

    fn links_of_event(&mut self, index: usize, event: &EventDescription) -> Vec<LinkId> {
        let path = || SpecPath::of("events", index);
        match (event.links.is_empty(), &event.group) {
            (false, None) => {
                let named = event.links.iter().enumerate();
                named
                    .filter_map(|(place, name)| self.link_named(path().key("link").index(place), name))
                    .collect()
            }
            (true, Some(name)) => {
                if let Some(&group) = self.group_ids.get(name.as_str()) {
                    return self.topology.groups[group].links.clone();
                }
                let known = self.group_ids.keys().copied();
                let instead = nearest_or(name, known, "write the name of a group, as links have it");
                self.mistake(path().key("group"), format!("there is no group '{name}'"), instead);
                Vec::new()
            }
            (false, Some(_)) => {
                self.mistake(path().key("group"), "event has a link and a group", "keep one of them");
                Vec::new()
            }
            (true, None) => {
                let instead = "write link = \"a-b\", link = [\"a-b\", \"b-c\"] or group = \"cell\"";
                self.mistake(path().key("link"), "event has no link", instead);
                Vec::new()
            }
        }
    }

    fn link_named(&mut self, path: SpecPath, name: &str) -> Option<LinkId> {
        let link = self.link_ids.get(name).copied();
        if link.is_none() {
            let known = self.link_ids.keys().map(String::as_str);
            let otherwise = "write the name of a link, by default its ends: \"a-b\"";
            let instead = nearest_or(name, known, otherwise);
            self.mistake(path, format!("there is no link '{name}'"), instead);
        }
        link
    }

    fn direction(&mut self, index: usize, event: &EventDescription, links: &[LinkId]) -> Option<Direction> {
        let path = SpecPath::of("events", index).key("direction");
        match (event.direction.as_deref(), links) {
            (None | Some("both"), _) | (Some(_), []) => Some(Direction::Both),
            (Some(_), [_, _, ..]) => {
                let what = "a direction applies to a single link, and this event changes several";
                self.mistake(path, what, "write an event for each link");
                None
            }
            (Some(text), [link]) => {
                let link = self.topology.link(*link);
                let [a, b] = link.ends.map(|(node, _)| &self.topology.node(node).name);
                let (forward, backward) = (format!("{a}_to_{b}"), format!("{b}_to_{a}"));
                if text == "forward" || text == forward {
                    return Some(Direction::Forward);
                }
                if text == "backward" || text == backward {
                    return Some(Direction::Backward);
                }
                let what = format!("'{text}' is not a direction of link {}", link.name);
                self.mistake(path, what, format!("write \"{forward}\" or \"{backward}\""));
                None
            }
        }
    }

    /// Finds changes of values that a trace sets at that time. Opportunities replace these values,
    /// and the next step of a trace undoes them.
    fn check_beside_traces(
        &mut self,
        index: usize,
        event: &EventDescription,
        (links, direction): (&[LinkId], Direction),
    ) {
        let topology = &self.topology;
        let at = Time::ZERO + event.at;
        for pipe in links.iter().flat_map(|&link| direction.pipes().map(move |end| (link, end))) {
            let starts = topology.tracks_of(pipe.0, pipe.1).iter().map(|track| topology.start_of(track));
            for traced in topology.traced(pipe, &event.values, at, starts) {
                let path = SpecPath::of("events", index).key(traced.key);
                if traced.is_lasting() {
                    let (what, instead) = (traced.to_string(), traced.instead());
                    self.mistakes.push(InvalidValue { path, what, instead });
                } else {
                    self.notices.push(Notice { code: Code::Unexpected, path, what: traced.outcome() });
                }
            }
        }
    }
}
