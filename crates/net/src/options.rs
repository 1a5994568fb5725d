//! The parameters of a run that its topology does not have.

use crate::openflow::Executors;
use crate::pool::FramePool;
use std::num::NonZeroUsize;

/// The parameters of a run that are not part of the topology.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all random numbers of the run.
    pub seed: u64,
    /// The maximum memory for frames in flight, in bytes; [`FramePool::LIMIT_DEFAULT`] by default.
    /// A frame beyond it is dropped and counted as `pool-full`.
    pub pool_limit: NonZeroUsize,
    /// The executors of the tables of OpenFlow nodes.
    pub executors: Executors,
}

impl Options {
    /// Returns options with this seed and pool limit, and the default executors.
    pub const fn new(seed: u64, pool_limit: NonZeroUsize) -> Options {
        Options { seed, pool_limit, executors: Executors::planned() }
    }

    /// Returns options with this seed and the default pool limit and executors.
    pub const fn with_seed(seed: u64) -> Options {
        Options::new(seed, FramePool::LIMIT_DEFAULT)
    }
}

impl Default for Options {
    /// Seed 1, [`FramePool::LIMIT_DEFAULT`], and the executors that interpret plans.
    fn default() -> Options {
        Options::with_seed(1)
    }
}
