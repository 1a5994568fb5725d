//! Drop-head.
//!
//! ```toml
//! queue = { kind = "drop-head", limit = "50p" }
//! ```

use super::keys::Schemas;
use super::quantity::required_limit;
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, text};
use fastpath_link::{Limit, QueueSpec};
use serde_json::Value;

pub(super) const KIND: &str = "drop-head";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    required_limit(fields, remarks).map(QueueSpec::DropHead)
}

pub(super) fn write(limit: &Limit) -> Value {
    of_kind(KIND, [("limit", text(limit))])
}

pub(super) fn schema() -> Schemas {
    properties([("limit", "The hard limit; a full queue drops its oldest packet.", reference("limit"))])
}
