//! Queues at work: the packets that wait, and the discipline that admits and serves them.
//!
//! A discipline is asked twice. `enqueue` when a packet arrives: it may refuse the newcomer, or
//! drop others to make room. `dequeue` when the wire is free: it may drop or mark on the way to the
//! packet it hands over. Packets dropped here leave the pipe through [`Turn::drop`], in order of
//! time.

use super::codel::CodelQueue;
use super::drop_head::DropHead;
use super::drr::Drr;
use super::dualpi2::DualPi2;
use super::fq_codel::FqCodel;
use super::pie::Pie;
use super::prio::Prio;
use super::sojourn::Sojourn;
use super::token_bucket::TokenBucket;
use super::{Admission, Backlog, Qdisc, QueueSpec};
use crate::counters::{Counters, Volume};
use crate::packet::{DropReason, Fate, Held};
use fastpath_units::{Rate, Rng, Time};
use std::collections::VecDeque;

/// A packet that leaves the pipe at `at` without passing the delay line.
#[derive(Debug)]
pub(crate) struct Leaver<P> {
    pub(crate) at: Time,
    pub(crate) packet: Held<P>,
    pub(crate) fate: Fate,
}

/// One turn of a discipline: the instant, what it may know, and where its decisions go.
pub(crate) struct Turn<'a, P> {
    pub(crate) now: Time,
    /// The packet being serialised, which counts against limits.
    pub(crate) on_wire: Volume,
    /// The rate it is sent at.
    pub(crate) rate: Option<Rate>,
    /// When the wire fell idle, if it is.
    pub(crate) idle_since: Time,
    pub(crate) rng: &'a mut Rng,
    pub(crate) counters: &'a mut Counters,
    pub(crate) leavers: &'a mut VecDeque<Leaver<P>>,
}

impl<P> Turn<'_, P> {
    /// Discards a packet that had been queued.
    pub(crate) fn drop(&mut self, packet: Held<P>, reason: DropReason) {
        self.leavers.push_back(Leaver { at: self.now, packet, fate: Fate::Dropped(reason) });
    }

    /// Sets ECN CE.
    pub(crate) fn mark(&mut self, packet: &mut Held<P>) {
        packet.mark();
        self.counters.marked += 1;
    }
}

/// What the wire gets when it is free.
#[derive(Debug)]
pub(crate) enum Served<P> {
    /// A packet to send now.
    Packet(Held<P>),
    /// None before this instant, though some are queued: ask again then.
    Later(Time),
    /// Nothing is queued.
    Nothing,
}

/// A packet that is not taken, and why.
pub(crate) type Refused<P> = (DropReason, Held<P>);

/// Packets waiting in order of arrival.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Held<P>>,
    volume: Volume,
}

impl<P> Default for Fifo<P> {
    fn default() -> Fifo<P> {
        Fifo { packets: VecDeque::new(), volume: Volume::default() }
    }
}

impl<P> Fifo<P> {
    pub(crate) fn push(&mut self, packet: Held<P>) {
        self.volume.add(packet.len);
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Held<P>> {
        let packet = self.packets.pop_front()?;
        self.volume.remove(packet.len);
        Some(packet)
    }

    /// The next one out.
    pub(crate) fn front(&self) -> Option<&Held<P>> {
        self.packets.front()
    }

    pub(crate) fn volume(&self) -> Volume {
        self.volume
    }
}

/// A queue with its packets.
#[derive(Debug)]
pub(crate) enum Queue<P> {
    /// A discipline that decides at arrival and serves in that order.
    Arrival {
        qdisc: Qdisc,
        fifo: Fifo<P>,
    },
    DropHead(DropHead<P>),
    Sojourn(Sojourn<P>),
    Codel(Box<CodelQueue<P>>),
    FqCodel(Box<FqCodel<P>>),
    Pie(Box<Pie<P>>),
    DualPi2(Box<DualPi2<P>>),
    TokenBucket(Box<TokenBucket<P>>),
    Prio(Box<Prio<P>>),
    Drr(Box<Drr<P>>),
}

impl<P> Queue<P> {
    pub(crate) fn new(spec: &QueueSpec) -> Queue<P> {
        match spec {
            QueueSpec::DropTail(_) | QueueSpec::DropTailTime(_) | QueueSpec::Red(_) | QueueSpec::Ared(_) => {
                Queue::arrival(Qdisc::new(spec))
            }
            QueueSpec::DropHead(limit) => Queue::DropHead(DropHead::new(*limit)),
            QueueSpec::Sojourn(spec) => Queue::Sojourn(Sojourn::new(*spec)),
            QueueSpec::Codel(spec) => Queue::Codel(Box::new(CodelQueue::new(*spec))),
            QueueSpec::FqCodel(spec) => Queue::FqCodel(Box::new(FqCodel::new(*spec))),
            QueueSpec::Pie(spec) => Queue::Pie(Box::new(Pie::new(*spec))),
            QueueSpec::DualPi2(spec) => Queue::DualPi2(Box::new(DualPi2::new(*spec))),
            QueueSpec::TokenBucket(spec) => Queue::TokenBucket(Box::new(TokenBucket::new(*spec))),
            QueueSpec::Prio(spec) => Queue::Prio(Box::new(Prio::new(spec.clone()))),
            QueueSpec::Drr(spec) => Queue::Drr(Box::new(Drr::new(spec.clone()))),
        }
    }

