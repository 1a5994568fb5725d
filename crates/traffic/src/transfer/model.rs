//! What a transfer is.

use crate::amount_law::AmountLaw;
use fastpath_tcp::CongestionControl;
use fastpath_units::Bytes;

/// Traffic that waits for answers: connections of TCP or QUIC.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferModel {
    /// What carries the bytes.
    pub protocol: TransferProtocol,
    /// Connections side by side, each with the same workload; 1 to 16,383.
    pub flows: u32,
    /// What the ends do.
    pub workload: Workload,
    /// The congestion control of both ends.
    pub congestion: CongestionControl,
    /// Whether both ends want ECN (RFC 3168; RFC 9000 §13.4).
    pub ecn: bool,
}

/// The least UDP payload, bytes, that a path of QUIC carries (RFC 9000 §14).
pub const QUIC_DATAGRAM_MIN: u32 = 1200;

/// What carries the bytes of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TransferProtocol {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC (RFC 9000), for [`Workload::Bulk`] alone.
    Quic,
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

impl TransferModel {
    /// The word of descriptions.
    pub fn kind(&self) -> &'static str {
        match (&self.workload, self.protocol) {
            (Workload::Bulk(_), TransferProtocol::Tcp) => "tcp",
            (Workload::Bulk(_), TransferProtocol::Quic) => "quic",
            (Workload::Requests { .. }, _) => "request",
        }
    }
}

impl Workload {
    /// Which host receives the data: 0 the first, 1 the second.
    pub fn sink(&self) -> usize {
        match self {
            Workload::Bulk(_) => 1,
            Workload::Requests { .. } => 0,
        }
    }
}
