//! CoDel as in the pseudocode of RFC 8289 §5, with its names.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle, bytes};
use crate::packet::DropReason;
use crate::qdisc::{CodelSpec, Ecn};
use fastpath_units::{Duration, Time};

pub(super) fn oracle(spec: &CodelSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Codel::new(*spec)))
}

/// codel_queue_t.
pub(super) struct Codel {
    spec: CodelSpec,
    pub(super) queue: Vec<OraclePacket>,
    first_above_time: Option<Time>,
    drop_next: Time,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// dodequeue_result_t.
struct DodequeueResult {
    p: Option<OraclePacket>,
    ok_to_drop: bool,
}

impl Codel {
    pub(super) fn new(spec: CodelSpec) -> Codel {
        Codel {
            spec,
            queue: Vec::new(),
            first_above_time: None,
            drop_next: Time::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
        }
    }

    fn control_law(&self, t: Time, count: u32) -> Time {
        t + Duration::from_ps((self.spec.interval.as_ps() as f64 / f64::from(count).sqrt()) as u64)
    }

    fn dodequeue(&mut self, now: Time) -> DodequeueResult {
        if self.queue.is_empty() {
            self.first_above_time = None;
            return DodequeueResult { p: None, ok_to_drop: false };
        }
        let p = self.queue.remove(0);
        let mut ok_to_drop = false;
        let sojourn_time = now - p.arrived;
        if sojourn_time < self.spec.target || bytes(&self.queue) <= self.spec.mtu.0 {
            self.first_above_time = None;
        } else if self.first_above_time.is_none() {
            self.first_above_time = Some(now + self.spec.interval);
        } else if Some(now) >= self.first_above_time {
            ok_to_drop = true;
        }
        DodequeueResult { p: Some(p), ok_to_drop }
    }

    /// Marks the packet if possible and returns true: it is to be sent. Else drops it.
    fn mark_or_drop(&self, r: &mut DodequeueResult, context: &mut OracleContext<'_>) -> bool {
        let packet = r.p.as_mut().expect("only a packet is ok to drop");
        if self.spec.ecn == Ecn::Mark && packet.is_ect() {
            packet.mark();
            return true;
        }
        context.drop(*packet, DropReason::Early);
        false
    }
}

impl QueueOracle for Codel {
    fn enqueue(&mut self, packet: OraclePacket, context: &mut OracleContext<'_>) {
        if context.fits(self.spec.limit, packet.len, &self.queue) {
            self.queue.push(packet);
        } else {
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        let now = context.now;
        let mut r = self.dodequeue(now);
        if self.dropping {
            if !r.ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                let marked = self.mark_or_drop(&mut r, context);
                self.count += 1;
                if marked {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    return r.p;
                }
                r = self.dodequeue(now);
                if !r.ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if r.ok_to_drop {
            if !self.mark_or_drop(&mut r, context) {
                r = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now.since(self.drop_next) < self.spec.interval * 16 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.p
    }
}
