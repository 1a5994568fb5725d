//! Many pipes in one set, popped in order of time: the pipes of a network, laid out for few cache
//! misses per packet.
//!
//! ```text
//!   push(now, id, packet)                                              pop(now) ─▶ (id, exit)
//!        │      ┌─────────────────────────────────────────────────────┐     ▲
//!        └────▶ │ id │ a cache line, what push needs │ ──▶ packets    │ ────┘
//!               └─────────────────────────────────────────────────────┘
//!                 wheel: which pipe is next      parameters: shared by equal pipes
//! ```
//!
//! Among a million pipes no data of a packet's pipe is in the cache. So the data of one pipe is two
//! cache lines and nine bytes of the wheel, a pipe is [prefetched](Pipes::prefetch) some packets
//! before a push or a pop, packets share one store, and equal parameters are stored once.

use crate::counters::QueueState;
use crate::packet::{DropReason, Exit, Packet, Verdict};
use crate::pipe_set::{DepartureTimes, PipeInit, PipeRef, PipeSet};
use crate::spec::Change;
use crate::store::PopLimit;
use fastpath_units::Time;
use fastpath_wheel::Wheel;

/// A pipe is prefetched when this many other pipes are popped before it.
const AHEAD: usize = 6;

/// A fixed number of pipes, identified by number. Each behaves as a [`Pipe`](crate::Pipe). The
/// caller identifies the bytes of packets by a `P`.
#[derive(Debug)]
pub struct Pipes<P> {
    set: PipeSet<P>,
    wheel: Wheel,
    /// The pipe that is popped now, which is not on the wheel.
    active: Option<Active>,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    id: u32,
    /// The time of its newest exit.
    at: Time,
    /// Until then no other pipe comes before it.
    until: Time,
}

impl Active {
    /// Bounds `until` by `other`, the next time of another pipe. At one instant pipes are popped by
    /// number, but this pipe completes its current instant.
    #[inline]
    fn bound_by(&mut self, other: Option<Time>) {
        if let Some(other) = other {
            self.until = self.until.min(Time::from_ps(other.as_ps().saturating_sub(1))).max(self.at);
        }
    }
}

