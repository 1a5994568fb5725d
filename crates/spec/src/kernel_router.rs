//! Routers that are namespaces of the Linux kernel, and the routing daemons in them.
//!
//! ```toml
//! [router.r]
//! kind      = "kernel"             # the namespace forwards, by the routes of the topology
//! [router.s]
//! daemon    = "frr"                # or "bird"; kind = "kernel" is implied
//! router_id = "10.0.0.1"           # absent: the first IPv4 address
//! # true, or a table; times are whole seconds, areas and costs by link
//! ospf = { area = "0.0.0.0", areas = { s-t = "0.0.0.1" }, costs = { s-t = 10 }, hello = "1s", dead = "4s" }
//! bgp  = { asn = 65001, unnumbered = true, hello = "1s", dead = "3s" }      # or bgp = 65001
//! isis = { area = "49.0001", level = 2, costs = { s-t = 10 }, hello = "1s", dead = "3s" }
//! pim  = { rp = "10.0.0.1", hello = "1s", dead = "4s" }                     # multicast
//! static_routes = true             # the routes of the topology too; absent: connected ones only
//! # the author's configuration in place of these keys: a file, or text of several lines
//! config = "s.conf"
//! ```
//!
//! BIRD has neither IS-IS nor PIM.

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts;
use crate::tree::Tree;
use crate::write;
use fastpath_units::Duration;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A router that a lab makes a network namespace: the kernel forwards, and programs run in it as in
/// a host. Without namespaces (`replay`, `run`) it is a router inside the engine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelRouter {
    /// The routing daemon that runs in it.
    pub daemon: Option<Box<RoutingDaemon>>,
}

/// A routing daemon and its configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutingDaemon {
    /// The program.
    pub program: DaemonProgram,
    /// The identifier of the router in its protocols; `None`: its first IPv4 address.
    pub router_id: Option<Ipv4Addr>,
    /// The protocols that the topology configures.
    pub protocols: BTreeMap<ProtocolKind, ProtocolSettings>,
    /// The author's configuration: in a description a file or the text, after resolving the text.
    pub config: Option<String>,
    /// Whether the kernel has the routes that the topology implies too.
    pub static_routes: bool,
}

/// A suite of routing daemons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DaemonProgram {
    /// FRRouting.
    Frr,
    /// BIRD.
    Bird,
}

/// A routing protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ProtocolKind {
    /// OSPFv2 for IPv4 and OSPFv3 for IPv6.
    Ospf,
    /// BGP-4 with the routers on the same links.
    Bgp,
    /// IS-IS.
    Isis,
    /// PIM sparse mode, for multicast.
    Pim,
}

/// The settings of a protocol. A protocol ignores those it does not have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProtocolSettings {
    /// Seconds between hello (BGP: keepalive) messages.
    pub hello: Option<u16>,
    /// Seconds without one after which a neighbor is dead (BGP: hold time).
    pub dead: Option<u16>,
    /// The area: an OSPF area as an address, or an IS-IS area address.
    pub area: Option<String>,
    /// OSPF areas by link.
    pub areas: BTreeMap<String, String>,
    /// Costs of OSPF and IS-IS by link.
    pub costs: BTreeMap<String, u16>,
    /// The level of IS-IS.
    pub level: Option<u8>,
    /// The number of the autonomous system.
    pub asn: Option<u32>,
    /// BGP sessions by interface (RFC 5549), not by address.
    pub unnumbered: bool,
    /// The rendezvous point of all groups.
    pub rp: Option<Ipv4Addr>,
}

/// The word for a kernel router: `kind = "kernel"` of a router, and the kind of a node of the
/// canonical form.
pub(crate) const KERNEL: &str = "kernel";
const PROGRAMS: [&str; 2] = ["frr", "bird"];

impl DaemonProgram {
    /// Returns its word in a spec.
    pub fn word(self) -> &'static str {
        PROGRAMS[self as usize]
    }
}

impl ProtocolKind {
    /// All protocols, in the order of their keys.
    pub const ALL: [ProtocolKind; 4] =
        [ProtocolKind::Ospf, ProtocolKind::Bgp, ProtocolKind::Isis, ProtocolKind::Pim];

