//! A token bucket as the virtual scheduling algorithm (GCRA, ITU-T I.371 Annex A), in fractions: an
//! instant is a numerator over the product of both rates.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::TokenBucketSpec;
use fastpath_units::{Bytes, Rate, Time};

pub(super) fn oracle(spec: &TokenBucketSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(TokenBucket::new(*spec)))
}

/// One bucket, with quantities in 10⁻¹² bits.
struct VirtualBucket {
    rate: u128,
    depth: u128,
    /// The theoretical arrival time × denominator.
    tat: u128,
}

struct TokenBucket {
    spec: TokenBucketSpec,
    queue: Vec<OraclePacket>,
    buckets: Vec<VirtualBucket>,
    /// Of every instant: the product of the rates.
    denominator: u128,
    /// When the last packet passed × denominator.
    last: u128,
    /// The time at which the first packet conforms.
    due: Option<Time>,
}

impl TokenBucket {
    fn new(spec: TokenBucketSpec) -> TokenBucket {
        let both = [Some((spec.rate, spec.burst)), spec.peak.map(|peak| (peak.rate, peak.burst))];
        let bucket = |(rate, burst): (Rate, Bytes)| VirtualBucket {
            rate: u128::from(rate.as_bps()),
            depth: cost(burst.0),
            tat: 0,
        };
        let buckets: Vec<VirtualBucket> = both.into_iter().flatten().map(bucket).collect();
        let denominator = buckets.iter().map(|bucket| bucket.rate).product();
        TokenBucket { spec, queue: Vec::new(), buckets, denominator, last: 0, due: None }
    }
}

fn cost(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000_000_000
}

impl QueueOracle for TokenBucket {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        let cost = cost(packet.len + context.overhead);
        let never = self.buckets.iter().any(|bucket| cost > bucket.depth);
        if never || !context.fits(self.spec.limit, packet.len, &self.queue) {
            context.drop(packet, DropReason::QueueFull);
        } else {
            self.queue.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        let denominator = self.denominator;
        let first = self.queue.first()?;
        let cost = cost(first.len + context.overhead);
        let first_at = u128::from(first.arrived.max(context.wire_free).as_ps()) * denominator;
        let mut passes = first_at.max(self.last);
        for bucket in &self.buckets {
            // At this rate; tokens / rate = tokens · (denominator / rate) / denominator.
            let time_for = |tokens: u128| tokens * (denominator / bucket.rate);
            passes = passes.max((bucket.tat + time_for(cost)).saturating_sub(time_for(bucket.depth)));
        }
        let due = Time::from_ps(u64::try_from(passes.div_ceil(denominator)).expect("within 213 days"));
        self.due = Some(due);
        if due > context.now {
            return None;
        }
        for bucket in &mut self.buckets {
            bucket.tat = bucket.tat.max(passes) + cost * (denominator / bucket.rate);
        }
        self.last = passes;
        Some(self.queue.remove(0))
    }

    fn later(&self, _: Time) -> Option<Time> {
        self.due.filter(|_| !self.queue.is_empty())
    }
}
