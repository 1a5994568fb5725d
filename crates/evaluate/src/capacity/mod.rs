//! How well the machine's capacity is predicted: random networks, each predicted first and then
//! measured twice.
//!
//! ```text
//!  seed ─▶ points.rs  network ─▶ predict ─▶ measure, measure ─▶ error, coverage, repeat difference
//!                        └─▶ a random load ─▶ judge ─▶ offer ─▶ carried or not
//!          figures.rs  all points, and those of each kind, against fixed criteria
//! ```
//!
//! A yes is the verdict `carries`; every other verdict is a no.

mod figures;
mod points;

pub use figures::{CapacityFigure, SpeedAccuracy};
pub use points::{CapacityPoint, PointKind, PredictedQuantity};

use fastpath_measure::Progress;
use fastpath_measure::capacity::CalibrationError;
use fastpath_model::capacity::EngineCosts;
use fastpath_units::Rng;
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures, and the points that they are made of.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityEvaluation {
    /// The figures.
    pub results: Vec<CapacityFigure>,
    /// The share of speeds that their 95 % intervals cover.
    pub coverage: f64,
    /// The median error of speeds, %.
    pub median_error_pct: f64,
    /// The median difference of two measurements of a point, %.
    pub repeat_median_pct: f64,
    /// The same by kind of point.
    pub kinds: BTreeMap<PointKind, SpeedAccuracy>,
    /// Kinds that could not be measured here, with the reason.
    pub missing: BTreeMap<PointKind, String>,
    /// Figures that pass.
    pub passed: usize,
    /// All figures.
    pub total: usize,
    /// The points.
    pub points: Vec<CapacityPoint>,
}

/// Predicts and measures `count` networks from `seed` on, whose kinds take turns.
///
/// # Errors
/// A network without a demand, or a run that fails.
pub fn evaluate_capacity(
    costs: &EngineCosts,
    kinds: &[PointKind],
    (count, seed): (usize, u64),
    progress: Progress<'_>,
) -> Result<CapacityEvaluation, CalibrationError> {
    let mut missing = BTreeMap::new();
    let mut possible = kinds.to_vec();
    if costs.lab.is_none() {
        let needs_lab = |kind: &PointKind| *kind != PointKind::InMemory;
        let why = "the record of this machine has no costs of labs: labs are not permitted here";
        missing.extend(kinds.iter().filter(|kind| needs_lab(kind)).map(|kind| (*kind, why.to_owned())));
        possible.retain(|kind| !needs_lab(kind));
    }
    let mut rng = Rng::new(seed);
    let mut points = Vec::new();
    for (place, &kind) in possible.iter().cycle().take(count).enumerate() {
        progress(kind.name(), place, count);
        points.push(CapacityPoint::measure(kind, costs, seed.wrapping_add(place as u64), &mut rng)?);
    }
    Ok(CapacityEvaluation { missing, ..CapacityEvaluation::of(points) })
}

