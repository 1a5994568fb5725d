//! A topology as a picture: SVG, PNG, Mermaid, Graphviz or draw.io.

use crate::records::system_fonts;
use crate::{Error, Result};
#[cfg(target_os = "linux")]
use fastpath_engine::control::{Dashboard, HttpAddress};
use fastpath_link::PipeSpec;
#[cfg(target_os = "linux")]
use fastpath_report::picture::Drawn;
use fastpath_report::picture::{Picture, PictureLink, PictureNode, Symbol};
use fastpath_spec::{Link, Node, NodeKind, Topology, values};
use serde_json::Value;
#[cfg(target_os = "linux")]
use serde_json::json;
use std::fs;
use std::path::Path;

pub use fastpath_report::picture::PictureLayout;

/// As many leaves of a node are one in a grouped picture.
#[cfg(target_os = "linux")]
const LEAVES_MIN: usize = 4;
/// Addresses are shown in pictures of at most this many nodes.
const ADDRESSES_MAX: usize = 40;

/// Returns a topology as a picture: its nodes in the order of the spec, addresses of hosts if
/// there are few, and what links do.
pub fn picture(topology: &Topology, title: &str) -> Picture {
    picture_in(topology, title, PictureLayout::Auto)
}

/// Returns a topology as a picture with this layout.
pub fn picture_in(topology: &Topology, title: &str, layout: PictureLayout) -> Picture {
    let has_addresses = topology.nodes.len() <= ADDRESSES_MAX;
    let node = |node: &Node| PictureNode {
        name: node.name.clone(),
        note: match &node.look.foreign_kind {
            Some(kind) => kind.clone(),
            None if has_addresses => address(node),
            None => String::new(),
        },
        symbol: symbol(&node.kind),
        position: node.look.position,
    };
    let link = |link: &Link| PictureLink {
        ends: link.ends.map(|(node, _)| node.0 as usize),
        name: link.name.clone(),
        label: label(topology, link),
    };
    Picture {
        title: title.to_owned(),
        nodes: topology.nodes.iter().map(node).collect(),
        links: topology.links.iter().map(link).collect(),
        layout,
    }
}

/// Returns the dashboard of a network at `address`, with the layout of [`picture`].
#[cfg(target_os = "linux")]
pub fn dashboard(address: HttpAddress) -> Dashboard {
    Dashboard { address, picture: places, nodes: None }
}

/// The places of nodes and the ways of links as JSON, the answer to `GET /picture`. Where nodes
/// have many leaves, `grouped` is a picture with the leaves of a node as one.
#[cfg(target_os = "linux")]
fn places(topology: &Topology) -> Value {
    let picture = picture(topology, "");
    let mut answer = drawn_json(&picture.draw());
    if let Some((grouped, members)) = picture.grouped(LEAVES_MIN) {
        let mut drawn = drawn_json(&grouped.draw());
        for (node, members) in members.iter().enumerate() {
            let names = members.iter().map(|member| json!(picture.nodes[*member].name));
            drawn["nodes"][node]["names"] = Value::Array(names.collect());
        }
        answer["grouped"] = drawn;
    }
    answer
}

#[cfg(target_os = "linux")]
fn drawn_json(drawn: &Drawn) -> Value {
    let picture = drawn.picture();
    let places = drawn.centres().iter().zip(drawn.sizes());
    let node = |(node, ([x, y], [width, height])): (&PictureNode, (&[f64; 2], &[f64; 2]))| {
        let kind = match node.symbol {
            Symbol::Host => "host",
            Symbol::Router => "router",
            Symbol::Switch => "switch",
            Symbol::OpenFlow => "openflow",
            Symbol::Nat => "nat",
            Symbol::Outside => "outside",
        };
        json!({ "name": node.name, "note": node.note, "kind": kind, "x": x, "y": y, "width": width,
            "height": height })
    };
    let tenth = |x: f64| (x * 10.0).round() / 10.0;
    let link = |(link, route): (&PictureLink, &Vec<[f64; 2]>)| {
        let points: Vec<[f64; 2]> = route.iter().map(|point| point.map(tenth)).collect();
        json!({ "name": link.name, "ends": link.ends, "points": points })
    };
    json!({
        "nodes": picture.nodes.iter().zip(places).map(node).collect::<Vec<_>>(),
        "links": picture.links.iter().zip(drawn.routes()).map(link).collect::<Vec<_>>(),
    })
}

