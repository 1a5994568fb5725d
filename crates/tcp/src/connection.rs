//! One end of a connection.

use crate::congestion::CongestionControl;
use crate::receiver::Receiver;
use crate::segment::Segment;
use crate::sender::{Sender, SenderCounts};
use fastpath_units::{Duration, Time};

const PS_PER_MS: u64 = 1_000_000_000;

/// How an end behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOptions {
    /// Its congestion control.
    pub congestion: CongestionControl,
    /// Bytes of data in a full segment: the MTU without the headers of IP and TCP and the 12 bytes
    /// of timestamps. At least 1.
    pub mss: u32,
    /// Whether it asks for ECN, and agrees to it (RFC 3168).
    pub ecn: bool,
    /// Bytes that it takes ahead of the reader, who reads at once.
    pub window: u64,
}

impl TcpOptions {
    /// Bytes that a host of Linux takes ahead: what the default `tcp_rmem` of 6 MiB leaves.
    pub const WINDOW: u64 = 3 << 20;

    /// CUBIC without ECN, for interfaces with this MTU and the headers of this many bytes of IP.
    pub fn for_mtu(mtu: u32, ip_header: u32) -> TcpOptions {
        let mss = mtu.saturating_sub(ip_header + 32).max(1);
        TcpOptions { congestion: CongestionControl::default(), mss, ecn: false, window: TcpOptions::WINDOW }
    }
}

/// One end of a connection: segments in and out, and the time at which it wants to be called. It
/// has no payload: what is written is a number of bytes.
///
/// ```
/// use fastpath_tcp::{Connection, TcpOptions};
/// use fastpath_units::{Duration, Time};
///
/// let options = TcpOptions::for_mtu(1500, 20);
/// let (mut client, mut server) = (Connection::client(options), Connection::server(options));
/// client.write(100_000);
/// client.close();
/// server.close();
/// let (mut now, step) = (Time::ZERO, Duration::from_ms(10));
/// while !client.is_over() || !server.is_over() {
///     client.advance(now);
///     server.advance(now);
///     // A link of 10 ms each way, without a rate.
///     let there: Vec<_> = std::iter::from_fn(|| client.transmit(now)).collect();
///     let back: Vec<_> = std::iter::from_fn(|| server.transmit(now)).collect();
///     now = now + step;
///     there.iter().for_each(|segment| server.receive(now, segment));
///     back.iter().for_each(|segment| client.receive(now, segment));
/// }
/// assert_eq!(server.received(), 100_000);
/// assert!(now < Time::ZERO + Duration::from_ms(200));
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    options: TcpOptions,
    is_client: bool,
    sender: Sender,
    receiver: Receiver,
    /// Whether the SYN of the other end has arrived.
    is_known: bool,
    /// Whether both SYNs have.
    is_open: bool,
}

impl Connection {
    /// The end that opens the connection: at once.
    pub fn client(options: TcpOptions) -> Connection {
        Connection::new(options, true)
    }

    /// The end that waits for a client.
    pub fn server(options: TcpOptions) -> Connection {
        Connection::new(options, false)
    }

    fn new(options: TcpOptions, is_client: bool) -> Connection {
        Connection {
            options,
            is_client,
            sender: Sender::new(options.congestion, options.mss),
            receiver: Receiver::new(options.mss, options.window),
            is_known: false,
            is_open: false,
        }
    }

    /// Has this many more bytes sent.
    ///
    /// # Panics
    /// After [`Connection::close`], in debug builds.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// Ends the stream after what was written.
    pub fn close(&mut self) {
        self.sender.finish();
    }

    /// Bytes of the other end that have arrived in order.
    pub fn received(&self) -> u64 {
        self.receiver.received()
    }

    /// Bytes that the other end has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        (self.sender.una() - u64::from(self.sender.is_done())).saturating_sub(1)
    }

    /// Positions near the next one that is expected, and near the next one that is acknowledged.
    pub fn near(&self) -> (u64, u64) {
        (self.receiver.position(), self.sender.una())
    }

    /// Whether both streams have ended and are acknowledged.
    pub fn is_over(&self) -> bool {
        self.sender.is_done() && self.receiver.is_ended()
    }

    /// What its sender has done.
    pub fn counts(&self) -> SenderCounts {
        self.sender.counts()
    }

    /// The shortest round trip.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.sender.rtt().min()
    }

    /// When [`Connection::advance`] has something to do next; `None` if it waits for a segment.
    pub fn next_at(&self) -> Option<Time> {
        [self.sender.next_at(), self.receiver.next_at()].into_iter().flatten().min()
    }

    /// Does what is due. What it sends comes out of [`Connection::transmit`].
    pub fn advance(&mut self, now: Time) {
        self.sender.advance(now);
    }

    /// Takes a segment that has arrived.
    pub fn receive(&mut self, now: Time, segment: &Segment) {
        if segment.syn {
            self.greet(segment);
        }
        if !self.is_known {
            return;
        }
        if segment.ack.is_some() {
            self.sender.acknowledge(now, segment);
        }
        self.is_open |= self.sender.una() > 0;
        let smoothed = self.sender.rtt().smoothed();
        self.receiver.receive(now, segment, self.sender.has_ecn(), smoothed);
    }

    /// Takes the SYN of the other end: ECN is used if both want it.
    fn greet(&mut self, segment: &Segment) {
        let wants = if self.is_client { segment.ece && !segment.cwr } else { segment.ece && segment.cwr };
        if !self.is_known && wants && self.options.ecn {
            self.sender.use_ecn();
        }
        self.is_known = true;
    }

    /// Returns the next segment that leaves now; `None` if there is none.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        let timestamp = (now.as_ps() / PS_PER_MS) as u32;
        // Only a SYN before the connection is open, and one at a time.
        let may_send = self.is_open || ((self.is_client || self.is_known) && !self.sender.is_opening());
        if may_send && let Some(((from, to), is_again)) = self.sender.transmit(now, timestamp) {
            return Some(self.segment((from, to), is_again, timestamp));
        }
        if self.is_known && self.receiver.is_due(now) {
            let mut segment = Segment { seq: self.sender.position(), timestamp, ..Segment::default() };
            self.receiver.acknowledge(&mut segment);
            return Some(segment);
        }
        None
    }

    /// The segment with these positions.
    fn segment(&mut self, (from, to): (u64, u64), is_again: bool, timestamp: u32) -> Segment {
        let (syn, has_ecn) = (from == 0, self.sender.has_ecn());
        let fin = self.sender.is_fin(from);
        let mut segment = Segment { seq: from, syn, fin, timestamp, ..Segment::default() };
        segment.len = if syn || fin { 0 } else { (to - from) as u32 };
        if syn {
            let asks = if self.is_client { self.options.ecn } else { has_ecn };
            (segment.ece, segment.cwr) = (asks, asks && self.is_client);
        } else if has_ecn && segment.len > 0 {
            // RFC 3168 §6.1.5: copies are not ECN-capable.
            segment.ecn = if is_again { 0 } else { 2 };
            segment.cwr = !is_again && self.sender.says_reduced();
        }
        match self.is_known {
            true => self.receiver.acknowledge(&mut segment),
            false => segment.window = self.receiver.offer(),
        }
        segment
    }
}
