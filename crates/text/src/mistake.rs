//! Mistakes and warnings in a text: what, where, and what to write instead.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

/// A mistake in a text. Prints as `LINE:COLUMN: what; what to write`. The caller prefixes `FILE:`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mistake {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to write instead: `write …`.
    pub instead: String,
}

/// The kind of a warning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Code {
    /// A value was chosen because none is given.
    Default,
    /// A word has no effect here.
    Ignored,
    /// Something is described that nothing uses, or that does nothing.
    Unused,
    /// Something is done otherwise than in the program that the words come from.
    Different,
    /// Something valid has a result that its author may not expect.
    Unexpected,
    /// The text itself says something.
    Said,
}

impl Code {
    /// Returns its word, as in `fastpath check --json`.
    pub const fn word(self) -> &'static str {
        match self {
            Code::Default => "default",
            Code::Ignored => "ignored",
            Code::Unused => "unused",
            Code::Different => "different",
            Code::Unexpected => "unexpected",
            Code::Said => "said",
        }
    }
}

/// A warning: a default that was chosen, a command without effect. Prints as `LINE:COLUMN: what`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Warning {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Its kind.
    pub code: Code,
    /// The text of the warning.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.line, self.column, self.what, self.instead)
    }
}

impl std::error::Error for Mistake {}

/// All mistakes in a text, in its order; an error. Prints one per line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistakes<M = Mistake>(pub Vec<M>);

impl<M: fmt::Display> fmt::Display for Mistakes<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else { return Ok(()) };
        write!(f, "{first}")?;
        others.iter().try_for_each(|mistake| write!(f, "\n{mistake}"))
    }
}

impl<M: fmt::Display + fmt::Debug> std::error::Error for Mistakes<M> {}

impl<M> From<M> for Mistakes<M> {
    fn from(one: M) -> Mistakes<M> {
        Mistakes(vec![one])
    }
}

impl<M> Deref for Mistakes<M> {
    type Target = [M];

    fn deref(&self) -> &[M] {
        &self.0
    }
}

impl<M> IntoIterator for Mistakes<M> {
    type Item = M;
    type IntoIter = std::vec::IntoIter<M>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'m, M> IntoIterator for &'m Mistakes<M> {
    type Item = &'m M;
    type IntoIter = std::slice::Iter<'m, M>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

/// Something read from a text, and all that is to be said of the text.
#[derive(Clone, PartialEq, Debug)]
pub struct Checked<T> {
    /// The result; `None` if there are mistakes.
    pub value: Option<T>,
    /// All mistakes, in the order of the text.
    pub mistakes: Vec<Mistake>,
    /// The warnings, also where there are mistakes.
    pub warnings: Vec<Warning>,
}

impl<T> Checked<T> {
    /// Returns the value with the warnings, or the mistakes.
    ///
    /// # Errors
    /// All mistakes.
    pub fn into_result(self) -> Result<(T, Vec<Warning>), Mistakes> {
        self.value.map(|value| (value, self.warnings)).ok_or(Mistakes(self.mistakes))
    }

    /// Makes every warning a mistake.
    pub fn strict(mut self) -> Checked<T> {
        let instead = "a warning is a mistake with --strict";
        let mistakes = self.warnings.drain(..).map(|Warning { line, column, what, .. }| Mistake {
            line,
            column,
            what,
            instead: instead.to_owned(),
        });
        self.mistakes.extend(mistakes);
        self.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        self.value = self.value.filter(|_| self.mistakes.is_empty());
        self
    }

    /// Converts the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Checked<U> {
        let Checked { value, mistakes, warnings } = self;
        Checked { value: value.map(convert), mistakes, warnings }
    }
}

/// The number of mistakes, and of warnings, that are reported.
const MISTAKES_MAX: usize = 1000;

/// Collects the mistakes and warnings in one text, by byte offset.
#[derive(Debug)]
pub struct Remarks<'t> {
    text: &'t str,
    /// Byte offset of the start of each line.
    lines: Vec<usize>,
    mistakes: Vec<Mistake>,
    /// Byte offsets of the mistakes.
    offsets: BTreeSet<usize>,
    warnings: Vec<Warning>,
    /// Whether what cannot run is a mistake.
    is_to_run: bool,
}

