//! One direction of a link: packets pushed in leave later or are dropped, as the parameters say.
//!
//! A [`PipeSet`] with one pipe, so that tests of one pipe cover each of many pipes.

use crate::counters::{Counters, QueueState, Volume};
use crate::delays::Delays;
use crate::packet::{Exit, Packet, Verdict};
use crate::pipe_set::{DepartureTimes, PipeInit, PipeSet};
use crate::spec::{Change, PipeSpec};
use fastpath_units::{Rng, Time};

/// One direction of a link. The caller identifies the bytes of packets by a `P`.
///
/// The order of effects is loss → queue admission → serialisation at the rate → loss at the egress
/// → propagation delay and jitter → duplication, corruption, reordering. At one instant a departure
/// comes before an arrival: a packet sent completely at `t` frees its place in the queue for a
/// packet that arrives at `t`.
///
/// The discipline bounds the queue, rate × delay bounds the delay line. With an unlimited rate only
/// the caller bounds the packets in flight.
///
/// `now` should not decrease from call to call. If it does, packets still leave in order of arrival
/// and none leaves too early.
#[derive(Debug)]
pub struct Pipe<P> {
    set: PipeSet<P>,
}

impl<P> Pipe<P> {
    /// Creates an empty pipe. `rng` makes all its random decisions.
    pub fn new(spec: &PipeSpec, rng: Rng) -> Pipe<P> {
        Pipe { set: PipeSet::new(std::iter::once(PipeInit { spec, rng }), 0, DepartureTimes::Ignored) }
    }

    /// Pushes a packet that arrives at `now`. A refused packet is returned with the reason.
    #[inline]
    pub fn push(&mut self, now: Time, packet: Packet<P>) -> Verdict<P> {
        self.set.push(now, 0, packet)
    }

