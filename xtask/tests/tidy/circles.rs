//! The rule that files of a crate do not import each other in a circle.
//!
//! An import is a path to a file of the same crate, in a `use` or elsewhere: `crate::…`, `self::…`,
//! `super::…`, or a path that begins with a child module or an imported name. Code of tests is left
//! out.
//!
//! A name that a module hands on (`pub use`) is imported from the file that defines it, not from
//! the module: handing on is not an import. A module may also call the files below it, which it
//! declares, while they use what it defines for all of them: imports from descendants do not count.
//! So `lib.rs` is in no circle. A `mod.rs` is in one if files of other modules tie it.
//!
//! Read first: `rule`, then `Crate::target`.

use crate::repository::{File, Repository, Violation};
use std::collections::{BTreeMap, BTreeSet};

/// Circles that stay, with the reason. One that no longer exists fails too.
struct Allowed {
    files: &'static [&'static str],
    /// Why it stays.
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[];

pub(crate) fn rule(repository: &Repository) -> Vec<Violation> {
    check(repository, ALLOWED)
}

fn check(repository: &Repository, allowed: &[Allowed]) -> Vec<Violation> {
    let mut roots: BTreeSet<&str> = BTreeSet::new();
    for file in repository.rust_below("crates") {
        roots.extend(file.path.find("/src/").map(|at| &file.path[..at + 5]));
    }
    let mut circles: Vec<(BTreeSet<&str>, Violation)> = Vec::new();
    for root in roots {
        let files = repository.files.iter().filter(|file| file.is_rust() && file.path.starts_with(root));
        circles.extend(Crate::of(root, files).circles());
    }
    let known = |circle: &BTreeSet<&str>| {
        allowed.iter().any(|one| circle.iter().all(|file| one.files.contains(file)))
    };
    let in_circles: BTreeSet<&str> = circles.iter().flat_map(|(circle, _)| circle.iter().copied()).collect();
    let gone = allowed.iter().flat_map(|one| one.files.iter().map(|file| (*file, one.reason)));
    let gone = gone.filter(|(file, _)| !in_circles.contains(file)).map(|(file, reason)| Violation {
        path: file.to_owned(),
        line: 0,
        advice: format!(
            "this file is in no circle any more: remove it from ALLOWED in circles.rs ({reason})"
        ),
    });
    let gone: Vec<Violation> = gone.collect();
    let found = circles.into_iter().filter(|(circle, _)| !known(circle)).map(|(_, violation)| violation);
    found.chain(gone).collect()
}

/// The modules of a crate that are files.
struct Crate<'f> {
    files: Vec<SourceFile<'f>>,
    /// The file of each module, by its path from the root of the crate.
    modules: BTreeMap<Vec<&'f str>, usize>,
}

struct SourceFile<'f> {
    path: &'f str,
    module: Vec<&'f str>,
    scan: Scan<'f>,
}

/// What the production code of a file says.
#[derive(Default)]
struct Scan<'f> {
    /// The `use` declarations, one for each name.
    uses: Vec<Use<'f>>,
    /// Paths of at least two segments outside of `use`.
    paths: Vec<Named<'f>>,
    /// Names of items.
    defined: BTreeSet<&'f str>,
    /// Every word outside of `use`.
    words: BTreeSet<&'f str>,
    /// Modules for tests alone.
    test_modules: BTreeSet<&'f str>,
}

struct Use<'f> {
    path: Named<'f>,
    /// The name that it makes known here, `*` for all.
    name: &'f str,
    /// Whether it hands the name on.
    is_public: bool,
}

#[derive(Clone)]
struct Named<'f> {
    segments: Vec<&'f str>,
    line: usize,
}

/// An import of one file by another.
struct Edge<'f> {
    to: usize,
    line: usize,
    name: &'f str,
}

