//! Compares compiled and interpreted programs on random (program, packet) pairs, as many as asked
//! for.
//!
//! ```text
//! cargo run --release -p fastpath-jit --example differential -- --pairs 300000000 --seed 1
//! ```
//!
//! Stops at the first difference with the seed of its program.

#[path = "../tests/world/mod.rs"]
mod world;

/// Packets sent through one program.
const PACKETS: u64 = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, usual: u64| {
        let place = arguments.iter().position(|argument| argument == name);
        let value = place.and_then(|place| arguments.get(place + 1));
        value.map_or(Ok(usual), |value| value.parse()).unwrap_or_else(|_| panic!("{name} wants a number"))
    };
    let (pairs, seed) = (number("--pairs", 1_000_000), number("--seed", 1));
    let mut seen = world::Seen::default();
    let mut program = 0;
    while seen.pairs < pairs {
        // Seeds of programs do not overlap for seeds below 2²⁴ and less than 2⁴⁰ programs.
        world::compare(seed << 40 | program, PACKETS, &mut seen);
        program += 1;
        if program % 1000 == 0 {
            println!(
                "{} pairs, {} outputs, {} packet-ins, no difference",
                seen.pairs, seen.outputs, seen.packet_ins
            );
        }
    }
    println!(
        "{} pairs, {} programs, {} outputs, {} packet-ins, no difference",
        seen.pairs, program, seen.outputs, seen.packet_ins
    );
}
