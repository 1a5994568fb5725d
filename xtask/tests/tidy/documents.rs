//! The rules on documents: no dead link, every page in the contents of the book, and a README that
//! is read in a minute.

use crate::repository::{File, Repository, Violation};
use std::collections::BTreeSet;

/// Pages that `cargo xtask book` writes; they are not committed.
const GENERATED: &str = "docs/reference/generated/";
/// The contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";
/// The list of decisions.
const DECISIONS: &str = "docs/internals/decisions.md";
const README_LINES_MAX: usize = 150;
const README_WORDS_MAX: usize = 1100;
/// A picture and a table begin at the latest here.
const README_FIRST_SCREEN: usize = 30;

/// Links to files or headings that do not exist.
pub(crate) fn links(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in repository.files.iter().filter(|file| is_document(&file.path)) {
        for (line, target) in links_of(&file.text) {
            if let Some(advice) = dead(repository, file, &target) {
                violations.push(file.violation(line, advice));
            }
        }
    }
    violations
}

/// Pages below `docs/` that the contents or the list of decisions do not list, or that are not in
/// the directory of their part; decisions that are listed by another name than their heading.
pub(crate) fn contents(repository: &Repository) -> Vec<Violation> {
    let Some(summary) = repository.file(SUMMARY) else { return Vec::new() };
    let mut violations = Vec::new();
    let mut listed = Vec::new();
    let mut directory = String::new();
    for (index, line) in summary.text.lines().enumerate() {
        if let Some(part) = line.strip_prefix("# ") {
            directory = format!("docs/{}/", part.to_lowercase());
        }
        for (_, target) in links_of(line) {
            let page = resolve(SUMMARY, &target).unwrap_or_default();
            if page.starts_with("docs/") && !page.starts_with(&directory) {
                violations.push(summary.violation(index + 1, format!("move {page} to {directory}")));
            }
            listed.push(page);
        }
    }
    if let Some(list) = repository.file(DECISIONS) {
        for (line, target) in links_of(&list.text) {
            let page = resolve(DECISIONS, &target).unwrap_or_default();
            let heading =
                repository.file(&page).and_then(|page| page.text.lines().next()?.strip_prefix("# "));
            let item = list.text.lines().nth(line - 1).unwrap_or_default();
            if let Some(heading) = heading.filter(|heading| !item.contains(&format!("[{heading}]"))) {
                violations.push(list.violation(line, format!("the heading of {target} is \"{heading}\"")));
            }
            listed.push(page);
        }
    }
    let pages = repository.files.iter().filter(|file| file.path.starts_with("docs/"));
    let pages = pages.filter(|file| file.path.ends_with(".md") && file.path != SUMMARY);
    let missing = pages.filter(|file| !listed.contains(&file.path));
    violations.extend(missing.map(|file| {
        let list = if file.path.starts_with("docs/decisions/") { DECISIONS } else { SUMMARY };
        file.violation(0, format!("add the page to {list}"))
    }));
    violations
}

/// Words that the glossary of ARCHITECTURE.md defines twice. A word is defined where it is bold.
pub(crate) fn glossary(repository: &Repository) -> Vec<Violation> {
    let file = repository.file("ARCHITECTURE.md").expect("ARCHITECTURE.md is committed");
    let section = file.text.lines().enumerate().skip_while(|(_, line)| *line != "## Glossary").skip(1);
    let mut defined = BTreeSet::new();
    let mut violations = Vec::new();
    for (index, line) in section.take_while(|(_, line)| !line.starts_with("## ")) {
        for word in line.split("**").skip(1).step_by(2).filter(|word| !defined.insert(*word)) {
            violations.push(file.violation(index + 1, format!("{word} is defined above: define it once")));
        }
    }
    violations
}

/// A README that is too long, or that begins without a picture and a table.
pub(crate) fn readme(repository: &Repository) -> Vec<Violation> {
    let file = repository.file("README.md").expect("README.md is committed");
    let mut violations = Vec::new();
    let lines = file.text.lines().count();
    let words = file.text.split_whitespace().count();
    if lines > README_LINES_MAX {
        violations.push(file.violation(lines, format!("{lines} lines: at most {README_LINES_MAX}")));
    }
    if words > README_WORDS_MAX {
        violations.push(file.violation(0, format!("{words} words: at most {README_WORDS_MAX}")));
    }
    let first: Vec<&str> = file.text.lines().take(README_FIRST_SCREEN).collect();
    for (mark, what) in [("![", "a picture"), ("|---", "a table")] {
        if !first.iter().any(|line| line.contains(mark)) {
            let advice = format!("show {what} in the first {README_FIRST_SCREEN} lines");
            violations.push(file.violation(README_FIRST_SCREEN, advice));
        }
    }
    violations
}

/// Facts about other programs, and the name of the test that shows ours.
const PEERS: &str = "docs/peers.tsv";
/// The audit of the network of the picture, as `lab run --audit --json` printed it.
const AUDIT: &str = "docs/measured/emulab-fig2-1.json";

