//! Starts and stops an engine: a topology and its ports become threads, and at the end a
//! [`Report`].

use crate::Notice;
use crate::capture::{CaptureError, CaptureFilter};
use crate::clock::Clock;
use crate::command::{CommandReceiver, CommandSender};
use crate::control::{
    ApplyQueue, Behind, ChangeError, Dashboard, HttpAddress, HttpEndpoint, Server, make_changes,
};
use crate::cut_part::CutPart;
use crate::data_paths::DataPaths;
use crate::headroom::{HeadroomThread, HeadroomWatch};
use crate::kernel_log::KernelLog;
use crate::lateness::{self, LatenessPolicy};
use crate::layout::{LayoutNeeds, layout};
use crate::link_capture::LinkCapture;
use crate::node_switch::NodeSwitch;
use crate::open_ports::{OpenPorts, PortsLater};
use crate::packet_log::{self, LogQueue, LogThread};
use crate::port::Port;
use crate::report::Report;
use crate::snapshot::Snapshot;
use crate::switching::Control;
use crate::worker::{Worker, WorkerConfig};
use crate::worker_group::{CurrentParts, RearrangeError, WorkerGroup};
use fastpath_link::PipeSpec;
use fastpath_net::capture::CaptureTap;
use fastpath_net::flows::FlowTable;
use fastpath_net::packet_log::{FrameNumbers, PacketLog};
use fastpath_net::sample::Sample;
use fastpath_net::{EdgeId, FramePool, LinkChange, Network, Observer, Part, Partition};
use fastpath_port::mail::{MailRoom, Post};
use fastpath_spec::{
    DataPathChoice, EngineSettings, Idle, Late, LinkId, Node, NodeId, Topology, TraceAction, Workers,
};
use fastpath_sys::{cgroup, thread};
use fastpath_units::{Bytes, Duration, Time};
use std::any::Any;
use std::io;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Ports, each with the edge that it serves.
pub type EdgePorts = Vec<(EdgeId, Box<dyn Port>)>;

/// The settings of a run of a network in real time.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed, memory and executors of the network.
    pub network: fastpath_net::Options,
    /// What to do when nothing is due. Default: [`Idle::Save`].
    pub idle: Option<Idle>,
    /// How late a frame may be released. Without it, [`Report::broken`] and the counters of late
    /// frames use one millisecond.
    pub tolerance: Option<Duration>,
    /// What happens to later frames. Default: they are delivered.
    pub late: Option<Late>,
    /// How many threads, and on which cores. Default: [`Workers::Auto`].
    pub workers: Option<Workers>,
    /// The Unix socket on which to listen for `fastpath ctl`; `None` for none.
    pub control: Option<PathBuf>,
    /// A second address on which to listen for control requests.
    pub http: Option<HttpAddress>,
    /// Where and how to show the network in a browser; `None`: not.
    pub dashboard: Option<Dashboard>,
    /// Where to write the per-packet log (pcapng); `None` for none.
    pub packet_log: Option<PathBuf>,
    /// Whether samples have flows. This costs a look-up per packet.
    pub records_flows: bool,
    /// The switches of OpenFlow nodes with controllers.
    pub switches: Vec<NodeSwitch>,
    /// Receives requests to change nodes and links; `None`: they are refused.
    pub apply: Option<ApplyQueue>,
    /// Where links run that may be in the kernel; `None`: all are in the engine.
    pub data_paths: Option<Arc<DataPaths>>,
    /// What the author chose of that; a lab follows it.
    pub data_path: DataPathChoice,
    /// Receives events of the run, for example a port that fails.
    pub notice: Notice,
}

impl Options {
    /// Defaults: sleep when idle, no control socket, notices on standard error.
    pub fn new(network: fastpath_net::Options) -> Options {
        let (idle, tolerance, late, workers) = (None, None, None, None);
        let notice = Notice::to_stderr();
        Options {
            network,
            idle,
            tolerance,
            late,
            workers,
            control: None,
            http: None,
            dashboard: None,
            packet_log: None,
            records_flows: false,
            switches: Vec::new(),
            apply: None,
            data_paths: None,
            data_path: DataPathChoice::Auto,
            notice,
        }
    }

