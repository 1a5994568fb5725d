//! A description that a reader of other tools' files builds, and the places of its parts in the
//! text that it is read from.

use crate::description::{Description, LinkDescription, NodeDescription};
use crate::path::SpecPath;
use std::collections::BTreeMap;

/// A description, and the places of its parts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Built {
    /// The description.
    pub description: Description,
    /// The byte offset of each part whose place is known.
    places: BTreeMap<SpecPath, usize>,
}

impl Built {
    /// Returns the byte offset of what stands at `path`, or of the innermost part around it.
    pub fn offset(&self, path: &SpecPath) -> usize {
        let mut path = Some(path.clone());
        while let Some(part) = path {
            if let Some(at) = self.places.get(&part) {
                return *at;
            }
            path = part.parent();
        }
        0
    }

    /// Notes that a part stands at a byte offset.
    pub fn place(&mut self, path: SpecPath, at: usize) {
        self.places.insert(path, at);
    }

    /// Adds a node that stands at a byte offset. Returns its index.
    pub fn add_node(&mut self, node: NodeDescription, at: usize) -> usize {
        let index = self.description.nodes.len();
        self.place(SpecPath::of("nodes", index), at);
        self.description.nodes.push(node);
        index
    }

    /// Adds a link that stands at a byte offset. Returns its index.
    pub fn add_link(&mut self, link: LinkDescription, at: usize) -> usize {
        let index = self.description.links.len();
        self.place(SpecPath::of("links", index), at);
        self.description.links.push(link);
        index
    }
}
