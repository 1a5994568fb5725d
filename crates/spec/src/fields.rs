//! Reading a TOML table key by key: every mistake is collected, none stops the reading, and a key
//! nobody asked for is a mistake too.

use crate::mistake::{Remarks, nearest};
use fastpath_units::{ParseError, Probability};
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A table being read.
pub(super) struct Fields<'d> {
    /// What the table is about, for messages: `link a-b`.
    pub(super) what: String,
    /// Byte offset to point at when something is missing.
    pub(super) at: usize,
    table: &'d DeTable<'d>,
    asked: Vec<String>,
}

/// A value, by the key it was found under.
#[derive(Clone)]
pub(super) struct Field<'d> {
    pub(super) key: String,
    /// Byte offset of the value.
    pub(super) at: usize,
    pub(super) value: &'d DeValue<'d>,
}

impl<'d> Fields<'d> {
    pub(super) fn new(what: impl Into<String>, at: usize, table: &'d DeTable<'d>) -> Fields<'d> {
        Fields { what: what.into(), at, table, asked: Vec::new() }
    }

    /// The value under `key`, and the key is known from now on.
    pub(super) fn get(&mut self, key: &str) -> Option<Field<'d>> {
        self.asked.push(key.to_owned());
        self.table.get(key).map(|value| field(key, value))
    }

    /// The value under `key`, without asking for it.
    pub(super) fn peek(&self, key: &str) -> Option<&'d DeValue<'d>> {
        self.table.get(key).map(Spanned::get_ref)
    }

    /// Byte offset of the value under `path`, a key in tables within each other.
    pub(super) fn place(&self, path: &[&str]) -> Option<usize> {
        let (key, tables) = path.split_last()?;
        let inner = tables.iter().try_fold(self.table, |table, key| match table.get(*key)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        });
        inner?.get(*key).map(|value| value.span().start)
    }

    /// Takes the keys that `known` accepts for known ones.
    pub(super) fn allow(&mut self, known: fn(&str) -> bool) {
        let keys = self.table.keys().map(|key| key.get_ref().as_ref()).filter(|key| known(key));
        self.asked.extend(keys.map(str::to_owned));
    }

    /// Every key with its offset and value, in the order of the text; all are known from now on.
    pub(super) fn all(&mut self) -> Vec<(usize, Field<'d>)> {
        let mut all: Vec<_> =
            self.table.iter().map(|(key, value)| (key.span().start, field(key.get_ref(), value))).collect();
        all.sort_by_key(|(at, _)| *at);
        self.asked.extend(all.iter().map(|(_, field)| field.key.clone()));
        all
    }

    /// Reports the keys nobody asked for.
    pub(super) fn finish(self, remarks: &mut Remarks) {
        for key in self.table.keys().filter(|key| !self.asked.iter().any(|asked| asked == key.get_ref())) {
            let instead = match nearest(key.get_ref(), self.asked.iter().map(String::as_str)) {
                Some(meant) => format!("write {meant}"),
                None => format!("write one of {}", self.asked.join(", ")),
            };
            remarks.mistake(
                key.span().start,
                format!("{} has no key '{}'", self.what, key.get_ref()),
                instead,
            );
        }
    }
}

fn field<'d>(key: &str, value: &'d Spanned<DeValue<'d>>) -> Field<'d> {
    Field { key: key.to_owned(), at: value.span().start, value: value.get_ref() }
}

impl<'d> Field<'d> {
    /// Text, parsed as a quantity; `example` says how one looks.
    pub(super) fn quantity<T: FromStr<Err = ParseError>>(
        &self,
        example: &str,
        remarks: &mut Remarks,
    ) -> Option<T> {
        match self.text(example, remarks)?.parse() {
            Ok(quantity) => Some(quantity),
            Err(error) => {
                let ParseError { text, what, reason, .. } = error;
                remarks.mistake(self.at, format!("'{text}' is not a {what}: {reason}"), self.like(example));
                None
            }
        }
    }

