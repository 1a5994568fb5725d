//! The links of a topology file: endpoints as two texts (`"a:eth1"`), or typed.

use super::{NodeUse, Reader};
use crate::fields::{map, text, text_of};
use crate::yaml::{Yaml, kind};
use fastpath_link::Change;
use fastpath_spec::{LinkDescription, OnLink, change_of_json, is_key};
use fastpath_text::fields::Fields;
use fastpath_text::mistake::{Code, Remarks, nearest};
use fastpath_text::tree::{Placed, Tree};
use fastpath_wire::MacAddr;
use ipnet::IpNet;
use serde_json::Map;
use std::borrow::Cow;

/// The MTU of a link of containerlab.
const MTU: u32 = 9500;

/// Types of links that lead out of the lab: `outside.rs`.
const OUTSIDE: [&str; 3] = ["host", "mgmt-net", "macvlan"];

/// Types of links that lead to other machines and containers, with what they lead to.
const ELSEWHERE: [(&str, &str); 3] =
    [("vxlan", "another machine"), ("vxlan-stitch", "another machine"), ("veth-stitch", "another container")];

/// An end of a link.
pub(super) struct End<'y> {
    pub(super) node: Cow<'y, str>,
    pub(super) interface: &'y str,
    pub(super) at: usize,
    mac: Option<MacAddr>,
    addresses: Vec<IpNet>,
    values: Change,
}

