//! A description, and the places of its parts in the text that it was read from.

use fastpath_link::Change;
use fastpath_spec::mistake::Remarks;
use fastpath_spec::{Description, LinkDescription, LinkNames, NodeDescription, SpecPath, parse_changes};
use std::collections::BTreeMap;

/// A description, and the places of its parts.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) description: Description,
    places: BTreeMap<SpecPath, usize>,
}

impl Built {
    /// Returns the byte offset of what stands at `path`, or of the innermost part around it.
    pub(crate) fn offset(&self, path: &SpecPath) -> usize {
        let mut path = Some(path.clone());
        while let Some(part) = path {
            if let Some(at) = self.places.get(&part) {
                return *at;
            }
            path = part.parent();
        }
        0
    }

    /// Adds a node that stands at a byte offset. Returns its index.
    pub(crate) fn add_node(&mut self, node: NodeDescription, at: usize) -> usize {
        let index = self.description.nodes.len();
        self.places.insert(SpecPath::of("nodes", index), at);
        self.description.nodes.push(node);
        index
    }

    /// Adds a link that stands at a byte offset, with a name that no other has.
    pub(crate) fn add_link(&mut self, link: LinkDescription, at: usize, names: &mut LinkNames) -> usize {
        let index = self.description.links.len();
        self.places.insert(SpecPath::of("links", index), at);
        let name = link.name.clone().unwrap_or_else(|| names.name(&link.between[0], &link.between[1]));
        self.description.links.push(LinkDescription { name: Some(name), ..link });
        index
    }

    /// Gives links the values of an overlay: a TOML file with a table for each link (`a-b`), or for
    /// what leaves an endpoint (`"a:eth1"`). `"*"` is every link.
    pub(crate) fn impair(&mut self, overlay: (&str, &str), remarks: &mut Remarks) {
        let (file, text) = overlay;
        let mut tables = match parse_changes(text) {
            Ok(tables) => tables,
            Err(mistakes) => return remarks.mistakes_in(file, 0, mistakes),
        };
        // What is said of fewer directions wins.
        tables.sort_by_key(|(key, ..)| (key != "*", key.contains(':')));
        let mut unknown = Remarks::new(text);
        for (key, at, change) in tables {
            if !self.change(&key, &change) {
                let what = format!("there is no link or endpoint '{}'", key.escape_debug());
                let known = self.description.links.iter().filter_map(|link| link.name.as_deref());
                let names = fastpath_spec::mistake::several(known);
                unknown.mistake(
                    at,
                    what,
                    format!("write \"*\", an endpoint \"NODE:INTERFACE\", or one of {names}"),
                );
            }
        }
        if let Err(mistakes) = unknown.finish() {
            remarks.mistakes_in(file, 0, mistakes);
        }
    }

    /// Returns whether there is a link or endpoint of that name.
    fn change(&mut self, key: &str, change: &Change) -> bool {
        let mut found = false;
        for link in &mut self.description.links {
            let is_whole = key == "*" || link.name.as_deref() == Some(key);
            let directions = [&mut link.forward, &mut link.backward];
            for ((node, interface), direction) in link.between.iter().zip(&link.interfaces).zip(directions) {
                let end = Some((node.as_str(), interface.as_deref().unwrap_or_default()));
                if is_whole || key.split_once(':') == end {
                    direction.values.merge(change);
                    found = true;
                }
            }
        }
        found
    }
}
