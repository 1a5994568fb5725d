//! The parameters of a pipe, and changes to them while it carries packets.
//!
//! One list defines [`PipeSpec`] and [`Change`]: a new parameter is one entry there, and its effect
//! in `general_pipe.rs`.

use crate::cross::CrossSpec;
use crate::framing::Framing;
use crate::impairment::{CorruptSpec, Duplication, JitterSpec, LossSpec, ReorderSpec};
use crate::opportunities::Opportunities;
use crate::qdisc::{Ecn, QueueSpec};
use crate::slots::SlotSpec;
use fastpath_units::{Duration, Rate};

/// Whether a link is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkState {
    /// The link carries packets.
    #[default]
    Up,
    /// The link drops arriving packets. On going down it drops packets that are queued or on the
    /// wire. Packets in the delay line are delivered.
    Down,
}

macro_rules! parameters {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// The parameters of one direction of a link. The default is an ideal link: no rate limit,
        /// no delay, no loss, and a queue without a limit.
        #[derive(Clone, PartialEq, Debug, Default)]
        pub struct PipeSpec {
            $($(#[$doc])* pub $name: $type,)*
        }

        /// New values for some parameters of a live pipe, applied at one instant. The default
        /// changes nothing. [`Pipe::change`](crate::Pipe::change) describes the effect on packets
        /// in the pipe.
        #[derive(Clone, PartialEq, Debug, Default)]
        pub struct Change {
            $(
                #[doc = concat!("A new [`PipeSpec::", stringify!($name), "`]; `None` keeps the current value.")]
                pub $name: Option<$type>,
            )*
        }

        impl Change {
            /// Returns a change of every parameter to its value in `spec`.
            pub fn to(spec: &PipeSpec) -> Change {
                Change { $($name: Some(spec.$name.clone()),)* }
            }

            /// Takes the values that `other` gives in place of those given so far.
            pub fn merge(&mut self, other: &Change) {
                $(
                    if other.$name.is_some() {
                        self.$name.clone_from(&other.$name);
                    }
                )*
            }

            /// Returns the change of the parameters that differ, to their values in `to`.
            pub fn between(from: &PipeSpec, to: &PipeSpec) -> Change {
                Change { $($name: (from.$name != to.$name).then(|| to.$name.clone()),)* }
            }

            /// Writes the new values into `spec`.
            pub fn apply_to(&self, spec: &mut PipeSpec) {
                $(
                    if let Some(value) = &self.$name {
                        spec.$name.clone_from(value);
                    }
                )*
            }
        }
    };
}

parameters! {
    /// Bits on the wire per second; `None` is unlimited.
    rate: Option<Rate>,
    /// True if nothing is sent, as with a rate of 0: queued packets wait.
    paused: bool,
    /// Bytes on the wire per frame in addition to [`Packet::len`](crate::Packet::len): 0 as in tc,
    /// 24 for Ethernet's preamble, FCS and interframe gap.
    overhead: u32,
    /// One-way propagation delay, from the end of a frame's transmission to its exit.
    delay: Duration,
    /// Random loss before the queue: a lost packet uses no link time.
    loss: LossSpec,
    /// The queue discipline.
    queue: QueueSpec,
    /// Loss behind the bottleneck: a lost packet has used link time.
    egress_loss: LossSpec,
    /// Variation of the delay from packet to packet.
    jitter: Option<Box<JitterSpec>>,
    /// Packets that skip the delay.
    reorder: Option<ReorderSpec>,
    /// Packets that leave twice.
    duplicate: Duplication,
    /// Packets that leave with flipped bits.
    corrupt: Option<CorruptSpec>,
    /// Delivery opportunities. Then `rate`, `overhead`, `framing` and `slots` are ignored.
    opportunities: Option<Opportunities>,
    /// Another rule for the bytes on the wire. Then `overhead` is ignored.
    framing: Option<Framing>,
    /// Delivery in slots.
    slots: Option<Box<SlotSpec>>,
    /// Whether `loss` marks ECN-capable packets instead of dropping them.
    loss_ecn: Ecn,
    /// Packets that no host sends and that take part of the queue and the rate.
    cross: Option<CrossSpec>,
    /// Whether the link is up.
    state: LinkState,
}
