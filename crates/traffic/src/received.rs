//! What a receiver counts of a flow, and the report of the flow.
//!
//! ```text
//!  FlowHeader, time of arrival ─▶ Received ─┐
//!                                       ├─▶ FlowReport
//!  packets and bytes sent ──▶ Sent ─────┘
//! ```

use crate::FlowHeader;
use fastpath_units::stats::per_second;
use fastpath_units::{Distribution, Duration, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sequence numbers of which a receiver knows whether they have arrived, counted back from the
/// highest, in words of 64.
const WORDS: usize = 1024;

/// The share of its packets that a flow may leave out, and how many it may in any case: the last
/// packet can be due less than a sleep before the stop.
const MISSED_SHARE: f64 = 0.01;
const MISSED_PACKETS: u64 = 1;

/// What a sender was asked to send, and what it has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Packets that were due by the arrival model.
    pub asked: u64,
    /// Bytes of their payload.
    pub asked_bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes of payload sent.
    pub bytes: u64,
    /// When the last packet was sent.
    pub last: Option<Time>,
    /// The largest number of packets that were sent at one instant.
    pub burst_max: u64,
}

/// The packets of a flow that have arrived.
#[derive(Clone, Debug)]
pub struct Received {
    packets: u64,
    bytes: u64,
    duplicates: u64,
    reordered: u64,
    /// When the first and the latest packet arrived.
    arrivals: Option<(Time, Time)>,
    /// Packets that the receiving host dropped, because the receiver was too slow.
    overrun: u64,
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
    /// Packets that were due by the arrival model, from the start to the stop or the end of the
    /// run.
    #[serde(default)]
    pub asked: u64,
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
    /// Packets that reached the host and were dropped there, because the receiver was too slow.
    /// They are among the lost ones.
    #[serde(default)]
    pub overrun: u64,
    /// The largest number of packets that were sent at one instant.
    #[serde(default)]
    pub burst_max: u64,
    /// The payload that was due, per second of `sent_s`, bit/s.
    #[serde(default)]
    pub asked_bps: f64,
    /// The payload sent per second of `sent_s`, bit/s.
    pub sent_bps: f64,
    /// The payload received per second of `received_s`, bit/s.
    pub received_bps: f64,
    /// Seconds from the start to the stop or the end of the run; to the last packet if that was
    /// sent later.
    #[serde(default)]
    pub sent_s: f64,
    /// Seconds in which it was received: `sent_s`, or those from the first arrival to the last if
    /// these are more. The first packet moved before it arrived: it counts as long as the others do
    /// on average.
    #[serde(default)]
    pub received_s: f64,
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
    /// When it starts.
    pub start: Time,
    /// When it stops, or the run ends; not before the start.
    pub end: Time,
}

impl Default for Received {
    fn default() -> Received {
        Received {
            packets: 0,
            bytes: 0,
            duplicates: 0,
            reordered: 0,
            arrivals: None,
            overrun: 0,
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
        self.arrivals = match self.arrivals {
            // The stamps of two sockets of the kernel may be out of order.
            Some((first, last)) => Some((first.min(now), last.max(now))),
            None => Some((now, now)),
        };
        let delay = Duration::from_ps(now.as_ps().saturating_sub(header.sent.as_ps()));
        self.delays.record(delay);
        if let Some(before) = self.latest.replace(delay) {
            let difference = delay.as_ps().abs_diff(before.as_ps()) as f64;
            self.jitter += (difference - self.jitter) / 16.0;
        }
    }

    /// Notes how many packets the receiving host has dropped since the start.
    pub fn set_overrun(&mut self, packets: u64) {
        self.overrun = packets;
    }

    /// Returns the report of a flow of which this has arrived. A rate is an amount over the time in
    /// which it moved.
    pub fn report(&self, ends: FlowEnds<'_>, sent: Sent) -> FlowReport {
        let end = sent.last.map_or(ends.end, |last| last.max(ends.end));
        let sent_s = end.since(ends.start).as_secs_f64();
        let gaps_s = self.arrivals.map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
        // As many intervals as packets: n packets have n - 1 gaps.
        let arrival_s = match self.packets {
            0 | 1 => 0.0,
            packets => gaps_s * packets as f64 / (packets - 1) as f64,
        };
        let received_s = sent_s.max(arrival_s);
        let bps = |bytes: u64, seconds: f64| per_second(bytes as f64 * 8.0, seconds);
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
            asked: sent.asked,
            sent: sent.packets,
            sent_bytes: sent.bytes,
            received: self.packets,
            received_bytes: self.bytes,
            lost: sent.packets.saturating_sub(self.packets),
            duplicates: self.duplicates,
            reordered: self.reordered,
            overrun: self.overrun,
            burst_max: sent.burst_max,
            asked_bps: bps(sent.asked_bytes, sent_s),
            sent_bps: bps(sent.bytes, sent_s),
            received_bps: bps(self.bytes, received_s),
            sent_s,
            received_s,
            delay: delay(),
        }
    }
}

impl FlowReport {
    /// Why the flow is not the one that was asked for, if so: more than 1 % of its packets were not
    /// sent, or the receiver dropped more than that.
    pub fn shortfall(&self) -> Option<String> {
        let FlowReport { name, asked, sent, overrun, .. } = self;
        let many = |missed: u64, of: u64| missed > MISSED_PACKETS && missed as f64 > MISSED_SHARE * of as f64;
        if many(asked.saturating_sub(*sent), *asked) {
            let [sent_mbit, asked_mbit] = [self.sent_bps, self.asked_bps].map(|bps| bps / 1e6);
            return Some(format!(
                "traffic {name}: {sent} of {asked} packets that were due were sent ({sent_mbit:.3} of \
                 {asked_mbit:.3} Mbit/s): the machine did not carry it"
            ));
        }
        many(*overrun, *sent).then(|| {
            format!(
                "traffic {name}: {overrun} packets were lost in the receiving host: the machine was too slow"
            )
        })
    }
}

/// `a-b: 7.992 of 8.000 Mbit/s, lost 1 of 1000, delay 26.000 ms (p99 26.001), jitter 0.000 ms`; if
/// not all was sent that was due, `a-b: 7.992 of 8.000 Mbit/s (asked 16.000), lost 1 of 1000 (of
/// 2000 due)`.
impl fmt::Display for FlowReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FlowReport { name, asked, sent, lost, .. } = self;
        let [received_mbit, sent_mbit] = [self.received_bps, self.sent_bps].map(|bps| bps / 1e6);
        write!(f, "{name}: {received_mbit:.3} of {sent_mbit:.3} Mbit/s")?;
        let is_short = asked > sent;
        if is_short {
            write!(f, " (asked {:.3})", self.asked_bps / 1e6)?;
        }
        write!(f, ", lost {lost} of {sent}")?;
        if is_short {
            write!(f, " (of {asked} due)")?;
        }
        let counts = [
            (self.duplicates, "duplicates"),
            (self.reordered, "reordered"),
            (self.overrun, "lost in the receiver"),
        ];
        for (count, what) in counts {
            if count > 0 {
                write!(f, ", {what} {count}")?;
            }
        }
        if self.burst_max > 1 {
            write!(f, ", bursts of up to {}", self.burst_max)?;
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