    /// Fills the options that are not given with the settings of a spec.
    pub fn fill_from(&mut self, settings: &EngineSettings) {
        self.tolerance = self.tolerance.or(settings.tolerance);
        self.late = self.late.or(settings.late);
        self.idle = self.idle.or(settings.idle);
        self.data_path = settings.data_path.unwrap_or(self.data_path);
        self.network.pool_limit = settings.memory.unwrap_or(self.network.pool_limit);
        if self.workers.is_none() {
            self.workers.clone_from(&settings.workers);
        }
    }
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An edge does not have exactly one port.
    #[error("host {host}: interface {interface} has {count} ports, it needs one")]
    Ports {
        /// The host.
        host: String,
        /// Its interface.
        interface: String,
        /// Ports given for it.
        count: usize,
    },
    /// A worker is to be bound to a core that this process may not use.
    #[error("workers: core {core} is unavailable (have: {have:?})")]
    Core {
        /// The core.
        core: u32,
        /// The cores this process may use.
        have: Vec<u32>,
    },
    /// The control interface could not be created.
    #[error("control interface at {address}: {source}")]
    Control {
        /// The address or path.
        address: HttpAddress,
        /// The reason.
        source: io::Error,
    },
    /// The per-packet log could not be created.
    #[error("packet log {}: {source}", path.display())]
    PacketLog {
        /// The address or path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The controllers of an OpenFlow node cannot be served.
    #[error("openflow {node}: {why}")]
    OpenFlow {
        /// The node.
        node: String,
        /// The reason.
        why: String,
    },
    /// The operating system refused a thread or a descriptor.
    #[error("starting the engine: {0}")]
    System(#[from] io::Error),
}

/// A worker panicked, which is a defect of this program. Its ports are closed.
#[derive(Debug, thiserror::Error)]
#[error("internal error: engine worker panicked: {message}; please report it")]
pub struct Panicked {
    /// The panic message.
    pub message: String,
}

/// A network that runs in real time. See [`start`]. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    workers: Vec<JoinHandle<Result<Snapshot, Panicked>>>,
    log_thread: Option<LogThread>,
    notice: Notice,
    /// Closes its sockets when it is dropped.
    server: Server,
    /// The options of each worker's network.
    network: fastpath_net::Options,
    stopper: Stopper,
    clock: Clock,
    /// What serves the controllers of OpenFlow nodes.
    serving: Serving,
    /// Ends with the engine. None in virtual time, where the load of the machine means nothing.
    headroom: Option<HeadroomThread>,
}

/// Ends with the engine.
struct Serving(Vec<Box<dyn Any + Send + Sync>>);

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Serving({})", self.0.len())
    }
}

/// Ends a [`Running`] engine from any thread.
#[derive(Clone)]
pub struct Stopper(WorkerGroup);

/// Takes samples of a [`Running`] engine.
#[derive(Clone)]
pub struct Sampler(WorkerGroup);

impl Sampler {
    /// Returns the counters, queues and flows; `None` if the engine has ended. The largest lateness
    /// and the flows are those since the last sample, so that one thread takes them.
    pub fn sample(&self) -> Option<Sample> {
        self.0.current().sample()
    }

    /// Returns the topology that runs now.
    pub fn topology(&self) -> Topology {
        self.0.current().topology().clone()
    }
}