impl<'f> Crate<'f> {
    fn of(root: &str, files: impl Iterator<Item = &'f File>) -> Crate<'f> {
        let mut all: Vec<SourceFile<'f>> = files
            .filter(|file| file.first_test_line() > 1)
            .map(|file| SourceFile {
                path: &file.path,
                module: module(&file.path[root.len()..]),
                scan: scan(&file.code),
            })
            .collect();
        let of_tests = |file: &SourceFile<'f>| {
            file.scan.test_modules.iter().map(|name| [&file.module[..], &[*name]].concat()).collect()
        };
        let tests: Vec<Vec<Vec<&str>>> = all.iter().map(of_tests).collect();
        let tests: BTreeSet<Vec<&str>> = tests.into_iter().flatten().collect();
        all.retain(|file| (1..=file.module.len()).all(|len| !tests.contains(&file.module[..len])));
        // A library with a program beside it: main.rs imports the library by its name.
        all.sort_by_key(|file| !file.path.ends_with("/main.rs"));
        let modules = all.iter().enumerate().map(|(index, file)| (file.module.clone(), index)).collect();
        Crate { files: all, modules }
    }

    /// Returns the file that defines what a path of `module` names; `None` if it is of another
    /// crate.
    fn target(&self, module: &[&'f str], path: &[&'f str], depth: usize) -> Option<usize> {
        let (first, mut rest) = path.split_first()?;
        let mut at = module.to_vec();
        match *first {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
                while let Some((_, after)) = rest.split_first().filter(|(next, _)| **next == "super") {
                    at.pop();
                    rest = after;
                }
            }
            name if self.modules.contains_key(&[module, &[name]].concat()) => at.push(name),
            name => {
                let scan = &self.files[*self.modules.get(module)?].scan;
                let known = scan.uses.iter().find(|known| known.name == name)?;
                let whole = [&known.path.segments[..], rest].concat();
                // `use fastpath_link as link` begins with the name of another crate.
                return (depth > 0).then(|| self.target(module, &whole, depth - 1))?;
            }
        }
        while let Some((next, after)) = rest.split_first() {
            let deeper = [&at[..], &[*next]].concat();
            if !self.modules.contains_key(&deeper) {
                return self.definition(&at, rest, depth);
            }
            (at, rest) = (deeper, after);
        }
        self.modules.get(&at).copied()
    }

    /// Returns the file of the name with which `rest` begins, as the module `at` knows it.
    fn definition(&self, at: &[&'f str], rest: &[&'f str], depth: usize) -> Option<usize> {
        let here = *self.modules.get(at)?;
        let SourceFile { scan, .. } = &self.files[here];
        if depth == 0 || scan.defined.contains(rest[0]) {
            return Some(here);
        }
        if let Some(known) = scan.uses.iter().find(|known| known.name == rest[0]) {
            let whole = [&known.path.segments[..], &rest[1..]].concat();
            return self.target(at, &whole, depth - 1);
        }
        let globs = scan.uses.iter().filter(|known| known.name == "*");
        let mut targets = globs.filter_map(|glob| {
            let whole = [&glob.path.segments[..], rest].concat();
            self.target(at, &whole, depth - 1).filter(|file| self.files[*file].scan.defined.contains(rest[0]))
        });
        targets.next().or(Some(here))
    }

    /// Returns the imports of a file, one for each other file.
    fn edges(&self, from: usize) -> Vec<Edge<'f>> {
        let SourceFile { module, scan, .. } = &self.files[from];
        // A name that is only handed on is not used here.
        let used = |known: &&Use<'f>| !known.is_public || scan.words.contains(known.name);
        let uses = scan.uses.iter().filter(used).map(|known| &known.path);
        let mut edges: BTreeMap<usize, Edge<'f>> = BTreeMap::new();
        for path in uses.chain(&scan.paths) {
            let is_above_or_beside = |to: &usize| !self.files[*to].module.starts_with(module);
            if let Some(to) = self.target(module, &path.segments, 8).filter(is_above_or_beside) {
                let name = path.segments.last().copied().unwrap_or_default();
                edges.entry(to).or_insert(Edge { to, line: path.line, name });
            }
        }
        edges.into_values().collect()
    }

    /// Returns the files of each circle, and what ties it.
    fn circles(&self) -> Vec<(BTreeSet<&'f str>, Violation)> {
        let edges: Vec<Vec<Edge<'f>>> = (0..self.files.len()).map(|from| self.edges(from)).collect();
        let reached: Vec<BTreeSet<usize>> = (0..edges.len()).map(|from| reachable(&edges, from)).collect();
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for from in 0..edges.len() {
            let both = |to: &&usize| reached[**to].contains(&from);
            let circle: BTreeSet<usize> = reached[from].iter().filter(both).copied().collect();
            if circle.is_empty() || !seen.insert(circle.clone()) {
                continue;
            }
            let inside = |from: &usize| {
                let edges = edges[*from].iter().filter(|edge| circle.contains(&edge.to));
                let from = self.files[*from].path;
                edges.map(move |edge| {
                    format!(
                        "\n    {from}:{} takes {} from {}",
                        edge.line, edge.name, self.files[edge.to].path
                    )
                })
            };
            let ties: String = circle.iter().flat_map(inside).collect();
            let advice = format!(
                "{} files import each other in a circle: move what both need to a file of its own{ties}",
                circle.len()
            );
            let files: BTreeSet<&str> = circle.iter().map(|file| self.files[*file].path).collect();
            let path = files.first().map(|path| (*path).to_owned()).unwrap_or_default();
            circles.push((files, Violation { path, line: 0, advice }));
        }
        circles
    }
}

