//! The queue of a pipe in a spec: `"50p"`, `"64KiB"`, `"20ms"`, `"unlimited"`, or a table with a
//! `kind`.
//!
//! ```toml
//! queue = { kind = "drop-tail", limit = "50p" }        # also drop-head
//! queue = { kind = "drop-tail", limit = "20ms" }       # who would wait longer is not taken, at the rate of the moment
//! queue = { kind = "sojourn", longest = "20ms", limit = "1000p" }        # who has waited longer is dropped; or "20ms"
//! queue = { kind = "red", limit = "50p", min = "5p", max = "15p", probability = 0.1, weight = 0.002, gentle = true,
//!           ecn = false, mean_packet = "500B" }
//! queue = { kind = "codel", target = "5ms", interval = "100ms", limit = "1000p", mtu = "1514B", ecn = false }
//! queue = { kind = "fq-codel", flows = 1024, quantum = "1514B", … }                # and what codel has
//! queue = { kind = "pie", target = "15ms", update = "15ms", burst = "150ms", alpha = 0.125, beta = 1.25,
//!           mean_packet = "1500B", mark_below = "10%", ecn = false, derandomize = false, cap_adjustment = false,
//!           limit = "1000p" }
//! queue = { kind = "ared", target = "5ms", interval = "500ms", limit = "1000p" }  # thresholds that follow the rate
//! queue = { kind = "ared", min = "5p", max = "15p", interval = "500ms", … }       # and what red has
//! queue = { kind = "dualpi2", target = "15ms", update = "15ms", alpha = 0.15, beta = 3.0, coupling = 2.0,
//!           ramp_start = "800us", ramp_range = "400us", ramp_packets = 1, shift = "50ms", limit = "10000p" }
//! queue = { kind = "dualpi2", classic_share = 10 }                # weighted round robin in place of a shifted FIFO
//! queue = { kind = "token-bucket", rate = "1Mbit", burst = "15KiB", peak = "4Mbit", peak_burst = "1514B", limit = "50p" }
//! queue = { kind = "prio", … } and { kind = "drr", … }: see `classes.rs`
//! ```
//!
//! What is left out is as the discipline's RFC or, where that is silent, Linux has it.

mod classes;
pub(crate) mod write;

use crate::fields::{Field, Fields};
use crate::mistake::{Remarks, nearest};
use crate::tree::Tree;
use fastpath_link::{
    AredSpec, CodelSpec, DualPi2Spec, DualScheduler, Ecn, FqCodelSpec, Limit, Peak, PieSpec, QueueSpec,
    RedSpec, SojournSpec, TokenBucketSpec,
};
use fastpath_units::{Bytes, Duration, Rate};

const KINDS: [&str; 12] = [
    "drop-tail",
    "drop-head",
    "sojourn",
    "red",
    "ared",
    "codel",
    "fq-codel",
    "pie",
    "dualpi2",
    "token-bucket",
    "prio",
    "drr",
];

/// Reads a queue.
pub(crate) fn read(field: &Field, remarks: &mut Remarks) -> Option<QueueSpec> {
    match field.value {
        Tree::Text(text) if text == "unlimited" => return Some(QueueSpec::default()),
        Tree::Text(text) if text.ends_with('s') => {
            let longest = positive(field, "20ms", remarks)?;
            return Some(QueueSpec::Sojourn(SojournSpec { longest, limit: Limit::Packets(u32::MAX) }));
        }
        Tree::Table(_) => {}
        _ => return limit(field, "50p", remarks).map(QueueSpec::DropTail),
    }
    let mut fields = field.table("queue", "\"50p\"", remarks)?;
    let kind = fields.get("kind");
    let Some(kind) = kind else {
        remarks.mistake(field.at, "queue has no kind", format!("write kind = {}", one_of()));
        return None;
    };
    let queue = match kind.text("red", remarks)? {
        "drop-tail" => drop_tail(&mut fields, remarks),
        "drop-head" => required_limit(&mut fields, remarks).map(QueueSpec::DropHead),
        "sojourn" => sojourn(&mut fields, remarks).map(QueueSpec::Sojourn),
        "red" => red(&mut fields, remarks).map(QueueSpec::Red),
        "codel" => codel(&mut fields, CodelSpec::default(), remarks).map(QueueSpec::Codel),
        "fq-codel" => fq_codel(&mut fields, remarks).map(QueueSpec::FqCodel),
        "pie" => pie(&mut fields, remarks).map(QueueSpec::Pie),
        "ared" => ared(&mut fields, remarks).map(QueueSpec::Ared),
        "dualpi2" => dualpi2(&mut fields, remarks).map(QueueSpec::DualPi2),
        "token-bucket" => token_bucket(&mut fields, remarks).map(QueueSpec::TokenBucket),
        "prio" => classes::prio(&mut fields, remarks).map(QueueSpec::Prio),
        "drr" => classes::drr(&mut fields, remarks).map(QueueSpec::Drr),
        other => {
            let instead = nearest(other, KINDS).map_or_else(one_of, |meant| format!("\"{meant}\""));
            remarks.mistake(
                kind.at,
                format!("queue kind '{other}' is not known"),
                format!("write {instead}"),
            );
            return None;
        }
    };
    // After a mistake not every key was asked for, and those left over may be right.
    if queue.is_some() {
        fields.finish(remarks);
    }
    queue
}

