//! Delivery opportunities in place of a rate, with the semantics of Mahimahi's `mm-link`
//! (`src/frontend/link_queue.cc`; R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for
//! HTTP", USENIX ATC 2015):
//!
//! - Each line of a trace is an opportunity, at that many milliseconds, to send 1504 bytes; equal
//!   lines are as many opportunities.
//! - A packet that does not fit in what is left of one goes on in the next; one opportunity may end
//!   one packet and send others. A packet is delivered at the opportunity that sends its last byte.
//! - What nobody uses is lost. A packet that arrives at the instant of an opportunity has missed
//!   it.
//! - After the last opportunity the trace starts over: its times count from the last timestamp.
//!
//! Mahimahi counts IP packets with the four bytes its tunnel puts before them; see
//! [`Opportunities::framing`].

use crate::math;
use fastpath_units::{Duration, Rate, Rng, Time};
use std::sync::Arc;

/// What one opportunity of Mahimahi sends.
const BYTES: u32 = 1504;
/// More opportunities than this are not drawn: they are held in memory.
const DRAWN_MAX: f64 = 16_777_216.0;

/// What a link may send when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    times: Arc<[Duration]>,
    /// Bytes that one opportunity sends.
    pub bytes: u32,
    /// Bytes that a frame counts beyond its length. Ours have 14 bytes of Ethernet that Mahimahi's
    /// packets have not, and they have 4 bytes of tunnel header: −10 makes 1504 bytes one IP packet
    /// of 1500.
    pub framing: i32,
    /// When the trace begins, in the time of the run.
    pub from: Time,
    /// Where in the trace it begins.
    pub offset: Duration,
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
    /// Mahimahi's: 1504 bytes at each of these times, which ascend, and after the last one over
    /// again.
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
        Ok(Opportunities { times, bytes: BYTES, framing: -10, from: Time::ZERO, offset: Duration::ZERO })
    }

    /// A Poisson process of opportunities that makes `rate` on average, `length` long or a little
    /// less: it ends with the last opportunity before. `None` if that would be none, or more than
    /// memory should hold.
    pub fn poisson(rate: Rate, length: Duration, seed: u64) -> Option<Opportunities> {
        let mean_ps = f64::from(BYTES) * 8.0 * 1e12 / rate.as_bps() as f64;
        if length.as_ps() as f64 / mean_ps > DRAWN_MAX {
            return None;
        }
        let mut rng = Rng::new(seed);
        let mut times = Vec::new();
        let mut at = Duration::ZERO;
        loop {
            // 1 − u is in (0, 1].
            let gap = -math::ln(1.0 - rng.unit_f64()) * mean_ps;
            at = at.saturating_add(Duration::from_ps(gap as u64));
            if at > length {
                return Opportunities::new(times).ok();
            }
            times.push(at);
        }
    }

    /// The times of one round; the last one is its length.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// The mean rate on the wire, bit/s.
    pub fn mean_bps(&self) -> f64 {
        self.times.len() as f64 * f64::from(self.bytes) * 8.0 / self.period().as_secs_f64()
    }

    /// How long a round lasts.
    pub fn period(&self) -> Duration {
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
    /// What the disciplines take for the rate.
    pub(crate) mean_rate: Option<Rate>,
}

impl Schedule {
    /// The schedule from its first opportunity after `now`.
    pub(crate) fn after(spec: Opportunities, now: Time) -> Schedule {
        let mean_rate = Rate::from_bps(spec.mean_bps() as u64);
        let mut schedule = Schedule { spec, round: 0, index: 0, left: 0, mean_rate };
        schedule.skip_past(now);
        schedule
    }

    /// When the next opportunity is; never past the end of time.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let start = self.round.checked_mul(self.spec.period().as_ps())?;
        let place = start.checked_add(self.spec.times[self.index].as_ps())?;
        // What lies before the offset has been skipped.
        self.spec.from.checked_add(Duration::from_ps(place.checked_sub(self.spec.offset.as_ps())?))
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
        let place = now.since(self.spec.from).saturating_add(self.spec.offset).as_ps();
        // The round in which `now` lies; at its very start the last opportunity of the one before
        // is past too.
        let round = place / period;
        if round > self.round {
            (self.round, self.index) = (round, 0);
        }
        let within = Duration::from_ps(place.saturating_sub(self.round.saturating_mul(period)));
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
        let mut schedule = Schedule { spec: ms(&[0, 3, 3, 5]), round: 0, index: 0, left: 0, mean_rate: None };
        let mut times = Vec::new();
        for _ in 0..9 {
            times.push(schedule.next_at().expect("for ever").as_ns() / 1_000_000);
            schedule.take();
        }
        assert_eq!(times, [0, 3, 3, 5, 5, 8, 8, 10, 10]);
    }

    #[test]
    fn a_trace_may_begin_later_and_in_its_midst() {
        let mut spec = ms(&[1, 4]);
        (spec.from, spec.offset) = (Time::ZERO + Duration::from_ms(100), Duration::from_ms(2));
        let mut schedule = Schedule::after(spec.clone(), spec.from);
        let mut times = Vec::new();
        for _ in 0..4 {
            times.push(schedule.next_at().expect("for ever").as_ns() / 1_000_000);
            schedule.take();
        }
        // At 100 ms the trace is at 2: next is 4, then 1 and 4 of the following rounds.
        assert_eq!(times, [102, 103, 106, 107]);
    }

    #[test]
    fn poisson_opportunities_are_repeatable_and_exponential() {
        let rate: Rate = "0.57Mbit".parse().unwrap();
        let length = Duration::from_secs(1000);
        let trace = Opportunities::poisson(rate, length, 7).unwrap();
        assert_eq!(Some(&trace), Opportunities::poisson(rate, length, 7).as_ref());
        assert_ne!(Some(&trace), Opportunities::poisson(rate, length, 8).as_ref());
        // 570000 / (1504 · 8) = 47.37 a second: 47374 in all, standard deviation 218, here within
        // 3.29 of them (99.9 %).
        let (count, mean) = (trace.times().len() as f64, 570_000.0 * 1000.0 / (1504.0 * 8.0));
        assert!((count - mean).abs() < 3.29 * mean.sqrt(), "{count} {mean}");
        // Kolmogorov and Smirnov against the exponential law: below 1.95 / √n at 99.9 %.
        let before = std::iter::once(&Duration::ZERO).chain(trace.times());
        let mut gaps: Vec<f64> =
            trace.times().iter().zip(before).map(|(at, before)| (*at - *before).as_secs_f64()).collect();
        gaps.sort_by(f64::total_cmp);
        let law = |gap: f64| 1.0 - (-gap * mean / 1000.0).exp();
        let distance = gaps.iter().enumerate().map(|(i, gap)| (law(*gap) - i as f64 / count).abs());
        assert!(distance.fold(0.0, f64::max) < 1.95 / count.sqrt());
    }

    #[test]
    fn skipping_loses_exactly_what_is_past() {
        for trace in [&[0, 3, 3, 5][..], &[5], &[1, 2], &[0, 4]] {
            for now in 0..25 {
                let now = Time::ZERO + Duration::from_ms(now);
                let mut one_by_one =
                    Schedule { spec: ms(trace), round: 0, index: 0, left: 0, mean_rate: None };
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
