//! Frame accounting: in = delivered + dropped (by reason) + held, at any time of a run.

use crate::fate::Reason;
use std::collections::BTreeMap;

/// The number of frames that entered a network, and their fates. Each frame is counted once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameAccounting {
    /// Frames that entered at an edge.
    pub entered: u64,
    /// Frames created inside the network: copies made by switches and by duplication, fragments,
    /// and the ARP, ND and ICMP messages of routers.
    pub generated: u64,
    /// Frames that reached an edge, or the router to which they were addressed.
    pub delivered: u64,
    /// Dropped frames, by [`Reason::name`].
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames still inside the network.
    pub held: u64,
}

/// The running counters of a network. [`FrameCounters::accounting`] returns the public form.
#[derive(Debug, Default)]
pub(crate) struct FrameCounters {
    pub(crate) entered: u64,
    pub(crate) generated: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: BTreeMap<Reason, u64>,
}

impl FrameAccounting {
    /// Returns the number of all frames: entered and generated.
    pub fn total_in(&self) -> u64 {
        self.entered + self.generated
    }

    /// Returns the number of dropped frames, for all reasons.
    pub fn total_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Returns whether in = delivered + dropped + held.
    pub fn balances(&self) -> bool {
        self.total_in() == self.delivered + self.total_dropped() + self.held
    }

    /// Adds the counts of another network, for example of another part of the same topology.
    pub fn add(&mut self, other: FrameAccounting) {
        self.entered += other.entered;
        self.generated += other.generated;
        self.delivered += other.delivered;
        self.held += other.held;
        for (reason, count) in other.dropped {
            *self.dropped.entry(reason).or_default() += count;
        }
    }
}

impl FrameCounters {
    /// Counts a dropped frame.
    pub(crate) fn count_drop(&mut self, reason: Reason) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    /// Returns the accounting of a network that holds `held` frames.
    pub(crate) fn accounting(&self, held: u64) -> FrameAccounting {
        FrameAccounting {
            entered: self.entered,
            generated: self.generated,
            delivered: self.delivered,
            dropped: self.dropped.iter().map(|(reason, &count)| (reason.name(), count)).collect(),
            held,
        }
    }
}
