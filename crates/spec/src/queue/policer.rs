//! A policer: drops what exceeds a rate and a burst, and lets nothing wait for tokens.
//!
//! ```toml
//! queue = { kind = "policer", rate = "1Mbit", burst = "15KiB" }
//! # packets that conform wait for the rate of the link in a queue
//! queue = { kind = "policer", rate = "1Mbit", burst = "15KiB", limit = "20p" }
//! ```

use super::keys::Schemas;
use super::quantity::limit;
use super::token_bucket::rate_and_burst;
use crate::default_queue::DEFAULT_QUEUE_PACKETS;
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, text};
use fastpath_link::{Limit, PolicerSpec, QueueSpec};
use serde_json::Value;

pub(super) const KIND: &str = "policer";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let bucket = rate_and_burst("a policer", fields, remarks);
    let limit = match fields.get("limit") {
        Some(field) => limit(&field, "50p", remarks)?,
        None => Limit::Packets(DEFAULT_QUEUE_PACKETS),
    };
    let (rate, burst) = bucket?;
    Some(QueueSpec::Policer(PolicerSpec { rate, burst, limit }))
}

pub(super) fn write(PolicerSpec { rate, burst, limit }: &PolicerSpec) -> Value {
    of_kind(KIND, [("rate", text(rate)), ("burst", text(burst)), ("limit", text(limit))])
}

pub(super) fn schema() -> Schemas {
    properties([
        ("rate", "The rate at which tokens arrive.", reference("rate")),
        ("burst", "The depth of the bucket.", reference("bytes")),
        ("limit", "The hard limit of what conforms and waits for the link.", reference("limit")),
    ])
}
