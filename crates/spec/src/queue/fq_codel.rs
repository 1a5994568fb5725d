//! FQ-CoDel (RFC 8290): the keys of CoDel and two more.
//!
//! ```toml
//! queue = { kind = "fq-codel", flows = 1024, quantum = "1514B", target = "5ms", limit = "10240p", ecn = true }
//! ```

use super::codel;
use super::keys::{self, Key, Parameter, Schemas};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::write::of_kind;
use fastpath_link::{FqCodelSpec, QueueSpec};
use serde_json::Value;

pub(super) const KIND: &str = "fq-codel";

const KEYS: &[Key<FqCodelSpec>] = &[
    Key::new("flows", "Number of queues to which flows are hashed.", Parameter::Queues(|fq| &mut fq.flows)),
    Key::new("quantum", "Bytes that a queue may send in one round.", Parameter::Size(|fq| &mut fq.quantum)),
];

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let mut fq = FqCodelSpec::default();
    fq.codel = keys::read(codel::KEYS, fq.codel, fields, remarks)?;
    keys::read(KEYS, fq, fields, remarks).map(QueueSpec::FqCodel)
}

pub(super) fn write(spec: &FqCodelSpec) -> Value {
    of_kind(KIND, keys::write(codel::KEYS, &spec.codel).into_iter().chain(keys::write(KEYS, spec)))
}

pub(super) fn schema() -> Schemas {
    keys::schema(codel::KEYS).into_iter().chain(keys::schema(KEYS)).collect()
}
