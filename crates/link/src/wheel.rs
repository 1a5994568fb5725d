//! The pending times of many pipes, in exact order: a hierarchical timing wheel (G. Varghese and T.
//! Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987) with the current tick in exact order.
//!
//! ```text
//!   near             level 0          level 1          …   level 7
//!   ticks ≤ base     64 × 1 tick      64 × 64 ticks         64 × 64⁷ ticks
//! ```
//!
//! Time is cut into ticks of 65.5 ns. An entry whose tick first differs from the base in its n-th
//! group of six bits lies in a slot of level n; so all entries of one level lie after all those of
//! the levels below. When the earliest entry of all is in a slot, that slot is opened: the base
//! moves to this entry, what belongs there goes to `near` and the rest to the levels below. An
//! entry is moved at most once per level, in blocks of contiguous memory, and most skip the levels
//! that are empty on their way. As long as only few pipes are pending, everything goes to `near`: a
//! small heap beats any wheel.
//!
//! What a slot gives to `near` is sorted at once; whoever comes to the current tick later goes to a
//! heap beside it.
//!
//! Rescheduling leaves the old entry behind, stale; it is dropped when its slot is opened, or all
//! are when they outnumber the live ones. As long as there are none, entries are moved without a
//! look at their pipes. Turns are counted modulo 256, so that a stale entry can seem live again;
//! that does no harm, for whichever is met first disarms the pipe. So schedule, cancel and pop take
//! amortised constant time, but for the heap of the entries within one tick, and for a cancelled
//! entry that was the earliest of its slot: then the slot is searched for the next.

use fastpath_units::Time;
use prefetch_index::prefetch_index;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// log₂ of the picoseconds in a tick.
const TICK_BITS: u32 = 16;
const _: () = assert!(TICK_BITS == u64::BITS - 48, "what a time has within a tick is the top of an `InTick`");
/// log₂ of the slots in a level.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = ((u64::BITS - TICK_BITS) / SLOT_BITS) as usize;
/// As long as no more pipes than this are pending, all is in `near`.
const FEW: usize = 16;
/// Fewer stale entries than this are not worth a search.
const STALE_MIN: usize = 1024;

/// For each of a fixed number of pipes at most one pending time; out they come by time, then by
/// number.
///
/// Times may be scheduled in any order, also before times that were already popped. Memory is taken
/// as the number of pending times grows and kept; a wheel that has seen its load allocates no more.
#[derive(Debug)]
pub struct Wheel {
    /// What is pending for each pipe, if it is armed.
    times: Vec<Time>,
    /// Counts how often each pipe was armed and disarmed: odd while it is armed.
    turns: Vec<u8>,
    /// How many pipes are armed: so many entries are live. And how many are stale.
    armed: usize,
    stale: usize,
    /// Entries whose tick is not after `base`, and some from when there were few. The first is
    /// live.
    near: Near,
    base: u64,
    /// Entries whose tick is after `base`, by level and slot.
    slots: Vec<Slot>,
    /// Per level, which slots hold entries; and which levels have such slots.
    occupied: [u64; LEVELS],
    levels: u64,
    blocks: Blocks,
}

/// From the highest bits to the lowest: a time, a pipe, and the pipe's turn, to tell a live entry
/// from a stale one for the same time. So entries are ordered by time, then by pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Entry(u128);

impl Entry {
    #[inline]
    fn new(at: Time, id: u32, turn: u8) -> Entry {
        Entry(u128::from(at.as_ps()) << 64 | u128::from(id) << 32 | u128::from(turn))
    }

    #[inline]
    fn at(self) -> Time {
        Time::from_ps((self.0 >> 64) as u64)
    }

    #[inline]
    fn id(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    fn turn(self) -> u8 {
        self.0 as u8
    }
}

/// A slot that is occupied has blocks of entries, and the earliest of them is live.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    earliest: Entry,
    block: Option<u32>,
}

