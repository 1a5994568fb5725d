//! Traffic over connections of TCP.
//!
//! ```toml
//! [[traffic]]
//! kind       = "tcp"          # the first host sends to the second
//! size       = "10MB"         # of each connection; absent: until the stop
//! congestion = "cubic"        # or "reno"; absent: cubic
//! ecn        = true           # RFC 3168; absent: false
//! flows      = 4              # connections side by side; absent: 1
//!
//! [[traffic]]
//! kind       = "request"      # the first host asks, the second answers
//! request    = "200B"         # bytes of a request; absent: 200B
//! size       = "30kB"         # bytes of an answer: a size, or a law
//! think      = "1s"           # from an answer to the next request: a mean, or a law; absent: none
//! requests   = 100            # of each connection; absent: until the stop
//! # laws of sizes and times
//! size       = { law = "pareto", mean = "30kB", shape = 1.5 }     # exponential, constant
//! size       = { values = ["1kB", "20kB"] }                       # each as probable
//! think      = { file = "think.txt" }                             # a value a line
//! ```

use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::{Mistake, Remarks};
use crate::queue::positive;
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::{table, text};
use fastpath_traffic::{AmountLaw, CongestionControl, TransferModel, Workload};
use fastpath_units::{Bytes, Duration};
use serde_json::{Map, Value, json};

/// Bytes of a request, if none are given.
const REQUEST: Bytes = Bytes(200);
const SHAPE: f64 = 1.5;
const LAWS: [&str; 3] = ["exponential", "constant", "pareto"];
/// The most connections of one transfer: ports of a host.
const FLOWS_MAX: u64 = 10_000;

/// What an amount counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Amount {
    Bytes,
    Time,
}

impl Amount {
    const fn example(self) -> &'static str {
        match self {
            Amount::Bytes => "30kB",
            Amount::Time => "500ms",
        }
    }

    /// Reads an amount: bytes, or picoseconds.
    fn read(self, field: &Field, remarks: &mut Remarks) -> Option<u64> {
        match self {
            Amount::Bytes => {
                if let Tree::Integer(_) = field.value {
                    return field.whole(1..=u64::MAX >> 20, remarks);
                }
                let Bytes(bytes) = field.quantity(self.example(), remarks)?;
                if bytes == 0 {
                    let instead = format!("write {} = \"{}\"", field.key, self.example());
                    remarks.mistake(field.at, format!("{} is 0", field.key), instead);
                    return None;
                }
                Some(bytes)
            }
            Amount::Time => field.quantity::<Duration>(self.example(), remarks).map(Duration::as_ps),
        }
    }

    fn parse(self, line: &str) -> Option<u64> {
        match self {
            Amount::Bytes => {
                let plain = line.parse().ok();
                plain.or_else(|| line.parse().ok().map(|Bytes(bytes)| bytes)).filter(|bytes| *bytes > 0)
            }
            Amount::Time => line.parse().ok().map(Duration::as_ps),
        }
    }

    fn write(self, amount: u64) -> Value {
        match self {
            Amount::Bytes => text(Bytes(amount)),
            Amount::Time => text(Duration::from_ps(amount)),
        }
    }
}

/// Reads the keys of bulk transfers.
pub(crate) fn read_bulk(fields: &mut Fields, remarks: &mut Remarks) -> TransferModel {
    let size = fields.get("size").and_then(|field| Amount::Bytes.read(&field, remarks));
    model(fields, Workload::Bulk(size.map(Bytes)), remarks)
}

/// Reads the keys of requests.
pub(crate) fn read_requests(fields: &mut Fields, files: &Files, remarks: &mut Remarks) -> TransferModel {
    let request = fields.get("request").and_then(|field| Amount::Bytes.read(&field, remarks));
    let answer = match fields.get("size") {
        Some(field) => law(&field, Amount::Bytes, files, remarks),
        None => {
            let instead = "write size = \"30kB\", the bytes of an answer, or a law";
            remarks.mistake(fields.at, "requests have no size of answers", instead);
            None
        }
    };
    let think = fields.get("think").and_then(|field| law(&field, Amount::Time, files, remarks));
    let count = fields.get("requests").and_then(|field| field.whole(1..=u64::MAX >> 20, remarks));
    let workload = Workload::Requests {
        request: request.unwrap_or(REQUEST.0),
        answer: answer.unwrap_or(AmountLaw::Constant(1)),
        think: think.unwrap_or(AmountLaw::Constant(0)),
        count,
    };
    model(fields, workload, remarks)
}