impl<'y> Reader<'y, '_> {
    /// Adds all links.
    pub(super) fn links(&mut self, links: &'y Yaml<'y>, remarks: &mut Remarks) {
        let elements = match &links.value {
            Tree::Array(elements) => elements.as_slice(),
            Tree::Null => &[],
            _ => {
                let instead = "write - endpoints: [\"a:eth1\", \"b:eth1\"]";
                return remarks.mistake(links.at, format!("links is {}, not a list", kind(links)), instead);
            }
        };
        for yaml in elements {
            self.link(yaml, remarks);
        }
    }

    fn link(&mut self, yaml: &'y Yaml<'y>, remarks: &mut Remarks) {
        let mut fields = map("a link", yaml, remarks);
        let kind = text_of(&mut fields, "type", remarks).unwrap_or("veth");
        fields.know(["labels"]);
        if let Some(entry) = fields.get("vars") {
            remarks.warn(Code::Ignored, entry.key_at, "vars of a link are ignored");
        }
        let mtu = fields.placed("mtu").and_then(|yaml| mtu(yaml, remarks)).unwrap_or(MTU);
        let elsewhere = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == kind);
        match (kind, elsewhere) {
            ("veth", _) => {
                let endpoints = fields.placed("endpoints");
                let both = ["ipv4", "ipv6"].map(|key| fields.placed(key));
                let values = values(&mut fields, remarks);
                fields.finish(remarks);
                let Some(mut ends) = self.ends(yaml.at, endpoints, remarks) else { return };
                for yaml in both.into_iter().flatten() {
                    addresses_by_end(yaml, &mut ends, remarks);
                }
                self.connect(yaml.at, ends, (mtu, values), remarks);
            }
            ("dummy", _) => self.dummy(yaml.at, fields, mtu, remarks),
            (_, Some((_, what))) => self.leave_out(yaml.at, kind, what, remarks),
            _ if OUTSIDE.contains(&kind) => self.link_outside(yaml.at, kind, fields, mtu, remarks),
            _ => {
                let known = ELSEWHERE.iter().map(|(kind, _)| *kind).chain(OUTSIDE).chain(["veth", "dummy"]);
                let meant = nearest(kind, known).unwrap_or("veth, or no type");
                let what = format!("there is no link of type '{}'", kind.escape_debug());
                remarks.mistake(yaml.at, what, format!("write type: {meant}"));
            }
        }
    }

    /// Adds an interface without a peer: what enters it is dropped.
    fn dummy(&mut self, at: usize, mut fields: Fields<'y>, mtu: u32, remarks: &mut Remarks) {
        let endpoint = fields.placed("endpoint");
        fields.finish(remarks);
        let Some(end) = endpoint.and_then(|endpoint| end(endpoint, remarks)) else {
            let instead = "write endpoint: {node: a, interface: eth1}";
            return remarks.mistake(at, "the link has no endpoint", instead);
        };
        let name = format!("dummy-{}", self.built.description.links.len());
        self.add_stub(&name, at);
        self.outside.insert(name.clone());
        self.connect(at, [end, End::of(name, "", at)], (mtu, Change::default()), remarks);
    }

    /// Adds a link of a type that leads out of the lab.
    fn link_outside(
        &mut self,
        at: usize,
        kind: &str,
        mut fields: Fields<'y>,
        mtu: u32,
        remarks: &mut Remarks,
    ) {
        let endpoint = fields.placed("endpoint");
        let place = fields.placed("host-interface");
        if kind == "macvlan" && fields.placed("mode").is_some_and(|mode| mode.scalar() != Some("bridge")) {
            let what = "mode of a macvlan is ignored: frames of the node reach all stations";
            remarks.warn(Code::Ignored, at, what);
        }
        let values = values(&mut fields, remarks);
        fields.finish(remarks);
        let interface = place.and_then(|place| text(place, "host-interface", remarks));
        let end = endpoint.and_then(|endpoint| end(endpoint, remarks));
        let (Some(end), Some(interface)) = (end, interface) else {
            let instead = "write endpoint: {node: a, interface: eth1} and host-interface: eth0";
            let what = format!("a link of type {kind} has an endpoint and a host-interface");
            return remarks.mistake(at, what, instead);
        };
        let place = place.map_or(at, |place| place.at);
        if let Some(far) = self.outside(kind, interface, place, remarks) {
            self.connect(at, [end, far], (mtu, values), remarks);
        }
    }

    fn leave_out(&self, at: usize, kind: &str, what: &str, remarks: &mut Remarks) {
        if self.options.only_linux || self.options.to_draw {
            remarks.warn(
                Code::Ignored,
                at,
                format!("the link of type {kind} is left out: it leads to {what}"),
            );
        } else {
            let instead = "remove it, or write --kinds linux, which leaves it out";
            remarks.mistake(at, format!("a link of type {kind} leads to {what}"), instead);
        }
    }

    /// Reads the two ends of a link. `None`: there is none, which has been reported.
    fn ends(
        &mut self,
        at: usize,
        endpoints: Option<&'y Yaml<'y>>,
        remarks: &mut Remarks,
    ) -> Option<[End<'y>; 2]> {
        let wanted = "write endpoints: [\"a:eth1\", \"b:eth1\"]";
        let Some(Placed { value: Tree::Array(list), .. }) = endpoints else {
            remarks.mistake(
                endpoints.map_or(at, |yaml| yaml.at),
                "the link has no list of endpoints",
                wanted,
            );
            return None;
        };
        let [a, b] = list.as_slice() else {
            remarks.mistake(at, format!("the link has {} endpoints", list.len()), wanted);
            return None;
        };
        let outside = |yaml: &'y Yaml<'y>| {
            let (kind, interface) = yaml.scalar()?.split_once(':')?;
            // A node of the file may have such a name.
            let is_free = OUTSIDE.contains(&kind) && !self.roles.contains_key(kind);
            is_free.then_some((kind, interface, yaml.at))
        };
        let (near, (kind, interface, place), is_first) = match (outside(a), outside(b)) {
            (Some(far), None) => (b, far, true),
            (None, Some(far)) => (a, far, false),
            (None, None) => {
                let (a, b) = (end(a, remarks), end(b, remarks));
                return Some([a?, b?]);
            }
            (Some(_), Some(_)) => {
                let what = "both ends of the link are outside the lab";
                remarks.mistake(at, what, "write a node of the file at one end");
                return None;
            }
        };
        let (near, far) = (end(near, remarks)?, self.outside(kind, interface, place, remarks)?);
        Some(if is_first { [far, near] } else { [near, far] })
    }

    fn connect(
        &mut self,
        at: usize,
        ends: [End<'y>; 2],
        (mtu, values): (u32, Change),
        remarks: &mut Remarks,
    ) {
        let [a, b] = &ends;
        for end in &ends {
            if !self.roles.contains_key(&*end.node) && !self.is_outside(&end.node) {
                let what = format!("there is no node '{}'", end.node.escape_debug());
                let known = self.roles.keys().copied();
                let instead = match nearest(&end.node, known) {
                    Some(meant) => format!("write {meant}"),
                    None => "write it below nodes".to_owned(),
                };
                return remarks.mistake(end.at, what, instead);
            }
        }
        if a.node == b.node && self.roles.get(&*a.node) == Some(&NodeUse::Stub) {
            let what = format!("the link is left out: both ends are on {}, which is a stub", a.node);
            return remarks.warn(Code::Ignored, at, what);
        }
        // The engine names what is outside.
        let interfaces = [a, b].map(|end| (!self.is_outside(&end.node)).then(|| end.interface.to_owned()));
        let mut link =
            LinkDescription { mtu: Some(mtu), interfaces, ..LinkDescription::new(&*a.node, &*b.node) };
        for (direction, end) in [&mut link.forward, &mut link.backward].into_iter().zip(&ends) {
            direction.values.merge(&values);
            direction.values.merge(&end.values);
        }
        let index = self.add_link(link, at);
        let name = self.built.description.links[index].name.clone();
        for end in ends {
            if self.roles.get(&*end.node) != Some(&NodeUse::Host) {
                continue;
            }
            let nodes = &mut self.built.description.nodes;
            let Some(node) = nodes.iter_mut().find(|node| node.name == end.node) else { continue };
            let on_link = |value| OnLink { link: name.clone(), value };
            node.addresses.extend(end.addresses.into_iter().map(on_link));
            node.macs.extend(end.mac.map(|value| OnLink { link: name.clone(), value }));
        }
    }
}

