//! The input of the rules: the committed text files, the packages and the crate table.

use crate::source;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A place in the repository, and how to correct it.
pub(crate) struct Violation {
    pub(crate) path: String,
    /// From 1; 0 for the file as a whole.
    pub(crate) line: usize,
    pub(crate) advice: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.advice)
    }
}

/// A committed text file.
pub(crate) struct File {
    /// From the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// For `.rs` files the text with comments and literals blanked, line for line; else empty.
    pub(crate) code: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> File {
        let code = if path.ends_with(".rs") { source::code_only(text) } else { String::new() };
        File { path: path.to_owned(), text: text.to_owned(), code }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Tests are the end of a file, or a whole file: `tests.rs`, or any file below a `tests`
    /// directory.
    pub(crate) fn first_test_line(&self) -> usize {
        if self.path.contains("/tests/") || self.path.ends_with("/tests.rs") {
            return 1;
        }
        let lines: Vec<&str> = self.code.lines().collect();
        let opens = |pair: &[&str]| pair[0].trim() == "#[cfg(test)]" && pair[1].trim_end().ends_with('{');
        lines.windows(2).position(opens).map_or(usize::MAX, |index| index + 1)
    }

    pub(crate) fn violation(&self, line: usize, advice: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, advice: advice.into() }
    }
}

/// A package of the workspace.
pub(crate) struct Package {
    /// Without the `fastpath-` prefix.
    pub(crate) name: String,
    /// The directory from the root of the repository.
    pub(crate) directory: String,
    pub(crate) description: String,
    /// Dependencies of any kind that are packages of this workspace, without the prefix.
    pub(crate) uses: Vec<String>,
}

pub(crate) struct Repository {
    pub(crate) files: Vec<File>,
    pub(crate) packages: Vec<Package>,
}

impl Repository {
    /// The repository this test was built from.
    pub(crate) fn here() -> Repository {
        let root = root();
        let files = listed(&root)
            .into_iter()
            .filter_map(|path| Some(File::new(&path, &std::fs::read_to_string(root.join(&path)).ok()?)))
            .collect();
        Repository { files, packages: packages(&root) }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files below a directory.
    pub(crate) fn rust_below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.is_rust() && is_below(&file.path, directory))
    }
}

pub(crate) fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root").to_owned()
}

/// The files that git tracks. `safe.directory` permits a checkout owned by another user (a
/// container's volume).
fn listed(root: &Path) -> Vec<String> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .current_dir(root)
        .output()
        .expect("the tidy test runs git");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    names.split_terminator('\0').map(str::to_owned).collect()
}

fn packages(root: &Path) -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .expect("the tidy test runs cargo");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let list = metadata["packages"].as_array().expect("cargo metadata lists packages");
    list.iter().map(|package| describe(package, root)).collect()
}

fn describe(package: &Value, root: &Path) -> Package {
    let manifest = Path::new(text(&package["manifest_path"]));
    let directory =
        manifest.parent().and_then(|path| path.strip_prefix(root).ok()).expect("package below root");
    let dependencies = package["dependencies"].as_array().expect("dependencies are a list");
    Package {
        name: short(text(&package["name"])),
        directory: directory.to_string_lossy().replace('\\', "/"),
        description: package["description"].as_str().unwrap_or_default().to_owned(),
        uses: dependencies
            .iter()
            .filter(|dependency| dependency["path"].is_string())
            .map(|dependency| short(text(&dependency["name"])))
            .collect(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn short(name: &str) -> String {
    name.strip_prefix("fastpath-").unwrap_or(name).to_owned()
}
