//! The nodes of a description: addresses, hardware addresses, ports, routes and rules.
//!
//! ```toml
//! # an edge: a namespace in a lab, a port in `run`, a capture in `replay`
//! [host.a]
//! # or addresses = ["10.0.1.2/24", "fd00::2/64"]; absent: assigned
//! address = "10.0.1.2/24"
//! mac     = "02:00:00:00:00:2a"    # absent: assigned
//! assign  = false                  # addresses that are left out are not assigned
//! sysctls = { "net.ipv4.ip_forward" = "1" }    # of its network namespace
//! # the interface of this machine that the host is; "xdp:eth1", "packet:eth1": how
//! port    = "eth1"
//! # in addition to those computed; "default" is 0.0.0.0/0 or ::/0
//! routes  = { "192.168.0.0/16" = "10.0.1.7" }
//! # commands of sh(1) that a lab runs here once it is up, one after another
//! exec    = ["ip link set eth0 txqueuelen 10", "iperf3 -s -D"]
//! # forwards packets; with several links addresses and mac are by link:
//! [router.r]
//! addresses = { a-r = "10.0.1.1/24", uplink = ["10.0.2.1/24"] }
//! # forwards packets, and translates addresses: `nat.rs`
//! [nat.x]
//! inside = ["a-x"]
//! # joins a lab to the network of its machine: `uplink.rs`
//! [uplink.internet]
//! # in a lab a namespace that forwards, in which programs run, with the keys of a host; absent:
//! # forwards in the engine
//! kind = "kernel"
//! # its routing daemon: `kernel_router.rs`
//! daemon = "frr"
//! [switch.s]                       # forwards frames
//! # of every node: its place in pictures, `look.rs`
//! position = [120, 40]
//! # forwards frames by OpenFlow tables: port 1 is its first link, or the node's name there
//! [openflow.o]
//! # in the syntax of ovs-ofctl, or file = "rules.txt"
//! rules = "in_port=a,ip,actions=dec_ttl,output:b"
//! controller = "tcp:127.0.0.1:6653" # and further keys: `controllers.rs`
//! ```
//!
//! What a host is beyond this stands in `host.rs`.
//!
//! In the canonical form a node is `{ "name": "a", "kind": "host", … }` with the same keys.

use crate::controllers;
use crate::description::{NodeDescription, NodeRole, OnLink, RuleSource};
use crate::fields::{Field, Fields};
use crate::host;
use crate::kernel_router::{self, KERNEL};
use crate::look;
use crate::mistake::Remarks;
use crate::nat;
use crate::port_name::PortName;
use crate::schema_parts;
use crate::tree::Tree;
use crate::uplink;
use fastpath_wire::MacAddr;
use ipnet::IpNet;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The kinds of nodes by their keys.
pub(crate) const KINDS: [(&str, NodeRole); 6] = [
    ("host", NodeRole::Host),
    ("router", NodeRole::Router),
    ("nat", NodeRole::Nat),
    ("uplink", NodeRole::Uplink),
    ("switch", NodeRole::Switch),
    ("openflow", NodeRole::OpenFlow),
];

/// What a kind of nodes is, for the schema.
pub(crate) fn what(kind: NodeRole) -> &'static str {
    match kind {
        NodeRole::Host => "Hosts by name: frames enter and leave the network here.",
        NodeRole::Router => "Routers by name: they forward IP packets.",
        NodeRole::Nat => "NATs by name: they forward IP packets and translate addresses.",
        NodeRole::Uplink => "Uplinks by name: they join a lab to the network of its machine.",
        NodeRole::Switch => "Switches by name: they forward frames by learned addresses.",
        NodeRole::OpenFlow => "Switches by name that forward frames by OpenFlow tables.",
    }
}

