//! Impairments after the queue: jitter, reorder, duplicate, corrupt.
//!
//! ```toml
//! jitter = { law = "uniform", half_width = "2ms" }             # or one of:
//! # reorder: never, allow, drop
//! jitter = { law = "normal", sd = "2ms", half_life = "50ms", reorder = "never" }
//! jitter = { law = "normal", sd = "2ms", correlation = "25%" }  # from packet to packet, as in tc
//! jitter = { law = "lognormal", mean = "3ms", sd = "2ms" }
//! jitter = { law = "pareto", mean = "3ms", shape = 3.0 }
//! jitter = { law = "exponential", mean = "3ms" }
//! jitter = { law = "table", values = ["1ms", "2ms", "9ms"] }    # each as likely
//! # one after the other, a packet each
//! jitter = { law = "trace", values = ["1ms", "2ms", "9ms"] }
//! # either of them from a file (`trace/delays.rs`)
//! jitter = { law = "table", file = "delays.csv" }
//! jitter = "none"
//! # these skip the delay; or { probability = "25%", correlation = "50%", gap = 5 }
//! reorder   = "25%"
//! # or { probability = "1%", correlation = "10%", later = "5ms" }: when the copy leaves
//! duplicate = "1%"
//! # packets with a flipped bit, or { probability = …, correlation = … }, or { bits = 1e-6 }
//! corrupt   = "0.1%"
//! # of at most 3 packets in a row; `of` is "all", "udp", or "udp-payload": one of the first 50 bytes
//! # of the payload changes and the checksum is repaired; never of QUIC Version Negotiation
//! corrupt   = { probability = "10%", burst_max = 3, of = "udp-payload" }
//! ```

use crate::bounded::{self, BoundKeys};
use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::loss::{optional, required};
use crate::mistake::{Mistakes, Remarks};
use crate::schema_parts;
use crate::trace::delays;
use crate::tree::Tree;
use crate::write::{of_probability, table, text};
use fastpath_link::{
    Bounded, Chance, CorruptSpec, Duplication, JitterCorrelation, JitterLaw, JitterSpec, Reorder, ReorderSpec,
};
use fastpath_units::{Duration, Probability};
use serde_json::{Map, Value, json};

const LAWS: [&str; 7] = ["uniform", "normal", "lognormal", "pareto", "exponential", "table", "trace"];
const ORDERS: [&str; 3] = ["never", "allow", "drop"];
/// The words of `of` of a corruption.
const CORRUPTED: [&str; 3] = [bounded::FILTERS[0], bounded::FILTERS[1], "udp-payload"];
/// The largest exponent of the Pareto law. It is above 1: at 1 the law has no mean.
const SHAPE_MAX: f64 = 1000.0;

/// Reads a jitter. `Some(None)` clears it.
pub(crate) fn jitter(field: &Field, files: &Files, remarks: &mut Remarks) -> Option<Option<Box<JitterSpec>>> {
    if field.is_none() {
        return Some(None);
    }
    let mut fields = field.table("jitter", "{ law = \"normal\", sd = \"2ms\" }", remarks)?;
    let law = law_of(&mut fields, files, remarks);
    let correlation = correlation(&mut fields, remarks);
    let order = match fields.get("reorder") {
        None => Some(Reorder::default()),
        Some(field) => field
            .word("a kind of reordering", &ORDERS, remarks)
            .map(|order| [Reorder::Never, Reorder::Allow, Reorder::Drop][order]),
    };
    // The order of the values in a trace is its correlation.
    if matches!(law, Some(JitterLaw::Trace(_)))
        && correlation.is_some_and(|correlation| correlation != JitterCorrelation::None)
    {
        remarks.mistake(
            fields.at,
            "a trace of delays has its own correlation",
            "remove half_life and correlation",
        );
    }
    if law.is_some() {
        fields.finish(remarks);
    }
    Some(Some(Box::new(JitterSpec { law: law?, correlation: correlation?, order: order? })))
}

