//! Reads JSON text (RFC 8259) into a tree of values with their places. `serde_json` reports no
//! place of a value, and every mistake of a description needs one.

use crate::tree::{Integer, Placed, Tree, TreeEntry, TreeTable};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Values nested deeper than this are refused: the parser is recursive.
const DEPTH_MAX: usize = 64;

/// What is wrong with JSON text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonError {
    /// Byte offset.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
    /// What to write.
    pub instead: &'static str,
}

/// Parses a text that is one JSON value.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str) -> Result<Placed<'_>, JsonError> {
    let mut parser = Parser { text, at: 0 };
    let value = parser.value(0)?;
    parser.skip_space();
    match parser.at == text.len() {
        true => Ok(value),
        false => Err(parser.error("text follows the value", "remove it")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn error(&self, what: &'static str, instead: &'static str) -> JsonError {
        JsonError { at: self.at, what, instead }
    }

    fn skip_space(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Placed<'t>, JsonError> {
        if depth > DEPTH_MAX {
            return Err(self.error("values are nested too deeply", "write fewer lists in lists"));
        }
        let first = self.peek();
        let at = self.at;
        let value = match first {
            Some(b'{') => Tree::Table(self.object(depth)?),
            Some(b'[') => Tree::Array(self.array(depth)?),
            Some(b'"') => Tree::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Tree::Boolean(true))?,
            Some(b'f') => self.word("false", Tree::Boolean(false))?,
            Some(b'n') => self.word("null", Tree::Null)?,
            _ => return Err(self.error("a value is missing", "write \"text\", a number, [ … ] or { … }")),
        };
        Ok(Placed { at, end: self.at, value })
    }

    fn word(&mut self, word: &str, value: Tree<'t>) -> Result<Tree<'t>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("this is not a value", "write true, false, or text in \"quotes\""));
        }
        self.at += word.len();
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Placed<'t>>, JsonError> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(elements);
        }
        loop {
            elements.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(elements);
            }
            if !self.take(b',') {
                return Err(self.error("the list has neither ',' nor ']' here", "write , or ]"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<TreeTable<'t>, JsonError> {
        self.at += 1;
        let mut table = TreeTable::default();
        let mut seen = BTreeSet::new();
        if self.take(b'}') {
            return Ok(table);
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("a key is missing", "write \"key\": value"));
            }
            let key_at = self.at;
            let key = self.string()?;
            if !seen.insert(key.clone()) {
                return Err(JsonError { at: key_at, what: "the key occurs twice", instead: "write it once" });
            }
            if !self.take(b':') {
                return Err(self.error("the key has no value", "write : and a value"));
            }
            let placed = self.value(depth + 1)?;
            table.entries.push(TreeEntry { key, key_at, placed });
            if self.take(b'}') {
                return Ok(table);
            }
            if !self.take(b',') {
                return Err(self.error("the object has neither ',' nor '}' here", "write , or }"));
            }
        }
    }

    fn number(&mut self) -> Result<Tree<'t>, JsonError> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = self.text.as_bytes()[self.at..].iter().take_while(|byte| is_part(byte)).count();
        let text = &self.text[self.at..self.at + length];
        let is_finite = text.parse().is_ok_and(f64::is_finite);
        let Some(is_whole) = is_whole(text).filter(|_| is_finite) else {
            return Err(self.error("this is not a number", "write digits, for example 1500 or 0.25"));
        };
        self.at += length;
        Ok(match is_whole {
            true => Tree::Integer(Integer { digits: Cow::Borrowed(text), radix: 10 }),
            false => Tree::Float(Cow::Borrowed(text)),
        })
    }

    fn string(&mut self) -> Result<Cow<'t, str>, JsonError> {
        self.at += 1;
        let text = self.text;
        let start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            let rest = &text[self.at..];
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            if let Some(unescaped) = &mut unescaped {
                unescaped.push_str(&rest[..plain]);
            }
            self.at += plain;
            match text.as_bytes().get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(unescaped.map_or(Cow::Borrowed(&text[start..end]), Cow::Owned));
                }
                Some(b'\\') => {
                    let so_far = &text[start..self.at];
                    let unescaped = unescaped.get_or_insert_with(|| so_far.to_owned());
                    let escaped = self.escape()?;
                    unescaped.push(escaped);
                }
                Some(_) => return Err(self.error("the text has a control character", "write \\n or \\u0000")),
                None => return Err(self.error("the text is never closed", "write its \"")),
            }
        }
    }

    /// The character of an escape; surrogates come in pairs.
    fn escape(&mut self) -> Result<char, JsonError> {
        let escape = self.text.as_bytes().get(self.at + 1).copied();
        let simple = match escape {
            Some(b'u') => return self.unicode(),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.error("this escape is not known", "write \\\\ for a backslash")),
        };
        self.at += 2;
        Ok(simple)
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let wrong = self.error("this is not a character", "write \\u and four hexadecimal digits");
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            digits
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit())
                .then(|| u16::from_str_radix(digits, 16).ok())?
        };
        let first = unit(self.at).ok_or_else(|| wrong.clone())?;
        let pair = unit(self.at + 6).filter(|_| (0xd800..0xdc00).contains(&first));
        let mut decoded = char::decode_utf16(std::iter::once(first).chain(pair));
        let Some(Ok(found)) = decoded.next() else { return Err(wrong) };
        self.at += 6 * found.len_utf16();
        Ok(found)
    }
}

