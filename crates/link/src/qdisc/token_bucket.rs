//! A token bucket: packets wait until their bytes are covered by tokens, which arrive at a rate and
//! collect up to a burst. With a peak rate, a second bucket bounds the rate within a burst. J. S.
//! Turner, "New Directions in Communications", IEEE Communications Magazine 24(10), 1986; `tc qdisc
//! … tbf`. RFC 2697 §2 has the same buckets as a meter.
//!
//! A bucket is kept as the time at which it would be full again (the virtual scheduling algorithm,
//! ITU-T I.371 Annex A). These times are exact, with the fractions of a picosecond that both rates
//! leave. A packet passes in the picosecond in which its tokens are complete: never earlier, and
//! less than one picosecond later, however many packets passed before it.

use super::QueueSpec;
use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Rate, Time};
use std::cmp::Ordering;
use std::fmt;

/// Parameters of a token bucket. The pipe's own rate, if there is one, applies behind the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenBucketSpec {
    /// The rate at which tokens arrive. Frames count with the overhead of the link.
    pub rate: Rate,
    /// The depth of the bucket, which is full at the start. A larger frame is dropped.
    pub burst: Bytes,
    /// The peak rate and its bucket.
    pub peak: Option<Peak>,
    /// The hard limit of what waits for tokens. The packet on the wire counts.
    pub limit: Limit,
}

/// A bound on the rate within a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peak {
    /// The peak rate.
    pub rate: Rate,
    /// The depth of its bucket: at least the largest frame. For an even flow, exactly that.
    pub burst: Bytes,
}

impl QueueSpec {
    /// Returns a token bucket without a peak rate.
    pub fn shaper(rate: Rate, burst: Bytes, limit: Limit) -> QueueSpec {
        QueueSpec::TokenBucket(TokenBucketSpec { rate, burst, peak: None, limit })
    }
}

impl TokenBucketSpec {
    /// The buckets: number, rate, depth in tokens.
    fn buckets(&self) -> impl Iterator<Item = (usize, u128, u128)> + use<> {
        let both = [Some((self.rate, self.burst)), self.peak.map(|peak| (peak.rate, peak.burst))];
        let bucket = |(which, (rate, burst)): (usize, (Rate, Bytes))| (which, rate_of(rate), tokens(burst));
        both.into_iter().flatten().enumerate().map(bucket)
    }

    /// The rates of the parts of an instant.
    fn rates(&self) -> [u128; 2] {
        [rate_of(self.rate), self.peak.map_or(1, |peak| rate_of(peak.rate))]
    }
}

fn rate_of(rate: Rate) -> u128 {
    u128::from(rate.as_bps())
}

/// Returns the tokens that `bytes` cost, in 10⁻¹² bits: rate × picoseconds is exact.
pub(super) fn tokens(bytes: Bytes) -> u128 {
    u128::from(bytes.0) * 8_000_000_000_000
}

/// An instant: picoseconds, and a number of parts of a picosecond for each rate, below the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ExactInstant {
    ps: u128,
    parts: [u128; 2],
}

impl ExactInstant {
    fn at(time: Time) -> ExactInstant {
        ExactInstant { ps: u128::from(time.as_ps()), parts: [0; 2] }
    }

    /// Adds the time in which `tokens` arrive at the rate `which`.
    fn plus(mut self, which: usize, tokens: u128, rate: u128) -> ExactInstant {
        let sum = self.parts[which] + tokens;
        self.ps += sum / rate;
        self.parts[which] = sum % rate;
        self
    }

    /// Subtracts that time; the start of time at the least.
    fn minus(mut self, which: usize, tokens: u128, rate: u128) -> ExactInstant {
        let missing = tokens.saturating_sub(self.parts[which]).div_ceil(rate);
        match self.ps.checked_sub(missing) {
            Some(ps) => {
                self.parts[which] = self.parts[which] + missing * rate - tokens;
                self.ps = ps;
                self
            }
            None => ExactInstant::default(),
        }
    }

