//! Delivery in slots, as on links that aggregate frames (802.11 A-MPDUs, DOCSIS grants), with the
//! semantics of netem's `slot` (netem_dequeue and get_slot_next in `net/sched/sch_netem.c`):
//!
//! - A packet that is ready while no slot is pending requests one. The slot opens after a time
//!   drawn from the law.
//! - Packets that are ready when the slot opens leave at that instant, in order, until the slot has
//!   passed its packets or bytes. The packet that reaches the number of bytes still passes.
//! - A slot that was used up requests the next one at once, even if no packet waits yet.
//!
//! ```text
//!  with a rate:     queue ─▶ wire ─▶ gathered ─┤slot├─▶ delay   sent between slots
//!  without a rate:  queue ────────────────────┤slot├─▶ delay   dequeued as the slot opens
//! ```
//!
//! Gathered packets still count as queued. A packet that arrives at the instant a slot opens misses
//! the slot. A packet sent completely at that instant does not. netem adds its delay before the
//! slot; a pipe adds it behind the slot. With a constant delay the result is the same. netem may
//! also request a slot as soon as it sees a packet that is not ready yet.

use crate::counters::Volume;
use crate::impairment::{Jitter, JitterCorrelation, JitterLaw, JitterSpec, Reorder};
use crate::packet::Held;
use fastpath_units::{Bytes, Duration, Rng, Time};
use std::collections::VecDeque;
use std::fmt;

/// When slots open and how much each slot passes.
#[derive(Clone, PartialEq, Debug)]
pub struct SlotSpec {
    /// The time from the request for a slot to its opening.
    pub wait: SlotWait,
    /// The largest number of packets that a slot passes; `None` is unlimited.
    pub packets: Option<u32>,
    /// The number of bytes after which a slot closes; `None` is unlimited.
    pub bytes: Option<Bytes>,
}

/// The law of the time to the next slot.
#[derive(Clone, PartialEq, Debug)]
pub enum SlotWait {
    /// Uniform between two times.
    Between(Duration, Duration),
    /// A mean and a variation added to it. The sum is never below zero.
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

/// The state of slots.
#[derive(Debug)]
pub(crate) struct Slots<P> {
    spec: SlotSpec,
    law: Option<Jitter>,
    /// When the next slot opens, if one was requested.
    opens: Option<Time>,
    /// Packets that were sent and wait for a slot.
    packets: VecDeque<Held<P>>,
    gathered: Volume,
}

impl<P> Slots<P> {
    pub(crate) fn new(spec: SlotSpec) -> Slots<P> {
        let mut slots = Slots {
            spec: spec.clone(),
            law: None,
            opens: None,
            packets: VecDeque::new(),
            gathered: Volume::default(),
        };
        slots.set(spec);
        slots
    }

    pub(crate) fn spec(&self) -> &SlotSpec {
        &self.spec
    }

    /// Requests slots by `spec` from now on. A pending slot opens at its old time.
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

    /// Returns what was gathered.
    pub(crate) fn gathered(&self) -> Volume {
        self.gathered
    }

    /// Adds a packet that was sent at `now` and waits for a slot.
    pub(crate) fn gather(&mut self, now: Time, packet: Held<P>, rng: &mut Rng) {
        self.gathered.add_packet(packet.len);
        self.packets.push_back(packet);
        self.request(now, rng);
    }

    /// Removes the first packet gathered.
    pub(crate) fn take(&mut self) -> Option<Held<P>> {
        let packet = self.packets.pop_front()?;
        self.gathered.remove_packet(packet.len);
        Some(packet)
    }

    /// Requests a slot at `now`, with one draw, unless one is pending.
    pub(crate) fn request(&mut self, now: Time, rng: &mut Rng) {
        if self.opens.is_none() {
            let wait = self.draw(now, rng);
            self.opens = Some(now.saturating_add(wait));
        }
    }

    /// Opens the pending slot.
    pub(crate) fn open(&mut self) -> Passed {
        self.opens = None;
        Passed { packets: 0, bytes: 0 }
    }

    /// Counts a packet that the slot passes. Returns true if the slot is used up.
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

/// The packets and bytes that an open slot has passed.
#[derive(Debug)]
pub(crate) struct Passed {
    packets: u32,
    bytes: u64,
}
