//! PIE as in the pseudocode of RFC 8033 Appendix A, with its names; ECN as in §5.1,
//! de-randomization and the cap as in Appendix B.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle, bytes};
use crate::packet::DropReason;
use crate::qdisc::{Ecn, PieSpec};
use fastpath_units::{Duration, Time};

pub(super) fn oracle(spec: &PieSpec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(Pie::new(*spec)))
}

/// The status variables, times in seconds.
struct Pie {
    spec: PieSpec,
    queue: Vec<OraclePacket>,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: Duration,
    current_qdelay: f64,
    qdelay_old: f64,
    last_update: Time,
}

impl Pie {
    fn new(spec: PieSpec) -> Pie {
        Pie {
            spec,
            queue: Vec::new(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: Duration::ZERO,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            last_update: Time::ZERO,
        }
    }

    /// Runs the timer up to `now`.
    fn tick(&mut self, now: Time) {
        while self.last_update + self.spec.update <= now {
            self.last_update += self.spec.update;
            self.calculate_drop_prob();
        }
    }

    fn calculate_drop_prob(&mut self) {
        let reference = self.spec.target.as_secs_f64();
        let mut p = self.spec.alpha * (self.current_qdelay - reference)
            + self.spec.beta * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.00001 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.spec.cap_adjustment && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.spec.update);
    }

    fn drop_early(&mut self, context: &mut OracleContext<'_>) -> bool {
        let half = self.spec.target.as_secs_f64() / 2.0;
        if (self.qdelay_old < half && self.drop_prob < 0.2)
            || bytes(&self.queue) <= 2 * self.spec.mean_packet.0
        {
            return false;
        }
        if self.spec.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        context.rng.unit_f64() < self.drop_prob
    }
}

impl QueueOracle for Pie {
    fn enqueue(&mut self, mut packet: OraclePacket, context: &mut OracleContext<'_>) {
        self.tick(context.now);
        let half = self.spec.target.as_secs_f64() / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.spec.burst;
        }
        if self.burst_allowance == Duration::ZERO && self.drop_early(context) {
            self.accu_prob = 0.0;
            let mark_ecnth = self.spec.mark_below.get();
            if self.spec.ecn == Ecn::Mark && packet.is_ect() && self.drop_prob < mark_ecnth {
                packet.mark();
            } else {
                return context.drop(packet, DropReason::Early);
            }
        }
        if context.fits(self.spec.limit, packet.len, &self.queue) {
            self.queue.push(packet);
        } else {
            self.accu_prob = 0.0;
            context.drop(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        self.tick(context.now);
        if self.queue.is_empty() {
            return None;
        }
        let packet = self.queue.remove(0);
        let waited = (context.now - packet.arrived).as_secs_f64();
        self.current_qdelay = if self.queue.is_empty() { 0.0 } else { waited };
        Some(packet)
    }
}
