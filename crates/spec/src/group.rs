//! The groups of a description: links whose traces start together.
//!
//! ```toml
//! [group.cell]
//! start = "10s"            # of the run; or "first-packet", or "command" (fastpath ctl)
//! ```

use crate::description::GroupDescription;
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{self, reference};
use crate::topology::Start;
use crate::tree::Tree;
use crate::write::text;
use fastpath_units::{Duration, Time};
use serde_json::{Map, Value, json};

/// Reads the table of a group.
pub(crate) fn read(name: String, mut fields: Fields, remarks: &mut Remarks) -> GroupDescription {
    let start = start(&mut fields, remarks);
    fields.finish(remarks);
    GroupDescription { name, start }
}

fn start(fields: &mut Fields, remarks: &mut Remarks) -> Start {
    let Some(field) = fields.get("start") else { return Start::At(Time::ZERO) };
    match field.value {
        Tree::Text(text) if text == "first-packet" => Start::FirstPacket,
        Tree::Text(text) if text == "command" => Start::Command,
        _ => {
            let at: Option<Duration> = field.quantity("10s", remarks);
            Start::At(Time::ZERO + at.unwrap_or(Duration::ZERO))
        }
    }
}

/// Writes a group in the canonical form.
pub(crate) fn write(group: &GroupDescription) -> Value {
    let start = match group.start {
        Start::At(at) => text(at.since(Time::ZERO)),
        Start::FirstPacket => json!("first-packet"),
        Start::Command => json!("command"),
    };
    json!({ "name": group.name, "start": start })
}

/// The schemas of a group's keys, except its name.
pub(crate) fn properties() -> Map<String, Value> {
    let start = json!({ "anyOf": [{ "enum": ["first-packet", "command"] }, reference("duration")] });
    let what = "When the traces of the links start: a time of the run, \"first-packet\" or \"command\".";
    schema_parts::properties([("start", what, start)])
}
