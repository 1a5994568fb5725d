//! The queues of a switch port (OpenFlow 1.3.5 §5.11), by the link model.
//!
//! ```text
//!  frame, queue ─▶ shaper of the queue (its largest rate) ─▶ round robin ─▶ rate of the port
//! ```
//!
//! The quanta of the round robin are in proportion to the least rates of the queues: each queue
//! gets its least rate while the rate of the port suffices for all, and the rest is divided in the
//! same proportion. Time is an argument.

use crate::{
    Classes, DropReason, DrrShare, DrrSpec, Exit, Fate, Limit, LinkState, Packet, Pipe, PipeSpec, QueueSpec,
    Verdict,
};
use fastpath_units::{Bytes, Duration, Rate, Rng, Time};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Most queues of a port: as many as a round robin has classes.
pub const QUEUES_MAX: usize = 64;
/// Packets that may wait in a queue before its shaper, and as many behind it: the length of
/// the queues that Open vSwitch makes in Linux.
const LIMIT: Limit = Limit::Packets(1000);
/// The part of the memory of a switch that frames in queues may take: half of it.
const MEMORY_PART: usize = 2;
/// Frames take memory in steps of this many bytes.
const MEMORY_STEP: u32 = 64;
/// The least burst of a shaper: larger frames are dropped.
const BURST_MIN: Bytes = Bytes(9_100);
/// The time in which a shaper without a burst would fill.
const BURST_TIME: Duration = Duration::from_ms(10);
/// The least rate of a queue without one.
const RATE_MIN: u64 = 12_000;
/// The quantum of the queue with the smallest least rate, bytes: about a frame.
const QUANTUM: u64 = 1500;
/// The quantum of a queue beside which all others have large ones.
const QUANTUM_MIN: u64 = 16;
/// The most that another quantum is of [`QUANTUM`].
const QUANTUM_RATIO_MAX: u64 = 1000;

/// The queues of a port, and its rate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortQueueSpec {
    /// The rate of the port; `None` for no limit.
    pub rate: Option<Rate>,
    /// The queues, by number. Frames for others go to queue 0, which there always is. Those beyond
    /// [`QUEUES_MAX`] are ignored.
    pub queues: BTreeMap<u32, QueueRates>,
}

impl PortQueueSpec {
    /// Returns the number of queues of the port.
    pub fn count(&self) -> usize {
        (self.queues.len() + usize::from(!self.queues.contains_key(&0))).min(QUEUES_MAX)
    }
}

/// Returns how many bytes of frames each of `queues` queues of a switch with this memory may hold:
/// together half of it, so that the rest is left for frames of other ports.
pub fn queue_memory(memory: NonZeroUsize, queues: usize) -> usize {
    memory.get() / MEMORY_PART / queues.max(1)
}

/// The rates of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueRates {
    /// What it gets if the port can give all queues theirs.
    pub min: Option<Rate>,
    /// What it gets at most.
    pub max: Option<Rate>,
    /// What it may send at once above `max`.
    pub burst: Option<Bytes>,
}

/// A bound on what a port receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicingSpec {
    /// The rate.
    pub rate: Rate,
    /// What may arrive at once above it.
    pub burst: Bytes,
}

/// The counters of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueCounters {
    /// Frames that have left the queue.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that found it full.
    pub tx_dropped: u64,
}

/// A running queue.
#[derive(Debug)]
struct ClassQueue<F> {
    number: u32,
    /// `None` without a largest rate.
    shaper: Option<Pipe<F>>,
    /// Bytes of memory that its frames take.
    memory: usize,
    counters: QueueCounters,
}

/// The queues of a port, with the frames that wait in them.
#[derive(Debug)]
pub struct PortQueues<F> {
    /// By class.
    classes: Vec<ClassQueue<F>>,
    port: Pipe<F>,
    /// Bytes of memory that the frames of a queue may take.
    memory_max: usize,
    /// The latest time of a call. The clocks of workers are read before they take the lock.
    latest: Time,
}

