//! Halves a graph: two sets of vertices of given shares of the work, with little traffic between
//! them. Greedy growth from several starts, each refined by passes of Fiduccia and Mattheyses ("A
//! linear-time heuristic for improving network partitions", DAC 1982).
//!
//! Everything is deterministic: ties go to the vertex with the lowest number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Vertices with their work, and edges with their traffic.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) work: Vec<u64>,
    /// By vertex: its neighbors, each with the traffic between the two.
    pub(super) neighbors: Vec<Vec<(usize, u64)>>,
}

/// Growths from different starts, of which the best is kept.
const STARTS: usize = 6;
/// In graphs with more vertices one start must do.
const LARGE: usize = 20_000;
/// Passes of the refinement.
const PASSES: usize = 8;
/// The imbalance that is tolerated, as a divisor of all work: 3 %.
const TOLERANCE: u64 = 32;

/// One way to halve the vertices. A smaller one is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Quality {
    /// How much the imbalance exceeds the tolerance.
    excess: u64,
    cut: u64,
    imbalance: u64,
}

/// The vertices of a graph that are to be halved.
struct Halving<'g> {
    graph: &'g Graph,
    vertices: &'g [usize],
    /// By vertex of the graph: whether it is one of `vertices`.
    is_member: Vec<bool>,
    /// The work that the first half should have.
    target: u64,
    tolerance: u64,
}

/// Returns which of `vertices` are in the first half, which should have `shares[0]` of `shares[0] +
/// shares[1]` parts of their work. Neither half is empty if there are two vertices.
pub(super) fn bisect(graph: &Graph, vertices: &[usize], shares: [u64; 2]) -> Vec<usize> {
    let total: u64 = vertices.iter().map(|&vertex| graph.work[vertex]).sum();
    let mut is_member = vec![false; graph.work.len()];
    vertices.iter().for_each(|&vertex| is_member[vertex] = true);
    let target = (u128::from(total) * u128::from(shares[0]) / u128::from(shares[0] + shares[1])) as u64;
    let halving = Halving { graph, vertices, is_member, target, tolerance: total / TOLERANCE };
    let count = if vertices.len() > LARGE { 1 } else { STARTS.min(vertices.len()) };
    let far = halving.farthest(vertices[0]);
    let spread = (1..count).map(|number| vertices[number * vertices.len() / count]);
    let best = std::iter::once(far).chain(spread).map(|start| {
        let mut half = halving.grow(start);
        let quality = halving.refine(&mut half);
        (quality, half)
    });
    let (_, half) = best.min_by_key(|(quality, _)| *quality).expect("there is a start");
    vertices.iter().copied().filter(|&vertex| half[vertex]).collect()
}

