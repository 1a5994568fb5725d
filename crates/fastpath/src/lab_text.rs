//! Running labs on a command line: which lab is meant, what a change of the network did, and the
//! nodes.

use crate::error::{Error, Result};
use crate::load::name_of;
use fastpath_engine::control::Applied;
use fastpath_lab::{InspectedLab, is_host, list, only_lab};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

/// Infallible: writing to a string.
const INFALLIBLE: &str = "writing to a string";

/// A program to run on a host of a lab.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecWords {
    /// The lab.
    pub lab: String,
    /// The host.
    pub host: String,
    /// The program and its arguments; empty: a shell.
    pub command: Vec<OsString>,
}

/// Reads `[LAB] HOST [--] [COMMAND …]`. Without `--` the first word is a lab if the second is one
/// of its hosts.
///
/// # Errors
/// [`Error::Argument`]: no word stands before `--`, or the lab is missing and none or
/// several are up.
pub fn exec_words(mut words: Vec<OsString>) -> Result<ExecWords> {
    // A later one is a word of the command.
    let separator = words.iter().take(3).position(|word| word == "--");
    if separator == Some(0) {
        return Err(Error::Argument("write HOST or LAB HOST before --".to_owned()));
    }
    let name = |word: Option<&OsString>| word.map(|word| word.to_string_lossy().into_owned());
    let (first, second) = (name(words.first()).unwrap_or_default(), name(words.get(1)));
    let is_pair = match separator {
        Some(place) => place == 2,
        None => second.as_ref().is_some_and(|host| is_host(&first, host)),
    };
    let command = words.split_off(separator.map_or(1 + usize::from(is_pair), |place| place + 1));
    let (lab, host) = match second.filter(|_| is_pair) {
        Some(host) => (first, host),
        None => (the_only_lab()?, first),
    };
    Ok(ExecWords { lab, host, command })
}

/// Returns the lab that a description is for: the one with the name of its file if that is up, or
/// the only one that is up.
///
/// # Errors
/// [`Error::Argument`]: none or several are up.
pub fn lab_of(spec: &Path) -> Result<String> {
    let own = name_of(spec);
    let is_up = list().iter().any(|lab| lab.alive && lab.name == own);
    if is_up { Ok(own) } else { the_only_lab() }
}

fn the_only_lab() -> Result<String> {
    only_lab(|lab| lab.alive).map_err(|error| Error::Argument(error.to_string()))
}

/// Returns a line for each node, link or setting that has changed, or in a dry run would.
pub fn applied_table(lab: &str, applied: &Applied, is_dry_run: bool) -> String {
    let mut text = String::new();
    for change in &applied.changes {
        let sign = match change.action.as_str() {
            "add" => '+',
            "remove" => '-',
            _ => '~',
        };
        let line = format!("{sign} {:<8} {:<16} {}", change.kind, change.name, change.details.join(", "));
        writeln!(text, "{}", line.trim_end()).expect(INFALLIBLE);
    }
    let verb = if is_dry_run { "would change" } else { "has changed" };
    let count = |action: &str| applied.changes.iter().filter(|change| change.action == action).count();
    let (added, removed) = (count("add"), count("remove"));
    let changed = applied.changes.len() - added - removed;
    match applied.changes.is_empty() {
        true => writeln!(text, "lab {lab}: no difference").expect(INFALLIBLE),
        false => {
            writeln!(text, "lab {lab} {verb}: {added} added, {changed} changed, {removed} removed")
                .expect(INFALLIBLE);
        }
    }
    text
}

/// Returns a line for each node of a lab.
pub fn inspected_table(lab: &InspectedLab) -> String {
    let mut text = format!("lab {} is up (process {})\n", lab.name, lab.pid);
    let width = lab.nodes.iter().map(|node| node.name.len()).max().unwrap_or_default().max(4);
    writeln!(
        text,
        "  {:<width$} {:<9} {:<9} {:<20} {:<8} addresses",
        "node", "kind", "state", "namespace", "programs"
    )
    .expect(INFALLIBLE);
    for node in &lab.nodes {
        let namespace = node.namespace.as_deref().unwrap_or("-");
        let programs = if node.namespace.is_some() { node.pids.len().to_string() } else { "-".to_owned() };
        let addresses = node.addresses.join(" ");
        let line = format!(
            "  {:<width$} {:<9} {:<9} {namespace:<20} {programs:<8} {addresses}",
            node.name, node.kind, node.state
        );
        writeln!(text, "{}", line.trim_end()).expect(INFALLIBLE);
    }
    text
}
