//! What the writers share: quantities as text, probabilities, tables, and JSON as TOML.

use fastpath_units::Probability;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Returns a value as an inline value of TOML, which differs from JSON by its tables.
pub fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let bare = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            let key = |key: &String| match bare(key) && !key.is_empty() {
                true => key.clone(),
                false => json!(key).to_string(),
            };
            let entries = table.iter().map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Returns a quantity as text.
pub fn text(quantity: impl Display) -> Value {
    Value::String(quantity.to_string())
}

/// Returns `"1%"`, or a number where that would not be exact.
pub fn of_probability(p: Probability) -> Value {
    let text = p.to_string();
    if text.parse() == Ok(p) { Value::String(text) } else { json!(p.get()) }
}

/// Returns a table.
pub fn table<'k>(entries: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

/// Returns a table whose first key is `kind`.
pub fn of_kind<'k>(kind: &str, entries: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    table(std::iter::once(("kind", json!(kind))).chain(entries))
}
