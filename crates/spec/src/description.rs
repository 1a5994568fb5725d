//! What an author writes about a network: the one form that every reader produces and that
//! [`resolve`](crate::resolve()) turns into a checked [`Topology`](crate::Topology).
//!
//! ```text
//!  spec.toml ─┐
//!  spec.json ─┤                       ┌─▶ Topology, warnings
//!  script.ns ─┼─▶ Description ─ resolve
//!  Rust, … ───┘       ▲               └─▶ every mistake, with its path
//!                     └── describe ── Topology
//! ```
//!
//! Everything is optional where a default exists, and things refer to each other by name. As JSON
//! (serde, `from_json`, `to_json`) a description has the *canonical form*:
//!
//! ```json
//! {
//!   "seed": 7,
//!   "nodes": [{ "name": "a", "kind": "host" }, { "name": "b", "kind": "host" }],
//!   "links": [{
//!     "between": ["a", "b"], "rate": "10Mbit", "delay": "25ms", "forward": { "loss": "1%" }
//!   }],
//!   "events": [{ "at": "10s", "link": "a-b", "direction": "forward", "delay": "50ms" }],
//!   "groups": [{ "name": "cell", "start": "first-packet" }],
//!   "engine": { "tolerance": "1ms" }
//! }
//! ```

use crate::controllers::Controllers;
use crate::engine_settings::EngineSettings;
use crate::host::HostSettings;
use crate::kernel_router::KernelRouter;
use crate::look::Look;
use crate::nat::{NatDescription, NatSettings};
use crate::port_name::PortName;
use crate::topology::{Family, Rebinding, Routing, Start, TraceAction};
use crate::trace_source::TraceDescription;
use crate::uplink::Uplink;
use fastpath_link::Change;
use fastpath_traffic::{PeriodLaw, TransferModel};
use fastpath_units::{Duration, Probability, Rate};
use fastpath_wire::MacAddr;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A network as its author describes it. See the head of this file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Description {
    /// The seed of all random choices, unless the command line gives one.
    pub seed: Option<u64>,
    /// The only family of IP addresses; `None`: both are assigned.
    pub family: Option<Family>,
    /// How the routers of the engine choose routes.
    pub routing: Routing,
    /// Hosts, routers and switches.
    pub nodes: Vec<NodeDescription>,
    /// Links between nodes.
    pub links: Vec<LinkDescription>,
    /// Changes at times of the run.
    pub events: Vec<EventDescription>,
    /// What hosts send to each other without programs.
    pub traffic: Vec<TrafficDescription>,
    /// Links whose traces start together. A group that only links name starts with the run.
    pub groups: Vec<GroupDescription>,
    /// The settings of a run in real time.
    pub engine: EngineSettings,
}

/// A host, router or switch.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeDescription {
    /// Unique among nodes.
    pub name: String,
    /// What it does with frames.
    pub kind: NodeRole,
    /// The interface of this machine that a host is.
    pub port: Option<PortName>,
    /// Where the programs of a host run, and which files they see.
    pub host: HostSettings,
    /// Addresses of hosts and routers; those left out are assigned.
    pub addresses: Vec<OnLink<IpNet>>,
    /// Hardware addresses of hosts and routers; those left out are assigned.
    pub macs: Vec<OnLink<MacAddr>>,
    /// Routes in addition to those computed: destinations and the address of the next router.
    pub routes: Vec<(IpNet, IpAddr)>,
    /// The rules of an OpenFlow switch.
    pub rules: Option<RuleSource>,
    /// How a NAT translates. Other nodes have the default.
    pub nat: NatDescription,
    /// What an uplink forwards. Other nodes have the default.
    pub uplink: Uplink,
    /// Whether an interface without an address gets one. A host whose programs choose its addresses
    /// gets none.
    pub assign: bool,
    /// Kernel parameters of the network namespace of a host: `net.ipv4.ip_forward` and the like.
    pub sysctls: BTreeMap<String, String>,
    /// Commands (sh(1)) that run on a host of a lab, one after another, once the lab is up.
    pub exec: Vec<String>,
    /// The settings of a router that is a namespace of the kernel.
    pub kernel: Option<KernelRouter>,
    /// The controllers of an OpenFlow switch.
    pub controllers: Controllers,
    /// How pictures show it.
    pub look: Look,
}

/// What a node does with frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeRole {
    /// Frames enter and leave the network here.
    Host,
    /// Forwards IP packets.
    Router,
    /// Forwards IP packets, and translates IPv4 addresses and ports.
    Nat,
    /// Joins a lab to the network of its machine.
    Uplink,
    /// Forwards frames by learned addresses.
    Switch,
    /// Forwards frames by OpenFlow tables.
    OpenFlow,
}

/// A value of a node's interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OnLink<T> {
    /// The link that the interface is on; `None`: the only one of the node.
    pub link: Option<String>,
    /// The value.
    pub value: T,
}

/// Where the rules of an OpenFlow switch are, in the syntax of ovs-ofctl.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleSource {
    /// Here.
    Text(String),
    /// In the file of this name.
    File(String),
}

