//! The pipe that can be anything: every discipline, law and rate there is, one event per departure.
//!
//! ```text
//!  push ──▶ loss ──▶ queue ──▶ wire ──▶ slots ──▶ loss at the egress ──▶ delay line ──▶ pop
//!                      │                                      │                          ▲
//!                      └─ dropped once queued ────────────────┴──▶ leavers, in order ────┘
//! ```
//!
//! `advance` runs the events of the rate stage up to `now`, each at its exact time. It is slower
//! than `plain.rs` and gives the same answers where both can: the tests compare them.

use crate::counters::{Counters, Volume};
use crate::delay_line::{Flight, Line};
use crate::delays::Delays;
use crate::fast_pipe::Plain;
use crate::framing::Framing;
use crate::impairment::{Corruptor, Duplicator, Jitter, Loss, Reorder, Skipper};
use crate::opportunities::{Opportunities, Schedule};
use crate::packet::{Alteration, DropReason, Exit, Fate, Held, Packet, Verdict};
use crate::qdisc::Ecn;
use crate::qdisc::context::{Leaver, Queue, Served, Turn};
use crate::serialiser::Serialiser;
use crate::slots::{SlotSpec, Slots};
use crate::spec::{Change, LinkState, PipeSpec};
use fastpath_units::{Duration, Rate, Rng, Time};
use std::collections::VecDeque;

/// A pipe with anything beyond a plain one. See [`Pipe`](crate::Pipe).
#[derive(Debug)]
pub(crate) struct Rich<P> {
    state: LinkState,
    reads_headers: bool,
    loss: Loss,
    loss_ecn: Ecn,
    queue: Queue<P>,
    /// The packet being serialised.
    sending: Option<Held<P>>,
    /// When to ask the queue again, which would not serve yet.
    wake: Option<Time>,
    serialiser: Serialiser,
    /// In place of the serialiser's overhead.
    framing: Option<Framing>,
    /// In place of the serialiser's rate.
    schedule: Option<Schedule>,
    slots: Option<Box<Slots<P>>>,
    egress_loss: Loss,
    delay: Duration,
    jitter: Option<Jitter>,
    reorder: Option<Skipper>,
    duplicate: Duplicator,
    corrupt: Option<Corruptor>,
    line: Line<P>,
    /// Under jitter.
    delays: Option<Measured>,
    /// When the packet given out last had left the queue, all of it sent.
    departed: Option<Time>,
    /// When copies of the packet given out last leave, if that is later.
    copies_at: Option<Time>,
    /// Copies that have been put back to leave later.
    copies: Volume,
    /// The latest exit so far given to a packet whose delay is constant.
    last_exit: Time,
    /// What leaves the pipe at the instant it was decided, in order.
    leavers: VecDeque<Leaver<P>>,
    held: Volume,
    counters: Box<Counters>,
    rng: Rng,
}

/// The delays of packets that have left the queue since the law and the constant part of the delay
/// were set.
#[derive(Debug)]
struct Measured {
    since: Time,
    delays: Delays,
}

impl Measured {
    fn from(since: Time) -> Measured {
        Measured { since, delays: Delays::default() }
    }
}

/// What a plain pipe hands over when it becomes a rich one.
pub(crate) struct Inheritance<P> {
    pub(crate) spec: PipeSpec,
    pub(crate) loss: Loss,
    pub(crate) queue: Queue<P>,
    pub(crate) sending: Option<Held<P>>,
    pub(crate) serialiser: Serialiser,
    pub(crate) line: Line<P>,
    pub(crate) last_exit: Time,
    pub(crate) held: Volume,
    pub(crate) counters: Box<Counters>,
    pub(crate) rng: Rng,
}

impl<P> Rich<P> {
    /// True if `spec` asks for more than a plain pipe has.
    pub(crate) fn needed(spec: &PipeSpec) -> bool {
        let PipeSpec { rate: _, overhead: _, delay: _, loss, .. } = spec;
        let PipeSpec { queue, egress_loss, jitter, reorder, duplicate, corrupt, opportunities, .. } = spec;
        let PipeSpec { framing, slots, loss_ecn, state, paused, .. } = spec;
        *paused
            || !Plain::can_queue(queue)
            || loss.is_planned()
            || !egress_loss.is_never()
            || jitter.is_some()
            || reorder.is_some()
            || !duplicate.is_never()
            || corrupt.is_some()
            || opportunities.is_some()
            || framing.is_some()
            || slots.is_some()
            || *loss_ecn != Ecn::Off
            || *state != LinkState::Up
    }

