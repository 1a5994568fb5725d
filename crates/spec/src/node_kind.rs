//! What a node of a topology does with frames, with the settings that this kind alone has.
//!
//! A description has one kind of table for all nodes ([`NodeDescription`](crate::NodeDescription)),
//! in which any key can be written. [`resolve`](crate::resolve()) refuses keys that a kind does not
//! have, so that here they cannot be written.

use crate::controllers::Controllers;
use crate::host::{HostOrigin, HostSettings};
use crate::kernel_router::{KernelRouter, RoutingDaemon};
use crate::nat::Nat;
use crate::port_name::PortName;
use crate::uplink::Uplink;
use fastpath_ofctl::RuleLine;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Routes given in the spec, in addition to computed ones: destination and next router. The next
/// router is on a subnet of the node.
pub type GivenRoutes = Vec<(IpNet, IpAddr)>;

/// What a node does with frames.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// An edge of the network: frames enter and leave here.
    Host {
        /// What it is outside of the engine.
        kind: HostKind,
        /// What runs in it.
        setup: Box<HostSetup>,
        /// Its routes.
        routes: GivenRoutes,
    },
    /// Forwards IP packets inside the engine.
    Router {
        /// Its routes.
        routes: GivenRoutes,
    },
    /// A router that a lab makes a network namespace, in which the kernel forwards.
    KernelRouter {
        /// The routing daemon in it.
        settings: KernelRouter,
        /// What forwards in this topology.
        forwarder: KernelForwarder,
        /// Where programs run in its namespace, and which files they see.
        host: Box<HostSettings>,
        /// What runs in it.
        setup: Box<HostSetup>,
        /// Its routes.
        routes: GivenRoutes,
    },
    /// A router inside the engine that translates addresses.
    Nat {
        /// How.
        nat: Box<Nat>,
        /// Its routes.
        routes: GivenRoutes,
    },
    /// Forwards packets between its links and the network of the machine, in a namespace of a lab.
    Uplink {
        /// The ports of the machine that lead to hosts.
        uplink: Box<Uplink>,
        /// Its routes.
        routes: GivenRoutes,
    },
    /// Forwards frames inside the engine by learned MAC addresses (IEEE 802.1D).
    Switch,
    /// Forwards frames inside the engine by OpenFlow tables.
    OpenFlow {
        /// The rules in the syntax of ovs-ofctl, as the author wrote them.
        rules: String,
        /// The same rules, parsed and checked ([`crate::rules`]).
        lines: Vec<RuleLine>,
        /// Its controllers, for runs in real time.
        controllers: Box<Controllers>,
    },
}

/// What a host is outside of the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// A port of this machine, which a lab and `fastpath run` attach.
    Port(PortName),
    /// In a lab a network namespace with programs. `replay` attaches a capture file instead.
    Namespace(Box<HostSettings>),
}

/// What a lab sets and starts in the namespace of a node. `fastpath run`, which has no namespaces,
/// names the commands that it ignores.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSetup {
    /// Kernel parameters of the network namespace, in the order of their names.
    pub sysctls: BTreeMap<String, String>,
    /// Commands (sh(1)) that run one after another, once a lab is up.
    pub exec: Vec<String>,
}

/// What forwards the packets of a kernel router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelForwarder {
    /// The engine, as a router: outside of labs.
    Engine,
    /// The kernel, in a namespace of a lab.
    Namespace,
}

impl NodeKind {
    /// Returns a host without settings, which a lab makes a network namespace.
    pub fn host() -> NodeKind {
        NodeKind::Host {
            kind: HostKind::Namespace(Box::default()),
            setup: Box::default(),
            routes: Vec::new(),
        }
    }

    /// Returns a host that is a port of this machine.
    pub fn port(name: PortName) -> NodeKind {
        NodeKind::Host { kind: HostKind::Port(name), setup: Box::default(), routes: Vec::new() }
    }

    /// Returns a router without routes of its own.
    pub fn router() -> NodeKind {
        NodeKind::Router { routes: Vec::new() }
    }

