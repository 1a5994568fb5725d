//! The values of a pipe in a spec: rate, delay, loss, queue and overhead, in a link, in one of its directions,
//! and in an event.

use super::fields::{Field, Fields};
use crate::mistake::{Remarks, nearest};
use fastpath_link::{Change, Limit, LossSpec, PipeSpec, QueueSpec, RedSpec};
use fastpath_units::{Bytes, Duration, Rate};
use toml::de::DeValue;

/// Bytes on an Ethernet wire beyond the frame: preamble 8, FCS 4, gap 12 (IEEE 802.3 §3.1.1, §4.4.2).
pub(crate) const ETHERNET_OVERHEAD: u32 = 24;
/// More than this on the wire around each frame is taken for a slip.
const OVERHEAD_MAX: u64 = 1500;
/// The keys [`read`] knows.
pub(super) const KEYS: [&str; 5] = ["rate", "overhead", "delay", "loss", "queue"];

/// The values written in a table.
pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Change {
    Change {
        rate: fields.get("rate").and_then(|field| rate(&field, remarks)),
        overhead: fields.get("overhead").and_then(|field| overhead(&field, remarks)),
        delay: fields.get("delay").and_then(|field| field.quantity::<Duration>("25ms", remarks)),
        loss: fields.get("loss").and_then(|field| field.probability(remarks)).map(LossSpec::from),
        queue: fields.get("queue").and_then(|field| queue(&field, remarks)),
        ..Change::default()
    }
}

/// Puts the values of a table into a pipe.
pub(crate) fn apply(pipe: &mut PipeSpec, values: &Change) {
    pipe.rate = values.rate.unwrap_or(pipe.rate);
    pipe.overhead = values.overhead.unwrap_or(pipe.overhead);
    pipe.delay = values.delay.unwrap_or(pipe.delay);
    pipe.loss = values.loss.clone().unwrap_or_else(|| pipe.loss.clone());
    pipe.queue = values.queue.clone().unwrap_or_else(|| pipe.queue.clone());
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

fn queue(field: &Field, remarks: &mut Remarks) -> Option<QueueSpec> {
    if !matches!(field.value, DeValue::Table(_)) {
        return limit(field, "50p", remarks).map(QueueSpec::DropTail);
    }
    let mut fields = field.table("queue", "\"50p\"", remarks)?;
    let kind = fields.get("kind");
    let text = match &kind {
        Some(kind) => kind.text("red", remarks)?,
        None => {
            remarks.mistake(field.at, "queue has no kind", "write kind = \"drop-tail\" or kind = \"red\"");
            return None;
        }
    };
    let queue = match text {
        "drop-tail" => match fields.get("limit") {
            Some(field) => limit(&field, "50p", remarks).map(QueueSpec::DropTail),
            None => {
                remarks.mistake(field.at, "queue has no limit", "write limit = \"50p\"");
                None
            }
        },
        "red" => red(&mut fields, remarks).map(QueueSpec::Red),
        other => {
            let meant = nearest(other, ["drop-tail", "red"]).unwrap_or("drop-tail\" or \"red");
            let at = kind.map_or(field.at, |kind| kind.at);
            remarks.mistake(at, format!("queue kind '{other}' is not known"), format!("write \"{meant}\""));
            return None;
        }
    };
    fields.finish(remarks);
    queue
}

/// RED as in [`RedSpec`]; thresholds that are not given stand to the limit as ns-2's do: a tenth, three tenths.
fn red(fields: &mut Fields, remarks: &mut Remarks) -> Option<RedSpec> {
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

/// `"50p"` or `"64KiB"`, at least one.
fn limit(field: &Field, example: &str, remarks: &mut Remarks) -> Option<Limit> {
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
        remarks.mistake(field.at, format!("with {} = \"{text}\" nothing passes", field.key), instead);
        return None;
    }
    Some(limit)
}
