//! No link is behind a node: distances are computed from what is drawn, over topologies of many
//! kinds, sizes and names.

use super::*;

type Pairs = Vec<[usize; 2]>;

/// A topology: its name, the symbols of its nodes, its links.
struct Sample {
    name: String,
    symbols: Vec<Symbol>,
    links: Pairs,
}

impl Sample {
    fn new(name: &str, symbols: Vec<Symbol>, links: Pairs) -> Sample {
        Sample { name: name.to_owned(), symbols, links }
    }

    /// The picture of it; `letters`: the length of the names of nodes.
    fn picture(&self, letters: usize, label: &str, choice: Layout) -> Picture {
        let node = |(number, symbol): (usize, &Symbol)| PictureNode {
            name: format!("{number:a>letters$}"),
            note: String::new(),
            symbol: *symbol,
            position: None,
        };
        let link = |ends: &[usize; 2]| PictureLink {
            ends: *ends,
            name: format!("{}-{}", ends[0], ends[1]),
            label: label.to_owned(),
        };
        Picture {
            title: String::new(),
            nodes: self.symbols.iter().enumerate().map(node).collect(),
            links: self.links.iter().map(link).collect(),
            layout: choice,
        }
    }
}

fn routers(count: usize) -> Vec<Symbol> {
    vec![Symbol::Router; count]
}

fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound.max(1)
    }
}

/// The fat tree of Al-Fares, Loukissas and Vahdat 2008.
fn fat_tree(k: usize) -> Sample {
    let half = k / 2;
    let cores = half * half;
    let mut symbols = vec![Symbol::Switch; cores + k * k];
    let mut links = Vec::new();
    for pod in 0..k {
        let [above, below] = [cores + pod * k, cores + pod * k + half];
        for i in 0..half {
            links.extend((0..half).map(|j| [i * half + j, above + i]));
            links.extend((0..half).map(|j| [above + j, below + i]));
            for _ in 0..half {
                links.push([below + i, symbols.len()]);
                symbols.push(Symbol::Host);
            }
        }
    }
    Sample::new(&format!("fat tree of {k}"), symbols, links)
}

fn clos(spines: usize, leaves: usize, hosts: usize) -> Sample {
    let mut symbols = routers(spines + leaves);
    let mut links: Pairs =
        (0..leaves).flat_map(|leaf| (0..spines).map(move |spine| [spine, spines + leaf])).collect();
    for leaf in 0..leaves {
        for _ in 0..hosts {
            links.push([spines + leaf, symbols.len()]);
            symbols.push(Symbol::Host);
        }
    }
    Sample::new(&format!("clos {spines} {leaves} {hosts}"), symbols, links)
}

/// Routers in a tree with some links in addition, and hosts at them.
fn provider(nodes: usize, more: usize, seed: u64) -> Sample {
    let mut below = numbers(seed);
    let routing = nodes * 3 / 5;
    let mut links: Pairs = (1..routing).map(|node| [below(node), node]).collect();
    links.extend((0..more).map(|_| [below(routing), below(routing)]).filter(|[a, b]| a != b));
    let mut symbols = routers(routing);
    for host in routing..nodes {
        links.push([below(routing), host]);
        symbols.push(Symbol::Host);
    }
    Sample::new(&format!("provider {nodes} {more} {seed}"), symbols, links)
}

/// Each node has links to others, rather to those that have many (Barabasi and Albert 1999).
fn preferential(nodes: usize, links: usize, seed: u64) -> Sample {
    let mut below = numbers(seed);
    let mut ends: Vec<usize> = (0..links).collect();
    let mut all = Vec::new();
    for node in links..nodes {
        for _ in 0..links {
            let to = ends[below(ends.len())];
            all.push([to, node]);
            ends.extend([to, node]);
        }
    }
    Sample::new(&format!("preferential {nodes} {links}"), routers(nodes), all)
}

