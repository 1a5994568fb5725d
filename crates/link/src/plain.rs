//! The pipe most links need: first come, first served, decided on arrival, one rate and one delay. Advanced
//! only when somebody looks. Whatever else a pipe may be asked for is in `rich.rs`.
//!
//! ```text
//!                 front of the ring                            back
//!                 │ delay line, by exit time     │ R queue         │
//!        pop ◀──  │ exit  exit  exit  exit       │ head  …  …      │  ◀── push
//!                                               ▲ on the wire until serialiser.end()
//! ```
//!
//! The queue serves in order of arrival and the delay line keeps that order, so both are one ring and a
//! packet leaving the queue only moves the boundary between them. `push`, `pop` and `change` first run the
//! serialiser forward to `now`, each step at its exact logical time; the result is that of a model with an
//! event per departure.

use crate::counters::{Counters, Tally};
use crate::impairment::{Loss, Reorder};
use crate::line::{Flight, Line};
use crate::packet::{DropReason, Exit, Fate, Held, Packet, Verdict};
use crate::qdisc::queue::Queue;
use crate::qdisc::{Admission, Backlog, Qdisc};
use crate::rich::Inheritance;
use crate::serialiser::Serialiser;
use crate::spec::{Change, PipeSpec};
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;

/// A pipe whose discipline decides at arrival and serves in that order. See [`Pipe`](crate::Pipe).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Plain<P> {
    // C's order of fields: what `pop` and `next_at` touch comes first.
    ring: VecDeque<Held<P>>,
    /// The packets at the back of the ring that are still queued; those before them are in the delay line.
    queued: Tally,
    line_bytes: u64,
    delay: Duration,
    serialiser: Serialiser,
    /// The exit of the newest packet in the delay line: no later one may be earlier.
    last_exit: Time,
    qdisc: Qdisc,
    counters: Box<Counters>,
    loss: Loss,
    rng: Rng,
}

impl<P> Plain<P> {
    /// An empty pipe. All its chance comes from `rng`: one draw per packet if there is loss, then one per
    /// packet whose fate the queue leaves to chance.
    pub(crate) fn new(spec: &PipeSpec, rng: Rng) -> Plain<P> {
        Plain {
            ring: VecDeque::new(),
            queued: Tally::default(),
            line_bytes: 0,
            serialiser: Serialiser::new(spec.rate, spec.overhead),
            delay: spec.delay,
            last_exit: Time::ZERO,
            loss: Loss::new(&spec.loss),
            qdisc: Qdisc::new(&spec.queue),
            rng,
            counters: Box::default(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) -> Verdict<P> {
        self.counters.pushed.add(packet.len);
        if self.loss.draw(&mut self.rng) {
            return self.refuse(DropReason::Loss, packet);
        }
        self.advance(now);
        let idle_since = (self.queued.packets == 0).then_some(self.serialiser.end());
        let backlog = Backlog { queued: self.queued, idle_since, rate: self.serialiser.rate() };
        let marked = match self.qdisc.admit(now, &packet, backlog, &mut self.rng) {
            Admission::Take => false,
            Admission::Mark => true,
            Admission::Drop(reason) => return self.refuse(reason, packet),
        };
        self.enqueue(now, packet, marked);
        Verdict::Queued
    }

    #[inline]
    pub(crate) fn pop(&mut self, now: Time) -> Option<Exit<P>> {
        self.advance(now);
        if self.in_line() == 0 || self.ring.front()?.time > now {
            return None;
        }
        let held = self.ring.pop_front()?;
        self.line_bytes -= u64::from(held.len);
        self.counters.delivered.add(held.len);
        let (at, marked) = (held.time, held.marked);
        Some(Exit { at, packet: held.into_packet(), fate: Fate::Delivered { marked } })
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        match self.ring.front() {
            None => None,
            Some(head) if self.in_line() > 0 => Some(head.time),
            Some(_) => Some(self.exit_of_head()),
        }
    }

    pub(crate) fn change(&mut self, now: Time, change: &Change) {
        self.advance(now);
        if let Some(rate) = change.rate {
            self.serialiser.set_rate(now, rate);
        }
        if let Some(overhead) = change.overhead {
            self.serialiser.set_overhead(overhead);
        }
        if let Some(delay) = change.delay {
            self.delay = delay;
        }
        if let Some(loss) = &change.loss {
            self.loss.change(loss);
        }
        if let Some(queue) = &change.queue {
            self.qdisc.change(queue);
        }
    }

    pub(crate) fn spec(&self) -> PipeSpec {
        PipeSpec {
            rate: self.serialiser.rate(),
            overhead: self.serialiser.overhead(),
            delay: self.delay,
            loss: self.loss.spec(),
            queue: self.qdisc.spec(),
            ..PipeSpec::default()
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn held(&self) -> Tally {
        Tally { packets: self.ring.len() as u64, bytes: self.queued.bytes + self.line_bytes }
    }

    pub(crate) fn queued(&self) -> Tally {
        self.queued
    }

    pub(crate) fn reads_headers(&self) -> bool {
        self.qdisc.reads_headers()
    }

    /// What a rich pipe goes on with from `now`.
    pub(crate) fn into_inheritance(mut self, now: Time) -> Inheritance<P> {
        self.advance(now);
        let (spec, held, in_line) = (self.spec(), self.held(), self.in_line());
        let mut line = Line::default();
        for packet in self.ring.drain(..in_line) {
            let exit = packet.time;
            let fate = Fate::Delivered { marked: packet.marked };
            line.push(Flight { departed: None, packet, fate }, exit, Reorder::Never);
        }
        let sending = self.ring.pop_front();
        let mut queue = Queue::arrival(self.qdisc);
        self.ring.into_iter().for_each(|packet| queue.adopt(packet));
        Inheritance {
            spec,
            loss: self.loss,
            queue,
            sending,
            serialiser: self.serialiser,
            line,
            last_exit: self.last_exit,
            held,
            counters: self.counters,
            rng: self.rng,
        }
    }

    /// Runs the serialiser forward: every packet whose transmission has ended by `now` goes into the delay
    /// line, and the next one onto the wire.
    fn advance(&mut self, now: Time) {
        while self.queued.packets > 0 && self.serialiser.end() <= now {
            let exit = self.exit_of_head();
            let head = self.in_line();
            let packet = &mut self.ring[head];
            packet.time = exit;
            self.queued.remove(packet.len);
            self.line_bytes += u64::from(packet.len);
            self.last_exit = exit;
            if let Some(next) = self.ring.get(head + 1) {
                self.serialiser.send(next.time, next.len);
            }
        }
    }

    /// How many are in the delay line; the next in the ring, if any, is on the wire.
    fn in_line(&self) -> usize {
        self.ring.len() - self.queued.packets as usize
    }

    /// When the packet on the wire will leave the pipe.
    fn exit_of_head(&self) -> Time {
        self.serialiser.end().saturating_add(self.delay).max(self.last_exit)
    }

    fn enqueue(&mut self, now: Time, packet: Packet<P>, marked: bool) {
        if marked {
            self.counters.marked += 1;
        }
        if self.queued.packets == 0 {
            self.serialiser.send(now, packet.len);
        }
        self.queued.add(packet.len);
        self.ring.push_back(Held::new(now, packet, marked));
    }

    fn refuse(&mut self, reason: DropReason, packet: Packet<P>) -> Verdict<P> {
        self.counters.drop_one(reason, packet.len);
        Verdict::Dropped(reason, packet.data)
    }
}
