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

/// Writes the record of a run. Rows are for what has changed: a direction or flow without a row in
/// an interval moved nothing.
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
    counters: Counters,
    late: u64,
    had_queue: bool,
}

impl RunWriter {
    /// Creates the directory, in which no record may be, and the files.
    ///
    /// # Errors
    /// [`RecordError::Content`] if the directory has a record, [`RecordError::File`] if it cannot be
    /// written.
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
        let time = format!("{:.6}", sample.at.as_secs_f64());
        for (row, pipe) in self.pipes.iter_mut().zip(&sample.pipes) {
            let (now, before) = (pipe.counters, row.counters);
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
            let mut fields = vec![time.clone(), row.link.clone(), row.from.clone()];
            fields.extend(counts.map(|count| count.to_string()));
            fields.push(seconds(pipe.queue.delay));
            fields.push((pipe.late - row.late).to_string());
            fields.push(seconds(pipe.lateness_max));
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
                time.clone(),
                flow.key.to_string(),
                bytes_in.to_string(),
                bytes_out.to_string(),
                count,
                mean,
                min,
                max,
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

fn seconds(duration: Duration) -> String {
    if duration == Duration::ZERO { "0".to_owned() } else { format!("{:.9}", duration.as_secs_f64()) }
}
