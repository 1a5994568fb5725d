//! The observer of a part: records what happens to frames, with its place in the order of the whole
//! network (`records.rs`).

use super::records::{Batch, EntryNote, Event, OrderKey, PipeSide, Record};
use fastpath_net::packet_log::SNAP_LEN;
use fastpath_net::{
    EdgeId, Frame, FramePool, FrameTag, Location, Observer, Partition, Passage, PipeId, Reason, Turn,
};
use fastpath_units::Time;
use std::collections::HashMap;

/// What a part needs of the observer of its network.
pub(super) trait PartObserver: Observer {
    /// A frame is about to enter at `at`; `phase` is its place among the frames that enter.
    fn entering(&mut self, at: Time, phase: u64, note: EntryNote);
    /// That frame could not enter.
    fn not_entered(&mut self, edge: EdgeId, reason: Reason);
    /// Only the first `captured` bytes of a frame that is about to enter are known.
    fn cut(&mut self, frame: &Frame, captured: usize);
    /// The known bytes of a delivered frame, which is about to be freed.
    fn captured(&mut self, frame: &Frame) -> usize;
    /// Exchanges an empty batch for what was recorded.
    fn take(&mut self, batch: &mut Batch);
}

/// Traffic alone needs no records.
impl PartObserver for () {
    fn entering(&mut self, _at: Time, _phase: u64, _note: EntryNote) {}

    fn not_entered(&mut self, _edge: EdgeId, _reason: Reason) {}

    fn cut(&mut self, _frame: &Frame, _captured: usize) {}

    fn captured(&mut self, frame: &Frame) -> usize {
        frame.len()
    }

    fn take(&mut self, _batch: &mut Batch) {}
}

/// See the head of this file.
pub(super) struct Tracker {
    part: u32,
    /// The number of parts.
    count: u32,
    /// Whether every frame is recorded on every link, for a per-packet log.
    logs: bool,
    /// By pipe: whether it comes from another part.
    inbound: Vec<bool>,
    /// The numbers of frames, by slot. Never iterated.
    inside: HashMap<u32, u32>,
    /// Known bytes of the frames that a snap length cut, by slot. Never iterated.
    cut: HashMap<u32, usize>,
    /// Numbers of frames that have ended here.
    free: Vec<u32>,
    /// Numbers given out so far.
    numbers: u32,
    key: OrderKey,
    note: EntryNote,
    batch: Batch,
}

/// Stands for no number, and for no cut.
const NONE: u32 = u32::MAX;

impl Tracker {
    /// An observer of one part of a partition.
    pub(super) fn new(partition: &Partition, part: usize, pipes: usize, logs: bool) -> Tracker {
        let mut inbound = vec![false; pipes];
        for cut in partition.cuts() {
            for index in 0..2 {
                inbound[2 * cut.link.0 as usize + index] = cut.parts[1 - index] == part;
            }
        }
        let (at, side) = (Time::ZERO, PipeSide::Sender);
        Tracker {
            part: part as u32,
            count: partition.count() as u32,
            logs,
            inbound,
            inside: HashMap::new(),
            cut: HashMap::new(),
            free: Vec::new(),
            numbers: 0,
            key: OrderKey { at, phase: OrderKey::BEGIN, expiries: 0, source: 0, side },
            note: EntryNote { input: 0, len: 0, capture_frame: None },
            batch: Batch::default(),
        }
    }

    fn number(&mut self, frame: &Frame) -> u32 {
        let Tracker { free, numbers, part, count, .. } = self;
        *self.inside.entry(frame.slot()).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                *numbers += 1;
                (*numbers - 1) * *count + *part
            })
        })
    }

    fn record(&mut self, frame: u32, event: Event, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(SNAP_LEN)];
        self.batch.bytes.extend_from_slice(bytes);
        self.batch.records.push(Record { key: self.key, frame, event, bytes: bytes.len() as u16 });
    }

    /// Comes to an instant.
    fn come_to(&mut self, at: Time) {
        if at > self.key.at {
            (self.key.at, self.key.phase, self.key.expiries) = (at, OrderKey::BEGIN, 0);
        }
    }

    fn end(&mut self, frame: &Frame, event: Event) {
        if let Some(number) = self.inside.remove(&frame.slot()) {
            self.record(number, event, &[]);
            self.free.push(number);
        }
    }
}

