//! `cargo xtask book`: the documentation as a book (mdBook) in `target/book/html`, without a
//! network after mdBook itself is installed.
//!
//! ```text
//! README.md, ARCHITECTURE.md, docs/, examples/ ─▶ target/book/src ─┐
//! help, schema, enums, presets ─▶ docs/reference/generated ────────┴─▶ mdBook ─▶ dead links?
//! ```
//!
//! What the program prints is not committed, so it cannot be out of date. The pages that files of
//! the repository determine are: readers of a clone have them, and a test compares them. `cargo
//! xtask pages` writes these.

mod commands;
mod drop_reasons;
mod links;
mod schema;

use crate::process::{cargo, succeed, target};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The release of mdBook.
const MDBOOK: &str = "0.5.4";
/// The pages of the root of the repository that are in the book.
const ROOT_PAGES: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Directories that are in the book.
const DIRECTORIES: &[&str] = &["docs", "examples"];
const GENERATED: &str = "docs/reference/generated";
/// The JSON Schema of specs.
const SCHEMA: &str = "docs/schema/topology.json";
/// The list of decisions, from `docs/`. Its pages are below it in the contents of the book.
const DECISIONS: &str = "internals/decisions.md";

/// Builds the book. The exit code is 1 if it has dead links.
pub(crate) fn run() -> ExitCode {
    match build() {
        Ok((html, dead)) if dead.is_empty() => {
            println!("xtask: the book is {}", html.join("index.html").display());
            ExitCode::SUCCESS
        }
        Ok((_, dead)) => {
            eprintln!("xtask: links that lead nowhere:\n{}", dead.join("\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("xtask: book: {error}");
            ExitCode::from(2)
        }
    }
}

/// Writes the pages of the reference that are committed.
pub(crate) fn write_pages() -> ExitCode {
    let written = pages(Path::new("")).and_then(|pages| {
        pages
            .into_iter()
            .try_for_each(|(path, text)| fs::write(path, text).map(|()| println!("xtask: {path}")))
    });
    written.map_or_else(
        |error| {
            eprintln!("xtask: pages: {error}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

/// Returns the pages of the reference that are committed, with their paths below `root`.
fn pages(root: &Path) -> io::Result<[(&'static str, String); 2]> {
    let schema = serde_json::from_str(&fs::read_to_string(root.join(SCHEMA))?).map_err(io::Error::other)?;
    let texts: io::Result<Vec<String>> =
        drop_reasons::SOURCES.iter().map(|(file, ..)| fs::read_to_string(root.join(file))).collect();
    Ok([
        ("docs/reference/spec.md", schema::page(&schema).map_err(io::Error::other)?),
        ("docs/reference/drop-reasons.md", drop_reasons::page(&texts?)),
    ])
}

/// Returns the directory of the HTML pages, and the dead links.
fn build() -> io::Result<(PathBuf, Vec<String>)> {
    let mdbook = mdbook()?;
    cargo(&["build", "--quiet", "--package", "fastpath-cli", "--features", "full"])?;
    let program = fs::canonicalize(target().join("debug/fastpath"))?;
    let book = target().join("book");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    let source = book.join("src");
    stage(&source)?;
    generate(&source.join(GENERATED), &program)?;
    fs::copy("docs/book.toml", book.join("book.toml"))?;
    let decisions = fs::read_to_string(Path::new("docs").join(DECISIONS))?;
    let summary = with_decisions(&fs::read_to_string("docs/SUMMARY.md")?, &decisions);
    fs::write(source.join("SUMMARY.md"), contents(&summary))?;
    succeed(Command::new(&mdbook).arg("build").arg(&book))?;
    let html = book.join("html");
    let dead = links::dead(&html)?;
    Ok((html, dead))
}

/// Returns the program, installed below the target directory if it is not on the PATH.
fn mdbook() -> io::Result<PathBuf> {
    let on_path = Command::new("mdbook").arg("--version").output();
    if on_path.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(MDBOOK)) {
        return Ok("mdbook".into());
    }
    let root = target().join("mdbook");
    let program = root.join("bin/mdbook");
    if !program.exists() {
        println!(
            "xtask: the book needs mdBook {MDBOOK}: installing it from crates.io into {}",
            root.display()
        );
        let root = root.to_string_lossy();
        let version = format!("mdbook@{MDBOOK}");
        cargo(&[
            "install",
            "--quiet",
            "--locked",
            &version,
            "--no-default-features",
            "--features",
            "search",
            "--root",
            &root,
        ])?;
    }
    Ok(program)
}

/// Copies what is in the book, at the same places, so that links between them hold.
fn stage(source: &Path) -> io::Result<()> {
    fs::create_dir_all(source)?;
    for page in ROOT_PAGES {
        fs::copy(page, source.join(page))?;
    }
    for directory in DIRECTORIES {
        crate::process::copy_tree(Path::new(directory), &source.join(directory))?;
    }
    for file in ["SUMMARY.md", "book.toml"] {
        fs::remove_file(source.join("docs").join(file))?;
    }
    Ok(())
}

/// Writes the pages of the reference that are not committed.
fn generate(directory: &Path, program: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let say = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        commands::output(program, &words)
    };
    let listing = |title: &str, words: &[&str]| -> io::Result<String> {
        let text = say(words)?;
        Ok(format!(
            "# {title}\n\nThe output of `fastpath {}`.\n\n```text\n{}\n```\n",
            words.join(" "),
            text.trim_end()
        ))
    };
    let pages = [
        ("commands.md", commands::page(program)?),
        ("presets.md", listing("Presets", &["presets"])?),
        ("machines.md", listing("Machines and programs of the simulator", &["sim", "--list"])?),
    ];
    for (name, text) in pages {
        fs::write(directory.join(name), text)?;
    }
    Ok(())
}

/// The contents with a line for each decision below the line of their list.
fn with_decisions(summary: &str, decisions: &str) -> String {
    let mut contents = String::new();
    for line in summary.lines() {
        contents += &format!("{line}\n");
        if line.ends_with(&format!("]({DECISIONS})")) {
            for item in decisions.lines().filter(|item| item.starts_with("- [")) {
                let end = item.find(')').map_or(item.len(), |at| at + 1);
                contents += &format!("  {}\n", item[..end].replace("](../", "]("));
            }
        }
    }
    contents
}

/// The contents, whose links are from `docs/`, from the root of the book.
fn contents(summary: &str) -> String {
    let parts: Vec<&str> = summary.split("](").collect();
    let (first, rest) = parts.split_first().expect("split returns a part");
    let rest = rest.iter().map(|part| match part.strip_prefix("../") {
        Some(above) => format!("]({above}"),
        None => format!("](docs/{part}"),
    });
    std::iter::once((*first).to_owned()).chain(rest).collect()
}

#[test]
fn the_committed_pages_are_those_of_the_schema_and_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (path, text) in pages(&root).expect("pages") {
        let committed = fs::read_to_string(root.join(path)).expect("a committed page");
        assert!(committed == text, "{path} is out of date: cargo xtask pages");
    }
}

#[test]
fn links_of_the_contents_lead_from_the_root() {
    let summary = "# S\n- [a](a.md)\n  - [b](../B.md)\n";
    assert_eq!(contents(summary), "# S\n- [a](docs/a.md)\n  - [b](B.md)\n");
}

#[test]
fn decisions_are_below_their_list_in_the_contents() {
    let summary = "- [a](a.md)\n- [Decisions](internals/decisions.md)\n- [b](b.md)\n";
    let decisions = "# D\n- [001. A pipe](../decisions/001-a.md). Replaced by 002\n";
    assert_eq!(
        with_decisions(summary, decisions),
        "- [a](a.md)\n- [Decisions](internals/decisions.md)\n  - [001. A pipe](decisions/001-a.md)\n- [b](b.md)\n"
    );
}
