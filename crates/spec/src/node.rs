//! The nodes of a spec: addresses, hardware addresses, ports and routes. They are read before the
//! links and attached to interfaces after them.

use crate::Files;
use crate::address::AddressError;
use crate::fields::{Field, Fields};
use crate::mistake::{Remarks, nearest};
use crate::port_name::PortName;
use crate::reader::Reader;
use crate::topology::{NodeId, NodeKind};
use crate::tree::Tree;
use fastpath_wire::MacAddr;
use ipnet::IpNet;
use std::net::IpAddr;

/// What was written about a node, with its place in the text.
pub(crate) struct NodeDraft {
    /// Offset of the node's name.
    pub(crate) at: usize,
    addresses: Vec<Given<IpNet>>,
    mac: Vec<Given<MacAddr>>,
    routes: Vec<(usize, IpNet, IpAddr)>,
    /// Of an OpenFlow switch.
    rules: Option<Rules>,
    /// Where each address ended up: interface, address, offset.
    placed: Vec<(usize, Option<IpAddr>, usize)>,
    /// The interfaces whose hardware address was given.
    pub(crate) macs: Vec<(NodeId, usize)>,
}

/// The rules of an OpenFlow switch.
struct Rules {
    /// Where the spec gives them or names their file.
    at: usize,
    file: Option<String>,
    text: String,
}

/// A value for the interface on `link`, or for the only one.
struct Given<T> {
    at: usize,
    link: Option<String>,
    value: T,
}

impl NodeDraft {
    /// Where the text says what `error` is about.
    pub(crate) fn position(&self, interface: usize, error: &AddressError) -> Option<usize> {
        if let AddressError::NoGateway(via) = error {
            return self.routes.iter().find(|(_, _, gateway)| gateway == via).map(|(at, ..)| *at);
        }
        let same =
            |placed: &&(usize, Option<IpAddr>, usize)| placed.0 == interface && placed.1 == error.address();
        // The last of equals: a duplicate is a duplicate of what was there before.
        self.placed.iter().rev().find(same).map(|(_, _, at)| *at)
    }
}

/// Reads the table of a node.
pub(crate) fn read(
    kind: &str,
    name: &str,
    at: usize,
    mut fields: Fields,
    files: &Files,
    remarks: &mut Remarks,
) -> (NodeKind, NodeDraft) {
    let mut draft = NodeDraft {
        at,
        addresses: Vec::new(),
        mac: Vec::new(),
        routes: Vec::new(),
        rules: None,
        placed: Vec::new(),
        macs: Vec::new(),
    };
    if kind == "switch" || kind == "openflow" {
        for key in ["address", "addresses", "mac", "routes"] {
            if let Some(field) = fields.get(key) {
                let what = format!("{kind} {name} forwards frames and has no {key}");
                remarks.mistake(field.at, what, format!("remove it, or write [router.{name}]"));
            }
        }
        if kind == "switch" {
            fields.finish(remarks);
            return (NodeKind::Switch, draft);
        }
        let (rules, file) = (fields.get("rules"), fields.get("file"));
        if let (Some(_), Some(file)) = (&rules, &file) {
            remarks.mistake(file.at, "rules and file are both given", "write one of them");
        }
        draft.rules = match (rules, file) {
            (Some(field), _) => field.text("actions=flood", remarks).map(|text| Rules {
                at: field.at,
                file: None,
                text: text.to_owned(),
            }),
            (None, Some(field)) => rules_of_file(&field, files, remarks),
            (None, None) => None,
        };
        fields.finish(remarks);
        return (NodeKind::OpenFlow { rules: String::new(), lines: Vec::new() }, draft);
    }
    let (one, many) = (fields.get("address"), fields.get("addresses"));
    if let (Some(_), Some(many)) = (&one, &many) {
        remarks.mistake(many.at, "address and addresses are both given", "write all in addresses");
    }
    for field in one.iter().chain(&many) {
        draft.addresses.extend(by_link(field, "10.0.1.2/24", remarks, address));
    }
    if let Some(field) = fields.get("mac") {
        draft.mac = by_link(&field, "02:00:00:00:00:2a", remarks, mac);
    }
    if let Some(field) = fields.get("routes") {
        draft.routes = routes(&field, remarks);
    }
    let kind = match kind {
        "router" => NodeKind::Router,
        _ => NodeKind::Host { port: fields.get("port").and_then(|field| port(&field, remarks)) },
    };
    fields.finish(remarks);
    (kind, draft)
}

fn rules_of_file(field: &Field, files: &Files, remarks: &mut Remarks) -> Option<Rules> {
    let file = field.text("rules.txt", remarks)?;
    match files(file) {
        Ok(text) => Some(Rules { at: field.at, file: Some(file.to_owned()), text }),
        Err(why) => {
            let instead = "write the path of a file of rules, from where this file is";
            remarks.mistake(field.at, format!("{file}: {why}"), instead);
            None
        }
    }
}

