//! The delay line of a pipe that is not plain: packets that have left the queue, each with an exit time.

use crate::packet::Held;
use fastpath_units::Time;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Packets under way that stay in order. Each puts an exit time of its own into a heap, and the earliest time
/// lets out the packet at the front, whoever drew it. So order is kept and the sum of all delays is what was
/// drawn: the mean is not inflated, as it would be by holding back whoever would overtake.
#[derive(Debug)]
pub(crate) struct Line<P> {
    flights: VecDeque<Held<P>>,
    exits: BinaryHeap<Reverse<Time>>,
}

impl<P> Default for Line<P> {
    fn default() -> Line<P> {
        Line { flights: VecDeque::new(), exits: BinaryHeap::new() }
    }
}

impl<P> Line<P> {
    /// Puts in a packet that leaves the queue now, and one more exit.
    pub(crate) fn push(&mut self, packet: Held<P>, exit: Time) {
        self.flights.push_back(packet);
        self.exits.push(Reverse(exit));
    }

    /// The next exit.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.exits.peek().map(|exit| exit.0)
    }

    /// Takes out the packet that leaves next, and when.
    pub(crate) fn pop(&mut self) -> Option<(Time, Held<P>)> {
        let Reverse(exit) = self.exits.pop()?;
        let flight = self.flights.pop_front()?;
        Some((exit, flight))
    }
}
