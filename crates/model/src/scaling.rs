//! How much faster several workers run one network than one does, from measured costs.
//!
//! Every worker runs a part: a share of all packets at nodes. A frame that passes from one part to
//! another costs both of them a handover. The busiest worker decides:
//!
//! ```text
//!  speed-up = 1 / max over parts of (work · slowdown + crossings · handover)
//! ```
//!
//! The slowdown is what a packet at a node costs more beside other workers, which share memory and
//! caches, and what the shares do not know of the real load. Both costs are in packets at nodes.

use crate::Estimate;
use serde::{Deserialize, Serialize};

/// The load of one worker, for each packet at a node of the whole network.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PartLoad {
    /// Its share of packets at nodes, 0 to 1. The shares of all parts add up to 1.
    pub work: f64,
    /// Frames that it passes to others or takes from them.
    pub crossings: f64,
}

/// What running side by side costs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScalingCosts {
    /// The cost of a frame that passes on, for each of the two workers, in packets at nodes, at
    /// least 0.
    pub handover: Estimate,
    /// The factor of the cost of a packet at a node beside other workers, above 0.
    pub slowdown: Estimate,
}

impl ScalingCosts {
    /// The costs before anything is measured: a handover copies the frame twice, which takes a
    /// tenth to six tenths of a packet at a node.
    pub const UNMEASURED: ScalingCosts = ScalingCosts {
        handover: Estimate { value: 0.25, low: 0.1, high: 0.6 },
        slowdown: Estimate { value: 1.0, low: 0.95, high: 1.1 },
    };

    /// Returns the speed-up of parts over one worker, with a core for each. Its interval has the
    /// ends of both costs; without parts it is 1.
    pub fn speedup(&self, parts: &[PartLoad]) -> Estimate {
        let at = |handover: f64, slowdown: f64| {
            let busiest = parts.iter().map(|part| part.work * slowdown + part.crossings * handover);
            let busiest = busiest.fold(0.0, f64::max);
            if busiest > 0.0 { 1.0 / busiest } else { 1.0 }
        };
        let ScalingCosts { handover, slowdown } = self;
        Estimate {
            value: at(handover.value, slowdown.value),
            low: at(handover.high, slowdown.high),
            high: at(handover.low, slowdown.low),
        }
    }

    /// Returns the costs with the slowdown that a measured speed-up of these parts shows, by a
    /// measured handover.
    pub fn calibrated(parts: &[PartLoad], speedup: Estimate, handover: Estimate) -> ScalingCosts {
        let busiest = parts.iter().max_by(|a, b| a.work.total_cmp(&b.work));
        let PartLoad { work, crossings } = busiest.copied().unwrap_or(PartLoad { work: 1.0, crossings: 0.0 });
        let slowdown = |speedup: f64| ((1.0 / speedup - crossings * handover.value) / work).max(0.01);
        let slowdown = Estimate {
            value: slowdown(speedup.value),
            low: slowdown(speedup.high),
            high: slowdown(speedup.low),
        };
        ScalingCosts { handover, slowdown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(crossings: f64) -> [PartLoad; 2] {
        [PartLoad { work: 0.5, crossings }; 2]
    }

    #[test]
    fn the_busiest_worker_decides() {
        let free = ScalingCosts { handover: Estimate::exact(0.0), slowdown: Estimate::exact(1.0) };
        assert_eq!(free.speedup(&halves(0.3)), Estimate::exact(2.0));
        let uneven = [PartLoad { work: 0.8, crossings: 0.0 }, PartLoad { work: 0.2, crossings: 0.0 }];
        assert_eq!(free.speedup(&uneven), Estimate::exact(1.25));
        assert_eq!(free.speedup(&[]), Estimate::exact(1.0));
        let costly = ScalingCosts { handover: Estimate { value: 0.5, low: 0.25, high: 1.0 }, ..free };
        let found = costly.speedup(&halves(0.25));
        assert_eq!((found.value, found.low, found.high), (1.6, 1.0 / 0.75, 1.0 / 0.5625));
    }

    #[test]
    fn a_measured_speedup_is_predicted_again_and_its_spread_widens_others() {
        let measured = Estimate { value: 1.6, low: 1.5, high: 1.7 };
        let costs = ScalingCosts::calibrated(&halves(0.25), measured, Estimate::exact(0.2));
        let again = costs.speedup(&halves(0.25));
        for (found, expected) in [(again.value, 1.6), (again.low, 1.5), (again.high, 1.7)] {
            assert!((found - expected).abs() < 1e-9, "{again:?}");
        }
        let quarters = costs.speedup(&[PartLoad { work: 0.25, crossings: 0.1 }; 4]);
        assert!(quarters.low < quarters.value && quarters.value < quarters.high && quarters.high < 4.0);
    }
}
