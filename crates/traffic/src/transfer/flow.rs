//! One connection of TCP with its programs.

use super::TransferSide;
use super::model::Workload;
use super::program::TransferProgram;
use fastpath_tcp::{Connection, Segment, SenderCounts, TcpOptions};
use fastpath_units::{Distribution, Duration, Rng, Time};

/// See the head of this file.
#[derive(Clone, Debug)]
pub(super) struct TransferFlow {
    program: TransferProgram,
    start: Time,
    /// The ends: of the first host, of the second.
    ends: [Connection; 2],
    has_begun: bool,
}

impl TransferFlow {
    pub(super) fn new(
        workload: &Workload,
        options: TcpOptions,
        (start, stop): (Time, Time),
        rng: Rng,
    ) -> TransferFlow {
        TransferFlow {
            program: TransferProgram::new(workload, (start, stop), rng),
            start,
            ends: [Connection::client(options), Connection::server(options)],
            has_begun: false,
        }
    }

    pub(super) fn next_at(&self) -> Option<Time> {
        if !self.has_begun {
            return Some(self.start);
        }
        let own = self.ends.iter().filter_map(Connection::next_at).min();
        own.into_iter().chain(self.program.next_at()).min()
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
        self.work(now, answers);
    }

    /// Lets the programs at both ends do what they can.
    fn work(&mut self, now: Time, answers: &mut Distribution) {
        let received = self.ends.each_ref().map(Connection::received);
        let writes = self.program.advance(now, received, answers);
        for (end, bytes) in self.ends.iter_mut().zip(writes.bytes) {
            if bytes > 0 {
                end.write(bytes);
            }
            if writes.closes {
                end.close();
            }
        }
    }

    /// Positions near those of the next segment that arrives at a side.
    pub(super) fn near(&self, side: TransferSide) -> (u64, u64) {
        self.ends[side as usize].near()
    }

    pub(super) fn program(&self) -> &TransferProgram {
        &self.program
    }

    pub(super) fn counts(&self) -> [SenderCounts; 2] {
        self.ends.each_ref().map(Connection::counts)
    }

    pub(super) fn rtt_min(&self) -> Option<Duration> {
        self.ends.iter().filter_map(Connection::rtt_min).min()
    }
}