impl Wheel {
    /// A wheel for pipes numbered `0..pipes`, none of them pending.
    pub fn new(pipes: usize) -> Wheel {
        Wheel {
            times: vec![Time::ZERO; pipes],
            turns: vec![0; pipes],
            armed: 0,
            stale: 0,
            near: Near::default(),
            base: 0,
            slots: vec![Slot::default(); LEVELS * SLOTS],
            occupied: [0; LEVELS],
            levels: 0,
            blocks: Blocks::default(),
        }
    }

    /// Makes `at` the pending time of pipe `id`, in place of what it was. Panics if `id` is not one
    /// of the wheel's pipes.
    #[inline]
    pub fn schedule(&mut self, id: u32, at: Time) {
        if self.is_armed(id) {
            if self.times[id as usize] == at {
                return;
            }
            self.cancel(id);
        }
        self.times[id as usize] = at;
        let turn = self.turns[id as usize].wrapping_add(1);
        self.turns[id as usize] = turn;
        self.armed += 1;
        self.insert(Entry::new(at, id, turn));
    }

    /// Forgets the pending time of pipe `id`, if it has one. Panics if `id` is not one of the
    /// wheel's pipes.
    pub fn cancel(&mut self, id: u32) {
        if !self.is_armed(id) {
            return;
        }
        let at = self.times[id as usize];
        let stale = Entry::new(at, id, self.turns[id as usize]);
        self.disarm(id);
        self.stale += 1;
        match self.place(at) {
            Some(place) if self.slots[place].earliest == stale => self.redistribute(place),
            _ => self.prune_near(),
        }
        if self.stale > self.armed + STALE_MIN {
            self.sweep_all();
        }
    }

