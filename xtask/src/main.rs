//! Repository chores, as `cargo xtask NAME`.
//!
//! `test` runs all tests on a fresh machine (see `suite.rs`). `wheel` builds the Python package
//! (see `python.rs`). The repository rules are a test: `tests/tidy/`.
#![forbid(unsafe_code)]

mod programs;
mod python;
mod suite;
mod tally;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask test [--no-install] [ARGUMENTS OF cargo test…]
       cargo xtask wheel

  test           run every test of the workspace and end with a line 'N passed, N failed, N skipped'
  --no-install   do not install missing distribution programs; their tests are skipped, and listed
  wheel          build the Python package as dist/*.whl, with the program fastpath";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((chore, rest)) if chore == "test" => suite::run(rest),
        Some((chore, [])) if chore == "wheel" => python::wheel(),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
