//! A cache hierarchy. The level that serves a reference follows from the working sets of all
//! threads.
//!
//! A core's references are not simulated one by one. A program touches a region of a given size at
//! random, so each level serves the share of references that its capacity covers. Shared levels are
//! divided among the threads. An array that is *swept*, as in a copy benchmark, is all or nothing:
//! an array one line too large for a least-recently-used level always misses that level.

use crate::keys::{self, FileValue, read_table};
use crate::spec::{Name, out_of_range};
use fastpath_text::fields::Field;
use fastpath_text::mistake::Remarks;
use fastpath_units::{Bytes, Duration, Rate, Rng};

/// A hierarchy as a machine file describes it, nearest level first. The last level holds
/// everything.
#[derive(Clone, Debug)]
pub(crate) struct CacheSpec {
    pub(crate) name: Name,
    /// Bytes moved per reference.
    pub(crate) line: u32,
    /// Writes up to this size stay in the core's write buffer.
    pub(crate) write_buffer: Bytes,
    pub(crate) level: Vec<LevelSpec>,
}

#[derive(Clone, Debug)]
pub(crate) struct LevelSpec {
    pub(crate) size: Bytes,
    pub(crate) latency: Duration,
    /// True: one for all cores. False: one per core.
    pub(crate) shared: bool,
    /// The rate of all cores together through a shared level.
    pub(crate) bandwidth: Option<Rate>,
}

read_table!(CacheSpec as "cache", "{ name = \"llc\" }": {
    name,
    line,
    write_buffer = Bytes::ZERO,
    level,
});

impl FileValue for LevelSpec {
    const EXAMPLE: &'static str = "{ name = \"L1\", size = \"32KiB\", latency = \"1ns\" }";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<LevelSpec> {
        let mut fields = keys::table(field, "level", LevelSpec::EXAMPLE, remarks)?;
        // Only changes of single values refer to a level by its name.
        let name: Option<Name> = keys::value(&mut fields, "name", None, remarks);
        let size = keys::value(&mut fields, "size", None, remarks);
        let latency = keys::value(&mut fields, "latency", None, remarks);
        let shared = keys::value(&mut fields, "shared", Some(false), remarks);
        let bandwidth = keys::value(&mut fields, "bandwidth", Some(None), remarks);
        fields.finish(remarks);
        name?;
        Some(LevelSpec { size: size?, latency: latency?, shared: shared?, bandwidth: bandwidth? })
    }
}

impl CacheSpec {
    pub(crate) fn check(&self, remarks: &mut Remarks) {
        if self.level.is_empty() || self.line == 0 {
            out_of_range(&self.name, "line or level", "at least 1", remarks);
        }
        if self.level.windows(2).any(|w| w[0].size >= w[1].size) {
            out_of_range(&self.name, "size of the levels", "increasing", remarks);
        }
    }

    fn capacity(&self, level: &LevelSpec, threads: u32) -> u64 {
        if level.shared { level.size.0 / u64::from(threads.max(1)) } else { level.size.0 }
    }

    /// The references into a region of `region` bytes that each of `threads` threads touches at
    /// random.
    pub(crate) fn touches(&self, region: Bytes, threads: u32) -> Touches {
        let mut ends: Vec<u64> = self.level.iter().map(|level| self.capacity(level, threads)).collect();
        // A level smaller than one before it serves nothing. The last one serves all the rest.
        for level in 1..ends.len() {
            ends[level] = ends[level].max(ends[level - 1]);
        }
        ends.pop();
        let latencies = match &self.level[..] {
            [] => vec![Duration::ZERO],
            levels => levels.iter().map(|level| level.latency).collect(),
        };
        let expected = self.expected(region, threads);
        Touches { region: region.0.max(1), ends, latencies, expected, packet: None }
    }

    /// The references to a packet that a bus has written to the last level before the memory, or to
    /// the memory.
    pub(crate) fn touches_of_packet(&self) -> Touches {
        let latency = |from_end: usize| {
            self.level.iter().rev().nth(from_end).or(self.level.last()).map_or(Duration::ZERO, |l| l.latency)
        };
        let (expected, packet) = (Duration::ZERO, Some([latency(0), latency(1)]));
        Touches { region: 1, ends: Vec::new(), latencies: vec![latency(0)], expected, packet }
    }

    /// The size of the last level before the memory, if there is one.
    pub(crate) fn last_size(&self) -> Option<Bytes> {
        self.level.iter().rev().nth(1).map(|level| level.size)
    }

    /// The mean latency of a reference.
    pub(crate) fn expected(&self, region: Bytes, threads: u32) -> Duration {
        let (mut covered, mut sum) = (0u128, 0u128);
        let all = u128::from(region.0.max(1));
        for (i, level) in self.level.iter().enumerate() {
            let last = i + 1 == self.level.len();
            let reach = if last { all } else { u128::from(self.capacity(level, threads)).min(all) };
            sum += reach.saturating_sub(covered) * u128::from(level.latency.as_ps());
            covered = covered.max(reach);
        }
        Duration::from_ps((sum / all) as u64)
    }

