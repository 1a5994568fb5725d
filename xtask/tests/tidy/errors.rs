//! The rule that a public enum of errors may grow: it is `#[non_exhaustive]`.

use crate::repository::{Repository, Violation};

/// Errors that another crate handles variant by variant: it compiles only when it knows all.
const HANDLED: &[&str] = &["OpportunitiesError", "TraceError"];

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    let sources = repository.files.iter().filter(|file| file.is_rust() && file.path.contains("/src/"));
    let mut violations = Vec::new();
    for file in sources {
        let mut is_open = false;
        for (index, line) in file.code.lines().enumerate() {
            match line.strip_prefix("pub enum ").and_then(|rest| rest.split([' ', '<']).next()) {
                Some(name) if name.ends_with("Error") && !is_open && !HANDLED.contains(&name) => {
                    let advice = format!("{name} may get another variant: write #[non_exhaustive] above it");
                    violations.push(Violation { path: file.path.clone(), line: index + 1, advice });
                }
                _ => {}
            }
            is_open = line == "#[non_exhaustive]" || is_open && line.starts_with("#[");
        }
    }
    violations
}

#[test]
fn a_public_error_that_cannot_grow_is_found() {
    use crate::repository::File;
    let text = "#[non_exhaustive]\n#[derive(Debug)]\npub enum GoodError {}\n\
                pub(crate) enum OwnError {}\n#[derive(Debug)]\npub enum BadError {}\npub enum Other {}\n";
    let repository = Repository { files: vec![File::new("crates/a/src/lib.rs", text)], packages: Vec::new() };
    let lines: Vec<usize> = rule(&repository).iter().map(|violation| violation.line).collect();
    assert_eq!(lines, [6]);
}
