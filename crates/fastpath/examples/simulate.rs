//! Simulates an Intel IXP1200 network processor running the LinkEM emulator at line rate.

use fastpath::prelude::*;

fn main() -> fastpath::Result<()> {
    let workload = "line-rate,size=64,ports=4,duration=1ms".to_owned();
    let outcome = Simulation { workload, ..Simulation::new("ixp1200", "linkem") }.run()?.outcome;
    println!("{:.0} of {:.0} packets/s forwarded", outcome.forwarded_pps, outcome.offered_pps);
    for (name, unit) in &outcome.units {
        println!("  {name}: busy {:.0} %", 100.0 * unit.busy);
    }
    Ok(())
}
