//! A picture as SVG. It follows the colour scheme of the reader: light or dark.

use super::geometry::{Block, Pixels, between, distance};
use super::labels::{Labels, Place};
use super::{
    Drawn, LABEL_MAX, LINE, PictureLink, PictureNode, SMALL_LETTER, Symbol, shortened, shortened_to,
    text_width,
};
use fastpath_record::escaped;
use std::fmt::Write;

const MARGIN: f64 = 20.0;
/// Bends are rounded from this distance on, pixels. They stay clear of the corner inside.
const ROUND: f64 = 9.0;
const STYLE: &str = "\
svg{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:12px;background:#fff}\
text{fill:#1a1a1a;text-anchor:middle}\
.note{font-size:10px;fill:#555}\
.label{font-size:10px;fill:#333;paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}\
.title{font-size:15px;font-weight:bold}\
.link{fill:none;stroke:#7a8690;stroke-width:1.6px}\
.node{stroke-width:1.6px}\
.mark{stroke-width:1.4px;stroke-linecap:round;stroke-linejoin:round}\
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
            Symbol::Router => 16.0,
            Symbol::Nat => 3.0,
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
        let bends = self.routes.iter().flatten();
        let [right, bottom] = bends.fold([right, bottom], |[x, y], bend| [x.max(bend[0]), y.max(bend[1])]);
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
        (0..self.routes.len()).for_each(|number| self.link(&mut svg, number));
        self.labels(&mut svg);
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

    fn link(&self, svg: &mut String, number: usize) {
        let link = &self.picture.links[number];
        let tip =
            if link.label.is_empty() { link.name.clone() } else { format!("{}: {}", link.name, link.label) };
        let path = path(&self.routes[number], link.ends.map(|node| self.block(node)));
        line(svg, format_args!("<path class=\"link\" d=\"{path}\"><title>{}</title></path>", escaped(&tip)));
    }

    fn block(&self, node: usize) -> Block {
        Block { centre: self.centres[node], size: self.sizes[node] }
    }

    /// Writes the labels of links along them.
    fn labels(&self, svg: &mut String) {
        let shown = |link: &PictureLink| shortened_to(self.picture.label(link), LABEL_MAX);
        let label = |link: &PictureLink| text_width(&shown(link), SMALL_LETTER);
        let places = Labels {
            routes: &self.routes,
            ends: self.picture.links.iter().map(|link| link.ends).collect(),
            widths: self.picture.links.iter().map(label).collect(),
            blocks: (0..self.centres.len()).map(|node| self.block(node)).collect(),
        }
        .place();
        for (link, found) in self.picture.links.iter().zip(places) {
            let Some(Place { middle: [x, y], degrees, .. }) = found else { continue };
            line(
                svg,
                format_args!(
                    "<text class=\"label\" transform=\"translate({} {}) rotate({})\" y=\"-4\">{}</text>",
                    tenth(x),
                    tenth(y),
                    tenth(degrees),
                    escaped(&shown(link))
                ),
            );
        }
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
        if let Some(label) = self.picture.common_label() {
            let words = format!("each link: {label}");
            let _ = write!(
                text,
                "<text class=\"note\" style=\"text-anchor:start\" x=\"{}\" y=\"0\">{}</text>",
                tenth(x),
                escaped(&words)
            );
            x += text_width(&words, SMALL_LETTER);
        }
        (text, x)
    }
}

/// A line through points, with rounded bends.
fn path(route: &[Pixels], [from, to]: [Block; 2]) -> String {
    let mut path = String::new();
    let point = |path: &mut String, word: &str, [x, y]: Pixels| {
        let _ = write!(path, "{word}{} {}", tenth(x), tenth(y));
    };
    for (number, &here) in route.iter().enumerate() {
        if number == 0 {
            point(&mut path, "M", here);
            continue;
        }
        let Some(&after) = route.get(number + 1) else {
            point(&mut path, "L", here);
            continue;
        };
        let before = route[number - 1];
        // Bends at the edge of a box of its own are not seen.
        if [from, to].iter().any(|block| block.is_hit(here, here, 1.0)) {
            point(&mut path, "L", here);
            continue;
        }
        let toward = |to: Pixels| {
            between(here, to, ROUND.min(distance(here, to) / 2.0) / distance(here, to).max(1e-9))
        };
        point(&mut path, "L", toward(before));
        point(&mut path, "Q", here);
        point(&mut path, " ", toward(after));
    }
    path
}

/// The mark of a symbol with its middle at the origin: a NAT translates in both directions, an
/// uplink leads to a cloud.
fn mark(symbol: Symbol) -> &'static str {
    match symbol {
        Symbol::Nat => "M-7 -3h13m-4 -3l4 3l-4 3M7 4h-13m4 -3l-4 3l4 3",
        Symbol::Outside => "M-5 5h10a3.5 3.5 0 0 0 0.5 -7a5 5 0 0 0 -9.5 -1.5a4.3 4.3 0 0 0 -1 8.5z",
        Symbol::Host | Symbol::Router | Symbol::Switch | Symbol::OpenFlow => "",
    }
}

fn draw_node(svg: &mut String, node: &PictureNode, [x, y]: Pixels, [width, height]: Pixels) {
    let left = x - width / 2.0;
    // The text is in the middle of what its mark leaves.
    let middle = x + node.symbol.mark_width() / 2.0;
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
            tenth(left),
            tenth(y - height / 2.0),
            tenth(middle),
            tenth(baseline),
            escaped(&name)
        ),
    );
    if node.symbol.mark_width() > 0.0 {
        line(
            svg,
            format_args!(
                "<path class=\"mark {class}\" style=\"fill:none;stroke-dasharray:none\" transform=\"translate({} {})\" d=\"{}\"/>",
                tenth(left + 17.0),
                tenth(y),
                mark(node.symbol)
            ),
        );
    }
    if !node.note.is_empty() {
        line(
            svg,
            format_args!(
                "<text class=\"note\" x=\"{}\" y=\"{}\">{}</text>",
                tenth(middle),
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