    /// `"none"` or `"0"`: what clears a value.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.value, DeValue::String(text) if matches!(&**text, "none" | "0"))
    }

    /// Text such as `"1%"` or `"none"`, or a number below 1 that says by its decimal point that it
    /// is no percentage.
    pub(super) fn probability(&self, remarks: &mut Remarks) -> Option<Probability> {
        let number = match self.value {
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            DeValue::Integer(number) if number.as_str() == "0" => Some(0.0),
            _ if self.is_none() => Some(0.0),
            _ => return self.quantity("1%", remarks),
        };
        let probability = number.filter(|&number| number < 1.0).and_then(Probability::new);
        if probability.is_none() {
            let instead = format!("{}, or \"100%\" for always", self.like("1%"));
            remarks.mistake(self.at, format!("{} is a number, and not from 0 to below 1", self.key), instead);
        }
        probability
    }

    pub(super) fn text(&self, example: &str, remarks: &mut Remarks) -> Option<&'d str> {
        let DeValue::String(text) = self.value else {
            self.wrong_kind("text", &format!("\"{example}\""), remarks);
            return None;
        };
        Some(text)
    }

    pub(super) fn switch(&self, remarks: &mut Remarks) -> Option<bool> {
        let DeValue::Boolean(value) = self.value else {
            self.wrong_kind("true or false", "true", remarks);
            return None;
        };
        Some(*value)
    }

    /// A number, whole or not.
    pub(super) fn number(&self, example: &str, remarks: &mut Remarks) -> Option<f64> {
        let text = match self.value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) => number.as_str(),
            _ => {
                self.wrong_kind("a number", example, remarks);
                return None;
            }
        };
        let number: Option<f64> =
            text.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite());
        if number.is_none() {
            let instead = format!("write {} = {example}", self.key);
            remarks.mistake(self.at, format!("{} = {text} is not a number", self.key), instead);
        }
        number
    }

    /// A whole number in `range`.
    pub(super) fn whole(&self, range: std::ops::RangeInclusive<u64>, remarks: &mut Remarks) -> Option<u64> {
        let DeValue::Integer(number) = self.value else {
            self.wrong_kind("a whole number", &range.start().to_string(), remarks);
            return None;
        };
        let value = u64::from_str_radix(number.as_str(), number.radix()).ok().filter(|n| range.contains(n));
        if value.is_none() {
            let instead = format!("write a number from {} to {}", range.start(), range.end());
            remarks.mistake(self.at, format!("{} = {number} is out of range", self.key), instead);
        }
        value
    }

    /// A whole number in `range`, which may be negative.
    pub(super) fn integer(&self, range: std::ops::RangeInclusive<i64>, remarks: &mut Remarks) -> Option<i64> {
        let DeValue::Integer(number) = self.value else {
            self.wrong_kind("a whole number", &range.start().to_string(), remarks);
            return None;
        };
        let value = i64::from_str_radix(number.as_str(), number.radix()).ok().filter(|n| range.contains(n));
        if value.is_none() {
            let instead = format!("write a number from {} to {}", range.start(), range.end());
            remarks.mistake(self.at, format!("{} = {number} is out of range", self.key), instead);
        }
        value
    }

    pub(super) fn table(
        &self,
        what: impl Into<String>,
        example: &str,
        remarks: &mut Remarks,
    ) -> Option<Fields<'d>> {
        let DeValue::Table(table) = self.value else {
            self.wrong_kind("a table", example, remarks);
            return None;
        };
        Some(Fields::new(what, self.at, table))
    }

    /// The elements of an array, under the same key.
    pub(super) fn elements(&self) -> Option<Vec<Field<'d>>> {
        let DeValue::Array(array) = self.value else { return None };
        Some(array.iter().map(|value| field(&self.key, value)).collect())
    }

    /// One text, or an array of them.
    pub(super) fn texts(&self, example: &str, remarks: &mut Remarks) -> Vec<(usize, &'d str)> {
        let elements = self.elements().unwrap_or_else(|| vec![self.clone()]);
        elements.iter().filter_map(|field| Some((field.at, field.text(example, remarks)?))).collect()
    }

    pub(super) fn wrong_kind(&self, wanted: &str, example: &str, remarks: &mut Remarks) {
        let found = match self.value {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        let instead = format!("write {} = {example}", self.key);
        remarks.mistake(self.at, format!("{} is {found}, not {wanted}", self.key), instead);
    }

    fn like(&self, example: &str) -> String {
        format!("write {} = \"{example}\"", self.key)
    }
}
