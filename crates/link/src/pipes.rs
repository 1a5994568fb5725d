//! Many pipes, and what leaves them next: the pipes of a network, in memory that a packet crosses
//! quickly.
//!
//! ```text
//!   push(now, id, packet)                                                       pop(now) ─▶ (id, exit)
//!        │      ┌──────────────────────────────────────────────────────────────┐     ▲
//!        └────▶ │ id │ a cache line, what push needs │ ──▶ store of packets     │ ────┘
//!               └──────────────────────────────────────────────────────────────┘
//!                 wheel: who is next?                  terms: shared by those alike
//! ```
//!
//! Among a million pipes a packet finds nothing of its pipe in the cache. So what a pipe has of its
//! own is two lines and nine bytes of the wheel, whoever is about to be pushed to or popped from is
//! [fetched](Pipes::prefetch) some packets ahead, and everything that can be shared is: packets in
//! one store, equal parameters once.

use crate::packet::{DropReason, Exit, Packet, Verdict};
use crate::pipe_set::{Departures, PipeInit, PipeRef, Set};
use crate::spec::Change;
use crate::store::PopLimit;
use crate::wheel::Wheel;
use fastpath_units::Time;

/// A pipe is fetched into the cache when so many others leave before it.
const AHEAD: usize = 6;

/// A fixed number of pipes, carrying packets that the caller keeps by a `P`. Each behaves as a
/// [`Pipe`](crate::Pipe).
#[derive(Debug)]
pub struct Pipes<P> {
    set: Set<P>,
    wheel: Wheel,
    /// The pipe that packets leave now, which is not on the wheel.
    active: Option<Active>,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    id: u32,
    /// The instant it is at.
    at: Time,
    /// Until then nobody else is before it.
    until: Time,
}

impl Active {
    /// Somebody else is next at `other`. At one instant pipes go by number, but this one has its
    /// instant whole.
    #[inline]
    fn give_way(&mut self, other: Option<Time>) {
        if let Some(other) = other {
            self.until = self.until.min(Time::from_ps(other.as_ps().saturating_sub(1))).max(self.at);
        }
    }
}

