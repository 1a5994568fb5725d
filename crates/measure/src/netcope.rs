//! Measures the test application of Netcope 2017 on the engine: receive, h steps of parsing and
//! hashing, push a VLAN tag, send. The model T = C + P·p + H·h is fitted to its time per packet.
//! Without steps and tag the application is a plain forwarder.

use super::dut_port::DutPort;
use super::pipeline::{self, Cost, Device, InTurn, Stage};
use super::rate::{self, Hunt};
use super::search::{Found, SearchError};
use super::slowdown::Slowed;
use super::{Progress, Slowdown};
use fastpath_engine::port::{BURST, Burst, Memory, MemoryEnd, Port};
use fastpath_net::{Frame, FramePool};
use fastpath_units::Time;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of each ring of the port, at least.
const RING: usize = 1 << 20;
/// IEEE 802.1Q tag: TPID 0x8100 and VLAN 100.
const TAG: [u8; 4] = [0x81, 0x00, 0x00, 0x64];
/// Destination and source address of every frame.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
const MACS: usize = ADDRESSES.len();
/// Bytes of an Ethernet header.
const HEADERS: usize = 14;
/// Bytes that a step hashes.
const WORD: usize = 8;

/// Parameters of a Netcope measurement.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct NetcopeQuestion {
    /// Frame size without FCS, bytes, at least 60.
    pub p: usize,
    /// Steps of parsing and hashing per packet.
    pub h: usize,
    /// Number of cores. Each has its own port and device.
    pub cores: usize,
    /// Frames per arriving burst.
    pub burst: usize,
    /// Number of different flows.
    pub flows: usize,
    /// Packets timed on each core.
    pub packets: u64,
    /// Whether the application pushes a VLAN tag.
    pub tag: Tag,
    /// Factor by which the core is slowed down, 1 … 100: 1 is no slowdown.
    #[serde(default = "no_slowdown")]
    pub slowdown: f64,
}

fn no_slowdown() -> f64 {
    1.0
}

/// Selects whether the application pushes a VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// Push a tag, as in Netcope 2017.
    Push,
    /// Push no tag.
    None,
}

/// The result of a Netcope measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Netcope {
    /// Median time per packet, ns·core.
    #[serde(rename = "T_ns")]
    pub t_ns: f64,
    /// Mean time per packet, ns·core, host stalls included.
    pub mean_ns: f64,
    /// 90th percentile of the bursts' time per packet, ns·core.
    pub p90_ns: f64,
    /// Packets per second, total of all cores, from the median times.
    pub packets_per_second: f64,
    /// Time per packet by stage.
    pub stages: Vec<Stage>,
    /// Sum of the stages minus the total time, % of the total time.
    pub stages_minus_whole_pct: f64,
    /// Number of timed bursts.
    pub rounds: usize,
}

/// Measures the application on memory ports.
///
/// # Panics
/// Panics if the slowdown is out of range.
pub fn netcope(question: &NetcopeQuestion, progress: Progress<'_>) -> Netcope {
    let slowdown = Slowdown::new(question.slowdown).unwrap_or_else(|wrong| panic!("{wrong}"));
    let costs = pipeline::on_cores(question.cores, progress, |_, ready, progress| {
        let (device, end) = Application::new(question);
        let (mut device, mut source) = (Slowed { device, slowdown }, source(question));
        ready();
        pipeline::run(&mut device, &mut source, &end, question.packets, progress)
    });
    Netcope::of_all(costs)
}

impl Netcope {
    /// Combines the costs of concurrent cores: the means of their times, the sum of their rates,
    /// and the stages of the first core.
    pub(super) fn of_all(mut costs: Vec<Cost>) -> Netcope {
        let n = costs.len() as f64;
        let mean = |of: &dyn Fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / n;
        let (t_ns, mean_ns, p90_ns) = (mean(&|c| c.median_ns), mean(&|c| c.mean_ns), mean(&|c| c.p90_ns));
        let packets_per_second = costs.iter().map(|c| 1e9 / c.median_ns).sum();
        Netcope { t_ns, mean_ns, p90_ns, packets_per_second, ..Netcope::of(costs.swap_remove(0)) }
    }

