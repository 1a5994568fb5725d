//! A fixed number of pipes. Each is a fast pipe (`fast_pipe.rs`) as long as its parameters allow,
//! and a general pipe (`general_pipe.rs`) from the first change that needs more. The set does not
//! know which pipe is next: [`Pipes`](crate::Pipes) adds that.

use crate::counters::{Counters, QueueState, Volume};
use crate::delays::Delays;
use crate::fast_pipe::{DropCounts, DropCountsOf, FastPipe, IngressState};
use crate::general_pipe::GeneralPipe;
use crate::packet::{DropReason, Exit, Fate, Packet, Verdict};
use crate::pipe_params::ParamTable;
use crate::spec::{Change, LinkState, PipeSpec};
use crate::store::{PopLimit, Store};
use fastpath_units::{Rng, Time};
use prefetch_index::prefetch_index;

/// Set in [`FastPipe::params`] of a pipe that is general. The other bits index the general pipes.
const GENERAL: u32 = 1 << 31;

/// The parameters and the random generator of a new pipe.
#[derive(Debug)]
pub struct PipeInit<'s> {
    /// The parameters.
    pub spec: &'s PipeSpec,
    /// The source of all random decisions of the pipe.
    pub rng: Rng,
}

/// Whether departure times are recorded: see [`PipeSet::departed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DepartureTimes {
    Ignored,
    /// All pipes are general: a fast pipe has no room for departure times.
    Recorded,
}

/// Pipes, identified by number.
#[derive(Debug)]
pub(crate) struct PipeSet<P> {
    fast: Vec<FastPipe>,
    ingress: Vec<IngressState>,
    drops: Vec<DropCounts>,
    params: ParamTable,
    store: Store<P>,
    general: Vec<GeneralPipe<P>>,
    /// Unused places in `general`.
    free: Vec<u32>,
    /// See [`Pipes::bound_cross`](crate::Pipes::bound_cross).
    cross_max: u64,
}

