//! Measures memory: the latency of dependent loads by working set; the throughput of reads, writes
//! and copies by working set and number of threads (as in Hartikainen 2016); and the latency that
//! small pages add.

use super::caches::{self, CacheEdge};
use super::{Effort, Progress, on_core, pin};
use fastpath_units::Rng;
use fastpath_units::stats::median;
use memmap2::{Advice, MmapMut};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Size of a cache line, bytes.
const LINE: usize = 64;
/// Smallest working set, bytes.
const SMALLEST: usize = 128;
/// Working set of the TLB measurement, bytes: more small pages than any TLB holds.
const TLB_BYTES: usize = 64 << 20;
/// Loads per reading of the clock.
const LOADS: usize = 1 << 14;
/// Readings per size. The confidence of a cache edge is resampled from them.
const REPEATS: usize = 9;

/// Load latency at one working set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LatencyPoint {
    /// Working set, bytes.
    pub bytes: usize,
    /// Median time of a load that depends on the previous load, ns.
    pub ns: f64,
    /// Every reading, ns.
    pub readings_ns: Vec<f64>,
}

/// Throughput of one operation at one working set and number of threads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// The operation: `read`, `write` or `copy`.
    pub operation: Operation,
    /// Working set of each thread, bytes. A copy's source and target are half of it each.
    pub bytes: usize,
    /// Number of threads. Each has its own working set.
    pub threads: usize,
    /// Bytes read, written or copied per second by all threads together.
    pub bytes_per_s: f64,
}

/// A memory operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Reads every word and adds it to a sum.
    Read,
    /// Writes every byte.
    Write,
    /// Copies one half to the other.
    Copy,
}

/// Load latency on small and on huge pages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TlbCost {
    /// Working set, bytes.
    pub bytes: usize,
    /// Dependent loads on small pages, ns.
    pub small_pages_ns: f64,
    /// Dependent loads on huge pages, ns. `None` if the kernel provides no huge pages.
    pub huge_pages_ns: Option<f64>,
    /// Reason why there are no huge pages. `None` if there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// The page size to request for a block of memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pages {
    Small,
    Huge,
}

/// Maps an anonymous block and touches every page.
fn block(bytes: usize, pages: Pages) -> std::io::Result<MmapMut> {
    advised(bytes, pages, |map, advice| map.advise(advice))
}

fn advised(
    bytes: usize,
    pages: Pages,
    advise: impl Fn(&MmapMut, Advice) -> std::io::Result<()>,
) -> std::io::Result<MmapMut> {
    let mut map = MmapMut::map_anon(bytes)?;
    match pages {
        Pages::Huge => advise(&map, Advice::HugePage)?,
        // A kernel without transparent huge pages rejects both kinds of advice (EINVAL). All its
        // pages are small.
        Pages::Small => drop(advise(&map, Advice::NoHugePage)),
    }
    map.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    Ok(map)
}

/// Measures the load latency of working sets up to `largest` bytes, two sizes per octave. Huge
/// pages are used if available, so that the latencies show the caches and not the TLB.
pub(super) fn latency(
    effort: Effort,
    largest: usize,
    seed: u64,
    progress: Progress<'_>,
) -> std::io::Result<Vec<LatencyPoint>> {
    let mut memory = block(largest, Pages::Huge).or_else(|_| block(largest, Pages::Small))?;
    let mut rng = Rng::stream(seed, 1);
    let sizes = half_octaves(largest);
    let loads = if effort == Effort::Quick { LOADS / 4 } else { LOADS };
    let mut points = Vec::new();
    for (i, &bytes) in sizes.iter().enumerate() {
        progress("memory latency", i, sizes.len());
        let readings_ns = chase(&mut memory[..bytes], loads, &mut rng);
        points.push(LatencyPoint { bytes, ns: median(readings_ns.iter().copied()), readings_ns });
    }
    Ok(points)
}

/// Returns the sizes 128 B, 192 B, 256 B, 384 B, … up to `largest`.
fn half_octaves(largest: usize) -> Vec<usize> {
    let octaves = (0..40).map(|k| SMALLEST << k).take_while(|&size| size <= largest);
    octaves.flat_map(|size| [size, size + size / 2]).filter(|&size| size <= largest).collect()
}

