//! YAML as a tree in which every value has its place in the text.
//!
//! `saphyr-parser` gives events with places; the tree is built here, because the size of what
//! aliases expand to must be bounded. Merge keys (`<<`) are those of YAML 1.1.

use fastpath_text::mistake::Remarks;
use fastpath_text::tree::{Integer, Placed, Tree, TreeEntry, TreeTable};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};
use serde_json::Number;
use std::collections::BTreeMap;

/// The most values in a document, those that aliases repeat included.
const VALUES_MAX: usize = 200_000;
/// The most bytes of text that aliases repeat.
const REPEATED_BYTES_MAX: usize = 16 << 20;
/// The most comments that begin right after `]` or `}`.
const CLOSE_COMMENTS_MAX: usize = 1000;
/// The deepest nesting.
const DEPTH_MAX: usize = 64;

/// A value and its place.
pub(crate) type Yaml<'y> = Placed<'y>;

/// A value that was read.
type OwnYaml = Placed<'static>;

/// Returns the number of values and the bytes of text in a value.
fn size(yaml: &Yaml) -> (usize, usize) {
    let add = |(values, bytes), (more, longer)| (values + more, bytes + longer);
    match &yaml.value {
        Tree::Array(list) => list.iter().map(size).fold((1, 0), add),
        Tree::Table(table) => {
            let sizes = table.entries.iter().map(|entry| add(size(&entry.placed), (0, entry.key.len())));
            sizes.fold((1, 0), add)
        }
        _ => (1, yaml.scalar().map_or(0, str::len)),
    }
}

/// Returns what a value is, for a message.
pub(crate) fn kind(yaml: &Yaml) -> &'static str {
    match &yaml.value {
        Tree::Null => "nothing",
        Tree::Array(_) => "a list",
        Tree::Table(_) => "a map",
        _ => "text",
    }
}

/// Returns the value of a plain scalar; its text stays as it is written. Truth values and numbers
/// are those of JSON: quoted `"1"` is a text, and `no`, which YAML 1.1 reads as false, is one too.
fn plain(text: String) -> Tree<'static> {
    match (text.as_str(), text.parse::<Number>()) {
        ("" | "~" | "null" | "Null" | "NULL", _) => Tree::Null,
        ("true" | "false", _) => Tree::Boolean(text == "true"),
        (_, Ok(number)) if number.is_i64() || number.is_u64() => {
            Tree::Integer(Integer { digits: text.into(), radix: 10 })
        }
        (_, Ok(_)) => Tree::Float(text.into()),
        (_, Err(_)) => Tree::Text(text.into()),
    }
}

/// Reads the only document of a text. `None`: it has mistakes, which are in `remarks`.
/// `filled` returns a text of the document with its variables replaced; keys stay as they are.
pub(crate) fn parse(text: &str, filled: &dyn Fn(&str) -> String, remarks: &mut Remarks) -> Option<OwnYaml> {
    let refusal = match document(text, filled) {
        Ok(document) => return Some(document),
        Err((refusal, None)) => refusal,
        Err((refusal, Some(at))) => {
            if let Some(document) = without_close_comments(text, at, filled) {
                return Some(document);
            }
            refusal
        }
    };
    let (at, what, instead) = refusal;
    remarks.mistake(at, what, instead);
    None
}

/// Reads a document again in which a comment begins right after `]` or `}`. YAML wants a space
/// before it (YAML 1.2 §6.6), and the readers of other programs do not. `at`: where the parser
/// stopped. `None` if the text has other mistakes.
fn without_close_comments(text: &str, at: usize, filled: &dyn Fn(&str) -> String) -> Option<OwnYaml> {
    let (mut text, mut at) = (text.to_owned(), at);
    for _ in 0..CLOSE_COMMENTS_MAX {
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let line = &text[start..end];
        // The parser may stop at the end of the line, or at the next one.
        let (start, end) = if text[at..].starts_with('#') || line.contains("]#") || line.contains("}#") {
            (start, end)
        } else {
            let before = text[..start].trim_end_matches('\n');
            (before.rfind('\n').map_or(0, |newline| newline + 1), before.len())
        };
        let line = &text[start..end];
        // The parser names the comment, or a place behind it.
        let hash = match text[at..].starts_with('#') {
            true => at,
            false => start + 1 + line.find("]#").into_iter().chain(line.find("}#")).min()?,
        };
        // Places stay: the parser counts characters.
        let blank: String = text[hash..end].chars().map(|_| ' ').collect();
        let bytes = end - hash;
        let blank = format!("{blank}{}", " ".repeat(bytes - blank.len()));
        text.replace_range(hash..end, &blank);
        match document(&text, filled) {
            Ok(document) => return Some(document),
            Err((_, Some(next))) => at = next,
            Err((_, None)) => return None,
        }
    }
    None
}