fn symbol(kind: &NodeKind) -> Symbol {
    match kind {
        NodeKind::Host { .. } => Symbol::Host,
        NodeKind::Uplink { .. } => Symbol::Outside,
        NodeKind::Switch => Symbol::Switch,
        NodeKind::OpenFlow { .. } => Symbol::OpenFlow,
        NodeKind::Nat { .. } => Symbol::Nat,
        NodeKind::Router { .. } | NodeKind::KernelRouter { .. } => Symbol::Router,
    }
}

/// The address of a host with one interface.
fn address(node: &Node) -> String {
    match (node.kind.is_edge(), node.interfaces.as_slice()) {
        (true, [interface]) => {
            interface.addresses.first().map(|net| net.addr().to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// What a link does, in few words: `10Mbit 25ms 1% codel`. If its directions differ, both, from
/// its first node and from its second.
fn label(topology: &Topology, link: &Link) -> String {
    let [(node, interface), _] = link.ends;
    let id = topology.node(node).interfaces[interface].link;
    let [forward, backward] = [0, 1].map(|pipe| {
        let traces = topology.tracks_of(id, pipe).iter().map(|track| trace(&track.source.to_string()));
        let words = std::iter::once(words(&link.pipes[pipe])).chain(traces);
        words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ")
    });
    match forward == backward {
        true => forward,
        false => [("→ ", forward), ("← ", backward)]
            .into_iter()
            .map(|(arrow, words)| format!("{arrow}{}", if words.is_empty() { "ideal" } else { &words }))
            .collect::<Vec<_>>()
            .join("  "),
    }
}

/// A trace by the name of its file, not by the way to it.
fn trace(source: &str) -> String {
    let name = source.rsplit(['/', '\\']).next().unwrap_or(source);
    format!("trace {name}")
}

fn words(pipe: &PipeSpec) -> String {
    let values = values(pipe);
    let word = |key: &str| -> Option<String> {
        match values.get(key)? {
            Value::String(text) => Some(text.clone()),
            // Loss by a model, and a queue with parameters, have a kind.
            Value::Object(table) => Some(table.get("kind").and_then(Value::as_str).unwrap_or(key).to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    };
    let words = ["rate", "delay", "jitter", "loss", "egress_loss"].into_iter().filter_map(|key| {
        let text = word(key)?;
        Some(match key {
            "jitter" if text != key => format!("±{text}"),
            _ => text,
        })
    });
    // The limit of a drop-tail queue is not of interest here: it begins with a digit.
    let is_plain = |kind: &str| kind == "unlimited" || kind.starts_with(|c: char| c.is_ascii_digit());
    let queue = word("queue").filter(|kind| !is_plain(kind));
    words.chain(queue).collect::<Vec<_>>().join(" ")
}

/// The formats of pictures, by the extensions of files.
pub const EXTENSIONS: [&str; 5] = ["svg", "png", "mmd", "dot", "drawio"];

/// Checks that a picture with given positions has one.
///
/// # Errors
/// [`Error::Argument`] if no node has a position.
pub fn check_positions(picture: &Picture, path: &Path) -> Result<()> {
    if picture.layout == PictureLayout::Given && picture.nodes.iter().all(|node| node.position.is_none()) {
        let path = path.display();
        return Err(Error::Argument(format!(
            "{path}: no node has a position; write position = [x, y] at nodes, or --layout auto"
        )));
    }
    Ok(())
}

/// Writes a picture; the extension of the file decides its format, see [`EXTENSIONS`].
///
/// # Errors
/// [`Error::Argument`] for another extension, and for a PNG without a font or that is too large;
/// [`Error::File`] if the file cannot be written.
pub fn write_picture(path: &Path, picture: &Picture) -> Result<()> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if !EXTENSIONS.contains(&extension) {
        let path = path.display();
        return Err(Error::Argument(format!(
            "{path}: name the picture *.svg, *.png, *.mmd (Mermaid), *.dot (Graphviz) or *.drawio"
        )));
    }
    let drawn = picture.draw();
    let bytes = match extension {
        "svg" => drawn.svg().into_bytes(),
        "mmd" => drawn.mermaid().into_bytes(),
        "dot" => drawn.graphviz().into_bytes(),
        "drawio" => drawn.drawio().into_bytes(),
        _ => drawn.png(system_fonts()).map_err(crate::records::at(path))?,
    };
    fs::write(path, bytes).map_err(Error::file(path))
}