/// Tables of the README that differ from their data, and facts whose test does not exist.
pub(crate) fn tables(repository: &Repository) -> Vec<Violation> {
    let readme = repository.file("README.md").expect("README.md is committed");
    let peers = repository.file(PEERS).expect("the facts are committed");
    let audit = repository.file(AUDIT).expect("the audit is committed");
    let mut violations = Vec::new();
    for (source, table) in [(peers, facts(&peers.text)), (audit, measured(&audit.text))] {
        if !readme.text.contains(&table) {
            violations.push(readme.violation(0, format!("the table of {} is now:\n{table}", source.path)));
        }
    }
    for (index, line) in peers.text.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [_, ours, .., evidence] = cells[..] else { panic!("{PEERS}:{}: too few cells", index + 1) };
        let test = format!("fn {evidence}()");
        let exists = repository.files.iter().any(|file| file.is_rust() && file.text.contains(&test));
        if ours != "not yet" && !exists {
            violations.push(peers.violation(index + 1, format!("no test is called {evidence}")));
        }
    }
    violations
}

/// The table of facts, without the column of tests.
fn facts(text: &str) -> String {
    let mut table = String::new();
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.split('\t').collect();
        let cells = &cells[..cells.len() - 1];
        let first = if index == 0 { "" } else { cells[0] };
        table += &format!("| {first} | {} |\n", cells[1..].join(" | "));
        if index == 0 {
            table += &format!("|{}\n", "---|".repeat(cells.len()));
        }
    }
    table
}

/// The table of an audit: what the network implies, and what was measured.
fn measured(text: &str) -> String {
    let audit: serde_json::Value = serde_json::from_str(text).expect("the audit is JSON");
    let mut table =
        "| pair | round trip, ms: implied | measured | UDP, Mbit/s: implied | measured |\n".to_owned();
    table += &format!("|{}\n", "---|".repeat(5));
    for pair in audit["pairs"].as_array().expect("pairs are a list") {
        let number = |kind: &str, key: &str| pair[kind][key].as_f64().expect("a number");
        table += &format!(
            "| {} – {} | {:.2} | {:.2} | {:.3} | {:.3} |\n",
            pair["from"].as_str().expect("a name"),
            pair["to"].as_str().expect("a name"),
            number("rtt_ms", "configured"),
            number("rtt_ms", "median"),
            number("udp_mbit", "expected"),
            number("udp_mbit", "observed"),
        );
    }
    table
}

/// Dependencies that come from elsewhere than crates.io.
pub(crate) fn sources(repository: &Repository) -> Vec<Violation> {
    let locks = repository.files.iter().filter(|file| file.path.ends_with("Cargo.lock"));
    let foreign = |line: &str| {
        line.starts_with("source = ")
            && line != "source = \"registry+https://github.com/rust-lang/crates.io-index\""
    };
    let places =
        locks.flat_map(|file| file.text.lines().enumerate().map(move |(index, line)| (file, index, line)));
    let foreign = places.filter(|(_, _, line)| foreign(line));
    foreign.map(|(file, index, _)| file.violation(index + 1, "use a release on crates.io")).collect()
}

/// Names of files in backticks, of documents that describe the present, that do not exist.
pub(crate) fn places(repository: &Repository) -> Vec<Violation> {
    let is_present = |file: &&File| {
        is_document(&file.path) && file.path != "CHANGELOG.md" && !file.path.starts_with("docs/decisions/")
    };
    let mut violations = Vec::new();
    for file in repository.files.iter().filter(is_present) {
        for (index, line) in file.text.lines().enumerate() {
            let names = line.split('`').skip(1).step_by(2);
            let names =
                names.filter(|name| ["crates/", "xtask/", "examples/"].iter().any(|at| name.starts_with(at)));
            // Patterns, capital letters that stand for a name, and captures, which are not text.
            let names = names.filter(|name| {
                name.chars().all(|c| c.is_ascii_lowercase() || "_-./".contains(c) || c.is_ascii_digit())
            });
            let exists = |name: &str| {
                let name = name.trim_end_matches('/');
                repository
                    .files
                    .iter()
                    .any(|file| file.path == name || file.path.starts_with(&format!("{name}/")))
            };
            for name in names.filter(|name| !name.ends_with(".pcap") && !exists(name)) {
                violations.push(file.violation(index + 1, format!("{name} does not exist")));
            }
        }
    }
    violations
}

fn is_document(path: &str) -> bool {
    path.ends_with(".md") && !path.starts_with("crates/")
        || path.starts_with("crates/") && path.ends_with("README.md")
}

