//! Delivery opportunities, against a transcription of Mahimahi's `link_queue.cc`.

use fastpath_link::{Opportunities, Packet, Pipe, PipeSpec};
use fastpath_units::{Duration, Rng, Time};
use proptest::prelude::*;

/// LinkQueue with an unlimited queue. Arrivals are (ms, bytes). Returns (packet, delivery in ms).
fn link_queue(schedule: &[u64], arrivals: &[(u64, u64)]) -> Vec<(usize, u64)> {
    let (mut next_delivery, mut base_timestamp) = (0, 0);
    let mut queue: Vec<(usize, u64)> = Vec::new();
    let mut output = Vec::new();
    let mut rationalize = |now: u64, queue: &mut Vec<(usize, u64)>, output: &mut Vec<(usize, u64)>| {
        while schedule[next_delivery] + base_timestamp <= now {
            let this_delivery_time = schedule[next_delivery] + base_timestamp;
            let mut bytes_left_in_this_delivery = 1504;
            next_delivery = (next_delivery + 1) % schedule.len();
            if next_delivery == 0 {
                base_timestamp += schedule.last().expect("not empty");
            }
            while bytes_left_in_this_delivery > 0 && !queue.is_empty() {
                let amount_to_send = queue[0].1.min(bytes_left_in_this_delivery);
                queue[0].1 -= amount_to_send;
                bytes_left_in_this_delivery -= amount_to_send;
                if queue[0].1 == 0 {
                    output.push((queue.remove(0).0, this_delivery_time));
                }
            }
        }
    };
    for (id, &(now, bytes)) in arrivals.iter().enumerate() {
        rationalize(now, &mut queue, &mut output);
        queue.push((id, bytes));
    }
    rationalize(1_000_000, &mut queue, &mut output);
    output
}

fn pipe(schedule: &[u64], arrivals: &[(u64, u64)]) -> Vec<(usize, u64)> {
    let times: Vec<Duration> = schedule.iter().map(|ms| Duration::from_ms(*ms)).collect();
    let opportunities = Some(Opportunities::new(times).expect("a trace"));
    let mut pipe = Pipe::new(&PipeSpec { opportunities, ..PipeSpec::default() }, Rng::new(1));
    let mut output = Vec::new();
    for (id, &(ms, bytes)) in arrivals.iter().enumerate() {
        let now = Time::ZERO + Duration::from_ms(ms);
        output.extend(std::iter::from_fn(|| pipe.pop(now)));
        // A frame has an Ethernet header, a packet in Mahimahi four bytes of tunnel header.
        let _ = pipe.push(now, Packet::new(bytes as u32 + 10, id));
    }
    while let Some(at) = pipe.next_at() {
        output.extend(pipe.pop(at));
    }
    assert!(pipe.conserved());
    output.iter().map(|exit| (exit.packet.data, exit.at.as_ns() / 1_000_000)).collect()
}

#[test]
fn packets_are_split_over_opportunities_and_unused_ones_are_lost() {
    // Opportunities at 10, 10, 12, 20 ms, then 30, 30, 32, 40 …
    let schedule = [10, 10, 12, 20];
    // Three packets of 1000 bytes: the second ends in the second opportunity, the third at 10 ms
    // too. The rest of that opportunity and the one at 12 ms are lost. A packet at 12 ms misses the
    // opportunity at 12 ms. Two packets of 1504 bytes at 21 ms wait for the next round.
    let arrivals = [(0, 1000), (0, 1000), (0, 1000), (12, 40), (21, 1504), (21, 1504), (21, 1)];
    let expected = [(0, 10), (1, 10), (2, 10), (3, 20), (4, 30), (5, 30), (6, 32)];
    assert_eq!(pipe(&schedule, &arrivals), expected);
    assert_eq!(link_queue(&schedule, &arrivals), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pipe_delivers_when_mahimahi_does(
        gaps in prop::collection::vec(0u64..20, 1..30),
        arrivals in prop::collection::vec((0u64..15, 1u64..1505), 1..80),
    ) {
        let ascending = |gaps: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
            gaps.scan(0, |sum, gap| { *sum += gap; Some(*sum) }).collect()
        };
        let mut schedule = ascending(&mut gaps.into_iter());
        let last = schedule.last_mut().expect("not empty");
        *last = (*last).max(1);
        let times = ascending(&mut arrivals.iter().map(|(gap, _)| *gap));
        let arrivals: Vec<(u64, u64)> = times.into_iter().zip(arrivals.iter().map(|(_, bytes)| *bytes)).collect();
        prop_assert_eq!(pipe(&schedule, &arrivals), link_queue(&schedule, &arrivals));
    }
}
