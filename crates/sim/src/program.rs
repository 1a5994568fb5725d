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
//! add = 50                           # bytes that a packet has more afterwards; strip = 50: fewer
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
//! A region without a size is the packet itself: a reference finds it in the cache if the `[[pcie]]`
//! before has put it there, and in the memory behind the cache otherwise.
//!
//! Consecutive stages on one unit run without a break (run to completion; a microblock group),
//! unless the tag or the size of the packet changes. Consecutive steps with `per = "chunk"` are one loop over the packet's
//! chunks.

use crate::keys::{self, FileValue, read_table, read_word};
use crate::machine::Machine;
use crate::memory::Access;
use crate::route::{Leg, Op, OpGroup, Region, Route, Skip, SkipPer};
use crate::scheduler::Tag;
use crate::spec::{Name, PerByte, SpecError, WORD, find, out_of_range, result};
use crate::unit::UnitType;
use fastpath_text::document;
use fastpath_text::fields::{Field, Fields};
use fastpath_text::mistake::{Remarks, choice};
use fastpath_text::tree::Tree;
use fastpath_units::{Bytes, Duration, Probability};
use std::collections::BTreeMap;

/// A program: the cost of each packet at each unit.
#[derive(Clone, Debug)]
pub struct Program {
    file: String,
    text: String,
    read: ProgramFile,
}

#[derive(Clone, Debug)]
struct ProgramFile {
    name: String,
    source: String,
    params: BTreeMap<String, u32>,
    region: Vec<RegionSpec>,
    stage: Vec<StageSpec>,
}

#[derive(Clone, Debug)]
struct RegionSpec {
    name: Name,
    /// `None`: the bytes of the packet, where a `[[pcie]]` has written them.
    size: Option<Bytes>,
    cache: Name,
}

#[derive(Clone, Debug)]
struct StageSpec {
    name: Name,
    on: Name,
    tag: Tag,
    /// Packets that skip the following stages, up to the one named.
    skip: Option<SkipSpec>,
    /// Bytes that the stage takes from a packet, and bytes that it adds.
    strip: u32,
    add: u32,
    steps: Vec<StepSpec>,
}

#[derive(Clone, Debug)]
struct SkipSpec {
    share: Probability,
    per: SkipPer,
    to: Name,
}

#[derive(Clone, Debug)]
struct StepSpec {
    compute: Option<u64>,
    time: Option<Duration>,
    read: Option<Name>,
    write: Option<Name>,
    enter: Option<Name>,
    leave: Option<Name>,
    /// `None`: a word.
    bytes: Option<u32>,
    times: Times,
    per: Per,
    /// Only for packets of more bytes than this.
    over: u32,
}

/// The most repetitions of a step, the most cycles of one, and the longest time of all repetitions
/// in picoseconds. Virtual time ends after 213 days.
/// The most bytes that a stage takes or adds.
const BYTES_MAX: u32 = 65_535;
const TIMES_MAX: u32 = 1_000_000;
const CYCLES_MAX: u64 = 1_000_000_000_000;
const STEP_PS_MAX: u128 = 60_000_000_000_000;

impl StepSpec {
    /// The number of repetitions; 1 for an unknown parameter, which is reported elsewhere.
    fn most(&self, params: &BTreeMap<String, u32>) -> u32 {
        match &self.times {
            Times::Number(n) => *n,
            Times::Param(name) => params.get(&name.text).copied().unwrap_or(1),
        }
    }
}

#[derive(Clone, Debug)]
enum Times {
    Number(u32),
    Param(Name),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Per {
    #[default]
    Packet,
    Chunk,
    Byte,
}

read_table!(RegionSpec as "region", "{ name = \"flows\", size = \"64MiB\", cache = \"llc\" }": {
    name,
    size = None,
    cache,
});

read_table!(StageSpec as "stage", "{ name = \"lookup\", on = \"cpu\" }": {
    name,
    on,
    tag = Tag::Parallel,
    skip = None,
    strip = 0,
    add = 0,
    steps = Vec::new(),
});

read_table!(SkipSpec as "skip", "{ share = \"80%\", to = \"send\" }": { share, per = SkipPer::Packet, to });

read_table!(StepSpec as "a step", "{ compute = 120 }": {
    compute = None,
    time = None,
    read = None,
    write = None,
    enter = None,
    leave = None,
    bytes = None,
    times = Times::Number(1),
    per = Per::Packet,
    over = 0,
});

read_word!(Per as "what a step is done for": [
    "packet" => Per::Packet,
    "chunk" => Per::Chunk,
    "byte" => Per::Byte,
]);

impl FileValue for Times {
    const EXAMPLE: &'static str = "2";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Times> {
        match field.value {
            Tree::Text(_) => FileValue::read(field, remarks).map(Times::Param),
            _ => FileValue::read(field, remarks).map(Times::Number),
        }
    }
}

