//! The pending times of many pipes, in exact order: a hierarchical timing wheel (G. Varghese and T.
//! Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987) with an exact current tick.
//!
//! ```text
//!   near             level 0          level 1          …   level 7
//!   ticks ≤ base     64 × 1 tick      64 × 64 ticks         64 × 64⁷ ticks
//! ```
//!
//! Time is divided into ticks of 65.5 ns. A tick that first differs from the base in its n-th
//! group of six bits belongs to a slot of level n. So all timers of one level are later than all
//! timers of the levels below. When the earliest timer of all is in a slot, that slot is opened:
//! the base moves to this timer, timers of its tick go to `near`, and the others to lower levels. A
//! timer moves at most once per level, in blocks of contiguous memory, and most timers skip empty
//! levels. While few pipes are pending, all timers are in `near`: a small heap is faster.
//!
//! The timers that a slot gives to `near` are sorted at once. Timers that are added to the current
//! tick later go to a heap.
//!
//! Rescheduling leaves the old timer behind, stale. Stale timers are dropped when their slot is
//! opened, or all together when they outnumber the live ones. While there are none, timers move
//! without access to their pipes. Generations count modulo 256, so that a stale timer can appear
//! live. This is harmless: the first of both that is met disarms the pipe. So schedule, cancel and
//! pop take amortised constant time, with two exceptions: the heap of timers within one tick, and
//! a cancelled timer that was the earliest of its slot, after which the slot is searched.

#![forbid(unsafe_code)]

use fastpath_units::Time;
use prefetch_index::prefetch_index;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// log₂ of the picoseconds in a tick.
const TICK_BITS: u32 = 16;
const _: () =
    assert!(TICK_BITS == u64::BITS - 48, "what a time has within a tick is the top of an `TickTimer`");
/// log₂ of the slots in a level.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = ((u64::BITS - TICK_BITS) / SLOT_BITS) as usize;
/// While at most this many pipes are pending, all timers are in `near`.
const FEW: usize = 16;
/// The smallest number of stale timers that is worth a sweep.
const STALE_MIN: usize = 1024;

/// At most one pending time for each of a fixed number of pipes, popped by time, then by number.
///
/// Times may be scheduled in any order, even before times that were already popped. Memory grows
/// with the number of pending times and is kept: under a steady load the wheel does not allocate.
#[derive(Debug)]
pub struct Wheel {
    /// The pending time of each pipe, valid while the pipe is armed.
    times: Vec<Time>,
    /// How often each pipe was armed and disarmed, modulo 256: odd while it is armed.
    generations: Vec<u8>,
    /// Number of armed pipes, each with one live timer.
    armed: usize,
    /// Number of stale timers.
    stale: usize,
    /// Timers with a tick not after `base`, and some that were added while there were few. The
    /// first timer is live.
    near: NearTimers,
    base: u64,
    /// Timers with a tick after `base`, by level and slot.
    slots: Vec<Slot>,
    /// For each level a bit set of the slots that hold timers.
    occupied: [u64; LEVELS],
    /// A bit set of the levels with such slots.
    levels: u64,
    blocks: TimerBlocks,
}

/// From the highest bits to the lowest: a time, a pipe, and the generation of the pipe, which tells
/// a live timer from a stale one. So timers are ordered by time, then by pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Timer(u128);

impl Timer {
    #[inline]
    fn new(at: Time, id: u32, generation: u8) -> Timer {
        Timer(u128::from(at.as_ps()) << 64 | u128::from(id) << 32 | u128::from(generation))
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
    fn generation(self) -> u8 {
        self.0 as u8
    }
}

/// A list of timer blocks. The earliest timer of an occupied slot is live.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    earliest: Timer,
    block: Option<u32>,
}

impl Wheel {
    /// Creates a wheel for pipes numbered `0..pipes`, none of them pending.
    pub fn new(pipes: usize) -> Wheel {
        Wheel {
            times: vec![Time::ZERO; pipes],
            generations: vec![0; pipes],
            armed: 0,
            stale: 0,
            near: NearTimers::default(),
            base: 0,
            slots: vec![Slot::default(); LEVELS * SLOTS],
            occupied: [0; LEVELS],
            levels: 0,
            blocks: TimerBlocks::default(),
        }
    }

