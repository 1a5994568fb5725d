//! Parses Tcl (Tcl(n), the "dodekalogue"): text to commands, words and parts of words. Nothing is
//! evaluated.
//!
//! One difference from Tcl: a bare word that begins with `#` starts a comment, as authors of
//! scripts expect, so that `set n0 [$ns node]  # the source` works.

use std::rc::Rc;

/// The deepest nesting of brackets.
const DEPTH_MAX: usize = 100;

/// A string, and its place in the script if it occurs there verbatim.
#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    pub(crate) text: Rc<String>,
    pub(crate) at: Option<usize>,
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value { text: Rc::new(text), at: None }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::from(text.to_owned())
    }
}

impl std::ops::Deref for Value {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

/// A command and its place in the script.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) at: Option<usize>,
    pub(crate) words: Vec<Vec<WordPart>>,
}

/// A piece of a word.
#[derive(Debug)]
pub(crate) enum WordPart {
    Text(Value),
    Variable { name: String, index: Option<Vec<WordPart>> },
    Script(Vec<Command>),
}

/// What is wrong with the syntax, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum SyntaxError {
    #[error("this '{{' is never closed")]
    Brace(Option<usize>),
    #[error("this '\"' is never closed")]
    Quote(Option<usize>),
    #[error("this '[' is never closed")]
    Bracket(Option<usize>),
    #[error("this '(' is never closed")]
    Index(Option<usize>),
    #[error("brackets are nested too deeply")]
    Depth(Option<usize>),
}

impl SyntaxError {
    pub(crate) fn at(self) -> Option<usize> {
        match self {
            SyntaxError::Brace(at) | SyntaxError::Quote(at) | SyntaxError::Bracket(at) => at,
            SyntaxError::Index(at) | SyntaxError::Depth(at) => at,
        }
    }

    pub(crate) fn instead(self) -> &'static str {
        match self {
            SyntaxError::Brace(_) => "write its '}'",
            SyntaxError::Quote(_) => "write its '\"'",
            SyntaxError::Bracket(_) => "write its ']'",
            SyntaxError::Index(_) => "write its ')'",
            SyntaxError::Depth(_) => "write a variable in between",
        }
    }
}

/// Parses commands one by one.
pub(crate) struct Parser<'s> {
    text: &'s str,
    /// The offset of `text` in the script.
    base: Option<usize>,
    at: usize,
    depth: usize,
    /// Number of commands, words and parts of words so far. The budget pays for their memory.
    pub(crate) made: u64,
}

