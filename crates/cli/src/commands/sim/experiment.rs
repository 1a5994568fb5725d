//! `fastpath sim experiment`: the published measurement set-ups, by name.

use super::plot::Plot;
use crate::Answer;
use anyhow::{Context, bail};
use clap::Args;
use fastpath_report::text as print;
use fastpath_sim::experiment::{EXPERIMENTS, Point, experiment};
use fastpath_units::Duration;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Run a published measurement set-up; without a name, list them.
#[derive(Args)]
pub(super) struct Experiment {
    /// The experiment.
    name: Option<String>,
    /// Simulated time at each point; by default that of the publication, or a sufficient one.
    #[arg(long)]
    duration: Option<Duration>,
    /// The seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    plot: Plot,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Experiment {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        let mut out = io::stdout().lock();
        let Some(name) = &self.name else {
            if self.json {
                let all = EXPERIMENTS.map(|(name, about)| json!({ "name": name, "about": about }));
                writeln!(out, "{}", json!({ "experiments": all }))?;
            } else {
                EXPERIMENTS.iter().try_for_each(|(name, about)| writeln!(out, "{name}: {about}"))?;
            }
            return Ok(Answer::Yes);
        };
        let Some(points) = experiment(name, self.duration, self.seed) else {
            let known = EXPERIMENTS.map(|(name, _)| name).join(", ");
            bail!("experiment {name:?} is unknown (have: {known})");
        };
        let rows: Vec<(Map<String, Value>, Map<String, Value>)> = points.iter().map(row).collect();
        self.plot.write(self.seed, rows, None)?;
        if self.json {
            writeln!(out, "{}", json!({ "experiment": name, "results": points }))?;
        } else {
            show(&mut out, &points).context(name.clone())?;
        }
        Ok(Answer::Yes)
    }
}

/// Returns the parameters and the results of a point.
fn row(point: &Point) -> (Map<String, Value>, Map<String, Value>) {
    let place =
        [("machine", json!(point.machine)), ("program", json!(point.program)), ("size", json!(point.size))];
    let found = point.found.iter().map(|(name, x)| ((*name).to_owned(), json!(x)));
    (place.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), found.collect())
}

fn show(out: &mut impl Write, points: &[Point]) -> io::Result<()> {
    let Some(first) = points.first() else { return Ok(()) };
    let mut table = print::table(["machine", "program", "size"]);
    let titles = ["machine", "program", "size"].into_iter().chain(first.found.keys().copied());
    table.set_header(titles.map(|title| title.replace('_', " ")));
    for point in points {
        let place = [point.machine.clone(), point.program.clone(), point.size.to_string()];
        table.add_row(place.into_iter().chain(point.found.values().map(|x| print::number(*x))));
    }
    writeln!(out, "{table}")
}
