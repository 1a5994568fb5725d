//! Adaptive RED: with thresholds, or with a target delay by which thresholds follow the rate.
//!
//! ```toml
//! queue = { kind = "ared", target = "5ms", interval = "500ms", limit = "1000p" }
//! queue = { kind = "ared", min = "5p", max = "15p", interval = "500ms" }      # and the keys of red
//! ```

use super::keys::{self, Key, Parameter, Schemas};
use super::quantity::positive;
use super::red::{self, read_red, write_red, write_thresholds};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, text};
use fastpath_link::{AredSpec, Limit, QueueSpec};
use fastpath_units::Duration;
use serde_json::Value;

pub(super) const KIND: &str = "ared";
/// The target of ns-2, where none is given.
const TARGET: Duration = Duration::from_ms(5);
/// The limit of Linux, where thresholds follow the rate and none is given.
const LIMIT: Limit = Limit::Packets(1000);

const KEYS: &[Key<AredSpec>] = &[Key::new(
    "interval",
    "The time between adaptations of the marking probability.",
    Parameter::Time(|ared| &mut ared.interval),
)];

/// Without thresholds they follow the rate.
pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let interval = keys::read(KEYS, AredSpec::default(), fields, remarks).map(|ared| ared.interval);
    let target = fields.get("target");
    let by_rate = fields.peek("min").is_none() && fields.peek("max").is_none();
    let target = match (target, by_rate) {
        (None, true) => Some(TARGET),
        (Some(field), true) => Some(positive(&field, "5ms", remarks)?),
        (None, false) => None,
        (Some(field), false) => {
            let what = "queue has thresholds, and a target from which thresholds are computed";
            remarks.mistake(field.at, what, "keep target, or min and max");
            return None;
        }
    };
    if by_rate && fields.peek("weight").is_some() {
        remarks.mistake(
            fields.at,
            "the weight is computed from the rate",
            "remove weight, or write min and max too",
        );
    }
    let limited = fields.peek("limit").is_some();
    let mut red = read_red(fields, remarks)?;
    if by_rate && !limited {
        red.limit = LIMIT;
    }
    Some(QueueSpec::Ared(AredSpec { red, interval: interval?, target }))
}

pub(super) fn write(spec: &AredSpec) -> Value {
    let by = match spec.target {
        Some(target) => vec![("target", text(target))],
        None => write_thresholds(&spec.red),
    };
    of_kind(KIND, write_red(&spec.red).into_iter().chain(keys::write(KEYS, spec)).chain(by))
}

pub(super) fn schema() -> Schemas {
    let target = properties([("target", "The target for the average delay.", reference("duration"))]);
    red::schema().into_iter().chain(keys::schema(KEYS)).chain(target).collect()
}
