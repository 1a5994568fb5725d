//! Writes the record of a run.

use super::events::events;
use super::{DROPPED, EVENT_COLUMNS, EVENTS, FLOW_COLUMNS, FLOWS, LINK_COLUMNS, LINKS, RUN, head};
use crate::{Origin, RecordError};
use fastpath_link::{Counters, DropReason};
use fastpath_net::flows::FlowKey;
use fastpath_net::sample::Sample;
use fastpath_spec::{Topology, mistake::printable};
use fastpath_units::{Duration, Time};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Writes the record of a run. Rows are for what has changed, each with the interval between the
/// two samples that it compares: a direction or flow moved nothing at a time that no row covers.
pub struct RunWriter {
    directory: PathBuf,
    run: Map<String, Value>,
    /// By pipe: link and node it leads from, its counters, and whether its last row showed a queue.
    pipes: Vec<PipeRow>,
    links: csv::Writer<BufWriter<File>>,
    flows: csv::Writer<BufWriter<File>>,
    /// By flow: bytes in and out.
    totals: BTreeMap<FlowKey, (u64, u64)>,
    last: Time,
}

struct PipeRow {
    link: String,
    from: String,
    /// When its counters were these.
    at: Time,
    counters: Counters,
    late: u64,
    had_queue: bool,
}

impl RunWriter {
    /// Creates the directory, in which no record may be, and the files.
    ///
    /// # Errors
    /// [`RecordError::Content`] if the directory has a record, [`RecordError::File`] if it cannot
    /// be written.
    pub fn create(
        directory: &Path,
        topology: &Topology,
        origin: &Origin,
        interval: Duration,
    ) -> Result<RunWriter, RecordError> {
        fs::create_dir_all(directory).map_err(RecordError::file(directory))?;
        if directory.join(RUN).exists() {
            let what = "there is a record already; name another directory";
            return Err(RecordError::content(directory, what));
        }
        let table = |name: &str, columns: Vec<String>| -> Result<csv::Writer<BufWriter<File>>, RecordError> {
            let path = directory.join(name);
            let file = File::create(&path).map_err(RecordError::file(&path))?;
            let mut table = csv::Writer::from_writer(BufWriter::new(file));
            table.write_record(&columns).map_err(|error| RecordError::file(&path)(error.into()))?;
            Ok(table)
        };
        let owned = |columns: &[&str]| columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let drops = DropReason::ALL.map(|reason| format!("{DROPPED}{}", reason.name()));
        let links = table(LINKS, owned(&LINK_COLUMNS).into_iter().chain(drops).collect())?;
        let pipe = |(link, end): (&fastpath_spec::Link, usize)| PipeRow {
            link: link.name.clone(),
            from: topology.node(link.ends[end].0).name.clone(),
            at: Time::ZERO,
            counters: Counters::default(),
            late: 0,
            had_queue: false,
        };
        let Ok(Value::Object(mut run)) = serde_json::to_value(origin) else {
            panic!("{origin:?} is plain data")
        };
        run.insert("interval_s".to_owned(), interval.as_secs_f64().into());
        let writer = RunWriter {
            directory: directory.to_owned(),
            run,
            pipes: topology.links.iter().flat_map(|link| [(link, 0), (link, 1)]).map(pipe).collect(),
            links,
            flows: table(FLOWS, owned(&FLOW_COLUMNS))?,
            totals: BTreeMap::new(),
            last: Time::ZERO,
        };
        writer.write_run(None)?;
        Ok(writer)
    }

    /// Writes what has happened since the sample before.
    ///
    /// # Errors
    /// The system's reason, for example a full disk.
    pub fn write(&mut self, sample: &Sample) -> io::Result<()> {
        for (row, pipe) in self.pipes.iter_mut().zip(&sample.pipes) {
            let (now, before) = (pipe.counters, row.counters);
            let interval = pipe.at.since(std::mem::replace(&mut row.at, pipe.at));
            let has_queue = pipe.queue.volume.packets > 0;
            if now == before && !has_queue && !row.had_queue && pipe.late == row.late {
                continue;
            }
            let counts = [
                now.pushed.bytes - before.pushed.bytes,
                now.delivered.bytes - before.delivered.bytes,
                now.pushed.packets - before.pushed.packets,
                now.delivered.packets - before.delivered.packets,
                now.marked - before.marked,
                pipe.queue.volume.packets,
                pipe.queue.volume.bytes,
            ];
            let drops = DropReason::ALL.map(|reason| now.dropped_for(reason) - before.dropped_for(reason));
            let mut fields = vec![time(pipe.at), row.link.clone(), row.from.clone()];
            fields.extend(counts.map(|count| count.to_string()));
            fields.push(seconds(pipe.queue.delay));
            fields.push((pipe.late - row.late).to_string());
            fields.push(seconds(pipe.lateness_max));
            fields.push(seconds(interval));
            fields.extend(drops.map(|count| count.to_string()));
            self.links.write_record(&fields)?;
            (row.counters, row.late, row.had_queue) = (now, pipe.late, has_queue);
        }
        for flow in &sample.flows {
            let before = self.totals.insert(flow.key, (flow.bytes_in, flow.bytes_out)).unwrap_or_default();
            let rtt = flow.rtt.map(|rtt| {
                let mean = Duration::from_ps(rtt.sum.as_ps() / rtt.count);
                [rtt.count.to_string(), seconds(mean), seconds(rtt.min), seconds(rtt.max)]
            });
            let [count, mean, min, max] = rtt.unwrap_or_default();
            let (bytes_in, bytes_out) = (flow.bytes_in - before.0, flow.bytes_out - before.1);
            self.flows.write_record([
                time(flow.at),
                flow.key.to_string(),
                bytes_in.to_string(),
                bytes_out.to_string(),
                count,
                mean,
                min,
                max,
                seconds(flow.at.since(flow.since)),
            ])?;
        }
        self.last = sample.at;
        Ok(())
    }

