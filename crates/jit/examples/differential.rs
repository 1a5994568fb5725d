//! Compares compiled and interpreted execution on random pairs of switch and packet.
//!
//! ```text
//! cargo run --release -p fastpath-jit --example differential -- --pairs 300000000 --seed 1
//! ```
//!
//! With `--kernel` the kernel executes the packets too (as root), some thousand pairs per second
//! fewer. Stops at the first difference and prints the seed of its switch.

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
    let with_kernel = arguments.iter().any(|argument| argument == "--kernel");
    while seen.pairs < pairs && !seen.no_kernel {
        // Seeds of switches do not overlap for seeds below 2²⁴ and fewer than 2⁴⁰ switches.
        let seed = seed << 40 | switches;
        match with_kernel {
            true if switches % 2 == 0 => {
                random::compare_kernel(seed, PACKETS, random::kernel_switch, &mut seen)
            }
            true => random::compare_kernel(seed, PACKETS, random::any_switch, &mut seen),
            false => random::compare(seed, PACKETS, &mut seen),
        }
        switches += 1;
        if switches % 1000 == 0 {
            println!(
                "{} pairs, {} outputs, {} packet-ins, no difference",
                seen.pairs, seen.outputs, seen.packet_ins
            );
        }
    }
    if with_kernel {
        let random::Seen { in_kernel, kernel_outputs, in_user, no_kernel, .. } = &seen;
        println!("{in_kernel} in the kernel with {kernel_outputs} outputs; in user space: {in_user:#?}");
        assert!(!no_kernel, "bpf(2) is not permitted");
    }
    println!(
        "{} pairs, {} switches, {} outputs, {} packet-ins, no difference",
        seen.pairs, switches, seen.outputs, seen.packet_ins
    );
}
