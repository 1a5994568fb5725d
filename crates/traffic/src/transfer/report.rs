//! What came of a transfer.

use super::model::TransferModel;
use super::program::TransferProgram;
use fastpath_units::{Distribution, Duration, Time};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The results of a transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TransferReport {
    /// The name of the traffic.
    pub name: String,
    /// `tcp`, `quic` or `request`.
    pub kind: String,
    /// The host that opens the connections.
    pub from: String,
    /// The other one.
    pub to: String,
    /// The congestion control.
    pub congestion: String,
    /// Bytes that arrived in order at the receiver of the data: of a request, the answers.
    pub received_bytes: u64,
    /// Seconds in which they moved: from the start to the last of them if the transfer is complete,
    /// else to the stop or the last of them, whichever is later.
    pub received_s: f64,
    /// `received_bytes` per second of `received_s`, bit/s.
    pub goodput_bps: f64,
    /// Whether all that was to be sent has arrived. Of a transfer without a size: always false.
    pub complete: bool,
    /// Bytes that arrived of each connection.
    pub flow_bytes: Vec<u64>,
    /// Segments with data that both ends sent, copies among them. Of QUIC: packets.
    pub segments: u64,
    /// Segments that were sent again. Of QUIC: packets of the sender that it declared lost.
    pub retransmitted: u64,
    /// Retransmission timeouts; `None` of QUIC, whose probe timeouts are not counted.
    pub timeouts: Option<u64>,
    /// Reductions of a window by a mark (ECN); `None` in a lab, whose kernel does not count them.
    pub marked: Option<u64>,
    /// The shortest round trip of any connection, ms; `None` before one is known.
    pub rtt_min_ms: Option<f64>,
    /// Requests that were sent.
    pub requests: u64,
    /// Requests whose answer has arrived whole.
    pub answers: u64,
    /// From a request to the end of its answer; `None` without an answer.
    pub answer: Option<AnswerTime>,
}

/// The names of a transfer and its hosts, for its report.
#[derive(Clone, Copy, Debug)]
pub struct TransferEnds<'a> {
    /// The name of the traffic.
    pub name: &'a str,
    /// The host that opens the connections.
    pub from: &'a str,
    /// The other one.
    pub to: &'a str,
}

/// What the transport protocol counted, at both ends of all connections.
#[derive(Clone, Copy, Default, Debug)]
pub struct TransportCounts {
    /// Segments with data, copies among them.
    pub segments: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts, if they are counted.
    pub timeouts: Option<u64>,
    /// Reductions of a window by a mark, if they are counted.
    pub marked: Option<u64>,
    /// The shortest round trip.
    pub rtt_min: Option<Duration>,
}

impl TransferReport {
    /// The results of connections with these programs, between `start` and `end`.
    pub fn new<'p>(
        (model, ends): (&TransferModel, TransferEnds),
        (start, end): (Time, Time),
        programs: impl Iterator<Item = &'p TransferProgram>,
        transport: TransportCounts,
        answers: &Distribution,
    ) -> TransferReport {
        let programs: Vec<&TransferProgram> = programs.collect();
        let flow_bytes: Vec<u64> = programs.iter().map(|program| program.received()).collect();
        let received_bytes: u64 = flow_bytes.iter().sum();
        let complete = programs.iter().all(|program| program.is_complete());
        let (last, end) = (programs.iter().filter_map(|program| program.last_at()).max(), end.max(start));
        let until = if complete { last.unwrap_or(end) } else { last.map_or(end, |last| last.max(end)) };
        let received_s = until.since(start).as_secs_f64();
        TransferReport {
            name: ends.name.to_owned(),
            kind: model.kind().to_owned(),
            from: ends.from.to_owned(),
            to: ends.to.to_owned(),
            congestion: model.congestion.name().to_owned(),
            received_bytes,
            received_s,
            goodput_bps: if received_s > 0.0 { received_bytes as f64 * 8.0 / received_s } else { 0.0 },
            complete,
            flow_bytes,
            segments: transport.segments,
            retransmitted: transport.retransmitted,
            timeouts: transport.timeouts,
            marked: transport.marked,
            rtt_min_ms: transport.rtt_min.map(Duration::as_ms_f64),
            requests: programs.iter().map(|program| program.requests()).sum(),
            answers: answers.count(),
            answer: AnswerTime::of(answers),
        }
    }
}

/// How long answers took, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct AnswerTime {
    /// Minimum, exactly.
    pub min_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Median, within 0.1 %.
    pub p50_ms: f64,
    /// 99th percentile, within 0.1 %.
    pub p99_ms: f64,
    /// Maximum, exactly.
    pub max_ms: f64,
}

impl AnswerTime {
    /// Returns the numbers of what was measured; `None` if nothing was.
    pub(super) fn of(measured: &Distribution) -> Option<AnswerTime> {
        Some(AnswerTime {
            min_ms: measured.min()?.as_ms_f64(),
            mean_ms: measured.mean_ps()? / 1e9,
            p50_ms: measured.quantile(0.5)?.as_ms_f64(),
            p99_ms: measured.quantile(0.99)?.as_ms_f64(),
            max_ms: measured.max()?.as_ms_f64(),
        })
    }
}

impl fmt::Display for TransferReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TransferReport { name, kind, from, to, congestion, received_bytes, .. } = self;
        let rate = self.goodput_bps / 1e6;
        write!(
            f,
            "{name} ({from} to {to}, {kind}, {congestion}): {received_bytes} bytes in {:.3} s, {rate:.3} Mbit/s",
            self.received_s
        )?;
        write!(f, "; {} segments, {} sent again", self.segments, self.retransmitted)?;
        if let Some(timeouts) = self.timeouts.filter(|timeouts| *timeouts > 0) {
            write!(f, ", {timeouts} timeouts")?;
        }
        if let Some(marked) = self.marked.filter(|marked| *marked > 0) {
            write!(f, ", {marked} reductions by marks")?;
        }
        if let Some(rtt) = self.rtt_min_ms {
            write!(f, "; round trip from {rtt:.3} ms")?;
        }
        if self.requests > 0 {
            write!(f, "; {} of {} requests answered", self.answers, self.requests)?;
        }
        if let Some(AnswerTime { p50_ms, p99_ms, .. }) = self.answer {
            write!(f, " in {p50_ms:.3} ms (median), {p99_ms:.3} ms (99 %)")?;
        }
        Ok(())
    }
}