/// Calls `check` with each table of a program.
#[cfg(test)]
pub(crate) fn with_tables(check: &mut crate::describe::tests::UnitCheck) {
    check.table::<RegionSpec>("region");
    check.table::<StageSpec>("stage");
    check.table::<StepSpec>("step");
}

impl Program {
    /// Reads a program from the text of `file`. The name appears in errors only.
    pub fn parse(file: &str, text: &str) -> Result<Program, SpecError> {
        let mut remarks = Remarks::new(text);
        let read = ProgramFile::read(text, &mut remarks);
        let read = result(file, remarks, read)?;
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
    /// Errors name the program's lines.
    pub(crate) fn bind(&self, machine: &Machine) -> Result<Route, SpecError> {
        let mut binder = Binder {
            remarks: Remarks::new(&self.text),
            machine,
            params: &self.read.params,
            units: machine.units(),
            memories: machine.memory.iter().map(|m| m.name.text.clone()).collect(),
            regions: self.read.region.iter().map(|r| r.name.text.clone()).collect(),
            locks: Vec::new(),
        };
        let regions = binder.regions(&self.read.region);
        binder.check_packets(&self.read);
        let legs = binder.legs(&self.read.stage);
        let Binder { remarks, locks, .. } = binder;
        let bound = regions.zip(legs);
        let (regions, legs) = result(&self.file, remarks, bound)?;
        Ok(Route { legs, regions, locks, chunk: machine.ports.chunk })
    }
}

impl ProgramFile {
    /// Reads a program; its mistakes go to `remarks`.
    fn read(text: &str, remarks: &mut Remarks) -> Option<ProgramFile> {
        let document =
            document::toml(text, "a program", "write TOML: name, source, then [[stage]]", remarks)?;
        let mut fields = Fields::new("the program", 0, &document);
        let name = keys::value(&mut fields, "name", None, remarks);
        let source = keys::value(&mut fields, "source", None, remarks);
        let params_at = fields.get("params").map_or(0, |field| field.at);
        let params = keys::value(&mut fields, "params", Some(BTreeMap::new()), remarks);
        let region: Vec<RegionSpec> = keys::list(&mut fields, "region", remarks);
        let stage = keys::list(&mut fields, "stage", remarks);
        fields.finish(remarks);
        if stage.is_empty() && remarks.is_clean() {
            remarks.mistake(0, "a program without stages is empty", "write [[stage]]");
        }
        let program = ProgramFile { name: name?, source: source?, params: params?, region, stage };
        if remarks.is_clean() {
            program.check_names(params_at, remarks);
        }
        Some(program)
    }

