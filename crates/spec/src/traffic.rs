//! The traffic of a description: what hosts send to each other without programs.
//!
//! ```toml
//! [[traffic]]
//! from  = "a"
//! to    = "b"
//! name  = "camera"            # absent: "a-b"
//! kind  = "constant"          # absent: constant; "poisson", "on-off", "voice"; see `transfer.rs`
//! rate  = "2Mbit"             # of UDP payload; on-off: during on periods
//! # or the share of a link on the way, headers included, in place of rate
//! load  = "80% of access"     # "80% of bottleneck": of the link on the way with the lowest rate
//! size  = 1000                # UDP payload of a packet, bytes, at least 16; absent: 1000
//! # lengths of periods: a mean of an exponential law, or a table
//! on    = "500ms"
//! off   = { law = "pareto", mean = "2s", shape = 1.5 }
//! start = "1s"                # absent: with the run
//! stop  = "20s"               # absent: with the run
//! port  = 6000                # of UDP; absent: 5001 for the first of the list, 5002, …
//! dscp  = 46                  # RFC 2474; absent: 0
//! ```
//!
//! `voice` is a G.711 call in one direction (see `fastpath_traffic::VOICE`): it has neither rate
//! nor size.

use crate::description::{TrafficDescription, TrafficKind};
use crate::fields::{Field, Fields};
use crate::files::Files;
use crate::law::{self, Amount};
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::transfer;
use crate::write::text;
use fastpath_traffic::{AmountLaw, HEADER_LEN, PeriodLaw, TransferProtocol, Workload};
use fastpath_units::{Duration, Probability};
use serde_json::{Map, Value, json};

/// The payload begins with a header.
const SIZE_MIN: u64 = HEADER_LEN as u64;
/// The payload of a packet, if none is given, bytes.
const SIZE: u32 = 1000;
/// The largest UDP payload over IPv4, bytes.
const SIZE_MAX: u64 = 65_507;
const KINDS: [&str; 7] = ["constant", "poisson", "on-off", "voice", "tcp", "quic", "request"];

/// Reads a table of traffic.
pub(crate) fn read(mut fields: Fields, files: &Files, remarks: &mut Remarks) -> TrafficDescription {
    let mut end = |key: &str, example: &str| {
        let Some(field) = fields.get(key) else {
            let instead = format!("write {key} = \"{example}\"");
            remarks.mistake(fields.at, format!("traffic has no {key}"), instead);
            return String::new();
        };
        field.text(example, remarks).unwrap_or_default().to_owned()
    };
    let (from, to) = (end("from", "a"), end("to", "b"));
    let kind = fields.get("kind").map_or(Some(0), |field| field.word("a kind of traffic", &KINDS, remarks));
    let kind = match kind {
        None | Some(0) => TrafficKind::Constant,
        Some(1) => TrafficKind::Poisson,
        Some(2) => {
            let mut length = |key: &str| {
                let Some(field) = fields.get(key) else {
                    let instead = format!("write {key} = \"500ms\", the mean length of its {key} periods");
                    remarks.mistake(fields.at, format!("on-off traffic has no {key}"), instead);
                    return PeriodLaw::Constant(Duration::ZERO);
                };
                period(&field, remarks).unwrap_or(PeriodLaw::Constant(Duration::ZERO))
            };
            TrafficKind::OnOff { on: length("on"), off: length("off") }
        }
        Some(3) => TrafficKind::Voice,
        Some(4) => TrafficKind::Transfer(transfer::read_bulk(&mut fields, TransferProtocol::Tcp, remarks)),
        Some(5) => TrafficKind::Transfer(transfer::read_bulk(&mut fields, TransferProtocol::Quic, remarks)),
        Some(_) => TrafficKind::Transfer(transfer::read_requests(&mut fields, files, remarks)),
    };
    let mut traffic = TrafficDescription::new(from, to, kind);
    if !matches!(traffic.kind, TrafficKind::Transfer(_)) {
        read_datagrams(&mut fields, &mut traffic, remarks);
    }
    traffic.name = fields.get("name").and_then(|field| Some(field.text("camera", remarks)?.to_owned()));
    let mut time = |key: &str| fields.get(key).and_then(|field| field.quantity::<Duration>("10s", remarks));
    traffic.start = time("start").unwrap_or(Duration::ZERO);
    traffic.stop = time("stop");
    let mut number = |key: &str, range| fields.get(key).and_then(|field| field.whole(range, remarks));
    traffic.port = number("port", 1..=65_535).map(|port| port as u16);
    traffic.dscp = number("dscp", 0..=63).unwrap_or(0) as u8;
    fields.finish(remarks);
    traffic
}

/// Reads the rate and the size of packets.
fn read_datagrams(fields: &mut Fields, traffic: &mut TrafficDescription, remarks: &mut Remarks) {
    let rate_field = fields.get("rate");
    let load_field = fields.get("load");
    if let (Some(_), Some(load)) = (&rate_field, &load_field) {
        remarks.mistake(load.at, "rate and load are both given", "keep one of them");
    }
    traffic.rate = rate_field.and_then(|field| field.quantity("2Mbit", remarks));
    traffic.load = load_field.as_ref().and_then(|field| load(field, remarks));
    if let Some(field) = fields.get("size") {
        traffic.size = field.whole(SIZE_MIN..=SIZE_MAX, remarks).map(|size| size as u32);
    }
}

