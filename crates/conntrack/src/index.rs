//! Finds connections by tuple and zone: open addressing with linear probing. Both directions of a
//! connection have the same hash, and one slot, unless NAT makes them differ.
//!
//! A slot has 32 bits of the hash, which decide its place, and the number of the entry. The tuple
//! itself is in the connection, and is compared when the bits are equal. When the table doubles,
//! each insertion moves some slots of the old one, so that no packet waits for all of them.

use crate::tuple::FlowTuple;

/// A number in the index: the connection, and whether it is there by its tuple of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) id: u32,
    pub(crate) is_reply: bool,
}

/// A free slot.
const FREE: u64 = 0;
/// Slots of the first table.
const SLOTS_MIN: usize = 64;
/// Slots of the old table that an insertion moves. Two are enough to be done before the next
/// growth.
const MOVED: usize = 8;

#[derive(Clone, Debug, Default)]
struct SlotTable {
    /// The hash above, the entry plus one below; a power of two of them, or none.
    slots: Vec<u64>,
    len: usize,
}

/// The index.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionIndex {
    seed: u64,
    now: SlotTable,
    /// The table before the last growth, without what has moved.
    old: SlotTable,
    /// Slots of the old table that have moved.
    moved: usize,
}

impl IndexEntry {
    fn of_slot(slot: u64) -> IndexEntry {
        let number = (slot as u32).wrapping_sub(1);
        IndexEntry { id: number >> 1, is_reply: number & 1 != 0 }
    }

    fn in_slot(self, hash: u32) -> u64 {
        u64::from(hash) << 32 | u64::from((self.id << 1 | u32::from(self.is_reply)) + 1)
    }
}

impl SlotTable {
    fn of(count: usize) -> SlotTable {
        SlotTable { slots: vec![FREE; count], len: 0 }
    }

    #[inline]
    fn find<T>(&self, hash: u32, is_it: &impl Fn(IndexEntry) -> Option<T>) -> Option<(usize, IndexEntry, T)> {
        if self.len == 0 {
            return None;
        }
        let last = self.slots.len() - 1;
        let mut at = hash as usize & last;
        // The table is never full, so this ends.
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            if (slot >> 32) as u32 == hash
                && let Some(found) = is_it(IndexEntry::of_slot(slot))
            {
                return Some((at, IndexEntry::of_slot(slot), found));
            }
            at = (at + 1) & last;
        }
    }

    fn insert(&mut self, slot: u64) {
        let last = self.slots.len() - 1;
        let mut at = (slot >> 32) as usize & last;
        while self.slots[at] != FREE {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
        self.len += 1;
    }

    /// Removes a slot, and moves those behind it that would not be found any more.
    fn remove(&mut self, mut free: usize) {
        let last = self.slots.len() - 1;
        self.len -= 1;
        let mut at = free;
        loop {
            at = (at + 1) & last;
            let slot = self.slots[at];
            if slot == FREE {
                break;
            }
            let home = (slot >> 32) as usize & last;
            let is_behind = at.wrapping_sub(home) & last >= at.wrapping_sub(free) & last;
            if is_behind {
                self.slots[free] = slot;
                free = at;
            }
        }
        self.slots[free] = FREE;
    }
}