    /// Returns whole picoseconds, rounded up.
    fn rounded_up(self, rates: [u128; 2]) -> Time {
        let parts = self.parts[0] * rates[1] + self.parts[1] * rates[0];
        let ps = self.ps + parts.div_ceil(rates[0] * rates[1]);
        Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    fn max(self, other: ExactInstant, rates: [u128; 2]) -> ExactInstant {
        // Parts are less than two picoseconds together. Rates are below 2⁴⁰.
        let order = match self.ps.abs_diff(other.ps) {
            0..2 => {
                let earlier = self.ps.min(other.ps);
                let sum = |instant: ExactInstant| {
                    (instant.ps - earlier) * rates[0] * rates[1]
                        + instant.parts[0] * rates[1]
                        + instant.parts[1] * rates[0]
                };
                sum(self).cmp(&sum(other))
            }
            _ => self.ps.cmp(&other.ps),
        };
        if order == Ordering::Less { other } else { self }
    }
}

/// A FIFO behind one or two token buckets.
#[derive(Debug)]
pub(crate) struct TokenBucketQueue<P> {
    spec: TokenBucketSpec,
    fifo: Fifo<P>,
    /// When each bucket is full again.
    full_at: [ExactInstant; 2],
    /// The time at which the newest packet passed.
    passed: ExactInstant,
}

impl<P> Discipline<P> for TokenBucketQueue<P> {
    type Spec = TokenBucketSpec;

    fn new(spec: &TokenBucketSpec) -> TokenBucketQueue<P> {
        let start = ExactInstant::default();
        TokenBucketQueue { spec: *spec, fifo: Fifo::default(), full_at: [start; 2], passed: start }
    }

    fn spec(&self) -> TokenBucketSpec {
        self.spec
    }

    /// Keeps tokens up to the new depths, rounded down to those of whole picoseconds. A new peak
    /// bucket starts full.
    fn reconfigure(&mut self, now: Time, spec: &TokenBucketSpec) -> bool {
        let rates = self.spec.rates();
        let mut full_at = [ExactInstant::at(now); 2];
        // A bucket that is in both.
        for ((which, old_rate, old_depth), (_, rate, depth)) in self.spec.buckets().zip(spec.buckets()) {
            let wait = self.full_at[which].rounded_up(rates).since(now);
            let level = old_depth.saturating_sub(u128::from(wait.as_ps()) * old_rate);
            full_at[which] = full_at[which].plus(which, depth - level.min(depth), rate);
        }
        self.passed = ExactInstant::at(self.passed.rounded_up(rates));
        (self.full_at, self.spec) = (full_at, *spec);
        true
    }

    fn backlog(&self) -> Volume {
        self.fifo.backlog()
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        let cost = tokens(context.framing.on_wire(packet.len));
        if self.spec.buckets().any(|(_, _, depth)| depth < cost) {
            return Err((DropReason::QueueFull, packet));
        }
        self.fifo.push_within(self.spec.limit, packet, context)
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        let Some(first) = self.fifo.front() else { return Served::Nothing };
        let rates = self.spec.rates();
        let cost = tokens(context.framing.on_wire(first.len));
        // The first in the queue since the packet before it passed, or since its arrival; and the
        // wire is free.
        let free = if context.rate.is_some() { context.idle_since.min(context.now) } else { Time::ZERO };
        let mut passes = ExactInstant::at(first.time.max(free)).max(self.passed, rates);
        // A packet queued before a change may cost more than a bucket holds: it passes when the
        // bucket is full, and empties it.
        for (which, rate, depth) in self.spec.buckets() {
            let spare = depth.saturating_sub(cost);
            passes = passes.max(self.full_at[which].minus(which, spare, rate), rates);
        }
        match passes.rounded_up(rates) {
            later if later > context.now => return Served::Later(later),
            // The link was paused since.
            at if at < context.now => passes = ExactInstant::at(context.now),
            _ => {}
        }
        for (which, rate, depth) in self.spec.buckets() {
            let full_at = self.full_at[which].max(passes, rates);
            self.full_at[which] = full_at.plus(which, cost.min(depth), rate);
        }
        self.passed = passes;
        self.fifo.pop().into()
    }

    fn push_unchecked(&mut self, packet: Held<P>) {
        self.fifo.push(packet);
    }

    fn pop_unmanaged(&mut self) -> Option<Held<P>> {
        self.fifo.pop()
    }

    fn describe(spec: &TokenBucketSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token-bucket {} burst {} limit {}", spec.rate, spec.burst, spec.limit)
    }
}
