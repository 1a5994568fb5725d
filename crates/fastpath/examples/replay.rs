//! Sends a capture through a network in virtual time. No privileges are needed.
//!
//! `cargo run -p fastpath --example replay -- examples/emulab-fig2-1.ns
//! n0=examples/emulab-fig2-1.pcap`

use fastpath::prelude::*;

fn main() -> fastpath::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let spec = arguments.next().unwrap_or_else(|| "examples/emulab-fig2-1.ns".to_owned());
    let input = arguments.next().unwrap_or_else(|| "n0=examples/emulab-fig2-1.pcap".to_owned());

    let summary = Replay::new(&load(spec)?).input(&input)?.seed(7).run()?;
    println!("{} frames in, {} delivered", summary.accounting.total_in(), summary.accounting.delivered);
    for (reason, count) in &summary.accounting.dropped {
        println!("  {count} dropped: {reason}");
    }
    Ok(())
}
