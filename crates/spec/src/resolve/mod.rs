//! From a description to a checked topology, or every mistake in it: names, ends, addresses,
//! hardware addresses, presets, traces, rules and default queues.
//!
//! The resolver knows no text. A mistake carries its [`SpecPath`] in the description, and each
//! reader knows where that stands in the author's file.
//!
//! ```text
//!  nodes ─▶ groups ─▶ links, traces ─▶ what nodes have on links ─▶ events, traffic
//!                                                 │ no mistake so far
//!                                                 ▼
//!                     hardware addresses ─▶ addresses ─▶ queues, warnings
//! ```

mod cross;
mod doubts;
mod event;
mod in_vain;
mod keep;
mod link;
mod node;
mod outside;
mod placements;
mod traffic;

use crate::address;
use crate::default_queue;
use crate::description::Description;
use crate::files::Files;
use crate::link_names::LinkNames;
use crate::mistake::{Code, Mistakes, nearest, several};
use crate::name::is_name;
use crate::node_kind::NodeKind;
use crate::path::SpecPath;
use crate::topology::{Group, LinkId, Node, NodeId, Start, Topology};
use fastpath_units::Time;
use placements::Placements;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes and links in one description.
const COUNT_MAX: usize = 1 << 20;
/// What to write for the name of a group or link.
const NAME: &str = "write up to 32 letters, digits, '_', '-', '.'";

/// A mistake in a description. Prints as `PATH: what; what to do`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidValue {
    /// Where.
    pub path: SpecPath,
    /// What is wrong.
    pub what: String,
    /// What to do about it: `write …`.
    pub instead: String,
}

/// A warning: something in a description that is valid and that its author may not expect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Its kind.
    pub code: Code,
    /// Where.
    pub path: SpecPath,
    /// The text of the warning.
    pub what: String,
}

impl std::fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; {}", self.path, self.what, self.instead)
    }
}

impl std::error::Error for InvalidValue {}

/// Resolves a description. `files` returns the text of a file that the description names.
///
/// # Errors
/// Every mistake.
pub fn resolve(
    description: &Description,
    files: &Files,
) -> Result<(Topology, Vec<Notice>), Mistakes<InvalidValue>> {
    resolve_as_read(description, files, true).into_result()
}

/// Resolves a description that takes the place of `running`, as [`resolve`] does. What is in both
/// keeps what was assigned to it: addresses, hardware addresses and random streams. With these
/// given, a fresh start of the description has the same topology.
///
/// # Errors
/// Every mistake.
pub fn resolve_in_place_of(
    description: &Description,
    files: &Files,
    running: &Topology,
) -> Result<(Topology, Vec<Notice>), Mistakes<InvalidValue>> {
    let mut resolver = Resolver::new(description, files);
    resolver.running = Some(running);
    resolver.resolve(true).into_result()
}

/// The result of resolving a description.
pub(crate) struct Resolved {
    pub(crate) topology: Topology,
    pub(crate) notices: Vec<Notice>,
    pub(crate) mistakes: Vec<InvalidValue>,
    /// What keeps a network from running that can be drawn.
    pub(crate) of_running: Vec<InvalidValue>,
}

impl Resolved {
    fn into_result(mut self) -> Result<(Topology, Vec<Notice>), Mistakes<InvalidValue>> {
        self.mistakes.append(&mut self.of_running);
        if self.mistakes.is_empty() {
            Ok((self.topology, self.notices))
        } else {
            Err(Mistakes(self.mistakes))
        }
    }
}

/// Resolves a description. If the reader found mistakes, checks that need the whole description are
/// skipped.
pub(crate) fn resolve_as_read(description: &Description, files: &Files, is_clean: bool) -> Resolved {
    Resolver::new(description, files).resolve(is_clean)
}

/// A description being resolved.
struct Resolver<'d> {
    description: &'d Description,
    files: &'d Files<'d>,
    /// The topology whose place the new one takes.
    running: Option<&'d Topology>,
    topology: Topology,
    mistakes: Vec<InvalidValue>,
    of_running: Vec<InvalidValue>,
    notices: Vec<Notice>,
    node_ids: BTreeMap<&'d str, NodeId>,
    link_ids: BTreeMap<String, LinkId>,
    group_ids: BTreeMap<&'d str, usize>,
    link_names: LinkNames,
    /// The link of the description for each link of the topology: links with mistakes are left out.
    described: Vec<usize>,
    /// Where the addresses of each node were given.
    placements: Vec<Placements>,
    /// The pipes whose queue was not given.
    unqueued: BTreeSet<(LinkId, usize)>,
}

