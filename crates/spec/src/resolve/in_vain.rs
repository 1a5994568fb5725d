//! Warnings about words without effect beside others: what programs need at a port, keys of a
//! routing daemon beside its own configuration, rules that match nothing or send nothing.

use super::Resolver;
use crate::description::{NodeDescription, NodeRole, RuleSource};
use crate::kernel_router::{ProtocolKind, RoutingDaemon};
use crate::mistake::{Code, several};
use crate::node_kind::NodeKind;
use crate::path::SpecPath;
use crate::topology::{NodeId, Topology};
use fastpath_ofctl::{SwitchShape, doubts};

impl Resolver<'_> {
    /// Makes the checks. The topology is complete.
    pub(super) fn in_vain(&mut self) {
        let mut notices = Vec::new();
        for (index, node) in self.description.nodes.iter().enumerate() {
            let path = |key: &str| SpecPath::of("nodes", index).key(key);
            let found = at_port(node).into_iter().chain(beside_config(&self.topology, index, node));
            notices.extend(found.map(|(key, text)| (path(key), text)));
            notices.extend(rules(&self.topology, index, node));
        }
        for (index, event) in self.description.events.iter().enumerate() {
            let is_at_port =
                |node: &&NodeDescription| Some(&node.name) == event.host.as_ref() && node.port.is_some();
            if let Some(node) = self.description.nodes.iter().find(is_at_port) {
                let text =
                    format!("{} has a port, where no programs run, so its command never starts", node.name);
                notices.push((SpecPath::of("events", index).key("exec"), text));
            }
        }
        notices.into_iter().for_each(|(path, text)| self.warn(Code::Ignored, path, text));
    }
}

/// What only the namespace of a host has, at a host that is an interface of the machine.
fn at_port(node: &NodeDescription) -> Vec<(&'static str, String)> {
    let given = [
        ("exec", !node.exec.is_empty()),
        ("sysctls", !node.sysctls.is_empty()),
        ("routes", !node.routes.is_empty()),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given && node.port.is_some());
    let text = |key| format!("{} has a port, where no programs run, so its {key} has no effect", node.name);
    given.map(|(key, _)| (key, text(key))).collect()
}

/// The keys of a routing daemon that its own configuration replaces. Those of BGP say what the
/// neighbors are told, where they have a configuration by the topology.
fn beside_config(
    topology: &Topology,
    index: usize,
    node: &NodeDescription,
) -> Option<(&'static str, String)> {
    let daemon = node.kernel.as_ref()?.daemon.as_deref()?;
    daemon.config.as_ref()?;
    let has_bgp = || bgp_is_told(topology, NodeId(index as u32));
    let kinds = daemon.protocols.keys().filter(|kind| **kind != ProtocolKind::Bgp || !has_bgp());
    let mut keys: Vec<&'static str> = kinds.map(|kind| kind.key()).collect();
    keys.extend(daemon.router_id.map(|_| "router_id"));
    let names = several(keys.iter().copied());
    let text =
        format!("router {}: config is all that its daemon reads, and {names} have no effect", node.name);
    keys.first().map(|key| (*key, text))
}

/// Whether a neighbor speaks BGP by the topology.
fn bgp_is_told(topology: &Topology, id: NodeId) -> bool {
    let told =
        |daemon: &RoutingDaemon| daemon.config.is_none() && daemon.protocols.contains_key(&ProtocolKind::Bgp);
    // A segment joins routers too, so any router of the network counts.
    let others = topology.nodes.iter().zip((0..).map(NodeId)).filter(|(_, other)| *other != id);
    others.into_iter().any(|(node, _)| node.kind.daemon().is_some_and(told))
}

/// The rules of a switch that match nothing, or send nothing.
fn rules(topology: &Topology, index: usize, node: &NodeDescription) -> Vec<(SpecPath, String)> {
    let resolved = topology.node(NodeId(index as u32));
    let (NodeRole::OpenFlow, NodeKind::OpenFlow { lines, controllers, .. }) = (node.kind, &resolved.kind)
    else {
        return Vec::new();
    };
    let shape =
        SwitchShape { ports: resolved.interfaces.len() as u32, has_controller: controllers.is_served() };
    let (key, file) = match &node.rules {
        Some(RuleSource::File(file)) => ("file", Some(file)),
        _ => ("rules", None),
    };
    let place = |line: usize| match file {
        Some(file) => format!("{file}:{line}"),
        None => format!("openflow {}, rule {line}", node.name),
    };
    let said = doubts(lines, shape).into_iter();
    said.map(|doubt| {
        (SpecPath::of("nodes", index).key(key), format!("{}: {}", place(doubt.line), doubt.what))
    })
    .collect()
}
