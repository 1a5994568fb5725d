//! Searches the highest rate that a device carries within a loss ratio (RFC 2544 §26.1), as
//! MLRsearch does (draft-ietf-bmwg-mlrsearch): one search for all goals, short trials first, and
//! each load judged by the majority of its trials.
//!
//! ```text
//!   loads:    ·  ·  ·  ●  ○  ·  ●  ○  ·  ·      a grid with steps of the requested width
//!   loss ≤ 0 %:       low up                    every trial at a load counts for every goal,
//!   loss ≤ 5 %:                low up           so most loads of a goal are already judged
//! ```
//!
//! The search is pure: the trial is an argument. It implements a part of the draft. All goals share
//! the final duration, the width and the majority rule. Short trials only choose where to search;
//! only final trials judge a load.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// Trials at one load whose majority judges it.
const TRIALS: usize = 3;
/// Maximum number of trials at one load, spoilt trials included.
const TRIALS_MAX: usize = 20;
/// Ratio of the durations of successive phases; the final phase is the longest.
const SHORTER: u32 = 4;
const PHASES: u32 = 3;

/// A goal of the search.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Goal {
    /// Share of packets that may be lost, 0 … 1. 0 gives the no-drop rate, a larger value a
    /// partial-drop rate.
    pub loss_ratio: f64,
}

/// The result of one trial.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Packets that the source offered.
    pub offered: u64,
    /// Packets that the device forwarded.
    pub forwarded: u64,
    /// Host stalls whose time was left out.
    pub pauses: u64,
    /// Whether a host stall occurred that could not be left out; it may have caused the loss.
    pub spoilt: bool,
}

/// The result for one goal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The goal.
    pub goal: Goal,
    /// The highest load that met the goal below all loads that missed it, packets/s. `None` if even
    /// the lowest load missed it.
    pub lower_pps: Option<f64>,
    /// The lowest load that missed the goal, packets/s. `None` if the highest possible load met it.
    pub upper_pps: Option<f64>,
    /// The forwarding rate at the lower bound in the median trial, packets/s: MLRsearch's
    /// conditional throughput. For goals above 0 it describes the device better than the load does.
    #[serde(default)]
    pub conditional_pps: Option<f64>,
    /// Trials of the search, for all goals together.
    pub trials: usize,
    /// Host stalls that were left out of these trials.
    #[serde(default)]
    pub pauses: u64,
    /// Trials that lost packets during a host stall and were repeated.
    #[serde(default)]
    pub spoilt: usize,
}

/// Why a search has no result.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The loads do not form a range.
    #[error("loads from {least} to {most} packets/s: must be above 0 and in order")]
    Range {
        /// The lowest load, packets/s.
        least: f64,
        /// The highest load, packets/s.
        most: f64,
    },
}

/// Estimates the number of trials of a search for `goals` goals, for progress reports.
pub(super) fn usual_trials(goals: usize) -> usize {
    // Both bounds of each goal, each by a majority, in each phase: the number of trials for a
    // deterministic device.
    1 + goals * PHASES as usize * 2 * TRIALS.div_ceil(2)
}

impl Trial {
    fn loss(&self) -> f64 {
        1.0 - self.forwarded as f64 / self.offered.max(1) as f64
    }
}

