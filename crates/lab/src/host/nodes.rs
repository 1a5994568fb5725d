//! Brings the nodes of a lab up, one after the other.

use crate::attach::{AttachWatch, Attachment, Configuration, DetachedHosts};
use crate::host::container::{self, ContainerFiles};
use crate::host::first::Inside;
use crate::host::host_namespace::HostNamespace;
use crate::host::mounts::{Placed, View};
use crate::host::neighbors::KnownNeighbors;
use crate::host::{Host, HostError, HostParts, tap_end};
use crate::kernel::namespace::Privilege;
use crate::kernel::netlink::Netlink;
use crate::kernel_path::{LabEnd, PathMaker};
use crate::programs::process::ProcessId;
use crate::programs::scope::Scope;
use crate::routing;
use crate::state::lab_files::{CONTAINERS, HOSTS, PRIVATE, PROC, RESOLV_CONF, ROUTERS};
use fastpath_engine::Notice;
use fastpath_engine::port::Port;
use fastpath_net::Routes;
use fastpath_spec::{Attach, HostOrigin, HostSettings, Node, NodeId, Topology};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;

/// What is needed to bring nodes of one lab up.
pub(crate) struct NodeMaker<'l> {
    pub(crate) topology: &'l Topology,
    pub(crate) scope: &'l Scope,
    /// The directory of the lab's state.
    pub(crate) directory: &'l Path,
    pub(crate) privilege: Privilege,
    pub(crate) notice: &'l Notice,
    /// The files of the hosts that are containers.
    containers: BTreeMap<NodeId, ContainerFiles>,
    pub(crate) routes: Routes,
    pub(crate) neighbors: KnownNeighbors<'l>,
    /// The attached host of each namespace, by its inode.
    pub(crate) attached: BTreeMap<u64, String>,
    detached: &'l Arc<DetachedHosts>,
    /// Makes the interfaces on the kernel's data path; `None` if there are none.
    pub(crate) paths: Option<&'l PathMaker>,
    /// What attaches hosts again, by their names.
    pub(crate) watches: BTreeMap<String, AttachWatch>,
}

impl<'l> NodeMaker<'l> {
    pub(crate) fn new(
        topology: &'l Topology,
        scope: &'l Scope,
        directory: &'l Path,
        containers: BTreeMap<NodeId, ContainerFiles>,
        privilege: Privilege,
        (detached, notice): (&'l Arc<DetachedHosts>, &'l Notice),
    ) -> NodeMaker<'l> {
        NodeMaker {
            topology,
            containers,
            scope,
            directory,
            privilege,
            notice,
            routes: Routes::compute(topology),
            neighbors: KnownNeighbors::in_topology(topology),
            attached: BTreeMap::new(),
            detached,
            paths: None,
            watches: BTreeMap::new(),
        }
    }

    /// Brings a host up. Returns it with its ports in the order of its interfaces.
    pub(crate) fn host(&mut self, id: NodeId) -> Result<(Host, Vec<Box<dyn Port>>), HostError> {
        let node = self.topology.node(id);
        let settings = settings(node);
        if let HostOrigin::Attached(attach) = &settings.origin {
            return self.attached_host(id, node, attach);
        }
        let make = |place: usize, netlink: &mut Netlink| {
            Ok(match self.paths.filter(|paths| paths.has(id, place)) {
                Some(paths) => LabEnd::Veth(paths.end((id, place), node, netlink)?),
                None => LabEnd::Tap(tap_end(node, &node.interfaces[place])?),
            })
        };
        let (mut host, ends) = Host::with_ends((id, node), self.routes.of(id), &self.neighbors, &make)?;
        let ports = ends.into_iter().map(LabEnd::into_port).collect();
        host.env.clone_from(&settings.env);
        let files = |source| HostError::Files { host: node.name.clone(), source };
        let view = self.view(node).map_err(files)?;
        if let Some(files) = self.containers.get(&id) {
            let failed = |source| HostError::Container { host: node.name.clone(), source };
            let directory = self.directory.join(CONTAINERS).join(&node.name);
            let work = |prepare: &dyn Fn(&mut Command) -> io::Result<()>| {
                DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
                let log = self.directory.join(format!("{}.log", node.name));
                container::start(node, files, &view, (&directory, &log), self.privilege, prepare)
            };
            let started = self.scope.within(&host.namespace, work).and_then(|started| {
                let first = self.scope.first_process(started.pid)?;
                Ok((started, first))
            });
            // A lab that goes on without the host has none of its processes.
            let (started, first) = started.inspect_err(|_| self.end(&host)).map_err(failed)?;
            host.inside = Inside::Container(first);
            host.env = files.variables();
            host._input = started.input;
            return Ok((host, ports));
        }
        host.inside = Inside::View(view);
        if settings.pid_namespace {
            let first = self.scope.start_first(&host.namespace, &host.inside, &self.directory.join(PROC));
            let started = first.and_then(|first| {
                let pid = i32::try_from(first.id()).map_err(io::Error::other);
                host.first = Some(first);
                ProcessId::of(pid?)
            });
            let process = started.map_err(|source| HostError::First { host: node.name.clone(), source })?;
            host.inside = Inside::Process(process);
        }
        Ok((host, ports))
    }

    fn attached_host(
        &mut self,
        id: NodeId,
        node: &Node,
        attach: &Attach,
    ) -> Result<(Host, Vec<Box<dyn Port>>), HostError> {
        let name = || node.name.clone();
        if self.privilege != Privilege::Own {
            return Err(HostError::AttachNeedsRoot { host: name() });
        }
        let found = crate::attach::find(attach);
        let found = found.map_err(|source| HostError::NoNamespace { host: name(), source })?;
        let inode = fs::metadata(found.path).map(|file| file.ino()).unwrap_or_default();
        if let Some(other) = self.attached.insert(inode, name()) {
            return Err(HostError::SameNamespace { hosts: [other, name()] });
        }
        let neighbors = (0..node.interfaces.len()).map(|place| self.neighbors.of(id, place)).collect();
        let configuration =
            Configuration { node: node.clone(), routes: self.routes.of(id).to_vec(), neighbors };
        let (events, received) = mpsc::channel();
        let (attachment, ports, renamed) = Attachment::new(attach, configuration, &events)?;
        for (wanted, name) in renamed {
            let host = &node.name;
            self.notice
                .send(&format!("host {host}: {attach} has an {wanted}: the interface is {name} there"));
        }
        let view = self.view(node).map_err(|source| HostError::Files { host: name(), source })?;
        let namespace = HostNamespace::Attached(attachment.namespace.clone());
        let parts = HostParts { namespace, inside: Inside::View(view), env: settings(node).env };
        let host = Host::of(name(), parts);
        host.place(id, node);
        let watch = AttachWatch::start(
            attachment,
            (events, received),
            Arc::clone(self.detached),
            self.notice.clone(),
        );
        self.watches.insert(name(), watch);
        Ok((host, ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect()))
    }

    /// Ends the processes of a host.
    fn end(&self, host: &Host) {
        if let Some(namespace) = host.namespace.own() {
            self.scope.boundary().end_in(namespace.inode());
        }
    }

    /// Returns what the programs of a host see, and makes its directories.
    fn view(&self, node: &Node) -> io::Result<View> {
        let placed = |source: PathBuf, target: &str, is_read_only| Placed {
            source,
            target: target.into(),
            is_read_only,
        };
        let settings = settings(node);
        let mut places = Vec::new();
        for (file, target) in [(HOSTS, "/etc/hosts"), (RESOLV_CONF, "/etc/resolv.conf")] {
            // A file that the machine does not have cannot be covered.
            if Path::new(target).exists() || settings.origin.is_container() {
                places.push(placed(self.directory.join(file), target, false));
            }
        }
        for (number, target) in settings.private.iter().enumerate() {
            let source = self.directory.join(PRIVATE).join(&node.name).join(number.to_string());
            // The directory of the lab is closed to others. This one is as the machine's usually
            // are, and daemons with a user of their own may enter it.
            DirBuilder::new().recursive(true).mode(0o755).create(&source)?;
            places.push(placed(source, target, false));
        }
        places.extend(routing::places(self.directory, node)?);
        let binds = settings.binds.iter();
        places.extend(binds.map(|bind| placed((&bind.source).into(), &bind.target, bind.is_read_only)));
        Ok(View { hostname: Some(node.name.clone()), places, keeps_proc: settings.pid_namespace })
    }
}

