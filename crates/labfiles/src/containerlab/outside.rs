//! What links of a topology file lead to outside the lab: interfaces of the machine, and
//! containerlab's management network.
//!
//! | in the file | here |
//! |---|---|
//! | `host:NAME` | the lab makes an interface NAME of the machine: a host with `port = "tap:NAME"` |
//! | `macvlan:NAME` | the interface NAME that the machine has: a host with `port = "NAME"` |
//! | `mgmt-net:NAME` | an uplink with the address of the gateway of `mgmt`, behind a switch |

use super::Reader;
use super::link::End;
use crate::fields::{map, text, text_of};
use crate::yaml::Yaml;
use fastpath_spec::{LinkDescription, NodeDescription, NodeRole, OnLink, PortName};
use fastpath_text::mistake::{Code, Remarks};
use ipnet::IpNet;

/// The subnets of containerlab's management network.
const SUBNETS: [(&str, &str, &str); 2] =
    [("ipv4-subnet", "ipv4-gw", "172.20.20.0/24"), ("ipv6-subnet", "ipv6-gw", "3fff:172:20:20::/64")];
/// The nodes and the link of the management network.
const SWITCH: &str = "mgmt-net";
const UPLINK: &str = "mgmt-net-uplink";

/// The management network of a file.
#[derive(Default)]
pub(super) struct Management {
    /// The addresses of the machine in it.
    gateways: Vec<IpNet>,
}

impl Management {
    /// Reads the settings. What has no effect here is named.
    pub(super) fn read(yaml: Option<&Yaml>, remarks: &mut Remarks) -> Management {
        const NOTHING: &Yaml<'static> = &Yaml { at: 0, end: 0, value: fastpath_text::tree::Tree::Null };
        let mut fields = map("mgmt", yaml.unwrap_or(NOTHING), remarks);
        let mut gateways = Vec::new();
        for (subnet_key, gateway_key, default) in SUBNETS {
            let given = text_of(&mut fields, subnet_key, remarks).filter(|subnet| *subnet != "auto");
            let gateway = fields.placed(gateway_key).and_then(|yaml| {
                let address = text(yaml, gateway_key, remarks)?.parse().ok();
                if address.is_none() {
                    let what = format!("{gateway_key} is not an address");
                    remarks.mistake(yaml.at, what, "write an address of the subnet");
                }
                address
            });
            let parsed = given.unwrap_or(default).parse::<IpNet>();
            let Ok(subnet) = parsed else {
                let at = yaml.map_or(0, |yaml| yaml.at);
                remarks.mistake(at, format!("{subnet_key} is not a subnet"), format!("write {default}"));
                continue;
            };
            if subnet.addr() != subnet.network() {
                let at = yaml.and_then(|yaml| yaml.get(subnet_key)).map_or(0, |yaml| yaml.at);
                let what = format!("{subnet_key} {subnet} is an address in a subnet");
                remarks.mistake(at, what, format!("write {}", subnet.trunc()));
            }
            let first = subnet.hosts().find(|address| *address != subnet.network());
            let first = first.unwrap_or(subnet.addr());
            let address = gateway.unwrap_or(first);
            gateways.extend(IpNet::new(address, subnet.prefix_len()).ok());
        }
        const USELESS: [&str; 7] =
            ["network", "bridge", "mtu", "external-access", "driver-opts", "ipv4-range", "ipv6-range"];
        for entry in USELESS.iter().filter_map(|key| fields.get(key)) {
            remarks.warn(
                Code::Ignored,
                entry.key_at,
                format!("{} of mgmt is ignored: its network is an uplink", entry.key),
            );
        }
        fields.finish(remarks);
        Management { gateways }
    }
}

impl<'y> Reader<'y, '_> {
    /// Returns whether a node is outside the lab.
    pub(super) fn is_outside(&self, node: &str) -> bool {
        self.outside.contains(node)
    }

    /// Returns whether a link leads to the management network.
    pub(super) fn uses_management(&self) -> bool {
        self.is_outside(SWITCH)
    }

    /// Adds what is at the outer end of a link. `None`: it cannot be, which has been reported.
    pub(super) fn outside(
        &mut self,
        kind: &str,
        interface: &'y str,
        at: usize,
        remarks: &mut Remarks,
    ) -> Option<End<'y>> {
        if kind == "mgmt-net" {
            self.management_network(at);
            return Some(End::of(SWITCH.to_owned(), interface, at));
        }
        let port = if kind == "host" { format!("tap:{interface}") } else { interface.to_owned() };
        let port = port.parse::<PortName>().ok();
        if port.is_none() {
            let what = format!("'{}' cannot be an interface of the machine", interface.escape_debug());
            remarks.mistake_of_running(at, what, "write up to 15 letters and digits");
        }
        let name = format!("{kind}-{interface}");
        if !self.outside.insert(name.clone()) {
            let what = format!("another link leads to {kind}:{interface}");
            remarks.mistake_of_running(
                at,
                what,
                "write an interface for each link, or join them by a node of kind bridge",
            );
            return Some(End::of(name, interface, at));
        }
        let node = NodeDescription { port, assign: false, ..NodeDescription::host(&*name) };
        self.built.add_node(node, at);
        Some(End::of(name, interface, at))
    }

    /// Adds the management network, once.
    fn management_network(&mut self, at: usize) {
        if !self.outside.insert(SWITCH.to_owned()) {
            return;
        }
        self.built.add_node(NodeDescription::new(NodeRole::Switch, SWITCH), at);
        let on_link = |value: &IpNet| OnLink { link: None, value: *value };
        let addresses = self.management.gateways.iter().map(on_link).collect();
        let uplink = NodeDescription::new(NodeRole::Uplink, UPLINK);
        self.built.add_node(NodeDescription { addresses, assign: false, ..uplink }, at);
        self.add_link(LinkDescription::new(UPLINK, SWITCH), at);
    }
}