/// Returns whether a number has neither a fraction nor an exponent; `None` for text that is not a
/// number of RFC 8259, section 6.
fn is_whole(text: &str) -> Option<bool> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (integer, rest) = leading_digits(unsigned)?;
    if integer.len() > 1 && integer.starts_with('0') {
        return None;
    }
    let after_fraction = match rest.strip_prefix('.') {
        Some(fraction) => leading_digits(fraction)?.1,
        None => rest,
    };
    let end = match after_fraction.strip_prefix(['e', 'E']) {
        Some(exponent) => leading_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))?.1,
        None => after_fraction,
    };
    end.is_empty().then_some(rest.is_empty())
}

/// Splits a text after its leading digits, of which there is at least one.
fn leading_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_places() {
        let parsed = parse(" {\"a\\u00b5\": [1, -2.5e3, \"x\\ud83d\\ude00\\n\", true, null]}").unwrap();
        let Tree::Table(table) = &parsed.value else { panic!("a table") };
        assert_eq!((parsed.at, table.entries[0].key_at, &*table.entries[0].key), (1, 2, "aµ"));
        let Tree::Array(elements) = &table.entries[0].placed.value else { panic!("a list") };
        assert_eq!(
            elements[0],
            Placed { at: 14, end: 15, value: Tree::Integer(Integer { digits: "1".into(), radix: 10 }) }
        );
        assert_eq!(elements[1].value, Tree::Float("-2.5e3".into()));
        assert_eq!(elements[2].value, Tree::Text("x😀\n".into()));
        assert_eq!((&elements[3].value, &elements[4].value), (&Tree::Boolean(true), &Tree::Null));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("{} {}", 3),
            ("{\"a\": 1, \"a\": 2}", 9),
            ("[1 2]", 3),
            ("{a: 1}", 1),
            ("[01x]", 1),
            ("01", 0),
            ("-", 0),
            ("[1.]", 1),
            ("1.e5", 0),
            ("1e", 0),
            ("-1e+999", 0),
            ("1-1", 0),
            ("\"\\x\"", 1),
            ("\"\\ud800\"", 1),
            ("\"abc", 4),
            ("[tru]", 1),
        ] {
            assert_eq!(parse(text).map_err(|error| error.at), Err(at), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_number_is_read_as_serde_json_reads_it(text in "-?[0-9.eE+-]{0,6}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            proptest::prop_assert_eq!(parse(&text).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn what_serde_json_reads_is_read_and_nothing_else(text in "[\\[\\]{}:,\"\\\\a0-9.eEu+ -]{0,20}") {
            let ours = parse(&text).is_ok();
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            // serde_json accepts keys that occur twice.
            proptest::prop_assert!(ours == theirs || (theirs && text.contains(':')), "{text}");
        }
    }
}
