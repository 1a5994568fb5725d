//! The rule that one word has one meaning: a type name is defined in at most two crates.

use crate::repository::{Repository, Violation};
use std::collections::BTreeMap;

/// More crates than this and a reader cannot know which type a name means.
const CRATES_MAX: usize = 2;

/// Names that every layer has in its own sense, at most ten.
const ALLOWED: &[&str] =
    &["Command", "Error", "Event", "Kind", "Options", "Packet", "Port", "Source", "State"];

/// Keywords that define a type.
const DEFINITIONS: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    let mut definitions: BTreeMap<&str, Vec<(&str, &str, usize)>> = BTreeMap::new();
    for package in &repository.packages {
        let directory = format!("{}/src/", package.directory);
        let sources =
            repository.files.iter().filter(|file| file.is_rust() && file.path.starts_with(&directory));
        for file in sources {
            for (index, line) in file.code.lines().enumerate() {
                if let Some(name) = defined(line).filter(|name| !ALLOWED.contains(name)) {
                    definitions.entry(name).or_default().push((&package.name, &file.path, index + 1));
                }
            }
        }
    }
    let mut violations = Vec::new();
    for (name, places) in definitions {
        let mut crates: Vec<&str> = places.iter().map(|(package, ..)| *package).collect();
        crates.dedup();
        for (_, path, line) in places.iter().filter(|_| crates.len() > CRATES_MAX) {
            let advice = format!("{name} is defined in {}: give it a name of its own", crates.join(", "));
            violations.push(Violation { path: (*path).to_owned(), line: *line, advice });
        }
    }
    violations
}

/// The name of the type that a line defines. Associated types (`type Err = …` within an impl) are
/// not definitions of a name.
fn defined(line: &str) -> Option<&str> {
    let is_indented = line.starts_with(' ');
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let keyword = words.next().filter(|word| DEFINITIONS.contains(word))?;
    if keyword == "type" && is_indented {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| name.starts_with(|c: char| c.is_uppercase()))
}

#[test]
fn a_name_in_three_crates_is_found_at_each_place() {
    use crate::repository::{File, Package};
    let package = |name: &str| Package {
        name: name.to_owned(),
        directory: format!("crates/{name}"),
        description: String::new(),
        uses: Vec::new(),
    };
    let file = |name: &str, text: &str| File::new(&format!("crates/{name}/src/lib.rs"), text);
    let repository = Repository {
        files: vec![
            file("a", "pub struct Slot;\nenum Two {}\n"),
            file("b", "pub(crate) enum Slot<T> {}\nstruct Two;\n    type Err = u8;\n"),
            file("c", "// struct Two\ntype Slot = u8;\nstruct Port;\n"),
        ],
        packages: ["a", "b", "c"].map(package).into(),
    };
    let lines: Vec<String> = rule(&repository).iter().map(|v| format!("{}:{}", v.path, v.line)).collect();
    assert_eq!(lines, ["crates/a/src/lib.rs:1", "crates/b/src/lib.rs:1", "crates/c/src/lib.rs:2"]);
}
