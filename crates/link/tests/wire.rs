//! The wire beyond its rate: cells, stripped headers, a link that is down; loss that marks packets;
//! correlated delays.

use fastpath_link::{
    Cells, Change, DropReason, Ecn, Exit, Fate, Framing, JitterCorrelation, JitterLaw, JitterSpec, LinkState,
    LossSpec, Packet, Pipe, PipeSpec, Reorder, SlotSpec, SlotWait, Verdict,
};
use fastpath_units::{Duration, Probability, Rate, Rng, Time};
use std::num::NonZeroU32;

fn us(n: u64) -> Time {
    Time::ZERO + Duration::from_us(n)
}

fn packet(len: u32, data: u64) -> Packet<u64> {
    Packet::new(len, data)
}

/// Pops all packets, only at `next_at`. Returns (packet, µs, fate).
fn drain(pipe: &mut Pipe<u64>) -> Vec<(u64, u64, Fate)> {
    let mut out = Vec::new();
    while let Some(at) = pipe.next_at() {
        let exits = std::iter::from_fn(|| pipe.pop(at));
        out.extend(exits.map(|Exit { at, packet, fate }| (packet.data, at.as_ns() / 1000, fate)));
    }
    assert!(pipe.conserved() && pipe.held().packets == 0);
    out
}

const DELIVERED: Fate = Fate::Delivered { marked: false };
const DOWN: Fate = Fate::Dropped(DropReason::Down);

#[test]
fn cells_and_stripped_headers_set_the_time_on_the_wire() {
    // At 8 Mbit/s a byte takes a microsecond. AAL5 adds 8 bytes and cells of 48 + 5.
    let cells = NonZeroU32::new(48).map(|payload| Cells { payload, overhead: 5 });
    for (framing, sent_us) in [
        (Framing { packet: -14, cells: None }, [86, 86 + 1500, 86 + 1500]),
        (Framing { packet: 8, cells }, [3 * 53, 35 * 53, 36 * 53]),
    ] {
        let rate = Rate::from_bps(8_000_000);
        let mut pipe =
            Pipe::new(&PipeSpec { rate, framing: Some(framing), ..PipeSpec::default() }, Rng::new(1));
        for (i, len) in [100, 1514, 14].into_iter().enumerate() {
            let _ = pipe.push(Time::ZERO, packet(len, i as u64));
        }
        let exits: Vec<u64> = drain(&mut pipe).iter().map(|(_, us, _)| *us).collect();
        assert_eq!(exits, sent_us, "{framing}");
    }
}

#[test]
fn a_link_that_goes_down_drops_unsent_packets_and_delivers_sent_ones() {
    // 100 bytes take 1 ms on the wire, then 5 ms of delay.
    let spec = PipeSpec { rate: Rate::from_bps(800_000), delay: Duration::from_ms(5), ..PipeSpec::default() };
    let state = |state| Change { state: Some(state), ..Change::default() };
    let mut pipe = Pipe::new(&spec, Rng::new(1));
    (0..4).for_each(|i| assert_eq!(pipe.push(Time::ZERO, packet(100, i)), Verdict::Queued));
    // The first packet has been sent, the second is on the wire.
    pipe.change(us(1500), &state(LinkState::Down));
    assert_eq!(pipe.push(us(1600), packet(100, 4)), Verdict::Dropped(DropReason::Down, 4));
    pipe.change(us(3000), &state(LinkState::Up));
    let _ = pipe.push(us(3000), packet(100, 5));
    let expected =
        [(1, 1500, DOWN), (2, 1500, DOWN), (3, 1500, DOWN), (0, 6000, DELIVERED), (5, 9000, DELIVERED)];
    assert_eq!(drain(&mut pipe), expected);
    assert_eq!(pipe.counters().dropped_for(DropReason::Down), 4);
}

#[test]
fn a_link_that_goes_down_drops_packets_that_wait_for_a_slot() {
    let wait = SlotWait::Between(Duration::from_ms(2), Duration::from_ms(2));
    let slots = Some(Box::new(SlotSpec { wait, packets: None, bytes: None }));
    for rate in [None, Rate::from_bps(800_000)] {
        let mut pipe =
            Pipe::new(&PipeSpec { rate, slots: slots.clone(), ..PipeSpec::default() }, Rng::new(1));
        (0..3).for_each(|i| assert_eq!(pipe.push(Time::ZERO, packet(100, i)), Verdict::Queued));
        let down = Change { state: Some(LinkState::Down), ..Change::default() };
        pipe.change(us(1500), &down);
        assert_eq!(drain(&mut pipe), [(0, 1500, DOWN), (1, 1500, DOWN), (2, 1500, DOWN)]);
    }
}