impl TrafficDescription {
    /// Returns the payload of a packet, bytes.
    pub fn size_or_default(&self) -> u32 {
        self.size.unwrap_or(SIZE)
    }
}

/// The law of the lengths of periods.
fn period(field: &Field, remarks: &mut Remarks) -> Option<PeriodLaw> {
    let length = Duration::from_ps;
    Some(match law::read(field, Amount::Time, None, remarks)? {
        AmountLaw::Constant(mean) => PeriodLaw::Constant(length(mean)),
        AmountLaw::Exponential(mean) => PeriodLaw::Exponential(length(mean)),
        AmountLaw::Pareto { mean, shape } => PeriodLaw::Pareto { mean: length(mean), shape },
        AmountLaw::Values(_) => unreachable!("no list and no file is read here"),
    })
}

/// `"80% of access"`: a share, and the name of a link.
fn load(field: &Field, remarks: &mut Remarks) -> Option<(Probability, String)> {
    let said = field.text("80% of a-b", remarks)?;
    let parts = said.split_once(" of ");
    let load = parts.and_then(|(share, link)| {
        let share: String = share.chars().filter(|letter| !letter.is_whitespace()).collect();
        Some((share.parse::<Probability>().ok()?, link.trim().to_owned()))
    });
    if load.as_ref().is_none_or(|(share, _)| share.is_never()) {
        let what = format!("'{said}' is not a load: a percentage above 0 and at most 100, and a link");
        remarks.mistake(field.at, what, "write load = \"80% of a-b\"; for more than 100 %, write rate");
        return None;
    }
    load
}

/// Writes traffic in the canonical form.
pub(crate) fn write(traffic: &TrafficDescription) -> Value {
    let TrafficDescription { name, from, to, kind, rate, load, size, start, stop, port, dscp } = traffic;
    let mut all: Map<String, Value> = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            all.insert(key.to_owned(), value);
        }
    };
    put("name", name.as_ref().map(|name| json!(name)));
    put("from", Some(json!(from)));
    put("to", Some(json!(to)));
    let place = match kind {
        TrafficKind::Constant => 0,
        TrafficKind::Poisson => 1,
        TrafficKind::OnOff { .. } => 2,
        TrafficKind::Voice => 3,
        TrafficKind::Transfer(model) => match (&model.workload, model.protocol) {
            (Workload::Bulk(_), TransferProtocol::Tcp) => 4,
            (Workload::Bulk(_), TransferProtocol::Quic) => 5,
            (Workload::Requests { .. }, _) => 6,
        },
    };
    put("kind", Some(json!(KINDS[place])));
    if let TrafficKind::OnOff { on, off } = kind {
        put("on", Some(write_law(on)));
        put("off", Some(write_law(off)));
    }
    put("rate", rate.map(text));
    put("load", load.as_ref().map(|(share, link)| json!(format!("{share} of {link}"))));
    put("size", size.map(|size| json!(size)));
    put("start", (!start.is_zero()).then(|| text(start)));
    put("stop", stop.map(text));
    put("port", port.map(|port| json!(port)));
    put("dscp", (*dscp > 0).then(|| json!(dscp)));
    if let TrafficKind::Transfer(model) = kind {
        transfer::write(model, &mut all);
    }
    Value::Object(all)
}

fn write_law(period: &PeriodLaw) -> Value {
    let amount = match *period {
        PeriodLaw::Constant(mean) => AmountLaw::Constant(mean.as_ps()),
        PeriodLaw::Exponential(mean) => AmountLaw::Exponential(mean.as_ps()),
        PeriodLaw::Pareto { mean, shape } => AmountLaw::Pareto { mean: mean.as_ps(), shape },
    };
    law::write(&amount, Amount::Time)
}

/// The schema of traffic.
pub(crate) fn schema() -> Value {
    let law = law::schema(Amount::Time, false);
    let whole = |from: u64, to: u64| json!({ "type": "integer", "minimum": from, "maximum": to });
    let mut properties = schema_parts::properties([
        ("from", "The host that sends.", schema_parts::reference("name")),
        ("to", "The host that receives.", schema_parts::reference("name")),
        ("name", "Unique among traffic; by default from-to.", schema_parts::reference("name")),
        ("kind", "When packets are sent.", json!({ "enum": KINDS })),
        (
            "rate",
            "Bits of UDP payload per second; of on-off traffic, in on periods.",
            schema_parts::reference("rate"),
        ),
        (
            "load",
            "In place of rate: the share of a link on the way, or of the bottleneck, headers included.",
            json!({ "type": "string", "examples": ["80% of a-b", "80% of bottleneck"] }),
        ),
        (
            "size",
            "The UDP payload of a packet, bytes; of tcp and quic, what is sent; of request, what an answer has.",
            json!({ "anyOf": [whole(SIZE_MIN, SIZE_MAX), law::schema(Amount::Bytes, true)] }),
        ),
        ("on", "The lengths of on periods: a mean of an exponential law, or a law.", law.clone()),
        ("off", "The lengths of off periods.", law),
        ("start", "When it starts, from the start of the run.", schema_parts::reference("duration")),
        ("stop", "When it stops; by default it does not.", schema_parts::reference("duration")),
        ("port", "The UDP or TCP port at the receiver.", whole(1, 65_535)),
        ("dscp", "The differentiated services code point.", whole(0, 63)),
    ]);
    properties.extend(schema_parts::properties(transfer::properties()));
    schema_parts::table(properties, &["from", "to"])
}
