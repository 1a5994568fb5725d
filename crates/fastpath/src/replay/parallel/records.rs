//! What the observers of parts record, in an order from which the order of the whole network can be
//! restored.
//!
//! Within an instant a network does this: exits of pipes; frames that expire in routers, and the
//! exits that follow; scheduled changes, and the exits that follow; frames that enter, each with
//! the exits that follow it. Among the pipes with something to leave the one with the lowest number
//! comes first, until nothing is left ([`OrderKey`]). The events of one part at one instant do not
//! depend on those of another. So the records of each part are in order, and the one with the
//! lowest key of all parts is the next of the whole.

use fastpath_link::Fate;
use fastpath_net::{EdgeId, Location, PipeId, Reason};
use fastpath_units::Time;

/// The place of a record in the order of the whole network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct OrderKey {
    pub(super) at: Time,
    /// What the instant has come to: [`OrderKey::BEGIN`], [`OrderKey::CHANGED`], or the frame that
    /// has entered.
    pub(super) phase: u64,
    /// Odd: an expiry. Even: what follows it.
    pub(super) expiries: u32,
    /// The pipe, or the router in which frames expire.
    pub(super) source: u32,
    /// A pipe between two parts drops frames at its sender before others leave it.
    pub(super) side: PipeSide,
}

/// The part of a pipe in which something happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PipeSide {
    Sender,
    Receiver,
}

impl OrderKey {
    /// Before the scheduled changes of an instant.
    pub(super) const BEGIN: u64 = 0;
    /// After them.
    pub(super) const CHANGED: u64 = 1;

    /// The phase of a frame from captures, by its number.
    pub(super) fn entry(number: u64) -> u64 {
        2 + number
    }

    /// The phase of a packet of a flow: after the frames of captures.
    pub(super) fn packet(flow: usize) -> u64 {
        1 << 63 | flow as u64
    }
}

/// The frame that enters: its input, its length, and its number in its capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryNote {
    pub(super) input: usize,
    pub(super) len: usize,
    pub(super) capture_frame: Option<u64>,
}

/// What happened to a frame. Frames are identified by numbers that are unique among all parts
/// while they are in the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Event {
    Entered { edge: EdgeId, note: EntryNote },
    NotEntered { edge: EdgeId, note: EntryNote, reason: Reason },
    Arrived,
    Left { departed: Option<Time>, pipe: PipeId, fate: Fate, len: u32 },
    Refused { location: Location, reason: Reason, len: u32 },
    Delivered(EdgeId),
    Ended(Option<Reason>),
}

/// One thing that happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Record {
    pub(super) key: OrderKey,
    pub(super) frame: u32,
    pub(super) event: Event,
    /// The number of bytes of the frame in the batch.
    pub(super) bytes: u16,
}

/// What was recorded during a window, in order, and the bytes of the records one after another.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) bytes: Vec<u8>,
}
