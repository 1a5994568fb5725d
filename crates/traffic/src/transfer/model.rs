//! What a transfer is, and what came of it.

use crate::amount_law::AmountLaw;
use fastpath_tcp::CongestionControl;
use fastpath_units::{Bytes, Distribution};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Traffic that waits for answers: connections of TCP.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferModel {
    /// Connections side by side, each with the same workload; 1 to 16,383.
    pub flows: u32,
    /// What the ends do.
    pub workload: Workload,
    /// The congestion control of both ends.
    pub congestion: CongestionControl,
    /// Whether both ends want ECN (RFC 3168).
    pub ecn: bool,
}

/// What the ends of a connection do.
#[derive(Clone, PartialEq, Debug)]
pub enum Workload {
    /// The first host sends to the second: this much, or until the stop.
    Bulk(Option<Bytes>),
    /// The first host asks, the second answers, the first thinks and asks again.
    Requests {
        /// Bytes of a request; at least 1.
        request: u64,
        /// Bytes of an answer; less than one byte is one.
        answer: AmountLaw,
        /// From the end of an answer to the next request, ps.
        think: AmountLaw,
        /// Requests of each connection; `None`: until the stop.
        count: Option<u64>,
    },
}

impl Workload {
    /// The word of descriptions.
    pub fn kind(&self) -> &'static str {
        match self {
            Workload::Bulk(_) => "tcp",
            Workload::Requests { .. } => "request",
        }
    }
}

/// The results of a transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TransferReport {
    /// The name of the traffic.
    pub name: String,
    /// `tcp` or `request`.
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
    /// Segments with data that both ends sent, copies among them.
    pub segments: u64,
    /// Segments that were sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions of a window by a mark (ECN).
    pub marked: u64,
    /// The shortest round trip of any connection, ms; `None` before one is known.
    pub rtt_min_ms: Option<f64>,
    /// Requests that were sent.
    pub requests: u64,
    /// Requests whose answer has arrived whole.
    pub answers: u64,
    /// From a request to the end of its answer; `None` without an answer.
    pub answer: Option<AnswerTime>,
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
        if self.timeouts > 0 {
            write!(f, ", {} timeouts", self.timeouts)?;
        }
        if self.marked > 0 {
            write!(f, ", {} reductions by marks", self.marked)?;
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
