//! A token bucket: packets pass at once as long as there are tokens, which come in at a rate and
//! are kept up to the burst; a second, small bucket bounds the rate within a burst. J. S. Turner,
//! "New Directions in Communications", IEEE Communications Magazine 24(10), 1986; `tc qdisc … tbf`;
//! RFC 2697 §2 has the same buckets as a meter.
//!
//! Buckets hold 10⁻¹² bits, so that a rate times picoseconds is exact and a packet passes in the
//! very picosecond in which its tokens are there.

use super::Limit;
use super::context::{Fifo, Refused, Served, Turn};
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Duration, Rate, Time};

/// Parameters of a token bucket. The pipe's own rate, if it has one, comes after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenBucketSpec {
    /// Bits per second that tokens come in at. Frames count without overhead.
    pub rate: Rate,
    /// What the bucket holds; it is full at the start. A frame larger than this never passes and is
    /// dropped.
    pub burst: Bytes,
    /// The highest rate, and its bucket.
    pub peak: Option<Peak>,
    /// How much may wait for tokens; the packet on the wire counts.
    pub limit: Limit,
}

/// A bound on the rate within a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peak {
    /// Bits per second.
    pub rate: Rate,
    /// What its bucket holds: at least the largest frame, which is what it should be for an even
    /// flow.
    pub burst: Bytes,
}

const PS_PER_S: u128 = 1_000_000_000_000;

/// What `bytes` cost.
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

    /// Tokens come in for `span`.
    fn fill(&mut self, span: Duration) {
        let new = u128::from(span.as_ps()) * u128::from(self.rate.as_bps());
        self.level = (self.level + new).min(self.depth);
    }

    /// Takes tokens out. A packet of before a change may cost more than the bucket holds: it passes
    /// for a full one.
    fn take(&mut self, cost: u128) {
        self.level = self.level.saturating_sub(cost);
    }

    /// The time until there are tokens for `cost`.
    fn wait(&self, cost: u128) -> Duration {
        let missing =
            cost.min(self.depth).saturating_sub(self.level).div_ceil(u128::from(self.rate.as_bps()));
        Duration::from_ps(u64::try_from(missing).unwrap_or(u64::MAX))
    }
}

/// The queue at work.
#[derive(Debug)]
pub(crate) struct TokenBucket<P> {
    spec: TokenBucketSpec,
    pub(crate) fifo: Fifo<P>,
    buckets: [Option<Bucket>; 2],
    /// Until when tokens have come in.
    filled: Time,
}

impl<P> TokenBucket<P> {
    pub(crate) fn new(spec: TokenBucketSpec) -> TokenBucket<P> {
        let buckets = [
            Some(Bucket::full(spec.rate, spec.burst)),
            spec.peak.map(|peak| Bucket::full(peak.rate, peak.burst)),
        ];
        TokenBucket { spec, fifo: Fifo::default(), buckets, filled: Time::ZERO }
    }

    pub(crate) fn spec(&self) -> TokenBucketSpec {
        self.spec
    }

    /// Takes new parameters from `now` on: tokens stay, up to the new depths; a new peak starts
    /// full.
    pub(crate) fn set(&mut self, spec: TokenBucketSpec, now: Time) {
        self.fill(now);
        let old = std::mem::replace(self, TokenBucket::new(spec));
        for (new, old) in self.buckets.iter_mut().zip(old.buckets) {
            if let (Some(new), Some(old)) = (new, old) {
                new.level = old.level.min(new.depth);
            }
        }
        (self.fifo, self.filled) = (old.fifo, old.filled);
    }

    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        let cost = tokens(packet.len.into());
        let mut queued = self.fifo.volume();
        queued += turn.on_wire;
        let never = self.buckets.iter().flatten().any(|bucket| bucket.depth < cost);
        if never || !self.spec.limit.has_room(packet.len, queued) {
            return Err((DropReason::QueueFull, packet));
        }
        self.fifo.push(packet);
        Ok(())
    }

    /// The first packet if there are tokens for it, or when there will be.
    pub(crate) fn dequeue(&mut self, now: Time) -> Served<P> {
        let Some(first) = self.fifo.front() else { return Served::Nothing };
        let cost = tokens(first.len.into());
        self.fill(now);
        let wait = self.buckets.iter().flatten().map(|bucket| bucket.wait(cost)).max();
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Served::Later(now.saturating_add(wait));
        }
        self.buckets.iter_mut().flatten().for_each(|bucket| bucket.take(cost));
        self.fifo.pop().map_or(Served::Nothing, Served::Packet)
    }

    fn fill(&mut self, now: Time) {
        let span = now.since(self.filled);
        self.buckets.iter_mut().flatten().for_each(|bucket| bucket.fill(span));
        self.filled = self.filled.max(now);
    }
}
