//! Measures a switch as a pipeline: receive, look up in the compiled tables, send. Tables and flows
//! are those of `switching/`.

use super::netcope::Netcope;
use super::pipeline::{self, Device, InTurn};
use super::rate::{self, Hunt};
use super::search::Found;
use super::switching::{SwitchError, SwitchQuestion, prepared};
use super::{DutPort, Progress};
use fastpath_engine::port::{BURST, Burst, Memory, MemoryEnd, Port};
use fastpath_jit::{Fate, Live, Worker};
use fastpath_net::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Minimum size of each ring of the port, bytes.
const RING: usize = 1 << 20;
/// Virtual time between bursts, shorter than any idle timeout.
const TURN: Duration = Duration::from_us(1);

/// Measures `frames.packets` frames of `frames.size` bytes in bursts of `frames.burst` through the
/// tables of `question`, on each of `cores` cores with a port of its own.
///
/// # Errors
/// The rules cannot be read, or code generation does not support this machine.
pub fn switched(
    question: &SwitchQuestion,
    frames: SwitchFrames,
    cores: usize,
    progress: Progress<'_>,
) -> Result<Netcope, SwitchError> {
    let tables = Prepared::new(question, frames, cores)?;
    let costs = pipeline::on_cores(cores, progress, |core, ready, progress| {
        let (port, end) = frames.memory();
        let (mut device, mut source) = (tables.device(core, Box::new(port)), tables.source());
        ready();
        pipeline::run(&mut device, &mut source, &end, frames.packets, progress)
    });
    Ok(Netcope::of_all(costs))
}

