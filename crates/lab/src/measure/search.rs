//! The highest rate a device carries within a loss ratio (RFC 2544 §26.1), searched as MLRsearch does
//! (draft-ietf-bmwg-mlrsearch): several goals at once, short trials first, a load judged by the majority of its trials.
//!
//! Pure: a trial is an argument. Not the whole draft: all goals share the final duration, width and majority rule.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;

/// Trials at one load before it is judged.
const TRIALS: usize = 3;
/// Durations before the final one are shorter by this factor each.
const SHORTER: u32 = 4;
const PHASES: u32 = 3;
/// Most loads tried per goal and phase: 2⁻²⁰ of the range.
const LOADS_MAX: usize = 40;

/// What is searched for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Goal {
    /// Share of packets that may be lost, 0 … 1: 0 is the no-drop rate, more a partial-drop rate.
    pub loss_ratio: f64,
}

/// What one trial found.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Packets the source wanted to send.
    pub offered: u64,
    /// Packets that came through.
    pub forwarded: u64,
    /// Pauses of the machine that were left out.
    pub pauses: u64,
}

/// A goal's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The goal.
    pub goal: Goal,
    /// The highest load that met the goal, packets/s.
    pub lower_pps: f64,
    /// The lowest load that did not, packets/s; none when the highest load possible still met it.
    pub upper_pps: Option<f64>,
    /// Trials spent.
    pub trials: usize,
    /// Pauses of the machine that were left out of them.
    #[serde(default)]
    pub pauses: u64,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum SearchError {
    /// Even the lowest load loses too much.
    #[error(
        "even {load_pps:.0} packets/s lose more than {:.3} %: the machine is too busy, or the queue too short", loss_ratio * 100.0
    )]
    Hopeless {
        /// The lowest load tried.
        load_pps: f64,
        /// The goal.
        loss_ratio: f64,
    },
    /// Loads that are no range.
    #[error("loads from {least} to {most} packets/s: must be above 0 and in order")]
    Range {
        /// The lowest.
        least: f64,
        /// The highest.
        most: f64,
    },
}

impl Trial {
    fn loss(&self) -> f64 {
        1.0 - self.forwarded as f64 / self.offered.max(1) as f64
    }
}

/// Searches all `goals` between the loads `least` and `most` (packets/s), to a relative width of `width`, with final
/// trials of `duration`.
///
/// # Errors
/// [`SearchError`] for loads that are no range, or when even the lowest loses too much.
pub fn search(
    goals: &[Goal],
    (least, most): (f64, f64),
    width: f64,
    duration: Duration,
    mut trial: impl FnMut(f64, Duration) -> Trial,
) -> Result<Vec<Found>, SearchError> {
    if !(least > 0.0 && least < most && most.is_finite()) {
        return Err(SearchError::Range { least, most });
    }
    let mut answers = Vec::new();
    for &goal in goals {
        let (mut spent, mut pauses) = (0, 0);
        let mut good = |load: f64, duration: Duration| {
            let mut met = 0;
            for done in 1..=TRIALS {
                spent += 1;
                let trial = trial(load, duration);
                pauses += trial.pauses;
                met += usize::from(trial.loss() <= goal.loss_ratio);
                // The rest cannot change the majority.
                if 2 * met > TRIALS || 2 * (done - met) > TRIALS {
                    break;
                }
            }
            2 * met > TRIALS
        };
        let (mut lower, mut upper) = (least, most);
        let mut ceiling_holds = false;
        for phase in (0..PHASES).rev() {
            let time = duration / SHORTER.pow(phase);
            // Wider in the short phases, each of which hands its bounds on to be checked again.
            let width = width * f64::from(1 << phase);
            (lower, upper, ceiling_holds) = narrow(&mut good, (least, most), (lower, upper), width, time);
            if lower <= 0.0 {
                return Err(SearchError::Hopeless { load_pps: least, loss_ratio: goal.loss_ratio });
            }
        }
        let upper_pps = (!ceiling_holds).then_some(upper);
        answers.push(Found { goal, lower_pps: lower, upper_pps, trials: spent, pauses });
    }
    Ok(answers)
}