/// The average delay aimed at and the hard limit of adaptive RED where thresholds follow the rate:
/// ns-2's, and Linux'.
const ARED_TARGET: Duration = Duration::from_ms(5);
const ARED_LIMIT: Limit = Limit::Packets(1000);

fn one_of() -> String {
    let quoted: Vec<String> = KINDS.iter().map(|kind| format!("\"{kind}\"")).collect();
    format!("one of {}", quoted.join(", "))
}

fn required_limit(fields: &mut Fields, remarks: &mut Remarks) -> Option<Limit> {
    let Some(field) = fields.get("limit") else {
        remarks.mistake(fields.at, "queue has no limit", "write limit = \"50p\"");
        return None;
    };
    limit(&field, "50p", remarks)
}

/// A limit in packets, bytes or time.
fn drop_tail(fields: &mut Fields, remarks: &mut Remarks) -> Option<QueueSpec> {
    match fields.peek("limit") {
        Some(Tree::Text(text)) if text.ends_with('s') => {
            let field = fields.get("limit")?;
            positive(&field, "20ms", remarks).map(QueueSpec::DropTailTime)
        }
        _ => required_limit(fields, remarks).map(QueueSpec::DropTail),
    }
}

fn sojourn(fields: &mut Fields, remarks: &mut Remarks) -> Option<SojournSpec> {
    let Some(field) = fields.get("longest") else {
        remarks.mistake(fields.at, "queue has no longest time", "write longest = \"20ms\"");
        return None;
    };
    let longest = positive(&field, "20ms", remarks)?;
    let limit =
        fields.get("limit").map_or(Some(Limit::Packets(u32::MAX)), |field| limit(&field, "50p", remarks))?;
    Some(SojournSpec { longest, limit })
}

/// CoDel as in [`CodelSpec`], on top of `codel`.
fn codel(fields: &mut Fields, mut codel: CodelSpec, remarks: &mut Remarks) -> Option<CodelSpec> {
    codel.target = time(fields, "target", codel.target, remarks)?;
    codel.interval = time(fields, "interval", codel.interval, remarks)?;
    codel.mtu = size(fields, "mtu", codel.mtu, remarks)?;
    codel.limit = fields.get("limit").map_or(Some(codel.limit), |field| limit(&field, "1000p", remarks))?;
    codel.ecn = ecn(fields, codel.ecn, remarks)?;
    Some(codel)
}

fn fq_codel(fields: &mut Fields, remarks: &mut Remarks) -> Option<FqCodelSpec> {
    let mut fq = FqCodelSpec::default();
    fq.codel = codel(fields, fq.codel, remarks)?;
    if let Some(field) = fields.get("flows") {
        fq.flows = field.whole(1..=u64::from(u16::MAX), remarks)? as u16;
    }
    fq.quantum = size(fields, "quantum", fq.quantum, remarks)?;
    Some(fq)
}

/// PIE as in [`PieSpec`].
fn pie(fields: &mut Fields, remarks: &mut Remarks) -> Option<PieSpec> {
    let mut pie = PieSpec::default();
    pie.target = time(fields, "target", pie.target, remarks)?;
    pie.update = time(fields, "update", pie.update, remarks)?;
    if let Some(field) = fields.get("burst") {
        pie.burst = field.quantity("150ms", remarks)?;
    }
    pie.alpha = factor(fields, "alpha", pie.alpha, remarks)?;
    pie.beta = factor(fields, "beta", pie.beta, remarks)?;
    pie.mean_packet = size(fields, "mean_packet", pie.mean_packet, remarks)?;
    if let Some(field) = fields.get("mark_below") {
        pie.mark_below = field.probability(remarks)?;
    }
    pie.ecn = ecn(fields, pie.ecn, remarks)?;
    pie.derandomize = switch(fields, "derandomize", remarks)?;
    pie.cap_adjustment = switch(fields, "cap_adjustment", remarks)?;
    pie.limit = fields.get("limit").map_or(Some(pie.limit), |field| limit(&field, "1000p", remarks))?;
    Some(pie)
}

