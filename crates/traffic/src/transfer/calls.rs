//! When the flows of a transfer want to be called.

use fastpath_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The pending calls of numbered flows, at most one for each.
#[derive(Clone, Debug)]
pub struct FlowCalls {
    /// Times at which flows want to be called. What is not in `awaited` is passed over.
    wishes: BinaryHeap<Reverse<(Time, usize)>>,
    /// By flow: the earliest of its wishes.
    awaited: Vec<Option<Time>>,
}

impl FlowCalls {
    /// Calls all of `flows` at `start`.
    pub fn at_start(flows: u32, start: Time) -> FlowCalls {
        let flows = flows as usize;
        FlowCalls {
            wishes: (0..flows).map(|flow| Reverse((start, flow))).collect(),
            awaited: vec![Some(start); flows],
        }
    }

    /// Returns when the next call is due, or earlier: a flow may want a later call by then.
    pub fn next_at(&self) -> Option<Time> {
        self.wishes.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns a flow whose call is due by `now`. Its call is not pending any more.
    pub fn due(&mut self, now: Time) -> Option<usize> {
        while let Some(Reverse((at, flow))) = self.wishes.peek().copied().filter(|wish| wish.0.0 <= now) {
            self.wishes.pop();
            if self.awaited[flow] == Some(at) {
                self.awaited[flow] = None;
                return Some(flow);
            }
        }
        None
    }

    /// Has a flow called at `next`, if it is not called earlier.
    pub fn call(&mut self, flow: usize, next: Option<Time>) {
        let Some(next) = next else { return };
        if self.awaited[flow].is_none_or(|awaited| next < awaited) {
            self.awaited[flow] = Some(next);
            self.wishes.push(Reverse((next, flow)));
        }
    }
}
