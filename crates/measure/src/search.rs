//! The highest rate a device carries within a loss ratio (RFC 2544 §26.1), searched as MLRsearch
//! does (draft-ietf-bmwg-mlrsearch): one search for all goals, short trials first, a load judged by
//! the majority of its trials.
//!
//! ```text
//!   loads:    ·  ·  ·  ●  ○  ·  ●  ○  ·  ·      a grid of steps of the width asked for
//!   loss ≤ 0 %:       low up                    every trial of a load counts for every goal,
//!   loss ≤ 5 %:                low up           so a goal finds most of its loads judged
//! ```
//!
//! Pure: a trial is an argument. Not the whole draft: all goals share the final duration, width and
//! majority rule, and short trials say where to look, not what is true.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// Trials at one load before it is judged.
const TRIALS: usize = 3;
/// Most trials at one load, those spoilt by the machine included.
const TRIALS_MAX: usize = 20;
/// Durations before the final one are shorter by this factor each.
const SHORTER: u32 = 4;
const PHASES: u32 = 3;

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
    /// The machine stood still and that could not be left out: what was lost may be its fault.
    pub spoilt: bool,
}

/// A goal's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Found {
    /// The goal.
    pub goal: Goal,
    /// The highest load that met the goal and lies below every load that did not, packets/s; none
    /// when not even the lowest met it.
    pub lower_pps: Option<f64>,
    /// The lowest load that did not, packets/s; none when the highest load possible still met it.
    pub upper_pps: Option<f64>,
    /// What came through at the lower load, packets/s, in the median trial: MLRsearch's conditional
    /// throughput. With loss allowed it is nearer to what the device carries than the load.
    #[serde(default)]
    pub conditional_pps: Option<f64>,
    /// Trials of the search, for all its goals together.
    pub trials: usize,
    /// Pauses of the machine that were left out of them.
    #[serde(default)]
    pub pauses: u64,
    /// Trials that lost packets while the machine stood still, made again.
    #[serde(default)]
    pub spoilt: usize,
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum SearchError {
    /// Loads that are no range.
    #[error("loads from {least} to {most} packets/s: must be above 0 and in order")]
    Range {
        /// The lowest.
        least: f64,
        /// The highest.
        most: f64,
    },
}

/// About as many trials as a search of so many goals takes, to say how far it is.
pub(super) fn usual_trials(goals: usize) -> usize {
    // Both bounds of each goal by a majority, in each phase: what a device takes that is always the
    // same.
    1 + goals * PHASES as usize * 2 * TRIALS.div_ceil(2)
}

impl Trial {
    fn loss(&self) -> f64 {
        1.0 - self.forwarded as f64 / self.offered.max(1) as f64
    }
}

/// Searches all `goals` between the loads `least` and `most` (packets/s), to a relative width of
/// `width`, with final trials of `duration`.
///
/// # Errors
/// [`SearchError`] for loads that are no range.
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
    // What comes through of the highest load is a first guess.
    let most_passed = 1.0 - counted(most, duration / SHORTER.pow(PHASES - 1)).loss();
    let mut from: Vec<Start> = goals
        .iter()
        .map(|goal| Start { at: grid.below(most * most_passed / (1.0 - goal.loss_ratio)), step: 1 })
        .collect();
    // The strictest goal first: what is good for it is good for the others.
    let mut order: Vec<usize> = (0..goals.len()).collect();
    order.sort_by(|&a, &b| goals[a].loss_ratio.total_cmp(&goals[b].loss_ratio));
    let mut trials = Trials::new();
    for phase in (0..PHASES).rev() {
        trials.clear();
        let time = duration / SHORTER.pow(phase);
        for &i in &order {
            narrow(&mut trials, goals[i], from[i], &grid, &mut |load| counted(load, time));
        }
        // Where the next phase begins: in the best case it finds both bounds as they are.
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

/// The loads that may be tried, so that goals meet at the same ones: number k is
/// `least`·e^(k·step), the last is `most`.
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

    /// The highest of them that is not above `load`, or the lowest.
    fn below(&self, load: f64) -> u32 {
        (((load / self.least).ln() / self.step).max(0.0) as u32).min(self.last())
    }
}

/// Where a goal's search begins, and how far its first step goes.
#[derive(Clone, Copy)]
struct Start {
    at: u32,
    step: u32,
}

/// The trials of a phase by their load's number on the grid.
type Trials = BTreeMap<u32, Vec<Trial>>;

