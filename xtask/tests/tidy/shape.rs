//! The rule on the shape of source files: they open with `//!` and have at most 800 lines. Clippy
//! checks the length of functions.

use crate::repository::{Repository, Violation};
use crate::source::lines_with;

/// A longer file is taken to hold two ideas.
const LINES_MAX: usize = 800;

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
        for line in lines_with(&file.code, "clippy::too_many_lines") {
            violations.push(file.violation(line, "split the function instead of allowing its length"));
        }
    }
    violations
}

#[test]
fn files_without_introduction_or_end_are_found() {
    use crate::repository::File;
    let text = format!("use a;\n#[allow(clippy::too_many_lines)]\n{}", "\n".repeat(LINES_MAX));
    let repository = Repository { files: vec![File::new("a.rs", &text)], packages: Vec::new() };
    let lines: Vec<usize> = rule(&repository).iter().map(|violation| violation.line).collect();
    assert_eq!(lines, [1, LINES_MAX + 1, 2]);
}
