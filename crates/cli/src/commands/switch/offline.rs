//! Captures through a switch, in virtual time: a packet leaves at the time it came.

use super::executor::executor;
use super::rules::{SwitchArgs, number};
use crate::Answer;
use crate::commands::replay::merge::Merge;
use anyhow::{Context, bail, ensure};
use clap::Args;
use fastpath_switch::execute::Post;
use fastpath_switch::{Executor, Outbox, Port, Switch, Verdict};
use fastpath_units::{Duration, Time};
use fastpath_wire::pcap::{LINKTYPE_ETHERNET, Writer};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// Captures and where they enter and leave.
#[derive(Args)]
pub(super) struct OfflineArgs {
    /// A capture that arrives on a port. May be repeated.
    #[arg(long = "in", value_name = "PORT=FILE")]
    inputs: Vec<Place>,
    /// The file for what leaves by a port. May be repeated.
    #[arg(long = "out", value_name = "PORT=FILE")]
    outputs: Vec<Place>,
}

/// A port and a capture.
#[derive(Clone, Debug)]
struct Place {
    port: String,
    file: PathBuf,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        match text.split_once('=') {
            Some((port, file)) if !port.is_empty() && !file.is_empty() => {
                Ok(Place { port: port.to_owned(), file: file.into() })
            }
            _ => Err("write PORT=FILE".to_owned()),
        }
    }
}

impl OfflineArgs {
    pub(super) fn is_asked_for(&self) -> bool {
        !self.inputs.is_empty() || !self.outputs.is_empty()
    }
}

/// What became of the packets.
#[derive(Default)]
struct Tally {
    received: u64,
    outcomes: u64,
    /// To ports with a file, and to ports without.
    sent: u64,
    unwritten: u64,
    to_controllers: u64,
    dropped: BTreeMap<&'static str, u64>,
    /// Packets of which the captures hold a part only: that part was switched.
    cut: u64,
}

/// A run.
struct Run {
    switch: Switch,
    executor: Box<dyn Executor>,
    outputs: BTreeMap<u32, Writer<BufWriter<File>>>,
    out: Outbox,
    tally: Tally,
}

pub(super) fn run(switch_args: &SwitchArgs, args: &OfflineArgs, as_json: bool) -> anyhow::Result<Answer> {
    ensure!(!args.inputs.is_empty(), "nothing to switch: give --in PORT=FILE");
    let mut names: Vec<&str> = Vec::new();
    for place in args.inputs.iter().chain(&args.outputs) {
        if !names.contains(&place.port.as_str()) {
            names.push(&place.port);
        }
    }
    let numbers = number(names)?;
    let number_of =
        |name: &str| numbers.iter().find(|(_, other)| *other == name).map_or(0, |(number, _)| *number);
    let mut switch = switch_args.switch();
    numbers.iter().for_each(|(number, _)| switch.set_port(*number, Port::up()));
    let by_name = numbers.iter().map(|(number, name)| ((*name).to_owned(), *number)).collect();
    switch_args.load(&mut switch, &by_name)?;
    refuse_overwriting(args)?;
    let mut captures = Merge::open(args.inputs.iter().map(|place| place.file.as_path()))?;
    let mut outputs = BTreeMap::new();
    for place in &args.outputs {
        let create = || Writer::new(BufWriter::new(File::create(&place.file)?), LINKTYPE_ETHERNET);
        let writer = create().with_context(|| place.file.display().to_string())?;
        if outputs.insert(number_of(&place.port), writer).is_some() {
            bail!("port {}: what leaves goes to one file", place.port);
        }
    }
    let ports_in: Vec<u32> = args.inputs.iter().map(|place| number_of(&place.port)).collect();
    let executor = executor(&mut switch);
    let mut run = Run { switch, executor, outputs, out: Outbox::default(), tally: Tally::default() };
    let start_ns = captures.start_ns().unwrap_or(0);
    let mut spent = None;
    while let Some(mut entry) = captures.next(spent) {
        let now = Time::ZERO.saturating_add(Duration::from_ns(entry.ns - start_ns));
        run.tally.cut += u64::from(entry.data.len() < entry.wire_len);
        run.packet(now, entry.ns, ports_in[entry.capture], &mut entry.data)?;
        spent = Some(entry);
    }
    run.executor.credit(&mut run.switch);
    for writer in std::mem::take(&mut run.outputs).into_values() {
        writer.finish()?;
    }
    let problems = captures.into_problems();
    problems.iter().for_each(|problem| eprintln!("fastpath: {}", crate::explain(problem)));
    let answer = run.summary(&numbers, as_json)?;
    Ok(if problems.is_empty() { answer } else { Answer::No })
}

