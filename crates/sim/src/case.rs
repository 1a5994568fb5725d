//! The input of a run as texts, in which any parameter can be changed by name.
//!
//! Names are `machine.cpu.cores=8`, `program.h=10`, `workload.size=64`, `seed=2`, and whole files:
//! `machine=cn6880`.

use crate::bottleneck::find_bottleneck;
use crate::machine::Machine;
use crate::outcome::Outcome;
use crate::parameter::{ParameterError, Text};
use crate::program::Program;
use crate::run::{RunError, run};
use crate::shipped;
use crate::spec::SpecError;
use crate::workload::{Arrivals, Workload, WorkloadError, has_effect};
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The input of a run.
#[derive(Clone, Debug)]
pub struct Case {
    /// The machine file.
    pub machine: Text,
    /// The program file.
    pub program: Text,
    /// The workload as text; `pcap=FILE` if there is a capture.
    pub workload: String,
    /// Times and sizes (with FCS) of the frames of the capture that the workload names.
    pub capture: Option<Vec<(Time, u32)>>,
    /// The seed of every random choice.
    pub seed: u64,
    /// Files that `machine=…` and `program=…` may name in addition to the shipped ones.
    pub files: BTreeMap<String, Text>,
}

/// A case that has been read and checked.
#[derive(Clone, Debug)]
pub struct Input {
    /// The machine.
    pub machine: Machine,
    /// The program.
    pub program: Program,
    /// The workload.
    pub workload: Workload,
    /// The seed of every random choice.
    pub seed: u64,
}

/// A parameter of a case. The order is that of several changes: whole files before their parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// The whole machine.
    Machine,
    /// The whole program.
    Program,
    /// The value of the machine at a path.
    MachineValue(String),
    /// The value of the program at a path.
    ProgramValue(String),
    /// A field of the workload, or `kind`.
    WorkloadField(String),
    /// The seed.
    Seed,
}

/// Why a case cannot be changed, read or run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// No such parameter.
    #[error("parameter {0:?}: write machine.PATH, program.PATH, workload.FIELD, seed, machine or program")]
    UnknownParameter(String),
    /// No such machine or program.
    #[error("{what} {name:?}: no such file, and not shipped (have: {known})")]
    Name {
        /// Machine or program.
        what: &'static str,
        /// The unknown name.
        name: String,
        /// The names of the shipped ones.
        known: String,
    },
    /// The text is not a seed.
    #[error("seed {0:?} is not a whole number")]
    Seed(String),
    /// A value cannot be set.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A file has a mistake.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The workload has a mistake.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Machine, program and workload do not fit each other.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Machine => f.write_str("machine"),
            Parameter::Program => f.write_str("program"),
            Parameter::MachineValue(path) => write!(f, "machine.{path}"),
            Parameter::ProgramValue(path) => write!(f, "program.{path}"),
            Parameter::WorkloadField(field) => write!(f, "workload.{field}"),
            Parameter::Seed => f.write_str("seed"),
        }
    }
}

impl FromStr for Parameter {
    type Err = CaseError;
    fn from_str(text: &str) -> Result<Parameter, CaseError> {
        let bad = || CaseError::UnknownParameter(text.to_owned());
        match text.split_once('.') {
            None if text == "machine" => Ok(Parameter::Machine),
            None if text == "program" => Ok(Parameter::Program),
            None if text == "seed" => Ok(Parameter::Seed),
            Some((_, "")) | None => Err(bad()),
            Some(("machine", path)) => Ok(Parameter::MachineValue(path.to_owned())),
            Some(("program", path)) => Ok(Parameter::ProgramValue(path.to_owned())),
            Some(("workload", field)) => Ok(Parameter::WorkloadField(field.to_owned())),
            Some(_) => Err(bad()),
        }
    }
}

