//! `[engine]`: what the spec asks of a run in real time.
//!
//! ```toml
//! [engine]
//! tolerance = "1ms"       # a frame released later breaks the run: it exits with 1 and names the links
//! late      = "deliver"   # or "drop": what becomes of such a frame
//! idle      = "save"      # or "busy": spin instead of sleeping
//! workers   = "auto"      # or a number of threads, or the cores they run on: [1, 3]
//! ```

use super::fields::{Field, Fields};
use crate::mistake::{Remarks, nearest};
use crate::real_time::{Idle, Late, RealTime, Workers};
use fastpath_units::Duration;
use std::num::NonZeroUsize;
use toml::de::DeValue;

/// More workers than any machine has cores.
const WORKERS_MAX: u64 = 1024;

pub(super) fn read(mut fields: Fields, remarks: &mut Remarks) -> RealTime {
    let tolerance = fields.get("tolerance").and_then(|field| tolerance(&field, remarks));
    let late = fields
        .get("late")
        .and_then(|field| word(&field, [("deliver", Late::Deliver), ("drop", Late::Drop)], remarks));
    let idle = fields
        .get("idle")
        .and_then(|field| word(&field, [("busy", Idle::Busy), ("save", Idle::Save)], remarks));
    let workers = fields.get("workers").and_then(|field| workers(&field, remarks));
    fields.finish(remarks);
    RealTime { tolerance, late, idle, workers }
}

fn tolerance(field: &Field, remarks: &mut Remarks) -> Option<Duration> {
    let tolerance: Duration = field.quantity("1ms", remarks)?;
    if tolerance == Duration::ZERO {
        remarks.mistake(field.at, "nothing is released without any delay", "write tolerance = \"1ms\"");
        return None;
    }
    Some(tolerance)
}

fn word<T: Copy, const N: usize>(field: &Field, words: [(&str, T); N], remarks: &mut Remarks) -> Option<T> {
    let text = field.text(words[0].0, remarks)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let names = words.map(|(word, _)| word);
        let meant = nearest(text, names.iter().copied()).map(|meant| format!("write \"{meant}\""));
        let all = || format!("write \"{}\"", names.join("\" or \""));
        remarks.mistake(field.at, format!("'{text}' is no {}", field.key), meant.unwrap_or_else(all));
    }
    found
}

fn workers(field: &Field, remarks: &mut Remarks) -> Option<Workers> {
    if let Some(elements) = field.elements() {
        let cores: Vec<u32> = elements
            .iter()
            .filter_map(|core| core.whole(0..=WORKERS_MAX, remarks))
            .map(|core| core as u32)
            .collect();
        if cores.is_empty() {
            remarks.mistake(field.at, "no core is named", "write workers = [0], or \"auto\"");
            return None;
        }
        return Some(Workers::Cores(cores));
    }
    if matches!(field.value, DeValue::String(_)) {
        return word(field, [("auto", ())], remarks).map(|()| Workers::Auto);
    }
    let count = field.whole(1..=WORKERS_MAX, remarks)?;
    NonZeroUsize::new(count as usize).map(Workers::Count)
}