    /// Removes the next packet that has left the pipe by `now`, delivered or dropped, in order of
    /// exit times. `None` if there is none.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<Exit<P>> {
        self.set.pop(now, 0)
    }

    /// Returns when the copies of the packet popped last leave, if that is later than the packet.
    /// The caller then makes the copies and [puts them back](Pipe::put_copy).
    pub fn copies_at(&self) -> Option<Time> {
        self.set.copies_at(0)
    }

    /// Adds a copy of a popped packet. It leaves at `at` and is popped like any other packet.
    /// Counters do not include it.
    pub fn put_copy(&mut self, at: Time, packet: Packet<P>) {
        self.set.put_copy(0, at, packet);
    }

    /// Returns when to call `pop` again; `None` if the pipe is empty. No packet leaves earlier.
    ///
    /// If everything is decided at arrival (drop-tail, RED, no impairment behind the queue) a
    /// packet leaves exactly then. Otherwise it may be an event without an exit.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        self.set.next_at(0)
    }

    /// Changes parameters at the instant `now`. No packet is lost unless the link goes down.
    ///
    /// - **rate**: the rest of the packet on the wire is sent at the new rate, exactly. Queued
    ///   packets are sent at the new rate.
    /// - **paused**: the packet on the wire stops, and continues exactly where it stopped. Queued
    ///   packets wait.
    /// - **opportunities**: from the first one after `now`. The packet on the wire starts over.
    /// - **overhead**: for packets sent later.
    /// - **delay**: for packets that leave the queue later. Order is kept: after a reduction a
    ///   packet that would overtake leaves together with the one before it.
    /// - **loss**: for packets pushed later (egress: that leave the queue later). A new law starts
    ///   from its initial state.
    /// - **queue**: for packets pushed later. Queued packets stay, even above a smaller limit. A
    ///   discipline that stays keeps its state. Another one takes over the queued packets.
    /// - **jitter, reorder, duplicate, corrupt**: for packets that leave the queue later.
    /// - **framing**: as overhead.
    /// - **slots**: a pending slot opens at its old time. If slots are removed, packets that wait
    ///   for one leave at once.
    /// - **cross**: the new cross traffic begins at `now`. What is queued of the old one stays.
    /// - **state**: going down drops packets that are queued or on the wire at once. Packets in the
    ///   delay line are delivered.
    pub fn change(&mut self, now: Time, change: &Change) {
        self.set.change(now, 0, change);
    }

    /// Returns true if the treatment of a packet depends on its `traffic_class` or `flow`.
    /// Otherwise the caller may leave both at 0.
    #[inline]
    pub fn reads_headers(&self) -> bool {
        self.set.reads_headers(0)
    }

    /// Returns the current parameters.
    pub fn spec(&self) -> PipeSpec {
        self.set.pipe(0).spec()
    }

    /// Returns the counters since the pipe was created.
    pub fn counters(&self) -> Counters {
        self.set.pipe(0).counters()
    }

    /// Returns the measured delays behind the queue, if there is jitter: of packets that left the
    /// queue after jitter and delay were set. Without jitter the delay is exact and not recorded.
    pub fn delays(&self) -> Option<&Delays> {
        self.set.pipe(0).delays()
    }

    /// Returns what is in the pipe: queued, in the delay line, dropped and not yet popped, or a
    /// copy that leaves later.
    pub fn held(&self) -> Volume {
        self.set.pipe(0).held()
    }

    /// Returns what is in the queue, including the packet on the wire, as of the last push.
    pub fn queued(&self) -> Volume {
        self.set.pipe(0).queued()
    }

    /// Returns what is in the queue at `now`, and its delay. No packet may be pushed or popped at
    /// an earlier time afterwards. Results of the pipe do not depend on this call.
    pub fn queue(&mut self, now: Time) -> QueueState {
        self.set.queue(now, 0)
    }

    /// Returns true if pushed = delivered + dropped + held, in packets and bytes, without copies.
    pub fn conserved(&self) -> bool {
        self.set.pipe(0).conserved()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DropReason, Limit, LossSpec, QueueSpec};
    use fastpath_units::{Duration, Probability, Rate};

    fn packet(len: u32, data: u32) -> Packet<u32> {
        Packet::new(len, data)
    }

    fn pipe(spec: &PipeSpec) -> Pipe<u32> {
        Pipe::new(spec, Rng::new(1))
    }

    fn mbit(n: u64) -> Option<Rate> {
        Rate::from_bps(n * 1_000_000)
    }

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_us(n)
    }

    /// Pops until empty, always at `next_at`. Returns (exit in ps, data).
    fn drain(pipe: &mut Pipe<u32>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| {
            let at = pipe.next_at()?;
            let exit = pipe.pop(at).expect("a packet leaves at next_at");
            assert_eq!(exit.at, at);
            Some((at.as_ps(), exit.packet.data))
        })
        .collect()
    }

    #[test]
    fn clicks_link_unqueue_example_leaves_at_the_published_times() {
        // kohler/click, test/standard/LinkUnqueue-01.clicktest.
        let mut pipe = pipe(&PipeSpec {
            rate: Rate::from_bps(100_000),
            delay: Duration::from_ms(5),
            ..PipeSpec::default()
        });
        for (i, len) in [20, 20, 1600, 20, 1600, 20].into_iter().enumerate() {
            assert_eq!(pipe.push(Time::ZERO, packet(len, i as u32)), Verdict::Queued);
        }
        let tenths_of_ms = [16, 32, 1312, 1328, 2608, 2624];
        let expected: Vec<_> =
            (0..6).map(|i| (tenths_of_ms[i] * 100_000_000 + 5_000_000_000, i as u32)).collect();
        assert_eq!(drain(&mut pipe), expected);
    }

    #[test]
    fn a_million_frames_of_64_bytes_at_100_gbit_leave_exactly_5120_ps_apart() {
        let mut pipe = pipe(&PipeSpec { rate: Rate::from_bps(100_000_000_000), ..PipeSpec::default() });
        for i in 0..1_000_000 {
            let _ = pipe.push(Time::ZERO, packet(64, i));
            let at = pipe.next_at().expect("one packet is held");
            assert_eq!(at.as_ps(), (u64::from(i) + 1) * 5120);
            assert_eq!(pipe.pop(at).map(|exit| exit.packet.data), Some(i));
        }
    }

    #[test]
    fn the_packet_on_the_wire_counts_as_queued_until_its_last_bit_is_sent() {
        // 125 bytes at 1 Mbit/s take 1 ms. One place: nothing may wait.
        let queue = QueueSpec::DropTail(Limit::Packets(1));
        let mut pipe = pipe(&PipeSpec { rate: mbit(1), queue, ..PipeSpec::default() });
        let at = |pipe: &mut Pipe<u32>, t| pipe.push(t, packet(125, 0)) == Verdict::Queued;
        assert!(at(&mut pipe, us(0)));
        assert!(!at(&mut pipe, us(0)));
        assert!(!at(&mut pipe, Time::from_ps(us(1000).as_ps() - 1)));
        assert!(at(&mut pipe, us(1000)), "departures come before arrivals of the same instant");
        assert_eq!(pipe.counters().dropped_for(DropReason::QueueFull), 2);
        assert!(pipe.conserved());
    }

    #[test]
    fn a_byte_limit_counts_frame_bytes_and_refuses_what_never_fits() {
        let queue = QueueSpec::DropTail(Limit::Bytes(fastpath_units::Bytes(1000)));
        let mut pipe = pipe(&PipeSpec { rate: mbit(1), overhead: 24, queue, ..PipeSpec::default() });
        let fates: Vec<bool> = [1001, 600, 401, 400, 1]
            .map(|len| pipe.push(Time::ZERO, packet(len, 0)) == Verdict::Queued)
            .to_vec();
        assert_eq!(fates, [false, true, false, true, false]);
        assert_eq!(pipe.held(), Volume { packets: 2, bytes: 1000 });
    }

    /// Two packets of 1 ms each at 1 Mbit/s, pushed at 0, and then a change.
    fn changed(at: Time, change: &Change) -> (Pipe<u32>, Vec<(u64, u32)>) {
        let mut pipe = pipe(&PipeSpec { rate: mbit(1), delay: Duration::from_ms(10), ..PipeSpec::default() });
        for i in 0..2 {
            let _ = pipe.push(Time::ZERO, packet(125, i));
        }
        pipe.change(at, change);
        let exits = drain(&mut pipe).into_iter().map(|(ps, i)| (ps / 1_000_000, i)).collect();
        (pipe, exits)
    }

    #[test]
    fn a_change_applies_at_its_instant_and_loses_nothing() {
        let unlimited = Change { rate: Some(None), ..Change::default() };
        let rate = |n| Change { rate: Some(mbit(n)), ..Change::default() };
        let delay = |ms| Change { delay: Some(Duration::from_ms(ms)), ..Change::default() };
        let overhead = Change { overhead: Some(125), ..Change::default() };
        let queue = Change { queue: Some(QueueSpec::DropTail(Limit::Packets(0))), ..Change::default() };
        // When, what, and the exits of the two packets in µs: 11000 and 12000 without a change.
        for (at, change, exits) in [
            (0, Change::default(), [11_000, 12_000]),
            (500, rate(2), [10_750, 11_250]), // half the first is left, and the second
            (1_500, rate(2), [11_000, 11_750]), // half the second is left
            (1_000, rate(4), [11_000, 11_250]), // the first has just left
            (500, unlimited, [10_500, 10_500]), // all that is left leaves at once
            (500, delay(20), [21_000, 22_000]), // both leave the queue later
            (1_000, delay(20), [11_000, 22_000]), // the first was in the delay line
            (1_000, delay(1), [11_000, 11_000]), // the second may not overtake
            (500, overhead, [11_000, 13_000]), // the first was on the wire
            (500, queue, [11_000, 12_000]),   // what is queued stays
        ] {
            let (pipe, got) = changed(us(at), &change);
            assert_eq!(got, [(exits[0], 0), (exits[1], 1)], "{at} µs: {change:?}");
            assert!(pipe.conserved());
        }
    }

    #[test]
    fn the_queue_and_its_delay_are_those_of_the_instant() {
        // Three packets of 1 ms each, in a delay line of 10 ms behind the queue.
        let spec = PipeSpec { rate: mbit(1), delay: Duration::from_ms(10), ..PipeSpec::default() };
        let mut pipe = pipe(&spec);
        for i in 0..3 {
            let _ = pipe.push(us(100 * u64::from(i)), packet(125, i));
        }
        // At each instant: packets in the queue, and how long the one on the wire is there.
        for (at, packets, delay) in
            [(200, 3, 200), (999, 3, 999), (1_000, 2, 900), (2_500, 1, 2_300), (3_000, 0, 0)]
        {
            let volume = Volume { packets, bytes: 125 * packets };
            assert_eq!(pipe.queue(us(at)), QueueState { volume, delay: Duration::from_us(delay) }, "{at}");
        }
        assert_eq!(pipe.held().packets, 3, "they are in the delay line");
        assert_eq!(drain(&mut pipe).len(), 3);
    }

    #[test]
    fn the_spec_of_a_pipe_is_what_it_was_changed_to() {
        let spec = PipeSpec {
            rate: mbit(3),
            paused: true,
            overhead: 24,
            delay: Duration::from_ms(2),
            loss: LossSpec::Uniform(Probability::ALWAYS),
            queue: QueueSpec::Red(crate::RedSpec::default()),
            egress_loss: LossSpec::Uniform(Probability::NEVER),
            jitter: Some(Box::new(crate::JitterSpec::in_order(crate::JitterLaw::Normal {
                sd: Duration::from_us(7),
            }))),
            reorder: Some(crate::ReorderSpec { chance: Probability::ALWAYS.into(), gap: 5 }),
            duplicate: Probability::ALWAYS.into(),
            corrupt: Some(crate::CorruptSpec::Bits(Probability::NEVER)),
            opportunities: crate::Opportunities::new([Duration::from_ms(3)]).ok(),
            framing: Some(crate::Framing { packet: -14, cells: None }),
            slots: Some(Box::new(crate::SlotSpec {
                wait: crate::SlotWait::Between(Duration::ZERO, Duration::from_ms(1)),
                packets: Some(3),
                bytes: None,
            })),
            loss_ecn: crate::Ecn::Mark,
            cross: Some(crate::CrossSpec {
                rate: mbit(2).expect("not 0"),
                law: crate::CrossLaw::Constant,
                packet: std::num::NonZeroU32::MIN,
            }),
            state: crate::LinkState::Down,
        };
        let mut pipe = pipe(&PipeSpec::default());
        pipe.change(us(1), &Change::to(&spec));
        assert_eq!(pipe.spec(), spec);
        assert_eq!(Pipe::<u32>::new(&spec, Rng::new(1)).spec(), spec);
    }

    #[test]
    fn loss_is_within_its_binomial_interval() {
        // 120 000 packets as in Joglekar 2004, Table 5.6. 3.291 σ is 99.9 %.
        for (seed, p) in [(1, 0.01), (2, 0.03), (3, 0.07), (4, 0.1), (5, 1.0), (6, 0.0)] {
            let loss = Probability::new(p).expect("a probability").into();
            let mut pipe = Pipe::new(&PipeSpec { loss, ..PipeSpec::default() }, Rng::new(seed));
            let n = 120_000;
            for i in 0..n {
                let _ = pipe.push(us(i), packet(64, 0));
                let _ = pipe.pop(us(i));
            }
            let lost = pipe.counters().dropped_for(DropReason::Loss) as f64;
            let sigma = (n as f64 * p * (1.0 - p)).sqrt();
            assert!((lost - n as f64 * p).abs() <= 3.291 * sigma, "{p}: {lost}");
        }
    }
}
