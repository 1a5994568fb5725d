//! Loads a network description and prints what it describes, or every mistake with its place.
//!
//! `cargo run -p fastpath --example check -- examples/two-hosts.toml`

use fastpath::prelude::*;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/two-hosts.toml".to_owned());
    match load(&path) {
        Ok(network) => {
            let topology = &network.spec.topology;
            for link in &topology.links {
                let [a, b] = link.ends.map(|(node, _)| topology.node(node).name.as_str());
                println!(
                    "{}: {a} – {b}, rate {:?}, delay {}",
                    link.name, link.pipes[0].rate, link.pipes[0].delay
                );
            }
            network.warnings.iter().for_each(|warning| println!("warning: {warning}"));
        }
        Err(Error::Mistakes(mistakes)) => mistakes.iter().for_each(|mistake| println!("{mistake}")),
        Err(error) => println!("{error}"),
    }
}