    /// Converts the cost of one core.
    pub(super) fn of(cost: Cost) -> Netcope {
        Netcope {
            t_ns: cost.median_ns,
            mean_ns: cost.mean_ns,
            p90_ns: cost.p90_ns,
            packets_per_second: 1e9 / cost.median_ns,
            stages: cost.stages,
            stages_minus_whole_pct: cost.stages_minus_whole_pct,
            rounds: cost.rounds,
        }
    }
}

/// Measures the application on one core with its port on a real interface. The time includes the
/// kernel's work to receive and send. If `hunt` has goals, the function also searches the highest
/// rates, like [`netcope_throughput`].
///
/// Between two interfaces of this machine the search runs in real time. The device has its own core
/// and uses the kernel's queue. A trial with loss during a host stall is repeated.
///
/// # Errors
/// Returns the errors of [`netcope_throughput`].
pub fn netcope_over(
    question: &NetcopeQuestion,
    dut_port: DutPort,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<(Netcope, Vec<Found>), SearchError> {
    let (port, tester) = dut_port.into_parts();
    let (mut device, mut source) = (Application::on(port, question), source(question));
    let (cost, tester) = rate::cost_over(&mut device, &mut source, tester, question.packets, progress);
    let rates = rate::search_over(&mut device, &mut source, tester, cost.median_ns, hunt, progress)?;
    Ok((Netcope::of(cost), rates))
}

/// Searches the highest rate of the application on one core within each goal (RFC 2544), in the
/// device's own time: see `offered.rs`. `t_ns` is the usual time per packet.
///
/// # Errors
/// Returns [`SearchError`] if the peak rate is not a valid load.
pub fn netcope_throughput(
    question: &NetcopeQuestion,
    t_ns: f64,
    hunt: Hunt<'_>,
    progress: Progress<'_>,
) -> Result<Vec<Found>, SearchError> {
    if hunt.goals.is_empty() {
        return Ok(Vec::new());
    }
    let (mut device, end) = Application::new(question);
    rate::in_own_time(&mut device, &mut source(question), end, t_ns, hunt, progress)
}

/// The test application: the device under test.
struct Application {
    port: Box<dyn Port>,
    pool: FramePool,
    burst: Burst,
    work: Vec<Frame>,
    out: VecDeque<Frame>,
    steps: usize,
    tag: Tag,
    scratch: Vec<u8>,
    hashes: u64,
}

impl Application {
    fn new(question: &NetcopeQuestion) -> (Application, MemoryEnd) {
        let (port, end) = Memory::new("memory", RING.max(question.burst * (question.p + 64)));
        (Application::on(Box::new(port), question), end)
    }

    fn on(port: Box<dyn Port>, question: &NetcopeQuestion) -> Application {
        Application {
            port,
            pool: FramePool::default(),
            burst: Burst::new(),
            work: Vec::with_capacity(Burst::MAX),
            out: VecDeque::with_capacity(BURST),
            steps: question.h,
            tag: question.tag,
            scratch: vec![0; question.p + TAG.len()],
            hashes: 0,
        }
    }

    /// Copies the frame and inserts the tag after its addresses. Returns `None` if the pool cannot
    /// allocate it.
    fn push_tag(&mut self, frame: Frame) -> Option<Frame> {
        let bytes = self.pool.bytes(&frame);
        let len = bytes.len() + TAG.len();
        self.scratch.resize(self.scratch.len().max(len), 0);
        self.scratch[..MACS].copy_from_slice(&bytes[..MACS]);
        self.scratch[MACS..MACS + TAG.len()].copy_from_slice(&TAG);
        self.scratch[MACS + TAG.len()..len].copy_from_slice(&bytes[MACS..]);
        self.pool.free(frame);
        self.pool.insert(&self.scratch[..len])
    }
}

impl Device for Application {
    const STAGES: &'static [&'static str] = &["receive", "steps", "tag", "send"];

    fn burst(&mut self, mark: &mut impl FnMut(usize)) -> usize {
        // Memory ports do not fail. On an interface a failed receive shows as loss.
        let _ = self.port.rx_burst(Time::ZERO, &mut self.pool, &mut self.burst);
        if self.burst.is_empty() {
            return 0;
        }
        self.work.extend(self.burst.drain());
        let frames = self.work.len();
        mark(0);
        for frame in &self.work {
            self.hashes = steps(self.pool.bytes(frame), self.steps, self.hashes);
        }
        std::hint::black_box(self.hashes);
        mark(1);
        let mut work = std::mem::take(&mut self.work);
        match self.tag {
            Tag::Push => work.drain(..).for_each(|frame| {
                let tagged = self.push_tag(frame);
                self.out.extend(tagged);
            }),
            Tag::None => self.out.extend(work.drain(..)),
        }
        self.work = work;
        mark(2);
        pipeline::send(&mut *self.port, Time::ZERO, &mut self.pool, &mut self.out);
        mark(3);
        frames
    }
}

