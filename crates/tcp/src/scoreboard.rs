//! The segments that are sent and not acknowledged: which have arrived, which are lost, which were
//! sent again (RFC 2018, RFC 6675 §3), and the most recent of those that arrived (RFC 8985).
//!
//! ```text
//!  una                                            next
//!   │ lost │ sacked │ sent again │ … │ in flight │
//! ```

use crate::segment::StreamRange;
use fastpath_units::{Duration, Time};
use std::collections::{BTreeSet, VecDeque};

/// A segment that is sent and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outstanding {
    /// Its bytes.
    pub range: StreamRange,
    /// When it was sent last.
    pub sent_at: Time,
    state: State,
    /// Whether it was ever sent again: its round trip is not known (Karn).
    is_again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    Sacked,
    Lost,
    /// Lost, and its copy is in flight.
    Again,
}

/// The segment that was sent last of those that have arrived (RFC 8985 §6.2 step 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Recent {
    sent_at: Time,
    end: u64,
    rtt: Duration,
}

/// What an acknowledgement says that was not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Acked {
    /// Segments that have arrived, those that were known to be sacked not among them.
    pub segments: u64,
    /// Segments below the cumulative acknowledgement now and not before.
    pub cumulative: u64,
    /// The round trip of the first segment among them that was sent once.
    pub rtt_of_first: Option<Duration>,
    /// The round trip of the last one.
    pub rtt_of_last: Option<Duration>,
    /// A segment arrived that was sent before one that is known to have arrived, once.
    pub reordered: bool,
}

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Outstanding>,
    /// What is sacked, in order, apart from each other.
    sacked: Vec<StreamRange>,
    /// Transmissions in their order; those that are over are dropped when they are met.
    order: VecDeque<(Time, u64)>,
    /// Lost and not sent again.
    lost: BTreeSet<u64>,
    sacked_segments: u64,
    lost_segments: u64,
    again_segments: u64,
    recent: Option<Recent>,
}

impl Scoreboard {
    /// Returns the number of segments that are in the network (RFC 6675 `pipe`, in segments).
    pub(crate) fn in_flight(&self) -> u64 {
        self.segments.len() as u64 + self.again_segments - self.sacked_segments - self.lost_segments
    }