    /// The earliest pending time.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let first = match self.near.sorted.last() {
            Some(entry) => Some(entry.at(self.near.tick)),
            None => self.first_slot().map(|place| self.slots[place].earliest.at()),
        };
        match (first, self.near.heap.peek()) {
            (Some(first), Some(Reverse(other))) => Some(first.min(other.at())),
            (first, None) => first,
            (None, Some(Reverse(other))) => Some(other.at()),
        }
    }

    /// Takes the earliest pending time off the wheel if it is not after `now`, with the pipe it
    /// belongs to.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        if !self.has_stale()
            && self.near.heap.is_empty()
            && let Some(&entry) = self.near.sorted.last()
        {
            let at = entry.at(self.near.tick);
            if at > now {
                return None;
            }
            self.near.sorted.pop();
            self.disarm(entry.id());
            return Some((at, entry.id()));
        }
        self.pop_due_of_all(now)
    }

    /// The same, where entries may be stale or in several places.
    #[inline(never)]
    fn pop_due_of_all(&mut self, now: Time) -> Option<(Time, u32)> {
        if let Some(place) = self.first_far() {
            let far = self.slots[place].earliest;
            let first = self.near.first().is_none_or(|near| far < near);
            if first && far.at() <= now {
                self.open(place);
            } else if first {
                return None;
            }
        }
        let entry = self.near.first().filter(|entry| entry.at() <= now)?;
        self.near.drop_first();
        self.disarm(entry.id());
        self.prune_near();
        Some((entry.at(), entry.id()))
    }

    /// Fetches what `schedule` needs into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        // The turns of many pipes share a line: they come by themselves.
        prefetch_index(&self.times, id as usize);
    }

    /// The pipe that comes so many after the first, as far as that is known.
    #[inline]
    pub(crate) fn ahead(&self, places: usize) -> Option<u32> {
        let sorted = &self.near.sorted;
        sorted.len().checked_sub(1 + places).map(|at| sorted[at].id())
    }

    #[inline]
    fn has_stale(&self) -> bool {
        self.stale > 0
    }

    fn is_live(&self, entry: Entry) -> bool {
        self.turns[entry.id() as usize] == entry.turn() && self.times[entry.id() as usize] == entry.at()
    }

    #[inline]
    fn is_armed(&self, id: u32) -> bool {
        self.turns[id as usize] % 2 == 1
    }

    fn disarm(&mut self, id: u32) {
        self.turns[id as usize] = self.turns[id as usize].wrapping_add(1);
        self.armed -= 1;
    }

    /// The slot an entry for `at` belongs to; `None` for `near`.
    fn place(&self, at: Time) -> Option<usize> {
        let tick = at.as_ps() >> TICK_BITS;
        if tick <= self.base {
            return None;
        }
        let level = (tick ^ self.base).ilog2() / SLOT_BITS;
        let slot = (tick >> (level * SLOT_BITS)) as usize % SLOTS;
        Some(level as usize * SLOTS + slot)
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        match self.place(entry.at()) {
            Some(place) if self.armed > FEW => self.put(place, entry),
            _ => self.near.insert(entry),
        }
    }

    /// Puts an entry into a slot.
    #[inline]
    fn put(&mut self, place: usize, entry: Entry) {
        let slot = &mut self.slots[place];
        if slot.block.is_none() {
            slot.earliest = entry;
            self.occupied[place / SLOTS] |= 1 << (place % SLOTS);
            self.levels |= 1 << (place / SLOTS);
        } else if entry < slot.earliest {
            slot.earliest = entry;
        }
        slot.block = Some(self.blocks.push(slot.block, entry));
    }

    /// The earliest slot that is occupied, if an entry there may come first: not before those of
    /// the current tick are gone.
    #[inline]
    fn first_far(&self) -> Option<usize> {
        if self.near.sorted.is_empty() { self.first_slot() } else { None }
    }

    /// The earliest slot that is occupied.
    #[inline]
    fn first_slot(&self) -> Option<usize> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some(level * SLOTS + self.occupied[level].trailing_zeros() as usize)
    }

    /// Opens the earliest slot: its earliest entries go to `near`, the others below.
    fn open(&mut self, place: usize) {
        self.base = self.slots[place].earliest.at().as_ps() >> TICK_BITS;
        self.near.tick = self.base;
        self.redistribute(place);
        self.near.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Takes every entry out of a slot and puts the live ones where they belong now; the stale are
    /// dropped. What belongs to `near`, as happens only when the slot is opened, waits there to be
    /// sorted.
    fn redistribute(&mut self, place: usize) {
        let mut next = self.slots[place].block.take();
        let stale = self.has_stale();
        self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
        if self.occupied[place / SLOTS] == 0 {
            self.levels &= !(1 << (place / SLOTS));
        }
        while let Some(block) = next {
            let Block { len, entries, .. } = self.blocks.blocks[block as usize];
            for &entry in &entries[..len as usize] {
                if stale && !self.is_live(entry) {
                    self.stale -= 1;
                } else if self.place(entry.at()).is_none() {
                    self.near.sorted.push(InTick::new(entry));
                } else {
                    self.insert(entry);
                }
            }
            next = self.blocks.release(block);
        }
    }

    /// Drops every stale entry.
    fn sweep_all(&mut self) {
        for place in 0..self.slots.len() {
            if self.slots[place].block.is_some() {
                self.redistribute(place);
            }
        }
        let mut near = std::mem::take(&mut self.near);
        self.stale -= near.retain(|entry| self.is_live(entry));
        self.near = near;
    }

    /// Restores a live top.
    #[inline]
    fn prune_near(&mut self) {
        while self.has_stale()
            && let Some(entry) = self.near.first()
            && !self.is_live(entry)
        {
            self.near.drop_first();
            self.stale -= 1;
        }
    }
}

/// The entries that come next, in order.
#[derive(Debug, Default)]
struct Near {
    /// What the slot gave that was opened last, the first at the end: all of one tick, which is not
    /// after `base`, so it is gone when the next is opened.
    sorted: Vec<InTick>,
    tick: u64,
    /// What came one by one.
    heap: BinaryHeap<Reverse<Entry>>,
}

/// An entry of a known tick: half as long, in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct InTick(u64);

impl InTick {
    #[inline]
    fn new(entry: Entry) -> InTick {
        InTick(entry.at().as_ps() << 48 | u64::from(entry.id()) << 16 | u64::from(entry.turn()))
    }

    #[inline]
    fn id(self) -> u32 {
        (self.0 >> 16) as u32
    }

    #[inline]
    fn at(self, tick: u64) -> Time {
        Time::from_ps(tick << TICK_BITS | self.0 >> 48)
    }

    #[inline]
    fn entry(self, tick: u64) -> Entry {
        Entry::new(self.at(tick), self.id(), self.0 as u8)
    }
}