/// Starts running `topology` between `ports`, one for each edge.
///
/// # Errors
/// See [`StartError`].
pub fn start(topology: Topology, ports: EdgePorts, options: Options) -> Result<Running, StartError> {
    let ports = in_order(&topology, ports)?;
    let later = if options.apply.is_some() { PortsLater::Possible } else { PortsLater::Never };
    let open_ports = Arc::new(OpenPorts::new(ports.len(), later));
    let cores = cores_for(options.workers.as_ref())?;
    let needs = LayoutNeeds { is_whole: options.packet_log.is_some(), may_change: options.apply.is_some() };
    let layout = layout(topology, cores.len(), options.workers.as_ref(), needs, &options.notice);
    let count = layout.parts.len();
    let (logs, log_thread, kernel_logs) = open_packet_log(&layout.topology, count, &options)?;
    let senders = (0..count).map(|_| CommandSender::new()).collect::<io::Result<Vec<_>>>()?;
    let (senders, receivers): (Vec<CommandSender>, Vec<CommandReceiver>) = senders.into_iter().unzip();
    let log = log_thread.as_ref().map(|thread: &LogThread| Arc::clone(&thread.status));
    let clock = Clock::start();
    let kernel_log = kernel_logs.map(|own| start_kernel_log(own, &layout.topology, &options, clock));
    let paths = (options.data_paths.clone(), kernel_log.transpose()?.flatten());
    let group = WorkerGroup::new(senders, layout.clone(), (options.network.seed, log), paths);
    let server = listen(&options, &group)?;
    notice_of_cgroup(&options);
    let network = network_options(&options, count);
    let mut running = Running {
        workers: Vec::new(),
        log_thread,
        notice: options.notice.clone(),
        server,
        network: network.clone(),
        stopper: Stopper(group.clone()),
        clock,
        serving: Serving(Vec::new()),
        headroom: None,
    };
    let parts = parts_of(&layout, receivers, ports, (&network, clock));
    for ((part, core), log) in parts.into_iter().zip(cores).zip(logs) {
        let config = WorkerConfig {
            clock,
            ports: part.ports,
            idle: options.idle.unwrap_or_default(),
            policy: lateness_policy(&options),
            commands: part.commands,
            notice: options.notice.clone(),
            core,
            open_ports: Arc::clone(&open_ports),
            switches: switches_of(&layout, part.number, &options),
            cut: part.cut,
        };
        let cut = layout.partition.clone().map(|partition| (partition, part.number));
        let network = (part.topology, layout.options_of(part.number, &network), cut);
        let flows = options.records_flows.then(FlowTable::default);
        // An error drops `running`, which ends the workers that run already.
        running.workers.push(match log {
            None => work(network, ((), flows), config, group.clone()),
            Some(log) => work(network, (log, flows), config, group.clone()),
        }?);
    }
    running.headroom = watch_headroom(group, count, &options)?;
    for NodeSwitch { node, serve, .. } in options.switches {
        let serving = serve().map_err(|why| StartError::OpenFlow { node, why })?;
        running.serving.0.push(serving);
    }
    Ok(running)
}

/// Watches how busy the workers are, where time is real.
fn watch_headroom(group: WorkerGroup, count: usize, options: &Options) -> io::Result<Option<HeadroomThread>> {
    if thread::has_virtual_time() {
        return Ok(None);
    }
    let policy = lateness_policy(options);
    let watch = HeadroomWatch::new(count, policy.tolerance, policy.is_stated);
    HeadroomThread::start(group, watch, options.notice.clone()).map(Some)
}

/// What one worker runs, and how others reach it.
struct RunningPart {
    number: usize,
    topology: Topology,
    ports: Vec<Box<dyn Port>>,
    commands: CommandReceiver,
    cut: Option<CutPart>,
}

/// Distributes the ports of all edges over the workers, and connects those of a cut network.
fn parts_of(
    layout: &CurrentParts,
    receivers: Vec<CommandReceiver>,
    ports: Vec<Box<dyn Port>>,
    (network, clock): (&fastpath_net::Options, Clock),
) -> Vec<RunningPart> {
    let mut ports: Vec<Option<Box<dyn Port>>> = ports.into_iter().map(Some).collect();
    let wakers =
        receivers.iter().map(|receiver| -> Box<dyn Fn() + Send + Sync> { Box::new(receiver.waker()) });
    let mail = Arc::new(MailRoom::new(wakers.collect(), network.pool_limit.get() / receivers.len().max(2)));
    let part = |(number, commands): (usize, CommandReceiver)| {
        let Part { topology, edges, .. } = layout.parts[number].clone();
        let ports = edges.iter().map(|edge| ports[edge.0 as usize].take().expect("in one part")).collect();
        let post = Post::new(Arc::clone(&mail), number);
        let cut = layout.partition.as_ref();
        let cut = cut.map(|partition| CutPart::new(post, (&topology, partition), edges, clock));
        RunningPart { number, topology, ports, commands, cut }
    };
    receivers.into_iter().enumerate().map(part).collect()
}

/// The log of each worker.
type Logs = Vec<Option<PacketLog<LogQueue>>>;

/// The log of the links that run in the kernel, and the numbers of all frames.
type KernelQueue = (LogQueue, Arc<FrameNumbers>);

