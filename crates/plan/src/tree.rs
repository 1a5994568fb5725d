//! Decision trees for rules with many different masks. A node reads a few adjacent bits of the
//! packed key and selects a child. A leaf is a short chain of rules. The root reads enough bits
//! that most keys that match no rule end in an empty leaf after one step.
//!
//! As in HiCuts (Gupta, McKeown 1999), the rules determine the cut. As in EffiCuts (Vamanan,
//! Voskuilen, Vijaykumar 2010), the caller keeps rules with long and with short prefixes in
//! separate trees, so that few rules cross many cuts. Cuts are at bits, not ranges: a shift and a
//! mask find the child. A leaf omits rules that its region makes unreachable.

use crate::NONE;
use crate::entry::{Entry, first};
use std::collections::BTreeMap;

/// The rules that a leaf may hold without another cut.
const LEAF_MAX: usize = 4;
/// The most bits that one node reads.
const CUT_MAX: u32 = 8;
/// The most bits that the root reads: 2¹⁴ nodes take 128 KiB, which fits a second-level cache.
const ROOT_MAX: u32 = 14;
/// The root may read this many bits more than are needed to distinguish its rules.
const ROOT_SPARE: u32 = 4;
/// The deepest cut; leaves below are chains of any length. It also bounds the search.
const DEPTH_MAX: usize = 24;
/// The greatest factor by which a cut may multiply its rules.
const GROWTH_MAX: f64 = 3.0;
/// The most leaf entries of the tree per rule; a tree that would need more gets longer leaves.
const COPIES_MAX: usize = 24;
/// The cost of doubling the copies, in halvings of the remaining rules.
const COPY_COST: f64 = 0.6;

/// A node: one step of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreeNode {
    /// Continue at child number `base + ((key[lane] >> shift) & mask)`.
    Cut {
        /// The first child.
        base: u32,
        /// The lane.
        lane: u8,
        /// The lowest bit.
        shift: u8,
        /// As many ones as bits are read.
        mask: u8,
    },
    /// The entries from `start` to the first whose rule is `u32::MAX`, which ends every leaf.
    Leaf {
        /// The first entry.
        start: u32,
    },
}

/// A decision tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree<const N: usize> {
    root: Root,
    nodes: Vec<TreeNode>,
    entries: Vec<Entry<N>>,
    depth: usize,
    best: u32,
}

/// The root's cut: leads to node number `(key[lane] >> shift) & mask`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Root {
    lane: u8,
    shift: u8,
    mask: u32,
}

/// The known bits of a key at a node: `key & mask == value`.
#[derive(Clone, Copy, Debug)]
struct Region<const N: usize> {
    mask: [u64; N],
    value: [u64; N],
}

/// A cut: adjacent bits of one lane.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cut {
    lane: usize,
    shift: u32,
    bits: u32,
    score: f64,
}

/// A node to be built, and the rules that can match there.
struct PendingNode<const N: usize> {
    node: usize,
    rules: Vec<u32>,
    region: Region<N>,
    depth: usize,
}

impl<const N: usize> Tree<N> {
    /// Builds the tree of entries in the order of priority.
    pub(crate) fn new(entries: &[Entry<N>]) -> Tree<N> {
        let best = entries.first().map_or(NONE, |entry| entry.rule);
        let budget = entries.len() * COPIES_MAX;
        let root = Root { lane: 0, shift: 0, mask: 0 };
        let mut tree =
            Tree { root, nodes: vec![TreeNode::Leaf { start: 0 }], entries: Vec::new(), depth: 0, best };
        let mut leaves = BTreeMap::new();
        let all = (0..entries.len() as u32).collect();
        let region = Region { mask: [0; N], value: [0; N] };
        let mut pending_nodes = vec![PendingNode { node: 0, rules: all, region, depth: 0 }];
        if let Some(cut) = pending_nodes[0].best_cut(entries, ROOT_MAX, ROOT_SPARE) {
            tree.root = Root { lane: cut.lane as u8, shift: cut.shift as u8, mask: (1 << cut.bits) - 1 };
            pending_nodes = pending_nodes[0].split(entries, cut, 0);
            tree.nodes.resize(pending_nodes.len(), TreeNode::Leaf { start: 0 });
            tree.depth = 1;
        }
        // The copies that the pending nodes will need at least.
        let mut open: usize = pending_nodes.iter().map(|pending| pending.rules.len()).sum();
        while let Some(mut pending) = pending_nodes.pop() {
            open -= pending.rules.len();
            pending.prune(entries);
            let has_room = tree.entries.len() + open + 2 * pending.rules.len() <= budget;
            let cut = pending.best_cut(entries, CUT_MAX, 1).filter(|_| has_room);
            let Some(cut) = cut else {
                tree.leaf(entries, &pending, &mut leaves);
                continue;
            };
            let base = tree.nodes.len();
            let mask = ((1u32 << cut.bits) - 1) as u8;
            tree.nodes[pending.node] =
                TreeNode::Cut { base: base as u32, lane: cut.lane as u8, shift: cut.shift as u8, mask };
            tree.depth = tree.depth.max(pending.depth + 1);
            let children = pending.split(entries, cut, base);
            tree.nodes.resize(base + children.len(), TreeNode::Leaf { start: 0 });
            open += children.iter().map(|child| child.rules.len()).sum::<usize>();
            pending_nodes.extend(children);
        }
        tree
    }

