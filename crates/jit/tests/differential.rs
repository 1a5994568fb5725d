//! Compiled programs do to packets what interpreted ones do: outcomes, frames, counters.
//! For as many as you like: `cargo run --release -p fastpath-jit --example differential -- --pairs 300000000 --seed 1`.

mod world;

#[test]
fn compiled_programs_do_what_interpreted_ones_do() {
    let mut seen = world::Seen::default();
    for seed in 0..150 {
        world::compare(seed, 100, &mut seen);
    }
    let world::Seen { pairs, outputs, packet_ins } = seen;
    assert!(
        outputs > pairs / 5 && packet_ins > pairs / 100,
        "a dull world: {outputs} and {packet_ins} of {pairs}"
    );
}
