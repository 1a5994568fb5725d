//! One link: its type, its subnet, the addresses on it, and what it becomes in a description.

use super::impair;
use super::known::{Ignored, Level};
use super::links::{End, Link};
use super::nodes::{MTU_MAX, MTU_MIN, Node, Nodes};
use super::pools::{Allocation, Pools, Prefix, address};
use super::tables::{merged, table_of};
use crate::fields::{text, truth, truth_of, whole};
use crate::yaml::Yaml;
use fastpath_link::Change;
use fastpath_spec::{Built, LinkDescription, LinkNames, NodeDescription, NodeRole, OnLink};
use fastpath_text::fields::Fields;
use fastpath_text::mistake::{Code, Remarks, choice, nearest};
use fastpath_text::tree::{Tree, TreeTable};
use ipnet::IpNet;
use std::net::IpAddr;

/// The mtu of a link that gives none.
const MTU: u32 = 1500;
/// The types of links.
const TYPES: [&str; 7] = ["lan", "p2p", "stub", "loopback", "tunnel", "vlan_member", "lag"];

/// What the links of a topology become.
pub(super) struct Network<'b, 'y> {
    pub(super) built: &'b mut Built,
    pub(super) nodes: Nodes<'y>,
    pub(super) pools: Pools,
    pub(super) names: LinkNames,
    /// Whether `tc` has an effect.
    pub(super) impairs: bool,
}

/// What a node has on a link.
#[derive(Default)]
struct Attached {
    interface: Option<String>,
    mtu: Option<u32>,
    /// What it writes of IPv4 and IPv6.
    own: [Own; 2],
    values: Change,
}

/// An address that a node writes.
#[derive(Clone, Copy, Default)]
enum Own {
    #[default]
    Nothing,
    None,
    Number(u32),
    Plain(IpAddr, usize),
    Whole(IpNet),
}

/// What a link has for all its nodes.
struct LinkShares<'y> {
    mtu: Option<u32>,
    /// The values of `tc`, and where they stand.
    tc: (usize, TreeTable<'y>),
    is_p2p: bool,
    prefix: Prefix,
}

impl Network<'_, '_> {
    /// Adds a link.
    pub(super) fn add(&mut self, link: &Link, ignored: &mut Ignored, remarks: &mut Remarks) {
        let Some(shared) = self.shared(link, ignored, remarks) else { return };
        let ends: Vec<Attached> =
            link.ends.iter().map(|end| self.attached(end, &shared, ignored, remarks)).collect();
        let names = match (link.ends.as_slice(), ends.as_slice()) {
            ([a, b], [at_a, at_b]) => {
                let mtu = self.mtu(link, &ends, remarks).or(shared.mtu);
                let interfaces = [at_a.interface.clone(), at_b.interface.clone()];
                let mut described =
                    LinkDescription { mtu, interfaces, ..LinkDescription::new(&*a.node, &*b.node) };
                described.forward.values.merge(&at_a.values);
                described.backward.values.merge(&at_b.values);
                let name = self.add_link(described, link.at);
                vec![name.clone(), name]
            }
            // Fewer or more ends than two meet at a switch.
            _ => {
                let switch = format!("lan-{}", self.built.description.links.len() + 1);
                self.built.add_node(NodeDescription::new(NodeRole::Switch, &*switch), link.at);
                let described = |(end, attached): (&End, &Attached)| {
                    let interfaces = [attached.interface.clone(), None];
                    let mtu = attached.mtu.or(shared.mtu);
                    let mut described =
                        LinkDescription { mtu, interfaces, ..LinkDescription::new(&*end.node, &*switch) };
                    described.forward.values.merge(&attached.values);
                    described
                };
                let all: Vec<LinkDescription> = link.ends.iter().zip(&ends).map(described).collect();
                all.into_iter().map(|described| self.add_link(described, link.at)).collect()
            }
        };
        for (family, net) in shared.prefix.nets.into_iter().enumerate() {
            self.addresses(link, (&ends, &names), (family, net, &shared), remarks);
        }
    }

    /// Adds a link that stands at a byte offset, with a name that no other has.
    fn add_link(&mut self, link: LinkDescription, at: usize) -> Option<String> {
        let name = Some(self.names.name(&link.between[0], &link.between[1]));
        self.built.add_link(LinkDescription { name: name.clone(), ..link }, at);
        name
    }

