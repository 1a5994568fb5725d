//! Deficit round robin: classes share the rate in proportion to their quanta, whatever the sizes of
//! their packets. M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round-Robin",
//! IEEE/ACM Transactions on Networking 4(3), 1996, Figure 2. Each class is a drop-tail queue of its
//! own.

use super::context::{Fifo, Refused, Turn};
use super::{Classes, Limit};
use crate::counters::Volume;
use crate::packet::{DropReason, Held};
use fastpath_units::Bytes;
use std::collections::VecDeque;

/// Parameters of deficit round robin.
#[derive(Clone, PartialEq, Debug)]
pub struct DrrSpec {
    /// At least one, at most 64.
    pub shares: Vec<DrrShare>,
    /// The class of each DSCP.
    pub classes: Classes,
}

/// One class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrrShare {
    /// Bytes it may send in a round, above 0.
    pub quantum: Bytes,
    /// How much of it may wait. The packet on the wire does not count.
    pub limit: Limit,
}

#[derive(Debug)]
struct Class<P> {
    fifo: Fifo<P>,
    /// DC in the paper.
    deficit: u64,
}

/// Deficit round robin at work.
#[derive(Debug)]
pub(crate) struct Drr<P> {
    pub(crate) spec: DrrSpec,
    classes: Vec<Class<P>>,
    /// Classes that wait, in turn (ActiveList).
    active: VecDeque<usize>,
    /// The first of them has its quantum for this turn.
    granted: Option<usize>,
}

impl<P> Drr<P> {
    pub(crate) fn new(spec: DrrSpec) -> Drr<P> {
        let classes =
            (0..spec.shares.len().max(1)).map(|_| Class { fifo: Fifo::default(), deficit: 0 }).collect();
        Drr { spec, classes, active: VecDeque::new(), granted: None }
    }

    /// True if the new parameters leave every packet where it is.
    pub(crate) fn can_become(&self, spec: &DrrSpec) -> bool {
        spec.shares.len() == self.spec.shares.len() && spec.classes == self.spec.classes
    }

    pub(crate) fn waiting(&self) -> Volume {
        self.classes.iter().fold(Volume::default(), |mut sum, class| {
            sum += class.fifo.volume();
            sum
        })
    }

    /// Enqueuing module.
    pub(crate) fn enqueue(&mut self, packet: Held<P>, _: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        let index = self.spec.classes.of(packet.traffic_class, self.classes.len());
        let queued = self.classes[index].fifo.volume();
        if !self.spec.shares.get(index).is_some_and(|share| share.limit.has_room(packet.len, queued)) {
            return Err((DropReason::QueueFull, packet));
        }
        self.adopt(packet);
        Ok(())
    }

    pub(crate) fn adopt(&mut self, packet: Held<P>) {
        let index = self.spec.classes.of(packet.traffic_class, self.classes.len());
        let class = &mut self.classes[index];
        class.fifo.push(packet);
        if !self.active.contains(&index) {
            class.deficit = 0;
            self.active.push_back(index);
        }
    }

    /// Dequeuing module, a packet at a time.
    pub(crate) fn dequeue(&mut self) -> Option<Held<P>> {
        loop {
            let index = *self.active.front()?;
            let class = &mut self.classes[index];
            if self.granted != Some(index) {
                // At least a byte each round, so that a quantum of nothing serves as well.
                let quantum = self.spec.shares.get(index).map_or(1, |share| share.quantum.0.max(1));
                class.deficit = class.deficit.saturating_add(quantum);
                self.granted = Some(index);
            }
            let size = class.fifo.front().map(|packet| u64::from(packet.len));
            if size.is_some_and(|size| size <= class.deficit) {
                let packet = class.fifo.pop()?;
                class.deficit -= u64::from(packet.len);
                if class.fifo.volume().packets == 0 {
                    class.deficit = 0;
                    self.leave();
                }
                return Some(packet);
            }
            self.leave();
            if size.is_some() {
                self.active.push_back(index);
            }
        }
    }

    /// The first class has had its turn.
    fn leave(&mut self) {
        self.active.pop_front();
        self.granted = None;
    }

    /// The next packet in some fixed order, for another discipline to take over.
    pub(crate) fn take(&mut self) -> Option<Held<P>> {
        self.classes.iter_mut().find_map(|class| class.fifo.pop())
    }
}
