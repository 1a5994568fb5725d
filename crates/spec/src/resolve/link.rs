//! Links: their ends, names and values, the traces they follow.

use super::node::runs_programs;
use super::{InvalidValue, NAME, Notice, Resolver, nearest_or};
use crate::description::LinkDescription;
use crate::link::TWO_ENDS;
use crate::mistake::{Code, nearest_name};
use crate::name::is_name;
use crate::path::SpecPath;
use crate::topology::{Group, LinkId, NodeId, Start, Topology, Track};
use crate::trace::Timeline;
use crate::trace_source::{TraceDescription, TraceEnd, TraceSource};
use crate::traced::{self, Traced};
use crate::{address, pipe, preset, trace_source};
use fastpath_link::{Change, Opportunities, PipeSpec};
use fastpath_units::{Duration, Time};
use std::collections::BTreeSet;

/// A trace that was read.
#[derive(Clone)]
struct LoadedTrace {
    source: TraceSource,
    timeline: Timeline,
    end: TraceEnd,
    offset: Duration,
}

impl<'d> Resolver<'d> {
    pub(super) fn links(&mut self) {
        for (index, link) in self.description.links.iter().enumerate() {
            self.link(index, link);
        }
    }

    fn link(&mut self, index: usize, link: &'d LinkDescription) {
        let path = || SpecPath::of("links", index);
        let presets = self.preset(path(), link.preset.as_deref());
        let group = link.group.as_deref().and_then(|name| self.group_of_link(path(), name));
        let traces = self.load_all(path(), &link.traces);
        let Some([a, b]) = self.ends(path(), link) else { return };
        let name = match &link.name {
            Some(name) => {
                self.check_link_name(path(), name);
                name.clone()
            }
            None => self.link_names.name(&link.between[0], &link.between[1]),
        };
        let directions = [&link.forward, &link.backward];
        let own = [0, 1].map(|end| {
            let traces = directions[end].traces.as_ref()?;
            Some(self.load_all(path().key(DIRECTIONS[end]), traces))
        });
        self.check_directions(path(), link);
        let pipes = [0, 1].map(|end| {
            let mut pipe = PipeSpec::default();
            for change in [&presets[end], &link.values, &directions[end].values] {
                change.apply_to(&mut pipe);
            }
            pipe
        });
        let id = self.topology.connect(name.clone(), a, b, pipes);
        self.described.push(index);
        if let Some(group) = group {
            self.topology.groups[group].links.push(id);
        }
        for (end, own) in own.into_iter().enumerate() {
            let tracks = own.unwrap_or_else(|| traces.clone());
            let queued = tracks.iter().any(|track| track.timeline.keys().contains(&"queue"));
            let values = [&presets[end], &link.values, &directions[end].values];
            if values.iter().all(|change| change.queue.is_none()) && !queued {
                self.unqueued.insert((id, end));
            }
            for LoadedTrace { source, timeline, end: after, offset } in tracks {
                let track = Track { link: id, pipe: end, source, timeline, end: after, offset, group };
                self.topology.tracks.push(track);
            }
            if let Some(mtu) = link.mtu {
                let (node, interface) = self.topology.link(id).ends[end];
                self.topology.nodes[node.0 as usize].interfaces[interface].mtu = mtu;
            }
        }
        if link.mtu.is_some_and(|mtu| mtu < address::IPV6_MTU_MIN) {
            let what = format!("link {name}: IPv6 needs an mtu of 1280, so it gets no IPv6 addresses");
            self.warn(Code::Unexpected, path(), what);
        }
        self.check_values_beside_traces(id, link);
        self.link_ids.insert(name, id);
    }