/// Reads a law alone. The flag is true if keys of a jitter (half_life, correlation, reorder) are
/// given too.
pub(crate) fn law(field: &Field, files: &Files, remarks: &mut Remarks) -> Option<(JitterLaw, bool)> {
    let mut fields = field.table("law", "{ law = \"normal\", sd = \"2ms\" }", remarks)?;
    let law = law_of(&mut fields, files, remarks)?;
    let beside = ["half_life", "correlation", "reorder"].iter().any(|key| fields.get(key).is_some());
    fields.finish(remarks);
    Some((law, beside))
}

fn correlation(fields: &mut Fields, remarks: &mut Remarks) -> Option<JitterCorrelation> {
    match [fields.get("half_life"), fields.get("correlation")] {
        [None, None] => Some(JitterCorrelation::None),
        [Some(field), None] => {
            crate::queue::positive(&field, "50ms", remarks).map(JitterCorrelation::HalfLife)
        }
        [None, Some(field)] => field.probability(remarks).map(JitterCorrelation::PerPacket),
        [Some(_), Some(field)] => {
            let what = "jitter has a half_life and a correlation";
            remarks.mistake(
                field.at,
                what,
                "write one of them: correlation in time, or from packet to packet",
            );
            None
        }
    }
}

fn law_of(fields: &mut Fields, files: &Files, remarks: &mut Remarks) -> Option<JitterLaw> {
    let Some(law) = fields.get("law") else {
        remarks.mistake(
            fields.at,
            format!("{} has no law", fields.what),
            format!("write law = one of {}", LAWS.join(", ")),
        );
        return None;
    };
    match law.word("a law of jitter", &LAWS, remarks)? {
        0 => span(fields, "half_width", remarks).map(|half_width| JitterLaw::Uniform { half_width }),
        1 => span(fields, "sd", remarks).map(|sd| JitterLaw::Normal { sd }),
        2 => {
            let (mean, sd) = (span(fields, "mean", remarks), span(fields, "sd", remarks));
            mean.zip(sd).map(|(mean, sd)| JitterLaw::Lognormal { mean, sd })
        }
        3 => {
            let (mean, shape) = (span(fields, "mean", remarks), shape(fields, remarks));
            mean.zip(shape).map(|(mean, shape)| JitterLaw::Pareto { mean, shape })
        }
        4 => span(fields, "mean", remarks).map(|mean| JitterLaw::Exponential { mean }),
        5 => values(fields, files, delays::table, remarks).map(|mut values| {
            values.sort();
            JitterLaw::Table(values.iter().map(|value| value.as_ps() as i64).collect())
        }),
        _ => values(fields, files, delays::trace, remarks).map(|values| JitterLaw::Trace(values.into())),
    }
}

/// Reads the share of packets that skip the delay. `Some(None)` clears it.
pub(crate) fn reorder(field: &Field, remarks: &mut Remarks) -> Option<Option<ReorderSpec>> {
    if !matches!(field.value, Tree::Table(_)) {
        let chance = Chance::from(field.probability(remarks)?);
        return Some((!chance.probability.is_never()).then_some(ReorderSpec { chance, gap: 1 }));
    }
    let mut fields = field.table("reorder", "\"25%\"", remarks)?;
    let chance = chance(&mut fields, remarks);
    let gap = match fields.get("gap") {
        None => Some(1),
        Some(field) => field.whole(1..=u64::from(u32::MAX), remarks),
    };
    fields.finish(remarks);
    Some(Some(ReorderSpec { chance: chance?, gap: gap? as u32 }))
}