impl<F> PortQueues<F> {
    /// Makes empty queues.
    pub fn new(spec: &PortQueueSpec) -> PortQueues<F> {
        let mut queues: BTreeMap<u32, QueueRates> = BTreeMap::from([(0, QueueRates::default())]);
        queues.extend(&spec.queues);
        let classes = queues.iter().take(QUEUES_MAX).map(|(number, rates)| ClassQueue {
            number: *number,
            shaper: rates.max.map(|rate| pipe(None, shaper(rate, rates.burst))),
            memory: 0,
            counters: QueueCounters::default(),
        });
        let least: Vec<u64> = queues.values().map(|rates| rates.min.map_or(RATE_MIN, Rate::as_bps)).collect();
        let given = || queues.values().filter_map(|rates| rates.min).map(Rate::as_bps);
        let unit = given().min().unwrap_or(RATE_MIN).max(given().max().unwrap_or(0) / QUANTUM_RATIO_MAX);
        // A queue without a least rate has one that is small beside all others.
        let quantum = |least: u64| {
            let share = u128::from(QUANTUM) * u128::from(least) / u128::from(unit.max(1));
            share.clamp(QUANTUM_MIN.into(), (QUANTUM * QUANTUM_RATIO_MAX).into()) as u64
        };
        let share = |least: &u64| DrrShare { quantum: Bytes(quantum(*least)), limit: LIMIT };
        // The class of a packet is in the place of its DSCP.
        let of_place = |classes: Classes, place: u8| classes.with(place, [place]);
        let identity = (0..QUEUES_MAX as u8).fold(Classes::all_in(0), of_place);
        let shares = least.iter().take(QUEUES_MAX).map(share).collect();
        let drr = QueueSpec::Drr(DrrSpec { shares, classes: identity });
        let port = pipe(spec.rate, drr);
        PortQueues { classes: classes.collect(), port, memory_max: usize::MAX, latest: Time::ZERO }
    }

    /// Returns the number of queues.
    pub fn count(&self) -> usize {
        self.classes.len()
    }

    /// Bounds the memory that the frames of each queue take. A queue that is empty takes any frame.
    pub fn set_memory_max(&mut self, bytes: usize) {
        self.memory_max = bytes;
    }

    /// Queues a frame. A frame that finds its queue full comes back.
    pub fn push(&mut self, now: Time, queue: u32, len: usize, frame: F) -> Result<(), F> {
        self.latest = self.latest.max(now);
        let now = self.latest;
        let known = self.classes.binary_search_by_key(&queue, |class| class.number);
        // Queue 0 is the first.
        let class = known.unwrap_or(0);
        let ClassQueue { shaper, counters, memory, .. } = &mut self.classes[class];
        let more = memory_of(len as u32);
        if *memory > 0 && *memory + more > self.memory_max {
            counters.tx_dropped += 1;
            return Err(frame);
        }
        let packet = Packet { traffic_class: (class as u8) << 2, ..Packet::new(len as u32, frame) };
        let verdict = shaper.as_mut().unwrap_or(&mut self.port).push(now, packet);
        match verdict {
            Verdict::Queued => {
                *memory += more;
                Ok(())
            }
            Verdict::Dropped(_, frame) => {
                counters.tx_dropped += 1;
                Err(frame)
            }
        }
    }

    /// Moves what may leave by `now`; `out` receives the frames in order, `Err` those that found
    /// the second queue full.
    pub fn pop(&mut self, now: Time, mut out: impl FnMut(Result<F, F>)) {
        self.latest = self.latest.max(now);
        let now = self.latest;
        loop {
            let next = self.classes.iter().filter_map(|class| class.shaper.as_ref()?.next_at());
            let next = next.chain(self.port.next_at()).min().filter(|at| *at <= now);
            let Some(at) = next else { return };
            // The port first: what leaves makes room for what arrives at the same time.
            while let Some(Exit { packet, fate, .. }) = self.port.pop(at) {
                let ClassQueue { counters, memory, .. } =
                    &mut self.classes[usize::from(packet.traffic_class >> 2)];
                *memory -= memory_of(packet.len);
                out(leave(counters, packet, fate));
            }
            for ClassQueue { shaper, counters, memory, .. } in &mut self.classes {
                let Some(shaper) = shaper else { continue };
                while let Some(Exit { at, packet, fate }) = shaper.pop(at) {
                    let freed = memory_of(packet.len);
                    if let Fate::Dropped(_) = fate {
                        *memory -= freed;
                        out(leave(counters, packet, fate));
                    } else if let Verdict::Dropped(_, frame) = self.port.push(at, packet) {
                        *memory -= freed;
                        counters.tx_dropped += 1;
                        out(Err(frame));
                    }
                }
            }
        }
    }

