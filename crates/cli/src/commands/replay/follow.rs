//! Follows every frame of a replay from its capture to its end: the rows of `--times`, and how much
//! of a frame that a snap length had cut is real.
//!
//! A frame is known by its slot in the pool while it is alive. Copies made inside (a switch that
//! floods, fragments) are not followed: the row of an input frame is the fate of that frame itself.

use fastpath_net::{EdgeId, Frame, Observer, Reason};
use fastpath_units::Time;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

/// The observer of a replay.
#[derive(Default)]
pub(crate) struct Follower {
    /// Frames inside, by slot, with the index of their row. Never iterated: its order reaches no
    /// output.
    inside: HashMap<u32, u64>,
    /// Captured bytes of the frames alive that were captured in part, by slot.
    cut: HashMap<u32, usize>,
    /// Rows not yet written, in the order of the input; the oldest may still be open.
    rows: VecDeque<Row>,
    /// Index of the first of `rows`.
    first: u64,
}

struct Row {
    entered: Time,
    end: Option<End>,
}

enum End {
    Delivered(Time),
    Dropped(Reason),
    /// Kept by the router it was addressed to.
    Absorbed,
}

impl Follower {
    /// Notes that only the first `captured` bytes of a frame about to enter are known.
    pub(crate) fn cut(&mut self, frame: &Frame, captured: usize) {
        self.cut.insert(frame.slot(), captured);
    }

    /// The known bytes of a delivered frame, which is about to be freed.
    pub(crate) fn captured(&mut self, frame: &Frame) -> usize {
        self.cut.remove(&frame.slot()).map_or(frame.len(), |captured| captured.min(frame.len()))
    }

    /// Notes an input frame that could not enter.
    pub(crate) fn refused(&mut self, at: Time, reason: Reason) {
        self.rows.push_back(Row { entered: at, end: Some(End::Dropped(reason)) });
    }

    /// Writes and forgets the rows from the oldest to the first that is still open. `start` is the
    /// picosecond of the captures' epoch at which the run began.
    pub(crate) fn write_closed(&mut self, start: u128, out: &mut impl Write) -> io::Result<()> {
        while let Some(Row { entered, end: Some(end) }) = self.rows.front() {
            write_row(out, self.first, start, *entered, end)?;
            self.rows.pop_front();
            self.first += 1;
        }
        Ok(())
    }

    /// Writes what is left at the end of a run: rows still open are of frames held inside.
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

    fn close(&mut self, frame: &Frame, end: End) {
        if let Some(index) = self.inside.remove(&frame.slot()) {
            self.rows[(index - self.first) as usize].end = Some(end);
        }
    }
}

impl Observer for Follower {
    fn entered(&mut self, at: Time, _edge: EdgeId, frame: &Frame) {
        self.inside.insert(frame.slot(), self.first + self.rows.len() as u64);
        self.rows.push_back(Row { entered: at, end: None });
    }

    fn delivered(&mut self, at: Time, _edge: EdgeId, frame: &Frame) {
        self.close(frame, End::Delivered(at));
    }

    fn ended(&mut self, _at: Time, frame: &Frame, reason: Option<Reason>) {
        self.cut.remove(&frame.slot());
        self.close(frame, reason.map_or(End::Absorbed, End::Dropped));
    }
}

/// One line of `index,in_ps,out_ps`; in place of the last, the reason why there is none.
fn write_row(out: &mut impl Write, index: u64, start: u128, entered: Time, end: &End) -> io::Result<()> {
    let entered = absolute(start, entered);
    match end {
        End::Delivered(at) => writeln!(out, "{index},{entered},{}", absolute(start, *at)),
        End::Dropped(reason) => writeln!(out, "{index},{entered},{}", reason.name()),
        End::Absorbed => writeln!(out, "{index},{entered},absorbed"),
    }
}

fn absolute(start: u128, at: Time) -> u128 {
    start + u128::from(at.as_ps())
}
