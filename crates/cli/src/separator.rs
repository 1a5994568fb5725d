//! What to write where a command is given without the `--` before it.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Returns the command line with the missing `--`, if that is what `error` is about. `words` are
/// those after the name of the program.
pub(crate) fn missing(error: &Error, root: &Command, words: &[String]) -> Option<String> {
    let place = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => ContextKind::InvalidArg,
        ErrorKind::TooManyValues => ContextKind::InvalidValue,
        _ => return None,
    };
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let (mut command, mut depth) = (root, 0);
    while let Some(inner) = words.get(depth).and_then(|word| command.find_subcommand(word)) {
        (command, depth) = (inner, depth + 1);
    }
    if !command.get_positionals().any(|argument| argument.is_last_set()) {
        return None;
    }
    let rest = words.get(depth..)?;
    let unknown = match error.get(place) {
        Some(ContextValue::String(word)) if !word.starts_with('-') => {
            rest.iter().position(|other| other == word)
        }
        _ => None,
    };
    let (before, after) = words.split_at_checked(depth + unknown?).filter(|(_, after)| !after.is_empty())?;
    let line: Vec<String> = before.iter().chain([&"--".to_owned()]).chain(after).map(quoted).collect();
    Some(format!("a command is written after `--`: fastpath {}", line.join(" ")))
}

fn quoted(word: &String) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.clone() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn a_command_without_its_separator_is_answered_with_the_line_to_write() {
        for (line, expected) in [
            ("lab run net.toml ping b", Some("lab run net.toml -- ping b")),
            ("lab run net.toml --on a ping -c1 b", Some("lab run net.toml --on a -- ping -c1 b")),
            ("shell --delay 5ms curl x", Some("shell --delay 5ms -- curl x")),
            ("lab run net.toml --audti", None),
            ("lab up net.toml ping", None),
            ("chekc", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let mut root = crate::Cli::command();
            root.build();
            let error = root
                .clone()
                .try_get_matches_from(["fastpath".to_owned()].iter().chain(&words))
                .expect_err(line);
            let expected = expected.map(|line| format!("a command is written after `--`: fastpath {line}"));
            assert_eq!(super::missing(&error, &root, &words), expected, "{line}");
        }
    }
}
