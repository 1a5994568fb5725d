//! `cargo xtask targets`: the systems that README.md offers, type-checked.
//!
//! Nothing is linked, so neither a linker nor the libraries of those systems are needed. The
//! features are the default ones: TLS compiles C.

use crate::dist::MUSL;
use crate::process::{cargo, succeed};
use std::process::{Command, ExitCode};

/// The targets beside the one that tests run on.
const TARGETS: [&str; 3] = [MUSL, "x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Checks every target. The exit code is 1 if one does not compile. A target whose standard library
/// cannot be installed is named as skipped.
pub(crate) fn run() -> ExitCode {
    let mut is_good = true;
    for target in TARGETS {
        println!("xtask: checking {target}, whose standard library rustup installs if it is missing");
        if let Err(error) = succeed(Command::new("rustup").args(["--quiet", "target", "add", target])) {
            println!("skipped {target}: {error}");
        } else if let Err(error) =
            cargo(&["check", "--quiet", "--locked", "--package", "fastpath-cli", "--target", target])
        {
            eprintln!("xtask: targets: {error}");
            is_good = false;
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
