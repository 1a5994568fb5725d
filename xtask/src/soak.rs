//! `cargo xtask soak`: the test of a long life of a lab (`crates/cli/tests/virtual_time/soak.rs`),
//! for a day of virtual time or as many hours as are asked for.

use crate::suite::build_guest;
use std::env;
use std::process::{Command, ExitCode};

/// Runs the test. The exit code is that of `cargo test`, and 2 if `hours` is not a number.
pub(crate) fn run(hours: Option<&str>) -> ExitCode {
    let hours = hours.unwrap_or("24");
    if !hours.parse().is_ok_and(|hours: u32| hours > 0) {
        eprintln!("xtask: --hours {hours}: write a number from 1");
        return ExitCode::from(2);
    }
    build_guest();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--all-features", "--test", "virtual_time"]);
    command.args(["--", "--nocapture", "a_lab_that_lives_long_stays_as_it_is"]);
    // A cycle is an hour.
    command.env("FASTPATH_SOAK_CYCLES", hours).env("FASTPATH_SOAK_SECONDS", "3600");
    let is_good = command.status().is_ok_and(|status| status.success());
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
