//! The bounded queue before a unit, and how a machine file describes it.

use crate::keys::{read_table, read_word};
use crate::stats::TimeWeighted;
use fastpath_units::Time;
use std::collections::VecDeque;

/// The behaviour of a full queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Full {
    /// The packet is dropped and counted.
    #[default]
    Drop,
    /// The previous unit holds the packet, and its server, until there is room.
    Block,
}

read_word!(Full as "what a full queue does": ["drop" => Full::Drop, "block" => Full::Block]);

/// The queue before a unit, as a machine file describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSpec {
    /// Packets that fit, without those in service.
    pub(crate) limit: usize,
    /// What happens to the next packet.
    pub(crate) full: Full,
}

read_table!(QueueSpec as "queue", "{ limit = 64 }": { limit, full = Full::Drop });

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec { limit: 1024, full: Full::Drop }
    }
}

/// A bounded first-come-first-served queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    packets: VecDeque<u32>,
    limit: usize,
    pub(crate) full: Full,
    pub(crate) length: TimeWeighted,
}

impl Queue {
    pub(crate) fn new(limit: usize, full: Full) -> Queue {
        Queue { packets: VecDeque::new(), limit, full, length: TimeWeighted::default() }
    }

    pub(crate) fn push(&mut self, now: Time, packet: u32) -> bool {
        let fits = self.packets.len() < self.limit;
        if fits {
            self.packets.push_back(packet);
            self.length.set(now, self.packets.len() as u64);
        }
        fits
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<u32> {
        let packet = self.packets.pop_front()?;
        self.length.set(now, self.packets.len() as u64);
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
}
