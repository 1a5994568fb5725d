//! Words in braces in commands and file names: `{control}`, `{seed}`.
//!
//! `{{word}}` stands for `{word}`, and `${word}` is a variable of the shell unless the word is
//! known.

/// The words that are replaced beside the names of axes.
pub(super) const OWN_WORDS: [&str; 2] = ["seed", "run"];

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece<'t> {
    Text(&'t str),
    /// What the braces contain.
    Word(&'t str),
    /// As [`Piece::Word`], after `$`.
    ShellWord(&'t str),
}

/// Whether a word can stand in braces.
pub(super) fn is_word(word: &str) -> bool {
    word.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Replaces each word that has a value.
pub(super) fn fill<'v>(text: &str, value: &dyn Fn(&str) -> Option<std::borrow::Cow<'v, str>>) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Word(word) => match value(word) {
                Some(value) => filled.push_str(&value),
                None => filled.extend(["{", word, "}"]),
            },
            Piece::ShellWord(word) => match value(word) {
                Some(value) => filled.extend(["$", &*value]),
                None => filled.extend(["${", word, "}"]),
            },
        }
    }
    filled
}

/// Returns the words in braces that `is_known` knows, and then those that nothing defines.
pub(super) fn words<'t>(text: &'t str, is_known: &dyn Fn(&str) -> bool) -> (Vec<&'t str>, Vec<&'t str>) {
    let mut found = (Vec::new(), Vec::new());
    for piece in pieces(text) {
        match piece {
            Piece::Word(word) | Piece::ShellWord(word) if is_known(word) => found.0.push(word),
            Piece::Word(word) => found.1.push(word),
            Piece::ShellWord(_) | Piece::Text(_) => {}
        }
    }
    found
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        from = open + 1;
        let Some(close) = text[from..].find('}').map(|at| from + at) else { break };
        let word = &text[from..close];
        if !is_word(word) {
            continue;
        }
        let before = &text[start..open];
        let (before, piece, end) = if before.ends_with('{') && text[close + 1..].starts_with('}') {
            (&before[..before.len() - 1], Piece::Text(&text[open..=close]), close + 2)
        } else if let Some(before) = before.strip_suffix('$') {
            (before, Piece::ShellWord(word), close + 1)
        } else {
            (before, Piece::Word(word), close + 1)
        };
        pieces.extend([Piece::Text(before), piece]);
        (start, from) = (end, end);
    }
    pieces.push(Piece::Text(&text[start..]));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_replaced_and_all_else_stays() {
        let value = |word: &str| (word == "cc").then_some(std::borrow::Cow::Borrowed("cubic"));
        for (text, filled, unknown) in [
            ("-C {cc}", "-C cubic", vec![]),
            ("{cc}{cc} {wrod}", "cubiccubic {wrod}", vec!["wrod"]),
            ("awk '{{print}}' {", "awk '{print}' {", vec![]),
            ("{{cc}}", "{cc}", vec![]),
            ("awk '{print $1}' ${HOME} ${cc}", "awk '{print $1}' ${HOME} $cubic", vec![]),
            ("{ {cc} }, {}, {a,b} {µ}", "{ cubic }, {}, {a,b} {µ}", vec![]),
            ("{{{cc}}}", "{{cc}}", vec![]),
        ] {
            assert_eq!(fill(text, &value), filled);
            assert_eq!(words(text, &|word| value(word).is_some()).1, unknown, "{text}");
        }
    }
}
