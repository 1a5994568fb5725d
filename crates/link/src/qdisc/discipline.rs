//! The contract of a queue discipline.

use super::context::{QueueContext, Refused, Served};
use crate::counters::Volume;
use crate::packet::Held;
use fastpath_units::Time;
use std::fmt;

/// A queue discipline with the packets that wait in it.
///
/// The pipe calls [`enqueue`](Discipline::enqueue) when a packet arrives. The discipline may refuse
/// that packet, or drop others to make room. The pipe calls [`dequeue`](Discipline::dequeue) when
/// the wire is free. The discipline may drop or mark packets before it hands one over. Packets
/// dropped after they were queued leave the pipe through [`QueueContext::drop`].
pub(crate) trait Discipline<P>: Sized {
    /// The parameters.
    type Spec;

    /// Creates an empty queue. Parameters were checked where they were read.
    fn new(spec: &Self::Spec) -> Self;

    /// Returns the parameters.
    fn spec(&self) -> Self::Spec;

    /// Applies new parameters, keeps state and packets, and returns true. Returns false and changes
    /// nothing if packets would have to move: then a new queue takes them over.
    fn reconfigure(&mut self, now: Time, spec: &Self::Spec) -> bool;

    /// Returns what waits.
    fn backlog(&self) -> Volume;

    /// Queues an arriving packet or refuses it.
    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>>;

    /// Returns the next packet to send, or when there will be one.
    fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P>;

    /// Appends a packet whatever the limit: it was queued under other parameters.
    fn push_unchecked(&mut self, packet: Held<P>);

    /// Removes a packet in a fixed order, without dropping or marking any.
    fn pop_unmanaged(&mut self) -> Option<Held<P>>;

    /// Returns true if the discipline reads the flow or the traffic class of a packet.
    fn reads_headers(_: &Self::Spec) -> bool {
        false
    }

    /// Writes the discipline and its main parameters, for reports.
    fn describe(spec: &Self::Spec, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The methods of [`Discipline`] for a queue that has one `fifo`, and a `spec` that it may replace
/// at any time.
macro_rules! one_fifo {
    ($Spec:ty) => {
        type Spec = $Spec;

        fn spec(&self) -> $Spec {
            self.spec
        }

        fn reconfigure(&mut self, _: fastpath_units::Time, spec: &$Spec) -> bool {
            self.spec = *spec;
            true
        }

        fn backlog(&self) -> crate::counters::Volume {
            self.fifo.backlog()
        }

        fn push_unchecked(&mut self, packet: Held<P>) {
            self.fifo.push(packet);
        }

        fn pop_unmanaged(&mut self) -> Option<Held<P>> {
            self.fifo.pop()
        }
    };
}
pub(super) use one_fifo;
