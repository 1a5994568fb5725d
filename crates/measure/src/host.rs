//! Measures the properties of this machine that the models and the engine depend on, as one record.

use super::caches::{self, CacheEdge};
use super::copying::{self, CopyRate, PLATFORM_BYTES, Place};
use super::memory::{self, LatencyPoint, MemoryPoint, TlbCost};
use super::timing::{Timing, timing};
use super::{Effort, Progress, Slowdown, on_core, score};
use fastpath_lab::KernelFacilities;
use fastpath_model::platform::{Platform, ScoreKind};
use serde::{Deserialize, Serialize};

/// Largest working set with [`Effort::Full`], bytes.
const LARGEST: usize = 512 << 20;
/// Largest working set with [`Effort::Quick`], bytes.
const LARGEST_QUICK: usize = 32 << 20;

/// The measured properties of a machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// Integer score of each core by fastpath's own benchmark, iterations/s. It is not CoreMark:
    /// see [`Host::coremark`].
    pub score_per_core: Vec<f64>,
    /// Official CoreMark score of one core, if the caller gave it. It is never computed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coremark: Option<f64>,
    /// Copy rates by packet size, alignment and place.
    pub copying: Vec<CopyRate>,
    /// Memory latency by working set.
    pub latency: Vec<LatencyPoint>,
    /// Caches detected from the latencies.
    pub caches: Vec<CacheEdge>,
    /// Memory throughput by operation, working set and number of threads.
    pub throughput: Vec<MemoryPoint>,
    /// Load latency on small and on huge pages.
    pub tlb: TlbCost,
    /// Cost of clocks, sleeps, system calls and rings.
    pub timing: Timing,
    /// What the kernel has for the packets of labs; `None` without the right to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelFacilities>,
    /// Remarks for the reader: limits of the measurement and implausible results.
    pub notes: Vec<String>,
}

/// Measures this machine. `slowdown` applies to the integer scores and the copy rates.
///
/// # Errors
/// Returns an error if the kernel cannot allocate the memory.
pub fn host(
    effort: Effort,
    coremark: Option<f64>,
    slowdown: Slowdown,
    seed: u64,
    progress: Progress<'_>,
) -> std::io::Result<Host> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut notes = Vec::new();
    let wanted = if effort == Effort::Quick { LARGEST_QUICK } else { LARGEST };
    let largest = memory::largest(wanted, cores);
    if largest < LARGEST {
        notes.push(format!(
            "the largest working set is {} MiB instead of {} MiB",
            largest >> 20,
            LARGEST >> 20
        ));
    }
    let score_per_core = (0..cores)
        .map(|core| {
            progress("integer score", core, cores);
            on_core(core, || score::score(effort, slowdown))
        })
        .collect();
    let copying = on_core(0, || copying::copying(effort, slowdown, progress));
    let latency = memory::on_first_core(effort, largest, seed, progress)?;
    let caches = with_declared(memory::edges(&latency, seed), &mut notes);
    let throughput = memory::throughput(effort, largest, cores, progress);
    progress("huge pages", 0, 2);
    let tlb = on_core(0, || memory::tlb(seed))?;
    progress("clocks and rings", 1, 2);
    let timing = on_core(0, || timing(effort, cores));
    notes.extend(timing.implausible());
    let kernel = KernelFacilities::of_this_machine();
    Ok(Host { score_per_core, coremark, copying, latency, caches, throughput, tlb, timing, kernel, notes })
}

/// Adds the cache sizes that the kernel reports to the detected caches. Adds a note if the kernel
/// reports more caches than were detected.
fn with_declared(mut found: Vec<CacheEdge>, notes: &mut Vec<String>) -> Vec<CacheEdge> {
    let declared = caches::declared();
    for (edge, &bytes) in found.iter_mut().zip(&declared) {
        edge.declared_bytes = Some(bytes);
    }
    if declared.len() > found.len() {
        notes.push(format!(
            "the kernel reports {} data caches, the latencies show {}: the others are too large, or shared with other guests",
            declared.len(),
            found.len()
        ));
    }
    found
}

impl Host {
    /// Returns the platform parameters of the models. The score is the official CoreMark score if
    /// there is one, otherwise fastpath's own. The copy rate is that of aligned packets of
    /// 172 bytes in the router-like arena.
    pub fn platform(&self, name: &str) -> Platform {
        let own = self.score_per_core.iter().sum::<f64>() / self.score_per_core.len() as f64;
        let small = self
            .copying
            .iter()
            .find(|c| c.bytes == PLATFORM_BYTES && c.place == Place::Arena && c.offset == 0);
        Platform {
            name: name.to_owned(),
            score: self.coremark.unwrap_or(own),
            score_kind: if self.coremark.is_some() { ScoreKind::Coremark } else { ScoreKind::Own },
            copy_bits_per_s: small.map_or(f64::NAN, |c| c.bits_per_s),
            rate_pps: None,
            packet_bytes: None,
            wire: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_measurement_is_complete_and_distinguishes_the_scores() {
        let found = host(Effort::Quick, None, Slowdown::NONE, 1, &|_, _, _| {}).unwrap();
        assert_eq!(found.score_per_core.len(), std::thread::available_parallelism().unwrap().get());
        assert!(found.latency.iter().all(|p| p.ns > 0.0) && !found.throughput.is_empty());
        let platform = found.platform("here");
        assert_eq!(platform.score_kind, ScoreKind::Own);
        assert!(platform.copy_bits_per_s > 1e6);
        let official = Host { coremark: Some(20_000.0), ..found }.platform("here");
        assert_eq!((official.score_kind, official.score), (ScoreKind::Coremark, 20_000.0));
    }
}
