//! What a pipe does that holds no packet: it has no rate, no delay and nothing else that waits, so
//! the fate of a packet is decided when it arrives, by a few draws. Such a pipe can be executed
//! where packets cannot be held.

use crate::impairment::{Chance, CorruptSpec, GilbertElliott, LossSpec};
use crate::qdisc::{Ecn, QueueSpec};
use crate::spec::{LinkState, PipeSpec};
use fastpath_units::Probability;

/// A pipe that holds nothing. For a packet that arrives it draws, in this order: the loss, the loss
/// at the egress, the duplication, the corruption, and the seed of a corruption. A lost packet that
/// is marked instead goes on; after a loss nothing is drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct InstantSpec {
    /// Every packet is dropped, without a draw.
    pub is_down: bool,
    /// Loss at the entrance.
    pub loss: InstantLoss,
    /// ECN-capable packets are marked instead of being lost at the entrance.
    pub marks: bool,
    /// Loss at the exit.
    pub egress_loss: InstantLoss,
    /// Packets that leave twice; `None`: nothing is drawn.
    pub duplicate: Option<Chance>,
    /// Packets that leave with one flipped bit; `None`: nothing is drawn.
    pub corrupt: Option<Chance>,
}

/// A law of loss with a state of a few bits.
#[derive(Clone, PartialEq, Debug)]
pub enum InstantLoss {
    /// No packet is lost; nothing is drawn.
    Never,
    /// One draw.
    Chance(Chance),
    /// Two draws.
    GilbertElliott(GilbertElliott),
}

impl InstantSpec {
    /// Returns what a pipe does if it holds no packet.
    ///
    /// # Errors
    /// What it has that needs more: `a rate`, `a delay`, ….
    pub fn of(spec: &PipeSpec) -> Result<InstantSpec, &'static str> {
        // Overhead and framing change nothing without a rate.
        let PipeSpec { rate, paused, delay, loss, queue, egress_loss, jitter, reorder, .. } = spec;
        let PipeSpec { duplicate, corrupt, opportunities, slots, loss_ecn, cross, state, .. } = spec;
        let waits = [
            (rate.is_some(), "a rate"),
            (*paused, "a rate of 0"),
            (!delay.is_zero(), "a delay"),
            (jitter.is_some(), "jitter"),
            (reorder.is_some(), "reordering"),
            (opportunities.is_some(), "opportunities"),
            (slots.is_some(), "slots"),
            (cross.is_some(), "cross traffic"),
            (!matches!(queue, QueueSpec::DropTail(_)), "a queue discipline"),
            (!duplicate.later.is_zero(), "copies that leave later"),
        ];
        if let Some((_, what)) = waits.into_iter().find(|(has_it, _)| *has_it) {
            return Err(what);
        }
        let corrupt = match corrupt {
            None => None,
            Some(CorruptSpec::Packets(chance)) => Some(*chance),
            Some(CorruptSpec::Bits(_)) => return Err("a bit error ratio"),
            Some(CorruptSpec::Bounded(_)) => return Err("corruption with a bound or a filter"),
            Some(CorruptSpec::UdpPayload(_)) => return Err("corruption of UDP payload"),
        };
        Ok(InstantSpec {
            is_down: *state == LinkState::Down,
            loss: InstantLoss::of(loss)?,
            marks: *loss_ecn == Ecn::Mark,
            egress_loss: InstantLoss::of(egress_loss)?,
            duplicate: (!duplicate.is_never()).then_some(duplicate.chance),
            corrupt,
        })
    }

    /// Returns whether packets pass unchanged and without a draw.
    pub fn is_clear(&self) -> bool {
        let InstantSpec { is_down, loss, marks: _, egress_loss, duplicate, corrupt } = self;
        let draws = [loss, egress_loss].into_iter().any(|loss| *loss != InstantLoss::Never);
        !is_down && !draws && duplicate.is_none() && corrupt.is_none()
    }
}

impl InstantLoss {
    fn of(spec: &LossSpec) -> Result<InstantLoss, &'static str> {
        Ok(match spec {
            LossSpec::Never => InstantLoss::Never,
            LossSpec::Uniform(p) => InstantLoss::Chance((*p).into()),
            LossSpec::Correlated(chance) => InstantLoss::Chance(*chance),
            LossSpec::Bounded(_) => return Err("loss with a bound or a filter"),
            LossSpec::GilbertElliott(law) => InstantLoss::GilbertElliott(*law),
            LossSpec::FourState(_) => return Err("loss by four states"),
            LossSpec::Runs(_) => return Err("loss in runs"),
            LossSpec::Plan(_) => return Err("planned loss"),
        })
    }
}

/// A [`Chance`] as integers, for executors without floating point. Exact: they hit where
/// [`Chance`]'s own draws hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChanceBounds {
    /// Without correlation: the 53 upper bits of a draw hit below this. With correlation: the mix,
    /// of 32 bits, hits below this.
    pub below: u64,
    /// The weight of the mix before, in 2⁻³²; 0: no correlation.
    pub weight: u64,
}

impl From<Chance> for ChanceBounds {
    fn from(chance: Chance) -> ChanceBounds {
        let Chance { probability, correlation } = chance;
        if correlation.is_never() {
            return ChanceBounds { below: bound(probability), weight: 0 };
        }
        // As in `ChanceState::draw`.
        let weight = (correlation.get() * f64::from(u32::MAX)) as u64 + 1;
        ChanceBounds { below: (probability.get() * 4_294_967_296.0).ceil() as u64, weight }
    }
}

/// Returns the bound below which the 53 upper bits of a draw hit with probability `p`.
pub fn bound(p: Probability) -> u64 {
    // A power of two changes only the exponent, so this is exact.
    (p.get() * (1u64 << 53) as f64).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impairment::{Duplication, FourState};
    use fastpath_units::{Duration, Rate, Rng};

    #[test]
    fn what_waits_is_named() {
        let default = PipeSpec::default();
        assert!(InstantSpec::of(&default).is_ok_and(|spec| spec.is_clear()));
        let half = Probability::new(0.5).unwrap();
        let table = [
            (PipeSpec { rate: Rate::from_bps(1), ..default.clone() }, "a rate"),
            (PipeSpec { delay: Duration::from_ns(1), ..default.clone() }, "a delay"),
            (PipeSpec { corrupt: Some(CorruptSpec::Bits(half)), ..default.clone() }, "a bit error ratio"),
            (
                PipeSpec {
                    duplicate: Duplication { chance: half.into(), later: Duration::from_ms(1) },
                    ..default.clone()
                },
                "copies that leave later",
            ),
            (
                PipeSpec { loss: LossSpec::FourState(FourState::default()), ..default.clone() },
                "loss by four states",
            ),
        ];
        for (spec, what) in table {
            assert_eq!(InstantSpec::of(&spec), Err(what));
        }
        let lossy = PipeSpec { loss: LossSpec::Uniform(half), ..default };
        assert!(InstantSpec::of(&lossy).is_ok_and(|spec| !spec.is_clear()));
    }

    #[test]
    fn integers_hit_where_the_probability_hits() {
        let mut rng = Rng::new(9);
        for p in [0.0, 1e-9, 0.01, 0.3, 0.5, 0.999, 1.0] {
            let p = Probability::new(p).unwrap();
            for _ in 0..10_000 {
                let mut copy = rng.clone();
                assert_eq!(p.draw(&mut copy), rng.next_u64() >> 11 < bound(p), "{p}");
            }
        }
    }
}
