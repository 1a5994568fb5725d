//! The event list: virtual time, and the pending events in their order.
//!
//! Events happen in the order of (time, insertion). One 128-bit integer holds both, so the order is
//! one comparison and depends on nothing else. Three parts hold the events:
//!
//! ```text
//! at == now ──► lane  (a FIFO: in a pipeline model half of all events take no time)
//! at >  now ──► heap  (4-ary: four children in two cache lines; the root may be vacant)
//! ticketed  ──► slots (can still be cancelled; a cancelled event stays in the heap, dead)
//! ```
//!
//! An event scheduled at `now` goes to the lane, so a heap event that is due now was inserted
//! before every event of the lane. The order "heap while its root is due now, then the lane" is
//! therefore exactly (time, insertion). After a pop the root stays vacant until the next operation,
//! so that the usual "take one, schedule one" costs one sift instead of two. Once the buffers have
//! grown, no event allocates memory.
//!
//! The meaning of an event belongs to the model, which matches on its own `enum` in its own loop.
//! There are no trait objects.

use fastpath_units::{Duration, Time};
use std::collections::VecDeque;

/// The event list of one run. `E` is the model's event, a small `Copy` value.
#[derive(Debug)]
pub struct Kernel<E> {
    now: Time,
    sequence: u64,
    heap: Vec<HeapNode<E>>,
    root_vacant: bool,
    lane: VecDeque<LaneNode<E>>,
    slots: Vec<TicketSlot>,
    free: Vec<u32>,
    dead: usize,
    handled: u64,
}

/// The handle to cancel one scheduled event. It has no effect once the event has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct HeapNode<E> {
    key: u128,
    slot: u32,
    event: E,
}

/// An event of the lane: it is due now.
#[derive(Clone, Copy, Debug)]
struct LaneNode<E> {
    sequence: u64,
    slot: u32,
    event: E,
}

#[derive(Clone, Copy, Debug)]
struct TicketSlot {
    generation: u32,
    live: bool,
}

/// The slot number of events without a ticket.
const UNTICKETED: u32 = u32::MAX;
/// With fewer dead events the heap is not swept.
const SWEEP_MIN: usize = 64;

fn time_of(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
}

/// The place of an event in the order of all events.
fn key_of(at: Time, sequence: u64) -> u128 {
    u128::from(at.as_ps()) << 64 | u128::from(sequence)
}

impl<E: Copy> Default for Kernel<E> {
    fn default() -> Self {
        Kernel::new()
    }
}

impl<E: Copy> Kernel<E> {
    /// An empty list at time zero.
    pub fn new() -> Self {
        Kernel {
            now: Time::ZERO,
            sequence: 0,
            heap: Vec::with_capacity(64),
            root_vacant: false,
            lane: VecDeque::with_capacity(64),
            slots: Vec::new(),
            free: Vec::new(),
            dead: 0,
            handled: 0,
        }
    }

    /// The time of the last event returned.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The number of events returned so far.
    pub const fn handled(&self) -> u64 {
        self.handled
    }

    /// The number of events that are scheduled, not returned and not cancelled.
    pub fn pending(&self) -> usize {
        self.heap.len() - usize::from(self.root_vacant) + self.lane.len() - self.dead
    }

    /// Schedules `event` at `at`, after everything already scheduled for that time. Panics if `at`
    /// is in the past: the model has a bug.
    #[inline]
    pub fn schedule(&mut self, at: Time, event: E) {
        self.insert(at, UNTICKETED, event);
    }

    /// Schedules `event` at `delay` from now. Panics past the end of virtual time (213 days).
    #[inline]
    pub fn after(&mut self, delay: Duration, event: E) {
        self.insert(self.now + delay, UNTICKETED, event);
    }

