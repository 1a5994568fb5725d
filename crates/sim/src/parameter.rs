//! One value of a file, found by its path and replaced: `cpu.cores`, `ports.rate`,
//! `memory.level.L2.latency`, `h`.
//!
//! A path is names from the outside in. In a list of named things (`[[cores]]`, `[[stage]]`) the
//! name selects, in a list without names the place from 0. The list itself (`cores`, `stage`) may
//! be left out, and so may `params`. Only what the file says can be set: the rest of the text stays
//! as it is, so later errors name the lines of the file.

use crate::machine::Machine;
use crate::program::Program;
use crate::spec::{Problem, SpecError};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A machine or program file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its name, for errors.
    pub file: String,
    /// What it says.
    pub text: String,
}

/// Why a value was not replaced.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// The file cannot be read at all.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Nothing of this name.
    #[error(
        "{file}: there is no value {path:?}; change one that is written there (have: {known}), or write it there first"
    )]
    Unknown {
        /// The file.
        file: String,
        /// The path asked for.
        path: String,
        /// The names where it leaves the file.
        known: String,
    },
    /// A value no field takes.
    #[error("value {0:?} is none of a machine or program: write a number, a name or a quantity such as 2GHz")]
    Value(String),
}

impl Text {
    /// The text of `file`.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Text {
        Text { file: file.into(), text: text.into() }
    }

    /// Reads it as a machine.
    pub fn machine(&self) -> Result<Machine, SpecError> {
        Machine::parse(&self.file, &self.text)
    }

    /// Reads it as a program.
    pub fn program(&self) -> Result<Program, SpecError> {
        Program::parse(&self.file, &self.text)
    }

    /// The same text with another `value` at `path`. Whether the value makes sense there is found
    /// when the text is read.
    pub fn set(&self, path: &str, value: &str) -> Result<Text, ParameterError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".%+-_ ".contains(c);
        if value.is_empty() || !value.chars().all(plain) {
            return Err(ParameterError::Value(value.to_owned()));
        }
        let (place, quoted) = self.find(path)?;
        let is_bare = value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
        let written = if quoted || !is_bare { format!("\"{value}\"") } else { value.to_owned() };
        let mut text = self.text.clone();
        text.replace_range(place, &written);
        Ok(Text { file: self.file.clone(), text })
    }

    /// Where the value at `path` stands, and whether it is text.
    fn find(&self, path: &str) -> Result<(Range<usize>, bool), ParameterError> {
        let document = DeTable::parse(&self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = 1 + self.text.bytes().take(at).filter(|&b| b == b'\n').count();
            SpecError { file: self.file.clone(), line, problem: Problem::Syntax(error.message().to_owned()) }
        })?;
        let parts: Vec<&str> = path.split('.').collect();
        let found = descend(&top(document.get_ref()), &parts);
        found.map_err(|(_, known)| ParameterError::Unknown {
            file: self.file.clone(),
            path: path.to_owned(),
            known: known.join(", "),
        })
    }
}

/// What can be named at one place.
type Named<'a, 'i> = Vec<(String, &'a Spanned<DeValue<'i>>)>;

/// What can be named first: the keys of the file, and what stands in its lists and its `params`.
fn top<'a, 'i>(table: &'a DeTable<'i>) -> Named<'a, 'i> {
    let keys: Named = table.iter().map(|(key, value)| (key.get_ref().to_string(), value)).collect();
    let is_open = |name: &str, value: &DeValue| name == "params" || value.is_array();
    let opened = keys.iter().filter(|(name, value)| is_open(name, value.get_ref()));
    let inside: Named = opened.flat_map(|(_, value)| children(value.get_ref())).collect();
    // What has a name of its own goes before the list it is in: `egress.engines` where the list is
    // called egress too.
    [inside, keys].concat()
}

