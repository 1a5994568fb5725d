//! Observation of single frames in a network. Unused observation has no cost: all methods of
//! [`Observer`] are empty by default and are removed by the compiler. An observer that can be idle
//! costs the network a test while it is.

use crate::fate::Reason;
use crate::id::{EdgeId, Location, PipeId};
use crate::pool::{Frame, FramePool};
use fastpath_link::Fate;
use fastpath_spec::{NodeId, Topology};
use fastpath_units::Time;

/// A frame that leaves a pipe.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'n> {
    /// The exit time.
    pub at: Time,
    /// The time at which the frame left the queue, after its last byte was sent. `None` if it never
    /// left the queue, or if [departures are not recorded](Observer::records_departures).
    pub departed: Option<Time>,
    /// The pipe.
    pub pipe: PipeId,
    /// The frame.
    pub frame: &'n Frame,
    /// The pool with the bytes of the frame.
    pub pool: &'n FramePool,
    /// The fate of the frame in the pipe.
    pub fate: Fate,
}

/// What the network turns to within an instant, beside the exits of pipes and the frames that
/// enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Frames that wait in this router expire.
    Expiry(NodeId),
    /// Links change by schedule.
    Changes,
}

/// What an observer knows a frame by that passes from one part of a network to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameTag {
    /// A number of the observer's choice.
    pub number: u64,
    /// When the frame arrived at the pipe that it leaves; [`Time::ZERO`] if that is not known.
    pub arrived: Time,
}

/// An observer of single frames, for example `--times` or a per-packet log. All methods do nothing
/// by default. The observer `()` has no cost.
pub trait Observer {
    /// Whether the observer identifies frames by their slots. Each frame must then have its own
    /// bytes ([`Frame::has_own_bytes`]) when it enters.
    const TRACKS_FRAMES: bool = true;

    /// Returns whether the observer wants calls at the moment. If not, the network skips their
    /// preparation and moves frames in runs.
    fn is_active(&self) -> bool {
        true
    }
    /// Returns whether an active observer wants the frames that leave a pipe or are dropped there.
    fn watches(&self, _pipe: PipeId) -> bool {
        self.is_active()
    }
    /// Returns whether the network records when frames leave queues. This slows down all pipes.
    fn records_departures(&self) -> bool {
        false
    }
    /// A frame entered at an edge.
    fn entered(&mut self, _at: Time, _edge: EdgeId, _frame: &Frame, _pool: &FramePool) {}
    /// A frame arrived at a pipe.
    fn arrived(&mut self, _at: Time, _pipe: PipeId, _frame: &Frame) {}
    /// A frame left a pipe. [`Observer::ended`] follows if the pipe dropped it.
    fn left(&mut self, _passage: Passage<'_>) {}
    /// A copy of the frame that has just left a pipe leaves with it.
    fn copied(&mut self, _passage: Passage<'_>) {}
    /// A pipe did not accept a frame, or a node dropped it. [`Observer::ended`] follows.
    fn refused(
        &mut self,
        _at: Time,
        _location: Location,
        _frame: &Frame,
        _pool: &FramePool,
        _reason: Reason,
    ) {
    }
    /// A frame reached an edge.
    fn delivered(&mut self, _at: Time, _edge: EdgeId, _frame: &Frame, _pool: &FramePool) {}
    /// A frame was dropped, or consumed by the router to which it was addressed (no reason).
    fn ended(&mut self, _at: Time, _frame: &Frame, _reason: Option<Reason>) {}
    /// The topology changed: pipes, nodes and edges are numbered as in this one from now on.
    fn rearranged(&mut self, _topology: &Topology) {}
    /// The driver lets the network rest at `now`: what was collected for another thread is passed
    /// on if it has waited long enough, or if nothing moves soon (`is_quiet`).
    fn flush(&mut self, _now: Time, _is_quiet: bool) {}
    /// The network turns to something else at `at`.
    fn turned(&mut self, _at: Time, _turn: Turn) {}
    /// A frame passes on to another part of the network. Returns what the observer there needs to
    /// know it by. Of a pair, one observer at most gives a tag.
    fn crossed(&mut self, _frame: &Frame) -> Option<FrameTag> {
        None
    }
    /// A frame comes from another part, whose observer has returned `tag`.
    fn joined(&mut self, _frame: &Frame, _tag: FrameTag) {}
}

impl Observer for () {
    const TRACKS_FRAMES: bool = false;

    fn is_active(&self) -> bool {
        false
    }
}

/// Calls both observers in order.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const TRACKS_FRAMES: bool = A::TRACKS_FRAMES || B::TRACKS_FRAMES;

    fn is_active(&self) -> bool {
        self.0.is_active() || self.1.is_active()
    }
    fn watches(&self, pipe: PipeId) -> bool {
        self.0.watches(pipe) || self.1.watches(pipe)
    }
    fn records_departures(&self) -> bool {
        self.0.records_departures() || self.1.records_departures()
    }
    fn entered(&mut self, at: Time, edge: EdgeId, frame: &Frame, pool: &FramePool) {
        self.0.entered(at, edge, frame, pool);
        self.1.entered(at, edge, frame, pool);
    }
    fn arrived(&mut self, at: Time, pipe: PipeId, frame: &Frame) {
        self.0.arrived(at, pipe, frame);
        self.1.arrived(at, pipe, frame);
    }
    fn left(&mut self, passage: Passage<'_>) {
        self.0.left(passage);
        self.1.left(passage);
    }
    fn copied(&mut self, passage: Passage<'_>) {
        self.0.copied(passage);
        self.1.copied(passage);
    }
    fn refused(&mut self, at: Time, location: Location, frame: &Frame, pool: &FramePool, reason: Reason) {
        self.0.refused(at, location, frame, pool, reason);
        self.1.refused(at, location, frame, pool, reason);
    }
    fn delivered(&mut self, at: Time, edge: EdgeId, frame: &Frame, pool: &FramePool) {
        self.0.delivered(at, edge, frame, pool);
        self.1.delivered(at, edge, frame, pool);
    }
    fn ended(&mut self, at: Time, frame: &Frame, reason: Option<Reason>) {
        self.0.ended(at, frame, reason);
        self.1.ended(at, frame, reason);
    }
    fn rearranged(&mut self, topology: &Topology) {
        self.0.rearranged(topology);
        self.1.rearranged(topology);
    }
    fn flush(&mut self, now: Time, is_quiet: bool) {
        self.0.flush(now, is_quiet);
        self.1.flush(now, is_quiet);
    }
    fn turned(&mut self, at: Time, turn: Turn) {
        self.0.turned(at, turn);
        self.1.turned(at, turn);
    }
    fn crossed(&mut self, frame: &Frame) -> Option<FrameTag> {
        let tag = self.0.crossed(frame);
        self.1.crossed(frame).or(tag)
    }
    fn joined(&mut self, frame: &Frame, tag: FrameTag) {
        self.0.joined(frame, tag);
        self.1.joined(frame, tag);
    }
}

/// Calls the observer if there is one.
impl<O: Observer> Observer for Option<O> {
    const TRACKS_FRAMES: bool = O::TRACKS_FRAMES;

