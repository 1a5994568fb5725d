//! Groups of nodes, which give their members values and may make them.

use super::known::{Ignored, Level};
use crate::fields::{map, truth_of};
use crate::yaml::Yaml;
use fastpath_text::mistake::{Code, Remarks};
use fastpath_text::tree::{Tree, TreeEntry, TreeTable};
use std::collections::BTreeSet;

/// The keys of a node that a group may give.
pub(super) const GIVEN: [&str; 3] = ["device", "role", "mtu"];

/// A group.
pub(super) struct NodeGroup<'y> {
    name: &'y str,
    at: usize,
    /// Nodes and groups.
    members: Vec<(usize, &'y str)>,
    /// Its own values and its `node_data`.
    values: [Option<&'y TreeTable<'y>>; 2],
    /// Whether it makes its members.
    makes: bool,
}

/// The groups of a topology.
pub(super) struct Groups<'y>(Vec<NodeGroup<'y>>);

impl<'y> Groups<'y> {
    /// Reads the groups; `makes`: whether they make their members if they do not say so.
    pub(super) fn read(
        yaml: Option<&'y Yaml<'y>>,
        makes: bool,
        ignored: &mut Ignored,
        remarks: &mut Remarks,
    ) -> Groups<'y> {
        let Some(yaml) = yaml else { return Groups(Vec::new()) };
        let mut fields = map("groups", yaml, remarks);
        let makes = makes || truth_of(&mut fields, "_auto_create", remarks);
        let entries = fields.source().entries.iter().filter(|entry| entry.key != "_auto_create");
        Groups(entries.filter_map(|entry| group(entry, makes, ignored, remarks)).collect())
    }

    /// The nodes that groups make, with their places.
    pub(super) fn made(&self) -> impl Iterator<Item = (&'y str, usize)> {
        let made = self.0.iter().filter(|group| group.makes).flat_map(|group| &group.members);
        made.filter(|(_, name)| self.0.iter().all(|group| group.name != *name)).map(|(at, name)| (*name, *at))
    }

    /// The values that a node has of its groups, the first first; `own`: the groups that the node
    /// names itself.
    pub(super) fn values(&self, node: &str, own: &[(usize, &str)]) -> Vec<&'y TreeTable<'y>> {
        let of_node = self.0.iter().filter(|group| {
            group.name == "all" || self.has(group, node, 0) || own.iter().any(|(_, name)| *name == group.name)
        });
        of_node.flat_map(|group| group.values).flatten().collect()
    }

    fn has(&self, group: &NodeGroup, node: &str, depth: usize) -> bool {
        group.members.iter().any(|(_, member)| {
            *member == node
                || depth < self.0.len()
                    && self.0.iter().any(|inner| inner.name == *member && self.has(inner, node, depth + 1))
        })
    }

    /// Whether there is such a group.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|group| group.name == name)
    }

    /// Reports members that are neither nodes nor groups, and groups that change nothing; `named`:
    /// the groups that nodes name.
    pub(super) fn check(&self, nodes: &[&str], named: &BTreeSet<&str>, remarks: &mut Remarks) {
        for group in &self.0 {
            for (at, member) in &group.members {
                if !nodes.contains(member) && !self.contains(member) {
                    let what = format!("there is no node or group '{}'", member.escape_debug());
                    let known = nodes.iter().copied().chain(self.0.iter().map(|group| group.name));
                    remarks.mistake(*at, what, fastpath_text::mistake::choice(member, known));
                }
            }
            let gives = |table: &TreeTable| GIVEN.iter().any(|key| table.get(key).is_some());
            let has_values = group.values.into_iter().flatten().any(gives);
            let has_members = group.name == "all" || !group.members.is_empty() || named.contains(group.name);
            if !has_members || !(group.makes || has_values) {
                let what = format!("group {} changes nothing: ", group.name.escape_debug());
                let why = if has_members { "it gives no device, role or mtu" } else { "it has no members" };
                remarks.warn(Code::Unused, group.at, what + why);
            }
        }
    }
}

/// Reads a group: its members, or a map with them. `None`: it is not one of nodes.
fn group<'y>(
    TreeEntry { key, key_at, placed }: &'y TreeEntry<'y>,
    makes: bool,
    ignored: &mut Ignored,
    remarks: &mut Remarks,
) -> Option<NodeGroup<'y>> {
    let name = &**key;
    let mut group = NodeGroup { name, at: *key_at, members: Vec::new(), values: [None; 2], makes };
    if !matches!(placed.value, Tree::Table(_)) {
        group.members = members(placed, name, remarks);
        return Some(group);
    }
    let mut fields = map(format!("group {name}"), placed, remarks);
    match fields.placed("type").map(|yaml| (yaml.at, yaml.scalar())) {
        None | Some((_, Some("node"))) => {}
        Some((_, Some("vlan" | "vrf"))) => {
            let what = format!("group {} is ignored: it is not one of nodes", name.escape_debug());
            remarks.warn(Code::Ignored, *key_at, what);
            return None;
        }
        Some((at, _)) => remarks.mistake(at, "this is not a type of groups", "write type: node"),
    }
    if let Some(yaml) = fields.placed("members") {
        group.members = members(yaml, name, remarks);
    }
    group.makes = truth_of(&mut fields, "_auto_create", remarks) || makes;
    fields.know(GIVEN);
    group.values[0] = Some(fields.source());
    if let Some(data) = fields.placed("node_data") {
        let mut inner = map(format!("node_data of group {name}"), data, remarks);
        inner.know(["role", "mtu"]);
        ignored.take(&mut inner, Level::Node, name);
        group.values[1] = Some(inner.source());
        inner.finish(remarks);
    }
    ignored.take(&mut fields, Level::Group, name);
    fields.finish(remarks);
    Some(group)
}

/// The names in a list, a map or a text.
fn members<'y>(yaml: &'y Yaml<'y>, group: &str, remarks: &mut Remarks) -> Vec<(usize, &'y str)> {
    let mut names = Vec::new();
    match &yaml.value {
        Tree::Null => {}
        Tree::Table(table) => {
            names.extend(table.entries.iter().map(|entry| (entry.key_at, &*entry.key)));
        }
        Tree::Array(list) => {
            for yaml in list {
                match yaml.scalar() {
                    Some(name) => names.push((yaml.at, name)),
                    None => {
                        let what = format!("a member of group {} is not a name", group.escape_debug());
                        remarks.mistake(yaml.at, what, "write members: [a, b]");
                    }
                }
            }
        }
        _ => {
            let text = yaml.scalar().unwrap_or_default();
            names.extend(text.split([' ', ',']).filter(|name| !name.is_empty()).map(|name| (yaml.at, name)));
        }
    }
    names
}
