//! Scenarios of the network simulator of the QUIC interop runner as networks.
//!
//! ```text
//!                             193.167.50.0/24
//!  client ── (193.167.0.2) left ════════════ right (193.167.100.2) ── server
//!    eth0                   bottleneck: delay, rate, queue, losses             eth1
//!  sink ───── left                            right ───── source      with cross traffic
//! ```
//!
//! A scenario is one line: `drop-rate --delay=15ms --bandwidth=10Mbps --queue=25
//! --rate_to_client=10 --rate_to_server=10`. Its keys, defaults and units are those of the
//! simulator, an ns-3 program. The client and the server are interfaces of this machine; the
//! addresses, also those of IPv6, are fixed.
//!
//! What ns-3 does with packets is what this network does:
//!
//! - The frames on the bottleneck have the two bytes of PPP in place of the header of Ethernet.
//! - Its queue holds `queue` packets beside one in the device and one on the wire.
//! - Losses happen where packets arrive, so that a lost packet has used the bottleneck.
//! - Losses and corruption, by chance or by number, concern UDP datagrams; a blackhole takes all.
//!
//! Read first: `words.rs`, the arguments; then `impairments.rs`, what each scenario adds.

mod impairments;
mod words;

use fastpath_link::{Change, Framing, Limit, QueueSpec};
use fastpath_spec::{Description, LinkDescription, NodeDescription, NodeRole, OnLink, resolve_into};
use fastpath_spec::{NO_FILES, NetworkSpec, PortName};
use fastpath_text::mistake::{Checked, Remarks};
use fastpath_wire::MacAddr;
use ipnet::IpNet;
use words::Arguments;

/// The name of the link between the two routers.
pub const BOTTLENECK: &str = "bottleneck";
/// The names of the links of the client and of the server.
pub const ACCESS: [&str; 2] = ["left-client", "right-server"];
/// The names of the routers at the left and at the right.
const ROUTERS: [&str; 2] = ["left", "right"];
const HOSTS: [&str; 2] = ["client", "server"];
/// The addresses of the endpoints, and of the interfaces that lead to them.
const HOST_ADDRESSES: [[&str; 2]; 2] =
    [["193.167.0.100/24", "fd00:cafe:cafe:0::100/64"], ["193.167.100.100/24", "fd00:cafe:cafe:100::100/64"]];
const ROUTER_ADDRESSES: [[&str; 2]; 2] =
    [["193.167.0.2/24", "fd00:cafe:cafe:0::2/64"], ["193.167.100.2/24", "fd00:cafe:cafe:100::2/64"]];
const INNER_ADDRESSES: [[&str; 2]; 2] =
    [["193.167.50.1/24", "fd00:cafe:cafe:50::1/64"], ["193.167.50.2/24", "fd00:cafe:cafe:50::2/64"]];

/// The interface of this machine that is an endpoint's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The interface.
    pub port: PortName,
    /// Its hardware address, which is that of the router there; `None`: any.
    pub mac: Option<MacAddr>,
    /// The largest packet that it carries, bytes; `None`: 1500.
    pub mtu: Option<u32>,
}

/// Reads a scenario and resolves the network that it is. The client is behind the first endpoint.
pub fn check(scenario: &str, endpoints: &[Endpoint; 2]) -> Checked<NetworkSpec> {
    let mut remarks = Remarks::new(scenario);
    let description = describe(scenario, endpoints, &mut remarks);
    let mut topology = fastpath_spec::Topology::default();
    if remarks.is_clean() {
        topology = resolve_into(&description, &NO_FILES, &mut remarks, &|_| 0);
    }
    remarks.check(NetworkSpec { topology, description, ..NetworkSpec::default() })
}

fn describe(scenario: &str, endpoints: &[Endpoint; 2], remarks: &mut Remarks) -> Description {
    let mut network = network(endpoints);
    let Some(mut arguments) = Arguments::read(scenario, remarks) else { return network };
    let values = bottleneck(&mut arguments, remarks);
    network.links[0].values = values;
    impairments::add(&mut network, &mut arguments, remarks);
    arguments.finish(remarks);
    network
}

/// The values of the bottleneck that every scenario has.
fn bottleneck(arguments: &mut Arguments, remarks: &mut Remarks) -> Change {
    let delay = arguments.time("delay", "15ms", remarks);
    let rate = arguments.rate("bandwidth", "10Mbps", remarks);
    let queue = arguments.whole("queue", "25", 1..=u64::from(u32::MAX) - 2, remarks);
    Change {
        delay,
        rate: rate.map(Some),
        // Two bytes of PPP in place of 14 of Ethernet.
        framing: Some(Some(Framing { packet: 2 - 14, cells: None })),
        // A frame counts as queued until its transmission ends, and the device holds one.
        queue: queue.map(|packets| QueueSpec::DropTail(Limit::Packets(packets as u32 + 2))),
        ..Change::default()
    }
}

/// The network of every scenario. Its first link is the bottleneck, of which the direction forward
/// leads to the server.
fn network(endpoints: &[Endpoint; 2]) -> Description {
    let mut description = Description::default();
    for side in 0..2 {
        let mut host = NodeDescription::host(HOSTS[side]);
        host.port = Some(endpoints[side].port.clone());
        host.addresses = on_link(ACCESS[side], &HOST_ADDRESSES[side]);
        let mut router = NodeDescription::new(NodeRole::Router, ROUTERS[side]);
        router.addresses = on_link(ACCESS[side], &ROUTER_ADDRESSES[side]);
        router.addresses.extend(on_link(BOTTLENECK, &INNER_ADDRESSES[side]));
        let link = Some(ACCESS[side].to_owned());
        router.macs = endpoints[side].mac.map(|value| OnLink { link, value }).into_iter().collect();
        description.nodes.extend([host, router]);
    }
    description.links.push(link(BOTTLENECK, ROUTERS));
    for side in 0..2 {
        let mtu = endpoints[side].mtu;
        description.links.push(LinkDescription { mtu, ..link(ACCESS[side], [ROUTERS[side], HOSTS[side]]) });
    }
    description
}

fn link(name: &str, between: [&str; 2]) -> LinkDescription {
    LinkDescription {
        name: Some(name.to_owned()),
        between: between.map(str::to_owned),
        ..LinkDescription::default()
    }
}

fn on_link(link: &str, addresses: &[&str]) -> Vec<OnLink<IpNet>> {
    let value = |address: &&str| address.parse().expect("an address with its prefix length");
    addresses.iter().map(|address| OnLink { link: Some(link.to_owned()), value: value(address) }).collect()
}

#[cfg(test)]
mod tests;
