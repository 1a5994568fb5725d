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
use crate::attach::Configuration;
use crate::host::container::ContainerFiles;
use crate::host::host_namespace::HostNamespace;
use crate::host::neighbors::KnownNeighbors;
use crate::host::nodes::{self, NodeMaker, directories};
use crate::host::{Host, HostError};
use crate::lab::{Lab, UpError, up_if_down};
use crate::limits::open_files;
use crate::limits::{self, NotEnough};
use crate::programs::commands::Commands;
use crate::programs::ended::EndWatch;
use crate::programs::scope::Boundary;
use crate::routing::{self, DaemonError};
use crate::uplink::{ForwardedPorts, Uplink, UplinkError, UplinkParts};
use fastpath_engine::control::{Applied, ApplyRequest};
use fastpath_engine::port::Port;
use fastpath_engine::{AttachError, EdgePorts, RearrangeError};
use fastpath_net::{Difference, EdgeId, Routes};
use fastpath_spec::mistake::several;
use fastpath_spec::segment::Segments;
use fastpath_spec::{
    Description, Files, HostSettings, Interface, Node, NodeId, NodeKind, Topology, resolve_in_place_of,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Ports by node and interface.
type PortsByPlace = BTreeMap<(NodeId, usize), Box<dyn Port>>;

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
    /// An uplink did not come up.
    #[error(transparent)]
    Uplink(#[from] UplinkError),
    /// An interface of this machine cannot be used.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An interface of this machine is down.
    #[error(transparent)]
    Port(#[from] UpError),
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
        let ports = |node: &Node| match &node.kind {
            NodeKind::Uplink { uplink, .. } => uplink.forwards.iter().map(|forward| forward.listen).collect(),
            _ => Vec::new(),
        };
        let held: Vec<_> = removed().flat_map(ports).collect();
        if let Some((node, _)) = added().find(|(node, _)| ports(node).iter().any(|port| held.contains(port)))
        {
            return Some((node, "a forwarded port of this machine cannot change its uplink or host"));
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
        let kept = || topology.nodes.iter().zip(0..).zip(&difference.nodes);
        let mut kept = kept().filter_map(|((node, id), old)| Some((node, NodeId(id), (*old)?)));
        let segments = [&self.topology, topology].map(Segments::of);
        let addresses = |node: &Node| -> Vec<_> {
            node.interfaces.iter().map(|interface| interface.addresses.clone()).collect()
        };
        let stays = |id: usize| difference.nodes[id].is_some();
        let forwarded = |node: &Node| {
            topology.nodes.iter().enumerate().any(|(id, other)| match &other.kind {
                NodeKind::Uplink { uplink, .. } if stays(id) => {
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
        let (former_routes, former_neighbors) =
            (Routes::compute(&self.topology), KnownNeighbors::in_topology(&self.topology));
        let scope = self._scope.as_ref().expect("a lab has a scope");
        let (directory, privilege) = (self.claim.directory(), self.privilege);
        let mut ports = self.ports(&topology, difference)?;
        let told = (&self.detached, &self.notice);
        let mut maker = NodeMaker::new(&topology, scope, directory, containers, privilege, told);
        maker.attached = self.attached_inodes(difference);
        let mut made =
            MadeHosts { hosts: Vec::new(), names: Vec::new(), boundary: scope.boundary(), directory };
        // Dropped unless the change succeeds: this undoes what was done.
        let uplinks = make_hosts(&mut maker, difference, &mut made, &mut ports)?;
        let kept = kept_hosts((&self.hosts[..], &self.topology), &topology, difference);
        let sides = [(&former_routes, &former_neighbors), (&maker.routes, &maker.neighbors)];
        let changes: Vec<HostChange<'_>> = kept.iter().map(|kept| kept.change(sides)).collect();
        let reconfigured = reconfigured(&kept, &changes, &topology)?;
        let mut adjustments: Vec<Adjustment<'_>> = Vec::new();
        for (kept, change) in kept.iter().zip(changes) {
            // What a detached host gets, it gets when it is attached again.
            if change.is_empty() || !kept.host.is_there() {
                continue;
            }
            let (adjustment, taps) = Adjustment::begin(&kept.host.namespace, change)?;
            ports.extend(taps.into_iter().map(|(place, tap)| ((kept.id, place), Box::new(tap) as _)));
            adjustments.push(adjustment);
        }
        let of_edges = ports_of_edges(&topology, ports);
        if let Some(programs) = &self.programs {
            routing::start(&topology, programs, &made.hosts)?;
        }
        let engine = self.engine.as_mut().ok_or(RearrangeError::Ended)?;
        engine.rearrange(topology.clone(), of_edges)?;
        let mut notices: Vec<String> = adjustments.into_iter().flat_map(Adjustment::finish).collect();
        for (host, configuration) in reconfigured {
            if let Some(watch) = self.attached.get(&host.name) {
                watch.change(configuration);
            }
        }
        let (made, watches) = (made.keep(), maker.watches);
        let removed = &difference.nodes_removed;
        let stays = |name: &String| self.topology.node_named(name).is_none_or(|id| !removed.contains(&id));
        self.uplinks.retain(|name, _| stays(name));
        self.uplinks.extend(uplinks);
        self.attached.retain(|name, _| stays(name));
        self.attached.extend(watches);
        notices.extend(self.settle(topology, difference, made));
        Ok(notices)
    }

    /// Opens the interfaces of this machine that the lab uses from now on, and those whose link is
    /// another.
    fn ports(&self, topology: &Topology, difference: &Difference) -> Result<PortsByPlace, ApplyError> {
        let is_new = |id: NodeId| {
            let kept = difference.nodes[id.0 as usize];
            let stays =
                kept.map(|old| kept_interfaces(difference, self.topology.node(old), topology.node(id)));
            stays.is_none_or(|stays| stays.contains(&None))
        };
        let mut ports = PortsByPlace::new();
        for (id, port) in fastpath_engine::attach_named(topology, is_new, &self.notice)? {
            up_if_down(&*port, &self.notice)?;
            ports.insert((id, 0), port);
        }
        Ok(ports)
    }

    /// Returns the attached hosts that stay, by the inodes of their namespaces.
    fn attached_inodes(&self, difference: &Difference) -> BTreeMap<u64, String> {
        let stays = |host: &&Arc<Host>| !difference.nodes_removed.contains(&host.node());
        let inode = |host: &Arc<Host>| match &host.namespace {
            HostNamespace::Attached(there) => {
                Some((fs::metadata(there.place()?).ok()?.ino(), host.name.clone()))
            }
            HostNamespace::Own(_) => None,
        };
        self.hosts.iter().filter(stays).filter_map(inode).collect()
    }

    /// Makes the new hosts those of the lab, ends what runs in removed ones, and publishes it.
    fn settle(&mut self, topology: Topology, difference: &Difference, made: Vec<Arc<Host>>) -> Vec<String> {
        let mut notices = Vec::new();
        let mut former: BTreeMap<NodeId, Arc<Host>> =
            std::mem::take(&mut self.hosts).into_iter().map(|host| (host.node(), host)).collect();
        let mut made: BTreeMap<NodeId, Arc<Host>> =
            made.into_iter().map(|host| (host.node(), host)).collect();
        let mut added = Vec::new();
        for (id, node) in topology.hosts().filter(|(_, node)| node.kind.port_name().is_none()) {
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

/// A host that stays.
struct KeptHost<'l> {
    /// Its number in the new topology.
    id: NodeId,
    host: &'l Arc<Host>,
    /// Before and after, with the names that its interfaces have in its namespace.
    old: Node,
    new: Node,
    /// By new interface: the former number of one that stays.
    stays: Vec<Option<usize>>,
}

impl KeptHost<'_> {
    /// Returns its change, from the routes and neighbours before and after.
    fn change<'c>(&'c self, sides: [(&'c Routes, &KnownNeighbors<'_>); 2]) -> HostChange<'c> {
        let [(old_routes, old_known), (routes, known)] = sides;
        let former = self.host.node();
        let neighbors = |known: &KnownNeighbors<'_>, id, node: &Node| -> Vec<_> {
            (0..node.interfaces.len()).map(|place| known.of(id, place)).collect()
        };
        HostChange {
            old: (&self.old, old_routes.of(former)),
            new: (&self.new, routes.of(self.id)),
            old_neighbors: neighbors(old_known, former, &self.old),
            neighbors: neighbors(known, self.id, &self.new),
            stays: self.stays.clone(),
        }
    }
}

/// Returns the hosts that stay, in the order of the new topology.
fn kept_hosts<'l>(
    (hosts, old): (&'l [Arc<Host>], &Topology),
    topology: &Topology,
    difference: &Difference,
) -> Vec<KeptHost<'l>> {
    let hosts: BTreeMap<NodeId, &'l Arc<Host>> = hosts.iter().map(|host| (host.node(), host)).collect();
    let kept = |(id, node): (NodeId, &Node)| {
        // An interface of this machine is not a host of the lab.
        let host = *hosts.get(&difference.nodes[id.0 as usize]?)?;
        let old = old.node(host.node());
        let stays = kept_interfaces(difference, old, node);
        let new = as_there(host, node, |place| stays[place]);
        Some(KeptHost { id, host, old: as_there(host, old, Some), new, stays })
    };
    topology.hosts().filter_map(kept).collect()
}

/// Makes the hosts that are new, with their ports, and joins the uplinks among them.
fn make_hosts(
    maker: &mut NodeMaker<'_>,
    difference: &Difference,
    made: &mut MadeHosts<'_>,
    ports: &mut PortsByPlace,
) -> Result<BTreeMap<String, Uplink>, ApplyError> {
    let topology = maker.topology;
    let added = || {
        let new = topology.nodes.iter().zip((0..).map(NodeId));
        new.filter(move |(_, id)| difference.nodes[id.0 as usize].is_none())
    };
    let mut forwarded = ForwardedPorts::bind(added().map(|(node, _)| node))?;
    let mut uplinks = BTreeMap::new();
    for (node, id) in added().filter(|(node, _)| node.kind.is_edge() && node.kind.port_name().is_none()) {
        made.names.push(node.name.clone());
        let (host, taps) = maker.host(id)?;
        let host = Arc::new(host);
        made.hosts.push(Arc::clone(&host));
        if matches!(node.kind, NodeKind::Uplink { .. }) {
            let (directory, boundary, notice) = (maker.directory, maker.scope.boundary(), maker.notice);
            let parts = UplinkParts { host: &host, topology, directory, boundary, notice };
            uplinks.insert(node.name.clone(), Uplink::up(&parts, &mut forwarded)?);
        }
        ports.extend(taps.into_iter().enumerate().map(|(place, tap)| ((id, place), tap)));
    }
    Ok(uplinks)
}

/// Returns what attached hosts get when they are attached again.
fn reconfigured<'k>(
    kept: &[KeptHost<'k>],
    changes: &[HostChange<'_>],
    topology: &Topology,
) -> Result<Vec<(&'k Arc<Host>, Configuration)>, ApplyError> {
    let mut all = Vec::new();
    for (kept, change) in kept.iter().zip(changes).filter(|(kept, _)| kept.host.namespace.own().is_none()) {
        if !change.keeps_interfaces() {
            let what = "an attached host cannot get other links or addresses";
            return Err(ApplyError::Unsupported { node: kept.new.name.clone(), what });
        }
        let (node, routes) = (topology.node(kept.id).clone(), change.new.1.to_vec());
        all.push((kept.host, Configuration { node, routes, neighbors: change.neighbors.clone() }));
    }
    Ok(all)
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

/// Returns a node with the names that its interfaces have in the namespace of an attached host.
/// `former` returns the number that an interface had.
fn as_there(host: &Host, node: &Node, former: impl Fn(usize) -> Option<usize>) -> Node {
    let mut node = node.clone();
    if let HostNamespace::Attached(there) = &host.namespace {
        let names = there.names();
        for (place, interface) in node.interfaces.iter_mut().enumerate() {
            if let Some(name) = former(place).and_then(|former| names.get(&former)) {
                interface.name.clone_from(name);
            }
        }
    }
    node
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
fn ports_of_edges(topology: &Topology, mut ports: PortsByPlace) -> EdgePorts {
    let places = topology.hosts().flat_map(|(id, node)| (0..node.interfaces.len()).map(move |i| (id, i)));
    let edges = (0..).map(EdgeId).zip(places);
    edges.filter_map(|(edge, place)| Some((edge, ports.remove(&place)?))).collect()
}

/// Whether the lab has files of the host that have its name.
fn has_directories(node: &Node) -> bool {
    let has_files = |host: &HostSettings| host.origin.is_container() || !host.private.is_empty();
    node.kind.daemon().is_some() || node.kind.host_settings().is_some_and(has_files)
}