/// Searches all `goals` between the loads `least` and `most` (packets/s) to a relative width of
/// `width`, with final trials of `duration`.
///
/// # Errors
/// [`SearchError`] for loads that do not form a range.
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
    let grid = Grid { least, most, step: -(-width).ln_1p() };
    let (mut spent, mut pauses, mut spoilt) = (0, 0, 0);
    let mut counted = |load: f64, time: Duration| {
        let trial = trial(load, time);
        spent += 1;
        pauses += trial.pauses;
        spoilt += usize::from(trial.spoilt && trial.forwarded < trial.offered);
        trial
    };
    // The forwarding rate at the highest load is the first guess.
    let most_forwarded = 1.0 - counted(most, duration / SHORTER.pow(PHASES - 1)).loss();
    let mut from: Vec<Start> = goals
        .iter()
        .map(|goal| Start { at: grid.below(most * most_forwarded / (1.0 - goal.loss_ratio)), step: 1 })
        .collect();
    // The strictest goal first: a load that meets it meets the others too.
    let mut order: Vec<usize> = (0..goals.len()).collect();
    order.sort_by(|&a, &b| goals[a].loss_ratio.total_cmp(&goals[b].loss_ratio));
    let mut trials = Trials::new();
    for phase in (0..PHASES).rev() {
        trials.clear();
        let time = duration / SHORTER.pow(phase);
        for &i in &order {
            narrow(&mut trials, goals[i], from[i], &grid, &mut |load| counted(load, time));
        }
        // Start of the next phase: in the best case it confirms both bounds.
        for (goal, from) in goals.iter().zip(&mut from) {
            *from = match bounds(&trials, *goal) {
                (Some(lower), upper) => Start { at: lower, step: upper.map_or(1, |upper| upper - lower) },
                (None, _) => Start { at: 0, step: 1 },
            };
        }
    }
    let answer = |goal: &Goal| {
        let (lower, upper) = bounds(&trials, *goal);
        let conditional = lower.map(|at| grid.load(at) * (1.0 - median_loss(&trials[&at])));
        Found {
            goal: *goal,
            lower_pps: lower.map(|at| grid.load(at)),
            upper_pps: upper.map(|at| grid.load(at)),
            conditional_pps: conditional,
            trials: spent,
            pauses,
            spoilt,
        }
    };
    Ok(goals.iter().map(answer).collect())
}

/// The candidate loads, shared by all goals. Load k is `least`·e^(k·step); the last is `most`.
struct Grid {
    least: f64,
    most: f64,
    step: f64,
}

impl Grid {
    fn last(&self) -> u32 {
        ((self.most / self.least).ln() / self.step).ceil() as u32
    }

    fn load(&self, at: u32) -> f64 {
        (self.least * (self.step * f64::from(at)).exp()).min(self.most)
    }

    /// Returns the number of the highest load not above `load`, or 0.
    fn below(&self, load: f64) -> u32 {
        (((load / self.least).ln() / self.step).max(0.0) as u32).min(self.last())
    }
}

/// Where the search for a goal begins, and the size of its first step.
#[derive(Clone, Copy)]
struct Start {
    at: u32,
    step: u32,
}

/// The trials of a phase by the number of their load on the grid.
type Trials = BTreeMap<u32, Vec<Trial>>;

/// Tries loads until the goal's bounds are neighbours on the grid: outwards from the start with
/// growing steps, then by bisection. No load between the bounds has been judged, so each one is
/// new.
fn narrow(trials: &mut Trials, goal: Goal, from: Start, grid: &Grid, trial: &mut impl FnMut(f64) -> Trial) {
    let (mut step, mut guess, mut was_met) = (from.step, Some(from.at), true);
    loop {
        let (lower, upper) = bounds(trials, goal);
        let middle = lower.zip(upper).map(|(lower, upper)| u32::midpoint(lower, upper));
        let guessed = guess
            .take()
            .filter(|&at| lower.is_none_or(|lower| lower < at) && upper.is_none_or(|upper| at < upper));
        let next = match (lower, upper) {
            (Some(lower), Some(upper)) if upper - lower == 1 => return,
            (Some(lower), None) if lower >= grid.last() => return,
            (None, Some(0)) => return,
            _ if guessed.is_some() => guessed.unwrap_or_default(),
            (Some(lower), _) if was_met || upper.is_none() => {
                (lower + step).min(middle.unwrap_or(grid.last()))
            }
            (_, Some(upper)) => upper.saturating_sub(step).max(middle.unwrap_or(0)),
            // No load has been judged before the first guess.
            (_, None) => from.at,
        };
        if guessed.is_none() {
            step *= 2;
        }
        let load = trials.entry(next).or_default();
        was_met = loop {
            match judge(load, goal) {
                Some(met_goal) => break met_goal,
                None => load.push(trial(grid.load(next))),
            }
        };
    }
}

/// Returns the highest load that met the goal below the lowest that missed it, and that lowest
/// load.
fn bounds(trials: &Trials, goal: Goal) -> (Option<u32>, Option<u32>) {
    let judged = |wanted: bool| {
        trials.iter().filter(move |(_, load)| judge(load, goal) == Some(wanted)).map(|(at, _)| *at)
    };
    let upper = judged(false).next();
    (judged(true).take_while(|&at| upper.is_none_or(|upper| at < upper)).last(), upper)
}

