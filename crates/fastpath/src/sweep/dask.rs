//! A sweep on the workers of a Dask cluster.

use super::{Axis, Design, SweepOptions};
use crate::dask;
use crate::error::Result;
use crate::simulate::Simulation;
use serde_json::{Map, Value, json};
use std::sync::atomic::AtomicBool;

/// What a sweep is made of, before its files are read.
pub struct Question<'q> {
    /// The simulation.
    pub simulation: &'q Simulation,
    /// The axes.
    pub axes: &'q [Axis],
    /// The choice of points.
    pub design: Design,
}

/// Has the points of a sweep that `output` lacks computed by the Dask cluster whose scheduler is at
/// `address` (`tcp://HOST:PORT`). `options.output` holds all rows of the shard afterwards.
///
/// # Errors
/// As [`dask::by_dask`].
pub fn by_dask(
    question: &Question<'_>,
    address: &str,
    options: &SweepOptions,
    progress: &dyn Fn(usize, usize),
) -> Result<()> {
    // A signal ends this program and the interpreter; finished points are kept.
    dask::by_dask(address, "sweep", question.work(options), &AtomicBool::new(false), progress)
}

impl Question<'_> {
    fn work(&self, options: &SweepOptions) -> Map<String, Value> {
        let Simulation { machine, program, workload, changes, seed } = self.simulation;
        let changes: Vec<_> = changes.iter().map(|(name, value)| json!([name.to_string(), value])).collect();
        let vary: Vec<String> = self.axes.iter().map(ToString::to_string).collect();
        let mut question = Map::from_iter([
            ("machine".to_owned(), json!(machine)),
            ("program".to_owned(), json!(program)),
            ("workload".to_owned(), json!(workload)),
            ("set".to_owned(), json!(changes)),
            ("seed".to_owned(), json!(seed)),
            ("vary".to_owned(), json!(vary)),
            ("shard".to_owned(), json!(options.shard.to_string())),
            ("output".to_owned(), json!(options.output)),
        ]);
        match self.design {
            Design::Grid => {}
            Design::Random(points) => drop(question.insert("random".to_owned(), json!(points))),
            Design::Halton(points) => drop(question.insert("halton".to_owned(), json!(points))),
        }
        question
    }
}