    /// Ends the queues; `out` receives what waits.
    pub fn drain(&mut self, now: Time, mut out: impl FnMut(F)) {
        let now = self.latest.max(now);
        let down = crate::Change { state: Some(LinkState::Down), ..Default::default() };
        let pipes = self.classes.iter_mut().filter_map(|class| class.shaper.as_mut());
        for pipe in pipes.chain([&mut self.port]) {
            pipe.change(now, &down);
            while let Some(exit) = pipe.pop(now) {
                out(exit.packet.data);
            }
        }
    }

    /// Returns when a frame may leave.
    pub fn next_at(&self) -> Option<Time> {
        let shapers = self.classes.iter().filter_map(|class| class.shaper.as_ref()?.next_at());
        shapers.chain(self.port.next_at()).min()
    }

    /// Returns the number of frames that wait.
    pub fn held(&self) -> u64 {
        let shapers = self.classes.iter().filter_map(|class| class.shaper.as_ref());
        shapers.chain([&self.port]).map(|pipe| pipe.held().packets).sum()
    }

    /// Returns the counters of each queue, by number.
    pub fn counters(&self) -> impl Iterator<Item = (u32, QueueCounters)> + '_ {
        self.classes.iter().map(|class| (class.number, class.counters))
    }
}

/// Returns the bytes of memory that a frame takes.
fn memory_of(len: u32) -> usize {
    len.next_multiple_of(MEMORY_STEP) as usize
}

/// Counts a frame that leaves a queue.
fn leave<F>(counters: &mut QueueCounters, packet: Packet<F>, fate: Fate) -> Result<F, F> {
    if let Fate::Dropped(_) = fate {
        counters.tx_dropped += 1;
        return Err(packet.data);
    }
    counters.tx_packets += 1;
    counters.tx_bytes += u64::from(packet.len);
    Ok(packet.data)
}

/// A pipe without chance.
fn pipe<F>(rate: Option<Rate>, queue: QueueSpec) -> Pipe<F> {
    Pipe::new(&PipeSpec { rate, queue, ..PipeSpec::default() }, Rng::new(0))
}

fn shaper(rate: Rate, burst: Option<Bytes>) -> QueueSpec {
    let burst = burst.unwrap_or_else(|| rate.bytes_in(BURST_TIME)).max(BURST_MIN);
    QueueSpec::shaper(rate, burst, LIMIT)
}

/// The bound on what a port receives.
#[derive(Debug)]
pub struct Policing {
    pipe: Pipe<()>,
    /// The latest time of a call.
    latest: Time,
}

impl Policing {
    /// Makes a policer whose burst is unused.
    pub fn new(spec: &PolicingSpec) -> Policing {
        let pipe = pipe(None, QueueSpec::policed(spec.rate, spec.burst.max(BURST_MIN)));
        Policing { pipe, latest: Time::ZERO }
    }

