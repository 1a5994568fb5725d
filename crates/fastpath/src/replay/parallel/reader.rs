//! Reads captures and arrays ahead of the parts that their frames enter.

use super::exchange::EntryFrame;
use crate::error::Result;
use crate::replay::arrays::Arrays;
use crate::replay::captures::{CapturedPacket, Captures};
use crate::replay::run::{Inputs, time_of};
use fastpath_net::EdgeId;
use fastpath_units::Time;

/// Frames that are read at once, but for those of one instant.
const AHEAD: usize = 8192;

/// The frames of captures and arrays, in the order in which they enter.
pub(super) struct Reader<'a> {
    pub(super) captures: Captures,
    arrays: Arrays<'a>,
    until: Option<Time>,
    start_ns: u64,
    entrances: Vec<EdgeId>,
    longest: Vec<usize>,
    now: Time,
    latest_ns: u64,
    /// Frames read so far.
    pub(super) count: u64,
    /// Packets with a time before that of their predecessor.
    pub(super) out_of_order: u64,
    /// Frames that were longer than the interface at which they entered allows.
    pub(super) above_mtu: u64,
}

impl<'a> Reader<'a> {
    /// Reads `inputs`, which enter at `entrances`, whose longest frames are `longest`.
    pub(super) fn new(
        inputs: Inputs<'a>,
        start_ns: u64,
        entrances: &[EdgeId],
        longest: &[usize],
    ) -> Reader<'a> {
        let Inputs { captures, arrays, until } = inputs;
        Reader {
            captures,
            arrays,
            until,
            start_ns,
            entrances: entrances.to_vec(),
            longest: longest.to_vec(),
            now: Time::ZERO,
            latest_ns: start_ns,
            count: 0,
            out_of_order: 0,
            above_mtu: 0,
        }
    }

    /// The time at which the next frame enters.
    pub(super) fn next_at(&self) -> Result<Option<Time>> {
        let captured = self.captures.start_ns().map(|ns| time_of(ns, self.start_ns)).transpose()?;
        let next = [captured, self.arrays.next_at().map(|(at, _)| at)].into_iter().flatten().min();
        // Time does not run backwards: a packet that is out of order enters late.
        Ok(next.filter(|at| self.until.is_none_or(|until| *at < until)).map(|at| at.max(self.now)))
    }

    /// Passes on frames that enter before `goal`, up to some number, and all others of the last
    /// instant. Passes on some frames in any case, if there are any.
    pub(super) fn read(&mut self, goal: Time, mut take: impl FnMut(EntryFrame)) -> Result<()> {
        let mut read = 0;
        while let Some(at) = self.next_at()? {
            let is_same_instant = read > 0 && at == self.now;
            if read > 0 && !is_same_instant && (read >= AHEAD || at >= goal) {
                break;
            }
            read += 1;
            self.now = at;
            take(self.next(at)?);
        }
        Ok(())
    }

    fn next(&mut self, at: Time) -> Result<EntryFrame> {
        let captured = self.captures.start_ns().map(|ns| time_of(ns, self.start_ns)).transpose()?;
        let number = self.count;
        self.count += 1;
        let array = self.arrays.next_at().filter(|(at, _)| captured.is_none_or(|captured| *at < captured));
        if let Some((_, array)) = array {
            let input = self.captures.count() + array;
            let data = self.arrays.take(array).to_vec();
            return Ok(self.entry((at, number), input, None, data.len(), data));
        }
        let CapturedPacket { capture, number: capture_frame, ns, wire_len, data } =
            self.captures.next(None).expect("a capture has a packet");
        self.out_of_order += u64::from(ns < self.latest_ns);
        self.latest_ns = self.latest_ns.max(ns);
        Ok(self.entry((at, number), capture, Some(capture_frame), wire_len, data))
    }

    fn entry(
        &mut self,
        (at, number): (Time, u64),
        input: usize,
        capture_frame: Option<u64>,
        wire_len: usize,
        data: Vec<u8>,
    ) -> EntryFrame {
        self.above_mtu += u64::from(wire_len > self.longest[input]);
        EntryFrame { at, number, input, edge: self.entrances[input], capture_frame, wire_len, data }
    }
}