/// Reads the table of a node.
pub(crate) fn read(
    kind: NodeRole,
    name: String,
    mut fields: Fields,
    remarks: &mut Remarks,
) -> NodeDescription {
    let mut node = NodeDescription::new(kind, name);
    let (one, many) = (fields.get("address"), fields.get("addresses"));
    if let (Some(_), Some(many)) = (&one, &many) {
        remarks.mistake(many.at, "address and addresses are both given", "write all in addresses");
    }
    for field in one.iter().chain(&many) {
        node.addresses.extend(by_link(field, "10.0.1.2/24", remarks, address));
    }
    if let Some(assign) = fields.get("assign").and_then(|field| field.switch(remarks)) {
        node.assign = assign;
    }
    if let Some(field) = fields.get("mac") {
        node.macs = by_link(&field, "02:00:00:00:00:2a", remarks, mac);
    }
    if let Some(field) = fields.get("routes") {
        node.routes = routes(&field, remarks);
    }
    match kind {
        NodeRole::Host => {
            node.port = fields.get("port").and_then(|field| port(&field, remarks));
            programs(&mut node, &mut fields, remarks);
        }
        NodeRole::OpenFlow => {
            node.rules = rules(&mut fields, remarks);
            node.controllers = controllers::read(&mut fields, remarks);
        }
        NodeRole::Nat => node.nat = nat::read(&mut fields, remarks),
        NodeRole::Uplink => node.uplink = uplink::read(&mut fields, remarks),
        NodeRole::Router => {
            node.kernel = kernel_router::read(&mut fields, remarks);
            if node.kernel.is_some() {
                programs(&mut node, &mut fields, remarks);
            }
        }
        NodeRole::Switch => {}
    }
    node.look = look::read(&mut fields, remarks);
    fields.finish(remarks);
    node
}

/// Reads the kind of a node of the canonical form.
pub(crate) fn kind(fields: &mut Fields, remarks: &mut Remarks) -> Option<NodeRole> {
    let kinds: Vec<(&str, NodeRole)> = KINDS.into_iter().chain([(KERNEL, NodeRole::Router)]).collect();
    let words: Vec<&str> = kinds.iter().map(|(word, _)| *word).collect();
    let Some(field) = fields.get("kind") else {
        remarks.mistake(fields.at, "node has no kind", format!("write kind = one of {}", words.join(", ")));
        return None;
    };
    field.word("a kind of node", &words, remarks).map(|place| kinds[place].1)
}

fn rules(fields: &mut Fields, remarks: &mut Remarks) -> Option<RuleSource> {
    match (fields.get("rules"), fields.get("file")) {
        (Some(_), Some(file)) => {
            remarks.mistake(file.at, "rules and file are both given", "write one of them");
            None
        }
        (Some(field), None) => Some(RuleSource::Text(field.text("actions=flood", remarks)?.to_owned())),
        (None, Some(field)) => Some(RuleSource::File(field.text("rules.txt", remarks)?.to_owned())),
        (None, None) => None,
    }
}

/// Reads the keys of a node in which programs run.
fn programs(node: &mut NodeDescription, fields: &mut Fields, remarks: &mut Remarks) {
    node.host = host::read(fields, remarks);
    node.sysctls = fields.get("sysctls").map(|field| sysctls(&field, remarks)).unwrap_or_default();
    node.exec = fields.get("exec").map(|field| commands(&field, remarks)).unwrap_or_default();
}

/// Kernel parameters and their values.
fn sysctls(field: &Field, remarks: &mut Remarks) -> BTreeMap<String, String> {
    let Some(mut table) = field.table("sysctls", "{ \"net.ipv4.ip_forward\" = \"1\" }", remarks) else {
        return BTreeMap::new();
    };
    let given = table.all();
    let read =
        given.iter().filter_map(|(_, field)| Some((field.key.clone(), field.text("1", remarks)?.to_owned())));
    read.collect()
}

/// Commands of a shell: one text, or a list.
pub(crate) fn commands(field: &Field, remarks: &mut Remarks) -> Vec<String> {
    field.texts("iperf3 -s -D", remarks).into_iter().map(|(_, command)| command.to_owned()).collect()
}

/// Values given as one text, as a list, or by link in a table of these.
fn by_link<T>(
    field: &Field,
    example: &str,
    remarks: &mut Remarks,
    read: fn(&str) -> Result<T, (String, String)>,
) -> Vec<OnLink<T>> {
    let mut places: Vec<(Option<String>, Field)> = vec![(None, field.clone())];
    if let Tree::Table(_) = field.value {
        let table =
            field.table(field.key.clone(), "{ }", remarks).map(|mut table| table.all()).unwrap_or_default();
        places = table.into_iter().map(|(_, field)| (Some(field.key.clone()), field)).collect();
    }
    let mut given = Vec::new();
    for (link, field) in places {
        for (at, text) in field.texts(example, remarks) {
            match read(text) {
                Ok(value) => given.push(OnLink { link: link.clone(), value }),
                Err((what, instead)) => remarks.mistake(at, what, instead),
            }
        }
    }
    given
}

