//! Pictures of graphs, such as network topologies: laid out once, written as SVG, PNG, Mermaid,
//! Graphviz or draw.io.
//!
//! ```text
//!  Picture { nodes, links } ─▶ layout.rs: a centre for each node ─┬─▶ svg.rs ─▶ PNG
//!                                                                └─▶ text_forms.rs
//! ```

mod geometry;
mod layout;
mod svg;
#[cfg(test)]
mod tests;
mod text_forms;

use crate::ImageError;
use crate::image::{Fonts, png};
use geometry::Pixels;
use layout::{Graph, layout};

/// A graph to draw.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Picture {
    /// Its title; empty: none.
    pub title: String,
    /// The nodes, in the order of their importance to the reader: the first is at the left or top.
    pub nodes: Vec<PictureNode>,
    /// The links between them.
    pub links: Vec<PictureLink>,
}

/// A node of a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PictureNode {
    /// The text in it.
    pub name: String,
    /// A second line, such as an address; empty: none.
    pub note: String,
    /// Its symbol.
    pub symbol: Symbol,
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
    /// A network outside of the picture.
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
            Symbol::Outside => "outside",
        }
    }
}

/// Pictures with more links show their labels only under a pointer.
const LABELS_MAX: usize = 60;
/// The height of a line of text and the width of a letter, pixels.
const LINE: f64 = 15.0;
const LETTER: f64 = 7.2;
const SMALL_LETTER: f64 = 6.0;
/// Letters of a name that are shown.
const NAME_MAX: usize = 24;

/// A picture whose nodes have their places.
pub struct Drawn<'p> {
    picture: &'p Picture,
    centres: Vec<Pixels>,
    sizes: Vec<Pixels>,
}

impl Picture {
    /// Lays the picture out. The same picture has the same layout on every machine.
    ///
    /// # Panics
    /// If a link names a node that is not there.
    pub fn draw(&self) -> Drawn<'_> {
        let sizes: Vec<Pixels> = self.nodes.iter().map(PictureNode::size).collect();
        let room = |link: &PictureLink| text_width(self.label(link), SMALL_LETTER);
        let edges: Vec<([usize; 2], f64)> = self.links.iter().map(|link| (link.ends, room(link))).collect();
        let centres = layout(&Graph { sizes: &sizes, edges: &edges });
        Drawn { picture: self, centres, sizes }
    }

    /// The label of a link, if the picture has room for labels.
    fn label<'p>(&self, link: &'p PictureLink) -> &'p str {
        if self.links.len() > LABELS_MAX { "" } else { &link.label }
    }
}

impl PictureNode {
    /// Its width and height, pixels.
    fn size(&self) -> Pixels {
        let text = text_width(&shortened(&self.name), LETTER).max(text_width(&self.note, SMALL_LETTER));
        [(text + 18.0).max(44.0).round(), if self.note.is_empty() { 32.0 } else { 32.0 + LINE }]
    }
}

impl Drawn<'_> {
    /// Returns the centre of each node, pixels from the upper left corner.
    pub fn centres(&self) -> &[[f64; 2]] {
        &self.centres
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

/// A name, or its beginning and `…`.
fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}