/// Adaptive RED as in [`AredSpec`]; without thresholds they follow the rate.
fn ared(fields: &mut Fields, remarks: &mut Remarks) -> Option<AredSpec> {
    let interval = time(fields, "interval", AredSpec::default().interval, remarks);
    let target = fields.get("target");
    let by_rate = fields.peek("min").is_none() && fields.peek("max").is_none();
    let target = match (target, by_rate) {
        (None, true) => Some(ARED_TARGET),
        (Some(field), true) => Some(positive(&field, "5ms", remarks)?),
        (None, false) => None,
        (Some(field), false) => {
            let what = "queue has a target, by which thresholds follow the rate, and thresholds";
            remarks.mistake(field.at, what, "keep target, or min and max");
            return None;
        }
    };
    if by_rate && fields.peek("weight").is_some() {
        remarks.mistake(fields.at, "the weight follows the rate", "remove weight, or write min and max too");
    }
    let limited = fields.peek("limit").is_some();
    let mut red = red(fields, remarks)?;
    if by_rate && !limited {
        red.limit = ARED_LIMIT;
    }
    Some(AredSpec { red, interval: interval?, target })
}

/// DualPI2 as in [`DualPi2Spec`].
fn dualpi2(fields: &mut Fields, remarks: &mut Remarks) -> Option<DualPi2Spec> {
    let mut dual = DualPi2Spec::default();
    dual.target = time(fields, "target", dual.target, remarks)?;
    dual.update = time(fields, "update", dual.update, remarks)?;
    dual.alpha = factor(fields, "alpha", dual.alpha, remarks)?;
    dual.beta = factor(fields, "beta", dual.beta, remarks)?;
    dual.coupling = factor(fields, "coupling", dual.coupling, remarks)?;
    if dual.coupling == 0.0 {
        remarks.mistake(fields.at, "coupling is 0", "write coupling = 2.0");
    }
    dual.ramp_start = time(fields, "ramp_start", dual.ramp_start, remarks)?;
    if let Some(field) = fields.get("ramp_range") {
        dual.ramp_range = field.quantity("400us", remarks)?;
    }
    if let Some(field) = fields.get("ramp_packets") {
        dual.ramp_packets = field.whole(0..=u64::from(u32::MAX), remarks)? as u32;
    }
    match [fields.get("shift"), fields.get("classic_share")] {
        [None, None] => {}
        [Some(field), None] => dual.scheduler = DualScheduler::TimeShifted(field.quantity("50ms", remarks)?),
        [None, Some(field)] => dual.scheduler = DualScheduler::Weighted(field.whole(0..=99, remarks)? as u8),
        [Some(_), Some(field)] => {
            let what = "queue has a shift and a classic_share";
            remarks.mistake(field.at, what, "write one: a shifted FIFO, or a weighted round robin");
        }
    }
    dual.limit = fields.get("limit").map_or(Some(dual.limit), |field| limit(&field, "10000p", remarks))?;
    Some(dual)
}

/// A token bucket as in [`TokenBucketSpec`].
fn token_bucket(fields: &mut Fields, remarks: &mut Remarks) -> Option<TokenBucketSpec> {
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
        remarks.mistake(field.at, "peak_burst without a peak", "write peak = \"4Mbit\" beside it");
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
    Some(TokenBucketSpec { rate, burst, peak, limit: limit? })
}

fn time(fields: &mut Fields, key: &str, default: Duration, remarks: &mut Remarks) -> Option<Duration> {
    fields.get(key).map_or(Some(default), |field| positive(&field, &default.to_string(), remarks))
}

/// A time above 0.
pub(crate) fn positive(field: &Field, example: &str, remarks: &mut Remarks) -> Option<Duration> {
    let time: Duration = field.quantity(example, remarks)?;
    if time.is_zero() {
        remarks.mistake(
            field.at,
            format!("{} is 0", field.key),
            format!("write {} = \"{example}\"", field.key),
        );
        return None;
    }
    Some(time)
}

/// A number of bytes above 0.
pub(crate) fn size(fields: &mut Fields, key: &str, default: Bytes, remarks: &mut Remarks) -> Option<Bytes> {
    let Some(field) = fields.get(key) else { return Some(default) };
    let size: Bytes = field.quantity(&default.to_string(), remarks)?;
    if size == Bytes::ZERO {
        remarks.mistake(field.at, format!("{key} is 0"), format!("write {key} = \"{default}\""));
        return None;
    }
    Some(size)
}