impl Near {
    #[inline]
    fn first(&self) -> Option<Entry> {
        let sorted = self.sorted.last().map(|entry| entry.entry(self.tick));
        match (sorted, self.heap.peek()) {
            (Some(sorted), Some(&Reverse(other))) => Some(sorted.min(other)),
            (sorted, other) => sorted.or(other.map(|&Reverse(other)| other)),
        }
    }

    /// Takes the first out.
    #[inline]
    fn drop_first(&mut self) {
        match (self.sorted.last(), self.heap.peek()) {
            (Some(sorted), Some(Reverse(other))) if *other < sorted.entry(self.tick) => drop(self.heap.pop()),
            (Some(_), _) => drop(self.sorted.pop()),
            (None, _) => drop(self.heap.pop()),
        }
    }

    fn insert(&mut self, entry: Entry) {
        self.heap.push(Reverse(entry));
    }

    /// Drops entries; says how many.
    fn retain(&mut self, mut keep: impl FnMut(Entry) -> bool) -> usize {
        let before = self.sorted.len() + self.heap.len();
        self.sorted.retain(|entry| keep(entry.entry(self.tick)));
        self.heap.retain(|&Reverse(entry)| keep(entry));
        before - self.sorted.len() - self.heap.len()
    }
}

/// Entries of all slots, in linked blocks, so that a slot costs what it holds and is read in
/// sequence.
#[derive(Debug, Default)]
struct Blocks {
    blocks: Vec<Block>,
    free: Option<u32>,
}

/// Its head lies beside its first entries, so that most insertions touch one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Block {
    len: u32,
    next: Option<u32>,
    entries: [Entry; 15],
}

impl Blocks {
    /// Adds `entry` to the list of blocks that begins with `first`; answers where it begins now.
    #[inline]
    fn push(&mut self, first: Option<u32>, entry: Entry) -> u32 {
        if let Some(index) = first {
            let block = &mut self.blocks[index as usize];
            if let Some(room) = block.entries.get_mut(block.len as usize) {
                *room = entry;
                block.len += 1;
                return index;
            }
        }
        self.begin(first, entry)
    }

    /// A block with one entry that is followed by `next`.
    #[inline(never)]
    fn begin(&mut self, next: Option<u32>, entry: Entry) -> u32 {
        let index = self.take(next);
        let block = &mut self.blocks[index as usize];
        (block.len, block.entries[0]) = (1, entry);
        index
    }

    /// An empty block that is followed by `next`.
    fn take(&mut self, next: Option<u32>) -> u32 {
        match self.free {
            Some(index) => {
                let block = &mut self.blocks[index as usize];
                self.free = block.next;
                block.len = 0;
                block.next = next;
                index
            }
            None => {
                let index =
                    u32::try_from(self.blocks.len()).expect("no more blocks than pipes and stale entries");
                self.blocks.push(Block { entries: [Entry::default(); 15], len: 0, next });
                index
            }
        }
    }

