//! RED.
//!
//! ```toml
//! queue = { kind = "red", limit = "50p", min = "5p", max = "15p", probability = 0.1, weight = 0.002,
//!           gentle = true, ecn = false, mean_packet = "500B", idle = "time" }
//! ```

use super::keys::Schemas;
use super::quantity::limit;
use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, of_probability, text};
use fastpath_link::{Limit, QueueSpec, RedIdle, RedSpec};
use fastpath_units::Bytes;
use serde_json::{Value, json};

pub(super) const KIND: &str = "red";

/// The rules for the average of an idle link: of the paper, of ns-2, of Linux.
const IDLE: [(&str, RedIdle); 3] =
    [("time", RedIdle::Time), ("ns-2", RedIdle::Ns2), ("linux", RedIdle::Linux)];

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    read_red(fields, remarks).map(QueueSpec::Red)
}

pub(super) fn write(spec: &RedSpec) -> Value {
    of_kind(KIND, write_red(spec).into_iter().chain(write_thresholds(spec)))
}

pub(super) fn schema() -> Schemas {
    let flag = || json!({ "type": "boolean" });
    properties([
        ("limit", "The hard limit, in the unit of min and max.", reference("limit")),
        ("min", "No packet is marked below this average queue.", reference("limit")),
        ("max", "Every packet is marked from this average queue on.", reference("limit")),
        ("weight", "Weight of the newest queue length in the average.", reference("probability")),
        ("probability", "Marking probability at max.", reference("probability")),
        ("gentle", "Let the probability rise to 1 at twice max.", flag()),
        ("ecn", "Mark ECN-capable packets instead.", flag()),
        ("mean_packet", "A typical packet.", reference("bytes")),
        (
            "idle",
            "How the average decays on an idle link: by the time, as in the paper; in whole packets and \
             one, as in ns-2; by halves, as in Linux.",
            json!({ "enum": IDLE.map(|(word, _)| word) }),
        ),
    ])
}

/// Reads RED. Thresholds that are not given are a tenth and three tenths of the limit, as in ns-2.
pub(super) fn read_red(fields: &mut Fields, remarks: &mut Remarks) -> Option<RedSpec> {
    let mut red = RedSpec::default();
    let limit_field = fields.get("limit");
    if let Some(field) = &limit_field {
        red.limit = limit(field, "50p", remarks)?;
    }
    let most = match red.limit {
        Limit::Packets(packets) => u64::from(packets),
        Limit::Bytes(bytes) => bytes.0,
    };
    red.min = (most / 10).max(1);
    red.max = red.min.saturating_mul(3);
    if let Some(field) = fields.get("min") {
        red.min = threshold(&field, red.limit, remarks)?;
    }
    let max = fields.get("max");
    if let Some(field) = &max {
        red.max = threshold(field, red.limit, remarks)?;
    }
    if red.max <= red.min {
        let at = max.map_or(fields.at, |field| field.at);
        remarks.mistake(at, "max is not above min", "write a larger max, for example three times min");
    }
    if let Some(field) = fields.get("weight") {
        red.weight = field.probability(remarks)?;
    }
    if let Some(field) = fields.get("probability") {
        red.max_p = field.probability(remarks)?;
    }
    red.gentle = fields.get("gentle").map_or(Some(red.gentle), |field| field.switch(remarks))?;
    red.ecn = fields.get("ecn").map_or(Some(red.ecn), |field| field.switch(remarks))?;
    if let Some(field) = fields.get("mean_packet") {
        red.mean_packet = field.quantity("500B", remarks)?;
        if red.mean_packet == Bytes::ZERO {
            remarks.mistake(field.at, "mean_packet is 0", "write mean_packet = \"500B\"");
        }
    }
    if let Some(field) = fields.get("idle") {
        let words = IDLE.map(|(word, _)| word);
        red.idle = IDLE[field.word("a rule for an idle link", &words, remarks)?].1;
    }
    Some(red)
}

fn threshold(field: &Field, unit: Limit, remarks: &mut Remarks) -> Option<u64> {
    let example = match unit {
        Limit::Packets(_) => "5p",
        Limit::Bytes(_) => "8KiB",
    };
    match (limit(field, example, remarks)?, unit) {
        (Limit::Packets(packets), Limit::Packets(_)) => Some(u64::from(packets)),
        (Limit::Bytes(bytes), Limit::Bytes(_)) => Some(bytes.0),
        _ => {
            let what = format!("{} is in another unit than limit", field.key);
            remarks.mistake(field.at, what, format!("write {} = \"{example}\"", field.key));
            None
        }
    }
}

/// Returns the keys of RED except its thresholds and weight.
pub(super) fn write_red(red: &RedSpec) -> Vec<(&'static str, Value)> {
    let keys = vec![
        ("limit", text(red.limit)),
        ("probability", of_probability(red.max_p)),
        ("gentle", json!(red.gentle)),
        ("ecn", json!(red.ecn)),
        ("mean_packet", text(red.mean_packet)),
    ];
    let other = IDLE.iter().find(|(_, rule)| *rule == red.idle && red.idle != RedIdle::default());
    keys.into_iter().chain(other.map(|(word, _)| ("idle", json!(word)))).collect()
}

/// Writes thresholds and weight.
pub(super) fn write_thresholds(red: &RedSpec) -> Vec<(&'static str, Value)> {
    let threshold = |threshold: u64| match red.limit {
        Limit::Packets(_) => Value::String(format!("{threshold}p")),
        Limit::Bytes(_) => text(Bytes(threshold)),
    };
    vec![("min", threshold(red.min)), ("max", threshold(red.max)), ("weight", of_probability(red.weight))]
}