    /// Writes everything to the disk, so that a killed program leaves a record up to now.
    ///
    /// # Errors
    /// The system's reason.
    pub fn flush(&mut self) -> io::Result<()> {
        self.links.flush()?;
        self.flows.flush()
    }

    /// Completes the record: the events of the spec and the `changes` made (`GET /changes`), and
    /// further values of `run.json`.
    ///
    /// # Errors
    /// [`RecordError::File`] if a file cannot be written.
    pub fn finish(mut self, changes: &Value, more: Map<String, Value>) -> Result<(), RecordError> {
        let last_s = self.last.as_secs_f64();
        let none = Value::Null;
        let events = events(self.run.get("spec").unwrap_or(&none), changes, last_s);
        self.flush().map_err(RecordError::file(&self.directory))?;
        let path = self.directory.join(EVENTS);
        let wrong = |error: csv::Error| RecordError::file(&path)(error.into());
        let mut table = csv::Writer::from_path(&path).map_err(wrong)?;
        table.write_record(EVENT_COLUMNS).map_err(wrong)?;
        for (at, text) in &events {
            table.write_record([format!("{at:.6}").as_str(), &*printable(text)]).map_err(wrong)?;
        }
        table.flush().map_err(RecordError::file(&path))?;
        self.run.extend(more);
        self.write_run(Some(last_s))
    }

    fn write_run(&self, duration_s: Option<f64>) -> Result<(), RecordError> {
        let mut run = self.run.clone();
        if let Some(duration_s) = duration_s {
            run.insert("duration_s".to_owned(), json!(duration_s));
        }
        let path = self.directory.join(RUN);
        fs::write(&path, head::text(run)).map_err(RecordError::file(&path))
    }
}

fn time(at: Time) -> String {
    format!("{:.6}", at.as_secs_f64())
}

fn seconds(duration: Duration) -> String {
    if duration == Duration::ZERO { "0".to_owned() } else { format!("{:.9}", duration.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use fastpath_net::sample::PipeSample;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_ms(ms)
    }

    /// A sample of four pipes in two workers: the first two were sampled at `first`, the others at
    /// `second`, when their worker answered.
    fn sample(first: u64, second: u64, bytes: u64) -> Sample {
        let pipe = |at: u64| {
            let mut counters = Counters::default();
            (counters.pushed.bytes, counters.delivered.bytes) = (bytes, bytes);
            PipeSample { at: ms(at), counters, ..PipeSample::default() }
        };
        Sample {
            at: ms(first.max(second)),
            pipes: [first, first, second, second].map(pipe).into(),
            flows: Vec::new(),
        }
    }

    #[test]
    fn each_row_has_the_interval_that_it_counts() {
        let text = "[host.a]\n[host.b]\n[host.c]\n[host.d]\n\
            [[link]]\nbetween = ['a', 'b']\n[[link]]\nbetween = ['c', 'd']\n";
        let topology = fastpath_spec::parse(text).unwrap().0;
        let directory = std::env::temp_dir().join(format!("fastpath-intervals-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let origin = Origin::default();
        let mut writer = RunWriter::create(&directory, &topology, &origin, Duration::from_ms(10)).unwrap();
        // Nothing moves up to the second sample; the second worker answers two seconds late.
        for (first, second, bytes) in [(10, 10, 100), (20, 20, 100), (30, 2030, 300), (2040, 2040, 350)] {
            writer.write(&sample(first, second, bytes)).unwrap();
        }
        let disturbed = Map::from_iter([("disturbed".to_owned(), "late".into())]);
        writer.finish(&Value::Null, disturbed).unwrap();
        let series = Run::read(&directory).unwrap().series.unwrap();
        assert_eq!(
            (series.duration_s, series.is_nominal, series.disturbed.as_deref()),
            (2.04, false, Some("late"))
        );
        let intervals =
            |link: usize| (series.links[link].times.clone(), series.links[link].intervals.clone());
        assert_eq!(intervals(0), (vec![0.01, 0.03, 2.04], vec![0.01, 0.01, 2.01]));
        assert_eq!(intervals(2), (vec![0.01, 2.03, 2.04], vec![0.01, 2.01, 0.01]));

        // Version 0.1 wrote no intervals.
        let path = directory.join(LINKS);
        let former = fs::read_to_string(&path).unwrap().replace("interval_s", "unknown");
        fs::write(&path, former).unwrap();
        let former = Run::read(&directory).unwrap().series.unwrap();
        assert_eq!((former.is_nominal, &former.links[0].intervals[..]), (true, &[0.01, 0.01, 0.01][..]));
        fs::remove_dir_all(&directory).unwrap();
    }
}
