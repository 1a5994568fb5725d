//! The executor of generated code, for a data path of one or several threads.

use crate::live::{Job, JobResult, Live};
use crate::native::{CompileError, Fate, Worker};
use fastpath_switch::execute::{
    BackgroundJob, CreditPosition, Executor, Forwarder, Outbox, OutboxEntry, Verdict,
};
use fastpath_switch::outcome::LearnedChange;
use fastpath_switch::{Rank, Switch};
use fastpath_units::Time;
use std::any::Any;
use std::num::NonZeroUsize;

/// A switch as machine code, with one or several workers.
#[derive(Debug)]
pub struct Compiled {
    live: Live,
    /// The workers that the data path has not taken, the last number first. The first to be taken
    /// executes packets until then.
    workers: Vec<OneWorker>,
    count: usize,
}

/// The worker, and the time of its burst.
#[derive(Debug)]
struct OneWorker {
    worker: Worker,
    now: Option<Time>,
}

impl Compiled {
    /// Compiles a switch in its present state, for one worker.
    ///
    /// No code can be generated for this machine.
    pub fn new(switch: &mut Switch) -> Result<Compiled, CompileError> {
        Compiled::for_workers(switch, NonZeroUsize::MIN)
    }

    /// Compiles a switch in its present state, for a data path of `count` workers.
    ///
    /// No code can be generated for this machine.
    pub fn for_workers(switch: &mut Switch, count: NonZeroUsize) -> Result<Compiled, CompileError> {
        let live = Live::new(switch, count.get())?;
        let worker = |id| OneWorker { worker: live.worker(id), now: None };
        let workers = (0..count.get()).rev().map(worker).collect();
        Ok(Compiled { live, workers, count: count.get() })
    }

    /// Releases replaced programs, even while no packets arrive.
    fn renew(&mut self) {
        for one in &mut self.workers {
            one.worker.begin(Time::ZERO);
            one.now = None;
        }
    }

    /// Returns the tables and their code.
    pub fn live(&self) -> &Live {
        &self.live
    }
}

impl Executor for Compiled {
    fn update(&mut self, switch: &mut Switch) {
        self.live.update(switch);
        self.renew();
    }

    fn update_flows(&mut self, switch: &mut Switch, tables: &[u8]) {
        self.live.update_flows(switch, tables);
        self.renew();
    }

    fn execute(
        &mut self,
        switch: &mut Switch,
        now: Time,
        in_port: u32,
        frame: &mut [u8],
        out: &mut Outbox,
    ) -> Verdict {
        let Some(one) = self.workers.last_mut() else { unreachable!("the data path executes packets") };
        if one.now != Some(now) {
            one.begin(now);
        }
        let verdict = one.run(in_port, frame, out);
        let learned = one.worker.take_learned();
        if !learned.is_empty() {
            let (change, tables) = switch.learn_all(now, &learned);
            match change {
                LearnedChange::None => {}
                LearnedChange::Flows => self.update_flows(switch, &tables),
                LearnedChange::OtherTables => self.update(switch),
            }
            learned.into_iter().for_each(|flow| out.push(OutboxEntry::Learn(Box::new(flow)), &[]));
        }
        verdict
    }

    fn forwarder(&mut self) -> Option<Box<dyn Forwarder>> {
        self.workers.pop().map(|one| Box::new(one) as Box<dyn Forwarder>)
    }

    fn waits_for_forwarder(&self) -> bool {
        self.workers.len() < self.count && self.live.has_retired()
    }

    fn credit(&mut self, switch: &mut Switch) {
        self.live.settle(switch);
    }

    fn credit_part(&mut self, switch: &mut Switch, from: CreditPosition) -> Option<CreditPosition> {
        self.live.settle_part(switch, from)
    }

    fn credit_flows(&mut self, switch: &mut Switch, flows: &[(u8, Rank)]) {
        self.live.settle_flows(switch, flows);
    }

    fn job(&mut self, _: &Switch) -> Option<BackgroundJob> {
        self.live.job().map(boxed)
    }

    fn finish(&mut self, switch: &mut Switch, result: Box<dyn Any + Send>) {
        // Without new code the old code continues, with the delta on top of it.
        match result.downcast::<Result<JobResult, CompileError>>().map(|made| *made) {
            Ok(Ok(made)) => self.live.finish(switch, made),
            Ok(Err(_)) | Err(_) => self.live.give_up(),
        }
        self.renew();
    }

    fn tidy(&mut self, switch: &mut Switch) -> bool {
        self.live.tidy(switch)
    }

    fn is_pressing(&self) -> bool {
        self.live.is_pressing()
    }

    fn is_behind(&self) -> bool {
        self.live.is_behind()
    }
}

impl Forwarder for OneWorker {
    fn begin(&mut self, now: Time) {
        self.worker.begin(now);
        self.now = Some(now);
    }

    fn prefetch(&self, frames: &mut dyn Iterator<Item = &[u8]>) {
        self.worker.connections().prefetch(frames);
    }

    fn execute(&mut self, in_port: u32, frame: &mut [u8], out: &mut Outbox) -> Verdict {
        let verdict = self.run(in_port, frame, out);
        let learned = self.worker.take_learned();
        learned.into_iter().for_each(|flow| out.push(OutboxEntry::Learn(Box::new(flow)), &[]));
        verdict
    }
}

impl OneWorker {
    /// Executes a frame; what it learned is still with the worker.
    fn run(&mut self, in_port: u32, frame: &mut [u8], out: &mut Outbox) -> Verdict {
        let fate = self.worker.run(in_port, frame);
        self.worker.outcomes().iter().for_each(|outcome| out.push_outcome(outcome));
        match fate {
            Fate::Forward { port, queue } => return Verdict::Forward { port, queue },
            Fate::Drop(reason) => out.push(OutboxEntry::Drop(reason), &[]),
            Fate::Done => {}
        }
        Verdict::Done
    }
}

fn boxed(job: Job) -> BackgroundJob {
    Box::new(move || Box::new(job.run()))
}