/// Reads a document. An error says where the parser stopped if the text is not YAML.
fn document(text: &str, filled: &dyn Fn(&str) -> String) -> Result<OwnYaml, (YamlRefusal, Option<usize>)> {
    let mut builder = Builder::new(text, filled);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => builder.take(event, span).map_err(|refusal| (refusal, None))?,
            Err(error) => {
                let at = builder.place(*error.marker());
                let refusal = (at, format!("this is not YAML: {}", error.info()), syntax_advice(text));
                return Err((refusal, Some(at)));
            }
        }
    }
    let empty = OwnYaml { at: 0, end: 0, value: Tree::Null };
    Ok(builder.document.unwrap_or(empty))
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
    List(Vec<OwnYaml>),
    Map(OpenMap),
}

/// A map that is being read.
#[derive(Default)]
struct OpenMap {
    table: TreeTable<'static>,
    /// By key: the index of its entry, and whether a merge key has added it.
    known: BTreeMap<String, (usize, bool)>,
    /// The key that has no value yet.
    pending: Option<(String, usize)>,
}

struct Builder<'t> {
    text: &'t str,
    filled: &'t dyn Fn(&str) -> String,
    /// The last place that was converted: in characters and in bytes.
    cursor: (usize, usize),
    open: Vec<Open>,
    /// What anchors stand for, with its size.
    anchored: BTreeMap<usize, (OwnYaml, (usize, usize))>,
    document: Option<OwnYaml>,
    values: usize,
    repeated: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str, filled: &'t dyn Fn(&str) -> String) -> Builder<'t> {
        Builder {
            text,
            filled,
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
        let end = self.place(span.end);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.document.is_none() => Ok(()),
            Event::DocumentStart(_) => {
                Err((at, "there is a second document".to_owned(), "write one document, without '---'"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let text = if self.expects_key() { text.into_owned() } else { (self.filled)(&text) };
                let value = match style {
                    ScalarStyle::Plain => plain(text),
                    _ => Tree::Text(text.into()),
                };
                self.add(OwnYaml { at, end, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, OpenKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.begin(at, anchor, OpenKind::Map(OpenMap::default())),
            Event::SequenceEnd | Event::MappingEnd => {
                let Open { at, anchor, kind } = self.open.pop().expect("the parser pairs its events");
                let value = match kind {
                    OpenKind::List(list) => Tree::Array(list),
                    OpenKind::Map(map) => Tree::Table(map.table),
                };
                self.add(OwnYaml { at, end, value }, anchor)
            }
            Event::Alias(anchor) => self.repeat(at, anchor),
        }
    }

    /// Whether the next value is a key of a map.
    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { kind: OpenKind::Map(map), .. }) if map.pending.is_none())
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
        let copy = OwnYaml { at, ..yaml.clone() };
        self.insert(copy)
    }

    /// Adds a value to what is being read.
    fn add(&mut self, yaml: OwnYaml, anchor: usize) -> Result<(), YamlRefusal> {
        self.values += 1;
        if self.values > VALUES_MAX {
            let what = format!("the document has more than {VALUES_MAX} values");
            return Err((yaml.at, what, "write fewer"));
        }
        if anchor > 0 {
            let size = size(&yaml);
            self.anchored.insert(anchor, (yaml.clone(), size));
        }
        self.insert(yaml)
    }

    fn insert(&mut self, yaml: OwnYaml) -> Result<(), YamlRefusal> {
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
    fn insert(&mut self, yaml: OwnYaml) -> Result<(), YamlRefusal> {
        let Some((key, key_at)) = self.pending.take() else {
            return match yaml.scalar() {
                Some(text) => {
                    self.pending = Some((text.to_owned(), yaml.at));
                    Ok(())
                }
                None => Err((yaml.at, format!("{} is not a key", kind(&yaml)), "write KEY: VALUE")),
            };
        };
        if key == "<<" {
            return self.merge(key_at, yaml);
        }
        let entry = TreeEntry { key: key.clone().into(), key_at, placed: yaml };
        match self.known.insert(key, (self.table.entries.len(), false)) {
            None => self.table.entries.push(entry),
            // What is written here wins over what is merged.
            Some((index, true)) => {
                self.known.insert(entry.key.to_string(), (index, false));
                self.table.entries[index] = entry;
            }
            Some((_, false)) => {
                let what = format!("there is already a key '{}'", entry.key.escape_debug());
                return Err((key_at, what, "write it once"));
            }
        }
        Ok(())
    }

    fn merge(&mut self, key_at: usize, yaml: OwnYaml) -> Result<(), YamlRefusal> {
        let sources = match yaml.value {
            Tree::Array(list) => list,
            _ => vec![yaml],
        };
        for source in sources {
            let Tree::Table(table) = source.value else {
                return Err((key_at, "'<<' merges a map".to_owned(), "write <<: *NAME"));
            };
            for entry in table.entries {
                if !self.known.contains_key(&*entry.key) {
                    self.known.insert(entry.key.to_string(), (self.table.entries.len(), true));
                    self.table.entries.push(entry);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OwnYaml, String> {
        let mut remarks = Remarks::new(text);
        let yaml = parse(text, &str::to_owned, &mut remarks);
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
        let Tree::Array(elements) = &list.value else { panic!("{list:?}") };
        let shown: Vec<&str> = elements.iter().map(|element| &text[element.at..=element.at]).collect();
        assert_eq!(shown, ["x", "\"", "~"]);
        assert_eq!(elements[2].value, Tree::Null);
        let c = yaml.get("b").and_then(|b| b.get("c")).unwrap();
        assert_eq!((&text[c.at..c.end], c.scalar()), ("1", Some("1")));
    }

    #[test]
    fn aliases_and_merge_keys_stand_for_what_they_name() {
        let yaml =
            read("x: &x {a: 1, b: 2}\ny: *x\nz: {<<: *x, b: 3, c: 4}\nw:\n  b: 5\n  <<: [*x]\n").unwrap();
        let at =
            |key: &str, inner: &str| yaml.get(key).and_then(|map| map.get(inner)).and_then(OwnYaml::scalar);
        assert_eq!(
            (at("y", "a"), at("z", "a"), at("z", "b"), at("z", "c")),
            (Some("1"), Some("1"), Some("3"), Some("4"))
        );
        assert_eq!((at("w", "a"), at("w", "b")), (Some("1"), Some("5")));
    }

    #[test]
    fn plain_scalars_are_numbers_and_truth_values_and_keep_their_text() {
        let yaml = read("[1, -2.50, 1e3, 010, 'true', true, no, 3.10.1]").unwrap();
        let Tree::Array(elements) = &yaml.value else { panic!("{yaml:?}") };
        let texts: Vec<&str> = elements.iter().filter_map(OwnYaml::scalar).collect();
        assert_eq!(texts, ["1", "-2.50", "1e3", "010", "true", "true", "no", "3.10.1"]);
        let expected = serde_json::json!([1, -2.5, 1000.0, "010", "true", true, "no", "3.10.1"]);
        assert_eq!(yaml.value.json(), Some(expected));
    }

    #[test]
    fn a_comment_may_begin_right_after_a_bracket() {
        let text = "a: [x, 'y]#z']# é one\nb:\n  - {c: 1}# two ] }\n  - [d]# three\ne: f]#g\n";
        let yaml = read(text).unwrap();
        assert_eq!(yaml.get("e").and_then(OwnYaml::scalar), Some("f]#g"));
        let Some(Tree::Array(elements)) = yaml.get("a").map(|a| &a.value) else { panic!("{yaml:?}") };
        assert_eq!(elements[1].scalar(), Some("y]#z"));
        let e = yaml.get("e").unwrap();
        assert_eq!(&text[e.at..e.end], "f]#g", "places stay");
        assert!(read("a: [x]#\nb: [y\n").unwrap_err().contains("this is not YAML"));
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
        assert_eq!(read("").unwrap().value, Tree::Null);
    }
}