    /// Returns its key in a spec.
    pub fn key(self) -> &'static str {
        ["ospf", "bgp", "isis", "pim"][self as usize]
    }

    /// The keys of its settings.
    fn keys(self) -> &'static [&'static str] {
        match self {
            ProtocolKind::Ospf => &["area", "areas", "costs", "hello", "dead"],
            ProtocolKind::Bgp => &["asn", "unnumbered", "hello", "dead"],
            ProtocolKind::Isis => &["area", "level", "costs", "hello", "dead"],
            ProtocolKind::Pim => &["rp", "hello", "dead"],
        }
    }
}

/// Reads the keys of a router that say whether the kernel forwards, and by which daemon.
pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<KernelRouter> {
    let kind = fields.get("kind").filter(|field| {
        // This is the kind of a node of the canonical form.
        *field.value != Tree::Text("router".into())
    });
    let kind = kind.and_then(|field| field.word("a kind of router", &[KERNEL, "engine"], remarks));
    let program = fields.get("daemon");
    let keys = ProtocolKind::ALL.map(ProtocolKind::key);
    let given: Vec<Field> = keys
        .into_iter()
        .chain(["router_id", "config", "static_routes"])
        .filter_map(|key| fields.get(key))
        .collect();
    let Some(program) = program else {
        if let Some(field) = given.first() {
            let what = format!("{} is a key of a routing daemon, and {} has none", field.key, fields.what);
            remarks.mistake(field.at, what, "write daemon = \"frr\" or \"bird\"");
        }
        return (kind == Some(0)).then(KernelRouter::default);
    };
    if kind == Some(1) {
        let what = "a daemon runs in a namespace, and kind is \"engine\"";
        remarks.mistake(program.at, what, "write kind = \"kernel\"");
    }
    let place = program.word("a routing daemon", &PROGRAMS, remarks)?;
    let mut daemon = RoutingDaemon {
        program: [DaemonProgram::Frr, DaemonProgram::Bird][place],
        router_id: None,
        protocols: BTreeMap::new(),
        config: None,
        static_routes: false,
    };
    for field in given {
        let Some(kind) = ProtocolKind::ALL.into_iter().find(|kind| kind.key() == field.key) else {
            match field.key.as_str() {
                "router_id" => daemon.router_id = address(&field, remarks),
                "config" => daemon.config = field.text("frr.conf", remarks).map(str::to_owned),
                _ => daemon.static_routes = field.switch(remarks).unwrap_or_default(),
            }
            continue;
        };
        if daemon.program == DaemonProgram::Bird && matches!(kind, ProtocolKind::Isis | ProtocolKind::Pim) {
            remarks.mistake(field.at, format!("BIRD has no {}", kind.key()), "write daemon = \"frr\"");
        }
        if let Some(settings) = protocol(kind, &field, remarks) {
            daemon.protocols.insert(kind, settings);
        }
    }
    if daemon.config.is_none() && daemon.protocols.is_empty() {
        remarks.mistake(
            program.at,
            "the daemon has nothing to do",
            format!("write ospf = true, or {}", keys[1..].join(", ")),
        );
    }
    Some(KernelRouter { daemon: Some(Box::new(daemon)) })
}