    /// Sets the pending time of pipe `id`, replacing an earlier one. Panics if `id` is not below
    /// the number of pipes.
    #[inline]
    pub fn schedule(&mut self, id: u32, at: Time) {
        if self.is_armed(id) {
            if self.times[id as usize] == at {
                return;
            }
            self.cancel(id);
        }
        self.times[id as usize] = at;
        let generation = self.generations[id as usize].wrapping_add(1);
        self.generations[id as usize] = generation;
        self.armed += 1;
        self.insert(Timer::new(at, id, generation));
    }

    /// Removes the pending time of pipe `id`, if there is one. Panics if `id` is not below the
    /// number of pipes.
    pub fn cancel(&mut self, id: u32) {
        if !self.is_armed(id) {
            return;
        }
        let at = self.times[id as usize];
        let stale = Timer::new(at, id, self.generations[id as usize]);
        self.disarm(id);
        self.stale += 1;
        match self.slot_index(at) {
            Some(index) if self.slots[index].earliest == stale => self.redistribute(index),
            _ => self.prune_near(),
        }
        if self.stale > self.armed + STALE_MIN {
            self.sweep_all();
        }
    }

    /// Returns the earliest pending time.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let first = match self.near.sorted.last() {
            Some(timer) => Some(timer.at(self.near.tick)),
            None => self.first_slot().map(|index| self.slots[index].earliest.at()),
        };
        match (first, self.near.heap.peek()) {
            (Some(first), Some(Reverse(other))) => Some(first.min(other.at())),
            (first, None) => first,
            (None, Some(Reverse(other))) => Some(other.at()),
        }
    }

    /// Removes the earliest pending time if it is not after `now`, and returns it with its pipe.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        if !self.has_stale()
            && self.near.heap.is_empty()
            && let Some(&timer) = self.near.sorted.last()
        {
            let at = timer.at(self.near.tick);
            if at > now {
                return None;
            }
            self.near.sorted.pop();
            self.disarm(timer.id());
            return Some((at, timer.id()));
        }
        self.pop_due_general(now)
    }

    /// As `pop_due`, if timers may be stale or in several containers.
    #[inline(never)]
    fn pop_due_general(&mut self, now: Time) -> Option<(Time, u32)> {
        if let Some(index) = self.first_far() {
            let far = self.slots[index].earliest;
            let first = self.near.first().is_none_or(|near| far < near);
            if first && far.at() <= now {
                self.open(index);
            } else if first {
                return None;
            }
        }
        let timer = self.near.first().filter(|timer| timer.at() <= now)?;
        self.near.drop_first();
        self.disarm(timer.id());
        self.prune_near();
        Some((timer.at(), timer.id()))
    }

    /// Prefetches the memory that `schedule` needs.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        // The generations of many pipes share a cache line, so they need no prefetch.
        prefetch_index(&self.times, id as usize);
    }

    /// Returns the pipe that follows the first one after `count` others, if it is known.
    #[inline]
    pub fn ahead(&self, count: usize) -> Option<u32> {
        let sorted = &self.near.sorted;
        sorted.len().checked_sub(1 + count).map(|at| sorted[at].id())
    }

    #[inline]
    fn has_stale(&self) -> bool {
        self.stale > 0
    }

    fn is_live(&self, timer: Timer) -> bool {
        self.generations[timer.id() as usize] == timer.generation()
            && self.times[timer.id() as usize] == timer.at()
    }

    #[inline]
    fn is_armed(&self, id: u32) -> bool {
        self.generations[id as usize] % 2 == 1
    }

    fn disarm(&mut self, id: u32) {
        self.generations[id as usize] = self.generations[id as usize].wrapping_add(1);
        self.armed -= 1;
    }

    /// Returns the index of the slot for a timer at `at`; `None` for `near`.
    fn slot_index(&self, at: Time) -> Option<usize> {
        let tick = at.as_ps() >> TICK_BITS;
        if tick <= self.base {
            return None;
        }
        let level = (tick ^ self.base).ilog2() / SLOT_BITS;
        let slot = (tick >> (level * SLOT_BITS)) as usize % SLOTS;
        Some(level as usize * SLOTS + slot)
    }

    #[inline]
    fn insert(&mut self, timer: Timer) {
        match self.slot_index(timer.at()) {
            Some(index) if self.armed > FEW => self.put(index, timer),
            _ => self.near.insert(timer),
        }
    }

    /// Adds a timer to a slot.
    #[inline]
    fn put(&mut self, index: usize, timer: Timer) {
        let slot = &mut self.slots[index];
        if slot.block.is_none() {
            slot.earliest = timer;
            self.occupied[index / SLOTS] |= 1 << (index % SLOTS);
            self.levels |= 1 << (index / SLOTS);
        } else if timer < slot.earliest {
            slot.earliest = timer;
        }
        slot.block = Some(self.blocks.push(slot.block, timer));
    }

    /// Returns the earliest occupied slot, if it may hold the first timer: not while timers of the
    /// current tick are left.
    #[inline]
    fn first_far(&self) -> Option<usize> {
        if self.near.sorted.is_empty() { self.first_slot() } else { None }
    }

    /// Returns the earliest occupied slot.
    #[inline]
    fn first_slot(&self) -> Option<usize> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some(level * SLOTS + self.occupied[level].trailing_zeros() as usize)
    }

    /// Opens the earliest slot: its earliest timers go to `near`, the others to lower levels.
    fn open(&mut self, index: usize) {
        self.base = self.slots[index].earliest.at().as_ps() >> TICK_BITS;
        self.near.tick = self.base;
        self.redistribute(index);
        self.near.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Empties a slot, moves its live timers to where they belong now, and drops stale ones. Timers
    /// for `near`, which occur only when the slot is opened, are added unsorted.
    fn redistribute(&mut self, index: usize) {
        let mut next = self.slots[index].block.take();
        let stale = self.has_stale();
        self.occupied[index / SLOTS] &= !(1 << (index % SLOTS));
        if self.occupied[index / SLOTS] == 0 {
            self.levels &= !(1 << (index / SLOTS));
        }
        while let Some(block) = next {
            let TimerBlock { len, timers, .. } = self.blocks.blocks[block as usize];
            for &timer in &timers[..len as usize] {
                if stale && !self.is_live(timer) {
                    self.stale -= 1;
                } else if self.slot_index(timer.at()).is_none() {
                    self.near.sorted.push(TickTimer::new(timer));
                } else {
                    self.insert(timer);
                }
            }
            next = self.blocks.release(block);
        }
    }

    /// Drops all stale timers.
    fn sweep_all(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].block.is_some() {
                self.redistribute(index);
            }
        }
        let mut near = std::mem::take(&mut self.near);
        self.stale -= near.retain(|timer| self.is_live(timer));
        self.near = near;
    }

    /// Drops stale timers from the front of `near`.
    #[inline]
    fn prune_near(&mut self) {
        while self.has_stale()
            && let Some(timer) = self.near.first()
            && !self.is_live(timer)
        {
            self.near.drop_first();
            self.stale -= 1;
        }
    }
}

