//! The general pipe: every discipline, impairment and kind of rate, with one event per departure.
//!
//! ```text
//!  push ──▶ loss ──▶ queue ──▶ wire ──▶ slots ──▶ loss at the egress ──▶ delay line ──▶ pop
//!                      │                                  │                              ▲
//!                      └─ dropped after it was queued ────┴──▶ early exits, in order ────┘
//! ```
//!
//! `advance` runs the events of the rate stage up to `now`, each at its exact time. The general
//! pipe is slower than the fast pipe (`fast_pipe.rs`) and gives the same results where both apply:
//! tests compare the two.

use crate::counters::{Counters, QueueState, Volume};
use crate::cross::{CrossArrivals, CrossSpec};
use crate::delay_line::{DelayLine, Flight};
use crate::delays::{Delays, MeasuredDelays};
use crate::fast_queue::FastQueue;
use crate::framing::Framing;
use crate::impairment::{Corruptor, Duplicator, Jitter, Loss, Reorder, Reorderer};
use crate::opportunities::{Opportunities, Schedule};
use crate::packet::{Alteration, DropReason, Exit, Fate, Held, Packet, Verdict};
use crate::pipe_state::PipeState;
use crate::qdisc::{EarlyExit, Ecn, Queue, QueueContext, Served};
use crate::serialiser::Serialiser;
use crate::slots::{SlotSpec, Slots};
use crate::spec::{Change, LinkState, PipeSpec};
use fastpath_units::{Duration, Rate, Rng, Time};
use std::collections::VecDeque;

/// A pipe with parameters that a fast pipe does not support. See [`Pipe`](crate::Pipe).
#[derive(Debug)]
pub(crate) struct GeneralPipe<P> {
    state: LinkState,
    reads_headers: bool,
    loss: Loss,
    loss_ecn: Ecn,
    cross: Option<Box<CrossArrivals>>,
    /// The most packets of cross traffic with which an idle pipe catches up.
    pub(crate) cross_max: u64,
    queue: Queue<P>,
    /// The packet on the wire.
    sending: Option<Held<P>>,
    /// When to ask the queue again, if packets wait that may not be sent yet.
    retry_at: Option<Time>,
    serialiser: Serialiser,
    /// Replaces the overhead of the serialiser.
    framing: Option<Framing>,
    /// Replaces the rate of the serialiser.
    schedule: Option<Schedule>,
    slots: Option<Box<Slots<P>>>,
    egress_loss: Loss,
    delay: Duration,
    jitter: Option<Jitter>,
    reorder: Option<Reorderer>,
    duplicate: Duplicator,
    corrupt: Option<Corruptor>,
    line: DelayLine<P>,
    /// Measured delays, recorded under jitter.
    delays: Option<MeasuredDelays>,
    /// When the transmission of the packet popped last ended.
    departed: Option<Time>,
    /// How long the packet that departed last was in the queue.
    last_wait: Duration,
    /// When copies of the packet popped last leave, if that is later than the packet.
    copies_at: Option<Time>,
    /// Copies put back by the caller that have not left.
    copies: Volume,
    /// The latest exit time given to a packet with a constant delay.
    last_exit: Time,
    /// Packets that leave without passing the delay line, in order of time.
    early_exits: VecDeque<EarlyExit<P>>,
    held: Volume,
    counters: Box<Counters>,
    rng: Rng,
}

impl<P> GeneralPipe<P> {
    /// Returns true if a fast pipe does not support `spec`.
    pub(crate) fn needed_for(spec: &PipeSpec) -> bool {
        let PipeSpec { rate: _, overhead: _, delay: _, loss, .. } = spec;
        let PipeSpec { queue, egress_loss, jitter, reorder, duplicate, corrupt, opportunities, .. } = spec;
        let PipeSpec { framing, slots, loss_ecn, cross, state, paused, .. } = spec;
        *paused
            || !FastQueue::supports(queue)
            || loss.asks_for_packets()
            || !egress_loss.is_never()
            || jitter.is_some()
            || reorder.is_some()
            || !duplicate.is_never()
            || corrupt.is_some()
            || opportunities.is_some()
            || framing.is_some()
            || slots.is_some()
            || *loss_ecn != Ecn::Off
            || cross.is_some()
            || *state != LinkState::Up
    }

