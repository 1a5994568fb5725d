//! Compares compiled and interpreted execution on random pairs of switch and packet.
//!
//! ```text
//! cargo run --release -p fastpath-jit --example differential -- --pairs 300000000 --seed 1
//! ```
//!
//! Stops at the first difference and prints the seed of its switch.

#[path = "../tests/random/mod.rs"]
mod random;

/// The packets executed on one switch.
const PACKETS: u64 = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: u64| {
        let index = arguments.iter().position(|argument| argument == name);
        let value = index.and_then(|index| arguments.get(index + 1));
        value.map_or(Ok(default), |value| value.parse()).unwrap_or_else(|_| panic!("{name} needs a number"))
    };
    let (pairs, seed) = (number("--pairs", 1_000_000), number("--seed", 1));
    let mut seen = random::Seen::default();
    let mut switches = 0;
    while seen.pairs < pairs {
        // Seeds of switches do not overlap for seeds below 2²⁴ and fewer than 2⁴⁰ switches.
        random::compare(seed << 40 | switches, PACKETS, &mut seen);
        switches += 1;
        if switches % 1000 == 0 {
            println!(
                "{} pairs, {} outputs, {} packet-ins, no difference",
                seen.pairs, seen.outputs, seen.packet_ins
            );
        }
    }
    println!(
        "{} pairs, {} switches, {} outputs, {} packet-ins, no difference",
        seen.pairs, switches, seen.outputs, seen.packet_ins
    );
}
