//! The words of a command line that name a running lab, a host in it, and a program.

use anyhow::bail;
use fastpath::name_of;
use fastpath_lab::{is_host, list, only_lab};
use std::ffi::OsString;
use std::path::Path;

/// A program to run on a host of a lab.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExecWords {
    /// The lab.
    pub(crate) lab: String,
    /// The host.
    pub(crate) host: String,
    /// The program and its arguments; empty: a shell.
    pub(crate) command: Vec<OsString>,
}

/// Reads `[LAB] HOST [--] [COMMAND …]`. Without `--` the first word is a lab if the second is one
/// of its hosts.
///
/// # Errors
/// No word stands before `--`, or the lab is missing and none or
/// several are up.
pub(crate) fn exec_words(mut words: Vec<OsString>) -> anyhow::Result<ExecWords> {
    // A later one is a word of the command.
    let separator = words.iter().take(3).position(|word| word == "--");
    if separator == Some(0) {
        bail!("write HOST or LAB HOST before --");
    }
    let name = |word: Option<&OsString>| word.map(|word| word.to_string_lossy().into_owned());
    let (first, second) = (name(words.first()).unwrap_or_default(), name(words.get(1)));
    let is_pair = match separator {
        Some(place) => place == 2,
        None => second.as_ref().is_some_and(|host| is_host(&first, host)),
    };
    if separator == Some(1) && !is_host_of_only_lab(&first) && is_lab(&first) {
        let hosts = hosts_of(&first);
        bail!(
            "{first} is a lab: write one of its hosts after it: fastpath lab exec {first} HOST -- … (have: {hosts})"
        );
    }
    let command = words.split_off(separator.map_or(1 + usize::from(is_pair), |place| place + 1));
    let (lab, host) = match second.filter(|_| is_pair) {
        Some(host) => (first, host),
        None => (the_only_lab()?, first),
    };
    Ok(ExecWords { lab, host, command })
}

fn is_lab(name: &str) -> bool {
    list().iter().any(|lab| lab.alive && lab.name == name)
}

fn is_host_of_only_lab(name: &str) -> bool {
    only_lab(|lab| lab.alive).is_ok_and(|lab| is_host(&lab, name))
}

fn hosts_of(name: &str) -> String {
    let lab = list().into_iter().find(|lab| lab.name == name);
    let hosts: Vec<String> = lab.into_iter().flat_map(|lab| lab.hosts).map(|(host, _)| host).collect();
    hosts.join(", ")
}

/// Returns the lab that a description is for: the one with the name of its file if that is up, or
/// the only one that is up.
///
/// # Errors
/// None or several are up.
pub(crate) fn lab_of(spec: &Path) -> anyhow::Result<String> {
    let own = name_of(spec);
    let is_up = list().iter().any(|lab| lab.alive && lab.name == own);
    if is_up { Ok(own) } else { the_only_lab() }
}

fn the_only_lab() -> anyhow::Result<String> {
    Ok(only_lab(|lab| lab.alive)?)
}
