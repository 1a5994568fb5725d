//! The two models simulators are compared on, in fastpath, NeXosim (crates.io) and SimPy (PyPI), in
//! one run:
//!
//! ```text
//! cargo run --release --manifest-path crates/evaluate/peers/Cargo.toml [-- --json]
//! ```
//!
//! All three simulate the same thing: M/M/1 at 80 % load, and a closed ring of 32 exponential
//! servers and 64 customers. They take turns, so that a busy machine slows all of them; the result
//! is the median over the turns of the ratio of customers per second. SimPy is installed with pip
//! into a directory of its own under `target`.

mod nexo;

use fastpath_units::stats::median;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Rounds of each simulator.
const TURNS: usize = 5;
/// The peer from PyPI.
const SIMPY: &str = "simpy==4.1.2";

/// A model, how many customers each simulator serves in a turn, and what the project promises.
struct Model {
    name: &'static str,
    ours: fn(u64, u64) -> fastpath_sim::classic::RunCounts,
    nexosim: fn(u64) -> u64,
    customers: [u64; 3],
    promised: [f64; 2],
}

fn main() {
    let models = [
        Model {
            name: "mm1",
            ours: fastpath_sim::classic::mm1,
            nexosim: nexo::mm1,
            customers: [10_000_000, 500_000, 50_000],
            promised: [15.0, 200.0],
        },
        Model {
            name: "pipe32",
            ours: fastpath_sim::classic::pipe32,
            nexosim: nexo::pipe32,
            customers: [200_000, 15_000, 1500],
            promised: [10.0, 100.0],
        },
    ];
    let is_json = std::env::args().any(|word| word == "--json");
    let python = simpy();
    for model in models {
        let turns: Vec<[f64; 3]> = (0..TURNS as u64).map(|turn| turn_of(&model, &python, turn)).collect();
        let ratio = |peer: usize| median(turns.iter().map(|t| t[0] / t[peer]));
        let rate = |of: usize| median(turns.iter().map(|t| t[of]));
        let (rates, ratios) = ([rate(0), rate(1), rate(2)], [ratio(1), ratio(2)]);
        let name = model.name;
        if is_json {
            println!(
                r#"{{"model":"{name}","customers_per_second":{{"fastpath":{:.0},"nexosim":{:.0},"simpy":{:.0}}},"times_nexosim":{:.2},"times_simpy":{:.1},"turns":{TURNS}}}"#,
                rates[0], rates[1], rates[2], ratios[0], ratios[1]
            );
        } else {
            println!(
                "{name}: customers/s fastpath {:.0}, NeXosim {:.0}, SimPy {:.0}",
                rates[0], rates[1], rates[2]
            );
            for (peer, ratio, promised) in
                [("NeXosim", ratios[0], model.promised[0]), ("SimPy", ratios[1], model.promised[1])]
            {
                let verdict = if ratio >= promised { "as promised" } else { "BELOW the promise" };
                println!("  {ratio:.1} times {peer}; promised {promised}: {verdict}");
            }
        }
    }
}

/// Customers per second of each simulator, one after the other.
fn turn_of(model: &Model, python: &Path, seed: u64) -> [f64; 3] {
    let [ours, nexosim, simpy] = model.customers;
    let start = Instant::now();
    let served = (model.ours)(ours, seed + 1).customers;
    let ours = served as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    let served = (model.nexosim)(nexosim);
    let nexosim = served as f64 / start.elapsed().as_secs_f64();
    // Python times itself, so that its start is not counted.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/simpy_models.py");
    let output = Command::new(python).arg(script).arg(model.name).arg(simpy.to_string()).output();
    let output = output.expect("python runs");
    assert!(output.status.success(), "SimPy: {}", String::from_utf8_lossy(&output.stderr));
    let simpy: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("customers per second");
    [ours, nexosim, simpy]
}

/// A Python that has SimPy; installed once.
fn simpy() -> PathBuf {
    let place = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from)
        .join("peers-venv");
    let python = place.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&place));
    }
    let has = Command::new(&python).args(["-c", "import simpy"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        run(Command::new(&python).args(["-m", "pip", "--quiet", "install", SIMPY]));
    }
    python
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?} failed");
}
