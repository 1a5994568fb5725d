//! One connection with its workload.
//!
//! ```text
//!  Bulk:      write all, close ─▶ … ─▶ received
//!  Requests:  ask ─▶ answer ─▶ think ─▶ ask …
//! ```

use super::TransferSide;
use super::model::Workload;
use fastpath_tcp::{Connection, Segment, SenderCounts, TcpOptions};
use fastpath_units::{Distribution, Duration, Rng, Time};

/// What a connection without a size has to send: more than any run sends.
const ENDLESS: u64 = 1 << 60;

/// See the head of this file.
#[derive(Clone, Debug)]
pub(super) struct TransferFlow {
    workload: Workload,
    start: Time,
    /// The ends: of the first host, of the second.
    ends: [Connection; 2],
    has_begun: bool,
    /// When the next request goes out; `None` while one is open.
    asks_at: Option<Time>,
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

impl TransferFlow {
    pub(super) fn new(workload: &Workload, options: TcpOptions, start: Time, rng: Rng) -> TransferFlow {
        TransferFlow {
            workload: workload.clone(),
            start,
            ends: [Connection::client(options), Connection::server(options)],
            has_begun: false,
            asks_at: Some(start),
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

    pub(super) fn next_at(&self) -> Option<Time> {
        if !self.has_begun {
            return Some(self.start);
        }
        let own = self.ends.iter().filter_map(Connection::next_at).min();
        let asks = if let Workload::Requests { .. } = self.workload { self.asks_at } else { None };
        own.into_iter().chain(asks).min()
    }

    pub(super) fn advance(&mut self, now: Time, answers: &mut Distribution) {
        if now < self.start {
            return;
        }
        self.has_begun = true;
        self.ends.iter_mut().for_each(|end| end.advance(now));
        self.work(now, answers);
    }

    pub(super) fn transmit(&mut self, now: Time) -> Option<(TransferSide, Segment)> {
        if !self.has_begun {
            return None;
        }
        let [from, to] = &mut self.ends;
        let segment = from.transmit(now).map(|segment| (TransferSide::From, segment));
        segment.or_else(|| to.transmit(now).map(|segment| (TransferSide::To, segment)))
    }

    pub(super) fn receive(
        &mut self,
        now: Time,
        side: TransferSide,
        segment: &Segment,
        answers: &mut Distribution,
    ) {
        self.ends[side as usize].receive(now, segment);
        let sink = match self.workload {
            Workload::Bulk(_) => &self.ends[1],
            Workload::Requests { .. } => &self.ends[0],
        };
        let received = sink.received();
        if received > self.received {
            self.received = received;
            self.last_at = Some(now);
        }
        self.work(now, answers);
    }

    /// Lets the programs at both ends do what they can.
    fn work(&mut self, now: Time, answers: &mut Distribution) {
        match self.workload {
            Workload::Bulk(size) => {
                if self.requests == 0 {
                    self.requests = 1;
                    self.ends[0].write(size.map_or(ENDLESS, |size| size.0));
                    self.ends.iter_mut().for_each(Connection::close);
                }
            }
            Workload::Requests { request, ref answer, ref think, count } => {
                let [client, server] = &mut self.ends;
                if server.received() >= request * (self.answered + 1) && self.answered < self.requests {
                    self.answered += 1;
                    let bytes = answer.draw(&mut self.rng).max(1);
                    self.promised += bytes;
                    server.write(bytes);
                }
                let is_whole = self.answered == self.requests && client.received() == self.promised;
                if self.asks_at.is_none() && !self.is_over && is_whole {
                    answers.record(now.since(self.asked_at));
                    if count.is_some_and(|count| self.requests >= count) {
                        self.is_over = true;
                        self.ends.iter_mut().for_each(Connection::close);
                        return;
                    }
                    let pause = Duration::from_ps(think.draw(&mut self.rng));
                    self.asks_at = Some(now.saturating_add(pause));
                }
                if self.asks_at.is_some_and(|at| at <= now) {
                    self.asks_at = None;
                    self.asked_at = now;
                    self.requests += 1;
                    self.ends[0].write(request);
                }
            }
        }
    }

    /// Positions near those of the next segment that arrives at a side.
    pub(super) fn near(&self, side: TransferSide) -> (u64, u64) {
        self.ends[side as usize].near()
    }

    /// Bytes that have arrived at the receiver of the data.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Whether all has arrived.
    pub(super) fn is_complete(&self) -> bool {
        match self.workload {
            Workload::Bulk(size) => size.is_some_and(|size| self.received >= size.0),
            Workload::Requests { .. } => self.is_over,
        }
    }

    /// When the last byte arrived.
    pub(super) fn last_at(&self) -> Option<Time> {
        self.last_at
    }

    pub(super) fn counts(&self) -> [SenderCounts; 2] {
        self.ends.each_ref().map(Connection::counts)
    }

    pub(super) fn rtt_min(&self) -> Option<Duration> {
        self.ends.iter().filter_map(Connection::rtt_min).min()
    }

    /// Requests that were sent.
    pub(super) fn requests(&self) -> u64 {
        match self.workload {
            Workload::Bulk(_) => 0,
            Workload::Requests { .. } => self.requests,
        }
    }
}
