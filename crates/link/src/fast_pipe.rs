//! The pipe most links need: first come, first served, decided on arrival, one rate and one delay.
//! Advanced only when somebody looks. Whatever else a pipe may be asked for is in `rich.rs`.
//!
//! ```text
//!              first                     on_wire              last
//!                │ delay line, by exit time │ R queue           │
//!        pop ◀── │ exit  exit  exit  exit   │ head  …  …  …     │ ◀── push
//!                                           ▲ until wire.end()
//! ```
//!
//! The queue serves in order of arrival and the delay line keeps that order, so both are one list
//! and a packet leaving the queue only moves the boundary between them. `push`, `pop` and `change`
//! first run the serialiser forward to `now`, each step at its exact logical time; the result is
//! that of a model with an event per departure.
//!
//! What belongs to one pipe is small: a cache line that both ends touch ([`Plain`]) and what only
//! `push` needs ([`Intake`]). Packets are in the [`Store`] and parameters in the [`Terms`] of the
//! whole set.

use crate::counters::{Counters, Volume};
use crate::delay_line::{Flight, Line};
use crate::fast_serialiser::{Times, Wire};
use crate::general_pipe::Inheritance;
use crate::impairment::Reorder;
use crate::packet::{DropReason, Exit, Fate, Held, Packet, Verdict};
use crate::pipe_params::{AllTerms, Terms};
use crate::qdisc::context::Queue;
use crate::qdisc::{Admission, Backlog, Limit, QueueSpec, RedSpec};
use crate::spec::Change;
use crate::store::{Due, Place, PopLimit, Store, Waiting};
use fastpath_units::{Rng, Time};

/// A plain pipe: one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Plain {
    /// The packets held, the oldest first, as a list in the store.
    first: Option<Place>,
    last: Option<Place>,
    /// The packet on the wire: the first that is still queued.
    on_wire: Option<Place>,
    queued: u32,
    /// Modulo 2³²: exact wherever it counts, since a byte limit beyond makes a pipe rich.
    queued_bytes: u32,
    wire: Wire,
    delivered: Volume,
    /// Where the terms are; for whoever keeps the pipe.
    pub(crate) terms: u32,
    /// The caller's own.
    pub(crate) label: u32,
}

/// What only `push` needs.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) rng: Rng,
    pushed: Volume,
}

/// What a plain pipe has dropped and marked: all zero for a pipe that never did.
pub(crate) type Losses = [u64; 5];

const BYTES: usize = 3;
const MARKED: usize = 4;

impl Intake {
    /// All the pipe's chance comes from `rng`: one draw per packet if there is loss, then one per
    /// packet whose fate the queue leaves to chance.
    pub(crate) fn new(rng: Rng) -> Intake {
        Intake { rng, pushed: Volume::default() }
    }
}

impl Plain {
    /// An empty pipe.
    pub(crate) fn new(terms: u32, label: u32) -> Plain {
        Plain {
            first: None,
            last: None,
            on_wire: None,
            queued: 0,
            queued_bytes: 0,
            wire: Wire::default(),
            delivered: Volume::default(),
            terms,
            label,
        }
    }

    /// True if a plain pipe can have this queue.
    pub(crate) fn can_queue(queue: &QueueSpec) -> bool {
        match queue {
            QueueSpec::DropTail(limit) | QueueSpec::Red(RedSpec { limit, .. }) => match limit {
                Limit::Packets(_) => true,
                Limit::Bytes(bytes) => bytes.0 <= u64::from(u32::MAX),
            },
            _ => false,
        }
    }

    // In a loop over a run its parameters stay in registers.
    #[inline(always)]
    pub(crate) fn push<P>(
        &mut self,
        Intake { rng, pushed }: &mut Intake,
        terms: &mut Terms,
        (losses, index): (&mut Vec<Losses>, usize),
        store: &mut Store<P>,
        now: Time,
        mut packet: Packet<P>,
    ) -> Verdict<P> {
        pushed.add(packet.len);
        if terms.loss.draw(rng) {
            return refuse(&mut losses[index], DropReason::Loss, packet);
        }
        self.advance(terms, store, now);
        let mut marked = false;
        if !terms.qdisc.takes(packet.len, self.queued()) {
            match self.admit(terms, now, packet.header(), rng) {
                Admission::Take => {}
                Admission::Mark => {
                    losses[index][MARKED] += 1;
                    packet.traffic_class |= Packet::<P>::CE;
                    marked = true;
                }
                Admission::Drop(reason) => return refuse(&mut losses[index], reason, packet),
            }
        }
        let len = packet.len;
        if self.queued == 0 {
            self.wire.send(terms.pace, &mut terms.times, now, len);
            if self.wire.end() <= now {
                // It takes no time to send: it is in the delay line before anybody looks.
                self.append(store, Waiting::new(self.exit_of_head(terms), packet, marked));
                return Verdict::Queued;
            }
            self.on_wire = Some(self.append(store, Waiting::new(now, packet, marked)));
        } else {
            self.append(store, Waiting::new(now, packet, marked));
        }
        self.queued += 1;
        self.queued_bytes = self.queued_bytes.wrapping_add(len);
        Verdict::Queued
    }

