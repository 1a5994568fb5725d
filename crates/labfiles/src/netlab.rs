//! netlab's topologies: the nodes of device `linux`, all links, and the addresses that netlab
//! assigns by default.
//!
//! Devices other than `linux` need images and configurations that netlab makes. They are refused
//! with their lines, or are stubs. Modules (`ospf`, `bgp`, …) configure such devices and have no
//! effect here. An address in the subnet of a LAN is that of the node's number; the ends of a link
//! between two devices have the first two addresses of their subnet (netlab, `addressing.md`).

use crate::Options;
use crate::fields::{map, text, texts};
use crate::yaml::Yaml;
use fastpath_spec::{Built, LinkDescription, LinkNames, NodeDescription, NodeRole, OnLink};
use fastpath_text::mistake::{Code, Remarks, nearest};
use fastpath_text::tree::{Placed, Tree, TreeEntry};
use ipnet::{IpNet, Ipv4Net};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The first subnet of links between two devices, and that of LANs.
const P2P: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 1, 0, 0), 30);
const LAN: (Ipv4Addr, u8) = (Ipv4Addr::new(172, 16, 0, 0), 24);

/// A node that was read.
struct Node {
    /// netlab's number.
    id: u32,
    /// Its index in the description.
    index: usize,
    is_host: bool,
    /// Its links so far.
    links: u32,
}

/// A node on a link.
struct Member<'y> {
    name: &'y str,
    at: usize,
    address: Option<IpNet>,
}

struct Reader<'y> {
    built: Built,
    nodes: BTreeMap<&'y str, Node>,
    names: LinkNames,
    /// The subnets given so far, of links between two devices and of LANs.
    subnets: [u32; 2],
}

/// Returns whether the file is one of netlab.
pub(crate) fn is_one(yaml: &Yaml) -> bool {
    yaml.get("nodes").is_some() && yaml.get("topology").is_none()
}

/// Reads a topology.
pub(crate) fn read<'y>(yaml: &'y Yaml<'y>, options: &Options, remarks: &mut Remarks) -> Built {
    let mut top = map("the file", yaml, remarks);
    let (nodes, links, groups) = (top.placed("nodes"), top.placed("links"), top.placed("groups"));
    let defaults = top.placed("defaults").and_then(|defaults| defaults.get("device"));
    let device = top.placed("defaults.device").or(defaults).and_then(Yaml::scalar);
    if let Some(entry) = top.get("module") {
        remarks.warn(
            Code::Ignored,
            entry.key_at,
            "module is ignored: modules configure devices other than linux",
        );
    }
    let mut reader = Reader {
        built: Built::default(),
        nodes: BTreeMap::new(),
        names: LinkNames::reserving(std::iter::empty()),
        subnets: [0; 2],
    };
    for (name, at, own) in nodes.map(named).unwrap_or_default() {
        let of_node = own.and_then(|own| own.get("device")).map(|yaml| (yaml.at, yaml.scalar()));
        let (device_at, found) = of_node.or_else(|| of_groups(groups?, name)).unwrap_or((at, device));
        reader.node((name, at), (device_at, found), own, options, remarks);
    }
    let links = match links {
        None | Some(Placed { value: Tree::Null, .. }) => &[],
        Some(Placed { value: Tree::Array(links), .. }) => links.as_slice(),
        Some(other) => {
            remarks.mistake(other.at, "links is not a list", "write links: [a-b]");
            &[]
        }
    };
    for yaml in links {
        reader.link(yaml, remarks);
    }
    if remarks.is_clean() && !reader.nodes.values().any(|node| node.is_host) {
        remarks.mistake(0, "no node is of device linux, so nothing runs", "write a node of device: linux");
    }
    reader.built
}

/// The nodes of a list or a map, with their places and maps.
fn named<'y>(nodes: &'y Yaml<'y>) -> Vec<(&'y str, usize, Option<&'y Yaml<'y>>)> {
    match &nodes.value {
        Tree::Table(table) => {
            let all = table.entries.iter();
            all.map(|TreeEntry { key, key_at, placed }| (&**key, *key_at, Some(placed))).collect()
        }
        Tree::Array(list) => {
            let name = |yaml: &'_ Yaml| yaml.scalar().is_some();
            let plain = list
                .iter()
                .filter(|yaml| name(yaml))
                .filter_map(|yaml| Some((yaml.scalar()?, yaml.at, None)));
            let maps =
                list.iter().filter_map(|yaml| Some((yaml.get("name")?.scalar()?, yaml.at, Some(yaml))));
            plain.chain(maps).collect()
        }
        // A text of names.
        _ => words(nodes).map(|name| (name, nodes.at, None)).collect(),
    }
}

