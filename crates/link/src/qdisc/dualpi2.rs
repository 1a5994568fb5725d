//! DualPI2 (RFC 9332 Appendix A): a queue for L4S traffic beside one for all other, one controller
//! for both, so that scalable and classic senders share the rate while the first see almost no
//! delay. L4S is what says ECT(1) or CE (RFC 9331 §4.1). Read Appendix A of the RFC first, with the
//! overload handling of Appendix A.2.
//!
//! ```text
//!            ┌─ ECT(1), CE ─▶ L ──▶ mark with max(native ramp or step, k·p′) ─┐
//!  packet ───┤                                                                ├─ scheduler ─▶ wire
//!            └─ all other ──▶ C ──▶ drop, or mark ECT(0), with p′² ───────────┘
//!                                └─ its delay ─▶ PI controller, every update ─▶ p′
//! ```

use super::Limit;
use super::context::{Fifo, Refused, Turn};
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Duration, Time};

/// Parameters of DualPI2. The default is that of Appendix A.1 for a worst-case round trip RTT_max
/// of 100 ms: an update every min(target, RTT_max/3), alpha = 0.1 · update / RTT_max², beta = 0.3 /
/// RTT_max. Where it leaves a choice: a FIFO shifted by 50 ms, and a limit of 10 000 packets where
/// A.1 has 250 ms of the rate, which here may change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualPi2Spec {
    /// The delay of the classic queue aimed at.
    pub target: Duration,
    /// How often the probability is adjusted (T_update).
    pub update: Duration,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's change, 1/s.
    pub beta: f64,
    /// How much likelier L4S packets are marked than the controller says (the coupling factor k),
    /// above 0.
    pub coupling: f64,
    /// From this delay on L4S packets are marked with a rising probability (minTh) …
    pub ramp_start: Duration,
    /// … which is 1 this much later (range); zero makes a step of the ramp.
    pub ramp_range: Duration,
    /// With no more than this many packets left in the L4S queue its ramp marks nothing (Th_len).
    pub ramp_packets: u32,
    /// Who goes first.
    pub scheduler: DualScheduler,
    /// The hard limit of both queues together; a newcomer that does not fit is dropped.
    pub limit: Limit,
}

/// Which of the two queues goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DualScheduler {
    /// The packet that has waited longest goes first, L4S packets being taken for older by this
    /// much.
    TimeShifted(Duration),
    /// The classic queue may send this many of every hundred bytes while both are waiting, less
    /// than 100: a weighted round robin by credit, as in Linux (`classic_protection`).
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

/// The frame by which the weighted scheduler lets the heavier queue begin when both wait.
const FRAME: i64 = 1514;

/// One of the queues with its count of likelihood (§A.1, recur).
#[derive(Debug)]
struct Side<P> {
    fifo: Fifo<P>,
    count: f64,
}

impl<P> Side<P> {
    fn new() -> Side<P> {
        Side { fifo: Fifo::default(), count: 0.0 }
    }

    /// recur: true with a given likelihood, evenly spread instead of at random.
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }

    fn is_empty(&self) -> bool {
        self.fifo.volume().packets == 0
    }

    /// The time its first packet has waited; none if there is none.
    fn delay(&self, now: Time) -> Duration {
        self.fifo.front().map_or(Duration::ZERO, |packet| now.since(packet.time))
    }
}

/// DualPI2 at work, with the RFC's names for its variables.
#[derive(Debug)]
pub(crate) struct DualPi2<P> {
    pub(crate) spec: DualPi2Spec,
    lq: Side<P>,
    cq: Side<P>,
    /// p′, the base probability.
    base: f64,
    /// prevq, the delay at the last adjustment.
    previous: Duration,
    /// The next adjustment; they are done late, in order, when a packet comes or goes.
    next_update: Time,
    /// What the weighted scheduler owes the L4S queue, in hundredths of bytes.
    credit: i64,
}

