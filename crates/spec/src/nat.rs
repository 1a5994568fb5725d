//! The settings of a NAT, in the terms of RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP).
//!
//! ```toml
//! [nat.x]
//! inside = ["a-x"]                       # the names of links; the others lead outside
//! mapping = "endpoint-independent"       # or "address-dependent", "address-and-port-dependent"
//! filtering = "address-dependent"        # the same words
//! # addresses of outside links, or of inside ones, to which routers outside need routes: hosts
//! # there that are in the pool keep their addresses; absent: the address of the outside interface
//! pool = ["192.0.2.10", "192.0.2.11"]
//! pooling = "paired"                     # or "arbitrary"
//! ports = "1024-65535"                   # the outside ports that mappings may have
//! port_preservation = true
//! port_parity = true
//! hairpinning = true
//! inbound_refresh = false                # whether packets from outside keep a mapping
//! timeouts = { udp = "5min", tcp = "124min", tcp_transitory = "4min", icmp = "60s", fragments = "30s" }
//! sessions_max = 65536
//! ```

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts;
use fastpath_units::Duration;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// The most addresses of a pool.
const POOL_MAX: usize = 256;
/// The most sessions of a NAT.
const SESSIONS_MAX: u64 = 1 << 22;

/// A NAT in a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nat {
    /// The indices of the interfaces whose packets are translated. The others lead outside.
    pub inside: BTreeSet<usize>,
    /// How it translates.
    pub settings: NatSettings,
}

/// A NAT as its author describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NatDescription {
    /// The names of the links that lead inside.
    pub inside: Vec<String>,
    /// How it translates.
    pub settings: NatSettings,
}

/// How a NAT translates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NatSettings {
    /// Which packets of an inside endpoint share an outside endpoint (RFC 4787 §4.1).
    pub mapping: Dependence,
    /// Which packets from outside pass (RFC 4787 §5).
    pub filtering: Dependence,
    /// The outside addresses; empty: the first address of the outside interface. An inside host
    /// whose address is in the pool keeps it, with paired pooling, until a rebinding.
    pub pool: Vec<Ipv4Addr>,
    /// How an outside address is chosen (RFC 4787 §4.1).
    pub pooling: Pooling,
    /// The outside ports of mappings.
    pub ports: RangeInclusive<u16>,
    /// Whether a mapping keeps the port of the inside endpoint if it is free (RFC 4787 §4.2.1).
    pub port_preservation: bool,
    /// Whether even ports stay even and odd ports odd (RFC 4787 §4.2.2).
    pub port_parity: bool,
    /// Whether inside hosts reach each other by outside endpoints (RFC 4787 §6).
    pub hairpinning: bool,
    /// Whether packets from outside keep a session as packets from inside do (RFC 4787 §4.3).
    pub inbound_refresh: bool,
    /// After how long without packets sessions end.
    pub timeouts: NatTimeouts,
    /// The most sessions at once. A session is a mapping used with one outside endpoint.
    pub sessions_max: u32,
}

/// What of the outside endpoint a mapping or filter depends on, in the terms of RFC 4787.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Dependence {
    /// Nothing.
    #[default]
    EndpointIndependent,
    /// The address.
    AddressDependent,
    /// The address and the port.
    AddressAndPortDependent,
}

/// How an outside address is chosen from the pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pooling {
    /// An inside address always has the same outside address.
    #[default]
    Paired,
    /// Each mapping has a random outside address.
    Arbitrary,
}

/// After how long without packets a NAT forgets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatTimeouts {
    /// A UDP session (RFC 4787 REQ-5).
    pub udp: Duration,
    /// An established TCP connection (RFC 5382 REQ-5).
    pub tcp: Duration,
    /// A TCP connection that is partially open or closing (RFC 5382 REQ-5).
    pub tcp_transitory: Duration,
    /// An ICMP query session (RFC 5508 REQ-2).
    pub icmp: Duration,
    /// The fragments of a packet (RFC 4787 REQ-14).
    pub fragments: Duration,
}

const MINUTE: u64 = 60;

impl Default for NatTimeouts {
    /// The values that the RFCs recommend, or else the least that they allow.
    fn default() -> NatTimeouts {
        NatTimeouts {
            udp: Duration::from_secs(5 * MINUTE),
            tcp: Duration::from_secs(124 * MINUTE),
            tcp_transitory: Duration::from_secs(4 * MINUTE),
            icmp: Duration::from_secs(MINUTE),
            fragments: Duration::from_secs(30),
        }
    }
}