/// Opens the per-packet log, if there is to be one.
fn open_packet_log(
    topology: &Topology,
    workers: usize,
    options: &Options,
) -> Result<(Logs, Option<LogThread>, Option<KernelQueue>), StartError> {
    let Some(path) = options.packet_log.clone() else {
        return Ok(((0..workers).map(|_| None).collect(), None, None));
    };
    let has_kernel = options.data_paths.as_ref().is_some_and(|paths| paths.path().is_some());
    let count = workers + usize::from(has_kernel);
    let opened = packet_log::open(&path, topology, count, &options.notice);
    let (mut queues, thread) = opened.map_err(|source| StartError::PacketLog { path, source })?;
    let numbers = Arc::default();
    let kernel = queues.pop_if(|_| has_kernel).map(|queue| (queue, Arc::clone(&numbers)));
    let log = |queue| Some(PacketLog::of_part(queue, Arc::clone(&numbers)));
    Ok((queues.into_iter().map(log).collect(), Some(thread), kernel))
}

/// Starts the log of the links that run in the kernel.
fn start_kernel_log(
    queue: KernelQueue,
    topology: &Topology,
    options: &Options,
    clock: Clock,
) -> io::Result<Option<KernelLog>> {
    let Some((paths, log)) = options.data_paths.as_ref().and_then(|paths| Some((paths, paths.take_log()?)))
    else {
        return Ok(None);
    };
    KernelLog::start((log, paths.names()), topology.clone(), queue, clock).map(Some)
}

/// Starts the control interface at all its addresses.
fn listen(options: &Options, group: &WorkerGroup) -> Result<Server, StartError> {
    let addresses: Vec<HttpAddress> =
        options.control.clone().map(HttpAddress::Unix).into_iter().chain(options.http.clone()).collect();
    let dashboard = options.dashboard.as_ref();
    let switches = options.switches.iter().map(|switch| (switch.node.clone(), switch.control.clone()));
    let behind = Behind {
        workers: group.clone(),
        apply: options.apply.clone(),
        switches: switches.collect(),
        nodes: dashboard.and_then(|dashboard| dashboard.nodes.clone()),
        picture: dashboard.map(|dashboard| dashboard.picture),
    };
    let server = Server::start(&addresses, dashboard, behind)
        .map_err(|(address, source)| StartError::Control { address, source })?;
    if let Some(endpoint) = &server.tcp {
        options.notice.send(&format!("control API at {endpoint}"));
    }
    if let Some(endpoint) = &server.dashboard {
        options.notice.send(&format!("dashboard at {}", endpoint.page()));
    }
    Ok(server)
}

/// Returns the options of the network of each worker: they share the memory of frames.
fn network_options(options: &Options, workers: usize) -> fastpath_net::Options {
    let pool_limit = options.network.pool_limit.get() / workers;
    fastpath_net::Options {
        pool_limit: NonZeroUsize::new(pool_limit).unwrap_or(NonZeroUsize::MIN),
        ..options.network.clone()
    }
}

/// Returns the nodes of a worker that are switches with controllers.
fn switches_of(layout: &CurrentParts, worker: usize, options: &Options) -> Vec<(NodeId, Control)> {
    let part = &layout.parts[worker];
    let switches = options.switches.iter().filter_map(|switch| {
        let node = part.topology.nodes.iter().position(|node| node.name == switch.node)?;
        Some((NodeId(node as u32), switch.control.clone()))
    });
    let is_own = |node: NodeId| layout.partition.as_ref().is_none_or(|cut| cut.part_of(node) == worker);
    switches.filter(|(node, _)| is_own(*node)).collect()
}

/// Says what the cgroup does not allow: the memory of frames, and the weight of the CPU.
fn notice_of_cgroup(options: &Options) {
    if let Some(limit) =
        cgroup::memory_limit().filter(|limit| options.network.pool_limit.get() as u64 > *limit)
    {
        let pool_limit = Bytes(options.network.pool_limit.get() as u64);
        options.notice.send(&format!(
            "frames may take {pool_limit} of memory, more than the limit of the cgroup, {}: the run may be killed",
            Bytes(limit)
        ));
    }
    if options.idle.unwrap_or_default() == Idle::Save
        && let Some(low) = cgroup::raise_weight()
    {
        options.notice.send(&low);
    }
}

/// Returns the most memory for frames by default: 1 GiB, but at most half of the memory that the
/// cgroup of this process may use.
pub fn memory_default() -> NonZeroUsize {
    let share = cgroup::memory_limit().and_then(|limit| NonZeroUsize::new(usize::try_from(limit / 2).ok()?));
    share.map_or(FramePool::LIMIT_DEFAULT, |share| share.min(FramePool::LIMIT_DEFAULT))
}