/// Returns whether the load meets the goal, `None` until a majority is certain. A spoilt trial that
/// lost too much does not count.
fn judge(load: &[Trial], goal: Goal) -> Option<bool> {
    let met = load.iter().filter(|trial| trial.loss() <= goal.loss_ratio).count();
    let missed = load.iter().filter(|trial| trial.loss() > goal.loss_ratio && !trial.spoilt).count();
    if 2 * met > TRIALS {
        Some(true)
    } else if 2 * missed > TRIALS {
        Some(false)
    } else {
        (load.len() >= TRIALS_MAX).then_some(met > missed)
    }
}

/// Returns the loss of the median trial at a load. Trials that the majority did not need are
/// counted as the most lossy.
fn median_loss(load: &[Trial]) -> f64 {
    let mut losses: Vec<f64> = load.iter().map(Trial::loss).collect();
    losses.sort_by(f64::total_cmp);
    losses[(TRIALS / 2).min(losses.len() - 1)]
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
            let (lower, upper) = (ndr.lower_pps.unwrap(), ndr.upper_pps.unwrap());
            assert!(lower <= capacity + 2.0 && capacity - 2.0 <= upper, "{ndr:?} {capacity}");
            assert!(upper - lower <= 0.005 * upper * 1.001, "{ndr:?}");
            assert!(pdr.lower_pps.unwrap() >= lower, "{found:?}");
        }
    }

    #[test]
    fn a_device_faster_than_the_source_has_no_upper_bound() {
        let found = search(&[NDR], (1e4, 1e6), 0.01, Duration::from_secs(1), device(1e9)).unwrap();
        assert_eq!((found[0].upper_pps, found[0].lower_pps), (None, Some(1e6)));
    }

    #[test]
    fn a_device_that_always_loses_has_no_lower_bound() {
        let found = search(&[PDR], (1e4, 1e6), 0.01, Duration::from_secs(1), device(1e3)).unwrap();
        assert_eq!((found[0].lower_pps, found[0].upper_pps), (None, Some(1e4)));
    }

    #[test]
    fn host_stalls_in_one_trial_of_ten_do_not_change_the_majority() {
        let mut rng = Rng::new(5);
        let mut clean = device(3e6);
        let stalling = |load: f64, duration: Duration| {
            let trial = clean(load, duration);
            let lost = if rng.below(10) == 0 { trial.forwarded / 50 } else { 0 };
            Trial { forwarded: trial.forwarded - lost, ..trial }
        };
        let found = search(&[NDR], (1e4, 1e7), 0.01, Duration::from_secs(1), stalling).unwrap();
        assert!((found[0].lower_pps.unwrap() / 3e6 - 1.0).abs() < 0.05, "{found:?}");
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
    fn results_match_mlrsearch_on_devices_of_known_loss() {
        // Results of MLRsearch 1.2.1, generated by tests/data/mlrsearch.py.
        let golden = include_str!("../tests/data/mlrsearch.csv");
        let rows: Vec<Vec<&str>> = golden.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 30);
        for goals in rows.chunks(3) {
            let number = |row: &[&str], i: usize| row[i].parse::<f64>().ok();
            let known = |row: &[&str], i: usize| number(row, i).unwrap();
            let mut seconds = 0.0;
            let mut device = sloping(known(&goals[0], 0), known(&goals[0], 1));
            let timed = |load: f64, duration: Duration| {
                seconds += duration.as_secs_f64();
                device(load, duration)
            };
            let wanted: Vec<Goal> = goals.iter().map(|row| Goal { loss_ratio: known(row, 2) }).collect();
            let found = search(&wanted, (1e4, 1e7), 0.005, Duration::from_secs(1), timed).unwrap();
            for (row, ours) in goals.iter().zip(&found) {
                let (lower, theirs) = (ours.lower_pps.unwrap(), (known(row, 3), number(row, 4)));
                assert_eq!(ours.upper_pps.is_none(), theirs.1.is_none(), "{row:?} {ours:?}");
                // Both intervals contain the same rate, so they overlap; a difference of one packet
                // is rounding.
                assert!(lower <= theirs.1.unwrap_or(1e7) * 1.0001, "{row:?} {ours:?}");
                assert!(theirs.0 <= ours.upper_pps.unwrap_or(1e7) * 1.0001, "{row:?} {ours:?}");
                assert!((lower / theirs.0 - 1.0).abs() < 0.0101, "{row:?} {ours:?}");
                let conditional = ours.conditional_pps.unwrap();
                assert!((conditional / known(row, 5) - 1.0).abs() < 0.0101, "{row:?} {ours:?}");
            }
            // Short trials included; a load shared by several goals is tried once.
            assert!(seconds < 1.5 * known(&goals[0], 6), "{seconds} {goals:?}");
        }
    }

    #[test]
    fn one_search_for_three_goals_takes_fewer_trials_than_three_searches() {
        let goals = [0.05, 0.0, 0.005].map(|loss_ratio| Goal { loss_ratio });
        let hunt = |goals: &[Goal]| {
            search(goals, (1e4, 1e7), 0.02, Duration::from_secs(1), sloping(3e6, 1.0)).unwrap()
        };
        let together = hunt(&goals);
        let alone: Vec<Found> = goals.iter().flat_map(|goal| hunt(&[*goal])).collect();
        for (together, alone) in together.iter().zip(&alone) {
            assert_eq!((together.goal, together.lower_pps), (alone.goal, alone.lower_pps));
        }
        let apart: usize = alone.iter().map(|found| found.trials).sum();
        assert!(4 * together[0].trials < 3 * apart, "{} {apart}", together[0].trials);
    }

    #[test]
    fn the_estimated_number_of_trials_is_within_a_factor_of_two_and_a_half() {
        for capacity in [2e4, 3e5, 1e6, 7.3e6] {
            for goals in [&[NDR][..], &[NDR, PDR]] {
                let found = search(goals, (1e4, 1.5e7), 0.02, Duration::from_secs(1), sloping(capacity, 1.0))
                    .unwrap();
                let share = found[0].trials as f64 / usual_trials(goals.len()) as f64;
                assert!((0.4..2.0).contains(&share), "{capacity} {share} {found:?}");
            }
        }
    }

    #[test]
    fn a_spoilt_trial_counts_only_if_it_lost_nothing() {
        let lossless = Trial { offered: 100, forwarded: 100, ..Trial::default() };
        let lossy = Trial { forwarded: 90, ..lossless };
        let spoilt = Trial { spoilt: true, ..lossy };
        let judged = |trials: &[Trial]| judge(trials, NDR);
        assert_eq!(judged(&[spoilt, spoilt, lossy]), None);
        assert_eq!(judged(&[spoilt, lossy, lossy]), Some(false));
        assert_eq!(judged(&[Trial { spoilt: true, ..lossless }, lossless]), Some(true));
        // If all trials are spoilt, the load does not meet the goal.
        assert_eq!(judged(&[spoilt; TRIALS_MAX]), Some(false));
    }

    #[test]
    fn bounds_are_neighbours_and_ordered_by_goal_for_noisy_trials() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let noisy = |load: f64, _: Duration| {
                let lost = if rng.unit_f64() < load / 2e6 { rng.below(100) } else { 0 };
                Trial { offered: 1000, forwarded: 1000 - lost, spoilt: rng.below(4) == 0, pauses: 0 }
            };
            let goals = [0.0, 0.02, 0.08].map(|loss_ratio| Goal { loss_ratio });
            let found = search(&goals, (1e3, 1e6), 0.02, Duration::from_secs(1), noisy).unwrap();
            assert!(found.is_sorted_by_key(|found| found.lower_pps.unwrap_or(0.0)), "{seed} {found:?}");
            for Found { lower_pps, upper_pps, .. } in &found {
                match (lower_pps, upper_pps) {
                    (Some(lower), Some(upper)) => {
                        assert!(lower < upper && 1.0 - lower / upper < 0.0201, "{seed} {found:?}");
                    }
                    (Some(lower), None) => assert_eq!(*lower, 1e6, "{seed}"),
                    (None, upper) => assert_eq!(*upper, Some(1e3), "{seed}"),
                }
            }
        }
    }

    #[test]
    fn loads_out_of_order_are_refused() {
        assert!(search(&[NDR], (5.0, 5.0), 0.01, Duration::from_secs(1), device(1.0)).is_err());
    }
}
