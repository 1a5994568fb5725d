//! Sets one value of a machine or program file by its path: `cpu.cores`, `ports.rate`,
//! `memory.level.L2.latency`, `h`.
//!
//! A path is a list of names from the outside in. In a list of tables with names (`[[cores]]`,
//! `[[stage]]`) the name selects the table, in a list without names its index from 0. The key of
//! the list (`cores`, `stage`) may be left out, and so may `params`.
//!
//! A value in the file is replaced, and errors found later name the lines of the file. A key that
//! the file leaves at its default is written into its table, on a line before the table's first
//! key.

use crate::machine::Machine;
use crate::program::Program;
use crate::spec::{SpecError, result};
use fastpath_text::document;
use fastpath_text::mistake::{Mistake, Remarks, choice};
use fastpath_text::tree::{Placed, Tree, TreeTable};
use std::ops::Range;

/// A machine or program file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The file's name, for errors.
    pub file: String,
    /// The text of the file.
    pub text: String,
}

/// Why a value was not set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// The file cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An unknown name.
    #[error("{file}: there is no value {path:?}; {instead}")]
    Unknown {
        /// The file.
        file: String,
        /// The path.
        path: String,
        /// What to write: the nearest name where the path leaves the file, or all.
        instead: String,
    },
    /// A value that no key takes.
    #[error("value {0:?} is not a number, a name or a quantity such as 2GHz")]
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

    /// The same text with `value` at `path`. Whether the value makes sense is checked when the text
    /// is read.
    pub fn set(&self, path: &str, value: &str) -> Result<Text, ParameterError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".%+-_ ".contains(c);
        if value.is_empty() || !value.chars().all(plain) {
            return Err(ParameterError::Value(value.to_owned()));
        }
        let is_bare = value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
        let quoted = format!("\"{value}\"");
        let parts: Vec<&str> = path.split('.').collect();
        let mut remarks = Remarks::new(&self.text);
        let document = document::toml(&self.text, "a machine or program", "write TOML", &mut remarks);
        let document = result(&self.file, remarks, document)?;
        let mut text = self.text.clone();
        match descend(&self.text, &top(&document), &parts) {
            Ok(FoundValue { place, is_text }) => {
                text.replace_range(place, if is_text || !is_bare { &quoted } else { value });
                Ok(Text { file: self.file.clone(), text })
            }
            Err(missing) => {
                let unknown = |instead: String| ParameterError::Unknown {
                    file: self.file.clone(),
                    path: path.to_owned(),
                    instead,
                };
                let is_key = (1..=NESTED_MAX).contains(&missing.rest.len());
                let Some((at, before, after)) = missing.table.filter(|_| is_key) else {
                    return Err(unknown(missing.instead()));
                };
                let key = missing.rest.join(".");
                let written = if is_bare { value } else { &quoted };
                text.insert_str(at, &format!("{before}{key} = {written}{after}"));
                let key_at = at + before.len();
                let new = Text { file: self.file.clone(), text };
                match new.instead_of(key_at..key_at + key.len(), document.get("stage").is_some()) {
                    Some(instead) => Err(unknown(instead)),
                    None => Ok(new),
                }
            }
        }
    }

    /// What to write in place of a key that was added at `place`, if the table does not have it.
    fn instead_of(&self, place: Range<usize>, is_program: bool) -> Option<String> {
        let found = if is_program { self.program().err() } else { self.machine().err() };
        let remarks = Remarks::new(&self.text);
        let is_there = |mistake: &Mistake| {
            place.clone().any(|at| remarks.position(at) == (mistake.line, mistake.column))
                && mistake.what.contains(" has no key ")
        };
        found?.mistakes.into_iter().find(is_there).map(|mistake| mistake.instead)
    }
}

/// A key at its default is at most this deep below a table of the file: `queue.limit`.
const NESTED_MAX: usize = 2;

/// A value in the text.
struct FoundValue {
    place: Range<usize>,
    is_text: bool,
}

/// A place in the text, and the text before and after what is written there.
type Insertion = (usize, &'static str, &'static str);

/// A path that leaves the file.
struct Missing<'p> {
    /// The part of the path that is not in the file.
    rest: Vec<&'p str>,
    /// The names known at that point.
    known: Vec<String>,
    /// Where a key can be written into the last table on the path; `None` if no key can be added
    /// there.
    table: Option<Insertion>,
}

impl Missing<'_> {
    /// What to write in place of the first name that is not in the file.
    fn instead(&self) -> String {
        match self.rest.first() {
            Some(name) if !self.known.is_empty() => choice(name, self.known.iter().map(String::as_str)),
            Some(name) => format!("end the path before {name}: nothing is inside"),
            None => format!("go on with .{}", self.known.join(", .")),
        }
    }
}

/// The names at one point of a file, with their values.
type Named<'a, 't> = Vec<(String, &'a Placed<'t>)>;

