//! Several workers as one. Each worker runs a part of the network. Requests name links and edges of
//! the whole network, and the answers of the workers are combined.
//!
//! The topology can change while the workers run. A request sees one topology: it holds the lock of
//! [`CurrentParts`] for reading until it is answered. Workers take no lock.

use crate::capture::{CaptureQueue, CaptureRequest, ChunkSender};
use crate::command::{CommandSender, Refusal, When};
use crate::data_paths::DataPaths;
use crate::kernel_log::KernelLog;
use crate::packet_log::LogStatus;
use crate::port::Port;
use crate::pulse::{Pulse, RecentWorker};
use crate::report::Report;
use crate::snapshot::{EdgeState, PipeState, Snapshot};
use crate::switch_report::SwitchCopy;
use crate::worker_change::{ChangedCut, WorkerChange};
use fastpath_link::{Counters, Volume};
use fastpath_net::capture::CaptureOrder;
use fastpath_net::flows::MergedFlows;
use fastpath_net::sample::{PipeSample, Sample};
use fastpath_net::{EdgeId, LinkChange, Part, Partition, PartsError, PipeId, TopologyChange};
use fastpath_spec::{LinkId, NodeId, Topology, TraceAction};
use fastpath_units::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// How far in the future an instant is that several workers agree on.
const AHEAD: Duration = Duration::from_ms(10);

/// The command queues of all workers. A clone reaches the same workers.
#[derive(Clone)]
pub(crate) struct WorkerGroup(Arc<GroupState>);

struct GroupState {
    /// The command queue of each worker.
    commands: Vec<CommandSender>,
    layout: RwLock<CurrentParts>,
    seed: u64,
    log: Option<Arc<LogStatus>>,
    /// Captures started so far.
    captures: AtomicU64,
    /// What the parts of a cut network have counted of flows.
    flows: Mutex<MergedFlows>,
    /// Where links run, in a lab.
    paths: Option<Arc<DataPaths>>,
    kernel_log: Mutex<Option<KernelLog>>,
    /// What each worker did in the last second; empty before.
    recent: Mutex<Vec<RecentWorker>>,
}

/// The topology that runs, and the part of each worker.
#[derive(Clone)]
pub(crate) struct CurrentParts {
    pub(crate) topology: Topology,
    /// By worker: its topology, with the numbers that its links and edges have in the whole one.
    pub(crate) parts: Vec<Part>,
    /// Where the network is cut: which nodes each worker runs. Then each part has the whole
    /// topology.
    pub(crate) partition: Option<Arc<Partition>>,
}

/// Why the topology cannot change. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RearrangeError {
    /// The workers cannot share the new topology.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
}

impl WorkerGroup {
    /// Creates a group with a worker for each part.
    pub(crate) fn new(
        commands: Vec<CommandSender>,
        layout: CurrentParts,
        (seed, log): (u64, Option<Arc<LogStatus>>),
        (paths, kernel_log): (Option<Arc<DataPaths>>, Option<KernelLog>),
    ) -> WorkerGroup {
        WorkerGroup(Arc::new(GroupState {
            commands,
            layout: RwLock::new(layout),
            seed,
            log,
            captures: AtomicU64::new(0),
            flows: Mutex::default(),
            paths,
            kernel_log: Mutex::new(kernel_log),
            recent: Mutex::default(),
        }))
    }

