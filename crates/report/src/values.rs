//! Values of records as text and as series of charts.

use crate::chart::{Axis, Scale, Series};
use crate::short;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of lines in one chart.
const LINES_MAX: usize = 10;

/// Returns an axis.
pub(super) fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

/// Writes an estimate and its interval: `2 [1, 3]`.
pub(super) fn interval(value: &Value) -> String {
    if value.is_number() {
        return short(number(value));
    }
    let [middle, low, high] = ["value", "low", "high"].map(|name| number(&value[name]));
    if low.is_nan() && high.is_nan() && !middle.is_nan() {
        return format!("{} (no error bar)", short(middle));
    }
    if low == high {
        return short(middle);
    }
    format!("{} [{}, {}]", short(middle), short(low), short(high))
}

/// Returns the name of a column or field as words, a comma and its unit: `offered_pps` is `offered,
/// packets/s`. The names that records have most have words of their own.
pub fn words(name: &str) -> String {
    const KNOWN: [(&str, &str); 4] = [
        ("T_ns", "time per packet, ns"),
        ("p", "frame size, bytes"),
        ("h", "steps per packet"),
        ("share", "share forwarded"),
    ];
    const UNITS: [(&str, &str); 16] = [
        ("packets_per_second", "packets/s"),
        ("packets_per_s", "packets/s"),
        ("bytes_per_s", "bytes/s"),
        ("events_per_second", "events/s"),
        ("gbit_per_s", "Gbit/s"),
        ("kbit_s", "kbit/s"),
        ("mbit_s", "Mbit/s"),
        ("pps", "packets/s"),
        ("Mpps", "million packets/s"),
        ("cycles", "cycles"),
        ("percent", "%"),
        ("bytes", "bytes"),
        ("pct", "%"),
        ("us", "µs"),
        ("ms", "ms"),
        ("ns", "ns"),
    ];
    // Parameters of the simulator.
    match name.split('.').collect::<Vec<_>>()[..] {
        ["machine", unit, field] => return format!("{} of {unit}", words(field)),
        ["program", parameter] => return format!("{parameter} of the program"),
        ["workload", "size"] => return "frame size, bytes".to_owned(),
        ["workload", field] => return format!("{} of the workload", words(field)),
        _ => {}
    }
    if let Some((_, words)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return (*words).to_owned();
    }
    if let Some((_, unit)) = UNITS.iter().find(|(suffix, _)| *suffix == name) {
        return (*unit).to_owned();
    }
    let split = |(suffix, unit): &(&str, &'static str)| {
        Some((name.strip_suffix(suffix)?.strip_suffix('_')?.to_owned(), *unit))
    };
    let (words, unit) = UNITS.iter().find_map(split).map_or((name.to_owned(), None), |(w, u)| (w, Some(u)));
    // The symbol of a time with an index stays as it is.
    let words = words.split("t_f").map(|part| part.replace('_', " ")).collect::<Vec<_>>().join("t_f");
    unit.map_or(words.clone(), |unit| format!("{words}, {unit}"))
}

/// Returns a number, or NaN.
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Returns a word or number as text; empty for nothing.
pub(super) fn word(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Groups points into series by name, in the order of `key`.
pub(super) fn series<K: Ord>(points: impl Iterator<Item = (K, String, f64, f64)>) -> Vec<Series> {
    let mut by_key: BTreeMap<K, Series> = BTreeMap::new();
    for (key, name, x, y) in points {
        by_key.entry(key).or_insert_with(|| Series { name, points: Vec::new() }).points.push((x, y));
    }
    let mut all: Vec<Series> = by_key.into_values().collect();
    all.iter_mut().for_each(|s| s.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    all
}

/// Returns at most [`LINES_MAX`] of the series, evenly chosen.
pub(super) fn thinned(all: Vec<Series>) -> Vec<Series> {
    let every = all.len().div_ceil(LINES_MAX).max(1);
    all.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_become_words_with_units() {
        for (name, text) in [
            ("T_ns", "time per packet, ns"),
            ("offered_packets_per_second", "offered, packets/s"),
            ("packets_per_second", "packets/s"),
            ("t_f_mean_us", "t_f mean, µs"),
            ("share_of_line_rate_pct", "share of line rate, %"),
            ("latency_p50_us", "latency p50, µs"),
            ("cores", "cores"),
            ("bonus", "bonus"),
            ("machine.cpu.cores", "cores of cpu"),
            ("program.h", "h of the program"),
            ("workload.size", "frame size, bytes"),
        ] {
            assert_eq!(words(name), text);
        }
    }
}
