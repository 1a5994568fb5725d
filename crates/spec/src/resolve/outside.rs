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

#[cfg(test)]
mod tests {
    use crate::node_kind::NodeKind;
    use crate::{Dependence, NO_FILES, Pooling, describe, parse, resolve};

    const LINKS: &str = "\n[[link]]\nbetween = ['a', 'x']\n[[link]]\nbetween = ['x', 'b']\n";

    fn said(nodes: &str) -> Vec<String> {
        parse(&format!("[host.a]\n[host.b]\n{nodes}{LINKS}"))
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_nat_has_its_settings_and_is_resolved_to_itself() {
        let text = format!(
            "[host.a]\n[host.b]\naddress = '192.0.2.2/24'\n[nat.x]\ninside = 'a-x'\nmapping = 'address-dependent'\n\
             filtering = 'address-and-port-dependent'\npool = ['192.0.2.10', '192.0.2.11']\npooling = 'arbitrary'\n\
             ports = '5000-5001'\nport_preservation = false\nhairpinning = false\nsessions_max = 9\n\
             timeouts = {{ udp = '30s', icmp = '1s' }}{LINKS}"
        );
        let (topology, _) = parse(&text).unwrap();
        let NodeKind::Nat { nat, .. } = &topology.nodes[2].kind else { panic!("a NAT") };
        assert!(topology.nodes[2].kind.is_router() && nat.inside.iter().eq([&0]));
        let settings = &nat.settings;
        assert_eq!(settings.filtering, Dependence::AddressAndPortDependent);
        assert_eq!(
            (settings.pool.len(), settings.pooling, settings.sessions_max),
            (2, Pooling::Arbitrary, 9)
        );
        assert_eq!(
            (settings.ports.clone(), settings.timeouts.udp.to_string()),
            (5000..=5001, "30s".to_owned())
        );
        assert!(!settings.port_preservation && settings.port_parity && !settings.hairpinning);
        let description = describe(&topology);
        assert_eq!(resolve(&description, NO_FILES).unwrap().0, topology);
        let json = description.to_json().to_string();
        let read = crate::Description::from_json(&json, NO_FILES).unwrap();
        assert_eq!(resolve(&read, NO_FILES).unwrap().0, topology);
    }

    #[test]
    fn an_uplink_forwards_ports_to_hosts() {
        let nodes = "[uplink.x]\nforward = { '8080' = 'a:80', 'udp:53' = 'b:5353', '[::1]:22' = 'b:22' }";
        let (topology, _) = parse(&format!("[host.a]\n[host.b]\n{nodes}{LINKS}")).unwrap();
        let NodeKind::Uplink { uplink, .. } = &topology.nodes[2].kind else { panic!("an uplink") };
        let forwards = &uplink.forwards;
        let text = |forward: &crate::Forward| format!("{} {}:{}", forward.listen, forward.host, forward.port);
        assert_eq!(
            forwards.iter().map(text).collect::<Vec<_>>(),
            ["8080 a:80", "udp:53 b:5353", "[::1]:22 b:22"]
        );
        assert_eq!(resolve(&describe(&topology), NO_FILES).unwrap().0, topology);
    }

    #[test]
    fn mistakes_in_nats_and_uplinks_say_what_to_write() {
        let mut wrong = Vec::new();
        for (nodes, expected) in [
            ("[nat.x]", "3:6: nat x has no inside; write inside = [\"LINK\"], the links of its inside"),
            ("[nat.x]\ninside = 'x-a'", "4:10: x has no link 'x-a'; write x-b"),
            (
                "[nat.x]\ninside = ['a-x', 'x-b']",
                "4:10: all links of nat x are inside, so it translates nothing; leave out the link that leads outside",
            ),
            (
                "[nat.x]\ninside = 'a-x'\nmapping = 'symmetric'",
                "5:11: 'symmetric' is not a value of mapping; write one of endpoint-independent, address-dependent, \
                 address-and-port-dependent",
            ),
            (
                "[nat.x]\ninside = 'a-x'\nports = '0-7'",
                "5:9: '0-7' is not a range of ports; write for example ports = \"1024-65535\"",
            ),
            (
                "[nat.x]\ninside = 'a-x'\npool = '198.51.100.1'",
                "5:8: 198.51.100.1 is on no subnet outside of nat x; write an address in 10.1.2.0/24",
            ),
            (
                "[nat.x]\ninside = 'a-x'\ntimeouts = { udp = '0s' }",
                "5:20: a timeout of 0 for udp ends every session at once; write udp = \"60s\"",
            ),
            (
                "[router.x]\ninside = 'a-x'",
                "4:1: router x has no key 'inside'; write one of address, addresses, assign, mac, routes, kind, daemon, ospf, bgp, isis, pim, router_id, config, static_routes, position",
            ),
            (
                "[uplink.x]\nforward = { 'http' = 'a:80' }",
                "4:13: 'http' is not a port of this machine; write \"8080\", \"udp:53\" or \"127.0.0.1:8080\"",
            ),
            (
                "[uplink.x]\nforward = { '80' = 'a:80', '127.0.0.1:80' = 'b:80' }",
                "4:28: port 127.0.0.1:80 is forwarded already, by \"80\"; write another port",
            ),
            (
                "[uplink.x]\nforward = { '80' = 'a' }",
                "4:20: 'a' is not a host and its port; write for example \"a:80\"",
            ),
            ("[uplink.x]\nforward = { '80' = 'wbe:80' }", "4:20: there is no node 'wbe'; write [host.wbe]"),
        ] {
            let expected = expected.replace("\"a:80\"", "\"web:80\"");
            let said = said(nodes);
            if said != [expected.clone()] {
                wrong.push(format!("{said:?}\n  {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