fn model(fields: &mut Fields, workload: Workload, remarks: &mut Remarks) -> TransferModel {
    let names = CongestionControl::NAMES.map(|(name, _)| name);
    let congestion =
        fields.get("congestion").and_then(|field| field.word("a congestion control", &names, remarks));
    let flows = fields.get("flows").and_then(|field| field.whole(1..=FLOWS_MAX, remarks));
    TransferModel {
        flows: flows.unwrap_or(1) as u32,
        workload,
        congestion: congestion
            .map_or_else(CongestionControl::default, |place| CongestionControl::NAMES[place].1),
        ecn: fields.get("ecn").and_then(|field| field.switch(remarks)).unwrap_or(false),
    }
}

/// `"30kB"`, `{ law = "pareto", mean = "30kB", shape = 1.5 }`, `{ values = […] }`,
/// `{ file = "…" }`.
fn law(field: &Field, amount: Amount, files: &Files, remarks: &mut Remarks) -> Option<AmountLaw> {
    let Tree::Table(_) = field.value else {
        return match amount {
            Amount::Bytes => amount.read(field, remarks).map(AmountLaw::Constant),
            // As the lengths of periods.
            Amount::Time => {
                positive(field, "500ms", remarks).map(|mean| AmountLaw::Exponential(mean.as_ps()))
            }
        };
    };
    let example = format!("{{ law = \"pareto\", mean = \"{}\", shape = 1.5 }}", amount.example());
    let mut fields = field.table(field.key.clone(), &example, remarks)?;
    let values = fields.get("values").map(|values| listed(&values, amount, remarks));
    let in_file = fields.get("file").map(|file| from_file(&file, amount, files, remarks));
    if let Some(values) = values.or(in_file) {
        fields.finish(remarks);
        return values.map(|values| AmountLaw::Values(values.into()));
    }
    let law = fields.get("law").map_or(Some(0), |field| field.word("a law", &LAWS, remarks));
    let mean = match fields.get("mean") {
        Some(field) => amount.read(&field, remarks),
        None => {
            let instead = format!("write mean = \"{}\"", amount.example());
            remarks.mistake(fields.at, format!("{} has no mean", field.key), instead);
            None
        }
    };
    let shape = fields.get("shape").filter(|_| law == Some(2)).map(|field| {
        let shape = field.number("1.5", remarks)?;
        if shape <= 1.0 {
            let what = "a Pareto law with a shape of at most 1 has no finite mean";
            remarks.mistake(field.at, what, "write shape = 1.5, or another number above 1");
        }
        (shape > 1.0).then_some(shape)
    });
    fields.finish(remarks);
    let (law, mean, shape) = (law?, mean?, shape.unwrap_or(Some(SHAPE))?);
    Some(match law {
        0 => AmountLaw::Exponential(mean),
        1 => AmountLaw::Constant(mean),
        _ => AmountLaw::Pareto { mean, shape },
    })
}

fn listed(field: &Field, amount: Amount, remarks: &mut Remarks) -> Option<Vec<u64>> {
    let Some(elements) = field.elements().filter(|elements| !elements.is_empty()) else {
        let example = amount.example();
        remarks.mistake(
            field.at,
            "values is not a list of amounts",
            format!("write values = [\"{example}\"]"),
        );
        return None;
    };
    elements.iter().map(|element| amount.read(element, remarks)).collect()
}

