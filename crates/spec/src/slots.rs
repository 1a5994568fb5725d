//! The slots of a pipe: packets that are ready leave together, as on links that aggregate frames.
//!
//! ```toml
//! # a slot 2 ms after the first waiting packet
//! slots = "2ms"
//! # limits of one slot
//! slots = { min = "800us", max = "1ms", packets = 32, bytes = "64KiB" }
//! slots = { mean = "2ms", law = { law = "normal", sd = "200us" } }    # laws as in jitter
//! slots = "none"
//! ```

use crate::effects;
use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::{table, text};
use fastpath_link::{SlotSpec, SlotWait};
use fastpath_units::{Bytes, Duration};
use serde_json::{Value, json};

/// Reads slots. `Some(None)` clears them.
pub(crate) fn read(field: &Field, files: &Files, remarks: &mut Remarks) -> Option<Option<Box<SlotSpec>>> {
    let mut spec =
        SlotSpec { wait: SlotWait::Between(Duration::ZERO, Duration::ZERO), packets: None, bytes: None };
    match field.value {
        _ if field.is_none() => return Some(None),
        Tree::Text(_) => {
            let wait = crate::queue::positive(field, "2ms", remarks)?;
            spec.wait = SlotWait::Between(wait, wait);
            return Some(Some(Box::new(spec)));
        }
        _ => {}
    }
    let mut fields = field.table("slots", "\"2ms\"", remarks)?;
    let wait = wait(&mut fields, files, remarks);
    let packets = match fields.get("packets") {
        None => Some(None),
        Some(field) => field.whole(1..=u64::from(u32::MAX), remarks).map(|packets| Some(packets as u32)),
    };
    let bytes = match fields.get("bytes") {
        None => Some(None),
        Some(field) => field.quantity("64KiB", remarks).map(Some),
    };
    if let Some(Some(Bytes(0))) = bytes {
        remarks.mistake(fields.at, "bytes is 0: no packet ever leaves", "write bytes = \"64KiB\"");
    }
    fields.finish(remarks);
    spec.wait = wait?;
    (spec.packets, spec.bytes) = (packets?, bytes?);
    Some(Some(Box::new(spec)))
}

fn wait(fields: &mut Fields, files: &Files, remarks: &mut Remarks) -> Option<SlotWait> {
    let [min, max, mean, law] = ["min", "max", "mean", "law"].map(|key| fields.get(key));
    if let (Some(one), Some(_)) = (min.as_ref().or(max.as_ref()), mean.as_ref().or(law.as_ref())) {
        let what = "slots are given by their bounds and by a law";
        remarks.mistake(one.at, what, "write min and max, or mean and law");
        return None;
    }
    let time = |field: &Option<Field>, remarks: &mut Remarks| match field {
        None => Some(None),
        Some(field) => field.quantity::<Duration>("1ms", remarks).map(Some),
    };
    if let Some(law) = law {
        let mean = time(&mean, remarks)?.unwrap_or(Duration::ZERO);
        let (law, memory) = effects::law(&law, files, remarks)?;
        if memory {
            remarks.mistake(
                fields.at,
                "slots are drawn independently",
                "remove half_life, correlation and reorder",
            );
            return None;
        }
        return Some(SlotWait::Law(mean, law));
    }
    let (least, most) = (time(&min, remarks)?, time(&max, remarks)?);
    match (least, most, time(&mean, remarks)?) {
        (Some(least), most, None) if most.is_none_or(|most| most >= least) => {
            Some(SlotWait::Between(least, most.unwrap_or(least)))
        }
        (Some(_), _, None) => {
            remarks.mistake(max.map_or(fields.at, |max| max.at), "max is below min", "write a longer max");
            None
        }
        (None, Some(most), None) => Some(SlotWait::Between(Duration::ZERO, most)),
        (_, _, Some(mean)) => Some(SlotWait::Between(mean, mean)),
        (None, None, None) => {
            remarks.mistake(fields.at, "slots have no time", "write min = \"800us\", max = \"1ms\"");
            None
        }
    }
}

pub(crate) fn write(SlotSpec { wait, packets, bytes }: &SlotSpec) -> Value {
    let wait = match wait {
        SlotWait::Between(least, most) if least == most && packets.is_none() && bytes.is_none() => {
            return text(least);
        }
        SlotWait::Between(least, most) => vec![("min", text(least)), ("max", text(most))],
        SlotWait::Law(mean, law) => vec![("mean", text(mean)), ("law", table(effects::write_law(law)))],
    };
    let packets = packets.map(|packets| ("packets", json!(packets)));
    let bytes = bytes.map(|bytes| ("bytes", text(bytes)));
    table(wait.into_iter().chain(packets).chain(bytes))
}

/// The schema of `slots`.
pub(crate) fn schema() -> Value {
    let duration = || schema_parts::reference("duration");
    let all = schema_parts::properties([
        ("min", "The shortest time between slots.", duration()),
        ("max", "The longest time between slots.", duration()),
        ("mean", "The mean time between slots, with a law.", duration()),
        ("law", "How the time between slots varies.", schema_parts::reference("law")),
        ("packets", "The packets that a slot passes at most.", json!({ "type": "integer", "minimum": 1 })),
        ("bytes", "The bytes that a slot passes at most.", schema_parts::reference("bytes")),
    ]);
    json!({ "anyOf": [{ "const": "none" }, duration(), schema_parts::table(all, &[])] })
}
