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
//! skip = { share = "80%", to = "send", per = "flow" }   # these go on at a later stage; per = "packet" otherwise
//! steps = [
//!   { compute = 120 },               # cycles
//!   { time = "101ps", per = "byte" },
//!   { read = "flows", times = "h" },
//!   { write = "sdram", bytes = 32, times = 2, per = "chunk" },
//!   { compute = 40, over = 64 },     # only for packets of more than 64 bytes
//! ]
//! ```
//!
//! Consecutive stages on one unit run there in one go (run to completion; a microblock group),
//! unless the tag changes. Consecutive steps `per = "chunk"` are one loop over the packet's chunks.

use crate::machine::Machine;
use crate::memory::Access;
use crate::scheduler::Tag;
use crate::spec::{Name, PerByte, Problem, Source, SpecError, optional, text};
use fastpath_units::{Bytes, Duration, Probability, Rng};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A program: what each packet costs.
#[derive(Clone, Debug)]
pub struct Program {
    file: String,
    text: String,
    raw: Raw,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
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
    /// Packets whose remaining stages are skipped, up to the one named.
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

/// What a share is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SkipPer {
    /// Any packet, drawn anew.
    #[default]
    Packet,
    /// Flows: a packet goes the way of its flow.
    Flow,
}

/// A way past some legs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip {
    share: Probability,
    per: SkipPer,
    /// The leg it leads to; one past the last: the packet is done.
    to: usize,
}

impl Skip {
    /// The leg a packet of `flow` goes on at, if it takes this way.
    pub(crate) fn target(&self, flow: u32, rng: &mut Rng) -> Option<usize> {
        let taken = match self.per {
            SkipPer::Packet => self.share.draw(rng),
            // Multiples of the golden ratio fill 0 … 1 evenly: any number of flows has its share,
            // on every port.
            SkipPer::Flow => {
                let place = (u64::from(flow) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((place >> 11) as f64 / (1u64 << 53) as f64) < self.share.get()
            }
        };
        taken.then_some(self.to)
    }
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

fn word() -> u32 {
    4
}

/// How often a step may be done, the cycles it may compute, and what all of that may take: time
/// ends after 213 days.
const TIMES_MAX: u32 = 1_000_000;
const CYCLES_MAX: u64 = 1_000_000_000_000;
const STEP_PS_MAX: u128 = 60_000_000_000_000;

impl StepSpec {
    /// How often it is done; 1 for a parameter that is not there, which is an error of its own.
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

/// One thing a thread does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    Compute {
        fixed: Duration,
        per_byte: PerByte,
    },
    /// A reference to memory number `memory`.
    Access {
        memory: u16,
        access: Access,
        bytes: u32,
    },
    /// A reference into region number `region`, behind a cache.
    Touch {
        region: u16,
    },
    Enter(u16),
    Leave(u16),
}

/// A run of operations, each so many times, done once per packet or once per chunk.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) per_chunk: bool,
    /// Only packets of more bytes than this.
    pub(crate) over: u32,
    pub(crate) ops: Vec<(Op, u32)>,
}

/// What a packet does at one unit before it moves on.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) unit: usize,
    pub(crate) tag: Tag,
    /// The way some packets take past the next legs.
    pub(crate) skip: Option<Skip>,
    pub(crate) blocks: Vec<Block>,
}

/// A program bound to a machine.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) legs: Vec<Leg>,
    /// Size and cache of each region.
    pub(crate) regions: Vec<(Bytes, usize)>,
    pub(crate) locks: Vec<String>,
    pub(crate) chunk: u32,
}

impl Route {
    pub(crate) fn chunks(&self, size: u32) -> u32 {
        size.div_ceil(self.chunk).max(1)
    }
}

/// Where a thread is in a leg.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    block: u32,
    turn: u32,
    op: u32,
    repeat: u32,
}

