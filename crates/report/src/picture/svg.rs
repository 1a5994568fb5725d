//! A picture as SVG. It follows the colour scheme of the reader: light or dark.

use super::geometry::{Pixels, distance};
use super::{Drawn, LINE, PictureNode, SMALL_LETTER, Symbol, shortened, text_width};
use fastpath_record::escaped;
use std::collections::BTreeMap;
use std::fmt::Write;

const MARGIN: f64 = 20.0;
/// How far apart parallel links bend, pixels.
const BEND: f64 = 26.0;
const STYLE: &str = "\
svg{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:12px;background:#fff}\
text{fill:#1a1a1a;text-anchor:middle}\
.note{font-size:10px;fill:#555}\
.label{font-size:10px;fill:#333;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}\
.title{font-size:15px;font-weight:bold}\
.link{fill:none;stroke:#7a8690;stroke-width:1.6px}\
.node{stroke-width:1.6px}\
.mark{fill:none;stroke-width:1.4px;stroke-linecap:round}\
.host{fill:#e6f1f9;stroke:#0072b2}.router{fill:#e3f4ee;stroke:#009e73}\
.switch{fill:#fdf3dc;stroke:#b87a00}.openflow{fill:#f9e9f2;stroke:#b04f86}\
.nat{fill:#fbe6da;stroke:#d55e00}.outside{fill:#eee;stroke:#666;stroke-dasharray:4 3}\
@media(prefers-color-scheme:dark){svg{background:#15191d}text{fill:#e8e8e8}.note{fill:#aaa}\
.label{fill:#ccc;stroke:#15191d}.link{stroke:#8a98a4}\
.host{fill:#12364d}.router{fill:#0d3b2e}.switch{fill:#44330c}.openflow{fill:#43203a}\
.nat{fill:#4a2611}.outside{fill:#2a2f34}}";

impl Symbol {
    fn class(self) -> &'static str {
        match self {
            Symbol::Host => "host",
            Symbol::Router => "router",
            Symbol::Switch => "switch",
            Symbol::OpenFlow => "openflow",
            Symbol::Nat => "nat",
            Symbol::Outside => "outside",
        }
    }

    /// The radius of the corners of its box, pixels.
    fn corner(self) -> f64 {
        match self {
            Symbol::Host => 5.0,
            Symbol::Router | Symbol::Nat => 16.0,
            Symbol::Switch | Symbol::OpenFlow => 0.0,
            Symbol::Outside => 12.0,
        }
    }
}