    /// An empty pipe.
    pub(crate) fn new(spec: &PipeSpec, rng: Rng) -> Rich<P> {
        Rich::from(Inheritance {
            spec: spec.clone(),
            loss: Loss::new(&spec.loss),
            queue: Queue::new(&spec.queue),
            sending: None,
            serialiser: Serialiser::of(spec),
            line: Line::default(),
            last_exit: Time::ZERO,
            held: Volume::default(),
            counters: Box::default(),
            rng,
        })
    }

    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) -> Verdict<P> {
        self.counters.pushed.add(packet.len);
        self.advance(now);
        let len = packet.len;
        let mut packet = Held::new(now, packet, false);
        if self.state == LinkState::Down {
            return self.refuse(DropReason::Down, packet);
        }
        if self.loss.draw_at(now, &packet, &mut self.rng) {
            if self.loss_ecn == Ecn::Off || !packet.is_ect() {
                return self.refuse(DropReason::Loss, packet);
            }
            packet.mark();
            self.counters.marked += 1;
        }
        let (queue, mut turn) = self.turn(now);
        if let Err((reason, packet)) = queue.enqueue(packet, &mut turn) {
            return self.refuse(reason, packet);
        }
        self.held.add(len);
        match &mut self.schedule {
            // What was not used while nothing waited is lost.
            Some(schedule) if self.sending.is_none() => schedule.skip_past(now),
            None if self.sending.is_none() => self.serve(now),
            _ => {}
        }
        Verdict::Queued
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<Exit<P>> {
        self.advance(now);
        let leaver = self.leavers.front().map(|leaver| leaver.at);
        let flight = self.line.next_at();
        let first = leaver.into_iter().chain(flight).min().filter(|at| *at <= now)?;
        let (at, departed, packet, fate, is_copy) = if leaver == Some(first) {
            let Leaver { at, packet, fate } = self.leavers.pop_front()?;
            // What is lost here was lost at the egress.
            let sent = !matches!(fate, Fate::Dropped(reason) if reason != DropReason::Loss);
            (at, sent.then_some(at), packet, fate, false)
        } else {
            let (at, Flight { departed, packet, fate, is_copy }) = self.line.pop()?;
            if let (Some(departed), Some(Measured { since, delays })) = (departed, &mut self.delays)
                && departed >= *since
                && !matches!(fate, Fate::Dropped(_))
            {
                delays.add(at.since(departed));
            }
            (at, departed, packet, fate, is_copy)
        };
        (self.departed, self.copies_at) = (departed, None);
        if is_copy {
            self.copies.remove(packet.len);
            return Some(Exit { at, packet: packet.into_packet(), fate });
        }
        self.held.remove(packet.len);
        match fate {
            Fate::Delivered { .. } => self.counters.delivered.add(packet.len),
            Fate::Altered(alteration) => {
                self.counters.delivered.add(packet.len);
                self.counters.corrupted += u64::from(alteration.corruption.is_some());
                self.counters.duplicated += u64::from(alteration.copies);
                let later = self.duplicate.later().filter(|_| alteration.copies > 0);
                self.copies_at = later.map(|later| at.saturating_add(later));
            }
            Fate::Dropped(reason) => self.counters.drop_one(reason, packet.len),
        }
        Some(Exit { at, packet: packet.into_packet(), fate })
    }

    /// When to look again: the next exit, or the next event of the rate stage if that comes first.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let leaver = self.leavers.front().map(|leaver| leaver.at);
        [leaver, self.line.next_at(), self.next_event()].into_iter().flatten().min()
    }

    pub(crate) fn change(&mut self, now: Time, change: &Change) {
        self.advance(now);
        if let Some(rate) = change.rate {
            self.serialiser.set_rate(now, rate);
        }
        if let Some(paused) = change.paused {
            self.serialiser.set_paused(now, paused);
        }
        if let Some(overhead) = change.overhead {
            self.serialiser.set_overhead(overhead);
        }
        if let Some(framing) = change.framing {
            self.framing = framing;
        }
        if let Some(opportunities) = &change.opportunities {
            self.change_opportunities(now, opportunities);
        }
        if let Some(slots) = &change.slots {
            self.change_slots(now, slots.as_deref());
        }
        if let Some(delay) = change.delay
            && delay != self.delay
        {
            self.delay = delay;
            self.delays = self.jitter.as_ref().map(|_| Measured::from(now));
        }
        if let Some(loss) = &change.loss {
            self.loss.change(loss);
        }
        self.loss_ecn = change.loss_ecn.unwrap_or(self.loss_ecn);
        if let Some(loss) = &change.egress_loss {
            self.egress_loss.change(loss);
        }
        if let Some(queue) = &change.queue {
            self.queue.change(now, queue);
        }
        self.change_effects(now, change);
        self.reads_headers = self.needs_headers();
        if let Some(state) = change.state {
            self.state = state;
        }
        if self.state == LinkState::Down {
            self.flush(now);
        }
        // A change may have made way for what waits.
        if self.sending.is_none() && self.schedule.is_none() && self.queue.waiting().packets > 0 {
            self.serve(now);
        }
    }

    /// The link goes down: what has not been sent whole is lost.
    fn flush(&mut self, now: Time) {
        self.serialiser.cut(now);
        self.wake = None;
        let gathered = std::iter::from_fn(|| self.slots.as_mut()?.take()).chain(self.sending.take());
        let all = gathered.chain(std::iter::from_fn(|| self.queue.take()));
        let lost = all.map(|packet| Leaver { at: now, packet, fate: Fate::Dropped(DropReason::Down) });
        self.leavers.extend(lost);
    }

    /// What was gathered for slots that are no more leaves at once.
    fn change_slots(&mut self, now: Time, spec: Option<&SlotSpec>) {
        match (&mut self.slots, spec) {
            (Some(slots), Some(spec)) => slots.set(spec.clone()),
            (None, Some(spec)) => self.slots = Some(Box::new(Slots::new(spec.clone()))),
            (_, None) => {
                let mut slots = self.slots.take();
                while let Some(packet) = slots.as_mut().and_then(|slots| slots.take()) {
                    self.depart(now, packet);
                }
            }
        }
    }

    /// The packet in transit starts over where rate and opportunities take turns.
    fn change_opportunities(&mut self, now: Time, opportunities: &Option<Opportunities>) {
        if self.schedule.as_ref().map(|schedule| &schedule.spec) == opportunities.as_ref() {
            return;
        }
        self.schedule = opportunities.clone().map(|spec| Schedule::after(spec, now));
        match (&mut self.schedule, &self.sending) {
            (Some(schedule), Some(packet)) => schedule.left = schedule.counted(packet.len),
            (None, Some(packet)) => transmit(&mut self.serialiser, self.framing, now, packet.len),
            (None, None) => self.serve(now),
            (Some(_), None) => {}
        }
    }

    /// Laws that stay the same go on; others start afresh.
    fn change_effects(&mut self, now: Time, change: &Change) {
        if let Some(jitter) = &change.jitter
            && self.jitter.as_ref().map(Jitter::spec) != jitter.as_deref()
        {
            self.jitter = jitter.as_deref().cloned().map(Jitter::new);
            self.delays = self.jitter.as_ref().map(|_| Measured::from(now));
        }
        if let Some(reorder) = change.reorder
            && self.reorder.as_ref().map(Skipper::spec) != reorder
        {
            self.reorder = reorder.map(Skipper::new);
        }
        if let Some(duplicate) = change.duplicate
            && self.duplicate.spec() != duplicate
        {
            self.duplicate = Duplicator::new(duplicate);
        }
        if let Some(corrupt) = change.corrupt
            && self.corrupt.as_ref().map(Corruptor::spec) != corrupt
        {
            self.corrupt = corrupt.map(Corruptor::new);
        }
    }

    pub(crate) fn reads_headers(&self) -> bool {
        self.reads_headers
    }

    /// What becomes of a packet depends on its headers.
    fn needs_headers(&self) -> bool {
        let losses = [&self.loss, &self.egress_loss];
        self.queue.spec().reads_headers()
            || self.loss_ecn != Ecn::Off
            || losses.iter().any(|loss| loss.spec().reads_headers())
    }

    pub(crate) fn spec(&self) -> PipeSpec {
        PipeSpec {
            rate: self.serialiser.rate(),
            paused: self.serialiser.is_paused(),
            overhead: self.serialiser.overhead(),
            delay: self.delay,
            loss: self.loss.spec(),
            queue: self.queue.spec(),
            egress_loss: self.egress_loss.spec(),
            jitter: self.jitter.as_ref().map(|jitter| Box::new(jitter.spec().clone())),
            reorder: self.reorder.as_ref().map(Skipper::spec),
            duplicate: self.duplicate.spec(),
            corrupt: self.corrupt.as_ref().map(Corruptor::spec),
            opportunities: self.schedule.as_ref().map(|schedule| schedule.spec.clone()),
            framing: self.framing,
            slots: self.slots.as_ref().map(|slots| Box::new(slots.spec().clone())),
            loss_ecn: self.loss_ecn,
            state: self.state,
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn delays(&self) -> Option<&Delays> {
        self.delays.as_ref().map(|measured| &measured.delays)
    }

    pub(crate) fn departed(&self) -> Option<Time> {
        self.departed
    }

    pub(crate) fn copies_at(&self) -> Option<Time> {
        self.copies_at
    }

    /// A copy of a packet that has left leaves at `at`.
    pub(crate) fn put_copy(&mut self, at: Time, packet: Packet<P>) {
        self.copies.add(packet.len);
        self.line.push_copy(Held::new(at, packet, false), at);
    }

    /// What was pushed and has not left.
    pub(crate) fn held(&self) -> Volume {
        self.held
    }

    /// What was put back as copies and has not left.
    pub(crate) fn copies(&self) -> Volume {
        self.copies
    }

    pub(crate) fn queued(&self) -> Volume {
        let mut queued = self.queue.waiting();
        queued += self.on_wire();
        queued
    }

    /// Runs the rate stage forward to `now`.
    fn advance(&mut self, now: Time) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            if self.schedule.is_some() {
                self.seize(at);
                continue;
            }
            // What has just been sent still catches a slot that opens now.
            match self.sending.take_if(|_| self.serialiser.end() <= at) {
                Some(packet) => {
                    match &mut self.slots {
                        Some(slots) => slots.gather(at, packet, &mut self.rng),
                        None => self.depart(at, packet),
                    }
                    self.serve(at);
                }
                None if self.wake == Some(at) => self.serve(at),
                None => self.open_slot(at),
            }
        }
    }

    /// A slot opens at `at`.
    fn open_slot(&mut self, at: Time) {
        let Some(mut passed) = self.slots.as_mut().map(|slots| slots.open()) else { return };
        loop {
            let ready = self.ready(at);
            let Some(slots) = &mut self.slots else { return };
            match ready {
                Served::Later(later) if later > at => return slots.call(later, &mut self.rng),
                Served::Nothing | Served::Later(_) => return,
                Served::Packet(packet) => {
                    let used_up = slots.is_used_up(&mut passed, packet.len);
                    if used_up {
                        slots.call(at, &mut self.rng);
                    }
                    self.depart(at, packet);
                    if used_up {
                        return;
                    }
                }
            }
        }
    }

    /// The next packet that an open slot passes. Without a rate nothing is sent before.
    fn ready(&mut self, at: Time) -> Served<P> {
        if let Some(packet) = self.slots.as_mut().and_then(|slots| slots.take()) {
            return Served::Packet(packet);
        }
        if self.serialiser.rate().is_some() {
            return Served::Nothing;
        }
        let (queue, mut turn) = self.turn(at);
        queue.dequeue(&mut turn)
    }

    /// When the rate stage acts next.
    fn next_event(&self) -> Option<Time> {
        match &self.schedule {
            None => {
                let running = !self.serialiser.is_paused();
                let sent = self.sending.as_ref().filter(|_| running).map(|_| self.serialiser.end());
                let slot = self.slots.as_ref().and_then(|slots| slots.opens());
                [sent.or(self.wake), slot].into_iter().flatten().min()
            }
            Some(_) if self.sending.is_none() && self.queue.waiting().packets == 0 => None,
            Some(schedule) => schedule.next_at(),
        }
    }

    /// Uses the opportunity at `at`: goes on with the packet in transit, then with those that wait.
    fn seize(&mut self, at: Time) {
        let Some(mut bytes) = self.schedule.as_mut().map(Schedule::take) else { return };
        loop {
            if self.sending.is_none() {
                self.serve(at);
            }
            let (Some(packet), Some(schedule)) = (self.sending.take(), &mut self.schedule) else { return };
            let sent = bytes.min(schedule.left);
            schedule.left -= sent;
            bytes -= sent;
            if schedule.left > 0 {
                self.sending = Some(packet);
                return;
            }
            self.depart(at, packet);
            if bytes == 0 {
                return;
            }
        }
    }

    /// The wire is free at `at`: takes the next packet.
    fn serve(&mut self, at: Time) {
        self.wake = None;
        if let (Some(slots), None, None) = (&mut self.slots, &self.schedule, self.serialiser.rate()) {
            // Without a rate packets wait in the queue for their slot.
            if self.queue.waiting().packets > 0 {
                slots.call(at, &mut self.rng);
            }
            return;
        }
        let (queue, mut turn) = self.turn(at);
        match queue.dequeue(&mut turn) {
            Served::Nothing => {}
            // At the end of time nothing is later.
            Served::Later(later) => self.wake = (later > at).then_some(later),
            Served::Packet(packet) => {
                match &mut self.schedule {
                    None => transmit(&mut self.serialiser, self.framing, at, packet.len),
                    Some(schedule) => schedule.left = schedule.counted(packet.len),
                }
                self.sending = Some(packet);
            }
        }
    }

    /// A packet's transmission ends at `at`.
    fn depart(&mut self, at: Time, packet: Held<P>) {
        if self.egress_loss.draw_at(at, &packet, &mut self.rng) {
            self.leavers.push_back(Leaver { at, packet, fate: Fate::Dropped(DropReason::Loss) });
            return;
        }
        let (exit, order) = match &mut self.jitter {
            Some(jitter) => {
                let delay = jitter.draw(at, self.delay, &mut self.rng);
                (at.saturating_add(delay), jitter.spec().order)
            }
            // A later packet does not overtake where the delay is constant but has been cut.
            None => (at.saturating_add(self.delay).max(self.last_exit), Reorder::Never),
        };
        let fate = self.alter(&packet);
        if self.reorder.as_mut().is_some_and(|reorder| reorder.draw(&mut self.rng)) {
            self.leavers.push_back(Leaver { at, packet, fate });
            return;
        }
        self.last_exit = self.last_exit.max(exit);
        self.line.push(Flight { departed: Some(at), packet, fate, is_copy: false }, exit, order);
    }

    /// Duplication and corruption of a packet that will be delivered.
    fn alter(&mut self, packet: &Held<P>) -> Fate {
        let marked = packet.marked;
        let copies = self.duplicate.draw(&mut self.rng);
        let corruption = self.corrupt.as_mut().and_then(|law| law.draw(packet.len, &mut self.rng));
        match (copies, corruption) {
            (0, None) => Fate::Delivered { marked },
            _ => Fate::Altered(Alteration { marked, corruption, copies }),
        }
    }

    /// Taken from the queue and not sent whole, or gathered for a slot.
    fn on_wire(&self) -> Volume {
        let mut volume = self.slots.as_ref().map_or(Volume::default(), |slots| slots.waiting());
        if let Some(packet) = &self.sending {
            volume.add(packet.len);
        }
        volume
    }

    fn turn(&mut self, now: Time) -> (&mut Queue<P>, Turn<'_, P>) {
        let turn = Turn {
            now,
            on_wire: self.on_wire(),
            rate: self.mean_rate(),
            idle_since: self.serialiser.end(),
            rng: &mut self.rng,
            counters: &mut self.counters,
            leavers: &mut self.leavers,
        };
        (&mut self.queue, turn)
    }

    /// The rate, or what opportunities make of it.
    fn mean_rate(&self) -> Option<Rate> {
        self.schedule.as_ref().map_or_else(|| self.serialiser.rate(), |schedule| schedule.mean_rate)
    }

    fn refuse(&mut self, reason: DropReason, packet: Held<P>) -> Verdict<P> {
        self.counters.drop_one(reason, packet.len);
        Verdict::Dropped(reason, packet.data)
    }
}

