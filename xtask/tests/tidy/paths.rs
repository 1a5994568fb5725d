//! The rule against absolute paths of one machine.

use crate::repository::{Repository, Violation};

/// Split strings, so that this file follows its own rule.
const PLACES: &[&str] =
    &[concat!("/", "work"), concat!("/", "tmp"), concat!("/", "root"), concat!("/", "home")];

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in &repository.files {
        for (index, line) in file.text.lines().enumerate() {
            for place in PLACES.iter().filter(|place| names(line, place)) {
                let advice =
                    format!("{place} is a place on one machine: use a relative path or std::env::temp_dir()");
                violations.push(file.violation(index + 1, advice));
            }
        }
    }
    violations
}

/// True if `line` has `place` as the beginning of an absolute path.
fn names(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + place.len()..].chars().next();
        !before.is_some_and(is_path) && !after.is_some_and(|c| is_path(c) && c != '/')
    })
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || "_-./~$}{".contains(c)
}

#[test]
fn absolute_places_are_found_and_relative_ones_are_not() {
    for place in PLACES {
        assert!(names(&format!("cd {place}/x"), place) && names(&format!("\"{place}\""), place));
        assert!(!names(&format!("net{place}"), place) && !names(&format!("{place}er"), place));
    }
}
