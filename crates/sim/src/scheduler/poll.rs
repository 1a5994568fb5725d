//! Poll mode (DPDK): each core has a receive queue. A `[[nic]]` before the cores has chosen the
//! queue, modulo the cores; without one the flows are dealt to the queues in turn. Each core takes
//! bursts from its own queue and runs every packet to completion. A full queue drops. Cores share
//! no queue, so a flow stays in order.

use super::work::WorkItem;
use crate::keys::read_table;
use fastpath_units::Duration;
use std::collections::VecDeque;

/// Poll mode as a machine file describes it.
#[derive(Clone, Debug)]
pub struct PollSpec {
    /// The most packets taken per poll.
    pub burst: u32,
    /// The cost of a poll, whatever the number of packets.
    pub poll: Duration,
}

read_table!(PollSpec as "the poll scheduler", "{ kind = \"poll\" }": {
    burst = 32,
    poll = Duration::ZERO,
} allows kind);

/// The receive queues in a run.
#[derive(Clone, Debug)]
pub struct Poll {
    queues: Vec<VecDeque<WorkItem>>,
    /// The number of packets that each core may still take before it polls again.
    left: Vec<u32>,
    limit: usize,
    burst: u32,
    poll: Duration,
}

impl Poll {
    /// Makes a queue of `limit` packets for each of `cores` cores.
    pub fn new(spec: &PollSpec, cores: u32, limit: usize) -> Poll {
        let cores = cores as usize;
        let (burst, poll) = (spec.burst.max(1), spec.poll);
        Poll { queues: vec![VecDeque::new(); cores], left: vec![0; cores], limit, burst, poll }
    }

    pub(super) fn push(&mut self, work: WorkItem) -> bool {
        let core = work.queue as usize % self.queues.len();
        let fits = self.queues[core].len() < self.limit;
        if fits {
            self.queues[core].push_back(work);
        }
        fits
    }

    pub(super) fn pull(&mut self, core: u32) -> Option<(WorkItem, Duration)> {
        let core = core as usize;
        let waiting = self.queues[core].len() as u32;
        let work = self.queues[core].pop_front()?;
        if self.left[core] == 0 {
            self.left[core] = waiting.min(self.burst) - 1;
            return Some((work, self.poll));
        }
        self.left[core] -= 1;
        Some((work, Duration::ZERO))
    }

    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Tag;
    use super::*;

    fn work(packet: u32, flow: u32) -> WorkItem {
        WorkItem { packet, flow, queue: flow, priority: 0, group: 0, tag: Tag::Parallel }
    }

    #[test]
    fn a_core_sees_only_its_flows_and_pays_once_per_burst() {
        let spec = PollSpec { burst: 2, poll: Duration::from_ns(10) };
        let mut poll = Poll::new(&spec, 2, 3);
        for packet in 0..6 {
            assert!(poll.push(work(packet, packet % 2)));
        }
        assert!(!poll.push(work(6, 0)), "core 0's queue holds three");
        let costs: Vec<(u32, u64)> =
            std::iter::from_fn(|| poll.pull(1)).map(|(w, cost)| (w.packet, cost.as_ns())).collect();
        assert_eq!(costs, [(1, 10), (3, 0), (5, 10)]);
        assert_eq!(poll.waiting(), 3);
    }
}