impl<P> PipeSet<P> {
    /// Creates empty pipes. Memory for up to about `packets_max` packets in all pipes is reserved,
    /// so that it does not move.
    pub(crate) fn new<'s>(
        pipes: impl ExactSizeIterator<Item = PipeInit<'s>>,
        packets_max: usize,
        departures: DepartureTimes,
    ) -> PipeSet<P> {
        PipeSet::prepared(pipes.map(Some), packets_max, departures)
    }

    /// As [`PipeSet::new`], with pipes that [`PipeSet::rearrange`] will replace: `None`.
    pub(crate) fn prepared<'s>(
        pipes: impl ExactSizeIterator<Item = Option<PipeInit<'s>>>,
        packets_max: usize,
        departures: DepartureTimes,
    ) -> PipeSet<P> {
        let count = pipes.len();
        let mut set = PipeSet {
            fast: Vec::with_capacity(count),
            ingress: Vec::with_capacity(count),
            // Zeroed memory takes no physical memory until it is written.
            drops: vec![[0; _]; count],
            params: ParamTable::default(),
            store: Store::new(packets_max),
            general: Vec::new(),
            free: Vec::new(),
            cross_max: u64::MAX,
        };
        for pipe in pipes {
            let Some(PipeInit { spec, rng }) = pipe else {
                set.fast.push(FastPipe::new(u32::MAX, 0));
                set.ingress.push(IngressState::new(Rng::new(0)));
                continue;
            };
            let params = if departures == DepartureTimes::Recorded || GeneralPipe::<P>::needed_for(spec) {
                set.general.push(GeneralPipe::new(spec, rng.clone()));
                GENERAL | (set.general.len() as u32 - 1)
            } else {
                set.params.join(spec)
            };
            set.fast.push(FastPipe::new(params, 0));
            set.ingress.push(IngressState::new(rng));
        }
        set
    }

    pub(crate) fn len(&self) -> usize {
        self.fast.len()
    }

    /// Takes the pipes of `prepared` in place of its own, except that pipe `id` stays the one that
    /// had the number `from[id]`, if that is a number. The pipes of `removed` end: their packets go
    /// to `lost`, with the former number. Labels are those of `prepared`, which is left with the
    /// memory that is no longer needed.
    pub(crate) fn rearrange(
        &mut self,
        now: Time,
        prepared: &mut PipeSet<P>,
        from: &[Option<u32>],
        removed: &[u32],
        mut lost: impl FnMut(u32, P),
    ) {
        for &id in removed {
            self.drain(now, id, &mut lost);
        }
        for (id, from) in from.iter().enumerate() {
            let Some(from) = *from else {
                self.admit(now, prepared, id);
                continue;
            };
            let (label, from) = (prepared.fast[id].label, from as usize);
            std::mem::swap(&mut prepared.fast[id], &mut self.fast[from]);
            std::mem::swap(&mut prepared.ingress[id], &mut self.ingress[from]);
            prepared.drops[id] = self.drops[from];
            prepared.fast[id].label = label;
        }
        std::mem::swap(&mut self.fast, &mut prepared.fast);
        std::mem::swap(&mut self.ingress, &mut prepared.ingress);
        std::mem::swap(&mut self.drops, &mut prepared.drops);
    }

    /// Empties a pipe and releases its parameters.
    fn drain(&mut self, now: Time, id: u32, lost: &mut impl FnMut(u32, P)) {
        let fast = &mut self.fast[id as usize];
        let Some(general) = fast.general() else {
            fast.drain(&mut self.store, |packet| lost(id, packet));
            return self.params.leave(fast.params);
        };
        let pipe = &mut self.general[general];
        // What is not in the delay line leaves at once, and the rest at the end of time.
        pipe.change(now, &Change { state: Some(LinkState::Down), ..Change::default() });
        while let Some(exit) = pipe.pop(Time::MAX) {
            lost(id, exit.packet.data);
        }
        self.free.push(general as u32);
    }

    /// Moves the parameters of a new pipe, which begins at `now`, from `prepared` to this set.
    fn admit(&mut self, now: Time, prepared: &mut PipeSet<P>, id: usize) {
        let fast = &mut prepared.fast[id];
        let Some(general) = fast.general() else {
            fast.params = self.params.join(&prepared.params.get(fast.params).spec());
            return;
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.general.push(GeneralPipe::new(&PipeSpec::default(), Rng::new(0)));
            self.general.len() as u32 - 1
        });
        std::mem::swap(&mut self.general[place as usize], &mut prepared.general[general]);
        self.general[place as usize].begin_cross(now);
        self.general[place as usize].cross_max = self.cross_max;
        fast.params = GENERAL | place;
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Time, id: u32, packet: Packet<P>) -> Verdict<P> {
        let index = id as usize;
        let fast = &mut self.fast[index];
        if let Some(general) = fast.general() {
            return self.push_general(now, general, packet);
        }
        let params = self.params.get_mut(fast.params);
        let drops = DropCountsOf { all: &mut self.drops, index };
        fast.push(&mut self.ingress[index], params, drops, &mut self.store, now, packet)
    }

    /// Pushes packets that arrive together into pipe `id`. Refused packets go to `refuse`.
    #[inline]
    pub(crate) fn push_run(
        &mut self,
        now: Time,
        id: u32,
        packets: impl Iterator<Item = Packet<P>>,
        mut refuse: impl FnMut(DropReason, P),
    ) {
        let index = id as usize;
        let fast = &mut self.fast[index];
        let general = fast.general();
        if let Some(general) = general {
            for packet in packets {
                if let Verdict::Dropped(reason, data) = self.push_general(now, general, packet) {
                    refuse(reason, data);
                }
            }
            return;
        }
        let params = self.params.get_mut(fast.params);
        let ingress = &mut self.ingress[index];
        for packet in packets {
            let drops = DropCountsOf { all: &mut self.drops, index };
            let verdict = fast.push(ingress, params, drops, &mut self.store, now, packet);
            if let Verdict::Dropped(reason, data) = verdict {
                refuse(reason, data);
            }
        }
    }

    /// Takes out packets that leave pipe `id` within `limit`, up to the first that is marked, and
    /// returns their number. Takes none from a general pipe.
    #[inline]
    pub(crate) fn pop_run(&mut self, limit: PopLimit, id: u32, take: impl FnMut(Time, P)) -> usize {
        let fast = &mut self.fast[id as usize];
        match fast.general() {
            Some(_) => 0,
            None => fast.pop_run(self.params.get_mut(fast.params), &mut self.store, limit, take),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self, now: Time, id: u32) -> Option<Exit<P>> {
        let fast = &mut self.fast[id as usize];
        match fast.general() {
            Some(general) => self.general[general].pop(now),
            None => fast.pop(&mut self.params, &mut self.store, now),
        }
    }

    /// As `pop`, but advances the pipe no further than the exit.
    #[inline]
    pub(crate) fn pop_next(&mut self, now: Time, id: u32) -> Option<Exit<P>> {
        let fast = &mut self.fast[id as usize];
        match fast.general() {
            Some(general) => self.pop_next_general(now, general),
            None => fast.pop(&mut self.params, &mut self.store, now),
        }
    }

    // Not inlined, so that the code for fast pipes stays small.

    #[inline(never)]
    fn push_general(&mut self, now: Time, general: usize, packet: Packet<P>) -> Verdict<P> {
        self.general[general].push(now, packet)
    }

    #[inline(never)]
    fn pop_next_general(&mut self, now: Time, general: usize) -> Option<Exit<P>> {
        loop {
            let at = self.general[general].next_at().filter(|&at| at <= now)?;
            if let Some(exit) = self.general[general].pop(at) {
                return Some(exit);
            }
        }
    }

    #[inline]
    pub(crate) fn next_at(&self, id: u32) -> Option<Time> {
        let fast = &self.fast[id as usize];
        match fast.general() {
            Some(general) => self.next_at_general(general),
            None => fast.next_at(self.params.get(fast.params), &self.store),
        }
    }

    #[inline(never)]
    fn next_at_general(&self, general: usize) -> Option<Time> {
        self.general[general].next_at()
    }

    /// Returns true if a push cannot change `next_at`.
    #[inline]
    pub(crate) fn is_settled(&self, id: u32) -> bool {
        let fast = &self.fast[id as usize];
        !fast.is_empty() && fast.general().is_none()
    }

    /// See [`Pipes::takes_runs`](crate::Pipes::takes_runs).
    #[inline]
    pub(crate) fn takes_runs(&self, id: u32) -> bool {
        let fast = &self.fast[id as usize];
        fast.general().is_none() && self.params.get(fast.params).takes_runs()
    }

    /// See [`Pipes::passes`](crate::Pipes::passes).
    #[inline]
    pub(crate) fn passes(&self, now: Time, id: u32) -> bool {
        let fast = &self.fast[id as usize];
        fast.general().is_none() && fast.is_empty() && self.params.get(fast.params).passes(now)
    }

    /// See [`Pipes::pass_run`](crate::Pipes::pass_run).
    #[inline]
    pub(crate) fn pass_run(&mut self, now: Time, id: u32, lens: impl Iterator<Item = u32>) {
        let fast = &mut self.fast[id as usize];
        fast.pass(&mut self.ingress[id as usize], self.params.get_mut(fast.params), now, lens);
    }

    /// See [`Pipes::departed`](crate::Pipes::departed).
    pub(crate) fn departed(&self, id: u32) -> Option<Time> {
        self.fast[id as usize].general().and_then(|general| self.general[general].departed())
    }

    /// See [`Pipe::copies_at`](crate::Pipe::copies_at).
    pub(crate) fn copies_at(&self, id: u32) -> Option<Time> {
        self.fast[id as usize].general().and_then(|general| self.general[general].copies_at())
    }

    /// See [`Pipe::put_copy`](crate::Pipe::put_copy). Fast pipes have no copies.
    pub(crate) fn put_copy(&mut self, id: u32, at: Time, packet: Packet<P>) {
        if let Some(general) = self.fast[id as usize].general() {
            self.general[general].put_copy(at, packet);
        }
    }

    /// Prefetches the memory that a push to pipe `id` needs.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        prefetch_index(&self.fast, id as usize);
        // An ingress state may lie across two cache lines.
        prefetch_index(&self.ingress, id as usize);
        prefetch_index(&self.ingress, id as usize + 1);
    }

    /// See [`Pipes::head`](crate::Pipes::head).
    #[inline]
    pub(crate) fn head(&self, id: u32) -> Option<&P> {
        let fast = &self.fast[id as usize];
        if fast.general().is_some() { None } else { fast.head(&self.store) }
    }

    /// Prefetches the memory that a pop from pipe `id` needs first.
    #[inline]
    pub(crate) fn prefetch_exit(&self, id: u32) {
        prefetch_index(&self.fast, id as usize);
    }

    pub(crate) fn change(&mut self, now: Time, id: u32, change: &Change) {
        let index = id as usize;
        let fast = &mut self.fast[index];
        if fast.general().is_none() {
            let mut spec = self.params.get(fast.params).spec();
            change.apply_to(&mut spec);
            fast.params = self.params.own(fast.params);
            if !GeneralPipe::<P>::needed_for(&spec) {
                return fast.change(self.params.get_mut(fast.params), &mut self.store, now, change);
            }
            self.make_general(now, index);
        }
        if let Some(general) = self.fast[index].general() {
            self.general[general].change(now, change);
        }
    }

    /// See [`Pipes::generalise`](crate::Pipes::generalise).
    pub(crate) fn generalise(&mut self, now: Time, id: u32) {
        let fast = &mut self.fast[id as usize];
        if fast.general().is_none() {
            fast.params = self.params.own(fast.params);
            self.make_general(now, id as usize);
        }
    }

    /// Turns a fast pipe into a general pipe.
    fn make_general(&mut self, now: Time, index: usize) {
        let place = self.free.pop().unwrap_or(self.general.len() as u32);
        let general = GENERAL | place;
        let FastPipe { params, label, .. } = self.fast[index];
        let fast = std::mem::replace(&mut self.fast[index], FastPipe::new(general, label));
        let ingress = std::mem::replace(&mut self.ingress[index], IngressState::new(Rng::new(0)));
        let params = self.params.take(params);
        let state = fast.into_state(ingress, params, &self.drops[index], &mut self.store, now);
        match self.general.get_mut(place as usize) {
            Some(unused) => *unused = GeneralPipe::from(state),
            None => self.general.push(GeneralPipe::from(state)),
        }
        self.general[place as usize].cross_max = self.cross_max;
    }

    /// See [`Pipes::bound_cross`](crate::Pipes::bound_cross).
    pub(crate) fn bound_cross(&mut self, packets_max: u64) {
        self.cross_max = packets_max;
        self.general.iter_mut().for_each(|pipe| pipe.cross_max = packets_max);
    }

    /// See [`Pipes::take_ahead`](crate::Pipes::take_ahead).
    pub(crate) fn take_ahead(
        &mut self,
        now: Time,
        id: u32,
        horizon: Time,
        take: impl FnMut(Exit<P>, Option<Time>),
    ) {
        let fast = &mut self.fast[id as usize];
        match fast.general() {
            Some(general) => self.general[general].take_ahead(now, horizon, take),
            None => fast.take_ahead(self.params.get_mut(fast.params), &mut self.store, (now, horizon), take),
        }
    }

    /// See [`Pipes::next_flight`](crate::Pipes::next_flight).
    pub(crate) fn next_flight(&self, id: u32) -> Option<Time> {
        let fast = &self.fast[id as usize];
        match fast.general() {
            Some(general) => self.general[general].next_flight(),
            None => fast.next_at(self.params.get(fast.params), &self.store),
        }
    }

    /// See [`Pipes::next_departure`](crate::Pipes::next_departure).
    pub(crate) fn next_departure(&self, id: u32) -> Option<Time> {
        let fast = &self.fast[id as usize];
        match fast.general() {
            Some(general) => self.general[general].next_event(),
            None => fast.next_departure(),
        }
    }

    /// See [`Pipes::put_exit`](crate::Pipes::put_exit).
    pub(crate) fn put_exit(&mut self, id: u32, exit: Exit<P>, departed: Option<Time>) {
        let index = id as usize;
        if !matches!(exit.fate, Fate::Delivered { .. }) {
            self.generalise(exit.at, id);
        }
        let fast = &mut self.fast[index];
        match fast.general() {
            Some(general) => self.general[general].put_exit(exit, departed),
            None => fast.put_exit(&mut self.ingress[index], &mut self.store, exit),
        }
    }

    /// See [`Pipe::queue`](crate::Pipe::queue).
    pub(crate) fn queue(&mut self, now: Time, id: u32) -> QueueState {
        let fast = &mut self.fast[id as usize];
        match fast.general() {
            Some(general) => self.general[general].queue(now),
            None => fast.queue(self.params.get_mut(fast.params), &mut self.store, now),
        }
    }

    pub(crate) fn set_label(&mut self, id: u32, label: u32) {
        self.fast[id as usize].label = label;
    }

    #[inline]
    pub(crate) fn label(&self, id: u32) -> u32 {
        self.fast[id as usize].label
    }

    #[inline]
    pub(crate) fn reads_headers(&self, id: u32) -> bool {
        let fast = &self.fast[id as usize];
        match fast.general() {
            Some(general) => self.general[general].reads_headers(),
            None => self.params.get(fast.params).queue.reads_headers(),
        }
    }

    pub(crate) fn pipe(&self, id: u32) -> PipeRef<'_, P> {
        PipeRef { set: self, id }
    }
}

