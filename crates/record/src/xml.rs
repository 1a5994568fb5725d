//! Texts in XML and HTML.

/// Returns a text for XML (1.0, §2.4) and HTML, in an element or in an attribute with double
/// quotes. Characters that XML forbids become U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(letter),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_forbidden_characters_are_replaced() {
        assert_eq!(
            escaped("<a b=\"c\">&\u{1b}\u{ffff}\r\nä\t"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}\u{fffd}\u{fffd}\nä\t"
        );
    }
}
