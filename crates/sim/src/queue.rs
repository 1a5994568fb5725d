//! The bounded queue before a unit, and how a machine file describes it.

use crate::keys::{read_table, read_word};
use crate::spec::Name;
use crate::stats::TimeWeighted;
use fastpath_text::mistake::Remarks;
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

/// Which packet of a queue is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one that came first.
    #[default]
    Fifo,
    /// The first of the lowest class, whatever the others wait.
    Priority,
}

read_word!(Order as "an order of a queue": ["fifo" => Order::Fifo, "priority" => Order::Priority]);

/// The queue before a unit, as a machine file describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSpec {
    /// Packets that fit, without those in service.
    pub(crate) limit: usize,
    /// What happens to the next packet.
    pub(crate) full: Full,
    /// Which packet is next.
    pub(crate) order: Order,
}

read_table!(QueueSpec as "queue", "{ limit = 64 }": { limit, full = Full::Drop, order = Order::Fifo });

impl QueueSpec {
    /// Reports an order in a unit, called `name`, that has another.
    pub(crate) fn check_fifo(&self, name: &Name, why: &str, remarks: &mut Remarks) {
        if self.order != Order::Fifo {
            let what = format!("queue.order of {name} has no effect: {why}");
            remarks.mistake(name.at, what, "remove it");
        }
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        QueueSpec { limit: 1024, full: Full::Drop, order: Order::Fifo }
    }
}

/// A bounded queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// By class; a single one without priorities.
    classes: Vec<VecDeque<u32>>,
    len: usize,
    limit: usize,
    order: Order,
    pub(crate) full: Full,
    pub(crate) length: TimeWeighted,
}

impl Queue {
    pub(crate) fn new(spec: &QueueSpec) -> Queue {
        let QueueSpec { limit, full, order } = *spec;
        let classes = vec![VecDeque::new()];
        Queue { classes, len: 0, limit, order, full, length: TimeWeighted::default() }
    }

    /// Queues `packet` of the given class; false if there is no room.
    pub(crate) fn push(&mut self, now: Time, packet: u32, class: usize) -> bool {
        let fits = self.len < self.limit;
        if fits {
            let class = if self.order == Order::Priority { class } else { 0 };
            if class >= self.classes.len() {
                self.classes.resize(class + 1, VecDeque::new());
            }
            self.classes[class].push_back(packet);
            self.len += 1;
            self.length.set(now, self.len as u64);
        }
        fits
    }

    pub(crate) fn pop(&mut self, now: Time) -> Option<u32> {
        let packet = self.classes.iter_mut().find_map(VecDeque::pop_front)?;
        self.len -= 1;
        self.length.set(now, self.len as u64);
        Some(packet)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}
