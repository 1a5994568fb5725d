//! The loss of a pipe: `"1%"`, `"none"` (at both places), a table with a `kind`, or a list with one
//! loss for each place.
//!
//! ```toml
//! # after the bottleneck; before the queue if left out
//! loss = { kind = "uniform", probability = "1%", at = "egress" }
//! # correlated from packet to packet, as in netem
//! loss = { kind = "uniform", probability = "1%", correlation = "25%" }
//! # of UDP datagrams at most 3 in a row; `of` and `burst_max` also one without the other
//! loss = { probability = "10%", burst_max = 3, of = "udp" }
//! loss = { kind = "gilbert-elliott", to_bad = "1%", to_good = "25%",
//!          loss_in_bad = "100%", loss_in_good = "0%" }
//! loss = { kind = "four-state", p13 = "1%", p31 = "30%", p32 = "5%", p23 = "50%", p14 = "0.1%" }
//! # ECN-capable packets are marked instead
//! loss = { kind = "uniform", probability = "1%", ecn = true }
//! # lengths of runs of passed and lost packets
//! loss = { kind = "runs", passed = [10, 20, 90], lost = [1, 1, 2, 8] }
//! # all packets that arrive meanwhile
//! loss = { kind = "outage", start = "10s", for = "500ms", every = "60s" }
//! loss = { kind = "packets", numbers = [1, 17, 18] }                             # counted from 1
//! loss = { kind = "packets", numbers = [1, 3, 4], of = "udp" }      # UDP datagrams alone count
//! # of each flow the packets with these bytes, counted from 0
//! loss = { kind = "bytes", offsets = [0, 14600] }
//! loss = ["1%", { kind = "uniform", probability = "2%", at = "egress" }]
//! ```

use crate::bounded::{self, BoundKeys, FILTERS};
use crate::fields::{Field, Fields};
use crate::hints::IN_A_ROW;
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::{of_kind, of_probability, table, text};
use fastpath_link::{
    Chance, Change, Ecn, FourState, GilbertElliott, LossPlan, LossSpec, Outage, PacketFilter, Runs,
};
use fastpath_units::{Duration, Probability};
use serde_json::{Map, Value, json};

const KINDS: [&str; 7] = ["uniform", "gilbert-elliott", "four-state", "runs", "outage", "packets", "bytes"];
/// Names of other tools for losses that follow each other.
const OTHER_KINDS: [&str; 4] = ["burst", "bursts", "consecutive", "burst-loss"];
const PLACES: [&str; 2] = ["ingress", "egress"];

/// Reads a loss into a change: before the queue, and after the bottleneck.
pub(crate) fn read(field: &Field, change: &mut Change, remarks: &mut Remarks) {
    if field.is_none() {
        (change.loss, change.egress_loss) =
            (Some(Probability::NEVER.into()), Some(Probability::NEVER.into()));
        return;
    }
    let mut places = [None, None];
    for element in field.elements().unwrap_or_else(|| vec![field.clone()]) {
        let Some((place, loss, ecn)) = one(&element, remarks) else { continue };
        if place == 0 {
            change.loss_ecn = ecn.or(change.loss_ecn);
        } else if ecn.is_some() {
            let what = "loss at the egress cannot mark packets";
            remarks.mistake(element.at, what, "write ecn = true with at = \"ingress\"");
        }
        if places[place].replace(loss).is_some() {
            let what = format!("loss at {} is given twice", PLACES[place]);
            remarks.mistake(element.at, what, "write one of each, at = \"ingress\" and at = \"egress\"");
        }
    }
    [change.loss, change.egress_loss] = places;
}

