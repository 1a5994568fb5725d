//! A program as data: the stages a packet goes through, where each runs, and what it costs there.
//!
//! ```toml
//! name = "example"
//! source = "where the numbers come from"
//! params = { h = 10 }                # numbers that `times` may name
//! [[region]]                         # memory touched at random, behind a cache
//! name = "flows"
//! size = "64MiB"
//! cache = "llc"
//! [[stage]]
//! name = "lookup"
//! on = "cpu"                         # a unit of the machine
//! tag = "ordered"                    # for hardware schedulers: parallel, ordered, atomic
//! skip = { share = "80%", to = "send", per = "flow" }   # to a later stage; absent: per = "packet"
//! steps = [
//!   { compute = 120 },               # cycles
//!   { time = "101ps", per = "byte" },
//!   { read = "flows", times = "h" },
//!   { write = "sdram", bytes = 32, times = 2, per = "chunk" },
//!   { compute = 40, over = 64 },     # only for packets of more than 64 bytes
//! ]
//! ```
//!
//! Consecutive stages on one unit run without a break (run to completion; a microblock group),
//! unless the tag changes. Consecutive steps with `per = "chunk"` are one loop over the packet's
//! chunks.

use crate::machine::Machine;
use crate::memory::Access;
use crate::route::{Leg, Op, OpGroup, Route, Skip, SkipPer};
use crate::scheduler::Tag;
use crate::spec::{Name, PerByte, Source, SpecError, SpecProblem, optional, text, word};
use fastpath_units::{Bytes, Duration, Probability};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A program: the cost of each packet at each unit.
#[derive(Clone, Debug)]
pub struct Program {
    file: String,
    text: String,
    read: ProgramFile,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramFile {
    name: String,
    source: String,
    #[serde(default)]
    params: BTreeMap<String, u32>,
    #[serde(default)]
    region: Vec<RegionSpec>,
    #[serde(default)]
    stage: Vec<StageSpec>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionSpec {
    name: Name,
    #[serde(deserialize_with = "text")]
    size: Bytes,
    cache: Name,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StageSpec {
    name: Name,
    on: Name,
    #[serde(default)]
    tag: Tag,
    /// Packets that skip the following stages, up to the one named.
    skip: Option<SkipSpec>,
    #[serde(default)]
    steps: Vec<StepSpec>,
    #[serde(default, rename = "source")]
    _source: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkipSpec {
    #[serde(deserialize_with = "text")]
    share: Probability,
    #[serde(default)]
    per: SkipPer,
    to: Name,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepSpec {
    compute: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    time: Option<Duration>,
    read: Option<Name>,
    write: Option<Name>,
    enter: Option<Name>,
    leave: Option<Name>,
    #[serde(default = "word")]
    bytes: u32,
    #[serde(default)]
    times: Times,
    #[serde(default)]
    per: Per,
    /// Only for packets of more bytes than this.
    #[serde(default)]
    over: u32,
}

/// The most repetitions of a step, the most cycles of one, and the longest time of all repetitions
/// in picoseconds. Virtual time ends after 213 days.
const TIMES_MAX: u32 = 1_000_000;
const CYCLES_MAX: u64 = 1_000_000_000_000;
const STEP_PS_MAX: u128 = 60_000_000_000_000;

impl StepSpec {
    /// The number of repetitions; 1 for an unknown parameter, which is reported elsewhere.
    fn most(&self, params: &BTreeMap<String, u32>) -> u32 {
        match &self.times {
            Times::Number(n) => *n,
            Times::Param(name) => params.get(name).copied().unwrap_or(1),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Times {
    Number(u32),
    Param(String),
}

impl Default for Times {
    fn default() -> Self {
        Times::Number(1)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Per {
    #[default]
    Packet,
    Chunk,
    Byte,
}

impl Program {
    /// Reads a program from the text of `file`. The name appears in errors only.
    pub fn parse(file: &str, text: &str) -> Result<Program, SpecError> {
        let read: ProgramFile = Source { file, text }.parse()?;
        if read.stage.is_empty() {
            return Err(Source { file, text }.error(0, SpecProblem::Empty("a program without stages")));
        }
        Ok(Program { file: file.to_owned(), text: text.to_owned(), read })
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.read.name
    }

    /// The publication that its numbers come from.
    pub fn source(&self) -> &str {
        &self.read.source
    }

    /// The names of its parameters.
    pub fn params(&self) -> Vec<String> {
        self.read.params.keys().cloned().collect()
    }

    /// The same program with parameter `name` set to `value`. `None` if it has no such parameter.
    pub fn with(mut self, name: &str, value: u32) -> Option<Program> {
        *self.read.params.get_mut(name)? = value;
        Some(self)
    }

    /// Binds the program to a machine: resolves the names of units, memories and locks to numbers.
    /// Errors name the program's line.
    pub(crate) fn bind(&self, machine: &Machine) -> Result<Route, SpecError> {
        let source = Source { file: &self.file, text: &self.text };
        let caches: Vec<String> = machine.cache.iter().map(|c| c.name.as_ref().clone()).collect();
        let region = |r: &RegionSpec| match source.find(&r.cache, "cache", &caches) {
            Ok(_) if r.size == Bytes::ZERO => Err(source.range(&r.name, "size", "above 0")),
            found => found.map(|cache| (r.size, cache)),
        };
        let mut binder = Binder {
            source,
            machine,
            params: &self.read.params,
            units: machine.units(),
            memories: machine.memory.iter().map(|m| m.name.as_ref().clone()).collect(),
            regions: self.read.region.iter().map(|r| r.name.as_ref().clone()).collect(),
            locks: Vec::new(),
        };
        let regions = self.read.region.iter().map(region).collect::<Result<_, _>>()?;
        let legs = binder.legs(&self.read.stage)?;
        Ok(Route { legs, regions, locks: binder.locks, chunk: machine.ports.chunk })
    }
}

/// The names that a program may use, while it is bound.
struct Binder<'a> {
    source: Source<'a>,
    machine: &'a Machine,
    params: &'a BTreeMap<String, u32>,
    units: Vec<String>,
    memories: Vec<String>,
    regions: Vec<String>,
    locks: Vec<String>,
}

impl Binder<'_> {
    fn legs(&mut self, stages: &[StageSpec]) -> Result<Vec<Leg>, SpecError> {
        let mut legs: Vec<Leg> = Vec::new();
        // The leg each stage begins in, for skips.
        let mut leg_of = Vec::with_capacity(stages.len());
        for stage in stages {
            let unit = self.source.find(&stage.on, "unit", &self.units)?;
            let groups = self.groups(stage)?;
            let target =
                stages.iter().any(|s| s.skip.as_ref().is_some_and(|k| k.to.as_ref() == stage.name.as_ref()));
            match legs.last_mut() {
                Some(leg) if leg.unit == unit && leg.tag == stage.tag && leg.skip.is_none() && !target => {
                    leg.groups.extend(groups);
                }
                _ => legs.push(Leg { unit, tag: stage.tag, skip: None, groups }),
            }
            let leg = legs.len() - 1;
            leg_of.push(leg);
            // The target's leg is known only when all stages are placed. Until then `to` holds the
            // number of this stage.
            let here = leg_of.len() - 1;
            legs[leg].skip = stage.skip.as_ref().map(|s| Skip { share: s.share, per: s.per, to: here });
        }
        for leg in &mut legs {
            let Some(Skip { to: target, .. }) = &mut leg.skip else { continue };
            let stage = &stages[*target];
            let to = &stage.skip.as_ref().expect("set above").to;
            let names: Vec<String> = stages.iter().map(|s| s.name.as_ref().clone()).collect();
            let place = self.source.find(to, "stage", &names)?;
            if place <= *target {
                let (from, to_name) = (stage.name.as_ref().clone(), to.as_ref().clone());
                return Err(self.source.at(to, SpecProblem::Cycle { from, to: to_name }));
            }
            *target = leg_of[place];
        }
        Ok(legs)
    }

    fn groups(&mut self, stage: &StageSpec) -> Result<Vec<OpGroup>, SpecError> {
        let mut groups: Vec<OpGroup> = Vec::new();
        for step in &stage.steps {
            let op = self.op(stage, step)?;
            let times = match &step.times {
                Times::Number(n) => *n,
                Times::Param(name) => *self.params.get(name).ok_or_else(|| {
                    let known = self.params.keys().cloned().collect::<Vec<_>>().join(", ");
                    let problem = SpecProblem::Unknown { what: "parameter", name: name.clone(), known };
                    self.source.at(&stage.name, problem)
                })?,
            };
            if times > TIMES_MAX {
                return Err(self.source.range(&stage.name, "times", "at most 1000000"));
            }
            // Computing n times is computing once for n times as long.
            let (op, times) = match op {
                Op::Compute { fixed, per_byte } => {
                    let n = u64::from(times);
                    (Op::Compute { fixed: fixed * n, per_byte: per_byte.scaled(n) }, 1)
                }
                op => (op, times),
            };
            let per_chunk = step.per == Per::Chunk;
            match groups.last_mut() {
                Some(group) if group.per_chunk == per_chunk && group.over == step.over => {
                    group.ops.push((op, times));
                }
                _ => groups.push(OpGroup { per_chunk, over: step.over, ops: vec![(op, times)] }),
            }
        }
        Ok(groups)
    }

    fn op(&mut self, stage: &StageSpec, step: &StepSpec) -> Result<Op, SpecError> {
        let clock = || {
            let range = "a unit that runs programs (cores, microengine, egress), for a stage with steps";
            self.machine.clock(stage.on.as_ref()).ok_or_else(|| self.source.range(&stage.on, "kind", range))
        };
        let compute = |span: Duration| match step.per {
            Per::Byte => Op::Compute { fixed: Duration::ZERO, per_byte: PerByte::of(span) },
            Per::Packet | Per::Chunk => Op::Compute { fixed: span, per_byte: PerByte::default() },
        };
        let clock = clock()?;
        let compute = |span: Duration| {
            let bytes = if step.per == Per::Byte { u128::from(u16::MAX) } else { 1 };
            let times = u128::from(TIMES_MAX.min(step.most(self.params)));
            match u128::from(span.as_ps()) * bytes * times {
                0..=STEP_PS_MAX => Ok(compute(span)),
                _ => Err(self.source.range(&stage.name, "a step", "at most a minute long")),
            }
        };
        match (step.compute, step.time, &step.read, &step.write, &step.enter, &step.leave) {
            (Some(cycles), None, None, None, None, None) if cycles > CYCLES_MAX => {
                Err(self.source.range(&stage.name, "compute", "at most 10^12 cycles"))
            }
            (Some(cycles), None, None, None, None, None) => compute(clock.cycles(cycles)),
            (None, Some(span), None, None, None, None) => compute(span),
            (None, None, Some(name), None, None, None) => self.access(name, Access::Read, step),
            (None, None, None, Some(name), None, None) => self.access(name, Access::Write, step),
            (None, None, None, None, Some(name), None) => Ok(Op::Enter(self.lock(name))),
            (None, None, None, None, None, Some(name)) => Ok(Op::Leave(self.lock(name))),
            _ => Err(self.source.at(&stage.name, SpecProblem::Step)),
        }
    }

    fn access(&self, name: &Name, access: Access, step: &StepSpec) -> Result<Op, SpecError> {
        if let Some(region) = self.regions.iter().position(|r| r == name.as_ref()) {
            return Ok(Op::Touch { region: region as u16 });
        }
        let known = [&self.memories[..], &self.regions[..]].concat();
        let memory = self.source.find(name, "memory or region", &known)? as u16;
        Ok(Op::Access { memory, access, bytes: step.bytes })
    }

    fn lock(&mut self, name: &Name) -> u16 {
        let known = self.locks.iter().position(|l| l == name.as_ref());
        known.unwrap_or_else(|| {
            self.locks.push(name.as_ref().clone());
            self.locks.len() - 1
        }) as u16
    }
}
