//! Cross traffic: packets that no host sends and that take part of the queue and the rate of a
//! link.
//!
//! ```toml
//! cross = "4Mbit"                                             # Poisson, frames of 1500 bytes
//! cross = { rate = "4Mbit", law = "constant", packet = 200 }
//! cross = "none"
//! ```

use crate::fields::Field;
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::{table, text};
use fastpath_link::{CrossLaw, CrossSpec};
use fastpath_units::Bytes;
use serde_json::{Value, json};
use std::num::NonZeroU32;

const LAWS: [&str; 2] = ["poisson", "constant"];
/// The frame of a packet, if none is given, bytes.
const PACKET: NonZeroU32 = NonZeroU32::new(1500).unwrap();
/// The largest frame of a packet, bytes.
const PACKET_MAX: u64 = 65_535;

/// Reads cross traffic. `Some(None)` ends it.
pub(crate) fn read(field: &Field, remarks: &mut Remarks) -> Option<Option<CrossSpec>> {
    match field.value {
        _ if field.is_none() => return Some(None),
        Tree::Text(_) => {
            let rate = field.quantity("4Mbit", remarks)?;
            return Some(Some(CrossSpec { rate, law: CrossLaw::Poisson, packet: PACKET }));
        }
        _ => {}
    }
    let mut fields = field.table("cross", "{ rate = \"4Mbit\", law = \"poisson\" }", remarks)?;
    let rate = match fields.get("rate") {
        Some(field) => field.quantity("4Mbit", remarks),
        None => {
            remarks.mistake(fields.at, "cross has no rate", "write rate = \"4Mbit\"");
            None
        }
    };
    let law = match fields.get("law") {
        None => Some(CrossLaw::Poisson),
        Some(field) => field
            .word("a law of cross traffic", &LAWS, remarks)
            .map(|law| [CrossLaw::Poisson, CrossLaw::Constant][law]),
    };
    let packet = fields.get("packet").map_or(Some(PACKET), |field| packet(&field, remarks));
    fields.finish(remarks);
    Some(Some(CrossSpec { rate: rate?, law: law?, packet: packet? }))
}

fn packet(field: &Field, remarks: &mut Remarks) -> Option<NonZeroU32> {
    let bytes = match field.value {
        Tree::Text(_) => field.quantity::<Bytes>("1500B", remarks)?.0,
        _ => field.whole(1..=PACKET_MAX, remarks)?,
    };
    let packet = u32::try_from(bytes.min(PACKET_MAX + 1)).ok().and_then(NonZeroU32::new);
    let packet = packet.filter(|packet| u64::from(packet.get()) <= PACKET_MAX);
    if packet.is_none() {
        let what = format!("packet is not within 1 … {PACKET_MAX} bytes");
        remarks.mistake(field.at, what, "write packet = 1500");
    }
    packet
}

pub(crate) fn write(cross: &CrossSpec) -> Value {
    let CrossSpec { rate, law, packet } = *cross;
    if (law, packet) == (CrossLaw::Poisson, PACKET) {
        return text(rate);
    }
    let packet = (packet != PACKET).then(|| ("packet", json!(packet)));
    let law = LAWS[usize::from(law == CrossLaw::Constant)];
    table([("rate", text(rate)), ("law", json!(law))].into_iter().chain(packet))
}

/// The schema of `cross`.
pub(crate) fn schema() -> Value {
    let rate = || schema_parts::reference("rate");
    let bytes = json!({ "type": "integer", "minimum": 1, "maximum": PACKET_MAX });
    let all = schema_parts::properties([
        ("rate", "The mean rate, counted as the rate of the link is: with the overhead.", rate()),
        ("law", "When packets arrive; absent: poisson.", json!({ "enum": LAWS })),
        (
            "packet",
            "The frame of a packet, bytes; absent: 1500.",
            json!({ "anyOf": [bytes, schema_parts::reference("bytes")] }),
        ),
    ]);
    json!({ "anyOf": [{ "const": "none" }, rate(), schema_parts::table(all, &["rate"])] })
}