/// What can be named inside a table or a list.
fn children<'a, 'i>(value: &'a DeValue<'i>) -> Named<'a, 'i> {
    match value {
        DeValue::Table(table) => {
            table.iter().map(|(key, value)| (key.get_ref().to_string(), value)).collect()
        }
        DeValue::Array(list) => {
            let name = |v: &Spanned<DeValue>| {
                Some(v.get_ref().as_table()?.get("name")?.get_ref().as_str()?.to_owned())
            };
            list.iter().enumerate().map(|(i, v)| (name(v).unwrap_or_else(|| i.to_string()), v)).collect()
        }
        _ => Vec::new(),
    }
}

/// The value at the end of `parts`; or how far they lead, and what could have been named there.
fn descend(named: &Named, parts: &[&str]) -> Result<(Range<usize>, bool), (usize, Vec<String>)> {
    let mut furthest = (parts.len(), named.iter().map(|(name, _)| name.clone()).collect());
    let Some((first, rest)) = parts.split_first() else { return Err(furthest) };
    for (_, value) in named.iter().filter(|(name, _)| name == first) {
        let inside = children(value.get_ref());
        if rest.is_empty() && inside.is_empty() {
            return Ok((value.span(), value.get_ref().is_str()));
        }
        match descend(&inside, rest) {
            Err(error) if error.0 < furthest.0 => furthest = error,
            Err(_) => {}
            found => return found,
        }
    }
    Err(furthest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped;

    fn changed(text: &Text, path: &str, value: &str) -> Vec<(String, String)> {
        let new = text.set(path, value).unwrap();
        let pairs = text.text.lines().zip(new.text.lines());
        pairs.filter(|(a, b)| a != b).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
    }

    #[test]
    fn one_value_changes_and_nothing_else() {
        let ixp = shipped::machine_text("ixp1200").unwrap();
        let pair = |a: &str, b: &str| vec![(a.to_owned(), b.to_owned())];
        assert_eq!(changed(&ixp, "egress.engines", "2"), pair("engines = 1", "engines = 2"));
        assert_eq!(changed(&ixp, "egress.egress.engines", "2"), pair("engines = 1", "engines = 2"));
        assert_eq!(changed(&ixp, "ports.rate", "1Gbit"), pair("rate = \"100Mbit\"", "rate = \"1Gbit\""));
        assert_eq!(changed(&ixp, "me3.tick", "64Hz"), pair("tick = \"8192Hz\"", "tick = \"64Hz\""));
        assert_eq!(
            changed(&ixp, "memory.hash.read.8", "9"),
            pair("read = { 8 = 35, 12 = 40 }", "read = { 8 = 9, 12 = 40 }")
        );
        let cn = shipped::machine_text("cn6880").unwrap();
        let line =
            r#"  { name = "L2", size = "4MiB", latency = "27ns", shared = true, bandwidth = "700Gbit" },"#;
        assert_eq!(changed(&cn, "memory.level.L2.size", "8MiB"), pair(line, &line.replace("4MiB", "8MiB")));
        let netcope = shipped::program_text("netcope").unwrap();
        assert_eq!(changed(&netcope, "h", "10"), pair("params = { h = 0 }", "params = { h = 10 }"));
        assert_eq!(changed(&netcope, "params.h", "10").len(), 1);
        let path = "receive-process-transmit.steps.0.time";
        assert_eq!(changed(&netcope, path, "1us"), pair("  { time = \"38.6ns\" },", "  { time = \"1us\" },"));
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        let ixp = shipped::machine_text("ixp1200").unwrap();
        for (path, known) in [
            ("speed", "ports"),
            ("me1.cores", "threads"),
            ("egress.cores", "fill_threads"),
            ("ports", "count"),
            ("ports.rate.x", "have: )"),
        ] {
            let error = ixp.set(path, "1").unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(known), "{error}");
        }
        assert!(matches!(ixp.set("ports.rate", "1\"\nx=1"), Err(ParameterError::Value(_))));
        // A value of the wrong sort is found where the file is read, with its line.
        let text = ixp.set("egress.engines", "many").unwrap();
        let error = text.machine().unwrap_err();
        assert_eq!(ixp.text.lines().nth(error.line - 1), Some("engines = 1"));
    }
}