    /// Holds the topology for a request.
    pub(crate) fn current(&self) -> Current<'_> {
        // A panic while the lock was held has left the former layout.
        let layout = self.0.layout.read().unwrap_or_else(PoisonError::into_inner);
        Current { group: &self.0, layout }
    }

    /// Returns the current report; `None` if a worker has ended.
    pub(crate) fn report(&self) -> Option<Report> {
        let current = self.current();
        let mut report =
            Report { seed: Some(self.0.seed), ..Report::of(current.topology(), &current.snapshot()?) };
        let recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        for (worker, RecentWorker { load, warning }) in report.workers.iter_mut().zip(&*recent) {
            (worker.recent_load, worker.headroom) = (*load, 1.0 - load);
            worker.warning.clone_from(warning);
        }
        Some(report)
    }

    /// Returns how busy each worker is; `None` if one has ended.
    pub(crate) fn pulses(&self) -> Option<Vec<Pulse>> {
        self.0.commands.iter().map(CommandSender::pulse).collect()
    }

    /// Keeps what each worker did in the last second, for reports.
    pub(crate) fn set_recent(&self, recent: Vec<RecentWorker>) {
        *self.0.recent.lock().unwrap_or_else(PoisonError::into_inner) = recent;
    }

    /// Changes the topology. What stays is not disturbed. `ports` has a port for each edge that is
    /// new or whose port is replaced. Ports that are no longer used are closed.
    ///
    /// # Errors
    /// See [`RearrangeError`].
    pub(crate) fn rearrange(
        &self,
        topology: Topology,
        ports: Vec<(EdgeId, Box<dyn Port>)>,
        options: &fastpath_net::Options,
    ) -> Result<(), RearrangeError> {
        let next = self.followed(&topology)?;
        let mut changes = Vec::new();
        {
            let current = self.current();
            let mut ports: Vec<Option<(EdgeId, Box<dyn Port>)>> = ports.into_iter().map(Some).collect();
            for (number, (old, new)) in current.layout.parts.iter().zip(&next.parts).enumerate() {
                let prepare = match self.0.log {
                    Some(_) => TopologyChange::with_departures,
                    None => TopologyChange::new,
                };
                let options = next.options_of(number, options);
                let change = prepare(&old.topology, new.topology.clone(), &options);
                let cut = next.partition.clone();
                let cut = cut.map(|partition| ChangedCut { partition, edges: new.edges.clone() });
                let mut change = WorkerChange::new(change, old.edges.len(), cut);
                for port in &mut ports {
                    let here = port.as_ref().and_then(|(edge, _)| new.edges.binary_search(edge).ok());
                    if let Some(here) = here {
                        change.ports[here] = port.take().map(|(_, port)| port);
                    }
                }
                let is_needed = old.topology != new.topology || change.has_ports();
                changes.push((is_needed, change));
            }
            // Workers of a cut network have the same version of the topology.
            if next.partition.is_some() && changes.iter().any(|(is_needed, _)| *is_needed) {
                changes.iter_mut().for_each(|(is_needed, _)| *is_needed = true);
            }
        }
        if let Some(paths) = &self.0.paths {
            paths.follow_topology(self.current().topology(), &topology);
        }
        let mut layout = self.0.layout.write().unwrap_or_else(PoisonError::into_inner);
        let mut done = Vec::new();
        for (commands, change) in self.0.commands.iter().zip(changes) {
            let (true, change) = change else { continue };
            done.push(commands.rearrange(Box::new(change)).ok_or(RearrangeError::Ended)?);
        }
        *layout = next;
        drop(layout);
        if let Some(log) = &*self.0.kernel_log.lock().unwrap_or_else(PoisonError::into_inner) {
            log.rearranged(&topology);
        }
        // Closing thousands of ports takes time.
        drop(done);
        Ok(())
    }

    /// Returns the parts of a topology that takes the place of the current one.
    ///
    /// # Errors
    /// See [`RearrangeError`].
    pub(crate) fn followed(&self, topology: &Topology) -> Result<CurrentParts, RearrangeError> {
        let current = self.current();
        let former = &current.layout.parts;
        let topology = topology.clone();
        if let Some(partition) = &current.layout.partition {
            let nodes = current.layout.topology.nodes.iter().zip(0..);
            let places: BTreeMap<&str, usize> =
                nodes.map(|(node, id)| (node.name.as_str(), partition.part_of(NodeId(id)))).collect();
            let place = |name: &str| places.get(name).copied();
            let next = Partition::follow(&topology, former.len(), Partition::REAL_TIME_LOOKAHEAD, place);
            return Ok(CurrentParts::cut(topology, next.map_err(PartsError::from)?));
        }
        let places = places(former);
        let parts = Part::follow(&topology, former.len(), |name| places.get(name).copied())?;
        Ok(CurrentParts { topology, parts, partition: None })
    }

    /// Ends a capture: all workers pass on what they have.
    pub(crate) fn end_capture(&self, id: u64) {
        // A worker that has ended has passed on what it had.
        self.0.commands.iter().for_each(|commands| _ = commands.end_capture(id));
    }

    /// Passes on what the log of the kernel's links has.
    pub(crate) fn end_kernel_log(&self) {
        drop(self.0.kernel_log.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Tells all workers to end.
    pub(crate) fn stop(&self) {
        self.0.commands.iter().for_each(CommandSender::stop);
    }
}

impl CurrentParts {
    /// The parts of a cut topology.
    pub(crate) fn cut(topology: Topology, partition: Partition) -> CurrentParts {
        let parts = Part::of_partition(&topology, &partition);
        CurrentParts { topology, parts, partition: Some(Arc::new(partition)) }
    }

    /// Returns the options of the network of a worker: it has the executors of its own nodes.
    pub(crate) fn options_of(&self, worker: usize, options: &fastpath_net::Options) -> fastpath_net::Options {
        let Some(partition) = &self.partition else { return options.clone() };
        let nodes = self.topology.nodes.iter().zip(0..);
        let own = nodes.filter(|(_, id)| partition.part_of(NodeId(*id)) == worker);
        let own: BTreeSet<String> = own.map(|(node, _)| node.name.clone()).collect();
        fastpath_net::Options {
            executors: options.executors.of_nodes(move |name| own.contains(name)),
            ..options.clone()
        }
    }

    /// Takes over the state of a pipe from a worker into that of the whole network. Where the
    /// network is cut, the worker of its sender knows it, and that of its receiver knows what has
    /// left it.
    fn place<T: HasCounters>(
        &self,
        worker: usize,
        pipe: PipeId,
        whole: &mut Option<T>,
        mut own: T,
        add: impl Fn(&mut T, T),
    ) {
        let Some(partition) = &self.partition else {
            *whole = Some(own);
            return;
        };
        let ends = self.topology.link(pipe.link).ends.map(|(node, _)| partition.part_of(node));
        let is_owner = ends[pipe.index] == worker;
        if is_owner && ends[0] != ends[1] {
            own.counters().delivered = Volume::default();
        }
        let Some(other) = whole else {
            *whole = Some(own);
            return;
        };
        if is_owner {
            std::mem::swap(other, &mut own);
        }
        other.counters().delivered += own.counters().delivered;
        add(other, own);
    }
}

/// The state of a pipe, with its counters.
trait HasCounters {
    fn counters(&mut self) -> &mut Counters;
}

impl HasCounters for PipeState {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }
}

