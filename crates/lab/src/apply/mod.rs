//! Changes a running lab by difference: hosts, their interfaces and the engine.
//!
//! ```text
//!  description ─▶ topology in place of the running one ─▶ difference
//!                                                             │
//!    make: hosts, interfaces, addresses, routes, state        │  undone if one of them fails
//!    engine: Running::rearrange                               ▼
//!    remove: programs, interfaces, addresses, routes that are no longer there
//! ```
//!
//! Everything that can fail comes before the engine changes, and is undone if it fails. What cannot
//! be removed afterwards is a notice.

pub(crate) mod adjust;
pub(crate) mod differences;

use crate::apply::adjust::{Adjustment, HostChange};
use crate::apply::differences::entries;
use crate::host::container::ContainerFiles;
use crate::host::neighbors::KnownNeighbors;
use crate::host::nodes::{self, NodeMaker, directories};
use crate::host::{Host, HostError};
use crate::lab::Lab;
use crate::limits::open_files;
use crate::limits::{self, NotEnough};
use crate::programs::commands::Commands;
use crate::programs::ended::EndWatch;
use crate::programs::scope::Boundary;
use crate::routing::{self, DaemonError};
use fastpath_engine::control::{Applied, ApplyRequest};
use fastpath_engine::port::Port;
use fastpath_engine::{EdgePorts, RearrangeError};
use fastpath_net::{Difference, EdgeId, Routes};
use fastpath_spec::mistake::several;
use fastpath_spec::segment::Segments;
use fastpath_spec::{
    Description, Files, HostKind, HostSettings, Interface, Node, NodeId, NodeKind, Topology,
    resolve_in_place_of,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Why a lab was not changed. It is as before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The description has mistakes.
    #[error("{}", .0.join("\n"))]
    Mistakes(Vec<String>),
    /// The network runs between interfaces of this machine.
    #[error("only a lab (fastpath lab up) can change its nodes and links")]
    NotALab,
    /// A node of a kind that cannot come or go while a lab runs.
    #[error("node {node}: {what} while the lab runs: `fastpath lab down`, then `lab up`")]
    Unsupported {
        /// The node.
        node: String,
        /// The change that is impossible.
        what: &'static str,
    },
    /// The limit of open files is too low.
    #[error(transparent)]
    TooManyFiles(#[from] open_files::TooManyFiles),
    /// The machine has too few namespaces or too little memory.
    #[error(transparent)]
    NotEnough(#[from] NotEnough),
    /// A host could not be made or changed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A routing daemon does not run.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The engine cannot change.
    #[error(transparent)]
    Engine(#[from] RearrangeError),
}

/// Whether a lab changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApplyMode {
    /// It changes.
    Change,
    /// Only the difference is returned.
    DryRun,
}

impl Lab {
    /// Makes `description` the network of the lab. What is in both keeps its frames, clocks,
    /// queues, random numbers, traces, addresses, programs and connections. `files` returns the
    /// text of a file that the description names. [`fastpath_spec::describe`] makes a description
    /// of a topology.
    ///
    /// # Errors
    /// See [`ApplyError`]; the lab is as before.
    pub fn apply(
        &mut self,
        description: &Description,
        files: &Files,
        mode: ApplyMode,
    ) -> Result<Applied, ApplyError> {
        let resolved = resolve_in_place_of(description, files, &self.topology);
        let (topology, warnings) = resolved
            .map_err(|mistakes| ApplyError::Mistakes(mistakes.iter().map(ToString::to_string).collect()))?;
        let topology = topology.with_namespaces();
        let difference = Difference::of(&self.topology, &topology);
        let mut applied = Applied {
            changes: entries(&difference, &self.topology, &topology),
            notices: warnings.into_iter().map(|warning| warning.what).collect(),
        };
        applied.notices.extend(self.remarks(&topology, &difference));
        let containers = self.check(&topology, &difference)?;
        if mode == ApplyMode::Change && topology != self.topology {
            applied.notices.extend(self.change(topology, &difference, containers)?);
        }
        Ok(applied)
    }

    /// Answers requests of the control interface to change the lab, for `longest`.
    pub fn serve(&mut self, longest: Duration) {
        let Some(request) = self.requests.as_ref().map(|requests| requests.next(longest)) else {
            std::thread::sleep(longest);
            return;
        };
        if let Some(request) = request {
            let answer = self.answer(&request);
            request.answer(answer);
        }
    }

    fn answer(&mut self, request: &ApplyRequest) -> Result<Applied, String> {
        let apply = &request.apply;
        let files =
            |name: &str| apply.files.get(name).cloned().ok_or_else(|| "not in the request".to_owned());
        let description = Description::from_json(&apply.description.to_string(), &files)
            .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        let mode = if apply.dry_run { ApplyMode::DryRun } else { ApplyMode::Change };
        self.apply(&description, &files, mode).map_err(|error| error.to_string())
    }

    /// Returns the differences that take effect at the next start only.
    fn remarks(&self, topology: &Topology, difference: &Difference) -> Vec<String> {
        let mut remarks = Vec::new();
        if topology.seed != self.topology.seed {
            remarks.push("the seed stays what it is until the next start".to_owned());
        }
        let exec = |(new, old): (&Node, &Option<NodeId>)| {
            let old = self.topology.node((*old)?);
            (old.kind.exec() != new.kind.exec()).then(|| new.name.clone())
        };
        let changed: Vec<String> = topology.nodes.iter().zip(&difference.nodes).filter_map(exec).collect();
        if !changed.is_empty() {
            let names = several(changed.iter().map(String::as_str));
            remarks.push(format!("exec of {names} has changed and does not run again"));
        }
        remarks
    }

    /// Checks everything that can be checked before anything is made. Returns the files of new
    /// hosts that are containers.
    fn check(
        &self,
        topology: &Topology,
        difference: &Difference,
    ) -> Result<BTreeMap<NodeId, ContainerFiles>, ApplyError> {
        if self.requests.is_none() {
            return Err(ApplyError::NotALab);
        }
        if let Some((node, what)) = self.obstacle(topology, difference) {
            return Err(ApplyError::Unsupported { node: node.name.clone(), what });
        }
        for (link, former) in topology.links.iter().zip(&difference.links) {
            for (end, (node, place)) in link.ends.into_iter().enumerate() {
                let name = |topology: &Topology, (node, place): (NodeId, usize)| {
                    topology.node(node).interfaces[place].name.clone()
                };
                let was = former.map(|former| name(&self.topology, self.topology.link(former).ends[end]));
                let is_host = topology.node(node).kind.is_edge();
                if is_host && was.is_some_and(|was| was != name(topology, (node, place))) {
                    let node = topology.node(node).name.clone();
                    return Err(ApplyError::Unsupported {
                        node,
                        what: "an interface cannot get another name",
                    });
                }
            }
        }
        let is_made = |id: NodeId| difference.nodes[id.0 as usize].is_none();
        limits::check(topology.hosts().filter(|(id, _)| is_made(*id)).count() as u64)?;
        open_files::allow(topology)?;
        let containers = nodes::check(topology, is_made)?;
        routing::require(topology)?;
        self.engine.as_ref().ok_or(RearrangeError::Ended)?.check_rearrange(topology)?;
        Ok(containers)
    }

    /// Returns a node that cannot change as the topology says, and why.
    fn obstacle<'t>(
        &'t self,
        topology: &'t Topology,
        difference: &Difference,
    ) -> Option<(&'t Node, &'static str)> {
        let all = || topology.nodes.iter().chain(&self.topology.nodes);
        let has_controller = |node: &Node| match &node.kind {
            NodeKind::OpenFlow { controllers, .. } => {
                !(controllers.dial.is_empty() && controllers.listen.is_empty())
            }
            _ => false,
        };
        if let Some(node) = all().find(|node| has_controller(node)) {
            return Some((node, "a lab with controllers of OpenFlow nodes cannot change"));
        }
        let added = || topology.nodes.iter().zip(&difference.nodes).filter(|(_, old)| old.is_none());
        let removed = || difference.nodes_removed.iter().map(|id| self.topology.node(*id));
        for node in added().map(|(node, _)| node).chain(removed()) {
            if let Some(what) = unsupported(node) {
                return Some((node, what));
            }
        }
        // The directories of a host have its name.
        let is_replaced = |node: &Node| {
            let same = |other: &Node| other.name == node.name;
            removed().any(|other| same(other) && (has_directories(other) || has_directories(node)))
        };
        if let Some((node, _)) = added().find(|(node, _)| is_replaced(node)) {
            return Some((node, "its container, private directories or routing daemon cannot be replaced"));
        }
        self.obstacle_of_kept(topology, difference)
    }

    /// Returns a node that stays and cannot change as the topology says, and why.
    fn obstacle_of_kept<'t>(
        &'t self,
        topology: &'t Topology,
        difference: &Difference,
    ) -> Option<(&'t Node, &'static str)> {
        let all = || topology.nodes.iter().chain(&self.topology.nodes);
        let kept = || topology.nodes.iter().zip(0..).zip(&difference.nodes);
        let mut kept = kept().filter_map(|((node, id), old)| Some((node, NodeId(id), (*old)?)));
        let segments = [&self.topology, topology].map(Segments::of);
        let addresses = |node: &Node| -> Vec<_> {
            node.interfaces.iter().map(|interface| interface.addresses.clone()).collect()
        };
        let forwarded = |node: &Node| {
            all().any(|other| match &other.kind {
                NodeKind::Uplink { uplink, .. } => {
                    uplink.forwards.iter().any(|forward| forward.host == node.name)
                }
                _ => false,
            })
        };
        kept.find_map(|(node, id, old)| {
            let before = self.topology.node(old);
            let configs = [
                routing::config(&self.topology, &segments[0], old),
                routing::config(topology, &segments[1], id),
            ];
            if configs[0] != configs[1] {
                return Some((node, "the configuration of its routing daemon cannot change"));
            }
            let is_uplink = matches!(node.kind, NodeKind::Uplink { .. });
            if (is_uplink || forwarded(node)) && addresses(before) != addresses(node) {
                let what = "an uplink, or a host with forwarded ports, cannot get other links or addresses";
                return Some((node, what));
            }
            None
        })
    }

    /// Changes the lab. Returns notices about what could not be removed.
    fn change(
        &mut self,
        topology: Topology,
        difference: &Difference,
        containers: BTreeMap<NodeId, ContainerFiles>,
    ) -> Result<Vec<String>, ApplyError> {
        let former_routes = Routes::compute(&self.topology);
        let former_neighbors = KnownNeighbors::in_topology(&self.topology);
        let scope = self._scope.as_ref().expect("a lab has a scope");
        let (directory, privilege) = (self.claim.directory(), self.privilege);
        let mut maker = NodeMaker::new(&topology, scope, directory, containers, privilege, &self.notice);
        let mut ports: BTreeMap<(NodeId, usize), Box<dyn Port>> = BTreeMap::new();
        let mut made =
            MadeHosts { hosts: Vec::new(), names: Vec::new(), boundary: scope.boundary(), directory };
        // Dropped unless the change succeeds: this undoes what was done.
        let mut adjustments: Vec<Adjustment<'_>> = Vec::new();
        let hosts: BTreeMap<NodeId, &Arc<Host>> = self.hosts.iter().map(|host| (host.node(), host)).collect();
        for (id, node) in topology.hosts().filter(|(id, _)| difference.nodes[id.0 as usize].is_none()) {
            made.names.push(node.name.clone());
            let (host, taps) = maker.host(id)?;
            made.hosts.push(Arc::new(host));
            ports.extend(taps.into_iter().enumerate().map(|(place, tap)| ((id, place), tap)));
        }
        for (id, node) in topology.hosts() {
            let Some(former) = difference.nodes[id.0 as usize] else { continue };
            let host = hosts[&former];
            let old = self.topology.node(former);
            let neighbors = |known: &KnownNeighbors<'_>, id, node: &Node| -> Vec<_> {
                (0..node.interfaces.len()).map(|place| known.of(id, place)).collect()
            };
            let change = HostChange {
                old: (old, former_routes.of(former)),
                new: (node, maker.routes.of(id)),
                old_neighbors: neighbors(&former_neighbors, former, old),
                neighbors: neighbors(&maker.neighbors, id, node),
                stays: kept_interfaces(difference, old, node),
            };
            if change.is_empty() {
                continue;
            }
            if host.namespace.own().is_none() {
                let what = "an attached host cannot get other links or addresses";
                return Err(ApplyError::Unsupported { node: node.name.clone(), what });
            }
            let (adjustment, taps) = Adjustment::begin(&host.namespace, change)?;
            ports.extend(taps.into_iter().map(|(place, tap)| ((id, place), Box::new(tap) as _)));
            adjustments.push(adjustment);
        }
        let of_edges = ports_of_edges(&topology, ports);
        if let Some(programs) = &self.programs {
            routing::start(&topology, programs, &made.hosts)?;
        }
        let engine = self.engine.as_mut().ok_or(RearrangeError::Ended)?;
        engine.rearrange(topology.clone(), of_edges)?;
        let mut notices: Vec<String> = adjustments.into_iter().flat_map(Adjustment::finish).collect();
        let made = made.keep();
        notices.extend(self.settle(topology, difference, made));
        Ok(notices)
    }

    /// Makes the new hosts those of the lab, ends what runs in removed ones, and publishes it.
    fn settle(&mut self, topology: Topology, difference: &Difference, made: Vec<Arc<Host>>) -> Vec<String> {
        let mut notices = Vec::new();
        let mut former: BTreeMap<NodeId, Arc<Host>> =
            std::mem::take(&mut self.hosts).into_iter().map(|host| (host.node(), host)).collect();
        let mut made: BTreeMap<NodeId, Arc<Host>> =
            made.into_iter().map(|host| (host.node(), host)).collect();
        let mut added = Vec::new();
        for (id, node) in topology.hosts() {
            let kept = difference.nodes[id.0 as usize].and_then(|old| former.remove(&old));
            let host = match kept {
                Some(host) => {
                    host.place(id, node);
                    host
                }
                None => {
                    let host = made.remove(&id).expect("it was made");
                    added.push((Arc::clone(&host), node.kind.exec().to_vec()));
                    host
                }
            };
            self.hosts.push(host);
        }
        let programs = self.programs.clone().expect("a lab has programs");
        // The end of removed programs is not reported.
        self.ends = None;
        former.values().for_each(|host| end(host, &programs.boundary));
        for directory in former.values().flat_map(|host| directories(&programs.directory, &host.name)) {
            notices.extend(remove_directory(&directory).err());
        }
        drop(former);
        match EndWatch::start(&self.hosts, self.notice.clone()) {
            Ok(ends) => self.ends = ends,
            Err(error) => notices.push(format!("watching the hosts: {error}")),
        }
        self.topology = topology;
        if let Err(error) = self.publish() {
            notices.push(format!("state of the lab: {error}"));
        }
        let timed = self.topology.commands.iter().filter_map(|command| {
            let host = added.iter().find(|(host, _)| host.node() == command.host)?;
            Some((Arc::clone(&host.0), command.clone()))
        });
        let timed: Vec<_> = timed.collect();
        added.retain(|(_, exec)| !exec.is_empty());
        if let (Some(engine), false) = (&self.engine, added.is_empty() && timed.is_empty()) {
            match Commands::start(programs, added, timed, engine.clock(), self.notice.clone()) {
                Ok(commands) => self.added_commands.push(commands),
                Err(error) => notices.push(format!("exec of added hosts: {error}")),
            }
        }
        notices
    }
}