/// Two pipes between two nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkDescription {
    /// Unique among links; `None`: `a-b`, `a-b-2`, …
    pub name: Option<String>,
    /// The names of two nodes.
    pub between: [String; 2],
    /// The names of its interfaces at the two nodes; `None`: `eth0`, `eth1`, …
    pub interfaces: [Option<String>; 2],
    /// The largest packet above Ethernet, bytes.
    pub mtu: Option<u32>,
    /// The name of a preset, whose values hold where none is given here.
    pub preset: Option<String>,
    /// What its traces start with.
    pub group: Option<String>,
    /// Values of both directions.
    pub values: Change,
    /// Traces that both directions follow.
    pub traces: Vec<TraceDescription>,
    /// From the first node to the second: values in place of those of the link.
    pub forward: DirectionDescription,
    /// From the second node to the first.
    pub backward: DirectionDescription,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DirectionDescription {
    /// Values in place of those of the link.
    pub values: Change,
    /// Traces in place of those of the link.
    pub traces: Option<Vec<TraceDescription>>,
}

/// A change of links or of mappings, or a command on a host, at a time of the run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EventDescription {
    /// When, from the start of the run.
    pub at: Duration,
    /// The names of links.
    pub links: Vec<String>,
    /// A group, in place of links.
    pub group: Option<String>,
    /// `forward`, `backward`, or `a_to_b`; `None` or `both`: both directions.
    pub direction: Option<String>,
    /// What changes.
    pub values: Change,
    /// What happens to the traces of the group, in place of values.
    pub traces: Option<TraceAction>,
    /// A host, in place of links.
    pub host: Option<String>,
    /// The command (sh(1)) that starts on the host.
    pub exec: Option<String>,
    /// A NAT, in place of links.
    pub nat: Option<String>,
    /// How the mappings of the NAT change.
    pub rebind: Option<Rebinding>,
    /// The time from one change of the mappings to the next; `None`: once.
    pub every: Option<Duration>,
}

/// What one host sends to another.
#[derive(Clone, PartialEq, Debug)]
pub struct TrafficDescription {
    /// Unique among traffic; `None`: `a-b`, `a-b-2`, …
    pub name: Option<String>,
    /// The name of the host that sends.
    pub from: String,
    /// The name of the host that receives.
    pub to: String,
    /// When packets are sent.
    pub kind: TrafficKind,
    /// Bits of UDP payload per second; of on-off traffic, in on periods.
    pub rate: Option<Rate>,
    /// In place of the rate: the share of a link on the way, and its name.
    pub load: Option<(Probability, String)>,
    /// The UDP payload of a packet, bytes.
    pub size: Option<u32>,
    /// When it starts, from the start of the run.
    pub start: Duration,
    /// When it stops; `None`: with the run.
    pub stop: Option<Duration>,
    /// The UDP port at the receiver.
    pub port: Option<u16>,
    /// The differentiated services code point (RFC 2474).
    pub dscp: u8,
}

/// When packets of traffic are sent.
#[derive(Clone, PartialEq, Debug)]
pub enum TrafficKind {
    /// At a constant rate.
    Constant,
    /// At the times of a Poisson process.
    Poisson,
    /// At a constant rate in on periods.
    OnOff {
        /// The lengths of on periods.
        on: PeriodLaw,
        /// The lengths of off periods.
        off: PeriodLaw,
    },
    /// As a G.711 call.
    Voice,
    /// Over connections of TCP. It has no rate and no size of packets.
    Transfer(TransferModel),
}

impl TrafficDescription {
    /// Returns traffic with nothing given but its hosts and kind.
    pub fn new(from: impl Into<String>, to: impl Into<String>, kind: TrafficKind) -> TrafficDescription {
        TrafficDescription {
            name: None,
            from: from.into(),
            to: to.into(),
            kind,
            rate: None,
            load: None,
            size: None,
            start: Duration::ZERO,
            stop: None,
            port: None,
            dscp: 0,
        }
    }
}

/// Links whose traces start together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupDescription {
    /// Unique among groups.
    pub name: String,
    /// When the traces start.
    pub start: Start,
}

impl NodeDescription {
    /// Returns a node with nothing given but its name.
    pub fn new(kind: NodeRole, name: impl Into<String>) -> NodeDescription {
        NodeDescription {
            name: name.into(),
            kind,
            port: None,
            host: HostSettings::default(),
            addresses: Vec::new(),
            macs: Vec::new(),
            routes: Vec::new(),
            rules: None,
            nat: NatDescription::default(),
            uplink: Uplink::default(),
            assign: true,
            sysctls: BTreeMap::new(),
            exec: Vec::new(),
            kernel: None,
            controllers: Controllers::default(),
            look: Look::default(),
        }
    }

    /// Returns a host with nothing given but its name.
    pub fn host(name: impl Into<String>) -> NodeDescription {
        NodeDescription::new(NodeRole::Host, name)
    }

    /// Returns a NAT with the inside links of these names and these settings.
    pub fn nat(name: impl Into<String>, inside: &[&str], settings: NatSettings) -> NodeDescription {
        let inside = inside.iter().map(|&link| link.to_owned()).collect();
        let mut node = NodeDescription::new(NodeRole::Nat, name);
        node.nat = NatDescription { inside, settings };
        node
    }
}

impl LinkDescription {
    /// Returns an ideal link between two nodes: no rate limit, no delay, no loss.
    pub fn new(a: impl Into<String>, b: impl Into<String>) -> LinkDescription {
        LinkDescription { between: [a.into(), b.into()], ..LinkDescription::default() }
    }
}
