//! Delivery opportunities in place of a rate, with the semantics of Mahimahi's `mm-link`
//! (`src/frontend/link_queue.cc`; R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX
//! ATC 2015):
//!
//! - Each line of a trace is an opportunity, at that many milliseconds, to send 1504 bytes; equal lines are as many
//!   opportunities.
//! - A packet that does not fit in what is left of one goes on in the next; one opportunity may end one packet
//!   and send others. A packet is delivered at the opportunity that sends its last byte.
//! - What nobody uses is lost. A packet that arrives at the instant of an opportunity has missed it.
//! - After the last opportunity the trace starts over: its times count from the last timestamp.
//!
//! Mahimahi counts IP packets with the four bytes its tunnel puts before them; see [`Opportunities::framing`].

use fastpath_units::{Duration, Time};
use std::sync::Arc;

/// What a link may send when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    times: Arc<[Duration]>,
    /// Bytes that one opportunity sends.
    pub bytes: u32,
    /// Bytes that a frame counts beyond its length. Ours have 14 bytes of Ethernet that Mahimahi's packets have
    /// not, and they have 4 bytes of tunnel header: −10 makes 1504 bytes one IP packet of 1500.
    pub framing: i32,
}

/// Why some times are no trace of opportunities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpportunitiesError {
    /// There is none.
    #[error("the trace has no opportunity: give it at least one line")]
    Empty,
    /// One comes before its predecessor.
    #[error("opportunity {number} comes before the one above it: put the times in ascending order")]
    OutOfOrder {
        /// Which, from 1.
        number: usize,
    },
    /// The last is at zero, so that the trace would never get on.
    #[error("the trace ends at time 0: its last time is how long it lasts, and must be later")]
    NoDuration,
}

impl Opportunities {
    /// Mahimahi's: 1504 bytes at each of these times, which ascend, and after the last one over again.
    pub fn new(times: impl Into<Arc<[Duration]>>) -> Result<Opportunities, OpportunitiesError> {
        let times = times.into();
        match times.last() {
            None => return Err(OpportunitiesError::Empty),
            Some(last) if last.is_zero() => return Err(OpportunitiesError::NoDuration),
            Some(_) => {}
        }
        if let Some(i) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(OpportunitiesError::OutOfOrder { number: i + 2 });
        }
        Ok(Opportunities { times, bytes: 1504, framing: -10 })
    }

    /// The times of one round; the last one is its length.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// The mean rate on the wire, bit/s.
    pub fn mean_bps(&self) -> f64 {
        self.times.len() as f64 * f64::from(self.bytes) * 8.0 / self.period().as_secs_f64()
    }

    fn period(&self) -> Duration {
        self.times[self.times.len() - 1]
    }
}

/// A place in the trace: the next opportunity, and what the packet being sent still needs.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) spec: Opportunities,
    round: u64,
    index: usize,
    /// Bytes of the packet in transit that no opportunity has sent yet.
    pub(crate) left: u64,
}

impl Schedule {
    /// The schedule from its first opportunity after `now`; times count from the start of the run.
    pub(crate) fn after(spec: Opportunities, now: Time) -> Schedule {
        let mut schedule = Schedule { spec, round: 0, index: 0, left: 0 };
        schedule.skip_past(now);
        schedule
    }

    /// When the next opportunity is; never past the end of time.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let start = self.round.checked_mul(self.spec.period().as_ps())?;
        Time::from_ps(start).checked_add(self.spec.times[self.index])
    }

    /// Uses up the next opportunity: how many bytes it sends.
    pub(crate) fn take(&mut self) -> u64 {
        self.index += 1;
        if self.index == self.spec.times.len() {
            self.index = 0;
            self.round += 1;
        }
        u64::from(self.spec.bytes)
    }

    /// Loses every opportunity up to and including `now`.
    pub(crate) fn skip_past(&mut self, now: Time) {
        let period = self.spec.period().as_ps();
        // The round in which `now` lies; at its very start the last opportunity of the one before is past too.
        let round = now.as_ps() / period;
        if round > self.round {
            (self.round, self.index) = (round, 0);
        }
        let within = Duration::from_ps(now.as_ps().saturating_sub(self.round.saturating_mul(period)));
        let past = self.spec.times.partition_point(|time| *time <= within);
        if self.round == round {
            self.index = self.index.max(past);
            if self.index == self.spec.times.len() {
                (self.round, self.index) = (round + 1, 0);
            }
        }
    }

    /// What a frame of `len` bytes counts.
    pub(crate) fn counted(&self, len: u32) -> u64 {
        (i64::from(len) + i64::from(self.spec.framing)).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(times: &[u64]) -> Opportunities {
        let times: Vec<Duration> = times.iter().map(|ms| Duration::from_ms(*ms)).collect();
        Opportunities::new(times).expect("a trace")
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let of = |times: &[u64]| {
            Opportunities::new(times.iter().map(|ms| Duration::from_ms(*ms)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), Err(OpportunitiesError::Empty));
        assert_eq!(of(&[0, 0]), Err(OpportunitiesError::NoDuration));
        assert_eq!(of(&[1, 3, 2]), Err(OpportunitiesError::OutOfOrder { number: 3 }));
        assert_eq!(ms(&[10, 20]).mean_bps(), 2.0 * 1504.0 * 8.0 / 0.02);
    }

    #[test]
    fn a_trace_starts_over_at_its_last_timestamp() {
        let mut schedule = Schedule { spec: ms(&[0, 3, 3, 5]), round: 0, index: 0, left: 0 };
        let mut times = Vec::new();
        for _ in 0..9 {
            times.push(schedule.next_at().expect("for ever").as_ns() / 1_000_000);
            schedule.take();
        }
        assert_eq!(times, [0, 3, 3, 5, 5, 8, 8, 10, 10]);
    }

    #[test]
    fn skipping_loses_exactly_what_is_past() {
        for trace in [&[0, 3, 3, 5][..], &[5], &[1, 2], &[0, 4]] {
            for now in 0..25 {
                let now = Time::ZERO + Duration::from_ms(now);
                let mut one_by_one = Schedule { spec: ms(trace), round: 0, index: 0, left: 0 };
                while one_by_one.next_at().expect("for ever") <= now {
                    one_by_one.take();
                }
                let skipped = Schedule::after(ms(trace), now);
                assert_eq!(skipped.next_at(), one_by_one.next_at(), "{trace:?} {now}");
                let place = |s: &Schedule| (s.round, s.index);
                assert_eq!(place(&skipped), place(&one_by_one), "{trace:?} {now}");
            }
        }
    }
}