impl Drawn<'_> {
    /// Returns it as SVG.
    pub fn svg(&self) -> String {
        let corners = self.centres.iter().zip(&self.sizes);
        let [right, bottom] = corners.fold([120.0f64, 0.0], |[x, y], (centre, size)| {
            [x.max(centre[0] + size[0] / 2.0), y.max(centre[1] + size[1] / 2.0)]
        });
        let title = &self.picture.title;
        let head = if title.is_empty() { 0.0 } else { 2.0 * LINE };
        let legend = self.legend();
        let width = (right.max(text_width(title, 9.5)).max(legend.1) + 2.0 * MARGIN).ceil();
        let height = (bottom + head + 2.0 * MARGIN + 2.0 * LINE).ceil();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n<style>{STYLE}</style>\n"
        );
        if !title.is_empty() {
            line(
                &mut svg,
                format_args!(
                    "<title>{0}</title>\n<text class=\"title\" x=\"{1}\" y=\"{2}\">{0}</text>",
                    escaped(title),
                    tenth(width / 2.0),
                    MARGIN + LINE / 2.0
                ),
            );
        }
        let shift = [((width - right) / 2.0).max(MARGIN), head + MARGIN];
        line(&mut svg, format_args!("<g transform=\"translate({} {})\">", tenth(shift[0]), tenth(shift[1])));
        let bends = self.bends();
        for (number, bend) in bends.iter().enumerate() {
            self.link(&mut svg, number, *bend);
        }
        for (number, bend) in bends.iter().enumerate() {
            self.label(&mut svg, number, *bend);
        }
        for (node, (centre, size)) in self.picture.nodes.iter().zip(self.centres.iter().zip(&self.sizes)) {
            draw_node(&mut svg, node, *centre, *size);
        }
        line(
            &mut svg,
            format_args!(
                "</g>\n<g transform=\"translate({MARGIN} {})\">{}</g>\n</svg>",
                tenth(height - 1.5 * LINE),
                legend.0
            ),
        );
        svg
    }

    /// How far each link bends from the straight line: parallel links bend apart.
    fn bends(&self) -> Vec<f64> {
        let pair = |ends: [usize; 2]| [ends[0].min(ends[1]), ends[0].max(ends[1])];
        let mut counts: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        self.picture.links.iter().for_each(|link| *counts.entry(pair(link.ends)).or_default() += 1);
        let mut seen: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let bend = |link: &super::PictureLink| {
            let number = seen.entry(pair(link.ends)).or_default();
            *number += 1;
            let middle = (counts[&pair(link.ends)] as f64 + 1.0) / 2.0;
            let side = if link.ends[0] <= link.ends[1] { 1.0 } else { -1.0 };
            side * (*number as f64 - middle) * BEND
        };
        self.picture.links.iter().map(bend).collect()
    }

    fn link(&self, svg: &mut String, number: usize, bend: f64) {
        let link = &self.picture.links[number];
        let [a, b] = link.ends.map(|node| self.centres[node]);
        let [x, y] = control(a, b, 2.0 * bend);
        let tip =
            if link.label.is_empty() { link.name.clone() } else { format!("{}: {}", link.name, link.label) };
        let path = match () {
            // A link of a node to itself: a loop above it.
            () if a == b => format!("M{0} {1}c-40 -60 40 -60 0 0", tenth(a[0]), tenth(a[1] - 14.0)),
            () if bend == 0.0 => format!("M{} {}L{} {}", tenth(a[0]), tenth(a[1]), tenth(b[0]), tenth(b[1])),
            () => format!(
                "M{} {}Q{} {} {} {}",
                tenth(a[0]),
                tenth(a[1]),
                tenth(x),
                tenth(y),
                tenth(b[0]),
                tenth(b[1])
            ),
        };
        line(svg, format_args!("<path class=\"link\" d=\"{path}\"><title>{}</title></path>", escaped(&tip)));
    }

    /// Writes the label of a link along it.
    fn label(&self, svg: &mut String, number: usize, bend: f64) {
        let link = &self.picture.links[number];
        let label = self.picture.label(link);
        if label.is_empty() {
            return;
        }
        let [a, b] = link.ends.map(|node| self.centres[node]);
        // In the middle of what is seen of the link.
        let seen = [self.leaves_box(link.ends[0], b), self.leaves_box(link.ends[1], a)];
        let [x, y] = control(seen[0], seen[1], bend);
        let mut degrees = libm::atan2(b[1] - a[1], b[0] - a[0]).to_degrees();
        // Text is never upside down.
        if !(-90.0..90.0).contains(&degrees) {
            degrees -= 180.0f64.copysign(degrees);
        }
        line(
            svg,
            format_args!(
                "<text class=\"label\" transform=\"translate({} {}) rotate({})\" y=\"-4\">{}</text>",
                tenth(x),
                tenth(y),
                tenth(degrees),
                escaped(label)
            ),
        );
    }

    /// The point at which a line from the centre of a node to another point leaves its box.
    fn leaves_box(&self, node: usize, to: Pixels) -> Pixels {
        let (centre, size) = (self.centres[node], self.sizes[node]);
        let share = [0, 1].map(|axis| size[axis] / 2.0 / (to[axis] - centre[axis]).abs().max(1e-9));
        let share = share[0].min(share[1]).min(0.5);
        [0, 1].map(|axis| centre[axis] + share * (to[axis] - centre[axis]))
    }

    /// The symbols that occur, with their words, and the width of it all.
    fn legend(&self) -> (String, f64) {
        let mut text = String::new();
        let mut x = 0.0;
        let occurs = |symbol: &Symbol| self.picture.nodes.iter().any(|node| node.symbol == *symbol);
        for symbol in Symbol::ALL.into_iter().filter(occurs) {
            let words = symbol.word();
            let _ = write!(
                text,
                "<rect class=\"node {}\" x=\"{}\" y=\"-9\" width=\"18\" height=\"11\" rx=\"{}\"/><text class=\"note\" style=\"text-anchor:start\" x=\"{}\" y=\"0\">{words}</text>",
                symbol.class(),
                tenth(x),
                symbol.corner().min(5.5),
                tenth(x + 24.0)
            );
            x += 24.0 + text_width(words, SMALL_LETTER) + 20.0;
        }
        (text, x)
    }
}

/// The middle between two points, moved aside by some pixels.
fn control(a: Pixels, b: Pixels, aside: f64) -> Pixels {
    let length = distance(a, b).max(1.0);
    let across = [(a[1] - b[1]) / length, (b[0] - a[0]) / length];
    [0, 1].map(|axis| (a[axis] + b[axis]) / 2.0 + aside * across[axis])
}

fn draw_node(svg: &mut String, node: &PictureNode, [x, y]: Pixels, [width, height]: Pixels) {
    let (class, corner) = (node.symbol.class(), node.symbol.corner());
    let name = shortened(&node.name);
    let baseline = if node.note.is_empty() { y + 4.0 } else { y - 3.0 };
    let tip = if node.note.is_empty() { String::new() } else { format!(", {}", node.note) };
    line(
        svg,
        format_args!(
            "<g><title>{}{} ({})</title><rect class=\"node {class}\" x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" rx=\"{corner}\"/><text x=\"{}\" y=\"{}\">{}</text>",
            escaped(&node.name),
            escaped(&tip),
            node.symbol.word(),
            tenth(x - width / 2.0),
            tenth(y - height / 2.0),
            tenth(x),
            tenth(baseline),
            escaped(&name)
        ),
    );
    if !node.note.is_empty() {
        line(
            svg,
            format_args!(
                "<text class=\"note\" x=\"{}\" y=\"{}\">{}</text>",
                tenth(x),
                tenth(y + 12.0),
                escaped(&node.note)
            ),
        );
    }
    svg.push_str("</g>\n");
}

/// A number of pixels, to a tenth.
fn tenth(x: f64) -> f64 {
    // Adding zero turns -0 into 0.
    (x * 10.0).round() / 10.0 + 0.0
}

fn line(svg: &mut String, text: std::fmt::Arguments) {
    let _ = writeln!(svg, "{text}");
}
