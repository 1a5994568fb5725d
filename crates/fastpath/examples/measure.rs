//! Measures the cost of a packet in a pipeline on this machine, and writes the record to standard
//! output (Linux).

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use fastpath::measure::PipelineGrid;
    use fastpath::record::Tool;

    let grid = PipelineGrid { sizes: vec![64, 1514], packets: 20_000, ..PipelineGrid::default() };
    let tool = Tool::new(env!("CARGO_PKG_VERSION"), None);
    for record in grid.measure(&tool, &|_, _, _| {})? {
        println!("{} bytes: {} ns per packet", record.parameters["p"], record.results["T_ns"]);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
