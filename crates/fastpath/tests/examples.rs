//! Every example runs, and is at most 40 lines long.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most lines of an example.
const LINES_MAX: usize = 40;

#[test]
fn every_example_runs_and_is_short() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names: Vec<PathBuf> =
        fs::read_dir(&sources).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    for source in names {
        let lines = fs::read_to_string(&source).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{}: {lines} lines", source.display());
        let output = Command::new(built(&source))
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", source.display()));
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && !out.is_empty(), "{}: {out}{err}", source.display());
    }
}

/// The program that cargo built of an example, next to the directory of the tests.
fn built(source: &Path) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let target = tests.parent().and_then(Path::parent).unwrap();
    target.join("examples").join(source.file_stem().unwrap())
}