    fn ends(&mut self, path: SpecPath, link: &LinkDescription) -> Option<[NodeId; 2]> {
        let path = path.key("between");
        if link.between.iter().all(String::is_empty) {
            self.mistake(path, "link has no ends", TWO_ENDS);
            return None;
        }
        let ends = [0, 1].map(|end| {
            let name = link.between[end].as_str();
            let id = self.node_ids.get(name).copied();
            if id.is_none() {
                let known = self.node_ids.keys().copied();
                let instead = nearest_or(name, known, format!("write [host.{name}], or the name of a node"));
                self.mistake(path.clone().index(end), format!("there is no node '{name}'"), instead);
            }
            id
        });
        let [Some(a), Some(b)] = ends else { return None };
        if a == b {
            self.mistake(path, "the link joins a node to itself", TWO_ENDS);
            return None;
        }
        Some([a, b])
    }

    fn check_link_name(&mut self, path: SpecPath, name: &str) {
        let path = path.key("name");
        if !is_name(name) {
            let what = format!("'{}' cannot be the name of a link", name.escape_debug());
            self.mistake_of_running(path.clone(), what, NAME);
        }
        if self.link_ids.contains_key(name) {
            self.mistake(path, format!("there is already a link '{name}'"), "write another name");
        }
    }

    /// The values of a preset, from the first node to the second and back.
    fn preset(&mut self, path: SpecPath, name: Option<&str>) -> [Change; 2] {
        let Some(name) = name else { return Default::default() };
        if let Some(preset) = preset::named(name) {
            return [preset.up, preset.down];
        }
        let names: Vec<&str> = preset::all().iter().map(|preset| preset.name.as_str()).collect();
        let instead = nearest_name(name, names.iter().copied())
            .map_or_else(|| format!("write one of {}", names.join(", ")), |near| format!("write \"{near}\""));
        self.mistake(path.key("preset"), format!("there is no preset '{name}'"), instead);
        Default::default()
    }

    /// The group that a link names; one that is not declared starts with the run.
    fn group_of_link(&mut self, path: SpecPath, name: &'d str) -> Option<usize> {
        if let Some(&group) = self.group_ids.get(name) {
            return Some(group);
        }
        if !is_name(name) {
            let what = format!("'{}' cannot be the name of a group", name.escape_debug());
            self.mistake(path.key("group"), what, NAME);
            return None;
        }
        let declared = self.description.groups.iter().map(|group| group.name.as_str());
        if let Some(near) = nearest_name(name, declared) {
            self.mistake(
                path.key("group"),
                format!("there is no group '{name}'"),
                format!("write \"{near}\", or declare [group.{name}]"),
            );
            return None;
        }
        let group = Group { name: name.to_owned(), start: Start::At(Time::ZERO), links: Vec::new() };
        self.topology.groups.push(group);
        let id = self.topology.groups.len() - 1;
        self.group_ids.insert(name, id);
        Some(id)
    }

    /// Reports a value of the link that both directions replace, so that it has no effect.
    fn check_directions(&mut self, path: SpecPath, link: &LinkDescription) {
        let [both, forward, backward] =
            [&link.values, &link.forward.values, &link.backward.values].map(keys_given);
        for (number, key) in pipe::KEYS.iter().enumerate() {
            if both[number] && forward[number] && backward[number] {
                let what = format!("{key} is given for the link and for both of its directions");
                let instead = format!("remove {key} from the link or from a direction");
                self.mistake(path.clone().key(DIRECTIONS[1]), what, instead);
            }
        }
    }

