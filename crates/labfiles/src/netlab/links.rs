//! The list of links in its forms (netlab, `links.md`): `a-b`, a list of nodes, a map with nodes or
//! `interfaces`, groups of links, and lists by name. All become one form.

use super::nodes::Nodes;
use super::tables::{merged, table_of};
use crate::fields::{map, truth};
use crate::yaml::{Yaml, kind};
use fastpath_text::mistake::{Code, Remarks, nearest};
use fastpath_text::tree::{Tree, TreeTable};

/// A link of the text.
pub(super) struct Link<'y> {
    pub(super) at: usize,
    pub(super) ends: Vec<End<'y>>,
    /// What it has besides nodes.
    pub(super) values: TreeTable<'y>,
}

/// A node on a link.
pub(super) struct End<'y> {
    pub(super) node: String,
    pub(super) at: usize,
    pub(super) values: TreeTable<'y>,
}

/// Returns all links of a text.
pub(super) fn all<'y>(yaml: &Yaml<'y>, nodes: &Nodes, remarks: &mut Remarks) -> Vec<Link<'y>> {
    match &yaml.value {
        Tree::Null => Vec::new(),
        Tree::Array(list) => list.iter().flat_map(|yaml| links(yaml, nodes, remarks)).collect(),
        Tree::Table(table) => {
            table.entries.iter().flat_map(|entry| all(&entry.placed, nodes, remarks)).collect()
        }
        Tree::Text(_) => links(yaml, nodes, remarks),
        _ => {
            remarks.mistake(yaml.at, "links is not a list", "write links: [a-b]");
            Vec::new()
        }
    }
}

/// Returns the links of an element: one, or those of a group.
fn links<'y>(yaml: &Yaml<'y>, nodes: &Nodes, remarks: &mut Remarks) -> Vec<Link<'y>> {
    let Tree::Table(table) = &yaml.value else {
        return one(yaml, nodes, remarks).into_iter().filter(is_enabled).collect();
    };
    let (group, members) = (table.get("group"), table.get("members"));
    match (group, members.map(|members| &members.value)) {
        (None, None) => {}
        (Some(_), Some(Tree::Array(members))) => {
            let mut shared = table.clone();
            shared.entries.retain(|entry| entry.key != "group" && entry.key != "members");
            let links = members
                .iter()
                .filter_map(|yaml| one(yaml, nodes, remarks))
                .map(|link| Link { values: merged(&shared, &link.values), ..link });
            return links.filter(is_enabled).collect();
        }
        (Some(group), _) => {
            let at = members.map_or(group.at, |members| members.at);
            remarks.mistake(at, "a group of links has no list of members", "write members: [a-b]");
            return Vec::new();
        }
        (None, Some(_)) => {
            remarks.mistake(yaml.at, "a link has members and no group", "write group: NAME");
            return Vec::new();
        }
    }
    one(yaml, nodes, remarks).into_iter().filter(is_enabled).collect()
}

/// Whether a link is part of the lab.
fn is_enabled(link: &Link) -> bool {
    link.values.get("disable").and_then(truth) != Some(true)
}

/// Reads one link. `None`: it has no nodes, which has been reported.
fn one<'y>(yaml: &Yaml<'y>, nodes: &Nodes, remarks: &mut Remarks) -> Option<Link<'y>> {
    let mut link = Link { at: yaml.at, ends: Vec::new(), values: TreeTable::default() };
    match &yaml.value {
        Tree::Array(list) => link.ends = interfaces(list, remarks),
        Tree::Table(table) => {
            link.values = table.clone();
            if let Some(yaml) = table.get("interfaces").filter(|yaml| !yaml.is_null()) {
                match &yaml.value {
                    Tree::Array(list) => link.ends = interfaces(list, remarks),
                    _ => {
                        let what = format!("interfaces is {}, not a list", kind(yaml));
                        remarks.mistake(yaml.at, what, "write interfaces: [{node: a}, {node: b}]");
                        return None;
                    }
                }
                link.values.entries.retain(|entry| entry.key != "interfaces");
            } else {
                for entry in table.entries.iter().filter(|entry| nodes.contains_key(&*entry.key)) {
                    let what = format!("{} of a link", entry.key);
                    map(what, &entry.placed, remarks);
                    let values = table_of(Some(&entry.placed));
                    link.ends.push(End { node: entry.key.to_string(), at: entry.key_at, values });
                }
                link.values.entries.retain(|entry| !nodes.contains_key(&*entry.key));
            }
        }
        _ => {
            let names = split(yaml.scalar().unwrap_or_default(), nodes);
            link.ends = names.into_iter().map(|name| plain(name, yaml.at)).collect();
        }
    }
    if link.ends.is_empty() {
        if let Some(lag) = link.values.entries.iter().find(|entry| entry.key == "lag") {
            let what = "lag is ignored: the link is left out, as bundles of links are not read";
            remarks.warn(Code::Ignored, lag.key_at, what);
            return None;
        }
        // A key may be a misspelled node.
        let keys = link.values.entries.iter();
        let near = keys.filter_map(|entry| Some((entry, nearest(&entry.key, nodes.keys().copied())?))).next();
        match near {
            Some((entry, node)) => {
                let what = format!("there is no node '{}'", entry.key.escape_debug());
                remarks.mistake(entry.key_at, what, format!("write {node}"));
            }
            None => remarks.mistake(yaml.at, "the link has no nodes", "write - a-b"),
        }
        return None;
    }
    for end in link.ends.iter().filter(|end| !nodes.contains_key(&*end.node)) {
        let instead = match nearest(&end.node, nodes.keys().copied()) {
            Some(meant) => format!("write {meant}"),
            None => "write it below nodes".to_owned(),
        };
        remarks.mistake(end.at, format!("there is no node '{}'", end.node.escape_debug()), instead);
    }
    link.ends.iter().all(|end| nodes.contains_key(&*end.node)).then_some(link)
}

fn plain<'y>(name: &str, at: usize) -> End<'y> {
    End { node: name.to_owned(), at, values: TreeTable::default() }
}

/// The ends of a list: names of nodes, or maps with a node.
fn interfaces<'y>(list: &[Yaml<'y>], remarks: &mut Remarks) -> Vec<End<'y>> {
    let mut ends = Vec::new();
    for yaml in list {
        let node = yaml.get("node");
        match (yaml.scalar(), node.and_then(Yaml::scalar), &yaml.value) {
            (Some(name), ..) => ends.push(plain(name, yaml.at)),
            (None, Some(name), Tree::Table(table)) => {
                let mut values = table.clone();
                values.entries.retain(|entry| entry.key != "node");
                ends.push(End { values, ..plain(name, node.map_or(yaml.at, |node| node.at)) });
            }
            _ => remarks.mistake(yaml.at, "this is not a node on a link", "write node: NAME"),
        }
    }
    ends
}

/// The names in `a-b`, perhaps with spaces. A name may have dashes itself.
fn split<'t>(text: &'t str, nodes: &Nodes) -> Vec<&'t str> {
    let mut names = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let ends = rest.match_indices('-').map(|(at, _)| at).chain([rest.len()]);
        let known = ends.clone().filter(|end| nodes.contains_key(rest[..*end].trim())).max();
        let end = known.or(ends.min()).unwrap_or(rest.len());
        names.push(rest[..end].trim());
        match rest[end..].strip_prefix('-') {
            // A dash at the end is one before a node without a name.
            Some("") => {
                names.push("");
                break;
            }
            Some(more) => rest = more.trim_start(),
            None => break,
        }
    }
    names
}