    /// Reports names that are used twice, and those that nothing uses.
    fn check_names(&self, params_at: usize, remarks: &mut Remarks) {
        for (what, names) in [
            ("region", self.region.iter().map(|region| &region.name).collect::<Vec<_>>()),
            ("stage", self.stage.iter().map(|stage| &stage.name).collect()),
        ] {
            for (index, name) in names.iter().enumerate() {
                if names[..index].iter().any(|other| other.text == name.text) {
                    let instead = format!("write a name of its own for each {what}");
                    remarks.mistake(name.at, format!("the name {name} is used twice"), instead);
                }
            }
        }
        let steps = || self.stage.iter().flat_map(|stage| &stage.steps);
        for RegionSpec { name, .. } in &self.region {
            let mut accesses = steps().filter_map(|step| step.read.as_ref().or(step.write.as_ref()));
            if !accesses.any(|touched| touched.text == name.text) {
                let instead = format!("write {{ read = \"{name}\" }} in a stage, or remove it");
                remarks.mistake(name.at, format!("nothing reads or writes the region {name}"), instead);
            }
        }
        for param in self.params.keys() {
            let mut times = steps().map(|step| &step.times);
            if !times.any(|times| matches!(times, Times::Param(name) if name.text == *param)) {
                let instead = format!("write times = \"{param}\" in a step, or remove it");
                remarks.mistake(params_at, format!("nothing uses the parameter {param}"), instead);
            }
        }
        let entered: Vec<&Name> = steps().filter_map(|step| step.enter.as_ref()).collect();
        let left: Vec<&Name> = steps().filter_map(|step| step.leave.as_ref()).collect();
        for (names, others, never, instead) in
            [(&entered, &left, "left", "leave"), (&left, &entered, "entered", "enter")]
        {
            for name in names.iter().filter(|name| !others.iter().any(|other| other.text == name.text)) {
                let instead = choice(name, others.iter().map(|other| other.text.as_str()))
                    + &format!(", or write {{ {instead} = \"{name}\" }} too");
                remarks.mistake(name.at, format!("the lock {name} is never {never}"), instead);
            }
        }
    }
}

/// The names that a program may use, while it is bound.
struct Binder<'a> {
    remarks: Remarks<'a>,
    machine: &'a Machine,
    params: &'a BTreeMap<String, u32>,
    units: Vec<String>,
    memories: Vec<String>,
    regions: Vec<String>,
    locks: Vec<String>,
}

/// A stage whose unit is known: the unit's number, and the operations.
type PlacedStage = (usize, Vec<OpGroup>);