    /// Reports values of a link or of its directions that a trace replaces for the whole run.
    /// Beside opportunities they are mistakes.
    fn check_values_beside_traces(&mut self, id: LinkId, link: &LinkDescription) {
        let directions = [&link.forward.values, &link.backward.values];
        let path = SpecPath::of("links", self.described[id.0 as usize]);
        let topology = &self.topology;
        let in_vain = |end: usize, change: &Change| {
            let starts = topology.tracks_of(id, end).iter().map(|track| topology.start_of(track));
            let mut found = topology.traced((id, end), change, Time::ZERO, starts);
            // A trace of losses changes the probability, not whether packets are marked.
            found.retain(|traced| {
                traced.is_always_set() && (traced.key != "loss" || change.loss_ecn.is_none())
            });
            found
        };
        let mut found: Vec<(SpecPath, Traced)> = Vec::new();
        for (end, direction) in directions.into_iter().enumerate() {
            let at = |traced: &Traced| path.clone().key(DIRECTIONS[end]).key(traced.key);
            found.extend(in_vain(end, direction).into_iter().map(|traced| (at(&traced), traced)));
        }
        // A value of the link counts where the direction has none of its own.
        let of_ends = [0, 1].map(|end| in_vain(end, &link.values));
        let mut said = BTreeSet::new();
        for traced in of_ends.iter().flatten() {
            let own = |end: usize| traced::keys(directions[end]).any(|key| key == traced.key);
            let is_vain = |end: usize| of_ends[end].iter().any(|other| other.key == traced.key);
            if (0..2).all(|end| own(end) || is_vain(end)) && (traced.is_lasting() || said.insert(traced.key))
            {
                found.push((path.clone().key(traced.key), *traced));
            }
        }
        let (mut mistakes, mut notices) = (Vec::new(), Vec::new());
        for (path, traced) in found {
            if traced.is_lasting() {
                mistakes.push(InvalidValue { path, what: traced.to_string(), instead: traced.instead() });
            } else {
                let what = format!("{traced}, so the {} given for the link is never in force", traced.key);
                notices.push(Notice { code: Code::Ignored, path, what });
            }
        }
        self.mistakes.extend(mistakes);
        self.notices.extend(notices);
    }

    fn load_all(&mut self, path: SpecPath, traces: &[TraceDescription]) -> Vec<LoadedTrace> {
        let mut loaded: Vec<LoadedTrace> = Vec::new();
        for (number, trace) in traces.iter().enumerate() {
            let path = path.clone().key("trace").index(number);
            let Some(trace) = self.load(path.clone(), trace) else { continue };
            let is_set = |key: &&&str| loaded.iter().any(|other| other.timeline.keys().contains(key));
            if let Some(key) = trace.timeline.keys().iter().find(is_set) {
                let what = format!("{key} is set by two traces at once");
                self.mistake(path, what, "remove one of them, or the column from one");
            }
            loaded.push(trace);
        }
        loaded
    }

    fn load(&mut self, path: SpecPath, trace: &TraceDescription) -> Option<LoadedTrace> {
        let TraceDescription { source, end, offset } = trace;
        let (source, timeline) = self.timeline(path.clone(), source)?;
        if let (TraceEnd::Hold, Timeline::Opportunities(_)) = (end, &timeline) {
            let what = "opportunities are moments, and have no last value to hold";
            let instead = "write end = \"repeat\", \"reset\" or \"stop\"";
            self.mistake(path.clone().key("end"), what, instead);
        }
        if !offset.is_zero() && *offset >= timeline.length() {
            let what = format!("offset {offset} is not within the trace, which lasts {}", timeline.length());
            self.mistake(path.key("offset"), what, "write a shorter one");
            return None;
        }
        Some(LoadedTrace { source, timeline, end: *end, offset: *offset })
    }

    /// The values of a trace, and its source with nothing left out.
    fn timeline(&mut self, path: SpecPath, source: &TraceSource) -> Option<(TraceSource, Timeline)> {
        match source {
            TraceSource::Poisson { rate, length, seed } => {
                let drawn = Opportunities::poisson(*rate, *length, *seed);
                if drawn.is_none() {
                    let what = format!("no or too many opportunities make {rate} for {length}");
                    self.mistake(path.key("poisson"), what, "write another length or rate");
                }
                Some((source.clone(), Timeline::Opportunities(drawn?)))
            }
            TraceSource::File { path: file, format } => {
                let path = path.key("file");
                let text = match (self.files)(file) {
                    Ok(text) => text,
                    Err(why) => {
                        let instead = "write the path of a trace, relative to this file";
                        self.mistake(path, format!("{file}: {why}"), instead);
                        return None;
                    }
                };
                let format = format.unwrap_or_else(|| trace_source::format_by_ending(file));
                match Timeline::read(format, &text) {
                    Ok(timeline) => {
                        Some((TraceSource::File { path: file.clone(), format: Some(format) }, timeline))
                    }
                    Err(mistakes) => {
                        for wrong in mistakes {
                            let what = format!("{file}:{}:{}: {}", wrong.line, wrong.column, wrong.what);
                            self.mistake(path.clone(), what, wrong.instead);
                        }
                        None
                    }
                }
            }
        }
    }
}

