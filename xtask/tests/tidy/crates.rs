//! Rules about crates: edges between crates, manifests, the place of unsafe code, and purity.

use crate::repository::{File, Package, Repository, Violation, is_below};
use crate::source::lines_with;

const TABLE: &str = "ARCHITECTURE.md";
/// What the line above a table says of a drawer without other crates.
const PURE_DRAWER: &str = "All of it is pure.";
/// Most lines of Rust in a crate.
const LINES_MAX: usize = 13_000;

/// A row of the table under `## Crates`.
struct Row<'a> {
    line: usize,
    name: &'a str,
    uses: Vec<&'a str>,
    what: &'a str,
    /// `forbidden`, or a directory of the crate.
    unsafety: &'a str,
    /// The line above the table: the name of the drawer, and what is in it.
    drawer: &'a str,
}

impl Row<'_> {
    fn is_pure(&self) -> bool {
        self.what.starts_with("pure: ")
    }
}

/// Every edge between packages is in the table, every edge of the table is used, and the table
/// points down.
pub(crate) fn edges(repository: &Repository) -> Vec<Violation> {
    let (table, rows) = table(repository);
    let mut violations = Vec::new();
    for package in &repository.packages {
        let Some(row) = rows.iter().find(|row| row.name == package.name) else {
            violations.push(table.violation(0, format!("add a row for crate {}", package.name)));
            continue;
        };
        for used in package.uses.iter().filter(|used| !row.uses.contains(&used.as_str())) {
            let advice = format!("{} uses {used}: remove the dependency, or allow the edge here", row.name);
            violations.push(table.violation(row.line, advice));
        }
        for unused in row.uses.iter().filter(|used| !package.uses.iter().any(|name| name == *used)) {
            let advice = format!("{} does not use {unused}: remove it from the row", row.name);
            violations.push(table.violation(row.line, advice));
        }
    }
    for (index, row) in rows.iter().enumerate() {
        if !repository.packages.iter().any(|package| package.name == row.name) {
            violations
                .push(table.violation(row.line, format!("there is no crate {}: remove the row", row.name)));
        }
        if rows[..index].iter().any(|above| above.name == row.name) {
            violations.push(table.violation(row.line, format!("{} has a row above: keep one", row.name)));
        }
        for used in row.uses.iter().filter(|used| !rows[..index].iter().any(|above| above.name == **used)) {
            let advice =
                format!("{} may use {used}, which is not in a row above: arrows point down", row.name);
            violations.push(table.violation(row.line, advice));
        }
        if !row.is_pure() && row.drawer.contains(PURE_DRAWER) {
            let advice = format!("{} is not pure: move it to a later drawer", row.name);
            violations.push(table.violation(row.line, advice));
        }
        if !row.is_pure() && !row.what.starts_with("world: ") {
            violations.push(table.violation(row.line, "begin 'what it is' with 'pure: ' or 'world: '"));
        }
    }
    violations
}

/// No package has more than [`LINES_MAX`] lines of Rust. Files of tests do not count, so that
/// a limit on them would mean fewer tests.
pub(crate) fn sizes(repository: &Repository) -> Vec<Violation> {
    let size = |package: &Package| -> usize {
        let below = repository.rust_below(&package.directory);
        let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
        below.filter(|file| !is_test(&file.path)).map(|file| file.text.lines().count()).sum()
    };
    let large = repository.packages.iter().map(|package| (package, size(package)));
    let large = large.filter(|(_, lines)| *lines > LINES_MAX);
    let advice = |lines| format!("{lines} lines of Rust: split it into crates of at most {LINES_MAX}");
    large.map(|(package, lines)| manifest(repository, package).violation(0, advice(lines))).collect()
}

/// Every package has a description and takes the workspace's lints.
pub(crate) fn manifests(repository: &Repository) -> Vec<Violation> {
    let mut violations = Vec::new();
    for package in &repository.packages {
        let manifest = manifest(repository, package);
        if package.description.len() < 20 {
            violations.push(manifest.violation(0, "add a description: one sentence on what the crate is"));
        }
        if !manifest.text.contains("[lints]\nworkspace = true\n") {
            violations.push(manifest.violation(0, "add [lints] workspace = true"));
        }
    }
    violations
}

