//! Measures the whole path on one core: a frame is received from a memory port, passes the tables,
//! and is sent to another port. The far ends are filled and emptied outside of the timed section.

use super::rules::IN;
use super::{Made, Rates, SwitchQuestion};
use crate::Effort;
use fastpath_engine::port::{Burst, Memory, MemoryEnd, Port};
use fastpath_jit::{Fate, Live, Worker};
use fastpath_net::{Frame, FramePool};
use fastpath_plan::Plan;
use fastpath_switch::{PacketOutcome, interp_by};
use fastpath_units::Time;
use fastpath_units::stats::median;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Size of the rings, bytes: room for 16 Ki frames.
const RING: usize = 1 << 20;

pub(super) fn measure(question: &SwitchQuestion, made: &Made, live: &Live) -> Rates {
    let span = Duration::from_millis(if question.effort == Effort::Quick { 200 } else { 1500 });
    let mut worker = live.worker(0);
    let compiled = Path::new().rate(&made.frames, span, &mut |path, now| path.compiled(&mut worker, now));
    let mut switch = made.switch.clone();
    let plan = Plan::new(&mut switch);
    let interpreted = Path::new().rate(&made.frames, span, &mut |path, now| {
        path.interpreted(now, |now, frame| interp_by(&plan, &mut switch, now, IN, frame));
    });
    Rates { compiled, interpreted }
}

/// Two ports and the frames between them.
struct Path {
    entrance: Memory,
    exit: Memory,
    far_entrance: MemoryEnd,
    far_exit: MemoryEnd,
    pool: FramePool,
    burst: Burst,
    leaving: VecDeque<Frame>,
}

impl Path {
    fn new() -> Path {
        let (entrance, far_entrance) = Memory::new("in", RING);
        let (exit, far_exit) = Memory::new("out", RING);
        let pool = FramePool::default();
        let (burst, leaving) = (Burst::new(), VecDeque::with_capacity(2 * Burst::MAX));
        Path { entrance, exit, far_entrance, far_exit, pool, burst, leaving }
    }

    /// Returns packets per second: the median of rounds that each empty a full ring.
    fn rate(&mut self, frames: &[Vec<u8>], span: Duration, turn: &mut dyn FnMut(&mut Path, Time)) -> f64 {
        let mut next = frames.iter().cycle();
        let mut rates = Vec::new();
        let begin = Instant::now();
        let mut round = 0;
        while begin.elapsed() < span || round < 5 {
            let sent = self.far_entrance.send(next.by_ref().map(Vec::as_slice));
            let start = Instant::now();
            let mut has_frames = true;
            while has_frames {
                let before = self.entrance.counters().rx_frames;
                turn(self, Time::from_ps(round * 1_000_000));
                has_frames = self.entrance.counters().rx_frames != before;
            }
            let elapsed = start.elapsed().as_secs_f64();
            let received = self.far_exit.recv(usize::MAX, |frame| assert_eq!(frame.len(), 60));
            assert_eq!(received, sent, "the path lost frames");
            rates.push(sent as f64 / elapsed);
            round += 1;
        }
        median(rates)
    }

    fn receive(&mut self, now: Time) {
        let Path { entrance, pool, burst, .. } = self;
        entrance.rx_burst(now, pool, burst).expect("memory ports do not fail");
    }

    fn send(&mut self, now: Time) {
        while !self.leaving.is_empty() {
            let Path { exit, pool, leaving, .. } = self;
            exit.tx_burst(now, pool, leaving).expect("memory ports do not fail");
        }
    }

    fn compiled(&mut self, worker: &mut Worker, now: Time) {
        self.receive(now);
        worker.begin(now);
        let Path { pool, burst, leaving, .. } = self;
        for mut frame in burst.drain() {
            match worker.run(IN, pool.bytes_mut(&mut frame)) {
                Fate::Forward { .. } => leaving.push_back(frame),
                Fate::Drop(_) | Fate::Done => pool.free(frame),
            }
        }
        self.send(now);
    }

    fn interpreted(&mut self, now: Time, mut run: impl FnMut(Time, &[u8]) -> Vec<PacketOutcome>) {
        self.receive(now);
        let Path { pool, burst, leaving, .. } = self;
        for frame in burst.drain() {
            for outcome in run(now, pool.bytes(&frame)) {
                if let PacketOutcome::Output { frame, .. } = outcome {
                    leaving.extend(pool.insert(&frame));
                }
            }
            pool.free(frame);
        }
        self.send(now);
    }
}
