//! How far each part of a network may run: to the earliest time at which anything can come from
//! another part.
//!
//! What happens in part j at t reaches part i at t + d(j, i) at the earliest, where d is the length
//! of the shortest path of lookaheads from j to i. So part i may run up to the least next(j) +
//! d(j, i), over all j. Its own events count, too: they can come back to it on a cycle.
//!
//! All lookaheads are above 0, so the part with the earliest event always advances.

use crate::partition::Partition;
use fastpath_units::{Duration, Time};

/// A window is at least this long where the lookahead allows more. It bounds what parts hold for
/// each other.
const REACH_MIN: Duration = Duration::from_ms(10);

/// The distances between the parts of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows {
    count: usize,
    /// From each part to each; [`Duration::MAX`] without a path.
    distances: Vec<Duration>,
    reach: Duration,
}

/// What a part has before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartClock {
    /// Its next event; frames that are on their way to it count.
    pub next: Option<Time>,
    /// The next frame that will come from another part, of those that have not been passed on.
    pub awaited: Option<Time>,
}

impl PartClock {
    fn earliest(&self) -> Option<Time> {
        [self.next, self.awaited].into_iter().flatten().min()
    }
}

impl Windows {
    /// Computes the distances.
    pub fn new(partition: &Partition) -> Windows {
        let count = partition.count();
        let mut distances = vec![Duration::MAX; count * count];
        for cut in partition.cuts() {
            for index in 0..2 {
                let [from, to] = [index, 1 - index].map(|end| cut.parts[end]);
                let distance = &mut distances[from * count + to];
                *distance = cut.lookahead[index].min(*distance);
            }
        }
        for by in 0..count {
            for from in 0..count {
                for to in 0..count {
                    let around = distances[from * count + by].saturating_add(distances[by * count + to]);
                    let distance = &mut distances[from * count + to];
                    *distance = around.min(*distance);
                }
            }
        }
        let longest = distances.iter().copied().filter(|distance| *distance < Duration::MAX).max();
        Windows { count, distances, reach: longest.unwrap_or(REACH_MIN).max(REACH_MIN) }
    }

    /// Returns the length that no window exceeds.
    pub fn reach(&self) -> Duration {
        self.reach
    }

    /// Returns the end of the next window of each part, which is not part of it, and the earliest
    /// event of all. `None` if there is none.
    pub fn ends(&self, clocks: &[PartClock]) -> Option<(Time, Vec<Time>)> {
        let first = clocks.iter().filter_map(PartClock::earliest).min()?;
        let end = |part: usize| {
            let reached = clocks.iter().enumerate().filter_map(|(from, clock)| {
                Some(clock.earliest()?.saturating_add(self.distances[from * self.count + part]))
            });
            let end = reached.chain(clocks[part].awaited).min().unwrap_or(Time::MAX);
            end.min(first.saturating_add(self.reach))
        };
        Some((first, (0..self.count).map(end).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    fn at(ms: u64) -> Option<Time> {
        Some(Time::ZERO + Duration::from_ms(ms))
    }

    #[test]
    fn a_part_runs_to_what_can_reach_it_first() {
        // Three routers in a row, 3 ms and 5 ms apart.
        let text = "[host.a]\n[router.b]\n[host.c]\n[[link]]\nbetween = ['a', 'b']\ndelay = '3ms'\n\
            [[link]]\nbetween = ['b', 'c']\ndelay = '5ms'\n";
        let (topology, _) = fastpath_spec::parse(text).expect("a valid spec");
        let partition = Partition::new(&topology, NonZeroUsize::new(3).expect("3"));
        let windows = Windows::new(&partition);
        let next = |ms| PartClock { next: at(ms), awaited: None };
        let ends = |clocks: [PartClock; 3]| {
            let (first, ends) = windows.ends(&clocks)?;
            let ms = |time: Time| time.as_ps() / 1_000_000_000;
            Some((ms(first), ends.into_iter().map(ms).collect::<Vec<_>>()))
        };
        assert_eq!(ends([next(10), next(10), next(10)]), Some((10, vec![13, 13, 15])));
        // An idle part does not hold the others; what it is sent can come back.
        assert_eq!(
            ends([next(10), PartClock::default(), PartClock::default()]),
            Some((10, vec![16, 13, 18]))
        );
        // A frame that has not been passed on is awaited.
        let awaiting = PartClock { next: at(30), awaited: at(12) };
        assert_eq!(ends([next(10), awaiting, next(20)]), Some((10, vec![15, 12, 17])));
        assert_eq!(ends([PartClock::default(); 3]), None);
    }
}