    /// What the discipline decides of a packet that it does not simply take.
    #[inline(always)]
    fn admit(&self, terms: &mut Terms, now: Time, packet: Packet<()>, rng: &mut Rng) -> Admission {
        let backlog = Backlog {
            queued: self.queued(),
            idle_since: (self.queued == 0).then_some(self.wire.end()),
            rate: terms.pace.rate,
        };
        terms.qdisc.admit(now, &packet, backlog, rng)
    }

    /// Puts a packet at the end of the list.
    #[inline(always)]
    fn append<P>(&mut self, store: &mut Store<P>, packet: Waiting<P>) -> Place {
        let place = store.insert(packet);
        match self.last.replace(place) {
            Some(last) => store.get_mut(last).next = Some(place),
            None => self.first = Some(place),
        }
        place
    }

    #[inline]
    pub(crate) fn pop<P>(&mut self, all: &mut AllTerms, store: &mut Store<P>, now: Time) -> Option<Exit<P>> {
        let first = self.first?;
        if self.first == self.on_wire {
            let terms = all.get_mut(self.terms);
            let exit = self.exit_of_head(terms);
            if exit > now {
                return None;
            }
            // No further than this exit: what it leads to may come back here before the next.
            self.advance(terms, store, exit);
        }
        let Due { time: at, marked, next, packet } = store.remove_due(first, now)?;
        self.first = next;
        if next.is_none() {
            self.last = None;
        }
        self.delivered.add(packet.len);
        Some(Exit { at, packet, fate: Fate::Delivered { marked } })
    }

    /// Takes out packets that leave by `now` and are not marked, `most` at most; answers how many.
    /// As so many calls of `pop`.
    #[inline]
    pub(crate) fn pop_run<P>(
        &mut self,
        terms: &mut Terms,
        store: &mut Store<P>,
        PopLimit { until, packets_max }: PopLimit,
        mut take: impl FnMut(Time, P),
    ) -> usize {
        // Most often in a network of many links: one packet, on the wire.
        if let Some(first) = self.first
            && self.last == self.first
            && self.on_wire == self.first
            && packets_max > 0
        {
            let exit = self.exit_of_head(terms);
            if exit > until || store.get(first).marked {
                return 0;
            }
            (self.first, self.last, self.on_wire) = (None, None, None);
            (self.queued, self.queued_bytes) = (0, 0);
            let packet = store.remove(first);
            self.delivered.add(packet.len);
            take(exit, packet.data);
            return 1;
        }
        let mut taken = 0;
        while self.first.is_some() {
            if self.first == self.on_wire {
                let exit = self.exit_of_head(terms);
                if exit > until {
                    break;
                }
                self.advance(terms, store, exit);
            }
            let run = store.remove_run(
                self.first,
                self.on_wire,
                PopLimit { until, packets_max: packets_max - taken },
                &mut take,
            );
            if run.packets == 0 {
                break;
            }
            self.first = run.next;
            self.delivered.add_all(run.packets as u64, run.bytes);
            taken += run.packets;
        }
        if self.first.is_none() {
            self.last = None;
        }
        taken
    }

    #[inline]
    pub(crate) fn next_at<P>(&self, terms: &Terms, store: &Store<P>) -> Option<Time> {
        let first = self.first?;
        Some(if self.first == self.on_wire { self.exit_of_head(terms) } else { store.get(first).time })
    }

    /// True if nothing is in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Changes the terms, which are the pipe's own.
    pub(crate) fn change<P>(&mut self, terms: &mut Terms, store: &mut Store<P>, now: Time, change: &Change) {
        self.advance(terms, store, now);
        if let Some(rate) = change.rate {
            self.wire.change_rate(now, terms.pace.rate, rate);
            terms.pace.rate = rate;
        }
        if let Some(overhead) = change.overhead {
            terms.pace.overhead = overhead;
        }
        terms.times = Times::new(terms.pace);
        if let Some(delay) = change.delay {
            if delay < terms.delay {
                terms.floor = self.latest_exit(store).unwrap_or(terms.floor).max(terms.floor);
            }
            terms.delay = delay;
        }
        if let Some(loss) = &change.loss {
            terms.loss.change(loss);
        }
        if let Some(queue) = &change.queue {
            terms.qdisc.change(queue);
        }
    }

    pub(crate) fn counters(&self, intake: &Intake, losses: &Losses) -> Counters {
        let mut counters = Counters {
            pushed: intake.pushed,
            delivered: self.delivered,
            marked: losses[MARKED],
            dropped_bytes: losses[BYTES],
            ..Counters::default()
        };
        counters.dropped[..BYTES].copy_from_slice(&losses[..BYTES]);
        counters
    }

    /// What is in the pipe: what came and has not left.
    pub(crate) fn held(&self, intake: &Intake, losses: &Losses) -> Volume {
        let Volume { packets, bytes } = intake.pushed;
        let dropped: u64 = losses[..BYTES].iter().sum();
        Volume {
            packets: packets - dropped - self.delivered.packets,
            bytes: bytes - losses[BYTES] - self.delivered.bytes,
        }
    }

