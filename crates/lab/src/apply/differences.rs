//! The difference of two topologies for people: a line for each node, link or setting.

use fastpath_engine::control::AppliedChange;
use fastpath_net::Difference;
use fastpath_spec::{Description, Look, Topology, describe};
use serde_json::{Map, Value};

/// Returns what differs: what is added or changed in the order of the new topology, then what is
/// removed.
pub(crate) fn entries(difference: &Difference, old: &Topology, new: &Topology) -> Vec<AppliedChange> {
    let (mut before, mut after) = (describe(old), describe(new));
    // A node elsewhere in pictures is the same node.
    let nodes_of_both = before.nodes.iter_mut().chain(&mut after.nodes);
    nodes_of_both.for_each(|node| node.look = Look::default());
    // Numbers of interfaces change with the order of links, and their names stay.
    let all = before.links.iter_mut().chain(&mut after.links);
    all.for_each(|link| link.interfaces = Default::default());
    let mut entries = Vec::new();
    nodes(difference, (&before, &after), new, &mut entries);
    links(difference, (&before, &after), new, &mut entries);
    for group in &after.groups {
        let was = before.groups.iter().find(|other| other.name == group.name);
        if was != Some(group) {
            let action = if was.is_some() { "change" } else { "add" };
            entries.push(entry(action, "group", &group.name, Vec::new()));
        }
    }
    if before.events != after.events {
        let details = vec![format!("{} → {}", before.events.len(), after.events.len())];
        entries.push(entry("change", "events", "", details));
    }
    for group in before.groups.iter().filter(|group| after.groups.iter().all(|g| g.name != group.name)) {
        entries.push(entry("remove", "group", &group.name, Vec::new()));
    }
    for link in &difference.links_removed {
        entries.push(entry("remove", "link", &old.link(*link).name, Vec::new()));
    }
    for node in &difference.nodes_removed {
        let node = &before.nodes[node.0 as usize];
        if after.nodes.iter().all(|other| other.name != node.name) {
            entries.push(entry("remove", node.kind.key(), &node.name, Vec::new()));
        }
    }
    entries
}

fn entry(action: &str, kind: &str, name: &str, details: Vec<String>) -> AppliedChange {
    AppliedChange { action: action.to_owned(), kind: kind.to_owned(), name: name.to_owned(), details }
}

/// Adds the nodes that are new or changed.
fn nodes(
    difference: &Difference,
    (before, after): (&Description, &Description),
    new: &Topology,
    entries: &mut Vec<AppliedChange>,
) {
    for (index, node) in after.nodes.iter().enumerate() {
        let addresses = || {
            let all = new.nodes[index].interfaces.iter().flat_map(|interface| &interface.addresses);
            all.map(ToString::to_string).collect()
        };
        match difference.nodes[index] {
            None => {
                let is_replaced = before.nodes.iter().any(|other| other.name == node.name);
                let action = if is_replaced { "replace" } else { "add" };
                entries.push(entry(action, node.kind.key(), &node.name, addresses()));
            }
            Some(was) if before.nodes[was.0 as usize] != *node => {
                let one = |node| Description { nodes: vec![node], ..Description::default() };
                let was = one(before.nodes[was.0 as usize].clone());
                entries.push(entry(
                    "change",
                    node.kind.key(),
                    &node.name,
                    details("nodes", &was, &one(node.clone())),
                ));
            }
            Some(_) => {}
        }
    }
}

/// Adds the links that are new or changed.
fn links(
    difference: &Difference,
    (before, after): (&Description, &Description),
    new: &Topology,
    entries: &mut Vec<AppliedChange>,
) {
    for (index, link) in after.links.iter().enumerate() {
        let name = new.links[index].name.as_str();
        match difference.links[index] {
            None => entries.push(entry("add", "link", name, vec![link.between.join(" – ")])),
            Some(was) if before.links[was.0 as usize] != *link => {
                let one = |link| Description { links: vec![link], ..Description::default() };
                let was = one(before.links[was.0 as usize].clone());
                entries.push(entry("change", "link", name, details("links", &was, &one(link.clone()))));
            }
            Some(_) => {}
        }
    }
}

/// Returns the values that differ, as `key: before → after`, of the first element of a list.
fn details(list: &str, before: &Description, after: &Description) -> Vec<String> {
    let first = |description: &Description| match &description.to_json()[list][0] {
        Value::Object(object) => object.clone(),
        _ => Map::new(),
    };
    let mut found = Vec::new();
    compare("", &first(before), &first(after), &mut found);
    found
}

fn compare(path: &str, before: &Map<String, Value>, after: &Map<String, Value>, found: &mut Vec<String>) {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for key in keys {
        let (was, is) = (before.get(key), after.get(key));
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (was, is) {
            (was, is) if was == is => {}
            (Some(Value::Object(was)), Some(Value::Object(is))) => compare(&path, was, is, found),
            (was, is) => found.push(format!("{path}: {} → {}", shown(was), shown(is))),
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