/// The names that a path can begin with: the keys of the file, and the names in its lists and its
/// `params`.
fn top<'a, 't>(table: &'a TreeTable<'t>) -> Named<'a, 't> {
    let keys = in_table(table);
    let is_open = |name: &str, value: &Tree| name == "params" || matches!(value, Tree::Array(_));
    let opened = keys.iter().filter(|(name, placed)| is_open(name, &placed.value));
    let inside: Named = opened.flat_map(|(_, placed)| children(&placed.value)).collect();
    // A table with a name precedes the list with that key: `egress.engines`, where the list is
    // called egress too.
    [inside, keys].concat()
}

/// The keys of a table, sorted.
fn in_table<'a, 't>(table: &'a TreeTable<'t>) -> Named<'a, 't> {
    let mut keys: Named = table.entries.iter().map(|entry| (entry.key.to_string(), &entry.placed)).collect();
    keys.sort_by(|(a, _), (b, _)| a.cmp(b));
    keys
}

/// The names inside a table or a list.
fn children<'a, 't>(value: &'a Tree<'t>) -> Named<'a, 't> {
    match value {
        Tree::Table(table) => in_table(table),
        Tree::Array(list) => {
            let name = |placed: &Placed| {
                let Tree::Table(table) = &placed.value else { return None };
                let Tree::Text(name) = &table.get("name")?.value else { return None };
                Some(name.to_string())
            };
            let named = |(i, placed): (usize, &'a Placed<'t>)| {
                (name(placed).unwrap_or_else(|| i.to_string()), placed)
            };
            list.iter().enumerate().map(named).collect()
        }
        _ => Vec::new(),
    }
}

/// Where a key can be written into `value`, and the text before and after it there.
fn insertion_point(text: &str, placed: &Placed) -> Option<Insertion> {
    let Tree::Table(table) = &placed.value else { return None };
    if text[placed.at..].starts_with('{') {
        return Some((placed.at + 1, " ", if table.entries.is_empty() { " " } else { "," }));
    }
    table.entries.iter().map(|entry| entry.key_at).min().map(|at| (at, "", "\n"))
}

/// The value at the end of `parts`, or the point where `parts` leaves the file.
fn descend<'p>(text: &str, named: &Named, parts: &[&'p str]) -> Result<FoundValue, Missing<'p>> {
    let known = named.iter().map(|(name, _)| name.clone()).collect();
    let mut furthest = Missing { rest: parts.to_vec(), known, table: None };
    let Some((first, rest)) = parts.split_first() else { return Err(furthest) };
    for (name, placed) in named.iter().filter(|(name, _)| name == first) {
        let inside = children(&placed.value);
        if rest.is_empty() && inside.is_empty() {
            let is_text = matches!(placed.value, Tree::Text(_));
            return Ok(FoundValue { place: placed.at..placed.end, is_text });
        }
        match descend(text, &inside, rest) {
            Err(missing) if missing.rest.len() < furthest.rest.len() => {
                // Parameters are the author's: a new one would have no effect.
                let is_here = missing.rest.len() == rest.len() && name != "params";
                let table = if is_here { insertion_point(text, placed) } else { missing.table };
                furthest = Missing { table, ..missing };
            }
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
    fn a_key_at_its_default_is_written_into_its_table() {
        let servers = |text: &Text, unit| text.machine().unwrap().servers(unit);
        let wire = shipped::machine_text("xeon-e5-2687wv4").unwrap();
        for (path, value, line) in [
            ("wire.queue.limit", "64", "queue.limit = 64"),
            ("cpu.refusal", "10ns", "refusal = \"10ns\""),
            ("ports.chunk", "128", "chunk = 128"),
            ("cpu.queue.full", "block", "queue = { full = \"block\", limit = 512 }"),
            ("cpu.scheduler.poll", "5ns", "scheduler = { poll = \"5ns\", kind = \"poll\", burst = 32 }"),
        ] {
            let new = wire.set(path, value).unwrap();
            assert!(new.text.lines().any(|l| l == line), "{path}: {}", new.text);
            new.machine().unwrap();
        }
        let station = shipped::machine_text("xeon-e5-2699v3").unwrap();
        assert_eq!(servers(&station.set("nic.servers", "3").unwrap(), "nic"), Some(3));
        let error = station.set("nic.servers", "0").unwrap().machine().unwrap_err().to_string();
        assert!(error.contains("from 1 to 65536"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        let ixp = shipped::machine_text("ixp1200").unwrap();
        for (path, known) in [
            ("speed", "ports"),
            ("me1.cores", "threads"),
            ("egress.cores", "fill_threads"),
            ("ports", "count"),
            ("ports.rate.x", "nothing is inside"),
            ("egres.engines", "write egress"),
            ("egress.engine", "write engines"),
            ("me1.queue.length", "limit"),
        ] {
            let error = ixp.set(path, "1").unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(known), "{error}");
        }
        assert!(matches!(ixp.set("ports.rate", "1\"\nx=1"), Err(ParameterError::Value(_))));
        // A value of the wrong sort is found where the file is read, with its line.
        let text = ixp.set("egress.engines", "many").unwrap();
        let error = text.machine().unwrap_err();
        assert_eq!(ixp.text.lines().nth(error.mistakes[0].line - 1), Some("engines = 1"));
    }
}