impl PartObserver for Tracker {
    fn entering(&mut self, at: Time, phase: u64, note: EntryNote) {
        self.key = OrderKey { at, phase, expiries: 0, source: 0, side: PipeSide::Sender };
        self.note = note;
    }

    fn not_entered(&mut self, edge: EdgeId, reason: Reason) {
        self.record(NONE, Event::NotEntered { edge, note: self.note, reason }, &[]);
    }

    fn cut(&mut self, frame: &Frame, captured: usize) {
        self.cut.insert(frame.slot(), captured);
    }

    fn captured(&mut self, frame: &Frame) -> usize {
        self.cut.remove(&frame.slot()).map_or(frame.len(), |captured| captured.min(frame.len()))
    }

    fn take(&mut self, batch: &mut Batch) {
        std::mem::swap(&mut self.batch, batch);
    }
}

impl Observer for Tracker {
    fn records_departures(&self) -> bool {
        self.logs
    }

    fn entered(&mut self, _at: Time, edge: EdgeId, frame: &Frame, _pool: &FramePool) {
        self.inside.remove(&frame.slot());
        let number = self.number(frame);
        self.record(number, Event::Entered { edge, note: self.note }, &[]);
    }

    fn arrived(&mut self, _at: Time, _pipe: PipeId, frame: &Frame) {
        if self.logs {
            let number = self.number(frame);
            self.record(number, Event::Arrived, &[]);
        }
    }

    fn left(&mut self, passage: Passage<'_>) {
        let Passage { at, departed, pipe, frame, pool, fate } = passage;
        self.come_to(at);
        self.key.expiries += self.key.expiries % 2;
        let number = 2 * pipe.link.0 + pipe.index as u32;
        let is_inbound = self.inbound[number as usize];
        self.key.source = number;
        self.key.side = if is_inbound { PipeSide::Receiver } else { PipeSide::Sender };
        if self.logs {
            let (number, len) = (self.number(frame), frame.len() as u32);
            self.record(number, Event::Left { departed, pipe, fate, len }, pool.bytes(frame));
        }
    }

    fn refused(&mut self, _at: Time, location: Location, frame: &Frame, pool: &FramePool, reason: Reason) {
        if self.logs {
            let (number, len) = (self.number(frame), frame.len() as u32);
            self.record(number, Event::Refused { location, reason, len }, pool.bytes(frame));
        }
    }

    fn delivered(&mut self, _at: Time, edge: EdgeId, frame: &Frame, _pool: &FramePool) {
        self.end(frame, Event::Delivered(edge));
    }

    fn ended(&mut self, _at: Time, frame: &Frame, reason: Option<Reason>) {
        self.cut.remove(&frame.slot());
        self.end(frame, Event::Ended(reason));
    }

    fn turned(&mut self, at: Time, turn: Turn) {
        self.come_to(at);
        match turn {
            Turn::Expiry(node) => {
                self.key.expiries |= 1;
                (self.key.source, self.key.side) = (node.0, PipeSide::Sender);
            }
            Turn::Changes => (self.key.phase, self.key.expiries) = (OrderKey::CHANGED, 0),
        }
    }

    fn crossed(&mut self, frame: &Frame) -> Option<FrameTag> {
        let number = self.inside.remove(&frame.slot()).unwrap_or(NONE);
        let captured = self.cut.remove(&frame.slot()).map_or(NONE, |captured| captured as u32);
        Some(FrameTag { number: u64::from(captured) << 32 | u64::from(number), arrived: Time::ZERO })
    }

    fn joined(&mut self, frame: &Frame, FrameTag { number, .. }: FrameTag) {
        let (captured, number) = ((number >> 32) as u32, number as u32);
        if number != NONE {
            self.inside.insert(frame.slot(), number);
        }
        if captured != NONE {
            self.cut.insert(frame.slot(), captured as usize);
        }
    }
}
