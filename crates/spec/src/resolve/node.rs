//! What nodes have on their links: addresses, hardware addresses, ports; and routes and rules.

use super::Resolver;
use super::placements::Placements;
use crate::controllers::Controllers;
use crate::description::{NodeDescription, NodeRole, OnLink, RuleSource};
use crate::host::HostOrigin;
use crate::mistake::nearest;
use crate::nat::Nat;
use crate::node_kind::{HostKind, HostSetup, KernelForwarder, NodeKind};
use crate::path::SpecPath;
use crate::port_name::PortName;
use crate::topology::NodeId;
use std::collections::{BTreeMap, BTreeSet};

impl Resolver<'_> {
    /// Assigns the values given for nodes to their interfaces, once the links are known.
    pub(super) fn attach(&mut self) {
        let mut ports: BTreeMap<String, String> = BTreeMap::new();
        for (index, node) in self.description.nodes.iter().enumerate() {
            self.refuse_what_the_kind_has_not(index, node);
            let mut placements = Placements::default();
            let id = NodeId(index as u32);
            let has_addresses = !matches!(node.kind, NodeRole::Switch | NodeRole::OpenFlow);
            if has_addresses {
                let mut paths = OnLinkPaths::new(SpecPath::of("nodes", index).key("addresses"));
                for given in &node.addresses {
                    let path = paths.path(given);
                    if let Some(interface) =
                        self.interface(id, path.clone(), given.link.as_deref(), "addresses")
                    {
                        self.topology.nodes[index].interfaces[interface].addresses.push(given.value);
                        placements.placed.push((interface, Some(given.value.addr()), path));
                    }
                }
            }
            if let Some(port) = node.port.as_ref().filter(|_| node.kind == NodeRole::Host) {
                self.port(index, port, &mut ports);
            }
            if has_addresses {
                let mut paths = OnLinkPaths::new(SpecPath::of("nodes", index).key("mac"));
                for given in &node.macs {
                    let path = paths.path(given);
                    if let Some(interface) = self.interface(id, path.clone(), given.link.as_deref(), "mac") {
                        if placements.macs.contains(&(id, interface)) {
                            let what = format!("{} already has a hardware address on this link", node.name);
                            self.mistake(path.clone(), what, "write one");
                        }
                        self.topology.nodes[index].interfaces[interface].mac = Some(given.value);
                        placements.placed.push((interface, None, path));
                        placements.macs.push((id, interface));
                    }
                }
            }
            for (prefix, via) in &node.routes {
                let path = SpecPath::of("nodes", index).key("routes").key(&prefix.to_string());
                placements.routes.push((*via, path));
            }
            self.host(index, node);
            self.sysctls(index, node);
            self.daemon(index, node);
            self.rules(index, node);
            self.nat(index, node);
            self.uplink(index, node);
            self.placements.push(placements);
        }
    }

    fn refuse_what_the_kind_has_not(&mut self, index: usize, node: &NodeDescription) {
        let path = |key: &str| SpecPath::of("nodes", index).key(key);
        let (kind, name) = (node.kind.key(), &node.name);
        if matches!(node.kind, NodeRole::Switch | NodeRole::OpenFlow) {
            let given = [
                ("addresses", "address", !node.addresses.is_empty()),
                ("mac", "mac", !node.macs.is_empty()),
                ("routes", "routes", !node.routes.is_empty()),
            ];
            for (key, word, _) in given.into_iter().filter(|(.., is_given)| *is_given) {
                let what = format!("{kind} {name} forwards frames and has no {word}");
                self.mistake(path(key), what, format!("remove it, or write [router.{name}]"));
            }
        }
        if node.port.is_some() && node.kind != NodeRole::Host {
            let what = format!("{kind} {name} has a port, and only hosts have one");
            self.mistake(path("port"), what, "remove it, or write a host");
        }
        let given = [("exec", !node.exec.is_empty()), ("sysctls", !node.sysctls.is_empty())];
        for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given && !runs_programs(node)) {
            let what = format!("{kind} {name} has {key}, and programs run on hosts");
            self.mistake(path(key), what, format!("remove it, or write [host.{name}]"));
        }
        if node.kernel.is_some() && node.kind != NodeRole::Router {
            let what = format!("{kind} {name} is not a router, so the kernel does not forward in it");
            self.mistake(path("kind"), what, format!("write [router.{name}]"));
        }
        if node.controllers != Controllers::default() && node.kind != NodeRole::OpenFlow {
            let what = format!("{kind} {name} has controllers, and only openflow nodes have them");
            self.mistake(path("controller"), what, format!("remove them, or write [openflow.{name}]"));
        }
        if node.rules.is_some() && node.kind != NodeRole::OpenFlow {
            let what = format!("{kind} {name} has rules, and only openflow nodes have them");
            self.mistake(path("rules"), what, format!("remove them, or write [openflow.{name}]"));
        }
    }

    /// Checks where the programs of a host run.
    fn host(&mut self, index: usize, node: &NodeDescription) {
        let path = |key: &str| SpecPath::of("nodes", index).key(key);
        let settings = &node.host;
        let refused: Vec<(&str, String, &str)> = match (&settings.origin, node.port.is_some()) {
            (HostOrigin::Attached(attach), _) if node.kernel.is_some() => {
                let what = format!("router {} is {attach}, which a lab does not change", node.name);
                vec![("attach", what, "remove it, or write a host")]
            }
            _ if node.kind != NodeRole::Host && node.kernel.is_none() => {
                let what =
                    |key| format!("{} {} has {key}, and only hosts have it", node.kind.key(), node.name);
                settings
                    .keys()
                    .into_iter()
                    .map(|key| (key, what(key), "remove it, or write a host"))
                    .collect()
            }
            (_, true) => {
                let what = |key| format!("{} has a port, where no programs run, and {key}", node.name);
                settings.keys().into_iter().map(|key| (key, what(key), "remove one of them")).collect()
            }
            (HostOrigin::Attached(attach), _) => {
                let what =
                    |key| format!("{} is {attach}, which a lab does not change, and has {key}", node.name);
                let keys = settings.keys().into_iter().filter(|key| !matches!(*key, "attach" | "env"));
                keys.map(|key| (key, what(key), "remove one of them")).collect()
            }
            (HostOrigin::New, _) if !settings.command.is_empty() => {
                let what = format!("{} has a command and is not a container", node.name);
                vec![("command", what, "write image or rootfs too")]
            }
            _ => Vec::new(),
        };
        for (key, what, instead) in refused {
            self.mistake(path(key), what, instead);
        }
        if let HostOrigin::Attached(attach) = &settings.origin {
            let same = |other: &&NodeDescription| other.host.origin == settings.origin;
            if let Some(other) = self.description.nodes[..index].iter().find(same) {
                let what = format!("{attach} is already {}", other.name);
                self.mistake(path("attach"), what, "write one host for each namespace");
            }
        }
    }

    fn sysctls(&mut self, index: usize, node: &NodeDescription) {
        // Others belong to the machine.
        let is_of_namespace = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-/:@".contains(c);
            let mut parts = name.split('.');
            parts.next() == Some("net") && parts.all(|part| !part.is_empty() && part.chars().all(plain))
        };
        for name in node.sysctls.keys().filter(|name| !is_of_namespace(name)) {
            let path = SpecPath::of("nodes", index).key("sysctls").key(name);
            let what = format!("'{}' is not a parameter of a network namespace", name.escape_debug());
            self.mistake(path, what, "write one of net, for example \"net.ipv4.ip_forward\"");
        }
    }

    /// Checks that datapath ids and addresses to listen on are those of one node each.
    pub(super) fn controllers(&mut self) {
        let (mut dpids, mut listens) = (BTreeMap::new(), BTreeMap::new());
        let nodes = self.description.nodes.iter().enumerate();
        let nodes = nodes.filter(|(_, node)| node.kind == NodeRole::OpenFlow && node.controllers.is_served());
        for (index, node) in nodes {
            let path = |key: &str| SpecPath::of("nodes", index).key(key);
            if let Some(id) = self.node_ids.get(node.name.as_str()).copied()
                && let Some(dpid) = self.topology.datapath_id(id)
                && let Some(other) = dpids.insert(dpid, &node.name)
            {
                let what = format!("{} has datapath id {dpid:#x}, as {other} has", node.name);
                self.mistake(path("dpid"), what, "write a dpid of its own");
            }
            for listen in node.controllers.listen.iter().filter(|listen| listen.at.port() != 0) {
                if let Some(other) = listens.insert(listen.at, &node.name) {
                    let what = format!("{} listens at {listen}, as {other} does", node.name);
                    self.mistake(path("listen"), what, "write another port");
                }
            }
        }
    }

    /// Checks the port of a host; `ports` has the host of each port so far.
    fn port(&mut self, index: usize, port: &PortName, ports: &mut BTreeMap<String, String>) {
        let path = SpecPath::of("nodes", index);
        let node = &mut self.topology.nodes[index];
        // The interface behind a port has an address of its own, which is not known here.
        node.interfaces.iter_mut().for_each(|interface| interface.mac = None);
        let (name, links) = (node.name.clone(), node.interfaces.len());
        if links > 1 {
            let what = format!("{name} has one port and several links");
            self.mistake(path.clone(), what, "write a host for each");
        }
        if let Some(interface) = port.interface()
            && let Some(other) = ports.insert(interface.to_owned(), name)
        {
            let what = format!("port {interface} is already used by {other}");
            self.mistake(path, what, "write another port");
        }
    }

    /// Checks the links that a routing daemon names, and reads its configuration.
    fn daemon(&mut self, index: usize, node: &NodeDescription) {
        let Some(daemon) = node.kernel.as_ref().and_then(|kernel| kernel.daemon.as_deref()) else { return };
        let path = |key: &str| SpecPath::of("nodes", index).key(key);
        for (kind, settings) in &daemon.protocols {
            let areas = settings.areas.keys().map(|link| ("areas", link));
            for (key, link) in areas.chain(settings.costs.keys().map(|link| ("costs", link))) {
                let path = path(kind.key()).key(key).key(link);
                self.interface(NodeId(index as u32), path, Some(link), key);
            }
        }
        let Some(config) = &daemon.config else { return };
        // One line is the name of a file.
        let mut text = match config.contains('\n') {
            true => Ok(config.clone()),
            false => (self.files)(config),
        };
        if let Ok(text) = &mut text
            && !text.ends_with('\n')
        {
            text.push('\n');
        }
        match text {
            Ok(text) => {
                if let NodeKind::KernelRouter { settings, .. } = &mut self.topology.nodes[index].kind
                    && let Some(daemon) = settings.daemon.as_deref_mut()
                {
                    daemon.config = Some(text);
                }
            }
            Err(why) => {
                let instead = "write the path of a configuration, relative to this file, or its lines";
                self.mistake(path("config"), format!("{config}: {why}"), instead);
            }
        }
    }

    fn rules(&mut self, index: usize, node: &NodeDescription) {
        let path = SpecPath::of("nodes", index);
        let (path, file, text) = match &node.rules {
            None => return,
            Some(RuleSource::Text(text)) => (path.key("rules"), None, text.clone()),
            Some(RuleSource::File(file)) => {
                let path = path.key("file");
                match (self.files)(file) {
                    Ok(text) => (path, Some(file), text),
                    Err(why) => {
                        let instead = "write the path of a file of rules, relative to this file";
                        return self.mistake(path, format!("{file}: {why}"), instead);
                    }
                }
            }
        };
        if !matches!(self.topology.nodes[index].kind, NodeKind::OpenFlow { .. }) {
            return;
        }
        if let Err(mistakes) = self.topology.set_rules(NodeId(index as u32), &text) {
            for mistake in mistakes {
                let what = match file {
                    Some(file) => format!("{file}:{}: {}", mistake.line, mistake.what),
                    None => format!("rule {}: {}", mistake.line, mistake.what),
                };
                self.mistake(path.clone(), what, mistake.instead);
            }
        }
    }

    /// The interface on `link`, or the only one.
    pub(super) fn interface(
        &mut self,
        id: NodeId,
        path: SpecPath,
        link: Option<&str>,
        key: &str,
    ) -> Option<usize> {
        let node = self.topology.node(id);
        // Most nodes with many links name them: do not list all of them for each.
        if let Some(link) = link.and_then(|link| self.link_ids.get(link))
            && let Some(end) = self.topology.link(*link).ends.iter().find(|(node, _)| *node == id)
        {
            return Some(end.1);
        }
        let links: Vec<&str> =
            node.interfaces.iter().map(|i| self.topology.link(i.link).name.as_str()).collect();
        let by_link = || format!("write {key} = {{ {} = … }}", links.first().unwrap_or(&"LINK"));
        let (what, instead) = match link {
            None if links.len() == 1 => return Some(0),
            None if links.is_empty() => {
                (format!("{} has no link to put this on", node.name), "write a [[link]]".to_owned())
            }
            None => (format!("{} has {} links", node.name, links.len()), by_link()),
            Some(link) => {
                let instead = match nearest(link, links.iter().copied()) {
                    Some(meant) => format!("write {meant}"),
                    None if links.is_empty() => "write a [[link]]".to_owned(),
                    None => format!("write one of {}", links.join(", ")),
                };
                (format!("{} has no link '{link}'", node.name), instead)
            }
        };
        self.mistake(path, what, instead);
        None
    }
}

