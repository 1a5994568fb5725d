//! Whether this machine carries a network (Linux): the record of what the engine costs
//! here, measured once and kept in the user's cache, and the prediction for a network.
//!
//! ```text
//!  CapacityRecord::cached ──or── ::measure ─┐
//!                                           ├─▶ CapacityAnswer: verdict, values, limits, remedies
//!  Topology, CapacityOptions ───────────────┘
//! ```
//!
//! A record is of one machine, kernel and build of this program. Any other is measured again.

use crate::error::{Error, Result};
use crate::guest_run::cache;
use fastpath_engine::{Options, Workers, memory_default};
use fastpath_measure::capacity::{Calibration, DemandError, DemandOptions, EngineWorkers, calibrate, demand};
use fastpath_measure::{Effort, Progress, Watch, this_machine};
use fastpath_model::Estimate;
use fastpath_model::capacity::{
    CapacityLimit, CapacityVerdict, Demand, EngineCosts, Predicted, Remedy, judge, predict, remedies,
};
use fastpath_record::{Measurement, Provenance, Tool};
use fastpath_spec::{DataPathChoice, EngineSettings, NetworkSpec, Topology, describe};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The kind of these records.
const KIND: &str = "capacity";
/// Most workers that a remedy names.
const WORKERS_MAX: usize = 16;

/// What the engine costs on this machine, and where that was measured.
#[derive(Clone, Debug)]
pub struct CapacityRecord {
    /// The costs.
    pub costs: EngineCosts,
    /// What could not be measured, and why.
    pub missing: Vec<String>,
    /// Where and when it was measured.
    pub provenance: Provenance,
    /// The file; none if there is no directory for it.
    pub path: Option<PathBuf>,
}

impl CapacityRecord {
    /// Returns the record of this machine by this build of the program; `None` if there is none, or
    /// one of another machine, kernel or build.
    pub fn cached(tool: &Tool) -> Option<CapacityRecord> {
        CapacityRecord::read(&place()?, tool)
    }

    fn read(path: &Path, tool: &Tool) -> Option<CapacityRecord> {
        let text = fs::read_to_string(path).ok()?;
        let Measurement { kind, provenance, parameters, mut results, .. } =
            serde_json::from_str(&text).ok()?;
        let is_this = kind == KIND && provenance.machine == this_machine() && provenance.tool == *tool;
        let costs = serde_json::from_value(results.remove("costs")?).ok().filter(|_| is_this)?;
        let missing = parameters.get("missing").and_then(|list| serde_json::from_value(list.clone()).ok());
        let (missing, path) = (missing.unwrap_or_default(), Some(path.to_owned()));
        Some(CapacityRecord { costs, missing, provenance, path })
    }

    /// Measures this machine, and keeps the record in the user's cache.
    ///
    /// # Errors
    /// The engine cannot run here.
    pub fn measure(tool: &Tool, effort: Effort, progress: Progress<'_>) -> Result<CapacityRecord> {
        let watch = Watch::start();
        let Calibration { costs, points, missing } =
            calibrate(effort, progress).map_err(|error| Error::Argument(error.to_string()))?;
        let provenance = watch.provenance(tool, 0, points.len() as u64);
        let parameters = Map::from_iter([("missing".to_owned(), json!(missing))]);
        let results = Map::from_iter([
            ("costs".to_owned(), serde_json::to_value(&costs).expect("numbers are JSON")),
            ("points".to_owned(), json!(points)),
        ]);
        let record = Measurement {
            kind: KIND.to_owned(),
            provenance: provenance.clone(),
            parameters,
            results,
            platform: None,
        };
        let path = place().filter(|path| save(path, &record).is_ok());
        Ok(CapacityRecord { costs, missing, provenance, path })
    }

    /// Says what was measured, and when: `measured 23 Nov 2026 on 2 cores …`.
    pub fn describe(&self) -> String {
        let Provenance { machine, disturbance, .. } = &self.provenance;
        let mut text =
            format!("measured {} on {} ({} cores)", self.provenance.started(), machine.cpu, machine.cores);
        if disturbance.disturbed {
            text += &format!(
                ", while other programs used {:.0} % of the machine",
                100.0 * (disturbance.others_share + disturbance.stolen_share)
            );
        }
        if let Some(path) = &self.path {
            text += &format!(": {}", path.display());
        }
        text
    }
}

/// The file of the record of this machine.
fn place() -> Option<PathBuf> {
    let name: String =
        this_machine().name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    Some(cache()?.join("fastpath").join(format!("{KIND}-{name}.json")))
}

fn save(path: &Path, record: &Measurement) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    // Whoever reads meanwhile sees the former record or this one.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, serde_json::to_string(record)?)?;
    fs::rename(&part, path)
}