fn one(field: &Field, remarks: &mut Remarks) -> Option<(usize, LossSpec, Option<Ecn>)> {
    if !matches!(field.value, Tree::Table(_)) {
        return Some((0, field.probability(remarks)?.into(), None));
    }
    let mut fields = field.table("loss", "\"1%\"", remarks)?;
    let place = match fields.get("at") {
        None => Some(0),
        Some(field) => field.word("a place of loss", &PLACES, remarks),
    };
    let kind = match fields.get("kind") {
        None => Some(0),
        Some(field) => match field.value {
            Tree::Text(text) if OTHER_KINDS.contains(&&**text) => {
                remarks.mistake(field.at, format!("'{text}' is not a kind of loss"), IN_A_ROW);
                None
            }
            _ => field.word("a kind of loss", &KINDS, remarks),
        },
    };
    let loss = match kind? {
        0 => uniform(&mut fields, remarks),
        1 => gilbert_elliott(&mut fields, remarks).map(LossSpec::GilbertElliott),
        2 => four_state(&mut fields, remarks).map(LossSpec::FourState),
        3 => runs(&mut fields, remarks).map(LossSpec::Runs),
        4 => outage(&mut fields, remarks).map(|outage| LossSpec::Plan(LossPlan::Outage(outage))),
        5 => by_number(&mut fields, remarks).map(LossSpec::Plan),
        _ => numbers(&mut fields, "offsets", 0, remarks)
            .map(|offsets| LossSpec::Plan(LossPlan::Bytes(ascending(offsets).into()))),
    };
    let ecn = match fields.get("ecn") {
        None => Some(None),
        Some(field) => field.switch(remarks).map(|on| Some(if on { Ecn::Mark } else { Ecn::Off })),
    };
    fields.finish(remarks);
    Some((place?, loss?, ecn?))
}

/// Independent losses, or losses correlated as in netem.
fn uniform(fields: &mut Fields, remarks: &mut Remarks) -> Option<LossSpec> {
    let probability = required(fields, "probability", "1%", remarks);
    let correlation = optional(fields, "correlation", Probability::NEVER, remarks)?;
    let keys = BoundKeys::read(fields, &FILTERS, correlation, remarks);
    let (probability, keys) = (probability?, keys?);
    Some(if !keys.is_usual() {
        LossSpec::Bounded(keys.law(probability))
    } else if correlation.is_never() {
        probability.into()
    } else {
        LossSpec::Correlated(Chance { probability, correlation })
    })
}

/// The defaults are Gilbert's: every packet is lost in the bad state, none in the good state.
fn gilbert_elliott(fields: &mut Fields, remarks: &mut Remarks) -> Option<GilbertElliott> {
    let to_bad = required(fields, "to_bad", "1%", remarks);
    let to_good = required(fields, "to_good", "25%", remarks);
    let loss_in_bad = optional(fields, "loss_in_bad", Probability::ALWAYS, remarks);
    let loss_in_good = optional(fields, "loss_in_good", Probability::NEVER, remarks);
    Some(GilbertElliott {
        to_bad: to_bad?,
        to_good: to_good?,
        loss_in_bad: loss_in_bad?,
        loss_in_good: loss_in_good?,
    })
}

/// The defaults are netem's: no gaps within a burst, no single losses.
fn four_state(fields: &mut Fields, remarks: &mut Remarks) -> Option<FourState> {
    let p13 = required(fields, "p13", "1%", remarks);
    let p31 = required(fields, "p31", "30%", remarks);
    let p32 = optional(fields, "p32", Probability::NEVER, remarks);
    let p23 = optional(fields, "p23", Probability::ALWAYS, remarks);
    let p14 = optional(fields, "p14", Probability::NEVER, remarks);
    let law = FourState { p13: p13?, p31: p31?, p32: p32?, p23: p23?, p14: p14? };
    for (sum, names) in
        [(law.p13.get() + law.p14.get(), "p13 + p14"), (law.p31.get() + law.p32.get(), "p31 + p32")]
    {
        if sum > 1.0 {
            let what = format!("{names} is {:.3} %, more than 100 %", sum * 100.0);
            remarks.mistake(
                fields.at,
                what,
                "write smaller values: both are transitions from the same state",
            );
        }
    }
    Some(law)
}

/// Tables of the lengths of runs.
fn runs(fields: &mut Fields, remarks: &mut Remarks) -> Option<Runs> {
    let [passed, lost] = ["passed", "lost"].map(|key| numbers(fields, key, 0, remarks));
    let [passed, lost] = [passed?, lost?];
    let longest = passed.iter().chain(&lost).max().copied().unwrap_or(0);
    if longest > u64::from(u32::MAX) || longest == 0 {
        remarks.mistake(fields.at, format!("the longest run has {longest} packets"), "write 1 to 4294967295");
        return None;
    }
    let table = |runs: Vec<u64>| runs.into_iter().map(|run| run as u32).collect();
    Some(Runs { passed: table(passed), lost: table(lost) })
}

