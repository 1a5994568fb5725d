//! Repository chores, as `cargo xtask NAME`.
//!
//! Each chore is a module. The repository rules are a test: `tests/tidy/`.
#![forbid(unsafe_code)]

mod book;
mod dist;
mod process;
mod profiles;
mod programs;
mod python;
mod release;
mod soak;
mod suite;
mod tally;
mod targets;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask test [--no-install] [ARGUMENTS OF cargo test…]
       cargo xtask book
       cargo xtask pages
       cargo xtask notebooks
       cargo xtask wheel [--debug] [--check]
       cargo xtask dist [--check] [--profile NAME] [deb|archive|image|quic-sim|wheel]…
       cargo xtask soak [--hours N]
       cargo xtask targets
       cargo xtask profiles
       cargo xtask release --dry-run

  test           run every test of the workspace and end with a line 'N passed, N failed, N skipped'
  --no-install   do not install missing distribution programs; their tests are skipped, and listed
  book           build the documentation as a book (mdBook) in target/book/html, and check its links
  pages          write the reference of spec keys and of drop reasons in docs/reference
  notebooks      run the notebooks of the documentation and keep their results
  wheel          build the Python package as dist/*.whl, with the program fastpath; --debug is quick and for a
                 trial, --check installs it in a fresh virtual environment and tries it there
  dist           make what users install, in dist/; --check installs it in a fresh Debian root and runs a lab
  soak           a day of a lab in virtual time, with pings, transfers, changes of links and killed programs
  targets        type-check the program for the other systems that it is offered for
  profiles       measure what the default build gives up against that of packages, in turns
  release        make and check everything that a release consists of, and publish nothing";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((chore, rest)) if chore == "test" => suite::run(rest),
        Some((chore, [])) if chore == "book" => book::run(),
        Some((chore, [])) if chore == "pages" => book::write_pages(),
        Some((chore, [])) if chore == "notebooks" => python::notebooks(),
        Some((chore, rest)) if chore == "wheel" => match python::WheelOptions::parse(rest) {
            Some(options) => python::wheel(&options),
            None => usage(),
        },
        Some((chore, rest)) if chore == "dist" => dist::run(rest),
        Some((chore, [])) if chore == "profiles" => profiles::run(),
        Some((chore, [])) if chore == "targets" => targets::run(),
        Some((chore, [])) if chore == "soak" => soak::run(None),
        Some((chore, [option, hours])) if chore == "soak" && option == "--hours" => soak::run(Some(hours)),
        Some((chore, rest)) if chore == "release" => release::run(rest),
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
