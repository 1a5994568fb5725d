//! Sweeps the number of cores of a simulated server, on all cores of this machine.

use fastpath::prelude::*;
use fastpath::sweep::{self, Design, SweepOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workload = "line-rate,size=512,duration=200us".to_owned();
    let simulation = Simulation { workload, ..Simulation::new("xeon-e5-2687wv4", "netcope") };
    let axes = vec!["machine.cpu.cores=1..4".parse()?];
    let sweep = sweep::sweep(&simulation, axes, Design::Grid)?;
    let results = sweep::run(&sweep, &SweepOptions::default(), &|_, _| {})?;
    for row in results.rows() {
        let [cores, pps] = ["machine.cpu.cores", "forwarded_pps"].map(|column| row.number(column));
        println!("{} cores: {} packets/s", cores.unwrap_or_default(), pps.unwrap_or_default());
    }
    Ok(())
}
