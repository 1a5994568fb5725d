//! Where the nodes of a picture are, and which ways its links take: each connected component by
//! itself, in layers where it has any (`layers.rs`), else by its distances (`force.rs`), or at the
//! positions that are given. Then the components are packed, and links are routed (`routes.rs`).

use super::chains;
use super::force;
use super::geometry::{Block, Pixels};
use super::given;
use super::graph::{GAP, Graph, components, neighbors};
use super::layers::{self, Layers};
use super::routes::Links;
use std::cmp::Reverse;

/// How the nodes of a picture are placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// At their positions if all have one, in layers where there are any, else by distances.
    #[default]
    Auto,
    /// In layers: hosts below, and each node above those that it joins.
    Layers,
    /// So that distances approach the lengths of shortest paths.
    Force,
    /// At their positions. A node without one is near its neighbours.
    Given,
}

/// A graph with its places.
pub(super) struct Placed {
    /// The centre of each node; the upper left corner of the drawing is the origin.
    pub(super) centres: Vec<Pixels>,
    /// The points of each link: the centres of its nodes, and bends between them.
    pub(super) routes: Vec<Vec<Pixels>>,
}

/// Lays a graph out.
pub(super) fn layout(graph: &Graph, choice: Layout) -> Placed {
    let count = graph.sizes.len();
    let mut placed = Places { centres: vec![[0.0; 2]; count], layers: vec![None; count] };
    let are_all_given = count > 0 && graph.given.iter().all(Option::is_some);
    if choice == Layout::Given || (choice == Layout::Auto && are_all_given) {
        given::place(graph, &mut placed.centres);
    } else {
        place_components(graph, choice, &mut placed);
    }
    let Places { centres, layers } = placed;
    let block = |(centre, size): (&Pixels, &Pixels)| Block { centre: *centre, size: *size };
    let blocks: Vec<Block> = centres.iter().zip(graph.sizes).map(block).collect();
    let ends: Vec<[usize; 2]> = graph.edges.iter().map(|(ends, _)| *ends).collect();
    let via = |number: usize, aside: f64| layers::between_layers(ends[number], aside, &blocks, &layers);
    let routes = Links::new(&blocks, &ends).routes(via);
    Placed { centres, routes }
}

/// Places that are found: of each node its centre, and its layer if its component has layers.
struct Places {
    centres: Vec<Pixels>,
    layers: Vec<Option<layers::Level>>,
}

fn place_components(graph: &Graph, choice: Layout, placed: &mut Places) {
    let neighbors = neighbors(graph);
    let mut parts = components(&neighbors);
    parts.sort_by_key(|part| (Reverse(part.len()), part[0]));
    for part in &parts {
        let found = (choice != Layout::Force).then(|| Layers::of(graph, &neighbors, part)).flatten();
        match found {
            Some(layers) if choice == Layout::Layers || layers.is_natural => {
                layers.place(graph.sizes, &mut placed.centres, &mut placed.layers);
            }
            _ if chains::place(graph, &neighbors, part, &mut placed.centres) => {}
            _ => force::place_component(graph, &neighbors, part, &mut placed.centres),
        }
    }
    pack(graph.sizes, &parts, &mut placed.centres);
}

/// Packs components into rows from the upper left corner.
fn pack(sizes: &[Pixels], parts: &[Vec<usize>], centres: &mut [Pixels]) {
    let bounds = |part: &[usize], centres: &[Pixels]| -> [Pixels; 2] {
        let edge = |axis: usize, sign: f64| {
            part.iter().map(move |node| sign * (centres[*node][axis] + sign * sizes[*node][axis] / 2.0))
        };
        let least = [0, 1].map(|axis| -edge(axis, -1.0).fold(f64::NEG_INFINITY, f64::max));
        let most = [0, 1].map(|axis| edge(axis, 1.0).fold(f64::NEG_INFINITY, f64::max));
        [least, most]
    };
    let boxes: Vec<[Pixels; 2]> = parts.iter().map(|part| bounds(part, centres)).collect();
    let extent =
        |[least, most]: &[Pixels; 2]| [most[0] - least[0] + 2.0 * GAP, most[1] - least[1] + 2.0 * GAP];
    let area: f64 = boxes.iter().map(|b| extent(b)[0] * extent(b)[1]).sum();
    let widest = boxes.iter().map(|b| extent(b)[0]).fold(0.0, f64::max);
    let row_width = widest.max((area * 1.6).sqrt());
    let (mut x, mut y, mut row_height) = (0.0, 0.0, 0.0f64);
    for (part, bounds) in parts.iter().zip(&boxes) {
        let [width, height] = extent(bounds);
        if x > 0.0 && x + width > row_width {
            (x, y, row_height) = (0.0, y + row_height, 0.0);
        }
        let shift = [x + GAP - bounds[0][0], y + GAP - bounds[0][1]];
        for &node in part {
            centres[node] = [centres[node][0] + shift[0], centres[node][1] + shift[1]];
        }
        x += width;
        row_height = row_height.max(height);
    }
}