/// Returns the policy that the options describe.
fn lateness_policy(options: &Options) -> LatenessPolicy {
    let tolerance = options.tolerance;
    LatenessPolicy {
        tolerance: tolerance.unwrap_or(lateness::TOLERANCE),
        is_stated: tolerance.is_some(),
        late: options.late.unwrap_or_default(),
    }
}

/// Returns the core of each worker; `None` for a worker that the kernel places.
fn cores_for(workers: Option<&Workers>) -> Result<Vec<Option<u32>>, StartError> {
    let cores = thread::cores();
    Ok(match workers {
        // The other half is for the programs that send and receive.
        None | Some(Workers::Auto) => vec![None; (cores.len() / 2).max(1)],
        Some(Workers::Cores(wanted)) => {
            if let Some(&core) = wanted.iter().find(|core| !cores.contains(core)) {
                return Err(StartError::Core { core, have: cores });
            }
            wanted.iter().copied().map(Some).collect()
        }
        // The last cores first: the first core takes most interrupts.
        Some(Workers::Count(count)) => {
            cores.into_iter().rev().map(Some).chain(std::iter::repeat(None)).take(count.get()).collect()
        }
    })
}

/// The most packets of cross traffic with which an idle link catches up as a frame comes: some
/// milliseconds of work at worst.
const CROSS_MAX: u64 = 1 << 13;

/// Starts the thread that runs a network with this log, or a part of a cut one. If it panics, the
/// others end too.
fn work<L>(
    (topology, options, cut): (Topology, fastpath_net::Options, Option<(Arc<Partition>, usize)>),
    (log, flows): (L, Option<FlowTable>),
    config: WorkerConfig,
    group: WorkerGroup,
) -> io::Result<JoinHandle<Result<Snapshot, Panicked>>>
where
    L: Observer + Send + 'static,
{
    let mut network = Network::observed(topology, options, (log, (CaptureTap::default(), flows)));
    network.bound_cross(CROSS_MAX);
    if let Some((partition, part)) = cut {
        network.cut(&partition, part);
    }
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            if let Some(core) = config.core {
                thread::stay_on(core).map_err(|error| format!("core {core}: {error}"))?;
            }
            let mut worker = Worker::new(network, config).map_err(|error| error.to_string())?;
            worker.run();
            Ok(worker.snapshot())
        }));
        let result = result.unwrap_or_else(|payload| Err(panic_message(&*payload)));
        result.map_err(|message| {
            group.stop();
            Panicked { message }
        })
    };
    std::thread::Builder::new().name("fastpath-worker".to_owned()).spawn(run)
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopper.stop();
        drop(self.headroom.take());
        self.serving.0.clear();
        // `join` and `stop` report how it ended.
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
        self.stopper.0.end_kernel_log();
        let _ = self.log_thread.take().map(LogThread::finish);
    }
}

impl Running {
    /// Returns a handle that ends this engine, for a signal handler or another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Returns its clock, by which events happen.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns what takes samples of this engine from another thread.
    pub fn sampler(&self) -> Sampler {
        Sampler(self.stopper.0.clone())
    }

    /// Returns the changes of links up to now, as `GET /changes` has them.
    pub fn changes(&self) -> serde_json::Value {
        self.server.changes()
    }

    /// Returns the TCP address of the control interface, and its token. The kernel has chosen the
    /// port if 0 was given.
    pub fn http(&self) -> Option<&HttpEndpoint> {
        self.server.tcp.as_ref()
    }

    /// Returns the address of the dashboard for a browser, with its token.
    pub fn dashboard(&self) -> Option<String> {
        self.server.dashboard.as_ref().map(HttpEndpoint::page)
    }

    /// Returns true once it has ended, by request or because every port has failed.
    pub fn has_ended(&self) -> bool {
        self.workers.iter().all(JoinHandle::is_finished)
    }

