//! Sweeps the number of cores of a simulated server, on all cores of this machine.

use fastpath::prelude::*;
use fastpath::sweep::{self, Design, SweepOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let simulation = Simulation {
        program: "netcope".to_owned(),
        workload: "line-rate,size=512,duration=200us".to_owned(),
        changes: Vec::new(),
        seed: 1,
    };
    let axes = vec!["machine.cpu.cores=1..4".parse()?];
    let sweep = sweep::sweep(&simulation, "xeon-e5-2687wv4", axes, Design::Grid)?;
    let results = sweep::run(&sweep, &SweepOptions::default(), &|_, _| {})?;
    let columns = sweep.columns();
    let column = |name: &str| columns.iter().position(|column| column == name).expect("a known column");
    for row in results.rows() {
        println!("{} cores: {} packets/s", row[column("machine.cpu.cores")], row[column("forwarded_pps")]);
    }
    Ok(())
}
