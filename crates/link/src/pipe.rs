//! One direction of a link: loss, queue, rate and delay, advanced only when somebody looks.
//!
//! ```text
//!                 front of the ring                            back
//!                 │ delay line, by exit time     │ R queue         │
//!        pop ◀──  │ exit  exit  exit  exit       │ head  …  …      │  ◀── push
//!                                               ▲ on the wire until serialiser.end()
//! ```
//!
//! The queue serves in order of arrival and the delay line keeps that order, so both are one ring and a
//! packet leaving the queue only moves the boundary between them. `push`, `pop` and `change` first run the
//! serialiser forward to `now`, each step at its exact logical time; the result is that of a model with an
//! event per departure.

use crate::counters::{Counters, Tally};
use crate::impairment::LossSpec;
use crate::packet::{DropReason, Exit, Fate, Packet, Verdict};
use crate::qdisc::{Admission, Backlog, Qdisc};
use crate::serialiser::Serialiser;
use crate::spec::{Change, PipeSpec};
use fastpath_units::{Duration, Rng, Time};
use std::collections::VecDeque;

/// One direction of a link, carrying packets that the caller keeps by a `P`.
///
/// The order of effects is loss → queue admission → serialisation at the rate → propagation delay. At one
/// instant a departure comes before an arrival: a packet whose transmission ends at `t` has freed its place
/// for one that arrives at `t`.
///
/// The queue is bounded by its discipline, the delay line by rate × delay. Where the rate is unlimited only
/// the caller's supply of packets bounds what is in flight.
///
/// `now` should not run backwards from call to call; if it does, packets still leave in order of arrival
/// and none earlier than it could have.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Pipe<P> {
    // Four cache lines, with C's order of fields: what `pop` and `next_at` touch comes first.
    ring: VecDeque<Held<P>>,
    /// The packets at the back of the ring that are still queued; those before them are in the delay line.
    queued: Tally,
    line_bytes: u64,
    delay: Duration,
    serialiser: Serialiser,
    /// The exit of the newest packet in the delay line: no later one may be earlier.
    last_exit: Time,
    qdisc: Qdisc,
    counters: Counters,
    loss: LossSpec,
    rng: Rng,
}

/// A packet in the ring. The fields of [`Packet`] and of its fate, laid flat to be small.
#[derive(Debug)]
struct Held<P> {
    /// Arrival while queued, exit once in the delay line.
    time: Time,
    len: u32,
    flow: u32,
    traffic_class: u8,
    marked: bool,
    data: P,
}

impl<P> Pipe<P> {
    /// An empty pipe. All its chance comes from `rng`: one draw per packet if there is loss, then one per
    /// packet whose fate the queue leaves to chance.
    pub fn new(spec: &PipeSpec, rng: Rng) -> Pipe<P> {
        Pipe {
            ring: VecDeque::new(),
            queued: Tally::default(),
            line_bytes: 0,
            serialiser: Serialiser::new(spec.rate, spec.overhead),
            delay: spec.delay,
            last_exit: Time::ZERO,
            loss: spec.loss.clone(),
            qdisc: Qdisc::new(&spec.queue),
            rng,
            counters: Counters::default(),
        }
    }

    /// Gives the pipe a packet that arrives at `now`. A packet that is not taken comes back with the reason.
    pub fn push(&mut self, now: Time, packet: Packet<P>) -> Verdict<P> {
        self.counters.pushed.add(packet.len);
        if self.loss.draw(&mut self.rng) {
            return self.refuse(DropReason::Loss, packet);
        }
        self.advance(now);
        let idle_since = (self.queued.packets == 0).then_some(self.serialiser.end());
        let backlog = Backlog { queued: self.queued, idle_since, rate: self.serialiser.rate() };
        let marked = match self.qdisc.admit(now, &packet, backlog, &mut self.rng) {
            Admission::Take => false,
            Admission::Mark => true,
            Admission::Drop(reason) => return self.refuse(reason, packet),
        };
        self.enqueue(now, packet, marked);
        Verdict::Queued
    }

    /// The next packet that has left the pipe by `now`, in order of exit; `None` when there is no more.
    pub fn pop(&mut self, now: Time) -> Option<Exit<P>> {
        self.advance(now);
        if self.in_line() == 0 || self.ring.front()?.time > now {
            return None;
        }
        let held = self.ring.pop_front()?;
        self.line_bytes -= u64::from(held.len);
        self.counters.delivered.add(held.len);
        let Held { time: at, len, flow, traffic_class, marked, data } = held;
        let packet = Packet { len, flow, traffic_class, data };
        Some(Exit { at, packet, fate: Fate::Delivered { marked } })
    }

    /// When the next packet leaves, exactly: `pop` at that time returns one. `None` if the pipe is empty.
    pub fn next_at(&self) -> Option<Time> {
        match self.ring.front() {
            None => None,
            Some(head) if self.in_line() > 0 => Some(head.time),
            Some(_) => Some(self.exit_of_head()),
        }
    }

