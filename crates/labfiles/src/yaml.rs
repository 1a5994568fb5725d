//! YAML as a tree in which every value has its place in the text.
//!
//! `saphyr-parser` gives events with places; the tree is built here, because the size of what
//! aliases expand to must be bounded. Merge keys (`<<`) are those of YAML 1.1.

use fastpath_spec::mistake::Remarks;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};
use std::collections::BTreeMap;

/// The most values in a document, those that aliases repeat included.
const VALUES_MAX: usize = 200_000;
/// The most bytes of text that aliases repeat.
const REPEATED_BYTES_MAX: usize = 16 << 20;
/// The deepest nesting.
const DEPTH_MAX: usize = 64;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Yaml {
    /// Byte offset.
    pub(crate) at: usize,
    pub(crate) value: Value,
}

/// The contents of a value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Null,
    /// Text, a number or a truth value.
    Scalar {
        text: String,
        /// Whether it stands without quotes, so that it may be a number.
        is_plain: bool,
    },
    List(Vec<Yaml>),
    Map(Vec<YamlEntry>),
}

/// A key with its value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    /// Byte offset.
    pub(crate) key_at: usize,
    pub(crate) yaml: Yaml,
}

impl Yaml {
    /// Returns the value under a key; `None` also for what is not a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Yaml> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.yaml)
    }

    /// Returns the text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns whether nothing is given.
    pub(crate) fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// Returns what it is, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Scalar { .. } => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// Returns the number of values and the bytes of text in it.
    fn size(&self) -> (usize, usize) {
        let add = |(values, bytes), (more, longer)| (values + more, bytes + longer);
        match &self.value {
            Value::Null => (1, 0),
            Value::Scalar { text, .. } => (1, text.len()),
            Value::List(list) => list.iter().map(Yaml::size).fold((1, 0), add),
            Value::Map(map) => {
                map.iter().map(|entry| add(entry.yaml.size(), (0, entry.key.len()))).fold((1, 0), add)
            }
        }
    }
}

/// Reads the only document of a text. `None`: it has mistakes, which are in `remarks`.
pub(crate) fn parse(text: &str, remarks: &mut Remarks) -> Option<Yaml> {
    let mut builder = Builder::new(text);
    for event in Parser::new_from_str(text) {
        let done = match event {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => {
                let at = builder.place(*error.marker());
                Err((at, format!("this is not YAML: {}", error.info()), syntax_advice(text)))
            }
        };
        if let Err((at, what, instead)) = done {
            remarks.mistake(at, what, instead);
            return None;
        }
    }
    let empty = Yaml { at: 0, value: Value::Null };
    Some(builder.document.unwrap_or(empty))
}

fn syntax_advice(text: &str) -> &'static str {
    // A tab cannot indent (YAML 1.2 §6.1).
    match text.lines().any(|line| line.trim_start_matches(' ').starts_with('\t')) {
        true => "write spaces in place of tabs",
        false => "write KEY: VALUE, lists with '- ', text with ': ' or '#' in \"quotes\"",
    }
}

/// Where, what, and what to write instead.
type YamlRefusal = (usize, String, &'static str);

/// A list or map that is being read.
struct Open {
    at: usize,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Yaml>),
    Map(OpenMap),
}

/// A map that is being read.
#[derive(Default)]
struct OpenMap {
    entries: Vec<YamlEntry>,
    /// By key: the index of its entry, and whether a merge key has added it.
    known: BTreeMap<String, (usize, bool)>,
    /// The key that has no value yet.
    pending: Option<(String, usize)>,
}