/// Returns where the programs of a node run. Those of an uplink see the files of the machine.
fn settings(node: &Node) -> HostSettings {
    node.kind.host_settings().cloned().unwrap_or_default()
}

/// Returns the directories of a host below that of the lab.
pub(crate) fn directories<'h>(directory: &'h Path, host: &'h str) -> impl Iterator<Item = PathBuf> + 'h {
    [CONTAINERS, PRIVATE, ROUTERS].into_iter().map(move |kind| directory.join(kind).join(host))
}

/// Checks what the hosts that are `wanted` need of this machine, before anything is made. Returns
/// the files of those that are containers.
///
/// # Errors
/// The first thing that is missing.
pub(crate) fn check(
    topology: &Topology,
    wanted: impl Fn(NodeId) -> bool,
) -> Result<BTreeMap<NodeId, ContainerFiles>, HostError> {
    let mut containers = BTreeMap::new();
    for (id, node) in topology.hosts().filter(|(id, _)| wanted(*id)) {
        let Some(settings) = node.kind.host_settings() else { continue };
        let missing = |key, what: String, instead| {
            Err(HostError::Missing { host: node.name.clone(), key, what, instead })
        };
        match container::find(settings) {
            Ok(files) => containers.extend(files.map(|files| (id, files))),
            Err((key, what, instead)) => return missing(key, what, instead),
        }
        if let HostOrigin::Attached(attach) = &settings.origin {
            crate::attach::find(attach)
                .map_err(|source| HostError::NoNamespace { host: node.name.clone(), source })?;
        }
        for bind in &settings.binds {
            if !Path::new(&bind.source).exists() {
                let what = format!("{} does not exist", bind.source);
                return missing("binds", what, "write a path of this machine before the ':'".to_owned());
            }
        }
        // A container gets the directories that it does not have.
        if settings.origin.is_container() {
            continue;
        }
        for target in &settings.private {
            if !Path::new(target).is_dir() {
                let what = format!("this machine has no directory {target}");
                return missing("private", what, format!("make it once with `mkdir -p {target}`"));
            }
        }
        for bind in &settings.binds {
            let [source, target] = [&bind.source, &bind.target].map(Path::new);
            if !target.exists() || source.is_dir() != target.is_dir() {
                let kind = if source.is_dir() { "directory" } else { "file" };
                let what = format!("this machine has no {kind} {} to cover", bind.target);
                return missing("binds", what, "make it once, or write image or rootfs".to_owned());
            }
        }
    }
    Ok(containers)
}