/// Returns the kind of a node with its settings. What needs links is added later: the rules of an
/// OpenFlow node and the inside of a NAT. Keys that the kind does not have are refused elsewhere.
pub(super) fn kind(node: &NodeDescription) -> NodeKind {
    let mut routes = node.routes.clone();
    // Of equal prefixes the first counts; otherwise the order has no effect.
    routes.sort_by_key(|(prefix, _)| *prefix);
    let host = || Box::new(node.host.clone());
    let setup = || Box::new(HostSetup { sysctls: node.sysctls.clone(), exec: node.exec.clone() });
    match (node.kind, &node.kernel) {
        (NodeRole::Host, _) => {
            let kind = node.port.clone().map_or_else(|| HostKind::Namespace(host()), HostKind::Port);
            NodeKind::Host { kind, setup: setup(), routes }
        }
        (NodeRole::Router, None) => NodeKind::Router { routes },
        (NodeRole::Router, Some(settings)) => NodeKind::KernelRouter {
            settings: settings.clone(),
            forwarder: KernelForwarder::Engine,
            host: host(),
            setup: setup(),
            routes,
        },
        (NodeRole::Nat, _) => {
            let nat = Nat { inside: BTreeSet::new(), settings: node.nat.settings.clone() };
            NodeKind::Nat { nat: Box::new(nat), routes }
        }
        (NodeRole::Uplink, _) => NodeKind::Uplink { uplink: Box::new(node.uplink.clone()), routes },
        (NodeRole::Switch, _) => NodeKind::Switch,
        (NodeRole::OpenFlow, _) => NodeKind::OpenFlow {
            rules: String::new(),
            lines: Vec::new(),
            controllers: Box::new(node.controllers.clone()),
        },
    }
}

/// Whether programs can run on the node.
pub(super) fn runs_programs(node: &NodeDescription) -> bool {
    node.kind == NodeRole::Host || node.kernel.is_some()
}

/// The paths of values given by link, in their order: `addresses[0]`, `addresses["a-r"][0]`, …
struct OnLinkPaths {
    list: SpecPath,
    counts: BTreeMap<Option<String>, usize>,
}

impl OnLinkPaths {
    fn new(list: SpecPath) -> OnLinkPaths {
        OnLinkPaths { list, counts: BTreeMap::new() }
    }

    fn path<T>(&mut self, given: &OnLink<T>) -> SpecPath {
        let count = self.counts.entry(given.link.clone()).or_insert(0);
        let place = *count;
        *count += 1;
        match &given.link {
            Some(link) => self.list.clone().key(link).index(place),
            None => self.list.clone().index(place),
        }
    }
}
