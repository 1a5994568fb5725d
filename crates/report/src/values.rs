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