fn from_file(field: &Field, amount: Amount, files: &Files, remarks: &mut Remarks) -> Option<Vec<u64>> {
    let path = field.text("amounts.txt", remarks)?;
    let read = match files(path) {
        Ok(read) => read,
        Err(why) => {
            remarks.mistake(field.at, format!("{path} cannot be read: {why}"), "write the name of a file");
            return None;
        }
    };
    let lines = read.lines().enumerate().filter_map(|(index, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (!content.is_empty()).then_some((index + 1, content))
    });
    let mut values = Vec::new();
    for (number, line) in lines {
        let Some(value) = amount.parse(line) else {
            let what = format!("'{}' is not an amount above 0", line.escape_debug());
            let mistake = Mistake {
                line: number,
                column: 1,
                what,
                instead: format!("write an amount such as {}, one a line", amount.example()),
            };
            remarks.mistakes_in(path, field.at, mistake.into());
            return None;
        };
        values.push(value);
    }
    if values.is_empty() {
        remarks.mistake(
            field.at,
            format!("{path} has no amounts"),
            format!("write {}, one a line", amount.example()),
        );
        return None;
    }
    Some(values)
}

/// Writes the keys of a transfer.
pub(crate) fn write(model: &TransferModel, all: &mut Map<String, Value>) {
    let TransferModel { flows, workload, congestion, ecn } = model;
    match workload {
        Workload::Bulk(size) => {
            all.extend(size.map(|size| ("size".to_owned(), text(size))));
        }
        Workload::Requests { request, answer, think, count } => {
            all.insert("request".to_owned(), text(Bytes(*request)));
            all.insert("size".to_owned(), write_law(answer, Amount::Bytes));
            if *think != AmountLaw::Constant(0) {
                all.insert("think".to_owned(), write_law(think, Amount::Time));
            }
            all.extend(count.map(|count| ("requests".to_owned(), json!(count))));
        }
    }
    if *congestion != CongestionControl::default() {
        all.insert("congestion".to_owned(), json!(congestion.name()));
    }
    if *flows > 1 {
        all.insert("flows".to_owned(), json!(flows));
    }
    if *ecn {
        all.insert("ecn".to_owned(), json!(true));
    }
}

fn write_law(law: &AmountLaw, amount: Amount) -> Value {
    match law {
        AmountLaw::Constant(bytes) if amount == Amount::Bytes => amount.write(*bytes),
        AmountLaw::Exponential(mean) if amount == Amount::Time => amount.write(*mean),
        AmountLaw::Constant(mean) => table([("law", json!("constant")), ("mean", amount.write(*mean))]),
        AmountLaw::Exponential(mean) => table([("law", json!("exponential")), ("mean", amount.write(*mean))]),
        AmountLaw::Pareto { mean, shape } => {
            table([("law", json!("pareto")), ("mean", amount.write(*mean)), ("shape", json!(shape))])
        }
        AmountLaw::Values(values) => {
            table([("values", values.iter().map(|value| amount.write(*value)).collect())])
        }
    }
}

/// The keys of transfers beside those of all traffic, with their schema.
pub(crate) fn properties() -> [(&'static str, &'static str, Value); 6] {
    let names = CongestionControl::NAMES.map(|(name, _)| name);
    [
        ("request", "Of requests: their bytes.", schema_parts::reference("bytes")),
        ("think", "Of requests: from an answer to the next one.", law_schema("duration")),
        (
            "requests",
            "Of requests: how many each connection sends.",
            json!({ "type": "integer", "minimum": 1 }),
        ),
        (
            "flows",
            "Of tcp and request: connections side by side.",
            json!({ "type": "integer", "minimum": 1, "maximum": FLOWS_MAX }),
        ),
        ("congestion", "Of tcp and request: the congestion control.", json!({ "enum": names })),
        ("ecn", "Of tcp and request: whether both ends want ECN.", json!({ "type": "boolean" })),
    ]
}

/// The schema of a law of amounts.
pub(crate) fn law_schema(amount: &str) -> Value {
    json!({ "anyOf": [
        schema_parts::reference(amount),
        schema_parts::table(
            schema_parts::properties([
                ("law", "The law of the amounts.", json!({ "enum": LAWS })),
                ("mean", "The mean.", schema_parts::reference(amount)),
                ("shape", "The exponent of a Pareto law.", json!({ "type": "number", "exclusiveMinimum": 1 })),
                ("values", "Amounts of which each is as probable.", json!({ "type": "array", "items": schema_parts::reference(amount), "minItems": 1 })),
                ("file", "A file of amounts, one a line.", json!({ "type": "string" })),
            ]),
            &[],
        ),
    ] })
}
