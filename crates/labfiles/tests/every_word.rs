//! Every word of a lab file changes what would run, or is named: one word of a valid file, or of
//! its file of impairments, is changed, misspelled or removed, and the network must differ, or a
//! mistake or a warning say why not.
//!
//! `FASTPATH_MUTATIONS=100000 cargo test -p fastpath-labfiles --test every_word --release` takes
//! more.

use fastpath_labfiles::{Options, check};
use fastpath_spec::{NetworkSpec, Warning, mistake::Checked};
use fastpath_text::mutation::lexical::{Mutation, mutation};
use fastpath_units::Rng;
use saphyr_parser::{Event, Parser};
use std::collections::BTreeSet;
use std::ops::Range;

const LAN: &str = include_str!("inputs/lan.clab.yml");
const MIXED: &str = include_str!("inputs/mixed.clab.yml");
const BRANCH: &str = include_str!("../../../examples/branch.clab.yml");
const NETLAB: &str = include_str!("inputs/netlab.yml");
const IGNORED: &str = include_str!("inputs/ignored.netlab.yml");

/// A valid file of values of links.
const IMPAIRMENTS: &str = "[\"*\"]\ndelay = \"2ms\"\n[\"a:eth1\"]\nloss = \"1%\"\nrate = \"10Mbit\"\n";

/// An input: a file, its impairments, and which of the two is changed.
struct Input {
    name: String,
    text: String,
    impairments: Option<&'static str>,
    changes_impairments: bool,
    ignore_images: bool,
}

fn read(input: &Input, mutated: Option<&str>) -> Checked<NetworkSpec> {
    let (text, impairments) = match (mutated, input.changes_impairments) {
        (Some(mutated), true) => (&*input.text, Some(mutated)),
        (Some(mutated), false) => (mutated, input.impairments),
        (None, _) => (&*input.text, input.impairments),
    };
    let files = |name: &str| match name {
        "env" => Ok("M=1\n".to_owned()),
        _ => Err("there is none".to_owned()),
    };
    let options = Options {
        files: &files,
        variables: &|_| None,
        only_linux: true,
        ignore_images: input.ignore_images,
        to_draw: false,
        impairments: impairments.map(|text| ("impair.toml", text)),
    };
    check(text, &options)
}

/// A random topology of netlab.
fn generated(seed: u64) -> String {
    let mut random = Rng::new(seed);
    let mut text = "defaults.device: linux\nnodes:\n".to_owned();
    let count = 2 + random.below(4);
    let mut numbers = BTreeSet::new();
    for node in 0..count {
        let id = 20 + random.below(100);
        text += &match random.below(3) {
            0 if numbers.insert(id) => format!("  h{node}:\n    id: {id}\n"),
            1 => format!("  h{node}:\n    mtu: {}\n", 1300 + node),
            _ => format!("  h{node}:\n"),
        };
    }
    text += "links:\n";
    for link in 0..1 + random.below(4) {
        let (a, b) = (random.below(count), random.below(count));
        if a == b {
            text += &format!("- [h{a}]\n");
            continue;
        }
        text += &match random.below(5) {
            0 => format!("- h{a}-h{b}\n"),
            1 => format!("- h{a}:\n  h{b}:\n  prefix: 10.{link}.0.0/24\n  mtu: 1400\n"),
            2 => format!(
                "- h{a}:\n    ipv4: {}\n  h{b}:\n  tc:\n    delay: {}ms\n    rate: 3000\n",
                150 + a,
                link + 3
            ),
            3 => format!("- h{a}:\n    ifindex: {}\n  h{b}:\n  tc.loss: 2\n", 20 + link),
            _ => format!(
                "- h{a}:\n  h{b}:\n  prefix:\n    ipv4: 10.{link}.8.0/22\n    ipv6: fd00:{link}::/64\n"
            ),
        };
    }
    text
}

fn inputs() -> Vec<Input> {
    let plain = |name: &str, text: &str| Input {
        name: name.to_owned(),
        text: text.to_owned(),
        impairments: None,
        changes_impairments: false,
        ignore_images: false,
    };
    let mut inputs = vec![
        plain("lan.clab.yml", LAN),
        plain("mixed.clab.yml", MIXED),
        plain("branch.clab.yml", BRANCH),
        plain("netlab.yml", NETLAB),
        plain("ignored.netlab.yml", IGNORED),
    ];
    inputs.push(Input { ignore_images: true, ..plain("lan.clab.yml without images", LAN) });
    let with = Input { impairments: Some(IMPAIRMENTS), ..plain("mixed.clab.yml and impairments", MIXED) };
    inputs.push(with);
    let with = Input { impairments: Some(IMPAIRMENTS), ..plain("impairments", MIXED) };
    inputs.push(Input { changes_impairments: true, ..with });
    inputs.extend((0..40).map(|seed| plain(&format!("netlab {seed}"), &generated(seed))));
    for input in &inputs {
        let checked = read(input, None);
        assert!(checked.mistakes.is_empty(), "{}: {:#?}\n{}", input.name, checked.mistakes, input.text);
        assert!(input.text.is_ascii(), "{}: places are bytes", input.name);
    }
    inputs
}

/// Keys whose values are texts for people, or names that nothing refers to.
const FREE: [&str; 7] = [
    // The title of a lab or link.
    "name",
    "message",
    // Graphs.
    "labels",
    "position",
    // Links by title, and the title of a group of them.
    "links",
    "group",
    // The machine's end of a link to mgmt-net: an uplink has none.
    "host-interface",
];

