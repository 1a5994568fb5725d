//! The packets of fast pipes: one store for all pipes of a set. Each pipe is a linked list in it.
//!
//! ```text
//!   slots   │ (unused)   │ a1 │ b1 │ a2 │ –  │ a3 │ …        pipe a: a1 → a2 → a3      free: – → …
//! ```
//!
//! An empty pipe takes no memory here. A freed slot is reused first: it is in the cache.

use crate::content::PacketContent;
use crate::packet::Packet;
use fastpath_units::Time;
use std::num::NonZeroU32;

/// The index of a slot in the store. Index 0 is never used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StoreIndex(NonZeroU32);

/// A bound on the packets that one call takes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PopLimit {
    /// Packets that leave after this instant stay.
    pub until: Time,
    /// The largest number of packets taken.
    pub packets_max: usize,
}

/// The largest number of slots reserved at once. Reserved address space costs nothing until used.
const RESERVED_MAX: usize = 1 << 22;

/// A packet that waits: the fields of [`Packet`] and of its fate, flattened to be small. With a
/// payload of eight bytes two of them share a cache line.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    /// The arrival while queued, the exit once in the delay line.
    pub(crate) time: Time,
    /// The packet behind it.
    pub(crate) next: Option<StoreIndex>,
    pub(crate) len: u32,
    flow: u32,
    traffic_class: u8,
    content: PacketContent,
    pub(crate) marked: bool,
    /// `None` while the slot is free.
    data: Option<P>,
}

impl<P> Waiting<P> {
    /// `packet` arrived at `time`. `marked` tells whether this pipe set ECN CE.
    #[inline]
    pub(crate) fn new(time: Time, packet: Packet<P>, marked: bool) -> Waiting<P> {
        let Packet { len, flow, traffic_class, content, data } = packet;
        Waiting { time, next: None, len, flow, traffic_class, content, marked, data: Some(data) }
    }

    /// Returns the packet with its data, which has been taken out.
    #[inline]
    fn packet(&self, data: P) -> Packet<P> {
        let Waiting { len, flow, traffic_class, content, .. } = *self;
        Packet { len, flow, traffic_class, content, data }
    }

    /// Returns the data of the packet.
    #[inline]
    pub(crate) fn data(&self) -> Option<&P> {
        self.data.as_ref()
    }
}

#[derive(Debug)]
pub(crate) struct Store<P> {
    slots: Vec<Waiting<P>>,
    free: Option<StoreIndex>,
}

impl<P> Store<P> {
    /// Creates a store that does not move while it holds at most `packets`.
    pub(crate) fn new(packets: usize) -> Store<P> {
        Store { slots: Vec::with_capacity(packets.min(RESERVED_MAX) + 1), free: None }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: Waiting<P>) -> StoreIndex {
        match self.free {
            Some(index) => {
                let slot = &mut self.slots[index.index()];
                self.free = slot.next;
                *slot = packet;
                index
            }
            None => {
                if self.slots.is_empty() {
                    self.begin();
                }
                let number = u32::try_from(self.slots.len()).ok().and_then(NonZeroU32::new);
                self.slots.push(packet);
                StoreIndex(number.expect("fewer than 2³² packets are held"))
            }
        }
    }

    /// Slot 0 stays unused, so that `None` needs no extra space in a [`StoreIndex`]. It is created
    /// with the first packet: an idle network takes no memory for packets.
    #[cold]
    fn begin(&mut self) {
        let (time, next, content, data) = (Time::ZERO, None, PacketContent::Other, None);
        let (len, flow, traffic_class, marked) = (0, 0, 0, false);
        self.slots.push(Waiting { time, next, len, flow, traffic_class, content, marked, data });
    }

    #[inline]
    pub(crate) fn get(&self, index: StoreIndex) -> &Waiting<P> {
        &self.slots[index.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: StoreIndex) -> &mut Waiting<P> {
        &mut self.slots[index.index()]
    }

    /// Removes a packet. Panics if there is none.
    #[inline]
    pub(crate) fn remove(&mut self, index: StoreIndex) -> Packet<P> {
        let slot = &mut self.slots[index.index()];
        slot.next = self.free;
        self.free = Some(index);
        let data = slot.data.take().expect("a pipe's list leads to its packets only");
        slot.packet(data)
    }

    /// Removes a packet with a time not after `until`.
    #[inline]
    pub(crate) fn remove_due(&mut self, index: StoreIndex, until: Time) -> Option<Due<P>> {
        let slot = &mut self.slots[index.index()];
        if slot.time > until {
            return None;
        }
        let next = std::mem::replace(&mut slot.next, self.free);
        self.free = Some(index);
        let data = slot.data.take().expect("a pipe's list leads to its packets only");
        let packet = slot.packet(data);
        Some(Due { time: slot.time, marked: slot.marked, next, packet })
    }
}

impl<P> Store<P> {
    /// Removes unmarked packets of a list, from `first` on, within the limit and before `end`. They
    /// already are a list, so their slots are freed together.
    #[inline]
    pub(crate) fn remove_run(
        &mut self,
        first: Option<StoreIndex>,
        end: Option<StoreIndex>,
        PopLimit { until, packets_max }: PopLimit,
        mut take: impl FnMut(Time, P),
    ) -> RemovedRun {
        let mut run = RemovedRun { next: first, packets: 0, bytes: 0 };
        let mut last = None;
        while let Some(index) = run.next
            && run.next != end
            && run.packets < packets_max
        {
            let slot = &mut self.slots[index.index()];
            if slot.time > until || slot.marked {
                break;
            }
            take(slot.time, slot.data.take().expect("a pipe's list leads to its packets only"));
            run.packets += 1;
            run.bytes += u64::from(slot.len);
            run.next = slot.next;
            last = Some(index);
        }
        if let Some(last) = last {
            self.slots[last.index()].next = std::mem::replace(&mut self.free, first);
        }
        run
    }
}

/// A removed packet, and the index of the packet behind it.
#[derive(Debug)]
pub(crate) struct Due<P> {
    pub(crate) time: Time,
    pub(crate) marked: bool,
    pub(crate) next: Option<StoreIndex>,
    pub(crate) packet: Packet<P>,
}

/// The number and bytes of removed packets, and the index of the packet behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedRun {
    pub(crate) next: Option<StoreIndex>,
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
}

impl StoreIndex {
    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize
    }
}
