//! What workers pass to each other between two windows: the state of their parts, frames and
//! entries. There are two sides: while a window runs, workers fill one, and read the other.

use super::barrier::Barrier;
use super::records::Batch;
use fastpath_net::{Crossings, EdgeId, PartClock, Windows};
use fastpath_units::{Duration, Time};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A frame of a capture or an array that enters a part.
#[derive(Debug)]
pub(super) struct EntryFrame {
    /// When it enters.
    pub(super) at: Time,
    /// Its number among all entries.
    pub(super) number: u64,
    /// The input it comes from.
    pub(super) input: usize,
    pub(super) edge: EdgeId,
    /// Its number in its capture.
    pub(super) capture_frame: Option<u64>,
    pub(super) wire_len: usize,
    pub(super) data: Vec<u8>,
}

/// What one part sends to another.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) crossings: Crossings,
    pub(super) entries: Vec<EntryFrame>,
}

/// The state of a part after a window.
#[derive(Clone, Debug, Default)]
pub(super) struct PartState {
    /// Its next event.
    pub(super) next: Option<Time>,
    /// By part: the next frame that it will pass on, of those that it has not.
    pub(super) awaited: Vec<Option<Time>>,
    /// By part: the first frame that it has sent there.
    pub(super) mailed: Vec<Option<Time>>,
    /// The next change of a link or expiry.
    pub(super) turn: Option<Time>,
    /// Whether no frame moves in it.
    pub(super) is_quiescent: bool,
    /// Whether nothing enters it any more.
    pub(super) has_inputs: bool,
    /// The frames in it, if a trace repeats for ever.
    pub(super) held: u64,
    pub(super) repeat: Option<Duration>,
    /// The next frame of a capture that has not been read.
    pub(super) unread: Option<Time>,
    /// Whether the run ends because of this part.
    pub(super) has_failed: bool,
}

/// What all workers share.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) barrier: Barrier,
    count: usize,
    sides: [Side; 2],
}

#[derive(Debug)]
struct Side {
    states: Vec<Mutex<PartState>>,
    /// From each part to each.
    mail: Vec<Mutex<Mail>>,
    /// What the observer of each part has recorded.
    batches: Vec<Mutex<Batch>>,
}

/// How the run goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum WindowPlan {
    /// The ends of the windows of all parts.
    Run(Vec<Time>),
    /// Nothing is left.
    End,
    /// A part has failed.
    Fail,
    /// The next event is at the end of time, after which no window can end.
    EndOfTime,
}

/// Since when no frame has moved, in a network with traces that repeat for ever. Each worker comes
/// to the same conclusions.
#[derive(Debug, Default)]
pub(super) struct Stillness(Option<Time>);

impl Exchange {
    /// An exchange between `count` parts.
    pub(super) fn new(count: usize) -> Exchange {
        let side = || Side {
            states: (0..count).map(|_| Mutex::default()).collect(),
            mail: (0..count * count).map(|_| Mutex::default()).collect(),
            batches: (0..count).map(|_| Mutex::default()).collect(),
        };
        Exchange { barrier: Barrier::new(count), count, sides: [side(), side()] }
    }

    /// The state of a part.
    pub(super) fn state(&self, side: usize, part: usize) -> MutexGuard<'_, PartState> {
        lock(&self.sides[side].states[part])
    }

    /// The mail from one part to another.
    pub(super) fn mail(&self, side: usize, from: usize, to: usize) -> MutexGuard<'_, Mail> {
        lock(&self.sides[side].mail[from * self.count + to])
    }

    /// The records of a part.
    pub(super) fn batch(&self, side: usize, part: usize) -> MutexGuard<'_, Batch> {
        lock(&self.sides[side].batches[part])
    }

    /// Decides from the states of all parts how the run goes on.
    pub(super) fn plan(&self, side: usize, windows: &Windows, still: &mut Stillness) -> WindowPlan {
        let states: Vec<PartState> = (0..self.count).map(|part| self.state(side, part).clone()).collect();
        plan(&states, windows, still)
    }
}

/// A worker that panics aborts the barrier, so what it leaves behind is not used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn plan(states: &[PartState], windows: &Windows, still: &mut Stillness) -> WindowPlan {
    if states.iter().any(|state| state.has_failed) {
        return WindowPlan::Fail;
    }
    let earliest = |times: &dyn Fn(&PartState) -> Option<Time>| states.iter().filter_map(times).min();
    let clocks: Vec<PartClock> = (0..states.len())
        .map(|part| {
            let mailed = earliest(&|state| state.mailed[part]);
            PartClock {
                next: [states[part].next, mailed].into_iter().flatten().min(),
                awaited: earliest(&|state| state.awaited[part]),
            }
        })
        .collect();
    let unread = earliest(&|state| state.unread);
    let Some((first, mut ends)) = windows.ends(&clocks) else {
        return match unread {
            Some(unread) => WindowPlan::Run(vec![unread; states.len()]),
            None => WindowPlan::End,
        };
    };
    if first == Time::MAX {
        return WindowPlan::EndOfTime;
    }
    if let Some(unread) = unread {
        ends.iter_mut().for_each(|end| *end = unread.min(*end));
    }
    // As `ReplayRun::drain`: traces that repeat for ever end with the frames.
    let drains = unread.is_none() && !states.iter().any(|state| state.has_inputs);
    let repeat = states.iter().filter_map(|state| state.repeat).max().filter(|_| drains);
    let Some(round) = repeat else { return WindowPlan::Run(ends) };
    let is_mailed = states.iter().any(|state| state.mailed.iter().any(Option::is_some));
    let just_first = first.saturating_add(Duration::from_ps(1));
    if !is_mailed && states.iter().all(|state| state.is_quiescent) {
        let since = *still.0.get_or_insert(first);
        let waited = first.since(since) > round.saturating_add(round);
        if waited || states.iter().all(|state| state.held == 0) {
            return WindowPlan::End;
        }
        return WindowPlan::Run(vec![just_first; states.len()]);
    }
    still.0 = None;
    // The whole network looks at its frames before each turn.
    if let Some(turn) = earliest(&|state| state.turn) {
        ends.iter_mut().for_each(|end| *end = turn.max(just_first).min(*end));
    }
    WindowPlan::Run(ends)
}
