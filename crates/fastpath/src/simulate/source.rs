//! Where the parts of a simulation come from: shipped names, files, captures, and changes of single
//! values.

use super::measured;
use super::run::{SimulationRun, run};
use crate::error::{Error, Result};
use crate::replay::WorkerCount;
use fastpath_sim::case::{Case, Parameter, no_machine, no_program};
use fastpath_sim::parameter::Text;
use fastpath_sim::shipped;
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::CaptureReader;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The workload, if none is given.
pub const WORKLOAD: &str = "line-rate,size=64,duration=10ms";
/// Longest machine or program file, bytes.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// Frames of a capture that are kept, 16 bytes each.
const FRAMES_MAX: usize = 50_000_000;
/// Length of the frame check sequence, which captures leave out.
const FCS: u32 = 4;
/// Size of an Ethernet frame on the wire, with FCS.
const FRAME_SIZE: std::ops::RangeInclusive<u32> = 64..=65_535;

/// What is simulated: a machine, a program, a workload, changes of single values, and a seed.
///
/// ```
/// use fastpath::simulate::Simulation;
///
/// let workload = "line-rate,size=64,ports=4,duration=1ms".to_owned();
/// let run = Simulation { workload, ..Simulation::new("ixp1200", "linkem") }.run()?;
/// assert!(run.outcome.forwarded_pps < run.outcome.offered_pps);
/// # Ok::<(), fastpath::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    /// A shipped machine, a machine file (TOML), or `this-host=RECORDS`.
    pub machine: String,
    /// A shipped program, a program file (TOML), or `pipeline=RECORDS`.
    pub program: String,
    /// The arriving packets, such as `line-rate,size=64,duration=10ms` or `pcap=FILE`.
    pub workload: String,
    /// Values to change in machine, program or workload, in order.
    pub changes: Vec<(Parameter, String)>,
    /// The seed of every random choice.
    pub seed: u64,
}

/// Parses a change of a value: `NAME=VALUE`.
///
/// # Errors
/// What to write.
pub fn parse_change(text: &str) -> std::result::Result<(Parameter, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.parse().map_err(|error| format!("{error}"))?, value.to_owned()))
}

impl Simulation {
    /// Describes a program on a machine, with packets of 64 bytes at line rate for 10 ms.
    pub fn new(machine: impl Into<String>, program: impl Into<String>) -> Simulation {
        Simulation {
            machine: machine.into(),
            program: program.into(),
            workload: WORKLOAD.to_owned(),
            changes: Vec::new(),
            seed: 1,
        }
    }

    /// Simulates it on all cores, and finds the bottleneck.
    ///
    /// # Errors
    /// As [`Simulation::case`]; a program that does not fit the machine.
    pub fn run(&self) -> Result<SimulationRun> {
        run(&self.case()?.input()?, None, WorkerCount::Auto, None)
    }

    /// Returns the parameters of records: program, changes, and the fields of the workload.
    pub fn parameters(&self) -> Map<String, Value> {
        let value = |text: &str| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
        let mut parameters = Map::from_iter([("program".to_owned(), json!(self.program))]);
        let mut fields = self.workload.split(',');
        parameters.insert("workload".to_owned(), json!(fields.next().unwrap_or_default()));
        parameters.extend(fields.filter_map(|f| f.split_once('=')).map(|(k, v)| (k.to_owned(), value(v))));
        parameters.extend(self.changes.iter().map(|(target, v)| (target.to_string(), value(v))));
        parameters
    }

    /// Reads the files that it names.
    ///
    /// # Errors
    /// Unknown names, files that cannot be read, changes that do not fit.
    pub fn case(&self) -> Result<Case> {
        self.with_texts(machine_text(&self.machine)?, program_text(&self.program)?)
    }