/// Reads the share of packets that leave twice.
pub(crate) fn duplicate(field: &Field, remarks: &mut Remarks) -> Option<Duplication> {
    if !matches!(field.value, Tree::Table(_)) {
        return field.probability(remarks).map(Duplication::from);
    }
    let mut fields = field.table("duplicate", "\"1%\"", remarks)?;
    let chance = chance(&mut fields, remarks);
    let later = match fields.get("later") {
        None => Some(Duration::ZERO),
        Some(field) => field.quantity("5ms", remarks),
    };
    fields.finish(remarks);
    Some(Duplication { chance: chance?, later: later? })
}

/// Reads the share of packets that are corrupted. `Some(None)` clears it.
pub(crate) fn corrupt(field: &Field, remarks: &mut Remarks) -> Option<Option<CorruptSpec>> {
    if !matches!(field.value, Tree::Table(_)) {
        let probability = field.probability(remarks)?;
        return Some((!probability.is_never()).then_some(CorruptSpec::Packets(probability.into())));
    }
    let mut fields = field.table("corrupt", "\"0.1%\"", remarks)?;
    let spec = match fields.get("bits") {
        Some(field) => field.probability(remarks).map(CorruptSpec::Bits),
        None => corrupt_packets(&mut fields, remarks),
    };
    fields.finish(remarks);
    Some(Some(spec?))
}

fn corrupt_packets(fields: &mut Fields, remarks: &mut Remarks) -> Option<CorruptSpec> {
    let chance = chance(fields, remarks);
    let correlation = chance.map_or(Probability::NEVER, |chance| chance.correlation);
    let keys = BoundKeys::read(fields, &CORRUPTED, correlation, remarks)?;
    let chance = chance?;
    Some(match keys.of {
        _ if keys.is_usual() => CorruptSpec::Packets(chance),
        2 => CorruptSpec::UdpPayload(keys.law(chance.probability)),
        _ => CorruptSpec::Bounded(keys.law(chance.probability)),
    })
}

fn chance(fields: &mut Fields, remarks: &mut Remarks) -> Option<Chance> {
    let probability = required(fields, "probability", "1%", remarks);
    let correlation = optional(fields, "correlation", Probability::NEVER, remarks);
    Some(Chance { probability: probability?, correlation: correlation? })
}

fn span(fields: &mut Fields, key: &str, remarks: &mut Remarks) -> Option<Duration> {
    let Some(field) = fields.get(key) else {
        remarks.mistake(fields.at, format!("{} has no {key}", fields.what), format!("write {key} = \"2ms\""));
        return None;
    };
    crate::queue::positive(&field, "2ms", remarks)
}

fn shape(fields: &mut Fields, remarks: &mut Remarks) -> Option<f64> {
    let Some(field) = fields.get("shape") else {
        remarks.mistake(fields.at, format!("{} has no shape", fields.what), "write shape = 3.0");
        return None;
    };
    let shape = field.number("3.0", remarks)?;
    if !(shape > 1.0 && shape <= SHAPE_MAX) {
        let instead = format!("write a number above 1, up to {SHAPE_MAX}");
        remarks.mistake(field.at, format!("shape = {shape} is out of range"), instead);
        return None;
    }
    Some(shape)
}

/// Reads a list of at least one time: in place, or in a file that `read` parses.
fn values(
    fields: &mut Fields,
    files: &Files,
    read: fn(&str) -> Result<Vec<Duration>, Mistakes>,
    remarks: &mut Remarks,
) -> Option<Vec<Duration>> {
    const INSTEAD: &str = "write values = [\"1ms\", \"2ms\"], or file = \"delays.csv\"";
    let listed = match (fields.get("values"), fields.get("file")) {
        (Some(values), None) => values,
        (None, Some(file)) => return from_file(&file, files, read, remarks),
        (None, None) => {
            remarks.mistake(fields.at, format!("{} has no values", fields.what), INSTEAD);
            return None;
        }
        (Some(_), Some(file)) => {
            remarks.mistake(file.at, format!("{} has values and a file", fields.what), "keep one of them");
            return None;
        }
    };
    let Some(elements) = listed.elements().filter(|elements| !elements.is_empty()) else {
        remarks.mistake(listed.at, "values is not a list of times", INSTEAD);
        return None;
    };
    elements.iter().map(|element| element.quantity::<Duration>("2ms", remarks)).collect()
}

