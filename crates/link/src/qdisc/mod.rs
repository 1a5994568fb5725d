//! Queue disciplines: which packets may wait, which are marked, which is sent next.
//!
//! A discipline is one file that implements [`Discipline`], one file in `oracle/`, and one line in
//! `disciplines.rs`. This file turns the list into [`QueueSpec`], the parameters, and [`Queue`],
//! the running queue of a general pipe.
//!
//! Disciplines that decide at arrival and serve in order of arrival implement
//! [`AdmissionPolicy`](arrival::AdmissionPolicy) instead. A fast pipe runs two of them, drop-tail
//! and RED, on its own ring: see `fast_queue.rs`.
//!
//! Read first: `discipline.rs`, `context.rs`, then `sojourn.rs` as the shortest example.

pub(crate) mod arrival;
mod classes;
mod context;
mod discipline;
mod ecn;
mod fifo;
mod limit;

use crate::counters::Volume;
use crate::packet::Held;
use fastpath_units::{Duration, Time};
use std::fmt;

pub use classes::Classes;
pub(crate) use context::{EarlyExit, QueueContext, Refused, Served};
pub(crate) use discipline::Discipline;
pub use ecn::Ecn;
pub use limit::Limit;

/// A queue that is part of its pipe. Large queues are boxed, so that other pipes stay small.
type Inline<Q> = Q;

macro_rules! define_queues {
    ($($module:ident: $Variant:ident($Spec:ident) => $Place:ident<$Queue:ident>, $doc:literal;)*) => {
        $(
            pub(crate) mod $module;
            #[allow(unused_imports, unreachable_pub, reason = "some files export no parameter type")]
            pub use $module::*;
        )*

        /// A queue discipline with its parameters.
        #[derive(Clone, PartialEq, Debug)]
        pub enum QueueSpec {
            $(#[doc = $doc] $Variant($Spec),)*
        }

        impl QueueSpec {
            /// Returns true if the discipline reads [`Packet::traffic_class`] or [`Packet::flow`].
            /// Otherwise the caller may leave both at 0.
            ///
            /// [`Packet::traffic_class`]: crate::Packet::traffic_class
            /// [`Packet::flow`]: crate::Packet::flow
            pub fn reads_headers(&self) -> bool {
                match self {
                    $(QueueSpec::$Variant(spec) => <$Queue<()> as Discipline<()>>::reads_headers(spec),)*
                }
            }
        }

        impl fmt::Display for QueueSpec {
            /// Writes the discipline and its main parameters, for reports.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(QueueSpec::$Variant(spec) => <$Queue<()> as Discipline<()>>::describe(spec, f),)*
                }
            }
        }

        /// The queue of a general pipe, with its packets. Methods are those of [`Discipline`].
        #[derive(Debug)]
        pub(crate) enum Queue<P> {
            $($Variant($Place<$Queue<P>>),)*
        }

        impl<P> Queue<P> {
            pub(crate) fn new(spec: &QueueSpec) -> Queue<P> {
                match spec {
                    $(QueueSpec::$Variant(spec) => Queue::$Variant($Queue::<P>::new(spec).into()),)*
                }
            }

            pub(crate) fn spec(&self) -> QueueSpec {
                match self {
                    $(Queue::$Variant(queue) => QueueSpec::$Variant(queue.spec()),)*
                }
            }

            /// Applies new parameters. A discipline that stays keeps its state. Another discipline
            /// takes over the packets in their order of service, even above its limit.
            pub(crate) fn reconfigure(&mut self, now: Time, spec: &QueueSpec) {
                let kept = match (&mut *self, spec) {
                    $((Queue::$Variant(queue), QueueSpec::$Variant(spec)) => queue.reconfigure(now, spec),)*
                    _ => false,
                };
                if !kept {
                    let mut new = Queue::new(spec);
                    while let Some(packet) = self.pop_unmanaged() {
                        new.push_unchecked(packet);
                    }
                    *self = new;
                }
            }

            pub(crate) fn backlog(&self) -> Volume {
                match self {
                    $(Queue::$Variant(queue) => queue.backlog(),)*
                }
            }

            pub(crate) fn enqueue(
                &mut self,
                packet: Held<P>,
                context: &mut QueueContext<'_, P>,
            ) -> Result<(), Refused<P>> {
                match self {
                    $(Queue::$Variant(queue) => queue.enqueue(packet, context),)*
                }
            }

            pub(crate) fn dequeue(&mut self, context: &mut QueueContext<'_, P>) -> Served<P> {
                match self {
                    $(Queue::$Variant(queue) => queue.dequeue(context),)*
                }
            }

            pub(crate) fn push_unchecked(&mut self, packet: Held<P>) {
                match self {
                    $(Queue::$Variant(queue) => queue.push_unchecked(packet),)*
                }
            }

            pub(crate) fn pop_unmanaged(&mut self) -> Option<Held<P>> {
                match self {
                    $(Queue::$Variant(queue) => queue.pop_unmanaged(),)*
                }
            }
        }
    };
}

for_each_discipline!(define_queues);

impl Default for QueueSpec {
    /// Drop-tail without a limit.
    fn default() -> QueueSpec {
        QueueSpec::DropTail(Limit::Packets(u32::MAX))
    }
}
