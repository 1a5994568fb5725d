//! The words of the command line: one word, one meaning, and the words of earlier versions.

use clap::{ArgAction, Command};
use std::collections::{BTreeMap, BTreeSet};

/// Options with several kinds of values, and what they have in common.
const SHARED: &[(&str, &str)] = &[
    ("from", "where something starts: a node of a link, a platform of a prediction"),
    ("in", "a capture, and where it enters"),
    ("out", "the file for what leaves there"),
    ("output", "the file or directory for results"),
    ("port", "a port of a switch: all of them, or the kind of the measured one"),
    ("print", "what is printed instead of a run: a shipped file, or the network itself"),
    ("set", "a value that replaces another"),
];

/// Calls `visit` for a command and every command below it that has a help page.
fn visit<'c>(command: &'c Command, path: &str, visit_one: &mut dyn FnMut(&str, &'c Command)) {
    visit_one(path, command);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        visit(below, format!("{path} {}", below.get_name()).trim_start(), visit_one);
    }
}

/// The name of the value of each option, with the commands that have it.
fn meanings(root: &Command) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut meanings = BTreeMap::<String, BTreeMap<String, BTreeSet<String>>>::new();
    visit(root, "", &mut |path, command| {
        for option in command.get_opts() {
            let value = option.get_value_names().map_or_else(String::new, |names| names[0].to_string());
            let value = value.trim_end_matches(",…").to_owned();
            let long = option.get_long().unwrap_or_default().to_owned();
            meanings.entry(long).or_default().entry(value).or_default().insert(path.to_owned());
        }
    });
    meanings
}

#[test]
fn an_option_has_one_kind_of_value_in_all_commands() {
    let several = meanings(&crate::command()).into_iter().filter(|(_, values)| values.len() > 1);
    let several = several.filter(|(long, _)| SHARED.iter().all(|(shared, _)| shared != long));
    assert_eq!(several.collect::<Vec<_>>(), []);
}

#[test]
fn help_is_text_that_begins_with_a_verb_and_its_object() {
    visit(&crate::command(), "", &mut |path, command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let first = about.lines().next().unwrap_or_default();
        assert!((2..=12).contains(&first.split(' ').count()), "{path}: {first}");
        let help = command.clone().render_long_help().to_string();
        // Escapes of rustdoc.
        assert!(!help.contains("\\[") && !help.contains("\\<"), "{path}: {help}");
        for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
            let is_ours =
                !matches!(option.get_action(), ArgAction::Help | ArgAction::HelpLong | ArgAction::Version);
            assert!(option.get_help().is_some() || !is_ours, "{path}: {} has no help", option.get_id());
        }
    });
}

#[test]
fn options_of_containerlab_files_come_after_the_common_ones() {
    let root = crate::command();
    let replay = root.find_subcommand("replay").expect("replay is a command");
    let help = replay.clone().render_help().to_string();
    let place = |word: &str| help.find(word).unwrap_or_else(|| panic!("{word}: {help}"));
    assert!(place("--seed") < place("Containerlab files:"));
    assert!(place("Containerlab files:") < place("--kinds"));
    assert!(place("--kinds") < place("--impair"));
}

/// Words of the last version, which are accepted for one more.
#[test]
fn words_of_the_last_version_are_accepted() {
    for line in [
        "replay net.toml --ledger log.pcapng",
        "check --only linux net.clab.yml",
        "experiment file.toml --out results --threads 2",
        "evaluate emulator --only table-5.1",
        "evaluate prediction --records directory",
        "model fit table.csv --y T_ns --terms const --only cores=1",
        "model predict fit.json --at p=64",
        "model cores fit.json --at cores=1",
        "sim mine.toml --program p --trace run.json --records points.jsonl",
        "sim experiment sixteen-hosts",
        "sweep m --program p --vary seed=1..3 --threads 2",
        "switch explain --rules r --trace in_port=1",
        #[cfg(target_os = "linux")]
        "shell --ledger log.pcapng",
        #[cfg(target_os = "linux")]
        "lab up net.toml --ledger log.pcapng",
        #[cfg(target_os = "linux")]
        "netem dev --ledger log.pcapng eth0 delay 1ms",
    ] {
        let words = std::iter::once("fastpath").chain(line.split(' '));
        let parsed = crate::command().try_get_matches_from(words);
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
    }
}
