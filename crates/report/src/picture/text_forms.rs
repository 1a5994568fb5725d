//! A picture in the formats of other programs: Mermaid, Graphviz, draw.io.

use super::{Drawn, PictureNode, Symbol};
use fastpath_record::escaped;
use std::fmt::Write;

impl Drawn<'_> {
    /// Returns it as a Mermaid flowchart. Mermaid computes its own layout.
    pub fn mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        if !self.picture.title.is_empty() {
            text.insert_str(0, &format!("---\ntitle: {}\n---\n", quoted(&self.picture.title)));
        }
        for (number, node) in self.picture.nodes.iter().enumerate() {
            let words = lines(node, "<br>", mermaid_text);
            let [open, close] = match node.symbol {
                Symbol::Host => ["[", "]"],
                Symbol::Router | Symbol::Nat => ["([", "])"],
                Symbol::Switch | Symbol::OpenFlow => ["[[", "]]"],
                Symbol::Outside => ["((", "))"],
            };
            let _ = writeln!(text, "  n{number}{open}\"{words}\"{close}");
        }
        for link in &self.picture.links {
            let label = match link.label.as_str() {
                "" => String::new(),
                label => format!("|\"{}\"|", mermaid_text(label)),
            };
            let _ = writeln!(text, "  n{} ---{label} n{}", link.ends[0], link.ends[1]);
        }
        text
    }

    /// Returns it as a Graphviz graph; `neato -n` keeps the places of the nodes.
    pub fn graphviz(&self) -> String {
        let mut text =
            format!("graph {} {{\n  node [fontname=\"sans-serif\"];\n", quoted(&self.picture.title));
        let bottom = self.centres.iter().map(|centre| centre[1]).fold(0.0, f64::max);
        for (number, node) in self.picture.nodes.iter().enumerate() {
            let [x, y] = self.centres[number];
            let shape = match node.symbol {
                Symbol::Host => "box, style=rounded",
                Symbol::Router | Symbol::Nat => "ellipse",
                Symbol::Switch | Symbol::OpenFlow => "box",
                Symbol::Outside => "ellipse, style=dashed",
            };
            // Graphviz measures upward, in points.
            let pos = [x, bottom - y].map(|x| (x * 7.5).round() / 10.0);
            let label = lines(node, "\n", str::to_owned);
            let _ = writeln!(
                text,
                "  n{number} [label={}, shape={shape}, pos=\"{},{}!\"];",
                quoted(&label),
                pos[0],
                pos[1]
            );
        }
        for link in &self.picture.links {
            let _ = writeln!(
                text,
                "  n{} -- n{} [label={}, tooltip={}];",
                link.ends[0],
                link.ends[1],
                quoted(&link.label),
                quoted(&link.name)
            );
        }
        text.push_str("}\n");
        text
    }

    /// Returns it as a draw.io (diagrams.net) file.
    pub fn drawio(&self) -> String {
        let mut text = format!(
            "<mxfile host=\"fastpath\"><diagram name=\"{}\"><mxGraphModel><root>\n<mxCell id=\"0\"/>\n<mxCell id=\"1\" parent=\"0\"/>\n",
            escaped(&self.picture.title)
        );
        for (number, node) in self.picture.nodes.iter().enumerate() {
            let ([x, y], [width, height]) = (self.centres[number], self.sizes[number]);
            let style = match node.symbol {
                Symbol::Host => "rounded=1;fillColor=#e6f1f9;strokeColor=#0072b2",
                Symbol::Router => "rounded=1;arcSize=50;fillColor=#e3f4ee;strokeColor=#009e73",
                Symbol::Switch => "rounded=0;fillColor=#fdf3dc;strokeColor=#b87a00",
                Symbol::OpenFlow => "rounded=0;fillColor=#f9e9f2;strokeColor=#b04f86",
                Symbol::Nat => "rounded=1;arcSize=50;fillColor=#fbe6da;strokeColor=#d55e00",
                Symbol::Outside => "ellipse;shape=cloud;fillColor=#eeeeee;strokeColor=#666666",
            };
            let _ = writeln!(
                text,
                "<mxCell id=\"n{number}\" value=\"{}\" style=\"{style};html=0;whiteSpace=wrap\" vertex=\"1\" parent=\"1\"><mxGeometry x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{height}\" as=\"geometry\"/></mxCell>",
                escaped(&lines(node, "\n", str::to_owned)).replace('\n', "&#10;"),
                (x - width / 2.0).round(),
                (y - height / 2.0).round()
            );
        }
        for (number, link) in self.picture.links.iter().enumerate() {
            let _ = writeln!(
                text,
                "<mxCell id=\"l{number}\" value=\"{}\" style=\"endArrow=none;html=0\" edge=\"1\" parent=\"1\" source=\"n{}\" target=\"n{}\"><mxGeometry relative=\"1\" as=\"geometry\"/></mxCell>",
                escaped(&link.label),
                link.ends[0],
                link.ends[1]
            );
        }
        for element in ["root", "mxGraphModel", "diagram", "mxfile"] {
            let _ = write!(text, "</{element}>");
        }
        text.push('\n');
        text
    }
}

/// The name and the note of a node, each made safe.
fn lines(node: &PictureNode, between: &str, safe: impl Fn(&str) -> String) -> String {
    let note = if node.note.is_empty() { String::new() } else { format!("{between}{}", safe(&node.note)) };
    format!("{}{note}", safe(&node.name))
}

/// Text inside quotes of Mermaid: everything with a meaning becomes an entity.
fn mermaid_text(text: &str) -> String {
    let mut safe = String::new();
    for letter in text.chars() {
        match letter {
            '"' | '#' | '<' | '>' | '&' | '`' | ';' | '|' => {
                let _ = write!(safe, "#{};", u32::from(letter));
            }
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}

/// A string of Graphviz and of YAML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
