//! A token bucket, with an optional peak rate.
//!
//! ```toml
//! queue = { kind = "token-bucket", rate = "1Mbit", burst = "15KiB", peak = "4Mbit", peak_burst = "1514B",
//!           limit = "50p" }
//! ```

use super::keys::{Schemas, reference, schemas};
use super::quantity::required_limit;
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::write::{of_kind, text};
use fastpath_link::{Peak, QueueSpec, TokenBucketSpec};
use fastpath_units::{Bytes, Rate};
use serde_json::Value;

pub(super) const KIND: &str = "token-bucket";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let [rate, burst, peak, peak_burst] = ["rate", "burst", "peak", "peak_burst"].map(|key| fields.get(key));
    let (Some(rate), Some(burst)) = (rate, burst) else {
        let instead = "write rate = \"1Mbit\", burst = \"15KiB\"";
        remarks.mistake(fields.at, "a token bucket needs a rate and a burst", instead);
        return None;
    };
    let spec_rate: Option<Rate> = rate.quantity("1Mbit", remarks);
    let spec_burst: Option<Bytes> = burst.quantity("15KiB", remarks);
    let limit = required_limit(fields, remarks);
    if peak.is_none()
        && let Some(field) = &peak_burst
    {
        remarks.mistake(field.at, "peak_burst without a peak", "write peak = \"4Mbit\" too");
    }
    let bucket = peak_burst.map_or(Some(Bytes(1514)), |field| field.quantity("1514B", remarks));
    let (rate, burst, bucket) = (spec_rate?, spec_burst?, bucket?);
    let peak = match peak {
        None => None,
        Some(field) => {
            let peak: Rate = field.quantity("4Mbit", remarks)?;
            if peak <= rate {
                remarks.mistake(field.at, "peak is not above rate", "write a higher peak, or none");
            }
            Some(Peak { rate: peak, burst: bucket })
        }
    };
    if burst == Bytes::ZERO || bucket == Bytes::ZERO {
        remarks.mistake(fields.at, "a bucket of 0 bytes passes nothing", "write burst = \"15KiB\"");
    }
    Some(QueueSpec::TokenBucket(TokenBucketSpec { rate, burst, peak, limit: limit? }))
}

pub(super) fn write(TokenBucketSpec { rate, burst, peak, limit }: &TokenBucketSpec) -> Value {
    let bucket = [("rate", text(rate)), ("burst", text(burst)), ("limit", text(limit))];
    let peak = peak.map(|peak| [("peak", text(peak.rate)), ("peak_burst", text(peak.burst))]);
    of_kind(KIND, bucket.into_iter().chain(peak.into_iter().flatten()))
}

pub(super) fn schema() -> Schemas {
    schemas([
        ("rate", "The rate at which tokens arrive.", reference("rate")),
        ("burst", "The depth of the bucket.", reference("bytes")),
        ("peak", "The peak rate within a burst.", reference("rate")),
        ("peak_burst", "The depth of the bucket of the peak rate.", reference("bytes")),
        ("limit", "The hard limit of what waits for tokens.", reference("limit")),
    ])
}
