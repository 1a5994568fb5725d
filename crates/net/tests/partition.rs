//! Partitions of topologies: every node is in one part, cuts have a lookahead, parts are balanced,
//! and the same topology always has the same parts.

use fastpath_link::{Change, JitterLaw, JitterSpec, PipeSpec};
use fastpath_net::{JoinedLinks, NoCut, Partition};
use fastpath_spec::{Direction, LinkId, NodeId, NodeKind, Topology};
use fastpath_units::{Duration, Rng};
use proptest::prelude::*;
use std::num::NonZeroUsize;

fn parse(text: &str) -> Topology {
    fastpath_spec::parse(text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0])).0
}

fn parts(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).expect("above 0")
}

/// A random graph of hosts with delays of which some are 0.
fn topology(nodes: usize, links: usize, seed: u64) -> Topology {
    let mut rng = Rng::new(seed);
    let mut topology = Topology::default();
    for node in 0..nodes {
        topology.add_node(format!("n{node}"), NodeKind::Switch);
    }
    for link in 0..links {
        let ends = [(); 2].map(|()| NodeId(rng.below(nodes as u64) as u32));
        let delay = Duration::from_ps(rng.below(4) * rng.below(1_000_000));
        let pipe = PipeSpec { delay, ..PipeSpec::default() };
        topology.connect(format!("l{link}"), ends[0], ends[1], [pipe.clone(), pipe]);
    }
    topology
}

proptest! {
    #[test]
    fn no_link_without_a_delay_is_cut(nodes in 1usize..40, links in 0usize..80, count in 1usize..9, seed: u64) {
        let topology = topology(nodes, links, seed);
        for partition in [Partition::new(&topology, parts(count)), Partition::random(&topology, parts(count), seed)] {
            prop_assert!((1..=count).contains(&partition.count()));
            let mut members: Vec<NodeId> = (0..partition.count()).flat_map(|part| partition.nodes(part)).collect();
            prop_assert!((0..partition.count()).all(|part| partition.nodes(part).next().is_some()));
            members.sort_unstable();
            prop_assert_eq!(members, (0..nodes as u32).map(NodeId).collect::<Vec<_>>());
            let mut cuts = partition.cuts().iter();
            for (index, link) in topology.links.iter().enumerate() {
                let ends = link.ends.map(|(node, _)| partition.part_of(node));
                if ends[0] == ends[1] {
                    continue;
                }
                let cut = cuts.next().expect("a cut for each link between parts");
                prop_assert_eq!((cut.link.0 as usize, cut.parts), (index, ends));
                prop_assert_eq!(cut.lookahead, [link.pipes[0].delay, link.pipes[1].delay]);
                prop_assert!(cut.lookahead.iter().all(|lookahead| !lookahead.is_zero()));
            }
            prop_assert!(cuts.next().is_none());
        }
        prop_assert_eq!(Partition::new(&topology, parts(count)), Partition::new(&topology, parts(count)));
    }
}

#[test]
fn a_dumbbell_is_cut_at_its_bottleneck() {
    let mut text = "[router.left]\n[router.right]\n".to_owned();
    for pair in 0..20 {
        for (host, router) in [(format!("a{pair}"), "left"), (format!("b{pair}"), "right")] {
            text += &format!("[host.{host}]\n[[link]]\nbetween = ['{host}', '{router}']\ndelay = '1ms'\n");
        }
    }
    text += "[[link]]\nbetween = ['left', 'right']\nname = 'middle'\ndelay = '10ms'\n";
    let topology = parse(&text);
    let partition = Partition::new(&topology, parts(2));
    let cut: Vec<&str> = partition.cuts().iter().map(|cut| topology.link(cut.link).name.as_str()).collect();
    assert_eq!((partition.count(), &cut[..]), (2, &["middle"][..]));
    assert!(partition.expected_speedup() > 1.9, "{}", partition.expected_speedup());
    assert_eq!(partition.lookahead_min(), Some(Duration::from_ms(10)));
}