/// Reads an end: `"a:eth1"`, or a map.
fn end<'y>(yaml: &'y Yaml<'y>, remarks: &mut Remarks) -> Option<End<'y>> {
    let at = yaml.at;
    let plain = |node: &'y str, interface| End {
        node: node.into(),
        interface,
        at,
        mac: None,
        addresses: Vec::new(),
        values: Change::default(),
    };
    if let Some(text) = yaml.scalar() {
        let Some((node, interface)) = text.split_once(':').filter(|(_, interface)| !interface.is_empty())
        else {
            let what = format!("'{}' is not an endpoint", text.escape_debug());
            remarks.mistake(at, what, "write NODE:INTERFACE, for example \"a:eth1\"");
            return None;
        };
        return Some(plain(node, interface));
    }
    let mut fields = map("an endpoint", yaml, remarks);
    let (node, interface) =
        (text_of(&mut fields, "node", remarks), text_of(&mut fields, "interface", remarks));
    let mac = fields
        .placed("mac")
        .and_then(|yaml| parsed(yaml, "a MAC address, for example 02:00:00:00:00:2a", remarks));
    let addresses = ["ipv4", "ipv6"].into_iter().filter_map(|key| fields.placed(key));
    let addresses =
        addresses.filter_map(|yaml| parsed(yaml, "an address, for example 10.0.1.2/24", remarks)).collect();
    fields.know(["vars"]);
    let values = values(&mut fields, remarks);
    fields.finish(remarks);
    let (Some(node), Some(interface)) = (node, interface) else {
        remarks.mistake(at, "the endpoint has no node and interface", "write {node: a, interface: eth1}");
        return None;
    };
    Some(End { mac, addresses, values, ..plain(node, interface) })
}

impl<'y> End<'y> {
    /// The end that is a node of ours.
    pub(super) fn of(node: String, interface: &'y str, at: usize) -> End<'y> {
        let (mac, addresses, values) = (None, Vec::new(), Change::default());
        End { node: node.into(), interface, at, mac, addresses, values }
    }
}

fn parsed<T: std::str::FromStr>(yaml: &Yaml, wanted: &str, remarks: &mut Remarks) -> Option<T> {
    let text = text(yaml, "it", remarks)?;
    let value = text.parse().ok();
    if value.is_none() {
        remarks.mistake(
            yaml.at,
            format!("'{}' is not what stands here", text.escape_debug()),
            format!("write {wanted}"),
        );
    }
    value
}

/// Reads the addresses of a link, in the order of its ends. An end may have none.
fn addresses_by_end(yaml: &Yaml, ends: &mut [End; 2], remarks: &mut Remarks) {
    let Tree::Array(list) = &yaml.value else {
        return remarks.mistake(
            yaml.at,
            "the addresses of a link are a list",
            "write [10.0.1.1/24, 10.0.1.2/24]",
        );
    };
    if let Some(more) = list.get(2) {
        let what = format!("the link has {} addresses of one family", list.len());
        remarks.mistake(more.at, what, "write one for each end");
    }
    for (yaml, end) in list.iter().zip(ends) {
        if !yaml.is_null() && yaml.scalar() != Some("") {
            end.addresses.extend(parsed::<IpNet>(yaml, "an address, for example 10.0.1.2/24", remarks));
        }
    }
}

fn mtu(yaml: &Yaml, remarks: &mut Remarks) -> Option<u32> {
    let mtu = yaml.scalar().and_then(|text| text.parse().ok()).filter(|mtu| (68..=65_535).contains(mtu));
    if mtu.is_none() {
        remarks.mistake(yaml.at, "mtu is not from 68 to 65535", "write mtu: 1500");
    }
    mtu
}

/// Reads the values of a link as a spec has them (`delay: 10ms`).
fn values(fields: &mut Fields, remarks: &mut Remarks) -> Change {
    let mut given = Map::new();
    let mut at = None;
    for entry in fields.source().entries.iter().filter(|entry| is_key(&entry.key)) {
        fields.know([&*entry.key]);
        at.get_or_insert(entry.key_at);
        given.insert(entry.key.to_string(), entry.placed.value.json().unwrap_or_default());
    }
    let Some(at) = at else { return Change::default() };
    change_of_json(&given).unwrap_or_else(|mistakes| {
        for mistake in mistakes {
            remarks.mistake(at, mistake.what, mistake.instead);
        }
        Change::default()
    })
}
