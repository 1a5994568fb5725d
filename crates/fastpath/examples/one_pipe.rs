//! One pipe in virtual time: eight packets arrive at once on a slow link with a short queue.
//! Run with `cargo run -p fastpath --example one_pipe`.

use fastpath::link::{Limit, Packet, Pipe, PipeSpec, QueueSpec, Verdict};
use fastpath::units::{Duration, Rate, Rng, Time};

fn main() {
    let spec = PipeSpec {
        rate: Rate::from_bps(10_000_000),
        delay: Duration::from_ms(25),
        queue: QueueSpec::DropTail(Limit::Packets(5)),
        ..PipeSpec::default()
    };
    let mut pipe = Pipe::new(&spec, Rng::new(1));
    for number in 0..8 {
        let packet = Packet::new(1250, number);
        if let Verdict::Dropped(reason, number) = pipe.push(Time::ZERO, packet) {
            println!("{:>6}  packet {number} dropped: {}", Time::ZERO, reason.name());
        }
    }
    // Time advances from one event of the pipe to the next.
    while let Some(now) = pipe.next_at() {
        while let Some(exit) = pipe.pop(now) {
            println!("{:>6}  packet {} delivered", exit.at, exit.packet.data);
        }
    }
    assert!(pipe.conserved());
}
