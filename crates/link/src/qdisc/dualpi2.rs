//! DualPI2 (RFC 9332 Appendix A): one queue for L4S traffic, one for classic traffic, and one
//! controller for both, so that scalable and classic senders share the rate while L4S traffic sees
//! almost no delay. L4S packets carry ECT(1) or CE (RFC 9331 §4.1). Read Appendix A of the RFC
//! first, with the overload handling of Appendix A.2.
//!
//! ```text
//!            ┌─ ECT(1), CE ─▶ L ──▶ mark with max(native ramp or step, k·p′) ─┐
//!  packet ───┤                                                                ├─ scheduler ─▶ wire
//!            └─ all others ─▶ C ──▶ drop, or mark ECT(0), with p′² ───────────┘
//!                                └─ its delay ─▶ PI controller, every update ─▶ p′
//! ```

use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Duration, Time};
use std::fmt;

/// Parameters of DualPI2. The defaults are those of Appendix A.1 for a worst-case round-trip time
/// RTT_max of 100 ms: update = min(target, RTT_max/3), alpha = 0.1 · update / RTT_max², beta = 0.3
/// / RTT_max. Where A.1 leaves a choice, the scheduler is a FIFO shifted by 50 ms. The limit is 10
/// 000 packets instead of 250 ms at the rate, because the rate may change here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualPi2Spec {
    /// The target delay of the classic queue.
    pub target: Duration,
    /// The time between adjustments of the probability (T_update).
    pub update: Duration,
    /// Weight of the difference from the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's change, 1/s.
    pub beta: f64,
    /// The coupling factor k, above 0: L4S packets are marked with k times the base probability.
    pub coupling: f64,
    /// The delay from which L4S packets are marked with a rising probability (minTh).
    pub ramp_start: Duration,
    /// The additional delay at which that probability is 1 (range); with zero the ramp is a step.
    pub ramp_range: Duration,
    /// The ramp marks nothing while at most this many packets are left in the L4S queue (Th_len).
    pub ramp_packets: u32,
    /// Which of the two queues is served first.
    pub scheduler: DualScheduler,
    /// The hard limit of both queues together; an arriving packet that does not fit is dropped.
    pub limit: Limit,
}

/// Which of the two queues is served first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DualScheduler {
    /// The packet that has waited longest, with this much added to the waiting time of L4S packets.
    TimeShifted(Duration),
    /// Weighted round robin by credit, as in Linux (`classic_protection`): while both queues hold
    /// packets, the classic queue sends this percentage of the bytes, below 100.
    Weighted(u8),
}

impl Default for DualPi2Spec {
    fn default() -> DualPi2Spec {
        DualPi2Spec {
            target: Duration::from_ms(15),
            update: Duration::from_ms(15),
            alpha: 0.15,
            beta: 3.0,
            coupling: 2.0,
            ramp_start: Duration::from_us(800),
            ramp_range: Duration::from_us(400),
            ramp_packets: 1,
            scheduler: DualScheduler::TimeShifted(Duration::from_ms(50)),
            limit: Limit::Packets(10_000),
        }
    }
}

/// The frame size of the initial credit, by which the queue with the larger weight is served first.
const FRAME: i64 = 1514;

/// One of the two queues, with its accumulated likelihood (§A.1, recur).
#[derive(Debug)]
struct Subqueue<P> {
    fifo: Fifo<P>,
    count: f64,
}

impl<P> Subqueue<P> {
    fn new() -> Subqueue<P> {
        Subqueue { fifo: Fifo::default(), count: 0.0 }
    }

    /// recur: returns true with a given likelihood, evenly spaced instead of at random.
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }

    fn is_empty(&self) -> bool {
        self.fifo.backlog().packets == 0
    }

    /// Returns how long the first packet has waited; zero if there is none.
    fn delay(&self, now: Time) -> Duration {
        self.fifo.front().map_or(Duration::ZERO, |packet| now.since(packet.time))
    }
}

/// Two queues under DualPI2, with the RFC's names of variables.
#[derive(Debug)]
pub(crate) struct DualPi2Queue<P> {
    spec: DualPi2Spec,
    lq: Subqueue<P>,
    cq: Subqueue<P>,
    /// p′, the base probability.
    base: f64,
    /// prevq, the delay at the last adjustment.
    previous: Duration,
    /// The next adjustment. Adjustments are made late, in order, when a packet arrives or leaves.
    next_update: Time,
    /// The credit of the L4S queue in the weighted scheduler, in hundredths of bytes.
    credit: i64,
}

impl<P> Discipline<P> for DualPi2Queue<P> {
    type Spec = DualPi2Spec;

    fn new(spec: &DualPi2Spec) -> DualPi2Queue<P> {
        DualPi2Queue {
            spec: *spec,
            lq: Subqueue::new(),
            cq: Subqueue::new(),
            base: 0.0,
            previous: Duration::ZERO,
            next_update: Time::ZERO.saturating_add(spec.update),
            credit: 0,
        }
    }

    fn spec(&self) -> DualPi2Spec {
        self.spec
    }

    fn reconfigure(&mut self, _: Time, spec: &DualPi2Spec) -> bool {
        self.spec = *spec;
        true
    }

