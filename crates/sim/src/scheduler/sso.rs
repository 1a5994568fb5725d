//! A hardware scheduling, synchronisation and order unit (Cavium OCTEON's SSO/POW).
//!
//! Cores request work. Descheduled work that has received its tag goes first. Then follow eight
//! input queues by priority: static (lower number first) or weighted round robin. A core gets only
//! the groups in its mask. The tag of work is its flow. *Atomic* work of one flow runs on one core
//! at a time, in order. *Ordered* work of one flow runs on several cores but leaves in order.
//! *Parallel* work has no restriction. A core may switch the tag of its work. If the new tag is not
//! free, the work is descheduled, and the core takes other work.

use super::work::{Tag, WorkItem};
use crate::keys::read_table;
use fastpath_units::Duration;
use std::collections::{BTreeMap, VecDeque};

/// An SSO as a machine file describes it.
#[derive(Clone, Debug)]
pub struct SsoSpec {
    /// The cost of a request for work.
    pub get_work: Duration,
    /// Packets served per round of each input queue; all 0, the default: strictly by number.
    pub weights: [u32; QUEUES],
    /// The groups of each core, one per bit; cores past the end of the list take all groups.
    pub group_masks: Vec<u64>,
}

read_table!(SsoSpec as "the sso scheduler", "{ kind = \"sso\" }": {
    get_work = Duration::ZERO,
    weights = [0; QUEUES],
    group_masks = Vec::new(),
} allows kind);

/// Input queues: priorities.
const QUEUES: usize = 8;

/// An SSO in a run.
#[derive(Clone, Debug)]
pub struct Sso {
    spec: SsoSpec,
    /// True unless all weights are 0.
    is_weighted: bool,
    queues: [VecDeque<WorkItem>; QUEUES],
    /// Descheduled work that has received its tag.
    rescheduled: VecDeque<WorkItem>,
    /// By flow; grows to the highest flow seen.
    flows: Vec<FlowTags>,
    limit: usize,
    waiting: usize,
    /// Weighted round robin: the queue being served, and the packets left in its round.
    round: (usize, u32),
}

#[derive(Clone, Debug, Default)]
struct FlowTags {
    /// The packet that holds the atomic tag.
    holder: Option<u32>,
    /// Descheduled work that waits for the atomic tag.
    next: VecDeque<WorkItem>,
    /// Ordered work in its order.
    order: VecDeque<Ordered>,
}

#[derive(Clone, Copy, Debug)]
struct Ordered {
    work: WorkItem,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Done, held back for work before it in the order.
    Finished,
    /// Waits for the atomic tag, in its order.
    Switching,
}

impl Sso {
    /// Makes an SSO with room for `limit` packets of new work.
    pub fn new(spec: &SsoSpec, limit: usize) -> Sso {
        Sso {
            spec: spec.clone(),
            is_weighted: spec.weights.iter().any(|&w| w > 0),
            queues: Default::default(),
            rescheduled: VecDeque::new(),
            flows: Vec::new(),
            limit,
            waiting: 0,
            round: (0, spec.weights[0]),
        }
    }

    pub(super) fn push(&mut self, work: WorkItem) -> bool {
        if self.waiting >= self.limit {
            return false;
        }
        let flow = work.flow as usize;
        if flow >= self.flows.len() {
            self.flows.resize_with(flow + 1, FlowTags::default);
        }
        self.waiting += 1;
        self.queues[usize::from(work.priority) % QUEUES].push_back(work);
        true
    }

