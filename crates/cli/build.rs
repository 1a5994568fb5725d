//! Tells the program which commit it is built from; nothing where that is not known (a source
//! archive).

use std::process::Command;

fn main() {
    // Commits move the log of HEAD, also from linked worktrees; without git it is not there.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=FASTPATH_COMMIT={commit}");
    }
}

/// The first line git answers, if it does.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned).filter(|line| !line.is_empty())
}