/// Reads `true`, `false`, a table, or the number of a BGP system.
fn protocol(kind: ProtocolKind, field: &Field, remarks: &mut Remarks) -> Option<ProtocolSettings> {
    let mut settings = ProtocolSettings::default();
    match field.value {
        Tree::Boolean(is_on) => return is_on.then_some(settings),
        Tree::Integer(_) if kind == ProtocolKind::Bgp => {
            settings.asn = field.whole(1..=u64::from(u32::MAX), remarks).map(|asn| asn as u32);
            return Some(settings);
        }
        _ => {}
    }
    let mut fields = field.table(kind.key(), "true", remarks)?;
    let mut dead_at = field.at;
    for key in kind.keys() {
        let Some(field) = fields.get(key) else { continue };
        match *key {
            "hello" => settings.hello = seconds(&field, remarks),
            "dead" => (dead_at, settings.dead) = (field.at, seconds(&field, remarks)),
            "area" => settings.area = area(kind, &field, remarks),
            "areas" => settings.areas = by_link(&field, remarks, |field, remarks| area(kind, field, remarks)),
            "costs" => {
                settings.costs = by_link(&field, remarks, |field, remarks| {
                    field.whole(1..=65535, remarks).map(|cost| cost as u16)
                })
            }
            "level" => settings.level = field.whole(1..=2, remarks).map(|level| level as u8),
            "asn" => settings.asn = field.whole(1..=u64::from(u32::MAX), remarks).map(|asn| asn as u32),
            "unnumbered" => settings.unnumbered = field.switch(remarks).unwrap_or_default(),
            _ => settings.rp = address(&field, remarks),
        }
    }
    fields.finish(remarks);
    check_timers(kind, &settings, dead_at, remarks);
    Some(settings)
}

/// Refuses a time after which a neighbor is dead although its next hello message is not due.
fn check_timers(kind: ProtocolKind, settings: &ProtocolSettings, dead_at: usize, remarks: &mut Remarks) {
    // Without `hello` a daemon sends one at least each second.
    let (Some(dead), hello) = (settings.dead, settings.hello.unwrap_or(1)) else { return };
    if dead <= hello {
        let what = format!(
            "{} sends a hello every {hello}s, so with dead = \"{dead}s\" its neighbors are lost in between",
            kind.key()
        );
        let longer = hello.saturating_mul(if kind == ProtocolKind::Bgp { 3 } else { 4 });
        remarks.mistake(dead_at, what, format!("write dead = \"{longer}s\", longer than hello"));
    }
}

fn by_link<T>(
    field: &Field,
    remarks: &mut Remarks,
    read: impl Fn(&Field, &mut Remarks) -> Option<T>,
) -> BTreeMap<String, T> {
    let table = field.table(field.key.clone(), "{ LINK = … }", remarks);
    let all = table.map(|mut table| table.all()).unwrap_or_default();
    all.into_iter().filter_map(|(_, field)| Some((field.key.clone(), read(&field, remarks)?))).collect()
}

fn seconds(field: &Field, remarks: &mut Remarks) -> Option<u16> {
    let time: Duration = field.quantity("1s", remarks)?;
    let (seconds, rest) = (time.as_ps() / 1_000_000_000_000, time.as_ps() % 1_000_000_000_000);
    let whole = u16::try_from(seconds).ok().filter(|seconds| rest == 0 && *seconds > 0);
    if whole.is_none() {
        let what = format!("{time} is not a time that routing daemons take");
        remarks.mistake(field.at, what, format!("write {} = \"1s\", whole seconds up to 65535", field.key));
    }
    whole
}

fn address(field: &Field, remarks: &mut Remarks) -> Option<Ipv4Addr> {
    let text = field.text("10.0.0.1", remarks)?;
    let address = text.parse().ok();
    if address.is_none() {
        let instead = format!("write {} = \"10.0.0.1\"", field.key);
        remarks.mistake(field.at, format!("'{text}' is not an IPv4 address"), instead);
    }
    address
}

/// Reads an area. A number stands for an OSPF area too.
fn area(kind: ProtocolKind, field: &Field, remarks: &mut Remarks) -> Option<String> {
    if let (ProtocolKind::Ospf, Tree::Integer(_)) = (kind, field.value) {
        let number = field.whole(0..=u64::from(u32::MAX), remarks)?;
        return Some(Ipv4Addr::from(number as u32).to_string());
    }
    let example = if kind == ProtocolKind::Ospf { "0.0.0.0" } else { "49.0001" };
    let text = field.text(example, remarks)?;
    let is_valid = match kind {
        ProtocolKind::Ospf => text.parse::<Ipv4Addr>().is_ok(),
        // ISO 10589: one byte, then pairs of bytes.
        _ => {
            let mut parts = text.split('.');
            let hex =
                |part: &str, len| part.len() == len && part.bytes().all(|byte| byte.is_ascii_hexdigit());
            parts.next().is_some_and(|first| hex(first, 2)) && parts.all(|part| hex(part, 4))
        }
    };
    if !is_valid {
        remarks.mistake(field.at, format!("'{text}' is not an area"), format!("write \"{example}\""));
    }
    is_valid.then(|| text.to_owned())
}