impl<P> Pipes<P> {
    /// Creates empty pipes, numbered in the order of `pipes`. Memory for up to about `packets_max`
    /// packets in all pipes is reserved, so that it does not move.
    pub fn new<'s>(pipes: impl ExactSizeIterator<Item = PipeInit<'s>>, packets_max: usize) -> Pipes<P> {
        Pipes::of(PipeSet::new(pipes, packets_max, DepartureTimes::Ignored))
    }

    /// As [`Pipes::new`], and [`departed`](Pipes::departed) is known for every packet. Exits are
    /// identical, but the pipes are slower.
    pub fn recording_departures<'s>(
        pipes: impl ExactSizeIterator<Item = PipeInit<'s>>,
        packets_max: usize,
    ) -> Pipes<P> {
        Pipes::of(PipeSet::new(pipes, packets_max, DepartureTimes::Recorded))
    }

    /// Creates pipes beside running ones, for [`Pipes::rearrange`]: new ones, and `None` for those
    /// that run already.
    pub fn prepared<'s>(
        pipes: impl ExactSizeIterator<Item = Option<PipeInit<'s>>>,
        records_departures: bool,
    ) -> Pipes<P> {
        let departures = if records_departures { DepartureTimes::Recorded } else { DepartureTimes::Ignored };
        Pipes::of(PipeSet::prepared(pipes, 0, departures))
    }

    /// Takes the pipes and labels of `prepared` in place of its own at `now`. Pipe `id` stays the
    /// one that had the number `from[id]`, with its packets, counters and random numbers, if that
    /// is a number. The pipes of `removed` end: their packets go to `lost`, with the former number
    /// of the pipe. `prepared` is left with the memory that is no longer needed.
    ///
    /// Takes time in proportion to the number of pipes.
    pub fn rearrange(
        &mut self,
        now: Time,
        prepared: &mut Pipes<P>,
        from: &[Option<u32>],
        removed: &[u32],
        lost: impl FnMut(u32, P),
    ) {
        self.set.rearrange(now, &mut prepared.set, from, removed, lost);
        self.active = None;
        std::mem::swap(&mut self.wheel, &mut prepared.wheel);
        for id in 0..self.set.len() as u32 {
            if let Some(at) = self.set.next_at(id) {
                self.wheel.schedule(id, at);
            }
        }
    }

    fn of(set: PipeSet<P>) -> Pipes<P> {
        Pipes { wheel: Wheel::new(set.len()), set, active: None }
    }

    /// Pushes a packet that arrives at `now` into pipe `id`. Returns it if it is refused.
    #[inline]
    pub fn push(&mut self, now: Time, id: u32, packet: Packet<P>) -> Verdict<P> {
        let settled = self.set.is_settled(id);
        let verdict = self.set.push(now, id, packet);
        if !settled {
            self.schedule(id);
        }
        verdict
    }

    /// Returns true if [`Pipes::push_run`] may be used for pipe `id`: no packet leaves at the
    /// instant of its arrival, and the pipe does not read `traffic_class` and `flow`.
    #[inline]
    pub fn takes_runs(&self, id: u32) -> bool {
        self.set.takes_runs(id)
    }

    /// Pushes packets that arrive together at `now` into pipe `id`, as [`Pipes::push`] for each.
    /// Refused packets go to `refuse`.
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

    /// Returns true if packets that are pushed into pipe `id` at `now` leave it at that instant,
    /// unmarked and without a draw, and nothing in it comes before them.
    #[inline]
    pub fn passes(&self, now: Time, id: u32) -> bool {
        self.set.passes(now, id)
    }

    /// Counts packets of these lengths as pushed into pipe `id` at `now` and popped from it at
    /// once. The pipe must [pass](Pipes::passes) them.
    #[inline]
    pub fn pass_run(&mut self, now: Time, id: u32, lens: impl Iterator<Item = u32>) {
        debug_assert!(self.passes(now, id), "packets wait in pipe {id}");
        self.set.pass_run(now, id, lens);
    }

    /// Removes the next packet that has left any pipe by `now`, delivered or dropped, and returns
    /// it with the number of the pipe. Packets leave in order of time, then of pipes. `None` if
    /// there is none.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(u32, Exit<P>)> {
        loop {
            let Active { id, until, .. } = self.activate(now)?;
            if let Some(exit) = self.set.pop_next(until.min(now), id) {
                self.set_active_time(exit.at);
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
    /// packet that leaves a general pipe, a pipe with a label that is not `wanted`, or is not
    /// delivered unmarked. `take` gets the label, the exit time and the data of each packet. The
    /// result equals that of as many calls of [`Pipes::pop`]; below the limit `pop` may have more.
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

    /// Returns the active pipe, or activates the next one that is due by `now`.
    #[inline]
    fn activate(&mut self, now: Time) -> Option<Active> {
        if self.active.is_none() {
            self.active = Some(self.next_active(now)?);
        }
        self.active
    }

    /// Takes the next pipe off the wheel if it is due by `now`.
    // Inlined, so that the result stays in registers: a wide load of it from memory would wait for
    // the stores of its parts.
    #[inline(always)]
    fn next_active(&mut self, now: Time) -> Option<Active> {
        let (at, id) = self.wheel.pop_due(now)?;
        if let Some(later) = self.wheel.ahead(AHEAD) {
            self.set.prefetch_exit(later);
        }
        let mut active = Active { id, at, until: Time::MAX };
        active.bound_by(self.wheel.next_at());
        Some(active)
    }

    /// Notes the exit time of the active pipe.
    #[inline]
    fn set_active_time(&mut self, at: Time) {
        if let Some(active) = &mut self.active {
            active.at = at;
        }
    }

    /// Returns when the transmission of the packet popped last from pipe `id` ended; `None` if it
    /// was not sent or departures are not recorded.
    pub fn departed(&self, id: u32) -> Option<Time> {
        self.set.departed(id)
    }

    /// See [`Pipe::copies_at`](crate::Pipe::copies_at), for the packet popped last from pipe `id`.
    pub fn copies_at(&self, id: u32) -> Option<Time> {
        self.set.copies_at(id)
    }

    /// See [`Pipe::put_copy`](crate::Pipe::put_copy).
    pub fn put_copy(&mut self, id: u32, at: Time, packet: Packet<P>) {
        self.set.put_copy(id, at, packet);
        self.schedule(id);
    }

    /// Returns when to call `pop` again; `None` if all pipes are empty. No packet leaves earlier.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let active = self.active.and_then(|active| self.set.next_at(active.id));
        match (active, self.wheel.next_at()) {
            (Some(active), Some(other)) => Some(active.min(other)),
            (active, other) => active.or(other),
        }
    }

    /// Bounds the packets of cross traffic with which a pipe catches up that was idle: older ones
    /// are left out, so that the next push does not take long. Otherwise all are carried out, and
    /// results depend on pushes and changes alone.
    pub fn bound_cross(&mut self, packets_max: u64) {
        self.set.bound_cross(packets_max);
    }

    /// Changes parameters of pipe `id` at `now`. See [`Pipe::change`](crate::Pipe::change).
    pub fn change(&mut self, now: Time, id: u32, change: &Change) {
        self.set.change(now, id, change);
        self.schedule(id);
    }

    /// Takes out what is in the delay line of pipe `id` and leaves before `horizon`, in order, and
    /// whose exit no later push or change can alter. The caller knows that nothing is pushed and
    /// nothing changes by `now`, and has popped every packet that leaves by then. `take` gets each
    /// exit with its [departure](Pipes::departed).
    pub fn take_ahead(&mut self, now: Time, id: u32, horizon: Time, take: impl FnMut(Exit<P>, Option<Time>)) {
        debug_assert!(self.active.is_none(), "every packet that is due has been popped");
        if self.set.next_at(id).is_some() {
            self.set.take_ahead(now, id, horizon, take);
            self.schedule(id);
        }
    }

    /// Returns the next exit of pipe `id` from its delay line, or from the wire of a pipe whose
    /// departures are not [events](Pipes::next_at); `None` without one.
    pub fn next_flight(&self, id: u32) -> Option<Time> {
        self.set.next_flight(id)
    }

    /// Returns the data of the packet that leaves pipe `id` next, so that its memory can be
    /// prefetched; `None` if that is not known at once.
    #[inline]
    pub fn head(&self, id: u32) -> Option<&P> {
        self.set.head(id)
    }

    /// Returns whether pipe `id` holds a packet.
    pub fn holds(&self, id: u32) -> bool {
        self.pipe(id).held().packets > 0
    }

    /// Returns when the next packet of pipe `id` enters its delay line, or when an event of its
    /// rate stage comes first; `None` without one.
    pub fn next_departure(&self, id: u32) -> Option<Time> {
        self.set.next_departure(id)
    }

    /// Puts a packet that has left another pipe, with its exit and departure, into pipe `id`, which
    /// is used for nothing else. It leaves at its exit with its fate. Exits must not decrease.
    pub fn put_exit(&mut self, id: u32, exit: Exit<P>, departed: Option<Time>) {
        let settled = self.set.is_settled(id);
        self.set.put_exit(id, exit, departed);
        if !settled {
            self.schedule(id);
        }
    }

    /// Makes pipe `id` a general pipe at `now`, with the same results.
    pub fn generalise(&mut self, now: Time, id: u32) {
        self.set.generalise(now, id);
    }

    #[inline]
    fn schedule(&mut self, id: u32) {
        if let Some(active) = &mut self.active {
            if active.id == id {
                return;
            }
            active.bound_by(self.set.next_at(id));
        }
        match self.set.next_at(id) {
            Some(at) => self.wheel.schedule(id, at),
            None => self.wheel.cancel(id),
        }
    }

    /// See [`Pipe::queue`](crate::Pipe::queue). Every packet that leaves by `now` must have been
    /// popped.
    pub fn queue(&mut self, now: Time, id: u32) -> QueueState {
        self.set.queue(now, id)
    }

    /// Prefetches the memory that a push to pipe `id` needs, without waiting.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        self.set.prefetch(id);
        self.wheel.prefetch(id);
    }

    /// Sets a label of pipe `id` for the caller's use, such as its destination.
    pub fn set_label(&mut self, id: u32, label: u32) {
        self.set.set_label(id, label);
    }

    /// Returns the label of pipe `id`, initially 0.
    #[inline]
    pub fn label(&self, id: u32) -> u32 {
        self.set.label(id)
    }

    /// See [`Pipe::reads_headers`](crate::Pipe::reads_headers).
    #[inline]
    pub fn reads_headers(&self, id: u32) -> bool {
        self.set.reads_headers(id)
    }

    /// Returns a view of pipe `id`.
    pub fn pipe(&self, id: u32) -> PipeRef<'_, P> {
        self.set.pipe(id)
    }

    /// Returns the number of packets in all pipes.
    pub fn held(&self) -> u64 {
        (0..self.set.len() as u32).map(|id| self.pipe(id).held().packets).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairment::{JitterCorrelation, JitterLaw, JitterSpec, Reorder};
    use crate::pipe_set::PipeInit;
    use crate::spec::PipeSpec;
    use fastpath_units::{Duration, Rate, Rng};

    fn pipes(spec: &PipeSpec) -> Pipes<u64> {
        Pipes::new([PipeInit { spec, rng: Rng::new(7) }].into_iter(), 100)
    }

    fn packet(number: u64) -> Packet<u64> {
        Packet::new(100 + number as u32 % 7, number)
    }

    /// Packets that are taken ahead and put into another pipe leave as from the pipe itself.
    #[test]
    fn exits_taken_ahead_and_put_elsewhere_are_the_same() {
        let ms = Duration::from_ms;
        let plain = PipeSpec { delay: ms(3), rate: Rate::from_bps(1_000_000), ..PipeSpec::default() };
        let law = JitterLaw::Uniform { half_width: ms(1) };
        let jitter = |order| {
            let spec = JitterSpec { law: law.clone(), correlation: JitterCorrelation::None, order };
            PipeSpec { jitter: Some(Box::new(spec)), ..plain.clone() }
        };
        let ideal = PipeSpec { delay: ms(2), ..PipeSpec::default() };
        for spec in [&plain, &ideal, &jitter(Reorder::Never), &jitter(Reorder::Allow), &jitter(Reorder::Drop)]
        {
            let (mut whole, mut from, mut to) = (pipes(spec), pipes(spec), pipes(spec));
            let (mut expected, mut got, mut rng) = (Vec::new(), Vec::new(), Rng::new(1));
            let mut at = Time::ZERO;
            for number in 0..500 {
                at += Duration::from_us(rng.below(3) * rng.below(900));
                expected.extend(std::iter::from_fn(|| whole.pop(at)));
                let _ = (whole.push(at, 0, packet(number)), from.push(at, 0, packet(number)));
                let horizon = at + ms(2);
                // Nothing else is pushed by one picosecond before `at`.
                let before = Time::from_ps(at.as_ps().saturating_sub(1));
                from.take_ahead(before, 0, horizon, |exit, departed| to.put_exit(0, exit, departed));
                got.extend(std::iter::from_fn(|| to.pop(at)));
                assert!(from.pop(before).is_none(), "all was taken before it left");
            }
            expected.extend(std::iter::from_fn(|| whole.pop(Time::MAX)));
            from.pop(at);
            from.take_ahead(Time::MAX, 0, Time::MAX, |exit, departed| to.put_exit(0, exit, departed));
            got.extend(std::iter::from_fn(|| to.pop(Time::MAX)));
            assert_eq!(got, expected);
            assert_eq!((from.held(), to.held(), got.len()), (0, 0, 500));
            assert_eq!(from.pipe(0).counters(), whole.pipe(0).counters());
        }
    }
}
