//! Reads a map key by key, and collects every mistake.

use crate::yaml::{Value, Yaml, YamlEntry};
use fastpath_spec::mistake::{Remarks, nearest};

/// A map that is being read.
pub(crate) struct MapFields<'y> {
    /// The subject of messages: `node a`.
    pub(crate) what: String,
    entries: &'y [YamlEntry],
    asked: Vec<&'static str>,
}

impl<'y> MapFields<'y> {
    /// Returns the entries of a map. Nothing at all is an empty map; another value is a mistake.
    pub(crate) fn of(what: impl Into<String>, yaml: &'y Yaml, remarks: &mut Remarks) -> MapFields<'y> {
        let what = what.into();
        let entries = match &yaml.value {
            Value::Map(entries) => entries.as_slice(),
            Value::Null => &[],
            _ => {
                remarks.mistake(yaml.at, format!("{what} is {}, not a map", yaml.kind()), "write KEY: VALUE");
                &[]
            }
        };
        MapFields { what, entries, asked: Vec::new() }
    }

    /// Returns all entries, in the order of the text.
    pub(crate) fn entries(&self) -> &'y [YamlEntry] {
        self.entries
    }

    /// Returns the entry of a key that has a value, and marks the key as known.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<&'y YamlEntry> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key == key && !entry.yaml.is_null())
    }

    /// Returns the value of a key, and marks the key as known.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<&'y Yaml> {
        self.entry(key).map(|entry| &entry.yaml)
    }

    /// Returns the text under a key. Another value is a mistake.
    pub(crate) fn text(&mut self, key: &'static str, remarks: &mut Remarks) -> Option<&'y str> {
        let yaml = self.get(key)?;
        text(yaml, key, remarks)
    }

    /// Marks keys as known.
    pub(crate) fn know(&mut self, keys: &[&'static str]) {
        self.asked.extend(keys);
    }

    /// Reports keys that are not known.
    pub(crate) fn finish(self, remarks: &mut Remarks) {
        for entry in self.entries.iter().filter(|entry| !self.asked.contains(&&*entry.key)) {
            let instead = match nearest(&entry.key, self.asked.iter().copied()) {
                Some(meant) => format!("write {meant}"),
                None => "remove it".to_owned(),
            };
            let what = format!("{} has no key '{}'", self.what, entry.key.escape_debug());
            remarks.mistake(entry.key_at, what, instead);
        }
    }
}

/// Returns a scalar as text. Another value is a mistake.
pub(crate) fn text<'y>(yaml: &'y Yaml, key: &str, remarks: &mut Remarks) -> Option<&'y str> {
    let text = yaml.text();
    if text.is_none() {
        remarks.mistake(yaml.at, format!("{key} is {}, not text", yaml.kind()), format!("write {key}: TEXT"));
    }
    text
}

/// Returns the texts of a list with their places. One text is a list of it.
pub(crate) fn texts<'y>(yaml: &'y Yaml, key: &str, remarks: &mut Remarks) -> Vec<(usize, &'y str)> {
    let elements = match &yaml.value {
        Value::List(list) => list.iter().collect(),
        Value::Null => Vec::new(),
        _ => vec![yaml],
    };
    let read = |yaml: &&'y Yaml| Some((yaml.at, text(yaml, key, remarks)?));
    elements.iter().filter_map(read).collect()
}

/// Returns the entries of a map of texts, each with its place. Nothing under a key is empty text.
pub(crate) fn pairs<'y>(yaml: &'y Yaml, key: &str, remarks: &mut Remarks) -> Vec<(usize, &'y str, &'y str)> {
    let fields = MapFields::of(key, yaml, remarks);
    let mut pairs = Vec::new();
    for YamlEntry { key, key_at, yaml } in fields.entries() {
        let value = if yaml.is_null() { Some("") } else { text(yaml, key, remarks) };
        pairs.extend(value.map(|value| (*key_at, &**key, value)));
    }
    pairs
}

/// Returns the value as JSON, in which a plain number is a number.
pub(crate) fn json(yaml: &Yaml) -> serde_json::Value {
    match &yaml.value {
        Value::Null => serde_json::Value::Null,
        Value::Scalar { text, is_plain: true } if text == "true" || text == "false" => {
            (text == "true").into()
        }
        Value::Scalar { text, is_plain } => {
            let number = is_plain.then(|| text.parse::<serde_json::Number>().ok()).flatten();
            number.map_or_else(|| text.clone().into(), serde_json::Value::Number)
        }
        Value::List(list) => list.iter().map(json).collect(),
        Value::Map(map) => map.iter().map(|entry| (entry.key.clone(), json(&entry.yaml))).collect(),
    }
}
