//! Quantities that several disciplines read.

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use fastpath_link::Limit;
use fastpath_units::{Bytes, Duration};

/// Reads a time above 0.
pub(crate) fn positive(field: &Field, example: &str, remarks: &mut Remarks) -> Option<Duration> {
    let time: Duration = field.quantity(example, remarks)?;
    if time.is_zero() {
        let (key, instead) = (&field.key, format!("write {} = \"{example}\"", field.key));
        remarks.mistake(field.at, format!("{key} is 0"), instead);
        return None;
    }
    Some(time)
}

/// Reads a number of bytes above 0.
pub(super) fn size(fields: &mut Fields, key: &str, default: Bytes, remarks: &mut Remarks) -> Option<Bytes> {
    let Some(field) = fields.get(key) else { return Some(default) };
    let size: Bytes = field.quantity(&default.to_string(), remarks)?;
    if size == Bytes::ZERO {
        remarks.mistake(field.at, format!("{key} is 0"), format!("write {key} = \"{default}\""));
        return None;
    }
    Some(size)
}

/// Reads the key `limit`, which is required.
pub(super) fn required_limit(fields: &mut Fields, remarks: &mut Remarks) -> Option<Limit> {
    let Some(field) = fields.get("limit") else {
        remarks.mistake(fields.at, "queue has no limit", "write limit = \"50p\"");
        return None;
    };
    limit(&field, "50p", remarks)
}

/// Reads `"50p"` or `"64KiB"`, at least one.
pub(super) fn limit(field: &Field, example: &str, remarks: &mut Remarks) -> Option<Limit> {
    let instead = format!("write {} = \"{example}\"", field.key);
    let text = field.text(example, remarks)?.trim();
    let limit = match text.strip_suffix('p').map(str::trim_end) {
        Some(number) => match number.parse() {
            Ok(packets) => Limit::Packets(packets),
            Err(_) => {
                remarks.mistake(field.at, format!("'{text}' is not a number of packets"), instead);
                return None;
            }
        },
        None => Limit::Bytes(field.quantity(example, remarks)?),
    };
    if matches!(limit, Limit::Packets(0) | Limit::Bytes(Bytes(0))) {
        remarks.mistake(field.at, format!("{} = \"{text}\" drops every packet", field.key), instead);
        return None;
    }
    Some(limit)
}