/// Detects the caches from the latencies.
pub(super) fn edges(points: &[LatencyPoint], seed: u64) -> Vec<CacheEdge> {
    let sizes: Vec<usize> = points.iter().map(|p| p.bytes).collect();
    let readings: Vec<Vec<f64>> = points.iter().map(|p| p.readings_ns.clone()).collect();
    caches::edges(&sizes, &readings, &mut Rng::stream(seed, 2))
}

/// Measures dependent loads that visit all cache lines of `memory` in one random cycle. Returns
/// [`REPEATS`] readings, ns per load.
fn chase(memory: &mut [u8], loads: usize, rng: &mut Rng) -> Vec<f64> {
    let lines = memory.len() / LINE;
    // Sattolo's algorithm: a random permutation that is a single cycle.
    let mut next: Vec<u32> = (0..lines as u32).collect();
    for i in (1..lines).rev() {
        next.swap(i, rng.below(i as u64) as usize);
    }
    for (line, &to) in next.iter().enumerate() {
        memory[line * LINE..line * LINE + 4].copy_from_slice(&(to * LINE as u32).to_le_bytes());
    }
    drop(next);
    let mut at = 0;
    let mut follow = |loads: usize| {
        for _ in 0..loads {
            at = u32::from_le_bytes([memory[at], memory[at + 1], memory[at + 2], memory[at + 3]]) as usize;
        }
        black_box(at);
    };
    // Warm up: one full cycle, or enough loads to reach the caches' steady state.
    follow(lines.clamp(loads, 1 << 21));
    let mut reading = || {
        let start = Instant::now();
        follow(loads);
        start.elapsed().as_secs_f64() * 1e9 / loads as f64
    };
    (0..REPEATS).map(|_| reading()).collect()
}

/// Measures the load latency on small and on huge pages.
pub(super) fn tlb(seed: u64) -> std::io::Result<TlbCost> {
    let measure = |pages: Pages| -> std::io::Result<f64> {
        let mut memory = block(TLB_BYTES, pages)?;
        Ok(median(chase(&mut memory, LOADS, &mut Rng::stream(seed, 3))))
    };
    let small_pages_ns = measure(Pages::Small)?;
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let unavailable = if mode.is_empty() {
        Some("the kernel has no transparent huge pages".to_owned())
    } else if mode.contains("[never]") {
        Some(
            "transparent huge pages are switched off (/sys/kernel/mm/transparent_hugepage/enabled: never)"
                .to_owned(),
        )
    } else {
        None
    };
    let huge_pages_ns = if unavailable.is_none() { Some(measure(Pages::Huge)?) } else { None };
    Ok(TlbCost { bytes: TLB_BYTES, small_pages_ns, huge_pages_ns, unavailable })
}

/// Measures throughput by operation, working set and number of threads.
pub(super) fn throughput(
    effort: Effort,
    largest: usize,
    threads_max: usize,
    progress: Progress<'_>,
) -> Vec<MemoryPoint> {
    let step = if effort == Effort::Quick { 2 } else { 1 };
    let sizes: Vec<usize> =
        (0..40).step_by(step).map(|k| SMALLEST << k).take_while(|&s| s <= largest).collect();
    let span = Duration::from_millis(if effort == Effort::Quick { 3 } else { 20 });
    let threads: Vec<usize> = match effort {
        Effort::Full => (1..=threads_max).collect(),
        Effort::Quick => {
            let mut counts = vec![1, threads_max];
            counts.dedup();
            counts
        }
    };
    let mut points = Vec::new();
    let total = threads.len() * sizes.len();
    for &count in &threads {
        for (i, &bytes) in sizes.iter().enumerate() {
            progress("memory throughput", points.len() / 3, total);
            let _ = i;
            for operation in [Operation::Read, Operation::Write, Operation::Copy] {
                points.push(MemoryPoint {
                    operation,
                    bytes,
                    threads: count,
                    bytes_per_s: parallel_rate(operation, bytes, count, span),
                });
            }
        }
    }
    points
}

/// Returns the total bytes per second of `threads` concurrent threads.
fn parallel_rate(operation: Operation, bytes: usize, threads: usize, span: Duration) -> f64 {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|core| {
                let barrier = &barrier;
                scope.spawn(move || {
                    pin(core);
                    let mut memory = vec![1u8; bytes];
                    operation.pass(&mut memory);
                    barrier.wait();
                    rate(operation, &mut memory, span)
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).sum()
    })
}

