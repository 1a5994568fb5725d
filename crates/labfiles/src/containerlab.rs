//! containerlab's topology files.
//!
//! ```text
//!  defaults ─┐
//!  kinds ────┼─▶ Layers of a node ─▶ host, switch or stub
//!  groups ───┤
//!  nodes ────┘     links ─▶ `link.rs`
//! ```
//!
//! Texts of a node win over those of its group, its kind and the defaults; lists and maps of all
//! four are joined (containerlab, `types/topology.go`).

mod link;
mod node;
mod outside;

use crate::Options;
use crate::fields::{map, text_of};
use crate::yaml::Yaml;
use fastpath_spec::{Built, Description, LinkDescription, LinkNames, NodeDescription, NodeRole};
use fastpath_text::fields::Fields;
use fastpath_text::mistake::Code;
use fastpath_text::mistake::{Remarks, nearest, several};
use fastpath_text::tree::Tree;
use node::Layers;
use outside::Management;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of node that a node of the file becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeUse {
    /// Programs run on it.
    Host,
    /// It forwards frames.
    Switch,
    /// Links to it exist, and frames that arrive there are dropped.
    Stub,
}

/// A file that is being read.
struct Reader<'y, 'o> {
    options: &'o Options<'o>,
    /// The name of the lab.
    name: &'y str,
    built: Built,
    roles: BTreeMap<&'y str, NodeUse>,
    /// By key: where it stands first, and the nodes that have it.
    ignored: BTreeMap<&'static str, (usize, Vec<&'y str>)>,
    names: LinkNames,
    management: Management,
    /// The nodes that links outside have added.
    outside: BTreeSet<String>,
}

/// Reads a topology file.
pub(crate) fn read<'y>(yaml: &'y Yaml<'y>, options: &Options, remarks: &mut Remarks) -> Built {
    let mut top = map("the file", yaml, remarks);
    let name = text_of(&mut top, "name", remarks).unwrap_or_default();
    let mgmt_at = top.get("mgmt").map(|entry| entry.key_at);
    let mgmt = top.placed("mgmt");
    ignore_of_file(&mut top, remarks);
    let traffic = top.placed("traffic");
    let topology = top.placed("topology");
    top.finish(remarks);
    let Some(topology) = topology else {
        remarks.mistake(0, "there is no topology", "write topology: with nodes: and links: below it");
        return Built::default();
    };
    let mut fields = map("topology", topology, remarks);
    let parts = ["defaults", "kinds", "groups", "nodes", "links"].map(|key| fields.placed(key));
    fields.finish(remarks);
    let [defaults, kinds, groups, nodes, links] = parts;
    let mut reader = Reader {
        options,
        name,
        built: Built::default(),
        roles: BTreeMap::new(),
        ignored: BTreeMap::new(),
        names: LinkNames::reserving(std::iter::empty()),
        management: Management::read(mgmt, remarks),
        outside: BTreeSet::new(),
    };
    reader.check_layers(
        [("defaults", defaults, false), ("kind", kinds, true), ("group", groups, true)],
        remarks,
    );
    let mut used = Used::default();
    for entry in nodes.map_or(&[][..], |nodes| map("nodes", nodes, remarks).source().entries.as_slice()) {
        let layers = Layers::of(&entry.placed, [groups, kinds, defaults]);
        used.take(&layers, &entry.key);
        node::check_keys(&format!("node {}", entry.key), &entry.placed, remarks);
        let count = reader.built.description.nodes.len();
        reader.node(&entry.key, entry.key_at, &layers, remarks);
        if reader.built.description.nodes.len() > count {
            reader.look(&layers, remarks);
        }
    }
    used.check([kinds, groups], remarks);
    if let Some(links) = links {
        reader.links(links, remarks);
    }
    if remarks.is_clean() && !reader.roles.values().any(|role| *role == NodeUse::Host) {
        let what = "no node is of kind linux, so nothing runs";
        remarks.mistake_of_running(nodes.map_or(0, |nodes| nodes.at), what, "write a node of kind: linux");
    }
    if let Some(at) = mgmt_at.filter(|_| !reader.uses_management()) {
        let what = "mgmt is ignored: no link leads to mgmt-net, and a lab has no other management network";
        remarks.warn(Code::Ignored, at, what);
    }
    if let Some(traffic) = traffic {
        reader.traffic(traffic, remarks);
    }
    reader.warn_of_ignored(remarks);
    reader.built
}

/// Names the keys of a file that have no effect.
fn ignore_of_file(top: &mut Fields, remarks: &mut Remarks) {
    for (key, why) in [
        ("prefix", "a lab has no containers of its own name"),
        ("debug", "it is of containerlab"),
        ("settings", "a lab has no certificates"),
    ] {
        if let Some(entry) = top.get(key) {
            remarks.warn(Code::Ignored, entry.key_at, format!("{key} is ignored: {why}"));
        }
    }
}

/// The kinds and groups that nodes name.
#[derive(Default)]
struct Used<'y> {
    kinds: BTreeSet<&'y str>,
    /// Where each stands first, and the nodes.
    groups: BTreeMap<&'y str, (usize, Vec<&'y str>)>,
}

impl<'y> Used<'y> {
    fn take(&mut self, layers: &Layers<'y>, node: &'y str) {
        self.kinds.extend(layers.kind());
        if let Some((group, at)) = layers.group {
            self.groups.entry(group).or_insert((at, Vec::new())).1.push(node);
        }
    }