    /// Waits until the engine has ended.
    ///
    /// # Errors
    /// A worker panicked.
    pub fn join(mut self) -> Result<Report, Panicked> {
        let join = |worker: JoinHandle<Result<Snapshot, Panicked>>| {
            let ended = worker.join();
            ended.unwrap_or_else(|payload| Err(Panicked { message: panic_message(&*payload) }))
        };
        // All of them end before the first failure is returned.
        let ended: Vec<_> = self.workers.drain(..).map(join).collect();
        self.stopper.0.end_kernel_log();
        // The worker has dropped its end of the log's queue.
        if let Some(Err(missing)) = self.log_thread.take().map(LogThread::finish) {
            self.notice.send(&missing);
        }
        let snapshots = ended.into_iter().collect::<Result<Vec<_>, _>>()?;
        let current = self.stopper.0.current();
        let seed = Some(self.network.seed);
        Ok(Report { seed, ..Report::of(current.topology(), &current.join(snapshots)) })
    }

    /// Ends it now. Frames still inside count as held.
    ///
    /// # Errors
    /// A worker panicked.
    pub fn stop(self) -> Result<Report, Panicked> {
        self.stopper.stop();
        self.join()
    }

    /// Returns the current state; `None` if it has ended.
    pub fn report(&self) -> Option<Report> {
        self.stopper.0.report()
    }

    /// Changes links, all at one instant: `at`, or now. Frames in them stay. Returns the instant.
    ///
    /// # Errors
    /// See [`ChangeError`]; nothing has changed.
    ///
    /// # Panics
    /// The topology has no such link.
    pub fn change(&self, at: Option<Time>, changes: Vec<LinkChange>) -> Result<Time, ChangeError> {
        let current = self.stopper.0.current();
        let at = make_changes(&current, at, changes.clone())?;
        self.server.record(current.topology(), at, &changes);
        Ok(at)
    }

    /// Starts the traces of a group from their beginning. Returns the instant; `None` if there is
    /// no such group, or the engine has ended.
    pub fn start_traces(&self, group: &str) -> Option<Time> {
        let current = self.stopper.0.current();
        let at = current.traces(current.topology().group_named(group)?, TraceAction::Start)?;
        self.server.record_traces(at, group, TraceAction::Start);
        Some(at)
    }

    /// Returns the values of a link in force, from its first node to its second and back; `None` if
    /// the engine has ended.
    ///
    /// # Panics
    /// The topology has no such link.
    pub fn pipes(&self, link: LinkId) -> Option<[PipeSpec; 2]> {
        let mut snapshot = self.stopper.0.current().snapshot()?;
        Some([0, 1].map(|pipe| std::mem::take(&mut snapshot.pipes[2 * link.0 as usize + pipe].spec)))
    }

    /// Starts a capture of frames of links.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn capture(&self, filter: &CaptureFilter) -> Result<LinkCapture, CaptureError> {
        LinkCapture::start(&self.stopper.0, filter)
    }

    /// Changes the topology. What stays keeps its frames, clocks, queues, random numbers, learned
    /// addresses and ports. `ports` has a port for each edge of the new topology that is new or
    /// gets another port; ports that are no longer used are closed.
    ///
    /// # Errors
    /// See [`RearrangeError`]; nothing has changed.
    pub fn rearrange(&mut self, topology: Topology, ports: EdgePorts) -> Result<(), RearrangeError> {
        self.stopper.0.rearrange(topology, ports, &self.network)
    }

    /// Returns whether the topology can change to `topology`.
    ///
    /// # Errors
    /// See [`RearrangeError`].
    pub fn check_rearrange(&self, topology: &Topology) -> Result<(), RearrangeError> {
        self.stopper.0.followed(topology).map(drop)
    }
}

impl Stopper {
    /// Tells the engine to end after its current iteration.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stopper")
    }
}

fn in_order(topology: &Topology, mut ports: EdgePorts) -> Result<Vec<Box<dyn Port>>, StartError> {
    // Edges are numbered in this order: hosts, then their interfaces.
    let interfaces = |host: &'_ Node| -> Vec<_> {
        host.interfaces.iter().map(|interface| (host.name.clone(), interface.name.clone())).collect()
    };
    let edges: Vec<(String, String)> = topology.hosts().flat_map(|(_, host)| interfaces(host)).collect();
    let mut counts = vec![0; edges.len()];
    ports.retain(|(id, _)| counts.get_mut(id.0 as usize).map(|count| *count += 1).is_some());
    if let Some(index) = counts.iter().position(|&count| count != 1) {
        let (host, interface) = edges[index].clone();
        return Err(StartError::Ports { host, interface, count: counts[index] });
    }
    ports.sort_by_key(|(id, _)| *id);
    Ok(ports.into_iter().map(|(_, port)| port).collect())
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
