//! The scheduler in front of cores: it decides which core takes which packet next.
//!
//! All schedulers have the same four calls. `push` queues work, `pull` returns the next work for a
//! core, `switch` changes the tag of the work that a core holds, and `finish` ends the work and
//! tells which packets may leave, in which order.

mod openem;
mod poll;
mod sso;
mod work;

pub use openem::{OpenEm, OpenEmSpec};
pub use poll::{Poll, PollSpec};
pub use sso::{Sso, SsoSpec};
pub use work::{Tag, WorkItem};

use crate::keys::{self, FileValue};
use fastpath_text::fields::Field;
use fastpath_text::mistake::Remarks;
use fastpath_units::Duration;
use std::collections::{BTreeMap, VecDeque};

/// The scheduler of a group of cores, as a machine file describes it.
#[derive(Clone, Debug, Default)]
pub enum SchedulerSpec {
    /// One queue for all cores.
    #[default]
    Fifo,
    /// A receive queue per core, polled in bursts.
    Poll(PollSpec),
    /// A hardware scheduling, synchronisation and order unit.
    Sso(SsoSpec),
    /// A software event machine.
    OpenEm(OpenEmSpec),
}

impl FileValue for SchedulerSpec {
    const EXAMPLE: &'static str = "{ kind = \"poll\" }";

    fn read(field: &Field, remarks: &mut Remarks) -> Option<SchedulerSpec> {
        let mut fields = keys::table(field, "scheduler", SchedulerSpec::EXAMPLE, remarks)?;
        let Some(kind) = fields.get("kind") else {
            remarks.mistake(fields.at, "scheduler has no kind", "write kind = \"fifo\", poll, sso or openem");
            return None;
        };
        match kind.word("a scheduler", &["fifo", "poll", "sso", "openem"], remarks)? {
            0 => {
                keys::finish(fields, remarks);
                Some(SchedulerSpec::Fifo)
            }
            1 => PollSpec::read(field, remarks).map(SchedulerSpec::Poll),
            2 => SsoSpec::read(field, remarks).map(SchedulerSpec::Sso),
            _ => OpenEmSpec::read(field, remarks).map(SchedulerSpec::OpenEm),
        }
    }
}

/// A scheduler in a run.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// One queue for all cores: its packets and its bound.
    Fifo(VecDeque<WorkItem>, usize),
    /// A receive queue per core.
    Poll(Poll),
    /// Hardware with tags, priorities and groups.
    Sso(Sso),
    /// Software with atomic and parallel queues.
    OpenEm(OpenEm),
}

impl Scheduler {
    /// Makes a scheduler for `cores` cores and at most `limit` waiting packets.
    pub fn new(spec: &SchedulerSpec, cores: u32, limit: usize) -> Scheduler {
        match spec {
            SchedulerSpec::Fifo => Scheduler::Fifo(VecDeque::new(), limit),
            SchedulerSpec::Poll(spec) => Scheduler::Poll(Poll::new(spec, cores, limit)),
            SchedulerSpec::Sso(spec) => Scheduler::Sso(Sso::new(spec, limit)),
            SchedulerSpec::OpenEm(spec) => Scheduler::OpenEm(OpenEm::new(spec, limit)),
        }
    }

    /// Queues `work`; false if the queue is full.
    pub fn push(&mut self, work: WorkItem) -> bool {
        match self {
            Scheduler::Fifo(queue, limit) => {
                let fits = queue.len() < *limit;
                if fits {
                    queue.push_back(work);
                }
                fits
            }
            Scheduler::Poll(poll) => poll.push(work),
            Scheduler::Sso(sso) => sso.push(work),
            Scheduler::OpenEm(em) => em.push(work),
        }
    }

    /// Returns the next work for `core`, and the time that the core needs to get it.
    pub fn pull(&mut self, core: u32) -> Option<(WorkItem, Duration)> {
        match self {
            Scheduler::Fifo(queue, _) => queue.pop_front().map(|work| (work, Duration::ZERO)),
            Scheduler::Poll(poll) => poll.pull(core),
            Scheduler::Sso(sso) => sso.pull(core),
            Scheduler::OpenEm(em) => em.pull(),
        }
    }

    /// Changes the tag of `work`, which a core holds. False if the work has to wait: the scheduler
    /// then holds it again, to be pulled later. Packets that were waiting behind its place in the
    /// order are appended to `leaving`.
    pub fn switch(&mut self, work: WorkItem, tag: Tag, leaving: &mut VecDeque<u32>) -> bool {
        match self {
            Scheduler::Sso(sso) => sso.switch(work, tag, leaving),
            _ => true,
        }
    }

    /// Ends `work`. Packets that may leave are appended to `leaving` in their order.
    pub fn finish(&mut self, work: WorkItem, leaving: &mut VecDeque<u32>) {
        match self {
            Scheduler::Sso(sso) => sso.finish(work, leaving),
            Scheduler::OpenEm(em) => {
                em.finish(work);
                leaving.push_back(work.packet);
            }
            Scheduler::Fifo(..) | Scheduler::Poll(_) => leaving.push_back(work.packet),
        }
    }

    /// True if there may be work for some core now.
    pub fn has_work(&self) -> bool {
        match self {
            Scheduler::Sso(sso) => sso.has_work(),
            _ => self.waiting() > 0,
        }
    }

    /// The number of packets that wait for a core.
    pub fn waiting(&self) -> usize {
        match self {
            Scheduler::Fifo(queue, _) => queue.len(),
            Scheduler::Poll(poll) => poll.waiting(),
            Scheduler::Sso(sso) => sso.waiting(),
            Scheduler::OpenEm(em) => em.waiting(),
        }
    }

    /// The number of packets that wait for a core, by group, if the scheduler has groups.
    pub fn waiting_by_group(&self) -> BTreeMap<u8, usize> {
        match self {
            Scheduler::Sso(sso) => sso.waiting_by_group(),
            _ => BTreeMap::new(),
        }
    }
}
