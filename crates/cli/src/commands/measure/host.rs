//! `fastpath measure host`: speed of the cores and memory of this machine.

use super::{Output, bar, effort, show, slowdown, tool, warn};
use crate::{Answer, print};
use anyhow::ensure;
use clap::Args;
use fastpath::measurements::{Recorded, host};
use fastpath_measure::{Host, Jitter, Operation, Place, Slowdown};
use fastpath_report::Record;
use std::io::{self, Write};

/// Measure the cores, memory, clocks and system calls of this machine.
///
/// Measures an integer score, copy rates, memory by working set, caches, TLB, clocks and system
/// calls.
#[derive(Args)]
pub(super) struct HostCommand {
    /// Take seconds instead of minutes: fewer sizes, working sets up to 32 MiB.
    #[arg(long)]
    quick: bool,
    /// Record an official CoreMark score of one core (iterations/s) next to the measured score.
    #[arg(long, value_name = "SCORE")]
    coremark: Option<f64>,
    /// Name of the machine; by default its host name.
    #[arg(long)]
    name: Option<String>,
    /// The seed of the random walks through memory.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Emulate a core FACTOR times slower by adding work.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = slowdown)]
    slowdown: Slowdown,
    #[command(flatten)]
    output: Output,
}

impl HostCommand {
    pub(super) fn run(self) -> anyhow::Result<Answer> {
        if let Some(score) = self.coremark {
            ensure!(score.is_finite() && score > 0.0, "--coremark {score}: a score is above 0");
        }
        let file = self.output.open()?;
        let bar = bar();
        let (effort, name) = (effort(self.quick), self.name.as_deref());
        let Recorded { found, record } =
            host(effort, self.coremark, name, self.slowdown, self.seed, &tool(), &show(&bar))?;
        bar.finish_and_clear();
        self.output.write(file, std::slice::from_ref(&record))?;
        let mut out = io::stdout().lock();
        if self.output.json {
            writeln!(out, "{}", serde_json::to_string(&record)?)?;
        } else {
            tables(&mut out, &record, &found)?;
        }
        warn(&record);
        Ok(Answer::Yes)
    }
}

fn tables(out: &mut impl Write, record: &Record, found: &Host) -> anyhow::Result<()> {
    let machine = &record.provenance.machine;
    writeln!(out, "{}: {}, {} cores, Linux {}", machine.name, machine.cpu, machine.cores, machine.kernel)?;
    let scores: Vec<String> = found.score_per_core.iter().map(|s| print::number(*s)).collect();
    writeln!(out, "own integer score per core (not CoreMark): {} iterations/s", scores.join(", "))?;
    if let Some(score) = found.coremark {
        writeln!(out, "CoreMark, as given: {}", print::number(score))?;
    }
    let mut table = print::table(["copy of", "L1 Gbit/s", "L2", "L3", "router's arena", "unaligned"]);
    let mut sizes: Vec<usize> = found.copying.iter().map(|c| c.bytes).collect();
    sizes.dedup();
    for bytes in sizes {
        let rate = |place, offset| {
            let found = found.copying.iter().find(|c| (c.bytes, c.place, c.offset) == (bytes, place, offset));
            found.map_or(String::new(), |c| print::number(c.bits_per_s / 1e9))
        };
        table.add_row([
            format!("{bytes} B"),
            rate(Place::L1, 0),
            rate(Place::L2, 0),
            rate(Place::L3, 0),
            rate(Place::Arena, 0),
            rate(Place::Arena, 1),
        ]);
    }
    writeln!(out, "{table}")?;
    caches(out, found)?;
    throughput(out, found)?;
    timing(out, found)?;
    found.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))?;
    Ok(())
}

fn caches(out: &mut impl Write, found: &Host) -> io::Result<()> {
    let mut table =
        print::table(["cache", "latency ns", "fits", "does not", "confidence %", "kernel says", ""]);
    for edge in &found.caches {
        let verdict = match edge.agrees() {
            None => "",
            Some(true) => "agrees",
            Some(false) => "DIFFERS",
        };
        table.add_row([
            format!("L{}", edge.level),
            print::number(edge.ns),
            size(edge.fits_bytes),
            size(edge.exceeds_bytes),
            print::number(100.0 * edge.confidence),
            edge.declared_bytes.map_or(String::new(), size),
            verdict.to_owned(),
        ]);
    }
    writeln!(out, "{table}")?;
    let tlb = &found.tlb;
    write!(out, "loads over {}: {} ns on small pages", size(tlb.bytes), print::number(tlb.small_pages_ns))?;
    match (&tlb.huge_pages_ns, &tlb.unavailable) {
        (Some(ns), _) => writeln!(out, ", {} ns on huge pages", print::number(*ns)),
        (None, why) => writeln!(out, "; no huge pages: {}", why.as_deref().unwrap_or("not asked for")),
    }
}

fn throughput(out: &mut impl Write, found: &Host) -> io::Result<()> {
    let mut table = print::table(["working set", "threads", "read GB/s", "write", "copy"]);
    for first in found.throughput.iter().filter(|p| p.operation == Operation::Read) {
        let rate = |operation| {
            let same = found
                .throughput
                .iter()
                .find(|p| (p.operation, p.bytes, p.threads) == (operation, first.bytes, first.threads));
            same.map_or(String::new(), |p| print::number(p.bytes_per_s / 1e9))
        };
        table.add_row([
            size(first.bytes),
            first.threads.to_string(),
            rate(Operation::Read),
            rate(Operation::Write),
            rate(Operation::Copy),
        ]);
    }
    writeln!(out, "{table}")
}

fn timing(out: &mut impl Write, found: &Host) -> io::Result<()> {
    let t = &found.timing;
    writeln!(
        out,
        "clock {} ns, system call {} ns, ring {} ns, core to core {} ns",
        print::number(t.clock_ns),
        print::number(t.syscall_ns),
        print::number(t.ring_ns),
        t.core_to_core_ns.map_or("–".to_owned(), print::number)
    )?;
    let mut table = print::table(["lateness ns", "p50", "p99", "p99.9", "worst"]);
    let mut row = |name: &str, j: &Jitter| {
        let [a, b, c, d] = [j.p50_ns, j.p99_ns, j.p99_9_ns, j.max_ns].map(|ns| format!("{ns:.0}"));
        table.add_row([name.to_owned(), a, b, c, d]);
    };
    row("spinning", &t.spin);
    row("sleeping 1 ms", &t.sleep);
    writeln!(out, "{table}")
}

/// `48 KiB`
fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 => format!("{} MiB", print::number(b as f64 / 1_048_576.0)),
        b if b >= 1 << 10 => format!("{} KiB", print::number(b as f64 / 1024.0)),
        b => format!("{b} B"),
    }
}
