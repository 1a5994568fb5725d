//! DualPI2 (RFC 9332). `shift` makes the scheduler a time-shifted FIFO, `classic_share` a weighted
//! round robin.
//!
//! ```toml
//! queue = { kind = "dualpi2", target = "15ms", update = "15ms", alpha = 0.15, beta = 3.0, coupling = 2.0,
//!           ramp_start = "800us", ramp_range = "400us", ramp_packets = 1, shift = "50ms", limit = "10000p" }
//! queue = { kind = "dualpi2", classic_share = 10 }
//! ```

use super::keys::{self, Key, Parameter, Schemas};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::write::{of_kind, text};
use fastpath_link::{DualPi2Spec, DualScheduler, QueueSpec};
use serde_json::{Value, json};

pub(super) const KIND: &str = "dualpi2";

const KEYS: &[Key<DualPi2Spec>] = &[
    Key::new("target", "The target delay of the classic queue.", Parameter::Time(|dual| &mut dual.target)),
    Key::new("update", "The time between adjustments.", Parameter::Time(|dual| &mut dual.update)),
    Key::new(
        "alpha",
        "Weight of the difference from the target, 1/s.",
        Parameter::Factor(|dual| &mut dual.alpha),
    ),
    Key::new("beta", "Weight of the delay's change, 1/s.", Parameter::Factor(|dual| &mut dual.beta)),
    Key::new(
        "coupling",
        "The coupling factor of both queues.",
        Parameter::PositiveFactor(|dual| &mut dual.coupling),
    ),
    Key::new(
        "ramp_start",
        "The delay from which L4S packets are marked.",
        Parameter::Time(|dual| &mut dual.ramp_start),
    ),
    Key::new(
        "ramp_range",
        "The additional delay at which every L4S packet is marked.",
        Parameter::TimeOrZero(|dual| &mut dual.ramp_range),
    ),
    Key::new(
        "ramp_packets",
        "The ramp marks nothing while at most this many packets are left.",
        Parameter::Packets(|dual| &mut dual.ramp_packets),
    ),
];

const LIMIT: &[Key<DualPi2Spec>] =
    &[Key::new("limit", "The hard limit.", Parameter::Limit(|dual| &mut dual.limit, "10000p"))];

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let mut dual = keys::read(KEYS, DualPi2Spec::default(), fields, remarks)?;
    match [fields.get("shift"), fields.get("classic_share")] {
        [None, None] => {}
        [Some(field), None] => dual.scheduler = DualScheduler::TimeShifted(field.quantity("50ms", remarks)?),
        [None, Some(field)] => dual.scheduler = DualScheduler::Weighted(field.whole(0..=99, remarks)? as u8),
        [Some(_), Some(field)] => {
            let what = "queue has a shift and a classic_share";
            remarks.mistake(field.at, what, "write one: a shifted FIFO, or a weighted round robin");
        }
    }
    keys::read(LIMIT, dual, fields, remarks).map(QueueSpec::DualPi2)
}

pub(super) fn write(spec: &DualPi2Spec) -> Value {
    let scheduler = match spec.scheduler {
        DualScheduler::TimeShifted(shift) => ("shift", text(shift)),
        DualScheduler::Weighted(share) => ("classic_share", json!(share)),
    };
    of_kind(KIND, keys::write(KEYS, spec).into_iter().chain([scheduler]).chain(keys::write(LIMIT, spec)))
}

pub(super) fn schema() -> Schemas {
    let share = json!({ "type": "integer", "minimum": 0, "maximum": 99 });
    let scheduler = properties([
        ("shift", "Time added to the waiting time of L4S packets.", reference("duration")),
        ("classic_share", "Percentage of the bytes for the classic queue.", share),
    ]);
    keys::schema(KEYS).into_iter().chain(scheduler).chain(keys::schema(LIMIT)).collect()
}