impl Default for NatSettings {
    /// What RFC 4787 requires or recommends: mappings independent of endpoints, filtering by
    /// address, paired pooling, hairpinning.
    fn default() -> NatSettings {
        NatSettings {
            mapping: Dependence::EndpointIndependent,
            filtering: Dependence::AddressDependent,
            pool: Vec::new(),
            pooling: Pooling::Paired,
            ports: 1024..=u16::MAX,
            port_preservation: true,
            port_parity: true,
            hairpinning: true,
            inbound_refresh: false,
            timeouts: NatTimeouts::default(),
            sessions_max: 65_536,
        }
    }
}

impl Dependence {
    const WORDS: [(&'static str, Dependence); 3] = [
        ("endpoint-independent", Dependence::EndpointIndependent),
        ("address-dependent", Dependence::AddressDependent),
        ("address-and-port-dependent", Dependence::AddressAndPortDependent),
    ];

    fn read(field: &Field, remarks: &mut Remarks) -> Option<Dependence> {
        let words = Dependence::WORDS.map(|(word, _)| word);
        let what = format!("a value of {}", field.key);
        field.word(&what, &words, remarks).map(|place| Dependence::WORDS[place].1)
    }

    /// Returns its word in a spec, which is that of RFC 4787.
    pub fn word(self) -> &'static str {
        Dependence::WORDS[self as usize].0
    }
}

const POOLINGS: [&str; 2] = ["paired", "arbitrary"];

