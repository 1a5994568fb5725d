//! A fixed number of pipes, each plain (`plain.rs`: fast) as long as its parameters allow it, and
//! rich (`rich.rs`: everything) from the first change that needs more. Nobody is told who is next:
//! that is what [`Pipes`](crate::Pipes) adds.

use crate::counters::{Counters, Volume};
use crate::delays::Delays;
use crate::fast_pipe::{Intake, Losses, Plain};
use crate::general_pipe::Rich;
use crate::packet::{DropReason, Exit, Packet, Verdict};
use crate::pipe_params::AllTerms;
use crate::spec::{Change, PipeSpec};
use crate::store::{PopLimit, Store};
use fastpath_units::{Rng, Time};
use prefetch_index::prefetch_index;

/// Set in [`Plain::terms`] of a pipe that has become rich: the rest is its place among the rich.
const RICH: u32 = 1 << 31;

/// What a new pipe is made of.
#[derive(Debug)]
pub struct PipeInit<'s> {
    /// Its parameters.
    pub spec: &'s PipeSpec,
    /// Where all its chance comes from.
    pub rng: Rng,
}

/// Whether it is to be had when a packet left the queue of its pipe: [`Set::departed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Departures {
    Unnoted,
    /// A plain pipe has no room to note it, so none is.
    Noted,
}

/// The pipes, by number.
#[derive(Debug)]
pub(crate) struct Set<P> {
    plain: Vec<Plain>,
    intakes: Vec<Intake>,
    losses: Vec<Losses>,
    terms: AllTerms,
    store: Store<P>,
    rich: Vec<Rich<P>>,
}

