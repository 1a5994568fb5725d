//! Fits the cost of a packet to measured points, and predicts the throughput of four cores on a
//! 100G link, with intervals.

use fastpath::model::Table;
use fastpath::model::fit::{FitOptions, fit};
use fastpath::model::predict::{PredictionQuery, predict};

const POINTS: &str = "p,h,T_ns
64,0,45.2\n64,10,85.6\n512,0,90.1\n512,10,131.2\n1518,0,191.8\n1518,10,232.7\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cost = fit(&Table::from_csv(POINTS)?, "T_ns", "const,p,h", &FitOptions::default())?;
    for (term, ns) in &cost.coefficients {
        println!("{term}: {:.3} ns ({:.3} to {:.3})", ns.value, ns.low, ns.high);
    }
    let at = vec![("p".to_owned(), 256.0), ("h".to_owned(), 5.0)];
    let query = PredictionQuery { transfer: None, cores: 4.0, line_gbit: Some(100.0), packet_cap: None, at };
    let pps = predict(&cost.model(), &query)?.throughput_pps;
    println!(
        "256-byte frames on 4 cores: {:.1} Mpps ({:.1} to {:.1})",
        pps.value / 1e6,
        pps.low / 1e6,
        pps.high / 1e6
    );
    Ok(())
}
