//! What plain pipes are asked for. Pipes that are alike share one copy, so that the parameters of a
//! million links stay in the cache.

use crate::fast_serialiser::{Pace, Times};
use crate::impairment::Loss;
use crate::qdisc::Qdisc;
use crate::spec::PipeSpec;
use fastpath_units::{Duration, Time};

/// New pipes are compared with this many of the newest terms: links come in runs of the same kind.
const COMPARED: usize = 8;

/// The parameters of plain pipes, and the state of those laws that have one.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) pace: Pace,
    /// At this pace.
    pub(crate) times: Times,
    pub(crate) delay: Duration,
    /// No packet leaves before this: the exit of the newest one in the delay line when a delay was
    /// cut.
    pub(crate) floor: Time,
    pub(crate) loss: Loss,
    pub(crate) qdisc: Qdisc,
    /// The pipes that share them.
    users: u32,
}

impl Terms {
    fn new(spec: &PipeSpec) -> Terms {
        let pace = Pace { rate: spec.rate, overhead: spec.overhead };
        Terms {
            pace,
            times: Times::new(pace),
            delay: spec.delay,
            floor: Time::ZERO,
            loss: Loss::new(&spec.loss),
            qdisc: Qdisc::new(&spec.queue),
            users: 1,
        }
    }

    /// True if they have no state, so that pipes can share them.
    fn sharable(&self) -> bool {
        self.floor == Time::ZERO && !matches!(self.loss, Loss::Law(_)) && !matches!(self.qdisc, Qdisc::Red(_))
    }

    /// True if nothing leaves at the instant it came, and nothing depends on headers.
    #[inline]
    pub(crate) fn takes_runs(&self) -> bool {
        (self.pace.rate.is_some() || self.delay > Duration::ZERO) && !self.qdisc.reads_headers()
    }

    pub(crate) fn spec(&self) -> PipeSpec {
        PipeSpec {
            rate: self.pace.rate,
            overhead: self.pace.overhead,
            delay: self.delay,
            loss: self.loss.spec(),
            queue: self.qdisc.spec(),
            ..PipeSpec::default()
        }
    }
}

/// The terms of all plain pipes of a set.
#[derive(Debug, Default)]
pub(crate) struct AllTerms {
    all: Vec<Terms>,
    /// Places nobody uses any more.
    free: Vec<u32>,
}

impl AllTerms {
    /// A place with the terms `spec` asks for.
    pub(crate) fn join(&mut self, spec: &PipeSpec) -> u32 {
        let newest = self.all.iter_mut().enumerate().rev().take(COMPARED);
        for (place, terms) in newest {
            if terms.users > 0 && terms.sharable() && terms.spec() == *spec {
                terms.users += 1;
                return place as u32;
            }
        }
        self.add(Terms::new(spec))
    }

    /// One pipe no longer uses `place`.
    pub(crate) fn leave(&mut self, place: u32) {
        let terms = &mut self.all[place as usize];
        terms.users -= 1;
        if terms.users == 0 {
            self.free.push(place);
        }
    }

    /// The terms of `place` for one pipe alone, to be changed; answers where they are now.
    pub(crate) fn own(&mut self, place: u32) -> u32 {
        if self.all[place as usize].users == 1 {
            return place;
        }
        // Shared, so without state: a new copy is the same.
        let copy = Terms::new(&self.all[place as usize].spec());
        self.leave(place);
        self.add(copy)
    }

    /// Takes the terms out of `place`, which only one pipe uses, for good.
    pub(crate) fn take(&mut self, place: u32) -> Terms {
        let idle = Terms::new(&PipeSpec::default());
        let terms = std::mem::replace(&mut self.all[place as usize], idle);
        self.leave(place);
        terms
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> &Terms {
        &self.all[place as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> &mut Terms {
        &mut self.all[place as usize]
    }

    fn add(&mut self, terms: Terms) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = terms;
                place
            }
            None => {
                self.all.push(terms);
                self.all.len() as u32 - 1
            }
        }
    }
}
