//! Pictures of graphs, such as network topologies: laid out once, written as SVG, PNG, Mermaid,
//! Graphviz or draw.io.
//!
//! ```text
//!  Picture { nodes, links } ─▶ layout.rs: centres of nodes, ways of links ─┬─▶ svg.rs ─▶ PNG
//!             layers.rs, force.rs, given.rs; routes.rs                    └─▶ text_forms.rs
//! ```

mod chains;
mod force;
mod geometry;
#[cfg(test)]
mod geometry_tests;
mod given;
mod graph;
mod labels;
mod layers;
mod layout;
mod obstacles;
mod routes;
mod svg;
#[cfg(test)]
mod tests;
mod text_forms;
mod untangle;

use crate::ImageError;
use crate::image::{Fonts, png};
use geometry::Pixels;
use graph::Graph;
use layout::layout;
use std::collections::{BTreeMap, BTreeSet};

pub use layout::Layout;

/// A graph to draw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Picture {
    /// Its title; empty: none.
    pub title: String,
    /// The nodes, in the order of their importance to the reader: the first is at the left or top.
    pub nodes: Vec<PictureNode>,
    /// The links between them.
    pub links: Vec<PictureLink>,
    /// How the nodes are placed.
    pub layout: Layout,
}

/// A node of a picture.
#[derive(Clone, PartialEq, Debug)]
pub struct PictureNode {
    /// The text in it.
    pub name: String,
    /// A second line, such as an address; empty: none.
    pub note: String,
    /// Its symbol.
    pub symbol: Symbol,
    /// Where its author puts it, pixels.
    pub position: Option<[f64; 2]>,
}

/// A link of a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PictureLink {
    /// The indices of its nodes.
    pub ends: [usize; 2],
    /// The name that a pointer over it shows.
    pub name: String,
    /// The text along it; empty: none.
    pub label: String,
}

/// What a node of a picture is: its shape and colour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// A host.
    Host,
    /// A router.
    Router,
    /// A switch.
    Switch,
    /// An OpenFlow switch.
    OpenFlow,
    /// A network address translator.
    Nat,
    /// An uplink: a network outside of the picture.
    Outside,
}

impl Symbol {
    /// All symbols, in the order of a legend.
    const ALL: [Symbol; 6] =
        [Symbol::Host, Symbol::Router, Symbol::Switch, Symbol::OpenFlow, Symbol::Nat, Symbol::Outside];

    /// Returns its word in a legend.
    pub fn word(self) -> &'static str {
        match self {
            Symbol::Host => "host",
            Symbol::Router => "router",
            Symbol::Switch => "switch",
            Symbol::OpenFlow => "OpenFlow switch",
            Symbol::Nat => "NAT",
            Symbol::Outside => "uplink",
        }
    }

    /// The room of the mark in its box, pixels.
    fn mark_width(self) -> f64 {
        match self {
            Symbol::Nat | Symbol::Outside => 22.0,
            Symbol::Host | Symbol::Router | Symbol::Switch | Symbol::OpenFlow => 0.0,
        }
    }
}

/// Pictures with more links show their labels only under a pointer.
const LABELS_MAX: usize = 160;
/// Equal labels of more links are shown once.
const EQUAL_MAX: usize = 12;
/// The height of a line of text and the width of a letter, pixels.
const LINE: f64 = 15.0;
const LETTER: f64 = 7.2;
const SMALL_LETTER: f64 = 6.0;
/// Letters of a label that are shown.
const LABEL_MAX: usize = 60;
/// Letters of a name that are shown.
const NAME_MAX: usize = 24;

/// A picture whose nodes have their places.
pub struct Drawn<'p> {
    picture: &'p Picture,
    centres: Vec<Pixels>,
    routes: Vec<Vec<Pixels>>,
    sizes: Vec<Pixels>,
}

