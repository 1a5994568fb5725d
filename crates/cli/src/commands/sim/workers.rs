//! `--workers` of simulations.

use clap::Args;
use fastpath::replay::WorkerCount;

/// The number of workers.
#[derive(Args)]
pub(super) struct SimWorkers {
    /// Workers that simulate independent runs, and parts of a run, side by side: a number, or auto
    /// for one per core. The results are the same for every number.
    #[arg(long, value_name = "N", default_value_t = WorkerCount::Auto)]
    workers: WorkerCount,
}

impl SimWorkers {
    pub(super) fn count(&self) -> WorkerCount {
        self.workers
    }
}