fn address(text: &str) -> Result<IpNet, (String, String)> {
    text.parse().map_err(|_| match text.parse::<IpAddr>() {
        Ok(ip) => {
            let length = if ip.is_ipv4() { 24 } else { 64 };
            (format!("'{text}' has no prefix length"), format!("write \"{text}/{length}\""))
        }
        Err(_) => (format!("'{text}' is not an address"), "write for example \"10.0.1.2/24\"".to_owned()),
    })
}

fn mac(text: &str) -> Result<MacAddr, (String, String)> {
    let instead = "write six bytes in hexadecimal, for example \"02:00:00:00:00:2a\"";
    text.parse().map_err(|_| (format!("'{text}' is not a MAC address"), instead.to_owned()))
}

fn port(field: &Field, remarks: &mut Remarks) -> Option<PortName> {
    match field.text("eth1", remarks)?.parse::<PortName>() {
        Ok(port) => Some(port),
        Err(error) => {
            remarks.mistake(field.at, error.to_string(), error.instead());
            None
        }
    }
}

fn routes(field: &Field, remarks: &mut Remarks) -> Vec<(IpNet, IpAddr)> {
    const EXAMPLE: &str = "{ \"192.168.0.0/16\" = \"10.0.1.7\" }";
    let Some(mut table) = field.table("routes", EXAMPLE, remarks) else { return Vec::new() };
    let mut routes = Vec::new();
    for (key_at, to) in table.all() {
        let Some(via) = to.text("10.0.1.7", remarks) else { continue };
        let Ok(via) = via.parse::<IpAddr>() else {
            let what = format!("'{via}' is not an address to route by");
            remarks.mistake(to.at, what, "write the address of a neighbour, for example \"10.0.1.7\"");
            continue;
        };
        let default = if via.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        let prefix = if to.key == "default" { default } else { &to.key };
        match prefix.parse::<IpNet>() {
            Ok(prefix) if prefix.addr().is_ipv4() == via.is_ipv4() => routes.push((prefix.trunc(), via)),
            Ok(prefix) => {
                let what = format!("{prefix} and {via} are of different IP versions");
                remarks.mistake(to.at, what, "write a neighbour's address of the same version");
            }
            Err(_) => {
                let what = format!("'{prefix}' is not a subnet to route to");
                remarks.mistake(key_at, what, "write for example \"192.168.0.0/16\", or default");
            }
        }
    }
    routes
}

/// Writes a node in the canonical form.
pub(crate) fn write(node: &NodeDescription) -> Value {
    let NodeDescription { name, kind, port, host, addresses, macs, routes, rules, nat, uplink, .. } = node;
    let NodeDescription { exec, kernel, assign, sysctls, controllers, .. } = node;
    let mut table = Map::new();
    let mut put = |key: &str, value: Value| _ = table.insert(key.to_owned(), value);
    put("name", json!(name));
    put("kind", json!(if kernel.is_some() { KERNEL } else { kind.key() }));
    if let Some(port) = port {
        put("port", json!(port.to_string()));
    }
    if !addresses.is_empty() {
        put("addresses", write_by_link(addresses));
    }
    if !macs.is_empty() {
        put("mac", write_by_link(macs));
    }
    if !routes.is_empty() {
        let entries = routes.iter().map(|(prefix, via)| (prefix.to_string(), json!(via.to_string())));
        put("routes", Value::Object(entries.collect()));
    }
    match rules {
        None => {}
        Some(RuleSource::Text(text)) => put("rules", json!(text)),
        Some(RuleSource::File(file)) => put("file", json!(file)),
    }
    if !assign {
        put("assign", json!(false));
    }
    if !sysctls.is_empty() {
        put("sysctls", json!(sysctls));
    }
    if !exec.is_empty() {
        put("exec", json!(exec));
    }
    host::write(host, &mut table);
    kernel.iter().for_each(|kernel| kernel_router::write(kernel, &mut table));
    if *kind == NodeRole::Nat {
        nat::write(nat, &mut table);
    }
    uplink::write(uplink, &mut table);
    controllers::write(controllers, &mut table);
    look::write(&node.look, &mut table);
    Value::Object(table)
}

