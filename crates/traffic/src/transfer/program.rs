//! What the programs at both ends of a connection do, whatever carries their bytes.
//!
//! ```text
//!  Bulk:      write all, close ─▶ … ─▶ received
//!  Requests:  ask ─▶ answer ─▶ think ─▶ ask …
//! ```

use super::model::Workload;
use fastpath_units::{Distribution, Duration, Rng, Time};

/// What a connection without a size has to send: more than any run sends.
const ENDLESS: u64 = 1 << 60;

/// The programs of one connection. See the head of this file.
#[derive(Clone, Debug)]
pub struct TransferProgram {
    workload: Workload,
    /// When the next request goes out, or all data; `None` while a request is open.
    asks_at: Option<Time>,
    /// From then on nothing is asked.
    stop: Time,
    asked_at: Time,
    requests: u64,
    answered: u64,
    /// Bytes of all answers so far.
    promised: u64,
    is_over: bool,
    received: u64,
    last_at: Option<Time>,
    rng: Rng,
}

/// What the programs write: bytes more at the first host and at the second, and whether both write
/// no more after that.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TransferWrites {
    /// Bytes more, at each host.
    pub bytes: [u64; 2],
    /// Whether this was all.
    pub closes: bool,
}

impl TransferProgram {
    /// Programs that begin at `start`, and ask for nothing from `stop` on.
    pub fn new(workload: &Workload, (start, stop): (Time, Time), rng: Rng) -> TransferProgram {
        TransferProgram {
            workload: workload.clone(),
            asks_at: Some(start),
            stop,
            asked_at: start,
            requests: 0,
            answered: 0,
            promised: 0,
            is_over: false,
            received: 0,
            last_at: None,
            rng,
        }
    }

    /// Returns when the programs do something next, if nothing arrives.
    pub fn next_at(&self) -> Option<Time> {
        self.asks_at.filter(|at| *at < self.stop)
    }

    /// Lets the programs do what they can. `received`: bytes that have arrived in order at the
    /// first host and at the second.
    pub fn advance(&mut self, now: Time, received: [u64; 2], answers: &mut Distribution) -> TransferWrites {
        let sink = received[self.workload.sink()];
        if sink > self.received {
            self.received = sink;
            self.last_at = Some(now);
        }
        let mut writes = TransferWrites::default();
        match self.workload {
            Workload::Bulk(size) => {
                if self.asks_at.is_some_and(|at| at <= now) {
                    self.asks_at = None;
                    writes.bytes[0] = size.map_or(ENDLESS, |size| size.0);
                    writes.closes = true;
                }
            }
            Workload::Requests { .. } => self.advance_requests(now, received, answers, &mut writes),
        }
        writes
    }

    fn advance_requests(
        &mut self,
        now: Time,
        received: [u64; 2],
        answers: &mut Distribution,
        writes: &mut TransferWrites,
    ) {
        let Workload::Requests { request, ref answer, ref think, count } = self.workload else { return };
        if received[1] >= request * (self.answered + 1) && self.answered < self.requests {
            self.answered += 1;
            let bytes = answer.draw(&mut self.rng).max(1);
            self.promised += bytes;
            writes.bytes[1] = bytes;
        }
        let is_whole = self.answered == self.requests && received[0] == self.promised;
        if self.asks_at.is_none() && !self.is_over && is_whole {
            answers.record(now.since(self.asked_at));
            if count.is_some_and(|count| self.requests >= count) {
                self.is_over = true;
                writes.closes = true;
                return;
            }
            let pause = Duration::from_ps(think.draw(&mut self.rng));
            self.asks_at = Some(now.saturating_add(pause));
        }
        if self.asks_at.is_some_and(|at| at <= now && now < self.stop) {
            self.asks_at = None;
            self.asked_at = now;
            self.requests += 1;
            writes.bytes[0] = request;
        }
    }

    /// Bytes that have arrived at the receiver of the data.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether all has arrived. Of programs without an end: never.
    pub fn is_complete(&self) -> bool {
        match self.workload {
            Workload::Bulk(size) => size.is_some_and(|size| self.received >= size.0),
            Workload::Requests { .. } => self.is_over,
        }
    }

    /// When the last byte arrived.
    pub fn last_at(&self) -> Option<Time> {
        self.last_at
    }

    /// Requests that were sent.
    pub fn requests(&self) -> u64 {
        self.requests
    }
}
