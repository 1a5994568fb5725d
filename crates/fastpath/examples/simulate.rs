//! Simulates an Intel IXP1200 network processor running the LinkEM emulator at line rate.

use fastpath::prelude::*;
use fastpath::sim::run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let simulation = Simulation {
        program: "linkem".to_owned(),
        workload: "line-rate,size=64,ports=4,duration=1ms".to_owned(),
        changes: Vec::new(),
        seed: 1,
    };
    let input = simulation.on("ixp1200")?.input()?;
    let outcome = run(&input.machine, &input.program, &input.workload, input.seed)?;
    println!("{:.0} of {:.0} packets/s forwarded", outcome.forwarded_pps, outcome.offered_pps);
    for (name, unit) in &outcome.units {
        println!("  {name}: busy {:.0} %", 100.0 * unit.busy);
    }
    Ok(())
}
