//! The rule that the test command of README.md is the one that runs: `.ci/run` ends with that
//! command.

use crate::repository::{Repository, Violation};

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    let ci = repository.file(".ci/run").expect(".ci/run is committed");
    let readme = repository.file("README.md").expect("README.md is committed");
    let last = ci.text.trim_end().lines().last().unwrap_or_default();
    if last.starts_with("cargo ") && readme.text.lines().any(|line| line == last) {
        return Vec::new();
    }
    let advice = format!("end with the test command of README.md; '{last}' is not a line of it");
    vec![ci.violation(ci.text.lines().count(), advice)]
}

#[test]
fn a_readme_with_another_command_is_found() {
    use crate::repository::File;
    let ci = || File::new(".ci/run", "cargo fmt\ncargo xtask test\n");
    for (readme, violations) in [("```\ncargo xtask test\n```\n", 0), ("run cargo test\n", 1)] {
        let files = vec![ci(), File::new("README.md", readme)];
        assert_eq!(rule(&Repository { files, packages: Vec::new() }).len(), violations);
    }
}
