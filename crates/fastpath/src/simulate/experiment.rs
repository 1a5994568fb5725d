//! The published measurement set-ups, by name.

use super::files::PointRow;
use super::parallel::side_by_side;
use crate::error::{Error, Result};
use crate::replay::WorkerCount;
use fastpath_sim::experiment::{EXPERIMENTS, PlannedPoint, Point, points};
use fastpath_units::Duration;
use serde_json::json;

/// The results of a published measurement set-up.
pub struct ExperimentResults {
    /// The name of the set-up.
    pub name: String,
    /// Its points.
    pub points: Vec<Point>,
}

impl ExperimentResults {
    /// Runs a set-up, for `duration` at each point. The results do not depend on the number of
    /// workers.
    ///
    /// # Errors
    /// An unknown name.
    pub fn of(
        name: &str,
        duration: Option<Duration>,
        seed: u64,
        workers: WorkerCount,
    ) -> Result<ExperimentResults> {
        let Some(points) = points(name, duration, seed) else {
            let known = EXPERIMENTS.map(|(name, _)| name).join(", ");
            return Err(Error::Argument(format!("experiment {name:?} is unknown (have: {known})")));
        };
        let points = side_by_side(&points, workers.count().get(), PlannedPoint::run);
        Ok(ExperimentResults { name: name.to_owned(), points })
    }

    /// Returns the parameters and the results of each point.
    pub fn rows(&self) -> Vec<PointRow> {
        let row = |point: &Point| {
            let place = [
                ("machine", json!(point.machine)),
                ("program", json!(point.program)),
                ("size", json!(point.size)),
            ];
            let found = point.found.iter().map(|(name, x)| ((*name).to_owned(), json!(x)));
            (place.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), found.collect())
        };
        self.points.iter().map(row).collect()
    }
}