    /// Changes parameters at `now` without losing a packet.
    ///
    /// - **rate**: the packet on the wire sends the bits it has left at the new rate, exactly; those
    ///   waiting use the new rate when their turn comes.
    /// - **overhead**: for packets whose transmission starts later.
    /// - **delay**: for packets that leave the queue later. Order is kept: after a cut, a packet that would
    ///   overtake leaves together with the one before it.
    /// - **loss**: for packets pushed later.
    /// - **queue**: for packets pushed later; what is queued stays, even above a smaller limit. A RED queue
    ///   that stays one keeps its average.
    pub fn change(&mut self, now: Time, change: &Change) {
        self.advance(now);
        if let Some(rate) = change.rate {
            self.serialiser.set_rate(now, rate);
        }
        if let Some(overhead) = change.overhead {
            self.serialiser.set_overhead(overhead);
        }
        if let Some(delay) = change.delay {
            self.delay = delay;
        }
        if let Some(loss) = &change.loss {
            self.loss = loss.clone();
        }
        if let Some(queue) = &change.queue {
            self.qdisc.change(queue);
        }
    }

    /// The parameters as they are now.
    pub fn spec(&self) -> PipeSpec {
        PipeSpec {
            rate: self.serialiser.rate(),
            overhead: self.serialiser.overhead(),
            delay: self.delay,
            loss: self.loss.clone(),
            queue: self.qdisc.spec(),
        }
    }

    /// What went in and out so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What is in the pipe, queued or in the delay line.
    pub fn held(&self) -> Tally {
        Tally { packets: self.ring.len() as u64, bytes: self.queued.bytes + self.line_bytes }
    }

    /// What is in the queue as of the last call, the packet on the wire included.
    pub fn queued(&self) -> Tally {
        self.queued
    }

    /// True if pushed = delivered + dropped + held, in packets and in bytes.
    pub fn conserved(&self) -> bool {
        self.counters.conserved(self.held())
    }

    /// Runs the serialiser forward: every packet whose transmission has ended by `now` goes into the delay
    /// line, and the next one onto the wire.
    fn advance(&mut self, now: Time) {
        while self.queued.packets > 0 && self.serialiser.end() <= now {
            let exit = self.exit_of_head();
            let head = self.in_line();
            let packet = &mut self.ring[head];
            packet.time = exit;
            self.queued.remove(packet.len);
            self.line_bytes += u64::from(packet.len);
            self.last_exit = exit;
            if let Some(next) = self.ring.get(head + 1) {
                self.serialiser.send(next.time, next.len);
            }
        }
    }

    /// How many are in the delay line; the next in the ring, if any, is on the wire.
    fn in_line(&self) -> usize {
        self.ring.len() - self.queued.packets as usize
    }

    /// When the packet on the wire will leave the pipe.
    fn exit_of_head(&self) -> Time {
        self.serialiser.end().saturating_add(self.delay).max(self.last_exit)
    }

    fn enqueue(&mut self, now: Time, packet: Packet<P>, marked: bool) {
        let Packet { len, flow, mut traffic_class, data } = packet;
        if marked {
            traffic_class |= Packet::<P>::CE;
            self.counters.marked += 1;
        }
        if self.queued.packets == 0 {
            self.serialiser.send(now, len);
        }
        self.queued.add(len);
        self.ring.push_back(Held { time: now, len, flow, traffic_class, marked, data });
    }

    fn refuse(&mut self, reason: DropReason, packet: Packet<P>) -> Verdict<P> {
        self.counters.drop_one(reason, packet.len);
        Verdict::Dropped(reason, packet.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, QueueSpec};
    use fastpath_units::{Probability, Rate};

    fn packet(len: u32, data: u32) -> Packet<u32> {
        Packet { len, flow: 0, traffic_class: 0, data }
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

    /// Pops until empty, always at `next_at`: (exit in ps, data).
    fn drain(pipe: &mut Pipe<u32>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| {
            let at = pipe.next_at()?;
            let exit = pipe.pop(at).expect("next_at is truthful");
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
        assert_eq!(pipe.held(), Tally { packets: 2, bytes: 1000 });
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
    fn the_spec_of_a_pipe_is_what_it_was_changed_to() {
        let spec = PipeSpec {
            rate: mbit(3),
            overhead: 24,
            delay: Duration::from_ms(2),
            loss: LossSpec::Uniform(Probability::ALWAYS),
            queue: QueueSpec::Red(crate::RedSpec::default()),
        };
        let mut pipe = pipe(&PipeSpec::default());
        pipe.change(us(1), &Change::to(&spec));
        assert_eq!(pipe.spec(), spec);
        assert_eq!(Pipe::<u32>::new(&spec, Rng::new(1)).spec(), spec);
    }

    #[test]
    fn loss_is_within_its_binomial_interval() {
        // 120 000 packets as in the thesis' Table 5.6; 3.291 σ is 99.9 %.
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

    #[test]
    fn an_idle_pipe_fits_four_cache_lines() {
        assert!(size_of::<Pipe<u64>>() <= 256, "{}", size_of::<Pipe<u64>>());
    }
}
