//! The customers of a closed workload: who sends the next frame when.
//!
//! ```text
//! send ─▶ the machine ─▶ the frame has left or is lost ─▶ think ─▶ send
//! ```

use crate::environment::Packet;
use crate::ports::PortsSpec;
use crate::random::exponential;
use crate::workload::{Arrivals, Workload};
use fastpath_units::{Bytes, Duration, Fraction, Rng, Time};

/// The random stream of customers, beside those of ports and of the run.
const STREAM: u64 = 1 << 40;

/// The customers of a closed workload.
pub(crate) struct Customers {
    rng: Rng,
    think: Duration,
    pub(crate) population: u32,
}

impl Customers {
    /// The customers of `workload`, if it is a closed one. `streams`: the first stream of the run.
    pub(crate) fn new(workload: &Workload, seed: u64, streams: u64) -> Option<Customers> {
        let Arrivals::Closed { population, think } = workload.arrivals else { return None };
        Some(Customers { rng: Rng::stream(seed, streams + STREAM), think, population })
    }

    /// The time until a customer sends its next frame.
    pub(crate) fn think(&mut self) -> Duration {
        if self.think.is_zero() { Duration::ZERO } else { exponential(&mut self.rng, self.think) }
    }

    /// The time until the customer of `packet`, which has just left or is lost, sends its next frame.
    /// Frames of one customer are at least a frame time of its port apart, as on a wire.
    pub(crate) fn next(&mut self, packet: &Packet, ports: &PortsSpec, now: Time) -> Duration {
        let (rate, framing) = ports.of(packet.port_in);
        let frame = rate.transmission(Bytes(framing.with_gap(packet.size)), Fraction::ZERO).0;
        let earliest = packet.arrived + frame.max(Duration::from_ps(1));
        self.think().max(earliest.max(now) - now)
    }

    /// The size of a frame.
    pub(crate) fn size(&mut self, workload: &Workload) -> u32 {
        workload.sizes.draw(&mut self.rng)
    }
}
