//! From words to a case: shipped names or files, captures, and what `--set` changes.

use super::measured;
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use fastpath_sim::case::{Case, Target, no_machine, no_program};
use fastpath_sim::parameter::Text;
use fastpath_sim::shipped;
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::Reader;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No machine or program file is longer, bytes.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// Frames of a capture that are kept: 16 bytes each.
const FRAMES_MAX: usize = 50_000_000;
/// The frame check sequence, which captures leave out.
const FCS: u32 = 4;

/// What every simulation is asked.
#[derive(Args)]
pub(in crate::commands) struct Question {
    /// A shipped program (see `sim --list`), a program file (TOML), or pipeline=RECORDS of
    /// `fastpath measure pipeline`.
    #[arg(short, long, value_name = "PROGRAM")]
    program: Option<String>,
    /// What arrives.
    #[arg(short, long, value_name = "WORKLOAD", default_value = "line-rate,size=64,duration=10ms")]
    workload: String,
    /// The seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Change a value: machine.UNIT.FIELD, program.PARAMETER or workload.FIELD (may be repeated).
    #[arg(long, value_name = "NAME=VALUE", value_parser = change)]
    set: Vec<(Target, String)>,
}

fn change(text: &str) -> Result<(Target, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.parse().map_err(|error| format!("{error}"))?, value.to_owned()))
}

impl Question {
    /// The seed.
    pub(in crate::commands) fn seed(&self) -> u64 {
        self.seed
    }

    /// What was asked, for records: program, changes, and the fields of the workload.
    pub(in crate::commands) fn place(&self) -> Map<String, Value> {
        let value = |text: &str| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
        let mut place = Map::from_iter([("program".to_owned(), json!(self.program))]);
        let mut fields = self.workload.split(',');
        place.insert("workload".to_owned(), json!(fields.next().unwrap_or_default()));
        place.extend(fields.filter_map(|f| f.split_once('=')).map(|(k, v)| (k.to_owned(), value(v))));
        place.extend(self.set.iter().map(|(target, v)| (target.to_string(), value(v))));
        place
    }

    /// The question put to `machine`.
    pub(in crate::commands) fn case(&self, machine: &str) -> anyhow::Result<Case> {
        let Some(program) = &self.program else {
            let known = shipped::PROGRAMS.map(|(name, _)| name).join(", ");
            bail!("name a program: --program NAME (shipped: {known}) or --program FILE");
        };
        let capture = match self.workload.strip_prefix("pcap=") {
            None => None,
            Some(rest) => {
                let file = rest.split_once(',').map_or(rest, |(file, _)| file);
                Some(capture(Path::new(file)).with_context(|| file.to_owned())?)
            }
        };
        let mut case = Case {
            machine: machine_text(machine)?,
            program: program_text(program)?,
            workload: self.workload.clone(),
            capture,
            seed: self.seed,
            files: BTreeMap::new(),
        };
        self.set.iter().try_for_each(|(target, value)| case.set(target, value))?;
        // What makes no sense is told of the change, not only of the line it became.
        for (target, value) in &self.set {
            let said = || format!("--set {target}={value}");
            match target {
                Target::MachineValue(_) => drop(case.machine.machine().with_context(said)?),
                Target::ProgramValue(_) => drop(case.program.program().with_context(said)?),
                _ => {}
            }
        }
        Ok(case)
    }
}

/// A shipped machine, a file, or this host as it was measured.
pub(in crate::commands) fn machine_text(name: &str) -> anyhow::Result<Text> {
    if name == "this-host" {
        bail!(
            "this-host is made of a record: fastpath measure host -o host.jsonl, then this-host=host.jsonl"
        );
    }
    if let Some(records) = name.strip_prefix("this-host=") {
        return measured::machine(records);
    }
    shipped::machine_text(name).map_or_else(|| file(name, || anyhow!(no_machine(name))), Ok)
}

/// A shipped program, a file, or a pipeline as it was measured.
pub(in crate::commands) fn program_text(name: &str) -> anyhow::Result<Text> {
    if let Some(records) = name.strip_prefix("pipeline=") {
        return measured::program(records);
    }
    shipped::program_text(name).map_or_else(|| file(name, || anyhow!(no_program(name))), Ok)
}

fn file(name: &str, unknown: impl Fn() -> anyhow::Error) -> anyhow::Result<Text> {
    let path = Path::new(name);
    if !path.exists() {
        return Err(unknown());
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.with_context(|| name.to_owned())?;
    ensure!(
        bytes.len() as u64 <= TEXT_BYTES_MAX,
        "{name}: longer than {TEXT_BYTES_MAX} bytes; is this a description?"
    );
    let text =
        String::from_utf8(bytes).map_err(|_| anyhow!("{name}: not UTF-8 text; is this a TOML file?"))?;
    Ok(Text::new(name, text))
}

/// Times from the first frame on, and sizes with FCS, padded to 64 bytes as on the wire.
fn capture(path: &Path) -> anyhow::Result<Vec<(Time, u32)>> {
    let mut reader = Reader::new(File::open(path)?)?;
    let (mut frames, mut start) = (Vec::new(), None);
    while let Some(packet) = reader.read_packet()? {
        ensure!(frames.len() < FRAMES_MAX, "more than {FRAMES_MAX} packets; cut it (editcap)");
        let ns = packet.ns.context("packets without times (pcapng simple packets) are no workload")?;
        // A packet older than the first arrives with it; the order of the file is the order of
        // arrival.
        let after = ns.saturating_sub(*start.get_or_insert(ns));
        let at = after.checked_mul(1000).map(Duration::from_ps);
        let at =
            Time::ZERO + at.context("the capture lasts more than 213 days; shift its times (editcap -t)")?;
        frames.push((at, (packet.orig_len.saturating_add(FCS)).clamp(64, 65_535)));
    }
    ensure!(!frames.is_empty(), "no packet in it");
    Ok(frames)
}