/// A crate marked `forbidden` in the table has `#![forbid(unsafe_code)]`. In other crates `unsafe`
/// stays in the named directory.
pub(crate) fn unsafety(repository: &Repository) -> Vec<Violation> {
    let (_, rows) = table(repository);
    let mut violations = Vec::new();
    for (package, row) in with_rows(repository, &rows) {
        let door = format!("{}/{}", package.directory, row.unsafety);
        for file in repository.rust_below(&package.directory).filter(|file| !is_below(&file.path, &door)) {
            if door != file.path.trim_end_matches(".rs") {
                let advice =
                    format!("unsafe code outside its door ({}): move it, or do without", row.unsafety);
                let lines = lines_with(&file.code, "unsafe");
                violations.extend(lines.into_iter().map(|line| file.violation(line, advice.clone())));
            }
        }
        for root in roots(repository, package).filter(|_| row.unsafety == "forbidden") {
            if !root.code.contains("#![forbid(unsafe_code)]") {
                violations
                    .push(root.violation(1, "add #![forbid(unsafe_code)], as ARCHITECTURE.md promises"));
            }
        }
    }
    violations
}

/// Names that pure code may not use, and why.
const WORLD: &[(&str, &str)] = &[
    ("Instant::now", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("std::thread", "no threads"),
    ("std::fs", "no files: take bytes or a Read"),
    ("std::env", "no environment: take arguments"),
    ("std::process", "no processes"),
    ("TcpStream", "no sockets"),
    ("TcpListener", "no sockets"),
    ("UdpSocket", "no sockets"),
    ("ToSocketAddrs", "no name look-ups"),
    ("std::io::stdin", "no terminals"),
    ("std::io::stdout", "no terminals"),
    ("println!", "no output: return the value"),
    ("print!", "no output: return the value"),
    ("RandomState", "randomness comes from the run's seed"),
    ("HashMap", "its order is random: use BTreeMap"),
    ("HashSet", "its order is random: use BTreeSet"),
];

/// What the clippy.toml of a pure crate bans, so that renamed imports are found too.
const CLIPPY_BANS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// Pure crates name nothing of the world outside their tests. Clippy checks that the tests read no
/// clock either.
pub(crate) fn purity(repository: &Repository) -> Vec<Violation> {
    let (_, rows) = table(repository);
    let mut violations = Vec::new();
    for (package, _) in with_rows(repository, &rows).filter(|(_, row)| row.is_pure()) {
        let bans =
            repository.file(&format!("{}/clippy.toml", package.directory)).map_or("", |file| &file.text);
        for ban in CLIPPY_BANS.iter().filter(|ban| !bans.contains(&format!("\"{ban}\""))) {
            let advice = format!("ban {ban} in clippy.toml as in crates/units/clippy.toml");
            violations.push(manifest(repository, package).violation(0, advice));
        }
        for file in repository.rust_below(&format!("{}/src", package.directory)) {
            for (name, why) in WORLD {
                let advice = format!("{name} in a pure crate: {why}");
                let tests_from = file.first_test_line();
                let lines = lines_with(&file.code, name).into_iter().filter(|line| *line < tests_from);
                violations.extend(lines.map(|line| file.violation(line, advice.clone())));
            }
        }
    }
    violations
}

fn with_rows<'a>(
    repository: &'a Repository,
    rows: &'a [Row<'a>],
) -> impl Iterator<Item = (&'a Package, &'a Row<'a>)> {
    repository.packages.iter().filter_map(|package| {
        let row = rows.iter().find(|row| row.name == package.name)?;
        Some((package, row))
    })
}

fn roots<'a>(repository: &'a Repository, package: &Package) -> impl Iterator<Item = &'a File> {
    let names = ["lib", "main"].map(|root| format!("{}/src/{root}.rs", package.directory));
    names.into_iter().filter_map(|name| repository.file(&name))
}

fn manifest<'a>(repository: &'a Repository, package: &Package) -> &'a File {
    let path = format!("{}/Cargo.toml", package.directory);
    repository.file(&path).unwrap_or_else(|| panic!("{path} is not committed"))
}

/// The rows of the crate tables, one table a drawer: crate | may use | what it is | unsafe.
fn table(repository: &Repository) -> (&File, Vec<Row<'_>>) {
    let file = repository.file(TABLE).expect("ARCHITECTURE.md is committed");
    let section = file.text.lines().enumerate().skip_while(|(_, line)| *line != "## Crates").skip(1);
    let mut drawer = "";
    let mut rows = Vec::new();
    for (index, line) in section.take_while(|(_, line)| !line.starts_with("## ")) {
        if line.starts_with("**") {
            drawer = line;
        }
        if line.starts_with('|') && !line.starts_with("| crate |") && !line.starts_with("|---") {
            rows.push(row(index + 1, line, drawer));
        }
    }
    (file, rows)
}

