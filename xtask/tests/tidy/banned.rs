//! The rule on Rust code that is never committed: unfinished work, tests that do not run,
//! tests that sleep.

use crate::repository::{Repository, Violation};
use crate::source::lines_with;

const EVERYWHERE: &[(&str, &str)] = &[
    ("todo!", "finish it, or leave the feature out"),
    ("unimplemented!", "finish it, or leave the feature out"),
    ("dbg!", "remove it"),
    ("#[ignore]", "make it run, or print 'SKIPPED: name: why' and return when a privilege is missing"),
    ("#[ignore =", "make it run, or print 'SKIPPED: name: why' and return when a privilege is missing"),
];

const SLEEP: (&str, &str) =
    ("thread::sleep", "a test waits for an event with a time limit, or runs in virtual time");

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in repository.files.iter().filter(|file| file.is_rust()) {
        for (word, advice) in EVERYWHERE {
            violations
                .extend(lines_with(&file.code, word).into_iter().map(|line| file.violation(line, *advice)));
        }
        let tests_from = file.first_test_line();
        let sleeps = lines_with(&file.code, SLEEP.0).into_iter().filter(|line| *line >= tests_from);
        violations.extend(sleeps.map(|line| file.violation(line, SLEEP.1)));
    }
    violations
}

#[test]
fn unfinished_ignored_and_sleeping_code_is_found() {
    use crate::repository::File;
    let text = "#[cfg(test)]\nmod a;\nfn f() { thread::sleep(d); todo!() }\n#[cfg(test)]\nmod t {\n#[ignore]\nfn g() { thread::sleep(d) }\n}";
    let sleeper = File::new("crates/a/tests/b.rs", "// todo!\nfn g() { std::thread::sleep(d) }");
    let repository = Repository { files: vec![File::new("a.rs", text), sleeper], packages: Vec::new() };
    let lines: Vec<usize> = rule(&repository).iter().map(|violation| violation.line).collect();
    assert_eq!(lines, [3, 6, 7, 2]);
}