/// Returns the median bytes per second of one thread over `span`.
fn rate(operation: Operation, memory: &mut [u8], span: Duration) -> f64 {
    let passes = (16_384 / memory.len()).max(1);
    let moved = operation.bytes(memory.len()) * passes;
    let mut rates = Vec::new();
    let begin = Instant::now();
    while rates.len() < 3 || begin.elapsed() < span {
        let start = Instant::now();
        for _ in 0..passes {
            operation.pass(black_box(&mut *memory));
        }
        rates.push(moved as f64 / start.elapsed().as_secs_f64());
    }
    median(rates)
}

impl Operation {
    fn bytes(self, working_set: usize) -> usize {
        match self {
            Operation::Read | Operation::Write => working_set,
            Operation::Copy => working_set / 2,
        }
    }

    fn pass(self, memory: &mut [u8]) {
        match self {
            Operation::Read => {
                // Eight independent sums, so that the adder's latency is not the bottleneck.
                let mut sums = [0u64; 8];
                for chunk in memory.chunks_exact(64) {
                    for (sum, word) in sums.iter_mut().zip(chunk.chunks_exact(8)) {
                        *sum = sum.wrapping_add(u64::from_le_bytes(word.try_into().expect("8 bytes")));
                    }
                }
                black_box(sums);
            }
            Operation::Write => memory.fill(black_box(0x5a)),
            Operation::Copy => {
                let (from, to) = memory.split_at_mut(memory.len() / 2);
                to.copy_from_slice(from);
            }
        }
        black_box(memory.first());
    }
}

/// Returns the largest working set, bytes, that `threads` threads can use concurrently within a
/// quarter of the available memory: `wanted`, halved as often as necessary.
pub(super) fn largest(wanted: usize, threads: usize) -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    let limit = kib.map_or(usize::MAX, |kib| kib * 1024 / 4 / threads.max(1));
    (0..).map(|halvings| wanted >> halvings).find(|&size| size <= limit.max(SMALLEST)).unwrap_or(SMALLEST)
}

/// Measures [`latency`] on the first core.
pub(super) fn on_first_core(
    effort: Effort,
    largest: usize,
    seed: u64,
    progress: Progress<'_>,
) -> std::io::Result<Vec<LatencyPoint>> {
    on_core(0, || latency(effort, largest, seed, progress))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_grow_by_half_octaves() {
        assert_eq!(half_octaves(1024), [128, 192, 256, 384, 512, 768, 1024]);
    }

    #[test]
    fn the_pointer_chase_visits_every_line_once_per_cycle() {
        let mut memory = vec![0; 37 * LINE];
        chase(&mut memory, 10, &mut Rng::new(4));
        let (mut at, mut visited) = (0usize, 0);
        loop {
            at = u32::from_le_bytes(memory[at..at + 4].try_into().unwrap()) as usize;
            visited += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(visited, 37);
    }

    #[test]
    fn a_kernel_without_huge_pages_provides_small_pages() {
        let advice_rejected = |_: &MmapMut, _| Err(std::io::Error::from(nix::Error::EINVAL));
        let small = advised(8192, Pages::Small, advice_rejected).expect("small pages");
        assert_eq!((small.len(), small[4096]), (8192, 1));
        assert!(advised(8192, Pages::Huge, advice_rejected).is_err());
    }

    #[test]
    fn write_fills_and_copy_copies_one_half() {
        let mut memory = vec![3u8; 128];
        Operation::Write.pass(&mut memory[..64]);
        assert!(memory[..64].iter().all(|&b| b == 0x5a) && memory[64] == 3);
        Operation::Copy.pass(&mut memory);
        assert!(memory.iter().all(|&b| b == 0x5a));
    }

    #[test]
    fn throughput_is_measured_for_every_operation_and_thread_count() {
        let points = throughput(Effort::Quick, 512, 2, &|_, _, _| {});
        assert_eq!(points.len(), 2 * 2 * 3);
        assert!(points.iter().all(|p| p.bytes_per_s > 0.0));
    }

    #[test]
    fn the_largest_working_set_fits_available_memory() {
        assert_eq!(largest(1 << 10, 1), 1 << 10);
        assert!(largest(1 << 60, 1) < 1 << 50);
    }
}
