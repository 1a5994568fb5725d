//! Laws of amounts: bytes of an answer, picoseconds of a pause.

use crate::law::{exponential, pareto};
use fastpath_units::Rng;
use std::sync::Arc;

/// The law of a random amount. Its mean is finite.
#[derive(Clone, PartialEq, Debug)]
pub enum AmountLaw {
    /// Always this much.
    Constant(u64),
    /// Exponential, with this mean.
    Exponential(u64),
    /// Pareto, with this mean and a shape above 1.
    Pareto {
        /// The mean.
        mean: u64,
        /// The exponent of the tail; above 1.
        shape: f64,
    },
    /// One of these, each with the same probability; never empty.
    Values(Arc<[u64]>),
}

impl AmountLaw {
    /// Returns an amount.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            AmountLaw::Constant(amount) => *amount,
            AmountLaw::Exponential(mean) => (*mean as f64 * exponential(rng)) as u64,
            AmountLaw::Pareto { mean, shape } => (*mean as f64 * pareto(*shape, rng)) as u64,
            AmountLaw::Values(values) => {
                let place = (rng.unit_f64() * values.len() as f64) as usize;
                values[place.min(values.len() - 1)]
            }
        }
    }
}
