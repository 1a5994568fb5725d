//! PIE, "Proportional Integral controller Enhanced" (RFC 8033): drops at arrival with a probability
//! that a controller adjusts from the queueing delay. Read Appendix A of the RFC first. Of the
//! options of §5 there are ECN (§5.1), de-randomization (§5.4) and the cap on adjustments (§5.5).
//! Deliberate differences:
//!
//! - The delay is measured by timestamps (§4.3), which are free here, instead of estimated from a
//!   departure rate (§5.2).
//! - An empty queue has no delay, as in Linux and ns-3. In Appendix A the delay of the last packet
//!   stays, so that the probability of an idle queue might never decay.
//! - The controller is always active. In §5.3 it is off until a third of the buffer is full: a
//!   hidden second threshold that depends on a hard limit chosen for another purpose.

use super::Ecn;
use super::context::{QueueContext, Refused, Served};
use super::discipline::{Discipline, one_fifo};
use super::fifo::Fifo;
use super::limit::Limit;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Duration, Probability, Time};
use std::fmt;

/// Parameters of PIE. The defaults are those of RFC 8033 §4 and Appendix A, with the limit of 1000
/// packets that Linux has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieSpec {
    /// The target delay (QDELAY_REF).
    pub target: Duration,
    /// The time between adjustments of the probability (T_UPDATE).
    pub update: Duration,
    /// How long a burst passes without drops (MAX_BURST).
    pub burst: Duration,
    /// Weight of the difference from the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's change, 1/s.
    pub beta: f64,
    /// Nothing is dropped while at most twice this much is queued (MEAN_PKTSIZE).
    pub mean_packet: Bytes,
    /// Below this drop probability ECN-capable packets are marked instead (mark_ecnth, §5.1).
    pub mark_below: Probability,
    /// Whether ECN-capable packets are marked.
    pub ecn: Ecn,
    /// Spaces drops evenly: none soon after another, and one at the latest after a while (§5.4).
    pub derandomize: bool,
    /// Limits one increase to 2 % once the probability has reached 10 % (§5.5).
    pub cap_adjustment: bool,
    /// The hard limit; an arriving packet that does not fit is dropped.
    pub limit: Limit,
}

impl Default for PieSpec {
    fn default() -> PieSpec {
        PieSpec {
            target: Duration::from_ms(15),
            update: Duration::from_ms(15),
            burst: Duration::from_ms(150),
            alpha: 0.125,
            beta: 1.25,
            mean_packet: Bytes(1514),
            mark_below: Probability::new(0.1).expect("0.1 is a probability"),
            ecn: Ecn::Off,
            derandomize: false,
            cap_adjustment: false,
            limit: Limit::Packets(1000),
        }
    }
}

/// A FIFO under PIE, with the variables of Appendix A.
#[derive(Debug)]
pub(crate) struct PieQueue<P> {
    spec: PieSpec,
    fifo: Fifo<P>,
    drop_prob: f64,
    /// The sum of the probabilities since the last drop (accu_prob).
    accumulated: f64,
    burst_allowance: Duration,
    delay: Duration,
    delay_old: Duration,
    /// The next adjustment. Adjustments are made late, in order, when a packet arrives or leaves.
    next_update: Time,
}

impl<P> Discipline<P> for PieQueue<P> {
    one_fifo!(PieSpec);

    fn new(spec: &PieSpec) -> PieQueue<P> {
        PieQueue {
            spec: *spec,
            fifo: Fifo::default(),
            drop_prob: 0.0,
            accumulated: 0.0,
            burst_allowance: Duration::ZERO,
            delay: Duration::ZERO,
            delay_old: Duration::ZERO,
            next_update: Time::ZERO.saturating_add(spec.update),
        }
    }

    fn enqueue(&mut self, mut packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        self.update_until(context.now);
        let calm = self.delay < self.half_target() && self.delay_old < self.half_target();
        if self.drop_prob == 0.0 && calm {
            self.burst_allowance = self.spec.burst;
        }
        let selected = self.burst_allowance.is_zero() && self.selects(context);
        let markable = self.spec.ecn == Ecn::Mark && self.drop_prob < self.spec.mark_below.get();
        if selected {
            self.accumulated = 0.0;
        }
        if selected && !(markable && packet.is_ect()) {
            return Err((DropReason::Early, packet));
        }
        if !self.spec.limit.has_room(packet.len, self.fifo.backlog() + context.on_wire) {
            self.accumulated = 0.0;
            return Err((DropReason::QueueFull, packet));
        }
        if selected {
            context.mark(&mut packet);
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
        self.update_until(context.now);
        let Some(packet) = self.fifo.pop() else { return Served::Nothing };
        let empty = self.fifo.backlog().packets == 0;
        self.delay = if empty { Duration::ZERO } else { context.now.since(packet.time) };
        Served::Packet(packet)
    }

    fn reads_headers(spec: &PieSpec) -> bool {
        spec.ecn == Ecn::Mark
    }

    fn describe(spec: &PieSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pie target {} limit {}", spec.target, spec.limit)
    }
}

impl<P> PieQueue<P> {
    /// drop_early.
    fn selects(&mut self, context: &mut QueueContext<'_, P>) -> bool {
        let low = self.delay_old < self.half_target() && self.drop_prob < 0.2;
        if low || self.fifo.backlog().bytes <= 2 * self.spec.mean_packet.0 {
            return false;
        }
        if self.spec.derandomize {
            self.accumulated = if self.drop_prob == 0.0 { 0.0 } else { self.accumulated + self.drop_prob };
            match self.accumulated {
                sum if sum < 0.85 => return false,
                sum if sum >= 8.5 => return true,
                _ => {}
            }
        }
        context.rng.unit_f64() < self.drop_prob
    }

    /// Makes every adjustment due by `now`. An idle queue reaches a steady state, in which further
    /// adjustments change nothing and are skipped.
    fn update_until(&mut self, now: Time) {
        let period = self.spec.update.as_ps().max(1);
        while self.next_update <= now {
            if self.is_steady() {
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

    fn is_steady(&self) -> bool {
        let empty = self.delay.is_zero() && self.delay_old.is_zero();
        empty && self.drop_prob == 0.0 && self.burst_allowance.is_zero()
    }

    /// calculate_drop_prob.
    fn adjust(&mut self) {
        let (delay, old) = (self.delay.as_secs_f64(), self.delay_old.as_secs_f64());
        let step =
            self.spec.alpha * (delay - self.spec.target.as_secs_f64()) + self.spec.beta * (delay - old);
        let scale = match self.drop_prob {
            p if p < 0.000001 => 2048.0,
            p if p < 0.00001 => 512.0,
            p if p < 0.0001 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        let mut step = step / scale;
        if self.spec.cap_adjustment && self.drop_prob >= 0.1 {
            step = step.min(0.02);
        }
        self.drop_prob += step;
        if self.delay.is_zero() && self.delay_old.is_zero() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.delay_old = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.spec.update);
    }

    fn half_target(&self) -> Duration {
        Duration::from_ps(self.spec.target.as_ps() / 2)
    }
}
