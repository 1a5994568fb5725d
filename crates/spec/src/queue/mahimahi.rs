//! A queue of Mahimahi's `mm-link`: packets that wait, and bytes with its header of four bytes.
//!
//! ```toml
//! queue = { kind = "mahimahi", packets = 14 }                    # --uplink-queue=droptail, packets=14
//! queue = { kind = "mahimahi", bytes = "60000B", drop = "head" }
//! ```

use super::keys::Schemas;
use super::quantity::limit;
use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::tree::Tree;
use crate::write::{of_kind, text};
use fastpath_link::{DropEnd, Limit, MahimahiSpec, QueueSpec};
use fastpath_units::Bytes;
use serde_json::{Value, json};

pub(super) const KIND: &str = "mahimahi";
const DROPS: [&str; 2] = ["tail", "head"];

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let [packets, bytes, drop] = ["packets", "bytes", "drop"].map(|key| fields.get(key));
    if packets.is_none() && bytes.is_none() {
        remarks.mistake(fields.at, "the queue has no limit", "write packets = 14, or queue = \"unlimited\"");
        return None;
    }
    let packets = packets.map(|field| field.whole(1..=u64::from(u32::MAX), remarks));
    let bytes = bytes.map(|field| size(&field, remarks));
    let drop = drop.map_or(Some(0), |field| field.word("an end of a queue", &DROPS, remarks))?;
    Some(QueueSpec::Mahimahi(MahimahiSpec {
        packets: packets.map_or(Some(None), |packets| packets.map(|packets| Some(packets as u32)))?,
        bytes: bytes.map_or(Some(None), |bytes| bytes.map(Some))?,
        drop: [DropEnd::Tail, DropEnd::Head][drop],
    }))
}

/// A number of bytes as mm-link takes it, or with a unit.
fn size(field: &Field, remarks: &mut Remarks) -> Option<Bytes> {
    if let Tree::Integer(_) = field.value {
        return field.whole(1..=i64::MAX as u64, remarks).map(Bytes);
    }
    match limit(field, "60000B", remarks)? {
        Limit::Bytes(bytes) => Some(bytes),
        Limit::Packets(_) => {
            remarks.mistake(field.at, "bytes is a number of packets", "write packets = 14");
            None
        }
    }
}

pub(super) fn write(MahimahiSpec { packets, bytes, drop }: &MahimahiSpec) -> Value {
    let packets = packets.map(|packets| ("packets", json!(packets)));
    let bytes = bytes.map(|bytes| ("bytes", text(bytes)));
    let head = (*drop == DropEnd::Head).then(|| ("drop", json!("head")));
    of_kind(KIND, packets.into_iter().chain(bytes).chain(head))
}

pub(super) fn schema() -> Schemas {
    let count = || json!({ "type": "integer", "minimum": 1 });
    properties([
        ("packets", "The most packets that wait, without the one in transmission.", count()),
        (
            "bytes",
            "The most bytes that wait: of each packet the IP bytes and 4 more.",
            json!({ "anyOf": [count(), reference("bytes")] }),
        ),
        ("drop", "Which packets a full queue drops; tail if left out.", json!({ "enum": DROPS })),
    ])
}