    /// The same, packet by packet: what the counters are checked against.
    pub(crate) fn counted<P>(&self, store: &Store<P>) -> Volume {
        let mut held = Volume::default();
        let mut next = self.first;
        while let Some(place) = next {
            let waiting = store.get(place);
            held.add(waiting.len);
            next = waiting.next;
        }
        held
    }

    #[inline]
    pub(crate) fn queued(&self) -> Volume {
        Volume { packets: u64::from(self.queued), bytes: u64::from(self.queued_bytes) }
    }

    /// What a rich pipe goes on with from `now`. The pipe is empty after.
    pub(crate) fn into_inheritance<P>(
        mut self,
        intake: Intake,
        mut terms: Terms,
        losses: &Losses,
        store: &mut Store<P>,
        now: Time,
    ) -> Inheritance<P> {
        self.advance(&mut terms, store, now);
        let (spec, held) = (terms.spec(), self.held(&intake, losses));
        let counters = Box::new(self.counters(&intake, losses));
        let last_exit = self.latest_exit(store).unwrap_or(terms.floor).max(terms.floor);
        let mut line = Line::default();
        while self.first != self.on_wire {
            let (exit, packet) = self.take(store).expect("the packet on the wire is in the list");
            let fate = Fate::Delivered { marked: packet.marked };
            line.push(
                Flight { departed: None, packet: Held { time: exit, ..packet }, fate, is_copy: false },
                exit,
                Reorder::Never,
            );
        }
        let sending = self.take(store).map(|(_, packet)| packet);
        let mut queue = Queue::arrival(terms.qdisc);
        while let Some((_, packet)) = self.take(store) {
            queue.adopt(packet);
        }
        Inheritance {
            spec,
            loss: terms.loss,
            queue,
            sending,
            serialiser: self.wire.into_serialiser(terms.pace),
            line,
            last_exit,
            held,
            counters,
            rng: intake.rng,
        }
    }

    /// The first packet of the list, whether it is due or not, and its time.
    fn take<P>(&mut self, store: &mut Store<P>) -> Option<(Time, Held<P>)> {
        let first = self.first?;
        let (time, next, marked) = {
            let waiting = store.get(first);
            (waiting.time, waiting.next, waiting.marked)
        };
        self.first = next;
        Some((time, Held::new(time, store.remove(first), marked)))
    }

    /// Runs the serialiser forward: every packet whose transmission has ended by `now` goes into
    /// the delay line, and the next one onto the wire.
    #[inline]
    fn advance<P>(&mut self, terms: &mut Terms, store: &mut Store<P>, now: Time) {
        if self.on_wire.is_some() && self.wire.end() <= now {
            self.end_transmissions(terms, store, now);
        }
    }

    #[inline(never)]
    fn end_transmissions<P>(&mut self, terms: &mut Terms, store: &mut Store<P>, now: Time) {
        // In registers until the end: each packet would wait for what the one before it has
        // written.
        let (mut on_wire, mut wire) = (self.on_wire, self.wire);
        let (mut ended, mut bytes) = (0, 0u32);
        while let Some(head) = on_wire
            && wire.end() <= now
        {
            let packet = store.get_mut(head);
            packet.time = exit_after(wire, terms);
            ended += 1;
            bytes = bytes.wrapping_add(packet.len);
            on_wire = packet.next;
            if let Some(next) = packet.next {
                let next = store.get(next);
                wire.send(terms.pace, &mut terms.times, next.time, next.len);
            }
        }
        (self.on_wire, self.wire) = (on_wire, wire);
        self.queued -= ended;
        self.queued_bytes = self.queued_bytes.wrapping_sub(bytes);
    }

    /// When the packet on the wire will leave the pipe.
    #[inline]
    fn exit_of_head(&self, terms: &Terms) -> Time {
        exit_after(self.wire, terms)
    }

    /// The exit of the newest packet in the delay line, if there is one.
    fn latest_exit<P>(&self, store: &Store<P>) -> Option<Time> {
        let mut latest = self.first.filter(|_| self.first != self.on_wire)?;
        if self.on_wire.is_none() {
            return self.last.map(|last| store.get(last).time);
        }
        while store.get(latest).next != self.on_wire {
            latest = store.get(latest).next?;
        }
        Some(store.get(latest).time)
    }
}

/// When the packet whose transmission ends last leaves. Ends of transmission only grow, so that
/// only after a cut of the delay somebody could overtake.
#[inline]
fn exit_after(wire: Wire, terms: &Terms) -> Time {
    wire.end().saturating_add(terms.delay).max(terms.floor)
}

fn refuse<P>(losses: &mut Losses, reason: DropReason, packet: Packet<P>) -> Verdict<P> {
    losses[reason as usize] += 1;
    losses[BYTES] += u64::from(packet.len);
    Verdict::Dropped(reason, packet.data)
}
