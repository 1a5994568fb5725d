//! What a receiver counts of a flow, and the report of the flow.
//!
//! ```text
//!  FlowHeader, time of arrival ─▶ Received ─┐
//!                                       ├─▶ FlowReport
//!  packets and bytes sent ──▶ Sent ─────┘
//! ```

use crate::FlowHeader;
use fastpath_units::{Distribution, Duration, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sequence numbers of which a receiver knows whether they have arrived, counted back from the
/// highest, in words of 64.
const WORDS: usize = 1024;

/// The packets that a sender has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

/// The packets of a flow that have arrived.
#[derive(Clone, Debug)]
pub struct Received {
    packets: u64,
    bytes: u64,
    duplicates: u64,
    reordered: u64,
    delays: Distribution,
    /// The delay of the latest packet.
    latest: Option<Duration>,
    /// RFC 3550 §6.4.1, picoseconds.
    jitter: f64,
    seen: Seen,
}

/// The sequence numbers that have arrived: a window below the highest.
#[derive(Clone, Debug)]
struct Seen {
    /// One above the highest.
    end: u64,
    words: Box<[u64; WORDS]>,
}

/// How a sequence number relates to those before it.
enum ArrivalOrder {
    InOrder,
    Late,
    Again,
}

/// The results of a flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowReport {
    /// The name of the traffic.
    pub name: String,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// Packets sent.
    pub sent: u64,
    /// Bytes of payload sent.
    pub sent_bytes: u64,
    /// Packets received, each counted once.
    pub received: u64,
    /// Bytes of payload received.
    pub received_bytes: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Copies of packets that had been received. A copy of a packet more than 65,536 packets older
    /// than the newest is not known as one.
    pub duplicates: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
    /// Payload sent per second from the start to the stop, bit/s.
    pub sent_bps: f64,
    /// Payload received, over the same time, bit/s.
    pub received_bps: f64,
    /// One-way delays; `None` if nothing was received.
    pub delay: Option<FlowDelay>,
}

/// The one-way delays of a flow, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowDelay {
    /// Minimum, exactly.
    pub min_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Median, within 0.1 %, and between minimum and maximum.
    pub p50_ms: f64,
    /// 99th percentile, within 0.1 %, and between minimum and maximum.
    pub p99_ms: f64,
    /// Maximum, exactly.
    pub max_ms: f64,
    /// The jitter of RFC 3550 §6.4.1 at the end: a mean of the differences between successive
    /// delays.
    pub jitter_ms: f64,
}

/// The names of a flow, and the time in which it sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowEnds<'a> {
    /// The name of the traffic.
    pub name: &'a str,
    /// The host that sends.
    pub from: &'a str,
    /// The host that receives.
    pub to: &'a str,
    /// From start to stop.
    pub length: Duration,
}

impl Default for Received {
    fn default() -> Received {
        Received {
            packets: 0,
            bytes: 0,
            duplicates: 0,
            reordered: 0,
            delays: Distribution::growing(),
            latest: None,
            jitter: 0.0,
            seen: Seen { end: 0, words: Box::new([0; WORDS]) },
        }
    }
}

impl Received {
    /// Counts a datagram with `bytes` of payload that arrives at `now`.
    #[inline]
    pub fn count(&mut self, now: Time, header: FlowHeader, bytes: usize) {
        match self.seen.arrives(header.sequence) {
            ArrivalOrder::InOrder => {}
            ArrivalOrder::Late => self.reordered += 1,
            ArrivalOrder::Again => {
                self.duplicates += 1;
                return;
            }
        }
        self.packets += 1;
        self.bytes += bytes as u64;
        let delay = Duration::from_ps(now.as_ps().saturating_sub(header.sent.as_ps()));
        self.delays.record(delay);
        if let Some(before) = self.latest.replace(delay) {
            let difference = delay.as_ps().abs_diff(before.as_ps()) as f64;
            self.jitter += (difference - self.jitter) / 16.0;
        }
    }

    /// Returns the report of a flow of which this has arrived.
    pub fn report(&self, ends: FlowEnds<'_>, sent: Sent) -> FlowReport {
        let bps = |bytes: u64| match ends.length.is_zero() {
            true => 0.0,
            false => bytes as f64 * 8.0 / ends.length.as_secs_f64(),
        };
        let delay = || {
            let delays = &self.delays;
            Some(FlowDelay {
                min_ms: delays.min()?.as_ms_f64(),
                mean_ms: delays.mean_ps()? / 1e9,
                p50_ms: delays.quantile(0.5)?.as_ms_f64(),
                p99_ms: delays.quantile(0.99)?.as_ms_f64(),
                max_ms: delays.max()?.as_ms_f64(),
                jitter_ms: self.jitter / 1e9,
            })
        };
        FlowReport {
            name: ends.name.to_owned(),
            from: ends.from.to_owned(),
            to: ends.to.to_owned(),
            sent: sent.packets,
            sent_bytes: sent.bytes,
            received: self.packets,
            received_bytes: self.bytes,
            lost: sent.packets.saturating_sub(self.packets),
            duplicates: self.duplicates,
            reordered: self.reordered,
            sent_bps: bps(sent.bytes),
            received_bps: bps(self.bytes),
            delay: delay(),
        }
    }
}

/// `a-b: 7.992 of 8.000 Mbit/s, lost 1 of 1000, delay 26.000 ms (p99 26.001), jitter 0.000 ms`.
impl fmt::Display for FlowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowReport { name, sent, lost, .. } = self;
        let [received_mbit, sent_mbit] = [self.received_bps, self.sent_bps].map(|bps| bps / 1e6);
        write!(f, "{name}: {received_mbit:.3} of {sent_mbit:.3} Mbit/s, lost {lost} of {sent}")?;
        for (count, what) in [(self.duplicates, "duplicates"), (self.reordered, "reordered")] {
            if count > 0 {
                write!(f, ", {what} {count}")?;
            }
        }
        let Some(FlowDelay { mean_ms, p99_ms, jitter_ms, .. }) = self.delay else { return Ok(()) };
        write!(f, ", delay {mean_ms:.3} ms (p99 {p99_ms:.3}), jitter {jitter_ms:.3} ms")
    }
}

impl Seen {
    #[inline]
    fn arrives(&mut self, sequence: u64) -> ArrivalOrder {
        let (word, bit) = (sequence / 64, 1 << (sequence % 64));
        let place = word as usize % WORDS;
        if sequence >= self.end {
            // The word of the highest number so far; 0 if there is none.
            let newest = self.end.div_ceil(64);
            for skipped in (newest..=word).rev().take(WORDS) {
                self.words[skipped as usize % WORDS] = 0;
            }
            self.end = sequence + 1;
            self.words[place] |= bit;
            return ArrivalOrder::InOrder;
        }
        let oldest = (self.end - 1) / 64;
        if word + (WORDS as u64) <= oldest {
            return ArrivalOrder::Late;
        }
        if self.words[place] & bit != 0 {
            return ArrivalOrder::Again;
        }
        self.words[place] |= bit;
        ArrivalOrder::Late
    }
}
