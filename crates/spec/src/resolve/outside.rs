//! NATs and uplinks: their links, their outside addresses, and the hosts that ports lead to.

use super::{Resolver, nearest_or};
use crate::description::{NodeDescription, NodeRole};
use crate::nat::NatDescription;
use crate::node_kind::NodeKind;
use crate::path::SpecPath;
use crate::topology::NodeId;
use crate::uplink::Uplink;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

impl Resolver<'_> {
    /// Finds the inside interfaces of a NAT.
    pub(super) fn nat(&mut self, index: usize, node: &NodeDescription) {
        let path = || SpecPath::of("nodes", index).key("inside");
        if node.kind != NodeRole::Nat {
            if node.nat != NatDescription::default() {
                let what = format!("{} {} has the keys of a NAT", node.kind.key(), node.name);
                self.mistake(path(), what, format!("remove them, or write [nat.{}]", node.name));
            }
            return;
        }
        let id = NodeId(index as u32);
        let mut inside = BTreeSet::new();
        for (place, link) in node.nat.inside.iter().enumerate() {
            let found = self.interface(id, path().index(place), Some(link), "inside");
            if found.is_some_and(|interface| !inside.insert(interface)) {
                self.mistake(path().index(place), format!("link {link} is named twice"), "write it once");
            }
        }
        let links = self.topology.node(id).interfaces.len();
        // Names that are not links have been reported.
        if !node.nat.inside.is_empty() && inside.len() == links {
            let what = format!("all links of nat {} are inside, so it translates nothing", node.name);
            self.mistake(path(), what, "leave out the link that leads outside");
        }
        if node.nat.inside.is_empty() {
            let what = format!("nat {} has no inside", node.name);
            self.mistake(path(), what, "write inside = [\"LINK\"], the links of its inside");
        }
        if let NodeKind::Nat { nat, .. } = &mut self.topology.nodes[index].kind {
            nat.inside = inside;
        }
    }

    /// Checks the hosts that the ports of an uplink lead to.
    pub(super) fn uplink(&mut self, index: usize, node: &NodeDescription) {
        let path = SpecPath::of("nodes", index).key("forward");
        if node.kind != NodeRole::Uplink {
            if node.uplink != Uplink::default() {
                let what = format!("{} {} forwards ports of the machine", node.kind.key(), node.name);
                self.mistake(path, what, "remove forward, or write it in an uplink");
            }
            return;
        }
        for forward in &node.uplink.forwards {
            let path = path.clone().key(&forward.listen.to_string());
            let kind = self.node_ids.get(forward.host.as_str()).map(|id| &self.topology.node(*id).kind);
            match kind {
                Some(kind) if !kind.is_switch() => {}
                Some(_) => {
                    let what = format!("{} is a switch, which has no address", forward.host);
                    self.mistake(path, what, "write the name of a host");
                }
                None => {
                    let what = format!("there is no node '{}'", forward.host);
                    let instead = nearest_or(
                        &forward.host,
                        self.node_ids.keys().copied(),
                        format!("write [host.{}]", forward.host),
                    );
                    self.mistake(path, what, instead);
                }
            }
        }
    }

    /// Checks the outside addresses of NATs, once every interface has its address.
    pub(super) fn check_pools(&mut self) {
        let interfaces = self.topology.nodes.iter().flat_map(|node| {
            node.interfaces.iter().flat_map(move |interface| {
                interface.addresses.iter().map(move |address| (address.addr(), node.name.clone()))
            })
        });
        let mut owners: BTreeMap<IpAddr, String> = interfaces.collect();
        for index in 0..self.topology.nodes.len() {
            let node = &self.topology.nodes[index];
            let NodeKind::Nat { nat, .. } = &node.kind else { continue };
            let name = node.name.clone();
            let pool = nat.settings.pool.clone();
            let (mut subnets, mut inside) = (Vec::new(), Vec::new());
            for (place, interface) in node.interfaces.iter().enumerate() {
                let list = if nat.inside.contains(&place) { &mut inside } else { &mut subnets };
                list.extend(interface.addresses.iter().filter(|address| address.addr().is_ipv4()).copied());
            }
            for (place, &address) in pool.iter().enumerate() {
                let path = SpecPath::of("nodes", index).key("pool").index(place);
                let ip = IpAddr::V4(address);
                let on_link = |subnet: &&ipnet::IpNet| {
                    subnet.contains(&ip) && ip != subnet.network() && ip != subnet.broadcast()
                };
                match (subnets.iter().find(on_link), owners.get(&ip)) {
                    // With routes to the NAT from outside. An inside host may own the address.
                    (None, owner) if inside.iter().any(|subnet| on_link(&subnet)) && owner != Some(&name) => {
                    }
                    (Some(_), None) => _ = owners.insert(ip, name.clone()),
                    (Some(_), Some(owner)) if *owner == name => {}
                    (Some(_), Some(owner)) => {
                        let what = format!("{ip} is already the address of {owner}");
                        self.mistake(path, what, "write an address of its own");
                    }
                    (None, _) => {
                        let what = format!("{ip} is on no subnet outside of nat {name}");
                        let instead = match subnets.first() {
                            Some(subnet) => format!("write an address in {}", subnet.trunc()),
                            None => "write an address of an outside link".to_owned(),
                        };
                        self.mistake(path, what, instead);
                    }
                }
            }
            if subnets.is_empty() {
                let what = format!("nat {name} has no IPv4 address outside to translate to");
                let path = SpecPath::of("nodes", index);
                self.mistake(path, what, "remove family = \"v6\", or write a router");
            }
        }
    }
}