#[test]
fn a_grid_is_balanced_for_any_number_of_parts() {
    let mut topology = Topology::default();
    let side = 20;
    for node in 0..side * side {
        topology.add_node(format!("n{node}"), NodeKind::Switch);
    }
    let pipe = PipeSpec { delay: Duration::from_ms(1), ..PipeSpec::default() };
    for at in 0..side * side {
        for (there, to) in [(at % side + 1 < side, at + 1), (at / side + 1 < side, at + side)] {
            if there {
                let ends = [NodeId(at), NodeId(to)];
                topology.connect(format!("{at}-{to}"), ends[0], ends[1], [pipe.clone(), pipe.clone()]);
            }
        }
    }
    for count in [2, 3, 4, 7, 8] {
        let partition = Partition::new(&topology, parts(count));
        assert_eq!(partition.count(), count);
        let most = partition.shares().into_iter().fold(0.0, f64::max);
        assert!(most * count as f64 <= 1.15, "{count} parts: {most}");
    }
    // The best cut of a square grid in two is its side.
    assert!(Partition::new(&topology, parts(2)).cuts().len() <= 24);
}

#[test]
fn traffic_decides_where_the_work_is() {
    // Two of four chains carry all the traffic, so that each part has one of them.
    let mut text = "family = 'v4'\n[router.r]\n".to_owned();
    for chain in 0..4 {
        text += &format!("[host.a{chain}]\n[router.m{chain}]\n[host.b{chain}]\n");
        for (a, b) in [("a", "m"), ("m", "b")] {
            text += &format!("[[link]]\nbetween = ['{a}{chain}', '{b}{chain}']\ndelay = '1ms'\n");
        }
        text += &format!("[[link]]\nbetween = ['m{chain}', 'r']\ndelay = '1ms'\n");
        if chain < 2 {
            text += &format!(
                "[[traffic]]\nfrom = 'a{chain}'\nto = 'b{chain}'\nkind = 'constant'\nsize = 100\nrate = '80Mbit'\nstop = '1s'\n"
            );
        }
    }
    let topology = parse(&text);
    let partition = Partition::new(&topology, parts(2));
    let part = |name: &str| partition.part_of(topology.node_named(name).expect("a node"));
    assert_eq!((part("a0"), part("a1")), (part("b0"), part("b1")));
    assert_ne!(part("a0"), part("a1"));
    assert_eq!(partition.expected_hops_per_s(), Some(600_000));
}

#[test]
fn what_cannot_be_cut_stays_in_one_part_and_is_named() {
    let text =
        "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']\n";
    let partition = Partition::new(&parse(text), parts(8));
    let why = |link| JoinedLinks::Link(LinkId(link), NoCut::NoDelay);
    assert_eq!((partition.count(), partition.joined()), (1, &[why(0), why(1)][..]));
    assert_eq!(partition.expected_speedup(), 1.0);
    let grouped = "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\ndelay = '1ms'\ngroup = 'g'\n\
        [[link]]\nbetween = ['r', 'b']\ndelay = '1ms'\ntrace = { poisson = '2Mbit', length = '100ms', seed = 3 }\ngroup = 'g'\n\
        [group.g]\nstart = 'first-packet'\n";
    let partition = Partition::new(&parse(grouped), parts(2));
    assert_eq!((partition.count(), partition.joined()), (1, &[JoinedLinks::Group(0)][..]));
}

#[test]
fn a_change_below_the_lookahead_of_a_cut_is_refused_with_the_number() {
    let text = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '5ms'\n\
        [[event]]\nat = '1s'\nlink = 'a-b'\ndelay = '3ms'\n";
    let topology = parse(text);
    let partition = Partition::new(&topology, parts(2));
    let check = |change| partition.check_change(&topology, &(LinkId(0), Direction::Backward, change));
    let delay = |ms| Change { delay: Some(Duration::from_ms(ms)), ..Change::default() };
    assert_eq!((check(delay(3)), check(delay(9)), check(Change::default())), (Ok(()), Ok(()), Ok(())));
    let refusal = check(delay(2)).expect_err("it is refused").to_string();
    assert!(
        refusal.starts_with("a-b: the network is cut at this link, which is known to be at least 3ms long"),
        "{refusal}"
    );
    let uniform = JitterSpec::in_order(JitterLaw::Uniform { half_width: Duration::from_us(1) });
    assert!(check(Change { jitter: Some(Some(Box::new(uniform))), ..Change::default() }).is_err());
}
