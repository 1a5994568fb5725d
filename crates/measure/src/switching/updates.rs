//! Measures rule changes while one core forwards at full load: how soon each change is in force,
//! how long bursts take meanwhile, and whether packets are lost. Once traffic runs, changes are
//! made one after the other. An empty loop of the same length runs between each two, and [`PAUSE`]
//! precedes each change and each loop. A third thread on the core of the changes makes new bases
//! and code at low priority.

use super::rules::{IN, OUT};
use super::{ChangeTimes, Made, Spread, SwitchQuestion, Updates};
use crate::{Effort, on_core, pin};
use fastpath_engine::priority::set_low_priority;
use fastpath_jit::{CompileError, Fate, Job, JobResult, Live};
use fastpath_switch::flow::FlowCommand;
use fastpath_switch::outcome::PacketOutcome;
use fastpath_switch::{Action, Field, FieldMatch, FlowMod, Instructions, Match, Switch};
use fastpath_units::Time;
use fastpath_units::stats::{median, quantile, sorted};
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Packets per burst.
const BURST: usize = 32;
/// Bursts before the first change.
const WARM_UP: u64 = 4096;
/// Sleep before each change and each empty loop.
const PAUSE: Duration = Duration::from_micros(500);
/// Maximum number of burst times kept.
const BURSTS_MAX: usize = 1 << 21;

pub(super) fn measure(question: &SwitchQuestion, made: &Made, mut live: Live, mut switch: Switch) -> Updates {
    let count = if question.effort == Effort::Quick { 100 } else { 1000 };
    let (is_over, bursts) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut worker = live.worker(0);
    thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            pin(1);
            let mut frames = made.frames.clone();
            let (mut times, mut packets, mut lost, mut at) = (Vec::with_capacity(BURSTS_MAX), 0, 0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                worker.begin(Time::ZERO);
                for _ in 0..BURST {
                    let frame = &mut frames[at];
                    at = (at + 1) % made.frames.len();
                    packets += 1;
                    let mut bytes = [0; 60];
                    bytes.copy_from_slice(&frame[..60]);
                    let is_forwarded = match worker.run(IN, &mut bytes) {
                        Fate::Forward { port, .. } => is_expected(port),
                        // Frames of actions that the active code does not support yet are left in
                        // the outcomes.
                        Fate::Done => worker.outcomes().drain(..).any(
                            |outcome| matches!(outcome, PacketOutcome::Output { port, .. } if is_expected(port)),
                        ),
                        Fate::Drop(_) => false,
                    };
                    lost += u64::from(!is_forwarded);
                }
                if bursts.fetch_add(1, Ordering::Relaxed) >= WARM_UP && times.len() < BURSTS_MAX {
                    times.push(micros(start.elapsed()));
                }
            }
            (times, packets, lost)
        });
        while bursts.load(Ordering::Relaxed) < WARM_UP && !traffic.is_finished() {
            thread::yield_now();
        }
        let update_us = on_core(0, || change(count, made, &mut live, &mut switch));
        is_over.store(true, Ordering::Relaxed);
        let (burst_us, packets, lost) =
            traffic.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Updates { update_us, burst_us: spread(&burst_us), packets, lost }
    })
}

/// Adds and removes rules for single addresses. The result of a background job is installed within
/// the time of the next change, which has to wait for it.
fn change(count: u32, made: &Made, live: &mut Live, switch: &mut Switch) -> ChangeTimes {
    let (done, finished) = mpsc::channel::<Result<JobResult, CompileError>>();
    let start_job = |job: Job| {
        let done = done.clone();
        thread::spawn(move || {
            set_low_priority();
            drop(done.send(job.run()));
        });
    };
    let mut is_busy = false;
    let (mut times, mut cpu_times, mut control) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..count {
        thread::sleep(PAUSE);
        let (start, cpu_start) = (Instant::now(), cpu_time());
        if let Ok(Ok(remade)) = finished.try_recv() {
            live.finish(switch, remade);
            is_busy = false;
        }
        if switch.flow_mod(Time::ZERO, &request(i, made)).is_err() {
            continue;
        }
        live.update(switch);
        times.push(micros(start.elapsed()));
        cpu_times.push(micros(cpu_time().saturating_sub(cpu_start)));
        if !is_busy && let Some(job) = live.job() {
            is_busy = true;
            start_job(job);
        }
        let median_us = median(times.iter().copied());
        thread::sleep(PAUSE);
        let start = Instant::now();
        while micros(start.elapsed()) < median_us {
            std::hint::spin_loop();
        }
        control.push(micros(start.elapsed()));
    }
    let max = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let times = sorted(times);
    ChangeTimes {
        median: quantile(&times, 0.5),
        p99: quantile(&times, 0.99),
        max: max(&times),
        cpu_max: max(&cpu_times),
        control_max: max(&control),
    }
}

/// Returns the CPU time of this thread.
pub(super) fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns request `i`: a rule for one address of the flows in the largest table with a different
/// output port, then its deletion.
fn request(i: u32, made: &Made) -> FlowMod {
    let key = &made.follow[(i / 2) as usize % made.follow.len()];
    let address = key.words()[6] as u32;
    let fields =
        [FieldMatch::exact(Field::EthType, 0x0800), FieldMatch::exact(Field::Ipv4Dst, address.into())];
    let matching = Match::new(&fields).unwrap_or_else(|_| Match::any());
    let apply = Instructions::apply([Action::output(OUT + 1)]);
    let add = FlowMod::add(made.largest, u16::MAX, matching, apply);
    if i.is_multiple_of(2) { add } else { FlowMod { command: FlowCommand::DeleteStrict, ..add } }
}

/// Returns whether frames may leave by this port: by the original rules of the table, or by an
/// added rule.
fn is_expected(port: u32) -> bool {
    port == OUT || port == OUT + 1
}

fn spread(values: &[f64]) -> Spread {
    let max = values.iter().copied().fold(0.0, f64::max);
    Spread { median: median(values.iter().copied()), max }
}
