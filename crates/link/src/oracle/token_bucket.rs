//! A token bucket as its dual, the virtual scheduling algorithm (GCRA, ITU-T I.371 Annex A):
//! instead of a level it keeps the time at which the bucket would be full again, as a fraction over
//! the rate.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::TokenBucketSpec;
use fastpath_units::Time;

pub(super) fn oracle(spec: &TokenBucketSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(TokenBucket::new(*spec)))
}

/// One bucket, with quantities in 10⁻¹² bits.
struct VirtualBucket {
    rate: u128,
    depth: u128,
    /// The theoretical arrival time × rate.
    tat: u128,
}

impl VirtualBucket {
    /// Returns the first picosecond from `now` on at which a packet conforms.
    fn conforms_at(&self, cost: u128, now: u128) -> u128 {
        now.max((self.tat + cost).saturating_sub(self.depth).div_ceil(self.rate))
    }
}

struct TokenBucket {
    spec: TokenBucketSpec,
    queue: Vec<OraclePacket>,
    buckets: Vec<VirtualBucket>,
}

impl TokenBucket {
    fn new(spec: TokenBucketSpec) -> TokenBucket {
        let both = [Some((spec.rate, spec.burst)), spec.peak.map(|peak| (peak.rate, peak.burst))];
        let bucket = |(rate, burst): (fastpath_units::Rate, fastpath_units::Bytes)| VirtualBucket {
            rate: u128::from(rate.as_bps()),
            depth: cost(burst.0),
            tat: 0,
        };
        TokenBucket { spec, queue: Vec::new(), buckets: both.into_iter().flatten().map(bucket).collect() }
    }

    fn first_conforms_at(&self, now: Time) -> Option<Time> {
        let cost = cost(self.queue.first()?.len);
        let now = u128::from(now.as_ps());
        let at = self.buckets.iter().map(|bucket| bucket.conforms_at(cost, now)).max()?;
        Some(Time::from_ps(u64::try_from(at).expect("within 213 days")))
    }
}

fn cost(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000_000_000
}

impl QueueOracle for TokenBucket {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        let never = self.buckets.iter().any(|bucket| cost(packet.len) > bucket.depth);
        if never || !context.fits(self.spec.limit, packet.len, &self.queue) {
            context.drop(packet, DropReason::QueueFull);
        } else {
            self.queue.push(packet);
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        if self.first_conforms_at(context.now)? > context.now {
            return None;
        }
        let packet = self.queue.remove(0);
        let now = u128::from(context.now.as_ps());
        for bucket in &mut self.buckets {
            bucket.tat = bucket.tat.max(now * bucket.rate) + cost(packet.len);
        }
        Some(packet)
    }

    fn later(&self, now: Time) -> Option<Time> {
        self.first_conforms_at(now)
    }
}
