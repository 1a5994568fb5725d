//! Deficit round robin: classes share the rate in proportion to their quanta, whatever the sizes of
//! their packets. M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round-Robin",
//! IEEE/ACM Transactions on Networking 4(3), 1996, Figure 2. Each class is a drop-tail queue.

use super::classes::Classes;
use super::context::{QueueContext, Refused, Served};
use super::discipline::Discipline;
use super::fifo::Fifo;
use super::limit::Limit;
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::{Bytes, Time};
use std::collections::VecDeque;
use std::fmt;

/// Parameters of deficit round robin.
#[derive(Clone, PartialEq, Debug)]
pub struct DrrSpec {
    /// The classes, 1 to 64.
    pub shares: Vec<DrrShare>,
    /// The class of each DSCP.
    pub classes: Classes,
}

/// Parameters of one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrrShare {
    /// Bytes that the class may send in one round, above 0.
    pub quantum: Bytes,
    /// The hard limit of the class. The packet on the wire counts in its class.
    pub limit: Limit,
}

#[derive(Debug)]
struct Class<P> {
    fifo: Fifo<P>,
    /// DC in the paper.
    deficit: u64,
}

/// Classes of a deficit round robin scheduler.
#[derive(Debug)]
pub(crate) struct DrrQueue<P> {
    spec: DrrSpec,
    classes: Vec<Class<P>>,
    /// Classes with packets, in the order of service (ActiveList).
    active: VecDeque<usize>,
    /// The class that has received its quantum for this round: the first active one.
    granted: Option<usize>,
    /// The class that was served last: of the packet on the wire, if there is one.
    served: Option<usize>,
}

impl<P> Discipline<P> for DrrQueue<P> {
    type Spec = DrrSpec;

    fn new(spec: &DrrSpec) -> DrrQueue<P> {
        let classes =
            (0..spec.shares.len().max(1)).map(|_| Class { fifo: Fifo::default(), deficit: 0 }).collect();
        DrrQueue { spec: spec.clone(), classes, active: VecDeque::new(), granted: None, served: None }
    }

    fn spec(&self) -> DrrSpec {
        self.spec.clone()
    }

    fn reconfigure(&mut self, _: Time, spec: &DrrSpec) -> bool {
        if spec.shares.len() != self.spec.shares.len() || spec.classes != self.spec.classes {
            return false;
        }
        self.spec = spec.clone();
        true
    }

    fn backlog(&self) -> Volume {
        self.classes.iter().map(|class| class.fifo.backlog()).sum()
    }

    /// The enqueuing module of Figure 2.
    fn enqueue(&mut self, packet: Held<P>, context: &mut QueueContext<'_, P>) -> Result<(), Refused<P>> {
        let index = self.class_of(&packet);
        let queued = self.classes[index].fifo.backlog() + context.on_wire_of(self.served == Some(index));
        if !self.spec.shares.get(index).is_some_and(|share| share.limit.has_room(packet.len, queued)) {
            return Err((DropReason::QueueFull, packet));
        }
        self.push_unchecked(packet);
        Ok(())
    }

    fn dequeue(&mut self, _: &mut QueueContext<'_, P>) -> Served<P> {
        let next = self.next();
        self.served = next.as_ref().map(|packet| self.class_of(packet));
        next.into()
    }

    fn push_unchecked(&mut self, packet: Held<P>) {
        let index = self.class_of(&packet);
        let class = &mut self.classes[index];
        class.fifo.push(packet);
        if !self.active.contains(&index) {
            class.deficit = 0;
            self.active.push_back(index);
        }
    }

    fn pop_unmanaged(&mut self) -> Option<Held<P>> {
        self.classes.iter_mut().find_map(|class| class.fifo.pop())
    }

    fn reads_headers(_: &DrrSpec) -> bool {
        true
    }

    fn describe(spec: &DrrSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drr {} classes", spec.shares.len())
    }
}

impl<P> DrrQueue<P> {
    fn class_of(&self, packet: &Held<P>) -> usize {
        self.spec.classes.of(packet.traffic_class, self.classes.len())
    }

    /// The dequeuing module of Figure 2, one packet at a time.
    fn next(&mut self) -> Option<Held<P>> {
        loop {
            let index = *self.active.front()?;
            let class = &mut self.classes[index];
            if self.granted != Some(index) {
                // At least one byte per round, so that a quantum of 0 makes progress.
                let quantum = self.spec.shares.get(index).map_or(1, |share| share.quantum.0.max(1));
                class.deficit = class.deficit.saturating_add(quantum);
                self.granted = Some(index);
            }
            let size = class.fifo.front().map(|packet| u64::from(packet.len));
            if size.is_some_and(|size| size <= class.deficit) {
                let packet = class.fifo.pop()?;
                class.deficit -= u64::from(packet.len);
                if class.fifo.backlog().packets == 0 {
                    class.deficit = 0;
                    self.end_round();
                }
                return Some(packet);
            }
            self.end_round();
            if size.is_some() {
                self.active.push_back(index);
            }
        }
    }

    /// Ends the round of the first active class.
    fn end_round(&mut self) {
        self.active.pop_front();
        self.granted = None;
    }
}
