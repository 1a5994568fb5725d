//! Outcomes as text, for terminals.

use super::{Render, json_line};
use fastpath::simulate::SimulationRun;
use fastpath_report::text as print;
use fastpath_sim::{Outcome, Remedy};
use serde_json::{Value, json};
use std::io::{self, Write};

impl Render for SimulationRun {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        one(&mut out, self)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &self.json())
    }
}

impl Render for [SimulationRun] {
    fn text(&self, mut out: &mut dyn Write) -> io::Result<()> {
        several(&mut out, self)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let results: Vec<Value> = self.iter().map(SimulationRun::json).collect();
        json_line(out, &json!({ "results": results }))
    }
}

/// Writes one run in full.
///
/// # Errors
/// The error of `out`.
fn one(out: &mut impl Write, run: &SimulationRun) -> io::Result<()> {
    let outcome = &run.outcome;
    let n = print::number;
    let SimulationRun { machine, program, .. } = run;
    writeln!(out, "{machine}, {program}: {} offered, {} forwarded", outcome.offered, outcome.forwarded)?;
    writeln!(
        out,
        "packets/s     {} of {} ({})",
        n(outcome.forwarded_pps),
        n(outcome.offered_pps),
        percent(outcome.share())
    )?;
    for (place, count) in &outcome.dropped {
        let share = *count as f64 / outcome.offered.max(1) as f64;
        writeln!(out, "dropped       {count} at {place} ({})", percent(share))?;
    }
    latency(out, outcome)?;
    if outcome.order_violations > 0 {
        writeln!(
            out,
            "order         {} frames left after a later frame of the same flow",
            outcome.order_violations
        )?;
    }
    units(out, run)?;
    writeln!(out, "bottleneck    {}", outcome.bottleneck)?;
    run.remedy.iter().try_for_each(|remedy| widened(out, remedy))?;
    if let Some(deadlock) = &outcome.deadlock {
        writeln!(out, "DEADLOCK      {} frames inside and nothing can move:", outcome.held)?;
        deadlock.waits.iter().try_for_each(|wait| writeln!(out, "  {wait}"))?;
    }
    writeln!(
        out,
        "simulated     {} s in {} s, {} events ({}/s), trace hash {:016x}",
        n(outcome.seconds),
        n(run.elapsed),
        outcome.events,
        n(run.events_per_second()),
        outcome.trace_hash
    )
}

/// Writes the latency and how sure it is.
fn latency(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let n = print::number;
    match &outcome.latency_us {
        Some(l) => {
            writeln!(
                out,
                "latency us    mean {}, p50 {}, p99 {}, max {}",
                n(l.mean),
                n(l.p50),
                n(l.p99),
                n(l.max)
            )?;
        }
        None => writeln!(out, "latency us    no frame left")?,
    }
    for (class, latency) in outcome.latency_by_class_us.iter().enumerate() {
        match latency {
            Some(l) => writeln!(
                out,
                "  class {class}     mean {}, p50 {}, p99 {}, max {}",
                n(l.mean),
                n(l.p50),
                n(l.p99),
                n(l.max)
            )?,
            None => writeln!(out, "  class {class}     no frame left")?,
        }
    }
    if let Some(interval) = &outcome.latency_interval_us {
        let reached = match outcome.is_precise {
            Some(true) => "; stopped: the requested precision was reached",
            Some(false) => "; the requested precision was NOT reached: write a longer duration=",
            None => "",
        };
        writeln!(
            out,
            "  mean        {} … {} (95 %), without the first {} frames (MSER){reached}",
            n(interval.low),
            n(interval.high),
            interval.warm_up_frames
        )?;
        if !interval.is_long_enough {
            writeln!(
                out,
                "  WARNING     successive latencies are correlated: this interval is too narrow; write a longer duration="
            )?;
        }
    } else if outcome.is_precise == Some(false) {
        writeln!(out, "  too few frames for an interval: write a longer duration=")?;
    }
    Ok(())
}

/// Writes what a wider bottleneck gives.
fn widened(out: &mut impl Write, remedy: &Remedy) -> io::Result<()> {
    let n = print::number;
    // Below a per cent it is chance: the place where frames are lost is not the only limit.
    let verdict =
        if remedy.after_pps > 1.01 * remedy.before_pps { "" } else { ", so it is not the only limit" };
    writeln!(
        out,
        "widened       {}: {} → {} packets/s{verdict}; the bottleneck is then {}",
        remedy.change,
        n(remedy.before_pps),
        n(remedy.after_pps),
        remedy.bottleneck
    )
}

fn units(out: &mut impl Write, run: &SimulationRun) -> io::Result<()> {
    let mut table =
        print::table(["unit", "busy", "computing", "memory time hidden", "queued (mean)", "longest queue"]);
    for (name, unit) in &run.outcome.units {
        let share = |x: Option<f64>| x.map_or(String::new(), percent);
        let is_visited = unit.busy > 0.0 || unit.queue_mean > 0.0 || unit.queue_max > 0;
        table.add_row([
            name.clone(),
            if is_visited { percent(unit.busy) } else { "not visited".to_owned() },
            share(unit.computing),
            share(unit.hidden),
            print::number(unit.queue_mean),
            unit.queue_max.to_string(),
        ]);
    }
    writeln!(out, "{table}")
}

/// Writes several runs, a row each.
///
/// # Errors
/// The error of `out`.
fn several(out: &mut impl Write, all: &[SimulationRun]) -> io::Result<()> {
    let mut table = print::table([
        "machine",
        "packets/s",
        "of offered",
        "p50 us",
        "p99 us",
        "loses most at",
        "bottleneck",
        "busy",
    ]);
    for run in all {
        let outcome = &run.outcome;
        let latency = |part: fn(&fastpath::sim::outcome::Latency) -> f64| {
            outcome.latency_us.as_ref().map_or("–".to_owned(), |l| print::number(part(l)))
        };
        let most = outcome.dropped.iter().max_by_key(|(_, n)| **n);
        let busy = outcome.units.get(&outcome.bottleneck).map_or(String::new(), |unit| percent(unit.busy));
        table.add_row([
            run.machine.clone(),
            print::number(outcome.forwarded_pps),
            percent(outcome.share()),
            latency(|l| l.p50),
            latency(|l| l.p99),
            most.map_or("–".to_owned(), |(place, _)| place.clone()),
            outcome.bottleneck.clone(),
            busy,
        ]);
    }
    writeln!(out, "{table}")
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    format!("{} %", print::number(100.0 * share))
}