impl Halving<'_> {
    fn neighbors(&self, vertex: usize) -> impl Iterator<Item = (usize, u64)> {
        self.graph.neighbors[vertex].iter().copied().filter(|(other, _)| self.is_member[*other])
    }

    /// The last vertex that a breadth-first search reaches.
    fn farthest(&self, start: usize) -> usize {
        let mut seen = vec![false; self.graph.work.len()];
        let (mut queue, mut next) = (vec![start], 0);
        seen[start] = true;
        while let Some(&vertex) = queue.get(next) {
            next += 1;
            for (other, _) in self.neighbors(vertex) {
                if !std::mem::replace(&mut seen[other], true) {
                    queue.push(other);
                }
            }
        }
        queue[queue.len() - 1]
    }

    /// Grows a half from `start`: the vertex that has the most traffic with it comes next, until it
    /// has its work. By vertex: whether it is in the half.
    fn grow(&self, start: usize) -> Vec<bool> {
        let mut half = vec![false; self.graph.work.len()];
        let mut gains = vec![0; self.graph.work.len()];
        let mut frontier = BinaryHeap::from([(0, Reverse(start))]);
        let (mut work, mut taken, mut rest) = (0, 0, self.vertices.iter());
        while taken + 1 < self.vertices.len() && (work < self.target || taken == 0) {
            // Where the graph is not connected the half goes on elsewhere.
            let next = frontier.pop().map(|(_, Reverse(vertex))| vertex);
            let Some(vertex) = next.or_else(|| rest.find(|&&vertex| !half[vertex]).copied()) else { break };
            if half[vertex] {
                continue;
            }
            let more = self.graph.work[vertex];
            // The half ends before a vertex that takes it farther from its work.
            if taken > 0 && (work + more).saturating_sub(self.target) > self.target - work {
                if frontier.is_empty() {
                    break;
                }
                continue;
            }
            half[vertex] = true;
            (work, taken) = (work + more, taken + 1);
            for (other, traffic) in self.neighbors(vertex).filter(|(other, _)| !half[*other]) {
                gains[other] += traffic;
                frontier.push((gains[other], Reverse(other)));
            }
        }
        half
    }

    fn quality(&self, work: u64, cut: u64) -> Quality {
        let imbalance = work.abs_diff(self.target);
        Quality { excess: imbalance.saturating_sub(self.tolerance), cut, imbalance }
    }

    fn measure(&self, half: &[bool]) -> (u64, u64, usize) {
        let (mut work, mut cut, mut count) = (0, 0, 0);
        for &vertex in self.vertices.iter().filter(|&&vertex| half[vertex]) {
            work += self.graph.work[vertex];
            count += 1;
            let across = self.neighbors(vertex).filter(|(other, _)| !half[*other]);
            cut += across.map(|(_, traffic)| traffic).sum::<u64>();
        }
        (work, cut, count)
    }

    /// Moves single vertices between the halves as long as that helps.
    fn refine(&self, half: &mut [bool]) -> Quality {
        let (work, cut, _) = self.measure(half);
        let mut best = self.quality(work, cut);
        for _ in 0..PASSES {
            let quality = self.pass(half);
            if quality >= best {
                break;
            }
            best = quality;
        }
        best
    }

    /// One pass: every vertex moves once, the best first, and what came after the best state is
    /// undone. Returns the quality of that state.
    fn pass(&self, half: &mut [bool]) -> Quality {
        let (mut work, cut, mut count) = self.measure(half);
        let mut cut = cut as i64;
        let mut gains: Vec<i64> = vec![0; self.graph.work.len()];
        let mut locked: Vec<bool> = self.is_member.iter().map(|is_member| !is_member).collect();
        let mut heaps = [BinaryHeap::new(), BinaryHeap::new()];
        for &vertex in self.vertices {
            let side = |other: usize| if half[other] == half[vertex] { -1 } else { 1 };
            gains[vertex] = self.neighbors(vertex).map(|(other, traffic)| side(other) * traffic as i64).sum();
            heaps[usize::from(half[vertex])].push((gains[vertex], Reverse(vertex)));
        }
        let mut best = (self.quality(work, cut as u64), 0);
        let mut moves = Vec::new();
        loop {
            for (side, heap) in heaps.iter_mut().enumerate() {
                let is_stale = |&(gain, Reverse(vertex)): &(i64, Reverse<usize>)| {
                    locked[vertex] || gains[vertex] != gain || usize::from(half[vertex]) != side
                };
                while heap.peek().is_some_and(is_stale) {
                    heap.pop();
                }
            }
            // What is above its work gives; the halves take turns within the tolerance.
            let allowed = |side: usize| {
                let leaves_one = if side == 1 { count > 1 } else { count + 1 < self.vertices.len() };
                let gives = if side == 1 {
                    work + self.tolerance >= self.target
                } else {
                    work <= self.target + self.tolerance
                };
                leaves_one && gives
            };
            let top = |side: usize| heaps[side].peek().copied().filter(|_| allowed(side));
            let Some((gain, Reverse(vertex))) = top(0).max(top(1)) else { break };
            heaps[usize::from(half[vertex])].pop();
            locked[vertex] = true;
            let more = self.graph.work[vertex];
            (work, count) = if half[vertex] { (work - more, count - 1) } else { (work + more, count + 1) };
            half[vertex] = !half[vertex];
            cut -= gain;
            moves.push(vertex);
            for (other, traffic) in self.neighbors(vertex).filter(|(other, _)| !locked[*other]) {
                gains[other] += if half[other] == half[vertex] { -2 } else { 2 } * traffic as i64;
                heaps[usize::from(half[other])].push((gains[other], Reverse(other)));
            }
            best = best.min((self.quality(work, cut as u64), moves.len()));
        }
        for &vertex in &moves[best.1..] {
            half[vertex] = !half[vertex];
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(work: &[u64], edges: &[(usize, usize, u64)]) -> Graph {
        let mut graph = Graph { work: work.to_vec(), neighbors: vec![Vec::new(); work.len()] };
        for &(a, b, traffic) in edges {
            graph.neighbors[a].push((b, traffic));
            graph.neighbors[b].push((a, traffic));
        }
        graph
    }

    fn halves(graph: &Graph, shares: [u64; 2]) -> Vec<usize> {
        let all: Vec<usize> = (0..graph.work.len()).collect();
        bisect(graph, &all, shares)
    }

    #[test]
    fn two_clusters_are_cut_at_the_edge_between_them() {
        // Two squares, joined by one thin edge; the vertices alternate.
        let edges = [
            (0, 2, 5),
            (2, 4, 5),
            (4, 6, 5),
            (6, 0, 5),
            (1, 3, 5),
            (3, 5, 5),
            (5, 7, 5),
            (7, 1, 5),
            (4, 5, 1),
        ];
        let half = halves(&graph(&[1; 8], &edges), [1, 1]);
        assert!(half == [0, 2, 4, 6] || half == [1, 3, 5, 7], "{half:?}");
    }

    #[test]
    fn shares_may_differ_and_a_graph_need_not_be_connected() {
        let half = halves(&graph(&[1; 9], &[]), [1, 2]);
        assert_eq!(half.len(), 3);
        // A heavy vertex is a half of its own.
        assert_eq!(halves(&graph(&[100, 1, 1, 1], &[(0, 1, 9), (0, 2, 9), (0, 3, 9)]), [1, 1]).len() % 2, 1);
    }

    /// The best cut of all with equal halves, by trying all of them.
    #[test]
    fn small_graphs_are_cut_nearly_as_well_as_possible() {
        let mut rng = fastpath_units::Rng::new(5);
        let (mut ours, mut optimal) = (0, 0);
        for _ in 0..60 {
            let mut edges = Vec::new();
            for a in 0..10 {
                for b in 0..a {
                    if rng.below(3) == 0 {
                        edges.push((a, b, 1 + rng.below(9)));
                    }
                }
            }
            let graph = graph(&[1; 10], &edges);
            let cut = |is_in: &dyn Fn(usize) -> bool| {
                edges.iter().filter(|(a, b, _)| is_in(*a) != is_in(*b)).map(|edge| edge.2).sum::<u64>()
            };
            let half = halves(&graph, [1, 1]);
            assert_eq!(half.len(), 5, "balanced");
            ours += cut(&|vertex| half.contains(&vertex));
            let equal = (0..1u32 << 10).filter(|set| set.count_ones() == 5);
            optimal += equal.map(|set| cut(&|vertex| set >> vertex & 1 == 1)).min().expect("a half");
        }
        assert!(ours * 100 <= optimal * 108, "{ours} against {optimal}");
    }
}
