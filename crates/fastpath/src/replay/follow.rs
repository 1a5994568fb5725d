//! Follows every frame of a replay from its entry to its end: one row per frame, and how many bytes
//! of a frame were captured when a snap length cut it. `rows.rs` stores the rows, `pairs.rs` counts
//! the delays between hosts.
//!
//! A frame in the network is identified by its slot in the pool. Copies made inside the network
//! (flooding, fragments) are not followed: the row of an input frame is the fate of that frame.

use super::pairs::Pairs;
use super::rows::{FrameEnd, FrameRow, Rows};
use crate::error::Result;
use fastpath_net::{EdgeId, Frame, FramePool, Observer, Reason};
use fastpath_units::Time;
use std::collections::{HashMap, VecDeque};

/// The observer of a replay.
#[derive(Default)]
pub(crate) struct Follower {
    /// Frames in the network: slot to index of the row. Never iterated, so its order reaches no
    /// output.
    inside: HashMap<u32, u64>,
    /// Captured bytes of the frames in the network that a snap length cut, by slot.
    cut: HashMap<u32, usize>,
    /// Rows not yet written, in the order of the input. The oldest may still be open.
    rows: VecDeque<FrameRow>,
    /// The number of rows before the first of `rows`.
    first: u64,
    /// The number in its capture of the frame that enters next, if it has one.
    pub(super) capture_frame: Option<u64>,
    /// The delays of delivered frames.
    pub(super) pairs: Pairs,
}

impl Follower {
    /// Notes that only the first `captured` bytes of a frame that is about to enter are known.
    pub(crate) fn cut(&mut self, frame: &Frame, captured: usize) {
        self.cut.insert(frame.slot(), captured);
    }

    /// Returns the number of known bytes of a delivered frame, which is about to be freed.
    pub(crate) fn captured(&mut self, frame: &Frame) -> usize {
        self.cut.remove(&frame.slot()).map_or(frame.len(), |captured| captured.min(frame.len()))
    }

    /// Notes an input frame that could not enter.
    pub(crate) fn refused(&mut self, at: Time, edge: EdgeId, reason: Reason) {
        let capture_frame = self.capture_frame.take();
        let end = Some(FrameEnd::Dropped(reason));
        self.rows.push_back(FrameRow { entered: at, edge, capture_frame, end });
    }

    /// Stores and forgets the rows from the oldest to the first that is still open.
    pub(super) fn store_closed(&mut self, rows: &mut Rows) -> Result<()> {
        while let Some(row) = self.rows.pop_front_if(|row| row.end.is_some()) {
            self.first += 1;
            rows.store(self.first, &row)?;
        }
        Ok(())
    }

    /// Stores the remaining rows at the end of a run.
    pub(super) fn store_rest(&mut self, rows: &mut Rows) -> Result<()> {
        for row in self.rows.drain(..) {
            self.first += 1;
            rows.store(self.first, &row)?;
        }
        Ok(())
    }

    /// Notes that a frame entered.
    pub(super) fn open(&mut self, at: Time, edge: EdgeId, slot: u32) {
        self.inside.insert(slot, self.first + self.rows.len() as u64);
        let capture_frame = self.capture_frame.take();
        self.rows.push_back(FrameRow { entered: at, edge, capture_frame, end: None });
    }

    /// Notes the end of a frame, if it is followed.
    pub(super) fn close(&mut self, slot: u32, end: FrameEnd) {
        if let Some(index) = self.inside.remove(&slot) {
            let row = &mut self.rows[(index - self.first) as usize];
            row.end = Some(end);
            if let FrameEnd::Delivered(at, exit) = end {
                self.pairs.add(row.edge, exit, at.since(row.entered));
            }
        }
    }
}

impl Observer for Follower {
    fn entered(&mut self, at: Time, edge: EdgeId, frame: &Frame, _pool: &FramePool) {
        self.open(at, edge, frame.slot());
    }

    fn delivered(&mut self, at: Time, edge: EdgeId, frame: &Frame, _pool: &FramePool) {
        self.close(frame.slot(), FrameEnd::Delivered(at, edge));
    }

    fn ended(&mut self, _at: Time, frame: &Frame, reason: Option<Reason>) {
        self.cut.remove(&frame.slot());
        self.close(frame.slot(), reason.map_or(FrameEnd::Absorbed, FrameEnd::Dropped));
    }
}