/// How a network is to be run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CapacityOptions {
    /// How many workers run it.
    pub workers: EngineWorkers,
    /// Where links run.
    pub data_path: DataPathChoice,
    /// Whether a per-packet log is written.
    pub has_log: bool,
    /// The largest lateness that a run allows; none: whatever it is, it breaks no run.
    pub tolerance: Option<fastpath_units::Duration>,
    /// Bytes that frames may take; none: the default of the engine.
    pub memory: Option<NonZeroUsize>,
}

impl CapacityOptions {
    /// Returns the options of a description.
    pub fn of_settings(settings: &EngineSettings) -> CapacityOptions {
        CapacityOptions {
            workers: settings.workers.as_ref().map_or(EngineWorkers::Auto, workers),
            data_path: settings.data_path.unwrap_or_default(),
            has_log: false,
            tolerance: settings.tolerance,
            memory: settings.memory,
        }
    }

    /// Returns the options of a run.
    pub fn of_run(options: &Options) -> CapacityOptions {
        CapacityOptions {
            workers: options.workers.as_ref().map_or(EngineWorkers::Auto, workers),
            data_path: options.data_path,
            has_log: options.packet_log.is_some(),
            tolerance: options.tolerance,
            memory: Some(options.network.pool_limit),
        }
    }

    fn demand(&self, topology: &Topology, port: &str) -> Result<Demand, DemandError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let options = DemandOptions {
            port: port.to_owned(),
            workers: self.workers,
            data_path: self.data_path,
            has_log: self.has_log,
            memory_limit: self.memory.unwrap_or_else(memory_default).get() as f64,
            tolerance_us: self.tolerance.map_or(f64::INFINITY, |tolerance| tolerance.as_ps() as f64 / 1e6),
            frame_bytes: None,
            cores,
        };
        demand(topology, &options)
    }
}

fn workers(workers: &Workers) -> EngineWorkers {
    workers.asked().and_then(NonZeroUsize::new).map_or(EngineWorkers::Auto, EngineWorkers::AtMost)
}

/// What this machine will do with a network.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CapacityAnswer {
    /// Whether it carries the network.
    pub verdict: CapacityVerdict,
    /// The predicted values.
    pub predicted: Predicted,
    /// What limits it, the tightest limit first.
    pub limits: Vec<CapacityLimit>,
    /// What would let it carry more.
    pub remedies: Vec<Remedy>,
    /// The load that was asked about, packets per second; 0 if none is given.
    pub load_packets_per_second: f64,
    /// Reasons to doubt the result.
    pub warnings: Vec<String>,
}

impl CapacityAnswer {
    /// Predicts what a network will do on the machine of a record.
    ///
    /// # Errors
    /// [`Error::Argument`] for a network that carries nothing.
    pub fn of(
        record: &CapacityRecord,
        topology: &Topology,
        options: &CapacityOptions,
    ) -> Result<CapacityAnswer> {
        let refuse = |error: &dyn std::fmt::Display| Error::Argument(format!("capacity: {error}"));
        let mut warnings =
            record.missing.iter().map(|what| format!("not measured: {what}")).collect::<Vec<_>>();
        let port = port_of(&record.costs, topology, &mut warnings);
        let demand = options.demand(topology, port).map_err(|error| refuse(&error))?;
        let predicted = predict(&record.costs, &demand).map_err(|error| refuse(&error))?;
        let unmeasured = record.costs.unmeasured(&demand.packet);
        if !unmeasured.is_empty() {
            warnings.push(format!("queues of kind {} count as drop-tail", unmeasured.join(", ")));
        }
        let shape = &demand.packet;
        warnings.extend(
            record.costs.packet.extrapolations(|name| shape.column(name).filter(|_| name == "pipes")),
        );
        let (verdict, limits) = judge(&demand, &predicted);
        let alternatives = if verdict == CapacityVerdict::Carries {
            Vec::new()
        } else {
            options.alternatives(topology, port, &demand)
        };
        let remedies = remedies(&record.costs, &predicted, &alternatives).map_err(|error| refuse(&error))?;
        let load_packets_per_second = demand.packets_per_second;
        Ok(CapacityAnswer { verdict, predicted, limits, remedies, load_packets_per_second, warnings })
    }