    /// An empty pipe.
    pub(crate) fn new(spec: &PipeSpec, rng: Rng) -> GeneralPipe<P> {
        GeneralPipe::from(PipeState::new(spec, rng))
    }

    pub(crate) fn push(&mut self, now: Time, packet: Packet<P>) -> Verdict<P> {
        self.counters.pushed.add_packet(packet.len);
        self.catch_up(now);
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
        let (queue, mut context) = self.queue_context(now);
        if let Err((reason, packet)) = queue.enqueue(packet, &mut context) {
            return self.refuse(reason, packet);
        }
        self.held.add_packet(len);
        self.note_effect();
        self.queued_at(now);
        Verdict::Queued
    }

    /// Offers the wire a packet that was queued at `now`.
    fn queued_at(&mut self, now: Time) {
        match &mut self.schedule {
            // Opportunities that passed while nothing waited are lost.
            Some(schedule) if self.sending.is_none() => schedule.skip_past(now),
            None if self.sending.is_none() => self.serve(now),
            _ => {}
        }
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<Exit<P>> {
        self.advance(now);
        let early_exit = self.early_exits.front().map(|early_exit| early_exit.at);
        let flight = self.line.next_at();
        let first = early_exit.into_iter().chain(flight).min().filter(|at| *at <= now)?;
        let (at, departed, packet, fate, is_copy) = if early_exit == Some(first) {
            let EarlyExit { at, packet, fate } = self.early_exits.pop_front()?;
            // DropReason::Loss here means loss at the egress, after transmission.
            let sent = !matches!(fate, Fate::Dropped(reason) if reason != DropReason::Loss);
            (at, sent.then_some(at), packet, fate, false)
        } else {
            let (at, Flight { departed, packet, fate, is_copy }) = self.land()?;
            (at, departed, packet, fate, is_copy)
        };
        (self.departed, self.copies_at) = (departed, None);
        Some(self.leave(at, packet, fate, is_copy))
    }

    /// Counts a packet that leaves at `at`.
    #[inline]
    fn leave(&mut self, at: Time, packet: Held<P>, fate: Fate, is_copy: bool) -> Exit<P> {
        if is_copy {
            self.copies.remove_packet(packet.len);
            return Exit { at, packet: packet.into_packet(), fate };
        }
        self.held.remove_packet(packet.len);
        match fate {
            Fate::Delivered { .. } => self.counters.delivered.add_packet(packet.len),
            Fate::Altered(alteration) => {
                self.counters.delivered.add_packet(packet.len);
                self.counters.corrupted += u64::from(alteration.corruption.is_some());
                self.counters.duplicated += u64::from(alteration.copies);
                let later = self.duplicate.later().filter(|_| alteration.copies > 0);
                self.copies_at = later.map(|later| at.saturating_add(later));
            }
            Fate::Dropped(reason) => self.counters.drop_one(reason, packet.len),
        }
        Exit { at, packet: packet.into_packet(), fate }
    }

    /// Takes the packet that leaves the delay line next, which has one, and measures its delay.
    #[inline]
    fn land(&mut self) -> Option<(Time, Flight<P>)> {
        let (at, flight) = self.line.pop()?;
        if let (Some(departed), Some(delays)) = (flight.departed, &mut self.delays)
            && !matches!(flight.fate, Fate::Dropped(_))
        {
            delays.add(departed, at);
        }
        Some((at, flight))
    }

    /// Takes out the packets of the delay line that leave before `horizon`; none is pushed by
    /// `now`.
    pub(crate) fn take_ahead(
        &mut self,
        now: Time,
        horizon: Time,
        mut take: impl FnMut(Exit<P>, Option<Time>),
    ) {
        self.advance(now);
        while self.line.next_at().is_some_and(|at| at < horizon)
            && let Some((at, Flight { departed, packet, fate, is_copy })) = self.land()
        {
            take(self.leave(at, packet, fate, is_copy), departed);
        }
    }

    /// Returns the next exit from the delay line.
    pub(crate) fn next_flight(&self) -> Option<Time> {
        self.line.next_at()
    }

    /// Puts a packet that has left another pipe into the delay line. It takes its fate with it, and
    /// is not counted among the pushed.
    pub(crate) fn put_exit(&mut self, Exit { at, packet, fate }: Exit<P>, departed: Option<Time>) {
        self.held.add_packet(packet.len);
        let packet =
            Held { marked: fate == Fate::Delivered { marked: true }, ..Held::new(at, packet, false) };
        self.line.push(Flight { departed, packet, fate, is_copy: false }, at, Reorder::Never);
    }

    /// Returns the next exit, or the next event of the rate stage if that is earlier.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let early_exit = self.early_exits.front().map(|early_exit| early_exit.at);
        [early_exit, self.line.next_at(), self.next_event()].into_iter().flatten().min()
    }

