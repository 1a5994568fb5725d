//! The kernel's data path of a lab: links and switches that hold no frame, in a namespace of their
//! own. `fastpath_net::data_path` says which, `fastpath_bpf` runs them.
//!
//! ```text
//!  host a               the path's namespace                 host b
//!  eth0 ══ veth ══ v0 ──▶ program ──▶ redirect ──▶ v1 ══ veth ══ eth0
//!                          │  ▲ moved to user space
//!                          ▼  │
//!                          t0 (TAP) ══ engine
//! ```
//!
//! A bare link between two hosts is such a path too, not one veth pair between them: so it counts
//! frames, can move to user space, and shows hosts nothing of that. It costs about 0.1 µs.

mod end;
mod probe;
mod watch;

pub(crate) use end::{LabEnd, VethEnd};
pub use probe::KernelFacilities;
pub(crate) use watch::PathWatch;
use watch::WatchedEnd;

use crate::host::{HostError, failed};
use crate::kernel::namespace::{Namespace, Privilege};
use crate::kernel::netlink::{LinkParameters, Netlink};
use fastpath_engine::bpf::{KernelPath, PathError, PathPort, PathSpec, Towards};
use fastpath_engine::port::TapPort;
use fastpath_engine::{DataPathChoice, DataPaths, KernelLink, KernelLinks, Notice, Options};
use fastpath_link::instant::InstantSpec;
use fastpath_net::data_path::{DataPath, DataPathNeeds, DataPathPlan};
use fastpath_spec::{LinkId, Node, NodeId, NodeKind, Topology};
use fastpath_sys::interface;
use fastpath_units::Rng;
use nix::net::if_::if_nametoindex;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Why there is no kernel path that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataPathError {
    /// It needs more than this process has.
    #[error("--data-path kernel: {why}: write --data-path auto, or user")]
    NotHere {
        /// What is missing.
        why: String,
    },
    /// No link can run in the kernel.
    #[error("--data-path kernel: no link can run in the kernel ({why}): write --data-path auto, or user")]
    Nothing {
        /// The reason of the first link.
        why: String,
    },
    /// The kernel refused a step.
    #[error("the kernel's data path: {what}: {source}; write --data-path user")]
    System {
        /// The step.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// The path did not load, which a trial did.
    #[error("the kernel's data path: {0}; write --data-path user")]
    Path(#[from] PathError),
}

/// The largest MTU of a veth pair and of a TAP: what is longer than the other end takes is for the
/// program to see.
const MTU_MAX: u32 = 65_521;

/// Makes the interfaces of a path, then the path.
#[derive(Debug)]
pub(crate) struct PathMaker {
    namespace: Arc<Namespace>,
    plan: DataPathPlan,
    /// What was made for each interface of a host.
    made: Mutex<BTreeMap<(NodeId, usize), MadeEnd>>,
    /// By node and interface of a switch: whether it forwards.
    forwarding: Vec<Vec<bool>>,
    topology: Topology,
}

/// What was made for an interface of a host.
#[derive(Debug)]
struct MadeEnd {
    /// The index of its peer, and of its TAP.
    peer: u32,
    tap: u32,
    /// Whether the interface is down or gone.
    is_down: Arc<AtomicBool>,
}

/// What the kernel has of a lab.
#[derive(Debug, Default)]
pub(crate) struct LabPaths {
    pub(crate) maker: Option<PathMaker>,
    /// By link that runs in the engine: why.
    reasons: BTreeMap<String, String>,
}

impl LabPaths {
    /// Decides where the links of a lab run, and prepares the path of those in the kernel.
    pub(crate) fn prepare(
        topology: &Topology,
        options: &Options,
        privilege: Privilege,
    ) -> Result<LabPaths, DataPathError> {
        let needs = DataPathNeeds {
            choice: options.data_path,
            has_flows: options.records_flows,
            has_log: options.packet_log.is_some(),
        };
        let mut plan = DataPathPlan::of(topology, needs);
        let is_asked_for = options.data_path == DataPathChoice::Kernel;
        let mut maker = None;
        if plan.has_kernel() {
            match PathMaker::new(topology, plan.clone(), privilege, needs.has_log) {
                Ok(made) => maker = Some(made),
                Err(why) if is_asked_for => return Err(DataPathError::NotHere { why }),
                Err(why) => {
                    options.notice.send(&format!("all links run in user space: {why}"));
                    plan = DataPathPlan::all_user(topology, why);
                }
            }
        } else if is_asked_for {
            let reason = plan.links.iter().find_map(|path| match path {
                DataPath::User(reason) => Some(reason.clone()),
                DataPath::Kernel(_) => None,
            });
            let why = reason.unwrap_or_else(|| "there are no links".to_owned());
            return Err(DataPathError::Nothing { why });
        }
        let reasons = topology.links.iter().zip(&plan.links).filter_map(|(link, path)| match path {
            DataPath::User(reason) => Some((link.name.clone(), reason.clone())),
            DataPath::Kernel(_) => None,
        });
        Ok(LabPaths { reasons: reasons.collect(), maker })
    }

    /// Starts the path, once all interfaces are made.
    pub(crate) fn start(
        self,
        topology: &Topology,
        options: &Options,
    ) -> Result<(Arc<DataPaths>, Option<PathWatch>), DataPathError> {
        let (seed, notice) = (options.network.seed, options.notice.clone());
        let LabPaths { maker, reasons } = self;
        let has_log = options.packet_log.is_some();
        let kernel = maker.as_ref().map(|maker| maker.links(seed, has_log)).transpose()?;
        let paths = DataPaths::new(topology, kernel, reasons, notice.clone());
        let paths = Arc::new(paths.map_err(system("mapping its log"))?);
        let watch = maker.map(|maker| maker.watch(&paths, notice)).transpose()?;
        Ok((paths, watch))
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> DataPathError {
    move |source| DataPathError::System { what, source }
}

impl PathMaker {
    /// Prepares a path. The error says why this machine has none.
    fn new(
        topology: &Topology,
        plan: DataPathPlan,
        privilege: Privilege,
        has_log: bool,
    ) -> Result<PathMaker, String> {
        if privilege != Privilege::Own {
            return Err("the kernel's data path needs root (CAP_BPF and CAP_NET_ADMIN)".to_owned());
        }
        let namespace = Namespace::new().map_err(|error| error.to_string())?;
        let settled = namespace.within(|| {
            // Interfaces of the path have no addresses and send nothing of their own.
            for place in ["all", "default"] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{place}/disable_ipv6"), "1");
            }
        });
        settled.map_err(|error| error.to_string())?;
        // With as much memory as the path will take.
        let links = plan.islands.iter().map(|island| island.links.len() as u32).sum();
        let switches = plan.islands.iter().map(|island| island.switches.len() as u32).sum();
        try_path((links, switches), plan.splits_segments, has_log).map_err(|error| error.to_string())?;
        Ok(PathMaker {
            namespace: Arc::new(namespace),
            plan,
            made: Mutex::default(),
            forwarding: DataPathPlan::forwarding(topology),
            topology: topology.clone(),
        })
    }

    /// Whether an interface of a host is on the path.
    pub(crate) fn has(&self, node: NodeId, place: usize) -> bool {
        let link = self.topology.node(node).interfaces[place].link;
        matches!(self.plan.links[link.0 as usize], DataPath::Kernel(_))
    }

    /// Makes an interface of a host on the path, in the namespace of the thread, down.
    pub(crate) fn end(
        &self,
        (id, place): (NodeId, usize),
        node: &Node,
        netlink: &mut Netlink,
    ) -> Result<VethEnd, HostError> {
        let own = &node.interfaces[place];
        let number = 2 * own.link.0 + own.end as u32;
        let (peer, tap) = (format!("v{number}"), format!("t{number}"));
        let what = || "making its veth pair".to_owned();
        netlink.add_veth(&own.name, &peer, self.namespace.as_fd()).map_err(failed(node, &own.name, what))?;
        if self.plan.splits_segments {
            let single =
                interface::any_socket().and_then(|any| interface::send_single_frames(any.as_fd(), &own.name));
            single.map_err(failed(node, &own.name, || "turning super-packets off".to_owned()))?;
        }
        let there = self.namespace.within(|| -> Result<(TapPort, [u32; 2]), HostError> {
            let opened = TapPort::open(&tap).and_then(|port| port.leave_to_namespace().map(|()| port));
            let port = opened.map_err(|source| HostError::Tap { host: node.name.clone(), source })?;
            let set_up = || -> io::Result<[u32; 2]> {
                let indices = [if_nametoindex(peer.as_str())?, if_nametoindex(tap.as_str())?];
                let mut netlink = Netlink::open()?;
                let long = LinkParameters { mac: None, mtu: Some(MTU_MAX) };
                // The interface has a carrier from the start, as a TAP has: without one the host
                // would forget its neighbours. A TAP that is up takes what is redirected to it.
                indices.into_iter().try_for_each(|index| netlink.bring_up(index, long))?;
                Ok(indices)
            };
            let indices = set_up();
            Ok((port, indices.map_err(failed(node, &own.name, || "setting its peer up".to_owned()))?))
        });
        let joined = there.map_err(failed(node, &own.name, || "joining the path".to_owned()));
        let (port, [peer, tap]) = joined??;
        let is_down = Arc::new(AtomicBool::new(false));
        let end = VethEnd::new(port, (&own.name, peer), &self.namespace, Arc::clone(&is_down));
        let made = MadeEnd { peer, tap, is_down };
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert((id, place), made);
        Ok(end)
    }

    /// Loads the path and attaches it.
    fn links(&self, seed: u64, has_log: bool) -> Result<KernelLinks, DataPathError> {
        let joined = self.namespace.within(|| -> Result<KernelLinks, DataPathError> {
            let mut netlink = Netlink::open().map_err(system("opening netlink"))?;
            let parts = self.parts(&mut netlink, (seed, has_log))?;
            let PathParts { spec, links, switches } = parts;
            let path = KernelPath::load(&spec)?;
            for interface in spec.interfaces() {
                let attached = netlink.attach_ingress(interface, path.as_fd());
                attached.map_err(system("attaching its program (clsact, bpf)"))?;
            }
            Ok(KernelLinks { path, links, switches })
        });
        joined.map_err(system("joining its namespace"))?
    }

    /// Describes the path, and makes the veth pairs between its switches.
    fn parts(&self, netlink: &mut Netlink, (seed, has_log): (u64, bool)) -> Result<PathParts, DataPathError> {
        let topology = &self.topology;
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = PathParts::default();
        parts.spec.has_log = has_log;
        parts.spec.has_laws = self.plan.splits_segments;
        let mut numbers: BTreeMap<NodeId, u32> = BTreeMap::new();
        for (island, id) in self
            .plan
            .islands
            .iter()
            .enumerate()
            .flat_map(|(island, part)| part.links.iter().map(move |link| (island, *link)))
        {
            let link = topology.link(id);
            let is_edge = link.ends.map(|(node, _)| topology.node(node).kind.is_edge());
            let interfaces = match is_edge {
                [false, false] => self.trunk(id, netlink)?,
                _ => [0, 1].map(|end| made.get(&link.ends[end]).map_or(0, |made| made.peer)),
            };
            let pipes = [0, 1].map(|end| 2 * id.0 + end);
            for (end, number) in [(0usize, pipes[0]), (1, pipes[1])] {
                let law = InstantSpec::of(&link.pipes[end]).expect("the plan has looked at it");
                // As the generators of the engine's network.
                let rng = Rng::stream(seed, 2 * u64::from(link.stream) + end as u64);
                parts.spec.pipes.insert(number, (law, rng));
            }
            let ends = LinkEnds { id, pipes, interfaces, is_edge };
            let ports = [0, 1].into_iter().filter_map(|end| self.port(&ends, end, &made, &mut numbers));
            parts.spec.ports.extend(ports);
            parts.links.insert(link.name.clone(), KernelLink { pipes, island, interfaces, is_edge });
        }
        parts.spec.switches = numbers.len() as u32;
        let names = numbers.into_iter().map(|(id, number)| (topology.node(id).name.clone(), number));
        parts.switches = names.collect();
        Ok(parts)
    }

    /// Describes the interface at one end of a link; `None` at the switch of a host, whose end of
    /// the link is the host's. `numbers` has those of the switches so far.
    fn port(
        &self,
        link: &LinkEnds,
        end: usize,
        made: &BTreeMap<(NodeId, usize), MadeEnd>,
        numbers: &mut BTreeMap<NodeId, u32>,
    ) -> Option<PathPort> {
        let LinkEnds { id, pipes, interfaces, is_edge } = *link;
        let ends = self.topology.link(id).ends;
        if !is_edge[end] && is_edge[1 - end] {
            return None;
        }
        // The node that frames from this interface come to: across the link from a host, at this
        // end from another switch.
        let (node, place) = if is_edge[end] { ends[1 - end] } else { ends[end] };
        let is_switch = matches!(self.topology.node(node).kind, NodeKind::Switch);
        let next = numbers.len() as u32;
        let towards = match is_switch {
            true => Towards::Switch(*numbers.entry(node).or_insert(next)),
            false => Towards::Wire(interfaces[1 - end]),
        };
        let (host, host_place) = ends[end];
        let mac = self.topology.node(host).interfaces[host_place].mac;
        Some(PathPort {
            interface: interfaces[end],
            towards,
            pipe_in: is_edge[end].then_some(pipes[end]),
            pipe_out: pipes[if is_edge[end] { 1 - end } else { end }],
            is_far: is_edge[end],
            address: mac.filter(|_| is_edge[end]).map(|mac| mac.0),
            is_blocked: is_switch && !self.forwarding[node.0 as usize][place],
            tap: made.get(&ends[end]).map(|made| made.tap),
        })
    }

    /// Makes the veth pair between two switches, in the namespace of the thread. Returns its ends.
    fn trunk(&self, link: LinkId, netlink: &mut Netlink) -> Result<[u32; 2], DataPathError> {
        let failed = system("making a veth pair between switches");
        let names = [0, 1].map(|end| format!("s{}", 2 * link.0 + end));
        netlink.add_veth(&names[0], &names[1], self.namespace.as_fd()).map_err(&failed)?;
        let mut indices = [0; 2];
        for (index, name) in indices.iter_mut().zip(&names) {
            *index = if_nametoindex(name.as_str()).map_err(|error| failed(error.into()))?;
            let long = LinkParameters { mac: None, mtu: Some(MTU_MAX) };
            netlink.bring_up(*index, long).map_err(&failed)?;
        }
        Ok(indices)
    }

    fn watch(self, paths: &Arc<DataPaths>, notice: Notice) -> Result<PathWatch, DataPathError> {
        let made = self.made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let watched = made.into_iter().map(|((node, place), made)| {
            let node = self.topology.node(node);
            let interface = &node.interfaces[place];
            let name = format!("{} of host {}", interface.name, node.name);
            let link = self.topology.link(interface.link).name.clone();
            (made.peer, WatchedEnd { name, link, is_down: made.is_down })
        });
        let watch = PathWatch::start(self.namespace, Arc::clone(paths), watched.collect(), notice);
        watch.map_err(system("watching its interfaces"))
    }
}

/// A link of a path in the making: its pipes, and by end the interface and whether it is a host's.
struct LinkEnds {
    id: LinkId,
    pipes: [u32; 2],
    interfaces: [u32; 2],
    is_edge: [bool; 2],
}

/// A path as it is loaded, and what its numbers mean.
#[derive(Default)]
struct PathParts {
    spec: PathSpec,
    links: BTreeMap<String, KernelLink>,
    switches: BTreeMap<String, u32>,
}

/// Loads a path with this many links and switches, and attaches it to the loopback interface of a
/// namespace of its own.
fn try_path((links, switches): (u32, u32), has_laws: bool, has_log: bool) -> Result<(), PathError> {
    const LOOPBACK: u32 = 1;
    let port = |interface| PathPort {
        interface,
        towards: Towards::Wire(interface),
        pipe_in: Some(0),
        pipe_out: 0,
        is_far: false,
        address: None,
        is_blocked: false,
        tap: None,
    };
    let law = || InstantSpec::of(&Default::default()).expect("a pipe without parameters holds nothing");
    // The indices of a veth pair and a TAP at each end of each link.
    let ports = vec![port(LOOPBACK), port(LOOPBACK + 6 * links)];
    let pipes = [0, 2 * links].map(|pipe| (pipe, (law(), Rng::new(1)))).into();
    let path = KernelPath::load(&PathSpec { ports, pipes, switches, has_log, has_laws })?;
    let attached = Namespace::new().map_err(io::Error::other).and_then(|namespace| {
        namespace.within(|| Netlink::open()?.attach_ingress(LOOPBACK, path.as_fd()))?
    });
    attached.map_err(|source| PathError::System { what: "attaching a program (clsact, bpf)", source })
}
