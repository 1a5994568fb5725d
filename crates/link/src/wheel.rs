//! The pending times of many pipes, in exact order.

use fastpath_units::Time;
use std::collections::BTreeSet;

/// For each of `pipes` pipes at most one pending time; out they come by time, then by number.
#[derive(Debug)]
pub struct Wheel {
    pending: Vec<Option<Time>>,
    order: BTreeSet<(Time, u32)>,
}

impl Wheel {
    /// A wheel for pipes numbered `0..pipes`, none of them pending.
    pub fn new(pipes: usize) -> Wheel {
        Wheel { pending: vec![None; pipes], order: BTreeSet::new() }
    }

    /// Makes `at` the pending time of pipe `id`, in place of what it was. Panics if `id` is not one of the
    /// wheel's pipes.
    pub fn schedule(&mut self, id: u32, at: Time) {
        self.cancel(id);
        self.pending[id as usize] = Some(at);
        self.order.insert((at, id));
    }

    /// Forgets the pending time of pipe `id`, if it has one.
    pub fn cancel(&mut self, id: u32) {
        if let Some(old) = self.pending[id as usize].take() {
            self.order.remove(&(old, id));
        }
    }

    /// The earliest pending time.
    pub fn next_at(&self) -> Option<Time> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Takes the earliest pending time off the wheel if it is not after `now`, with the pipe it belongs to.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        if self.next_at()? > now {
            return None;
        }
        let (at, id) = self.order.pop_first()?;
        self.pending[id as usize] = None;
        Some((at, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_come_out_by_time_and_then_by_number() {
        let mut wheel = Wheel::new(4);
        for (id, at) in [(3, 20), (2, 10), (1, 20), (0, 30)] {
            wheel.schedule(id, Time::from_ps(at));
        }
        wheel.schedule(0, Time::from_ps(10));
        wheel.cancel(3);
        assert_eq!(wheel.pop_due(Time::from_ps(9)), None);
        let out: Vec<_> = std::iter::from_fn(|| wheel.pop_due(Time::from_ps(20))).collect();
        assert_eq!(out, [(Time::from_ps(10), 0), (Time::from_ps(10), 2), (Time::from_ps(20), 1)]);
        assert_eq!(wheel.next_at(), None);
    }
}