fn outage(fields: &mut Fields, remarks: &mut Remarks) -> Option<Outage> {
    let [at, span, every] = ["start", "for", "every"].map(|key| fields.get(key));
    let at = at.map_or(Some(Duration::ZERO), |field| field.quantity("10s", remarks));
    let Some(span) = span else {
        remarks.mistake(fields.at, "outage has no duration", "write for = \"500ms\"");
        return None;
    };
    let length = crate::queue::positive(&span, "500ms", remarks)?;
    let every = match every {
        None => None,
        Some(field) => {
            let every = crate::queue::positive(&field, "60s", remarks)?;
            if every <= length {
                remarks.mistake(
                    field.at,
                    "every is not longer than for",
                    "write a longer time between the starts of outages",
                );
            }
            Some(every)
        }
    };
    Some(Outage { at: at?, span: length, every })
}

/// Reads a list of at least one whole number from `least` up.
fn numbers(fields: &mut Fields, key: &str, least: u64, remarks: &mut Remarks) -> Option<Vec<u64>> {
    let instead = format!("write {key} = [1, 17, 18]");
    let field = fields.get(key);
    let elements = field.as_ref().and_then(Field::elements).filter(|elements| !elements.is_empty());
    let Some(elements) = elements else {
        let at = field.map_or(fields.at, |field| field.at);
        remarks.mistake(at, format!("{} has no list of {key}", fields.what), instead);
        return None;
    };
    elements.iter().map(|element| element.whole(least..=i64::MAX as u64, remarks)).collect()
}

/// Packets by number, of all or of UDP datagrams.
fn by_number(fields: &mut Fields, remarks: &mut Remarks) -> Option<LossPlan> {
    let numbers = numbers(fields, "numbers", 1, remarks);
    let of = bounded::filter(fields, &FILTERS, remarks)?;
    let of = [PacketFilter::All, PacketFilter::Udp][of];
    Some(LossPlan::Numbers { numbers: ascending(numbers?).into(), of })
}