impl HasCounters for PipeSample {
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }
}

/// Waits until an instant has come on which several workers have just agreed, so that whoever asked
/// sees what has changed.
fn wait_until_agreed() {
    std::thread::sleep(AHEAD.to_std());
}

/// Returns the part of each link by its name.
fn places(parts: &[Part]) -> BTreeMap<&str, usize> {
    let mut places = BTreeMap::new();
    for (place, part) in parts.iter().enumerate() {
        places.extend(part.topology.links.iter().map(|link| (link.name.as_str(), place)));
    }
    places
}

/// The topology, held for one request.
pub(crate) struct Current<'g> {
    group: &'g GroupState,
    layout: RwLockReadGuard<'g, CurrentParts>,
}

impl Current<'_> {
    /// Returns the topology.
    pub(crate) fn topology(&self) -> &Topology {
        &self.layout.topology
    }

    /// Returns the combined snapshot; `None` if a worker has ended.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let all: Option<Vec<Snapshot>> = self.group.commands.iter().map(CommandSender::snapshot).collect();
        Some(self.join(all?))
    }

    /// Changes links, all at one instant; `None` if a worker has ended. Where several workers run
    /// the links, the instant lies a little in the future, so that it has hardly ever passed when
    /// the last command arrives; without `at` this waits for it.
    pub(crate) fn change(&self, at: Option<Time>, changes: Vec<LinkChange>) -> Option<Result<Time, Refusal>> {
        let Some(paths) = &self.group.paths else { return self.change_workers(at, changes) };
        let done = self.change_workers(at, changes.clone())?;
        if done.is_ok() {
            paths.follow(self.topology(), &changes, at.is_some());
        }
        Some(done)
    }

    fn change_workers(&self, at: Option<Time>, changes: Vec<LinkChange>) -> Option<Result<Time, Refusal>> {
        let parts = &self.layout.parts;
        let mut shares: Vec<Vec<LinkChange>> = parts.iter().map(|_| Vec::new()).collect();
        if let Some(partition) = &self.layout.partition {
            let checked =
                changes.iter().try_for_each(|change| partition.check_change(self.topology(), change));
            if let Err(below) = checked {
                return Some(Err(Refusal::BelowLookahead(below)));
            }
            // Routes follow the states of links, which every worker knows.
            shares.fill(changes);
        } else {
            self.share(changes, &mut shares)?;
        }
        let mut when = at.map_or(When::Now, When::At);
        if shares.iter().filter(|share| !share.is_empty()).count() > 1 {
            let now = self.snapshot()?.at;
            if at.is_some_and(|at| at < now) {
                return Some(Err(Refusal::Past { now }));
            }
            when = When::Agreed(self.agreed(now, at));
        }
        let is_waited_for = at.is_none() && when != When::Now;
        let mut done = None;
        let workers = self.group.commands.iter().zip(shares);
        for (commands, share) in workers.filter(|(_, share)| !share.is_empty()) {
            match commands.change(when, share)? {
                Ok(at) => done = Some(Ok(at)),
                refused => return Some(refused),
            }
        }
        if is_waited_for {
            wait_until_agreed();
        }
        done
    }

    /// Returns an instant on which several workers agree: `at`, but a little in the future.
    fn agreed(&self, now: Time, at: Option<Time>) -> Time {
        let soonest = now.saturating_add(AHEAD);
        at.map_or(soonest, |at| at.max(soonest))
    }

    /// Distributes changes to the workers that run the links; `None` if a link is not there.
    fn share(&self, changes: Vec<LinkChange>, shares: &mut [Vec<LinkChange>]) -> Option<()> {
        let parts = &self.layout.parts;
        for (link, direction, change) in changes {
            let (number, place) = parts.iter().enumerate().find_map(|(number, part)| {
                // Links keep their order in a part.
                Some((number, part.links.binary_search(&link).ok()?))
            })?;
            shares[number].push((LinkId(place as u32), direction, change));
        }
        Some(())
    }

    /// Copies the tables of an OpenFlow node; `None` if no worker runs it.
    pub(crate) fn switch(&self, node: &str) -> Option<SwitchCopy> {
        let runs = |worker: usize| {
            let partition = self.layout.partition.as_ref();
            let id = self.topology().nodes.iter().position(|other| other.name == node);
            partition.is_none_or(|cut| id.is_some_and(|id| cut.part_of(NodeId(id as u32)) == worker))
        };
        let workers = self.group.commands.iter().enumerate().filter(|(worker, _)| runs(*worker));
        workers.into_iter().find_map(|(_, commands)| commands.switch(node))
    }

    /// Starts or stops the traces of a group; `None` if a worker has ended. Several workers do so
    /// at one instant a little in the future.
    pub(crate) fn traces(&self, group: usize, action: TraceAction) -> Option<Time> {
        let [one] = self.group.commands.as_slice() else {
            let at = self.agreed(self.snapshot()?.at, None);
            let started: Option<Vec<Time>> =
                self.group.commands.iter().map(|commands| commands.traces(group, action, Some(at))).collect();
            wait_until_agreed();
            return started.map(|_| at);
        };
        one.traces(group, action, None)
    }

    /// Returns the combined sample; `None` if a worker has ended.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let mut pipes: Vec<Option<PipeSample>> = vec![None; 2 * self.topology().links.len()];
        let (mut at, mut flows) = (Time::ZERO, Vec::new());
        for (worker, (part, commands)) in self.layout.parts.iter().zip(&self.group.commands).enumerate() {
            let own = commands.sample()?;
            at = at.max(own.at);
            for (number, pipe) in own.pipes.into_iter().enumerate() {
                let (link, index) = (part.links[number / 2], number % 2);
                let whole = &mut pipes[2 * link.0 as usize + index];
                self.layout.place(worker, PipeId { link, index }, whole, pipe, |whole, other| {
                    whole.late += other.late;
                    whole.lateness_max = whole.lateness_max.max(other.lateness_max);
                });
            }
            flows.push(own.flows);
        }
        let flows = match self.layout.partition {
            None => flows.concat(),
            Some(_) => self.group.flows.lock().unwrap_or_else(PoisonError::into_inner).merge(flows),
        };
        let mut pipes: Vec<PipeSample> = pipes.into_iter().map(Option::unwrap_or_default).collect();
        if let Some(paths) = &self.group.paths {
            paths.add_to_samples(self.topology(), &mut pipes);
        }
        Some(Sample { at, pipes, flows })
    }

    /// Starts a capture; `None` if a worker has ended. It follows changes of the topology.
    pub(crate) fn capture(&self, request: &CaptureRequest) -> Option<CaptureQueue> {
        if let Some(paths) = &self.group.paths {
            let names = request.pipes.iter().map(|pipe| &*self.topology().link(pipe.link).name);
            paths.move_to_user(names, "a capture");
        }
        let id = self.group.captures.fetch_add(1, Ordering::Relaxed);
        let (sender, chunks, missed) = ChunkSender::new(request.pipes.len());
        let mut queue = CaptureQueue { id, chunks, missed, started: Time::ZERO, is_merged: false };
        let mut count = 0;
        for (part, commands) in self.layout.parts.iter().zip(&self.group.commands) {
            let mut interfaces = vec![None; 2 * part.links.len()];
            for (pipe, interface) in request.pipes.iter().zip(0..) {
                if let Ok(place) = part.links.binary_search(&pipe.link) {
                    interfaces[2 * place + pipe.index] = Some(interface);
                }
            }
            if interfaces.iter().any(Option::is_some) {
                let sink = Box::new(sender.clone());
                let (has_drops, snap_len) = (request.has_drops, request.snap_len);
                let order = CaptureOrder { id, interfaces, has_drops, snap_len, sink };
                queue.started = queue.started.max(commands.start_capture(order)?);
                count += 1;
            }
        }
        queue.is_merged = count > 1;
        Some(queue)
    }

    /// Combines the snapshots of all workers, given in the order of the workers.
    pub(crate) fn join(&self, all: Vec<Snapshot>) -> Snapshot {
        let parts = &self.layout.parts;
        let links = self.topology().links.len();
        let edge_count = parts.iter().map(|part| part.edges.len()).sum::<usize>();
        let mut pipes: Vec<Option<PipeState>> = std::iter::repeat_with(|| None).take(2 * links).collect();
        let mut edges: Vec<Option<EdgeState>> = std::iter::repeat_with(|| None).take(edge_count).collect();
        let mut answers = all.into_iter();
        let mut whole = answers.next().expect("a group has a worker");
        let mut place = |worker: usize, snapshot: &mut Snapshot| {
            let part = &parts[worker];
            for (number, pipe) in snapshot.pipes.drain(..).enumerate() {
                let (link, index) = (part.links[number / 2], number % 2);
                let whole = &mut pipes[2 * link.0 as usize + index];
                self.layout.place(worker, PipeId { link, index }, whole, pipe, |whole, other| {
                    whole.held += other.held;
                });
            }
            for (edge, state) in part.edges.iter().zip(snapshot.edges.drain(..)) {
                edges[edge.0 as usize] = Some(state);
            }
        };
        place(0, &mut whole);
        for (mut next, worker) in answers.zip(1..) {
            place(worker, &mut next);
            whole.at = whole.at.max(next.at);
            whole.workers.append(&mut next.workers);
            whole.accounting.add(next.accounting);
            whole.removed_ports += next.removed_ports;
            whole.handovers.append(&mut next.handovers);
            whole.crossed = [0, 1].map(|side| whole.crossed[side] + next.crossed[side]);
        }
        // Frames between two workers are in the network. Those of a later snapshot may have come
        // already.
        let [passed_on, received] = whole.crossed;
        let inside = whole.accounting.held + passed_on;
        whole.accounting.held = inside.saturating_sub(received);
        // So may those that entered after an earlier one.
        whole.accounting.entered += received.saturating_sub(inside);
        for cut in self.layout.partition.iter().flat_map(|partition| partition.cuts()) {
            let of_link = &mut pipes[2 * cut.link.0 as usize..][..2];
            of_link.iter_mut().flatten().for_each(PipeState::balance);
        }
        whole.pipes = pipes.into_iter().map(|pipe| pipe.expect("every link is in a part")).collect();
        whole.edges = edges.into_iter().map(|edge| edge.expect("every edge is in a part")).collect();
        whole.packet_log = self.group.log.as_ref().map(|status| status.report());
        if let Some(paths) = &self.group.paths {
            paths.add_to(self.topology(), &mut whole);
            whole.user_space = Some(paths.reasons(self.topology()));
        }
        whole
    }
}