    /// Reads what a link has besides nodes. `None`: it cannot be added, which has been reported.
    fn shared<'l>(
        &mut self,
        link: &'l Link<'l>,
        ignored: &mut Ignored,
        remarks: &mut Remarks,
    ) -> Option<LinkShares<'l>> {
        let mut fields = Fields::new("a link", link.at, &link.values);
        fields.know(["name", "interfaces"]);
        truth_of(&mut fields, "disable", remarks);
        let mtu = fields.placed("mtu").and_then(|yaml| whole(yaml, "mtu", MTU_MIN..=MTU_MAX, remarks));
        let tc = fields.placed("tc");
        if let Some(yaml) = tc.filter(|yaml| !matches!(yaml.value, Tree::Table(_))) {
            remarks.mistake(yaml.at, "tc is not a map", "write tc: {delay: 10ms, loss: 1}");
        }
        let hosts = link.ends.iter().any(|end| self.nodes[&*end.node].is_host);
        let usual = if link.ends.len() == 2 && !hosts { "p2p" } else { "lan" };
        let kind = fields.placed("type").and_then(|yaml| self.kind(yaml, link, remarks)).unwrap_or(usual);
        let prefix = self.prefix(link, &mut fields, kind, ignored, remarks);
        ignored.take(&mut fields, Level::Link, "a link");
        // A key may be a misspelled node, and a node may stand for what is not on the link.
        let names: Vec<&str> = self.nodes.keys().copied().collect();
        fields.know(names.iter().copied().filter(|name| link.values.get(name).is_none()));
        fields.finish(remarks);
        let tc = (tc.map_or(link.at, |yaml| yaml.at), table_of(tc));
        Some(LinkShares { mtu, tc, is_p2p: kind == "p2p", prefix: prefix? })
    }

    /// Reads the type of a link.
    fn kind<'y>(&self, yaml: &'y Yaml, link: &Link, remarks: &mut Remarks) -> Option<&'y str> {
        let kind = text(yaml, "type", remarks)?;
        let count = link.ends.len();
        let wanted = match kind {
            "p2p" => 2..=2,
            "stub" | "loopback" => 1..=1,
            _ => 1..=usize::MAX,
        };
        if !TYPES.contains(&kind) {
            let what = format!("there is no link of type '{}'", kind.escape_debug());
            remarks.mistake(yaml.at, what, choice(kind, TYPES));
        } else if !wanted.contains(&count) {
            let what = format!("a link of type {kind} has {} nodes, not {count}", wanted.start());
            remarks.mistake(yaml.at, what, "remove type, or the other nodes");
        } else if !["lan", "p2p", "stub"].contains(&kind) {
            remarks.warn(
                Code::Different,
                yaml.at,
                format!("the link of type {kind} is one of Ethernet here"),
            );
        }
        Some(kind)
    }

    /// Returns the subnets of a link: those given, or the next of a pool.
    fn prefix(
        &mut self,
        link: &Link,
        fields: &mut Fields,
        kind: &str,
        ignored: &mut Ignored,
        remarks: &mut Remarks,
    ) -> Option<Prefix> {
        let given = fields.placed("prefix");
        let (pool, role) = (fields.get("pool"), fields.get("role"));
        let is_unnumbered = truth_of(fields, "unnumbered", remarks);
        let own = given.and_then(|yaml| self.pools.given(yaml, remarks));
        let mut note = |key: &str, at, why| ignored.note(Level::Link, key, (at, "a link"), why);
        if own.is_some() || is_unnumbered {
            for field in [&pool, &role].into_iter().flatten() {
                note(&field.key, field.key_at, "its addresses are given");
            }
            return Some(own.unwrap_or_default());
        }
        let usual = match kind {
            "p2p" => "p2p",
            _ if link.ends.len() == 1 && self.pools.contains("stub") => "stub",
            _ => "lan",
        };
        let name = match (&pool, fields.placed("pool"), &role, fields.placed("role")) {
            (Some(_), Some(yaml), role, _) => {
                if let Some(role) = role {
                    note("role", role.key_at, "pool is given");
                }
                self.pools.pool(yaml, remarks)?
            }
            (_, _, Some(role), Some(yaml)) => match yaml.scalar() {
                Some(name) if self.pools.contains(name) => name.to_owned(),
                name => {
                    let near = nearest(name.unwrap_or_default(), self.pools.names());
                    if let Some(near) = near {
                        remarks.mistake(yaml.at, "role is not the name of a pool", format!("write {near}"));
                    }
                    note("role", role.key_at, "no pool has its name");
                    usual.to_owned()
                }
            },
            _ => usual.to_owned(),
        };
        let mut prefix = self.pools.next(&name, link.at, remarks)?;
        // A map may give the allocation alone.
        if let Some(Tree::Table(table)) = given.map(|yaml| &yaml.value)
            && let Some(word) = table.get("allocation").and_then(Yaml::scalar)
        {
            prefix.allocation = Allocation::of(word);
        }
        Some(prefix)
    }

    /// Reads what a node has on a link.
    fn attached(
        &mut self,
        end: &End,
        shared: &LinkShares,
        ignored: &mut Ignored,
        remarks: &mut Remarks,
    ) -> Attached {
        let mut fields = Fields::new(format!("{} of a link", end.node), end.at, &end.values);
        fields.know(["name", "node"]);
        let mtu = fields.placed("mtu").and_then(|yaml| whole(yaml, "mtu", MTU_MIN..=MTU_MAX, remarks));
        let interface = self.interface(end, &mut fields, remarks);
        let own = ["ipv4", "ipv6"].map(|key| match fields.placed(key) {
            Some(yaml) => own(yaml, key, remarks),
            None => Own::Nothing,
        });
        let tc = fields.placed("tc");
        if let Some(yaml) = tc.filter(|yaml| !matches!(yaml.value, Tree::Table(_))) {
            remarks.mistake(yaml.at, "tc is not a map", "write tc: {delay: 10ms, loss: 1}");
        }
        let at = tc.map_or(shared.tc.0, |yaml| yaml.at);
        let values = impair::change(at, &merged(&shared.tc.1, &table_of(tc)), remarks);
        ignored.take(&mut fields, Level::End, &end.node);
        fields.finish(remarks);
        let of_node = || self.nodes.get_mut(&*end.node).and_then(Node::link_mtu);
        let mtu = mtu.or(shared.mtu).or_else(of_node);
        let values = if self.impairs { values } else { Change::default() };
        Attached { interface, mtu, own, values }
    }

    /// The name of an interface: the one given, or the next; `eth0` is netlab's own.
    fn interface(&mut self, end: &End, fields: &mut Fields, remarks: &mut Remarks) -> Option<String> {
        let index = fields.placed("ifindex");
        let name = fields.placed("ifname").and_then(|yaml| text(yaml, "ifname", remarks));
        let node = self.nodes.get_mut(&*end.node)?;
        let number = match index {
            Some(yaml) => {
                let number = whole(yaml, "ifindex", 1..=9999, remarks)?;
                if node.interfaces.contains(&number) {
                    let what = format!("{} has an interface {number} already", end.node);
                    remarks.mistake(yaml.at, what, "write another number");
                }
                number
            }
            None => (1..).find(|number| !node.interfaces.contains(number))?,
        };
        node.interfaces.insert(number);
        Some(name.map_or_else(|| format!("eth{number}"), str::to_owned))
    }

    /// The mtu of a link between two nodes: that of its hosts.
    fn mtu(&self, link: &Link, ends: &[Attached], remarks: &mut Remarks) -> Option<u32> {
        let of_hosts: Vec<Option<u32>> = link
            .ends
            .iter()
            .zip(ends)
            .filter(|(end, _)| self.nodes[&*end.node].runs)
            .map(|(_, attached)| attached.mtu)
            .collect();
        match of_hosts.as_slice() {
            [] => ends.iter().find_map(|attached| attached.mtu),
            [a, b] if a != b => {
                let (a, b) = (a.unwrap_or(MTU), b.unwrap_or(MTU));
                let least = a.min(b);
                let what = format!("both ends of the link have mtu {least}, the smaller of {a} and {b}");
                remarks.warn(Code::Different, link.at, what);
                Some(least)
            }
            [mtu, ..] => *mtu,
        }
    }

    /// Gives the nodes on a link their addresses of one family.
    fn addresses(
        &mut self,
        link: &Link,
        (ends, names): (&[Attached], &[Option<String>]),
        (family, net, shared): (usize, Option<IpNet>, &LinkShares),
        remarks: &mut Remarks,
    ) {
        let runs = |end: &End| self.nodes[&*end.node].runs;
        if !link.ends.iter().any(runs) {
            return;
        }
        let rule = net.and_then(|net| self.allocation(link, net, shared, remarks));
        let mut sorted: Vec<&str> = link.ends.iter().map(|end| &*end.node).collect();
        sorted.sort_unstable();
        let mut found = Vec::new();
        for (place, (end, attached)) in link.ends.iter().zip(ends).enumerate() {
            let Some(node) = self.nodes.get_mut(&*end.node) else { continue };
            let automatic = net.zip(rule).map(|(net, rule)| {
                let start = u32::from(net.max_prefix_len() - net.prefix_len() > 1);
                let by_name = sorted.iter().position(|name| *name == end.node).unwrap_or(place);
                match rule {
                    Allocation::P2p => start + by_name as u32,
                    Allocation::Sequential => start + place as u32,
                    Allocation::IdBased => node.id,
                }
            });
            if rule == Some(Allocation::IdBased) && matches!(attached.own[family], Own::Nothing) {
                node.uses_id();
            }
            let number = match attached.own[family] {
                Own::None => continue,
                Own::Whole(net) => {
                    found.push((node.index, place, net));
                    continue;
                }
                Own::Plain(address, at) => {
                    match net.and_then(|net| IpNet::new(address, net.prefix_len()).ok()) {
                        Some(net) => found.push((node.index, place, net)),
                        None => {
                            let what = format!("{address} has no length, and the link no subnet");
                            remarks.mistake(at, what, format!("write {address}/24"));
                        }
                    }
                    continue;
                }
                Own::Number(number) => Some(number),
                Own::Nothing => automatic,
            };
            let (Some(number), Some(net)) = (number, net) else { continue };
            let address = address(net.network(), u128::from(number)).filter(|address| net.contains(address));
            match address.and_then(|address| IpNet::new(address, net.prefix_len()).ok()) {
                Some(address) => found.push((node.index, place, address)),
                None => {
                    let what = format!("{net} has no address number {number} for {}", end.node);
                    remarks.mistake(end.at, what, "write a larger prefix, or the address");
                }
            }
        }
        self.give(found, names);
    }

    /// Gives hosts addresses: by the index of a node, its place on the link.
    fn give(&mut self, found: Vec<(usize, usize, IpNet)>, names: &[Option<String>]) {
        for (index, place, value) in found {
            let runs = self.built.description.nodes[index].kind == NodeRole::Host;
            if runs {
                let on_link = OnLink { link: names[place].clone(), value };
                self.built.description.nodes[index].addresses.push(on_link);
            }
        }
    }

    /// The rule by which nodes get addresses of a subnet (netlab, `links.py`,
    /// `get_prefix_IPAM_policy`).
    fn allocation(
        &self,
        link: &Link,
        net: IpNet,
        shared: &LinkShares,
        remarks: &mut Remarks,
    ) -> Option<Allocation> {
        if let Some(given) = shared.prefix.allocation {
            return Some(given);
        }
        let count = link.ends.len() as u128;
        let bits = u32::from(net.max_prefix_len() - net.prefix_len());
        let size = 1_u128.checked_shl(bits).unwrap_or(u128::MAX);
        let id_max = link.ends.iter().map(|end| self.nodes[&*end.node].id).max().unwrap_or(0);
        let usable = if size > 2 { size - 2 } else { size };
        match (size, count) {
            (1, 1) | (2, 2) => Some(Allocation::P2p),
            (1, _) => None,
            _ if shared.is_p2p => Some(Allocation::P2p),
            _ if u128::from(id_max) <= usable => Some(Allocation::IdBased),
            _ if count <= usable => Some(Allocation::Sequential),
            _ => None,
        }
        .or_else(|| {
            let what = format!("{net} has no addresses for {count} nodes");
            remarks.mistake(link.at, what, "write a larger prefix");
            None
        })
    }
}

