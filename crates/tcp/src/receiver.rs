//! The half of a connection that receives: what has arrived, and when it is acknowledged.
//!
//! An acknowledgement goes for every second full segment, at once while a connection is young, its
//! window grows or data is out of order (RFC 5681 §4.2), and after 40 ms at the latest. After three
//! duplicate acknowledgements further ones are held back for a twentieth of the round trip, at most
//! 1 ms, as in Linux.

use crate::segment::{SACK_BLOCKS, Segment, StreamRange};
use crate::window::ReceiveWindow;
use fastpath_units::{Duration, Time};

/// How long an acknowledgement waits.
const DELAY: Duration = Duration::from_ms(40);
/// Acknowledgements that do not wait at the beginning, and after a gap.
const QUICK: u32 = 16;
/// Duplicate acknowledgements before they are held back.
const DUPLICATES: u32 = 3;
/// How many segments one held acknowledgement stands for at most, and how long it waits at most.
const HELD: u32 = 44;
const HELD_FOR: Duration = Duration::from_ms(1);

/// See the head of this file.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    mss: u64,
    window: ReceiveWindow,
    /// The next position.
    next: u64,
    /// What has arrived above it, in order, apart from each other.
    beyond: Vec<StreamRange>,
    /// The same ranges, the latest first, as many as an option holds. They may have grown since.
    latest: Vec<u64>,
    /// What arrived twice last, for the next acknowledgement.
    twice: Option<StreamRange>,
    /// The position of a FIN.
    fin: Option<u64>,
    /// What the last acknowledgement said.
    said: u64,
    /// The timestamp to echo, ms.
    recent: u32,
    quick: u32,
    due: Option<Time>,
    duplicates: u32,
    held: u32,
    /// Whether marks are echoed: from one until the sender says that it has reduced.
    echoes: bool,
}

impl Receiver {
    /// A receiver that takes at most `window` bytes beyond what has arrived.
    pub(crate) fn new(mss: u32, window: u64) -> Receiver {
        Receiver {
            mss: u64::from(mss),
            window: ReceiveWindow::new(u64::from(mss), window),
            next: 0,
            beyond: Vec::new(),
            latest: Vec::new(),
            twice: None,
            fin: None,
            said: 0,
            recent: 0,
            quick: QUICK,
            due: None,
            duplicates: 0,
            held: 0,
            echoes: false,
        }
    }

    /// Bytes that have arrived in order.
    pub(crate) fn received(&self) -> u64 {
        let fin = u64::from(self.is_ended());
        (self.next - fin).saturating_sub(1)
    }

    /// The next position.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// Whether all has arrived, the FIN too.
    pub(crate) fn is_ended(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.due
    }

    /// Takes a segment. `smoothed`: the round trip, if it is known.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        segment: &Segment,
        has_ecn: bool,
        smoothed: Option<Duration>,
    ) {
        let (from, to) = (segment.seq, segment.end());
        if has_ecn {
            self.echoes &= !segment.cwr;
            self.echoes |= segment.ecn == 3;
        }
        if from <= self.said && segment.timestamp > self.recent {
            // RFC 7323 §4.3: of the first segment that the next acknowledgement is for.
            self.recent = segment.timestamp;
        }
        if from == to {
            return;
        }
        if segment.fin {
            self.fin = Some(to - 1);
        }
        let is_known = to <= self.next || self.beyond.iter().any(|range| range.0 <= from && to <= range.1);
        if is_known {
            self.twice = Some((from, to));
            self.quick = QUICK;
            self.due = Some(now);
            return;
        }
        self.insert((from.max(self.next), to));
        let advances = self.beyond.first().is_some_and(|range| range.0 <= self.next);
        if advances {
            self.next = self.beyond.remove(0).1;
            let next = self.next;
            self.latest.retain(|start| *start >= next);
        }
        if advances && self.window.grow(now, to - from, segment.echo) {
            self.quick |= 1;
        }
        self.plan(now, (advances, segment.fin || segment.syn, segment.ecn == 3 && has_ecn), smoothed);
        self.window.read(now, self.next);
    }

    /// Decides when to acknowledge.
    fn plan(
        &mut self,
        now: Time,
        (advances, at_once, is_marked): (bool, bool, bool),
        smoothed: Option<Duration>,
    ) {
        let is_whole = self.beyond.is_empty();
        if is_whole {
            self.duplicates = 0;
            let is_second = self.next - self.said > self.mss;
            if is_second || self.quick > 0 || at_once || is_marked {
                self.due = Some(now);
            } else {
                self.due.get_or_insert(now.saturating_add(DELAY));
            }
            return;
        }
        if advances {
            self.duplicates = 0;
        }
        self.duplicates += 1;
        if self.duplicates <= DUPLICATES || at_once {
            self.due = Some(now);
            return;
        }
        self.held += 1;
        if self.held >= HELD {
            self.due = Some(now);
            return;
        }
        let twentieth = smoothed.map_or(HELD_FOR, |rtt| Duration::from_ps(rtt.as_ps() / 20));
        let until = now.saturating_add(twentieth.min(HELD_FOR));
        self.due = Some(self.due.map_or(until, |due| due.min(until)));
    }

    /// Adds a range to what has arrived.
    fn insert(&mut self, (from, to): StreamRange) {
        let first = self.beyond.partition_point(|range| range.1 < from);
        let last = self.beyond.partition_point(|range| range.0 <= to);
        let joined = &self.beyond[first..last];
        let from = joined.first().map_or(from, |range| range.0.min(from));
        let to = joined.last().map_or(to, |range| range.1.max(to));
        let gone: Vec<u64> = joined.iter().map(|range| range.0).collect();
        self.beyond.splice(first..last, [(from, to)]);
        self.latest.retain(|start| !gone.contains(start) && *start != from);
        self.latest.insert(0, from);
        self.latest.truncate(2 * SACK_BLOCKS);
    }

    /// Whether an acknowledgement is due.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Returns the window that is offered now.
    pub(crate) fn offer(&mut self) -> u64 {
        self.window.offer(self.next)
    }

    /// Acknowledges all that has arrived, in a segment that leaves now.
    pub(crate) fn acknowledge(&mut self, segment: &mut Segment) {
        segment.ack = Some(self.next);
        segment.window = self.offer();
        segment.echo = self.recent;
        segment.ece |= self.echoes;
        let twice = self.twice.take();
        let beyond = &self.beyond;
        let latest =
            self.latest.iter().filter_map(|start| beyond.iter().find(|range| range.0 == *start).copied());
        for (place, range) in segment.sack.iter_mut().zip(twice.into_iter().chain(latest)) {
            *place = range;
        }
        self.quick = self.quick.saturating_sub(1);
        (self.said, self.due, self.held) = (self.next, None, 0);
    }
}
