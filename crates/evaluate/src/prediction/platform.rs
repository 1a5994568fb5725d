//! The records of one platform, round by round: read from files, and combined by their medians.

use super::PredictionError;
use fastpath_model::Table;
use fastpath_model::check::SPREAD;
use fastpath_model::platform::Platform;
use fastpath_model::table::TableError;
use fastpath_record::Observation;
use fastpath_units::stats::median;
use std::path::{Path, PathBuf};

/// The platform that the others are compared with.
pub(super) const HERE: &str = "here";
/// The columns of a grid.
const COLUMNS: [&str; 4] = ["p", "h", "T_ns", SPREAD];

/// The measurements of a platform, round by round.
#[derive(Debug, Default)]
pub(super) struct MeasuredPlatform {
    pub(super) name: String,
    /// Its host records.
    pub(super) platforms: Vec<Platform>,
    /// Its grids of costs.
    pub(super) costs: Vec<Table>,
}

/// The files of a platform in a round: its host record, and its grid of costs.
pub(super) fn files(directory: &Path, name: &str, round: usize) -> [PathBuf; 2] {
    ["host", "costs"].map(|what| directory.join(format!("{name}-{what}-{}.jsonl", round + 1)))
}

/// Reads the records that an earlier run kept in `directory`, [`HERE`] first.
pub(super) fn kept(directory: &Path) -> Result<Vec<MeasuredPlatform>, PredictionError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(PredictionError::file(directory))? {
        let file = entry.map_err(PredictionError::file(directory))?.file_name();
        names.extend(file.to_str().and_then(|file| file.strip_suffix("-costs-1.jsonl")).map(str::to_owned));
    }
    if names.iter().all(|name| name != HERE) {
        return Err(PredictionError::NothingKept(directory.display().to_string()));
    }
    names.sort_by_key(|name| (name != HERE, name.clone()));
    let read = |name: String| {
        let mut measured = MeasuredPlatform { name, ..MeasuredPlatform::default() };
        for round in 0.. {
            let [host, costs] = files(directory, &measured.name, round);
            if !costs.exists() {
                break;
            }
            measured.read(&host, &costs)?;
        }
        Ok(measured)
    };
    names.into_iter().map(read).collect()
}

impl MeasuredPlatform {
    /// Adds a round from its files.
    pub(super) fn read(&mut self, host: &Path, costs: &Path) -> Result<(), PredictionError> {
        let platform = records(host)?.into_iter().find_map(|record| record.platform);
        let platform = platform.ok_or_else(|| PredictionError::NoPlatform(host.display().to_string()))?;
        let table = Observation::table(&records(costs)?).map_err(PredictionError::record(costs))?;
        let points = |table: &Table| Ok((table.numbers("p")?, table.numbers("h")?));
        let is_same = match self.costs.first() {
            None => Ok(true),
            Some(first) => points(first).and_then(|first| Ok(first == points(&table)?)),
        };
        if !is_same.map_err(PredictionError::table(costs))? {
            return Err(PredictionError::OtherGrid(costs.display().to_string()));
        }
        self.platforms.push(Platform { name: self.name.clone(), ..platform });
        self.costs.push(table);
        Ok(())
    }

    /// The platform with the medians of the rounds.
    pub(super) fn platform(&self) -> Platform {
        let middle = |of: &dyn Fn(&Platform) -> f64| median(self.platforms.iter().map(of));
        let (score, copy_bits_per_s) = (middle(&|p| p.score), middle(&|p| p.copy_bits_per_s));
        Platform { score, copy_bits_per_s, ..self.platforms[0].clone() }
    }

    /// The grid with the medians of the rounds, point by point.
    pub(super) fn costs(&self) -> Result<Table, TableError> {
        let middle = |name: &str| -> Result<Vec<f64>, TableError> {
            let rounds = self.costs.iter().map(|table| table.numbers(name)).collect::<Result<Vec<_>, _>>()?;
            Ok((0..self.costs[0].len()).map(|row| median(rounds.iter().map(|r| r[row]))).collect())
        };
        let columns = COLUMNS.map(middle).into_iter().collect::<Result<Vec<_>, _>>()?;
        let columns: Vec<(&str, &[f64])> =
            COLUMNS.into_iter().zip(columns.iter().map(Vec::as_slice)).collect();
        Table::from_columns(&columns)
    }

    /// The change between rounds of the ratio of the costs to those `here`, %.
    pub(super) fn drift_pct(&self, here: &MeasuredPlatform) -> Result<f64, TableError> {
        let ratios = self.costs.iter().zip(&here.costs).map(|(there, here)| {
            let (there, here) = (there.numbers("T_ns")?, here.numbers("T_ns")?);
            Ok(median(there.iter().zip(&here).map(|(there, here)| there / here)))
        });
        let ratios = ratios.collect::<Result<Vec<f64>, TableError>>()?;
        let (least, most) = ratios.iter().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
        Ok(100.0 * (most / least - 1.0))
    }
}

fn records(path: &Path) -> Result<Vec<Observation>, PredictionError> {
    let text = std::fs::read_to_string(path).map_err(PredictionError::file(path))?;
    Observation::parse(&text).map_err(PredictionError::record(path))
}
