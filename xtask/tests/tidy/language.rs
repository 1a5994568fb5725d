//! Rules on prose: comments of at most 100 columns, JavaScript of at most 110, and words that have
//! to be learnt.
//!
//! The list is of private words and phrases that earlier versions used where the field has a term.
//! It holds only what is wrong in every sentence.

use crate::repository::{File, Repository, Violation};
use crate::source::lines_with;

/// Most columns of a line of a comment.
const COLUMNS_MAX: usize = 100;

/// Most columns of a line of JavaScript.
const SCRIPT_COLUMNS_MAX: usize = 110;
/// A script of others, on one line.
const VENDORED: &str = "crates/engine/src/control/web/uplot.js";
/// Files with texts that readers or users see.
const EXTENSIONS: &[&str] =
    &[".rs", ".md", ".toml", ".py", ".js", ".html", ".txt", ".tsv", ".bash", ".zsh", ".fish"];

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

/// Files that name the phrases: this rule; and what is not ours.
const EXEMPT: &[&str] = &["xtask/tests/tidy/language.rs", VENDORED];

/// The files with prose of ours.
fn prose(repository: &Repository) -> impl Iterator<Item = &File> {
    let has_prose = |file: &&File| EXTENSIONS.iter().any(|extension| file.path.ends_with(extension));
    repository.files.iter().filter(has_prose).filter(|file| !EXEMPT.contains(&&*file.path))
}

/// Banned phrases in comments, messages and documents.
pub(crate) fn phrases(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in prose(repository) {
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

/// What may stand before "is no" or after it: "there is no …", "the answer is no", "is no longer".
const NO_BEFORE: &[&str] = &["there", "answer", "0", "1"];
const NO_AFTER: &[&str] = &["longer", "more", "larger", "smaller", "wider", "later", "other"];

/// "X is no Y", which is "X is not a Y" in English.
pub(crate) fn negations(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    // The changelog says what earlier versions printed.
    for file in prose(repository).filter(|file| file.path != "CHANGELOG.md") {
        for (index, line) in file.text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_wrong = |three: &&[&str]| {
                let [before, verb, no] = three[..] else { return false };
                let before = before.to_lowercase();
                let before = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                ["is", "are"].contains(&verb) && no == "no" && !NO_BEFORE.contains(&before)
            };
            let places = words.windows(3).enumerate().filter(|(_, three)| is_wrong(three));
            let is_noun = |next: &&str| !NO_AFTER.contains(&next.trim_end_matches(['.', ',', ';']));
            let wrong = places.filter(|(at, _)| words.get(at + 3).is_some_and(is_noun));
            for (at, three) in wrong {
                let said = format!("{} {}", three.join(" "), words[at + 3]);
                violations.push(file.violation(index + 1, format!("\"{said}\": write \"is not a\"")));
            }
        }
    }
    violations
}

/// Lines of JavaScript that do not fit beside another window.
pub(crate) fn scripts(repository: &Repository) -> Vec<Violation> {
    let scripts = repository.files.iter().filter(|file| file.path.ends_with(".js") && file.path != VENDORED);
    let lines = scripts.flat_map(|file| file.text.lines().enumerate().map(move |line| (file, line)));
    let wide = lines.filter(|(_, (_, line))| line.chars().count() > SCRIPT_COLUMNS_MAX);
    let advice = || format!("wrap the line at {SCRIPT_COLUMNS_MAX} columns");
    wide.map(|(file, (index, _))| file.violation(index + 1, advice())).collect()
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
    let files = vec![
        File::new("a.rs", &wide),
        File::new("b.md", "As Seed 004 has it\nthe bookshelf\n"),
        File::new("c.js", &format!("// drawn anew\n{}\n", "d".repeat(111))),
        File::new("d.py", "'x is no time'\n# There is no time, the answer is no, it is no longer.\n"),
    ];
    let repository = Repository { files, packages: Vec::new() };
    let places = |violations: Vec<Violation>| -> Vec<String> {
        violations.iter().map(|v| format!("{}:{}", v.path, v.line)).collect()
    };
    assert_eq!(places(phrases(&repository)), ["a.rs:6", "b.md:1", "c.js:1"]);
    assert_eq!(places(negations(&repository)), ["d.py:1"]);
    assert_eq!(places(scripts(&repository)), ["c.js:2"]);
    assert_eq!(places(width(&repository)), ["a.rs:1"]);
}
