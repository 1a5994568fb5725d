//! Reads a table key by key. Every mistake is collected and none stops the reading. A key that is
//! not known is a mistake.

use crate::hints::hint;
use crate::mistake::{Remarks, choice, nearest};
use crate::tree::{Placed, Tree, TreeEntry, TreeTable};
use fastpath_units::{ParseError, Probability};
use serde_json::Value;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// A table being read.
#[derive(Debug)]
pub struct Fields<'d> {
    /// The subject of messages: `link a-b`.
    pub what: String,
    /// Byte offset of mistakes about missing keys.
    pub at: usize,
    table: &'d TreeTable<'d>,
    asked: Vec<String>,
}

/// A value, by the key it was found under.
#[derive(Clone, Debug)]
pub struct Field<'d> {
    /// The key.
    pub key: String,
    /// Byte offset of the key; in a list, that of the element.
    pub key_at: usize,
    /// Byte offset of the value.
    pub at: usize,
    /// The value.
    pub value: &'d Tree<'d>,
}

/// A name as a file writes it, with its byte offset: whether it is known is often found out after
/// the reading.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Byte offset of its first character or quote.
    pub at: usize,
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'d> Fields<'d> {
    /// Begins to read `table`. Missing keys are mistakes at byte offset `at`.
    pub fn new(what: impl Into<String>, at: usize, table: &'d TreeTable<'d>) -> Fields<'d> {
        Fields { what: what.into(), at, table, asked: Vec::new() }
    }

    /// Returns the table itself.
    pub fn source(&self) -> &'d TreeTable<'d> {
        self.table
    }

    /// Returns the value under `key` and marks the key as known.
    pub fn get(&mut self, key: &str) -> Option<Field<'d>> {
        self.asked.push(key.to_owned());
        self.entry(key).map(of_entry)
    }

    /// Returns the value under `key` without marking the key as known.
    pub fn peek(&self, key: &str) -> Option<&'d Tree<'d>> {
        self.entry(key).map(|entry| &entry.placed.value)
    }

    fn entry(&self, key: &str) -> Option<&'d TreeEntry<'d>> {
        self.table.entries.iter().find(|entry| entry.key == key && !entry.placed.is_null())
    }

    /// Returns the value under `key` with its place, and marks the key as known.
    pub fn placed(&mut self, key: &str) -> Option<&'d Placed<'d>> {
        self.know([key]);
        self.entry(key).map(|entry| &entry.placed)
    }

    /// Marks keys as known.
    pub fn know<'k>(&mut self, keys: impl IntoIterator<Item = &'k str>) {
        self.asked.extend(keys.into_iter().map(str::to_owned));
    }

    /// Marks the keys that `known` accepts as known.
    pub fn allow(&mut self, known: fn(&str) -> bool) {
        let keys = self.table.entries.iter().filter(|entry| known(&entry.key));
        self.asked.extend(keys.map(|entry| entry.key.clone().into_owned()));
    }

    /// Returns the tables of the list under `key`: `[[key]]`. `what` is the subject of their
    /// messages.
    pub fn tables(&mut self, key: &str, what: &str, remarks: &mut Remarks) -> Vec<Fields<'d>> {
        let Some(field) = self.get(key) else { return Vec::new() };
        let Some(elements) = field.elements() else {
            let what = format!("{key} is one table, not a list of them");
            remarks.mistake(field.at, what, format!("write [[{key}]]"));
            return Vec::new();
        };
        elements.iter().filter_map(|element| element.table(what, "{ }", remarks)).collect()
    }

    /// Returns every key with its byte offset and value, in the order of the text, and marks all as
    /// known.
    pub fn all(&mut self) -> Vec<(usize, Field<'d>)> {
        let all: Vec<_> = self.table.entries.iter().map(|entry| (entry.key_at, of_entry(entry))).collect();
        self.asked.extend(all.iter().map(|(_, field)| field.key.clone()));
        all
    }

    /// Reports the keys that are not known.
    pub fn finish(self, remarks: &mut Remarks) {
        let is_known = |entry: &&TreeEntry| self.asked.iter().any(|asked| *asked == entry.key);
        for TreeEntry { key, key_at, .. } in self.table.entries.iter().filter(|entry| !is_known(entry)) {
            let known = self.asked.iter().map(String::as_str);
            let instead = hint(key, &self.asked).unwrap_or_else(|| choice(key, known));
            remarks.mistake(*key_at, format!("{} has no key '{key}'", self.what), instead);
        }
    }
}