impl<P> Set<P> {
    /// Empty pipes that will hold about `packets_max` packets in all at most: memory for them is
    /// not moved.
    pub(crate) fn new<'s>(
        plans: impl ExactSizeIterator<Item = PipeInit<'s>>,
        packets_max: usize,
        departures: Departures,
    ) -> Set<P> {
        let count = plans.len();
        let mut set = Set {
            plain: Vec::with_capacity(count),
            intakes: Vec::with_capacity(count),
            // Zeroed memory that is never touched is never taken.
            losses: vec![[0; _]; count],
            terms: AllTerms::default(),
            store: Store::new(packets_max),
            rich: Vec::new(),
        };
        for PipeInit { spec, rng } in plans {
            let place = if departures == Departures::Noted || Rich::<P>::needed(spec) {
                set.rich.push(Rich::new(spec, rng.clone()));
                RICH | (set.rich.len() as u32 - 1)
            } else {
                set.terms.join(spec)
            };
            set.plain.push(Plain::new(place, 0));
            set.intakes.push(Intake::new(rng));
        }
        set
    }

    pub(crate) fn len(&self) -> usize {
        self.plain.len()
    }

    #[inline]
    pub(crate) fn push(&mut self, now: Time, id: u32, packet: Packet<P>) -> Verdict<P> {
        let index = id as usize;
        let plain = &mut self.plain[index];
        if let Some(place) = plain.rich() {
            return self.push_rich(now, place, packet);
        }
        let terms = self.terms.get_mut(plain.terms);
        let losses = (&mut self.losses, index);
        plain.push(&mut self.intakes[index], terms, losses, &mut self.store, now, packet)
    }

    /// Gives pipe `id` packets that arrive together; those that are not taken go to `refuse`.
    #[inline]
    pub(crate) fn push_run(
        &mut self,
        now: Time,
        id: u32,
        packets: impl Iterator<Item = Packet<P>>,
        mut refuse: impl FnMut(DropReason, P),
    ) {
        let index = id as usize;
        let plain = &mut self.plain[index];
        let rich = plain.rich();
        if let Some(place) = rich {
            for packet in packets {
                if let Verdict::Dropped(reason, data) = self.push_rich(now, place, packet) {
                    refuse(reason, data);
                }
            }
            return;
        }
        let terms = self.terms.get_mut(plain.terms);
        let intake = &mut self.intakes[index];
        for packet in packets {
            let losses = (&mut self.losses, index);
            let verdict = plain.push(intake, terms, losses, &mut self.store, now, packet);
            if let Verdict::Dropped(reason, data) = verdict {
                refuse(reason, data);
            }
        }
    }

    /// Takes out packets that leave pipe `id` within `limit`, up to the first that is marked, and
    /// returns their number. Takes none from a general pipe.
    #[inline]
    pub(crate) fn pop_run(&mut self, limit: PopLimit, id: u32, take: impl FnMut(Time, P)) -> usize {
        let plain = &mut self.plain[id as usize];
        match plain.rich() {
            Some(_) => 0,
            None => plain.pop_run(self.terms.get_mut(plain.terms), &mut self.store, limit, take),
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self, now: Time, id: u32) -> Option<Exit<P>> {
        let plain = &mut self.plain[id as usize];
        match plain.rich() {
            Some(place) => self.rich[place].pop(now),
            None => plain.pop(&mut self.terms, &mut self.store, now),
        }
    }

    /// The same, advancing the pipe no further than the exit.
    #[inline]
    pub(crate) fn pop_next(&mut self, now: Time, id: u32) -> Option<Exit<P>> {
        let plain = &mut self.plain[id as usize];
        match plain.rich() {
            Some(place) => self.pop_next_rich(now, place),
            None => plain.pop(&mut self.terms, &mut self.store, now),
        }
    }

    // Apart, so that what a plain pipe needs stays small.

    #[inline(never)]
    fn push_rich(&mut self, now: Time, place: usize, packet: Packet<P>) -> Verdict<P> {
        self.rich[place].push(now, packet)
    }

    #[inline(never)]
    fn pop_next_rich(&mut self, now: Time, place: usize) -> Option<Exit<P>> {
        loop {
            let at = self.rich[place].next_at().filter(|&at| at <= now)?;
            if let Some(exit) = self.rich[place].pop(at) {
                return Some(exit);
            }
        }
    }

    #[inline]
    pub(crate) fn next_at(&self, id: u32) -> Option<Time> {
        let plain = &self.plain[id as usize];
        match plain.rich() {
            Some(place) => self.next_at_rich(place),
            None => plain.next_at(self.terms.get(plain.terms), &self.store),
        }
    }

    #[inline(never)]
    fn next_at_rich(&self, place: usize) -> Option<Time> {
        self.rich[place].next_at()
    }

    /// True if a push will not change what `next_at` says.
    #[inline]
    pub(crate) fn is_settled(&self, id: u32) -> bool {
        let plain = &self.plain[id as usize];
        !plain.is_empty() && plain.rich().is_none()
    }

    /// True if nothing leaves pipe `id` at the instant it came, and nothing there depends on
    /// headers.
    #[inline]
    pub(crate) fn takes_runs(&self, id: u32) -> bool {
        let plain = &self.plain[id as usize];
        plain.rich().is_none() && self.terms.get(plain.terms).takes_runs()
    }

    /// When the packet that pipe `id` gave out last had left the queue, if departures are noted and
    /// it was sent.
    pub(crate) fn departed(&self, id: u32) -> Option<Time> {
        self.plain[id as usize].rich().and_then(|place| self.rich[place].departed())
    }

    /// When copies of the packet that pipe `id` gave out last leave, if that is later.
    pub(crate) fn copies_at(&self, id: u32) -> Option<Time> {
        self.plain[id as usize].rich().and_then(|place| self.rich[place].copies_at())
    }

    /// A copy of a packet that has left pipe `id` leaves it at `at`. None ever does from a plain
    /// pipe.
    pub(crate) fn put_copy(&mut self, id: u32, at: Time, packet: Packet<P>) {
        if let Some(place) = self.plain[id as usize].rich() {
            self.rich[place].put_copy(at, packet);
        }
    }

    /// Fetches what a push to pipe `id` needs into the cache.
    #[inline]
    pub(crate) fn prefetch(&self, id: u32) {
        prefetch_index(&self.plain, id as usize);
        // An intake may lie across two lines.
        prefetch_index(&self.intakes, id as usize);
        prefetch_index(&self.intakes, id as usize + 1);
    }

    /// Fetches what a pop from pipe `id` needs first.
    #[inline]
    pub(crate) fn prefetch_exit(&self, id: u32) {
        prefetch_index(&self.plain, id as usize);
    }

    pub(crate) fn change(&mut self, now: Time, id: u32, change: &Change) {
        let index = id as usize;
        let plain = &mut self.plain[index];
        if plain.rich().is_none() {
            let mut spec = self.terms.get(plain.terms).spec();
            change.apply_to(&mut spec);
            plain.terms = self.terms.own(plain.terms);
            if !Rich::<P>::needed(&spec) {
                return plain.change(self.terms.get_mut(plain.terms), &mut self.store, now, change);
            }
            self.enrich(now, index);
        }
        if let Some(place) = self.plain[index].rich() {
            self.rich[place].change(now, change);
        }
    }

    /// Gives a pipe its general form.
    fn enrich(&mut self, now: Time, index: usize) {
        let place = RICH | self.rich.len() as u32;
        let Plain { terms, label, .. } = self.plain[index];
        let plain = std::mem::replace(&mut self.plain[index], Plain::new(place, label));
        let intake = std::mem::replace(&mut self.intakes[index], Intake::new(Rng::new(0)));
        let terms = self.terms.take(terms);
        let inheritance = plain.into_inheritance(intake, terms, &self.losses[index], &mut self.store, now);
        self.rich.push(Rich::from(inheritance));
    }

    pub(crate) fn set_label(&mut self, id: u32, label: u32) {
        self.plain[id as usize].label = label;
    }

    #[inline]
    pub(crate) fn label(&self, id: u32) -> u32 {
        self.plain[id as usize].label
    }

    #[inline]
    pub(crate) fn reads_headers(&self, id: u32) -> bool {
        let plain = &self.plain[id as usize];
        match plain.rich() {
            Some(place) => self.rich[place].reads_headers(),
            None => self.terms.get(plain.terms).qdisc.reads_headers(),
        }
    }

    pub(crate) fn pipe(&self, id: u32) -> PipeRef<'_, P> {
        PipeRef { set: self, id }
    }
}

