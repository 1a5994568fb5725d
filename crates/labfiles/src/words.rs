//! Words of commands, and variables in texts.

use std::collections::BTreeMap;

/// Splits a command into words, as a shell does before it replaces anything. `None`: a quote has no
/// end.
pub(crate) fn split(command: &str) -> Option<Vec<String>> {
    shlex::split(command)
}

/// Returns a command that is run without a shell as a line for one, with the same words.
pub(crate) fn line(command: &str) -> Option<String> {
    let words = split(command)?;
    // A NUL cannot be in a word.
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

/// Reads lines of `NAME=VALUE`. Quotes around a value are not part of it.
pub(crate) fn variables(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.filter_map(|line| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim();
        let quoted = ['"', '\''].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
        Some((name.trim().to_owned(), quoted.unwrap_or(value).to_owned()))
    });
    pairs.collect()
}

/// Replaces `$NAME` and `${NAME}` by what `variable` returns, and `${NAME:-TEXT}`, `${NAME:=TEXT}`
/// and `${NAME-TEXT}` by the text where it returns nothing. Other variables stay, for the shell
/// that runs a command.
pub(crate) fn substituted(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        result.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        match value(rest, variable) {
            Some((value, length)) => {
                result.push_str(&value);
                rest = &rest[length..];
            }
            None => result.push('$'),
        }
    }
    result.push_str(rest);
    result
}

/// Returns the value of the variable whose name or braces `text` begins with, and their length.
fn value(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<(String, usize)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
    let Some(inner) = text.strip_prefix('{') else {
        let length = name(text);
        return Some((variable(&text[..length]).filter(|_| length > 0)?, length));
    };
    let inner = &inner[..inner.find('}')?];
    let (name, default) = inner.split_at(name(inner));
    let default = default.strip_prefix(':').unwrap_or(default).strip_prefix(['-', '=']);
    let given = variable(name).filter(|value| !value.is_empty());
    Some((given.or(default.map(str::to_owned))?, inner.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_its_words_in_a_shell() {
        for (command, expected) in [
            ("ip addr add 10.0.0.1/24 dev eth1", "ip addr add 10.0.0.1/24 dev eth1"),
            ("echo a > b", "echo a '>' b"),
            ("sh -c \"echo $X && id\"", "sh -c 'echo $X && id'"),
            ("ash -c '\nip link set eth1 up &&\nid'", "ash -c '\nip link set eth1 up &&\nid'"),
        ] {
            assert_eq!(line(command).as_deref(), Some(expected));
            assert_eq!(split(expected), split(command));
        }
        assert_eq!(line("echo 'a"), None);
    }

    #[test]
    fn variables_of_the_reader_are_replaced_and_others_stay() {
        let known = |name: &str| (name == "A").then(|| "1".to_owned());
        for (text, expected) in [
            ("$A ${A} ${A:-2} $AB ${B} $", "1 1 1 $AB ${B} $"),
            ("${B:-2} ${B:=3} ${B-} ${", "2 3  ${"),
            ("$$A 5$ é$A", "$1 5$ é1"),
        ] {
            assert_eq!(substituted(text, &known), expected);
        }
    }

    #[test]
    fn files_of_variables_have_one_a_line() {
        let read = variables("# no\nA=1\nexport B = \"x y\"\n\nC='='\nnone\n");
        let pairs: Vec<(&str, &str)> = read.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(pairs, [("A", "1"), ("B", "x y"), ("C", "=")]);
    }
}