    /// Returns whether a frame may pass.
    pub fn admits(&mut self, now: Time, len: usize) -> bool {
        self.latest = self.latest.max(now);
        let verdict = self.pipe.push(self.latest, Packet::new(len as u32, ()));
        while self.pipe.pop(self.latest).is_some() {}
        !matches!(verdict, Verdict::Dropped(DropReason::Early, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(rate: u64) -> Option<Rate> {
        Rate::from_bps(rate * 1_000_000)
    }

    /// Returns the rates at which queues leave that always have frames of 1250 bytes, in Mbit/s.
    fn rates<const N: usize>(rate: Option<Rate>, queues: [(u32, QueueRates); N]) -> [f64; N] {
        let spec = PortQueueSpec { rate, queues: queues.into() };
        let mut running = PortQueues::new(&spec);
        let (mut waiting, mut sent) = ([0u32; N], [0u64; N]);
        for ms in 0..2000 {
            let now = Time::ZERO + Duration::from_ms(ms);
            for (place, (number, _)) in queues.iter().enumerate() {
                while waiting[place] < 200 {
                    running.push(now, *number, 1250, place).unwrap();
                    waiting[place] += 1;
                }
            }
            running.pop(now, |left| {
                let place = left.unwrap();
                waiting[place] -= 1;
                sent[place] += u64::from(ms >= 1000);
            });
        }
        sent.map(|frames| frames as f64 * 10_000.0 / 1e6)
    }

    #[test]
    fn a_port_has_its_rate_and_queues_have_theirs() {
        let queue = |min: u64, max: u64| QueueRates { min: mbit(min), max: mbit(max), burst: None };
        let is = |found: &[f64], expected: &[f64]| {
            let near = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 0.1 + b * 0.02);
            assert!(near, "{found:?} is not {expected:?}");
        };
        is(&rates(mbit(10), [(0, queue(0, 0))]), &[10.0]);
        is(&rates(None, [(0, queue(0, 4))]), &[4.0]);
        is(&rates(mbit(10), [(0, queue(0, 0)), (1, queue(0, 2))]), &[8.0, 2.0]);
        is(&rates(mbit(10), [(1, queue(2, 0)), (2, queue(8, 0))]), &[2.0, 8.0]);
        is(&rates(mbit(10), [(1, queue(1, 0)), (2, queue(3, 0)), (7, queue(1, 1))]), &[2.25, 6.75, 1.0]);
        is(&rates(mbit(100), [(1, queue(5, 10)), (2, queue(5, 20))]), &[10.0, 20.0]);
        is(&rates(mbit(100), [(1, queue(20, 0)), (2, queue(80, 0))]), &[20.0, 80.0]);
        is(&rates(mbit(14), [(0, queue(5, 0)), (1, queue(9, 0))]), &[5.0, 9.0]);
    }

    #[test]
    fn frames_of_unknown_queues_go_to_queue_0_and_full_queues_drop_and_count() {
        let rate = Rate::from_bps(8_000);
        let mut queues = PortQueues::new(&PortQueueSpec { rate, queues: BTreeMap::new() });
        let refused = (0..1200).filter(|i| queues.push(Time::ZERO, 9, 1000, *i).is_err()).count();
        assert_eq!((refused, queues.held()), (200, 1000));
        assert_eq!(queues.next_at(), Some(Time::ZERO + Duration::from_secs(1)));
        let mut out = Vec::new();
        queues.pop(Time::ZERO + Duration::from_secs(2), |frame| out.push(frame));
        assert_eq!(out, [Ok(0), Ok(1)]);
        let counters = QueueCounters { tx_packets: 2, tx_bytes: 2000, tx_dropped: 200 };
        assert_eq!(queues.counters().collect::<Vec<_>>(), [(0, counters)]);
        let mut left = 0;
        queues.drain(Time::ZERO + Duration::from_secs(2), |_| left += 1);
        assert_eq!((left, queues.held(), queues.next_at()), (998, 0, None));
    }

    #[test]
    fn a_queue_holds_its_share_of_the_memory_and_the_share_comes_back() {
        let rate = Rate::from_bps(8_000_000);
        let queue = QueueRates { min: None, max: rate, burst: None };
        let spec = PortQueueSpec { rate, queues: [(1, queue), (2, QueueRates::default())].into() };
        let mut queues = PortQueues::new(&spec);
        assert_eq!((spec.count(), queues.count()), (3, 3), "queue 0 is there in any case");
        let share = queue_memory(NonZeroUsize::new(6 * 64_000).unwrap(), spec.count());
        assert_eq!(share, 64_000);
        queues.set_memory_max(share);
        // A frame of 1000 bytes takes 1024.
        let refused = |queues: &mut PortQueues<u32>, now, queue: u32| {
            (0..100).filter(|frame| queues.push(now, queue, 1000, *frame).is_err()).count()
        };
        let start = Time::ZERO;
        assert_eq!([0, 1, 2].map(|queue| refused(&mut queues, start, queue)), [38, 38, 38]);
        let (end, mut left) = (start + Duration::from_secs(2), 0);
        queues.pop(end, |frame| left += u32::from(frame.is_ok()));
        assert_eq!((left, queues.held()), (186, 0));
        assert_eq!([0, 1, 2].map(|queue| refused(&mut queues, end, queue)), [38, 38, 38]);
        // A frame that is larger than the share passes alone.
        let end = end + Duration::from_secs(2);
        queues.pop(end, |_| ());
        queues.set_memory_max(100);
        assert_eq!([1, 1].map(|queue| queues.push(end, queue, 1000, 0).is_ok()), [true, false]);
    }

    #[test]
    fn a_policer_passes_its_rate_after_its_burst() {
        let spec = PolicingSpec { rate: mbit(1).unwrap(), burst: Bytes(10_000) };
        let mut policing = Policing::new(&spec);
        let passed = |policing: &mut Policing, seconds: u64| {
            (0..1000u64)
                .filter(|i| {
                    policing.admits(Time::ZERO + Duration::from_secs(seconds) + Duration::from_ms(*i), 1250)
                })
                .count()
        };
        assert_eq!(passed(&mut policing, 0), 107, "8 of the burst and 100 in a second");
        assert_eq!(passed(&mut policing, 1), 100);
    }
}