/// Values given as one text, as a list, or by link in a table of these.
fn by_link<T>(
    field: &Field,
    example: &str,
    remarks: &mut Remarks,
    read: fn(&str) -> Result<T, (String, String)>,
) -> Vec<Given<T>> {
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
                Ok(value) => given.push(Given { at, link: link.clone(), value }),
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

fn routes(field: &Field, remarks: &mut Remarks) -> Vec<(usize, IpNet, IpAddr)> {
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
            Ok(prefix) if prefix.addr().is_ipv4() == via.is_ipv4() => {
                routes.push((to.at, prefix.trunc(), via))
            }
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

/// Puts what was written about the nodes on their interfaces, now that the links are known.
pub(crate) fn attach(spec: &mut Reader) {
    let mut ports: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for index in 0..spec.drafts.len() {
        let mut draft = std::mem::replace(&mut spec.drafts[index], empty());
        let id = NodeId(index as u32);
        for given in std::mem::take(&mut draft.addresses) {
            let Some(interface) = interface(spec, id, given.at, given.link.as_deref(), "addresses") else {
                continue;
            };
            spec.topology.nodes[index].interfaces[interface].addresses.push(given.value);
            draft.placed.push((interface, Some(given.value.addr()), given.at));
        }
        let port = match &spec.topology.node(id).kind {
            NodeKind::Host { port: Some(port) } => Some(port.clone()),
            _ => None,
        };
        if let Some(port) = port {
            let name = spec.topology.node(id).name.clone();
            // The interface behind a port has an address of its own, which nobody here knows.
            spec.topology.nodes[index].interfaces.iter_mut().for_each(|interface| interface.mac = None);
            if spec.topology.nodes[index].interfaces.len() > 1 {
                spec.remarks.mistake(
                    draft.at,
                    format!("{name} is one port but has several links"),
                    "write a host for each",
                );
            }
            if let Some(interface) = port.interface()
                && let Some(other) = ports.insert(interface.to_owned(), name)
            {
                let what = format!("port {interface} is {other}'s already");
                spec.remarks.mistake(draft.at, what, "write another port");
            }
        }
        for given in std::mem::take(&mut draft.mac) {
            let Some(interface) = interface(spec, id, given.at, given.link.as_deref(), "mac") else {
                continue;
            };
            spec.topology.nodes[index].interfaces[interface].mac = Some(given.value);
            draft.placed.push((interface, None, given.at));
            draft.macs.push((id, interface));
        }
        spec.topology.nodes[index].routes =
            draft.routes.iter().map(|&(_, prefix, via)| (prefix, via)).collect();
        if let Some(Rules { at, file, text }) = &draft.rules
            && let Err(mistakes) = spec.topology.set_rules(id, text)
        {
            for mistake in mistakes {
                let what = match file {
                    Some(file) => format!("{file}:{}: {}", mistake.line, mistake.what),
                    None => format!("rule {}: {}", mistake.line, mistake.what),
                };
                spec.remarks.mistake(*at, what, mistake.instead);
            }
        }
        spec.drafts[index] = draft;
    }
}

fn empty() -> NodeDraft {
    NodeDraft {
        at: 0,
        addresses: Vec::new(),
        mac: Vec::new(),
        routes: Vec::new(),
        rules: None,
        placed: Vec::new(),
        macs: Vec::new(),
    }
}

/// The interface on `link`, or the only one.
fn interface(spec: &mut Reader, id: NodeId, at: usize, link: Option<&str>, key: &str) -> Option<usize> {
    let node = spec.topology.node(id);
    let links: Vec<&str> = node.interfaces.iter().map(|i| spec.topology.link(i.link).name.as_str()).collect();
    let by_link = || format!("write {key} = {{ {} = … }}", links.first().unwrap_or(&"LINK"));
    let (what, instead) = match link {
        None if links.len() == 1 => return Some(0),
        None if links.is_empty() => {
            (format!("{} has no link to put this on", node.name), "write a [[link]]".to_owned())
        }
        None => (format!("{} has {} links", node.name, links.len()), by_link()),
        Some(link) => match links.iter().position(|name| *name == link) {
            Some(index) => return Some(index),
            None => {
                let instead = match nearest(link, links.iter().copied()) {
                    Some(meant) => format!("write {meant}"),
                    None if links.is_empty() => "write a [[link]]".to_owned(),
                    None => format!("write one of {}", links.join(", ")),
                };
                (format!("{} has no link '{link}'", node.name), instead)
            }
        },
    };
    spec.remarks.mistake(at, what, instead);
    None
}