/// The words of a text; none of what is not one.
fn words<'y>(yaml: &'y Yaml) -> impl Iterator<Item = &'y str> {
    yaml.scalar().unwrap_or_default().split_whitespace()
}

/// The device that the groups of a node give.
fn of_groups<'y>(groups: &'y Yaml<'y>, node: &str) -> Option<(usize, Option<&'y str>)> {
    let Tree::Table(groups) = &groups.value else { return None };
    groups.entries.iter().find_map(|TreeEntry { placed: yaml, .. }| {
        let has = |members: &Yaml| match &members.value {
            Tree::Array(list) => list.iter().any(|member| member.scalar() == Some(node)),
            Tree::Table(table) => table.get(node).is_some(),
            _ => words(members).any(|member| member == node),
        };
        let device = yaml.get("device")?;
        yaml.get("members").filter(|members| has(members)).map(|_| (device.at, device.scalar()))
    })
}

impl<'y> Reader<'y> {
    /// Adds a link that stands at a byte offset, with a name that no other has.
    fn add_link(&mut self, link: LinkDescription, at: usize) -> usize {
        let name = link.name.clone().unwrap_or_else(|| self.names.name(&link.between[0], &link.between[1]));
        self.built.add_link(LinkDescription { name: Some(name), ..link }, at)
    }

    fn node(
        &mut self,
        (name, at): (&'y str, usize),
        (device_at, device): (usize, Option<&str>),
        own: Option<&'y Yaml<'y>>,
        options: &Options,
        remarks: &mut Remarks,
    ) {
        let given = own.and_then(|own| own.get("id")).and_then(Yaml::scalar).and_then(|id| id.parse().ok());
        let id = given.unwrap_or(self.nodes.len() as u32 + 1);
        let is_host = device == Some("linux");
        let mut node = NodeDescription { assign: false, ..NodeDescription::host(name) };
        if !is_host {
            let why = match device {
                Some(device) => format!("a lab has no device {} (but linux)", device.escape_debug()),
                None => "no device is given".to_owned(),
            };
            if options.only_linux {
                remarks.warn(Code::Different, device_at, format!("{name} is a stub: {why}"));
            } else {
                let instead = "write device: linux, or --kinds linux, which puts a stub in its place";
                remarks.mistake(device_at, format!("node {name}: {why}"), instead);
            }
            node.kind = NodeRole::Router;
        }
        let index = self.built.add_node(node, at);
        if self.nodes.insert(name, Node { id, index, is_host, links: 0 }).is_some() {
            remarks.mistake(at, format!("there is already a node {name}"), "write another name");
        }
    }

    fn link(&mut self, yaml: &'y Yaml<'y>, remarks: &mut Remarks) {
        if let Some(inner) = yaml.get("members").filter(|_| yaml.get("group").is_some()) {
            if let Tree::Array(links) = &inner.value {
                links.iter().for_each(|yaml| self.link(yaml, remarks));
            }
            return;
        }
        let members = self.members(yaml, remarks);
        if let Some(unknown) = members.iter().find(|member| !self.nodes.contains_key(member.name)) {
            let known = self.nodes.keys().copied();
            let instead = match nearest(unknown.name, known) {
                Some(meant) => format!("write {meant}"),
                None => "write it below nodes".to_owned(),
            };
            let what = format!("there is no node '{}'", unknown.name.escape_debug());
            return remarks.mistake(unknown.at, what, instead);
        }
        let mtu = yaml.get("mtu").and_then(Yaml::scalar).and_then(|text| text.parse().ok());
        let any_host =
            members.iter().any(|member| self.nodes.get(member.name).is_some_and(|node| node.is_host));
        let is_p2p = match yaml.get("type").and_then(Yaml::scalar) {
            Some(kind) => kind == "p2p",
            None => members.len() == 2 && !any_host,
        };
        let prefix = yaml.get("prefix");
        let prefix =
            prefix.map(|prefix| prefix.get("ipv4").unwrap_or(prefix)).filter(|yaml| yaml.scalar().is_some());
        let Some(subnet) = self.subnet(prefix, is_p2p, remarks) else { return };
        // Two ends are a link; fewer or more meet at a switch.
        let direct = members.len() == 2;
        let switch = format!("lan-{}", self.built.description.links.len() + 1);
        if !direct {
            self.built.add_node(NodeDescription::new(NodeRole::Switch, &*switch), yaml.at);
        }
        let interfaces: Vec<Option<String>> =
            members.iter().map(|member| self.interface(member.name)).collect();
        let mut on_links: Vec<Option<String>> = Vec::new();
        if let ([a, b], true) = (members.as_slice(), direct) {
            let interfaces = [interfaces[0].clone(), interfaces[1].clone()];
            let link = LinkDescription { mtu, interfaces, ..LinkDescription::new(a.name, b.name) };
            let index = self.add_link(link, yaml.at);
            on_links = vec![self.built.description.links[index].name.clone(); 2];
        } else {
            for (member, interface) in members.iter().zip(interfaces) {
                let interfaces = [interface, None];
                let link = LinkDescription { mtu, interfaces, ..LinkDescription::new(member.name, &*switch) };
                let index = self.add_link(link, yaml.at);
                on_links.push(self.built.description.links[index].name.clone());
            }
        }
        for (place, (member, link)) in members.iter().zip(on_links).enumerate() {
            let Some(node) = self.nodes.get(member.name).filter(|node| node.is_host) else { continue };
            let number = if is_p2p { place as u32 + 1 } else { node.id };
            let first = u32::from(subnet.network());
            let assigned = Ipv4Net::new(Ipv4Addr::from(first.wrapping_add(number)), subnet.prefix_len());
            let value = member.address.unwrap_or(IpNet::V4(assigned.expect("the subnet's own length")));
            self.built.description.nodes[node.index].addresses.push(OnLink { link, value });
        }
    }

    /// The nodes on a link: `a-b`, a list, or a map with nodes or `interfaces`.
    fn members(&self, yaml: &'y Yaml<'y>, remarks: &mut Remarks) -> Vec<Member<'y>> {
        let plain = |at, name| Member { name, at, address: None };
        match &yaml.value {
            Tree::Array(_) => {
                texts(yaml, "a link", remarks).into_iter().map(|(at, name)| plain(at, name)).collect()
            }
            Tree::Table(table) => {
                let listed = yaml.get("interfaces").map(|list| &list.value);
                if let Some(Tree::Array(list)) = listed {
                    let of = |yaml: &'y Yaml<'y>| {
                        let node = yaml.get("node").unwrap_or(yaml);
                        Some(Member { address: address(yaml), ..plain(node.at, node.scalar()?) })
                    };
                    return list.iter().filter_map(of).collect();
                }
                let nodes = table.entries.iter().filter(|entry| self.nodes.contains_key(&*entry.key));
                nodes
                    .map(|entry| Member {
                        address: address(&entry.placed),
                        ..plain(entry.key_at, &entry.key)
                    })
                    .collect()
            }
            _ => {
                let text = yaml.scalar().unwrap_or_default();
                self.split(text).into_iter().map(|name| plain(yaml.at, name)).collect()
            }
        }
    }