impl ConnectionIndex {
    pub(crate) fn new(seed: u64) -> ConnectionIndex {
        ConnectionIndex { seed, ..ConnectionIndex::default() }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the hash of a tuple in a zone. A tuple and its reverse have the same.
    #[inline]
    pub(crate) fn hash(&self, tuple: &FlowTuple, zone: u16) -> u32 {
        let FlowTuple { src, dst, src_port, dst_port, protocol, is_v6 } = *tuple;
        // The type of ICMP differs in the directions, the identifier does not.
        let (src_port, dst_port) = if tuple.is_icmp() { (src_port, src_port) } else { (src_port, dst_port) };
        let end = |address: u128, port: u16| {
            let narrow = address as u64 ^ u64::from(port) << 40;
            if is_v6 { mix(narrow, (address >> 64) as u64 ^ self.seed) } else { narrow }
        };
        let (a, b) = (end(src, src_port), end(dst, dst_port));
        let rest = u64::from(zone) << 16 | u64::from(protocol) << 8 | u64::from(is_v6);
        // Two rounds: a product alone is 0 if one of its factors is.
        let hash = mix(self.seed ^ a.min(b), a.max(b) ^ rest.rotate_left(32));
        let hash = mix(hash ^ a.min(b).rotate_left(32), self.seed ^ a.max(b));
        (hash >> 32) as u32 ^ hash as u32
    }

    /// Returns the entry with this hash of which something is found, and that.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        hash: u32,
        is_it: impl Fn(IndexEntry) -> Option<T>,
    ) -> Option<(IndexEntry, T)> {
        let found = self.now.find(hash, &is_it).or_else(|| self.old.find(hash, &is_it));
        found.map(|(_, entry, found)| (entry, found))
    }

    /// Fetches what `find` reads first into the cache.
    pub(crate) fn prefetch(&self, hash: u32) {
        for table in [&self.now, &self.old] {
            if table.len > 0 {
                prefetch_index::prefetch_index(&table.slots, hash as usize & (table.slots.len() - 1));
            }
        }
    }

    pub(crate) fn insert(&mut self, hash: u32, entry: IndexEntry) {
        self.move_some();
        // At most half of the slots are in use.
        if 2 * (self.now.len + self.old.len + 1) > self.now.slots.len() {
            self.move_all();
            let grown = SlotTable::of((2 * self.now.slots.len()).max(SLOTS_MIN));
            self.old = std::mem::replace(&mut self.now, grown);
            self.moved = 0;
        }
        self.now.insert(entry.in_slot(hash));
    }

    pub(crate) fn remove(&mut self, hash: u32, entry: IndexEntry) {
        let is_it = |other| (other == entry).then_some(());
        if let Some((at, ..)) = self.now.find(hash, &is_it) {
            self.now.remove(at);
        } else if let Some((at, ..)) = self.old.find(hash, &is_it) {
            self.old.remove(at);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = ConnectionIndex::new(self.seed);
    }

    fn move_all(&mut self) {
        while self.old.len > 0 {
            self.move_some();
        }
    }

    /// Moves a few slots to the present table. Their order in the old one does not change: a slot
    /// is removed as any other is, which may bring another to its place.
    fn move_some(&mut self) {
        for _ in 0..MOVED {
            if self.old.len == 0 {
                self.old.slots = Vec::new();
                return;
            }
            let at = self.moved % self.old.slots.len();
            match self.old.slots[at] {
                FREE => self.moved += 1,
                slot => {
                    self.old.remove(at);
                    self.now.insert(slot);
                }
            }
        }
    }
}

/// Multiplies and folds.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9e37_79b9_7f4a_7c15) * u128::from(b ^ 0xd6e8_feb8_6659_fd93);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn the_index_finds_what_a_map_finds() {
        let mut rng = Rng::new(3);
        let (mut index, mut map) = (ConnectionIndex::new(1), BTreeMap::new());
        for round in 0..200_000u32 {
            // Few hashes, so that they collide.
            let hash = (rng.below(3000) as u32).wrapping_mul(0x9e37_79b9) >> 8;
            let entry = IndexEntry { id: round >> 1, is_reply: round & 1 != 0 };
            match (rng.below(3), map.get(&hash).copied()) {
                (0 | 1, None) => {
                    index.insert(hash, entry);
                    map.insert(hash, entry);
                }
                (2, Some(old)) => {
                    index.remove(hash, old);
                    map.remove(&hash);
                }
                _ => {}
            }
            let other = (rng.below(3000) as u32).wrapping_mul(0x9e37_79b9) >> 8;
            assert_eq!(
                index.find(other, Some).map(|(_, entry)| entry),
                map.get(&other).copied(),
                "round {round}"
            );
        }
        assert!(map.len() > 1000, "{}", map.len());
    }
}