/// The earliest timers, in order.
#[derive(Debug, Default)]
struct NearTimers {
    /// The timers of the slot that was opened last, in descending order. All are of one tick, which
    /// is not after `base`, so the list is empty when the next slot is opened.
    sorted: Vec<TickTimer>,
    tick: u64,
    /// Timers that were added one by one.
    heap: BinaryHeap<Reverse<Timer>>,
}

/// A timer of a known tick: half the size, in the same order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct TickTimer(u64);

impl TickTimer {
    #[inline]
    fn new(timer: Timer) -> TickTimer {
        TickTimer(timer.at().as_ps() << 48 | u64::from(timer.id()) << 16 | u64::from(timer.generation()))
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
    fn timer(self, tick: u64) -> Timer {
        Timer::new(self.at(tick), self.id(), self.0 as u8)
    }
}

impl NearTimers {
    #[inline]
    fn first(&self) -> Option<Timer> {
        let sorted = self.sorted.last().map(|timer| timer.timer(self.tick));
        match (sorted, self.heap.peek()) {
            (Some(sorted), Some(&Reverse(other))) => Some(sorted.min(other)),
            (sorted, other) => sorted.or(other.map(|&Reverse(other)| other)),
        }
    }

    /// Removes the first timer.
    #[inline]
    fn drop_first(&mut self) {
        match (self.sorted.last(), self.heap.peek()) {
            (Some(sorted), Some(Reverse(other))) if *other < sorted.timer(self.tick) => drop(self.heap.pop()),
            (Some(_), _) => drop(self.sorted.pop()),
            (None, _) => drop(self.heap.pop()),
        }
    }