/// A list, or a table of lists by link where any value has one.
fn write_by_link<T: ToString>(given: &[OnLink<T>]) -> Value {
    if given.iter().all(|given| given.link.is_none()) {
        return given.iter().map(|given| json!(given.value.to_string())).collect();
    }
    let mut table: Map<String, Value> = Map::new();
    for OnLink { link, value } in given {
        let list = table.entry(link.clone().unwrap_or_default()).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.push(json!(value.to_string()));
        }
    }
    Value::Object(table)
}

impl NodeRole {
    /// Returns the key of this kind in a spec: `host`, `router`, `nat`, `uplink`, `switch` or
    /// `openflow`.
    pub fn key(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(key, _)| key)
    }
}

/// The schema of the table of a node of one kind.
pub(crate) fn schema(kind: NodeRole) -> Value {
    let mut table = schema_parts::table(properties(kind), &[]);
    if kind == NodeRole::Router {
        // A router in the engine runs no programs.
        let keys = host::properties().into_iter().map(|(key, _)| key);
        let keys = keys.chain(["exec", "sysctls"].map(str::to_owned));
        let needs: Map<String, Value> = keys.map(|key| (key, json!(["kind"]))).collect();
        table["dependentRequired"] = Value::Object(needs);
    }
    table
}

/// The schema of a node in the canonical form.
pub(crate) fn canonical_schema() -> Value {
    let one = |(key, kind): (&str, NodeRole)| {
        let mut all = properties(kind);
        all.insert("kind".to_owned(), json!({ "const": key }));
        all.insert("name".to_owned(), schema_parts::reference("name"));
        schema_parts::table(all, &["name", "kind"])
    };
    let kinds = KINDS.into_iter().chain([(KERNEL, NodeRole::Router)]);
    json!({ "oneOf": kinds.map(one).collect::<Vec<_>>() })
}

/// The properties of nodes with addresses.
fn routed() -> Map<String, Value> {
    let by_link = || {
        let values = schema_parts::one_or_list(json!({ "type": "string" }));
        json!({ "anyOf": [values, { "type": "object", "additionalProperties": values }] })
    };
    schema_parts::properties([
        ("address", "Its address with a prefix length; assigned if left out.", by_link()),
        ("addresses", "Its addresses, as a list or by link.", by_link()),
        ("mac", "Its hardware address; assigned if left out.", by_link()),
        (
            "assign",
            "Whether addresses that are left out are assigned; true if left out.",
            json!({ "type": "boolean" }),
        ),
        (
            "routes",
            "Routes in addition to those computed: a prefix or default, and the next router.",
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        ),
    ])
}

fn properties(kind: NodeRole) -> Map<String, Value> {
    let mut all = of_kind(kind);
    all.extend(look::properties());
    all
}

fn of_kind(kind: NodeRole) -> Map<String, Value> {
    let text = || json!({ "type": "string" });
    match kind {
        NodeRole::Nat => {
            let mut all = routed();
            all.extend(nat::properties());
            all
        }
        NodeRole::Uplink => {
            let mut all = routed();
            all.extend(uplink::properties());
            all
        }
        NodeRole::Switch => Map::new(),
        NodeRole::Host | NodeRole::Router => {
            let mut all = routed();
            all.extend(host::properties());
            let exec = "Commands (sh) that a lab runs on the host once it is up, one after another.";
            let sysctls = "Kernel parameters of its network namespace (net.…).";
            let values = json!({ "type": "object", "additionalProperties": { "type": "string" } });
            all.extend(schema_parts::properties([
                ("sysctls", sysctls, values),
                ("exec", exec, schema_parts::one_or_list(text())),
            ]));
            all.extend(match kind {
                NodeRole::Router => kernel_router::properties(),
                _ => schema_parts::properties([(
                    "port",
                    "The interface of this machine that the host is.",
                    text(),
                )]),
            });
            all
        }
        NodeRole::OpenFlow => {
            let mut all = controllers::properties();
            all.extend(schema_parts::properties([
                ("rules", "Rules in the syntax of ovs-ofctl.", text()),
                ("file", "The name of a file of rules.", text()),
            ]));
            all
        }
    }
}