/// A number from 0 to 1000.
fn factor(fields: &mut Fields, key: &str, default: f64, remarks: &mut Remarks) -> Option<f64> {
    let Some(field) = fields.get(key) else { return Some(default) };
    let number = field.number(&default.to_string(), remarks)?;
    if !(0.0..=1000.0).contains(&number) {
        remarks.mistake(
            field.at,
            format!("{key} = {number} is out of range"),
            "write a number from 0 to 1000",
        );
        return None;
    }
    Some(number)
}

/// True or false; absent: false.
fn switch(fields: &mut Fields, key: &str, remarks: &mut Remarks) -> Option<bool> {
    fields.get(key).map_or(Some(false), |field| field.switch(remarks))
}

fn ecn(fields: &mut Fields, default: Ecn, remarks: &mut Remarks) -> Option<Ecn> {
    let Some(field) = fields.get("ecn") else { return Some(default) };
    field.switch(remarks).map(|on| if on { Ecn::Mark } else { Ecn::Off })
}

/// RED as in [`RedSpec`]; thresholds that are not given stand to the limit as ns-2's do: a tenth,
/// three tenths.
fn red(fields: &mut Fields, remarks: &mut Remarks) -> Option<RedSpec> {
    let mut red = RedSpec::default();
    let limit_field = fields.get("limit");
    if let Some(field) = &limit_field {
        red.limit = limit(field, "50p", remarks)?;
    }
    let most = match red.limit {
        Limit::Packets(packets) => u64::from(packets),
        Limit::Bytes(bytes) => bytes.0,
    };
    red.min = (most / 10).max(1);
    red.max = red.min.saturating_mul(3);
    if let Some(field) = fields.get("min") {
        red.min = threshold(&field, red.limit, remarks)?;
    }
    let max = fields.get("max");
    if let Some(field) = &max {
        red.max = threshold(field, red.limit, remarks)?;
    }
    if red.max <= red.min {
        let at = max.map_or(fields.at, |field| field.at);
        remarks.mistake(at, "max is not above min", "write a larger max, for example three times min");
    }
    if let Some(field) = fields.get("weight") {
        red.weight = field.probability(remarks)?;
    }
    if let Some(field) = fields.get("probability") {
        red.max_p = field.probability(remarks)?;
    }
    red.gentle = fields.get("gentle").map_or(Some(red.gentle), |field| field.switch(remarks))?;
    red.ecn = fields.get("ecn").map_or(Some(red.ecn), |field| field.switch(remarks))?;
    if let Some(field) = fields.get("mean_packet") {
        red.mean_packet = field.quantity("500B", remarks)?;
        if red.mean_packet == Bytes::ZERO {
            remarks.mistake(field.at, "mean_packet is 0", "write mean_packet = \"500B\"");
        }
    }
    Some(red)
}

fn threshold(field: &Field, unit: Limit, remarks: &mut Remarks) -> Option<u64> {
    let example = match unit {
        Limit::Packets(_) => "5p",
        Limit::Bytes(_) => "8KiB",
    };
    match (limit(field, example, remarks)?, unit) {
        (Limit::Packets(packets), Limit::Packets(_)) => Some(u64::from(packets)),
        (Limit::Bytes(bytes), Limit::Bytes(_)) => Some(bytes.0),
        _ => {
            let what = format!("{} is in another unit than limit", field.key);
            remarks.mistake(field.at, what, format!("write {} = \"{example}\"", field.key));
            None
        }
    }
}

/// `"50p"` or `"64KiB"`, at least one.
pub(crate) fn limit(field: &Field, example: &str, remarks: &mut Remarks) -> Option<Limit> {
    let instead = format!("write {} = \"{example}\"", field.key);
    let text = field.text(example, remarks)?.trim();
    let limit = match text.strip_suffix('p').map(str::trim_end) {
        Some(number) => match number.parse() {
            Ok(packets) => Limit::Packets(packets),
            Err(_) => {
                remarks.mistake(field.at, format!("'{text}' is not a number of packets"), instead);
                return None;
            }
        },
        None => Limit::Bytes(field.quantity(example, remarks)?),
    };
    if matches!(limit, Limit::Packets(0) | Limit::Bytes(Bytes(0))) {
        remarks.mistake(field.at, format!("with {} = \"{text}\" nothing passes", field.key), instead);
        return None;
    }
    Some(limit)
}
