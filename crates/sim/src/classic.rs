//! The textbook models on the kernel: a station of `c` servers, and a closed ring of single
//! servers.
//!
//! Their exact solutions are known, so `tests/theory.rs` checks the kernel and the statistics with
//! them. Other simulators ship the same models, so [`mm1`] and [`pipe32`] also compare speeds.

use crate::kernel::Kernel;
use crate::random::Exponential;
use crate::stats::{Series, TimeWeighted};
use crate::trace::TraceHash;
use fastpath_units::{Duration, Rng, Time};
use serde::Serialize;
use std::collections::VecDeque;

/// The counts of a speed run. Simulators are compared by customers, kernels by events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    /// Events handled.
    pub events: u64,
    /// Customers that left (M/M/1) or finished a lap of all servers (pipeline).
    pub customers: u64,
    /// The run's fingerprint; 16 hexadecimal digits in JSON.
    #[serde(serialize_with = "crate::outcome::hex")]
    pub trace_hash: u64,
}

/// Runs M/M/1 at 80 % load until `customers` have left.
pub fn mm1(customers: u64, seed: u64) -> RunCounts {
    let stream = |number| Exponential::new(Rng::stream(seed, number));
    let (mut gaps, mut services) = (stream(0), stream(1));
    let (gap, service) = (Duration::from_ns(1250), Duration::from_ns(1000));
    station(1, customers, || gaps.draw(gap), || services.draw(service)).counts
}

/// Runs a closed pipeline of 32 exponential servers and 64 customers until `laps` laps are
/// finished.
pub fn pipe32(laps: u64, seed: u64) -> RunCounts {
    ring(32, 64, laps, Duration::from_us(1), seed).counts
}

/// The result of a station.
#[derive(Debug)]
pub struct StationRun {
    /// Counts and fingerprint.
    pub counts: RunCounts,
    /// Each customer's wait before service, in seconds, in order of service.
    pub waits: Series,
    /// Servers busy over time.
    pub busy: TimeWeighted,
    /// When the run ended.
    pub end: Time,
}

/// Runs one queue before `servers` servers, first come first served, until `customers` have left.
/// `gap` draws the time to the next arrival, `service` the service time of a customer.
pub fn station(
    servers: u64,
    customers: u64,
    mut gap: impl FnMut() -> Duration,
    mut service: impl FnMut() -> Duration,
) -> StationRun {
    #[derive(Clone, Copy)]
    enum Event {
        Arrival,
        Departure,
    }
    let mut kernel = Kernel::new();
    let mut queue: VecDeque<Time> = VecDeque::with_capacity(1024);
    let (mut waits, mut busy, mut hash, mut left) =
        (Series::default(), TimeWeighted::default(), TraceHash::default(), 0);
    kernel.after(gap(), Event::Arrival);
    while left < customers {
        let event = kernel.next().expect("an arrival is always pending");
        let now = kernel.now();
        hash.record(now, event as u8, left as u32);
        match event {
            Event::Arrival => {
                kernel.after(gap(), Event::Arrival);
                if busy.level() < servers {
                    waits.add(0.0);
                    busy.set(now, busy.level() + 1);
                    kernel.after(service(), Event::Departure);
                } else {
                    queue.push_back(now);
                }
            }
            Event::Departure => {
                left += 1;
                if let Some(arrived) = queue.pop_front() {
                    waits.add((now - arrived).as_secs_f64());
                    kernel.after(service(), Event::Departure);
                } else {
                    busy.set(now, busy.level() - 1);
                }
            }
        }
    }
    let counts = RunCounts { events: kernel.handled(), customers: left, trace_hash: hash.get() };
    StationRun { counts, waits, busy, end: kernel.now() }
}

/// The result of a ring.
#[derive(Debug)]
pub struct RingRun {
    /// Counts and fingerprint.
    pub counts: RunCounts,
    /// For each server, whether it was busy, over time.
    pub busy: Vec<TimeWeighted>,
    /// When the run ended.
    pub end: Time,
}

/// Runs `customers` customers round `servers` single exponential servers of the same mean until
/// `laps` laps are finished. A move to the next server takes no time but is an event, as in
/// simulators built of components with ports.
pub fn ring(servers: u32, customers: u32, laps: u64, mean: Duration, seed: u64) -> RingRun {
    #[derive(Clone, Copy)]
    enum Event {
        Arrival(u32),
        Departure(u32),
    }
    let mut services = Exponential::new(Rng::new(seed));
    let mut kernel = Kernel::new();
    let mut waiting = vec![0u32; servers as usize];
    let mut busy = vec![TimeWeighted::default(); servers as usize];
    let (mut hash, mut done) = (TraceHash::default(), 0);
    for customer in 0..customers {
        kernel.after(Duration::ZERO, Event::Arrival(customer % servers));
    }
    while done < laps {
        let event = kernel.next().expect("a closed ring never runs dry");
        let now = kernel.now();
        match event {
            Event::Arrival(at) => {
                hash.record(now, 0, at);
                if busy[at as usize].level() == 0 {
                    busy[at as usize].set(now, 1);
                    kernel.after(services.draw(mean), Event::Departure(at));
                } else {
                    waiting[at as usize] += 1;
                }
            }
            Event::Departure(at) => {
                hash.record(now, 1, at);
                let next = if at + 1 == servers { 0 } else { at + 1 };
                done += u64::from(next == 0);
                kernel.after(Duration::ZERO, Event::Arrival(next));
                if waiting[at as usize] == 0 {
                    busy[at as usize].set(now, 0);
                } else {
                    waiting[at as usize] -= 1;
                    kernel.after(services.draw(mean), Event::Departure(at));
                }
            }
        }
    }
    let counts = RunCounts { events: kernel.handled(), customers: done, trace_hash: hash.get() };
    RingRun { counts, busy, end: kernel.now() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_run() {
        assert_eq!(mm1(10_000, 1), mm1(10_000, 1));
        assert_ne!(mm1(10_000, 1).trace_hash, mm1(10_000, 2).trace_hash);
        assert_eq!(pipe32(300, 1), pipe32(300, 1));
    }

    #[test]
    fn the_fingerprints_are_frozen() {
        assert_eq!(mm1(10_000, 1).trace_hash, 9551416762917264588);
        assert_eq!(pipe32(300, 1).trace_hash, 1878078067983743962);
    }

    #[test]
    fn a_pipeline_lap_is_an_arrival_and_a_departure_per_server() {
        let work = pipe32(10_000, 3);
        let per_lap = work.events as f64 / work.customers as f64;
        assert!((63.5..64.5).contains(&per_lap), "{per_lap}");
    }
}
