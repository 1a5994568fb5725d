//! Measures how much more several workers of one switch pass than one. The switch is the one that
//! `fastpath switch --workers` runs: its data path, with ports that make and take frames in memory.
//!
//! ```text
//!  one worker     channel of IN ─▶ tables ─▶ OUT
//!  N workers      N channels of IN ─▶ tables ─▶ N channels of OUT       every worker has its own
//!                 N channels of IN ─▶ tables ─▶ OUT, one channel        all send by one, behind its lock
//! ```
//!
//! The three take turns, so that what else the machine does disturbs them alike. Other programs
//! take time from the workers: beside packets per second there are packets per second of CPU time,
//! and the part of the time that the workers had a core.

use super::rules::{self, IN, OUT};
use super::updates::cpu_time;
use super::{SwitchError, SwitchQuestion};
use crate::{Effort, Progress, pin};
use fastpath_engine::Notice;
use fastpath_engine::port::{BURST, Burst, Port, PortCounters, PortError};
use fastpath_engine::switching::{Control, Datapath, PacketInLimit, SwitchPort};
use fastpath_jit::Compiled;
use fastpath_net::{Frame, FramePool};
use fastpath_switch::Switch;
use fastpath_units::Time;
use fastpath_units::stats::median;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// Memory for frames in the data path.
const POOL: NonZeroUsize = NonZeroUsize::new(32 << 20).expect("not zero");
/// Turns of the loop between two looks at the clock.
const TURNS: usize = 64;

/// What workers pass together.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerRates {
    /// Packets per second, median.
    pub packets_per_second: f64,
    /// Packets per second of CPU time, summed over the workers, median.
    pub packets_per_cpu_second: f64,
    /// The part of the time that the workers had a core, median.
    pub cpu_share: f64,
}

/// How much more workers pass than one, in the same round.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WorkerRatios {
    /// Packets per second, median of the rounds.
    pub median: f64,
    /// Packets per second, the best round.
    pub best: f64,
    /// Packets per second of CPU time, median: that of a machine without other programs.
    pub by_cpu_time: f64,
}

/// What several workers of a switch pass.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkerScaling {
    /// Rules of all tables.
    pub rules: usize,
    /// Number of workers.
    pub workers: usize,
    /// Rounds, in each of which all take a turn.
    pub rounds: usize,
    /// One worker.
    pub one: WorkerRates,
    /// Several, each with channels of its own.
    pub own_channels: WorkerRates,
    /// Several, which send by one channel.
    pub shared_channel: WorkerRates,
    /// Of `own_channels` and `one`.
    pub own_channels_ratio: WorkerRatios,
    /// Of `shared_channel` and `one`.
    pub shared_channel_ratio: WorkerRatios,
}

/// Measures what `workers` workers pass, and what one does.
///
/// # Errors
/// The rules cannot be read, the operating system refuses a descriptor, or code generation does not
/// support this machine.
pub fn worker_scaling(
    question: &SwitchQuestion,
    workers: NonZeroUsize,
    progress: Progress<'_>,
) -> Result<WorkerScaling, SwitchError> {
    let (rounds, span) = match question.effort {
        Effort::Quick => (5, Duration::from_millis(200)),
        Effort::Full => (15, Duration::from_secs(1)),
    };
    progress("making rules", 0, rounds + 1);
    let made = rules::make(question)?;
    let frames: Arc<[Vec<u8>]> = made.frames.into();
    let one = NonZeroUsize::MIN;
    let shapes = [(one, one), (workers, workers), (workers, one)];
    let mut runs = Vec::new();
    for (workers, exits) in shapes {
        runs.push(WorkerRun::new(made.switch.clone(), workers, exits, &frames)?);
    }
    let mut found: [Vec<WorkerRates>; 3] = Default::default();
    for round in 0..rounds {
        progress("forwarding", round + 1, rounds + 1);
        for (run, found) in runs.iter_mut().zip(&mut found) {
            found.push(run.run(span));
        }
    }
    let [one, own, shared] = &found;
    Ok(WorkerScaling {
        rules: made.rules,
        workers: workers.get(),
        rounds,
        one: rates(one),
        own_channels: rates(own),
        shared_channel: rates(shared),
        own_channels_ratio: ratios(own, one),
        shared_channel_ratio: ratios(shared, one),
    })
}

fn rates(rounds: &[WorkerRates]) -> WorkerRates {
    let of = |value: fn(&WorkerRates) -> f64| median(rounds.iter().map(value));
    WorkerRates {
        packets_per_second: of(|round| round.packets_per_second),
        packets_per_cpu_second: of(|round| round.packets_per_cpu_second),
        cpu_share: of(|round| round.cpu_share),
    }
}

fn ratios(several: &[WorkerRates], one: &[WorkerRates]) -> WorkerRatios {
    let of = |value: fn(&WorkerRates) -> f64| -> Vec<f64> {
        several.iter().zip(one).map(|(several, one)| value(several) / value(one)).collect()
    };
    let by_time = of(|round| round.packets_per_second);
    WorkerRatios {
        best: by_time.iter().copied().fold(0.0, f64::max),
        median: median(by_time),
        by_cpu_time: median(of(|round| round.packets_per_cpu_second)),
    }
}