impl<P> DualPi2<P> {
    pub(crate) fn new(spec: DualPi2Spec) -> DualPi2<P> {
        DualPi2 {
            spec,
            lq: Side::new(),
            cq: Side::new(),
            base: 0.0,
            previous: Duration::ZERO,
            next_update: Time::ZERO.saturating_add(spec.update),
            credit: 0,
        }
    }

    pub(crate) fn waiting(&self) -> Volume {
        let mut waiting = self.lq.fifo.volume();
        waiting += self.cq.fifo.volume();
        waiting
    }

    /// dualpi2_enqueue.
    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        self.update_until(turn.now);
        let mut queued = self.waiting();
        queued += turn.on_wire;
        if !self.spec.limit.has_room(packet.len, queued) {
            return Err((DropReason::QueueFull, packet));
        }
        self.adopt(packet);
        Ok(())
    }

    pub(crate) fn adopt(&mut self, packet: Held<P>) {
        // ECT(1) is 01 and CE is 11.
        let side = if packet.traffic_class & 1 == 1 { &mut self.lq } else { &mut self.cq };
        side.fifo.push(packet);
    }

    /// dualpi2_dequeue with the overload handling of Appendix A.2.
    pub(crate) fn dequeue(&mut self, turn: &mut Turn<'_, P>) -> Option<Held<P>> {
        self.update_until(turn.now);
        // p_Cmax = min(1/k², 1), and p_Lmax = 1.
        let coupled = self.spec.coupling * self.base;
        let classic = self.base * self.base;
        let classic_max = (1.0 / (self.spec.coupling * self.spec.coupling)).min(1.0);
        while !self.lq.is_empty() || !self.cq.is_empty() {
            if self.l4s_is_next(turn.now) {
                let mut packet = self.lq.fifo.pop()?;
                if coupled < 1.0 {
                    let native = self.ramp(turn.now.since(packet.time));
                    if self.lq.recur(native.max(coupled)) {
                        turn.mark(&mut packet);
                    }
                } else {
                    // Saturated: as for classic traffic, a drop is the signal.
                    if self.lq.recur(classic) {
                        turn.drop(packet, DropReason::Early);
                        continue;
                    }
                    if self.lq.recur(coupled) {
                        turn.mark(&mut packet);
                    }
                }
                return Some(packet);
            }
            let mut packet = self.cq.fifo.pop()?;
            if self.cq.recur(classic) {
                if !packet.is_ect() || classic >= classic_max {
                    turn.drop(packet, DropReason::Early);
                    continue;
                }
                turn.mark(&mut packet);
            }
            return Some(packet);
        }
        None
    }

    /// scheduler(): true for the L4S queue.
    fn l4s_is_next(&mut self, now: Time) -> bool {
        let [lq, cq] = [&self.lq, &self.cq].map(|side| side.fifo.front().map(|packet| packet.len));
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
                // Each pays with the other's share, so that their bytes are as their shares.
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

    /// laqm, for a packet that has just been taken out.
    fn ramp(&self, delay: Duration) -> f64 {
        if self.lq.fifo.volume().packets <= u64::from(self.spec.ramp_packets) {
            return 0.0;
        }
        let (start, range) = (self.spec.ramp_start, self.spec.ramp_range);
        if delay >= start.saturating_add(range) {
            return 1.0;
        }
        // Below the start there is nothing, and a step has no range to divide by.
        delay.saturating_sub(start).as_secs_f64() / range.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Every adjustment due by `now`: dualpi2_update. When nothing waits and p′ has come to rest
    /// the others change nothing.
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
        // A.2: the longer of both, so that L4S traffic alone is controlled too.
        let delay = self.cq.delay(at).max(self.lq.delay(at));
        let [now, target, before] = [delay, self.spec.target, self.previous].map(Duration::as_secs_f64);
        let step = self.spec.alpha * (now - target) + self.spec.beta * (now - before);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.previous = delay;
    }

    /// The next packet in some fixed order, for another discipline to take over.
    pub(crate) fn take(&mut self) -> Option<Held<P>> {
        self.lq.fifo.pop().or_else(|| self.cq.fifo.pop())
    }
}
