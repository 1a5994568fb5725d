//! `cargo xtask profiles`: what the default build gives up against the packages.
//!
//! Both programs measure the same in turns, and the best of each counts: other work on the machine
//! only adds time.

use crate::process::{cargo, target};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

const TURNS: usize = 7;
/// What the default build may give up.
const BOUND: f64 = 1.03;

/// A measured speed: its name, the command, the record of the output (from 0), its place there, and
/// whether larger is better.
struct Speed {
    name: &'static str,
    command: &'static [&'static str],
    record: usize,
    at: &'static str,
    is_rate: bool,
}

const EMULATE: &[&str] = &["measure", "pipeline", "--program", "emulate", "--links", "1,10000"];
const SWITCH: &[&str] = &["measure", "switch", "--table", "cidr:912", "--quick"];

const SPEEDS: [Speed; 5] = [
    Speed { name: "one link, ns/packet", command: EMULATE, record: 0, at: "/T_ns", is_rate: false },
    Speed { name: "10^4 links, ns/packet", command: EMULATE, record: 1, at: "/T_ns", is_rate: false },
    Speed {
        name: "simulator, events/s",
        command: &["measure", "events"],
        record: 0,
        at: "/events_per_second",
        is_rate: true,
    },
    Speed {
        name: "switch, lookup, ns",
        command: SWITCH,
        record: 0,
        at: "/ns_per_lookup/compiled/zipf",
        is_rate: false,
    },
    Speed {
        name: "switch, packets/s",
        command: SWITCH,
        record: 0,
        at: "/packets_per_second/compiled",
        is_rate: true,
    },
];

/// Builds both programs and measures. The exit code is 1 if the default build gives up more than 3
/// %.
pub(crate) fn run() -> ExitCode {
    match compare() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: profiles: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare() -> io::Result<bool> {
    cargo(&["build", "--locked", "--package", "fastpath-cli", "--release"])?;
    cargo(&["build", "--locked", "--package", "fastpath-cli", "--profile", "dist"])?;
    let programs = ["release", "dist"].map(|profile| target().join(profile).join("fastpath"));
    // The best of each speed, for each program.
    let mut best = [[None::<f64>; SPEEDS.len()]; 2];
    for turn in 1..=TURNS {
        println!("xtask: turn {turn} of {TURNS}");
        for (program, best) in programs.iter().zip(&mut best) {
            measure(program, best)?;
        }
    }
    println!("{:24} {:>14} {:>14} {:>7}", "best of each", "default", "dist", "cost");
    let mut is_good = true;
    for (number, speed) in SPEEDS.iter().enumerate() {
        let [default, dist] = best.map(|best| best[number].unwrap_or(f64::NAN));
        let cost = if speed.is_rate { dist / default } else { default / dist };
        println!("{:24} {default:14.2} {dist:14.2} {cost:7.3}", speed.name);
        is_good &= cost <= BOUND;
    }
    Ok(is_good)
}

/// Runs every command once, and keeps what is better.
fn measure(program: &Path, best: &mut [Option<f64>; SPEEDS.len()]) -> io::Result<()> {
    let mut last: (&[&str], Vec<Value>) = (&[], Vec::new());
    for (speed, best) in SPEEDS.iter().zip(best) {
        if last.0 != speed.command {
            let output = Command::new(program).args(speed.command).arg("--json").output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let records = text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other));
            last = (speed.command, records.collect::<io::Result<_>>()?);
        }
        let found = last.1.get(speed.record).and_then(|record| record.pointer(speed.at)?.as_f64());
        let found = found.ok_or_else(|| io::Error::other(format!("{}: not in the output", speed.name)))?;
        let is_better = best.is_none_or(|best| if speed.is_rate { found > best } else { found < best });
        if is_better {
            *best = Some(found);
        }
    }
    Ok(())
}