    /// Returns the number of segments that are not acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        self.segments.len() as u64
    }

    /// Returns the number of segments that are sacked.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked_segments
    }

    /// Returns whether a segment is lost, sent again or not.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost_segments > 0
    }

    /// Returns whether what was sent again may be on its way.
    pub(crate) fn has_again(&self) -> bool {
        self.again_segments > 0 || self.segments.front().is_some_and(|segment| segment.is_again)
    }

    /// Returns the first segment that is not acknowledged.
    pub(crate) fn first(&self) -> Option<&Outstanding> {
        self.segments.front()
    }

    /// Returns the first segment that is lost and was not sent again.
    pub(crate) fn next_lost(&self) -> Option<StreamRange> {
        let start = *self.lost.first()?;
        Some(self.segments[self.find(start)].range)
    }

    /// Returns the last segment.
    pub(crate) fn last(&self) -> Option<StreamRange> {
        self.segments.back().map(|segment| segment.range)
    }

    /// Notes that the bytes after all others are sent now.
    pub(crate) fn send(&mut self, range: StreamRange, now: Time) {
        self.segments.push_back(Outstanding { range, sent_at: now, state: State::InFlight, is_again: false });
        self.order.push_back((now, range.0));
    }

    /// Notes that an outstanding segment is sent again now. `StreamRange` begins one.
    pub(crate) fn send_again(&mut self, range: StreamRange, now: Time) {
        let at = self.find(range.0);
        let segment = &mut self.segments[at];
        segment.sent_at = now;
        segment.is_again = true;
        if segment.state == State::Lost {
            segment.state = State::Again;
            self.again_segments += 1;
            self.lost.remove(&range.0);
        }
        self.order.push_back((now, range.0));
    }

    /// Takes an acknowledgement: all below `ack` has arrived, and the ranges of `sack`.
    pub(crate) fn acknowledge(
        &mut self,
        now: Time,
        ack: u64,
        sack: impl Iterator<Item = StreamRange>,
        rtt_min: Option<Duration>,
    ) -> Acked {
        let mut acked = Acked::default();
        while let Some(first) = self.segments.front().filter(|first| first.range.1 <= ack).copied() {
            self.segments.pop_front();
            acked.cumulative += 1;
            match first.state {
                State::Sacked => self.sacked_segments -= 1,
                _ => self.arrived(&first, now, rtt_min, &mut acked),
            }
        }
        let known = self.sacked.partition_point(|range| range.1 <= ack);
        self.sacked.drain(..known);
        for (from, to) in sack {
            if to > ack {
                self.sack((from.max(ack), to), now, rtt_min, &mut acked);
            }
        }
        acked
    }

    /// Marks the segments within a range as sacked.
    fn sack(&mut self, range: StreamRange, now: Time, rtt_min: Option<Duration>, acked: &mut Acked) {
        // The parts of it that are not known.
        let mut at = range.0;
        let first = self.sacked.partition_point(|known| known.1 < range.0);
        let mut last = first;
        let mut gaps = Vec::new();
        while let Some(known) = self.sacked.get(last).filter(|known| known.0 <= range.1) {
            gaps.push((at, known.0));
            at = at.max(known.1);
            last += 1;
        }
        gaps.push((at, range.1));
        let from =
            self.sacked.get(first).filter(|_| last > first).map_or(range.0, |known| known.0.min(range.0));
        self.sacked.splice(first..last, [(from, at.max(range.1))]);
        for (from, to) in gaps.into_iter().filter(|(from, to)| from < to) {
            let mut index = self.segments.partition_point(|segment| segment.range.0 < from);
            while let Some(segment) =
                self.segments.get(index).filter(|segment| segment.range.1 <= to).copied()
            {
                if segment.state != State::Sacked {
                    self.arrived(&segment, now, rtt_min, acked);
                    self.segments[index].state = State::Sacked;
                    self.sacked_segments += 1;
                }
                index += 1;
            }
        }
    }

    /// Counts a segment that has arrived.
    fn arrived(&mut self, segment: &Outstanding, now: Time, rtt_min: Option<Duration>, acked: &mut Acked) {
        acked.segments += 1;
        match segment.state {
            State::Lost => {
                self.lost_segments -= 1;
                self.lost.remove(&segment.range.0);
            }
            State::Again => {
                self.lost_segments -= 1;
                self.again_segments -= 1;
            }
            State::InFlight | State::Sacked => {}
        }
        let rtt = now.since(segment.sent_at);
        let position = (segment.sent_at, segment.range.1);
        if segment.is_again {
            // Of the first transmission, probably.
            if rtt_min.is_some_and(|least| rtt < least) {
                return;
            }
        } else {
            acked.rtt_of_first.get_or_insert(rtt);
            acked.rtt_of_last = Some(rtt);
            acked.reordered |= self.recent.is_some_and(|recent| recent.end > segment.range.1);
        }
        if self.recent.is_none_or(|recent| position > (recent.sent_at, recent.end)) {
            self.recent = Some(Recent { sent_at: segment.sent_at, end: segment.range.1, rtt });
        }
    }

    /// Marks as lost what was sent longer before the most recent segment that has arrived than
    /// `tolerance` allows (RFC 8985 §6.2 step 5). Returns how many were, and when the next one is.
    pub(crate) fn detect(&mut self, now: Time, tolerance: Duration) -> (u64, Option<Time>) {
        let Some(recent) = self.recent else { return (0, None) };
        let mut newly = 0;
        while let Some(&(sent_at, start)) = self.order.front() {
            let Some(at) = self.current(sent_at, start) else {
                self.order.pop_front();
                continue;
            };
            if (sent_at, self.segments[at].range.1) >= (recent.sent_at, recent.end) {
                break;
            }
            let due = sent_at.saturating_add(recent.rtt).saturating_add(tolerance);
            if due > now {
                return (newly, Some(due));
            }
            self.order.pop_front();
            self.lose(at);
            newly += 1;
        }
        (newly, None)
    }

    /// Marks what is not sacked as lost after a timeout: the first segment, and all that are not
    /// recent (RFC 8985 §6.3). What was sent again is lost again.
    pub(crate) fn time_out(&mut self, now: Time, tolerance: Duration) {
        let rtt = self.recent.map(|recent| recent.rtt);
        for at in 0..self.segments.len() {
            let segment = self.segments[at];
            let is_recent =
                |rtt: Duration| segment.sent_at.saturating_add(rtt).saturating_add(tolerance) > now;
            let spared = at > 0 && rtt.is_some_and(is_recent);
            if !spared && matches!(segment.state, State::InFlight | State::Again) {
                self.lose(at);
            }
        }
    }

    /// Takes back that anything is lost.
    pub(crate) fn unmark(&mut self) {
        for segment in &mut self.segments {
            match segment.state {
                State::Lost => self.order.push_back((segment.sent_at, segment.range.0)),
                State::Again => {}
                State::InFlight | State::Sacked => continue,
            }
            segment.state = State::InFlight;
        }
        self.order.make_contiguous().sort_unstable();
        self.lost.clear();
        (self.lost_segments, self.again_segments) = (0, 0);
    }

    fn lose(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        match segment.state {
            State::InFlight => self.lost_segments += 1,
            State::Again => self.again_segments -= 1,
            State::Sacked | State::Lost => return,
        }
        segment.state = State::Lost;
        let start = segment.range.0;
        self.lost.insert(start);
    }

    /// The index of the segment that this transmission sent, if it is the last one of it and the
    /// segment is in flight.
    fn current(&self, sent_at: Time, start: u64) -> Option<usize> {
        let first = self.segments.front()?;
        if start < first.range.0 {
            return None;
        }
        let at = self.find(start);
        let segment = &self.segments[at];
        (segment.sent_at == sent_at && matches!(segment.state, State::InFlight | State::Again)).then_some(at)
    }

    fn find(&self, start: u64) -> usize {
        let at = self.segments.partition_point(|segment| segment.range.0 < start);
        debug_assert_eq!(self.segments[at].range.0, start, "a segment begins there");
        at
    }
}