impl Binder<'_> {
    /// The regions, with the numbers of their caches.
    fn regions(&mut self, regions: &[RegionSpec]) -> Option<Vec<Region>> {
        let caches: Vec<String> = self.machine.cache.iter().map(|c| c.name.text.clone()).collect();
        let mut bound = Vec::new();
        for region in regions {
            let cache = find(&region.cache, "cache", &caches, &mut self.remarks);
            if region.size == Some(Bytes::ZERO) {
                out_of_range(&region.name, "size", "above 0", &mut self.remarks);
            }
            bound.extend(cache.map(|cache| Region { size: region.size, cache }));
        }
        (bound.len() == regions.len()).then_some(bound)
    }

    /// Reports references to the packet where no bus has written it, or by a unit without a cache.
    fn check_packets(&mut self, program: &ProgramFile) {
        let is_packet = |name: &Name| {
            program.region.iter().any(|region| region.size.is_none() && region.name.text == name.text)
        };
        let mut is_written = false;
        for stage in &program.stage {
            is_written |= self.machine.spec(&stage.on).is_some_and(UnitType::writes_packets);
            let names = stage.steps.iter().filter_map(|step| step.read.as_ref().or(step.write.as_ref()));
            for name in names.filter(|name| is_packet(name)) {
                let reads = self.machine.spec(&stage.on).is_none_or(UnitType::reads_packets);
                if !reads {
                    let what = format!("the region {name} is the packet, which {} does not read", stage.on);
                    self.remarks.mistake(
                        name.at,
                        what,
                        "write size = \"64KiB\" for the region, or use cores",
                    );
                } else if !is_written {
                    let what = format!("no bus has written the packet that {name} is");
                    let instead = "write size = \"64KiB\" for the region, or a stage on a [[pcie]] before";
                    self.remarks.mistake(name.at, what, instead);
                }
            }
        }
    }

    fn legs(&mut self, stages: &[StageSpec]) -> Option<Vec<Leg>> {
        let placed: Vec<Option<PlacedStage>> = stages.iter().map(|stage| self.place(stage)).collect();
        let targets: Vec<Option<usize>> = (0..stages.len()).map(|index| self.target(stages, index)).collect();
        let mut legs: Vec<Leg> = Vec::new();
        // The leg each stage begins in, for skips.
        let mut leg_of = Vec::with_capacity(stages.len());
        for (here, (stage, placed)) in stages.iter().zip(placed).enumerate() {
            let (unit, groups) = placed?;
            let skips_here = |s: &StageSpec| s.skip.as_ref().is_some_and(|k| k.to.text == stage.name.text);
            let is_target = stages.iter().any(skips_here);
            match legs.last_mut() {
                Some(leg)
                    if leg.unit == unit
                        && leg.tag == stage.tag
                        && leg.skip.is_none()
                        && !is_target
                        && leg.strip == leg.add =>
                {
                    leg.groups.extend(groups);
                }
                _ => legs.push(Leg { unit, tag: stage.tag, skip: None, strip: 0, add: 0, groups }),
            }
            let leg = legs.len() - 1;
            leg_of.push(leg);
            (legs[leg].strip, legs[leg].add) = (stage.strip, stage.add);
            // The target's leg is known only when all stages are placed. Until then `to` holds the
            // number of the target.
            let target = targets[here].unwrap_or(here);
            legs[leg].skip = stage.skip.as_ref().map(|s| Skip { share: s.share, per: s.per, to: target });
        }
        for leg in &mut legs {
            if let Some(skip) = &mut leg.skip {
                skip.to = leg_of[skip.to];
            }
        }
        Some(legs)
    }

    /// The stage that packets of a stage skip to.
    fn target(&mut self, stages: &[StageSpec], index: usize) -> Option<usize> {
        let stage = &stages[index];
        let to = &stage.skip.as_ref()?.to;
        let names: Vec<String> = stages.iter().map(|s| s.name.text.clone()).collect();
        let target = find(to, "stage", &names, &mut self.remarks)?;
        if target <= index {
            let what =
                format!("cycle: stage {} skips back to {to}, and a packet might never leave", stage.name);
            self.remarks.mistake(to.at, what, "write the name of a later stage");
            return None;
        }
        Some(target)
    }

    /// The unit and the operations of a stage.
    fn place(&mut self, stage: &StageSpec) -> Option<PlacedStage> {
        let unit = find(&stage.on, "unit", &self.units, &mut self.remarks)?;
        if stage.strip.max(stage.add) > BYTES_MAX || (stage.strip > 0 && stage.strip == stage.add) {
            let range = "at most 65535 bytes, and not the same";
            out_of_range(&stage.name, "strip or add", range, &mut self.remarks);
        }
        self.groups(stage).map(|groups| (unit, groups))
    }

    fn groups(&mut self, stage: &StageSpec) -> Option<Vec<OpGroup>> {
        let mut groups: Vec<OpGroup> = Vec::new();
        let mut are_all_known = true;
        for step in &stage.steps {
            let Some((op, times)) = self.step(stage, step) else {
                are_all_known = false;
                continue;
            };
            let per_chunk = step.per == Per::Chunk;
            match groups.last_mut() {
                Some(group) if group.per_chunk == per_chunk && group.over == step.over => {
                    group.ops.push((op, times));
                }
                _ => groups.push(OpGroup { per_chunk, over: step.over, ops: vec![(op, times)] }),
            }
        }
        are_all_known.then_some(groups)
    }

    /// The operation of a step, and how often it is done.
    fn step(&mut self, stage: &StageSpec, step: &StepSpec) -> Option<(Op, u32)> {
        let op = self.op(stage, step)?;
        let times = match &step.times {
            Times::Number(n) => *n,
            Times::Param(name) => match self.params.get(&name.text) {
                Some(times) => *times,
                None => {
                    let known: Vec<String> = self.params.keys().cloned().collect();
                    find(name, "parameter", &known, &mut self.remarks);
                    return None;
                }
            },
        };
        if times > TIMES_MAX {
            out_of_range(&stage.name, "times", "at most 1000000", &mut self.remarks);
            return None;
        }
        // Computing n times is computing once for n times as long.
        Some(match op {
            Op::Compute { fixed, per_byte } => {
                let n = u64::from(times);
                (Op::Compute { fixed: fixed * n, per_byte: per_byte.scaled(n) }, 1)
            }
            op => (op, times),
        })
    }

    fn op(&mut self, stage: &StageSpec, step: &StepSpec) -> Option<Op> {
        let Some(clock) = self.machine.clock(&stage.on) else {
            let what = format!("the unit {} runs no programs, and stage {} has steps", stage.on, stage.name);
            let instead = "write a unit that runs programs (cores, microengine, egress)";
            self.remarks.mistake(stage.on.at, what, instead);
            return None;
        };
        self.check_effects(stage, step);
        match (step.compute, step.time, &step.read, &step.write, &step.enter, &step.leave) {
            (Some(cycles), None, None, None, None, None) if cycles > CYCLES_MAX => {
                out_of_range(&stage.name, "compute", "at most 10^12 cycles", &mut self.remarks);
                None
            }
            (Some(cycles), None, None, None, None, None) => self.compute(stage, step, clock.cycles(cycles)),
            (None, Some(span), None, None, None, None) => self.compute(stage, step, span),
            (None, None, Some(name), None, None, None) => self.access(name, Access::Read, step),
            (None, None, None, Some(name), None, None) => self.access(name, Access::Write, step),
            (None, None, None, None, Some(name), None) => Some(Op::Enter(self.lock(name))),
            (None, None, None, None, None, Some(name)) => Some(Op::Leave(self.lock(name))),
            _ => {
                let what = format!("a step of stage {} does not have one operation", stage.name);
                let instead = "write exactly one of compute, time, read, write, enter, leave";
                self.remarks.mistake(stage.name.at, what, instead);
                None
            }
        }
    }

    /// Reports the keys of a step that its operation does not use.
    fn check_effects(&mut self, stage: &StageSpec, step: &StepSpec) {
        let accessed = step.read.as_ref().or(step.write.as_ref());
        let region = accessed.filter(|name| self.regions.contains(&name.text));
        let mut useless = |what: String, instead: &str| {
            let what = format!("a step of stage {}: {what}", stage.name);
            self.remarks.mistake(accessed.unwrap_or(&stage.name).at, what, instead);
        };
        match (region, accessed) {
            (Some(name), _) if step.bytes.is_some() => {
                useless(
                    format!("bytes has no effect: {name} is a region, touched at one place"),
                    "remove it",
                );
            }
            (None, None) if step.bytes.is_some() => {
                useless(
                    "bytes has no effect beside this operation".to_owned(),
                    "write it beside read or write",
                );
            }
            _ => {}
        }
        if step.per == Per::Byte && step.compute.is_none() && step.time.is_none() {
            useless("per = \"byte\" has no effect beside this operation".to_owned(), "write per = \"chunk\"");
        }
    }

    fn compute(&mut self, stage: &StageSpec, step: &StepSpec, span: Duration) -> Option<Op> {
        let bytes = if step.per == Per::Byte { u128::from(u16::MAX) } else { 1 };
        let times = u128::from(TIMES_MAX.min(step.most(self.params)));
        if u128::from(span.as_ps()) * bytes * times > STEP_PS_MAX {
            out_of_range(&stage.name, "a step", "at most a minute long", &mut self.remarks);
            return None;
        }
        Some(match step.per {
            Per::Byte => Op::Compute { fixed: Duration::ZERO, per_byte: PerByte::of(span) },
            Per::Packet | Per::Chunk => Op::Compute { fixed: span, per_byte: PerByte::default() },
        })
    }

    fn access(&mut self, name: &Name, access: Access, step: &StepSpec) -> Option<Op> {
        if let Some(region) = self.regions.iter().position(|r| *r == **name) {
            return Some(Op::Touch { region: region as u16 });
        }
        let known = [&self.memories[..], &self.regions[..]].concat();
        let memory = find(name, "memory or region", &known, &mut self.remarks)?;
        let bytes = step.bytes.unwrap_or(WORD);
        if let Some(largest) = self.machine.memory[memory].end_of(access).filter(|end| bytes > *end) {
            let what = format!(
                "{bytes} bytes are past the end of the table of {name}, which is {largest}, and it has no bandwidth"
            );
            let instead = "write fewer bytes and times, or the cycles of that size in the machine";
            self.remarks.mistake(name.at, what, instead);
            return None;
        }
        Some(Op::Access { memory: memory as u16, access, bytes })
    }

    fn lock(&mut self, name: &Name) -> u16 {
        let known = self.locks.iter().position(|l| *l == **name);
        known.unwrap_or_else(|| {
            self.locks.push(name.text.clone());
            self.locks.len() - 1
        }) as u16
    }
}