/// Lines that say what holds without them.
const DEFAULTS: [&str; 6] =
    ["type lan", "type veth", "phase on-enter", "target container", "network-mode none", "container"];

/// Where a scalar stands, and the keys and indices that lead to it.
type Scalar = (Range<usize>, Vec<(String, usize)>);

/// The scalars of a YAML text with the keys above them.
fn scalars(text: &str) -> Vec<Scalar> {
    let mut found = Vec::new();
    // The keys that are open; `None`: a list, or a map that waits for a key.
    let mut open: Vec<(bool, Option<(String, usize)>)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let path = |open: &[(bool, Option<(String, usize)>)]| -> Vec<(String, usize)> {
            open.iter().filter_map(|(_, key)| key.clone()).collect()
        };
        let mut is_value = true;
        match event {
            Event::MappingStart(..) => {
                open.push((true, None));
                continue;
            }
            Event::SequenceStart(..) => {
                open.push((false, None));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => drop(open.pop()),
            Event::Scalar(value, ..) => {
                let at = span.start.index();
                if let Some((true, key @ None)) = open.last_mut() {
                    *key = Some((value.to_string(), at));
                    is_value = false;
                }
                found.push((at..span.end.index(), path(&open)));
            }
            _ => continue,
        }
        if let Some((true, key)) = open.last_mut().filter(|_| is_value) {
            *key = None;
        }
    }
    found
}

/// Whether a word stands in what the text is said to have without effect, or for people.
fn is_exempt(text: &str, at: Range<usize>, warnings: &[Warning]) -> bool {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
    let is_named = |(key, key_at): &(String, usize)| {
        let parts: Vec<&str> = key.split('.').collect();
        warnings.iter().filter(|warning| warning.code.word() != "default").any(|warning| {
            let place = starts[warning.line - 1] + warning.column - 1;
            let inside = (*key_at..*key_at + key.len().max(1)).contains(&place);
            // A stub is named with its kind; others are the first words.
            let count = if warning.what.contains("is a stub") { usize::MAX } else { 2 };
            let mut words = warning.what.split([' ', ',']).take(count);
            inside || words.any(|word| parts.contains(&word))
        }) || FREE.contains(&parts[parts.len() - 1])
    };
    let touched = scalars(text);
    let mut touched =
        touched.iter().filter(|(range, _)| range.start < at.end && at.start < range.end).peekable();
    touched.peek().is_some()
        && touched.all(|(range, path)| {
            let value_is_named = warnings.iter().any(|warning| {
                range.start == starts[warning.line - 1] + warning.column - 1
                    && warning.code.word() != "default"
            });
            let keys: Vec<&str> = path.iter().map(|(key, _)| key.as_str()).collect();
            // Nothing refers to the name of a group that lists its members.
            let is_title = keys.len() == 2 && keys[0] == "groups";
            // A pool that is large enough may have any size.
            let is_size =
                keys.iter().any(|key| key.starts_with("addressing")) && text[range.clone()].contains('/');
            value_is_named || is_title || is_size || path.iter().any(is_named)
        })
}

fn is_default(mutation: &Mutation) -> bool {
    let line = mutation.was.replace(|c: char| "\"',:{}-".contains(c) && c != '-', " ");
    let words = line.split_whitespace().filter(|word| *word != "-").collect::<Vec<_>>().join(" ");
    mutation.now.is_empty() && DEFAULTS.contains(&words.as_str())
}

/// What was said, without its place: a line that goes moves the others.
fn said(warnings: &[Warning]) -> BTreeSet<&str> {
    warnings.iter().map(|warning| warning.what.as_str()).collect()
}

#[test]
fn every_word_of_a_lab_file_counts() {
    let count = std::env::var("FASTPATH_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(4000);
    let inputs = inputs();
    let mut random = Rng::new(33);
    let (mut differ, mut named, mut silent) = (0, 0, BTreeSet::new());
    for turn in 0..count {
        // The first, which a person wrote, have most kinds of words.
        let index = if turn % 4 == 0 { turn / 4 % inputs.len() } else { turn % 8 };
        let input = &inputs[index];
        let before = read(input, None);
        let text = if input.changes_impairments { IMPAIRMENTS } else { &input.text };
        let Some(mutation) = mutation(text, &mut random) else { continue };
        let after = read(input, Some(&mutation.text));
        let same = || {
            let topology = |checked: &Checked<NetworkSpec>| {
                let spec = checked.value.as_ref().expect("a network");
                (spec.topology.clone(), spec.description.clone())
            };
            topology(&before) == topology(&after)
        };
        let same_until = text.bytes().zip(mutation.text.bytes()).take_while(|(a, b)| a == b).count();
        let is_word = |start: &usize| text[*start..].starts_with(&mutation.was);
        let at =
            (0..=same_until).rev().filter(|start| text.is_char_boundary(*start)).find(is_word).unwrap_or(0);
        let range = at..at + mutation.was.len().max(1);
        if !after.mistakes.is_empty() || said(&after.warnings) != said(&before.warnings) {
            named += 1;
        } else if !same() {
            differ += 1;
        } else if !is_default(&mutation)
            && (input.changes_impairments || !is_exempt(text, range, &before.warnings))
        {
            silent.insert(format!("{}:{mutation}", input.name));
        }
    }
    assert!(differ > count / 20 && named > count / 20, "{differ} differ, {named} are named");
    let list: Vec<&str> = silent.iter().map(String::as_str).collect();
    assert!(silent.is_empty(), "{} of {count} change nothing:\n{}", silent.len(), list.join("\n"));
}
