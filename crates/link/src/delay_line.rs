//! The delay line of a general pipe: packets that have left the queue, each with an exit time.

use crate::impairment::Reorder;
use crate::packet::{DropReason, Fate, Held};
use fastpath_units::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A packet in the delay line.
#[derive(Debug)]
pub(crate) struct Flight<P> {
    /// When it left the queue; `None` if that was in a fast pipe, which does not record it.
    pub(crate) departed: Option<Time>,
    pub(crate) packet: Held<P>,
    pub(crate) fate: Fate,
    /// Whether this is a copy of a packet that has left.
    pub(crate) is_copy: bool,
}

/// Packets in the delay line.
///
/// Where order is kept, every packet adds its exit time to a heap, and the earliest exit time
/// releases the packet at the front, whichever packet drew that time. So the order is kept and the
/// sum of all delays is the sum of the draws. Holding back packets that would overtake would
/// inflate the mean. Where packets may overtake, each keeps the exit time it drew.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    in_order: VecDeque<(u64, Flight<P>)>,
    exits: BinaryHeap<Reverse<Time>>,
    loose: BinaryHeap<Loose<P>>,
    /// Number of packets added so far.
    sent: u64,
    /// The highest number among the packets that have left.
    newest_out: u64,
}

/// A packet that keeps its own exit time. The greatest one leaves first.
#[derive(Debug)]
struct Loose<P> {
    exit: Time,
    number: u64,
    order: Reorder,
    flight: Flight<P>,
}

impl<P> Default for DelayLine<P> {
    fn default() -> DelayLine<P> {
        DelayLine {
            in_order: VecDeque::new(),
            exits: BinaryHeap::new(),
            loose: BinaryHeap::new(),
            sent: 0,
            newest_out: 0,
        }
    }
}

impl<P> DelayLine<P> {
    /// Adds a packet that leaves the queue, with one exit time.
    pub(crate) fn push(&mut self, flight: Flight<P>, exit: Time, order: Reorder) {
        self.sent += 1;
        let number = self.sent;
        match order {
            Reorder::Never => {
                self.in_order.push_back((number, flight));
                self.exits.push(Reverse(exit));
            }
            Reorder::Allow | Reorder::Drop => self.loose.push(Loose { exit, number, order, flight }),
        }
    }

    /// Adds a copy of a packet that has left. A copy makes no other packet late.
    pub(crate) fn push_copy(&mut self, packet: Held<P>, exit: Time) {
        let flight =
            Flight { departed: None, packet, fate: Fate::Delivered { marked: false }, is_copy: true };
        self.loose.push(Loose { exit, number: 0, order: Reorder::Allow, flight });
    }

    /// Returns the next exit.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let in_order = self.exits.peek().map(|exit| exit.0);
        in_order.into_iter().chain(self.loose.peek().map(|loose| loose.exit)).min()
    }

    /// Removes the packet that leaves next and returns it with its exit time.
    pub(crate) fn pop(&mut self) -> Option<(Time, Flight<P>)> {
        let next = self.next_at()?;
        let (number, order, mut flight) = if self.exits.peek() == Some(&Reverse(next)) {
            self.exits.pop();
            let (number, flight) = self.in_order.pop_front()?;
            (number, Reorder::Never, flight)
        } else {
            let Loose { number, order, flight, .. } = self.loose.pop()?;
            (number, order, flight)
        };
        if order == Reorder::Drop && number < self.newest_out {
            flight.fate = Fate::Dropped(DropReason::Late);
        }
        self.newest_out = self.newest_out.max(number);
        Some((next, flight))
    }
}

impl<P> Ord for Loose<P> {
    fn cmp(&self, other: &Loose<P>) -> Ordering {
        (other.exit, other.number).cmp(&(self.exit, self.number))
    }
}

impl<P> PartialOrd for Loose<P> {
    fn partial_cmp(&self, other: &Loose<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Loose<P> {
    fn eq(&self, other: &Loose<P>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Loose<P> {}
