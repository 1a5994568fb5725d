//! Any text as a row of words, whatever its language.
//!
//! ```text
//!  rate = "10Mbit"   # a comment        what is changed
//!  ^^^^    ^^^^^^                       words: a digit becomes another, a letter is put in
//!  ^^^^^^^^^^^^^^^^^                    the line goes
//! ```

use fastpath_units::Rng;
use std::fmt;
use std::ops::Range;

/// A text of which one word is another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutation {
    /// The line of the word, from 1.
    pub line: usize,
    /// The word, or the line that went.
    pub was: String,
    /// What stands in its place; empty if it went.
    pub now: String,
    /// The whole text after the change.
    pub text: String,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: '{}' became '{}'", self.line, self.was, self.now)
    }
}

/// Changes a random word: a digit becomes another, a letter is put in, the word goes, or its line
/// goes. Comments, from `#` at the start of a word to the end of its line, stay as they are.
/// Returns `None` if the text has no words.
pub fn mutation(text: &str, random: &mut Rng) -> Option<Mutation> {
    let words = words(text);
    let word = words.get(random.below(words.len().max(1) as u64) as usize)?.clone();
    let was = &text[word.clone()];
    let (range, now) = match random.below(8) {
        0 => (line_of(text, word.start), String::new()),
        1 => (word, String::new()),
        2..=4 if was.bytes().any(|byte| byte.is_ascii_digit()) => (word, with_another_digit(was, random)),
        _ => (word, misspelled(was, random)),
    };
    let mut changed = text.to_owned();
    changed.replace_range(range.clone(), &now);
    let line = 1 + text[..range.start].matches('\n').count();
    Some(Mutation { line, was: text[range].trim_end().to_owned(), now, text: changed })
}

/// The words of a text outside its comments.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = comment_at(line).unwrap_or(line.len());
        let mut from = None;
        for (at, c) in line[..end].char_indices().chain([(end, ' ')]) {
            let inside = c.is_alphanumeric() || (from.is_some() && "_-./:%".contains(c));
            match (inside, from) {
                (true, None) => from = Some(at),
                (false, Some(first)) => {
                    // A sign at the end of a word is not part of it: `key:`.
                    let length = line[first..at].trim_end_matches(['_', '-', '.', '/', ':']).len();
                    words.push(start + first..start + first + length);
                    from = None;
                }
                _ => {}
            }
        }
        start += line.len();
    }
    words
}

/// Where the comment of a line starts.
fn comment_at(line: &str) -> Option<usize> {
    let mut before = ' ';
    line.char_indices().find_map(|(at, c)| {
        let starts = c == '#' && before.is_whitespace();
        before = c;
        starts.then_some(at)
    })
}

fn line_of(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1);
    start..end
}

fn with_another_digit(word: &str, random: &mut Rng) -> String {
    let digits: Vec<(usize, char)> = word.char_indices().filter(|(_, c)| c.is_ascii_digit()).collect();
    let (at, digit) = digits[random.below(digits.len() as u64) as usize];
    let other = b'0' + ((digit as u8 - b'0') + 1 + random.below(9) as u8) % 10;
    format!("{}{}{}", &word[..at], other as char, &word[at + 1..])
}

fn misspelled(word: &str, random: &mut Rng) -> String {
    let places: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
    let at = places[random.below(places.len() as u64) as usize];
    let letter = (b'a' + random.below(26) as u8) as char;
    format!("{}{letter}{}", &word[..at], &word[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_outside_comments() {
        let text = "# no\nrate = \"10Mbit\" # 5\n[host.a-b]\nimage: x#y\n";
        let found: Vec<&str> = words(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(found, ["rate", "10Mbit", "host.a-b", "image", "x", "y"]);
    }

    #[test]
    fn one_word_or_line_differs() {
        let text = "a = 1 # kept\nb = \"10Mbit\"\n";
        let mut random = Rng::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mutation = mutation(text, &mut random).expect("there are words");
            assert_ne!(mutation.text, text);
            seen.insert(mutation.now.is_empty());
            if mutation.line == 2 {
                assert!(mutation.text.starts_with("a = 1 # kept\n"), "{mutation}");
            }
        }
        assert_eq!(seen.len(), 2, "words go and are changed");
        assert_eq!(mutation("# nothing\n", &mut random), None);
    }
}
