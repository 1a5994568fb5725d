//! Delivery opportunities instead of a rate, with the semantics of Mahimahi's `mm-link`
//! (`src/frontend/link_queue.cc`; R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for
//! HTTP", USENIX ATC 2015):
//!
//! - Each line of a trace is an opportunity to send 1504 bytes at that many milliseconds. Equal
//!   lines are separate opportunities.
//! - A packet that does not fit in the rest of an opportunity continues in the next one. One
//!   opportunity may end one packet and send others. A packet is delivered at the opportunity that
//!   sends its last byte.
//! - Unused bytes are lost. A packet that arrives at the instant of an opportunity misses it.
//! - After the last opportunity the trace repeats: its times count from the last timestamp.
//!
//! Mahimahi counts IP packets with four bytes of tunnel header; see
//! [`Opportunities::framing`].

use fastpath_units::{Duration, Rate, Rng, Time, math};
use std::sync::Arc;

/// The bytes of one opportunity of Mahimahi.
const BYTES: u32 = 1504;
/// The largest number of opportunities drawn, since they are held in memory.
const DRAWN_MAX: f64 = 16_777_216.0;

/// The times at which a link may send, and how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Opportunities {
    times: Arc<[Duration]>,
    /// Bytes of one opportunity.
    pub bytes: u32,
    /// Bytes counted per frame in addition to its length. A frame has 14 bytes of Ethernet header,
    /// a packet in Mahimahi 4 bytes of tunnel header: with −10 an IP packet of 1500 counts 1504.
    pub framing: i32,
    /// When the trace starts, in the time of the run.
    pub from: Time,
    /// The position in the trace at that time.
    pub offset: Duration,
}

/// The reason why times are not a valid trace of opportunities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpportunitiesError {
    /// The trace is empty.
    #[error("the trace has no opportunity: give it at least one line")]
    Empty,
    /// An opportunity is earlier than its predecessor.
    #[error("opportunity {number} comes before the one above it: put the times in ascending order")]
    OutOfOrder {
        /// Its number, from 1.
        number: usize,
    },
    /// The last opportunity is at zero, so that the trace has no duration.
    #[error("the trace ends at time 0: its last time is how long it lasts, and must be later")]
    NoDuration,
}

impl Opportunities {
    /// Returns opportunities as in Mahimahi: 1504 bytes at each of these ascending times, repeated
    /// after the last one.
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

    /// Returns a Poisson process of opportunities with the mean rate `rate`. It ends with the last
    /// opportunity within `length`. `None` if there is none, or too many to hold in memory.
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

    /// Returns the times of one period. The last one is its length.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// Returns the mean rate on the wire in bit/s.
    pub fn mean_bps(&self) -> f64 {
        self.times.len() as f64 * f64::from(self.bytes) * 8.0 / self.period().as_secs_f64()
    }

    /// Returns the length of one period.
    pub fn period(&self) -> Duration {
        self.times[self.times.len() - 1]
    }
}

/// A position in the trace: the next opportunity, and what the packet on the wire still needs.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) spec: Opportunities,
    round: u64,
    index: usize,
    /// Bytes of the packet on the wire that no opportunity has sent yet.
    pub(crate) left: u64,
    /// The rate that queue disciplines use.
    pub(crate) mean_rate: Option<Rate>,
}

impl Schedule {
    /// Returns the schedule from its first opportunity after `now`.
    pub(crate) fn after(spec: Opportunities, now: Time) -> Schedule {
        let mean_rate = Rate::from_bps(spec.mean_bps() as u64);
        let mut schedule = Schedule { spec, round: 0, index: 0, left: 0, mean_rate };
        schedule.skip_past(now);
        schedule
    }

