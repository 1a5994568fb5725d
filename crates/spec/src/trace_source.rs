//! The traces of a link or of one of its directions.
//!
//! ```toml
//! [[link]]
//! # what the traces start with; absent: with the run
//! group = "cell"
//! # in a link or a direction: a file next to the spec; its extension gives the format
//! trace = "lte.csv"
//! trace = { file = "lte.up", format = "mahimahi", end = "repeat", offset = "10s" }
//! # formats: mahimahi, csv, theaterq, netem-trace    ends: repeat, hold, reset, stop
//! # opportunities of 1504 bytes at random times
//! trace = { poisson = "0.57Mbit", length = "60s", seed = 7 }
//! trace = ["rate.json", "delay.json"]              # several that set different values
//! ```
//!
//! Until its traces start a link has its own values. `repeat`: the trace starts over; `hold`: its
//! last values stay; `reset`: the link's own values return; `stop`: nothing is sent any more.
//! `.csv` is CSV with named columns, `.json` netem-trace, anything else Mahimahi.

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::trace::Format;
use crate::tree::Tree;
use crate::write::text;
use fastpath_units::{Duration, Rate};
use serde_json::{Map, Value, json};

/// Values over time.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceDescription {
    /// Where the values come from.
    pub source: TraceSource,
    /// What comes after the end.
    pub end: TraceEnd,
    /// Where in the trace to begin.
    pub offset: Duration,
}

/// Where the values of a trace come from. Prints as a name for people.
#[derive(Clone, PartialEq, Debug)]
pub enum TraceSource {
    /// A file.
    File {
        /// Its name, relative to the description.
        path: String,
        /// Its format; `None`: that of the extension of its name.
        format: Option<Format>,
    },
    /// Opportunities at random times.
    Poisson {
        /// The mean rate of the opportunities.
        rate: Rate,
        /// The length of a round.
        length: Duration,
        /// The seed of the times.
        seed: u64,
    },
}

/// What comes after the end of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceEnd {
    /// The trace starts over.
    #[default]
    Repeat,
    /// The last values stay.
    Hold,
    /// The values of the spec return.
    Reset,
    /// Nothing is sent any more; queued packets wait.
    Stop,
}

const FORMATS: [(&str, Format); 4] = [
    ("mahimahi", Format::Mahimahi),
    ("csv", Format::Csv),
    ("theaterq", Format::TheaterQ),
    ("netem-trace", Format::NetemTrace),
];
const ENDS: [(&str, TraceEnd); 4] = [
    ("repeat", TraceEnd::Repeat),
    ("hold", TraceEnd::Hold),
    ("reset", TraceEnd::Reset),
    ("stop", TraceEnd::Stop),
];
/// How long a round of random opportunities lasts if the spec does not say.
const POISSON_LENGTH: Duration = Duration::from_secs(60);
/// The seed of random opportunities if the spec does not say.
const POISSON_SEED: u64 = 1;

impl std::fmt::Display for TraceSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TraceSource::File { path, .. } => f.write_str(path),
            TraceSource::Poisson { .. } => f.write_str("poisson"),
        }
    }
}

/// Reads the traces of a link or direction.
pub(crate) fn read(field: &Field, remarks: &mut Remarks) -> Vec<TraceDescription> {
    let elements = field.elements().unwrap_or_else(|| vec![field.clone()]);
    elements.iter().filter_map(|element| one(element, remarks)).collect()
}

