//! Reads the record of a run.

use super::over_time::{Bins, SeriesRows, gaps};
use super::{DROPPED, EVENTS, FLOWS, INTERVAL, LINKS, RUN, head};
use crate::{Origin, RecordError, Repetition};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A run, as its record has it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The name of the directory.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What was recorded over time, if anything was.
    pub series: Option<RunSeries>,
    /// The run as a repetition of an experiment, if it is one.
    pub repetition: Option<Repetition>,
}

/// A run over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunSeries {
    /// The interval of samples that was asked for, in seconds. The one of a row is beside it.
    pub interval_s: f64,
    /// Whether the rows have no intervals of their own, as former versions wrote them. Their rates
    /// are wrong where the sampler did not run.
    pub is_nominal: bool,
    /// Why the run is not the one that was asked for, if so: the machine did not carry it.
    pub disturbed: Option<String>,
    /// The time of the last sample, in seconds.
    pub duration_s: f64,
    /// The directions of links that moved or held frames, in the order of their first rows.
    pub links: Vec<LinkSeries>,
    /// The flows, in the order of their first packets.
    pub flows: Vec<FlowSeries>,
    /// What changed, in the order of time.
    pub events: Vec<TimedText>,
}

/// A direction of a link over time. At a time that no interval covers nothing moved and the queue
/// was empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkSeries {
    /// The link.
    pub link: String,
    /// The node it leads from.
    pub from: String,
    /// The times of the rows, in seconds.
    pub times: Vec<f64>,
    /// The interval of each row, in seconds: what it counts moved in the time before `times`.
    pub intervals: Vec<f64>,
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
    /// The interval of each row, in seconds: what it counts moved in the time before `times`.
    pub intervals: Vec<f64>,
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

impl Run {
    /// Reads the record of a run: its directory, or the `run.json` in it.
    ///
    /// # Errors
    /// [`RecordError::Content`] if there is no record, or one of another format;
    /// [`RecordError::File`] if a file cannot be read.
    pub fn read(path: &Path) -> Result<Run> {
        let directory = match path.parent() {
            _ if path.is_dir() => path,
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let path = directory.join(RUN);
        if !path.is_file() {
            return Err(RecordError::content(directory, no_record(directory)));
        }
        let text = fs::read_to_string(&path).map_err(RecordError::file(&path))?;
        let head = head::read(&text).map_err(|what| RecordError::content(&path, what))?;
        let series = head.interval_s.map(|interval_s| RunSeries::read(directory, interval_s, &head));
        let series = series.transpose()?;
        let (origin, repetition) = (head.origin, head.repetition);
        Ok(Run { name: name_of(directory), origin, series, repetition })
    }
}

/// What to say of a directory without a run.
fn no_record(directory: &Path) -> String {
    if directory.join("runs").is_dir() {
        let first = directory.join("runs/0000");
        return format!("the directory of an experiment: name its runs, for example {}", first.display());
    }
    format!("not a record (no {RUN}): record a run with `fastpath lab run … --record DIR`")
}

impl RunSeries {
    /// Returns equal parts of the run: at most `count_max`, and none shorter than an interval of
    /// samples.
    pub fn bins(&self, count_max: usize) -> Bins {
        Bins::of_run(self.duration_s, self.interval_s, count_max)
    }

    /// Returns parts of the run of a length that is read easily (10 ms, 20 ms, 50 ms, …): at most
    /// `count_max`, and none shorter than an interval of samples but the last.
    pub fn round_bins(&self, count_max: usize) -> Bins {
        Bins::round_of_run(self.duration_s, self.interval_s, count_max)
    }

    /// Returns when no sample was taken, as far as the rows say it: starts and ends, in the order
    /// of time. What was before the first sample is not one of them.
    pub fn gaps(&self) -> Vec<(f64, f64)> {
        let rows = self.links.iter().map(LinkSeries::rows).chain(self.flows.iter().map(FlowSeries::rows));
        gaps(rows, self.interval_s)
    }

    fn read(directory: &Path, interval_s: f64, head: &head::Head) -> Result<RunSeries> {
        let disturbed = head.disturbed.clone();
        let mut read = RunSeries { interval_s, disturbed, ..RunSeries::default() };
        let mut last = 0f64;
        let mut intervals = |columns: &mut BTreeMap<String, Vec<f64>>, rows: usize| {
            columns.remove(INTERVAL).unwrap_or_else(|| {
                read.is_nominal = true;
                vec![interval_s; rows]
            })
        };
        for (keys, times, mut columns) in series(&directory.join(LINKS), &["link", "from"])? {
            let [link, from] = <[String; 2]>::try_from(keys).expect("as many as asked for");
            last = times.last().map_or(last, |time| last.max(*time));
            let intervals = intervals(&mut columns, times.len());
            read.links.push(LinkSeries { link, from, times, intervals, columns });
        }
        for (keys, times, mut columns) in series(&directory.join(FLOWS), &["flow"])? {
            let [flow] = <[String; 1]>::try_from(keys).expect("as many as asked for");
            let intervals = intervals(&mut columns, times.len());
            read.flows.push(FlowSeries { flow, times, intervals, columns });
        }
        let events = directory.join(EVENTS);
        // A run that was killed has none.
        if events.is_file() {
            let broken = |error: csv::Error| RecordError::content(&events, error.to_string());
            let text = whole_lines(&events)?;
            for row in csv::Reader::from_reader(&*text).deserialize() {
                let (at_s, text) = row.map_err(broken)?;
                read.events.push(TimedText { at_s, text });
            }
        }
        read.duration_s = head.duration_s.unwrap_or(last);
        Ok(read)
    }
}

impl LinkSeries {
    /// Returns its rows.
    pub fn rows(&self) -> SeriesRows<'_> {
        SeriesRows { times: &self.times, intervals: &self.intervals }
    }

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

impl FlowSeries {
    /// Returns its rows.
    pub fn rows(&self) -> SeriesRows<'_> {
        SeriesRows { times: &self.times, intervals: &self.intervals }
    }
}