fn from_file(
    field: &Field,
    files: &Files,
    read: fn(&str) -> Result<Vec<Duration>, Mistakes>,
    remarks: &mut Remarks,
) -> Option<Vec<Duration>> {
    let path = field.text("delays.csv", remarks)?;
    match files(path).map(|text| read(&text)) {
        Ok(Ok(values)) => Some(values),
        Ok(Err(mistakes)) => {
            remarks.mistakes_in(path, field.at, mistakes);
            None
        }
        Err(why) => {
            remarks.mistake(
                field.at,
                format!("{path}: {why}"),
                "write the path of a file, relative to this file",
            );
            None
        }
    }
}

pub(crate) fn write_jitter(JitterSpec { law, correlation, order }: &JitterSpec) -> Value {
    let correlation = match correlation {
        JitterCorrelation::None => None,
        JitterCorrelation::HalfLife(time) => Some(("half_life", text(time))),
        JitterCorrelation::PerPacket(correlation) => Some(("correlation", of_probability(*correlation))),
    };
    let order = match order {
        Reorder::Never => None,
        Reorder::Allow => Some(("reorder", json!("allow"))),
        Reorder::Drop => Some(("reorder", json!("drop"))),
    };
    table(write_law(law).into_iter().chain(correlation).chain(order))
}

pub(crate) fn write_law(law: &JitterLaw) -> Vec<(&'static str, Value)> {
    let (name, parts) = match law {
        JitterLaw::Uniform { half_width } => ("uniform", vec![("half_width", text(half_width))]),
        JitterLaw::Normal { sd } => ("normal", vec![("sd", text(sd))]),
        JitterLaw::Lognormal { mean, sd } => ("lognormal", vec![("mean", text(mean)), ("sd", text(sd))]),
        JitterLaw::Pareto { mean, shape } => ("pareto", vec![("mean", text(mean)), ("shape", json!(shape))]),
        JitterLaw::Exponential { mean } => ("exponential", vec![("mean", text(mean))]),
        JitterLaw::Table(values) => {
            ("table", vec![("values", values.iter().map(|ps| text(Signed(*ps))).collect())])
        }
        JitterLaw::Trace(values) => ("trace", vec![("values", values.iter().map(text).collect())]),
    };
    std::iter::once(("law", json!(name))).chain(parts).collect()
}

/// A time in picoseconds that may be negative, as in the tables of `tc`.
struct Signed(i64);

impl std::fmt::Display for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Duration::from_ps(self.0.unsigned_abs()))
    }
}

fn of_chance(Chance { probability, correlation }: Chance) -> Vec<(&'static str, Value)> {
    let correlated = !correlation.is_never();
    let correlation = correlated.then(|| ("correlation", of_probability(correlation)));
    std::iter::once(("probability", of_probability(probability))).chain(correlation).collect()
}