    /// An empty queue of a discipline that may have worked elsewhere before.
    pub(crate) fn arrival(qdisc: Qdisc) -> Queue<P> {
        Queue::Arrival { qdisc, fifo: Fifo::default() }
    }

    pub(crate) fn spec(&self) -> QueueSpec {
        match self {
            Queue::Arrival { qdisc, .. } => qdisc.spec(),
            Queue::DropHead(queue) => QueueSpec::DropHead(queue.limit),
            Queue::Sojourn(queue) => QueueSpec::Sojourn(queue.spec),
            Queue::Codel(queue) => QueueSpec::Codel(queue.spec),
            Queue::FqCodel(queue) => QueueSpec::FqCodel(queue.spec()),
            Queue::Pie(queue) => QueueSpec::Pie(queue.spec),
            Queue::DualPi2(queue) => QueueSpec::DualPi2(queue.spec),
            Queue::TokenBucket(queue) => QueueSpec::TokenBucket(queue.spec()),
            Queue::Prio(queue) => QueueSpec::Prio(queue.spec.clone()),
            Queue::Drr(queue) => QueueSpec::Drr(queue.spec.clone()),
        }
    }

    /// Takes new parameters. A discipline that stays keeps its state; another one takes over the
    /// packets, in the order in which they would have been served, above its limit if need be.
    pub(crate) fn change(&mut self, now: Time, spec: &QueueSpec) {
        match (&mut *self, spec) {
            (Queue::Arrival { qdisc, .. }, spec) if !spec.acts_at_dequeue() => qdisc.change(spec),
            (Queue::DropHead(queue), QueueSpec::DropHead(limit)) => queue.limit = *limit,
            (Queue::Sojourn(queue), QueueSpec::Sojourn(spec)) => queue.spec = *spec,
            (Queue::Codel(queue), QueueSpec::Codel(spec)) => queue.spec = *spec,
            (Queue::Pie(queue), QueueSpec::Pie(spec)) => queue.spec = *spec,
            (Queue::DualPi2(queue), QueueSpec::DualPi2(spec)) => queue.spec = *spec,
            (Queue::TokenBucket(queue), QueueSpec::TokenBucket(spec)) => queue.set(*spec, now),
            (Queue::Prio(queue), QueueSpec::Prio(spec)) if queue.can_become(spec) => {
                queue.spec = spec.clone()
            }
            (Queue::Drr(queue), QueueSpec::Drr(spec)) if queue.can_become(spec) => queue.spec = spec.clone(),
            (Queue::FqCodel(queue), QueueSpec::FqCodel(spec)) if queue.spec().flows == spec.flows => {
                queue.set(*spec)
            }
            (old, spec) => {
                let mut new = Queue::new(spec);
                while let Some(packet) = old.take() {
                    new.adopt(packet);
                }
                *self = new;
            }
        }
    }

    /// What waits.
    pub(crate) fn waiting(&self) -> Volume {
        match self {
            Queue::Arrival { fifo, .. } => fifo.volume(),
            Queue::DropHead(queue) => queue.fifo.volume(),
            Queue::Sojourn(queue) => queue.fifo.volume(),
            Queue::Codel(queue) => queue.fifo.volume(),
            Queue::FqCodel(queue) => queue.waiting(),
            Queue::Pie(queue) => queue.fifo.volume(),
            Queue::DualPi2(queue) => queue.waiting(),
            Queue::TokenBucket(queue) => queue.fifo.volume(),
            Queue::Prio(queue) => queue.waiting(),
            Queue::Drr(queue) => queue.waiting(),
        }
    }