fn of_entry<'d>(entry: &'d TreeEntry<'d>) -> Field<'d> {
    Field {
        key: entry.key.to_string(),
        key_at: entry.key_at,
        at: entry.placed.at,
        value: &entry.placed.value,
    }
}

impl<'d> Field<'d> {
    /// Reads text as a quantity. `example` is shown in a mistake.
    pub fn quantity<T: FromStr<Err = ParseError>>(&self, example: &str, remarks: &mut Remarks) -> Option<T> {
        // A number that only lacks its unit.
        let digits = match self.value {
            Tree::Integer(number) if number.radix == 10 => Some(number.digits.to_string()),
            Tree::Float(number) => Some(number.to_string()),
            _ => None,
        };
        if let Some(error) = digits.and_then(|digits| digits.parse::<T>().err())
            && let Some(instead) = error.with_unit(example)
        {
            self.wrong_kind("text", &format!("\"{instead}\""), remarks);
            return None;
        }
        match self.text(example, remarks)?.parse() {
            Ok(quantity) => Some(quantity),
            Err(error) => {
                let instead = error.with_unit(example);
                let ParseError { text, what, reason, .. } = error;
                let what = format!("'{text}' is not a {what}: {reason}");
                remarks.mistake(self.at, what, self.like(instead.as_deref().unwrap_or(example)));
                None
            }
        }
    }

    /// Returns whether the value is `"none"` or `"0"`, which clears it.
    pub fn is_none(&self) -> bool {
        matches!(self.value, Tree::Text(text) if matches!(&**text, "none" | "0"))
    }

    /// Reads text such as `"1%"` or `"none"`, or a number below 1. A number of 1 or more is
    /// refused: it might be meant as a percentage.
    pub fn probability(&self, remarks: &mut Remarks) -> Option<Probability> {
        let number = match self.value {
            Tree::Float(number) => number.parse::<f64>().ok(),
            Tree::Integer(number) if number.digits == "0" => Some(0.0),
            _ if self.is_none() => Some(0.0),
            _ => return self.quantity("1%", remarks),
        };
        let probability = number.filter(|&number| number < 1.0).and_then(Probability::new);
        if probability.is_none() {
            let instead = format!("{}, or \"100%\" for always", self.like("1%"));
            remarks.mistake(
                self.at,
                format!("{} is a number that is not from 0 to below 1", self.key),
                instead,
            );
        }
        probability
    }