    /// Returns the first of its rules.
    pub fn best(&self) -> u32 {
        self.best
    }

    /// Returns the number of nodes on the longest path.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the nodes; the first are the children of the root.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// Returns the rules of all leaves.
    pub fn entries(&self) -> &[Entry<N>] {
        &self.entries
    }

    /// Returns the memory it uses, in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.nodes[..]) + size_of_val(&self.entries[..])
    }

    /// Returns the first rule before `bound` that matches, or `NONE`.
    #[inline]
    pub(crate) fn find(&self, key: &[u64; N], bound: u32) -> u32 {
        let Root { lane, shift, mask } = self.root;
        let mut at = (key[usize::from(lane) % N] >> (shift & 63)) as usize & mask as usize;
        loop {
            match self.nodes[at] {
                TreeNode::Cut { base, lane, shift, mask } => {
                    let bits = (key[usize::from(lane) % N] >> (shift & 63)) as usize & usize::from(mask);
                    at = base as usize + bits;
                }
                TreeNode::Leaf { start } => return first(&self.entries[start as usize..], key, bound),
            }
        }
    }

    /// Makes a leaf, or reuses the one with the same rules.
    fn leaf(&mut self, entries: &[Entry<N>], pending: &PendingNode<N>, leaves: &mut BTreeMap<Vec<u32>, u32>) {
        let start = *leaves.entry(pending.rules.clone()).or_insert_with(|| {
            let start = self.entries.len() as u32;
            self.entries.extend(pending.rules.iter().map(|rule| entries[*rule as usize]));
            self.entries.push(Entry { mask: [0; N], value: [0; N], rule: NONE });
            start
        });
        self.nodes[pending.node] = TreeNode::Leaf { start };
    }
}

impl<const N: usize> PendingNode<N> {
    /// Removes the rules after a rule that matches the whole region.
    fn prune(&mut self, entries: &[Entry<N>]) {
        let region = self.region;
        let covers = |rule: &u32| {
            let mask = entries[*rule as usize].mask;
            // The known bits of the region agree with every rule here.
            (0..N).all(|lane| mask[lane] & !region.mask[lane] == 0)
        };
        if let Some(last) = self.rules.iter().position(covers) {
            self.rules.truncate(last + 1);
        }
    }

    /// Returns the cut that leaves the fewest rules for its copies; `None` if the node should be a
    /// leaf. It reads at most `bits_max` bits, and at most `spare` more than are needed to
    /// distinguish the rules.
    fn best_cut(&self, entries: &[Entry<N>], bits_max: u32, spare: u32) -> Option<Cut> {
        if self.rules.len() <= LEAF_MAX || self.depth >= DEPTH_MAX {
            return None;
        }
        let count = self.rules.len() as f64;
        let bits_max = (self.rules.len().ilog2() + spare).min(bits_max);
        let (ones, zeros) = self.count_bits(entries);
        let mut best: Option<Cut> = None;
        for lane in 0..N {
            let halves: [Half; 64] =
                std::array::from_fn(|bit| Half::new(count, ones[lane][bit], zeros[lane][bit]));
            for shift in 0..64u32 {
                let (mut gain, mut growth) = (0.0, 1.0);
                for bits in 1..=bits_max.min(64 - shift) {
                    let bit = shift + bits - 1;
                    let half = halves[bit as usize];
                    gain += half.gain;
                    growth *= half.growth;
                    if growth > GROWTH_MAX || self.region.mask[lane] >> bit & 1 != 0 {
                        break;
                    }
                    let score = gain - COPY_COST * growth.log2();
                    // More bits must be worth their nodes.
                    let score = score - 0.02 * f64::from(bits);
                    if score > 0.05 && best.is_none_or(|best| score > best.score) {
                        best = Some(Cut { lane, shift, bits, score });
                    }
                }
            }
        }
        best
    }

