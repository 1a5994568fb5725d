//! The values of a pipe in a spec, in a link, in one of its directions,
//! in an event, and in what is asked of a running network.

use super::fields::{Field, Fields};
use super::{effects, loss, queue};
use crate::mistake::Remarks;
use fastpath_link::Change;
use fastpath_units::{Duration, Rate};
use toml::de::DeValue;

/// Bytes on an Ethernet wire beyond the frame: preamble 8, FCS 4, gap 12 (IEEE 802.3 §3.1.1, §4.4.2).
pub(crate) const ETHERNET_OVERHEAD: u32 = 24;
/// More than this on the wire around each frame is taken for a slip.
const OVERHEAD_MAX: u64 = 1500;
/// The keys [`read`] knows.
pub(super) const KEYS: [&str; 9] =
    ["rate", "overhead", "delay", "loss", "queue", "jitter", "reorder", "duplicate", "corrupt"];

/// The values written in a table.
pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Change {
    let mut change = Change {
        rate: fields.get("rate").and_then(|field| rate(&field, remarks)),
        overhead: fields.get("overhead").and_then(|field| overhead(&field, remarks)),
        delay: fields.get("delay").and_then(|field| field.quantity::<Duration>("25ms", remarks)),
        ..Change::default()
    };
    if let Some(field) = fields.get("loss") {
        [change.loss, change.egress_loss] = loss::read(&field, remarks);
    }
    change.queue = fields.get("queue").and_then(|field| queue::read(&field, remarks));
    change.jitter = fields.get("jitter").and_then(|field| effects::jitter(&field, remarks));
    change.reorder = fields.get("reorder").and_then(|field| effects::reorder(&field, remarks));
    change.duplicate = fields.get("duplicate").and_then(|field| effects::duplicate(&field, remarks));
    change.corrupt = fields.get("corrupt").and_then(|field| effects::corrupt(&field, remarks));
    change
}

/// `key = value` in TOML, for a value from a command line: text needs no quotes there, but tables, lists and numbers that
/// are no text are written as in a spec.
pub fn assignment(key: &str, value: &str) -> String {
    let value = value.trim();
    let number = key == "overhead" && value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty();
    if number || value.starts_with(['{', '[']) {
        return format!("{key} = {value}");
    }
    let escaped = value.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("{key} = \"{}\"", escaped.collect::<String>())
}

fn rate(field: &Field, remarks: &mut Remarks) -> Option<Option<Rate>> {
    match field.value {
        DeValue::String(text) if text == "unlimited" => Some(None),
        _ => field.quantity("10Mbit", remarks).map(Some),
    }
}

fn overhead(field: &Field, remarks: &mut Remarks) -> Option<u32> {
    match field.value {
        DeValue::String(text) if text == "ethernet" => Some(ETHERNET_OVERHEAD),
        DeValue::String(text) => {
            let instead = "write overhead = \"ethernet\", or a number of bytes";
            remarks.mistake(field.at, format!("overhead '{text}' is not known"), instead);
            None
        }
        _ => field.whole(0..=OVERHEAD_MAX, remarks).map(|bytes| bytes as u32),
    }
}
