//! The unit that limits the throughput, found by trying: each candidate gets a little more
//! capacity, and the workload runs again.
//!
//! ```text
//! 20 Mpps ─▶ a (100 ns) ─▶ b (130 ns)     a drops 10 of 20 Mpps, b drops 2.3 of 10
//!                                         a twice: 7.7 Mpps as before     b twice: 10 Mpps
//! ```
//!
//! The place of the losses says little: above, most frames are lost at `a`, and only more of `b`
//! helps. Candidates are the units that lose frames or are nearly always busy. A single candidate
//! needs no trial. If no trial gains anything, several units limit together, and the guess of the
//! first run remains.

use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::program::Program;
use crate::run::{RunError, run};
use crate::workload::Workload;
use serde::Serialize;

/// A run that forwards at least this share of the offered frames is not limited by the machine.
const CARRIES: f64 = 0.999;
/// A unit that is busy for at least this share of the time may limit the throughput.
const NEARLY_BUSY: f64 = 0.9;
/// Reasons to drop a frame that have nothing to do with the load.
const NOT_LOAD: [&str; 2] = ["loss", "down"];
/// A trial gains if it forwards more than this times as many frames.
const GAIN: f64 = 1.003;

/// The effect of a little more capacity in one unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remedy {
    /// The change: `egress: 1 → 2` for servers, cores or engines, `wire: 1Gbit → 2Gbit` for a rate.
    pub change: String,
    /// Frames forwarded per second before the change.
    pub before_pps: f64,
    /// Frames forwarded per second after the change.
    pub after_pps: f64,
    /// The unit that limits the throughput after the change.
    pub bottleneck: String,
}

/// Runs the same program and workload with the same seed on each machine: side by side, if the
/// caller has threads.
pub type Runs<'a> = &'a dyn Fn(&[Machine]) -> Result<Vec<Outcome>, RunError>;

/// A run that has given an outcome, and the way to run it on other machines.
#[derive(Clone, Copy)]
struct Trials<'a> {
    machine: &'a Machine,
    program: &'a Program,
    runs: Runs<'a>,
}

/// Determines the bottleneck of `outcome`, which [`run`] has given for the same arguments, and
/// writes it into the outcome. Runs the workload again for each candidate, if frames are lost and
/// there are several candidates.
pub fn find_bottleneck(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    outcome: &mut Outcome,
) -> Result<(), RunError> {
    find_bottleneck_by(machine, program, &one_by_one(program, workload, seed), outcome)
}

/// As [`find_bottleneck`], with trials by `runs`.
pub fn find_bottleneck_by(
    machine: &Machine,
    program: &Program,
    runs: Runs,
    outcome: &mut Outcome,
) -> Result<(), RunError> {
    Trials { machine, program, runs }.find(outcome)
}

/// Runs machines one after the other.
fn one_by_one<'a>(
    program: &'a Program,
    workload: &'a Workload,
    seed: u64,
) -> impl Fn(&[Machine]) -> Result<Vec<Outcome>, RunError> + 'a {
    move |machines| machines.iter().map(|machine| run(machine, program, workload, seed)).collect()
}

/// Adds capacity to the bottleneck of `outcome` and runs again: not advice but an experiment.
/// `None` if there is nothing to add.
pub fn remedy(
    machine: &Machine,
    program: &Program,
    workload: &Workload,
    seed: u64,
    outcome: &Outcome,
) -> Result<Option<Remedy>, RunError> {
    remedy_by(machine, program, &one_by_one(program, workload, seed), outcome)
}

/// As [`remedy`], with trials by `runs`.
pub fn remedy_by(
    machine: &Machine,
    program: &Program,
    runs: Runs,
    outcome: &Outcome,
) -> Result<Option<Remedy>, RunError> {
    let Some((wider, change)) = machine.widened(&outcome.bottleneck) else { return Ok(None) };
    let Some(mut after) = runs(std::slice::from_ref(&wider))?.pop() else { return Ok(None) };
    Trials { machine: &wider, program, runs }.find(&mut after)?;
    let (before_pps, after_pps) = (outcome.forwarded_pps, after.forwarded_pps);
    Ok(Some(Remedy { change, before_pps, after_pps, bottleneck: after.bottleneck }))
}

impl Trials<'_> {
    fn find(self, outcome: &mut Outcome) -> Result<(), RunError> {
        if outcome.share() >= CARRIES || outcome.deadlock.is_some() {
            return Ok(());
        }
        let candidates = self.candidates(outcome)?;
        if let [only] = &candidates[..] {
            outcome.bottleneck.clone_from(only);
            return Ok(());
        }
        let wider = |unit: String| self.machine.widened(&unit).map(|(machine, _)| (unit, machine));
        let (units, machines): (Vec<_>, Vec<_>) = candidates.into_iter().filter_map(wider).unzip();
        let mut best = outcome.forwarded_pps * GAIN;
        for (unit, trial) in units.into_iter().zip((self.runs)(&machines)?) {
            if trial.forwarded_pps > best {
                (best, outcome.bottleneck) = (trial.forwarded_pps, unit);
            }
        }
        Ok(())
    }

    /// The units on the way that lose frames or are nearly always busy, in the order of the file.
    fn candidates(self, outcome: &Outcome) -> Result<Vec<String>, RunError> {
        let route = self.program.bind(self.machine)?;
        let reason = |place: &str, name: &str| {
            place.strip_prefix(name).and_then(|rest| rest.strip_prefix(' ')).map(str::to_owned)
        };
        let loses = |name: &str| {
            let mut reasons = outcome.dropped.keys().filter_map(|place| reason(place, name));
            reasons.any(|reason| !NOT_LOAD.contains(&reason.as_str()))
        };
        let is_busy = |name: &str| outcome.units[name].busy >= NEARLY_BUSY;
        let names = self.machine.units().into_iter().enumerate();
        let on_the_way = names.filter(|(number, _)| route.legs.iter().any(|leg| leg.unit == *number));
        let names = on_the_way.map(|(_, name)| name);
        Ok(names.filter(|name| loses(name) || is_busy(name)).collect())
    }
}
