//! PIE (RFC 8033).
//!
//! ```toml
//! queue = { kind = "pie", target = "15ms", update = "15ms", burst = "150ms", alpha = 0.125, beta = 1.25,
//!           mean_packet = "1514B", mark_below = "10%", ecn = false, derandomize = false,
//!           cap_adjustment = false, limit = "1000p" }
//! ```

use super::keys::{self, Key, Parameter, Schemas};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::write::of_kind;
use fastpath_link::{PieSpec, QueueSpec};
use serde_json::Value;

pub(super) const KIND: &str = "pie";

const KEYS: &[Key<PieSpec>] = &[
    Key::new("target", "The target delay.", Parameter::Time(|pie| &mut pie.target)),
    Key::new("update", "The time between adjustments.", Parameter::Time(|pie| &mut pie.update)),
    Key::new("burst", "How long a burst passes without drops.", Parameter::TimeOrZero(|pie| &mut pie.burst)),
    Key::new(
        "alpha",
        "Weight of the difference from the target, 1/s.",
        Parameter::Factor(|pie| &mut pie.alpha),
    ),
    Key::new("beta", "Weight of the delay's change, 1/s.", Parameter::Factor(|pie| &mut pie.beta)),
    Key::new(
        "mean_packet",
        "Nothing is dropped while at most twice this many bytes are queued.",
        Parameter::Size(|pie| &mut pie.mean_packet),
    ),
    Key::new(
        "mark_below",
        "The drop probability below which ECN-capable packets are marked.",
        Parameter::Share(|pie| &mut pie.mark_below),
    ),
    Key::new("ecn", "Mark ECN-capable packets instead.", Parameter::Ecn(|pie| &mut pie.ecn)),
    Key::new(
        "derandomize",
        "Space drops evenly (RFC 8033 §5.4).",
        Parameter::Flag(|pie| &mut pie.derandomize),
    ),
    Key::new(
        "cap_adjustment",
        "Limit one increase of the probability to 2 % (RFC 8033 §5.5).",
        Parameter::Flag(|pie| &mut pie.cap_adjustment),
    ),
    Key::new("limit", "The hard limit.", Parameter::Limit(|pie| &mut pie.limit, "1000p")),
];

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    keys::read(KEYS, PieSpec::default(), fields, remarks).map(QueueSpec::Pie)
}

pub(super) fn write(spec: &PieSpec) -> Value {
    of_kind(KIND, keys::write(KEYS, spec))
}

pub(super) fn schema() -> Schemas {
    keys::schema(KEYS)
}