impl FastPipe {
    /// Returns the index among the general pipes; `None` for a fast pipe.
    #[inline]
    fn general(&self) -> Option<usize> {
        (self.params & GENERAL != 0).then_some((self.params & !GENERAL) as usize)
    }
}

/// A view of one of many pipes.
#[derive(Debug)]
pub struct PipeRef<'s, P> {
    set: &'s PipeSet<P>,
    id: u32,
}

impl<'s, P> PipeRef<'s, P> {
    fn parts(&self) -> (&'s FastPipe, &'s IngressState, &'s DropCounts) {
        let index = self.id as usize;
        (&self.set.fast[index], &self.set.ingress[index], &self.set.drops[index])
    }

    fn general(&self) -> Option<&'s GeneralPipe<P>> {
        self.parts().0.general().map(|general| &self.set.general[general])
    }

    /// Returns the current parameters.
    pub fn spec(&self) -> PipeSpec {
        match self.general() {
            Some(general) => general.spec(),
            None => self.set.params.get(self.parts().0.params).spec(),
        }
    }

    /// Returns the counters since the pipe was created.
    pub fn counters(&self) -> Counters {
        let (fast, ingress, drops) = self.parts();
        self.general().map_or_else(|| fast.counters(ingress, drops), |general| *general.counters())
    }

    /// See [`Pipe::delays`](crate::Pipe::delays).
    pub fn delays(&self) -> Option<&'s Delays> {
        self.general().and_then(GeneralPipe::delays)
    }

    /// See [`Pipe::held`](crate::Pipe::held).
    pub fn held(&self) -> Volume {
        let (fast, ingress, drops) = self.parts();
        let with_copies = |general: &GeneralPipe<P>| general.held() + general.copies();
        self.general().map_or_else(|| fast.held(ingress, drops), with_copies)
    }

    /// Returns what is in the queue, including the packet on the wire, as of the last push.
    pub fn queued(&self) -> Volume {
        self.general().map_or_else(|| self.parts().0.queued(), GeneralPipe::queued)
    }

    /// Returns the next event of the pipe; `None` if it is empty.
    pub fn next_at(&self) -> Option<Time> {
        self.set.next_at(self.id)
    }

    /// See [`Pipe::conserved`](crate::Pipe::conserved).
    pub fn conserved(&self) -> bool {
        let counted = || self.parts().0.counted(&self.set.store);
        self.counters().conserved(self.general().map_or_else(counted, GeneralPipe::held))
    }
}
