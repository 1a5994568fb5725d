//! Two keys beside the probability of a loss or corruption: a bound on hits in a row, and the
//! packets concerned.
//!
//! ```toml
//! # after 3 lost packets in a row the next one passes; other packets than UDP pass too
//! loss    = { probability = "10%", burst_max = 3, of = "udp" }
//! ```

use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts;
use fastpath_link::{Bounded, PacketFilter};
use fastpath_units::Probability;
use serde_json::{Value, json};
use std::num::NonZeroU32;

/// The words of [`PacketFilter`].
pub(crate) const FILTERS: [&str; 2] = ["all", "udp"];

/// The keys as given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BoundKeys {
    burst_max: Option<NonZeroU32>,
    /// The place of `of` among its words.
    pub(crate) of: usize,
}

impl BoundKeys {
    /// Reads both keys; `words` are those of `of`, of which the first is the default.
    pub(crate) fn read(
        fields: &mut Fields,
        words: &[&str],
        correlation: Probability,
        remarks: &mut Remarks,
    ) -> Option<BoundKeys> {
        let of = filter(fields, words, remarks)?;
        let burst_max = match fields.get("burst_max") {
            None => None,
            Some(field) => {
                let max = field.whole(1..=u64::from(u32::MAX), remarks)?;
                NonZeroU32::new(max as u32)
            }
        };
        let keys = BoundKeys { burst_max, of };
        if !correlation.is_never() && !keys.is_usual() {
            let key = if burst_max.is_some() { "burst_max" } else { "of" };
            let what = format!("{} has a correlation and {key}", fields.what);
            let instead = "keep one of them: both keys are those of independent packets";
            remarks.mistake(fields.at, what, instead);
            return None;
        }
        Some(keys)
    }

    /// Returns whether neither key changes anything.
    pub(crate) fn is_usual(self) -> bool {
        self.burst_max.is_none() && self.of == 0
    }

    /// Returns the law with a probability. Words beyond the filters are those of UDP.
    pub(crate) fn law(self, probability: Probability) -> Bounded {
        let of = if self.of == 0 { PacketFilter::All } else { PacketFilter::Udp };
        Bounded { probability, burst_max: self.burst_max, of }
    }
}

/// Reads `of`: the place of its word.
pub(crate) fn filter(fields: &mut Fields, words: &[&str], remarks: &mut Remarks) -> Option<usize> {
    fields.get("of").map_or(Some(0), |field| field.word("a value of of", words, remarks))
}

/// Writes the keys of a law; `of` is the word of its filter.
pub(crate) fn write(law: &Bounded, of: &str) -> Vec<(&'static str, Value)> {
    let burst_max = law.burst_max.map(|max| ("burst_max", json!(max)));
    burst_max.into_iter().chain(write_filter(of)).collect()
}

/// Writes `of`, unless it has its default.
pub(crate) fn write_filter(of: &str) -> Option<(&'static str, Value)> {
    (of != FILTERS[0]).then(|| ("of", json!(of)))
}

/// Returns the word of a filter.
pub(crate) fn word(filter: PacketFilter) -> &'static str {
    match filter {
        PacketFilter::All => FILTERS[0],
        PacketFilter::Udp => FILTERS[1],
    }
}

/// The schemas of the keys.
pub(crate) fn schemas(words: &[&str]) -> Vec<(&'static str, Value)> {
    let burst_max = json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
    let burst_max = schema_parts::described("The most packets hit in a row.", burst_max);
    vec![("burst_max", burst_max), filter_schema(words)]
}

/// The schema of `of`.
pub(crate) fn filter_schema(words: &[&str]) -> (&'static str, Value) {
    ("of", schema_parts::described("The packets concerned; the others pass.", json!({ "enum": words })))
}