    /// Reads text.
    pub fn text(&self, example: &str, remarks: &mut Remarks) -> Option<&'d str> {
        let Tree::Text(text) = self.value else {
            self.wrong_kind("text", &format!("\"{example}\""), remarks);
            return None;
        };
        Some(text)
    }

    /// Reads text as a name, with its place.
    pub fn name(&self, example: &str, remarks: &mut Remarks) -> Option<Name> {
        self.text(example, remarks).map(|text| Name { text: text.to_owned(), at: self.at })
    }

    /// Reads one of the known words and returns its index. `what` says what the words are: `a
    /// family`.
    pub fn word(&self, what: &str, known: &[&str], remarks: &mut Remarks) -> Option<usize> {
        let text = self.text(known[0], remarks)?;
        let found = known.iter().position(|word| *word == text);
        if found.is_none() {
            let instead = match nearest(text, known.iter().copied()) {
                Some(meant) => format!("write \"{meant}\""),
                None => format!("write one of {}", known.join(", ")),
            };
            remarks.mistake(self.at, format!("'{text}' is not {what}"), instead);
        }
        found
    }

    /// Returns the value as JSON.
    pub fn json(&self, example: &str, remarks: &mut Remarks) -> Option<Value> {
        let value = self.value.json();
        if value.is_none() {
            let what = format!("{} is or has a date, or a number that is not finite or too large", self.key);
            remarks.mistake(self.at, what, format!("write {} = {example}", self.key));
        }
        value
    }

    /// Reads true or false.
    pub fn switch(&self, remarks: &mut Remarks) -> Option<bool> {
        let Tree::Boolean(value) = self.value else {
            self.wrong_kind("true or false", "true", remarks);
            return None;
        };
        Some(*value)
    }

    /// Reads a number, whole or not.
    pub fn number(&self, example: &str, remarks: &mut Remarks) -> Option<f64> {
        let text = match self.value {
            Tree::Float(number) => number,
            Tree::Integer(number) => &number.digits,
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

    /// Reads a whole number in `range`.
    pub fn whole(&self, range: std::ops::RangeInclusive<u64>, remarks: &mut Remarks) -> Option<u64> {
        let Tree::Integer(number) = self.value else {
            self.wrong_kind("a whole number", &range.start().to_string(), remarks);
            return None;
        };
        let value = u64::from_str_radix(&number.digits, number.radix).ok().filter(|n| range.contains(n));
        if value.is_none() {
            let instead = format!("write a number from {} to {}", range.start(), range.end());
            remarks.mistake(self.at, format!("{} = {number} is out of range", self.key), instead);
        }
        value
    }

    /// Reads a whole number in `range`, which may be negative.
    pub fn integer(&self, range: std::ops::RangeInclusive<i64>, remarks: &mut Remarks) -> Option<i64> {
        let Tree::Integer(number) = self.value else {
            self.wrong_kind("a whole number", &range.start().to_string(), remarks);
            return None;
        };
        let value = i64::from_str_radix(&number.digits, number.radix).ok().filter(|n| range.contains(n));
        if value.is_none() {
            let instead = format!("write a number from {} to {}", range.start(), range.end());
            remarks.mistake(self.at, format!("{} = {number} is out of range", self.key), instead);
        }
        value
    }

    /// Begins to read a table.
    pub fn table(&self, what: impl Into<String>, example: &str, remarks: &mut Remarks) -> Option<Fields<'d>> {
        let Tree::Table(table) = self.value else {
            self.wrong_kind("a table", example, remarks);
            return None;
        };
        Some(Fields::new(what, self.at, table))
    }

    /// Returns the elements of an array, under the same key.
    pub fn elements(&self) -> Option<Vec<Field<'d>>> {
        let Tree::Array(array) = self.value else { return None };
        let element = |placed: &'d Placed<'d>| Field {
            key: self.key.clone(),
            key_at: placed.at,
            at: placed.at,
            value: &placed.value,
        };
        Some(array.iter().map(element).collect())
    }

    /// Reads one text, or an array of texts, each with its byte offset.
    pub fn texts(&self, example: &str, remarks: &mut Remarks) -> Vec<(usize, &'d str)> {
        let elements = self.elements().unwrap_or_else(|| vec![self.clone()]);
        elements.iter().filter_map(|field| Some((field.at, field.text(example, remarks)?))).collect()
    }

    /// Reports a value of another kind than is wanted.
    pub fn wrong_kind(&self, wanted: &str, example: &str, remarks: &mut Remarks) {
        let found = match self.value {
            Tree::Text(_) => "text",
            Tree::Integer(_) => "a whole number",
            Tree::Float(_) => "a number",
            Tree::Boolean(_) => "true or false",
            Tree::Date => "a date",
            Tree::Null => "null",
            Tree::Array(_) => "an array",
            Tree::Table(_) => "a table",
        };
        let instead = format!("write {} = {example}", self.key);
        remarks.mistake(self.at, format!("{} is {found}, not {wanted}", self.key), instead);
    }

    fn like(&self, example: &str) -> String {
        format!("write {} = \"{example}\"", self.key)
    }
}