impl<P> Pipes<P> {
    /// Empty pipes, numbered in the order of their plans, that will hold about `packets_max`
    /// packets in all at most: as long as it is no more, memory for them is not moved.
    pub fn new<'s>(plans: impl ExactSizeIterator<Item = PipeInit<'s>>, packets_max: usize) -> Pipes<P> {
        Pipes::of(Set::new(plans, packets_max, Departures::Unnoted))
    }

    /// The same, and [`departed`](Pipes::departed) is known of every packet. The exits are the
    /// same, but take longer.
    pub fn recording_departures<'s>(
        plans: impl ExactSizeIterator<Item = PipeInit<'s>>,
        packets_max: usize,
    ) -> Pipes<P> {
        Pipes::of(Set::new(plans, packets_max, Departures::Noted))
    }

    fn of(set: Set<P>) -> Pipes<P> {
        Pipes { wheel: Wheel::new(set.len()), set, active: None }
    }

    /// Gives pipe `id` a packet that arrives at `now`. A packet that is not taken comes back with
    /// the reason.
    #[inline]
    pub fn push(&mut self, now: Time, id: u32, packet: Packet<P>) -> Verdict<P> {
        let settled = self.set.is_settled(id);
        let verdict = self.set.push(now, id, packet);
        if !settled {
            self.schedule(id);
        }
        verdict
    }

    /// True if pipe `id` may be given several packets by [`Pipes::push_run`]: nothing leaves it at
    /// the instant it came, and it does not look at `traffic_class` and `flow`.
    #[inline]
    pub fn takes_runs(&self, id: u32) -> bool {
        self.set.takes_runs(id)
    }

    /// Gives pipe `id` packets that arrive together at `now`, as [`Pipes::push`] for each. Those
    /// that are not taken go to `refuse`.
    #[inline]
    pub fn push_run(
        &mut self,
        now: Time,
        id: u32,
        packets: impl Iterator<Item = Packet<P>>,
        refuse: impl FnMut(DropReason, P),
    ) {
        let settled = self.set.is_settled(id);
        self.set.push_run(now, id, packets, refuse);
        if !settled {
            self.schedule(id);
        }
    }

    /// The next packet that has left any pipe by `now`, delivered or dropped, and that pipe: in
    /// order of time, then of pipes. `None` when there is no more.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(u32, Exit<P>)> {
        loop {
            let Active { id, until, .. } = self.activate(now)?;
            if let Some(exit) = self.set.pop_next(until.min(now), id) {
                self.be_at(exit.at);
                return Some((id, exit));
            }
            self.active = None;
            if let Some(next) = self.set.next_at(id) {
                self.wheel.schedule(id, next);
                if until > now {
                    return None;
                }
            }
        }
    }

    /// Takes out packets that leave next, within `limit`, and returns their number. Stops at a
    /// packet that leaves a general pipe, a pipe whose label is not `wanted`, or is not delivered
    /// unmarked. `take` gets the label, the exit time and the data of each packet. The result
    /// equals that of as many calls of [`Pipes::pop`]; below the limit `pop` may still have some.
    #[inline]
    pub fn pop_run(
        &mut self,
        limit: PopLimit,
        wanted: impl Fn(u32) -> bool,
        mut take: impl FnMut(u32, Time, P),
    ) -> usize {
        let mut taken = 0;
        while let Some(mut active) = self.active.take().or_else(|| self.next_active(limit.until)) {
            let id = active.id;
            let label = self.set.label(id);
            let until = active.until.min(limit.until);
            if wanted(label) {
                let left = PopLimit { until, packets_max: limit.packets_max - taken };
                taken += self.set.pop_run(left, id, |time, data| {
                    active.at = time;
                    take(label, time, data);
                });
                let next = self.set.next_at(id);
                if taken < limit.packets_max && next.is_none_or(|next| next > until) {
                    if let Some(next) = next {
                        self.wheel.schedule(id, next);
                    }
                    continue;
                }
            }
            self.active = Some(active);
            break;
        }
        taken
    }

    /// The pipe whose turn it is, if that has come by `now`.
    #[inline]
    fn activate(&mut self, now: Time) -> Option<Active> {
        if self.active.is_none() {
            self.active = Some(self.next_active(now)?);
        }
        self.active
    }

    /// The pipe whose turn comes next, if it has come by `now`.
    // What it answers stays in registers: read back from memory as a whole it would wait for each
    // of its parts.
    #[inline(always)]
    fn next_active(&mut self, now: Time) -> Option<Active> {
        let (at, id) = self.wheel.pop_due(now)?;
        if let Some(later) = self.wheel.ahead(AHEAD) {
            self.set.prefetch_exit(later);
        }
        let mut active = Active { id, at, until: Time::MAX };
        active.give_way(self.wheel.next_at());
        Some(active)
    }

    /// The active pipe has come to `at`.
    #[inline]
    fn be_at(&mut self, at: Time) {
        if let Some(active) = &mut self.active {
            active.at = at;
        }
    }

    /// When the packet that pipe `id` gave out last had left the queue, all of it sent; `None` if
    /// it never did, or if departures are not noted.
    pub fn departed(&self, id: u32) -> Option<Time> {
        self.set.departed(id)
    }

    /// When the copies of the packet that pipe `id` gave out last leave, if that is later than the
    /// packet: make them and [put them back](Pipes::put_copy).
    pub fn copies_at(&self, id: u32) -> Option<Time> {
        self.set.copies_at(id)
    }

    /// A copy of a packet that has left pipe `id` leaves it at `at`, as
    /// [`Pipe::put_copy`](crate::Pipe::put_copy).
    pub fn put_copy(&mut self, id: u32, at: Time, packet: Packet<P>) {
        self.set.put_copy(id, at, packet);
        self.schedule(id);
    }

    /// When to call `pop` again; `None` if all pipes are empty. Nothing leaves before.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let active = self.active.and_then(|active| self.set.next_at(active.id));
        match (active, self.wheel.next_at()) {
            (Some(active), Some(other)) => Some(active.min(other)),
            (active, other) => active.or(other),
        }
    }

    /// Changes parameters of pipe `id` at `now`, as [`Pipe::change`](crate::Pipe::change).
    pub fn change(&mut self, now: Time, id: u32, change: &Change) {
        self.set.change(now, id, change);
        self.schedule(id);
    }

    #[inline]
    fn schedule(&mut self, id: u32) {
        if let Some(active) = &mut self.active {
            if active.id == id {
                return;
            }
            active.give_way(self.set.next_at(id));
        }
        match self.set.next_at(id) {
            Some(at) => self.wheel.schedule(id, at),
            None => self.wheel.cancel(id),
        }
    }

    /// Begins to bring what a push to pipe `id` needs into the cache, and does not wait for it.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        self.set.prefetch(id);
        self.wheel.prefetch(id);
    }

    /// Notes something of the caller's own at pipe `id`; say, where it leads.
    pub fn set_label(&mut self, id: u32, label: u32) {
        self.set.set_label(id, label);
    }

    /// What was noted at pipe `id`; 0 if nothing was.
    #[inline]
    pub fn label(&self, id: u32) -> u32 {
        self.set.label(id)
    }

    /// True if what becomes of a packet in pipe `id` depends on its `traffic_class` or `flow`;
    /// otherwise the caller need not look for them.
    #[inline]
    pub fn reads_headers(&self, id: u32) -> bool {
        self.set.reads_headers(id)
    }

    /// Pipe `id`, to look at.
    pub fn pipe(&self, id: u32) -> PipeRef<'_, P> {
        self.set.pipe(id)
    }

    /// The packets in all of them.
    pub fn held(&self) -> u64 {
        (0..self.set.len() as u32).map(|id| self.pipe(id).held().packets).sum()
    }
}
