//! DualPI2 as in the pseudocode of RFC 9332 Appendix A, with its names and A.2.

use super::discipline::{DisciplineOracle, OracleContext, OraclePacket, QueueOracle};
use crate::packet::DropReason;
use crate::qdisc::{DualPi2Spec, DualScheduler};
use fastpath_units::{Duration, Time};

pub(super) fn oracle(spec: &DualPi2Spec) -> DisciplineOracle {
    DisciplineOracle::Queue(Box::new(DualPi2::new(*spec)))
}

struct DualPi2 {
    spec: DualPi2Spec,
    lq: Vec<OraclePacket>,
    cq: Vec<OraclePacket>,
    lq_count: f64,
    cq_count: f64,
    p: f64,
    prevq: f64,
    last_update: Time,
    credit: i64,
}

fn recur(count: &mut f64, likelihood: f64) -> bool {
    *count += likelihood;
    if *count > 1.0 {
        *count -= 1.0;
        return true;
    }
    false
}

fn time(queue: &[OraclePacket], now: Time) -> Duration {
    queue.first().map_or(Duration::ZERO, |pkt| now - pkt.arrived)
}

impl DualPi2 {
    fn new(spec: DualPi2Spec) -> DualPi2 {
        DualPi2 {
            spec,
            lq: Vec::new(),
            cq: Vec::new(),
            lq_count: 0.0,
            cq_count: 0.0,
            p: 0.0,
            prevq: 0.0,
            last_update: Time::ZERO,
            credit: 0,
        }
    }

    fn tick(&mut self, now: Time) {
        while self.last_update + self.spec.update <= now {
            self.last_update += self.spec.update;
            let at = self.last_update;
            let curq = time(&self.cq, at).as_secs_f64().max(time(&self.lq, at).as_secs_f64());
            let target = self.spec.target.as_secs_f64();
            self.p += self.spec.alpha * (curq - target) + self.spec.beta * (curq - self.prevq);
            self.p = self.p.clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }

    fn laqm(&self, qdelay: Duration) -> f64 {
        let (min_th, range) = (self.spec.ramp_start, self.spec.ramp_range);
        if qdelay >= min_th + range {
            1.0
        } else if qdelay > min_th {
            (qdelay - min_th).as_secs_f64() / range.as_secs_f64()
        } else {
            0.0
        }
    }

    fn scheduler_says_lq(&mut self, now: Time) -> bool {
        if self.lq.is_empty() || self.cq.is_empty() {
            if let DualScheduler::Weighted(wc) = self.spec.scheduler {
                self.credit = 1514 * (i64::from(wc) - (100 - i64::from(wc)));
            }
            return !self.lq.is_empty();
        }
        match self.spec.scheduler {
            DualScheduler::TimeShifted(tshift) => time(&self.lq, now) + tshift >= time(&self.cq, now),
            // Linux: c_protection_credit.
            DualScheduler::Weighted(wc) => {
                let wc = i64::from(wc);
                let lq = self.credit <= 0;
                self.credit +=
                    if lq { wc * self.lq[0].len as i64 } else { -(100 - wc) * self.cq[0].len as i64 };
                lq
            }
        }
    }
}

impl QueueOracle for DualPi2 {
    fn enqueue(&mut self, pkt: OraclePacket, context: &mut OracleContext<'_>) {
        self.tick(context.now);
        let both: Vec<OraclePacket> = self.lq.iter().chain(&self.cq).copied().collect();
        if !context.fits(self.spec.limit, pkt.len, &both) {
            return context.drop(pkt, DropReason::QueueFull);
        }
        if (pkt.traffic_class & 3) % 2 == 1 {
            self.lq.push(pkt);
        } else {
            self.cq.push(pkt);
        }
    }

    fn dequeue(&mut self, context: &mut OracleContext<'_>) -> Option<OraclePacket> {
        self.tick(context.now);
        let k = self.spec.coupling;
        let (p_cl, p_c, p_cmax, p_lmax) = (k * self.p, self.p * self.p, (1.0 / (k * k)).min(1.0), 1.0);
        while !self.lq.is_empty() || !self.cq.is_empty() {
            if self.scheduler_says_lq(context.now) {
                let mut pkt = self.lq.remove(0);
                if p_cl < p_lmax {
                    let native = if self.lq.len() > self.spec.ramp_packets as usize {
                        self.laqm(context.now - pkt.arrived)
                    } else {
                        0.0
                    };
                    if recur(&mut self.lq_count, native.max(p_cl)) {
                        pkt.mark();
                    }
                } else {
                    if recur(&mut self.lq_count, p_c) {
                        context.drop(pkt, DropReason::Early);
                        continue;
                    }
                    if recur(&mut self.lq_count, p_cl) {
                        pkt.mark();
                    }
                }
                return Some(pkt);
            }
            let mut pkt = self.cq.remove(0);
            if recur(&mut self.cq_count, p_c) {
                if pkt.traffic_class & 3 == 0 || p_c >= p_cmax {
                    context.drop(pkt, DropReason::Early);
                    continue;
                }
                pkt.mark();
            }
            return Some(pkt);
        }
        None
    }
}