impl Case {
    /// Sets one parameter. A value that makes no sense may be found only when the case is read.
    pub fn set(&mut self, parameter: &Parameter, value: &str) -> Result<(), CaseError> {
        match parameter {
            Parameter::Machine => self.machine = self.machine_named(value)?,
            Parameter::Program => self.program = self.program_named(value)?,
            Parameter::MachineValue(path) => self.machine = self.machine.set(path, value)?,
            Parameter::ProgramValue(path) => self.program = self.program.set(path, value)?,
            Parameter::WorkloadField(field) => self.workload = with_field(&self.workload, field, value),
            Parameter::Seed => self.seed = value.parse().map_err(|_| CaseError::Seed(value.to_owned()))?,
        }
        Ok(())
    }

    /// Reads and checks the texts.
    pub fn input(&self) -> Result<Input, CaseError> {
        Ok(Input {
            machine: self.machine.machine()?,
            program: self.program.program()?,
            workload: self.workload()?,
            seed: self.seed,
        })
    }

    /// Reads the texts, runs the case and determines the bottleneck.
    pub fn run(&self) -> Result<Outcome, CaseError> {
        let Input { machine, program, workload, seed } = self.input()?;
        let mut outcome = run(&machine, &program, &workload, seed)?;
        find_bottleneck(&machine, &program, &workload, seed, &mut outcome)?;
        Ok(outcome)
    }

    fn workload(&self) -> Result<Workload, CaseError> {
        let Some((frames, rest)) = self.capture.as_ref().zip(self.workload.strip_prefix("pcap=")) else {
            return Ok(self.workload.parse()?);
        };
        let fields = || rest.split(',').map(str::trim).skip(1);
        let mut workload = Workload::of_capture(fields())?;
        if !fields().any(|field| field.starts_with("duration=")) {
            let last = frames.last().map_or(Time::ZERO, |(at, _)| *at);
            workload.duration = last.since(Time::ZERO).max(Duration::from_ps(1));
        }
        workload.arrivals = Arrivals::List(frames.clone());
        Ok(workload)
    }

    fn machine_named(&self, name: &str) -> Result<Text, CaseError> {
        let found = shipped::machine_text(name).or_else(|| self.files.get(name).cloned());
        found.ok_or_else(|| no_machine(name))
    }

    fn program_named(&self, name: &str) -> Result<Text, CaseError> {
        let found = shipped::program_text(name).or_else(|| self.files.get(name).cloned());
        found.ok_or_else(|| no_program(name))
    }
}

/// The error for an unknown machine.
pub fn no_machine(name: &str) -> CaseError {
    let known = shipped::MACHINES.map(|(name, _)| name).join(", ");
    CaseError::Name { what: "machine", name: name.to_owned(), known }
}

/// The error for an unknown program.
pub fn no_program(name: &str) -> CaseError {
    let known = shipped::PROGRAMS.map(|(name, _)| name).join(", ");
    CaseError::Name { what: "program", name: name.to_owned(), known }
}

