//! Results as commands print them: text for people, JSON for programs.

use serde::Serialize;
use std::io::{self, Write};

/// A result that can be printed.
pub trait Render {
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
pub fn print(result: &(impl Render + ?Sized), is_json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_json { result.json(&mut out) } else { result.text(&mut out) }
}

/// Writes a value as one line of JSON.
pub(crate) fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(value)?)
}
