//! The fast pipe, which most links need: first come, first served, decided at arrival, one rate and
//! one delay. It advances only when it is called. `general_pipe.rs` has everything else.
//!
//! ```text
//!              first                     on_wire              last
//!                │ delay line, by exit time │ R queue           │
//!        pop ◀── │ exit  exit  exit  exit   │ head  …  …  …     │ ◀── push
//!                                           ▲ until serialiser.end()
//! ```
//!
//! The queue serves in order of arrival and the delay line keeps that order. So both are one list,
//! and a packet that leaves the queue only moves the boundary between them. `push`, `pop` and
//! `change` first run the serialiser forward to `now`, each step at its exact time. The result is
//! that of a model with one event per departure.
//!
//! The memory of one pipe is small: a cache line for both ends ([`FastPipe`]) and what only `push`
//! needs ([`IngressState`]). Packets are in the [`Store`] and parameters in the [`ParamTable`] of
//! the whole set.

use crate::counters::{Counters, QueueState, Volume};
use crate::delay_line::{DelayLine, Flight};
use crate::fast_serialiser::{FastSerialiser, FrameTimes};
use crate::impairment::Reorder;
use crate::packet::{DropReason, Exit, Fate, Held, Packet, Verdict};
use crate::pipe_params::{ParamTable, PipeParams};
use crate::pipe_state::PipeState;
use crate::qdisc::arrival::{Admission, QueueView};
use crate::spec::Change;
use crate::store::{Due, PopLimit, Store, StoreIndex, Waiting};
use fastpath_units::{Duration, Rng, Time};

/// A fast pipe: one cache line, touched by both ends.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct FastPipe {
    /// The packets held, oldest first, as a list in the store.
    first: Option<StoreIndex>,
    last: Option<StoreIndex>,
    /// The packet on the wire: the first packet that is still queued.
    on_wire: Option<StoreIndex>,
    queued: u32,
    /// Modulo 2³². Exact where it matters: a larger byte limit makes a pipe general.
    queued_bytes: u32,
    serialiser: FastSerialiser,
    delivered: Volume,
    /// The index of the parameters, for the owner of the pipe.
    pub(crate) params: u32,
    /// A label for the caller's use.
    pub(crate) label: u32,
}

/// The state that only `push` needs.
#[derive(Debug)]
pub(crate) struct IngressState {
    pub(crate) rng: Rng,
    pushed: Volume,
}

/// Counts of drops and marks of a fast pipe: all zero for a pipe that never dropped or marked. The
/// first three are packets by reason, then bytes dropped and packets marked.
pub(crate) type DropCounts = [u64; 5];

const BYTES: usize = 3;
const MARKED: usize = 4;

/// The drop counts of one pipe, not yet looked up: most packets do not touch them.
pub(crate) struct DropCountsOf<'a> {
    pub(crate) all: &'a mut Vec<DropCounts>,
    pub(crate) index: usize,
}

impl DropCountsOf<'_> {
    #[inline(always)]
    fn get(&mut self) -> &mut DropCounts {
        &mut self.all[self.index]
    }
}

impl IngressState {
    /// `rng` makes all random decisions of the pipe: one draw per packet if there is loss, then one
    /// per packet that RED decides at random.
    pub(crate) fn new(rng: Rng) -> IngressState {
        IngressState { rng, pushed: Volume::default() }
    }
}

impl FastPipe {
    /// An empty pipe.
    pub(crate) fn new(params: u32, label: u32) -> FastPipe {
        FastPipe {
            first: None,
            last: None,
            on_wire: None,
            queued: 0,
            queued_bytes: 0,
            serialiser: FastSerialiser::default(),
            delivered: Volume::default(),
            params,
            label,
        }
    }