    fn is_active(&self) -> bool {
        self.as_ref().is_some_and(O::is_active)
    }
    fn watches(&self, pipe: PipeId) -> bool {
        self.as_ref().is_some_and(|observer| observer.watches(pipe))
    }
    fn records_departures(&self) -> bool {
        self.as_ref().is_some_and(O::records_departures)
    }
    fn entered(&mut self, at: Time, edge: EdgeId, frame: &Frame, pool: &FramePool) {
        self.iter_mut().for_each(|observer| observer.entered(at, edge, frame, pool));
    }
    fn arrived(&mut self, at: Time, pipe: PipeId, frame: &Frame) {
        self.iter_mut().for_each(|observer| observer.arrived(at, pipe, frame));
    }
    fn left(&mut self, passage: Passage<'_>) {
        self.iter_mut().for_each(|observer| observer.left(passage));
    }
    fn copied(&mut self, passage: Passage<'_>) {
        self.iter_mut().for_each(|observer| observer.copied(passage));
    }
    fn refused(&mut self, at: Time, location: Location, frame: &Frame, pool: &FramePool, reason: Reason) {
        self.iter_mut().for_each(|observer| observer.refused(at, location, frame, pool, reason));
    }
    fn delivered(&mut self, at: Time, edge: EdgeId, frame: &Frame, pool: &FramePool) {
        self.iter_mut().for_each(|observer| observer.delivered(at, edge, frame, pool));
    }
    fn ended(&mut self, at: Time, frame: &Frame, reason: Option<Reason>) {
        self.iter_mut().for_each(|observer| observer.ended(at, frame, reason));
    }
    fn rearranged(&mut self, topology: &Topology) {
        self.iter_mut().for_each(|observer| observer.rearranged(topology));
    }
    fn flush(&mut self, now: Time, is_quiet: bool) {
        self.iter_mut().for_each(|observer| observer.flush(now, is_quiet));
    }
    fn turned(&mut self, at: Time, turn: Turn) {
        self.iter_mut().for_each(|observer| observer.turned(at, turn));
    }
    fn crossed(&mut self, frame: &Frame) -> Option<FrameTag> {
        self.as_mut()?.crossed(frame)
    }
    fn joined(&mut self, frame: &Frame, tag: FrameTag) {
        self.iter_mut().for_each(|observer| observer.joined(frame, tag));
    }
}
