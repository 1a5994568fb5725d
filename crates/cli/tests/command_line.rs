//! Tests the command line of the built program: help, exit codes, and errors for unknown arguments.

use std::path::PathBuf;
use std::process::{Command, Output};

fn fastpath(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fastpath")).args(arguments).output().expect("the built program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the commands that the help lists, without `help` itself.
fn commands() -> Vec<String> {
    let help = stdout(&fastpath(&["--help"]));
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    list.filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|command| command != "help")
        .collect()
}

#[test]
fn help_and_version_succeed_and_help_lists_the_exit_codes() {
    let help = fastpath(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(stdout(&help).contains("0 ok, 1 the answer is no, 2 could not answer"));
    let version = fastpath(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(stdout(&version), format!("fastpath {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_command_has_help() {
    assert!(commands().len() >= 2);
    for command in commands() {
        let help = fastpath(&[&command, "--help"]);
        assert_eq!(help.status.code(), Some(0), "{command}");
        assert!(stdout(&help).contains("Usage: fastpath"), "{command}");
    }
}

#[test]
fn unknown_and_missing_arguments_exit_with_2_and_a_hint() {
    for arguments in [&["complitions"][..], &["man"], &["completions", "tcsh"], &["--verbosely"], &[]] {
        let output = fastpath(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains("Usage: fastpath") || stderr(&output).contains("--help"),
            "{arguments:?}"
        );
    }
    assert!(stderr(&fastpath(&["complitions"])).contains("'completions'"));
}

#[test]
fn completions_contain_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&fastpath(&["completions", shell]));
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn manual_pages_are_written_one_per_command() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    let output = fastpath(&["man", &directory.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for command in commands() {
        assert!(directory.join(format!("fastpath-{command}.1")).is_file(), "{command}");
    }
    let page = std::fs::read_to_string(directory.join("fastpath-sim-compare.1")).unwrap();
    let synopsis =
        page.split(".SH ").find(|section| section.starts_with("SYNOPSIS")).unwrap().replace('\\', "");
    for words in ["[--seed <SEED>]", "[--set <NAME=VALUE>]", "[--json]", "<MACHINE>..."] {
        assert!(synopsis.contains(words), "{words}: {synopsis}");
    }
    let examples = page.split(".SH ").find(|section| section.starts_with("EXAMPLES")).unwrap();
    assert!(examples.contains("fastpath sim compare ixp1200"), "{examples}");
}

#[test]
fn an_error_names_the_cause_the_place_and_the_remedy() {
    let file = env!("CARGO_BIN_EXE_fastpath");
    let output = fastpath(&["man", &format!("{file}/man")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with(&format!("fastpath: {file}/man: cannot create")),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_value_that_begins_with_a_hyphen_is_reported_as_an_invalid_value() {
    for words in [
        "model cores --framing -3",
        "model predict --constants const=5 --point x=1 --line -5Mbit",
        "model index --n -1us --m 1",
        "sim ixp1200 --program linkem --seed -1",
        #[cfg(target_os = "linux")]
        "shell --delay -3ms -- true",
        #[cfg(target_os = "linux")]
        "measure pipeline --loss-ratio -1",
    ] {
        let output = fastpath(&words.split(' ').collect::<Vec<_>>());
        let value = words.split(' ').find(|word| word.starts_with('-') && !word.starts_with("--")).unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains(value) && !said.contains("unexpected argument"), "{words}: {said}");
    }
}

#[test]
fn a_command_that_ends_something_is_not_suggested() {
    let text = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_fastpath")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    // Every word that differs from one of them in one or two letters at one place.
    for (of, end) in [("ctl", "stop"), ("lab", "down")] {
        for start in 0..=end.len() {
            for length in 0..=2.min(end.len() - start) {
                for typed in ["", "x", "o", "xy"] {
                    let word = format!("{}{typed}{}", &end[..start], &end[start + length..]);
                    if !word.is_empty() && !["stop", "down", "top"].contains(&word.as_str()) {
                        assert!(!text(&[of, &word]).contains(&format!("'{end}'")), "{of} {word}");
                    }
                }
            }
        }
    }
    assert!(!text(&["lab", "own"]).contains("down"));
    assert!(text(&["ctl", "link"]).contains("links"));
}