    /// As [`Simulation::case`], where the files of machine and program have been read.
    ///
    /// # Errors
    /// A capture that cannot be read, changes that do not fit.
    pub fn with_texts(&self, machine: Text, program: Text) -> Result<Case> {
        let capture = match self.workload.strip_prefix("pcap=") {
            None => None,
            Some(rest) => {
                let file = rest.split_once(',').map_or(rest, |(file, _)| file);
                Some(capture(Path::new(file))?)
            }
        };
        let mut case = Case {
            machine,
            program,
            workload: self.workload.clone(),
            capture,
            seed: self.seed,
            files: BTreeMap::new(),
        };
        for (at, (target, _)) in self.changes.iter().enumerate() {
            if self.changes[..at].iter().any(|(other, _)| other == target) {
                return Err(Error::Argument(format!("--set {target} is given twice; write it once")));
            }
        }
        self.changes.iter().try_for_each(|(target, value)| case.set(target, value))?;
        // A change that makes no sense is reported as such, in addition to the line that it
        // changed.
        for (target, value) in &self.changes {
            let named =
                |error: &dyn std::fmt::Display| Error::Argument(format!("--set {target}={value}: {error}"));
            match target {
                Parameter::MachineValue(_) => drop(case.machine.machine().map_err(|error| named(&error))?),
                Parameter::ProgramValue(_) => drop(case.program.program().map_err(|error| named(&error))?),
                _ => {}
            }
        }
        Ok(case)
    }
}

/// A shipped machine, a file, or this host as it was measured.
pub fn machine_text(name: &str) -> Result<Text> {
    if name == "this-host" {
        return Err(Error::argument(
            "this-host is made of a record: fastpath measure host -o host.jsonl, then this-host=host.jsonl",
        ));
    }
    if let Some(records) = name.strip_prefix("this-host=") {
        return measured::machine(records);
    }
    shipped::machine_text(name).map_or_else(|| file(name, || no_machine(name).into()), Ok)
}

/// A shipped program, a file, or a pipeline as it was measured.
pub fn program_text(name: &str) -> Result<Text> {
    if let Some(records) = name.strip_prefix("pipeline=") {
        return measured::program(records);
    }
    shipped::program_text(name).map_or_else(|| file(name, || no_program(name).into()), Ok)
}

fn file(name: &str, unknown: impl Fn() -> Error) -> Result<Text> {
    let path = Path::new(name);
    if !path.exists() {
        return Err(unknown());
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(Error::file(path))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(Error::Argument(format!(
            "{name}: longer than {TEXT_BYTES_MAX} bytes; is this a description?"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::Argument(format!("{name}: not UTF-8 text; is this a TOML file?")))?;
    Ok(Text::new(name, text))
}

/// Reads the frames of a capture: times from the first frame on, and sizes with FCS, padded to 64
/// bytes as on the wire.
fn capture(path: &Path) -> Result<Vec<(Time, u32)>> {
    let damaged = |source| Error::Capture { path: path.to_owned(), source };
    let refused =
        |text: &str| Error::File { path: path.to_owned(), source: io::Error::other(text.to_owned()) };
    let mut reader = CaptureReader::new(File::open(path).map_err(Error::file(path))?).map_err(damaged)?;
    let (mut frames, mut start) = (Vec::new(), None);
    while let Some(packet) = reader.read_packet().map_err(damaged)? {
        if frames.len() >= FRAMES_MAX {
            return Err(refused(&format!("more than {FRAMES_MAX} packets; cut it (editcap)")));
        }
        let ns = packet.ns;
        let ns =
            ns.ok_or_else(|| refused("packets without times (pcapng simple packets) are not a workload"))?;
        // A packet older than the first arrives with it. The order of the file is the order of
        // arrival.
        let after = ns.saturating_sub(*start.get_or_insert(ns));
        let at = after.checked_mul(1000).map(Duration::from_ps);
        let at =
            at.ok_or_else(|| refused("the capture lasts more than 213 days; shift its times (editcap -t)"))?;
        let size = packet.orig_len.saturating_add(FCS);
        frames.push((Time::ZERO + at, size.clamp(*FRAME_SIZE.start(), *FRAME_SIZE.end())));
    }
    if frames.is_empty() {
        return Err(refused("no packet in it"));
    }
    Ok(frames)
}