    fn backlog(&self) -> Volume {
        self.lq.fifo.backlog() + self.cq.fifo.backlog()
    }

    /// dualpi2_enqueue.
    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        self.update_until(context.now);
        if !self.spec.limit.has_room(packet.len, self.backlog() + context.on_wire) {
            return Err((DropReason::QueueFull, packet));
        }
        self.push_unchecked(packet);
        Ok(())
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        self.update_until(context.now);
        self.next(context).into()
    }

    fn push_unchecked(&mut self, packet: Held<P>) {
        // ECT(1) is 01 and CE is 11.
        let queue = if packet.traffic_class & 1 == 1 { &mut self.lq } else { &mut self.cq };
        queue.fifo.push(packet);
    }

    fn pop_unmanaged(&mut self) -> Option<Held<P>> {
        self.lq.fifo.pop().or_else(|| self.cq.fifo.pop())
    }

    fn reads_headers(_: &DualPi2Spec) -> bool {
        true
    }

    fn describe(spec: &DualPi2Spec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dualpi2 target {} limit {}", spec.target, spec.limit)
    }
}

impl<P> DualPi2Queue<P> {
    /// dualpi2_dequeue with the overload handling of Appendix A.2.
    fn next(&mut self, context: &mut QueueContext<'_, P>) -> Option<Held<P>> {
        // p_Cmax = min(1/k², 1), and p_Lmax = 1.
        let coupled = self.spec.coupling * self.base;
        let classic = self.base * self.base;
        let classic_max = (1.0 / (self.spec.coupling * self.spec.coupling)).min(1.0);
        while !self.lq.is_empty() || !self.cq.is_empty() {
            if self.l4s_is_next(context.now) {
                let mut packet = self.lq.fifo.pop()?;
                if coupled < 1.0 {
                    let native = self.ramp(context.now.since(packet.time));
                    if self.lq.recur(native.max(coupled)) {
                        context.mark(&mut packet);
                    }
                } else {
                    // Saturated: packets are dropped as in the classic queue.
                    if self.lq.recur(classic) {
                        context.drop(packet, DropReason::Early);
                        continue;
                    }
                    if self.lq.recur(coupled) {
                        context.mark(&mut packet);
                    }
                }
                return Some(packet);
            }
            let mut packet = self.cq.fifo.pop()?;
            if self.cq.recur(classic) {
                if !packet.is_ect() || classic >= classic_max {
                    context.drop(packet, DropReason::Early);
                    continue;
                }
                context.mark(&mut packet);
            }
            return Some(packet);
        }
        None
    }

    /// scheduler(): returns true for the L4S queue.
    fn l4s_is_next(&mut self, now: Time) -> bool {
        let [lq, cq] = [&self.lq, &self.cq].map(|queue| queue.fifo.front().map(|packet| packet.len));
        let (Some(lq), Some(cq)) = (lq, cq) else {
            if let DualScheduler::Weighted(percent) = self.spec.scheduler {
                self.credit = FRAME * (100 - 2 * i64::from(percent));
            }
            return lq.is_some();
        };
        match self.spec.scheduler {
            DualScheduler::TimeShifted(shift) => {
                self.lq.delay(now).saturating_add(shift) >= self.cq.delay(now)
            }
            DualScheduler::Weighted(percent) => {
                // Each queue pays with the share of the other, so that bytes follow shares.
                let percent = i64::from(percent);
                let l4s = self.credit >= 0;
                self.credit += match l4s {
                    true => -i64::from(lq) * percent,
                    false => i64::from(cq) * (100 - percent),
                };
                l4s
            }
        }
    }

    /// laqm, for a packet that has just been dequeued.
    fn ramp(&self, delay: Duration) -> f64 {
        if self.lq.fifo.backlog().packets <= u64::from(self.spec.ramp_packets) {
            return 0.0;
        }
        let (start, range) = (self.spec.ramp_start, self.spec.ramp_range);
        if delay >= start.saturating_add(range) {
            return 1.0;
        }
        // The numerator is 0 below the start. A step has no range to divide by.
        delay.saturating_sub(start).as_secs_f64() / range.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Makes every adjustment due by `now` (dualpi2_update). With empty queues and p′ = 0 further
    /// adjustments change nothing and are skipped.
    fn update_until(&mut self, now: Time) {
        let period = self.spec.update.as_ps().max(1);
        while self.next_update <= now {
            let empty = self.lq.is_empty() && self.cq.is_empty();
            if empty && self.base == 0.0 && self.previous.is_zero() {
                let missed = now.since(self.next_update).as_ps() / period;
                self.next_update = self.next_update.saturating_add(Duration::from_ps(missed * period));
            } else {
                self.adjust();
            }
            self.next_update = match self.next_update.checked_add(Duration::from_ps(period)) {
                Some(next) => next,
                None => return,
            };
        }
    }

    fn adjust(&mut self) {
        let at = self.next_update;
        // A.2: the longer of both delays, so that L4S traffic alone is controlled too.
        let delay = self.cq.delay(at).max(self.lq.delay(at));
        let [now, target, before] = [delay, self.spec.target, self.previous].map(Duration::as_secs_f64);
        let step = self.spec.alpha * (now - target) + self.spec.beta * (now - before);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.previous = delay;
    }
}