    /// Names the entries that no node uses, and the groups that are not there. containerlab's
    /// graphs have groups without values, so that is a mistake only beside a like one.
    fn check(&self, [kinds, groups]: [Option<&Yaml>; 2], remarks: &mut Remarks) {
        let is_kind = |name: &str| self.kinds.contains(name);
        let is_group = |name: &str| self.groups.contains_key(name);
        for (what, yaml, is_used) in
            [("kind", kinds, &is_kind as &dyn Fn(&str) -> bool), ("group", groups, &is_group)]
        {
            let Some(Tree::Table(table)) = yaml.map(|yaml| &yaml.value) else { continue };
            for entry in table.entries.iter().filter(|entry| !is_used(&entry.key)) {
                let name = entry.key.escape_debug();
                let what = format!("{what} {name} changes nothing: no node has it");
                remarks.warn(Code::Unused, entry.key_at, what);
            }
        }
        let declared: Vec<&str> = match groups.map(|yaml| &yaml.value) {
            Some(Tree::Table(table)) => table.entries.iter().map(|entry| &*entry.key).collect(),
            _ => Vec::new(),
        };
        for (group, (at, nodes)) in self.groups.iter().filter(|(group, _)| !declared.contains(group)) {
            let (group, nodes) = (group.escape_debug(), several(nodes.iter().copied()));
            match nearest(&group.to_string(), declared.iter().copied()) {
                Some(meant) => {
                    remarks.mistake(*at, format!("there is no group '{group}'"), format!("write {meant}"));
                }
                None => {
                    let what = format!("group {group} of {nodes} is not below groups: it gives nothing");
                    remarks.warn(Code::Unused, *at, what);
                }
            }
        }
    }
}

impl<'y> Reader<'y, '_> {
    /// Checks the keys of the maps that several nodes share.
    fn check_layers(&self, layers: [(&str, Option<&'y Yaml<'y>>, bool); 3], remarks: &mut Remarks) {
        for (what, yaml, is_named) in layers {
            let Some(yaml) = yaml else { continue };
            if !is_named {
                node::check_keys(what, yaml, remarks);
                continue;
            }
            for entry in &map(format!("{what}s"), yaml, remarks).source().entries {
                node::check_keys(&format!("{what} {}", entry.key), &entry.placed, remarks);
            }
        }
    }

    /// Adds a stub in place of a node, or reports why the node cannot be part of a lab.
    fn refuse(&mut self, name: &'y str, at: usize, why: &str, instead: &str, remarks: &mut Remarks) {
        if !self.options.only_linux {
            let instead = format!("{instead}, or --kinds linux, which puts a stub in its place");
            remarks.mistake_of_running(at, format!("node {name}: {why}"), instead);
        } else if !self.options.to_draw {
            remarks.warn(Code::Different, at, format!("{name} is a stub: {why}"));
        }
        self.add_stub(name, at);
        self.roles.insert(name, NodeUse::Stub);
    }

    /// Adds a router without addresses, which drops all that arrives.
    fn add_stub(&mut self, name: &str, at: usize) {
        let stub = NodeDescription { assign: false, ..NodeDescription::new(NodeRole::Router, name) };
        self.built.add_node(stub, at);
    }

    /// Notes how pictures show the node that was added last: its kind, if a lab has no such kind,
    /// and the position that containerlab's editors write into its labels.
    fn look(&mut self, layers: &Layers<'y>, remarks: &mut Remarks) {
        let position = layers.position(remarks);
        let Some(node) = self.built.description.nodes.last_mut() else { return };
        node.look.position = position;
        let is_stub = self.roles.get(&*node.name) == Some(&NodeUse::Stub);
        node.look.foreign_kind = layers.kind().filter(|_| is_stub).map(str::to_owned);
    }

    /// Adds a link that stands at a byte offset, with a name that no other has.
    fn add_link(&mut self, link: LinkDescription, at: usize) -> usize {
        let name = link.name.clone().unwrap_or_else(|| self.names.name(&link.between[0], &link.between[1]));
        self.built.add_link(LinkDescription { name: Some(name), ..link }, at)
    }

    /// Notes that a key of a node has no effect.
    fn ignore(&mut self, key: &'static str, at: usize, node: &'y str) {
        self.ignored.entry(key).or_insert((at, Vec::new())).1.push(node);
    }

    /// Reads what hosts send to each other, as a spec has it.
    fn traffic(&mut self, yaml: &Yaml, remarks: &mut Remarks) {
        let json = serde_json::json!({ "traffic": yaml.value.json() });
        match Description::from_json(&json.to_string(), self.options.files) {
            Ok(description) => self.built.description.traffic = description.traffic,
            Err(mistakes) => {
                for mistake in mistakes.iter() {
                    remarks.mistake(yaml.at, format!("traffic: {}", mistake.what), mistake.instead.clone());
                }
            }
        }
    }

    fn warn_of_ignored(&self, remarks: &mut Remarks) {
        for (key, (at, nodes)) in &self.ignored {
            let known = node::IGNORED.iter().chain(&node::IGNORED_OF_HOSTS);
            let known = known.clone().find(|(ignored, _)| ignored == key);
            // What is not in the lists is about images, or about programs of a switch.
            let why = match known {
                Some((_, why)) => *why,
                None if self.options.ignore_images => "--images ignore",
                None => "a switch runs no programs",
            };
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let names = several(nodes.iter().copied());
            remarks.warn(Code::Ignored, *at, format!("{key} of {names} is ignored{why}"));
        }
    }
}

/// Returns whether the file is one of containerlab.
pub(crate) fn is_one(yaml: &Yaml) -> bool {
    yaml.get("topology").is_some_and(|topology| matches!(topology.value, Tree::Table(_) | Tree::Null))
}
