//! One part of a network, driven in virtual time from window to window.

use super::exchange::{EntryFrame, PartState};
use super::records::{EntryNote, OrderKey};
use super::tracker::PartObserver;
use crate::error::Result;
use crate::replay::delays::{RealisedDelays, realised_delays};
use crate::replay::ends::Exits;
use crate::replay::links::counters;
use crate::replay::traffic::{FlowCounts, TrafficRun};
use fastpath_link::Counters;
use fastpath_net::{CutError, EdgeId, FRAME_MAX, FrameAccounting, Network, Partition, Reason};
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};

/// See the head of this file.
pub(super) struct PartRun<O: PartObserver> {
    pub(super) network: Network<O>,
    traffic: TrafficRun,
    /// What enters, in order.
    entries: VecDeque<EntryFrame>,
    exits: Exits,
    /// The number of captures and arrays.
    inputs: usize,
    start_ns: u64,
    /// Frames that could not enter.
    refused: BTreeMap<Reason, u64>,
}

/// The results of a part.
pub(super) struct PartResults {
    pub(super) accounting: FrameAccounting,
    pub(super) flows: Vec<FlowCounts>,
    pub(super) delays: Vec<(usize, RealisedDelays)>,
    /// By pipe; those that begin in other parts are zero.
    pub(super) counters: Vec<Counters>,
    /// Bytes of memory that frames took.
    pub(super) reserved: usize,
}

impl<O: PartObserver> PartRun<O> {
    /// A part that sends `traffic` and writes what is delivered to `exits`.
    pub(super) fn new(
        network: Network<O>,
        traffic: TrafficRun,
        exits: Exits,
        (inputs, start_ns): (usize, u64),
    ) -> PartRun<O> {
        let (entries, refused) = (VecDeque::new(), BTreeMap::new());
        PartRun { network, traffic, entries, exits, inputs, start_ns, refused }
    }

    /// Adds frames that enter.
    pub(super) fn add_entries(&mut self, entries: &mut Vec<EntryFrame>) {
        self.entries.extend(entries.drain(..));
    }

    /// Fills in what is known of the part alone.
    pub(super) fn describe(&self, state: &mut PartState) {
        let entry = self.entries.front().map(|entry| entry.at);
        let inputs = [entry, self.traffic.next_at()];
        state.has_inputs = inputs.iter().any(Option::is_some);
        state.next = inputs.into_iter().chain([self.network.next_at()]).flatten().min();
        state.turn = self.network.next_turn();
        state.is_quiescent = self.network.is_quiescent();
        state.repeat = self.network.repeat_period_max();
        let counts = state.repeat.is_some() && !state.has_inputs && state.is_quiescent;
        state.held = if counts { self.network.accounting().held } else { 0 };
        for (part, awaited) in state.awaited.iter_mut().enumerate() {
            *awaited = self.network.next_crossing(part);
        }
    }

    /// Runs to `end`, which is not part of the window.
    pub(super) fn run(&mut self, end: Time) -> Result<()> {
        loop {
            let entry = self.entries.front().map(|entry| entry.at).filter(|at| *at < end);
            let packet = self.traffic.next_at().filter(|at| *at < end);
            match (entry, packet) {
                // Captures come before traffic.
                (Some(at), packet) if packet.is_none_or(|packet| at <= packet) => {
                    self.advance(at)?;
                    self.enter();
                }
                (_, Some(at)) => {
                    self.advance(at)?;
                    self.send(at);
                }
                _ => break,
            }
        }
        self.advance(end.saturating_sub(Duration::from_ps(1)))?;
        self.network.end_window(end);
        Ok(())
    }

    /// Lets time pass to `at`.
    fn advance(&mut self, at: Time) -> Result<()> {
        while let Some(delivery) = self.network.pop(at) {
            self.traffic.deliver(delivery.at, delivery.edge, self.network.pool().bytes(&delivery.frame));
            let captured = self.network.observer_mut().captured(&delivery.frame);
            let bytes = self.network.pool().bytes(&delivery.frame);
            self.exits.write(self.start_ns, &delivery, bytes, captured)?;
            self.network.pool_mut().free(delivery.frame);
        }
        Ok(())
    }

    /// Sends the next packet of the traffic.
    fn send(&mut self, at: Time) {
        let (flow, edge, bytes) = self.traffic.take();
        let note = EntryNote { input: self.inputs + flow, len: bytes.len(), capture_frame: None };
        self.network.observer_mut().entering(at, OrderKey::packet(flow), note);
        match self.network.pool_mut().insert(bytes) {
            Some(frame) => self.network.push(at, edge, frame),
            None => self.refuse(edge, Reason::PoolFull),
        }
    }

    /// Sends the next frame of a capture from its host, at its length on the wire. Bytes that a
    /// snap length cut are zero.
    fn enter(&mut self) {
        let EntryFrame { at, number, input, edge, capture_frame, wire_len, data } =
            self.entries.pop_front().expect("a frame enters");
        let note = EntryNote { input, len: wire_len, capture_frame };
        self.network.observer_mut().entering(at, OrderKey::entry(number), note);
        let Some(mut frame) = self.network.pool_mut().alloc(wire_len) else {
            let reason = if wire_len > FRAME_MAX { Reason::TooBig } else { Reason::PoolFull };
            return self.refuse(edge, reason);
        };
        let (known, unknown) = self.network.pool_mut().bytes_mut(&mut frame).split_at_mut(data.len());
        known.copy_from_slice(&data);
        unknown.fill(0);
        if data.len() < wire_len {
            self.network.observer_mut().cut(&frame, data.len());
        }
        self.network.push(at, edge, frame);
    }

    fn refuse(&mut self, edge: EdgeId, reason: Reason) {
        *self.refused.entry(reason).or_default() += 1;
        self.network.observer_mut().not_entered(edge, reason);
    }

    /// Completes the files. Returns the results.
    pub(super) fn finish(self, partition: &Partition, part: usize) -> Result<PartResults> {
        self.exits.finish()?;
        self.network.check_order()?;
        let mut accounting = self.network.accounting();
        for (reason, count) in self.refused {
            accounting.entered += count;
            *accounting.dropped.entry(reason.name()).or_default() += count;
        }
        if accounting.dropped.contains_key(Reason::PoolFull.name()) {
            return Err(CutError::PoolFull.into());
        }
        Ok(PartResults {
            accounting,
            delays: realised_delays(&self.network, |node| partition.part_of(node) == part),
            counters: counters(&self.network, |node| partition.part_of(node) == part),
            reserved: self.network.pool().reserved(),
            flows: self.traffic.counts(),
        })
    }
}