/// The files to which imports lead from a file, itself included if one leads back.
fn reachable(edges: &[Vec<Edge<'_>>], from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        waiting.extend(edges[file].iter().map(|edge| edge.to).filter(|to| reached.insert(*to)));
    }
    reached
}

/// The path of the module that a file is: `plan/mod.rs` and `plan.rs` are `plan`.
fn module(path: &str) -> Vec<&str> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut names: Vec<&str> = path.split('/').collect();
    if names.last() == Some(&"mod") || matches!(names[..], ["lib" | "main"]) {
        names.pop();
    }
    names
}

#[derive(Clone, Copy, PartialEq)]
struct Token<'f> {
    text: &'f str,
    line: usize,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let len = match word {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                len => len,
            };
            let (text, after) = rest.split_at(len);
            tokens.push(Token { text, line: index + 1 });
            rest = after.trim_start();
        }
    }
    tokens
}

/// Keywords before the name of an item.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

fn scan(code: &str) -> Scan<'_> {
    let tokens = tokens(code);
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let is_word = |word: &str| word.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut scan = Scan::default();
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "#" if is_for_tests(&tokens[at..]) => {
                let item = after_item(&tokens, at);
                let modules = (at..item).filter(|at| text(*at) == "mod");
                scan.test_modules.extend(modules.map(|at| text(at + 1)));
                at = item;
            }
            "use" => {
                let is_public = at > 0 && matches!(text(at - 1), "pub" | ")");
                let end = (at..tokens.len()).find(|at| text(*at) == ";").unwrap_or(tokens.len());
                declared(&tokens[at + 1..end], &[], is_public, &mut scan.uses);
                at = end;
            }
            word if is_word(word) => {
                let is_start = at == 0 || !matches!(text(at - 1), "::" | ".");
                let is_macro = at > 1 && (text(at - 2), text(at - 1)) == ("macro_rules", "!");
                if is_macro || at > 0 && ITEMS.contains(&text(at - 1)) {
                    scan.defined.insert(word);
                }
                scan.words.insert(word);
                let mut segments = vec![word];
                while is_start && text(at + 1) == "::" && is_word(text(at + 2)) {
                    segments.push(text(at + 2));
                    at += 2;
                }
                if segments.len() > 1 {
                    scan.paths.push(Named { segments, line: tokens[at].line });
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
    scan
}

/// Whether an attribute is `#[cfg(test)]`, or one with more conditions.
fn is_for_tests(tokens: &[Token<'_>]) -> bool {
    let words: Vec<&str> = tokens.iter().take(6).map(|token| token.text).collect();
    words.starts_with(&["#", "[", "cfg", "(", "test"])
        || words.starts_with(&["#", "[", "cfg", "(", "all", "("])
            && tokens.get(6).is_some_and(|token| token.text == "test")
}

/// The place after the item that an attribute belongs to: it ends with `;` or a block.
fn after_item(tokens: &[Token<'_>], attribute: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(attribute) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The names of a `use` declaration: `a::{b, c::d as e}` are `a::b` and `a::c::d`, known as `e`.
fn declared<'f>(tokens: &[Token<'f>], before: &[&'f str], is_public: bool, uses: &mut Vec<Use<'f>>) {
    let mut segments = before.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                let mut depth = 0;
                let mut start = at + 1;
                for (place, token) in tokens.iter().enumerate().skip(at) {
                    match token.text {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    let ends = depth == 0 || (depth == 1 && token.text == ",");
                    if ends && place >= start {
                        declared(&tokens[start..place], &segments, is_public, uses);
                        start = place + 1;
                    }
                }
                return;
            }
            "::" => {}
            "as" => break,
            name => segments.push(name),
        }
        at += 1;
    }
    let Some(first) = tokens.first() else { return };
    let alias = tokens.get(at + 1).map(|token| token.text);
    // `a::{self}` is `a`.
    if segments.len() > 1 && segments.last() == Some(&"self") {
        segments.pop();
    }
    let last = segments.last().copied().unwrap_or_default();
    if last == "*" {
        segments.pop();
    }
    let path = Named { segments, line: first.line };
    uses.push(Use { path, name: alias.unwrap_or(last), is_public });
}

#[cfg(test)]
mod samples {
    use super::*;

    fn repository(files: &[(&str, &str)]) -> Repository {
        let files = files.iter().map(|(path, text)| File::new(&format!("crates/a/src/{path}"), text));
        Repository { files: files.collect(), packages: Vec::new() }
    }

    fn circles(files: &[(&str, &str)], allowed: &[Allowed]) -> Vec<String> {
        check(&repository(files), allowed)
            .iter()
            .map(|found| found.path.replace("crates/a/src/", ""))
            .collect()
    }

    #[test]
    fn files_that_import_each_other_are_found_also_through_what_modules_hand_on() {
        let direct =
            [("lib.rs", "mod x; mod y;"), ("x.rs", "use crate::y::Y;"), ("y.rs", "fn f(x: super::x::X) {}")];
        assert_eq!(circles(&direct, &[]), ["x.rs"]);
        let through = [
            ("lib.rs", "mod rooms; pub(crate) use rooms::{X, y::Y as Z};"),
            ("rooms/mod.rs", "mod x; pub mod y; pub use x::*;"),
            ("rooms/x.rs", "use crate::Z; pub struct X;"),
            ("rooms/y.rs", "use crate::{\n    X,\n}; pub struct Y;"),
        ];
        assert_eq!(circles(&through, &[]), ["rooms/x.rs"]);
        let parent = [
            ("lib.rs", "mod x;"),
            ("x.rs", "mod y; fn f() { y::g(crate::z::Z); }"),
            ("x/y.rs", "use super::f;"),
            ("z.rs", "fn h() { crate::x::y::g(); }"),
        ];
        assert_eq!(circles(&parent, &[]), ["x.rs"]);
    }

    #[test]
    fn modules_that_hand_names_on_and_tests_are_in_no_circle() {
        let files = [
            ("lib.rs", "mod x; mod y; pub use x::X; pub use y::Y; #[cfg(test)] mod fixture;"),
            ("x.rs", "use crate::Y; pub struct X;"),
            (
                "y.rs",
                "pub struct Y;\n#[cfg(test)]\nuse crate::X;\n#[cfg(test)]\nmod tests {\n use crate::X;\n}\n",
            ),
            ("fixture.rs", "use crate::X;"),
        ];
        assert_eq!(circles(&files, &[]), [""; 0]);
    }

    #[test]
    fn an_allowed_circle_that_is_gone_is_found() {
        let files = ["crates/a/src/x.rs", "crates/a/src/y.rs"];
        const FILES: &[&str] = &["crates/a/src/x.rs", "crates/a/src/y.rs"];
        assert_eq!(files, FILES);
        let allowed = || Allowed { files: FILES, reason: "a recursion" };
        let circle = [("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::x::X;")];
        assert_eq!(circles(&circle, &[allowed()]), [""; 0]);
        assert_eq!(circles(&circle[..1], &[allowed()]), ["x.rs", "y.rs"]);
    }
}
