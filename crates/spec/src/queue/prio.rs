//! Strict priority: bands in the order of service.
//!
//! ```toml
//! queue = { kind = "prio", bands = [ { dscp = "EF", limit = "20p" }, { limit = "50p" } ] }
//! ```

use super::classes::{class_limit, read as read_classes, schema_of_list, write_dscps};
use super::keys::Schemas;
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::properties;
use crate::write::{of_kind, table, text};
use fastpath_link::{PrioSpec, QueueSpec};
use serde_json::Value;

pub(super) const KIND: &str = "prio";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let example = "bands = [{ dscp = \"EF\", limit = \"20p\" }, { limit = \"50p\" }]";
    let (bands, classes) = read_classes(fields, "bands", example, remarks, class_limit)?;
    Some(QueueSpec::Prio(PrioSpec { bands, classes }))
}

pub(super) fn write(spec: &PrioSpec) -> Value {
    let bands = spec.bands.iter().enumerate().map(|(band, limit)| {
        table(write_dscps(&spec.classes, band).into_iter().chain([("limit", text(limit))]))
    });
    of_kind(KIND, [("bands", bands.collect())])
}

pub(super) fn schema() -> Schemas {
    properties([("bands", "Bands in the order of service.", schema_of_list(Schemas::new()))])
}