    pub(crate) fn change(&mut self, now: Time, change: &Change) {
        self.catch_up(now);
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
            self.delays = self.jitter.as_ref().map(|_| MeasuredDelays::from(now));
        }
        if let Some(loss) = &change.loss {
            self.loss.change(loss);
        }
        self.loss_ecn = change.loss_ecn.unwrap_or(self.loss_ecn);
        if let Some(loss) = &change.egress_loss {
            self.egress_loss.change(loss);
        }
        if let Some(queue) = &change.queue {
            self.queue.reconfigure(now, queue);
        }
        self.change_effects(now, change);
        self.reads_headers = self.needs_headers();
        if let Some(state) = change.state {
            self.state = state;
        }
        if self.state == LinkState::Down {
            self.flush(now);
        }
        self.change_cross(now, change);
        // The change may allow a waiting packet to be sent.
        if self.sending.is_none() && self.schedule.is_none() && self.queue.backlog().packets > 0 {
            self.serve(now);
        }
    }

    /// Drops every packet not sent completely: the link goes down.
    fn flush(&mut self, now: Time) {
        self.serialiser.cut(now);
        self.retry_at = None;
        let gathered = std::iter::from_fn(|| self.slots.as_mut()?.take()).chain(self.sending.take());
        let all = gathered.chain(std::iter::from_fn(|| self.queue.pop_unmanaged()));
        for packet in all {
            if packet.is_cross() {
                self.counters.cross.dropped.add_packet(packet.len);
                continue;
            }
            let fate = Fate::Dropped(DropReason::Down);
            self.early_exits.push_back(EarlyExit { at: now, packet, fate });
        }
    }

    /// Changes the slots. Packets gathered for slots that no longer exist leave at once.
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

    /// Changes the opportunities. If rate and opportunities replace each other, the transmission of
    /// the packet on the wire starts over.
    fn change_opportunities(&mut self, now: Time, opportunities: &Option<Opportunities>) {
        if self.schedule.as_ref().map(|schedule| &schedule.spec) == opportunities.as_ref() {
            return;
        }
        self.schedule = opportunities.clone().map(|spec| Schedule::after(spec, now));
        match (&mut self.schedule, &self.sending) {
            (Some(schedule), Some(packet)) => schedule.left = schedule.counted(packet.len),
            (None, Some(packet)) => self.serialiser.transmit(self.framing, now, packet.len),
            (None, None) => self.serve(now),
            (Some(_), None) => {}
        }
    }

    /// Changes the impairments behind the queue. A law that stays the same keeps its state; another
    /// one starts from its initial state.
    fn change_effects(&mut self, now: Time, change: &Change) {
        if let Some(jitter) = &change.jitter
            && self.jitter.as_ref().map(Jitter::spec) != jitter.as_deref()
        {
            self.jitter = jitter.as_deref().cloned().map(Jitter::new);
            self.delays = self.jitter.as_ref().map(|_| MeasuredDelays::from(now));
        }
        if let Some(reorder) = change.reorder
            && self.reorder.as_ref().map(Reorderer::spec) != reorder
        {
            self.reorder = reorder.map(Reorderer::new);
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

    /// Returns true if the treatment of a packet depends on its headers.
    fn needs_headers(&self) -> bool {
        let losses = [&self.loss, &self.egress_loss];
        self.queue.spec().reads_headers()
            || self.loss_ecn != Ecn::Off
            || losses.iter().any(|loss| loss.spec().reads_headers())
            || self.corrupt.as_ref().is_some_and(|law| law.spec().reads_headers())
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
            reorder: self.reorder.as_ref().map(Reorderer::spec),
            duplicate: self.duplicate.spec(),
            corrupt: self.corrupt.as_ref().map(Corruptor::spec),
            opportunities: self.schedule.as_ref().map(|schedule| schedule.spec.clone()),
            framing: self.framing,
            slots: self.slots.as_ref().map(|slots| Box::new(slots.spec().clone())),
            loss_ecn: self.loss_ecn,
            cross: self.cross.as_ref().and_then(|cross| cross.spec()),
            state: self.state,
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn delays(&self) -> Option<&Delays> {
        self.delays.as_ref().map(MeasuredDelays::delays)
    }

    pub(crate) fn departed(&self) -> Option<Time> {
        self.departed
    }

    pub(crate) fn copies_at(&self) -> Option<Time> {
        self.copies_at
    }

    /// Adds a copy, which leaves at `at`, of a packet that has left.
    pub(crate) fn put_copy(&mut self, at: Time, packet: Packet<P>) {
        self.copies.add_packet(packet.len);
        self.line.push_copy(Held::new(at, packet, false), at);
    }

    /// Returns the packets that were pushed and have not left.
    pub(crate) fn held(&self) -> Volume {
        self.held
    }

    /// Returns the copies put back that have not left.
    pub(crate) fn copies(&self) -> Volume {
        self.copies
    }

    pub(crate) fn queued(&self) -> Volume {
        self.queue.backlog() + self.on_wire()
    }

    /// Returns the queue at `now`. No packet may be pushed at an earlier time afterwards.
    pub(crate) fn queue(&mut self, now: Time) -> QueueState {
        self.catch_up(now);
        let volume = self.queued();
        let delay = match &self.sending {
            Some(head) => now.since(head.time),
            None if volume.packets > 0 => self.last_wait,
            None => Duration::ZERO,
        };
        QueueState { volume, delay }
    }

    /// Runs the rate stage forward to `now`, as far as packets depend on it.
    #[inline]
    fn advance(&mut self, now: Time) {
        match self.cross {
            None => self.run(now),
            Some(_) => self.run_with_cross(now, GeneralPipe::cross_matters),
        }
    }

    /// Runs the rate stage forward to `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        match self.cross {
            None => self.run(now),
            Some(_) => {
                self.skip_cross(now);
                self.run_with_cross(now, |_| true);
            }
        }
    }

    /// Leaves out old cross traffic of a pipe in which no other packet waits. The rest finds an
    /// empty queue.
    fn skip_cross(&mut self, now: Time) {
        if self.cross_max == u64::MAX || self.queued() != self.counters.cross.queued() {
            return;
        }
        let framing = self.framing_of_frames();
        let Some(cross) = &mut self.cross else { return };
        let Some(from) = cross.keep_last(now, self.cross_max, framing) else { return };
        self.retry_at = None;
        let gathered = std::iter::from_fn(|| self.slots.as_mut()?.take()).chain(self.sending.take());
        let all = gathered.chain(std::iter::from_fn(|| self.queue.pop_unmanaged()));
        all.for_each(|packet| self.counters.cross.sent.add_packet(packet.len));
        self.serialiser.cut(from);
    }

    /// Runs the rate stage forward to `now` with the cross traffic that arrives by then, or while
    /// `wanted`.
    #[inline(never)]
    fn run_with_cross(&mut self, now: Time, wanted: impl Fn(&GeneralPipe<P>) -> bool) {
        while wanted(self) {
            match self.cross.as_ref().and_then(|cross| cross.next_at()).filter(|at| *at <= now) {
                Some(at) => {
                    self.run(at);
                    self.arrive_cross(at);
                }
                None => return self.run(now),
            }
        }
    }

    /// Returns true if cross traffic may decide when a packet leaves: one is in the rate stage.
    ///
    /// A packet that waits while cross traffic no longer has an effect, because the link is paused
    /// or cross traffic alone is served, is not waited for: such a run could not end.
    fn cross_matters(&self) -> bool {
        let Some(cross) = &self.cross else { return false };
        let queued = self.queued().packets;
        if queued == self.counters.cross.queued().packets {
            return false;
        }
        if self.serialiser.is_paused() && self.rate_event().is_none() {
            // By then a queue that drops its oldest packets has dropped all of them.
            return !cross.was_without_effect(queued);
        }
        let is_on_wire = self.sending.as_ref().is_some_and(|packet| !packet.is_cross());
        is_on_wire || !cross.was_without_effect(CrossArrivals::STARVING)
    }

    /// Lets a packet of cross traffic arrive at `at`.
    fn arrive_cross(&mut self, at: Time) {
        let framing = self.framing_of_frames();
        let Some(len) = self.cross.as_mut().and_then(|cross| cross.take(framing)) else { return };
        let queued = self.counters.cross.queued().packets;
        let others = self.queued().packets - queued;
        self.counters.cross.offered.add_packet(len);
        let has_room = self.state == LinkState::Up && queued < CrossSpec::QUEUED_MAX;
        let (queue, mut context) = self.queue_context(at);
        match has_room && queue.enqueue(Held::cross(at, len), &mut context).is_ok() {
            true => self.queued_at(at),
            false => self.counters.cross.dropped.add_packet(len),
        }
        let others_now = self.queued().packets - self.counters.cross.queued().packets;
        if let Some(cross) = self.cross.as_mut().filter(|_| others_now == others) {
            return cross.note_without_effect();
        }
        self.note_effect();
    }

    /// Notes that the packets of others in the queue, or the parameters, have changed.
    #[inline]
    fn note_effect(&mut self) {
        if let Some(cross) = &mut self.cross {
            cross.note_effect();
        }
    }

    /// Changes the cross traffic. What is queued of it stays.
    fn change_cross(&mut self, now: Time, change: &Change) {
        self.note_effect();
        if let Some(spec) = change.cross
            && spec != self.cross.as_ref().and_then(|cross| cross.spec())
        {
            let framing = self.framing_of_frames();
            let none = || Box::new(CrossArrivals::none(&self.rng));
            self.cross.get_or_insert_with(none).set(now, spec, framing);
        }
    }

    /// Lets the cross traffic begin at `now`: the pipe has just been made.
    pub(crate) fn begin_cross(&mut self, now: Time) {
        let spec = self.cross.take().and_then(|cross| cross.spec());
        self.change_cross(now, &Change { cross: Some(spec), ..Change::default() });
    }

    /// Runs the events of the rate stage up to `now`.
    fn run(&mut self, now: Time) {
        while let Some(at) = self.rate_event().filter(|at| *at <= now) {
            if self.schedule.is_some() {
                self.use_opportunity(at);
                continue;
            }
            // A packet sent completely now still leaves in a slot that opens now.
            match self.sending.take_if(|_| self.serialiser.end() <= at) {
                Some(packet) => {
                    match &mut self.slots {
                        Some(slots) => slots.gather(at, packet, &mut self.rng),
                        None => self.depart(at, packet),
                    }
                    self.serve(at);
                }
                None if self.retry_at == Some(at) => self.serve(at),
                None => self.open_slot(at),
            }
        }
    }

    /// Opens the slot that is due at `at`.
    fn open_slot(&mut self, at: Time) {
        let Some(mut passed) = self.slots.as_mut().map(|slots| slots.open()) else { return };
        loop {
            let ready = self.ready(at);
            let Some(slots) = &mut self.slots else { return };
            match ready {
                Served::Later(later) if later > at => return slots.request(later, &mut self.rng),
                Served::Nothing | Served::Later(_) => return,
                Served::Packet(packet) => {
                    let used_up = slots.is_used_up(&mut passed, packet.len);
                    if used_up {
                        slots.request(at, &mut self.rng);
                    }
                    self.depart(at, packet);
                    if used_up {
                        return;
                    }
                }
            }
        }
    }

    /// Returns the next packet for an open slot. Without a rate packets wait in the queue.
    fn ready(&mut self, at: Time) -> Served<P> {
        if let Some(packet) = self.slots.as_mut().and_then(|slots| slots.take()) {
            return Served::Packet(packet);
        }
        if self.serialiser.rate().is_some() {
            return Served::Nothing;
        }
        let (queue, mut context) = self.queue_context(at);
        queue.dequeue(&mut context)
    }

    /// Returns the time of the next event of the rate stage; `None` if no packet waits for one.
    pub(crate) fn next_event(&self) -> Option<Time> {
        match &self.cross {
            None => self.rate_event(),
            Some(_) if !self.cross_matters() => None,
            Some(cross) => [self.rate_event(), cross.next_at()].into_iter().flatten().min(),
        }
    }

    /// Returns the time of the next event of the rate stage, except arrivals of cross traffic.
    fn rate_event(&self) -> Option<Time> {
        match &self.schedule {
            None => {
                let running = !self.serialiser.is_paused();
                let sent = self.sending.as_ref().filter(|_| running).map(|_| self.serialiser.end());
                let slot = self.slots.as_ref().and_then(|slots| slots.opens());
                [sent.or(self.retry_at), slot].into_iter().flatten().min()
            }
            Some(_) if self.sending.is_none() && self.queue.backlog().packets == 0 => None,
            Some(schedule) => schedule.next_at(),
        }
    }

    /// Uses the opportunity at `at`: continues the packet on the wire, then sends packets that
    /// wait.
    fn use_opportunity(&mut self, at: Time) {
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

    /// Takes the next packet: the wire is free at `at`.
    fn serve(&mut self, at: Time) {
        self.retry_at = None;
        if let (Some(slots), None, None) = (&mut self.slots, &self.schedule, self.serialiser.rate()) {
            // Without a rate packets wait in the queue for their slot.
            if self.queue.backlog().packets > 0 {
                slots.request(at, &mut self.rng);
            }
            return;
        }
        let (queue, mut context) = self.queue_context(at);
        match queue.dequeue(&mut context) {
            Served::Nothing => {}
            // At the end of time there is no later instant.
            Served::Later(later) => self.retry_at = (later > at).then_some(later),
            Served::Packet(packet) => {
                match &mut self.schedule {
                    None => self.serialiser.transmit(self.framing, at, packet.len),
                    Some(schedule) => schedule.left = schedule.counted(packet.len),
                }
                self.sending = Some(packet);
            }
        }
    }

    /// Ends the transmission of `packet` at `at`.
    fn depart(&mut self, at: Time, packet: Held<P>) {
        self.last_wait = at.since(packet.time);
        if packet.is_cross() {
            if self.jitter.is_none() {
                // After a reduction of the delay others do not overtake it.
                self.last_exit = self.last_exit.max(at.saturating_add(self.delay));
            }
            return self.counters.cross.sent.add_packet(packet.len);
        }
        self.note_effect();
        if self.egress_loss.draw_at(at, &packet, &mut self.rng) {
            self.early_exits.push_back(EarlyExit { at, packet, fate: Fate::Dropped(DropReason::Loss) });
            return;
        }
        let (exit, order) = match &mut self.jitter {
            Some(jitter) => {
                let delay = jitter.draw(at, self.delay, &mut self.rng);
                (at.saturating_add(delay), jitter.spec().order)
            }
            // With a constant delay packets keep their order, even after the delay was reduced.
            None => (at.saturating_add(self.delay).max(self.last_exit), Reorder::Never),
        };
        let fate = self.alter(&packet);
        if self.reorder.as_mut().is_some_and(|reorder| reorder.draw(&mut self.rng)) {
            self.early_exits.push_back(EarlyExit { at, packet, fate });
            return;
        }
        self.last_exit = self.last_exit.max(exit);
        self.line.push(Flight { departed: Some(at), packet, fate, is_copy: false }, exit, order);
    }

    /// Draws duplication and corruption for a packet that will be delivered.
    fn alter(&mut self, packet: &Held<P>) -> Fate {
        let marked = packet.marked;
        let copies = self.duplicate.draw(&mut self.rng);
        let corruption =
            self.corrupt.as_mut().and_then(|law| law.draw(packet.len, packet.content, &mut self.rng));
        match (copies, corruption) {
            (0, None) => Fate::Delivered { marked },
            _ => Fate::Altered(Alteration { marked, corruption, copies }),
        }
    }

    /// Returns what was dequeued and has not departed: on the wire, or gathered for a slot.
    fn on_wire(&self) -> Volume {
        let mut volume = self.slots.as_ref().map_or(Volume::default(), |slots| slots.gathered());
        if let Some(packet) = &self.sending {
            volume.add_packet(packet.len);
        }
        volume
    }

    fn queue_context(&mut self, now: Time) -> (&mut Queue<P>, QueueContext<'_, P>) {
        let context = QueueContext {
            now,
            on_wire: self.on_wire(),
            rate: self.mean_rate(),
            framing: self.framing_of_frames(),
            idle_since: self.serialiser.end(),
            rng: &mut self.rng,
            counters: &mut self.counters,
            early_exits: &mut self.early_exits,
        };
        (&mut self.queue, context)
    }

    /// Returns the rule for the bytes on the wire. Opportunities replace it.
    fn framing_of_frames(&self) -> Framing {
        let packet = if self.schedule.is_none() { self.serialiser.overhead() } else { 0 };
        let overhead = Framing { packet: i32::try_from(packet).unwrap_or(i32::MAX), cells: None };
        self.framing.filter(|_| self.schedule.is_none()).unwrap_or(overhead)
    }

    /// Returns the rate, or the mean rate of the opportunities.
    fn mean_rate(&self) -> Option<Rate> {
        self.schedule.as_ref().map_or_else(|| self.serialiser.rate(), |schedule| schedule.mean_rate)
    }

    fn refuse(&mut self, reason: DropReason, packet: Held<P>) -> Verdict<P> {
        self.counters.drop_one(reason, packet.len);
        Verdict::Dropped(reason, packet.into_packet().data)
    }
}

impl<P> From<PipeState<P>> for GeneralPipe<P> {
    fn from(old: PipeState<P>) -> GeneralPipe<P> {
        let mut pipe = GeneralPipe {
            state: old.spec.state,
            reads_headers: false,
            loss: old.loss,
            loss_ecn: old.spec.loss_ecn,
            cross: None,
            cross_max: u64::MAX,
            queue: old.queue,
            sending: old.sending,
            retry_at: None,
            serialiser: old.serialiser,
            framing: old.spec.framing,
            schedule: old.spec.opportunities.map(|spec| Schedule::after(spec, Time::ZERO)),
            slots: old.spec.slots.map(|spec| Box::new(Slots::new(*spec))),
            egress_loss: Loss::new(&old.spec.egress_loss),
            delay: old.spec.delay,
            jitter: old.spec.jitter.as_deref().cloned().map(Jitter::new),
            reorder: old.spec.reorder.map(Reorderer::new),
            duplicate: Duplicator::new(old.spec.duplicate),
            corrupt: old.spec.corrupt.map(Corruptor::new),
            delays: old.spec.jitter.map(|_| MeasuredDelays::from(Time::ZERO)),
            departed: None,
            last_wait: Duration::ZERO,
            copies_at: None,
            copies: Volume::default(),
            line: old.line,
            last_exit: old.last_exit,
            early_exits: VecDeque::new(),
            held: old.held,
            counters: old.counters,
            rng: old.rng,
        };
        pipe.reads_headers = pipe.needs_headers();
        pipe.change_cross(Time::ZERO, &Change { cross: Some(old.spec.cross), ..Change::default() });
        pipe
    }
}
