//! The packets that wait in plain pipes: one store for all pipes of a set, each pipe a list in it.
//!
//! ```text
//!   slots   │ (nobody's) │ a1 │ b1 │ a2 │ –  │ a3 │ …        pipe a: a1 → a2 → a3      free: – → …
//! ```
//!
//! A pipe that holds nothing takes nothing. A freed slot is the next to be used, while it is still
//! in the cache.

use crate::packet::Packet;
use fastpath_units::Time;
use std::num::NonZeroU32;

/// A slot's place in the store, never the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(NonZeroU32);

/// How far one call may take packets out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PopLimit {
    /// Packets that leave after this instant stay.
    pub until: Time,
    /// The largest number of packets taken.
    pub packets_max: usize,
}

/// Slots that are reserved at once at most: address space, which costs nothing until it is used.
const RESERVED_MAX: usize = 1 << 22;

/// A packet as it waits: the fields of [`Packet`] and of its fate, laid flat to be small. With a
/// payload of eight bytes two of them share a cache line.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    /// Arrival while queued, exit once in the delay line.
    pub(crate) time: Time,
    /// The one behind it.
    pub(crate) next: Option<Place>,
    pub(crate) len: u32,
    flow: u32,
    traffic_class: u8,
    pub(crate) marked: bool,
    /// `None` while the slot is free.
    data: Option<P>,
}

impl<P> Waiting<P> {
    /// `packet`, arrived at `time`; `marked` if its ECN CE was set here.
    #[inline]
    pub(crate) fn new(time: Time, packet: Packet<P>, marked: bool) -> Waiting<P> {
        let Packet { len, flow, traffic_class, data } = packet;
        Waiting { time, next: None, len, flow, traffic_class, marked, data: Some(data) }
    }
}

#[derive(Debug)]
pub(crate) struct Store<P> {
    slots: Vec<Waiting<P>>,
    free: Option<Place>,
}

impl<P> Store<P> {
    /// A store that does not have to move before it holds more than `packets`.
    pub(crate) fn new(packets: usize) -> Store<P> {
        Store { slots: Vec::with_capacity(packets.min(RESERVED_MAX) + 1), free: None }
    }

    #[inline]
    pub(crate) fn insert(&mut self, packet: Waiting<P>) -> Place {
        match self.free {
            Some(place) => {
                let slot = &mut self.slots[place.index()];
                self.free = slot.next;
                *slot = packet;
                place
            }
            None => {
                if self.slots.is_empty() {
                    self.begin();
                }
                let number = u32::try_from(self.slots.len()).ok().and_then(NonZeroU32::new);
                self.slots.push(packet);
                Place(number.expect("fewer than 2³² packets are held"))
            }
        }
    }

    /// The first slot is nobody's, so that a place is an index and `None` takes no room. It comes
    /// with the first packet: an idle network takes no memory for packets.
    #[cold]
    fn begin(&mut self) {
        let (time, next, data) = (Time::ZERO, None, None);
        self.slots.push(Waiting { time, next, len: 0, flow: 0, traffic_class: 0, marked: false, data });
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> &Waiting<P> {
        &self.slots[place.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> &mut Waiting<P> {
        &mut self.slots[place.index()]
    }

    /// Takes a packet out; panics if there is none.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place) -> Packet<P> {
        let slot = &mut self.slots[place.index()];
        slot.next = self.free;
        self.free = Some(place);
        let data = slot.data.take().expect("a pipe's list leads to its packets only");
        Packet { len: slot.len, flow: slot.flow, traffic_class: slot.traffic_class, data }
    }

    /// Takes a packet out whose time is not after `until`.
    #[inline]
    pub(crate) fn remove_due(&mut self, place: Place, until: Time) -> Option<Due<P>> {
        let slot = &mut self.slots[place.index()];
        if slot.time > until {
            return None;
        }
        let next = std::mem::replace(&mut slot.next, self.free);
        self.free = Some(place);
        let data = slot.data.take().expect("a pipe's list leads to its packets only");
        let packet = Packet { len: slot.len, flow: slot.flow, traffic_class: slot.traffic_class, data };
        Some(Due { time: slot.time, marked: slot.marked, next, packet })
    }
}

impl<P> Store<P> {
    /// Takes out the unmarked packets of a list whose time is not after `until`, from `first` on:
    /// `most` at most, and none from `end` on. They are a list already, so their slots become free
    /// all at once.
    #[inline]
    pub(crate) fn remove_run(
        &mut self,
        first: Option<Place>,
        end: Option<Place>,
        PopLimit { until, packets_max }: PopLimit,
        mut take: impl FnMut(Time, P),
    ) -> Run {
        let mut run = Run { next: first, packets: 0, bytes: 0 };
        let mut last = None;
        while let Some(place) = run.next
            && run.next != end
            && run.packets < packets_max
        {
            let slot = &mut self.slots[place.index()];
            if slot.time > until || slot.marked {
                break;
            }
            take(slot.time, slot.data.take().expect("a pipe's list leads to its packets only"));
            run.packets += 1;
            run.bytes += u64::from(slot.len);
            run.next = slot.next;
            last = Some(place);
        }
        if let Some(last) = last {
            self.slots[last.index()].next = std::mem::replace(&mut self.free, first);
        }
        run
    }
}

/// A packet that was taken out, and who is behind it.
#[derive(Debug)]
pub(crate) struct Due<P> {
    pub(crate) time: Time,
    pub(crate) marked: bool,
    pub(crate) next: Option<Place>,
    pub(crate) packet: Packet<P>,
}

/// What was taken out, and who is the first behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) next: Option<Place>,
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
}

impl Place {
    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize
    }
}
