//! A bound on the sojourn time.
//!
//! ```toml
//! queue = "20ms"
//! queue = { kind = "sojourn", longest = "20ms", limit = "1000p" }
//! ```

use super::keys::Schemas;
use super::quantity::{limit, positive};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, text};
use fastpath_link::{Limit, QueueSpec, SojournSpec};
use serde_json::Value;

pub(super) const KIND: &str = "sojourn";
const UNLIMITED: Limit = Limit::Packets(u32::MAX);

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let Some(field) = fields.get("longest") else {
        remarks.mistake(fields.at, "queue has no longest time", "write longest = \"20ms\"");
        return None;
    };
    let longest = positive(&field, "20ms", remarks)?;
    let limit = fields.get("limit").map_or(Some(UNLIMITED), |field| limit(&field, "50p", remarks))?;
    Some(QueueSpec::Sojourn(SojournSpec { longest, limit }))
}

pub(super) fn write(spec: &SojournSpec) -> Value {
    let limit = (spec.limit != UNLIMITED).then(|| ("limit", text(spec.limit)));
    of_kind(KIND, [("longest", text(spec.longest))].into_iter().chain(limit))
}

pub(super) fn schema() -> Schemas {
    properties([
        ("longest", "The longest time from arrival to transmission.", reference("duration")),
        ("limit", "The hard limit.", reference("limit")),
    ])
}