struct Builder<'t> {
    text: &'t str,
    /// The last place that was converted: in characters and in bytes.
    cursor: (usize, usize),
    open: Vec<Open>,
    /// What anchors stand for, with its size.
    anchored: BTreeMap<usize, (Yaml, (usize, usize))>,
    document: Option<Yaml>,
    values: usize,
    repeated: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Builder<'t> {
        Builder {
            text,
            cursor: (0, 0),
            open: Vec::new(),
            anchored: BTreeMap::new(),
            document: None,
            values: 0,
            repeated: 0,
        }
    }

    /// Returns the byte offset of a place, which the parser counts in characters.
    fn place(&mut self, marker: Marker) -> usize {
        let (mut characters, mut bytes) = self.cursor;
        let wanted = marker.index();
        if wanted >= characters {
            let steps = self.text[bytes..].chars().take(wanted - characters);
            bytes += steps.map(char::len_utf8).sum::<usize>();
        } else {
            let steps = self.text[..bytes].chars().rev().take(characters - wanted);
            bytes -= steps.map(char::len_utf8).sum::<usize>();
        }
        characters = wanted;
        self.cursor = (characters, bytes);
        bytes
    }

    fn take(&mut self, event: Event, span: Span) -> Result<(), YamlRefusal> {
        let at = self.place(span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.document.is_none() => Ok(()),
            Event::DocumentStart(_) => {
                Err((at, "there is a second document".to_owned(), "write one document, without '---'"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_plain = style == ScalarStyle::Plain;
                let value = match &*text {
                    "" | "~" | "null" | "Null" | "NULL" if is_plain => Value::Null,
                    _ => Value::Scalar { text: text.into_owned(), is_plain },
                };
                self.add(Yaml { at, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, OpenKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(at, anchor, OpenKind::Map(OpenMap::default())),
            Event::SequenceEnd | Event::MappingEnd => {
                let Open { at, anchor, kind } = self.open.pop().expect("the parser pairs its events");
                let value = match kind {
                    OpenKind::List(list) => Value::List(list),
                    OpenKind::Map(map) => Value::Map(map.entries),
                };
                self.add(Yaml { at, value }, anchor)
            }
            Event::Alias(anchor) => self.repeat(at, anchor),
        }
    }

    fn begin(&mut self, at: usize, anchor: usize, kind: OpenKind) -> Result<(), YamlRefusal> {
        if self.open.len() == DEPTH_MAX {
            let what = format!("values are nested more than {DEPTH_MAX} deep");
            return Err((at, what, "write fewer levels"));
        }
        self.open.push(Open { at, anchor, kind });
        Ok(())
    }

    fn repeat(&mut self, at: usize, anchor: usize) -> Result<(), YamlRefusal> {
        let Some((yaml, (values, bytes))) = self.anchored.get(&anchor) else {
            return Err((at, "the alias is inside what it stands for".to_owned(), "write the value"));
        };
        self.repeated = self.repeated.saturating_add(*bytes);
        if self.values + values > VALUES_MAX || self.repeated > REPEATED_BYTES_MAX {
            let what = format!("aliases expand the document to more than {VALUES_MAX} values");
            return Err((at, what, "write the values in place of nested aliases"));
        }
        self.values += values;
        let copy = Yaml { at, ..yaml.clone() };
        self.insert(copy)
    }

    /// Adds a value to what is being read.
    fn add(&mut self, yaml: Yaml, anchor: usize) -> Result<(), YamlRefusal> {
        self.values += 1;
        if self.values > VALUES_MAX {
            let what = format!("the document has more than {VALUES_MAX} values");
            return Err((yaml.at, what, "write fewer"));
        }
        if anchor > 0 {
            let size = yaml.size();
            self.anchored.insert(anchor, (yaml.clone(), size));
        }
        self.insert(yaml)
    }

    fn insert(&mut self, yaml: Yaml) -> Result<(), YamlRefusal> {
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => self.document = Some(yaml),
            Some(OpenKind::List(list)) => list.push(yaml),
            Some(OpenKind::Map(map)) => map.insert(yaml)?,
        }
        Ok(())
    }
}

impl OpenMap {
    /// Takes a key, or the value of the last key.
    fn insert(&mut self, yaml: Yaml) -> Result<(), YamlRefusal> {
        let Some((key, key_at)) = self.pending.take() else {
            return match yaml.value {
                Value::Scalar { text, .. } => {
                    self.pending = Some((text, yaml.at));
                    Ok(())
                }
                _ => Err((yaml.at, format!("{} is not a key", yaml.kind()), "write KEY: VALUE")),
            };
        };
        if key == "<<" {
            return self.merge(key_at, yaml);
        }
        let entry = YamlEntry { key: key.clone(), key_at, yaml };
        match self.known.insert(key, (self.entries.len(), false)) {
            None => self.entries.push(entry),
            // What is written here wins over what is merged.
            Some((index, true)) => {
                self.known.insert(entry.key.clone(), (index, false));
                self.entries[index] = entry;
            }
            Some((_, false)) => {
                let what = format!("there is already a key '{}'", entry.key.escape_debug());
                return Err((key_at, what, "write it once"));
            }
        }
        Ok(())
    }

    fn merge(&mut self, key_at: usize, yaml: Yaml) -> Result<(), YamlRefusal> {
        let sources = match yaml.value {
            Value::List(list) => list,
            _ => vec![yaml],
        };
        for source in sources {
            let Value::Map(entries) = source.value else {
                return Err((key_at, "'<<' merges a map".to_owned(), "write <<: *NAME"));
            };
            for entry in entries {
                if !self.known.contains_key(&entry.key) {
                    self.known.insert(entry.key.clone(), (self.entries.len(), true));
                    self.entries.push(entry);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Yaml, String> {
        let mut remarks = Remarks::new(text);
        let yaml = parse(text, &mut remarks);
        match remarks.finish() {
            Ok(_) => Ok(yaml.expect("without a mistake there is a value")),
            Err(mistakes) => Err(mistakes[0].to_string()),
        }
    }

    #[test]
    fn every_value_has_its_place() {
        let text = "# é\na: [x, \"é\", ~]\nb:\n  c: 1\n";
        let yaml = read(text).unwrap();
        let list = yaml.get("a").unwrap();
        let Value::List(elements) = &list.value else { panic!("{list:?}") };
        let shown: Vec<&str> = elements.iter().map(|element| &text[element.at..=element.at]).collect();
        assert_eq!(shown, ["x", "\"", "~"]);
        assert_eq!(elements[2].value, Value::Null);
        let c = yaml.get("b").and_then(|b| b.get("c")).unwrap();
        assert_eq!((&text[c.at..], c.text()), ("1\n", Some("1")));
    }

    #[test]
    fn aliases_and_merge_keys_stand_for_what_they_name() {
        let yaml =
            read("x: &x {a: 1, b: 2}\ny: *x\nz: {<<: *x, b: 3, c: 4}\nw:\n  b: 5\n  <<: [*x]\n").unwrap();
        let at = |key: &str, inner: &str| yaml.get(key).and_then(|map| map.get(inner)).and_then(Yaml::text);
        assert_eq!(
            (at("y", "a"), at("z", "a"), at("z", "b"), at("z", "c")),
            (Some("1"), Some("1"), Some("3"), Some("4"))
        );
        assert_eq!((at("w", "a"), at("w", "b")), (Some("1"), Some("5")));
    }

    #[test]
    fn a_bomb_of_aliases_is_refused_at_its_line() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let last = level - 1;
            let aliases = vec![format!("*a{last}"); 10].join(", ");
            text += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        assert!(read(&text).unwrap_err().starts_with("6:"), "{:?}", read(&text));
        // Few values, but long ones.
        let long = "y".repeat(1 << 20);
        let text = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 40].join(", "));
        assert!(read(&text).unwrap_err().contains("aliases expand the document"));
    }

    #[test]
    fn what_is_no_tree_is_a_mistake_at_its_place() {
        for (text, expected) in [
            ("a: 1\na: 2\n", "2:1: there is already a key 'a'; write it once"),
            ("a: &a\n  b: *a\n", "2:6: the alias is inside what it stands for; write the value"),
            ("a: 1\n---\nb: 2\n", "2:1: there is a second document; write one document, without '---'"),
            ("[a, b]: 1\n", "1:1: a list is not a key; write KEY: VALUE"),
            ("a: {<<: 1}\n", "1:5: '<<' merges a map; write <<: *NAME"),
            ("a: *nothing\n", "1:4: this is not YAML"),
            ("a: [1\nb: 2\n", "2:"),
            ("a:\n\t- 1\n", "2:"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(expected), "{text:?}: {said}");
        }
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(read(&deep).unwrap_err().contains("nested"), "{:?}", read(&deep));
        assert_eq!(read("").unwrap().value, Value::Null);
    }
}
