//! Links with memory ports, and a source that offers small frames at a steady rate. One thread
//! sends and receives. It measures the engine's time, not what the frames carry.

use crate::load_generator::POOL_LIMIT;
use crate::{MeasurementError, RunContext, testbed};
use fastpath_engine::port::{BURST, Memory, MemoryEnd, Port};
use fastpath_engine::{EdgePorts, Report, Workers};
use fastpath_link::PipeSpec;
use fastpath_net::EdgeId;
use fastpath_spec::{NodeKind, Topology};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Size of a port's ring, bytes.
const RING: usize = 1 << 20;
/// The shortest frame, without FCS.
const FRAME: [u8; 60] = [0x02; 60];
/// Maximum number of frames that are due at once. Beyond it frames are skipped: the source itself
/// was delayed.
const BEHIND_MAX: u64 = 4096;

/// Counts of the frames offered and received.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct PacedFrames {
    /// Frames that were due.
    pub(crate) wanted: u64,
    /// Frames that the ports' rings took.
    pub(crate) taken: u64,
    /// Frames received.
    pub(crate) received: u64,
}

/// Links between pairs of hosts, each with a memory port.
pub(crate) struct Links {
    topology: Topology,
    ports: EdgePorts,
    ends: Vec<MemoryEnd>,
}

impl Links {
    /// Makes `links` links of this kind.
    pub(crate) fn new(links: usize, pipe: &PipeSpec) -> Links {
        let mut topology = Topology::default();
        for i in 0..links {
            let ends = ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::host()));
            topology.connect(format!("link{i}"), ends[0], ends[1], [pipe.clone(), pipe.clone()]);
        }
        let made = (0..2 * links).map(|i| {
            let (port, end) = Memory::new(&format!("port{i}"), RING);
            ((EdgeId(i as u32), Box::new(port) as Box<dyn Port>), end)
        });
        let (ports, ends) = made.unzip();
        Links { topology, ports, ends }
    }

    /// Runs the links on the engine and offers frames to all ports in turn. Returns the counts and
    /// the engine's final report.
    pub(crate) fn run(
        self,
        pace: OfferedPace,
        tolerance: Option<fastpath_units::Duration>,
        context: &RunContext<'_>,
    ) -> Result<(PacedFrames, Report), MeasurementError> {
        let options = testbed::options();
        let network = fastpath_net::Options { pool_limit: POOL_LIMIT, ..options.network };
        let workers = Some(Workers::Count(NonZeroUsize::MIN));
        let options = fastpath_engine::Options { network, tolerance, workers, ..options };
        let running = fastpath_engine::start(self.topology, self.ports, options)?;
        let paced = pace.drive(&self.ends, context);
        let report = running.stop()?;
        Ok((paced?, report))
    }

    /// Returns the ends of the ports, without an engine.
    pub(crate) fn unattended(self) -> Vec<MemoryEnd> {
        self.ends
    }
}

/// The offered load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct OfferedPace {
    /// Frames per second, over all ports.
    pub(crate) per_second: f64,
    /// Frames offered to a port at a time.
    pub(crate) together: usize,
    /// Duration.
    pub(crate) duration: Duration,
}

impl OfferedPace {
    /// Offers the frames and receives what comes out.
    pub(crate) fn drive(
        self,
        ends: &[MemoryEnd],
        context: &RunContext<'_>,
    ) -> Result<PacedFrames, MeasurementError> {
        let OfferedPace { per_second, together, duration } = self;
        let began = Instant::now();
        let (mut paced, mut at) = (PacedFrames::default(), 0);
        loop {
            context.stop.check()?;
            for _ in 0..256 {
                let elapsed = began.elapsed();
                if elapsed >= duration {
                    return Ok(paced);
                }
                let due = (elapsed.as_secs_f64() * per_second) as u64;
                paced.wanted = paced.wanted.max(due.saturating_sub(BEHIND_MAX));
                if due >= paced.wanted + together as u64 {
                    paced.wanted += together as u64;
                    paced.taken += ends[at].send((0..together).map(|_| FRAME.as_slice())) as u64;
                }
                paced.received += ends[at ^ 1].recv(2 * BURST, |_| {}) as u64;
                at = (at + 1) % ends.len();
            }
        }
    }
}