    /// A packet arrives.
    pub(crate) fn enqueue(&mut self, packet: Held<P>, turn: &mut Turn<'_, P>) -> Result<(), Refused<P>> {
        match self {
            Queue::Arrival { qdisc, fifo } => admit(qdisc, fifo, packet, turn),
            Queue::DropHead(queue) => queue.enqueue(packet, turn),
            Queue::Sojourn(queue) => queue.enqueue(packet, turn),
            Queue::Codel(queue) => queue.enqueue(packet, turn),
            Queue::FqCodel(queue) => {
                queue.enqueue(packet, turn);
                Ok(())
            }
            Queue::Pie(queue) => queue.enqueue(packet, turn),
            Queue::DualPi2(queue) => queue.enqueue(packet, turn),
            Queue::TokenBucket(queue) => queue.enqueue(packet, turn),
            Queue::Prio(queue) => queue.enqueue(packet, turn),
            Queue::Drr(queue) => queue.enqueue(packet, turn),
        }
    }

    /// The wire is free.
    pub(crate) fn dequeue(&mut self, turn: &mut Turn<'_, P>) -> Served<P> {
        let packet = match self {
            Queue::Arrival { fifo, .. } => fifo.pop(),
            Queue::DropHead(queue) => queue.fifo.pop(),
            Queue::Sojourn(queue) => queue.dequeue(turn),
            Queue::Codel(queue) => queue.dequeue(turn),
            Queue::FqCodel(queue) => queue.dequeue(turn),
            Queue::Pie(queue) => queue.dequeue(turn),
            Queue::DualPi2(queue) => queue.dequeue(turn),
            Queue::TokenBucket(queue) => return queue.dequeue(turn.now),
            Queue::Prio(queue) => queue.dequeue(),
            Queue::Drr(queue) => queue.dequeue(),
        };
        packet.map_or(Served::Nothing, Served::Packet)
    }

    /// Joins the queue whatever the limit.
    pub(crate) fn adopt(&mut self, packet: Held<P>) {
        match self {
            Queue::Arrival { fifo, .. } => fifo.push(packet),
            Queue::DropHead(queue) => queue.fifo.push(packet),
            Queue::Sojourn(queue) => queue.fifo.push(packet),
            Queue::Codel(queue) => queue.fifo.push(packet),
            Queue::FqCodel(queue) => queue.adopt(packet),
            Queue::Pie(queue) => queue.fifo.push(packet),
            Queue::DualPi2(queue) => queue.adopt(packet),
            Queue::TokenBucket(queue) => queue.fifo.push(packet),
            Queue::Prio(queue) => queue.adopt(packet),
            Queue::Drr(queue) => queue.adopt(packet),
        }
    }

    /// The next packet, dropping and marking nothing.
    pub(crate) fn take(&mut self) -> Option<Held<P>> {
        match self {
            Queue::Arrival { fifo, .. } => fifo.pop(),
            Queue::DropHead(queue) => queue.fifo.pop(),
            Queue::Sojourn(queue) => queue.fifo.pop(),
            Queue::Codel(queue) => queue.fifo.pop(),
            Queue::FqCodel(queue) => queue.take(),
            Queue::Pie(queue) => queue.fifo.pop(),
            Queue::DualPi2(queue) => queue.take(),
            Queue::TokenBucket(queue) => queue.fifo.pop(),
            Queue::Prio(queue) => queue.dequeue(),
            Queue::Drr(queue) => queue.take(),
        }
    }
}

/// Puts a discipline that decides at arrival in front of a FIFO.
fn admit<P>(
    qdisc: &mut Qdisc,
    fifo: &mut Fifo<P>,
    mut packet: Held<P>,
    turn: &mut Turn<'_, P>,
) -> Result<(), Refused<P>> {
    let mut queued = fifo.volume();
    queued += turn.on_wire;
    let idle_since = (queued.packets == 0).then_some(turn.idle_since);
    let backlog = Backlog { queued, idle_since, rate: turn.rate };
    match qdisc.admit(turn.now, &packet.header(), backlog, turn.rng) {
        Admission::Take => {}
        Admission::Mark => turn.mark(&mut packet),
        Admission::Drop(reason) => return Err((reason, packet)),
    }
    fifo.push(packet);
    Ok(())
}
