//! The end of a run in real time, on standard error.

use crate::Answer;
use crate::view::{accounting_lines, lateness_lines};
use fastpath_engine::Report;
use std::io::{self, Write};

/// Prints where all frames went and how late they were. The answer is no if frames are unaccounted
/// for, late beyond the tolerance, or a port failed.
pub(crate) fn print_report(report: &Report) -> Answer {
    print_accounting(report);
    print_lateness(report);
    if report.is_good() { Answer::Yes } else { Answer::No }
}

/// Prints where all frames went, and the delays of links with jitter.
pub(crate) fn print_accounting(report: &Report) {
    print(&accounting_lines(report));
}

/// Prints how late frames were released. Returns false if a tolerance was set and exceeded, or if
/// the engine or the traffic did not keep up.
pub(crate) fn print_lateness(report: &Report) -> bool {
    print(&lateness_lines(report));
    !report.is_broken() && report.lost_under_load() == 0 && report.shortfalls().is_empty()
}

fn print(lines: &[String]) {
    // Standard error may be closed; the exit code carries the answer too.
    let _ = lines.iter().try_for_each(|line| writeln!(io::stderr(), "{line}"));
}
