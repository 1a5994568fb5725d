//! Layouts keep nodes apart and in place; hostile names stay text.

use super::geometry::Pixels;
use super::graph::Graph;
use super::layout::layout;
use super::*;
use std::collections::BTreeSet;

/// Returns the centres of a graph without hosts.
fn centres(sizes: &[Pixels], edges: &[([usize; 2], f64)]) -> Vec<Pixels> {
    let (hosts, given) = (vec![false; sizes.len()], vec![None; sizes.len()]);
    layout(&Graph { sizes, edges, hosts: &hosts, given: &given }, Layout::Auto).centres
}

/// A small generator of the tests' own: graphs must not depend on one under test.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A random graph: a tree of most nodes, and some links in addition.
fn graph(seed: u64, nodes: usize, more: usize) -> (Vec<Pixels>, Vec<([usize; 2], f64)>) {
    let mut numbers = Numbers(seed);
    let sizes = (0..nodes)
        .map(|_| [44.0 + numbers.below(90) as f64, 32.0 + 15.0 * numbers.below(2) as f64])
        .collect();
    let mut edges: Vec<([usize; 2], f64)> = Vec::new();
    for node in 1..nodes {
        if numbers.below(20) > 0 {
            edges.push(([node, numbers.below(node)], numbers.below(60) as f64));
        }
    }
    edges.extend((0..more).map(|_| ([numbers.below(nodes), numbers.below(nodes)], 0.0)));
    (sizes, edges)
}

fn overlaps(sizes: &[Pixels], centres: &[Pixels]) -> Vec<[usize; 2]> {
    let pairs = (0..sizes.len()).flat_map(|b| (0..b).map(move |a| [a, b]));
    let overlap = |[a, b]: &[usize; 2]| {
        (0..2).all(|axis| {
            (centres[*a][axis] - centres[*b][axis]).abs() < (sizes[*a][axis] + sizes[*b][axis]) / 2.0
        })
    };
    pairs.filter(overlap).collect()
}

#[test]
fn no_two_nodes_overlap_and_all_are_in_the_drawing() {
    for seed in 0..150 {
        let (sizes, edges) = graph(seed, 1 + seed as usize % 70, seed as usize % 40);
        let centres = self::centres(&sizes, &edges);
        assert_eq!(overlaps(&sizes, &centres), [[0; 2]; 0], "seed {seed}");
        let is_inside =
            |(centre, size): (&Pixels, &Pixels)| (0..2).all(|axis| centre[axis] >= size[axis] / 2.0);
        assert!(centres.iter().zip(&sizes).all(is_inside), "seed {seed}");
        assert!(centres.iter().flatten().all(|x| x.is_finite()), "seed {seed}");
    }
}

#[test]
fn large_graphs_of_each_kind_are_laid_out_without_overlap() {
    type Edges = Vec<([usize; 2], f64)>;
    let star = |n: usize| (1..n).map(|i| ([0, i], 0.0)).collect::<Edges>();
    let chain = |n: usize| (1..n).map(|i| ([i - 1, i], 0.0)).collect::<Edges>();
    let ring = |n: usize| (0..n).map(|i| ([i, (i + 1) % n], 0.0)).collect::<Edges>();
    let none = |_: usize| Edges::new();
    for edges in [star(700), chain(700), ring(700), none(700)] {
        let sizes = vec![[60.0, 32.0]; 700];
        let centres = self::centres(&sizes, &edges);
        assert_eq!(overlaps(&sizes, &centres).len(), 0);
    }
    let (sizes, edges) = graph(5, 1000, 1500);
    assert_eq!(overlaps(&sizes, &centres(&sizes, &edges)).len(), 0);
}

