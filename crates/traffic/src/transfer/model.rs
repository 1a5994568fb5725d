//! What a transfer is.

use crate::amount_law::AmountLaw;
use fastpath_tcp::CongestionControl;
use fastpath_units::Bytes;

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

    /// Which host receives the data: 0 the first, 1 the second.
    pub fn sink(&self) -> usize {
        match self {
            Workload::Bulk(_) => 1,
            Workload::Requests { .. } => 0,
        }
    }
}