    /// Returns whether frames enter and leave the network here.
    pub fn is_edge(&self) -> bool {
        let in_namespace = KernelForwarder::Namespace;
        matches!(self, NodeKind::Host { .. } | NodeKind::Uplink { .. })
            || matches!(self, NodeKind::KernelRouter { forwarder, .. } if *forwarder == in_namespace)
    }

    /// Returns whether the node forwards at layer 2, so that its links are one segment.
    pub fn is_switch(&self) -> bool {
        matches!(self, NodeKind::Switch | NodeKind::OpenFlow { .. })
    }

    /// Returns whether the node forwards IP packets, inside the engine or by the kernel.
    pub fn is_router(&self) -> bool {
        !matches!(self, NodeKind::Host { .. } | NodeKind::Switch | NodeKind::OpenFlow { .. })
    }

    /// Returns whether the node forwards IP packets inside the engine.
    pub fn is_engine_router(&self) -> bool {
        self.is_router() && !self.is_edge()
    }

    /// Returns the port of this machine that the node is.
    pub fn port_name(&self) -> Option<&PortName> {
        match self {
            NodeKind::Host { kind: HostKind::Port(port), .. } => Some(port),
            _ => None,
        }
    }

    /// Returns the routes given in the spec; empty for switches.
    pub fn routes(&self) -> &[(IpNet, IpAddr)] {
        match self {
            NodeKind::Host { routes, .. }
            | NodeKind::Router { routes }
            | NodeKind::KernelRouter { routes, .. }
            | NodeKind::Nat { routes, .. }
            | NodeKind::Uplink { routes, .. } => routes,
            NodeKind::Switch | NodeKind::OpenFlow { .. } => &[],
        }
    }

    /// Returns the routes given in the spec; `None` for switches, which have none.
    pub fn routes_mut(&mut self) -> Option<&mut GivenRoutes> {
        match self {
            NodeKind::Host { routes, .. }
            | NodeKind::Router { routes }
            | NodeKind::KernelRouter { routes, .. }
            | NodeKind::Nat { routes, .. }
            | NodeKind::Uplink { routes, .. } => Some(routes),
            NodeKind::Switch | NodeKind::OpenFlow { .. } => None,
        }
    }

    /// Returns where programs run in the namespace of the node; `None` where none run.
    pub fn host_settings(&self) -> Option<&HostSettings> {
        match self {
            NodeKind::Host { kind: HostKind::Namespace(host), .. } | NodeKind::KernelRouter { host, .. } => {
                Some(host)
            }
            _ => None,
        }
    }

    /// Returns the same settings, to be changed.
    pub fn host_settings_mut(&mut self) -> Option<&mut HostSettings> {
        match self {
            NodeKind::Host { kind: HostKind::Namespace(host), .. } | NodeKind::KernelRouter { host, .. } => {
                Some(host)
            }
            _ => None,
        }
    }

    /// Returns whether the namespace of the node is one that a lab does not make.
    pub fn is_attached(&self) -> bool {
        self.host_settings().is_some_and(|host| matches!(host.origin, HostOrigin::Attached(_)))
    }

    /// Returns what a lab sets and starts in the node; `None` where no programs run.
    pub fn setup(&self) -> Option<&HostSetup> {
        match self {
            NodeKind::Host { setup, .. } | NodeKind::KernelRouter { setup, .. } => Some(setup),
            _ => None,
        }
    }

    /// Returns the same settings, to be changed.
    pub fn setup_mut(&mut self) -> Option<&mut HostSetup> {
        match self {
            NodeKind::Host { setup, .. } | NodeKind::KernelRouter { setup, .. } => Some(setup),
            _ => None,
        }
    }

    /// Returns the commands that run here once a lab is up.
    pub fn exec(&self) -> &[String] {
        self.setup().map_or(&[], |setup| &setup.exec)
    }

    /// Returns the routing daemon of a kernel router.
    pub fn daemon(&self) -> Option<&RoutingDaemon> {
        match self {
            NodeKind::KernelRouter { settings, .. } => settings.daemon.as_deref(),
            _ => None,
        }
    }
}
