//! Traffic over connections of TCP and QUIC.
//!
//! ```toml
//! [[traffic]]
//! kind       = "tcp"          # the first host sends to the second
//! size       = "10MB"         # of each connection; absent: until the stop
//! congestion = "cubic"        # or "reno"; absent: cubic
//! ecn        = true           # RFC 3168; absent: false
//! flows      = 4              # connections side by side; absent: 1
//!
//! [[traffic]]
//! kind       = "quic"         # as tcp, over QUIC; with the keys of tcp
//!
//! [[traffic]]
//! kind       = "request"      # the first host asks, the second answers
//! request    = "200B"         # bytes of a request; absent: 200B
//! size       = "30kB"         # bytes of an answer: a size, or a law
//! think      = "1s"           # from an answer to the next request: a mean, or a law; absent: none
//! requests   = 100            # of each connection; absent: until the stop
//! ```
//!
//! Laws: `law.rs`.

use crate::fields::Fields;
use crate::files::Files;
use crate::law::{self, Amount};
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::write::text;
use fastpath_traffic::{AmountLaw, CongestionControl, TransferModel, TransferProtocol, Workload};
use fastpath_units::Bytes;
use serde_json::{Map, Value, json};

/// Bytes of a request, if none are given.
const REQUEST: Bytes = Bytes(200);
/// The most connections of one transfer: ports of a host.
const FLOWS_MAX: u64 = 10_000;

/// Reads the keys of bulk transfers.
pub(crate) fn read_bulk(
    fields: &mut Fields,
    protocol: TransferProtocol,
    remarks: &mut Remarks,
) -> TransferModel {
    let size = fields.get("size").and_then(|field| Amount::Bytes.read(&field, remarks));
    TransferModel { protocol, ..model(fields, Workload::Bulk(size.map(Bytes)), remarks) }
}

/// Reads the keys of requests.
pub(crate) fn read_requests(fields: &mut Fields, files: &Files, remarks: &mut Remarks) -> TransferModel {
    let request = fields.get("request").and_then(|field| Amount::Bytes.read(&field, remarks));
    let answer = match fields.get("size") {
        Some(field) => law::read(&field, Amount::Bytes, Some(files), remarks),
        None => {
            let instead = "write size = \"30kB\", the bytes of an answer, or a law";
            remarks.mistake(fields.at, "requests have no size of answers", instead);
            None
        }
    };
    let think = fields.get("think").and_then(|field| law::read(&field, Amount::Time, Some(files), remarks));
    let count = fields.get("requests").and_then(|field| field.whole(1..=u64::MAX >> 20, remarks));
    let workload = Workload::Requests {
        request: request.unwrap_or(REQUEST.0),
        answer: answer.unwrap_or(AmountLaw::Constant(1)),
        think: think.unwrap_or(AmountLaw::Constant(0)),
        count,
    };
    model(fields, workload, remarks)
}

fn model(fields: &mut Fields, workload: Workload, remarks: &mut Remarks) -> TransferModel {
    let names = CongestionControl::NAMES.map(|(name, _)| name);
    let congestion =
        fields.get("congestion").and_then(|field| field.word("a congestion control", &names, remarks));
    let flows = fields.get("flows").and_then(|field| field.whole(1..=FLOWS_MAX, remarks));
    TransferModel {
        protocol: TransferProtocol::Tcp,
        flows: flows.unwrap_or(1) as u32,
        workload,
        congestion: congestion
            .map_or_else(CongestionControl::default, |place| CongestionControl::NAMES[place].1),
        ecn: fields.get("ecn").and_then(|field| field.switch(remarks)).unwrap_or(false),
    }
}

/// Writes the keys of a transfer.
pub(crate) fn write(model: &TransferModel, all: &mut Map<String, Value>) {
    // The kind says the protocol.
    let TransferModel { protocol: _, flows, workload, congestion, ecn } = model;
    match workload {
        Workload::Bulk(size) => {
            all.extend(size.map(|size| ("size".to_owned(), text(size))));
        }
        Workload::Requests { request, answer, think, count } => {
            all.insert("request".to_owned(), text(Bytes(*request)));
            all.insert("size".to_owned(), law::write(answer, Amount::Bytes));
            if *think != AmountLaw::Constant(0) {
                all.insert("think".to_owned(), law::write(think, Amount::Time));
            }
            all.extend(count.map(|count| ("requests".to_owned(), json!(count))));
        }
    }
    if *congestion != CongestionControl::default() {
        all.insert("congestion".to_owned(), json!(congestion.name()));
    }
    if *flows > 1 {
        all.insert("flows".to_owned(), json!(flows));
    }
    if *ecn {
        all.insert("ecn".to_owned(), json!(true));
    }
}

/// The keys of transfers beside those of all traffic, with their schema.
pub(crate) fn properties() -> [(&'static str, &'static str, Value); 6] {
    let names = CongestionControl::NAMES.map(|(name, _)| name);
    [
        ("request", "Of requests: their bytes.", schema_parts::reference("bytes")),
        ("think", "Of requests: from an answer to the next one.", law::schema(Amount::Time, true)),
        (
            "requests",
            "Of requests: how many each connection sends.",
            json!({ "type": "integer", "minimum": 1 }),
        ),
        (
            "flows",
            "Of tcp, quic and request: connections side by side.",
            json!({ "type": "integer", "minimum": 1, "maximum": FLOWS_MAX }),
        ),
        ("congestion", "Of tcp, quic and request: the congestion control.", json!({ "enum": names })),
        ("ecn", "Of tcp, quic and request: whether both ends want ECN.", json!({ "type": "boolean" })),
    ]
}