/// Measures as [`switched`], on one core with its port on a real interface, as
/// [`netcope_over`](super::netcope_over). Also returns the highest rate within each goal.
///
/// # Errors
/// The errors of [`switched`] and of a search.
pub fn switched_over(
    question: &SwitchQuestion,
    frames: SwitchFrames,
    dut_port: DutPort,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<(Netcope, Vec<Found>), SwitchError> {
    let tables = Prepared::new(question, frames, 1)?;
    let (port, far) = dut_port.into_parts();
    let (mut device, mut source) = (tables.device(0, port), tables.source());
    let (cost, far) = rate::cost_over(&mut device, &mut source, far, frames.packets, progress);
    let rates = rate::search_over(&mut device, &mut source, far, cost.median_ns, hunt, progress)?;
    Ok((Netcope::of(cost), rates))
}

/// Searches the highest rate of one core within each goal, as
/// [`netcope_throughput`](super::netcope_throughput).
///
/// # Errors
/// As [`switched_over`].
pub fn switched_throughput(
    question: &SwitchQuestion,
    frames: SwitchFrames,
    t_ns: f64,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<Vec<Found>, SwitchError> {
    if hunt.goals.is_empty() {
        return Ok(Vec::new());
    }
    let tables = Prepared::new(question, frames, 1)?;
    let (port, end) = frames.memory();
    let mut device = tables.device(0, Box::new(port));
    Ok(rate::in_own_time(&mut device, &mut tables.source(), end, t_ns, hunt, progress)?)
}

/// The frames offered to a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchFrames {
    /// Minimum frame size, bytes; some tables need longer headers.
    pub size: usize,
    /// Frames per burst.
    pub burst: usize,
    /// Frames to time on each core.
    pub packets: u64,
}

impl SwitchFrames {
    fn memory(self) -> (Memory, MemoryEnd) {
        Memory::new("memory", RING.max(self.burst * (self.size + 64)))
    }
}

/// Compiled tables, and frames that match them.
struct Prepared {
    live: Live,
    entrance: u32,
    frames: Arc<Vec<Vec<u8>>>,
    burst: usize,
}

impl Prepared {
    fn new(
        question: &SwitchQuestion,
        SwitchFrames { size, burst, .. }: SwitchFrames,
        cores: usize,
    ) -> Result<Prepared, SwitchError> {
        let (live, entrance, mut frames) = prepared(question, cores)?;
        for frame in &mut frames {
            frame.resize(frame.len().max(size), 0);
            // Unicast destinations only: on a wire, the kernel handles multicast frames too. No
            // table that random frames match uses this bit.
            frame[0] &= !1;
        }
        Ok(Prepared { live, entrance, frames: Arc::new(frames), burst })
    }

    fn source(&self) -> InTurn {
        InTurn::new(Arc::clone(&self.frames), self.burst)
    }

    fn device(&self, core: usize, port: Box<dyn Port>) -> Tables {
        Tables {
            port,
            pool: FramePool::default(),
            burst: Burst::new(),
            work: Vec::with_capacity(Burst::MAX),
            out: VecDeque::with_capacity(BURST),
            worker: self.live.worker(core),
            entrance: self.entrance,
            now: Time::ZERO,
        }
    }
}

/// The device under test: compiled tables behind a port.
struct Tables {
    port: Box<dyn Port>,
    pool: FramePool,
    burst: Burst,
    work: Vec<Frame>,
    out: VecDeque<Frame>,
    worker: Worker,
    entrance: u32,
    now: Time,
}

impl Device for Tables {
    const STAGES: &'static [&'static str] = &["receive", "tables", "send"];

    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
        // Receive and send errors show as loss.
        let _ = self.port.rx_burst(self.now, &mut self.pool, &mut self.burst);
        let frames = self.burst.len();
        if frames == 0 {
            return 0;
        }
        self.work.extend(self.burst.drain());
        mark(0);
        self.now += TURN;
        self.worker.begin(self.now);
        for mut frame in self.work.drain(..) {
            match self.worker.run(self.entrance, self.pool.bytes_mut(&mut frame)) {
                Fate::Forward { .. } => self.out.push_back(frame),
                Fate::Drop(_) | Fate::Done => self.pool.free(frame),
            }
        }
        mark(1);
        pipeline::send(&mut *self.port, self.now, &mut self.pool, &mut self.out);
        mark(2);
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::super::dut_port::tests::open_or_skip;
    use super::*;
    use crate::{DutAttachment, Effort, Goal, Rules};
    use std::time::Duration;

    #[test]
    fn a_switch_is_a_pipeline_of_three_stages() {
        let found = switched(&question(), FRAMES, 1, &|_, _, _| {}).unwrap();
        let names: Vec<&str> = found.stages.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["receive", "tables", "send"]);
        assert!(found.t_ns > 0.0);
        let two = switched(&question(), FRAMES, 2, &|_, _, _| {}).unwrap();
        assert!((two.packets_per_second * two.t_ns / 2e9 - 1.0).abs() < 0.5, "{two:?}");
    }

    const FRAMES: SwitchFrames = SwitchFrames { size: 128, burst: 64, packets: 4000 };

    fn question() -> SwitchQuestion {
        SwitchQuestion { rules: Rules::Cidr(10), flows: 100, seed: 1, effort: Effort::Quick }
    }

    #[test]
    fn a_search_finds_the_highest_rate_of_a_switch() {
        let goals = [Goal { loss_ratio: 0.0 }];
        let hunt = Hunt { goals: &goals, duration: Duration::from_millis(2), width: 0.1, queue: 4096 };
        let found = switched_throughput(&question(), FRAMES, 500.0, hunt, &|_, _, _| {}).expect("a rate");
        assert!(found[0].lower_pps >= Some(2000.0), "{found:?}");
    }

    #[test]
    fn the_switch_works_behind_a_dut_port() {
        let Some(dut_port) = open_or_skip(&DutAttachment::Veth, "the_switch_works_behind_a_dut_port") else {
            return;
        };
        // Another process on the core may delay the kernel's half of the path, so that some frames
        // arrive too late.
        let goals = [Goal { loss_ratio: 0.4 }];
        let hunt = Hunt { goals: &goals, duration: Duration::from_millis(2), width: 0.1, queue: 4096 };
        let (found, rates) =
            switched_over(&question(), FRAMES, dut_port, hunt, &|_, _, _| {}).expect("a rate");
        assert!(found.t_ns > 0.0 && rates.len() == 1, "{found:?} {rates:?}");
        // A path that loses half of the frames would not meet this goal.
        assert!(rates[0].lower_pps.is_some(), "frames are forwarded: {rates:?}");
    }
}