    /// Gives a block back; answers the one that followed it.
    fn release(&mut self, index: u32) -> Option<u32> {
        let block = &mut self.blocks[index as usize];
        let next = std::mem::replace(&mut block.next, self.free);
        self.free = Some(index);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn pipes_come_out_by_time_and_then_by_number() {
        let mut wheel = Wheel::new(4);
        for (id, at) in [(3, 20), (2, 10), (1, 20), (0, 30)] {
            wheel.schedule(id, Time::from_ps(at));
        }
        wheel.schedule(0, Time::from_ps(10));
        wheel.cancel(3);
        assert_eq!(wheel.pop_due(Time::from_ps(9)), None);
        let out: Vec<_> = std::iter::from_fn(|| wheel.pop_due(Time::from_ps(20))).collect();
        assert_eq!(out, [(Time::from_ps(10), 0), (Time::from_ps(10), 2), (Time::from_ps(20), 1)]);
        assert_eq!(wheel.next_at(), None);
    }

    #[test]
    fn rescheduling_for_ever_takes_no_more_memory() {
        let mut wheel = Wheel::new(2);
        wheel.schedule(1, Time::MAX);
        for round in 0..100_000 {
            wheel.schedule(0, Time::from_ps((1 + round % 2) << 40));
        }
        assert!(wheel.stale <= wheel.armed + STALE_MIN + 1, "{}", wheel.stale);
        assert!(wheel.blocks.blocks.len() < 200, "{}", wheel.blocks.blocks.len());
    }

    const PIPES: u32 = 4 * FEW as u32;

    #[derive(Clone, Debug)]
    enum Step {
        Schedule(u32, Time),
        /// Relative to the latest `now`.
        ScheduleIn(u32, u64),
        Cancel(u32),
        CancelFirst,
        PopUntil(Time),
        PopNext,
    }

    /// Times of every magnitude, so that every level is met.
    fn time() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(t, shift)| t >> shift)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u32..PIPES, time()).prop_map(|(id, t)| Step::Schedule(id, Time::from_ps(t))),
            6 => (0u32..PIPES, time()).prop_map(|(id, t)| Step::ScheduleIn(id, t)),
            1 => (0u32..PIPES).prop_map(Step::Cancel),
            1 => Just(Step::CancelFirst),
            1 => time().prop_map(|t| Step::PopUntil(Time::from_ps(t))),
            4 => Just(Step::PopNext),
        ]
    }

    /// The wheel as a sorted set.
    #[derive(Default)]
    struct Naive(BTreeSet<(Time, u32)>);

    impl Naive {
        fn cancel(&mut self, id: u32) {
            self.0.retain(|&(_, other)| other != id);
        }

        fn schedule(&mut self, id: u32, at: Time) {
            self.cancel(id);
            self.0.insert((at, id));
        }

        fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
            self.0.first().is_some_and(|&(at, _)| at <= now).then(|| self.0.pop_first()).flatten()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_wheel_is_a_sorted_set(
            first in prop::collection::vec(time(), 0..PIPES as usize),
            steps in prop::collection::vec(step(), 1..120),
        ) {
            let (mut wheel, mut naive) = (Wheel::new(PIPES as usize), Naive::default());
            let mut now = Time::ZERO;
            for (id, t) in first.into_iter().enumerate() {
                wheel.schedule(id as u32, Time::from_ps(t));
                naive.schedule(id as u32, Time::from_ps(t));
            }
            for step in steps {
                match step {
                    Step::Schedule(id, at) => {
                        wheel.schedule(id, at);
                        naive.schedule(id, at);
                    }
                    Step::ScheduleIn(id, ps) => {
                        let at = Time::from_ps(now.as_ps().saturating_add(ps));
                        wheel.schedule(id, at);
                        naive.schedule(id, at);
                    }
                    Step::Cancel(id) => {
                        wheel.cancel(id);
                        naive.cancel(id);
                    }
                    Step::CancelFirst => {
                        if let Some(&(_, id)) = naive.0.first() {
                            wheel.cancel(id);
                            naive.cancel(id);
                        }
                    }
                    Step::PopUntil(limit) => {
                        loop {
                            let (ours, theirs) = (wheel.pop_due(limit), naive.pop_due(limit));
                            prop_assert_eq!(ours, theirs);
                            if ours.is_none() {
                                break;
                            }
                        }
                        now = limit;
                    }
                    Step::PopNext => {
                        now = wheel.next_at().unwrap_or(now);
                        prop_assert_eq!(wheel.pop_due(now), naive.pop_due(now));
                    }
                }
                prop_assert_eq!(wheel.next_at(), naive.0.first().map(|&(at, _)| at));
            }
        }

        #[test]
        fn many_pipes_come_out_sorted(times in prop::collection::vec(time(), 1..3000)) {
            let mut wheel = Wheel::new(times.len());
            for (id, &t) in times.iter().enumerate() {
                wheel.schedule(id as u32, Time::from_ps(t));
            }
            let mut expected: Vec<_> = times.iter().zip(0u32..).map(|(&t, id)| (Time::from_ps(t), id)).collect();
            expected.sort();
            let popped: Vec<_> = std::iter::from_fn(|| wheel.pop_due(Time::MAX)).collect();
            prop_assert_eq!(popped, expected);
        }
    }
}
