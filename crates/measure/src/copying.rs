//! Measures how fast packets are copied: `memmove` by packet size, as in SCION's benchmark
//! (Hugly 2024). Source and target are blocks that are laid out like a router's buffers.
//!
//! The arena has 8192 blocks of 4096 + 64 bytes, or of the packet size + 64 bytes if that is more.
//! Copies visit the blocks in a ring with step 5. The step defeats the caches' prefetchers, and the
//! 64 bytes spread the blocks over the sets of a cache. Smaller arenas that fit a cache show the
//! effect of the caches.

use super::{Effort, Progress, Slowdown};
use fastpath_units::stats::median;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Copies per reading of the clock.
const BATCH: usize = 256;
/// Distance between the source and the target of a copy, blocks.
const STEP: usize = 5;
/// Smallest block without padding, bytes.
const BLOCK: usize = 4096;
/// Padding per block, bytes. It keeps the blocks from all mapping to the same set of a cache.
const SPREAD: usize = 64;
/// Blocks of the router-like arena.
const ROUTER_BLOCKS: usize = 8192;
/// Packet sizes, bytes.
const SIZES: [usize; 13] = [1, 16, 64, 128, 172, 256, 512, 1024, 1500, 2048, 4096, 8192, 9000];
/// Packet size whose rate describes a platform: L in the worked examples of Hugly 2024.
pub(super) const PLATFORM_BYTES: usize = 172;

/// Selects the level of the memory hierarchy that holds the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Two blocks, which fit the first-level cache.
    L1,
    /// 64 blocks, which fit the second-level cache.
    L2,
    /// 1024 blocks, which fit the third-level cache, if there is one.
    L3,
    /// 8192 blocks, like a router's buffers.
    Arena,
}

/// The copy rate at one size, alignment and level of the memory hierarchy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CopyRate {
    /// Bytes per copy.
    pub bytes: usize,
    /// Distance of source and target from the start of their blocks, bytes: 0 is aligned.
    pub offset: usize,
    /// Level of the memory hierarchy that holds the blocks.
    pub place: Place,
    /// Median time of a copy, ns.
    pub ns: f64,
    /// Copy rate from the median time, bit/s.
    pub bits_per_s: f64,
}

impl Place {
    fn blocks(self) -> usize {
        match self {
            Place::L1 => 2,
            Place::L2 => 64,
            Place::L3 => 1024,
            Place::Arena => ROUTER_BLOCKS,
        }
    }
}

/// Measures copy rates over sizes, alignments and places, on the calling thread's core.
pub(super) fn copying(effort: Effort, slowdown: Slowdown, progress: Progress<'_>) -> Vec<CopyRate> {
    let places = [Place::L1, Place::L2, Place::L3, Place::Arena];
    let span = Duration::from_millis(if effort == Effort::Quick { 20 } else { 40 });
    let sizes: Vec<usize> = match effort {
        Effort::Quick => vec![64, PLATFORM_BYTES, 1500, 9000],
        Effort::Full => SIZES.to_vec(),
    };
    let mut arena = Vec::new();
    let mut rates = Vec::new();
    let total = sizes.len() * places.len();
    for (i, &bytes) in sizes.iter().enumerate() {
        for (j, &place) in places.iter().enumerate() {
            progress("copying", i * places.len() + j, total);
            rates.extend([0, 1].map(|offset| copy_rate(&mut arena, (bytes, offset, place), span, slowdown)));
        }
    }
    rates
}

/// Measures the copy rate at one size, offset and place.
fn copy_rate(
    arena: &mut Vec<u8>,
    (bytes, offset, place): (usize, usize, Place),
    span: Duration,
    slowdown: Slowdown,
) -> CopyRate {
    let block = BLOCK.max(bytes + offset) + SPREAD;
    let blocks = place.blocks();
    if arena.len() < block * blocks {
        arena.resize(block * blocks, 0x5a);
    }
    let arena = &mut arena[..block * blocks];
    let mut ring = Ring { blocks, at: 0 };
    // Visit every block once, so that every page is mapped.
    (0..blocks).for_each(|_| ring.copy(arena, block, bytes, offset));
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < 5 || begin.elapsed() < span {
        let start = Instant::now();
        for _ in 0..BATCH {
            ring.copy(arena, block, bytes, offset);
        }
        slowdown.stretch(start);
        times.push(start.elapsed().as_secs_f64() * 1e9 / BATCH as f64);
    }
    black_box(&arena[0]);
    let ns = median(times);
    CopyRate { bytes, offset, place, ns, bits_per_s: 8e9 * bytes as f64 / ns }
}

/// The position in the ring of blocks.
struct Ring {
    blocks: usize,
    at: usize,
}

impl Ring {
    /// Copies from the current block to the block [`STEP`] further, which becomes the current one.
    #[inline]
    fn copy(&mut self, arena: &mut [u8], block: usize, bytes: usize, offset: usize) {
        let mut to = self.at + STEP;
        while to >= self.blocks {
            to -= self.blocks;
        }
        let from = self.at * block + offset;
        // black_box: with a constant length the compiler would replace the copy by a few moves.
        arena.copy_within(from..from + black_box(bytes), to * block + offset);
        self.at = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_visits_every_block_of_the_routers_arena() {
        let mut seen = vec![false; ROUTER_BLOCKS];
        let mut ring = Ring { blocks: ROUTER_BLOCKS, at: 0 };
        let mut arena = vec![0; ROUTER_BLOCKS];
        for _ in 0..ROUTER_BLOCKS {
            ring.copy(&mut arena, 1, 1, 0);
            seen[ring.at] = true;
        }
        assert!(seen.iter().all(|&seen| seen));
    }

    #[test]
    fn the_copied_byte_moves_along_the_ring() {
        let mut arena = vec![0; 8 * 10];
        arena[3] = 7;
        let mut ring = Ring { blocks: 8, at: 0 };
        (0..3).for_each(|_| ring.copy(&mut arena, 10, 4, 2));
        assert_eq!((ring.at, arena[7 * 10 + 3]), (7, 7));
    }

    #[test]
    fn rates_cover_sizes_places_and_alignments() {
        let mut arena = Vec::new();
        let rate = copy_rate(&mut arena, (9000, 1, Place::L1), Duration::ZERO, Slowdown::NONE);
        assert!(rate.ns > 0.0 && rate.bits_per_s > 0.0 && arena.len() == 2 * (9001 + 64));
    }
}