/// Sets one field of a workload. `kind` is the word at its beginning; another kind leaves out the
/// fields that it does not use, which belong to the former one.
fn with_field(workload: &str, field: &str, value: &str) -> String {
    let mut parts: Vec<String> = workload.split(',').map(|part| part.trim().to_owned()).collect();
    let new = format!("{field}={value}");
    match parts.iter_mut().skip(1).find(|part| part.split_once('=').is_some_and(|(key, _)| key == field)) {
        _ if field == "kind" => {
            parts[0] = value.to_owned();
            let key = |part: &String| part.split('=').next().unwrap_or_default().to_owned();
            let others = parts.split_off(1);
            parts.extend(others.into_iter().filter(|part| has_effect(value, &key(part))));
        }
        Some(part) => *part = new,
        None => parts.push(new),
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> Case {
        Case {
            machine: shipped::machine_text("xeon-e5-2687wv4").unwrap(),
            program: shipped::program_text("netcope").unwrap(),
            workload: "constant,rate=1Mpps,duration=1ms".to_owned(),
            capture: None,
            seed: 1,
            files: BTreeMap::new(),
        }
    }

    fn set(case: &mut Case, name: &str, value: &str) -> Result<(), CaseError> {
        case.set(&name.parse()?, value)
    }

    #[test]
    fn every_parameter_of_a_case_can_be_set() {
        let mut changed = case();
        for (name, value) in [
            ("machine.cpu.cores", "3"),
            ("program.h", "7"),
            ("workload.size", "128"),
            ("workload.duration", "2ms"),
            ("workload.kind", "poisson"),
            ("seed", "9"),
        ] {
            set(&mut changed, name, value).unwrap();
        }
        let input = changed.input().unwrap();
        assert_eq!(input.machine.servers("cpu"), Some(3));
        assert_eq!(changed.workload, "poisson,rate=1Mpps,duration=2ms,size=128");
        assert_eq!((input.seed, input.workload.duration), (9, Duration::from_ms(2)));
        // 7 steps of 4.07 ns, and 64 bytes more of 0.101 ns.
        let mean = |case: &Case| case.run().unwrap().latency_us.unwrap().mean;
        changed.workload = "constant,rate=1Mpps,duration=1ms,size=128".to_owned();
        let difference_ns = 1000.0 * (mean(&changed) - mean(&case()));
        // The wire adds 5.12 ns for 64 bytes.
        assert!((difference_ns - 7.0 * 4.07 - 64.0 * 0.101 - 5.12).abs() < 0.5, "{difference_ns}");
        set(&mut changed, "machine", "cn6880").unwrap();
        assert_eq!(changed.input().unwrap().machine.name, "cn6880");
    }

    #[test]
    fn an_unknown_parameter_is_reported_with_the_known_ones() {
        for (name, value, says) in [
            ("cores", "1", "machine.PATH"),
            ("machine.", "1", "machine.PATH"),
            ("machine", "z80", "cn6880-pair"),
            ("program", "doom", "linkem"),
            ("seed", "x", "whole number"),
            ("program.k", "1", "write h"),
        ] {
            let error = set(&mut case(), name, value).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let mut unknown = case();
        set(&mut unknown, "workload.speed", "3").unwrap();
        assert!(matches!(unknown.input(), Err(CaseError::Workload(WorkloadError::Field(_)))));
    }

    #[test]
    fn every_field_of_a_workload_has_an_effect_or_is_a_mistake() {
        for (text, says) in [
            ("line-rate,rate=5Gbit", "line-rate: rate has no effect on it"),
            ("line-rate,on=5us", "on has no effect"),
            ("poisson,links=4", "links has no effect"),
            ("links,rate=1Mbit,flows=4", "flows has no effect"),
            ("on-off,links=4", "write one of size, on, off, rate, ports"),
            ("line-rate,size=64,size=65", "\"size\" is given twice"),
            ("line-rate,flows=64B", "1 … 1048576"),
            ("line-rate,size=64BB", "imix"),
        ] {
            let error = text.parse::<Workload>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!("line-rate,size=64B".parse::<Workload>().is_ok());
        let mut replay = case();
        replay.workload = "pcap=x.pcap,size=100".to_owned();
        replay.capture = Some(vec![(Time::ZERO, 100)]);
        assert!(replay.run().unwrap_err().to_string().contains("pcap: size has no effect"));
        // A sweep over kinds keeps the fields of each.
        let mut changed = case();
        set(&mut changed, "workload.kind", "line-rate").unwrap();
        assert_eq!(changed.workload, "line-rate,duration=1ms");
    }

    #[test]
    fn a_capture_lasts_until_its_last_frame() {
        let at = |us, size| (Time::ZERO + Duration::from_us(us), size);
        let mut replay = case();
        replay.workload = "pcap=x.pcap,flows=1".to_owned();
        replay.capture = Some((0..1000).map(|i| at(i, 100)).collect());
        let outcome = replay.run().unwrap();
        assert_eq!((outcome.offered, outcome.forwarded), (1000, 1000));
        replay.workload += ",duration=99us";
        assert_eq!(replay.run().unwrap().offered, 100);
        replay.capture = None;
        assert!(replay.run().unwrap_err().to_string().contains("pcap=FILE"));
    }
}
