//! The rule on the shape of extension points ("Where to add" in ARCHITECTURE.md): each is a list
//! with one line per member, and the member's own files. Production code elsewhere names a member
//! on few lines.

use crate::repository::{File, Repository, Violation};
use crate::source::lines_with;
use std::path::Path;

/// Lines outside its files on which a member may be named.
const LINES_ELSEWHERE_MAX: usize = 3;

/// A list of members, and where the files of a member are.
struct ExtensionPoint {
    /// A queue discipline, a kind of port, …
    member: &'static str,
    /// The file with the list.
    list: &'static str,
    /// The line before the first member. The list ends with a line of a single `}`.
    opens: &'static str,
    /// The files of a member, with `NAME` for its name. Of alternatives (`a|b`) one exists.
    files: &'static [&'static str],
    /// Words that name the member in code, with `NAME` and `VARIANT`.
    words: &'static [&'static str],
    /// Directories and files that may name every member: those that share code of the point.
    home: &'static [&'static str],
    /// Members that may be named anywhere: the default of the others.
    defaults: &'static [&'static str],
}

const EXTENSION_POINTS: &[ExtensionPoint] = &[
    ExtensionPoint {
        member: "queue discipline",
        list: "crates/link/src/disciplines.rs",
        opens: "$define! {",
        files: &["crates/link/src/qdisc/NAME.rs", "crates/link/src/oracle/NAME.rs"],
        words: &["QueueSpec::VARIANT", "VARIANTSpec", "VARIANTQueue", "qdisc::NAME"],
        // The fast pipe has its own representation of two disciplines.
        home: &[
            "crates/link/src/qdisc",
            "crates/link/src/oracle",
            "crates/spec/src/queue",
            "crates/link/src/fast_queue.rs",
        ],
        defaults: &["drop_tail"],
    },
    ExtensionPoint {
        member: "kind of queue in a spec",
        list: "crates/spec/src/queue/mod.rs",
        opens: "kinds! {",
        files: &[
            "crates/spec/src/queue/NAME.rs",
            "crates/link/src/qdisc/NAME.rs",
            "crates/link/src/oracle/NAME.rs",
        ],
        words: &["queue::NAME"],
        home: &["crates/spec/src/queue"],
        defaults: &[],
    },
    ExtensionPoint {
        member: "kind of port",
        list: "crates/spec/src/port_name.rs",
        opens: "$then! {",
        files: &["crates/port/src/NAME.rs"],
        words: &["port::NAME"],
        home: &["crates/port/src"],
        defaults: &[],
    },
    ExtensionPoint {
        member: "simulated unit",
        list: "crates/sim/src/unit/mod.rs",
        opens: "unit_types! {",
        files: &["crates/sim/src/unit/NAME.rs"],
        words: &["unit::NAME", "UnitSpec::VARIANT", "Unit::VARIANT"],
        home: &["crates/sim/src/unit"],
        defaults: &[],
    },
    ExtensionPoint {
        member: "file of figures",
        list: "crates/evaluate/src/figures/mod.rs",
        opens: "figure_files! {",
        files: &["crates/evaluate/src/figures/NAME.rs"],
        words: &["figures::NAME"],
        home: &["crates/evaluate/src/figures"],
        defaults: &[],
    },
];

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    EXTENSION_POINTS.iter().flat_map(|point| check(point, repository)).collect()
}

fn check(point: &ExtensionPoint, repository: &Repository) -> Vec<Violation> {
    let list = repository.file(point.list).unwrap_or_else(|| panic!("no file {}", point.list));
    let members = members(list, point.opens);
    assert!(!members.is_empty(), "{} has no list that opens with '{}'", point.list, point.opens);
    let mut violations = Vec::new();
    for Member { name, variant, line } in members {
        for pattern in point.files {
            let path = pattern.replace("NAME", name);
            if !path.split('|').any(|path| repository.file(path).is_some()) {
                violations
                    .push(list.violation(line, format!("the {} {name} has no file {path}", point.member)));
            }
        }
        let words: Vec<String> =
            point.words.iter().map(|word| word.replace("VARIANT", variant).replace("NAME", name)).collect();
        let elsewhere: Vec<String> = repository
            .rust_below("crates")
            .filter(|file| file.path.contains("/src/") && file.path != point.list)
            .filter(|file| !point.home.iter().any(|home| Path::new(&file.path).starts_with(home)))
            .flat_map(|file| mentions(file, &words))
            .collect();
        if elsewhere.len() > LINES_ELSEWHERE_MAX && !point.defaults.contains(&name) {
            let advice = format!(
                "the {} {name} is named on {} lines elsewhere, {LINES_ELSEWHERE_MAX} are allowed: {}",
                point.member,
                elsewhere.len(),
                elsewhere.join(", ")
            );
            violations.push(list.violation(line, advice));
        }
    }
    violations
}

/// A line of a list.
struct Member<'t> {
    name: &'t str,
    /// The next capitalised word of the line, or the name.
    variant: &'t str,
    line: usize,
}

fn members<'t>(list: &'t File, opens: &str) -> Vec<Member<'t>> {
    let lines = list.code.lines().enumerate().skip_while(|(_, line)| line.trim() != opens).skip(1);
    let words = |line: &'t str| {
        line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    };
    lines
        .take_while(|(_, line)| line.trim() != "}")
        .filter_map(|(index, line)| {
            let name = words(line).next()?;
            let is_variant = |word: &&str| word.starts_with(char::is_uppercase);
            Some(Member { name, variant: words(line).find(is_variant).unwrap_or(name), line: index + 1 })
        })
        .collect()
}

/// The lines of production code, without imports, that have one of the words.
fn mentions(file: &File, words: &[String]) -> Vec<String> {
    let test = file.first_test_line();
    let mut lines: Vec<usize> = words.iter().flat_map(|word| lines_with(&file.code, word)).collect();
    lines.sort_unstable();
    lines.dedup();
    let is_import = |line: usize| {
        let text = file.code.lines().nth(line - 1).unwrap_or_default().trim_start();
        text.starts_with("use ") || text.starts_with("pub use ")
    };
    lines.retain(|&line| line < test && !is_import(line));
    lines.into_iter().map(|line| format!("{}:{line}", file.path)).collect()
}

#[test]
fn a_member_without_its_file_or_named_in_many_places_is_found() {
    const POINT: ExtensionPoint = ExtensionPoint {
        member: "toy",
        list: "crates/a/src/toys.rs",
        opens: "toys! {",
        files: &["crates/a/src/toy/NAME.rs"],
        words: &["Toy::VARIANT"],
        home: &["crates/a/src/toy"],
        defaults: &[],
    };
    let list = "//! Toys.\ntoys! {\n    // Comment.\n    top: Top(Limit),\n    kite: Kite,\n}\n";
    let used = "use Toy::Top;\nToy::Top\nToy::Top\nToy::Top\nToy::Topple\n// Toy::Top\n";
    let files = |uses: &str| {
        let file = |path: &str, text: &str| File::new(path, text);
        vec![
            file("crates/a/src/toys.rs", list),
            file("crates/a/src/toy/top.rs", "Toy::Top\n"),
            file("crates/b/src/lib.rs", uses),
        ]
    };
    let found = |uses: &str| -> Vec<usize> {
        let repository = Repository { files: files(uses), packages: Vec::new() };
        check(&POINT, &repository).iter().map(|violation| violation.line).collect()
    };
    assert_eq!(found(used), [5], "kite has no file");
    assert_eq!(found(&format!("{used}Toy::Top\n")), [4, 5], "top is named on four lines");
}