    /// Returns the next opportunity; `None` past the end of time.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let start = self.round.checked_mul(self.spec.period().as_ps())?;
        let place = start.checked_add(self.spec.times[self.index].as_ps())?;
        // Times before the offset have been skipped.
        self.spec.from.checked_add(Duration::from_ps(place.checked_sub(self.spec.offset.as_ps())?))
    }

    /// Uses the next opportunity and returns its bytes.
    pub(crate) fn take(&mut self) -> u64 {
        self.index += 1;
        if self.index == self.spec.times.len() {
            self.index = 0;
            self.round += 1;
        }
        u64::from(self.spec.bytes)
    }

    /// Skips every opportunity up to and including `now`.
    pub(crate) fn skip_past(&mut self, now: Time) {
        let period = self.spec.period().as_ps();
        let place = now.since(self.spec.from).saturating_add(self.spec.offset).as_ps();
        // The round that contains `now`. At its start the last opportunity of the round before has
        // passed too.
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

    /// Returns the bytes that a frame of `len` bytes counts.
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
    fn an_invalid_trace_is_refused() {
        let of = |times: &[u64]| {
            Opportunities::new(times.iter().map(|ms| Duration::from_ms(*ms)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), Err(OpportunitiesError::Empty));
        assert_eq!(of(&[0, 0]), Err(OpportunitiesError::NoDuration));
        assert_eq!(of(&[1, 3, 2]), Err(OpportunitiesError::OutOfOrder { number: 3 }));
        assert_eq!(ms(&[10, 20]).mean_bps(), 2.0 * 1504.0 * 8.0 / 0.02);
    }

    #[test]
    fn a_trace_repeats_at_its_last_timestamp() {
        let mut schedule = Schedule { spec: ms(&[0, 3, 3, 5]), round: 0, index: 0, left: 0, mean_rate: None };
        let mut times = Vec::new();
        for _ in 0..9 {
            times.push(schedule.next_at().expect("for ever").as_ns() / 1_000_000);
            schedule.take();
        }
        assert_eq!(times, [0, 3, 3, 5, 5, 8, 8, 10, 10]);
    }

    #[test]
    fn a_trace_may_start_later_and_at_an_offset() {
        let mut spec = ms(&[1, 4]);
        (spec.from, spec.offset) = (Time::ZERO + Duration::from_ms(100), Duration::from_ms(2));
        let mut schedule = Schedule::after(spec.clone(), spec.from);
        let mut times = Vec::new();
        for _ in 0..4 {
            times.push(schedule.next_at().expect("for ever").as_ns() / 1_000_000);
            schedule.take();
        }
        // At 100 ms the trace is at 2: the next is 4, then 1 and 4 of the following rounds.
        assert_eq!(times, [102, 103, 106, 107]);
    }

    #[test]
    fn poisson_opportunities_are_repeatable_and_exponential() {
        let rate: Rate = "0.57Mbit".parse().unwrap();
        let length = Duration::from_secs(1000);
        let trace = Opportunities::poisson(rate, length, 7).unwrap();
        assert_eq!(Some(&trace), Opportunities::poisson(rate, length, 7).as_ref());
        assert_ne!(Some(&trace), Opportunities::poisson(rate, length, 8).as_ref());
        // 570000 / (1504 · 8) = 47.37 per second: 47374 in all, with a standard deviation of 218.
        // The count is within 3.29 of them (99.9 %).
        let (count, mean) = (trace.times().len() as f64, 570_000.0 * 1000.0 / (1504.0 * 8.0));
        assert!((count - mean).abs() < 3.29 * mean.sqrt(), "{count} {mean}");
        // Kolmogorov–Smirnov against the exponential law: below 1.95 / √n at 99.9 %.
        let before = std::iter::once(&Duration::ZERO).chain(trace.times());
        let mut gaps: Vec<f64> =
            trace.times().iter().zip(before).map(|(at, before)| (*at - *before).as_secs_f64()).collect();
        gaps.sort_by(f64::total_cmp);
        let law = |gap: f64| 1.0 - (-gap * mean / 1000.0).exp();
        let distance = gaps.iter().enumerate().map(|(i, gap)| (law(*gap) - i as f64 / count).abs());
        assert!(distance.fold(0.0, f64::max) < 1.95 / count.sqrt());
    }

    #[test]
    fn skipping_drops_exactly_the_opportunities_that_have_passed() {
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
