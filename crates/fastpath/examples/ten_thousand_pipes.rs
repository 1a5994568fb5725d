//! 10⁴ pipes on one wheel: every pipe carries a packet each 10 ms for one second of virtual time.
//! Run with `cargo run --release -p fastpath --example ten_thousand_pipes`.

use fastpath::link::{LossSpec, Packet, PipeInit, PipeSpec, Pipes, Verdict};
use fastpath::units::{Duration, Probability, Rate, Rng, Time};

const PIPES: u32 = 10_000;

fn main() {
    let spec = PipeSpec {
        rate: Rate::from_bps(2_000_000),
        delay: Duration::from_ms(5),
        loss: LossSpec::Uniform(Probability::new(0.01).expect("a probability")),
        ..PipeSpec::default()
    };
    let init = |id: usize| PipeInit { spec: &spec, rng: Rng::stream(1, id as u64) };
    let mut pipes = Pipes::new((0..PIPES as usize).map(init), PIPES as usize);
    let (mut delivered, mut lost) = (0u64, 0u64);
    for round in 0..100 {
        let now = Time::ZERO + Duration::from_ms(10) * round;
        while pipes.pop(now).is_some() {
            delivered += 1;
        }
        for id in 0..PIPES {
            let packet = Packet::new(1000, id);
            lost += u64::from(pipes.push(now, id, packet) != Verdict::Queued);
        }
    }
    delivered += std::iter::from_fn(|| pipes.pop(Time::MAX)).count() as u64;
    println!("{delivered} delivered, {lost} lost of {}", 100 * PIPES);
    assert_eq!(delivered + lost, u64::from(100 * PIPES));
}
