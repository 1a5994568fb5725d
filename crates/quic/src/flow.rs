//! One connection of QUIC with its programs: a stream from the client to the server.

use crate::clock::VirtualClock;
use crate::end::{EndCounts, QuicEnd};
use bytes::Bytes;
use fastpath_traffic::{TransferProgram, TransferSide, Workload};
use fastpath_units::{Distribution, Rng, Time};
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Dir, Endpoint, Event, StreamEvent, StreamId, Transmit,
    VarInt,
};

/// What is written: zeros, which take no memory wherever they wait.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// See the head of this file.
pub(crate) struct QuicFlow {
    program: TransferProgram,
    start: Time,
    /// The ends: of the first host, of the second. `None` before and after the connection.
    ends: [Option<QuicEnd>; 2],
    counts: [EndCounts; 2],
    stream: Option<StreamId>,
    /// Bytes that the program has written and the stream has not taken.
    unwritten: u64,
    /// Whether the program writes no more.
    closes: bool,
    /// Bytes that have arrived in order.
    received: u64,
    has_begun: bool,
    is_accepted: bool,
    has_ended: bool,
}

impl QuicFlow {
    pub(crate) fn new(workload: &Workload, (start, stop): (Time, Time), rng: Rng) -> QuicFlow {
        QuicFlow {
            program: TransferProgram::new(workload, (start, stop), rng),
            start,
            ends: [None, None],
            counts: [EndCounts::default(); 2],
            stream: None,
            unwritten: 0,
            closes: false,
            received: 0,
            has_begun: false,
            is_accepted: false,
            has_ended: false,
        }
    }

    /// Whether its connection is still to be opened at a time.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        !self.has_begun && self.start <= now
    }

    /// Whether the server has not accepted its connection yet. A late copy of the first datagram
    /// opens none.
    pub(crate) fn is_awaited(&self) -> bool {
        self.has_begun && !self.is_accepted
    }

    /// Gives it one end of its connection.
    pub(crate) fn open(&mut self, side: TransferSide, handle: ConnectionHandle, connection: Connection) {
        self.has_begun = true;
        self.is_accepted |= side == TransferSide::To;
        self.ends[side as usize] = Some(QuicEnd { handle, connection });
    }

    pub(crate) fn next_at(&mut self, clock: VirtualClock) -> Option<Time> {
        if !self.has_begun {
            return Some(self.start);
        }
        self.ends.iter_mut().flatten().filter_map(|end| end.next_at(clock)).min()
    }

    pub(crate) fn advance(&mut self, clock: VirtualClock, now: Time) {
        for (end, counts) in self.ends.iter_mut().zip(&mut self.counts) {
            if let Some(end) = end {
                end.advance(clock, now, counts);
            }
        }
    }

    pub(crate) fn handle(&mut self, side: TransferSide, event: ConnectionEvent) {
        if let Some(end) = &mut self.ends[side as usize] {
            end.handle(event, &mut self.counts[side as usize]);
        }
    }

    pub(crate) fn transmit(
        &mut self,
        clock: VirtualClock,
        now: Time,
        buf: &mut Vec<u8>,
    ) -> Option<(TransferSide, Transmit)> {
        [TransferSide::From, TransferSide::To].into_iter().find_map(|side| {
            let end = self.ends[side as usize].as_mut()?;
            buf.clear();
            Some((side, end.transmit(clock, now, buf, &mut self.counts[side as usize])?))
        })
    }

    /// Lets its programs and its endpoints do what they can. Returns the handles of ends that are
    /// gone.
    pub(crate) fn settle(
        &mut self,
        clock: VirtualClock,
        now: Time,
        endpoints: [&mut Endpoint; 2],
        answers: &mut Distribution,
    ) -> [Option<ConnectionHandle>; 2] {
        for (end, endpoint) in self.ends.iter_mut().zip(endpoints) {
            if let Some(end) = end {
                end.settle(endpoint);
            }
        }
        self.read();
        let writes = self.program.advance(now, [0, self.received], answers);
        self.unwritten += writes.bytes[0];
        self.closes |= writes.closes;
        self.write(clock, now);
        self.ends.each_mut().map(|end| {
            let gone = end.take_if(|end| end.connection.is_drained())?;
            Some(gone.handle)
        })
    }

    /// Reads what has arrived at the server.
    fn read(&mut self) {
        let Some(QuicEnd { connection, .. }) = &mut self.ends[1] else { return };
        while let Some(event) = connection.poll() {
            let id = match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => connection.streams().accept(Dir::Uni),
                Event::Stream(StreamEvent::Readable { id }) => Some(id),
                _ => None,
            };
            let Some(id) = id else { continue };
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { continue };
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.received += chunk.bytes.len() as u64;
            }
            // What is to be sent is looked for in any case.
            let _: quinn_proto::ShouldTransmit = chunks.finalize();
        }
    }

    /// Opens the stream of the client once it can, writes what the stream takes, and closes the
    /// connection when all is acknowledged.
    fn write(&mut self, clock: VirtualClock, now: Time) {
        let Some(QuicEnd { connection, .. }) = &mut self.ends[0] else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Finished { .. }) => {
                    connection.close(clock.instant(now), VarInt::from_u32(0), Bytes::new());
                }
                Event::ConnectionLost { .. } => self.has_ended = true,
                _ => {}
            }
        }
        let Some(id) = self.stream else { return };
        let mut stream = connection.send_stream(id);
        while self.unwritten > 0 {
            let len = self.unwritten.min(ZEROS.len() as u64) as usize;
            let Ok(written) = stream.write_chunks(&mut [Bytes::from_static(&ZEROS[..len])]) else { return };
            self.unwritten -= written.bytes as u64;
        }
        if self.closes {
            self.closes = stream.finish().is_err();
        }
    }

    /// Whether its connection has ended before all has arrived, or all has.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended || self.program.is_complete()
    }

    pub(crate) fn program(&self) -> &TransferProgram {
        &self.program
    }

    pub(crate) fn counts(&self) -> [EndCounts; 2] {
        self.counts
    }
}
