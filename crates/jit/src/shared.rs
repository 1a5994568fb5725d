//! What the control side of a switch and its workers share: the newest program, and the counters of
//! a worker that do not belong to a program.

use crate::cells::{PortCell, TableCell};
use crate::program::Program;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The newest program, where workers find it.
#[derive(Debug)]
pub(crate) struct Shared {
    newest: ArcSwap<Program>,
    /// Its address, which workers compare once per burst.
    address: AtomicUsize,
}

/// The counters of a worker that do not belong to a program.
#[derive(Debug)]
pub(crate) struct WorkerCells {
    pub(crate) id: usize,
    pub(crate) tables: Box<[TableCell]>,
    pub(crate) ports: Box<[PortCell]>,
}

impl Shared {
    pub(crate) fn new(program: Program) -> Shared {
        let program = Arc::new(program);
        let address = AtomicUsize::new(Arc::as_ptr(&program).addr());
        Shared { newest: ArcSwap::new(program), address }
    }

    pub(crate) fn newest(&self) -> Arc<Program> {
        self.newest.load_full()
    }

    /// Returns whether `program` is not the newest.
    #[inline]
    pub(crate) fn is_newer(&self, program: &Arc<Program>) -> bool {
        // The address of a program that is held is not reused.
        self.address.load(Ordering::Acquire) != Arc::as_ptr(program).addr()
    }

    /// Publishes a program; returns the one before.
    pub(crate) fn publish(&self, program: Program) -> Arc<Program> {
        let program = Arc::new(program);
        let address = Arc::as_ptr(&program).addr();
        let old = self.newest.swap(program);
        self.address.store(address, Ordering::Release);
        old
    }
}
