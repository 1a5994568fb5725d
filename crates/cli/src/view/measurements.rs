//! Measurements as commands print and record them.

use super::{Render, json_line, measurement_text as text};
use fastpath::measurements::{EventRate, Recorded, UnitLatencies};
use fastpath::record::{Measurement, Optimised};
use fastpath_measure::{ExecutorCost, FlowChanges, Host, SwitchCost, WorkerScaling};
use fastpath_report::text as print;
use serde_json::Value;
use std::io::{self, Write};

/// A point whose odd passes differ from its even passes by more than this is reported as noisy.
const NOISY_PCT: f64 = 2.0;

/// A measurement with its records.
pub(crate) trait Measured: Render {
    /// Returns the records to append to files.
    fn records(&self) -> Vec<&Measurement>;

    /// Returns what limits the validity of the results.
    fn notes(&self) -> Vec<String> {
        let records = self.records();
        let disturbed = records.iter().find(|record| record.provenance.disturbance.disturbed);
        disturbed.or(records.first()).map(|record| validity(record)).unwrap_or_default()
    }
}

impl<T> Measured for Recorded<T>
where
    Recorded<T>: Render,
{
    fn records(&self) -> Vec<&Measurement> {
        vec![&self.record]
    }
}

impl Render for Recorded<Host> {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::host(&mut out, &self.record, &self.found)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &self.record)
    }
}

impl Render for Recorded<SwitchCost> {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::switch(&mut out, &self.found)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &with_results_on_top(&self.record)?)
    }
}

impl Render for Recorded<ExecutorCost> {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::executor(&mut out, &self.found)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &with_results_on_top(&self.record)?)
    }
}

impl Render for Recorded<FlowChanges> {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::flow_changes(&mut out, &self.found)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &with_results_on_top(&self.record)?)
    }
}

impl Render for Recorded<WorkerScaling> {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::workers(&mut out, &self.found)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &with_results_on_top(&self.record)?)
    }
}

impl Render for Recorded<EventRate> {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let EventRate { model, counts, seconds } = &self.found;
        let of = |count: u64| print::number(count as f64 / seconds);
        let (events, customers) = (of(counts.events), of(counts.customers));
        writeln!(out, "{}: {events} events/s, {customers} customers/s", model.name())
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut value = with_results_on_top(&self.record)?;
        value["model"] = Value::from(self.found.model.name());
        json_line(out, &value)
    }
}

/// The records of the points of a measured pipeline.
pub(crate) struct PipelinePoints(pub(crate) Vec<Measurement>);

impl Render for PipelinePoints {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::pipeline(&mut out, &self.0)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0.iter().try_for_each(|record| json_line(out, &with_results_on_top(record)?))
    }
}

impl Measured for PipelinePoints {
    fn records(&self) -> Vec<&Measurement> {
        self.0.iter().collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.0.first().map(validity).unwrap_or_default();
        let is_noisy =
            |r: &&Measurement| r.results.get("spread_pct").and_then(Value::as_f64) > Some(NOISY_PCT);
        let noisy = self.0.iter().filter(is_noisy).count();
        if noisy > 0 {
            notes.push(format!(
                "{noisy} of {} points differed by more than {NOISY_PCT} % between their odd and even passes: \
                 the machine was too noisy; measure again, or with more --packets",
                self.0.len()
            ));
        }
        notes
    }
}

impl Render for UnitLatencies {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        text::latency(&mut out, &self.latencies, &self.costs)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        self.records().into_iter().try_for_each(|record| json_line(out, record))
    }
}

impl Measured for UnitLatencies {
    fn records(&self) -> Vec<&Measurement> {
        let latencies = self.latencies.iter().map(|latency| &latency.record);
        latencies.chain(self.costs.iter().map(|cost| &cost.record)).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let lost = self.latencies.iter().filter(|latency| latency.found.lost > 0);
        let lost: Vec<String> =
            lost.map(|l| format!("{} of {} bytes", l.found.lost, l.record.parameters["size"])).collect();
        if !lost.is_empty() {
            let lost = lost.join(", ");
            notes.push(format!("packets that did not return within a second are left out: {lost}"));
        }
        let records = self.records();
        let worst = records.iter().find(|r| r.provenance.disturbance.disturbed).or(records.first());
        notes.extend(worst.map(|record| validity(record)).unwrap_or_default());
        notes
    }
}

/// Returns a record as JSON whose results are also at the top level, for scripts.
fn with_results_on_top(record: &Measurement) -> io::Result<Value> {
    let mut value = serde_json::to_value(record)?;
    if let Value::Object(top) = &mut value {
        record.results.iter().for_each(|(name, found)| drop(top.insert(name.clone(), found.clone())));
    }
    Ok(value)
}

/// Returns what limits the validity of a record: a development build, other load.
fn validity(record: &Measurement) -> Vec<String> {
    let mut notes = Vec::new();
    let provenance = &record.provenance;
    if provenance.tool.optimised == Optimised::Development {
        notes.push("this is a development build; its speed is not representative".to_owned());
    }
    let disturbance = provenance.disturbance;
    if disturbance.disturbed {
        notes.push(format!(
            "disturbed in every attempt: {:.1} % of the machine's time stolen by the hypervisor, {:.1} % spent on other programs",
            100.0 * disturbance.stolen_share,
            100.0 * disturbance.others_share
        ));
    }
    notes
}
