//! The blocks that a machine, a program or a workload can be built of, as a person reads them: the
//! keys of each with an example, the default, the range and the meaning, and an example that runs.
//!
//! `blocks.rs` has the texts. Tests hold them to the code: the keys are those that are read, a
//! written default changes nothing, every example value is accepted, and every example runs.

mod blocks;
#[cfg(test)]
mod tests;

pub use blocks::BLOCKS;
use std::fmt;

/// A key of a block.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// A value with its unit, as a file writes it.
    pub example: &'static str,
    /// The value if the key is left out; [`REQUIRED`] or [`NONE`] if there is none.
    pub default: &'static str,
    /// The values that are accepted.
    pub range: &'static str,
    /// The meaning, on one line.
    pub meaning: &'static str,
}

/// The default of a key that must be there.
pub const REQUIRED: &str = "required";
/// The default of a key that may be left out and then has no value.
pub const NONE: &str = "none";

/// A table of a machine or program file, or the workload.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its name: `station`.
    pub name: &'static str,
    /// How a file begins it: `[[station]]`.
    pub head: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Its keys, required ones first.
    pub keys: &'static [Key],
    /// The lines of a machine file that use it, beside `name`, `source` and `[ports]`.
    pub machine: &'static str,
    /// The stages of a program for them.
    pub program: &'static str,
    /// A workload for them.
    pub workload: &'static str,
}

/// The block called `name`, if there is one.
pub fn block(name: &str) -> Option<&'static Block> {
    BLOCKS.iter().find(|block| block.name == name)
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
        let width = |part: fn(&Key) -> &str, title: &str| {
            let texts = self.keys.iter().map(|key| part(key).chars().count());
            texts.max().unwrap_or(0).max(title.len())
        };
        let [name, example, default] =
            [width(|k| k.name, "key"), width(|k| k.example, "example"), width(|k| k.default, "default")];
        writeln!(f, "  {:name$}  {:example$}  {:default$}  meaning (range)", "key", "example", "default")?;
        for key in self.keys {
            let Key { meaning, range, .. } = key;
            writeln!(
                f,
                "  {:name$}  {:example$}  {:default$}  {meaning} ({range})",
                key.name, key.example, key.default
            )?;
        }
        writeln!(f, "\nExample, machine.toml:\n")?;
        indented(f, &self.machine_text())?;
        writeln!(f, "\nprogram.toml:\n")?;
        indented(f, &self.program_text())?;
        let workload = self.workload;
        writeln!(f, "\n    fastpath sim machine.toml --program program.toml --workload {workload}")
    }
}

fn indented(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.lines().try_for_each(|line| if line.is_empty() { writeln!(f) } else { writeln!(f, "    {line}") })
}