/// The share of nodes that keep their place, within one and a half boxes, when a leaf is added.
#[test]
fn a_leaf_more_moves_the_others_little() {
    let (mut kept, mut all) = (0, 0);
    for seed in 0..40 {
        let (mut sizes, mut edges) = graph(seed, 25, 6);
        let before = centres(&sizes, &edges);
        edges.push(([Numbers(seed).below(25), 25], 0.0));
        sizes.push([60.0, 32.0]);
        let after = centres(&sizes, &edges);
        // A drawing may grow to the left or to the top: compare after moving it back.
        let shift = [0, 1].map(|axis| {
            let mut moves: Vec<f64> = before.iter().zip(&after).map(|(a, b)| b[axis] - a[axis]).collect();
            moves.sort_by(f64::total_cmp);
            moves[moves.len() / 2]
        });
        all += before.len();
        kept += before
            .iter()
            .zip(&after)
            .filter(|(a, b)| (0..2).all(|axis| (b[axis] - a[axis] - shift[axis]).abs() < 100.0))
            .count();
    }
    assert!(kept * 100 >= all * 75, "{kept} of {all} nodes keep their place");
}

fn node(name: &str, symbol: Symbol) -> PictureNode {
    PictureNode { name: name.to_owned(), note: String::new(), symbol, position: None }
}

#[test]
fn small_pictures_read_from_left_to_right() {
    let link = |a, b| PictureLink { ends: [a, b], name: format!("{a}-{b}"), label: "10Mbit 25ms".to_owned() };
    let hosts = |names: &[&str]| names.iter().map(|name| node(name, Symbol::Host)).collect::<Vec<_>>();
    let two = Picture { nodes: hosts(&["a", "b"]), links: vec![link(0, 1)], ..Picture::default() };
    let drawn = two.draw();
    assert!(drawn.centres()[0][0] < drawn.centres()[1][0]);
    assert!((drawn.centres()[0][1] - drawn.centres()[1][1]).abs() < 0.01);
    // A chain is a straight line, and its label fits between the boxes.
    let links = vec![link(0, 1), link(1, 2), link(2, 3), link(3, 4)];
    let chain = Picture { nodes: hosts(&["a", "r1", "r2", "r3", "b"]), links, ..Picture::default() };
    let drawn = chain.draw();
    for pair in drawn.centres().windows(2) {
        assert!(pair[1][0] - pair[0][0] > 44.0 + 11.0 * SMALL_LETTER, "{pair:?}");
        assert!((pair[1][1] - pair[0][1]).abs() < 4.0, "{pair:?}");
    }
}

#[test]
fn hostile_names_are_text_in_every_format() {
    let names =
        ["<img onerror=x>", "a\"]; n9[\"x", "&amp;\u{1}\u{1b}[31m", "```\n|#;", "]]>", &"long ".repeat(40)];
    let symbols = Symbol::ALL.into_iter().cycle();
    let nodes: Vec<PictureNode> =
        names.iter().zip(symbols).map(|(name, symbol)| node(name, symbol)).collect();
    let links = (1..nodes.len())
        .map(|i| PictureLink { ends: [0, i], name: names[i].to_owned(), label: names[i].to_owned() })
        .collect();
    let picture = Picture { title: "</title><script>".to_owned(), nodes, links, ..Picture::default() };
    let drawn = picture.draw();
    let svg = drawn.svg();
    // The parser of the PNG reads it, and finds no element of a name.
    #[cfg(feature = "png")]
    assert!(resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).is_ok());
    for text in [&svg, &drawn.drawio()] {
        assert!(!text.contains("<img") && !text.contains("<script") && !text.contains('\u{1b}'), "{text}");
    }
    let mermaid = drawn.mermaid();
    let lines: BTreeSet<&str> = mermaid
        .lines()
        .skip(4)
        .map(|line| line.trim_start().split(['[', '(', ' ']).next().unwrap())
        .collect();
    assert_eq!(lines.len(), names.len(), "each line begins with a node of ours: {mermaid}");
    assert!(!drawn.graphviz().contains("a\"]; n9"));
}

#[test]
fn parallel_links_are_seen_apart() {
    let link = |ends| PictureLink { ends, name: "l".to_owned(), label: String::new() };
    let nodes = vec![node("a", Symbol::Host), node("b", Symbol::Host)];
    let links = vec![link([0, 1]), link([1, 0]), link([0, 1])];
    let picture = Picture { nodes, links, ..Picture::default() };
    let svg = picture.draw().svg();
    let paths: BTreeSet<&str> = svg.lines().filter(|line| line.contains("class=\"link\"")).collect();
    let shapes: BTreeSet<&str> = paths.iter().filter_map(|line| line.split(" d=").nth(1)).collect();
    assert_eq!(shapes.len(), 3, "{svg}");
}