fn grid(side: usize) -> Sample {
    let at = |row: usize, column: usize| row * side + column;
    let mut links = Vec::new();
    for row in 0..side {
        for column in 0..side {
            links.extend((column + 1 < side).then(|| [at(row, column), at(row, column + 1)]));
            links.extend((row + 1 < side).then(|| [at(row, column), at(row + 1, column)]));
        }
    }
    Sample::new(&format!("grid {side}"), routers(side * side), links)
}

fn samples() -> Vec<Sample> {
    let ring = |count: usize| (0..count).map(|i| [i, (i + 1) % count]).collect::<Pairs>();
    let star = |count: usize| (1..count).map(|i| [0, i]).collect::<Pairs>();
    let chain = |count: usize| (1..count).map(|i| [i - 1, i]).collect::<Pairs>();
    let mut star_symbols = vec![Symbol::Host; 61];
    star_symbols[0] = Symbol::Switch;
    let mut all = vec![
        fat_tree(4),
        fat_tree(6),
        clos(2, 4, 1),
        clos(4, 8, 3),
        clos(4, 8, 0),
        clos(2, 6, 30),
        Sample::new("ring", routers(20), ring(20)),
        Sample::new("star of 60", star_symbols, star(61)),
        Sample::new("chain of 200", routers(200), chain(200)),
        Sample::new("islands", routers(12), vec![[0, 1], [1, 2], [3, 4], [5, 6], [6, 7], [7, 5]]),
        Sample::new("one node", routers(1), Vec::new()),
        Sample::new("a loop", routers(2), vec![[0, 0], [0, 1]]),
        Sample::new("no links", routers(30), Vec::new()),
        Sample::new("no nodes", Vec::new(), Vec::new()),
        Sample::new("48 links of a pair", routers(3), [vec![[0, 1]; 48], vec![[1, 2]; 3]].concat()),
        grid(3),
        grid(6),
        preferential(40, 2, 1),
        preferential(90, 3, 2),
        provider(60, 4, 1),
    ];
    all.extend((0..60).map(|seed| provider(8 + seed as usize, seed as usize % 30, seed)));
    all
}

/// The points of a path of the SVG: curves are divided into short lines.
fn points(path: &str) -> Vec<Pixels> {
    let mut all: Vec<Pixels> = Vec::new();
    let spaced = path.replace('M', " M ").replace('L', " L ").replace('Q', " Q ");
    let mut words = spaced.split_whitespace().peekable();
    let number = |words: &mut std::iter::Peekable<std::str::SplitWhitespace>| -> f64 {
        words.next().and_then(|word| word.parse().ok()).expect("a number")
    };
    while let Some(word) = words.next() {
        let mut point = || [number(&mut words), number(&mut words)];
        match word {
            "M" | "L" => all.push(point()),
            "Q" => {
                let (from, bend, to) = (all[all.len() - 1], point(), point());
                for step in 1..=8 {
                    let t = f64::from(step) / 8.0;
                    let at = |axis: usize| {
                        (1.0 - t).powi(2) * from[axis] + 2.0 * t * (1.0 - t) * bend[axis] + t * t * to[axis]
                    };
                    all.push([at(0), at(1)]);
                }
            }
            other => panic!("a word of a path: {other}"),
        }
    }
    all
}

fn attribute(line: &str, name: &str) -> f64 {
    let rest = line.split(&format!(" {name}=\"")).nth(1).expect("the attribute");
    rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
}