    /// Counts, for every bit, the rules that require a one and those that require a zero.
    fn count_bits(&self, entries: &[Entry<N>]) -> ([[u32; 64]; N], [[u32; 64]; N]) {
        let (mut ones, mut zeros) = ([[0; 64]; N], [[0; 64]; N]);
        for rule in &self.rules {
            let Entry { mask, value, .. } = entries[*rule as usize];
            for lane in 0..N {
                let mut open = mask[lane] & !self.region.mask[lane];
                while open != 0 {
                    let bit = open.trailing_zeros() as usize;
                    open &= open - 1;
                    let one = (value[lane] >> bit & 1) as u32;
                    ones[lane][bit] += one;
                    zeros[lane][bit] += 1 - one;
                }
            }
        }
        (ones, zeros)
    }

    fn split(&self, entries: &[Entry<N>], cut: Cut, base: usize) -> Vec<PendingNode<N>> {
        let all = (1u64 << cut.bits) - 1;
        let child = |bits: u64| {
            let mut region = self.region;
            region.mask[cut.lane] |= all << cut.shift;
            region.value[cut.lane] |= bits << cut.shift;
            PendingNode { node: base + bits as usize, rules: Vec::new(), region, depth: self.depth + 1 }
        };
        let mut children: Vec<PendingNode<N>> = (0..=all).map(child).collect();
        for rule in &self.rules {
            let entry = &entries[*rule as usize];
            let mask = entry.mask[cut.lane] >> cut.shift & all;
            let value = entry.value[cut.lane] >> cut.shift & all;
            // Every combination of the bits that the rule leaves open.
            let open = !mask & all;
            let mut fill = 0;
            loop {
                children[(value | fill) as usize].rules.push(*rule);
                if fill == open {
                    break;
                }
                fill = fill.wrapping_sub(open) & open;
            }
        }
        children
    }
}

/// The effect of a cut at one bit, as if bits were independent.
#[derive(Clone, Copy, Debug)]
struct Half {
    /// Halvings of the rules that a packet which follows a rule still meets.
    gain: f64,
    /// Copies per rule.
    growth: f64,
}

impl Half {
    fn new(count: f64, ones: u32, zeros: u32) -> Half {
        let (ones, zeros) = (f64::from(ones) / count, f64::from(zeros) / count);
        let open = 1.0 - ones - zeros;
        let (left, right) = (zeros + open, ones + open);
        let growth = left + right;
        Half { gain: -((left * left + right * right) / growth).log2(), growth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_tree_finds_what_the_chain_finds(
            rules in prop::collection::vec(([any::<u64>(), any::<u64>()], [0u32..65, 0u32..65]), 0..120),
            keys in prop::collection::vec(([any::<u64>(), any::<u64>()], 0usize..120), 1..60),
            bound in 0u32..150,
        ) {
            let entry = |(i, (value, len)): (usize, &([u64; 2], [u32; 2]))| {
                let mask = len.map(|len| u64::MAX.checked_shl(64 - len).unwrap_or(0));
                Entry { mask, value: [value[0] & mask[0], value[1] & mask[1]], rule: i as u32 }
            };
            let entries: Vec<_> = rules.iter().enumerate().map(entry).collect();
            let tree = Tree::new(&entries);
            for (noise, near) in keys {
                let near = entries.get(near).map_or([0; 2], |e| e.value);
                let key = [near[0] | noise[0] >> 40, near[1] | noise[1] >> 40];
                let naive = entries.iter().find(|e| e.rule < bound && e.matches(&key)).map_or(NONE, |e| e.rule);
                prop_assert_eq!(tree.find(&key, bound), naive);
            }
            prop_assert!(tree.entries().len() <= 2 * rules.len() * COPIES_MAX + 1);
        }
    }

    #[test]
    fn distinct_addresses_become_short_leaves() {
        let entry = |i: u32| Entry { mask: [0xffff_ffff], value: [u64::from(i * 2_654_435)], rule: i };
        let entries: Vec<_> = (0..1000).map(entry).collect();
        let tree = Tree::new(&entries);
        let leaves = tree.entries().split(|entry| entry.rule == NONE);
        let longest = leaves.map(<[_]>::len).max();
        assert!(longest <= Some(LEAF_MAX), "{longest:?}");
        assert!(tree.depth() <= 6, "{}", tree.depth());
    }
}
