//! The batches of packets of the thread that serves a port: one ring for all ports of a worker.
//!
//! The ring is made when a port of the thread first has several small frames at once. Where
//! io_uring is not available, ports read and write frame by frame.

use fastpath_sys::packet_batch::PacketBatch;
use std::cell::RefCell;

enum Batches {
    Untried,
    Open(Box<PacketBatch>),
    Unavailable,
}

thread_local! {
    static BATCHES: RefCell<Batches> = const { RefCell::new(Batches::Untried) };
}

/// Uses the batch of this thread. `None` if it can have none.
pub(super) fn with<R>(use_it: impl FnOnce(&mut PacketBatch) -> R) -> Option<R> {
    BATCHES.with_borrow_mut(|batches| {
        if let Batches::Untried = batches {
            *batches =
                PacketBatch::new().map_or(Batches::Unavailable, |batch| Batches::Open(Box::new(batch)));
        }
        match batches {
            Batches::Open(batch) => Some(use_it(batch)),
            Batches::Untried | Batches::Unavailable => None,
        }
    })
}

/// This thread has no ring any longer: its kernel refused one.
pub(super) fn give_up() {
    BATCHES.with_borrow_mut(|batches| *batches = Batches::Unavailable);
}