/// Bounds checked with trials of `time`: the lower is good (0 if none is), the upper is not, unless the highest load
/// of all is good too.
fn narrow(
    good: &mut impl FnMut(f64, Duration) -> bool,
    (least, most): (f64, f64),
    (mut lower, mut upper): (f64, f64),
    width: f64,
    time: Duration,
) -> (f64, f64, bool) {
    // Bounds of a shorter phase may not hold now: step outwards, further each time.
    let mut step = (upper - lower).max(width * lower);
    while !good(lower, time) {
        if lower <= least {
            return (0.0, upper, false);
        }
        upper = lower;
        lower = (lower - step).max(least);
        step *= 2.0;
    }
    while good(upper, time) {
        if upper >= most {
            return (upper, upper, true);
        }
        lower = upper;
        upper = (upper + step).min(most);
        step *= 2.0;
    }
    for _ in 0..LOADS_MAX {
        if upper - lower <= width * upper {
            break;
        }
        let middle = f64::midpoint(lower, upper);
        if good(middle, time) { lower = middle } else { upper = middle }
    }
    (lower, upper, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Rng;

    const NDR: Goal = Goal { loss_ratio: 0.0 };
    const PDR: Goal = Goal { loss_ratio: 0.005 };

    /// A device that carries `capacity` packets/s and drops the rest.
    fn device(capacity: f64) -> impl FnMut(f64, Duration) -> Trial {
        move |load, duration| {
            let offered = (load * duration.as_secs_f64()) as u64;
            let forwarded = (load.min(capacity) * duration.as_secs_f64()) as u64;
            Trial { offered, forwarded, ..Trial::default() }
        }
    }

    #[test]
    fn the_rate_without_loss_lies_between_the_bounds() {
        for capacity in [2e4, 1e6, 7.3e6, 9.9e6] {
            let found =
                search(&[NDR, PDR], (1e4, 1e7), 0.005, Duration::from_secs(1), device(capacity)).unwrap();
            let [ndr, pdr] = &found[..] else { panic!("two goals") };
            let upper = ndr.upper_pps.unwrap();
            assert!(ndr.lower_pps <= capacity + 2.0 && capacity - 2.0 <= upper, "{ndr:?} {capacity}");
            assert!(upper - ndr.lower_pps <= 0.005 * upper * 1.001, "{ndr:?}");
            assert!(pdr.lower_pps >= ndr.lower_pps * 0.995, "{found:?}");
        }
    }

    #[test]
    fn a_device_faster_than_the_source_has_no_upper_bound() {
        let found = search(&[NDR], (1e4, 1e6), 0.01, Duration::from_secs(1), device(1e9)).unwrap();
        assert_eq!((found[0].upper_pps, found[0].lower_pps), (None, 1e6));
    }

    #[test]
    fn a_device_that_always_loses_is_hopeless() {
        let error = search(&[PDR], (1e4, 1e6), 0.01, Duration::from_secs(1), device(1e3)).unwrap_err();
        assert!(error.to_string().starts_with("even 10000 packets/s lose more than 0.500 %"), "{error}");
    }

    #[test]
    fn pauses_in_one_trial_of_ten_do_not_move_the_majority() {
        let mut rng = Rng::new(5);
        let mut clean = device(3e6);
        let paused = |load: f64, duration: Duration| {
            let trial = clean(load, duration);
            let lost = if rng.below(10) == 0 { trial.forwarded / 50 } else { 0 };
            Trial { forwarded: trial.forwarded - lost, ..trial }
        };
        let found = search(&[NDR], (1e4, 1e7), 0.01, Duration::from_secs(1), paused).unwrap();
        assert!((found[0].lower_pps / 3e6 - 1.0).abs() < 0.05, "{found:?}");
    }

    /// A device that loses the share `steepness` of what exceeds its capacity.
    fn sloping(capacity: f64, steepness: f64) -> impl FnMut(f64, Duration) -> Trial {
        move |load, duration| {
            let time = duration.as_secs_f64();
            let offered = (load * time) as u64;
            let lost = ((load - capacity).max(0.0) * steepness * time) as u64;
            Trial { offered, forwarded: offered - lost, ..Trial::default() }
        }
    }

    #[test]
    fn mlrsearch_finds_the_same_on_devices_of_known_loss() {
        // What MLRsearch 1.2.1 found, made by tests/data/mlrsearch.py.
        let golden = include_str!("../../tests/data/mlrsearch.csv");
        let rows = golden.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let mut compared = 0;
        for row in rows {
            let number = |i: usize| row[i].parse::<f64>().unwrap();
            let goal = Goal { loss_ratio: number(2) };
            let device = sloping(number(0), number(1));
            let found = search(&[goal], (1e4, 1e7), 0.005, Duration::from_secs(1), device).unwrap();
            let (ours, theirs) = (&found[0], (number(3), row[4].parse::<f64>().ok()));
            assert_eq!(ours.upper_pps.is_none(), theirs.1.is_none(), "{row:?} {ours:?}");
            // Both intervals hold the same rate, so they overlap; a packet more or less is rounding.
            let upper = ours.upper_pps.unwrap_or(1e7);
            assert!(ours.lower_pps <= theirs.1.unwrap_or(1e7) * 1.0001, "{row:?} {ours:?}");
            assert!(theirs.0 <= upper * 1.0001, "{row:?} {ours:?}");
            assert!((ours.lower_pps / theirs.0 - 1.0).abs() < 0.0101, "{row:?} {ours:?}");
            compared += 1;
        }
        assert_eq!(compared, 30);
    }

    #[test]
    fn loads_out_of_order_are_refused() {
        assert!(search(&[NDR], (5.0, 5.0), 0.01, Duration::from_secs(1), device(1.0)).is_err());
    }
}
