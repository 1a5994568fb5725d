//! Results as commands print them: text for people, JSON for programs. One file per subject; the
//! library returns values and prints nothing.

#[cfg(target_os = "linux")]
mod capacity;
mod check;
mod data_paths;
mod described;
mod evaluations;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(target_os = "linux")]
mod link_loads;
#[cfg(target_os = "linux")]
mod measurement_text;
#[cfg(target_os = "linux")]
mod measurements;
mod model_text;
mod models;
mod parts;
mod presets;
mod replay;
#[cfg(target_os = "linux")]
mod run_report;
mod shipped;
mod simulations;
mod sweep;
mod switch;

#[cfg(target_os = "linux")]
pub(crate) use capacity::CapacityView;
pub(crate) use check::CheckedFile;
pub(crate) use described::{Described, ShippedText};
#[cfg(target_os = "linux")]
pub(crate) use evaluations::prediction;
pub(crate) use evaluations::{EvaluationText, Figure, Figures, models, simulator};
#[cfg(target_os = "linux")]
pub(crate) use lab::AppliedChanges;
#[cfg(target_os = "linux")]
pub(crate) use link_loads::load_table;
#[cfg(target_os = "linux")]
pub(crate) use measurements::{Measured, PipelinePoints};
pub(crate) use presets::Presets;
#[cfg(target_os = "linux")]
pub(crate) use run_report::{LinkTable, accounting_lines, lateness_lines};
pub(crate) use shipped::{Experiments, Shipped};
pub(crate) use sweep::SweepTable;
#[cfg(target_os = "linux")]
pub(crate) use switch::{BridgeSummaries, workers};

use serde::Serialize;
use std::io::{self, Write};

/// A result that can be printed.
pub(crate) trait Render {
    /// Writes the result as text.
    ///
    /// # Errors
    /// The error of `out`.
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;

    /// Writes the result as JSON, one object per line.
    ///
    /// # Errors
    /// The error of `out`.
    fn json(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Prints a result to standard output, as text or as JSON.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(result: &(impl Render + ?Sized), is_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_json { result.json(&mut out) } else { result.text(&mut out) }
}

/// Writes a value as one line of JSON.
fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(value)?)
}