/// An input must not be lost to an output.
fn refuse_overwriting(args: &OfflineArgs) -> anyhow::Result<()> {
    let same = |a: &PathBuf, b: &PathBuf| {
        a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
    };
    for (index, output) in args.outputs.iter().enumerate() {
        let inputs = args.inputs.iter().chain(&args.outputs[..index]);
        if inputs.into_iter().any(|other| same(&other.file, &output.file)) {
            bail!("{}: is used twice; write to another file", output.file.display());
        }
    }
    Ok(())
}

impl Run {
    fn packet(&mut self, now: Time, ns: u64, in_port: u32, frame: &mut [u8]) -> anyhow::Result<()> {
        if self.switch.next_at().is_some_and(|at| at <= now) {
            self.executor.credit(&mut self.switch);
            self.switch.expire(now);
            self.executor.update(&mut self.switch);
        }
        self.tally.received += 1;
        let verdict = self.executor.execute(&mut self.switch, now, in_port, frame, &mut self.out);
        self.tally.outcomes += self.out.posts().len() as u64;
        if let Verdict::Forward { port, .. } = verdict {
            self.tally.outcomes += 1;
            send(&mut self.outputs, &mut self.tally, port, ns, frame)?;
        }
        for (post, bytes) in self.out.posts() {
            match post {
                Post::Output { port, .. } => send(&mut self.outputs, &mut self.tally, *port, ns, bytes)?,
                Post::Controller(_) => self.tally.to_controllers += 1,
                Post::Drop(reason) => *self.tally.dropped.entry(reason.name()).or_default() += 1,
            }
        }
        self.out.clear();
        Ok(())
    }

    fn summary(&self, numbers: &[(u32, &str)], as_json: bool) -> anyhow::Result<Answer> {
        let Tally { received, outcomes, sent, unwritten, to_controllers, dropped, cut } = &self.tally;
        let copies = outcomes - received;
        let drops: u64 = dropped.values().sum();
        let balance = received + copies == sent + unwritten + to_controllers + drops;
        let mut out = io::stdout().lock();
        if as_json {
            let port = |(number, name): &(u32, &str)| {
                let c = self.switch.port(*number).map(|port| port.counters).unwrap_or_default();
                json!({
                    "number": number, "name": name, "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes,
                    "rx_dropped": c.rx_dropped, "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes,
                    "tx_dropped": c.tx_dropped,
                })
            };
            let ports: Vec<_> = numbers.iter().map(port).collect();
            let tables: Vec<_> = (0..)
                .zip(self.switch.tables())
                .filter(|(_, table)| !table.is_empty() || table.hits().0 > 0)
                .map(|(id, table): (u8, _)| {
                    let (lookups, matched) = table.hits();
                    json!({ "table": id, "flows": table.len(), "lookups": lookups, "matched": matched })
                })
                .collect();
            let books = json!({
                "received": received, "copied": copies, "sent": sent, "sent_without_file": unwritten,
                "to_controllers": to_controllers, "dropped": dropped, "cut_by_snap_length": cut,
                "balance": balance,
            });
            writeln!(out, "{}", json!({ "books": books, "ports": ports, "tables": tables }))?;
        } else {
            let reasons: Vec<String> =
                dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
            let reasons =
                if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
            writeln!(
                out,
                "{received} received + {copies} copies = {sent} written + {unwritten} to ports without --out + \
                 {to_controllers} to controllers (none here) + {drops} dropped{reasons}"
            )?;
            if *cut > 0 {
                writeln!(out, "{cut} packets were captured in part; that part was switched")?;
            }
        }
        ensure!(balance, "the books do not balance; please report it");
        Ok(Answer::Yes)
    }
}

fn send(
    outputs: &mut BTreeMap<u32, Writer<BufWriter<File>>>,
    tally: &mut Tally,
    port: u32,
    ns: u64,
    frame: &[u8],
) -> anyhow::Result<()> {
    match outputs.get_mut(&port) {
        Some(writer) => {
            writer.write_packet(ns, frame.len() as u32, frame)?;
            tally.sent += 1;
        }
        None => tally.unwritten += 1,
    }
    Ok(())
}