fn one(field: &Field, remarks: &mut Remarks) -> Option<TraceDescription> {
    let file = |path: &str, format| TraceSource::File { path: path.to_owned(), format };
    if let Tree::Text(path) = field.value {
        let (end, offset) = (TraceEnd::default(), Duration::ZERO);
        return Some(TraceDescription { source: file(path, None), end, offset });
    }
    let mut fields = field.table("trace", "\"lte.csv\"", remarks)?;
    let format = fields.get("format");
    let source = match (fields.get("file"), fields.get("poisson")) {
        (Some(path), None) => {
            let path = path.text("lte.csv", remarks)?;
            let format = match &format {
                None => None,
                Some(field) => Some(one_of(field, "a format of traces", &FORMATS, remarks)?),
            };
            file(path, format)
        }
        (None, Some(rate)) => {
            if let Some(format) = format {
                remarks.mistake(
                    format.at,
                    "format applies to a file, and this trace is poisson",
                    "remove format",
                );
            }
            poisson(&rate, &mut fields, remarks)?
        }
        (None, None) => {
            let instead = "write file = \"lte.csv\", or poisson = \"5Mbit\"";
            remarks.mistake(field.at, "trace has no file", instead);
            return None;
        }
        (Some(_), Some(poisson)) => {
            remarks.mistake(poisson.at, "trace has a file and poisson", "keep one of them");
            return None;
        }
    };
    let end = match fields.get("end") {
        None => TraceEnd::default(),
        Some(field) => one_of(&field, "an end of a trace", &ENDS, remarks)?,
    };
    let offset = match fields.get("offset") {
        None => Duration::ZERO,
        Some(field) => field.quantity("10s", remarks)?,
    };
    fields.finish(remarks);
    Some(TraceDescription { source, end, offset })
}

fn one_of<T: Copy>(field: &Field, what: &str, known: &[(&str, T)], remarks: &mut Remarks) -> Option<T> {
    let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
    field.word(what, &words, remarks).map(|place| known[place].1)
}

fn poisson(field: &Field, fields: &mut Fields, remarks: &mut Remarks) -> Option<TraceSource> {
    let rate: Rate = field.quantity("5Mbit", remarks)?;
    let length = match fields.get("length") {
        None => POISSON_LENGTH,
        Some(field) => crate::queue::positive(&field, "60s", remarks)?,
    };
    let seed = match fields.get("seed") {
        None => POISSON_SEED,
        Some(field) => field.whole(0..=u64::MAX, remarks)?,
    };
    Some(TraceSource::Poisson { rate, length, seed })
}

/// Returns the format of a file by the extension of its name.
pub(crate) fn format_by_ending(path: &str) -> Format {
    match path.rsplit_once('.') {
        Some((_, "csv")) => Format::Csv,
        Some((_, "json")) => Format::NetemTrace,
        _ => Format::Mahimahi,
    }
}

/// Writes traces in the canonical form: a table, or a list of tables.
pub(crate) fn write(traces: &[TraceDescription]) -> Value {
    match traces {
        [one] => write_one(one),
        several => several.iter().map(write_one).collect(),
    }
}

fn write_one(TraceDescription { source, end, offset }: &TraceDescription) -> Value {
    let mut table = Map::new();
    let mut put = |key: &str, value| _ = table.insert(key.to_owned(), value);
    match source {
        TraceSource::File { path, format } => {
            put("file", json!(path));
            if let Some(format) = format {
                put("format", json!(word_of(&FORMATS, *format)));
            }
        }
        TraceSource::Poisson { rate, length, seed } => {
            put("poisson", text(rate));
            put("length", text(length));
            put("seed", json!(seed));
        }
    }
    put("end", json!(word_of(&ENDS, *end)));
    if !offset.is_zero() {
        put("offset", text(offset));
    }
    Value::Object(table)
}

fn word_of<T: Copy + PartialEq>(known: &[(&'static str, T)], value: T) -> &'static str {
    known.iter().find(|(_, other)| *other == value).map_or("", |(word, _)| word)
}

/// The schema of the traces of a link or direction.
pub(crate) fn schema() -> Value {
    let words = |words: Vec<&str>| json!({ "enum": words });
    let table = schema_parts::table(
        schema_parts::properties([
            ("file", "The name of a file, relative to the description.", json!({ "type": "string" })),
            (
                "format",
                "The format of the file; by default that of its extension.",
                words(FORMATS.iter().map(|(word, _)| *word).collect()),
            ),
            ("poisson", "The rate of opportunities at random times.", schema_parts::reference("rate")),
            ("length", "The length of a round of opportunities.", schema_parts::reference("duration")),
            ("seed", "The seed of the random times.", json!({ "type": "integer", "minimum": 0 })),
            ("end", "What comes after the end.", words(ENDS.iter().map(|(word, _)| *word).collect())),
            ("offset", "Where in the trace to begin.", schema_parts::reference("duration")),
        ]),
        &[],
    );
    schema_parts::one_or_list(json!({ "anyOf": [{ "type": "string" }, table] }))
}
