//! `cargo xtask test`: every test of the workspace, on a machine that has only a Rust toolchain and
//! git.

use crate::process::target;
use crate::programs;
use crate::python;
use crate::tally::Tally;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

/// Installs what the tests need, runs `cargo test --workspace` with the given further arguments
/// (without any also the tests of the Python package), and ends with a line `N passed, N failed, N
/// skipped`. The exit code is 0 when nothing failed, 1 otherwise, 2 without cargo.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let (install, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == "--no-install" => (false, rest),
        _ => (true, arguments),
    };
    if install {
        programs::install_missing();
    }
    if install && arguments.is_empty() && cfg!(target_os = "linux") {
        // Tests of the program drive packages of it, too. Without it they are skipped.
        python::environment(install);
        build_guest();
    }
    match cargo_test(arguments) {
        Ok((mut tally, success)) => {
            // With arguments for cargo test only some tests are asked for.
            if arguments.is_empty() && cfg!(target_os = "linux") {
                python::test(&mut tally, install);
            }
            report(&tally, success)
        }
        Err(error) => {
            eprintln!("xtask: cargo test did not run: {error}");
            ExitCode::from(2)
        }
    }
}

/// Builds the kernel of guests below the target directory, unless it is there: by the program that
/// the tests use. Where it cannot be built, the tests in virtual time are skipped.
pub(crate) fn build_guest() {
    let (directory, program) = (target().join("guest"), target().join("debug/fastpath"));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let all = ["test", "--workspace", "--all-features", "--no-run"];
    // What does not compile is said by the tests.
    if !Command::new(cargo).args(all).status().is_ok_and(|status| status.success()) {
        return;
    }
    let guest = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("guest").args(words).env("FASTPATH_GUEST", &directory);
        command
    };
    let status = guest(&["status"]).stdout(Stdio::null()).status();
    if status.is_ok_and(|status| status.success()) {
        return;
    }
    println!(
        "xtask: tests in virtual time need a kernel: building it into {} from Debian's source (10 to 20 minutes of CPU)",
        directory.display()
    );
    if !guest(&["build"]).status().is_ok_and(|status| status.success()) {
        println!("xtask: the kernel is not here; the tests in virtual time are skipped");
    }
}

/// Runs the tests, showing their output as it comes. The flag is false when cargo or a test failed.
fn cargo_test(arguments: &[String]) -> std::io::Result<(Tally, bool)> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["test", "--workspace", "--all-features", "--no-fail-fast"])
        .args(arguments)
        .args(["--", "--show-output"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tally = Tally::default();
    let stdout = child.stdout.take().expect("stdout was piped");
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if tally.line(&line) {
            println!("{line}");
        }
    }
    let success = child.wait()?.success();
    tally.end(success);
    Ok((tally, success))
}

fn report(tally: &Tally, success: bool) -> ExitCode {
    for reason in tally.skipped() {
        println!("skipped {reason}");
    }
    println!("{}", tally.summary());
    if success && !tally.has_failed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