fn row<'a>(number: usize, line: &'a str, drawer: &'a str) -> Row<'a> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [name, uses, what, unsafety] = cells[..] else {
        panic!("{TABLE}:{number}: a row has four cells: crate | may use | what it is | unsafe")
    };
    Row {
        line: number,
        name: name.trim_matches('`'),
        uses: uses.split(", ").filter(|used| *used != "–").collect(),
        what,
        unsafety: unsafety.trim_matches('`'),
        drawer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            directory: format!("crates/{name}"),
            description: "short".to_owned(),
            uses: uses.iter().map(|used| (*used).to_owned()).collect(),
        }
    }

    fn bad() -> Repository {
        let table = "# A\n## Crates\n| crate | may use | what it is | unsafe |\n|---|---|---|---|\n\
            | low | high | pure: low | forbidden |\n| high | – | world: high | src/sys |\n| gone | – | it | forbidden |\n\
            | low | – | pure: low | forbidden |\n**Core**: low. All of it is pure.\n| crate | may use |\n|---|\n\
            | wide | – | world: wide | src |\n";
        Repository {
            files: vec![
                File::new("ARCHITECTURE.md", table),
                File::new("crates/low/Cargo.toml", "[package]\n"),
                File::new("crates/low/src/lib.rs", "fn f() { unsafe {} }\nfn g() { Instant::now() }\n"),
                File::new("crates/high/Cargo.toml", "[lints]\nworkspace = true\n"),
                File::new("crates/high/src/sys/mod.rs", "fn f() { unsafe {} }\n"),
                File::new("crates/high/src/lib.rs", "// unsafe\n"),
            ],
            packages: vec![package("low", &[]), package("high", &["low"]), package("new", &[])],
        }
    }

    fn places(violations: &[Violation]) -> Vec<String> {
        violations.iter().map(|v| format!("{}:{}", v.path, v.line)).collect()
    }

    #[test]
    fn edges_rows_and_directions_that_are_wrong_are_found() {
        let found: Vec<String> = edges(&bad()).iter().map(Violation::to_string).collect();
        assert_eq!(
            found,
            [
                "ARCHITECTURE.md:5: low does not use high: remove it from the row",
                "ARCHITECTURE.md:6: high uses low: remove the dependency, or allow the edge here",
                "ARCHITECTURE.md:0: add a row for crate new",
                "ARCHITECTURE.md:5: low may use high, which is not in a row above: arrows point down",
                "ARCHITECTURE.md:7: there is no crate gone: remove the row",
                "ARCHITECTURE.md:7: begin 'what it is' with 'pure: ' or 'world: '",
                "ARCHITECTURE.md:8: low has a row above: keep one",
                "ARCHITECTURE.md:12: there is no crate wide: remove the row",
                "ARCHITECTURE.md:12: wide is not pure: move it to a later drawer",
            ]
        );
    }

    #[test]
    fn a_crate_that_is_too_long_is_found() {
        let mut repository = bad();
        repository.packages.pop();
        repository.files.push(File::new("crates/low/src/long.rs", &"\n".repeat(LINES_MAX)));
        assert_eq!(places(&sizes(&repository)), ["crates/low/Cargo.toml:0"]);
    }

    #[test]
    fn poor_manifests_are_found() {
        let mut repository = bad();
        repository.packages.pop();
        let found = places(&manifests(&repository));
        assert_eq!(found, ["crates/low/Cargo.toml:0", "crates/low/Cargo.toml:0", "crates/high/Cargo.toml:0"]);
    }

    #[test]
    fn unsafe_code_outside_its_door_is_found() {
        assert_eq!(places(&unsafety(&bad())), ["crates/low/src/lib.rs:1", "crates/low/src/lib.rs:1"]);
    }

    #[test]
    fn clocks_in_pure_crates_are_found() {
        let found = places(&purity(&bad()));
        assert_eq!(found.len(), CLIPPY_BANS.len() + 1);
        assert_eq!(found.last().map(String::as_str), Some("crates/low/src/lib.rs:2"));
    }
}