/// Why a link leads nowhere; `None` if it leads somewhere, or outside.
fn dead(repository: &Repository, from: &File, target: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|outside| target.starts_with(outside)) {
        return None;
    }
    let (path, heading) =
        target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let path = if path.is_empty() { Some(from.path.clone()) } else { resolve(&from.path, path) };
    let Some(path) = path else { return Some(format!("{target} leads out of the repository")) };
    if path.starts_with(GENERATED) {
        return None;
    }
    let Some(file) = repository.file(&path) else {
        let directory = format!("{}/", path.trim_end_matches('/'));
        let is_directory = repository.files.iter().any(|file| file.path.starts_with(&directory));
        return (!is_directory).then(|| format!("{target}: no such file"));
    };
    let heading = heading?;
    let exists = file.text.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
    (!exists).then(|| format!("{target}: no such heading"))
}

/// The path from the root of a link in a file; `None` above the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The targets of links and pictures, with their lines, outside of blocks and code.
fn links_of(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        is_fenced ^= line.starts_with("```");
        if is_fenced {
            continue;
        }
        // Code may contain brackets that are not links.
        let prose: String = line.split('`').step_by(2).collect();
        for rest in prose.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            links.push((index + 1, target.split(' ').next().unwrap_or_default().to_owned()));
        }
    }
    links
}

#[test]
fn a_dependency_from_elsewhere_is_found() {
    let lock = "[[package]]\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"git+https://e.org/x\"\n";
    let files = vec![File::new("fuzz/Cargo.lock", lock)];
    let found = sources(&Repository { files, packages: Vec::new() });
    assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [3]);
}

#[test]
fn tables_that_differ_from_their_data_are_found() {
    let peers = "q\tfastpath\tx\tevidence\nspeed\tyes\tno\tit_is_shown\nrange\tnot yet\tyes\t\n";
    let audit = r#"{"pairs":[{"from":"a","to":"b","rtt_ms":{"configured":1.0,"median":1.5},
        "udp_mbit":{"expected":2,"observed":2}}]}"#;
    let table = "|  | fastpath | x |\n|---|---|---|\n| speed | yes | no |\n| range | not yet | yes |\n";
    let readme = format!("{table}{}", measured(audit));
    let found = |readme: &str, test: &str| {
        let files = vec![
            File::new("README.md", readme),
            File::new(PEERS, peers),
            File::new(AUDIT, audit),
            File::new("a.rs", test),
        ];
        tables(&Repository { files, packages: Vec::new() }).len()
    };
    assert_eq!(found(&readme, "fn it_is_shown() {}"), 0);
    assert_eq!(found(&readme, ""), 1);
    assert_eq!(found(&readme.replace("1.50", "1.00"), "fn it_is_shown() {}"), 1);
    assert_eq!(found(&readme.replace("not yet", "yes"), "fn it_is_shown() {}"), 1);
}

#[test]
fn a_word_that_is_defined_twice_is_found() {
    let text = "**run**\n## Glossary\n- **run**: one. **pass**: two.\n- **run**: three.\n## Next\n**pass**\n";
    let files = vec![File::new("ARCHITECTURE.md", text)];
    let found = glossary(&Repository { files, packages: Vec::new() });
    assert_eq!(found.iter().map(|violation| violation.line).collect::<Vec<_>>(), [4]);
}

#[test]
fn dead_links_missing_pages_and_a_long_readme_are_found() {
    let readme =
        format!("![p](docs/a.md)\n|---|\n[x](docs/b.md#the-end) [`c`](gone.md)\n{}", "w\n".repeat(150));
    let files = vec![
        File::new("README.md", &readme),
        File::new(SUMMARY, "# Start\n[a](a.md)\n# Internals\n[d](internals/decisions.md)\n"),
        File::new(DECISIONS, "- [001. One](../decisions/1.md)\n- [002. B](../decisions/2.md)\n"),
        File::new("docs/decisions/1.md", "# 001. One\n"),
        File::new("docs/decisions/2.md", "# 002. Two\n"),
        File::new("docs/decisions/3.md", "# 003. Three\n"),
        File::new(
            "docs/a.md",
            "[up](../README.md) `crates/x/gone.rs` `crates/KIND.rs` `docs/`\n[out](../../y)\n",
        ),
        File::new("docs/b.md", "# The end\n[h](#the-end) [n](#no)\n```\n[z](z)\n```\n"),
    ];
    let repository = Repository { files, packages: Vec::new() };
    let found = |violations: Vec<Violation>| -> Vec<String> {
        violations.iter().map(|violation| format!("{}:{}", violation.path, violation.line)).collect()
    };
    assert_eq!(found(links(&repository)), ["README.md:3", "docs/a.md:2", "docs/b.md:2"]);
    assert_eq!(
        found(contents(&repository)),
        ["docs/SUMMARY.md:2", "docs/internals/decisions.md:2", "docs/decisions/3.md:0", "docs/b.md:0"]
    );
    assert_eq!(found(super::documents::readme(&repository)), ["README.md:153"]);
    assert_eq!(found(places(&repository)), ["docs/a.md:1"]);
}
