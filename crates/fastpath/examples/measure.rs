//! Measures the cost of a packet in a pipeline on this machine, and writes the record to standard
//! output (Linux).

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use fastpath::measure::{PipelineGrid, PipelineProgram, Slowdown};
    use fastpath::record::Tool;

    let grid = PipelineGrid {
        program: PipelineProgram::Forward,
        sizes: vec![64, 1514],
        steps: vec![0],
        cores: vec![1],
        bursts: vec![64],
        flows: vec![1000],
        links: vec![1],
        rules: "cidr:912".parse()?,
        packets: 20_000,
        attachment: None,
        loss_ratios: Vec::new(),
        slowdown: Slowdown::NONE,
        seed: 1,
    };
    let tool = Tool::new(env!("CARGO_PKG_VERSION"), None);
    for record in grid.measure(&tool, &|_, _, _| {})? {
        println!("{} bytes: {} ns per packet", record.parameters["p"], record.results["T_ns"]);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