/// Each link that touches the box of a node that it does not join, from the text of the SVG.
fn behind(picture: &Picture) -> Vec<String> {
    let svg = picture.draw().svg();
    let nodes: Vec<[f64; 4]> = svg
        .lines()
        .filter(|line| line.contains("<rect class=\"node ") && line.starts_with("<g><title>"))
        .map(|line| ["x", "y", "width", "height"].map(|name| attribute(line, name)))
        .collect();
    assert_eq!(nodes.len(), picture.nodes.len());
    let paths = svg.lines().filter_map(|line| line.strip_prefix("<path class=\"link\" d=\""));
    let paths: Vec<Vec<Pixels>> = paths.map(|rest| points(rest.split('"').next().unwrap_or(""))).collect();
    assert_eq!(paths.len(), picture.links.len());
    let mut found = Vec::new();
    for (link, path) in picture.links.iter().zip(&paths) {
        for (number, [x, y, width, height]) in nodes.iter().enumerate() {
            // Steps of two pixels along the line: a box is larger.
            let is_inside =
                |[px, py]: Pixels| (*x..=x + width).contains(&px) && (*y..=y + height).contains(&py);
            let is_hit = path.windows(2).any(|pair| {
                let steps = (geometry::distance(pair[0], pair[1]) / 2.0).ceil().max(1.0) as usize;
                (0..=steps).any(|i| is_inside(geometry::between(pair[0], pair[1], i as f64 / steps as f64)))
            });
            if is_hit && !link.ends.contains(&number) {
                found.push(format!("{} is behind {number}", link.name));
            }
        }
    }
    found
}

#[test]
fn no_link_is_behind_a_node_that_it_does_not_join() {
    for sample in samples() {
        for (letters, label) in [(3, ""), (40, "10Mbit 25ms")] {
            let found = behind(&sample.picture(letters, label, Layout::Auto));
            assert!(found.is_empty(), "{}, names of {letters}: {found:?}", sample.name);
        }
    }
    for sample in samples().iter().filter(|sample| sample.symbols.len() < 62) {
        for choice in [Layout::Layers, Layout::Force] {
            let found = behind(&sample.picture(6, "", choice));
            assert!(found.is_empty(), "{}, {choice:?}: {found:?}", sample.name);
        }
    }
}

#[test]
fn a_straight_link_behind_a_node_is_found() {
    let mut picture = Sample::new("three", routers(3), vec![[0, 2]]).picture(3, "", Layout::Given);
    for (node, x) in picture.nodes.iter_mut().zip([0.0, 200.0, 400.0]) {
        node.position = Some([x, 0.0]);
    }
    assert_eq!(behind(&picture), [""; 0]);
    let drawn = picture.draw();
    // It bends. Without the bends the test finds it.
    assert!(drawn.routes()[0].len() > 2, "{:?}", drawn.routes());
    let straight = [drawn.centres()[0], drawn.centres()[2]];
    let block = geometry::Block { centre: drawn.centres()[1], size: drawn.sizes()[1] };
    assert!(block.is_hit(straight[0], straight[1], 0.0));
}

#[test]
fn layers_are_drawn_where_there_are_any() {
    for (sample, heights) in [(fat_tree(4), 4), (clos(2, 4, 1), 3), (clos(4, 8, 0), 2)] {
        let picture = sample.picture(4, "", Layout::Auto);
        let drawn = picture.draw();
        let rows: BTreeSet<i64> = drawn.centres().iter().map(|centre| centre[1].round() as i64).collect();
        assert_eq!(rows.len(), heights, "{}: {rows:?}", sample.name);
        let highest = drawn.centres().iter().map(|centre| centre[1]).fold(f64::INFINITY, f64::min);
        assert!(drawn.centres()[0][1] == highest, "{}: a spine is at the top", sample.name);
    }
    // A grid and a provider have none.
    let grid = grid(6).picture(3, "", Layout::Auto);
    let rows: BTreeSet<i64> = grid.draw().centres().iter().map(|centre| (centre[1] / 8.0) as i64).collect();
    assert!(rows.len() > 5, "{rows:?}");
}