    /// As [`Kernel::schedule`], and returns the handle to cancel the event.
    pub fn schedule_ticketed(&mut self, at: Time, event: E) -> Ticket {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(TicketSlot { generation: 0, live: false });
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].live = true;
        self.insert(at, slot, event);
        Ticket { slot, generation: self.slots[slot as usize].generation }
    }

    /// Cancels the event of `ticket`. False if the event has happened or is cancelled already.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let slot = &mut self.slots[ticket.slot as usize];
        if slot.generation != ticket.generation || !slot.live {
            return false;
        }
        slot.live = false;
        self.dead += 1;
        if self.dead >= SWEEP_MIN && self.dead * 2 > self.heap.len() {
            self.sweep();
        }
        true
    }

    /// Returns the next event and advances `now` to its time; `None` if no event is left.
    #[inline]
    #[allow(clippy::should_implement_trait)] // An iterator would borrow the list for the whole loop.
    pub fn next(&mut self) -> Option<E> {
        self.next_until(Time::MAX)
    }

    /// As [`Kernel::next`], but leaves events after `limit` in the list.
    #[inline]
    pub fn next_until(&mut self, limit: Time) -> Option<E> {
        self.next_up_to(limit, u64::MAX).map(|(_, event)| event)
    }

    /// As [`Kernel::next_until`], but leaves events at `limit` in the list that were inserted after
    /// number `last`. Returns the number of the event's insertion, too.
    #[inline]
    pub(crate) fn next_up_to(&mut self, limit: Time, last: u64) -> Option<(u64, E)> {
        let end = key_of(limit, last);
        loop {
            self.fill_root();
            let due = self.heap.first().map(|root| root.key);
            if !self.lane.is_empty() && due.map(time_of) != Some(self.now) {
                let LaneNode { sequence, slot, event } = self.lane[0];
                if key_of(self.now, sequence) > end {
                    return None;
                }
                self.lane.pop_front();
                if self.is_wanted(slot) {
                    return Some((sequence, event));
                }
            } else {
                let key = due.filter(|&key| key <= end)?;
                let HeapNode { slot, event, .. } = self.heap[0];
                self.root_vacant = true;
                if self.is_wanted(slot) {
                    self.now = time_of(key);
                    return Some((key as u64, event));
                }
            }
        }
    }

    /// The number that the next insertion gets.
    pub(crate) const fn next_number(&self) -> u64 {
        self.sequence
    }

    /// Gives the next insertion this number or a higher one.
    pub(crate) fn number_from(&mut self, number: u64) {
        self.sequence = self.sequence.max(number);
    }

    /// Advances `now` to `now` of another event list, before which no event of this one is left.
    pub(crate) fn advance_to(&mut self, now: Time) {
        debug_assert!(now == self.now || self.lane.is_empty(), "events at {} are left", self.now);
        self.now = now;
    }

    /// Counts an event that leaves the list; false if it was cancelled.
    #[inline]
    fn is_wanted(&mut self, slot: u32) -> bool {
        let wanted = slot == UNTICKETED || self.retire(slot);
        self.handled += u64::from(wanted);
        wanted
    }

    #[inline]
    fn insert(&mut self, at: Time, slot: u32, event: E) {
        let sequence = self.sequence;
        self.sequence += 1;
        if at == self.now {
            self.lane.push_back(LaneNode { sequence, slot, event });
            return;
        }
        assert!(at > self.now, "event scheduled at {at}, but it is already {}", self.now);
        let node = HeapNode { key: key_of(at, sequence), slot, event };
        if self.root_vacant {
            self.root_vacant = false;
            self.sift_down(node);
        } else {
            self.heap.push(node);
            self.sift_up(node);
        }
    }

    /// Frees the slot of an event that leaves the list; true if the event was not cancelled.
    fn retire(&mut self, slot: u32) -> bool {
        let entry = &mut self.slots[slot as usize];
        let live = entry.live;
        entry.live = false;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        self.dead -= usize::from(!live);
        live
    }

    /// Removes the dead events from the heap, so that repeated cancelling does not grow it.
    fn sweep(&mut self) {
        self.fill_root();
        let nodes = std::mem::take(&mut self.heap);
        self.heap = Vec::with_capacity(nodes.capacity());
        for node in nodes {
            if node.slot != UNTICKETED && !self.slots[node.slot as usize].live {
                self.retire(node.slot);
            } else {
                self.heap.push(node);
                self.sift_up(node);
            }
        }
    }

    #[inline]
    fn fill_root(&mut self) {
        if !self.root_vacant {
            return;
        }
        self.root_vacant = false;
        if let Some(last) = self.heap.pop().filter(|_| !self.heap.is_empty()) {
            self.sift_down(last);
        }
    }

    /// Puts `node` at the root and sifts it down. The heap is not empty.
    #[inline(always)]
    fn sift_down(&mut self, node: HeapNode<E>) {
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = 4 * hole + 1;
            let least = if let Some([a, b, c, d]) = heap.get(first..first + 4) {
                // A tournament of conditional moves, because a branch would be unpredictable.
                let ab = first + usize::from(b.key < a.key);
                let cd = first + 2 + usize::from(d.key < c.key);
                let (key_ab, key_cd) = (a.key.min(b.key), c.key.min(d.key));
                if key_cd < key_ab { cd } else { ab }
            } else if first < heap.len() {
                (first + 1..heap.len()).fold(first, |m, i| if heap[i].key < heap[m].key { i } else { m })
            } else {
                break;
            };
            if heap[least].key > node.key {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = node;
    }

    /// Sifts `node`, which was just pushed last, up.
    #[inline]
    fn sift_up(&mut self, node: HeapNode<E>) {
        let heap = self.heap.as_mut_slice();
        let mut hole = heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if heap[parent].key < node.key {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The specification: a list that is searched for the least (time, insertion) each time.
    #[derive(Default)]
    struct Naive {
        now: u64,
        inserted: u64,
        list: Vec<(u64, u64, u32)>,
    }

    impl Naive {
        fn schedule(&mut self, at: u64, event: u32) {
            self.list.push((at, self.inserted, event));
            self.inserted += 1;
        }
        fn next(&mut self) -> Option<u32> {
            let least = (0..self.list.len()).min_by_key(|&i| (self.list[i].0, self.list[i].1))?;
            let (at, _, event) = self.list.remove(least);
            self.now = at;
            Some(event)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Schedule(u64),
        Ticketed(u64),
        Cancel(usize),
        Next,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0u64..6).prop_map(Step::Schedule),
            2 => (0u64..6).prop_map(Step::Ticketed),
            1 => any::<usize>().prop_map(Step::Cancel),
            4 => Just(Step::Next),
        ];
        proptest::collection::vec(step, 0..400)
    }

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_and_insertion_whatever_is_cancelled(steps in steps()) {
            let (mut kernel, mut naive) = (Kernel::new(), Naive::default());
            let mut tickets = Vec::new();
            for (id, step) in steps.into_iter().enumerate() {
                let id = id as u32;
                match step {
                    Step::Schedule(delay) => {
                        kernel.after(Duration::from_ps(delay), id);
                        naive.schedule(naive.now + delay, id);
                    }
                    Step::Ticketed(delay) => {
                        let at = kernel.now() + Duration::from_ps(delay);
                        tickets.push((kernel.schedule_ticketed(at, id), id));
                        naive.schedule(naive.now + delay, id);
                    }
                    Step::Cancel(pick) if !tickets.is_empty() => {
                        let (ticket, event) = tickets[pick % tickets.len()];
                        let known = naive.list.iter().position(|e| e.2 == event);
                        prop_assert_eq!(kernel.cancel(ticket), known.is_some());
                        if let Some(i) = known {
                            naive.list.remove(i);
                        }
                    }
                    Step::Cancel(_) => {}
                    Step::Next => {
                        prop_assert_eq!(kernel.next(), naive.next());
                        prop_assert_eq!(kernel.now().as_ps(), naive.now);
                    }
                }
                prop_assert_eq!(kernel.pending(), naive.list.len());
            }
            while let Some(event) = naive.next() {
                prop_assert_eq!(kernel.next(), Some(event));
            }
            prop_assert_eq!(kernel.next(), None);
        }
    }

    #[test]
    fn an_event_at_the_limit_happens_and_a_later_one_waits() {
        let mut kernel = Kernel::new();
        kernel.schedule(Time::from_ps(10), 'a');
        kernel.schedule(Time::from_ps(11), 'b');
        assert_eq!(kernel.next_until(Time::from_ps(10)), Some('a'));
        assert_eq!(kernel.next_until(Time::from_ps(10)), None);
        assert_eq!((kernel.now(), kernel.pending()), (Time::from_ps(10), 1));
        assert_eq!(kernel.next(), Some('b'));
    }

    #[test]
    fn timers_that_are_set_and_cancelled_repeatedly_do_not_grow_the_list() {
        let mut kernel = Kernel::new();
        for i in 1..100_000u64 {
            let timeout = kernel.schedule_ticketed(Time::from_ps(i + 1_000_000), 0);
            kernel.schedule(Time::from_ps(i), 1);
            assert_eq!(kernel.next(), Some(1));
            assert!(kernel.cancel(timeout));
        }
        assert!(kernel.heap.len() < 4 * SWEEP_MIN, "{} nodes for no event", kernel.heap.len());
    }

    #[test]
    #[should_panic(expected = "already 5ps")]
    fn scheduling_in_the_past_is_refused_with_both_times() {
        let mut kernel = Kernel::new();
        kernel.schedule(Time::from_ps(5), ());
        kernel.next();
        kernel.schedule(Time::from_ps(4), ());
    }
}
