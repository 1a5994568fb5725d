//! Deficit round robin: classes share the rate by their quanta.
//!
//! ```toml
//! queue = { kind = "drr", classes = [ { dscp = ["AF41", "AF42", 34], quantum = "3028B", limit = "50p" },
//!                                     { quantum = "1514B", limit = "50p" } ] }
//! ```

use super::classes::{class_limit, read as read_classes, schema_of_list, write_dscps};
use super::keys::Schemas;
use super::quantity::size;
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, table, text};
use fastpath_link::{DrrShare, DrrSpec, QueueSpec};
use fastpath_units::Bytes;
use serde_json::Value;

pub(super) const KIND: &str = "drr";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let example = "classes = [{ dscp = \"EF\", quantum = \"3028B\", limit = \"20p\" }, { limit = \"50p\" }]";
    let (shares, classes) = read_classes(fields, "classes", example, remarks, |fields, remarks| {
        let quantum = size(fields, "quantum", Bytes(1514), remarks);
        let limit = class_limit(fields, remarks);
        Some(DrrShare { quantum: quantum?, limit: limit? })
    })?;
    Some(QueueSpec::Drr(DrrSpec { shares, classes }))
}

pub(super) fn write(spec: &DrrSpec) -> Value {
    let classes = spec.shares.iter().enumerate().map(|(class, share)| {
        let parts = [("quantum", text(share.quantum)), ("limit", text(share.limit))];
        table(write_dscps(&spec.classes, class).into_iter().chain(parts))
    });
    of_kind(KIND, [("classes", classes.collect())])
}

pub(super) fn schema() -> Schemas {
    let quantum = properties([("quantum", "Bytes per round.", reference("bytes"))]);
    properties([("classes", "Classes, each with its share.", schema_of_list(quantum))])
}
