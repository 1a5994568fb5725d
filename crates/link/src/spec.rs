//! What a pipe is asked to be: its parameters, and changes to them while it carries packets.

use crate::framing::Framing;
use crate::impairment::{CorruptSpec, Duplication, JitterSpec, LossSpec, ReorderSpec};
use crate::opportunities::Opportunities;
use crate::qdisc::{Ecn, QueueSpec};
use crate::slots::SlotSpec;
use fastpath_units::{Duration, Rate};

/// The parameters of one direction of a link. The default is an ideal link: no rate limit, no
/// delay, no loss, a queue that never fills.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PipeSpec {
    /// Bits on the wire per second; `None` is unlimited.
    pub rate: Option<Rate>,
    /// True if nothing is sent, as if the rate were 0: what is queued waits.
    pub paused: bool,
    /// Bytes on the wire per frame beyond [`Packet::len`](crate::Packet::len): 0 as in tc, 24 for
    /// Ethernet's preamble, FCS and gap.
    pub overhead: u32,
    /// One-way propagation delay, from the end of a frame's transmission to its exit.
    pub delay: Duration,
    /// Random loss, before the queue: a lost packet uses no link time.
    pub loss: LossSpec,
    /// The bandwidth queue and its discipline.
    pub queue: QueueSpec,
    /// Loss behind the bottleneck: a lost packet has used link time.
    pub egress_loss: LossSpec,
    /// What is added to the delay from packet to packet.
    pub jitter: Option<Box<JitterSpec>>,
    /// Packets that skip the delay.
    pub reorder: Option<ReorderSpec>,
    /// Packets that leave twice.
    pub duplicate: Duplication,
    /// Packets that leave with flipped bits.
    pub corrupt: Option<CorruptSpec>,
    /// When packets may be sent, in place of a rate: then `rate`, `overhead`, `framing` and `slots`
    /// mean nothing.
    pub opportunities: Option<Opportunities>,
    /// Bytes on the wire by another rule than `overhead`, which then means nothing.
    pub framing: Option<Framing>,
    /// Delivery in slots.
    pub slots: Option<Box<SlotSpec>>,
    /// What `loss` does to ECN-capable packets.
    pub loss_ecn: Ecn,
    /// Whether the link carries anything.
    pub state: LinkState,
}

/// Whether a link is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkState {
    /// It carries packets.
    #[default]
    Up,
    /// It drops what it is given. Going down drops what is queued and what is on the wire; packets
    /// that have left the queue are under way and arrive.
    Down,
}

/// New values for some parameters of a live pipe, all at one instant; `None` keeps what is. The
/// default changes nothing. What happens to the packets held is said at
/// [`Pipe::change`](crate::Pipe::change).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Change {
    /// A new rate; `Some(None)` is unlimited.
    pub rate: Option<Option<Rate>>,
    /// Whether to send at all; what is on the wire waits and goes on.
    pub paused: Option<bool>,
    /// A new overhead per frame in bytes.
    pub overhead: Option<u32>,
    /// A new one-way delay.
    pub delay: Option<Duration>,
    /// A new loss.
    pub loss: Option<LossSpec>,
    /// A new queue.
    pub queue: Option<QueueSpec>,
    /// A new loss behind the bottleneck.
    pub egress_loss: Option<LossSpec>,
    /// Anew: what is added to the delay from packet to packet.
    pub jitter: Option<Option<Box<JitterSpec>>>,
    /// Anew: packets that skip the delay.
    pub reorder: Option<Option<ReorderSpec>>,
    /// Anew: packets that leave twice.
    pub duplicate: Option<Duplication>,
    /// Anew: packets that leave with flipped bits.
    pub corrupt: Option<Option<CorruptSpec>>,
    /// New opportunities in place of a rate; `Some(None)` returns to the rate.
    pub opportunities: Option<Option<Opportunities>>,
    /// A new rule for the bytes on the wire; `Some(None)` returns to the overhead.
    pub framing: Option<Option<Framing>>,
    /// New slots; `Some(None)` is none.
    pub slots: Option<Option<Box<SlotSpec>>>,
    /// Anew: what the loss does to ECN-capable packets.
    pub loss_ecn: Option<Ecn>,
    /// Up or down.
    pub state: Option<LinkState>,
}

impl Change {
    /// Every parameter at once, as `spec` says.
    pub fn to(spec: &PipeSpec) -> Change {
        let PipeSpec {
            rate,
            paused,
            overhead,
            delay,
            loss,
            queue,
            egress_loss,
            jitter,
            reorder,
            duplicate,
            corrupt,
            opportunities,
            framing,
            slots,
            loss_ecn,
            state,
        } = spec.clone();
        Change {
            rate: Some(rate),
            paused: Some(paused),
            overhead: Some(overhead),
            delay: Some(delay),
            loss: Some(loss),
            queue: Some(queue),
            egress_loss: Some(egress_loss),
            jitter: Some(jitter),
            reorder: Some(reorder),
            duplicate: Some(duplicate),
            corrupt: Some(corrupt),
            opportunities: Some(opportunities),
            framing: Some(framing),
            slots: Some(slots),
            loss_ecn: Some(loss_ecn),
            state: Some(state),
        }
    }

    /// Puts the new values into `spec`.
    pub fn apply_to(&self, spec: &mut PipeSpec) {
        let Change {
            rate,
            paused,
            overhead,
            delay,
            loss,
            queue,
            egress_loss,
            jitter,
            reorder,
            duplicate,
            corrupt,
            opportunities,
            framing,
            slots,
            loss_ecn,
            state,
        } = self;
        put(rate, &mut spec.rate);
        put(paused, &mut spec.paused);
        put(overhead, &mut spec.overhead);
        put(delay, &mut spec.delay);
        put(loss, &mut spec.loss);
        put(queue, &mut spec.queue);
        put(egress_loss, &mut spec.egress_loss);
        put(jitter, &mut spec.jitter);
        put(reorder, &mut spec.reorder);
        put(duplicate, &mut spec.duplicate);
        put(corrupt, &mut spec.corrupt);
        put(opportunities, &mut spec.opportunities);
        put(framing, &mut spec.framing);
        put(slots, &mut spec.slots);
        put(loss_ecn, &mut spec.loss_ecn);
        put(state, &mut spec.state);
    }
}

fn put<T: Clone>(new: &Option<T>, value: &mut T) {
    if let Some(new) = new {
        value.clone_from(new);
    }
}