    /// The time of one repetition of a sweep: each of `threads` threads on `cores` cores repeatedly
    /// copies its own array of `bytes` to another (MPAC's memory test).
    pub(crate) fn sweep(&self, bytes: Bytes, threads: u32, cores: u32) -> Duration {
        let running = threads.min(cores);
        let lines = bytes.0.div_ceil(u64::from(self.line));
        // The arrays of all threads stay in the shared levels, whether a thread runs or not.
        let fits = |level: &&LevelSpec| 2 * bytes.0 <= self.capacity(level, threads);
        let fitting = self.level.iter().position(|level| fits(&level)).unwrap_or(self.level.len() - 1);
        // A write-through first level: writes beyond the buffer continue to the next level.
        let spills = usize::from(fitting == 0 && bytes > self.write_buffer && self.level.len() > 1);
        let (reads, writes) = (&self.level[fitting], &self.level[fitting + spills]);
        let alone = (reads.latency + writes.latency) * lines;
        // A shared level limits the rate of all cores together.
        let all = Bytes(bytes.0 * u64::from(running)).bits() as f64;
        let held = [(reads, 1.0), (writes, 1.0 + f64::from(u8::from(spills == 0)))].into_iter().filter_map(
            |(level, directions)| level.bandwidth.map(|rate| all * directions / rate.as_bps() as f64),
        );
        let held = Duration::from_secs_f64(held.fold(0.0, f64::max));
        let repetition = alone.max(held);
        // More threads than cores take turns, and each turn starts with cold private levels.
        let turns = threads.div_ceil(cores.max(1));
        if turns == 1 {
            repetition
        } else {
            (repetition + reads.latency.max(writes.latency) * lines) * u64::from(turns)
        }
    }
}

/// References into a region, at random.
#[derive(Clone, Debug)]
pub(crate) struct Touches {
    /// Bytes.
    region: u64,
    /// The place up to which each level but the last serves references, ascending.
    ends: Vec<u64>,
    /// Of each level.
    latencies: Vec<Duration>,
    expected: Duration,
    /// For references to the packet: the latency of the memory, and that of the cache.
    packet: Option<[Duration; 2]>,
}

impl Touches {
    /// The mean of [`Touches::draw`].
    pub(crate) fn expected(&self, is_cached: bool) -> Duration {
        self.packet.map_or(self.expected, |latency| latency[usize::from(is_cached)])
    }

    /// Draws the latency of one reference. `is_cached`: whether the packet is in the cache.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng, is_cached: bool) -> Duration {
        if let Some(latency) = self.packet {
            return latency[usize::from(is_cached)];
        }
        let at = rng.below(self.region);
        // A count instead of a search: a branch would be unpredictable.
        self.latencies[self.ends.iter().map(|end| usize::from(at >= *end)).sum::<usize>()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> CacheSpec {
        let text = "name = 'c'\nline = 64\nwrite_buffer = '1KiB'
            level = [{ name = 'L1', size = '32KiB', latency = '1ns' },
                     { name = 'L2', size = '4MiB', latency = '10ns', shared = true },
                     { name = 'RAM', size = '8GiB', latency = '100ns', shared = true }]";
        crate::keys::of_text(text)
    }

    #[test]
    fn a_region_is_served_by_the_levels_that_cover_it() {
        let c = cache();
        assert_eq!(c.expected(Bytes(16 << 10), 1), Duration::from_ns(1));
        // Half in L1, half in L2.
        assert_eq!(c.expected(Bytes(64 << 10), 1), Duration::from_ps(5500));
        // Eight threads have ½ MiB of L2 each; of 1 MiB, 1/32 is in L1, 15/32 in L2, half in RAM.
        let expected = (1.0 + 15.0 * 10.0 + 16.0 * 100.0) / 32.0 * 1000.0;
        assert_eq!(c.expected(Bytes(1 << 20), 8), Duration::from_ps(expected as u64));
    }

    #[test]
    fn draws_have_the_expected_mean() {
        let (c, mut rng, n) = (cache(), Rng::new(1), 100_000);
        let touches = c.touches(Bytes(1 << 20), 8);
        let sum: u64 = (0..n).map(|_| touches.draw(&mut rng, false).as_ps()).sum();
        let mean = sum as f64 / n as f64;
        let expected = c.expected(Bytes(1 << 20), 8).as_ps() as f64;
        // σ of one draw is below 50 ns: 4 standard errors are 0.63 ns.
        assert!((mean - expected).abs() < 630.0, "{mean} {expected}");
    }

    #[test]
    fn a_sweep_misses_a_level_as_soon_as_all_threads_together_outgrow_it() {
        let c = cache();
        let fits = c.sweep(Bytes(256 << 10), 8, 32);
        assert_eq!(c.sweep(Bytes(256 << 10), 1, 32), fits);
        assert_eq!(c.sweep(Bytes(256 << 10), 9, 32), Duration::from_ps(fits.as_ps() * 10));
    }
}
