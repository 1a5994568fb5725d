//! Just enough of Rust's lexical grammar to tell code from comments and literals.
//!
//! Not a parser: it knows nested block comments, strings with escapes, raw strings, and character
//! literals as opposed to lifetimes. That suffices to search code for words.

/// `text` with comments and the contents of literals replaced by spaces; every line break stays
/// where it is.
pub(crate) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let follows_word = code.chars().next_back().is_some_and(is_word);
        let hidden = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => character(rest),
            'r' | 'b' | 'c' if !follows_word => prefixed_literal(rest),
            _ => 0,
        };
        let (blank, after) = rest.split_at(hidden);
        code.extend(blank.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
        if hidden == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// The lines (from 1) of `code` on which `word` occurs, not as part of a longer word.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let on_line = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + word.len()..].chars().next();
            let joined_left = word.starts_with(is_word) && before.is_some_and(is_word);
            let joined_right = word.ends_with(is_word) && after.is_some_and(is_word);
            !joined_left && !joined_right
        })
    };
    code.lines().enumerate().filter(|(_, line)| on_line(line)).map(|(index, _)| index + 1).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the block comment `text` starts with; nested ones count.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(found) = text[at..].find("/*").into_iter().chain(text[at..].find("*/")).min() {
        depth += if text[at + found..].starts_with("/*") { 1 } else { -1 };
        at += found + 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of the string literal `text` starts with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character literal `text` starts with, 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        // The character after the backslash may be a quote itself.
        Some((_, '\\')) => text.char_indices().skip(3).find(|&(_, c)| c == '\'').map_or(0, |(at, _)| at + 1),
        Some(_) => characters.next().filter(|&(_, c)| c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// The length of the literal with prefix (`r"`, `br#"`, `b'`, …) `text` starts with, 0 for a plain
/// word.
fn prefixed_literal(text: &str) -> usize {
    let prefix = text.chars().take_while(|c| matches!(c, 'r' | 'b' | 'c')).count().min(2);
    let hashes = text[prefix..].chars().take_while(|&c| c == '#').count();
    let quote = &text[prefix + hashes..];
    if quote.starts_with('\'') && hashes == 0 && &text[..prefix] == "b" {
        return prefix + character(quote);
    }
    if !quote.starts_with('"') {
        return 0;
    }
    if !text[..prefix].contains('r') {
        return if hashes == 0 { prefix + string(quote) } else { 0 };
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = prefix + hashes + 1;
    text[start..].find(&end).map_or(text.len(), |at| start + at + end.len())
}

#[test]
fn comments_and_literals_are_blanked_and_code_is_kept() {
    for (text, code) in [
        ("a // unsafe\nb", "a          \nb"),
        ("a /* x /* y */ z */ b", "a                   b"),
        (r#"f("un\"safe") + g"#, "f(          ) + g"),
        ("r#\"a\"b\"# c", "         c"),
        ("'x' 'a: &'b str", "    'a: &'b str"),
        (r"'\'' '\\' '\u{41}' x", "                   x"),
        ("b'\\'' b\"s\" br\"t\" r#type bar\"", "                 r#type bar "),
        ("\"two\nlines\" x", "    \n       x"),
    ] {
        assert_eq!(code_only(text), code, "{text}");
    }
}

#[test]
fn a_word_is_found_only_whole() {
    assert_eq!(lines_with("unsafe {\nunsafe_code\n(unsafe)", "unsafe"), [1, 3]);
    assert_eq!(lines_with("my_todo!()\ntodo!()", "todo!"), [2]);
}