    fn insert(&mut self, timer: Timer) {
        self.heap.push(Reverse(timer));
    }

    /// Keeps the timers for which `keep` is true and returns the number of the others.
    fn retain(&mut self, mut keep: impl FnMut(Timer) -> bool) -> usize {
        let before = self.sorted.len() + self.heap.len();
        self.sorted.retain(|timer| keep(timer.timer(self.tick)));
        self.heap.retain(|&Reverse(timer)| keep(timer));
        before - self.sorted.len() - self.heap.len()
    }
}

/// The timers of all slots in linked blocks, so that a slot takes memory for its timers only and is
/// read sequentially.
#[derive(Debug, Default)]
struct TimerBlocks {
    blocks: Vec<TimerBlock>,
    free: Option<u32>,
}

/// The header is next to the first timers, so that most insertions touch one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct TimerBlock {
    len: u32,
    next: Option<u32>,
    timers: [Timer; 15],
}

impl TimerBlocks {
    /// Adds `timer` to the list of blocks that starts with `first` and returns its new start.
    #[inline]
    fn push(&mut self, first: Option<u32>, timer: Timer) -> u32 {
        if let Some(index) = first {
            let block = &mut self.blocks[index as usize];
            if let Some(room) = block.timers.get_mut(block.len as usize) {
                *room = timer;
                block.len += 1;
                return index;
            }
        }
        self.begin(first, timer)
    }

    /// Returns a block with one timer, followed by `next`.
    #[inline(never)]
    fn begin(&mut self, next: Option<u32>, timer: Timer) -> u32 {
        let index = self.take(next);
        let block = &mut self.blocks[index as usize];
        (block.len, block.timers[0]) = (1, timer);
        index
    }

    /// Returns an empty block, followed by `next`.
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
                    u32::try_from(self.blocks.len()).expect("no more blocks than pipes and stale timers");
                self.blocks.push(TimerBlock { timers: [Timer::default(); 15], len: 0, next });
                index
            }
        }
    }

    /// Releases a block and returns the one that followed it.
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
    fn repeated_rescheduling_does_not_grow_memory() {
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
    enum Operation {
        Schedule(u32, Time),
        /// Relative to the latest `now`.
        ScheduleIn(u32, u64),
        Cancel(u32),
        CancelFirst,
        PopUntil(Time),
        PopNext,
    }

    /// Times of every magnitude, so that every level is used.
    fn time() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(t, shift)| t >> shift)
    }

    fn step() -> impl Strategy<Value = Operation> {
        prop_oneof![
            3 => (0u32..PIPES, time()).prop_map(|(id, t)| Operation::Schedule(id, Time::from_ps(t))),
            6 => (0u32..PIPES, time()).prop_map(|(id, t)| Operation::ScheduleIn(id, t)),
            1 => (0u32..PIPES).prop_map(Operation::Cancel),
            1 => Just(Operation::CancelFirst),
            1 => time().prop_map(|t| Operation::PopUntil(Time::from_ps(t))),
            4 => Just(Operation::PopNext),
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
                    Operation::Schedule(id, at) => {
                        wheel.schedule(id, at);
                        naive.schedule(id, at);
                    }
                    Operation::ScheduleIn(id, ps) => {
                        let at = Time::from_ps(now.as_ps().saturating_add(ps));
                        wheel.schedule(id, at);
                        naive.schedule(id, at);
                    }
                    Operation::Cancel(id) => {
                        wheel.cancel(id);
                        naive.cancel(id);
                    }
                    Operation::CancelFirst => {
                        if let Some(&(_, id)) = naive.0.first() {
                            wheel.cancel(id);
                            naive.cancel(id);
                        }
                    }
                    Operation::PopUntil(limit) => {
                        loop {
                            let (ours, theirs) = (wheel.pop_due(limit), naive.pop_due(limit));
                            prop_assert_eq!(ours, theirs);
                            if ours.is_none() {
                                break;
                            }
                        }
                        now = limit;
                    }
                    Operation::PopNext => {
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