/// Writes the keys of the daemon of a router in the canonical form.
pub(crate) fn write(kernel: &KernelRouter, table: &mut Map<String, Value>) {
    let Some(daemon) = &kernel.daemon else { return };
    let RoutingDaemon { program, router_id, protocols, config, static_routes } = &**daemon;
    let mut put = |key: &str, value: Value| _ = table.insert(key.to_owned(), value);
    put("daemon", json!(program.word()));
    router_id.iter().for_each(|id| put("router_id", write::text(id)));
    for (kind, settings) in protocols {
        put(kind.key(), write_protocol(*kind, settings));
    }
    config.iter().for_each(|config| put("config", json!(config)));
    if *static_routes {
        put("static_routes", json!(true));
    }
}

fn write_protocol(kind: ProtocolKind, settings: &ProtocolSettings) -> Value {
    let ProtocolSettings { hello, dead, area, areas, costs, level, asn, unnumbered, rp } = settings;
    let all = [
        ("hello", hello.map(|seconds| write::text(format!("{seconds}s")))),
        ("dead", dead.map(|seconds| write::text(format!("{seconds}s")))),
        ("area", area.as_ref().map(|area| json!(area))),
        ("areas", (!areas.is_empty()).then(|| json!(areas))),
        ("costs", (!costs.is_empty()).then(|| json!(costs))),
        ("level", level.map(|level| json!(level))),
        ("asn", asn.map(|asn| json!(asn))),
        ("unnumbered", unnumbered.then(|| json!(true))),
        ("rp", rp.map(write::text)),
    ];
    let given = all.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let given: Vec<_> = given.filter(|(key, _)| kind.keys().contains(key)).collect();
    if given.is_empty() { json!(true) } else { write::table(given) }
}

/// The properties of the JSON Schema.
pub(crate) fn properties() -> Map<String, Value> {
    let protocol = |kind: ProtocolKind| {
        let of_key = |key: &&str| {
            let schema = match *key {
                "hello" | "dead" => schema_parts::reference("duration"),
                "areas" | "costs" => json!({ "type": "object" }),
                "unnumbered" => json!({ "type": "boolean" }),
                "asn" | "level" => json!({ "type": "integer", "minimum": 1 }),
                "area" => json!({ "type": ["string", "integer"] }),
                _ => json!({ "type": "string" }),
            };
            ((*key).to_owned(), schema)
        };
        let table = schema_parts::table(kind.keys().iter().map(of_key).collect(), &[]);
        let mut forms = vec![json!({ "type": "boolean" }), table];
        if kind == ProtocolKind::Bgp {
            forms.push(json!({ "type": "integer", "minimum": 1 }));
        }
        json!({ "anyOf": forms })
    };
    let forwards = "What forwards: the engine, or the kernel in a namespace, in which programs run.";
    schema_parts::properties([
        ("kind", forwards, json!({ "enum": [KERNEL, "engine"] })),
        ("daemon", "The routing daemon of a kernel router.", json!({ "enum": PROGRAMS })),
        (
            "router_id",
            "The identifier of the router; absent: its first IPv4 address.",
            json!({ "type": "string" }),
        ),
        ("ospf", "OSPFv2 and OSPFv3 with the routers on its links.", protocol(ProtocolKind::Ospf)),
        (
            "bgp",
            "BGP with the routers on its links; a number is that of its AS.",
            protocol(ProtocolKind::Bgp),
        ),
        ("isis", "IS-IS with the routers on its links.", protocol(ProtocolKind::Isis)),
        ("pim", "PIM sparse mode and IGMP.", protocol(ProtocolKind::Pim)),
        (
            "config",
            "The daemon's configuration: a file, or a text of several lines.",
            json!({ "type": "string" }),
        ),
        ("static_routes", "The kernel has the routes of the topology too.", json!({ "type": "boolean" })),
    ])
}