#[test]
fn when_slots_are_removed_gathered_packets_leave_at_once() {
    let wait = SlotWait::Between(Duration::from_ms(9), Duration::from_ms(9));
    let slots = Some(Box::new(SlotSpec { wait, packets: None, bytes: None }));
    for (rate, exits_us) in [(None, [1500, 1500, 1500]), (Rate::from_bps(800_000), [1500, 2000, 3000])] {
        let mut pipe =
            Pipe::new(&PipeSpec { rate, slots: slots.clone(), ..PipeSpec::default() }, Rng::new(1));
        (0..3).for_each(|i| assert_eq!(pipe.push(Time::ZERO, packet(100, i)), Verdict::Queued));
        pipe.change(us(1500), &Change { slots: Some(None), ..Change::default() });
        let exits: Vec<u64> = drain(&mut pipe).iter().map(|(_, us, _)| *us).collect();
        assert_eq!(exits, exits_us);
    }
}

#[test]
fn loss_with_ecn_marks_ecn_capable_packets() {
    let loss = LossSpec::Uniform(Probability::ALWAYS);
    let mut pipe = Pipe::new(&PipeSpec { loss, loss_ecn: Ecn::Mark, ..PipeSpec::default() }, Rng::new(1));
    assert!(pipe.reads_headers());
    let fates: Vec<bool> = (0..4u8)
        .map(|traffic_class| {
            pipe.push(Time::ZERO, Packet { traffic_class, ..Packet::new(1, 0) }) == Verdict::Queued
        })
        .collect();
    assert_eq!(fates, [false, true, true, true]);
    assert!(drain(&mut pipe).iter().all(|(.., fate)| *fate == Fate::Delivered { marked: true }));
    assert_eq!(pipe.counters().marked, 3);
}

#[test]
fn delays_correlate_from_packet_to_packet_and_keep_their_law() {
    let law = JitterLaw::Uniform { half_width: Duration::from_ms(4) };
    for (seed, rho) in [(1, 0.25), (2, 0.9)] {
        let correlation = JitterCorrelation::PerPacket(Probability::new(rho).expect("a probability"));
        let jitter = Some(Box::new(JitterSpec { law: law.clone(), correlation, order: Reorder::Allow }));
        let spec = PipeSpec { delay: Duration::from_ms(10), jitter, ..PipeSpec::default() };
        let mut pipe = Pipe::new(&spec, Rng::new(seed));
        let n = 20_000u64;
        let mut x = vec![0.0; n as usize];
        for i in 0..n {
            // Any spacing gives the same result.
            let now = us(100_000 * i + i * i % 7);
            let _ = pipe.push(now, packet(1, i));
            let exit = pipe.pop(now.saturating_add(Duration::from_ms(20))).expect("the packet is due");
            x[i as usize] = (exit.at.as_ps() as f64 - now.as_ps() as f64) / 1e9 - 10.0;
        }
        let (mean, square) =
            (x.iter().sum::<f64>() / n as f64, x.iter().map(|x| x * x).sum::<f64>() / n as f64);
        let lag = x.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / n as f64 / square;
        // A normal copula of ρ gives uniform variables a correlation of (6/π)·asin(ρ/2).
        let expected = 6.0 / std::f64::consts::PI * (rho / 2.0f64).asin();
        // 3.291 σ of the estimated coefficient, mean and variance of an AR(1) process: a correct
        // law fails at one seed in 330.
        let inflation = (1.0 + rho) / (1.0 - rho);
        assert!((lag - expected).abs() < 3.291 * ((1.0 - expected * expected) / n as f64).sqrt(), "{lag}");
        assert!(mean.abs() < 3.291 * (16.0 / 3.0 * inflation / n as f64).sqrt(), "{mean}");
        assert!(
            (square - 16.0 / 3.0).abs() < 3.291 * (256.0 * 4.0 / 45.0 * inflation / n as f64).sqrt(),
            "{square}"
        );
    }
}
