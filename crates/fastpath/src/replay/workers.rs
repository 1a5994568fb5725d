//! How many workers a replay has, and how they spent their time.

use super::parallel::WorkerProfile;
use fastpath_net::Partition;
use fastpath_spec::Topology;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::thread;

/// The cost of a packet at a node and of a window for all workers, nanoseconds, on the machine of
/// docs/concepts/parallel.md. They decide whether parts pay off, never a result.
const HOP_NS: f64 = 150.0;
const WINDOW_NS: f64 = 1000.0;
/// Packets at nodes per second where the description tells nothing.
const HOPS_PER_S: u64 = 1_000_000;

/// How many workers run a network side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerCount {
    /// At most this many.
    AtMost(NonZeroUsize),
    /// As many as this machine has cores, if they are expected to pay off.
    Auto,
}

impl WorkerCount {
    /// One worker.
    pub const ONE: WorkerCount = WorkerCount::AtMost(NonZeroUsize::MIN);

    /// Returns the largest number of workers.
    pub fn count(self) -> NonZeroUsize {
        match self {
            WorkerCount::AtMost(count) => count,
            WorkerCount::Auto => thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// Returns the parts that the workers run; `None` for one worker.
    pub(super) fn partition(self, topology: &Topology, seed: Option<u64>) -> Option<Partition> {
        let (count, is_chosen) = (self.count(), self != WorkerCount::Auto);
        if count.get() == 1 {
            return None;
        }
        let partition = match seed {
            Some(seed) => Partition::random(topology, count, seed),
            None => Partition::new(topology, count),
        };
        (is_chosen || expected_speedup(&partition) >= Partition::PAYS_OFF).then_some(partition)
    }
}

impl FromStr for WorkerCount {
    type Err = String;
    fn from_str(text: &str) -> Result<WorkerCount, String> {
        match text {
            "auto" => Ok(WorkerCount::Auto),
            _ => text
                .parse()
                .map(WorkerCount::AtMost)
                .map_err(|_| "write a number from 1 on, or auto".to_owned()),
        }
    }
}

impl fmt::Display for WorkerCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerCount::AtMost(count) => count.fmt(f),
            WorkerCount::Auto => f.write_str("auto"),
        }
    }
}

/// Returns how many times as fast as one worker a worker for each part is expected to be, each on a
/// core of its own. Without traffic in the description a million packets at nodes per second are
/// assumed.
pub fn expected_speedup(partition: &Partition) -> f64 {
    let bound = partition.expected_speedup();
    let Some(lookahead) = partition.lookahead_min() else { return bound };
    let hops = partition.expected_hops_per_s().unwrap_or(HOPS_PER_S);
    let work_ns = hops as f64 * lookahead.as_secs_f64() * HOP_NS;
    work_ns / (work_ns / bound + WINDOW_NS)
}

/// How the workers of a run spent their time.
#[derive(Clone, PartialEq, Debug)]
pub struct Workers {
    /// By worker: the nodes of its part, and how it spent its time.
    pub parts: Vec<(usize, WorkerProfile)>,
}

impl Workers {
    pub(super) fn new(partition: &Partition, profiles: Vec<WorkerProfile>) -> Workers {
        let nodes = |part| partition.nodes(part).count();
        Workers {
            parts: profiles.into_iter().enumerate().map(|(part, profile)| (nodes(part), profile)).collect(),
        }
    }
}

impl fmt::Display for Workers {
    /// A line for each worker: whom it waited for, and how long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, (nodes, profile)) in self.parts.iter().enumerate() {
            let WorkerProfile { wall, waited, windows, passed_on } = profile;
            let wall_s = wall.as_secs_f64();
            let waits: f64 = waited.iter().map(|wait| wait.as_secs_f64()).sum();
            let share = 100.0 * waits / wall_s.max(1e-9);
            if part > 0 {
                writeln!(f)?;
            }
            write!(
                f,
                "worker {part}: {nodes} nodes, {wall_s:.3} s, {windows} windows, {passed_on} frames passed on, \
                 waited {waits:.3} s ({share:.0} %)"
            )?;
            for (other, wait) in waited.iter().enumerate().filter(|(_, wait)| !wait.is_zero()) {
                write!(f, ", {:.3} s for worker {other}", wait.as_secs_f64())?;
            }
        }
        Ok(())
    }
}