fn name_of(directory: &Path) -> String {
    let path: PathBuf = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    path.file_name()
        .map_or_else(|| directory.display().to_string(), |name| name.to_string_lossy().into_owned())
}

type Result<T> = std::result::Result<T, RecordError>;
type KeyedRows = (Vec<String>, Vec<f64>, BTreeMap<String, Vec<f64>>);

/// Reads the lines of a file that end. A writer that was killed leaves a part of one.
fn whole_lines(path: &Path) -> Result<Vec<u8>> {
    let mut text = fs::read(path).map_err(RecordError::file(path))?;
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    text.truncate(end);
    Ok(text)
}

/// Reads a table, and splits its rows by the columns `keys`. A last row that was cut is left out.
fn series(path: &Path, keys: &[&str]) -> Result<Vec<KeyedRows>> {
    let wrong = |what: String| RecordError::content(path, what);
    let text = whole_lines(path)?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&*text);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 2 s, sampled each 100 ms, with these rows: end, interval and bytes.
    fn series(rows: &[(f64, f64, f64)]) -> RunSeries {
        let column = |of: fn(&(f64, f64, f64)) -> f64| rows.iter().map(of).collect::<Vec<f64>>();
        let mut link = LinkSeries {
            times: column(|row| row.0),
            intervals: column(|row| row.1),
            ..LinkSeries::default()
        };
        link.columns.insert("bytes_out".to_owned(), column(|row| row.2));
        RunSeries { interval_s: 0.1, duration_s: 2.0, links: vec![link], ..RunSeries::default() }
    }

    fn about(found: &[f64], expected: &[f64]) {
        let is_near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6 || a.is_nan() && b.is_nan();
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?}");
    }

    #[test]
    fn an_amount_is_spread_over_its_own_interval() {
        let series = series(&[
            (0.1, 0.1, 10.0),
            (0.2, 0.1, 20.0),
            (1.6, 1.2, 120.0),
            (1.61, 0.01, 1.0),
            (2.0, 0.39, 0.0),
        ]);
        let (rows, bytes) = (series.links[0].rows(), &series.links[0].columns["bytes_out"]);
        // Bins of 0.5 s. The stall from 0.4 to 1.6 s has a mean rate of 100 per second.
        let bins = series.bins(4);
        assert_eq!((bins.width_s, bins.count, bins.middle(1)), (0.5, 4, 0.75));
        about(&bins.rates(rows, bytes), &[30.0 / 0.5 + 20.0, 100.0, 100.0, 22.0]);
        // As fine as the samples: no bin is above a rate that a row has.
        let fine = series.bins(1000);
        assert_eq!(fine.count, 20);
        let rates = fine.rates(rows, bytes);
        about(&rates[..6], &[100.0, 200.0, 0.0, 0.0, 100.0, 100.0]);
        about(&[rates.iter().sum::<f64>() * fine.width_s], &[151.0]);
    }

    #[test]
    fn what_is_sampled_is_unknown_between_samples_that_are_far_apart() {
        let nan = f64::NAN;
        let series = series(&[(0.2, 0.2, 4.0), (0.5, 0.3, 5.0), (1.4, 0.9, 6.0)]);
        let found = series.bins(1000).largest(series.links[0].rows(), &series.links[0].columns["bytes_out"]);
        about(&found[..5], &[0.0, 4.0, 5.0, 5.0, 5.0]);
        about(&found[5..13], &[nan; 8]);
        about(&found[13..], &[6.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        about(&series.gaps().iter().flat_map(|(from, to)| [*from, *to]).collect::<Vec<_>>(), &[0.5, 1.4]);
    }

    #[test]
    fn bins_of_a_round_length_hold_the_rates_up_to_the_end() {
        let rows: Vec<(f64, f64, f64)> = (1..=23).map(|i| (f64::from(i) / 10.0, 0.1, 10.0)).collect();
        let series = RunSeries { duration_s: 2.3, ..series(&rows) };
        for (most, width, count) in [(1000, 0.1, 23), (20, 0.2, 12), (10, 0.5, 5), (2, 2.0, 2), (1, 5.0, 1)] {
            let bins = series.round_bins(most);
            assert!((bins.width_s - width).abs() < 1e-9 && bins.count == count, "{bins:?}");
            let rates = bins.rates(series.links[0].rows(), &series.links[0].columns["bytes_out"]);
            about(&rates, &vec![100.0; count]);
        }
    }

    #[test]
    fn a_last_line_that_was_cut_is_left_out() {
        let path = std::env::temp_dir().join(format!("fastpath-cut-{}.csv", std::process::id()));
        let whole = "time_s,link,from,bytes_out\n0.1,l,a,100\n0.2,l,a,200\n";
        for (text, rows) in
            [(whole, 2), ("time_s,link,from,bytes_out\n0.1,l,a,100\n0.2,l,a,20", 1), (&whole[..27], 0)]
        {
            fs::write(&path, text).expect("written");
            let read = super::series(&path, &["link", "from"]).expect("a table");
            assert_eq!(read.iter().map(|(_, times, _)| times.len()).sum::<usize>(), rows, "{text}");
        }
        fs::remove_file(&path).expect("removed");
    }
}
