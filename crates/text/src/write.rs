//! What the writers share: quantities as text, probabilities, tables, and JSON as TOML.

use fastpath_units::Probability;
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Returns a value as an inline value of TOML, which differs from JSON by its tables.
pub fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries = table.iter().map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        // TOML has no DEL in a text; JSON has.
        Value::String(text) => json!(text).to_string().replace('\u{7f}', "\\u007F"),
        other => other.to_string(),
    }
}

/// Returns a key of TOML, in quotes where it needs them.
pub fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare { name.to_owned() } else { inline(&json!(name)) }
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
