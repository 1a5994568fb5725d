//! Simulation of queues, event by event, with 95 % intervals from batch means: for queues without
//! a formula, and as a test of the formulas.

mod batches;
mod layout;
mod machine;

use super::formula::QueueError;
use super::solve::check;
use super::system::{Evidence, QueueAnswer, Queueing};
use batches::BATCHES;
use layout::Layout;
use machine::QueueMachine;

/// Fewest customers of a simulation.
const SIMULATED_MIN: u64 = 10_000;
/// Most customers of a simulation.
const SIMULATED_MAX: u64 = 1_000_000_000;

/// How to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulationOptions {
    /// The seed. The same seed gives the same figures.
    pub seed: u64,
    /// Number of customers that leave, after the first, which are not counted.
    pub customers: u64,
}

/// Simulates a queue, with these percentiles (in percent).
///
/// # Errors
/// [`QueueError`] for a queue that grows without bound, for numbers out of range, and for times of
/// which only the variation is known.
pub fn simulate(
    queue: &Queueing,
    percents: &[f64],
    options: SimulationOptions,
) -> Result<QueueAnswer, QueueError> {
    check(queue)?;
    let SimulationOptions { seed, customers } = options;
    if !(SIMULATED_MIN..=SIMULATED_MAX).contains(&customers) {
        return Err(QueueError::Refused(format!(
            "{customers} customers: write a number from {SIMULATED_MIN} to {SIMULATED_MAX}"
        )));
    }
    let layout = Layout::of(queue)?;
    let mut machine = QueueMachine::new(&layout, seed);
    let batch = customers / BATCHES as u64;
    // The queue starts empty. The first batch is not counted.
    machine.run(batch);
    machine.clear();
    let mut batches = batches::Batches::new(&layout, percents);
    for _ in 0..BATCHES {
        machine.run(batch);
        batches.add(&mut machine.tallies());
        machine.clear();
    }
    let (total, parts, warnings) = batches.finish();
    let method = format!("simulated: seed {seed}, {} customers", batch * BATCHES as u64);
    Ok(QueueAnswer { method, evidence: Evidence::Simulated, total, parts, warnings })
}

#[cfg(test)]
mod tests;
