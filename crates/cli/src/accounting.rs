//! What a run in real time prints at its end: frame accounting and lateness, on standard error.

use crate::Answer;
use fastpath_engine::{FrameAccounting, Report};
use std::io::{self, Write};

/// Prints where all frames went and how late they were. The answer is no if frames are unaccounted
/// for, late beyond the tolerance, or a port failed.
pub(crate) fn print_report(report: &Report) -> Answer {
    print_accounting(report);
    let in_time = print_lateness(report);
    let has_ports = report.ports.iter().all(|port| port.failure.is_none());
    if report.conservation.balances() && in_time && has_ports { Answer::Yes } else { Answer::No }
}

/// Prints where all frames went, and the delays of links with jitter.
pub(crate) fn print_accounting(report: &Report) {
    // Standard error may be closed; the exit code carries the answer too.
    let _ = writeln!(io::stderr(), "{}", accounting_line(&report.conservation));
    for pipe in report.links.iter().flat_map(|link| &link.directions) {
        if let Some(delays) = &pipe.jitter {
            let _ = writeln!(io::stderr(), "{} → {}: {delays}", pipe.from, pipe.to);
        }
    }
}

/// Formats the frame accounting: `frames: 12 in = 10 delivered + 2 dropped (2 queue-full) + 0 held`.
pub(crate) fn accounting_line(frames: &FrameAccounting) -> String {
    let dropped: u64 = frames.dropped.values().sum();
    let reasons: Vec<String> = frames.dropped.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let why = if dropped == 0 { String::new() } else { format!(" ({})", reasons.join(", ")) };
    let FrameAccounting { total_in, delivered, held, .. } = frames;
    format!("frames: {total_in} in = {delivered} delivered + {dropped} dropped{why} + {held} held")
}

/// Prints how late frames were released and what kept the workers from running. Returns false if a
/// tolerance was set and exceeded.
pub(crate) fn print_lateness(report: &Report) -> bool {
    let mut err = io::stderr().lock();
    let ports = report.ports.iter().map(|port| port.lateness).filter(|late| late.frames > 0);
    if let Some(worst) = ports.clone().max_by(|a, b| a.p99_us.total_cmp(&b.p99_us)) {
        let max = ports.map(|late| late.max_us).fold(0.0, f64::max);
        let _ = writeln!(
            err,
            "lateness: p50 {:.1} p99 {:.1} µs on the worst link, maximum {max:.1} µs; {} frames exceeded {}",
            worst.p50_us, worst.p99_us, report.lateness.late, report.lateness.tolerance
        );
    }
    for (number, worker) in report.workers.iter().enumerate() {
        let (stalled, preempted) = (&worker.stalled, &worker.preempted);
        let _ = writeln!(
            err,
            "worker {number}: load {:.0} %; host stalled {} times, {:.1} ms (longest {:.1}); preempted {} times, {:.1} ms",
            100.0 * worker.load,
            stalled.count,
            stalled.total_ms,
            stalled.longest_ms,
            preempted.count,
            preempted.total_ms
        );
    }
    if report.is_broken() {
        for line in report.broken() {
            let _ = writeln!(err, "fastpath: {line}");
        }
        let _ = writeln!(err, "fastpath: the tolerance of {} was exceeded", report.lateness.tolerance);
    }
    !report.is_broken()
}
