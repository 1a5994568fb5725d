//! Watching single frames on their way through a network. What nobody watches costs nothing: every
//! method of [`Observer`] is empty by default and compiles away.

use crate::fate::Reason;
use crate::network::EdgeId;
use crate::pool::Frame;
use fastpath_link::Fate;
use fastpath_spec::{LinkId, NodeId};
use fastpath_units::Time;

/// One direction of a link of the network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PipeId {
    /// The link.
    pub link: LinkId,
    /// 0 leads from end 0 to end 1, 1 back.
    pub index: usize,
}

/// Where a frame can end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// One direction of a link.
    Pipe(PipeId),
    /// A router or switch.
    Node(NodeId),
}

/// A frame that leaves the pipe that had taken it.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'n> {
    /// When.
    pub at: Time,
    /// When it had left the queue, all of it sent; `None` if it never did, or if nobody
    /// [notes departures](Observer::notes_departures).
    pub departed: Option<Time>,
    /// Which pipe.
    pub pipe: PipeId,
    /// The frame.
    pub frame: &'n Frame,
    /// Its bytes.
    pub bytes: &'n [u8],
    /// What became of it there.
    pub fate: Fate,
}

/// Somebody who follows single frames (`--times`, a ledger). Does nothing by default, and `()`
/// compiles away.
pub trait Observer {
    /// False for who ignores everything: then nothing is prepared to be shown.
    const WATCHES: bool = true;

    /// True if it has to be told when frames leave queues: pipes that note that are slower.
    fn notes_departures(&self) -> bool {
        false
    }
    /// A frame entered at an edge.
    fn entered(&mut self, _at: Time, _edge: EdgeId, _frame: &Frame) {}
    /// A frame comes to a pipe.
    fn arrived(&mut self, _at: Time, _pipe: PipeId, _frame: &Frame) {}
    /// A frame left the pipe that had taken it; a discarded one ends with it.
    fn left(&mut self, _passage: Passage<'_>) {}
    /// A pipe did not take a frame, or a node discarded it; it ends with that.
    fn refused(&mut self, _at: Time, _place: Place, _frame: &Frame, _bytes: &[u8], _reason: Reason) {}
    /// A frame reached an edge.
    fn delivered(&mut self, _at: Time, _edge: EdgeId, _frame: &Frame) {}
    /// A frame was discarded, or kept by the router it was addressed to (no reason).
    fn ended(&mut self, _at: Time, _frame: &Frame, _reason: Option<Reason>) {}
}

impl Observer for () {
    const WATCHES: bool = false;
}

/// One after the other.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const WATCHES: bool = A::WATCHES || B::WATCHES;

    fn notes_departures(&self) -> bool {
        self.0.notes_departures() || self.1.notes_departures()
    }
    fn entered(&mut self, at: Time, edge: EdgeId, frame: &Frame) {
        self.0.entered(at, edge, frame);
        self.1.entered(at, edge, frame);
    }
    fn arrived(&mut self, at: Time, pipe: PipeId, frame: &Frame) {
        self.0.arrived(at, pipe, frame);
        self.1.arrived(at, pipe, frame);
    }
    fn left(&mut self, passage: Passage<'_>) {
        self.0.left(passage);
        self.1.left(passage);
    }
    fn refused(&mut self, at: Time, place: Place, frame: &Frame, bytes: &[u8], reason: Reason) {
        self.0.refused(at, place, frame, bytes, reason);
        self.1.refused(at, place, frame, bytes, reason);
    }
    fn delivered(&mut self, at: Time, edge: EdgeId, frame: &Frame) {
        self.0.delivered(at, edge, frame);
        self.1.delivered(at, edge, frame);
    }
    fn ended(&mut self, at: Time, frame: &Frame, reason: Option<Reason>) {
        self.0.ended(at, frame, reason);
        self.1.ended(at, frame, reason);
    }
}

/// Perhaps nobody.
impl<O: Observer> Observer for Option<O> {
    const WATCHES: bool = O::WATCHES;

    fn notes_departures(&self) -> bool {
        self.as_ref().is_some_and(O::notes_departures)
    }
    fn entered(&mut self, at: Time, edge: EdgeId, frame: &Frame) {
        self.iter_mut().for_each(|observer| observer.entered(at, edge, frame));
    }
    fn arrived(&mut self, at: Time, pipe: PipeId, frame: &Frame) {
        self.iter_mut().for_each(|observer| observer.arrived(at, pipe, frame));
    }
    fn left(&mut self, passage: Passage<'_>) {
        self.iter_mut().for_each(|observer| observer.left(passage));
    }
    fn refused(&mut self, at: Time, place: Place, frame: &Frame, bytes: &[u8], reason: Reason) {
        self.iter_mut().for_each(|observer| observer.refused(at, place, frame, bytes, reason));
    }
    fn delivered(&mut self, at: Time, edge: EdgeId, frame: &Frame) {
        self.iter_mut().for_each(|observer| observer.delivered(at, edge, frame));
    }
    fn ended(&mut self, at: Time, frame: &Frame, reason: Option<Reason>) {
        self.iter_mut().for_each(|observer| observer.ended(at, frame, reason));
    }
}
