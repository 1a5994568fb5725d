//! The values of a file with their places: what the readers read. TOML and JSON are parsed into
//! the same tree, so that one reader serves both.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree<'t> {
    /// Text.
    Text(Cow<'t, str>),
    /// A whole number.
    Integer(Integer<'t>),
    /// As written, without underscores.
    Float(Cow<'t, str>),
    /// True or false.
    Boolean(bool),
    /// A date or a time of TOML.
    Date,
    /// Of JSON: as if the key were not there.
    Null,
    /// Values in a row.
    Array(Vec<Placed<'t>>),
    /// Keys and values.
    Table(TreeTable<'t>),
}

/// A whole number as written: digits in a radix, without a prefix.
#[derive(Clone, PartialEq, Debug)]
pub struct Integer<'t> {
    /// Its digits, with a sign.
    pub digits: Cow<'t, str>,
    /// Their radix: 2, 8, 10 or 16.
    pub radix: u32,
}

/// A value and its place in the text.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed<'t> {
    /// Byte offset of its first character.
    pub at: usize,
    /// Byte offset behind its last character.
    pub end: usize,
    /// The value.
    pub value: Tree<'t>,
}

/// Keys and values in the order of the text; every key occurs once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeTable<'t> {
    /// Both, in this order.
    pub entries: Vec<TreeEntry<'t>>,
}

/// A key of a table and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeEntry<'t> {
    /// The key.
    pub key: Cow<'t, str>,
    /// Byte offset of the key.
    pub key_at: usize,
    /// The value.
    pub placed: Placed<'t>,
}

impl<'t> TreeTable<'t> {
    /// Returns the value under a key.
    pub fn get(&self, key: &str) -> Option<&Placed<'t>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.placed)
    }

    /// Returns a table of JSON that was parsed without places: all are at offset 0.
    pub fn of_json(table: &'t Map<String, Value>) -> TreeTable<'t> {
        let entry = |(key, value): (&'t String, &'t Value)| TreeEntry {
            key_at: 0,
            key: Cow::Borrowed(key),
            placed: Placed::of_json(value),
        };
        TreeTable { entries: table.iter().map(entry).collect() }
    }

    /// Returns a table of TOML.
    pub fn of_toml(table: DeTable<'t>) -> TreeTable<'t> {
        let entry = |(key, value): (toml::Spanned<Cow<'t, str>>, toml::Spanned<DeValue<'t>>)| TreeEntry {
            key_at: key.span().start,
            key: key.into_inner(),
            placed: Placed::of_toml(value),
        };
        let mut entries: Vec<TreeEntry> = table.into_iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.key_at);
        TreeTable { entries }
    }
}

impl<'t> Placed<'t> {
    /// Returns the value under a key. `None` also for what is not a table.
    pub fn get(&self, key: &str) -> Option<&Placed<'t>> {
        let Tree::Table(table) = &self.value else { return None };
        table.get(key)
    }

    /// Returns a text, number or truth value as it is written.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Tree::Text(text) | Tree::Float(text) => Some(text),
            Tree::Integer(number) => Some(&number.digits),
            Tree::Boolean(value) => Some(if *value { "true" } else { "false" }),
            Tree::Date | Tree::Null | Tree::Array(_) | Tree::Table(_) => None,
        }
    }

    /// Returns whether nothing is given.
    pub fn is_null(&self) -> bool {
        self.value == Tree::Null
    }

    /// Returns a value of JSON that was parsed without places: all are at offset 0.
    pub fn of_json(value: &'t Value) -> Placed<'t> {
        let value = match value {
            Value::Null => Tree::Null,
            Value::Bool(value) => Tree::Boolean(*value),
            Value::Number(number) => {
                let digits = Cow::Owned(number.to_string());
                let is_whole = number.is_i64() || number.is_u64();
                if is_whole { Tree::Integer(Integer { digits, radix: 10 }) } else { Tree::Float(digits) }
            }
            Value::String(text) => Tree::Text(Cow::Borrowed(text)),
            Value::Array(elements) => Tree::Array(elements.iter().map(Placed::of_json).collect()),
            Value::Object(table) => Tree::Table(TreeTable::of_json(table)),
        };
        Placed { at: 0, end: 0, value }
    }

    fn of_toml(value: toml::Spanned<DeValue<'t>>) -> Placed<'t> {
        let std::ops::Range { start: at, end } = value.span();
        let value = match value.into_inner() {
            DeValue::String(text) => Tree::Text(text),
            DeValue::Integer(number) => {
                Tree::Integer(Integer { digits: number.as_str().to_owned().into(), radix: number.radix() })
            }
            DeValue::Float(number) => Tree::Float(number.as_str().to_owned().into()),
            DeValue::Boolean(value) => Tree::Boolean(value),
            DeValue::Datetime(_) => Tree::Date,
            DeValue::Array(elements) => Tree::Array(elements.into_iter().map(Placed::of_toml).collect()),
            DeValue::Table(table) => Tree::Table(TreeTable::of_toml(table)),
        };
        Placed { at, end, value }
    }
}

impl Tree<'_> {
    /// Returns the value as JSON. `None` for what JSON does not have: a date, a number that is not
    /// finite, a whole number of more than 64 bits.
    pub fn json(&self) -> Option<Value> {
        Some(match self {
            Tree::Text(text) => Value::from(text.as_ref()),
            Tree::Integer(Integer { digits, radix }) => match i64::from_str_radix(digits, *radix) {
                Ok(number) => Value::from(number),
                Err(_) => Value::from(u64::from_str_radix(digits, *radix).ok()?),
            },
            Tree::Float(number) => {
                let number = number.replace('_', "").parse().ok();
                Value::Number(number.and_then(serde_json::Number::from_f64)?)
            }
            Tree::Boolean(value) => Value::from(*value),
            Tree::Date => return None,
            Tree::Null => Value::Null,
            Tree::Array(elements) => {
                Value::Array(elements.iter().map(|placed| placed.value.json()).collect::<Option<_>>()?)
            }
            Tree::Table(table) => {
                let entry = |entry: &TreeEntry| Some((entry.key.to_string(), entry.placed.value.json()?));
                Value::Object(table.entries.iter().map(entry).collect::<Option<_>>()?)
            }
        })
    }
}

impl fmt::Display for Integer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.radix {
            2 => "0b",
            8 => "0o",
            16 => "0x",
            _ => "",
        };
        write!(f, "{prefix}{}", self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tree_is_json_unless_json_has_no_such_value() {
        let text = "a = [1, 0x1f, -2.5, 1_000.5, true, 'x', { b = 18446744073709551615 }]";
        let tree = TreeTable::of_toml(DeTable::parse(text).unwrap().into_inner());
        let value = tree.get("a").unwrap().value.json();
        assert_eq!(
            value,
            Some(json!([1, 31, -2.5, 1000.5, true, "x", { "b": 18_446_744_073_709_551_615_u64 }]))
        );
        for text in ["a = 2020-01-01", "a = [nan]", "a = { b = inf }"] {
            let tree = TreeTable::of_toml(DeTable::parse(text).unwrap().into_inner());
            assert_eq!(tree.get("a").unwrap().value.json(), None, "{text}");
        }
    }
}