/// Reads an address that a node writes: text, the number of an address, or a truth value.
fn own(yaml: &Yaml, key: &str, remarks: &mut Remarks) -> Own {
    // True: the interface has the family and no address of it.
    if truth(yaml).is_some() {
        return Own::None;
    }
    if yaml.scalar() == Some("dhcp") {
        let what = format!("{key}: dhcp gives no address: a lab has no server of DHCP");
        remarks.warn(Code::Different, yaml.at, what);
        return Own::None;
    }
    if matches!(yaml.value, Tree::Integer(_)) {
        return whole(yaml, key, 1..=u32::MAX, remarks).map_or(Own::None, Own::Number);
    }
    let text = yaml.scalar().unwrap_or_default();
    let is_of_family = |address: IpAddr| address.is_ipv4() == (key == "ipv4");
    let whole = text.parse::<IpNet>().ok().filter(|net| is_of_family(net.addr()));
    let plain = text.parse::<IpAddr>().ok().filter(|address| is_of_family(*address));
    match (whole, plain) {
        (Some(net), _) => {
            let has_hosts = net.max_prefix_len() - net.prefix_len() > 1;
            let is_broadcast = key == "ipv4" && net.addr() == net.broadcast();
            if has_hosts && (net.addr() == net.network() || is_broadcast) {
                let what = format!("{net} is not an address of one host");
                remarks.mistake(yaml.at, what, "write another address of the subnet");
            }
            Own::Whole(net)
        }
        (None, Some(address)) => Own::Plain(address, yaml.at),
        (None, None) => {
            let what = format!("{key} is '{}', not an address", text.escape_debug());
            let example = if key == "ipv4" { "10.0.0.1/24" } else { "2001:db8::1/64" };
            remarks.mistake(yaml.at, what, format!("write {key}: {example}"));
            Own::None
        }
    }
}
