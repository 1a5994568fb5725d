//! The examples of every help page, from `examples.txt`.
//!
//! The file has a section for each command, headed by its path: `[lab run]`. A line that begins
//! with `#` explains the command below it. A long command continues in lines that are indented.

const EXAMPLES: &str = include_str!("examples.txt");

/// Returns the examples of the command with this path, such as `lab run`. `None` if it has none.
pub(crate) fn of(path: &str) -> Option<&'static str> {
    let sections = EXAMPLES.split("\n\n").filter_map(|section| section.trim().split_once('\n'));
    sections.filter(|(heading, _)| heading.trim_matches(['[', ']']) == path).map(|(_, text)| text).next()
}

/// Appends their examples to the help of a command and of all commands below it.
pub(crate) fn append(command: clap::Command, path: &str) -> clap::Command {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        append(below, path.trim_start())
    });
    let Some(examples) = of(path) else { return command };
    let notes = command.get_after_help().map(|notes| format!("{notes}\n\n")).unwrap_or_default();
    let lines: String = examples.lines().map(|line| format!("\n  {line}")).collect();
    command.after_help(format!("{notes}Examples:{lines}"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use std::path::Path;

    /// Returns the paths of all commands whose help can be read.
    fn paths(command: &clap::Command, path: &str) -> Vec<String> {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        let below = below.flat_map(|sub| paths(sub, format!("{path} {}", sub.get_name()).trim_start()));
        std::iter::once(path.to_owned()).chain(below.collect::<Vec<_>>()).collect()
    }

    /// Returns the invocations of `fastpath` in examples, as a shell would split them.
    fn invocations(examples: &str) -> Vec<Vec<String>> {
        let commands = examples.lines().filter(|line| !line.starts_with('#')).fold(
            Vec::<String>::new(),
            |mut commands, line| {
                match (line.strip_prefix("    "), commands.last_mut()) {
                    (Some(rest), Some(command)) => *command = format!("{command} {rest}"),
                    _ => commands.push(line.to_owned()),
                }
                commands
            },
        );
        let words = commands.iter().map(|line| shlex::split(line).expect("quotes are closed"));
        let parts = words.flat_map(|words| {
            let parts = words.split(|word| ["&&", "&", "|"].contains(&word.as_str()));
            parts
                .map(|part| part.split(|word| word == ">").next().unwrap_or_default().to_vec())
                .collect::<Vec<_>>()
        });
        parts.filter(|words| words.first().is_some_and(|word| word == "fastpath")).collect()
    }

    #[test]
    fn every_help_page_has_examples_of_its_command_that_are_accepted() {
        for path in paths(&Cli::command(), "") {
            let examples = of(&path).unwrap_or_else(|| panic!("'{path}' has no section in examples.txt"));
            let invocations = invocations(examples);
            let its_own =
                |words: &&Vec<String>| words[1..].join(" ").replace("--lab lan2 ", "").starts_with(&path);
            assert!(invocations.iter().any(|words| its_own(&words)), "'{path}' is not in its examples");
            for words in invocations {
                let parsed = crate::command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{}: {}", words.join(" "), parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn every_section_belongs_to_a_command_and_fits_into_the_help() {
        let known = paths(&Cli::command(), "");
        for line in EXAMPLES.lines() {
            if let Some(path) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                assert!(known.iter().any(|known| known == path), "no command is called '{path}'");
            }
            assert!(line.chars().count() <= 98, "too long for the help: {line}");
        }
    }

    /// Blocks that are only shown: the other blocks run (`tests/documentation`).
    #[test]
    fn commands_that_the_documentation_only_shows_are_accepted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages =
            ["README.md", "docs/start/install.md", "docs/start/first-lab.md", "docs/start/accuracy.md"];
        let guides = ["netem", "mininet", "measure"].map(|name| format!("docs/guides/{name}.md"));
        for page in pages.into_iter().map(str::to_owned).chain(guides) {
            let text = std::fs::read_to_string(root.join(&page)).unwrap();
            let text = text.replace("```sh,root,no-run\n", "```sh,no-run\n");
            let blocks = text.split("```sh,no-run\n").skip(1);
            let blocks: Vec<&str> =
                blocks.map(|block| block.split("```").next().unwrap_or_default()).collect();
            assert!(!blocks.is_empty(), "{page}");
            for words in blocks.into_iter().flat_map(invocations) {
                let words: Vec<String> = words.into_iter().take_while(|word| word != "#").collect();
                let parsed = crate::command().try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{page}: {}: {}", words.join(" "), parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn example_files_of_the_repository_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let words = EXAMPLES.split_whitespace().filter(|word| word.starts_with("examples/"));
        for file in words {
            assert!(root.join(file).is_file(), "{file}");
        }
    }
}
