//! A switch as a pipeline: receive, through its compiled tables, send. Tables and flows are those of `switching/`.

use super::netcope::Netcope;
use super::pipeline::{self, Device, Source};
use super::switching::{SwitchError, SwitchQuestion, prepared};
use super::{Progress, on_core};
use fastpath_engine::port::{BURST, Burst, Memory, MemoryEnd, Port};
use fastpath_jit::{Fate, Worker};
use fastpath_net::{Frame, FramePool};
use fastpath_units::{Duration, Time};
use std::collections::VecDeque;
use std::num::NonZeroUsize;

const POOL_LIMIT: NonZeroUsize = NonZeroUsize::new(64 << 20).unwrap();
/// Bytes of each ring of the port, at least.
const RING: usize = 1 << 20;
/// Virtual time between bursts: idle timeouts are longer.
const TURN: Duration = Duration::from_us(1);

/// Measures `packets` frames of `size` bytes in bursts of `burst` through the tables of `question`, on one core.
///
/// # Errors
/// The rules cannot be read, or there is no code for this machine.
pub fn switched(
    question: &SwitchQuestion,
    (size, burst, packets): (usize, usize, u64),
    progress: Progress<'_>,
) -> Result<Netcope, SwitchError> {
    let (live, entrance, mut frames) = prepared(question)?;
    frames.iter_mut().for_each(|frame| frame.resize(frame.len().max(size), 0));
    let cost = on_core(0, || {
        let (port, end) = Memory::new("memory", RING.max(burst * (size + 64)));
        let mut tables = Tables {
            port,
            pool: FramePool::new(POOL_LIMIT),
            burst: Burst::new(),
            work: Vec::with_capacity(Burst::MAX),
            out: VecDeque::with_capacity(BURST),
            worker: live.worker(0),
            entrance,
            now: Time::ZERO,
        };
        pipeline::run(&mut tables, &mut InTurn { frames, burst, next: 0 }, &end, packets, progress)
    });
    Ok(Netcope::of(cost))
}

/// The device.
struct Tables {
    port: Memory,
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

    fn turn(&mut self, mark: &mut impl FnMut(usize)) {
        loop {
            // A memory port does not fail.
            let _ = self.port.rx_burst(self.now, &mut self.pool, &mut self.burst);
            if self.burst.is_empty() {
                return;
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
            let _ = self.port.tx_burst(self.now, &mut self.pool, &mut self.out);
            // What the world does not take is lost, as at a full NIC.
            self.out.drain(..).for_each(|frame| self.pool.free(frame));
            mark(2);
        }
    }
}

/// Frames of all flows, in turn.
struct InTurn {
    frames: Vec<Vec<u8>>,
    burst: usize,
    next: usize,
}

impl Source for InTurn {
    fn burst(&self) -> usize {
        self.burst
    }

    fn fill(&mut self, end: &MemoryEnd) -> usize {
        let from = self.next;
        self.next += self.burst;
        end.send((from..self.next).map(|i| self.frames[i % self.frames.len()].as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Effort, Rules};

    #[test]
    fn a_switch_is_a_pipeline_of_three_stages() {
        let rules = Rules::Cidr(10);
        let question = SwitchQuestion { rules, flows: 100, seed: 1, effort: Effort::Quick };
        let found = switched(&question, (128, 64, 4000), &|_, _, _| {}).unwrap();
        let names: Vec<&str> = found.stages.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["receive", "tables", "send"]);
        assert!(found.t_ns > 0.0);
    }
}
