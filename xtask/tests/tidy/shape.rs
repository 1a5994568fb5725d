//! The rule on the shape of source files: they open with `//!` and have at most 800 lines, and
//! functions outside of tests have at most 60. In tests clippy's `too_many_lines` counts.

use crate::repository::{Repository, Violation};
use crate::source::lines_with;

/// A longer file is taken to hold two ideas.
const LINES_MAX: usize = 800;
/// A longer function is taken to do two things.
const FUNCTION_LINES_MAX: usize = 60;

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in repository.files.iter().filter(|file| file.is_rust()) {
        if !file.text.starts_with("//! ") {
            violations.push(file.violation(1, "open with //! saying what this file is and what it is not"));
        }
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            let advice = format!("{lines} lines: split it by idea into files of at most {LINES_MAX}");
            violations.push(file.violation(LINES_MAX + 1, advice));
        }
        let first_test = file.first_test_line();
        for (line, lines) in functions(&file.code) {
            if lines > FUNCTION_LINES_MAX && line < first_test && is_production(&file.path) {
                let advice = format!(
                    "this function has {lines} lines: cut it into named pieces of at most {FUNCTION_LINES_MAX}"
                );
                violations.push(file.violation(line, advice));
            }
        }
        for line in lines_with(&file.code, "clippy::too_many_lines") {
            violations.push(file.violation(line, "split the function instead of allowing its length"));
        }
    }
    violations
}

/// Whether a file is part of a program or library.
fn is_production(path: &str) -> bool {
    path.contains("/src/") && !path.ends_with("_tests.rs")
}

/// The first line of each function with a body, from 1, and its number of lines.
fn functions(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let line_of = |at: usize| code[..at].matches('\n').count();
    for (at, _) in code.match_indices("fn ") {
        let is_word = code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let Some(opens) = code[at..].find(['{', ';']).map(|len| at + len).filter(|_| is_word) else {
            continue;
        };
        let mut depth = 0;
        let closes = code[opens..].char_indices().find(|(_, c)| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        if let Some((len, '}')) = closes {
            let first = line_of(at);
            found.push((first + 1, line_of(opens + len) - first + 1));
        }
    }
    found
}

#[test]
fn a_function_is_as_long_as_its_lines() {
    let code = "fn a() {\n    if x {\n    }\n}\n\ntrait T {\n    fn b();\n    fn c() { }\n}\nfn d<T>()\nwhere\n    T: U,\n{\n}\n";
    assert_eq!(functions(code), [(1, 4), (8, 1), (10, 5)]);
}

#[test]
fn a_long_function_is_found_outside_of_tests() {
    use crate::repository::File;
    let body = "\n".repeat(FUNCTION_LINES_MAX);
    let long = format!("//! A.\nfn a() {{{body}}}\n#[cfg(test)]\nmod tests {{\nfn b() {{{body}}}\n}}\n");
    let files = ["crates/a/src/b.rs", "crates/a/tests/b.rs"].map(|path| File::new(path, &long));
    let repository = Repository { files: files.into(), packages: Vec::new() };
    let found: Vec<String> = rule(&repository).iter().map(|v| format!("{}:{}", v.path, v.line)).collect();
    assert_eq!(found, ["crates/a/src/b.rs:2"]);
}

#[test]
fn files_without_introduction_or_end_are_found() {
    use crate::repository::File;
    let text = format!("use a;\n#[allow(clippy::too_many_lines)]\n{}", "\n".repeat(LINES_MAX));
    let repository = Repository { files: vec![File::new("a.rs", &text)], packages: Vec::new() };
    let lines: Vec<usize> = rule(&repository).iter().map(|violation| violation.line).collect();
    assert_eq!(lines, [1, LINES_MAX + 1, 2]);
}
