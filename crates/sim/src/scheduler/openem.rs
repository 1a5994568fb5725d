//! A software event machine (Open Event Machine). Events wait in queues attached to execution
//! objects, and each core runs the dispatcher between events. An atomic queue has one event in
//! execution at a time, a parallel queue any number. Queues are served by priority, and round robin
//! within a priority.

use super::work::WorkItem;
use crate::keys::{read_table, read_word};
use fastpath_units::Duration;
use std::collections::VecDeque;

/// An event machine as a machine file describes it.
#[derive(Clone, Debug)]
pub struct OpenEmSpec {
    /// Number of event queues; flow f uses queue f mod this number.
    pub queues: u32,
    /// Whether the events of a queue exclude each other.
    pub queue_type: QueueType,
    /// The cost of the dispatcher per event.
    pub dispatch: Duration,
}

/// The type of the event queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueType {
    /// One event at a time: flows stay in order without locks.
    #[default]
    Atomic,
    /// Any number at a time.
    Parallel,
}

read_table!(OpenEmSpec as "the openem scheduler", "{ kind = \"openem\" }": {
    queues,
    queue_type = QueueType::Atomic,
    dispatch,
} allows kind);

read_word!(QueueType as "a type of queues": ["atomic" => QueueType::Atomic, "parallel" => QueueType::Parallel]);

/// Priority classes.
const PRIORITIES: usize = 8;

/// An event machine in a run.
#[derive(Clone, Debug)]
pub struct OpenEm {
    queues: Vec<Queue>,
    /// Queues that may be served, by priority. Each queue is listed at most once.
    ready: [VecDeque<usize>; PRIORITIES],
    queue_type: QueueType,
    dispatch: Duration,
    waiting: usize,
    limit: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    events: VecDeque<WorkItem>,
    /// True while the queue is in `ready`, or while an event of an atomic queue is in execution.
    scheduled: bool,
}

impl OpenEm {
    /// Makes an event machine with room for `limit` events.
    pub fn new(spec: &OpenEmSpec, limit: usize) -> OpenEm {
        OpenEm {
            queues: vec![Queue::default(); spec.queues.max(1) as usize],
            ready: Default::default(),
            queue_type: spec.queue_type,
            dispatch: spec.dispatch,
            waiting: 0,
            limit,
        }
    }

    pub(super) fn push(&mut self, work: WorkItem) -> bool {
        if self.waiting == self.limit {
            return false;
        }
        self.waiting += 1;
        let at = self.queue_of(work);
        self.queues[at].events.push_back(work);
        self.make_ready(at);
        true
    }

    pub(super) fn pull(&mut self) -> Option<(WorkItem, Duration)> {
        let at = self.ready.iter_mut().find_map(VecDeque::pop_front)?;
        let work = self.queues[at].events.pop_front().expect("a ready queue has an event");
        self.waiting -= 1;
        if self.queue_type == QueueType::Parallel {
            self.queues[at].scheduled = false;
            self.make_ready(at);
        }
        Some((work, self.dispatch))
    }

    pub(super) fn finish(&mut self, work: WorkItem) {
        if self.queue_type == QueueType::Atomic {
            let at = self.queue_of(work);
            self.queues[at].scheduled = false;
            self.make_ready(at);
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    fn queue_of(&self, work: WorkItem) -> usize {
        work.flow as usize % self.queues.len()
    }

    fn make_ready(&mut self, at: usize) {
        let queue = &mut self.queues[at];
        if let Some(first) = queue.events.front().filter(|_| !queue.scheduled) {
            self.ready[usize::from(first.priority) % PRIORITIES].push_back(at);
            queue.scheduled = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Tag;
    use super::*;

    fn work(packet: u32, flow: u32, priority: u8) -> WorkItem {
        WorkItem { packet, flow, queue: flow, priority, group: 0, tag: Tag::Parallel }
    }

    fn machine(queue_type: QueueType) -> OpenEm {
        OpenEm::new(&OpenEmSpec { queues: 4, queue_type, dispatch: Duration::ZERO }, 100)
    }

    fn drain(em: &mut OpenEm) -> Vec<u32> {
        std::iter::from_fn(|| em.pull()).map(|(w, _)| w.packet).collect()
    }

    #[test]
    fn an_atomic_queue_returns_its_next_event_after_the_previous_is_finished() {
        let mut em = machine(QueueType::Atomic);
        (0..4).for_each(|p| assert!(em.push(work(p, p % 2, 0))));
        assert_eq!(drain(&mut em), [0, 1]);
        em.finish(work(1, 1, 0));
        assert_eq!(drain(&mut em), [3]);
    }

    #[test]
    fn parallel_queues_take_turns_within_a_priority() {
        let mut em = machine(QueueType::Parallel);
        (0..4).for_each(|p| assert!(em.push(work(p, p / 2, 1))));
        assert!(em.push(work(9, 3, 0)));
        assert_eq!(drain(&mut em), [9, 0, 2, 1, 3]);
    }

    #[test]
    fn a_full_machine_refuses() {
        let spec = OpenEmSpec { queues: 1, queue_type: QueueType::Atomic, dispatch: Duration::ZERO };
        let mut em = OpenEm::new(&spec, 1);
        assert!(em.push(work(0, 0, 0)) && !em.push(work(1, 0, 0)));
    }
}
