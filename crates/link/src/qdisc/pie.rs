//! PIE, "Proportional Integral controller Enhanced" (RFC 8033): drops at arrival with a probability
//! that a controller adjusts from the queueing delay. Read Appendix A of the RFC first. Of the
//! options of §5 there are ECN (§5.1), de-randomization (§5.4) and the cap on adjustments (§5.5).
//! Deliberately otherwise:
//!
//! - The delay is measured, by timestamps (§4.3), not estimated from a departure rate (§5.2): they
//!   are free here.
//! - Once the queue has run empty there is no delay, as in Linux and ns-3. In Appendix A the delay
//!   of the last packet stays, so that the probability of an idle queue might never decay.
//! - The controller is always on. With §5.3 it sleeps until a third of the buffer is full: a hidden
//!   second threshold that depends on a hard limit nobody chose for it.

use super::context::{Fifo, Refused, Turn};
use super::{Ecn, Limit};
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Duration, Probability, Time};

/// Parameters of PIE. The default is that of RFC 8033 §4 and Appendix A, with Linux' limit of 1000
/// packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieSpec {
    /// The delay aimed at (QDELAY_REF).
    pub target: Duration,
    /// How often the probability is adjusted (T_UPDATE).
    pub update: Duration,
    /// For how long bursts pass untouched (MAX_BURST).
    pub burst: Duration,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's change, 1/s.
    pub beta: f64,
    /// With no more than two of these queued nothing is dropped (MEAN_PKTSIZE).
    pub mean_packet: Bytes,
    /// Up to this drop probability ECN-capable packets are marked instead (mark_ecnth, §5.1).
    pub mark_below: Probability,
    /// What is done to ECN-capable packets.
    pub ecn: Ecn,
    /// Spreads drops: none soon after another, one for certain in the end (§5.4).
    pub derandomize: bool,
    /// From a probability of 10 % on it rises by no more than 2 % at once (§5.5).
    pub cap_adjustment: bool,
    /// The hard limit; a newcomer that does not fit is dropped.
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

/// PIE at work: the variables of Appendix A, in its terms.
#[derive(Debug)]
pub(crate) struct Pie<P> {
    pub(crate) spec: PieSpec,
    pub(crate) fifo: Fifo<P>,
    drop_prob: f64,
    /// The probabilities since the last drop, added up (accu_prob).
    accumulated: f64,
    burst_allowance: Duration,
    delay: Duration,
    delay_old: Duration,
    /// The next adjustment; they are done late, in order, when a packet comes or goes.
    next_update: Time,
}

impl<P> Pie<P> {
    pub(crate) fn new(spec: PieSpec) -> Pie<P> {
        Pie {
            spec,
            fifo: Fifo::default(),
            drop_prob: 0.0,
            accumulated: 0.0,
            burst_allowance: Duration::ZERO,
            delay: Duration::ZERO,
            delay_old: Duration::ZERO,
            next_update: Time::ZERO.saturating_add(spec.update),
        }
    }

    pub(crate) fn enqueue(&mut self, mut packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        self.update_until(turn.now);
        let calm = self.delay < self.half_target() && self.delay_old < self.half_target();
        if self.drop_prob == 0.0 && calm {
            self.burst_allowance = self.spec.burst;
        }
        let selected = self.burst_allowance.is_zero() && self.selects(turn);
        let markable = self.spec.ecn == Ecn::Mark && self.drop_prob < self.spec.mark_below.get();
        if selected {
            self.accumulated = 0.0;
        }
        if selected && !(markable && packet.is_ect()) {
            return Err((DropReason::Early, packet));
        }
        let mut queued = self.fifo.volume();
        queued += turn.on_wire;
        if !self.spec.limit.has_room(packet.len, queued) {
            self.accumulated = 0.0;
            return Err((DropReason::QueueFull, packet));
        }
        if selected {
            turn.mark(&mut packet);
        }
        self.fifo.push(packet);
        Ok(())
    }

    pub(crate) fn dequeue(&mut self, turn: &mut Turn<'_, P>) -> Option<Held<P>> {
        self.update_until(turn.now);
        let packet = self.fifo.pop()?;
        let empty = self.fifo.volume().packets == 0;
        self.delay = if empty { Duration::ZERO } else { turn.now.since(packet.time) };
        Some(packet)
    }

    /// drop_early.
    fn selects(&mut self, turn: &mut Turn<'_, P>) -> bool {
        let slight = self.delay_old < self.half_target() && self.drop_prob < 0.2;
        if slight || self.fifo.volume().bytes <= 2 * self.spec.mean_packet.0 {
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
        turn.rng.unit_f64() < self.drop_prob
    }

    /// Every adjustment due by `now`. An idle queue comes to rest after some, and the others change
    /// nothing.
    fn update_until(&mut self, now: Time) {
        let period = self.spec.update.as_ps().max(1);
        while self.next_update <= now {
            if self.is_at_rest() {
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

    fn is_at_rest(&self) -> bool {
        let still = self.delay.is_zero() && self.delay_old.is_zero();
        still && self.drop_prob == 0.0 && self.burst_allowance.is_zero()
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