#[test]
fn a_router_more_moves_the_median_node_by_less_than_100() {
    let mut samples = vec![fat_tree(4), clos(4, 8, 3), clos(2, 4, 1), grid(6), preferential(40, 2, 1)];
    samples.extend((0..15).map(|seed| provider(60, 4, seed)));
    let mut medians = Vec::new();
    for sample in &mut samples {
        let picture = sample.picture(4, "", Layout::Auto);
        let before = picture.draw().centres().to_vec();
        sample.links.push([1, sample.symbols.len()]);
        sample.symbols.push(Symbol::Router);
        let picture = sample.picture(4, "", Layout::Auto);
        let after = picture.draw().centres().to_vec();
        let mut moves: Vec<f64> =
            before.iter().zip(&after).map(|(a, b)| geometry::distance(*a, *b)).collect();
        moves.sort_by(f64::total_cmp);
        medians.push((sample.name.clone(), moves[moves.len() / 2].round()));
    }
    // Where a link more makes many paths shorter, a drawing by distances changes as a whole.
    let far = medians.iter().filter(|(_, median)| *median >= 100.0).count();
    assert!(far * 4 <= medians.len(), "{medians:?}");
    assert!(medians[..4].iter().all(|(_, median)| *median < 100.0), "{medians:?}");
}

#[test]
fn given_positions_are_kept_and_other_nodes_are_near_their_neighbours() {
    let mut picture =
        Sample::new("four", routers(4), vec![[0, 1], [1, 2], [2, 3]]).picture(3, "", Layout::Given);
    let positions = [[0.0, 0.0], [300.0, 40.0], [300.0, 400.0]];
    for (node, position) in picture.nodes.iter_mut().zip(positions) {
        node.position = Some(position);
    }
    let drawn = picture.draw();
    let shift = [0, 1].map(|axis| drawn.centres()[0][axis]);
    for (centre, position) in drawn.centres().iter().zip(positions) {
        assert_eq!([0, 1].map(|axis| centre[axis] - shift[axis]), position);
    }
    assert!(geometry::distance(drawn.centres()[2], drawn.centres()[3]) < 150.0);
    // With a position for all, `auto` keeps them too.
    picture.nodes[3].position = Some([-50.0, 400.0]);
    picture.layout = Layout::Auto;
    let drawn = picture.draw();
    let [a, b] = [drawn.centres()[0], drawn.centres()[3]];
    assert_eq!([b[0] - a[0], b[1] - a[1]], [-50.0, 400.0]);
    // Degrees of a map are another unit: the boxes do not overlap.
    for (node, position) in
        picture.nodes.iter_mut().zip([[13.4, 52.5], [10.0, 53.5], [11.6, 48.1], [7.0, 51.0]])
    {
        node.position = Some(position);
    }
    let drawn = picture.draw();
    assert!(geometry::distance(drawn.centres()[0], drawn.centres()[1]) > 50.0, "{:?}", drawn.centres());
}

#[test]
fn equal_labels_are_written_once_and_others_do_not_overlap_nodes() {
    let sample = Sample::new("pairs", routers(49), (1..49).map(|i| [0, i]).collect());
    let svg = sample.picture(3, "10Mbit 25ms", Layout::Auto).draw().svg();
    assert_eq!(svg.matches("each link: 10Mbit 25ms").count(), 1);
    assert!(!svg.contains("class=\"label\""));
    let mut picture = provider(60, 3, 5).picture(3, "", Layout::Auto);
    for (number, link) in picture.links.iter_mut().enumerate() {
        link.label = format!("{number}Mbit 5ms");
    }
    let svg = picture.draw().svg();
    let shown = svg.matches("class=\"label\"").count();
    assert!(shown * 10 >= picture.links.len() * 9, "{shown} of {} labels", picture.links.len());
}

#[test]
fn many_leaves_of_a_node_are_one_in_a_grouped_picture() {
    let picture = clos(2, 4, 6).picture(30, "", Layout::Auto);
    let (grouped, members) = picture.grouped(4).expect("leaves");
    assert_eq!((grouped.nodes.len(), grouped.links.len()), (10, 12));
    assert_eq!(members.iter().map(Vec::len).sum::<usize>(), picture.nodes.len());
    assert!(grouped.nodes[6].name.starts_with("6 × "), "{:?}", grouped.nodes[6]);
    assert_eq!(behind(&grouped), [""; 0]);
    assert!(grid(3).picture(3, "", Layout::Auto).grouped(4).is_none());
}
