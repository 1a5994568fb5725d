//! Laws of amounts: lengths of periods and pauses, bytes of answers.
//!
//! ```toml
//! on    = "500ms"                                            # the mean of an exponential law
//! size  = "30kB"                                             # bytes: always this many
//! off   = { law = "pareto", mean = "2s", shape = 1.5 }       # exponential, constant
//! think = { values = ["1s", "20s"] }                         # each as probable
//! size  = { file = "sizes.txt" }                             # an amount a line
//! ```

use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::mistake::{Mistake, Remarks};
use crate::schema_parts;
use crate::tree::Tree;
use crate::write::{table, text};
use fastpath_traffic::AmountLaw;
use fastpath_units::{Bytes, Duration};
use serde_json::{Value, json};

const SHAPE: f64 = 1.5;
const LAWS: [&str; 3] = ["exponential", "constant", "pareto"];

/// What an amount counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
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
    pub(crate) fn read(self, field: &Field, remarks: &mut Remarks) -> Option<u64> {
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

    /// Reads an amount above 0.
    fn read_mean(self, field: &Field, remarks: &mut Remarks) -> Option<u64> {
        let amount = self.read(field, remarks)?;
        if amount == 0 {
            let instead = format!("write {} = \"{}\"", field.key, self.example());
            remarks.mistake(field.at, format!("{} is 0", field.key), instead);
            return None;
        }
        Some(amount)
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

/// Reads a law. Lists and files of amounts are known only with `files`.
pub(crate) fn read(
    field: &Field,
    amount: Amount,
    files: Option<&Files>,
    remarks: &mut Remarks,
) -> Option<AmountLaw> {
    let Tree::Table(_) = field.value else {
        return amount.read_mean(field, remarks).map(|mean| match amount {
            Amount::Bytes => AmountLaw::Constant(mean),
            Amount::Time => AmountLaw::Exponential(mean),
        });
    };
    let example = format!("{{ law = \"pareto\", mean = \"{}\", shape = 1.5 }}", amount.example());
    let mut fields = field.table(field.key.clone(), &example, remarks)?;
    let values = files.and_then(|files| values(&mut fields, amount, files, remarks));
    let law = match values {
        Some(values) => values.map(|values| AmountLaw::Values(values.into())),
        None => with_mean(&mut fields, amount, remarks),
    };
    fields.finish(remarks);
    law
}

/// Reads a law by its name and mean.
fn with_mean(fields: &mut Fields, amount: Amount, remarks: &mut Remarks) -> Option<AmountLaw> {
    let law = fields.get("law").map_or(Some(0), |field| field.word("a law", &LAWS, remarks));
    let mean = match fields.get("mean") {
        Some(field) => amount.read_mean(&field, remarks),
        None => {
            let instead = format!("write mean = \"{}\"", amount.example());
            remarks.mistake(fields.at, format!("{} has no mean", fields.what), instead);
            None
        }
    };
    let shape = match fields.get("shape") {
        None => Some(SHAPE),
        Some(field) if matches!(law, Some(0 | 1)) => {
            remarks.mistake(field.at, "shape is of a Pareto law", "write law = \"pareto\", or remove it");
            None
        }
        Some(field) => {
            let shape = field.number("1.5", remarks);
            if shape.is_some_and(|shape| shape <= 1.0) {
                let what = "a Pareto law with a shape of at most 1 has no finite mean";
                remarks.mistake(field.at, what, "write shape = 1.5, or another number above 1");
            }
            shape.filter(|shape| *shape > 1.0)
        }
    };
    let (law, mean, shape) = (law?, mean?, shape?);
    Some(match law {
        0 => AmountLaw::Exponential(mean),
        1 => AmountLaw::Constant(mean),
        _ => AmountLaw::Pareto { mean, shape },
    })
}

/// Reads a list or a file of amounts. `None` if there is neither.
fn values(
    fields: &mut Fields,
    amount: Amount,
    files: &Files,
    remarks: &mut Remarks,
) -> Option<Option<Vec<u64>>> {
    match (fields.get("values"), fields.get("file")) {
        (None, None) => None,
        (Some(listed), None) => Some(list(&listed, amount, remarks)),
        (None, Some(file)) => Some(from_file(&file, amount, files, remarks)),
        (Some(_), Some(file)) => {
            remarks.mistake(file.at, format!("{} has values and a file", fields.what), "keep one of them");
            Some(None)
        }
    }
}

fn list(field: &Field, amount: Amount, remarks: &mut Remarks) -> Option<Vec<u64>> {
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

/// Writes a law.
pub(crate) fn write(law: &AmountLaw, amount: Amount) -> Value {
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

/// The schema of a law, with lists and files of amounts if `has_values`.
pub(crate) fn schema(amount: Amount, has_values: bool) -> Value {
    let one = || {
        schema_parts::reference(match amount {
            Amount::Bytes => "bytes",
            Amount::Time => "duration",
        })
    };
    let mut properties = schema_parts::properties([
        ("law", "The law of the amounts.", json!({ "enum": LAWS })),
        ("mean", "The mean.", one()),
        ("shape", "The exponent of a Pareto law.", json!({ "type": "number", "exclusiveMinimum": 1 })),
    ]);
    if has_values {
        let list = json!({ "type": "array", "items": one(), "minItems": 1 });
        properties.extend(schema_parts::properties([
            ("values", "Amounts of which each is as probable.", list),
            ("file", "A file of amounts, one a line.", json!({ "type": "string" })),
        ]));
    }
    let required: &[&str] = if has_values { &[] } else { &["mean"] };
    json!({ "anyOf": [one(), schema_parts::table(properties, required)] })
}
