//! The arrivals of cross traffic.

use super::exact::PS_PER_S;
use crate::cross::{self, CrossLaw, CrossSpec};
use fastpath_units::{Duration, Rng, Time, math};

/// Returns when packets of `spec` arrive from `start` on. `overhead` is that of the link, and `rng`
/// the generator of its pipe.
pub fn cross_arrivals(
    spec: CrossSpec,
    overhead: u32,
    rng: &Rng,
    start: Time,
) -> impl Iterator<Item = Time> + use<> {
    let bits = (u128::from(spec.packet.get()) + u128::from(overhead)) * 8;
    let rate = u128::from(spec.rate.as_bps());
    let mut rng = cross::generator(rng);
    let mut at = start;
    (0u128..).map(move |number| match spec.law {
        CrossLaw::Constant => start + Duration::from_ps((number * bits * PS_PER_S / rate) as u64),
        CrossLaw::Poisson => {
            let mean = bits as f64 * 1e12 / rate as f64;
            let gap = (-math::ln(1.0 - rng.unit_f64()) * mean) as u64;
            // Two packets behind the first do not arrive together.
            at += Duration::from_ps(if number == 0 { gap } else { gap.max(1) });
            at
        }
    })
}
