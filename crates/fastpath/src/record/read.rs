//! Reads a record.

use super::{DROPPED, EVENTS, FLOWS, FORMAT, LINKS, RUN};
use crate::{Error, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The record of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunRecord {
    /// The name of the directory.
    pub name: String,
    /// `run.json`: format, version, seed, spec, machine, …
    pub run: Value,
    /// The interval of samples, in seconds.
    pub interval_s: f64,
    /// The time of the last sample, in seconds.
    pub duration_s: f64,
    /// The directions of links that moved or held frames, in the order of their first rows.
    pub links: Vec<LinkSeries>,
    /// The flows, in the order of their first packets.
    pub flows: Vec<FlowSeries>,
    /// What changed, in the order of time.
    pub events: Vec<TimedText>,
}

/// A direction of a link over time. A time without a row is one at which nothing moved and the
/// queue was empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkSeries {
    /// The link.
    pub link: String,
    /// The node it leads from.
    pub from: String,
    /// The times of the rows, in seconds.
    pub times: Vec<f64>,
    /// By the name of a column, `bytes_out` or `dropped.queue-full`: its values.
    pub columns: BTreeMap<String, Vec<f64>>,
}

/// A flow over time. Intervals without a packet have no row.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlowSeries {
    /// Its name: `tcp 10.0.0.1:5001 > 10.0.0.2:80`.
    pub flow: String,
    /// The times of the rows, in seconds.
    pub times: Vec<f64>,
    /// By the name of a column: its values; NaN where an interval has no RTT.
    pub columns: BTreeMap<String, Vec<f64>>,
}

/// A text with its time.
#[derive(Clone, PartialEq, Debug)]
pub struct TimedText {
    /// Seconds since the start of the run.
    pub at_s: f64,
    /// What happened.
    pub text: String,
}

impl RunRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// [`Error::Argument`] if the directory has no record, or one of another format;
    /// [`Error::File`] if a file cannot be read.
    pub fn read(directory: &Path) -> Result<RunRecord> {
        let path = directory.join(RUN);
        if !path.is_file() {
            let directory = directory.display();
            return Err(Error::Argument(format!(
                "{directory}: not a record (no {RUN}): record a run with `fastpath lab run … --record DIR`"
            )));
        }
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let wrong = |what: &str| Error::Argument(format!("{}: {what}", path.display()));
        let run: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        match run["format"].as_u64() {
            Some(FORMAT) => {}
            Some(other) => {
                let version = run["version"].as_str().unwrap_or("another version");
                return Err(wrong(&format!(
                    "format {other} is of fastpath {version}; this version reads {FORMAT}"
                )));
            }
            None => return Err(wrong("not a record: it has no format")),
        }
        let mut record = RunRecord {
            name: name_of(directory),
            interval_s: run["interval_s"].as_f64().ok_or_else(|| wrong("it has no interval_s"))?,
            ..RunRecord::default()
        };
        let mut last = 0f64;
        for (keys, times, columns) in series(&directory.join(LINKS), &["link", "from"])? {
            let [link, from] = <[String; 2]>::try_from(keys).expect("as many as asked for");
            last = times.last().map_or(last, |time| last.max(*time));
            record.links.push(LinkSeries { link, from, times, columns });
        }
        for (keys, times, columns) in series(&directory.join(FLOWS), &["flow"])? {
            let [flow] = <[String; 1]>::try_from(keys).expect("as many as asked for");
            record.flows.push(FlowSeries { flow, times, columns });
        }
        let events = directory.join(EVENTS);
        // A run that was killed has none.
        if events.is_file() {
            let broken = |error: csv::Error| Error::Argument(format!("{}: {error}", events.display()));
            for row in csv::Reader::from_path(&events).map_err(broken)?.deserialize() {
                let (at_s, text) = row.map_err(broken)?;
                record.events.push(TimedText { at_s, text });
            }
        }
        record.duration_s = run["duration_s"].as_f64().unwrap_or(last);
        record.run = run;
        Ok(record)
    }
}

impl LinkSeries {
    /// Returns the sum of a column.
    pub fn total(&self, column: &str) -> f64 {
        self.columns.get(column).map_or(0.0, |values| values.iter().sum())
    }

    /// Returns the frames dropped at each time, for all reasons.
    pub fn drops(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.times.len()];
        for (_, values) in self.columns.iter().filter(|(name, _)| name.starts_with(DROPPED)) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        sums
    }
}

fn name_of(directory: &Path) -> String {
    let path: PathBuf = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    path.file_name()
        .map_or_else(|| directory.display().to_string(), |name| name.to_string_lossy().into_owned())
}

type KeyedRows = (Vec<String>, Vec<f64>, BTreeMap<String, Vec<f64>>);

/// Reads a table, and splits its rows by the columns `keys`. A last row that was cut is left out.
fn series(path: &Path, keys: &[&str]) -> Result<Vec<KeyedRows>> {
    let wrong = |what: String| Error::Argument(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(Error::file(path))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let titles = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    let place = |name: &str| {
        titles.iter().position(|title| title == name).ok_or_else(|| wrong(format!("it has no column {name}")))
    };
    let time = place("time_s")?;
    let key_places = keys.iter().map(|key| place(key)).collect::<Result<Vec<_>>>()?;
    let mut numbers: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut all: Vec<KeyedRows> = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| wrong(error.to_string()))?;
        if row.len() < titles.len() {
            break;
        }
        let key: Vec<String> = key_places.iter().map(|place| row[*place].to_owned()).collect();
        let number = *numbers.entry(key.clone()).or_insert_with(|| {
            all.push((key, Vec::new(), BTreeMap::new()));
            all.len() - 1
        });
        let line = row.position().map_or(0, csv::Position::line);
        let value = |place: usize| match &row[place] {
            "" => Ok(f64::NAN),
            text => text.parse().map_err(|_| wrong(format!("line {line}: '{text}' is not a number"))),
        };
        let (_, times, columns) = &mut all[number];
        times.push(value(time)?);
        for (place, title) in titles.iter().enumerate() {
            if place != time && !key_places.contains(&place) {
                columns.entry(title.to_owned()).or_default().push(value(place)?);
            }
        }
    }
    Ok(all)
}