impl<P> From<Inheritance<P>> for Rich<P> {
    fn from(old: Inheritance<P>) -> Rich<P> {
        let mut rich = Rich {
            state: old.spec.state,
            reads_headers: false,
            loss: old.loss,
            loss_ecn: old.spec.loss_ecn,
            queue: old.queue,
            sending: old.sending,
            wake: None,
            serialiser: old.serialiser,
            framing: old.spec.framing,
            schedule: old.spec.opportunities.map(|spec| Schedule::after(spec, Time::ZERO)),
            slots: old.spec.slots.map(|spec| Box::new(Slots::new(*spec))),
            egress_loss: Loss::new(&old.spec.egress_loss),
            delay: old.spec.delay,
            jitter: old.spec.jitter.as_deref().cloned().map(Jitter::new),
            reorder: old.spec.reorder.map(Skipper::new),
            duplicate: Duplicator::new(old.spec.duplicate),
            corrupt: old.spec.corrupt.map(Corruptor::new),
            delays: old.spec.jitter.map(|_| Measured::from(Time::ZERO)),
            departed: None,
            copies_at: None,
            copies: Volume::default(),
            line: old.line,
            last_exit: old.last_exit,
            leavers: VecDeque::new(),
            held: old.held,
            counters: old.counters,
            rng: old.rng,
        };
        rich.reads_headers = rich.needs_headers();
        rich
    }
}

/// Puts a frame of `len` bytes on the wire.
fn transmit(serialiser: &mut Serialiser, framing: Option<Framing>, at: Time, len: u32) {
    match framing {
        None => serialiser.send(at, len),
        Some(framing) => serialiser.send_bytes(at, framing.on_wire(len)),
    }
}
