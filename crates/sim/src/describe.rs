//! The blocks that a machine, a program or a workload can be built of, as a person reads them: the
//! keys of each with an example, the default, the range and the meaning, and an example that runs.
//!
//! `blocks.toml` has the texts. Tests hold them to the code: the keys are those that are read, a
//! written default changes nothing, every example value is accepted, and every example runs.

use crate::keys::{self, FileValue, read_table};
use fastpath_text::document;
use fastpath_text::fields::{Field, Fields};
use fastpath_text::mistake::Remarks;
use std::fmt;

#[cfg(test)]
pub(crate) mod tests;

/// A key of a block.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key.
    pub name: String,
    /// A value with its unit, as a file writes it.
    pub example: String,
    /// The value if the key is left out; `required` or `none` if there is none.
    pub default: String,
    /// The values that are accepted.
    pub range: String,
    /// The meaning, on one line.
    pub meaning: String,
}

/// A table of a machine or program file, or the workload.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name: `station`.
    pub name: String,
    /// How a file begins it: `[[station]]`.
    pub head: String,
    /// What it is, in one sentence.
    pub about: String,
    /// Its keys.
    pub key: Vec<Key>,
    /// The lines of a machine file that use it, beside `name`, `source` and `[ports]`.
    machine: String,
    /// The stages of a program for them.
    program: String,
    /// A workload for them.
    pub workload: String,
}

read_table!(Block as "block", "{ }": { name, head, about, key, machine, program, workload });

impl FileValue for Key {
    const EXAMPLE: &'static str = "[ ]";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Key> {
        let texts: Vec<String> = FileValue::read(field, remarks)?;
        let [name, example, default, range, meaning] = texts.try_into().ok()?;
        Some(Key { name, example, default, range, meaning })
    }
}

/// All blocks.
pub fn blocks() -> Vec<Block> {
    let text = include_str!("../blocks.toml");
    let mut remarks = Remarks::new(text);
    let document = document::toml(text, "blocks", "write TOML", &mut remarks).unwrap_or_default();
    let mut fields = Fields::new("blocks", 0, &document);
    let blocks = keys::list(&mut fields, "block", &mut remarks);
    remarks.finish().expect("shipped files are tested");
    blocks
}

impl Block {
    /// The machine of the example.
    pub fn machine_text(&self) -> String {
        let ports = "[ports]\ncount = 2\nrate = \"10Gbit\"\n\n";
        let ports = if self.machine.contains("[ports]") { "" } else { ports };
        format!("name = \"example\"\nsource = \"made up\"\n\n{ports}{}", self.machine)
    }

    /// The program of the example.
    pub fn program_text(&self) -> String {
        format!("name = \"example\"\nsource = \"made up\"\n\n{}", self.program)
    }
}

impl fmt::Display for Block {
    /// The keys in columns, then the example as two files and a command.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} – {}\n", self.head, self.about)?;
        let title = ["key", "example", "default"];
        let row = |key: &Key| [key.name.clone(), key.example.clone(), key.default.clone()];
        let width = |column: usize| {
            let widths = self.key.iter().map(|key| row(key)[column].chars().count());
            widths.max().unwrap_or(0).max(title[column].len())
        };
        let [a, b, c] = [width(0), width(1).min(48), width(2)];
        writeln!(f, "  {:a$}  {:b$}  {:c$}  meaning (range)", title[0], title[1], title[2])?;
        for key in &self.key {
            let [name, example, default] = row(key);
            writeln!(f, "  {name:a$}  {example:b$}  {default:c$}  {} ({})", key.meaning, key.range)?;
        }
        for (file, text) in [("machine.toml", self.machine_text()), ("program.toml", self.program_text())] {
            writeln!(f, "\n{file}:\n")?;
            for line in text.lines() {
                if line.is_empty() { writeln!(f)? } else { writeln!(f, "    {line}")? }
            }
        }
        let workload = &self.workload;
        writeln!(f, "\n    fastpath sim machine.toml --program program.toml --workload {workload}")
    }
}