impl NatTimeouts {
    fn entries(&mut self) -> [(&'static str, &mut Duration); 5] {
        [
            ("udp", &mut self.udp),
            ("tcp", &mut self.tcp),
            ("tcp_transitory", &mut self.tcp_transitory),
            ("icmp", &mut self.icmp),
            ("fragments", &mut self.fragments),
        ]
    }
}

/// Reads the keys of a NAT.
pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> NatDescription {
    let mut nat = NatDescription::default();
    let settings = &mut nat.settings;
    // The resolver reports that there is none.
    if let Some(field) = fields.get("inside") {
        nat.inside = texts(&field, "a-x", remarks);
    }
    for (key, dependence) in [("mapping", &mut settings.mapping), ("filtering", &mut settings.filtering)] {
        let given = fields.get(key).and_then(|field| Dependence::read(&field, remarks));
        *dependence = given.unwrap_or(*dependence);
    }
    if let Some(field) = fields.get("pool") {
        settings.pool = pool(&field, remarks);
    }
    if let Some(field) = fields.get("pooling")
        && field.word("a value of pooling", &POOLINGS, remarks) == Some(1)
    {
        settings.pooling = Pooling::Arbitrary;
    }
    if let Some(ports) = fields.get("ports").and_then(|field| ports(&field, remarks)) {
        settings.ports = ports;
    }
    for (key, value) in [
        ("port_preservation", &mut settings.port_preservation),
        ("port_parity", &mut settings.port_parity),
        ("hairpinning", &mut settings.hairpinning),
        ("inbound_refresh", &mut settings.inbound_refresh),
    ] {
        *value = fields.get(key).and_then(|field| field.switch(remarks)).unwrap_or(*value);
    }
    if let Some(field) = fields.get("timeouts") {
        timeouts(&field, &mut settings.timeouts, remarks);
    }
    if let Some(max) = fields.get("sessions_max").and_then(|field| field.whole(1..=SESSIONS_MAX, remarks)) {
        settings.sessions_max = max as u32;
    }
    nat
}

fn texts(field: &Field, example: &str, remarks: &mut Remarks) -> Vec<String> {
    field.texts(example, remarks).into_iter().map(|(_, text)| text.to_owned()).collect()
}

fn pool(field: &Field, remarks: &mut Remarks) -> Vec<Ipv4Addr> {
    let mut pool: Vec<Ipv4Addr> = Vec::new();
    for (at, text) in field.texts("192.0.2.10", remarks) {
        match text.parse::<Ipv4Addr>() {
            Ok(address) if pool.contains(&address) => {
                remarks.mistake(at, format!("{address} is in the pool twice"), "write it once");
            }
            Ok(address) => pool.push(address),
            Err(_) => {
                let what = format!("'{text}' is not an IPv4 address");
                remarks.mistake(at, what, "write for example \"192.0.2.10\", without a prefix length");
            }
        }
    }
    if pool.len() > POOL_MAX {
        let what = format!("the pool has {} addresses", pool.len());
        remarks.mistake(field.at, what, format!("write at most {POOL_MAX}"));
    }
    pool
}

fn ports(field: &Field, remarks: &mut Remarks) -> Option<RangeInclusive<u16>> {
    let text = field.text("1024-65535", remarks)?;
    let range = text.split_once('-').unwrap_or((text, text));
    match (range.0.trim().parse(), range.1.trim().parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Some(first..=last),
        _ => {
            let what = format!("'{text}' is not a range of ports");
            remarks.mistake(field.at, what, "write for example ports = \"1024-65535\"");
            None
        }
    }
}

fn timeouts(field: &Field, timeouts: &mut NatTimeouts, remarks: &mut Remarks) {
    let Some(mut fields) = field.table("timeouts", "{ udp = \"5m\" }", remarks) else { return };
    for (key, timeout) in timeouts.entries() {
        let Some(field) = fields.get(key) else { continue };
        match field.quantity("5min", remarks) {
            Some(Duration::ZERO) => {
                let what = format!("a timeout of 0 for {key} ends every session at once");
                remarks.mistake(field.at, what, format!("write {key} = \"60s\""));
            }
            given => *timeout = given.unwrap_or(*timeout),
        }
    }
    fields.finish(remarks);
}

/// Writes the keys of a NAT: those whose values are not the defaults.
pub(crate) fn write(nat: &NatDescription, table: &mut Map<String, Value>) {
    let NatDescription { inside, settings } = nat;
    let usual = NatSettings::default();
    let mut put = |key: &str, value: Value| _ = table.insert(key.to_owned(), value);
    put("inside", json!(inside));
    put("mapping", json!(settings.mapping.word()));
    put("filtering", json!(settings.filtering.word()));
    if !settings.pool.is_empty() {
        put("pool", settings.pool.iter().map(|address| json!(address.to_string())).collect());
    }
    if settings.pooling != usual.pooling {
        put("pooling", json!(POOLINGS[settings.pooling as usize]));
    }
    if settings.ports != usual.ports {
        put("ports", json!(ports_text(&settings.ports)));
    }
    for (key, value, usual) in [
        ("port_preservation", settings.port_preservation, usual.port_preservation),
        ("port_parity", settings.port_parity, usual.port_parity),
        ("hairpinning", settings.hairpinning, usual.hairpinning),
        ("inbound_refresh", settings.inbound_refresh, usual.inbound_refresh),
    ] {
        if value != usual {
            put(key, json!(value));
        }
    }
    let (mut timeouts, mut usual_timeouts) = (settings.timeouts, usual.timeouts);
    let entries = timeouts.entries().into_iter().zip(usual_timeouts.entries());
    let changed = entries.filter(|((_, timeout), (_, usual))| timeout != usual);
    let changed: Map<String, Value> =
        changed.map(|((key, timeout), _)| (key.to_owned(), json!(timeout.to_string()))).collect();
    if !changed.is_empty() {
        put("timeouts", Value::Object(changed));
    }
    if settings.sessions_max != usual.sessions_max {
        put("sessions_max", json!(settings.sessions_max));
    }
}

fn ports_text(ports: &RangeInclusive<u16>) -> String {
    let mut text = ports.start().to_string();
    if ports.start() != ports.end() {
        write!(text, "-{}", ports.end()).expect("writing to a string");
    }
    text
}

/// The schemas of the keys of a NAT.
pub(crate) fn properties() -> Map<String, Value> {
    let text = || schema_parts::one_or_list(json!({ "type": "string" }));
    let dependence = || json!({ "enum": Dependence::WORDS.map(|(word, _)| word) });
    let switch = || json!({ "type": "boolean" });
    let timeouts = NatTimeouts::default().entries().map(|(key, usual)| {
        (
            key.to_owned(),
            schema_parts::described(&format!("Absent: {usual}."), schema_parts::reference("duration")),
        )
    });
    schema_parts::properties([
        ("inside", "The links of its inside; the others lead outside.", text()),
        ("mapping", "What an outside endpoint of a mapping depends on (RFC 4787).", dependence()),
        ("filtering", "What the filtering of packets from outside depends on (RFC 4787).", dependence()),
        (
            "pool",
            "Its outside IPv4 addresses, on subnets of outside links, or of inside ones: hosts in it keep their addresses.",
            text(),
        ),
        ("pooling", "How an outside address is chosen.", json!({ "enum": POOLINGS })),
        ("ports", "The outside ports of mappings: FIRST-LAST.", json!({ "type": "string" })),
        ("port_preservation", "Whether mappings keep free ports.", switch()),
        ("port_parity", "Whether even ports stay even and odd ports odd.", switch()),
        ("hairpinning", "Whether inside hosts reach each other by outside endpoints.", switch()),
        ("inbound_refresh", "Whether packets from outside keep a session.", switch()),
        (
            "timeouts",
            "After how long without packets sessions end.",
            schema_parts::table(timeouts.into_iter().collect(), &[]),
        ),
        (
            "sessions_max",
            "The most sessions at once.",
            json!({ "type": "integer", "minimum": 1, "maximum": SESSIONS_MAX }),
        ),
    ])
}
