//! How fast packets are copied: `memmove` by packet size, as in SCION's benchmark (Hugly 2024),
//! from and to blocks that are spread like a router's buffers.
//!
//! The arena is 8192 blocks of 4096 + 64 bytes (or the packet and 64 bytes, where that is more),
//! visited in a ring with step 5, so that neither the caches' prefetchers nor one set of a cache
//! gets all of it. Smaller arenas that fit a cache show what the caches change.

use super::{Effort, Progress, Slowdown, median};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Copies per reading of the clock.
const BATCH: usize = 256;
const STEP: usize = 5;
const BLOCK: usize = 4096;
/// What is added to a block so that blocks do not all fall into one set of a cache.
const SPREAD: usize = 64;
const ROUTER_BLOCKS: usize = 8192;
/// Packet sizes, bytes.
const SIZES: [usize; 13] = [1, 16, 64, 128, 172, 256, 512, 1024, 1500, 2048, 4096, 8192, 9000];
/// The size whose rate describes a platform: L of the worked figures of Hugly 2024.
pub(super) const PLATFORM_BYTES: usize = 172;

/// Where the blocks lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Two blocks: in the first cache.
    L1,
    /// 64 blocks: in the second.
    L2,
    /// 1024 blocks: in the third, if there is one.
    L3,
    /// 8192 blocks, as a router's buffers.
    Arena,
}

/// A copy rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CopyRate {
    /// Bytes per copy.
    pub bytes: usize,
    /// Bytes that source and target are moved off the blocks' starts: 0 is aligned.
    pub offset: usize,
    /// Where the blocks lie.
    pub place: Place,
    /// Median time of a copy, ns.
    pub ns: f64,
    /// The same as a rate, bit/s.
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

/// Copy rates over sizes, alignments and places, on the calling thread's core.
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
            rates.extend([0, 1].map(|offset| one(&mut arena, (bytes, offset, place), span, slowdown)));
        }
    }
    rates
}

fn one(
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
    // Once through, so that every page is there.
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
    let ns = median(&mut times);
    CopyRate { bytes, offset, place, ns, bits_per_s: 8e9 * bytes as f64 / ns }
}

/// The walk through the blocks.
struct Ring {
    blocks: usize,
    at: usize,
}

impl Ring {
    /// Copies from one block to the one [`STEP`] further, and goes there.
    #[inline]
    fn copy(&mut self, arena: &mut [u8], block: usize, bytes: usize, offset: usize) {
        let mut to = self.at + STEP;
        while to >= self.blocks {
            to -= self.blocks;
        }
        let from = self.at * block + offset;
        // black_box: the length must not become a constant, or the copy becomes a few moves.
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
    fn the_byte_copied_travels_with_the_ring() {
        let mut arena = vec![0; 8 * 10];
        arena[3] = 7;
        let mut ring = Ring { blocks: 8, at: 0 };
        (0..3).for_each(|_| ring.copy(&mut arena, 10, 4, 2));
        assert_eq!((ring.at, arena[7 * 10 + 3]), (7, 7));
    }

    #[test]
    fn rates_cover_sizes_places_and_alignments() {
        let mut arena = Vec::new();
        let rate = one(&mut arena, (9000, 1, Place::L1), Duration::ZERO, Slowdown::NONE);
        assert!(rate.ns > 0.0 && rate.bits_per_s > 0.0 && arena.len() == 2 * (9001 + 64));
    }
}
