//! A token bucket: a packet passes at once if there are tokens for it. Tokens arrive at a rate and
//! accumulate up to the burst. A second, small bucket bounds the rate within a burst. J. S. Turner,
//! "New Directions in Communications", IEEE Communications Magazine 24(10), 1986; `tc qdisc … tbf`.
//! RFC 2697 §2 has the same buckets as a meter.
//!
//! Tokens are counted in 10⁻¹² bits, so that rate × picoseconds is exact and a packet passes in the
//! picosecond in which its tokens are complete.

use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Duration, Rate, Time};
use std::fmt;

/// Parameters of a token bucket. The pipe's own rate, if there is one, applies behind the bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenBucketSpec {
    /// The rate at which tokens arrive. Frames count without overhead.
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

const PS_PER_S: u128 = 1_000_000_000_000;

/// Returns the tokens that `bytes` cost.
fn tokens(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * PS_PER_S
}

/// One bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    depth: u128,
    level: u128,
}

impl Bucket {
    fn full(rate: Rate, burst: Bytes) -> Bucket {
        Bucket { rate, depth: tokens(burst.0), level: tokens(burst.0) }
    }

    /// Adds the tokens of `span`.
    fn fill(&mut self, span: Duration) {
        let new = u128::from(span.as_ps()) * u128::from(self.rate.as_bps());
        self.level = (self.level + new).min(self.depth);
    }

    /// Removes tokens. A packet queued before a change may cost more than the bucket holds: it then
    /// passes when the bucket is full.
    fn take(&mut self, cost: u128) {
        self.level = self.level.saturating_sub(cost);
    }

    /// Returns the time until there are tokens for `cost`.
    fn wait(&self, cost: u128) -> Duration {
        let missing =
            cost.min(self.depth).saturating_sub(self.level).div_ceil(u128::from(self.rate.as_bps()));
        Duration::from_ps(u64::try_from(missing).unwrap_or(u64::MAX))
    }
}

/// A FIFO behind one or two token buckets.
#[derive(Debug)]
pub(crate) struct TokenBucketQueue<P> {
    spec: TokenBucketSpec,
    fifo: Fifo<P>,
    buckets: [Option<Bucket>; 2],
    /// When tokens were last added.
    filled: Time,
}

impl<P> Discipline<P> for TokenBucketQueue<P> {
    type Spec = TokenBucketSpec;

    fn new(spec: &TokenBucketSpec) -> TokenBucketQueue<P> {
        let buckets = [
            Some(Bucket::full(spec.rate, spec.burst)),
            spec.peak.map(|peak| Bucket::full(peak.rate, peak.burst)),
        ];
        TokenBucketQueue { spec: *spec, fifo: Fifo::default(), buckets, filled: Time::ZERO }
    }

    fn spec(&self) -> TokenBucketSpec {
        self.spec
    }

    /// Keeps tokens up to the new depths. A new peak bucket starts full.
    fn reconfigure(&mut self, now: Time, spec: &TokenBucketSpec) -> bool {
        self.fill(now);
        let old = std::mem::replace(self, TokenBucketQueue::new(spec));
        for (new, old) in self.buckets.iter_mut().zip(old.buckets) {
            if let (Some(new), Some(old)) = (new, old) {
                new.level = old.level.min(new.depth);
            }
        }
        (self.fifo, self.filled) = (old.fifo, old.filled);
        true
    }

    fn backlog(&self) -> Volume {
        self.fifo.backlog()
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        let cost = tokens(packet.len.into());
        if self.buckets.iter().flatten().any(|bucket| bucket.depth < cost) {
            return Err((DropReason::QueueFull, packet));
        }
        self.fifo.push_within(self.spec.limit, packet, context)
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        let Some(first) = self.fifo.front() else { return Served::Nothing };
        let cost = tokens(first.len.into());
        self.fill(context.now);
        let wait = self.buckets.iter().flatten().map(|bucket| bucket.wait(cost)).max();
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Served::Later(context.now.saturating_add(wait));
        }
        self.buckets.iter_mut().flatten().for_each(|bucket| bucket.take(cost));
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

impl<P> TokenBucketQueue<P> {
    fn fill(&mut self, now: Time) {
        let span = now.since(self.filled);
        self.buckets.iter_mut().flatten().for_each(|bucket| bucket.fill(span));
        self.filled = self.filled.max(now);
    }
}
