//! A token bucket, with an optional peak rate.
//!
//! ```toml
//! # the limit may be the longest wait for tokens, as `latency` of tc-tbf(8)
//! queue = { kind = "token-bucket", rate = "1Mbit", burst = "15KiB", limit = "50ms" }
//! queue = { kind = "token-bucket", rate = "1Mbit", burst = "15KiB", peak = "4Mbit", peak_burst = "1514B",
//!           limit = "50p" }
//! ```

use super::keys::Schemas;
use super::quantity::{positive, required_limit};
use crate::fields::Fields;
use crate::mistake::Remarks;
use crate::schema_parts::{properties, reference};
use crate::tree::Tree;
use crate::write::{of_kind, text};
use fastpath_link::{Limit, Peak, QueueSpec, TokenBucketSpec};
use fastpath_units::{Bytes, Duration, Rate};
use serde_json::{Value, json};

pub(super) const KIND: &str = "token-bucket";

pub(super) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    let [peak, peak_burst] = ["peak", "peak_burst"].map(|key| fields.get(key));
    let (rate, burst) = rate_and_burst("a token bucket", fields, remarks)?;
    let limit = limit_or_wait(fields, remarks);
    if peak.is_none()
        && let Some(field) = &peak_burst
    {
        remarks.mistake(field.at, "peak_burst without a peak", "write peak = \"4Mbit\" too");
    }
    let bucket = peak_burst.map_or(Some(Bytes(1514)), |field| field.quantity("1514B", remarks));
    let bucket = bucket?;
    let peak = match peak {
        None => None,
        Some(field) => {
            let peak: Rate = field.quantity("4Mbit", remarks)?;
            if peak <= rate {
                let what = format!("peak {peak} is not above rate {rate}: it bounds bursts above the rate");
                remarks.mistake(field.at, what, "write a higher peak, or none");
            }
            Some(Peak { rate: peak, burst: bucket })
        }
    };
    if bucket == Bytes::ZERO {
        remarks.mistake(fields.at, "a bucket of 0 bytes passes nothing", "write peak_burst = \"1514B\"");
    }
    let limit = match limit? {
        QueueLimit::Held(limit) => limit,
        QueueLimit::Wait(wait) => {
            // What tc-tbf(8) computes from `latency`.
            let within = |rate: Rate, burst: Bytes| Bytes(rate.bytes_in(wait).0.saturating_add(burst.0));
            let at_peak = peak.map(|peak| within(peak.rate, peak.burst));
            let bytes = within(rate, burst);
            Limit::Bytes(at_peak.map_or(bytes, |at_peak| bytes.min(at_peak)))
        }
    };
    Some(QueueSpec::TokenBucket(TokenBucketSpec { rate, burst, peak, limit }))
}

/// Reads the keys `rate` and `burst`, which are required.
pub(super) fn rate_and_burst(
    what: &str,
    fields: &mut Fields,
    remarks: &mut Remarks,
) -> Option<(Rate, Bytes)> {
    let [rate, burst] = ["rate", "burst"].map(|key| fields.get(key));
    let (Some(rate), Some(burst)) = (rate, burst) else {
        let instead = "write rate = \"1Mbit\", burst = \"15KiB\"";
        remarks.mistake(fields.at, format!("{what} needs a rate and a burst"), instead);
        return None;
    };
    let bucket = (rate.quantity("1Mbit", remarks), burst.quantity("15KiB", remarks));
    if bucket.1 == Some(Bytes::ZERO) {
        remarks.mistake(burst.at, "a bucket of 0 bytes passes nothing", "write burst = \"15KiB\"");
    }
    Some((bucket.0?, bucket.1?))
}

/// A limit of what waits, or the longest wait.
enum QueueLimit {
    Held(Limit),
    Wait(Duration),
}

fn limit_or_wait(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueLimit> {
    match fields.peek("limit") {
        Some(Tree::Text(text)) if text.ends_with('s') => {
            positive(&fields.get("limit")?, "50ms", remarks).map(QueueLimit::Wait)
        }
        _ => required_limit(fields, remarks).map(QueueLimit::Held),
    }
}

pub(super) fn write(TokenBucketSpec { rate, burst, peak, limit }: &TokenBucketSpec) -> Value {
    let bucket = [("rate", text(rate)), ("burst", text(burst)), ("limit", text(limit))];
    let peak = peak.map(|peak| [("peak", text(peak.rate)), ("peak_burst", text(peak.burst))]);
    of_kind(KIND, bucket.into_iter().chain(peak.into_iter().flatten()))
}

pub(super) fn schema() -> Schemas {
    let limit = json!({ "anyOf": [reference("limit"), reference("duration")] });
    properties([
        ("rate", "The rate at which tokens arrive.", reference("rate")),
        ("burst", "The depth of the bucket.", reference("bytes")),
        ("peak", "The peak rate within a burst.", reference("rate")),
        ("peak_burst", "The depth of the bucket of the peak rate.", reference("bytes")),
        ("limit", "The hard limit of what waits for tokens, or the longest wait.", limit),
    ])
}