impl Plain {
    /// The place among the rich of a pipe that is no longer plain.
    #[inline]
    fn rich(&self) -> Option<usize> {
        (self.terms & RICH != 0).then_some((self.terms & !RICH) as usize)
    }
}

/// One of many pipes, to look at.
#[derive(Debug)]
pub struct PipeRef<'s, P> {
    set: &'s Set<P>,
    id: u32,
}

impl<'s, P> PipeRef<'s, P> {
    fn parts(&self) -> (&'s Plain, &'s Intake, &'s Losses) {
        let index = self.id as usize;
        (&self.set.plain[index], &self.set.intakes[index], &self.set.losses[index])
    }

    fn rich(&self) -> Option<&'s Rich<P>> {
        self.parts().0.rich().map(|place| &self.set.rich[place])
    }

    /// The parameters as they are now.
    pub fn spec(&self) -> PipeSpec {
        match self.rich() {
            Some(rich) => rich.spec(),
            None => self.set.terms.get(self.parts().0.terms).spec(),
        }
    }

    /// What went in and out so far.
    pub fn counters(&self) -> Counters {
        let (plain, intake, losses) = self.parts();
        self.rich().map_or_else(|| plain.counters(intake, losses), |rich| *rich.counters())
    }

    /// The delays packets have really had behind the queue, where there is jitter: of those that
    /// left the queue since its law and the delay were set. Other pipes give exactly their delay
    /// and keep no account.
    pub fn delays(&self) -> Option<&'s Delays> {
        self.rich().and_then(Rich::delays)
    }

    /// What is in the pipe: queued, in the delay line, dropped and not yet popped, or a copy that
    /// leaves later.
    pub fn held(&self) -> Volume {
        let (plain, intake, losses) = self.parts();
        let with_copies = |rich: &Rich<P>| {
            let mut held = rich.held();
            held += rich.copies();
            held
        };
        self.rich().map_or_else(|| plain.held(intake, losses), with_copies)
    }

    /// What is in the queue, the packet on the wire included, as of the last push.
    pub fn queued(&self) -> Volume {
        self.rich().map_or_else(|| self.parts().0.queued(), Rich::queued)
    }

    /// When the pipe acts next; `None` if it is empty.
    pub fn next_at(&self) -> Option<Time> {
        self.set.next_at(self.id)
    }

    /// True if pushed = delivered + dropped + held, in packets and in bytes, copies left out.
    pub fn conserved(&self) -> bool {
        let there = || self.parts().0.counted(&self.set.store);
        self.counters().conserved(self.rich().map_or_else(there, Rich::held))
    }
}