impl Picture {
    /// Lays the picture out. The same picture has the same layout on every machine.
    ///
    /// # Panics
    /// If a link names a node that is not there.
    pub fn draw(&self) -> Drawn<'_> {
        let sizes: Vec<Pixels> = self.nodes.iter().map(PictureNode::size).collect();
        let room = |link: &PictureLink| text_width(&shortened_to(self.label(link), LABEL_MAX), SMALL_LETTER);
        let edges: Vec<([usize; 2], f64)> = self.links.iter().map(|link| (link.ends, room(link))).collect();
        let hosts: Vec<bool> = self.nodes.iter().map(|node| node.symbol == Symbol::Host).collect();
        let given: Vec<Option<Pixels>> = self.nodes.iter().map(|node| node.position).collect();
        let graph = Graph { sizes: &sizes, edges: &edges, hosts: &hosts, given: &given };
        let placed = layout(&graph, self.layout);
        Drawn { picture: self, centres: placed.centres, routes: placed.routes, sizes }
    }

    /// Returns a picture with the leaves of a node as one node if there are `least` or more of
    /// them, and the nodes that each of its nodes stands for. None if no node has as many.
    pub fn grouped(&self, least: usize) -> Option<(Picture, Vec<Vec<usize>>)> {
        let mut near: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.nodes.len()];
        for [a, b] in self.links.iter().map(|link| link.ends) {
            near[a].insert(b);
            near[b].insert(a);
        }
        let mut leaves: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, near) in near.iter().enumerate().filter(|(_, near)| near.len() == 1) {
            let hub = near.first().copied().unwrap_or(node);
            leaves.entry(hub).or_default().push(node);
        }
        leaves.retain(|hub, leaves| leaves.len() >= least && near[*hub].len() > 1);
        if leaves.is_empty() {
            return None;
        }
        let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
        let mut grouped = Picture { title: self.title.clone(), layout: self.layout, ..Picture::default() };
        let mut members: Vec<Vec<usize>> = Vec::new();
        for (node, drawn) in self.nodes.iter().enumerate() {
            if group_of.contains_key(&node) {
                continue;
            }
            let hub = near[node].first().filter(|_| near[node].len() == 1);
            let group = hub.and_then(|hub| leaves.get(hub)).cloned().unwrap_or(vec![node]);
            group_of.extend(group.iter().map(|member| (*member, members.len())));
            let drawn = match group.len() {
                1 => drawn.clone(),
                count => PictureNode {
                    name: format!("{count} × {}", shortened_to(&drawn.name, 13)),
                    note: String::new(),
                    ..drawn.clone()
                },
            };
            grouped.nodes.push(drawn);
            members.push(group);
        }
        let mut joined: BTreeSet<[usize; 2]> = BTreeSet::new();
        for link in &self.links {
            let ends = link.ends.map(|end| group_of[&end]);
            if ends[0] != ends[1] && joined.insert([ends[0].min(ends[1]), ends[0].max(ends[1])]) {
                grouped.links.push(PictureLink { ends, label: String::new(), ..link.clone() });
            }
        }
        Some((grouped, members))
    }

    /// The label of a link, if the picture has room for labels and they differ.
    fn label<'p>(&self, link: &'p PictureLink) -> &'p str {
        let is_shown = self.links.len() <= LABELS_MAX && self.common_label().is_none();
        if is_shown { &link.label } else { "" }
    }

    /// The label that all of many links have. It is shown once.
    fn common_label(&self) -> Option<&str> {
        let label = &self.links.first()?.label;
        let is_common = self.links.len() > EQUAL_MAX && self.links.iter().all(|link| link.label == *label);
        (is_common && !label.is_empty()).then_some(label)
    }
}

impl PictureNode {
    /// Its width and height, pixels.
    fn size(&self) -> Pixels {
        let text = text_width(&shortened(&self.name), LETTER).max(text_width(&self.note, SMALL_LETTER));
        [
            (text + 18.0 + self.symbol.mark_width()).max(44.0).round(),
            if self.note.is_empty() { 32.0 } else { 32.0 + LINE },
        ]
    }
}

impl Drawn<'_> {
    /// Returns the picture.
    pub fn picture(&self) -> &Picture {
        self.picture
    }

    /// Returns the centre of each node, pixels from the upper left corner.
    pub fn centres(&self) -> &[[f64; 2]] {
        &self.centres
    }

    /// Returns the points of each link: the centres of its nodes and the bends between them.
    pub fn routes(&self) -> &[Vec<[f64; 2]>] {
        &self.routes
    }

    /// Returns the width and height of each node, pixels.
    pub fn sizes(&self) -> &[[f64; 2]] {
        &self.sizes
    }

    /// Returns it as PNG.
    ///
    /// # Errors
    /// If there is no font, or the picture is too large.
    pub fn png(&self, fonts: Fonts) -> Result<Vec<u8>, ImageError> {
        png(&self.svg(), fonts)
    }
}

fn text_width(text: &str, letter: f64) -> f64 {
    text.chars().count() as f64 * letter
}

/// A name, or its beginning, `…` and its end: names often differ at their end.
fn shortened(name: &str) -> String {
    shortened_to(name, NAME_MAX)
}

fn shortened_to(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let end = (most - 1) / 2;
    let start = name.chars().take(most - 1 - end);
    start.chain(['…']).chain(name.chars().skip(count - end)).collect()
}
