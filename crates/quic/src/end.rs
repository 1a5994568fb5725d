//! One end of a connection, with what it has counted.

use crate::clock::VirtualClock;
use fastpath_units::{Duration, Time};
use quinn_proto::{Connection, ConnectionEvent, ConnectionHandle, ConnectionStats, Endpoint, Transmit};

/// See the head of this file.
pub(crate) struct QuicEnd {
    pub(crate) handle: ConnectionHandle,
    pub(crate) connection: Connection,
}

/// What an end counted, also after it is gone.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct EndCounts {
    /// Packets with data of the stream.
    pub(crate) segments: u64,
    /// Packets that were declared lost.
    pub(crate) lost: u64,
    /// Reductions of the window by a mark.
    pub(crate) marked: u64,
    pub(crate) rtt_min: Option<Duration>,
}

impl QuicEnd {
    /// Takes what the endpoint has for this connection.
    pub(crate) fn handle(&mut self, event: ConnectionEvent, counts: &mut EndCounts) {
        let before = self.connection.stats();
        self.connection.handle_event(event);
        let after = self.connection.stats();
        counts.lost = after.path.lost_packets;
        counts.marked += u64::from(is_reduction_by_mark(&before, &after));
        // Before the first sample it is a guess.
        if !self.connection.is_handshaking() {
            let rtt = Duration::from_ns(after.path.min_rtt.as_nanos() as u64);
            counts.rtt_min = Some(counts.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// Runs the timers that are due.
    pub(crate) fn advance(&mut self, clock: VirtualClock, now: Time, counts: &mut EndCounts) {
        let now = clock.instant(now);
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
            counts.lost = self.connection.stats().path.lost_packets;
        }
    }

    /// Returns when its next timer is due.
    pub(crate) fn next_at(&mut self, clock: VirtualClock) -> Option<Time> {
        self.connection.poll_timeout().map(|at| clock.time(at))
    }

    /// Writes the next datagram.
    pub(crate) fn transmit(
        &mut self,
        clock: VirtualClock,
        now: Time,
        buf: &mut Vec<u8>,
        counts: &mut EndCounts,
    ) -> Option<Transmit> {
        let before = self.connection.stats().frame_tx.stream;
        let transmit = self.connection.poll_transmit(clock.instant(now), 1, buf)?;
        counts.segments += u64::from(self.connection.stats().frame_tx.stream > before);
        Some(transmit)
    }

    /// Exchanges what the connection and its endpoint have for each other.
    pub(crate) fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
    }
}

/// Whether a congestion event without a loss has reduced the window. Events of the same round trip
/// leave the window as it is.
fn is_reduction_by_mark(before: &ConnectionStats, after: &ConnectionStats) -> bool {
    let (before, after) = (&before.path, &after.path);
    after.congestion_events > before.congestion_events
        && after.lost_packets == before.lost_packets
        && after.cwnd < before.cwnd
}