impl<'d> Resolver<'d> {
    fn new(description: &'d Description, files: &'d Files<'d>) -> Resolver<'d> {
        let given = description.links.iter().filter_map(|link| link.name.as_deref());
        Resolver {
            description,
            files,
            running: None,
            topology: Topology {
                seed: description.seed,
                family: description.family,
                routing: description.routing,
                ..Topology::default()
            },
            mistakes: Vec::new(),
            of_running: Vec::new(),
            notices: Vec::new(),
            node_ids: BTreeMap::new(),
            link_ids: BTreeMap::new(),
            group_ids: BTreeMap::new(),
            link_names: LinkNames::reserving(given),
            described: Vec::new(),
            placements: Vec::new(),
            unqueued: BTreeSet::new(),
        }
    }

    fn resolve(mut self, is_clean: bool) -> Resolved {
        self.nodes();
        self.groups();
        self.links();
        self.name_interfaces();
        self.attach();
        self.controllers();
        self.unused_groups();
        self.events();
        self.traffic();
        if is_clean && self.mistakes.is_empty() {
            self.check();
        }
        self.queues();
        let Resolver { topology, notices, mistakes, of_running, .. } = self;
        Resolved { topology, notices, mistakes, of_running }
    }

    /// Adds a mistake that keeps the network from running. It can be drawn all the same.
    fn mistake_of_running(&mut self, path: SpecPath, what: impl Into<String>, instead: impl Into<String>) {
        self.of_running.push(InvalidValue { path, what: what.into(), instead: instead.into() });
    }

    fn mistake(&mut self, path: SpecPath, what: impl Into<String>, instead: impl Into<String>) {
        self.mistakes.push(InvalidValue { path, what: what.into(), instead: instead.into() });
    }

    fn warn(&mut self, code: Code, path: SpecPath, what: impl Into<String>) {
        self.notices.push(Notice { code, path, what: what.into() });
    }

    fn nodes(&mut self) {
        for (index, node) in self.description.nodes.iter().enumerate() {
            let path = || SpecPath::of("nodes", index).key("name");
            if !is_name(&node.name) {
                let what = format!("'{}' cannot be the name of a node", node.name.escape_debug());
                self.mistake_of_running(path(), what, format!("{NAME}, a letter or digit first"));
            }
            let id = NodeId(index as u32);
            if index >= COUNT_MAX || self.node_ids.insert(&node.name, id).is_some() {
                let what = format!("there is already a node '{}'", node.name);
                let instead = "write another name: hosts, routers and switches share one set";
                self.mistake(path(), what, instead);
            }
            let id = self.topology.add_node(&node.name, node::kind(node));
            self.topology.nodes[id.0 as usize].look = node.look.clone();
        }
    }

    fn groups(&mut self) {
        for (index, group) in self.description.groups.iter().enumerate() {
            let path = || SpecPath::of("groups", index).key("name");
            if !is_name(&group.name) {
                let what = format!("'{}' cannot be the name of a group", group.name.escape_debug());
                self.mistake(path(), what, NAME);
            }
            if self.group_ids.insert(&group.name, index).is_some() {
                self.mistake(
                    path(),
                    format!("there is already a group '{}'", group.name),
                    "write another name",
                );
            }
            let group = Group { name: group.name.clone(), start: group.start, links: Vec::new() };
            self.topology.groups.push(group);
        }
    }

    /// Names the groups without links (neither their start nor events of them change anything), and
    /// those without traces, which nothing starts.
    fn unused_groups(&mut self) {
        for index in 0..self.description.groups.len() {
            if self.topology.groups[index].links.is_empty() {
                let name = &self.description.groups[index].name;
                let what = format!("no link belongs to group '{name}', so it and its events change nothing");
                self.warn(Code::Unused, SpecPath::of("groups", index).key("name"), what);
                continue;
            }
            let has_trace = self.topology.tracks.iter().any(|track| track.group == Some(index));
            if !has_trace && self.description.groups[index].start != Start::At(Time::ZERO) {
                let name = &self.description.groups[index].name;
                let what = format!("no link of group '{name}' has a trace, so its start changes nothing");
                self.warn(Code::Unused, SpecPath::of("groups", index).key("start"), what);
            }
        }
    }

    /// The path of a link of the topology.
    fn link_path(&self, link: LinkId) -> SpecPath {
        SpecPath::of("links", self.described[link.0 as usize])
    }

    /// Makes the checks that need the whole description.
    fn check(&mut self) {
        let is_edge = |node: &Node| node.kind.is_edge() || matches!(node.kind, NodeKind::KernelRouter { .. });
        let Some(first) = self.topology.nodes.iter().position(is_edge).map(|id| NodeId(id as u32)) else {
            let what = "there is no host, so nothing can enter or leave";
            return self.mistake_of_running(SpecPath::default(), what, "write [host.a]");
        };
        let mut given = self.placements.iter().flat_map(|placed| placed.macs.iter().copied()).collect();
        let taken = self.running.map(|running| {
            let is_fixed = |node: NodeId| !self.description.nodes[node.0 as usize].assign;
            keep::take_over(&mut self.topology, &mut given, running, &is_fixed)
        });
        let mut problems = address::settle_macs(&mut self.topology, &given);
        let nodes = self.description.nodes.iter().zip((0..).map(NodeId));
        let fixed = nodes.filter(|(node, _)| !node.assign).map(|(_, id)| id).collect();
        problems.extend(address::assign(&mut self.topology, &fixed));
        if let Some(taken) = taken {
            taken.sort(&mut self.topology);
        }
        self.check_pools();
        for (node, interface, error) in problems {
            let given = self.placements[node.0 as usize].path(interface, &error);
            let path = given.or_else(|| {
                let interface = self.topology.node(node).interfaces.get(interface)?;
                Some(self.link_path(interface.link))
            });
            self.mistake(path.unwrap_or_default(), error.to_string(), error.instead());
        }
        self.warn_of_unreachable(first);
        self.doubts();
        self.cross();
        self.in_vain();
    }

    /// Chooses the queues that are not given.
    fn queues(&mut self) {
        for (pipes, text) in default_queue::fill(&mut self.topology, &self.unqueued) {
            let path = pipes.first().map(|(link, _)| self.link_path(*link));
            self.warn(Code::Default, path.unwrap_or_default(), text);
        }
        for (link, text) in default_queue::timeless(&self.topology) {
            self.warn(Code::Unexpected, self.link_path(link), text);
        }
        link::forget_what_opportunities_replace(&mut self.topology);
    }

    /// Hosts that no chain of links joins to the first one.
    fn warn_of_unreachable(&mut self, first: NodeId) {
        let topology = &self.topology;
        let mut joined = vec![false; topology.nodes.len()];
        let mut waiting = vec![first];
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut joined[node.0 as usize], true) {
                waiting.extend(
                    topology.node(node).interfaces.iter().map(|interface| topology.peer(interface).0),
                );
            }
        }
        let mut apart = Vec::new();
        let mut alone = Vec::new();
        for (index, node) in topology.nodes.iter().enumerate() {
            if node.interfaces.is_empty() {
                alone.push((index, format!("{} has no link", node.name)));
            } else if !joined[index] && node.kind.is_edge() {
                apart.push((index, node.name.as_str()));
            }
        }
        if let Some(&(index, _)) = apart.first() {
            let names = several(apart.iter().map(|(_, name)| *name));
            alone.push((index, format!("no links join {names} to {}", topology.node(first).name)));
        }
        for (index, text) in alone {
            self.warn(Code::Unexpected, SpecPath::of("nodes", index), text);
        }
    }
}

/// What to write in place of a name that is not known: the nearest, or `otherwise`.
fn nearest_or<'n>(
    name: &str,
    known: impl IntoIterator<Item = &'n str>,
    otherwise: impl Into<String>,
) -> String {
    match nearest(name, known) {
        Some(meant) => format!("write \"{meant}\""),
        None => otherwise.into(),
    }
}
