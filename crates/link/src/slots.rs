//! Delivery in slots, as links that aggregate have it (802.11 A-MPDUs, DOCSIS grants), with the
//! semantics of netem's `slot` (netem_dequeue and get_slot_next in `net/sched/sch_netem.c`):
//!
//! - A packet that is ready while no slot is pending calls for one, which opens after a time drawn
//!   from the law.
//! - What is ready when the slot opens leaves then, at once, in order, until the slot has passed
//!   its packets or bytes; the packet that reaches the bytes still passes.
//! - A slot that was used up calls for the next one at once, even if nobody waits yet.
//!
//! ```text
//!  with a rate:     queue ─▶ wire ─▶ gathered ─┤slot├─▶ delay      the wire works on between slots
//!  without a rate:  queue ────────────────────┤slot├─▶ delay      a discipline decides when the slot opens
//! ```
//!
//! What is gathered still counts as queued. What arrives at the instant a slot opens has missed it;
//! what has been sent by then has not. netem adds its delay before the slot and a pipe behind it,
//! which is the same as long as the delay is constant; and it may call for a slot as soon as it
//! sees a packet that is not ready yet.

use crate::counters::Volume;
use crate::impairment::{Jitter, JitterCorrelation, JitterLaw, JitterSpec, Reorder};
use crate::packet::Held;
use fastpath_units::{Bytes, Duration, Rng, Time};
use std::collections::VecDeque;
use std::fmt;

/// When slots open, and how much each one passes.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotSpec {
    /// From the call for a slot to its opening.
    pub wait: SlotWait,
    /// The most packets a slot passes; `None` is any number.
    pub packets: Option<u32>,
    /// The bytes after which a slot closes; `None` is never.
    pub bytes: Option<Bytes>,
}

/// The law of the time to the next slot.
#[derive(Clone, PartialEq, Debug)]
pub enum SlotWait {
    /// Uniform between two times.
    Between(Duration, Duration),
    /// A mean and what is added to it; never below zero.
    Law(Duration, JitterLaw),
}

impl fmt::Display for SlotSpec {
    /// `800us-1ms, at most 32p`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wait {
            SlotWait::Between(least, most) => write!(f, "{least}-{most}")?,
            SlotWait::Law(mean, _) => write!(f, "{mean} by a law")?,
        }
        self.packets.map_or(Ok(()), |packets| write!(f, ", at most {packets}p"))?;
        self.bytes.map_or(Ok(()), |bytes| write!(f, ", at most {bytes}"))
    }
}

/// Slots at work.
#[derive(Debug)]
pub(crate) struct Slots<P> {
    spec: SlotSpec,
    law: Option<Jitter>,
    /// When the next slot opens, if one has been called for.
    opens: Option<Time>,
    /// Sent, and waiting for a slot.
    gathered: VecDeque<Held<P>>,
    volume: Volume,
}

impl<P> Slots<P> {
    pub(crate) fn new(spec: SlotSpec) -> Slots<P> {
        let mut slots = Slots {
            spec: spec.clone(),
            law: None,
            opens: None,
            gathered: VecDeque::new(),
            volume: Volume::default(),
        };
        slots.set(spec);
        slots
    }

    pub(crate) fn spec(&self) -> &SlotSpec {
        &self.spec
    }

    /// From now on slots are called for by `spec`; one that is pending opens when it was to.
    pub(crate) fn set(&mut self, spec: SlotSpec) {
        self.law = match &spec.wait {
            SlotWait::Between(..) => None,
            SlotWait::Law(_, law) => {
                let law = law.clone();
                Some(Jitter::new(JitterSpec {
                    law,
                    correlation: JitterCorrelation::None,
                    order: Reorder::Allow,
                }))
            }
        };
        self.spec = spec;
    }

    pub(crate) fn opens(&self) -> Option<Time> {
        self.opens
    }

    /// What is gathered.
    pub(crate) fn waiting(&self) -> Volume {
        self.volume
    }

    /// A packet has been sent at `now` and waits.
    pub(crate) fn gather(&mut self, now: Time, packet: Held<P>, rng: &mut Rng) {
        self.volume.add(packet.len);
        self.gathered.push_back(packet);
        self.call(now, rng);
    }

    /// The first of those gathered.
    pub(crate) fn take(&mut self) -> Option<Held<P>> {
        let packet = self.gathered.pop_front()?;
        self.volume.remove(packet.len);
        Some(packet)
    }

    /// A packet is ready at `now`: calls for a slot if none is pending. One draw if so.
    pub(crate) fn call(&mut self, now: Time, rng: &mut Rng) {
        if self.opens.is_none() {
            let wait = self.draw(now, rng);
            self.opens = Some(now.saturating_add(wait));
        }
    }

    /// The slot opens.
    pub(crate) fn open(&mut self) -> Passed {
        self.opens = None;
        Passed { packets: 0, bytes: 0 }
    }

    /// Notes that the slot has passed a packet; true if that was the last.
    pub(crate) fn is_used_up(&self, passed: &mut Passed, len: u32) -> bool {
        passed.packets += 1;
        passed.bytes += u64::from(len);
        self.spec.packets.is_some_and(|most| passed.packets >= most)
            || self.spec.bytes.is_some_and(|most| passed.bytes >= most.0)
    }

    fn draw(&mut self, now: Time, rng: &mut Rng) -> Duration {
        match (&self.spec.wait, &mut self.law) {
            (SlotWait::Law(mean, _), Some(law)) => law.draw(now, *mean, rng),
            (SlotWait::Law(mean, _), None) => *mean,
            (SlotWait::Between(least, most), _) => {
                let width = most.saturating_sub(*least).as_ps();
                let share = (u128::from(rng.next_u64()) * u128::from(width)) >> 64;
                least.saturating_add(Duration::from_ps(share as u64))
            }
        }
    }
}

/// What an open slot has passed so far.
#[derive(Debug)]
pub(crate) struct Passed {
    packets: u32,
    bytes: u64,
}
