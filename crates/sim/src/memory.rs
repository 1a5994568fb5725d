//! A memory: latency by transfer size, bandwidth, and a bound on outstanding requests.
//!
//! Requests are served in their order, so the completion of a request is known when it is issued,
//! and a memory needs no events. A hash unit is a memory too: a key goes in, and the hash comes
//! back some cycles later.

use crate::keys::read_table;
use crate::random::exponential;
use crate::spec::{Clock, Name, out_of_range};
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Duration, Fraction, Rate, Rng, Time};
use std::collections::{BTreeMap, VecDeque};

/// A memory as a machine file describes it.
#[derive(Clone, Debug)]
pub(crate) struct MemorySpec {
    pub(crate) name: Name,
    /// The clock of the latencies.
    pub(crate) clock: Clock,
    /// Cycles by transfer size in bytes.
    pub(crate) read: BTreeMap<String, u64>,
    pub(crate) write: BTreeMap<String, u64>,
    pub(crate) bandwidth: Option<Rate>,
    /// The most requests in flight; further requests wait.
    pub(crate) outstanding: usize,
    /// The mean latency divided by the table's: the effect of load that bandwidth alone does not
    /// explain. Above 1 the difference is an exponential wait, as in a queue. Below 1 the table is
    /// scaled.
    pub(crate) load_factor: f64,
}

read_table!(MemorySpec as "memory", "{ name = \"sram\" }": {
    name,
    clock,
    read,
    write = BTreeMap::new(),
    bandwidth = None,
    outstanding = 1024,
    load_factor = 1.0,
});

impl MemorySpec {
    pub(crate) fn check(&self, remarks: &mut Remarks) {
        let sizes = self.read.keys().chain(self.write.keys());
        if self.read.is_empty() || sizes.into_iter().any(|k| !matches!(k.parse::<u32>(), Ok(1..))) {
            out_of_range(&self.name, "read or write", "cycles by size in bytes, e.g. { 4 = 18 }", remarks);
        }
        if self.outstanding == 0 {
            out_of_range(&self.name, "outstanding", "at least 1", remarks);
        }
        if !(0.01..=100.0).contains(&self.load_factor) {
            out_of_range(&self.name, "load_factor", "from 0.01 to 100", remarks);
        }
    }
}

impl MemorySpec {
    /// The largest size whose time is known, if no bandwidth gives that of larger ones.
    pub(crate) fn end_of(&self, access: Access) -> Option<u32> {
        let is_own = access == Access::Write && !self.write.is_empty();
        let table = if is_own { &self.write } else { &self.read };
        let sizes = table.keys().filter_map(|size| size.parse().ok());
        sizes.max().filter(|_| self.bandwidth.is_none())
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A memory in a run.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    read: Vec<(u32, Duration)>,
    write: Vec<(u32, Duration)>,
    /// Mean wait divided by the unloaded latency.
    load: f64,
    bandwidth: Option<Rate>,
    outstanding: usize,
    /// Completions of the requests in flight, earliest first.
    in_flight: VecDeque<Time>,
    free_at: Time,
    carried: Fraction,
    pub(crate) busy: Duration,
}

impl Memory {
    pub(crate) fn new(spec: &MemorySpec) -> Memory {
        let table = |cycles: &BTreeMap<String, u64>| {
            let mut table: Vec<(u32, Duration)> = cycles
                .iter()
                .map(|(size, &n)| {
                    let size = size.parse().expect("checked");
                    let scaled = spec.clock.cycles(n).as_ps() as f64 * spec.load_factor.min(1.0);
                    (size, Duration::from_ps(scaled.round() as u64))
                })
                .collect();
            table.sort_unstable();
            table
        };
        let read = table(&spec.read);
        let write = if spec.write.is_empty() { read.clone() } else { table(&spec.write) };
        Memory {
            read,
            write,
            load: (spec.load_factor - 1.0).max(0.0),
            bandwidth: spec.bandwidth,
            outstanding: spec.outstanding,
            in_flight: VecDeque::new(),
            free_at: Time::ZERO,
            carried: Fraction::ZERO,
            busy: Duration::ZERO,
        }
    }

    /// The time of an unloaded transfer of `bytes`: the table's entry of the next larger size.
    /// Beyond the largest entry the rest takes its time at the bandwidth.
    pub(crate) fn latency(&self, access: Access, bytes: u32) -> Duration {
        let table = if access == Access::Read { &self.read } else { &self.write };
        if let Some(&(_, latency)) = table.iter().find(|(size, _)| *size >= bytes) {
            return latency;
        }
        let &(largest, latency) = table.last().expect("a table is not empty");
        latency + self.transfer(bytes - largest)
    }