impl<'s> Parser<'s> {
    pub(crate) fn new(script: &'s Value) -> Parser<'s> {
        Parser { text: script, base: script.at, at: 0, depth: 0, made: 0 }
    }

    /// The parts of a whole text, as between quotes.
    pub(crate) fn quoted(text: &'s Value) -> Result<Vec<WordPart>, SyntaxError> {
        Parser::new(text).parts(|_| false)
    }

    /// The operand of an expression at `at`: a variable, a command, or text in quotes or braces.
    /// `None` if there is none; else `at` is after it.
    pub(crate) fn operand(text: &'s Value, at: &mut usize) -> Result<Option<Vec<WordPart>>, SyntaxError> {
        let mut parser = Parser { at: *at, ..Parser::new(text) };
        let parts = match parser.peek() {
            Some(b'$') => parser.variable()?.map(|part| vec![part]),
            Some(b'[') => Some(vec![parser.bracket()?]),
            Some(b'"' | b'{') => Some(parser.word()?),
            _ => None,
        };
        *at = parser.at;
        Ok(parts)
    }

    /// The next command, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Command>, SyntaxError> {
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Ok(None),
                Some(b']') if self.depth > 0 => return Ok(None),
                Some(b'\n' | b'\r' | b';') => self.at += 1,
                Some(b'#') => self.skip_comment(),
                Some(_) => break,
            }
        }
        self.made += 1;
        let mut command = Command { at: self.place(self.at), words: Vec::new() };
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' | b'\r' | b';' => break,
                b']' if self.depth > 0 => break,
                b'#' => {
                    self.skip_comment();
                    break;
                }
                _ => command.words.push(self.word()?),
            }
            self.skip_blanks();
        }
        Ok(Some(command))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn place(&self, at: usize) -> Option<usize> {
        self.base.map(|base| base + at)
    }

    /// Spaces, tabs and continued lines.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            match rest {
                [b' ' | b'\t' | b'\x0c', ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => return,
                b'\\' => self.at = (self.at + 2).min(self.text.len()),
                _ => self.at += 1,
            }
        }
    }

    fn word(&mut self) -> Result<Vec<WordPart>, SyntaxError> {
        self.made += 2;
        match self.peek() {
            Some(b'{') => {
                let (from, until) = self.braces()?;
                Ok(vec![WordPart::Text(Value {
                    text: Rc::new(self.text[from..until].to_owned()),
                    at: self.place(from),
                })])
            }
            Some(b'"') => {
                let start = self.at;
                self.at += 1;
                let parts = self.parts(|byte| byte == b'"')?;
                if self.peek() != Some(b'"') {
                    return Err(SyntaxError::Quote(self.place(start)));
                }
                self.at += 1;
                Ok(parts)
            }
            _ => {
                let bracketed = self.depth > 0;
                let ends = |byte: u8| byte.is_ascii_whitespace() || byte == b';';
                if bracketed { self.parts(|byte| ends(byte) || byte == b']') } else { self.parts(ends) }
            }
        }
    }

    /// Steps over `{…}` and returns the range between.
    fn braces(&mut self) -> Result<(usize, usize), SyntaxError> {
        let start = self.at;
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.at += 1,
                b'{' => open += 1,
                b'}' => open -= 1,
                _ => (),
            }
            self.at += 1;
            if open == 0 {
                return Ok((start + 1, self.at - 1));
            }
        }
        self.at = self.text.len();
        Err(SyntaxError::Brace(self.place(start)))
    }

    /// Text, variables and scripts until a byte that `ends`, which is left.
    fn parts(&mut self, ends: impl Fn(u8) -> bool) -> Result<Vec<WordPart>, SyntaxError> {
        // Most words are one part.
        let mut parts = Vec::with_capacity(1);
        let mut text = String::new();
        let mut from = self.at;
        while let Some(byte) = self.peek() {
            // A continued line ends a bare word: the backslash and newline are a blank.
            let continued = byte == b'\\' && self.text.as_bytes().get(self.at + 1) == Some(&b'\n');
            if ends(byte) || (continued && ends(b' ')) {
                break;
            }
            let special = match byte {
                b'$' => self.variable()?,
                b'[' => Some(self.bracket()?),
                b'\\' => {
                    self.backslash(&mut text);
                    continue;
                }
                _ => None,
            };
            match special {
                Some(part) => {
                    self.made += 2;
                    push_text(&mut parts, &mut text, None);
                    parts.push(part);
                    from = self.at;
                }
                None => {
                    let character = self.text[self.at..].chars().next().expect("peek saw a byte");
                    text.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
        let verbatim = parts.is_empty() && self.text.get(from..self.at) == Some(text.as_str());
        let at = self.place(from).filter(|_| verbatim);
        push_text(&mut parts, &mut text, at);
        Ok(parts)
    }

    /// `$name`, `${name}`, `$name(index)`; `None` for a lone dollar.
    fn variable(&mut self) -> Result<Option<WordPart>, SyntaxError> {
        let start = self.at;
        if self.text[start + 1..].starts_with('{') {
            let Some(length) = self.text[start + 2..].find('}') else {
                return Err(SyntaxError::Brace(self.place(start + 1)));
            };
            self.at = start + 2 + length + 1;
            let name = self.text[start + 2..start + 2 + length].to_owned();
            return Ok(Some(WordPart::Variable { name, index: None }));
        }
        let rest = &self.text.as_bytes()[start + 1..];
        let letter = |i: usize, &byte: &u8| {
            let colons = byte == b':' && (rest.get(i + 1) == Some(&b':') || (i > 0 && rest[i - 1] == b':'));
            byte.is_ascii_alphanumeric() || byte == b'_' || colons
        };
        let length = rest.iter().enumerate().take_while(|(i, byte)| letter(*i, byte)).count();
        if length == 0 {
            return Ok(None);
        }
        let name = self.text[start + 1..start + 1 + length].to_owned();
        self.at = start + 1 + length;
        let mut index = None;
        if self.peek() == Some(b'(') {
            let open = self.at;
            self.at += 1;
            self.deeper(open)?;
            index = Some(self.parts(|byte| byte == b')')?);
            self.depth -= 1;
            if self.peek() != Some(b')') {
                return Err(SyntaxError::Index(self.place(open)));
            }
            self.at += 1;
        }
        Ok(Some(WordPart::Variable { name, index }))
    }

    fn bracket(&mut self) -> Result<WordPart, SyntaxError> {
        let open = self.at;
        self.at += 1;
        self.deeper(open)?;
        let mut commands = Vec::new();
        while let Some(command) = self.next()? {
            commands.push(command);
        }
        self.depth -= 1;
        if self.peek() != Some(b']') {
            return Err(SyntaxError::Bracket(self.place(open)));
        }
        self.at += 1;
        Ok(WordPart::Script(commands))
    }

    fn deeper(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(SyntaxError::Depth(self.place(at))) } else { Ok(()) }
    }

    fn backslash(&mut self, text: &mut String) {
        self.at += 1;
        let Some(character) = self.text[self.at..].chars().next() else {
            text.push('\\');
            return;
        };
        self.at += character.len_utf8();
        text.push(match character {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '\n' => {
                while matches!(self.peek(), Some(b' ' | b'\t')) {
                    self.at += 1;
                }
                ' '
            }
            other => other,
        });
    }
}

fn push_text(parts: &mut Vec<WordPart>, text: &mut String, at: Option<usize>) {
    if !text.is_empty() {
        parts.push(WordPart::Text(Value { text: Rc::new(std::mem::take(text)), at }));
    }
}

/// The elements of a Tcl list.
pub(crate) fn elements(list: &Value) -> Vec<Value> {
    ranges(list).map(|range| part_of(list, range)).collect()
}

/// The element at `index`, without making the others.
pub(crate) fn element(list: &Value, index: usize) -> Option<Value> {
    ranges(list).nth(index).map(|range| part_of(list, range))
}

/// How many elements a list has.
pub(crate) fn length(list: &str) -> usize {
    ranges(list).count()
}

fn part_of(list: &Value, range: std::ops::Range<usize>) -> Value {
    let at = list.at.map(|base| base + range.start);
    Value { text: Rc::new(list[range].to_owned()), at }
}

/// Where the elements of a list are. Unbalanced braces end with the text: a list never fails.
fn ranges(text: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let (from, until) = match *bytes.get(at)? {
            b'{' => {
                let mut open = 0usize;
                let close = bytes[at..].iter().position(|byte| {
                    open = open + usize::from(*byte == b'{') - usize::from(*byte == b'}');
                    open == 0
                });
                (at + 1, close.map_or(bytes.len(), |length| at + length))
            }
            b'"' => {
                let close = bytes[at + 1..].iter().position(|byte| *byte == b'"');
                (at + 1, close.map_or(bytes.len(), |length| at + 1 + length))
            }
            _ => {
                let length = bytes[at..].iter().position(u8::is_ascii_whitespace);
                (at, length.map_or(bytes.len(), |length| at + length))
            }
        };
        at = (until + 1).min(bytes.len());
        Some(from..until)
    })
}

/// Appends an element to a list, quoted if it must be.
pub(crate) fn push_element(list: &mut String, element: &str) {
    if !list.is_empty() {
        list.push(' ');
    }
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '{' | '}' | '[' | ']' | '$' | '"' | ';' | '\\');
    if !element.is_empty() && element.chars().all(plain) {
        list.push_str(element);
    } else {
        list.extend(["{", element, "}"]);
    }
}

/// A list of these elements.
pub(crate) fn list<S: AsRef<str>>(elements: impl IntoIterator<Item = S>) -> Value {
    let mut text = String::new();
    elements.into_iter().for_each(|element| push_element(&mut text, element.as_ref()));
    Value::from(text)
}
