//! An exact-match cache in front of a table: the rules that a few thousand recent keys found.
//!
//! Each worker has a cache of its own, of fixed size, with one entry per slot: a new key replaces
//! the old one. Entries of an older version of the plan count as empty. If few lookups hit, the
//! cache is bypassed for a while, so that traffic without locality does not pay for it.

use crate::lanes::Lanes;
use crate::{NONE, Rule, RuleNumber, TablePlan};
use fastpath_switch::key::Key;
use fastpath_switch::mix::mix;

/// The lookups in a window, after which the hits are evaluated.
const WINDOW: u32 = 1024;
/// The hits in a window below which the cache is bypassed.
const HITS_MIN: u32 = 256;
/// The lookups without the cache before it is tried again.
const PAUSE: u32 = 16 * WINDOW;

/// A cache for one table.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The version of the plan that `store` packs keys for. Each entry also holds its version.
    version: Option<u64>,
    capacity: usize,
    store: Store,
    lookups: u32,
    hits: u32,
    pause: u32,
}

/// Slots, by the width of the packed key.
#[derive(Clone, Debug)]
enum Store {
    Two(Slots<2>),
    Four(Slots<4>),
    Sixteen(Slots<16>),
}

#[derive(Clone, Debug)]
struct Slots<const N: usize> {
    lanes: Lanes,
    slots: Vec<CacheSlot<N>>,
}

#[derive(Clone, Copy, Debug)]
struct CacheSlot<const N: usize> {
    key: [u64; N],
    found: RuleNumber,
    /// The low bits of the plan's version; 0 for an empty slot.
    stamp: u32,
}

impl Cache {
    /// Returns an empty cache of `capacity` keys, rounded up to a power of two.
    pub fn new(capacity: usize) -> Cache {
        let store =
            Store::Two(Slots { lanes: Lanes::of(&[0; fastpath_switch::field::WORDS]), slots: Vec::new() });
        let capacity = capacity.next_power_of_two();
        Cache { version: None, capacity, store, lookups: 0, hits: 0, pause: 0 }
    }

    /// Returns the rule for a packet, as [`TablePlan::lookup`] does.
    #[inline]
    pub fn lookup<'a>(&mut self, plan: &'a TablePlan, key: &Key) -> Option<&'a Rule> {
        plan.rule(self.find(plan, key))
    }

    /// Returns the number of the rule for a packet, as [`TablePlan::find`] does.
    #[inline]
    pub fn find(&mut self, plan: &TablePlan, key: &Key) -> RuleNumber {
        if self.pause > 0 {
            self.pause -= 1;
            return plan.find(key);
        }
        if self.version != Some(plan.version) {
            self.renew(plan);
        }
        self.lookups += 1;
        if self.lookups > WINDOW {
            if self.hits < HITS_MIN {
                self.pause = PAUSE;
            }
            (self.lookups, self.hits) = (0, 0);
        }
        let stamp = (plan.version as u32) | 1 << 31;
        match &mut self.store {
            Store::Two(slots) => slots.find(plan, key, stamp, &mut self.hits),
            Store::Four(slots) => slots.find(plan, key, stamp, &mut self.hits),
            Store::Sixteen(slots) => slots.find(plan, key, stamp, &mut self.hits),
        }
    }

    /// Changes the packing to that of the new plan.
    #[cold]
    fn renew(&mut self, plan: &TablePlan) {
        self.version = Some(plan.version);
        let lanes = Lanes::of(&plan.wanted);
        let is_same = match &self.store {
            Store::Two(slots) => slots.lanes == lanes && !slots.slots.is_empty(),
            Store::Four(slots) => slots.lanes == lanes,
            Store::Sixteen(slots) => slots.lanes == lanes,
        };
        if !is_same {
            self.store = match lanes.count() {
                1..=2 => Store::Two(Slots::new(lanes, self.capacity)),
                3..=4 => Store::Four(Slots::new(lanes, self.capacity)),
                _ => Store::Sixteen(Slots::new(lanes, self.capacity)),
            };
        }
    }
}

impl<const N: usize> Slots<N> {
    fn new(lanes: Lanes, capacity: usize) -> Slots<N> {
        let empty = CacheSlot { key: [0; N], found: RuleNumber(NONE), stamp: 0 };
        Slots { lanes, slots: vec![empty; capacity] }
    }

    #[inline]
    fn find(&mut self, plan: &TablePlan, key: &Key, stamp: u32, hits: &mut u32) -> RuleNumber {
        let packed = self.lanes.pack(key.words());
        let at = mix(&packed) as usize & (self.slots.len() - 1);
        let slot = &mut self.slots[at];
        if slot.stamp == stamp && slot.key == packed {
            *hits += 1;
            return slot.found;
        }
        let found = plan.find(key);
        *slot = CacheSlot { key: packed, found, stamp };
        found
    }
}