/// Runs `h` steps on a packet and returns the new hash. A step moves ahead by a distance that
/// depends on the packet and hashes some of its bytes. Each step depends on the previous step. The
/// first step depends on the last step of the previous packet through `hash`. Without this
/// dependency a core would execute steps of several packets in parallel if h is small, and the cost
/// of a step would rise with h.
fn steps(bytes: &[u8], h: usize, mut hash: u64) -> u64 {
    let room = bytes.len() - HEADERS - WORD + 1;
    let mut at = 0;
    for _ in 0..h {
        let from = HEADERS + at;
        let word = u64::from_le_bytes(bytes[from..from + WORD].try_into().expect("8 bytes"));
        // Parsing: the next header determines the next position. The longest hop is shorter than
        // `room`, so one subtraction suffices.
        let hop = match (word ^ hash) & 0x7 {
            0 | 1 => 1,
            2 | 3 => 3,
            4 => 5,
            5 => 7,
            6 => 11,
            _ => 13,
        };
        let next = at + hop;
        at = if next >= room { next - room } else { next };
        // A table lookup's hash: FNV-1a over both halves of the word.
        hash = (hash ^ (word & 0xffff_ffff)).wrapping_mul(0x0000_0100_0000_01b3);
        hash = (hash ^ (word >> 32)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// Creates a source of frames of different flows, in turn.
fn source(question: &NetcopeQuestion) -> InTurn {
    let frame = |flow: usize| {
        let mut bytes: Vec<u8> = (0..question.p).map(|i| (i * 31 + flow * 17) as u8).collect();
        bytes[..MACS].copy_from_slice(&ADDRESSES);
        bytes[MACS..HEADERS].copy_from_slice(&[0x08, 0x00]);
        bytes[HEADERS..HEADERS + 8].copy_from_slice(&(flow as u64).to_le_bytes());
        bytes
    };
    InTurn::new(Arc::new((0..question.flows).map(frame).collect()), question.burst)
}

#[cfg(test)]
mod tests {
    use super::super::dut_port::DutAttachment;
    use super::super::dut_port::tests::open_or_skip;
    use super::super::pipeline::{End, Source};
    use super::super::search::Goal;
    use super::*;
    use std::time::{Duration, Instant};

    fn question(p: usize, h: usize) -> NetcopeQuestion {
        NetcopeQuestion { p, h, cores: 1, burst: 64, flows: 3, packets: 4000, tag: Tag::Push, slowdown: 1.0 }
    }

    #[test]
    fn every_frame_is_sent_with_a_tag_after_its_addresses() {
        let (mut device, end) = Application::new(&question(60, 2));
        let mut frames = source(&question(60, 2));
        assert_eq!(frames.fill(&end), 64);
        device.turn(&mut |_| {});
        let mut number = 0;
        let out = end.recv(100, |bytes| {
            let original = source(&question(60, 2)).frames[number % 3].clone();
            assert_eq!([&original[..12], &TAG, &original[12..]].concat(), bytes);
            number += 1;
        });
        assert_eq!((out, device.pool.live()), (64, 0));
    }

    #[test]
    fn a_plain_forwarder_changes_nothing() {
        let plain = NetcopeQuestion { tag: Tag::None, ..question(1500, 0) };
        let (mut device, end) = Application::new(&plain);
        end.send([&[7u8; 1500][..]]);
        device.turn(&mut |_| {});
        assert_eq!(end.recv(9, |bytes| assert_eq!(bytes, [7; 1500])), 1);
    }

    #[test]
    fn the_hash_depends_on_the_packet_and_on_the_number_of_steps() {
        let [a, b] = [source(&question(64, 1)).frames, source(&question(64, 1)).frames];
        assert_eq!(steps(&a[0], 5, 1), steps(&b[0], 5, 1));
        assert_ne!(steps(&a[0], 5, 1), steps(&a[1], 5, 1));
        assert_ne!(steps(&a[0], 5, 1), steps(&a[0], 6, 1));
        assert_ne!(steps(&a[0], 5, 1), steps(&a[0], 5, 2));
        assert_eq!(steps(&a[0], 0, 7), 7);
    }

    #[test]
    fn steps_cost_time_and_all_stages_are_reported() {
        // The step counts alternate and the minimum of each counts, because a machine can change
        // its speed between runs.
        let (mut whole, mut step) = ([f64::INFINITY; 2], [f64::INFINITY; 2]);
        for _ in 0..5 {
            for (i, h) in [0, 100].into_iter().enumerate() {
                let found = netcope(&question(64, h), &|_, _, _| {});
                let names: Vec<&str> = found.stages.iter().map(|s| s.name.as_str()).collect();
                assert_eq!(names, ["receive", "steps", "tag", "send"]);
                whole[i] = whole[i].min(found.t_ns);
                step[i] = step[i].min(found.stages[1].ns);
            }
        }
        assert!(whole[0] < whole[1] && step[0] < step[1], "{whole:?} {step:?}");
    }

    #[test]
    fn frames_pass_a_veth_pair_with_either_socket() {
        for attachment in [DutAttachment::Veth, DutAttachment::Xdp] {
            let Some(dut_port) = open_or_skip(&attachment, "frames_pass_a_veth_pair_with_either_socket")
            else {
                return;
            };
            let question = NetcopeQuestion { packets: 64, ..question(1514, 1) };
            let (port, tester) = dut_port.into_parts();
            let mut device = Application::on(port, &question);
            assert_eq!(source(&question).fill(&tester), 64, "{attachment:?}");
            let (mut out, started) = (0, Instant::now());
            while out < 64 && started.elapsed() < Duration::from_secs(5) {
                device.turn(&mut |_| {});
                out += tester.take();
            }
            assert_eq!((out, device.pool.live()), (64, 0), "{attachment:?}");
        }
    }

    #[test]
    fn every_loss_goal_has_a_rate() {
        let goals = [0.0, 0.1].map(|loss_ratio| Goal { loss_ratio });
        let hunt = Hunt { goals: &goals, duration: Duration::from_millis(2), width: 0.1, queue: 4096 };
        let question = question(64, 10);
        let found = netcope_throughput(&question, 500.0, hunt, &|_, _, _| {}).expect("rates");
        assert!(found.iter().all(|found| found.lower_pps >= Some(2000.0) && found.trials >= 3), "{found:?}");
    }
}
