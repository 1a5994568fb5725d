//! Follows every frame of a replay from its capture to its end. Writes the rows of the times file,
//! and knows how many bytes of a frame were captured when a snap length cut it.
//!
//! A frame in the network is identified by its slot in the pool. Copies made inside the network
//! (flooding, fragments) are not followed: the row of an input frame is the fate of that frame.

use fastpath_net::{EdgeId, Frame, Observer, Reason};
use fastpath_units::Time;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

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
    /// Index of the first of `rows`.
    first: u64,
}

struct FrameRow {
    entered: Time,
    end: Option<FrameEnd>,
}

enum FrameEnd {
    Delivered(Time),
    Dropped(Reason),
    /// Consumed by the router it was addressed to.
    Absorbed,
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
    pub(crate) fn refused(&mut self, at: Time, reason: Reason) {
        self.rows.push_back(FrameRow { entered: at, end: Some(FrameEnd::Dropped(reason)) });
    }

    /// Writes and forgets the rows from the oldest to the first that is still open. `start` is the
    /// picosecond since 1970 at which the run began.
    pub(crate) fn write_closed(&mut self, start: u128, out: &mut impl Write) -> io::Result<()> {
        while let Some(FrameRow { entered, end: Some(end) }) = self.rows.front() {
            write_row(out, self.first, start, *entered, end)?;
            self.rows.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// Writes the remaining rows at the end of a run. Frames still in the network are `held`.
    pub(crate) fn write_rest(&mut self, start: u128, out: &mut impl Write) -> io::Result<()> {
        for row in self.rows.drain(..) {
            match row.end {
                Some(end) => write_row(out, self.first, start, row.entered, &end)?,
                None => writeln!(out, "{},{},held", self.first, absolute(start, row.entered))?,
            }
            self.first += 1;
        }
        Ok(())
    }

    fn close(&mut self, frame: &Frame, end: FrameEnd) {
        if let Some(index) = self.inside.remove(&frame.slot()) {
            self.rows[(index - self.first) as usize].end = Some(end);
        }
    }
}

impl Observer for Follower {
    fn entered(&mut self, at: Time, _edge: EdgeId, frame: &Frame) {
        self.inside.insert(frame.slot(), self.first + self.rows.len() as u64);
        self.rows.push_back(FrameRow { entered: at, end: None });
    }

    fn delivered(&mut self, at: Time, _edge: EdgeId, frame: &Frame) {
        self.close(frame, FrameEnd::Delivered(at));
    }

    fn ended(&mut self, _at: Time, frame: &Frame, reason: Option<Reason>) {
        self.cut.remove(&frame.slot());
        self.close(frame, reason.map_or(FrameEnd::Absorbed, FrameEnd::Dropped));
    }
}

/// Writes one line `index,in_ps,out_ps`. A frame that was not delivered has the reason in place of
/// `out_ps`.
fn write_row(out: &mut impl Write, index: u64, start: u128, entered: Time, end: &FrameEnd) -> io::Result<()> {
    let entered = absolute(start, entered);
    match end {
        FrameEnd::Delivered(at) => writeln!(out, "{index},{entered},{}", absolute(start, *at)),
        FrameEnd::Dropped(reason) => writeln!(out, "{index},{entered},{}", reason.name()),
        FrameEnd::Absorbed => writeln!(out, "{index},{entered},absorbed"),
    }
}

fn absolute(start: u128, at: Time) -> u128 {
    start + u128::from(at.as_ps())
}
