//! Delivery in slots, against a transcription of netem's `netem_dequeue`.

use fastpath_link::{Limit, Packet, Pipe, PipeSpec, QueueSpec, SlotSpec, SlotWait, Verdict};
use fastpath_units::{Bytes, Duration, Rate, Rng, Time};
use proptest::prelude::*;

const US: u64 = 1_000_000;
/// At 8 Mbit/s a byte takes a microsecond.
const RATE: u64 = 8_000_000;

#[derive(Clone, Debug)]
struct Case {
    min_us: u64,
    max_us: u64,
    packets: Option<u32>,
    bytes: Option<u64>,
    rated: bool,
    limit: u32,
    /// (microseconds since the arrival before, bytes).
    arrivals: Vec<(u64, u32)>,
}

impl Case {
    fn arrivals(&self) -> Vec<(u64, u32)> {
        let mut now = 0;
        let arrive = |&(gap, len): &(u64, u32)| {
            now += gap * US;
            (now, len)
        };
        self.arrivals.iter().map(arrive).collect()
    }

    fn pipe(&self) -> Vec<(usize, u64)> {
        let slots = SlotSpec {
            wait: SlotWait::Between(Duration::from_us(self.min_us), Duration::from_us(self.max_us)),
            packets: self.packets,
            bytes: self.bytes.map(Bytes),
        };
        let spec = PipeSpec {
            rate: Rate::from_bps(RATE).filter(|_| self.rated),
            queue: QueueSpec::DropTail(Limit::Packets(self.limit)),
            slots: Some(Box::new(slots)),
            ..PipeSpec::default()
        };
        let mut pipe = Pipe::new(&spec, Rng::new(3));
        let mut out = Vec::new();
        for (id, (at, len)) in self.arrivals().into_iter().enumerate() {
            let now = Time::from_ps(at);
            out.extend(std::iter::from_fn(|| pipe.pop(now)));
            let verdict = pipe.push(now, Packet::new(len, id));
            assert!(verdict == Verdict::Queued || pipe.queued().packets == u64::from(self.limit));
            assert!(pipe.conserved());
        }
        while let Some(at) = pipe.next_at() {
            out.extend(pipe.pop(at));
        }
        assert!(pipe.conserved() && pipe.held().packets == 0);
        out.iter().map(|exit| (exit.packet.data, exit.at.as_ps())).collect()
    }

    /// netem_enqueue with its rate, and netem_dequeue whenever the head packet is ready. Returns
    /// (packet, time).
    fn netem(&self) -> Vec<(usize, u64)> {
        let mut rng = Rng::new(3);
        let mut slot_next: Option<u64> = None;
        let (mut packets_left, mut bytes_left) = (0i64, 0i64);
        let mut get_slot_next = |now: u64, packets_left: &mut i64, bytes_left: &mut i64| {
            let width = (self.max_us - self.min_us) * US;
            *packets_left = self.packets.map_or(i64::MAX, i64::from);
            *bytes_left = self.bytes.map_or(i64::MAX, |bytes| bytes as i64);
            Some(now + self.min_us * US + ((u128::from(rng.next_u64()) * u128::from(width)) >> 64) as u64)
        };
        let mut tfifo: Vec<(usize, u64, u32)> = Vec::new();
        let mut output = Vec::new();
        let mut last_sent = 0;
        let arrivals = self.arrivals();
        let mut next = 0;
        loop {
            let head = tfifo.first().copied();
            let wake = head.map(|(_, time_to_send, _)| time_to_send.max(slot_next.unwrap_or(0)));
            let arrival = arrivals.get(next).map(|(at, _)| *at);
            let Some(now) = wake.into_iter().chain(arrival).min() else { return output };
            if wake == Some(now) {
                let (id, time_to_send, len) = head.expect("a packet is pending");
                // A packet that arrives as the slot opens misses it; one that is sent then does
                // not.
                if slot_next.is_none_or(|slot| slot < time_to_send || (!self.rated && slot == time_to_send)) {
                    slot_next = get_slot_next(now, &mut packets_left, &mut bytes_left);
                }
                if slot_next <= Some(now) {
                    tfifo.remove(0);
                    output.push((id, now));
                    packets_left -= 1;
                    bytes_left -= i64::from(len);
                    if packets_left <= 0 || bytes_left <= 0 {
                        slot_next = get_slot_next(now, &mut packets_left, &mut bytes_left);
                    }
                }
                continue;
            }
            let (_, len) = arrivals[next];
            if tfifo.len() < self.limit as usize {
                last_sent = if self.rated { last_sent.max(now) + u64::from(len) * US } else { now };
                tfifo.push((next, last_sent, len));
            }
            next += 1;
        }
    }
}

#[test]
fn ready_packets_leave_together_and_a_slot_passes_no_more_than_its_limits() {
    let case = |rated, packets, bytes: Option<u64>| Case {
        min_us: 500,
        max_us: 500,
        packets,
        bytes,
        rated,
        limit: 1000,
        arrivals: vec![(0, 100), (10, 100), (10, 100), (460, 100), (20, 100), (1000, 100)],
    };
    // Arrivals at 0, 10, 20, 480, 500 and 1500 µs. With a rate each takes 100 µs on the wire.
    for (case, exits_us) in [
        (case(false, None, None), [500, 500, 500, 500, 1000, 2000]),
        (case(false, Some(3), None), [500, 500, 500, 1000, 1000, 2000]),
        // The second packet exceeds the 150 bytes and still passes. The packets of 480 and 500 wait
        // for the second slot after it.
        (case(false, None, Some(150)), [500, 500, 1000, 1000, 1500, 2000]),
        // Sent at 100, 200, 300, 580, 680 and 1600 µs: the first packet requests the slot at 600.
        (case(true, None, None), [600, 600, 600, 600, 1180, 2100]),
    ] {
        let expected: Vec<(usize, u64)> = exits_us.into_iter().map(|us: u64| us * US).enumerate().collect();
        assert_eq!(case.netem(), expected, "the transcription: {case:?}");
        assert_eq!(case.pipe(), expected, "{case:?}");
    }
}

#[test]
fn a_used_up_slot_requests_the_next_one_at_once_even_if_no_packet_waits() {
    let arrivals = vec![(0, 100), (600, 100), (500, 100)];
    let case =
        Case { min_us: 500, max_us: 500, packets: Some(1), bytes: None, rated: false, limit: 9, arrivals };
    // The first slot opens at 500 and the next at 1000. The packet of 600 leaves then. The packet
    // of 1100 waits for the slot at 1500.
    assert_eq!(case.pipe(), [(0, 500 * US), (1, 1000 * US), (2, 1500 * US)]);
}

prop_compose! {
    fn case()(min_us in 1u64..300, width in 0u64..400, packets in prop::option::of(1u32..6),
              bytes in prop::option::of(1u64..2000), rated: bool, limit in 1u32..40,
              arrivals in prop::collection::vec((0u64..120, 1u32..300), 1..80)) -> Case {
        Case { min_us, max_us: min_us + width, packets, bytes, rated, limit, arrivals }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pipe_delivers_in_the_slots_of_netem(case in case()) {
        prop_assert_eq!(case.pipe(), case.netem());
    }
}