/// Returns `"1%"` if there is only a probability, else a table.
fn short(entries: Vec<(&'static str, Value)>) -> Value {
    match entries.as_slice() {
        [(_, probability)] => probability.clone(),
        _ => table(entries),
    }
}

pub(crate) fn write_reorder(ReorderSpec { chance, gap }: &ReorderSpec) -> Value {
    let gap = (*gap != 1).then(|| ("gap", json!(gap)));
    short(of_chance(*chance).into_iter().chain(gap).collect())
}

pub(crate) fn write_duplicate(Duplication { chance, later }: &Duplication) -> Value {
    let later = (!later.is_zero()).then(|| ("later", text(later)));
    short(of_chance(*chance).into_iter().chain(later).collect())
}

pub(crate) fn write_corrupt(corrupt: &CorruptSpec) -> Value {
    match corrupt {
        CorruptSpec::Packets(chance) => short(of_chance(*chance)),
        CorruptSpec::Bounded(law) => write_bounded(law, bounded::word(law.of)),
        CorruptSpec::UdpPayload(law) => write_bounded(law, CORRUPTED[2]),
        CorruptSpec::Bits(p) => table([("bits", of_probability(*p))]),
    }
}

fn write_bounded(law: &Bounded, of: &str) -> Value {
    let probability = ("probability", of_probability(law.probability));
    table(std::iter::once(probability).chain(bounded::write(law, of)))
}

/// The schema of a law of jitter, with the keys of its memory and order.
pub(crate) fn jitter_schema() -> Value {
    let beyond = || {
        schema_parts::properties([
            ("half_life", "The time in which the correlation halves.", schema_parts::reference("duration")),
            (
                "correlation",
                "The correlation of packet to packet, as in tc.",
                schema_parts::reference("probability"),
            ),
            ("reorder", "Whether packets may overtake.", json!({ "enum": ORDERS })),
        ])
    };
    json!({ "anyOf": [{ "enum": ["none", "0"] }, laws(beyond)] })
}

/// The schema of a law alone.
pub(crate) fn law_schema() -> Value {
    laws(Map::new)
}

fn laws(beyond: impl Fn() -> Map<String, Value>) -> Value {
    let duration = || schema_parts::reference("duration");
    let shape = json!({ "type": "number", "exclusiveMinimum": 1, "maximum": SHAPE_MAX });
    let values = || json!({ "type": "array", "items": duration(), "minItems": 1 });
    let file = || json!({ "type": "string" });
    let one = |name: &str, keys: Vec<(&str, Value)>, required: &[&str]| {
        let mut all = beyond();
        all.insert("law".to_owned(), json!({ "const": name }));
        all.extend(keys.into_iter().map(|(key, schema)| (key.to_owned(), schema)));
        schema_parts::table(all, &std::iter::once("law").chain(required.iter().copied()).collect::<Vec<_>>())
    };
    json!({ "anyOf": [
        one("uniform", vec![("half_width", duration())], &["half_width"]),
        one("normal", vec![("sd", duration())], &["sd"]),
        one("lognormal", vec![("mean", duration()), ("sd", duration())], &["mean", "sd"]),
        one("pareto", vec![("mean", duration()), ("shape", shape)], &["mean", "shape"]),
        one("exponential", vec![("mean", duration())], &["mean"]),
        one("table", vec![("values", values()), ("file", file())], &[]),
        one("trace", vec![("values", values()), ("file", file())], &[]),
    ] })
}

/// The schema of a probability, or of a table of a chance and these keys.
fn chance_schema(keys: Vec<(&str, Value)>) -> Value {
    let p = || schema_parts::reference("probability");
    let mut all = schema_parts::properties([
        ("probability", "The share of packets.", p()),
        ("correlation", "The correlation of packet to packet, as in tc.", p()),
    ]);
    all.extend(keys.into_iter().map(|(key, schema)| (key.to_owned(), schema)));
    json!({ "anyOf": [p(), schema_parts::table(all, &["probability"])] })
}

/// The schema of `reorder`.
pub(crate) fn reorder_schema() -> Value {
    chance_schema(vec![("gap", json!({ "type": "integer", "minimum": 1 }))])
}

/// The schema of `duplicate`.
pub(crate) fn duplicate_schema() -> Value {
    chance_schema(vec![("later", schema_parts::reference("duration"))])
}

/// The schema of `corrupt`.
pub(crate) fn corrupt_schema() -> Value {
    let bits =
        schema_parts::properties([("bits", "The share of bits.", schema_parts::reference("probability"))]);
    json!({ "anyOf": [chance_schema(bounded::schemas(&CORRUPTED)), schema_parts::table(bits, &["bits"])] })
}
