//! Small frames into memory ports at a steady pace, from one thread that also empties what comes
//! out: a source for questions about the engine's time, not about what the frames carry.

use super::rig::POOL_LIMIT;
use super::{Context, PartError, field};
use fastpath_engine::port::{BURST, Memory, MemoryEnd, Port};
use fastpath_engine::{EdgePorts, Report, Workers};
use fastpath_link::PipeSpec;
use fastpath_net::EdgeId;
use fastpath_spec::{NodeKind, Topology};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Bytes that may wait at a port.
const RING: usize = 1 << 20;
/// Bytes of a frame, without FCS: the shortest.
const FRAME: [u8; 60] = [0x02; 60];
/// Frames that may be due at once; of more some are given up, for the source was held up itself.
const BEHIND_MAX: u64 = 4096;

/// What was offered, and what came of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Paced {
    /// Frames that were due.
    pub(super) wanted: u64,
    /// Those the ports' rings took.
    pub(super) taken: u64,
    /// Frames that came out.
    pub(super) received: u64,
}

/// Links between pairs of hosts, each with a memory port.
pub(super) struct Links {
    topology: Topology,
    ports: EdgePorts,
    ends: Vec<MemoryEnd>,
}

impl Links {
    /// That many links of this kind.
    pub(super) fn new(links: usize, pipe: &PipeSpec) -> Links {
        let mut topology = Topology::default();
        for i in 0..links {
            let ends =
                ["a", "b"].map(|end| topology.add_node(format!("{end}{i}"), NodeKind::Host { port: None }));
            topology.connect(format!("link{i}"), ends[0], ends[1], [pipe.clone(), pipe.clone()]);
        }
        let made = (0..2 * links).map(|i| {
            let (port, end) = Memory::new(&format!("port{i}"), RING);
            ((EdgeId(i as u32), Box::new(port) as Box<dyn Port>), end)
        });
        let (ports, ends) = made.unzip();
        Links { topology, ports, ends }
    }

    /// Offers frames to all ports in turn, `per_second` in all and `together` at a time, for so
    /// long; gives what became of them, and how the engine stood in the end.
    pub(super) fn run(
        self,
        pace: Pace,
        tolerance: Option<fastpath_units::Duration>,
        context: &Context<'_>,
    ) -> Result<(Paced, Report), PartError> {
        let options = field::options();
        let network = fastpath_net::Options { pool_limit: POOL_LIMIT, ..options.network };
        let workers = Some(Workers::Count(NonZeroUsize::MIN));
        let options = fastpath_engine::Options { network, tolerance, workers, ..options };
        let running = fastpath_engine::start(self.topology, self.ports, options)?;
        let paced = pace.drive(&self.ends, context);
        let report = running.stop()?;
        Ok((paced?, report))
    }

    /// The ends of ports that nobody serves.
    pub(super) fn unattended(self) -> Vec<MemoryEnd> {
        self.ends
    }
}

/// How much is offered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Pace {
    /// Frames per second, over all ports.
    pub(super) per_second: f64,
    /// Frames given to a port at a time.
    pub(super) together: usize,
    /// For how long.
    pub(super) duration: Duration,
}

impl Pace {
    /// Offers the frames, and empties the ports.
    pub(super) fn drive(self, ends: &[MemoryEnd], context: &Context<'_>) -> Result<Paced, PartError> {
        let Pace { per_second, together, duration } = self;
        let began = Instant::now();
        let (mut paced, mut at) = (Paced::default(), 0);
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