/// Tries loads until the goal's bounds are neighbours on the grid: from the start outwards, further
/// each time, then in the middle. No load between two bounds has been judged, so each is a new one.
fn narrow(trials: &mut Trials, goal: Goal, from: Start, grid: &Grid, trial: &mut impl FnMut(f64) -> Trial) {
    let (mut step, mut guess, mut was_good) = (from.step, Some(from.at), true);
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
            (Some(lower), _) if was_good || upper.is_none() => {
                (lower + step).min(middle.unwrap_or(grid.last()))
            }
            (_, Some(upper)) => upper.saturating_sub(step).max(middle.unwrap_or(0)),
            // Nothing is judged only before the first guess.
            (_, None) => from.at,
        };
        if guessed.is_none() {
            step *= 2;
        }
        let load = trials.entry(next).or_default();
        was_good = loop {
            match judge(load, goal) {
                Some(good) => break good,
                None => load.push(trial(grid.load(next))),
            }
        };
    }
}

/// The highest load that met the goal below the lowest that did not, and that one.
fn bounds(trials: &Trials, goal: Goal) -> (Option<u32>, Option<u32>) {
    let judged = |wanted: bool| {
        trials.iter().filter(move |(_, load)| judge(load, goal) == Some(wanted)).map(|(at, _)| *at)
    };
    let upper = judged(false).next();
    (judged(true).take_while(|&at| upper.is_none_or(|upper| at < upper)).last(), upper)
}

/// Whether the load meets the goal; none until a majority is sure. A spoilt trial that lost too
/// much says nothing.
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

/// The loss of the median of a load's trials, where those that were not needed any more lost the
/// most.
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
    fn pauses_in_one_trial_of_ten_do_not_move_the_majority() {
        let mut rng = Rng::new(5);
        let mut clean = device(3e6);
        let paused = |load: f64, duration: Duration| {
            let trial = clean(load, duration);
            let lost = if rng.below(10) == 0 { trial.forwarded / 50 } else { 0 };
            Trial { forwarded: trial.forwarded - lost, ..trial }
        };
        let found = search(&[NDR], (1e4, 1e7), 0.01, Duration::from_secs(1), paused).unwrap();
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
    fn mlrsearch_finds_the_same_on_devices_of_known_loss() {
        // What MLRsearch 1.2.1 found, made by tests/data/mlrsearch.py.
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
            let asked: Vec<Goal> = goals.iter().map(|row| Goal { loss_ratio: known(row, 2) }).collect();
            let found = search(&asked, (1e4, 1e7), 0.005, Duration::from_secs(1), timed).unwrap();
            for (row, ours) in goals.iter().zip(&found) {
                let (lower, theirs) = (ours.lower_pps.unwrap(), (known(row, 3), number(row, 4)));
                assert_eq!(ours.upper_pps.is_none(), theirs.1.is_none(), "{row:?} {ours:?}");
                // Both intervals hold the same rate, so they overlap; a packet more or less is
                // rounding.
                assert!(lower <= theirs.1.unwrap_or(1e7) * 1.0001, "{row:?} {ours:?}");
                assert!(theirs.0 <= ours.upper_pps.unwrap_or(1e7) * 1.0001, "{row:?} {ours:?}");
                assert!((lower / theirs.0 - 1.0).abs() < 0.0101, "{row:?} {ours:?}");
                let conditional = ours.conditional_pps.unwrap();
                assert!((conditional / known(row, 5) - 1.0).abs() < 0.0101, "{row:?} {ours:?}");
            }
            // Short trials included, and goals that meet at one load pay once.
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
    fn the_usual_number_of_trials_is_about_what_a_search_takes() {
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
    fn a_spoilt_trial_says_nothing_unless_it_lost_nothing() {
        let lossless = Trial { offered: 100, forwarded: 100, ..Trial::default() };
        let lossy = Trial { forwarded: 90, ..lossless };
        let spoilt = Trial { spoilt: true, ..lossy };
        let judged = |trials: &[Trial]| judge(trials, NDR);
        assert_eq!(judged(&[spoilt, spoilt, lossy]), None);
        assert_eq!(judged(&[spoilt, lossy, lossy]), Some(false));
        assert_eq!(judged(&[Trial { spoilt: true, ..lossless }, lossless]), Some(true));
        // Where nothing but spoilt trials can be had, the load is not known to be good.
        assert_eq!(judged(&[spoilt; TRIALS_MAX]), Some(false));
    }

    #[test]
    fn bounds_are_neighbours_and_in_the_order_of_the_goals_whatever_trials_say() {
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