impl Cursor {
    /// The next operation of a packet of `size` bytes in `chunks` chunks in `leg`, or `None` at its
    /// end.
    #[inline]
    pub(crate) fn next(&mut self, leg: &Leg, size: u32, chunks: u32) -> Option<Op> {
        loop {
            let block = leg.blocks.get(self.block as usize)?;
            if block.over > 0 && size <= block.over {
                self.block += 1;
                continue;
            }
            match block.ops.get(self.op as usize) {
                Some(&(op, times)) if self.repeat < times => {
                    self.repeat += 1;
                    return Some(op);
                }
                Some(_) => {
                    self.op += 1;
                    self.repeat = 0;
                }
                None => {
                    self.op = 0;
                    self.turn += 1;
                    if self.turn == if block.per_chunk { chunks } else { 1 } {
                        self.turn = 0;
                        self.block += 1;
                    }
                }
            }
        }
    }
}

impl Program {
    /// Reads a program from the text of `file` (the name is used in errors only).
    pub fn parse(file: &str, text: &str) -> Result<Program, SpecError> {
        let raw: Raw = Source { file, text }.parse()?;
        if raw.stage.is_empty() {
            return Err(Source { file, text }.error(0, Problem::Empty("a program without stages")));
        }
        Ok(Program { file: file.to_owned(), text: text.to_owned(), raw })
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.raw.name
    }

    /// Where its numbers come from.
    pub fn source(&self) -> &str {
        &self.raw.source
    }

    /// The names of its parameters.
    pub fn params(&self) -> Vec<String> {
        self.raw.params.keys().cloned().collect()
    }

    /// The same program with parameter `name` set to `value`. `None` if it has no such parameter.
    pub fn with(mut self, name: &str, value: u32) -> Option<Program> {
        *self.raw.params.get_mut(name)? = value;
        Some(self)
    }

    /// Binds the program to a machine: every unit, memory and lock by number. Errors name the
    /// program's line.
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
            params: &self.raw.params,
            units: machine.units(),
            memories: machine.memory.iter().map(|m| m.name.as_ref().clone()).collect(),
            regions: self.raw.region.iter().map(|r| r.name.as_ref().clone()).collect(),
            locks: Vec::new(),
        };
        let regions = self.raw.region.iter().map(region).collect::<Result<_, _>>()?;
        let legs = binder.legs(&self.raw.stage)?;
        Ok(Route { legs, regions, locks: binder.locks, chunk: machine.ports.chunk })
    }
}

/// The names a program may use, while it is bound.
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
            let blocks = self.blocks(stage)?;
            let target =
                stages.iter().any(|s| s.skip.as_ref().is_some_and(|k| k.to.as_ref() == stage.name.as_ref()));
            match legs.last_mut() {
                Some(leg) if leg.unit == unit && leg.tag == stage.tag && leg.skip.is_none() && !target => {
                    leg.blocks.extend(blocks);
                }
                _ => legs.push(Leg { unit, tag: stage.tag, skip: None, blocks }),
            }
            let leg = legs.len() - 1;
            leg_of.push(leg);
            // Where to is known only when all stages are placed; until then the stage's own number
            // stands in.
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
                return Err(self.source.at(to, Problem::Cycle { from, to: to_name }));
            }
            *target = leg_of[place];
        }
        Ok(legs)
    }

    fn blocks(&mut self, stage: &StageSpec) -> Result<Vec<Block>, SpecError> {
        let mut blocks: Vec<Block> = Vec::new();
        for step in &stage.steps {
            let op = self.op(stage, step)?;
            let times = match &step.times {
                Times::Number(n) => *n,
                Times::Param(name) => *self.params.get(name).ok_or_else(|| {
                    let known = self.params.keys().cloned().collect::<Vec<_>>().join(", ");
                    let problem = Problem::Unknown { what: "parameter", name: name.clone(), known };
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
            match blocks.last_mut() {
                Some(block) if block.per_chunk == per_chunk && block.over == step.over => {
                    block.ops.push((op, times));
                }
                _ => blocks.push(Block { per_chunk, over: step.over, ops: vec![(op, times)] }),
            }
        }
        Ok(blocks)
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
            _ => Err(self.source.at(&stage.name, Problem::Step)),
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