impl<'t> Remarks<'t> {
    /// Returns an empty collection for `text`.
    pub fn new(text: &'t str) -> Remarks<'t> {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        Remarks {
            text,
            lines: std::iter::once(0).chain(starts).collect(),
            mistakes: Vec::new(),
            offsets: BTreeSet::new(),
            warnings: Vec::new(),
            is_to_run: true,
        }
    }

    /// Makes it the collection of a network that is drawn and does not run: what keeps it from
    /// running is not a mistake.
    #[must_use]
    pub fn to_draw(mut self) -> Remarks<'t> {
        self.is_to_run = false;
        self
    }

    /// Adds a mistake that keeps a network from running, at a byte offset.
    pub fn mistake_of_running(&mut self, at: usize, what: impl Into<String>, instead: impl Into<String>) {
        if self.is_to_run {
            self.mistake(at, what, instead);
        }
    }

    /// Adds a mistake at a byte offset.
    pub fn mistake(&mut self, at: usize, what: impl Into<String>, instead: impl Into<String>) {
        if self.mistakes.len() < MISTAKES_MAX {
            let (line, column) = self.position(at);
            self.offsets.insert(at);
            let [what, instead] = [what.into(), instead.into()].map(|text| one_line(&text).into_owned());
            self.mistakes.push(Mistake { line, column, what, instead });
        }
    }

    /// Adds the mistakes in another file, which the text names at `at`.
    pub fn mistakes_in(&mut self, path: &str, at: usize, mistakes: Mistakes) {
        for Mistake { line, column, what, instead } in mistakes {
            self.mistake(at, format!("{path}:{line}:{column}: {what}"), instead);
        }
    }

    /// Adds a warning at a byte offset.
    pub fn warn(&mut self, code: Code, at: usize, what: impl Into<String>) {
        if self.warnings.len() < MISTAKES_MAX {
            let (line, column) = self.position(at);
            let what = one_line(&what.into()).into_owned();
            self.warnings.push(Warning { line, column, code, what });
        }
    }

    /// Returns the byte offsets of the mistakes so far.
    pub fn offsets(&self) -> &BTreeSet<usize> {
        &self.offsets
    }

    /// Returns the number of mistakes so far.
    pub fn count(&self) -> usize {
        self.mistakes.len()
    }

    /// Changes what to write instead of the mistakes since there were `count`, where `better` has
    /// something.
    pub fn improve_since(&mut self, count: usize, better: impl Fn(&str) -> Option<String>) {
        for mistake in self.mistakes.iter_mut().skip(count) {
            if let Some(instead) = better(&mistake.instead) {
                mistake.instead = one_line(&instead).into_owned();
            }
        }
    }

    /// Returns whether there are no mistakes so far.
    pub fn is_clean(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Returns the warnings, or all mistakes in the order of the text, each once.
    pub fn finish(self) -> Result<Vec<Warning>, Mistakes> {
        self.check(()).into_result().map(|((), warnings)| warnings)
    }

    /// Returns the value if there are no mistakes, and all mistakes and warnings in the order of
    /// the text, each once.
    pub fn check<T>(mut self, value: T) -> Checked<T> {
        let mut said = BTreeSet::new();
        self.mistakes.retain(|mistake| said.insert(mistake.clone()));
        // Mistakes at one place keep their order: they may be about the lines of another file.
        self.mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
        self.warnings.sort();
        self.warnings.dedup();
        let value = self.mistakes.is_empty().then_some(value);
        Checked { value, mistakes: self.mistakes, warnings: self.warnings }
    }

    /// Returns the line and the column of a byte offset, from 1; columns count characters.
    pub fn position(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.lines.partition_point(|&start| start <= at) - 1;
        let column = self.text.as_bytes()[self.lines[line]..at].iter().filter(|&&b| b & 0xc0 != 0x80).count();
        (line + 1, column + 1)
    }
}

/// Returns a text with its control characters escaped, as `\u{1b}`: a terminal would obey them. So
/// are the characters that reverse the direction of a text. Lines stay lines.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// As [`printable`], and line breaks are escaped too.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

fn escaped(text: &str, keeps: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Unicode Standard Annex #9, table 1: explicit directional formatting.
    let is_odd = |c: char| {
        c.is_control() && !keeps(c)
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_odd) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_odd(c) { safe.extend(c.escape_debug()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// Returns the known word with the smallest edit distance to `word`, if that is at most a third of
/// its length.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let near = word.chars().count().max(3) / 3;
    let distance = |other: &'w str| (edits(word, other), other);
    known
        .into_iter()
        .map(distance)
        .filter(|(d, _)| *d <= near)
        .min_by_key(|(d, _)| *d)
        .map(|(_, other)| other)
}

/// Returns the nearest of the known names that does not differ from `name` in digits alone: `cell2`
/// beside `cell1` is another name, and not a slip.
pub fn nearest_name<'w>(name: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let letters = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    nearest(name, known.into_iter().filter(|known| letters(known) != letters(name)))
}

/// Returns what to write in place of an unknown word: the nearest of the known words, or one of
/// them.
pub fn choice<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    const SHOWN: usize = 30;
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("write {meant}"),
        None if known.is_empty() => "remove it: there is none".to_owned(),
        None if known.len() == 1 => format!("write {}", known[0]),
        None if known.len() <= SHOWN => format!("write one of {}", known.join(", ")),
        None => format!("write one of {}", several(known.into_iter())),
    }
}

