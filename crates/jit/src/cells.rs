//! Counters that one worker writes without locks, and that any thread may read.
//!
//! Generated code adds to them with plain loads and stores. With one writer nothing is lost, and
//! readers see every value whole. The reader remembers what it has read, so that only the
//! difference is credited.

use fastpath_switch::flow::Counters;
use fastpath_switch::port::PortCounters;
use fastpath_units::Time;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The counters of one flow for one worker. Generated code knows the layout.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct FlowCell {
    pub(crate) packets: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) last_used: AtomicU64,
}

/// The counters of one table for one worker.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct TableCell {
    pub(crate) lookups: AtomicU64,
    pub(crate) misses: AtomicU64,
}

/// The counters of one port for one worker.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct PortCell {
    pub(crate) tx_packets: AtomicU64,
    pub(crate) tx_bytes: AtomicU64,
    pub(crate) tx_dropped: AtomicU64,
    pub(crate) rx_packets: AtomicU64,
    pub(crate) rx_bytes: AtomicU64,
    pub(crate) rx_dropped: AtomicU64,
}

/// The counters of a group, or of one of its buckets, for one worker.
#[derive(Debug, Default)]
pub(crate) struct GroupCell {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// The counters of a group and its buckets for one worker, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct GroupCells {
    pub(crate) group: GroupCell,
    pub(crate) buckets: Box<[GroupCell]>,
}

impl GroupCells {
    pub(crate) fn new(buckets: usize) -> GroupCells {
        let buckets = (0..buckets).map(|_| GroupCell::default()).collect();
        GroupCells { group: GroupCell::default(), buckets }
    }
}

/// Flows whose cells are allocated together.
const TOGETHER: usize = 32;

/// The cells of one flow that was added to a table, one for each worker.
#[derive(Clone, Debug)]
pub(crate) struct AddedCells {
    /// The cells of several flows: those of each worker are together.
    shared: Arc<[FlowCell]>,
    place: usize,
}

impl AddedCells {
    /// Returns the cells of a flow, beside those of the flow added before it while there is room.
    pub(crate) fn after(last: Option<&AddedCells>, workers: usize) -> AddedCells {
        match last {
            Some(AddedCells { shared, place }) if place + 1 < TOGETHER => {
                AddedCells { shared: Arc::clone(shared), place: place + 1 }
            }
            _ => {
                let shared = (0..workers * TOGETHER).map(|_| FlowCell::default()).collect();
                AddedCells { shared, place: 0 }
            }
        }
    }

    /// Returns the cell of a worker.
    pub(crate) fn of(&self, worker: usize) -> Option<&FlowCell> {
        self.shared.get(worker * TOGETHER + self.place)
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn add(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Relaxed) + more, Relaxed);
}

impl FlowCell {
    /// Counts a packet. The packets are written last: a reader that sees this one sees its bytes.
    #[inline]
    pub(crate) fn count(&self, now: Time, len: usize) {
        self.last_used.store(now.as_ps(), Relaxed);
        add(&self.bytes, len as u64);
        self.packets.store(self.packets.load(Relaxed) + 1, Release);
    }

    /// Returns the counts since `before` and the time of the last packet. Then `before` becomes the
    /// present counts.
    pub(crate) fn since(&self, before: &mut Counters) -> Option<(Counters, Time)> {
        let packets = self.packets.load(Acquire);
        // The writer may be between its two additions, and generated code orders them on some
        // machines only: what is missed now is seen the next time.
        let counted = Counters { packets, bytes: self.bytes.load(Relaxed) };
        if counted == *before {
            return None;
        }
        let more = Counters { packets: packets - before.packets, bytes: counted.bytes - before.bytes };
        *before = counted;
        Some((more, Time::from_ps(self.last_used.load(Relaxed))))
    }
}

impl TableCell {
    /// Returns the lookups and hits since `before`, which then becomes the present values.
    pub(crate) fn since(&self, before: &mut (u64, u64)) -> (u64, u64) {
        // Misses first: the lookup of a miss is already counted.
        let misses = self.misses.load(Relaxed);
        let lookups = self.lookups.load(Relaxed);
        let (old_lookups, old_hits) = *before;
        // A miss between the two reads counts as a hit until the next time.
        *before = (lookups, lookups.saturating_sub(misses).max(old_hits));
        (lookups - old_lookups, before.1 - old_hits)
    }
}

impl PortCell {
    fn now(&self) -> PortCounters {
        PortCounters {
            rx_packets: self.rx_packets.load(Relaxed),
            rx_bytes: self.rx_bytes.load(Relaxed),
            tx_packets: self.tx_packets.load(Relaxed),
            tx_bytes: self.tx_bytes.load(Relaxed),
            rx_dropped: self.rx_dropped.load(Relaxed),
            tx_dropped: self.tx_dropped.load(Relaxed),
        }
    }

    /// Returns the counts since `before`, which then becomes the present counts.
    pub(crate) fn since(&self, before: &mut PortCounters) -> PortCounters {
        let now = self.now();
        let old = std::mem::replace(before, now);
        PortCounters {
            rx_packets: now.rx_packets - old.rx_packets,
            rx_bytes: now.rx_bytes - old.rx_bytes,
            tx_packets: now.tx_packets - old.tx_packets,
            tx_bytes: now.tx_bytes - old.tx_bytes,
            rx_dropped: now.rx_dropped - old.rx_dropped,
            tx_dropped: now.tx_dropped - old.tx_dropped,
        }
    }
}

impl GroupCell {
    /// Counts a packet. The reader takes the counts, so additions are atomic.
    pub(crate) fn count(&self, len: usize) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(len as u64, Relaxed);
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Counters {
        Counters { packets: self.packets.swap(0, Relaxed), bytes: self.bytes.swap(0, Relaxed) }
    }
}