impl CapacityEvaluation {
    /// Judges points.
    fn of(points: Vec<CapacityPoint>) -> CapacityEvaluation {
        let of_kind = |kind: PointKind| points.iter().filter(move |point| point.kind == kind);
        let there = PointKind::ALL.into_iter().filter(|kind| of_kind(*kind).next().is_some());
        let kinds: Vec<(PointKind, SpeedAccuracy)> =
            there.map(|kind| (kind, SpeedAccuracy::of(of_kind(kind)))).collect();
        let results = figures::figures(&points, &kinds);
        let SpeedAccuracy { coverage, median_error_pct, repeat_median_pct, .. } =
            SpeedAccuracy::of(points.iter());
        CapacityEvaluation {
            coverage,
            median_error_pct,
            repeat_median_pct,
            kinds: kinds.into_iter().collect(),
            missing: BTreeMap::new(),
            passed: results.iter().filter(|figure| figure.pass).count(),
            total: results.len(),
            results,
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_measure::Effort;
    use fastpath_measure::capacity::calibrate;
    use fastpath_model::Estimate;
    use fastpath_model::capacity::{CapacityVerdict, PacketShape};

    fn point(
        kind: PointKind,
        predicted: f64,
        measured: f64,
        answer: (CapacityVerdict, bool),
    ) -> CapacityPoint {
        let quantity = PredictedQuantity::new(Estimate::around(predicted, 0.1 * predicted), measured);
        CapacityPoint {
            kind,
            seed: 1,
            shape: PacketShape::default(),
            speed: quantity,
            again: 1.02 * measured,
            load: 1.0,
            verdict: answer.0,
            carried: answer.1,
            lateness_p99_us: Some(quantity),
            memory_bytes: Some(quantity),
            start_s: Some(quantity),
        }
    }

    fn found(evaluation: &CapacityEvaluation, id: &str) -> Option<(f64, bool)> {
        let figure = evaluation.results.iter().find(|figure| figure.id == format!("capacity/{id}"))?;
        Some((figure.ours, figure.pass))
    }

    #[test]
    fn figures_are_judged_by_their_criteria() {
        let yes = (CapacityVerdict::Carries, true);
        let mut points = vec![point(PointKind::InMemory, 103.0, 100.0, yes); 95];
        points.extend(vec![point(PointKind::InMemory, 130.0, 100.0, (CapacityVerdict::Not, false)); 5]);
        let all = CapacityEvaluation::of(points.clone());
        assert!((all.coverage - 0.95).abs() < 1e-9 && (all.median_error_pct - 3.0).abs() < 1e-9);
        assert!((all.repeat_median_pct - 1.98).abs() < 0.01, "{}", all.repeat_median_pct);
        assert_eq!((all.passed, all.total), (11, 11), "{:#?}", all.results);
        // Three wrong yeses, and four wrong noes.
        points[..3].fill(point(PointKind::InMemory, 103.0, 100.0, (CapacityVerdict::Carries, false)));
        points[3..7].fill(point(PointKind::InMemory, 103.0, 100.0, (CapacityVerdict::UpTo, true)));
        let all = CapacityEvaluation::of(points);
        assert_eq!(found(&all, "speed/right"), Some((0.93, false)));
        assert_eq!(found(&all, "in-memory/wrong-yes"), Some((0.03, false)));
    }

    #[test]
    fn each_kind_is_judged_alone_and_all_together() {
        let yes = (CapacityVerdict::Carries, true);
        let mut points = vec![point(PointKind::InMemory, 100.0, 100.0, yes); 120];
        points.extend(vec![point(PointKind::Tcp, 108.0, 100.0, yes); 40]);
        points.extend(vec![point(PointKind::Tcp, 150.0, 100.0, yes); 40]);
        let all = CapacityEvaluation::of(points);
        assert_eq!(found(&all, "in-memory/covered"), Some((1.0, false)), "too wide");
        assert_eq!(found(&all, "tcp/covered"), Some((0.5, false)));
        assert_eq!(found(&all, "speed/covered"), Some((0.8, false)));
        assert!(all.kinds[&PointKind::Tcp].median_error_pct > 8.0 - 1e-9);
        assert_eq!(found(&all, "speed/error"), Some((0.0, true)));
        assert_eq!(found(&all, "tap/error"), None, "there is no such point");
    }

    #[test]
    fn every_kind_that_is_permitted_is_predicted_and_measured() {
        let costs = calibrate(Effort::Quick, &|_, _, _| {}).expect("costs").costs;
        let found = evaluate_capacity(&costs, &PointKind::ALL, (4, 5), &|_, _, _| {}).expect("points");
        assert_eq!(found.points.len(), 4);
        assert_eq!(found.kinds.len() + found.missing.len(), PointKind::ALL.len(), "{:?}", found.missing);
        assert_eq!(found.missing.is_empty(), costs.lab.is_some());
        for point in &found.points {
            let PredictedQuantity { predicted, measured, .. } = point.speed;
            assert!(measured > 1000.0 && point.again > 1000.0, "{point:?}");
            // A debug build beside other tests: the right order of magnitude.
            assert!((0.1..10.0).contains(&(predicted.value / measured)), "{point:?}");
        }
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["results"].is_array() && json["coverage"].is_f64(), "{json}");
    }

    #[test]
    fn an_error_within_the_difference_of_repeats_passes() {
        let mut one = point(PointKind::Tap, 106.0, 100.0, (CapacityVerdict::Carries, true));
        let passes = |point: &CapacityPoint| {
            found(&CapacityEvaluation::of(vec![point.clone(); 10]), "tap/error").map(|(_, pass)| pass)
        };
        assert_eq!(passes(&one), Some(false));
        one.again = 106.0;
        assert_eq!(passes(&one), Some(true));
    }
}