impl Resolver<'_> {
    /// Gives interfaces the names that their links have for them. The others keep `eth0`, `eth1`, …
    /// or get the next number that is free.
    pub(super) fn name_interfaces(&mut self) {
        let mut taken: BTreeSet<(NodeId, String)> = BTreeSet::new();
        let mut unnamed = Vec::new();
        for place in 0..self.described.len() {
            let described = self.described[place];
            for (end, (node, index)) in self.topology.links[place].ends.into_iter().enumerate() {
                let Some(name) = &self.description.links[described].interfaces[end] else {
                    unnamed.push((node, index));
                    continue;
                };
                let path = SpecPath::of("links", described).key("interfaces").index(end);
                let is_of_kernel = runs_programs(&self.description.nodes[node.0 as usize]);
                if !is_interface_name(name, is_of_kernel) {
                    let what = format!("'{}' cannot be the name of an interface", name.escape_debug());
                    self.mistake(path, what, "write up to 15 letters and digits, for example \"eth1\"");
                } else if !taken.insert((node, name.clone())) {
                    let what = format!("{} already has an interface {name}", self.topology.node(node).name);
                    self.mistake(path, what, "write another name");
                }
                self.topology.nodes[node.0 as usize].interfaces[index].name.clone_from(name);
            }
        }
        if taken.is_empty() {
            return;
        }
        unnamed.sort_unstable();
        for (node, index) in unnamed {
            let mut names = (index..).map(|number| (node, format!("eth{number}")));
            let free = names.find(|name| taken.insert(name.clone())).expect("numbers do not end");
            self.topology.nodes[node.0 as usize].interfaces[index].name = free.1;
        }
    }
}

/// Whether Linux takes the name for an interface (dev_valid_name), and it means no other thing.
/// Inside the engine an interface may have any name without spaces.
fn is_interface_name(name: &str, is_of_kernel: bool) -> bool {
    if !is_of_kernel {
        return (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic());
    }
    let known = |c: char| c.is_ascii_alphanumeric() || "_-.@|+".contains(c);
    (1..=15).contains(&name.len())
        && name.chars().all(known)
        && !matches!(name, "." | ".." | "lo" | "all" | "default")
}

/// The keys of the directions in the canonical form.
pub(super) const DIRECTIONS: [&str; 2] = ["forward", "backward"];

/// A pipe that always follows opportunities uses no rate, overhead or slots, so those of a preset
/// are dropped.
pub(super) fn forget_what_opportunities_replace(topology: &mut Topology) {
    let lasting = |track: &&Track| {
        let starts = topology.start_of(track) == Some(Time::ZERO);
        starts && track.end == TraceEnd::Repeat && matches!(track.timeline, Timeline::Opportunities(_))
    };
    let pipes: Vec<(LinkId, usize)> =
        topology.tracks.iter().filter(lasting).map(|track| (track.link, track.pipe)).collect();
    for (link, end) in pipes {
        let pipe = &mut topology.links[link.0 as usize].pipes[end];
        (pipe.rate, pipe.overhead, pipe.framing, pipe.slots) = (None, 0, None, None);
    }
}

/// Which of [`pipe::KEYS`] a change gives.
fn keys_given(values: &Change) -> [bool; pipe::KEYS.len()] {
    let Change { rate, overhead, delay, loss, queue, egress_loss, jitter, reorder, .. } = values;
    let Change { duplicate, corrupt, framing, slots, cross, state, .. } = values;
    [
        rate.is_some(),
        overhead.is_some() || framing.is_some(),
        delay.is_some(),
        loss.is_some() || egress_loss.is_some(),
        queue.is_some(),
        jitter.is_some(),
        reorder.is_some(),
        duplicate.is_some(),
        corrupt.is_some(),
        slots.is_some(),
        cross.is_some(),
        state.is_some(),
    ]
}