    /// Says in one sentence whether the machine carries the network, why not, and with
    /// what it would.
    pub fn sentence(&self) -> String {
        let rate = |estimate: &Estimate| {
            format!(
                "{} packets/s (95 %: {} to {})",
                count(estimate.value),
                count(estimate.low),
                count(estimate.high)
            )
        };
        let capacity = rate(&self.predicted.packets_per_second);
        let worst = self.limits.first().map_or("", |limit| limit.what.as_str());
        let load = count(self.load_packets_per_second);
        let mut text = match self.verdict {
            CapacityVerdict::Carries => format!("this machine carries it: {load} of {capacity}"),
            CapacityVerdict::UpTo if self.load_packets_per_second > 0.0 => format!(
                "this machine carries up to {capacity}, which may be less than the {load} of the traffic: {worst}"
            ),
            CapacityVerdict::UpTo => {
                format!("this machine carries up to {capacity}; the network has no traffic with a rate")
            }
            CapacityVerdict::Not => {
                format!("this machine does not carry it, because of {worst}: {load} of {capacity}")
            }
        };
        if let Some(remedy) = self.remedies.iter().find(|remedy| remedy.carries).or(self.remedies.first()) {
            let would = if remedy.carries { "it would" } else { "it would carry more" };
            text += &format!("; with {} {would}: {}", remedy.with, rate(&remedy.packets_per_second));
        }
        text
    }

    /// Returns the answer as `fastpath check --capacity --json` prints it.
    pub fn to_json(&self) -> Value {
        let mut value = serde_json::to_value(self).expect("numbers are JSON");
        // JSON has no infinity: the lateness of an overloaded network is null.
        value["sentence"] = json!(self.sentence());
        value
    }
}

impl CapacityOptions {
    /// What else an author could write, with what that asks of the machine.
    fn alternatives(&self, topology: &Topology, port: &str, now: &Demand) -> Vec<(String, Demand)> {
        let mut found = Vec::new();
        let mut add = |with: String, options: CapacityOptions| {
            found.extend(options.demand(topology, port).ok().map(|demand| (with, demand)));
        };
        for count in (now.parts.len() + 1)..=now.cores.min(WORKERS_MAX) {
            let count = NonZeroUsize::new(count).expect("above 1");
            let options = CapacityOptions { workers: EngineWorkers::AtMost(count), ..self.clone() };
            add(format!("--workers {count}"), options);
        }
        if port == "tap" && self.data_path != DataPathChoice::Kernel {
            let options = CapacityOptions { data_path: DataPathChoice::Kernel, ..self.clone() };
            add("--data-path kernel".to_owned(), options);
        }
        if self.has_log {
            add("no --packet-log".to_owned(), CapacityOptions { has_log: false, ..self.clone() });
        }
        found
    }
}

/// The kind of ports in the costs that stands for those of a network.
fn port_of(costs: &EngineCosts, topology: &Topology, warnings: &mut Vec<String>) -> &'static str {
    if costs.lab.is_none() {
        warnings.push(
            "without the cost of ports the packets/s are those between ports in memory: an upper bound"
                .to_owned(),
        );
        return "memory";
    }
    if topology.hosts().any(|(_, host)| host.kind.port_name().is_some()) {
        warnings.push("ports of interfaces are taken to cost as much as TAP ports".to_owned());
    }
    "tap"
}

/// `1.25 M`, `830 k`, `12`.
fn count(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2} M", value / 1e6),
        value if value >= 1e4 => format!("{:.0} k", value / 1e3),
        value => format!("{value:.0}"),
    }
}

/// Adds traffic to a network, each as `from=a,to=b,rate=2Mbit`: keys and values of `[[traffic]]`.
/// `directory` is where files that the network names are searched.
///
/// # Errors
/// [`Error::Argument`] for text that is not of this form; [`Error::Mistakes`] for keys and values
/// that a description could not have.
pub fn with_traffic(spec: &NetworkSpec, texts: &[String], directory: &Path) -> Result<NetworkSpec> {
    if texts.is_empty() {
        return Ok(spec.clone());
    }
    let mut description = describe(&spec.topology);
    description.engine = spec.engine.clone();
    let mut description = description.to_json();
    for text in texts {
        let traffic = traffic(text)?;
        match description.get_mut("traffic").and_then(Value::as_array_mut) {
            Some(list) => list.push(traffic),
            None => description["traffic"] = json!([traffic]),
        }
    }
    let files = |name: &str| fs::read_to_string(directory.join(name)).map_err(|error| error.to_string());
    let read = fastpath_spec::read_json(&description.to_string(), &files);
    let (spec, _) = read.map_err(|mistakes| {
        let in_option =
            |mistake: &fastpath_spec::Mistake| format!("--traffic: {}; {}", mistake.what, mistake.instead);
        Error::Mistakes(mistakes.iter().map(in_option).collect())
    })?;
    Ok(spec)
}

/// Reads `from=a,to=b,rate=2Mbit` as a table of traffic.
fn traffic(text: &str) -> Result<Value> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let value = value.trim();
        let value = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
        Some((key.trim().to_owned(), value))
    };
    let pairs: Option<Map<String, Value>> = text.split(',').map(pair).collect();
    let wrong = || Error::Argument(format!("--traffic '{text}': write from=a,to=b,rate=2Mbit"));
    pairs.map(Value::Object).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