/// Hosts that were made for a change. Dropping it removes them, with what their programs have
/// started.
struct MadeHosts<'l> {
    hosts: Vec<Arc<Host>>,
    /// The names of these hosts and of one that could not be made.
    names: Vec<String>,
    boundary: &'l Boundary,
    directory: &'l Path,
}

impl MadeHosts<'_> {
    /// Returns them: they stay.
    fn keep(mut self) -> Vec<Arc<Host>> {
        self.names.clear();
        std::mem::take(&mut self.hosts)
    }
}

impl Drop for MadeHosts<'_> {
    fn drop(&mut self) {
        self.hosts.iter().for_each(|host| end(host, self.boundary));
        for directory in self.names.iter().flat_map(|name| directories(self.directory, name)) {
            // What remains is removed with the lab.
            let _ = remove_directory(&directory);
        }
    }
}

/// Ends the processes in a host that the lab made.
fn end(host: &Host, boundary: &Boundary) {
    if let Some(namespace) = host.namespace.own() {
        boundary.end_in(namespace.inode());
    }
}

fn remove_directory(directory: &Path) -> Result<(), String> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("removing {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Returns by interface of a node the place that it had before; `None` for a new one.
fn kept_interfaces(difference: &Difference, old: &Node, new: &Node) -> Vec<Option<usize>> {
    let kept = |interface: &Interface| {
        let link = difference.links[interface.link.0 as usize]?;
        old.interfaces.iter().position(|other| (other.link, other.end) == (link, interface.end))
    };
    new.interfaces.iter().map(kept).collect()
}

/// Returns new ports, given by node and interface, by edge.
fn ports_of_edges(topology: &Topology, mut ports: BTreeMap<(NodeId, usize), Box<dyn Port>>) -> EdgePorts {
    let places = topology.hosts().flat_map(|(id, node)| (0..node.interfaces.len()).map(move |i| (id, i)));
    let edges = (0..).map(EdgeId).zip(places);
    edges.filter_map(|(edge, place)| Some((edge, ports.remove(&place)?))).collect()
}

/// Whether the lab has files of the host that have its name.
fn has_directories(node: &Node) -> bool {
    let has_files = |host: &HostSettings| host.origin.is_container() || !host.private.is_empty();
    node.kind.daemon().is_some() || node.kind.host_settings().is_some_and(has_files)
}

/// Returns why a node cannot come or go while a lab runs.
fn unsupported(node: &Node) -> Option<&'static str> {
    match &node.kind {
        NodeKind::Host { kind: HostKind::Port(_), .. } => {
            Some("an interface of this machine cannot be added or removed")
        }
        NodeKind::Uplink { .. } => Some("an uplink cannot be added or removed"),
        kind if kind.is_attached() => Some("an attached host cannot be added or removed"),
        _ => None,
    }
}
