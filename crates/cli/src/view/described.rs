//! The blocks of machine and program files, and shipped files, as commands print them.

use super::{Render, json_line};
use anyhow::bail;
use fastpath::sim::describe::{Block, blocks};
use serde_json::{Value, json};
use std::io::{self, Write};

/// A block, or the list of all blocks.
pub(crate) enum Described {
    /// One block with its keys.
    One(Box<Block>),
    /// Names and sentences.
    All(Vec<Block>),
}

impl Described {
    /// The block called `name`, or all of them.
    pub(crate) fn named(name: Option<&str>) -> anyhow::Result<Described> {
        let blocks = blocks();
        let Some(name) = name else { return Ok(Described::All(blocks)) };
        let names: Vec<String> = blocks.iter().map(|block| block.name.clone()).collect();
        match blocks.into_iter().find(|block| block.name == name.trim_matches(['[', ']'])) {
            Some(block) => Ok(Described::One(Box::new(block))),
            None => bail!("there is no block {name}; write one of {}", names.join(", ")),
        }
    }
}

fn json(block: &Block) -> Value {
    let key = |key: &fastpath::sim::describe::Key| {
        json!({
            "name": key.name, "example": key.example, "default": key.default,
            "range": key.range, "meaning": key.meaning,
        })
    };
    json!({
        "block": block.name,
        "head": block.head,
        "about": block.about,
        "keys": block.key.iter().map(key).collect::<Vec<_>>(),
        "machine": block.machine_text(),
        "program": block.program_text(),
        "workload": block.workload,
    })
}

impl Render for Described {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Described::One(block) => write!(out, "{block}"),
            Described::All(blocks) => {
                blocks.iter().try_for_each(|block| writeln!(out, "{:12} {}", block.name, block.about))
            }
        }
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Described::One(block) => json_line(out, &json(block)),
            Described::All(blocks) => json_line(out, &json!(blocks.iter().map(json).collect::<Vec<_>>())),
        }
    }
}

/// A file of a shipped machine or program.
pub(crate) struct ShippedText(pub(crate) String);

impl Render for ShippedText {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}", self.0)
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, &json!({ "text": self.0 }))
    }
}