    // Inlined, so that in a loop over a run the parameters stay in registers.
    #[inline(always)]
    pub(crate) fn push<P>(
        &mut self,
        IngressState { rng, pushed }: &mut IngressState,
        params: &mut PipeParams,
        mut drops: DropCountsOf<'_>,
        store: &mut Store<P>,
        now: Time,
        mut packet: Packet<P>,
    ) -> Verdict<P> {
        pushed.add_packet(packet.len);
        if params.loss.draw(rng) {
            return refuse(drops.get(), DropReason::Loss, packet);
        }
        self.advance(params, store, now);
        let mut marked = false;
        if !params.queue.takes(packet.len, self.queued()) {
            match self.admit(params, now, packet.header(), rng) {
                Admission::Take => {}
                Admission::Mark => {
                    drops.get()[MARKED] += 1;
                    packet.traffic_class |= Packet::<P>::CE;
                    marked = true;
                }
                Admission::Drop(reason) => return refuse(drops.get(), reason, packet),
            }
        }
        let len = packet.len;
        if self.queued == 0 {
            self.serialiser.send(params.line_rate, &mut params.frame_times, now, len);
            if self.serialiser.end() <= now {
                // The transmission takes no time: the packet goes to the delay line at once.
                self.append(store, Waiting::new(self.exit_of_head(params), packet, marked));
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

    /// Counts packets of these lengths that arrive at `now` and leave at once: the pipe is empty,
    /// and its parameters [pass](PipeParams::passes) packets.
    #[inline(always)]
    pub(crate) fn pass(
        &mut self,
        ingress: &mut IngressState,
        params: &mut PipeParams,
        now: Time,
        lens: impl Iterator<Item = u32>,
    ) {
        let mut passed = Volume::default();
        lens.for_each(|len| passed.add_packet(len));
        ingress.pushed.add_all(passed.packets, passed.bytes);
        self.delivered.add_all(passed.packets, passed.bytes);
        // The serialiser notes the arrival; no rate is set.
        self.serialiser.send(params.line_rate, &mut params.frame_times, now, 0);
    }

    /// Returns the decision about a packet that the policy does not simply take.
    #[inline(always)]
    fn admit(&self, params: &mut PipeParams, now: Time, packet: Packet<()>, rng: &mut Rng) -> Admission {
        let view = QueueView {
            queued: self.queued(),
            idle_since: (self.queued == 0).then_some(self.serialiser.end()),
            rate: params.line_rate.rate,
        };
        params.queue.admit(now, &packet, view, rng)
    }

    /// Appends a packet to the list.
    #[inline(always)]
    fn append<P>(&mut self, store: &mut Store<P>, packet: Waiting<P>) -> StoreIndex {
        let index = store.insert(packet);
        match self.last.replace(index) {
            Some(last) => store.get_mut(last).next = Some(index),
            None => self.first = Some(index),
        }
        index
    }

    #[inline]
    pub(crate) fn pop<P>(
        &mut self,
        all: &mut ParamTable,
        store: &mut Store<P>,
        now: Time,
    ) -> Option<Exit<P>> {
        let first = self.first?;
        if self.first == self.on_wire {
            let params = all.get_mut(self.params);
            let exit = self.exit_of_head(params);
            if exit > now {
                return None;
            }
            // No further than this exit: it may lead to a push into this pipe before the next exit.
            self.advance(params, store, exit);
        }
        let Due { time: at, marked, next, packet } = store.remove_due(first, now)?;
        self.first = next;
        if next.is_none() {
            self.last = None;
        }
        self.delivered.add_packet(packet.len);
        Some(Exit { at, packet, fate: Fate::Delivered { marked } })
    }

    /// Takes out packets that leave within the limit, up to the first that is marked, and returns
    /// their number. Equivalent to as many calls of `pop`.
    #[inline]
    pub(crate) fn pop_run<P>(
        &mut self,
        params: &mut PipeParams,
        store: &mut Store<P>,
        PopLimit { until, packets_max }: PopLimit,
        mut take: impl FnMut(Time, P),
    ) -> usize {
        // The most frequent case in a network of many links: one packet, on the wire.
        if let Some(first) = self.first
            && self.last == self.first
            && self.on_wire == self.first
            && packets_max > 0
        {
            let exit = self.exit_of_head(params);
            if exit > until || store.get(first).marked {
                return 0;
            }
            (self.first, self.last, self.on_wire) = (None, None, None);
            (self.queued, self.queued_bytes) = (0, 0);
            let packet = store.remove(first);
            self.delivered.add_packet(packet.len);
            take(exit, packet.data);
            return 1;
        }
        let mut taken = 0;
        while self.first.is_some() {
            if self.first == self.on_wire {
                let exit = self.exit_of_head(params);
                if exit > until {
                    break;
                }
                self.advance(params, store, exit);
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

    /// Takes out the packets of the delay line that leave before `horizon`; none is pushed by
    /// `now`.
    pub(crate) fn take_ahead<P>(
        &mut self,
        params: &mut PipeParams,
        store: &mut Store<P>,
        (now, horizon): (Time, Time),
        mut take: impl FnMut(Exit<P>, Option<Time>),
    ) {
        self.advance(params, store, now);
        while let Some(first) = self.first
            && self.first != self.on_wire
            && store.get(first).time < horizon
        {
            let Due { time: at, marked, next, packet } =
                store.remove_due(first, horizon).expect("it leaves before the horizon");
            self.first = next;
            self.delivered.add_packet(packet.len);
            take(Exit { at, packet, fate: Fate::Delivered { marked } }, None);
        }
        if self.first.is_none() {
            self.last = None;
        }
    }

    /// Puts a packet that has left another pipe into the delay line.
    pub(crate) fn put_exit<P>(&mut self, ingress: &mut IngressState, store: &mut Store<P>, exit: Exit<P>) {
        let Exit { at, packet, fate } = exit;
        ingress.pushed.add_packet(packet.len);
        self.append(store, Waiting::new(at, packet, fate == Fate::Delivered { marked: true }));
    }

    #[inline]
    pub(crate) fn next_at<P>(&self, params: &PipeParams, store: &Store<P>) -> Option<Time> {
        let first = self.first?;
        Some(if self.first == self.on_wire { self.exit_of_head(params) } else { store.get(first).time })
    }

    /// Returns the data of the packet that leaves next.
    #[inline]
    pub(crate) fn head<'s, P>(&self, store: &'s Store<P>) -> Option<&'s P> {
        store.get(self.first?).data()
    }

    /// Returns when the transmission of the packet on the wire ends.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        self.on_wire.map(|_| self.serialiser.end())
    }

    /// Returns true if the pipe holds no packet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Changes the parameters, which no other pipe shares.
    pub(crate) fn change<P>(
        &mut self,
        params: &mut PipeParams,
        store: &mut Store<P>,
        now: Time,
        change: &Change,
    ) {
        self.advance(params, store, now);
        if let Some(rate) = change.rate {
            self.serialiser.change_rate(now, params.line_rate.rate, rate);
            params.line_rate.rate = rate;
        }
        if let Some(overhead) = change.overhead {
            params.line_rate.overhead = overhead;
        }
        params.frame_times = FrameTimes::new(params.line_rate);
        if let Some(delay) = change.delay {
            if delay < params.delay {
                params.floor = self.latest_exit(store).unwrap_or(params.floor).max(params.floor);
            }
            params.delay = delay;
        }
        if let Some(loss) = &change.loss {
            params.loss.change(loss);
        }
        if let Some(queue) = &change.queue {
            params.queue.reconfigure(queue);
        }
    }

    pub(crate) fn counters(&self, ingress: &IngressState, drops: &DropCounts) -> Counters {
        let mut counters = Counters {
            pushed: ingress.pushed,
            delivered: self.delivered,
            marked: drops[MARKED],
            dropped_bytes: drops[BYTES],
            ..Counters::default()
        };
        counters.dropped[..BYTES].copy_from_slice(&drops[..BYTES]);
        counters
    }

    /// Returns the packets that were pushed and have not left, by the counters.
    pub(crate) fn held(&self, ingress: &IngressState, drops: &DropCounts) -> Volume {
        let Volume { packets, bytes } = ingress.pushed;
        let dropped: u64 = drops[..BYTES].iter().sum();
        Volume {
            packets: packets - dropped - self.delivered.packets,
            bytes: bytes - drops[BYTES] - self.delivered.bytes,
        }
    }

    /// Returns what the list holds, packet by packet, to check the counters.
    pub(crate) fn counted<P>(&self, store: &Store<P>) -> Volume {
        let mut held = Volume::default();
        let mut next = self.first;
        while let Some(index) = next {
            let waiting = store.get(index);
            held.add_packet(waiting.len);
            next = waiting.next;
        }
        held
    }

    #[inline]
    pub(crate) fn queued(&self) -> Volume {
        Volume { packets: u64::from(self.queued), bytes: u64::from(self.queued_bytes) }
    }

    /// Returns the queue at `now`. No packet may be pushed at an earlier time afterwards.
    pub(crate) fn queue<P>(
        &mut self,
        params: &mut PipeParams,
        store: &mut Store<P>,
        now: Time,
    ) -> QueueState {
        self.advance(params, store, now);
        let arrived = self.on_wire.map(|head| store.get(head).time);
        QueueState {
            volume: self.queued(),
            delay: arrived.map_or(Duration::ZERO, |arrived| now.since(arrived)),
        }
    }

    /// Returns the state with which a general pipe continues from `now`. The pipe is then empty.
    pub(crate) fn into_state<P>(
        mut self,
        ingress: IngressState,
        mut params: PipeParams,
        drops: &DropCounts,
        store: &mut Store<P>,
        now: Time,
    ) -> PipeState<P> {
        self.advance(&mut params, store, now);
        let (spec, held) = (params.spec(), self.held(&ingress, drops));
        let counters = Box::new(self.counters(&ingress, drops));
        let last_exit = self.latest_exit(store).unwrap_or(params.floor).max(params.floor);
        let mut line = DelayLine::default();
        while self.first != self.on_wire {
            let (exit, packet) = self.remove_first(store).expect("the packet on the wire is in the list");
            let fate = Fate::Delivered { marked: packet.marked };
            line.push(
                Flight { departed: None, packet: Held { time: exit, ..packet }, fate, is_copy: false },
                exit,
                Reorder::Never,
            );
        }
        let sending = self.remove_first(store).map(|(_, packet)| packet);
        let mut queue = params.queue.into_queue();
        while let Some((_, packet)) = self.remove_first(store) {
            queue.push_unchecked(packet);
        }
        PipeState {
            spec,
            loss: params.loss,
            queue,
            sending,
            serialiser: self.serialiser.into_serialiser(params.line_rate),
            line,
            last_exit,
            held,
            counters,
            rng: ingress.rng,
        }
    }

    /// Removes all packets.
    pub(crate) fn drain<P>(&mut self, store: &mut Store<P>, mut lost: impl FnMut(P)) {
        while let Some((_, packet)) = self.remove_first(store) {
            lost(packet.into_packet().data);
        }
        (self.last, self.on_wire) = (None, None);
        (self.queued, self.queued_bytes) = (0, 0);
    }

    /// Removes the first packet of the list, due or not, and returns it with its time.
    fn remove_first<P>(&mut self, store: &mut Store<P>) -> Option<(Time, Held<P>)> {
        let first = self.first?;
        let (time, next, marked) = {
            let waiting = store.get(first);
            (waiting.time, waiting.next, waiting.marked)
        };
        self.first = next;
        Some((time, Held::new(time, store.remove(first), marked)))
    }

    /// Runs the serialiser forward: every packet sent completely by `now` enters the
    /// delay line, and the next one goes onto the wire.
    #[inline]
    fn advance<P>(&mut self, params: &mut PipeParams, store: &mut Store<P>, now: Time) {
        if self.on_wire.is_some() && self.serialiser.end() <= now {
            self.end_transmissions(params, store, now);
        }
    }

    #[inline(never)]
    fn end_transmissions<P>(&mut self, params: &mut PipeParams, store: &mut Store<P>, now: Time) {
        // Kept in registers until the end: in memory each iteration would wait for the stores of
        // the one before.
        let (mut on_wire, mut serialiser) = (self.on_wire, self.serialiser);
        let (mut ended, mut bytes) = (0, 0u32);
        while let Some(head) = on_wire
            && serialiser.end() <= now
        {
            let packet = store.get_mut(head);
            packet.time = exit_after(serialiser, params);
            ended += 1;
            bytes = bytes.wrapping_add(packet.len);
            on_wire = packet.next;
            if let Some(next) = packet.next {
                let next = store.get(next);
                serialiser.send(params.line_rate, &mut params.frame_times, next.time, next.len);
            }
        }
        (self.on_wire, self.serialiser) = (on_wire, serialiser);
        self.queued -= ended;
        self.queued_bytes = self.queued_bytes.wrapping_sub(bytes);
    }

    /// Returns when the packet on the wire will leave the pipe.
    #[inline]
    fn exit_of_head(&self, params: &PipeParams) -> Time {
        exit_after(self.serialiser, params)
    }

    /// Returns the exit time of the newest packet in the delay line.
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

/// Returns when the packet sent last leaves. Ends of transmission only grow, so
/// that packets could overtake only after the delay was reduced; the floor prevents it.
#[inline]
fn exit_after(serialiser: FastSerialiser, params: &PipeParams) -> Time {
    serialiser.end().saturating_add(params.delay).max(params.floor)
}

fn refuse<P>(drops: &mut DropCounts, reason: DropReason, packet: Packet<P>) -> Verdict<P> {
    drops[reason as usize] += 1;
    drops[BYTES] += u64::from(packet.len);
    Verdict::Dropped(reason, packet.data)
}
