//! The traces of a pipe in a spec, and the groups of links that start together.
//!
//! ```toml
//! [[link]]
//! group = "cell"                                   # in a link: what it starts with; absent: with the run
//! trace = "lte.csv"                                # in a link or a direction: a file beside the spec, by its ending
//! trace = { file = "lte.up", format = "mahimahi", end = "repeat", offset = "10s" }
//!                       # formats: mahimahi, csv, theaterq, netem-trace    ends: repeat, hold, reset, stop
//! trace = { poisson = "0.57Mbit", length = "60s", seed = 7 }      # opportunities of 1504 bytes at random times
//! trace = ["rate.json", "delay.json"]              # several that set different values
//!
//! [group.cell]
//! start = "10s"                                    # of the run; or "first-packet", or "command" (fastpath ctl)
//! ```
//!
//! Until its traces start a link has its own values. `repeat`: the trace starts over; `hold`: its
//! last values stay; `reset`: the link's own values return; `stop`: nothing is sent any more.
//! `.csv` is CSV with named columns, `.json` netem-trace, anything else Mahimahi.

use crate::fields::{Field, Fields};
use crate::loss::word;
use crate::mistake::Remarks;
use crate::topology::{End, Start};
use crate::trace::{Format, Timeline};
use crate::tree::Tree;
use fastpath_link::Opportunities;
use fastpath_units::{Duration, Rate, Time};

const FORMATS: [&str; 4] = ["mahimahi", "csv", "theaterq", "netem-trace"];
const ENDS: [&str; 4] = ["repeat", "hold", "reset", "stop"];
/// The least and the most a round of random opportunities lasts if the spec does not say: a minute.
const POISSON_LENGTH: Duration = Duration::from_secs(60);

/// Gives the text of a file that a spec names, or says why not.
pub type Files<'f> = dyn Fn(&str) -> Result<String, String> + 'f;

/// A trace as a pipe of the spec has it.
#[derive(Clone, Debug)]
pub(crate) struct TraceDraft {
    pub(crate) source: String,
    pub(crate) timeline: Timeline,
    pub(crate) end: End,
    pub(crate) offset: Duration,
}

/// The traces of a link or direction.
pub(crate) fn read(field: &Field, files: &Files, remarks: &mut Remarks) -> Vec<TraceDraft> {
    let elements = field.elements().unwrap_or_else(|| vec![field.clone()]);
    let mut drafts: Vec<TraceDraft> = Vec::new();
    for element in &elements {
        let Some(draft) = one(element, files, remarks) else { continue };
        let keys = draft.timeline.keys();
        if let Some(key) =
            keys.iter().find(|key| drafts.iter().any(|other| other.timeline.keys().contains(key)))
        {
            let what = format!("{key} is set by two traces at once");
            remarks.mistake(element.at, what, "remove one of them, or the column from one");
        }
        drafts.push(draft);
    }
    drafts
}

fn one(field: &Field, files: &Files, remarks: &mut Remarks) -> Option<TraceDraft> {
    if let Tree::Text(path) = field.value {
        let timeline = file(field, path, by_ending(path), files, remarks)?;
        return Some(TraceDraft {
            source: path.to_string(),
            timeline,
            end: End::Repeat,
            offset: Duration::ZERO,
        });
    }
    let mut fields = field.table("trace", "\"lte.csv\"", remarks)?;
    let format = fields.get("format");
    let (source, timeline) = match (fields.get("file"), fields.get("poisson")) {
        (Some(path_field), None) => {
            let path = path_field.text("lte.csv", remarks)?;
            let format = match &format {
                None => by_ending(path),
                Some(field) => match word(field, "a format of traces", &FORMATS, remarks)? {
                    0 => Format::Mahimahi,
                    1 => Format::Csv,
                    2 => Format::TheaterQ,
                    _ => Format::NetemTrace,
                },
            };
            (path.to_owned(), file(&path_field, path, format, files, remarks)?)
        }
        (None, Some(rate)) => {
            if let Some(format) = format {
                remarks.mistake(format.at, "format is of a file, and this is poisson", "remove format");
            }
            let timeline = poisson(&rate, &mut fields, remarks)?;
            ("poisson".to_owned(), timeline)
        }
        (None, None) => {
            remarks.mistake(
                field.at,
                "trace has no file",
                "write file = \"lte.csv\", or poisson = \"5Mbit\"",
            );
            return None;
        }
        (Some(_), Some(poisson)) => {
            remarks.mistake(poisson.at, "trace has a file and poisson", "keep one of them");
            return None;
        }
    };
    let end_field = fields.get("end");
    let end = match &end_field {
        None => End::Repeat,
        Some(field) => {
            [End::Repeat, End::Hold, End::Reset, End::Stop][word(field, "an end of a trace", &ENDS, remarks)?]
        }
    };
    if let (End::Hold, Timeline::Opportunities(_), Some(field)) = (end, &timeline, &end_field) {
        let what = "opportunities are moments, and have no last value to hold";
        remarks.mistake(field.at, what, "write end = \"repeat\", \"reset\" or \"stop\"");
    }
    let offset = match fields.get("offset") {
        None => Duration::ZERO,
        Some(field) => {
            let offset: Duration = field.quantity("10s", remarks)?;
            if offset >= timeline.length() {
                let what =
                    format!("offset {offset} is not within the trace, which lasts {}", timeline.length());
                remarks.mistake(field.at, what, "write a shorter one");
                return None;
            }
            offset
        }
    };
    fields.finish(remarks);
    Some(TraceDraft { source, timeline, end, offset })
}

fn by_ending(path: &str) -> Format {
    match path.rsplit_once('.') {
        Some((_, "csv")) => Format::Csv,
        Some((_, "json")) => Format::NetemTrace,
        _ => Format::Mahimahi,
    }
}

fn file(field: &Field, path: &str, format: Format, files: &Files, remarks: &mut Remarks) -> Option<Timeline> {
    let text = match files(path) {
        Ok(text) => text,
        Err(why) => {
            let instead = "write the path of a trace, from where this file is";
            remarks.mistake(field.at, format!("{path}: {why}"), instead);
            return None;
        }
    };
    match Timeline::read(format, &text) {
        Ok(timeline) => Some(timeline),
        Err(mistakes) => {
            remarks.mistakes_in(path, field.at, mistakes);
            None
        }
    }
}

fn poisson(field: &Field, fields: &mut Fields, remarks: &mut Remarks) -> Option<Timeline> {
    let rate: Rate = field.quantity("5Mbit", remarks)?;
    let length = match fields.get("length") {
        None => POISSON_LENGTH,
        Some(field) => crate::queue::positive(&field, "60s", remarks)?,
    };
    let seed = match fields.get("seed") {
        None => 1,
        Some(field) => field.whole(0..=u64::MAX, remarks)?,
    };
    let drawn = Opportunities::poisson(rate, length, seed);
    if drawn.is_none() {
        let what = format!("no or too many opportunities make {rate} for {length}");
        remarks.mistake(field.at, what, "write another length or rate");
    }
    drawn.map(Timeline::Opportunities)
}

/// When the traces of a group start.
pub(crate) fn start(fields: &mut Fields, remarks: &mut Remarks) -> Start {
    let Some(field) = fields.get("start") else { return Start::At(Time::ZERO) };
    match field.value {
        Tree::Text(text) if text == "first-packet" => Start::FirstPacket,
        Tree::Text(text) if text == "command" => Start::Command,
        _ => {
            let at: Option<Duration> = field.quantity("10s", remarks);
            Start::At(Time::ZERO + at.unwrap_or(Duration::ZERO))
        }
    }
}