    /// The names in `a-b`. A name may have dashes itself.
    fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut names = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let ends = rest.match_indices('-').map(|(at, _)| at).chain([rest.len()]);
            let known = ends.clone().filter(|end| self.nodes.contains_key(&rest[..*end])).max();
            let end = known.or(ends.min()).unwrap_or(rest.len());
            names.push(&rest[..end]);
            rest = rest[end..].trim_start_matches('-');
        }
        names
    }

    /// The next name of an interface of a node; `eth0` is netlab's own.
    fn interface(&mut self, node: &str) -> Option<String> {
        let node = self.nodes.get_mut(node)?;
        node.links += 1;
        Some(format!("eth{}", node.links))
    }

    /// The subnet of a link: the one given, or the next.
    fn subnet(&mut self, given: Option<&Yaml>, is_p2p: bool, remarks: &mut Remarks) -> Option<Ipv4Net> {
        if let Some(yaml) = given {
            let text = text(yaml, "prefix", remarks)?;
            if let Ok(net) = text.parse::<Ipv4Net>() {
                return Some(net.trunc());
            }
            // The name of a pool, whose subnets netlab counts as those of its own pools.
        }
        let ((first, length), count) = match is_p2p {
            true => (P2P, &mut self.subnets[0]),
            false => (LAN, &mut self.subnets[1]),
        };
        let start = u32::from(first).checked_add(*count << (32 - length))?;
        *count += 1;
        Ipv4Net::new(Ipv4Addr::from(start), length).ok()
    }
}

fn address(yaml: &Yaml) -> Option<IpNet> {
    yaml.get("ipv4")?.scalar()?.parse().ok()
}