/// Formats names for a sentence: `a, b, c`, or `a, b, c, d, e and 7 more`.
pub fn several<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<&str> = names.collect();
    // One more name is no longer than its count.
    if names.len() <= SHOWN + 1 {
        return names.join(", ");
    }
    format!("{} and {} more", names[..SHOWN].join(", "), names.len() - SHOWN)
}

/// Returns the edit distance (optimal string alignment): insertions, deletions, replacements and
/// swaps of neighbours.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    if a.len().abs_diff(b.len()) > a.len() / 3 + 1 {
        return usize::MAX;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_lines_and_characters_from_one() {
        let mut remarks = Remarks::new("ab\nµs x\n");
        remarks.mistake(0, "first", "write a");
        remarks.mistake(7, "second", "write b");
        remarks.mistake(99, "past the end", "write c");
        let printed: Vec<String> = remarks.finish().unwrap_err().iter().map(Mistake::to_string).collect();
        assert_eq!(printed, ["1:1: first; write a", "2:4: second; write b", "3:1: past the end; write c"]);
    }

    #[test]
    fn mistakes_are_one_error_with_a_line_for_each() {
        let read = || -> Result<(), Box<dyn std::error::Error>> {
            let mut remarks = Remarks::new("a\nb");
            remarks.mistake(0, "first", "write a");
            remarks.mistake(2, "second", "write b");
            remarks.finish()?;
            Ok(())
        };
        assert_eq!(read().unwrap_err().to_string(), "1:1: first; write a\n2:1: second; write b");
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("µs\n\ta\u{1b}[31m\u{9b}1m\r\u{7}"), "µs\n\ta\\u{1b}[31m\\u{9b}1m\\r\\u{7}");
        assert_eq!(one_line("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
        let mut remarks = Remarks::new("x");
        remarks.mistake(0, "a\u{1b}[2J", "write\u{0}");
        assert_eq!(remarks.finish().unwrap_err()[0].to_string(), "1:1: a\\u{1b}[2J; write\\0");
        let mut remarks = Remarks::new("x");
        remarks.warn(Code::Said, 0, "a\u{1b}]0;title\u{7}");
        assert_eq!(remarks.finish().unwrap()[0].to_string(), "1:1: a\\u{1b}]0;title\\u{7}");
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(several(["a", "b", "c", "d", "e", "f"].into_iter()), "a, b, c, d, e, f");
        assert_eq!(several(["a", "b", "c", "d", "e", "f", "g"].into_iter()), "a, b, c, d, e and 2 more");
    }

    #[test]
    fn the_nearest_word_is_the_one_that_was_meant() {
        let known = ["rate", "delay", "loss", "queue", "overhead"];
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("Rate", known), Some("rate"));
        assert_eq!(nearest("que", known), None);
        assert_eq!(nearest("overheads", known), Some("overhead"));
        assert_eq!(nearest("banana", known), None);
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_nearest_or_with_all() {
        assert_eq!(choice("dealy", ["rate", "delay"]), "write delay");
        assert_eq!(choice("banana", ["rate", "delay"]), "write one of rate, delay");
        assert_eq!(choice("banana", ["rate"]), "write rate");
        assert_eq!(choice("banana", []), "remove it: there is none");
    }
}