/// Sorts numbers; each is there once then.
fn ascending(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(crate) fn required(
    fields: &mut Fields,
    key: &str,
    example: &str,
    remarks: &mut Remarks,
) -> Option<Probability> {
    let Some(field) = fields.get(key) else {
        remarks.mistake(
            fields.at,
            format!("{} has no {key}", fields.what),
            format!("write {key} = \"{example}\""),
        );
        return None;
    };
    field.probability(remarks)
}

pub(crate) fn optional(
    fields: &mut Fields,
    key: &str,
    default: Probability,
    remarks: &mut Remarks,
) -> Option<Probability> {
    fields.get(key).map_or(Some(default), |field| field.probability(remarks))
}

/// Writes the loss of a change, of both places; loss at the egress is always a table.
pub(crate) fn write(change: &Change) -> Option<Value> {
    let Change { loss, egress_loss, loss_ecn, .. } = change;
    if let (Some(LossSpec::Never), Some(LossSpec::Never), None | Some(Ecn::Off)) =
        (loss, egress_loss, loss_ecn)
    {
        return Some(json!("none"));
    }
    let before = loss.as_ref().map(|loss| match loss_ecn {
        None => of_loss(loss),
        Some(ecn) => extended(of_loss(loss), "ecn", json!(*ecn == Ecn::Mark)),
    });
    let behind = egress_loss.as_ref().map(|loss| extended(of_loss(loss), "at", json!("egress")));
    match (before, behind) {
        (Some(before), Some(behind)) => Some(Value::Array(vec![before, behind])),
        (one, other) => one.or(other),
    }
}

/// A table with one more entry; a bare probability becomes a table.
fn extended(loss: Value, key: &str, value: Value) -> Value {
    let mut table = match loss {
        Value::Object(table) => table,
        probability => Map::from_iter([("probability".to_owned(), probability)]),
    };
    table.insert(key.to_owned(), value);
    Value::Object(table)
}

fn of_loss(loss: &LossSpec) -> Value {
    match loss {
        LossSpec::Never => json!("0%"),
        LossSpec::Uniform(p) => of_probability(*p),
        LossSpec::Correlated(Chance { probability, correlation }) => table([
            ("kind", json!("uniform")),
            ("probability", of_probability(*probability)),
            ("correlation", of_probability(*correlation)),
        ]),
        LossSpec::Bounded(law) => {
            let probability = ("probability", of_probability(law.probability));
            let beside = bounded::write(law, bounded::word(law.of));
            of_kind("uniform", std::iter::once(probability).chain(beside))
        }
        LossSpec::GilbertElliott(GilbertElliott { to_bad, to_good, loss_in_bad, loss_in_good }) => {
            let parts = [
                ("to_bad", to_bad),
                ("to_good", to_good),
                ("loss_in_bad", loss_in_bad),
                ("loss_in_good", loss_in_good),
            ];
            of_kind("gilbert-elliott", parts.map(|(key, p)| (key, of_probability(*p))))
        }
        LossSpec::FourState(FourState { p13, p31, p32, p23, p14 }) => {
            let parts = [("p13", p13), ("p31", p31), ("p32", p32), ("p23", p23), ("p14", p14)];
            of_kind("four-state", parts.map(|(key, p)| (key, of_probability(*p))))
        }
        LossSpec::Runs(runs) => {
            let [passed, lost] =
                [&runs.passed, &runs.lost].map(|runs| runs.iter().map(|run| json!(run)).collect());
            of_kind("runs", [("passed", passed), ("lost", lost)])
        }
        LossSpec::Plan(LossPlan::Numbers { numbers, of }) => {
            let numbers = ("numbers", numbers.iter().map(|number| json!(number)).collect());
            let of = bounded::write_filter(bounded::word(*of));
            of_kind("packets", std::iter::once(numbers).chain(of))
        }
        LossSpec::Plan(LossPlan::Bytes(offsets)) => {
            of_kind("bytes", [("offsets", offsets.iter().map(|offset| json!(offset)).collect())])
        }
        LossSpec::Plan(LossPlan::Outage(Outage { at, span, every })) => {
            let every = every.map(|every| ("every", text(every)));
            of_kind("outage", [("start", text(at)), ("for", text(span))].into_iter().chain(every))
        }
    }
}

/// The schema of a loss.
pub(crate) fn schema() -> Value {
    let p = || schema_parts::reference("probability");
    let count = |least: u64| json!({ "type": "array", "items": { "type": "integer", "minimum": least }, "minItems": 1 });
    let duration = || schema_parts::reference("duration");
    let of_kind = |kind: &str, keys: Vec<(&str, Value)>, required: &[&str]| {
        let mut all = schema_parts::properties([
            ("at", "Before the queue, or behind the bottleneck.", json!({ "enum": PLACES })),
            ("ecn", "Whether ECN-capable packets are marked instead.", json!({ "type": "boolean" })),
            ("kind", "The law.", json!({ "const": kind })),
        ]);
        all.extend(keys.into_iter().map(|(key, schema)| (key.to_owned(), schema)));
        // The law is uniform if it is left out.
        let kind = (kind != "uniform").then_some("kind");
        schema_parts::table(all, &kind.into_iter().chain(required.iter().copied()).collect::<Vec<_>>())
    };
    let states = ["p13", "p31", "p32", "p23", "p14"].map(|key| (key, p())).to_vec();
    let bursts = ["to_bad", "to_good", "loss_in_bad", "loss_in_good"].map(|key| (key, p())).to_vec();
    let mut uniform = vec![("probability", p()), ("correlation", p())];
    uniform.extend(bounded::schemas(&FILTERS));
    let one = json!({ "anyOf": [
        p(),
        of_kind("uniform", uniform, &["probability"]),
        of_kind("gilbert-elliott", bursts, &["to_bad", "to_good"]),
        of_kind("four-state", states, &["p13", "p31"]),
        of_kind("runs", vec![("passed", count(0)), ("lost", count(0))], &["passed", "lost"]),
        of_kind("outage", vec![("start", duration()), ("for", duration()), ("every", duration())], &["for"]),
        of_kind("packets", vec![("numbers", count(1)), bounded::filter_schema(&FILTERS)], &["numbers"]),
        of_kind("bytes", vec![("offsets", count(0))], &["offsets"]),
    ] });
    schema_parts::one_or_list(one)
}
