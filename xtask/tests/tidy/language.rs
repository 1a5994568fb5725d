//! Rules on prose: comments of at most 100 columns, and words that have to be learnt.
//!
//! The list is of private words and phrases that earlier versions used where the field has a term.
//! It holds only what is wrong in every sentence.

use crate::repository::{File, Repository, Violation};
use crate::source::lines_with;

/// Most columns of a line of a comment.
const COLUMNS_MAX: usize = 100;

/// A phrase, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("the books", "frame accounting"),
    ("letter box", "command queue"),
    ("the crew", "worker config"),
    ("stood still", "stalled"),
    ("pause of the machine", "host stall"),
    ("pauses of the machine", "host stalls"),
    ("rich pipe", "general pipe"),
    ("plain pipe", "fast pipe"),
    ("tc's words", "tc-netem syntax"),
    ("is to be had", "is available"),
    ("anew", "again"),
    ("nobody", "say who or what does not"),
    ("so many", "give the number, or the name of the limit"),
    ("rule of the house", "rule of this repository"),
    ("seed 000", "cite the publication: author, year, table or section"),
    ("seed 001", "cite the publication: author, year, table or section"),
    ("seed 002", "cite the publication: author, year, table or section"),
    ("seed 003", "cite the publication: author, year, table or section"),
    ("seed 004", "cite the publication: author, year, table or section"),
    ("SEED-FACTS", "cite the publication: author, year, table or section"),
];

/// Files that name the phrases: this rule.
const EXEMPT: &[&str] = &["xtask/tests/tidy/language.rs"];

/// Banned phrases in comments, messages and documents.
pub(crate) fn phrases(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    let has_prose =
        |file: &&File| file.is_rust() || file.path.ends_with(".md") || file.path.ends_with(".toml");
    for file in repository.files.iter().filter(has_prose).filter(|file| !EXEMPT.contains(&&*file.path)) {
        let text = file.text.to_lowercase();
        for (phrase, instead) in BANNED {
            let lines = lines_with(&text, &phrase.to_lowercase());
            violations.extend(
                lines.into_iter().map(|line| {
                    file.violation(line, format!("\"{phrase}\" has to be learnt: write {instead}"))
                }),
            );
        }
    }
    violations
}

/// Comments that are wider than 100 columns. Drawings, tables and lines of one word may be wider.
pub(crate) fn width(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in repository.files.iter().filter(|file| file.is_rust()) {
        let mut is_fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!']).trim();
            is_fenced ^= comment.starts_with("```");
            let is_prose = !is_fenced && !comment.starts_with('|') && !comment.contains(['│', '─', '▶', '◀']);
            if is_prose && comment.contains(' ') && line.chars().count() > COLUMNS_MAX {
                violations.push(file.violation(index + 1, "wrap the comment at 100 columns"));
            }
        }
    }
    violations
}

#[test]
fn private_phrases_and_wide_comments_are_found() {
    let wide = format!(
        "// a {}\n//! ```text\n//! {} b\n//! ```\nlet x = 1;\n// The books do not.\n",
        "b".repeat(99),
        "c".repeat(99)
    );
    let files = vec![File::new("a.rs", &wide), File::new("b.md", "As Seed 004 has it\nthe bookshelf\n")];
    let repository = Repository { files, packages: Vec::new() };
    let places = |violations: Vec<Violation>| -> Vec<String> {
        violations.iter().map(|v| format!("{}:{}", v.path, v.line)).collect()
    };
    assert_eq!(places(phrases(&repository)), ["a.rs:6", "b.md:1"]);
    assert_eq!(places(width(&repository)), ["a.rs:1"]);
}
