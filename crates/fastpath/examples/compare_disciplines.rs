//! The longest delay of a link at 1.5 times its rate, under drop-tail, CoDel and PIE.
//! Run with `cargo run -p fastpath --example compare_disciplines`.

use fastpath::link::{CodelSpec, DropReason, Fate, Limit, Packet, PieSpec, Pipe, PipeSpec, QueueSpec};
use fastpath::units::{Duration, Rate, Rng, Time};

fn main() {
    for queue in [
        QueueSpec::DropTail(Limit::Packets(1000)),
        QueueSpec::Codel(CodelSpec::default()),
        QueueSpec::Pie(PieSpec::default()),
    ] {
        // At 10 Mbit/s a packet of 1250 bytes takes 1 ms. 3000 packets arrive in 2 s.
        let spec = PipeSpec { rate: Rate::from_bps(10_000_000), queue, ..PipeSpec::default() };
        let mut pipe = Pipe::new(&spec, Rng::new(1));
        let mut longest = Duration::ZERO;
        let mut pop = |pipe: &mut Pipe<Time>, now| {
            while let Some(exit) = pipe.pop(now) {
                if matches!(exit.fate, Fate::Delivered { .. }) {
                    longest = longest.max(exit.at - exit.packet.data);
                }
            }
        };
        for number in 0..3000 {
            let now = Time::ZERO + Duration::from_us(667) * number;
            pop(&mut pipe, now);
            let _ = pipe.push(now, Packet::new(1250, now));
        }
        pop(&mut pipe, Time::MAX);
        let dropped = |reason| pipe.counters().dropped_for(reason);
        let (early, full) = (dropped(DropReason::Early), dropped(DropReason::QueueFull));
        println!(
            "{:<45} longest {longest}, {early} dropped early, {full} at a full queue",
            spec.queue.to_string()
        );
    }
}