    pub(super) fn has_work(&self) -> bool {
        self.waiting > 0 || !self.rescheduled.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The number of packets that no core holds, by group.
    pub(super) fn waiting_by_group(&self) -> BTreeMap<u8, usize> {
        let mut groups = BTreeMap::new();
        for work in self.queues.iter().flatten().chain(&self.rescheduled) {
            *groups.entry(work.group).or_default() += 1;
        }
        groups
    }

    pub(super) fn pull(&mut self, core: u32) -> Option<(WorkItem, Duration)> {
        let mask = self.spec.group_masks.get(core as usize).copied().unwrap_or(u64::MAX);
        let open = |work: &WorkItem| mask >> (work.group % 64) & 1 == 1;
        if !self.rescheduled.is_empty()
            && let Some(at) = self.rescheduled.iter().position(open)
        {
            return take(&mut self.rescheduled, at).map(|work| (work, self.spec.get_work));
        }
        let weighted = self.is_weighted;
        let first = if weighted { self.round.0 } else { 0 };
        for step in 0..QUEUES {
            let queue = (first + step) % QUEUES;
            if weighted && step == 0 && self.round.1 == 0 {
                continue;
            }
            // Work that must wait for its tag is passed over and keeps its place in the queue.
            let eligible = |work: &WorkItem| open(work) && self.is_free(*work);
            // Nearly always the first one.
            let at = match self.queues[queue].front() {
                None => continue,
                Some(first) if eligible(first) => 0,
                Some(_) => match self.queues[queue].iter().position(eligible) {
                    None => continue,
                    Some(at) => at,
                },
            };
            let work = take(&mut self.queues[queue], at)?;
            self.waiting -= 1;
            if weighted {
                self.advance_round(queue);
            }
            self.start(work);
            return Some((work, self.spec.get_work));
        }
        // Only the queue at the end of its round may have work left: it starts a new round.
        if weighted && self.round.1 == 0 && !self.queues[self.round.0].is_empty() {
            self.round.1 = self.spec.weights[self.round.0].max(1);
            return self.pull(core);
        }
        None
    }

    /// True if new work may start. Atomic work may start if no other work holds the tag, waits for
    /// it, or is before it in the order of the flow.
    fn is_free(&self, work: WorkItem) -> bool {
        let flow = &self.flows[work.flow as usize];
        work.tag != Tag::Atomic || (flow.holder.is_none() && flow.next.is_empty() && flow.order.is_empty())
    }

    fn advance_round(&mut self, queue: usize) {
        let left = if queue == self.round.0 && self.round.1 > 0 {
            self.round.1
        } else {
            self.spec.weights[queue].max(1)
        };
        self.round = if left > 1 {
            (queue, left - 1)
        } else {
            let next = (queue + 1) % QUEUES;
            (next, self.spec.weights[next])
        };
    }

    fn start(&mut self, work: WorkItem) {
        let flow = &mut self.flows[work.flow as usize];
        match work.tag {
            Tag::Parallel => {}
            Tag::Ordered => flow.order.push_back(Ordered { work, state: State::Running }),
            Tag::Atomic => flow.holder = Some(work.packet),
        }
    }

    /// See `Scheduler::switch`. `work.tag` is the tag held now.
    pub(super) fn switch(&mut self, work: WorkItem, tag: Tag, leaving: &mut VecDeque<u32>) -> bool {
        if work.tag == tag {
            return true;
        }
        let wanted = WorkItem { tag, ..work };
        let flow = &mut self.flows[work.flow as usize];
        match (work.tag, tag) {
            (Tag::Ordered, Tag::Atomic) => {
                let place = flow.order.iter().position(|o| o.work.packet == work.packet);
                let place = place.expect("ordered work is in its flow's order");
                if place == 0 && flow.holder.is_none() && flow.next.is_empty() {
                    flow.order.pop_front();
                    flow.holder = Some(work.packet);
                    self.advance(work.flow, leaving);
                    return true;
                }
                flow.order[place] = Ordered { work: wanted, state: State::Switching };
                self.advance(work.flow, leaving);
                false
            }
            (Tag::Parallel, Tag::Atomic) => {
                if flow.holder.is_none() && flow.next.is_empty() {
                    flow.holder = Some(work.packet);
                    return true;
                }
                flow.next.push_back(wanted);
                false
            }
            (Tag::Atomic, _) => {
                flow.holder = None;
                self.grant(work.flow);
                self.start(wanted);
                true
            }
            (Tag::Parallel, _) => {
                self.start(wanted);
                true
            }
            // The work gives up its place in the order: work behind it may leave.
            (Tag::Ordered, _) => {
                flow.order.retain(|o| o.work.packet != work.packet);
                self.advance(work.flow, leaving);
                true
            }
        }
    }

    pub(super) fn finish(&mut self, work: WorkItem, leaving: &mut VecDeque<u32>) {
        match work.tag {
            Tag::Parallel => leaving.push_back(work.packet),
            Tag::Atomic => {
                leaving.push_back(work.packet);
                self.flows[work.flow as usize].holder = None;
                self.grant(work.flow);
            }
            Tag::Ordered => {
                let flow = &mut self.flows[work.flow as usize];
                let mine = flow.order.iter_mut().find(|o| o.work.packet == work.packet);
                mine.expect("ordered work is in its flow's order").state = State::Finished;
                self.advance(work.flow, leaving);
            }
        }
    }

    /// Advances the work at the front of the flow's order: finished work leaves, and switching work
    /// waits for the tag.
    fn advance(&mut self, flow: u32, leaving: &mut VecDeque<u32>) {
        let state = &mut self.flows[flow as usize];
        while let Some(first) = state.order.front().copied() {
            match first.state {
                State::Running => break,
                State::Finished => leaving.push_back(first.work.packet),
                State::Switching => state.next.push_back(first.work),
            }
            state.order.pop_front();
        }
        self.grant(flow);
    }

    /// Gives a free atomic tag to the work that has waited longest and schedules that work again.
    fn grant(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.holder.is_none()
            && let Some(work) = state.next.pop_front()
        {
            state.holder = Some(work.packet);
            self.rescheduled.push_back(work);
        }
    }
}

/// Removes the work at place `at`, nearly always the first.
#[inline]
fn take(queue: &mut VecDeque<WorkItem>, at: usize) -> Option<WorkItem> {
    if at == 0 { queue.pop_front() } else { queue.remove(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Rng;
    use proptest::prelude::*;

    fn sso(weights: [u32; QUEUES], group_masks: Vec<u64>) -> Sso {
        Sso::new(&SsoSpec { get_work: Duration::ZERO, weights, group_masks }, 1000)
    }

    fn work(packet: u32, flow: u32, priority: u8, group: u8, tag: Tag) -> WorkItem {
        WorkItem { packet, flow, queue: flow, priority, group, tag }
    }

    #[test]
    fn weights_share_the_cores_and_an_empty_queue_is_passed_over() {
        let mut s = sso([2, 1, 0, 0, 0, 0, 0, 0], vec![]);
        for p in 0..6 {
            s.push(work(p, p, 0, 0, Tag::Parallel));
            s.push(work(10 + p, 10 + p, 1, 0, Tag::Parallel));
        }
        let order: Vec<u32> = std::iter::from_fn(|| s.pull(0)).map(|(w, _)| w.packet).collect();
        assert_eq!(order, [0, 1, 10, 2, 3, 11, 4, 5, 12, 13, 14, 15]);
    }

    #[test]
    fn ordered_work_that_wants_the_atomic_tag_gets_it_in_order() {
        let mut s = sso([0; QUEUES], vec![]);
        let jobs: Vec<WorkItem> = (0..3).map(|p| work(p, 7, 0, 0, Tag::Ordered)).collect();
        jobs.iter().for_each(|&w| assert!(s.push(w)));
        (0..3).for_each(|core| assert!(s.pull(core).is_some()));
        // The last work switches first and is descheduled. The first work gets the tag at once, and
        // the others follow in order.
        let mut leaving = VecDeque::new();
        assert!(!s.switch(jobs[2], Tag::Atomic, &mut leaving));
        assert!(s.switch(jobs[0], Tag::Atomic, &mut leaving));
        assert!(!s.switch(jobs[1], Tag::Atomic, &mut leaving));
        assert_eq!(s.pull(1), None);
        for p in 0..3 {
            s.finish(work(p, 7, 0, 0, Tag::Atomic), &mut leaving);
            assert_eq!(s.pull(1).map(|(w, _)| w.packet), (p < 2).then_some(p + 1));
        }
        assert_eq!(leaving, [0, 1, 2]);
    }

    /// Random pushes, pulls, switches and finishes by random cores. Checks every invariant at every
    /// step.
    fn check_random_calls(seed: u64, masks: &[u64]) {
        let mut rng = Rng::new(seed);
        let mut s = sso([0; QUEUES], masks.to_vec());
        let mut held: Vec<Option<WorkItem>> = vec![None; masks.len()];
        // Not yet started, and entries of ordered and atomic work by flow in the order they were
        // started.
        let mut queued: Vec<WorkItem> = Vec::new();
        let mut started: Vec<VecDeque<u32>> = vec![VecDeque::new(); 3];
        let (mut pushed, mut left, mut leaving) = (0, 0, VecDeque::new());
        // A flow keeps one tag type at entry, as a program's first stage does.
        let tags = [Tag::Parallel, Tag::Ordered, Tag::Atomic];
        for _ in 0..600 {
            let core = rng.below(masks.len() as u64) as usize;
            match (rng.below(4), held[core]) {
                (0, _) if pushed < 120 => {
                    let flow = rng.below(3) as u32;
                    let (priority, group) = (rng.below(3) as u8, rng.below(2) as u8);
                    // Priority and group belong to the flow. Otherwise the flow would have no
                    // order.
                    let (priority, group) = if flow == 0 { (priority, group) } else { (flow as u8, 0) };
                    let w = work(pushed, flow, priority, group, tags[flow as usize]);
                    assert!(s.push(w));
                    queued.push(w);
                    pushed += 1;
                }
                (_, None) => {
                    let got = s.pull(core as u32).map(|(w, _)| w);
                    if let Some(w) = got {
                        assert!(masks[core] >> w.group & 1 == 1, "group {} on core {core}", w.group);
                        if let Some(at) = queued.iter().position(|q| q.packet == w.packet) {
                            let beaten = queued.iter().find(|q| {
                                q.priority < w.priority
                                    && q.tag != Tag::Atomic
                                    && masks[core] >> q.group & 1 == 1
                            });
                            assert_eq!(beaten, None, "passed over for {w:?}");
                            queued.remove(at);
                            if w.tag != Tag::Parallel {
                                started[w.flow as usize].push_back(w.packet);
                            }
                        }
                    }
                    held[core] = got;
                }
                // Order holds among work with the same tags: all work of a run switches, or none.
                (_, Some(w)) if w.tag == Tag::Ordered && seed.is_multiple_of(2) => {
                    let switched = s.switch(w, Tag::Atomic, &mut leaving);
                    held[core] = switched.then_some(WorkItem { tag: Tag::Atomic, ..w });
                }
                (2 | 3, Some(w)) => {
                    s.finish(w, &mut leaving);
                    held[core] = None;
                }
                _ => {}
            }
            for flow in 0..3 {
                let atomic = held.iter().flatten().filter(|w| w.flow == flow && w.tag == Tag::Atomic).count();
                assert!(atomic <= 1, "{atomic} cores in flow {flow}'s atomic section");
            }
            for packet in leaving.drain(..) {
                left += 1;
                for order in &mut started {
                    if order.contains(&packet) {
                        assert_eq!(order.pop_front(), Some(packet), "left out of order");
                    }
                }
            }
        }
        // Nothing is lost: with cores for every group, all work that was pushed leaves.
        for _ in 0..10_000 {
            for (core, held) in held.iter_mut().enumerate() {
                match held.take() {
                    Some(w) => s.finish(w, &mut leaving),
                    None => *held = s.pull(core as u32).map(|(w, _)| w),
                }
            }
            left += leaving.drain(..).count() as u32;
        }
        assert_eq!(left, pushed, "seed {seed}");
    }

    proptest! {
        #[test]
        fn atomic_never_overlaps_ordered_leaves_in_order_and_priorities_and_groups_hold(seed: u64) {
            check_random_calls(seed, &[0b11, 0b01, 0b10, 0b11]);
        }
    }
}