/// A switch, and its workers between runs.
struct WorkerRun {
    control: Control,
    workers: Vec<Datapath>,
}

impl WorkerRun {
    fn new(
        mut switch: Switch,
        workers: NonZeroUsize,
        exits: NonZeroUsize,
        frames: &Arc<[Vec<u8>]>,
    ) -> Result<WorkerRun, SwitchError> {
        let executor = Box::new(Compiled::for_workers(&mut switch, workers)?);
        let control = Control::with_workers(switch, executor, PacketInLimit::default(), workers, || ())?;
        let channel = |_| Box::new(Supply::new(frames)) as Box<dyn Port>;
        let entrance = SwitchPort { number: IN, channels: (0..workers.get()).map(channel).collect() };
        let none: Arc<[Vec<u8>]> = Arc::new([]);
        let channel = |_| Box::new(Supply::new(&none)) as Box<dyn Port>;
        let exit = SwitchPort { number: OUT, channels: (0..exits.get()).map(channel).collect() };
        let workers = Datapath::workers(&control, vec![entrance, exit], POOL, &Notice::none());
        Ok(WorkerRun { control, workers })
    }

    /// Lets all workers pass frames for this long, each on a core of its own.
    fn run(&mut self, span: Duration) -> WorkerRates {
        let received = |control: &Control| -> Vec<u64> {
            control.workers().into_iter().map(|worker| worker.received).collect()
        };
        let before = received(&self.control);
        let (start, stop) = (Barrier::new(self.workers.len() + 1), AtomicBool::new(false));
        let mut wall = 0.0;
        let work = |(core, worker): (usize, &mut Datapath)| {
            pin(core);
            start.wait();
            let before = cpu_time();
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..TURNS {
                    worker.iterate();
                }
            }
            (cpu_time() - before).as_secs_f64()
        };
        let work = &work;
        let workers = &mut self.workers;
        let times: Vec<f64> = thread::scope(|scope| {
            let spawn = |one| scope.spawn(move || work(one));
            let running: Vec<_> = workers.iter_mut().enumerate().map(spawn).collect();
            start.wait();
            let begin = Instant::now();
            thread::sleep(span);
            stop.store(true, Ordering::Relaxed);
            wall = begin.elapsed().as_secs_f64();
            let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|time| time.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let passed =
            received(&self.control).into_iter().zip(before).map(|(after, before)| (after - before) as f64);
        let passed: Vec<f64> = passed.collect();
        WorkerRates {
            packets_per_second: passed.iter().sum::<f64>() / wall,
            packets_per_cpu_second: passed.iter().zip(&times).map(|(passed, time)| passed / time).sum(),
            cpu_share: times.iter().sum::<f64>() / wall / times.len() as f64,
        }
    }
}

/// A port that receives a list of frames over and over, and takes all that is sent.
struct Supply {
    frames: Arc<[Vec<u8>]>,
    next: usize,
    counters: PortCounters,
}

impl Supply {
    fn new(frames: &Arc<[Vec<u8>]>) -> Supply {
        Supply { frames: Arc::clone(frames), next: 0, counters: PortCounters::default() }
    }
}

impl Port for Supply {
    fn name(&self) -> &str {
        "supply"
    }

    fn rx_burst(&mut self, _: Time, pool: &mut FramePool, burst: &mut Burst) -> Result<(), PortError> {
        for _ in 0..BURST.min(self.frames.len()) {
            let Some(frame) = pool.insert(&self.frames[self.next]) else { break };
            self.next = if self.next + 1 == self.frames.len() { 0 } else { self.next + 1 };
            self.counters.rx_frames += 1;
            if let Err(frame) = burst.push(frame) {
                pool.free(frame);
            }
        }
        Ok(())
    }

    fn tx_burst(
        &mut self,
        _: Time,
        pool: &mut FramePool,
        frames: &mut VecDeque<Frame>,
    ) -> Result<(), PortError> {
        for frame in frames.drain(..) {
            self.counters.tx_frames += 1;
            pool.free(frame);
        }
        Ok(())
    }

    fn counters(&mut self) -> PortCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    #[test]
    fn workers_pass_all_that_they_receive_and_no_more_than_their_cpu_time_allows() {
        let question = SwitchQuestion { rules: Rules::Mac(64), flows: 64, seed: 1, effort: Effort::Quick };
        let made = rules::make(&question).unwrap();
        let workers = NonZeroUsize::new(2).unwrap();
        let frames: Arc<[Vec<u8>]> = made.frames.into();
        let mut run = WorkerRun::new(made.switch, workers, NonZeroUsize::MIN, &frames).unwrap();
        let found = run.run(Duration::from_millis(50));
        assert!(found.packets_per_second > 0.0 && found.cpu_share <= 1.05, "{found:?}");
        let packets = run.control.accounting();
        assert!(packets.balances() && packets.sent == packets.received, "{packets:?}");
        assert!(run.control.workers().iter().all(|worker| worker.received > 0));
    }
}
