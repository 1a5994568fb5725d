//! The parameters of fast pipes. Pipes with equal parameters share one copy, so that the parameters
//! of a million links stay in the cache.

use crate::counters::Volume;
use crate::fast_queue::FastQueue;
use crate::fast_serialiser::{FrameTimes, LineRate};
use crate::impairment::Loss;
use crate::spec::PipeSpec;
use fastpath_units::{Duration, Time};

/// A new pipe is compared with this many of the newest parameters: equal links tend to be adjacent.
const COMPARED: usize = 8;

/// The parameters of fast pipes, and the state of a loss law or a RED queue.
#[derive(Debug)]
pub(crate) struct PipeParams {
    pub(crate) line_rate: LineRate,
    /// Transmission times at `line_rate`.
    pub(crate) frame_times: FrameTimes,
    pub(crate) delay: Duration,
    /// No packet leaves before this: the exit of the newest packet in the delay line when the delay
    /// was reduced.
    pub(crate) floor: Time,
    pub(crate) loss: Loss,
    pub(crate) queue: FastQueue,
    /// Number of pipes that share this copy.
    users: u32,
}

impl PipeParams {
    /// No packet is longer, in bytes.
    const LEN_MAX: u32 = 1 << 17;

    fn new(spec: &PipeSpec) -> PipeParams {
        let line_rate = LineRate { rate: spec.rate, overhead: spec.overhead };
        PipeParams {
            line_rate,
            frame_times: FrameTimes::new(line_rate),
            delay: spec.delay,
            floor: Time::ZERO,
            loss: Loss::new(&spec.loss),
            queue: FastQueue::new(&spec.queue),
            users: 1,
        }
    }

    /// Returns true if there is no state, so that pipes can share this copy.
    fn is_sharable(&self) -> bool {
        let stateless = !matches!(self.loss, Loss::Law(_)) && !matches!(self.queue, FastQueue::Red(_));
        stateless && self.floor == Time::ZERO
    }

    /// Returns true if no packet leaves at the instant of its arrival and none depends on headers.
    #[inline]
    pub(crate) fn takes_runs(&self) -> bool {
        (self.line_rate.rate.is_some() || self.delay > Duration::ZERO) && !self.queue.reads_headers()
    }

    /// Returns true if a packet that finds the pipe empty at `now` leaves at that instant, unmarked
    /// and without a draw.
    #[inline]
    pub(crate) fn passes(&self, now: Time) -> bool {
        let waits = self.line_rate.rate.is_some() || self.delay > Duration::ZERO || self.floor > now;
        !waits && matches!(self.loss, Loss::Never) && self.queue.takes(Self::LEN_MAX, Volume::default())
    }

    pub(crate) fn spec(&self) -> PipeSpec {
        PipeSpec {
            rate: self.line_rate.rate,
            overhead: self.line_rate.overhead,
            delay: self.delay,
            loss: self.loss.spec(),
            queue: self.queue.spec(),
            ..PipeSpec::default()
        }
    }
}

/// The parameters of all fast pipes of a set.
#[derive(Debug, Default)]
pub(crate) struct ParamTable {
    all: Vec<PipeParams>,
    /// Unused entries.
    free: Vec<u32>,
}

impl ParamTable {
    /// Returns the index of parameters equal to `spec`, shared if possible.
    pub(crate) fn join(&mut self, spec: &PipeSpec) -> u32 {
        let newest = self.all.iter_mut().enumerate().rev().take(COMPARED);
        for (index, params) in newest {
            if params.users > 0 && params.is_sharable() && params.spec() == *spec {
                params.users += 1;
                return index as u32;
            }
        }
        self.add(PipeParams::new(spec))
    }

    /// Releases one use of the parameters at `index`.
    pub(crate) fn leave(&mut self, index: u32) {
        let params = &mut self.all[index as usize];
        params.users -= 1;
        if params.users == 0 {
            self.free.push(index);
        }
    }

    /// Makes the parameters at `index` exclusive to one pipe, which may then change them. Returns
    /// their index from now on.
    pub(crate) fn own(&mut self, index: u32) -> u32 {
        if self.all[index as usize].users == 1 {
            return index;
        }
        // Shared, so without state: a new copy is equal.
        let copy = PipeParams::new(&self.all[index as usize].spec());
        self.leave(index);
        self.add(copy)
    }

    /// Removes the parameters at `index`, which only one pipe uses.
    pub(crate) fn take(&mut self, index: u32) -> PipeParams {
        let idle = PipeParams::new(&PipeSpec::default());
        let params = std::mem::replace(&mut self.all[index as usize], idle);
        self.leave(index);
        params
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &PipeParams {
        &self.all[index as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut PipeParams {
        &mut self.all[index as usize]
    }

    fn add(&mut self, params: PipeParams) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = params;
                index
            }
            None => {
                self.all.push(params);
                self.all.len() as u32 - 1
            }
        }
    }
}
