//! CoDel (RFC 8289).
//!
//! ```toml
//! queue = { kind = "codel", target = "5ms", interval = "100ms", limit = "1000p", mtu = "1514B", ecn = false }
//! ```

use super::keys::{self, Key, Parameter, Schemas};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::write::of_kind;
use fastpath_link::{CodelSpec, QueueSpec};
use serde_json::Value;

pub(super) const KIND: &str = "codel";

pub(super) const KEYS: &[Key<CodelSpec>] = &[
    Key::new("target", "The acceptable standing delay.", Parameter::Time(|codel| &mut codel.target)),
    Key::new(
        "interval",
        "How long the target may be exceeded before a packet is dropped: a worst-case round-trip time.",
        Parameter::Time(|codel| &mut codel.interval),
    ),
    Key::new(
        "mtu",
        "Nothing is dropped while at most this many bytes are queued behind the packet.",
        Parameter::Size(|codel| &mut codel.mtu),
    ),
    Key::new("limit", "The hard limit.", Parameter::Limit(|codel| &mut codel.limit, "1000p")),
    Key::new("ecn", "Mark ECN-capable packets instead.", Parameter::Ecn(|codel| &mut codel.ecn)),
];

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    keys::read(KEYS, CodelSpec::default(), fields, remarks).map(QueueSpec::Codel)
}

pub(super) fn write(spec: &CodelSpec) -> Value {
    of_kind(KIND, keys::write(KEYS, spec))
}

pub(super) fn schema() -> Schemas {
    keys::schema(KEYS)
}
