//! The bounded queues of Mahimahi's `mm-link`, drop-tail and drop-head, with its own counting
//! (`src/packet/dropping_packet_queue.cc`, `drop_tail_packet_queue.hh`,
//! `drop_head_packet_queue.hh`).
//!
//! Only packets that wait count: a packet of which bytes have been sent has left the queue. A
//! packet counts as its IP bytes and the four bytes of a tunnel header. Elsewhere in this crate the
//! packet on the wire counts, and bytes are those of the frame.

use super::context::{QueueContext, Refused, Served};
use super::discipline::{Discipline, one_fifo};
use super::fifo::Fifo;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::Bytes;
use std::fmt;

/// A frame has 14 bytes of Ethernet header where a packet in Mahimahi has 4.
const FRAME_EXCESS: u64 = 10;

/// Parameters of a queue of `mm-link`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MahimahiSpec {
    /// The most packets that wait; `None`: any number.
    pub packets: Option<u32>,
    /// The most bytes that wait; `None`: any number.
    pub bytes: Option<Bytes>,
    /// Which packet a full queue drops.
    pub drop: DropEnd,
}

/// The end of a queue at which packets are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DropEnd {
    /// The arriving packet: `--uplink-queue=droptail`.
    #[default]
    Tail,
    /// The oldest packets: `--uplink-queue=drophead`.
    Head,
}

impl MahimahiSpec {
    /// `good()`: whether what waits is within the limits.
    fn holds(&self, waiting: Volume) -> bool {
        let bytes = waiting.bytes.saturating_sub(FRAME_EXCESS * waiting.packets);
        self.packets.is_none_or(|max| waiting.packets <= u64::from(max))
            && self.bytes.is_none_or(|max| bytes <= max.0)
    }
}

/// A queue of `mm-link`.
#[derive(Debug)]
pub(crate) struct MahimahiQueue<P> {
    spec: MahimahiSpec,
    fifo: Fifo<P>,
}

impl<P> Discipline<P> for MahimahiQueue<P> {
    one_fifo!(MahimahiSpec);

    fn new(spec: &MahimahiSpec) -> MahimahiQueue<P> {
        MahimahiQueue { spec: *spec, fifo: Fifo::default() }
    }

    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        let mut with = self.fifo.backlog();
        with.add_packet(packet.len);
        while self.spec.drop == DropEnd::Head && !self.spec.holds(with) {
            let Some(oldest) = self.fifo.pop() else { break };
            with.remove_packet(oldest.len);
            context.drop(oldest, DropReason::QueueFull);
        }
        if !self.spec.holds(with) {
            return Err((DropReason::QueueFull, packet));
        }
        self.fifo.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: &mut QueueContext<'_, P>) -> Served<P> {
        self.fifo.pop().into()
    }

    fn describe(spec: &MahimahiSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if spec.drop == DropEnd::Tail { "mahimahi" } else { "mahimahi drop-head" })?;
        spec.packets.map_or(Ok(()), |packets| write!(f, " {packets}p"))?;
        spec.bytes.map_or(Ok(()), |bytes| write!(f, " {bytes}"))
    }
}
