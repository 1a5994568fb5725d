//! Drop-tail, with a limit in packets, bytes, or time at the rate of the moment.
//!
//! ```toml
//! queue = "50p"
//! queue = { kind = "drop-tail", limit = "50p" }
//! queue = { kind = "drop-tail", limit = "20ms" }
//! ```

use super::keys::Schemas;
use super::quantity::{positive, required_limit};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::tree::Tree;
use crate::write::{of_kind, text};
use fastpath_link::{Limit, QueueSpec};
use fastpath_units::Duration;
use serde_json::{Value, json};

pub(super) const KIND: &str = "drop-tail";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    match fields.peek("limit") {
        Some(Tree::Text(text)) if text.ends_with('s') => {
            let field = fields.get("limit")?;
            positive(&field, "20ms", remarks).map(QueueSpec::DropTailTime)
        }
        _ => required_limit(fields, remarks).map(QueueSpec::DropTail),
    }
}

pub(super) fn write(limit: &Limit) -> Value {
    text(limit)
}

pub(super) fn write_time(longest: &Duration) -> Value {
    of_kind(KIND, [("limit", text(longest))])
}

pub(super) fn schema() -> Schemas {
    let limit = json!({ "anyOf": [reference("limit"), reference("duration")] });
    properties([("limit", "The hard limit: packets, bytes, or the time to send what is queued.", limit)])
}