    fn transfer(&self, bytes: u32) -> Duration {
        let exact = |rate: Rate| rate.transmission(Bytes(u64::from(bytes)), Fraction::ZERO).0;
        self.bandwidth.map_or(Duration::ZERO, exact)
    }

    /// The mean time of a transfer of `bytes`, including the wait for other transfers.
    pub(crate) fn expected(&self, access: Access, bytes: u32) -> Duration {
        let latency = self.latency(access, bytes);
        latency + Duration::from_ps((latency.as_ps() as f64 * self.load) as u64)
    }

    /// Issues a request at `now` and returns the time of its completion.
    pub(crate) fn request(&mut self, now: Time, access: Access, bytes: u32, rng: &mut Rng) -> Time {
        while self.in_flight.front().is_some_and(|&done| done <= now) {
            self.in_flight.pop_front();
        }
        let mut start = now.max(self.free_at);
        if self.in_flight.len() >= self.outstanding {
            start = start.max(self.in_flight[self.in_flight.len() - self.outstanding]);
        }
        if let Some(rate) = self.bandwidth {
            let (span, carried) = rate.transmission(Bytes(u64::from(bytes)), self.carried);
            self.free_at = start + span;
            self.carried = carried;
            self.busy += span;
        }
        let latency = self.latency(access, bytes);
        let done = start + latency;
        // Sizes differ, so a completion could overtake. Requests retire in order.
        let done = self.in_flight.back().map_or(done, |&last| done.max(last));
        self.in_flight.push_back(done);
        if self.load == 0.0 {
            return done;
        }
        // The wait stands for everything that is not modelled. It delays this request only.
        done + exponential(rng, Duration::from_ps((latency.as_ps() as f64 * self.load) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(extra: &str) -> Memory {
        let text = format!("name = 'm'\nclock = '1GHz'\nread = {{ 4 = 18, 16 = 26 }}\n{extra}");
        Memory::new(&crate::keys::of_text(&text))
    }

    fn ns(n: u64) -> Time {
        Time::from_ps(n * 1000)
    }

    #[test]
    fn latency_is_that_of_the_next_size_in_the_table() {
        let m = memory("");
        for (bytes, cycles) in [(1, 18), (4, 18), (5, 26), (16, 26), (64, 26)] {
            assert_eq!(m.latency(Access::Read, bytes), Duration::from_ns(cycles), "{bytes}");
        }
        // 48 bytes past the table at 8 Gbit/s are 48 ns more.
        assert_eq!(memory("bandwidth = '8Gbit'").latency(Access::Write, 64), Duration::from_ns(74));
    }

    #[test]
    fn requests_share_the_bandwidth_in_their_order() {
        let mut m = memory("bandwidth = '1Gbit'");
        // 16 B occupy 128 ns.
        let done: Vec<Time> = (0..3).map(|_| m.request(ns(0), Access::Read, 16, &mut Rng::new(1))).collect();
        assert_eq!(done, [ns(26), ns(128 + 26), ns(256 + 26)]);
        assert_eq!(m.busy, Duration::from_ns(384));
    }

    #[test]
    fn a_request_beyond_the_bound_waits_for_the_oldest_to_complete() {
        let mut m = memory("outstanding = 2");
        let done: Vec<Time> = (0..5).map(|_| m.request(ns(0), Access::Read, 4, &mut Rng::new(1))).collect();
        assert_eq!(done, [ns(18), ns(18), ns(36), ns(36), ns(54)]);
        assert_eq!(m.request(ns(100), Access::Read, 4, &mut Rng::new(1)), ns(118));
    }

    #[test]
    fn load_is_a_random_wait_of_the_stated_mean_and_takes_no_bandwidth() {
        let (m, n, mut rng) = (memory("load_factor = 2.5"), 100_000, Rng::new(1));
        assert_eq!(m.expected(Access::Read, 16), Duration::from_ns(65));
        let total: u64 = (0..n)
            .map(|i| {
                let now = ns(1000 * i);
                m.clone().request(now, Access::Read, 16, &mut rng).since(now).as_ps()
            })
            .sum();
        // 26 ns and an exponential of mean 39 ns: 4 standard errors are half a nanosecond.
        assert!((total as f64 / n as f64 - 65_000.0).abs() < 500.0, "{total}");
        let mut m = memory("load_factor = 2.0\nbandwidth = '1Gbit'");
        let done: Vec<Time> = (0..2).map(|_| m.request(ns(0), Access::Read, 16, &mut rng)).collect();
        assert!(done[0] > ns(26) && done[1] > ns(128 + 26) && m.busy == Duration::from_ns(256), "{done:?}");
        assert_eq!(memory("load_factor = 0.5").expected(Access::Read, 4), Duration::from_ns(9));
    }
}
