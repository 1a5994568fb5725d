//! Changes of one word of a TOML text, for tests of readers: a value that is another one, a value
//! or a key that is misspelled, a key that is gone. A reader must give another result, or name the
//! word.

use crate::document;
use crate::mistake::Remarks;
use crate::tree::{Placed, Tree, TreeTable};
use fastpath_units::Rng;
use std::ops::Range;

/// A key or value of a text.
#[derive(Clone, PartialEq, Debug)]
pub struct Word {
    /// The keys that lead to it, and the indices in lists: `step.0.name`.
    pub path: String,
    /// The key, as it is written; `None`: an element of a list.
    key: Option<Range<usize>>,
    /// The value, as it is written; `None`: a table, of which only the key is a word.
    value: Option<Range<usize>>,
}

/// What is done to a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WordChange {
    /// The value is another one of its kind.
    Another,
    /// The value has a letter too many.
    MisspelledValue,
    /// The key has a letter too many.
    MisspelledKey,
    /// Key and value are gone.
    Removed,
}

impl WordChange {
    /// All changes.
    pub const ALL: [WordChange; 4] =
        [WordChange::Another, WordChange::MisspelledValue, WordChange::MisspelledKey, WordChange::Removed];
}

/// Returns the words of a TOML text, in its order. Empty if it is not TOML.
pub fn words(text: &str) -> Vec<Word> {
    let mut remarks = Remarks::new(text);
    let document = document::toml(text, "a file", "write TOML", &mut remarks).unwrap_or_default();
    let mut words = Vec::new();
    of_table(text, "", &document, &mut words);
    words
}

fn of_table(text: &str, path: &str, table: &TreeTable, words: &mut Vec<Word>) {
    for entry in &table.entries {
        let path = if path.is_empty() { entry.key.to_string() } else { format!("{path}.{}", entry.key) };
        of_value(text, &path, Some(key_range(text, entry.key_at)), &entry.placed, words);
    }
}

fn of_value(text: &str, path: &str, key: Option<Range<usize>>, placed: &Placed, words: &mut Vec<Word>) {
    match &placed.value {
        Tree::Table(table) => {
            words.extend(key.map(|key| Word { path: path.to_owned(), key: Some(key), value: None }));
            of_table(text, path, table, words);
        }
        Tree::Array(elements) => {
            words.extend(key.map(|key| Word { path: path.to_owned(), key: Some(key), value: None }));
            for (index, element) in elements.iter().enumerate() {
                of_value(text, &format!("{path}.{index}"), None, element, words);
            }
        }
        _ => words.push(Word { path: path.to_owned(), key, value: Some(placed.at..placed.end) }),
    }
}

/// A key as it is written, with its quotes.
fn key_range(text: &str, at: usize) -> Range<usize> {
    let rest = &text[at..];
    let length = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        _ => rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).unwrap_or(rest.len()),
    };
    at..at + length
}

/// Returns the text with one change of a word; `None` if the word has nothing to change so.
pub fn changed(text: &str, words: &[Word], word: &Word, change: WordChange, rng: &mut Rng) -> Option<String> {
    let mut new = text.to_owned();
    match change {
        WordChange::Another => {
            let value = word.value.clone()?;
            let another = another(text, words, &text[value.clone()], rng)?;
            new.replace_range(value, &another);
        }
        WordChange::MisspelledValue => {
            let value = word.value.clone().filter(|value| text[value.clone()].starts_with(['"', '\'']))?;
            new = misspelled(text, value, rng)?;
        }
        WordChange::MisspelledKey => new = misspelled(text, word.key.clone()?, rng)?,
        WordChange::Removed => {
            let value = word.value.clone()?;
            let whole = word.key.as_ref().map_or(value.start, |key| key.start)..value.end;
            new.replace_range(with_comma(text, whole), "");
        }
    }
    (new != text).then_some(new)
}

/// Another value of the same kind.
fn another(text: &str, words: &[Word], value: &str, rng: &mut Rng) -> Option<String> {
    match value {
        "true" => return Some("false".to_owned()),
        "false" => return Some("true".to_owned()),
        _ => {}
    }
    let is_text = value.starts_with(['"', '\'']);
    let digits = value.find(|c: char| c.is_ascii_digit());
    // Half of the texts become another text of the file.
    if is_text && (digits.is_none() || rng.below(2) == 0) {
        let texts = words.iter().filter_map(|word| Some(&text[word.value.clone()?]));
        let texts: Vec<&str> =
            texts.filter(|other| other.starts_with(['"', '\'']) && *other != value).collect();
        return (!texts.is_empty()).then(|| texts[rng.below(texts.len() as u64) as usize].to_owned());
    }
    let from = digits?;
    let end = value[from..].find(|c: char| !c.is_ascii_digit()).map_or(value.len(), |end| from + end);
    let number: u64 = value[from..end].parse().ok()?;
    let number = number.checked_add(1 + rng.below(9))?;
    Some(format!("{}{number}{}", &value[..from], &value[end..]))
}

/// A letter too many, somewhere in the range.
fn misspelled(text: &str, range: Range<usize>, rng: &mut Rng) -> Option<String> {
    let is_quoted = text[range.clone()].starts_with(['"', '\'']);
    let inner = if is_quoted { range.start + 1..range.end - 1 } else { range };
    let places: Vec<usize> = text[inner.clone()]
        .char_indices()
        .map(|(at, _)| inner.start + at)
        // Not inside an escape.
        .filter(|at| !text[..*at].ends_with('\\'))
        .collect();
    let at = *places.get(rng.below(places.len().max(1) as u64) as usize)?;
    let letter = char::from(b'a' + rng.below(26) as u8);
    Some(format!("{}{letter}{}", &text[..at], &text[at..]))
}

/// A range with the comma that separates it from its neighbour, if there is one.
fn with_comma(text: &str, range: Range<usize>) -> Range<usize> {
    let after = text[range.end..].trim_start();
    if after.starts_with(',') {
        return range.start..text.len() - after.len() + 1;
    }
    let before = text[..range.start].trim_end();
    if before.ends_with(',') { before.len() - 1..range.end } else { range }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[t]\n'b.c' = [\"x\", \"y\"]\nd = { e = true, f = '5ms' }\n";

    #[test]
    fn every_word_can_be_changed_and_nothing_else_is() {
        let words = words(TEXT);
        let paths: Vec<&str> = words.iter().map(|word| word.path.as_str()).collect();
        assert_eq!(paths, ["a", "t", "t.b.c", "t.b.c.0", "t.b.c.1", "t.d", "t.d.e", "t.d.f"]);
        let mut rng = Rng::new(1);
        let mut change = |at: usize, change| changed(TEXT, &words, &words[at], change, &mut rng);
        assert_eq!(change(6, WordChange::Another).unwrap(), TEXT.replace("true", "false"));
        assert_eq!(change(6, WordChange::Removed).unwrap(), TEXT.replace("e = true,", ""));
        assert_eq!(change(7, WordChange::Removed).unwrap(), TEXT.replace(", f = '5ms'", ""));
        assert_eq!(change(4, WordChange::Removed).unwrap(), TEXT.replace(", \"y\"", ""));
        assert_eq!(change(1, WordChange::Another), None);
        assert_eq!(change(0, WordChange::MisspelledValue), None);
        let misspelled = change(2, WordChange::MisspelledKey).unwrap();
        assert_eq!(misspelled.len(), TEXT.len() + 1);
        assert!(misspelled.contains("'b") || misspelled.contains("b.c'"), "{misspelled}");
    }
}
