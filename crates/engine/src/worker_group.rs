//! Several workers as one. Each worker runs a part of the network. Requests name links and edges of
//! the whole network, and the answers of the workers are combined.
//!
//! The topology can change while the workers run. A request sees one topology: it holds the lock of
//! [`CurrentParts`] for reading until it is answered. Workers take no lock.

use crate::capture::{CaptureQueue, CaptureRequest, ChunkSender};
use crate::command::{CommandSender, Refusal, When};
use crate::packet_log::LogStatus;
use crate::port::Port;
use crate::report::Report;
use crate::snapshot::{EdgeState, PipeState, Snapshot};
use crate::worker_change::WorkerChange;
use fastpath_net::capture::CaptureOrder;
use fastpath_net::sample::{PipeSample, Sample};
use fastpath_net::{EdgeId, LinkChange, Part, PartsError, TopologyChange};
use fastpath_spec::{LinkId, Topology};
use fastpath_units::{Duration, Time};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

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
}

/// The topology that runs, and the part of each worker.
struct CurrentParts {
    topology: Topology,
    /// By worker: its topology, with the numbers that its links and edges have in the whole one.
    parts: Vec<Part>,
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
        topology: Topology,
        parts: Vec<Part>,
        (seed, log): (u64, Option<Arc<LogStatus>>),
    ) -> WorkerGroup {
        WorkerGroup(Arc::new(GroupState {
            commands,
            layout: RwLock::new(CurrentParts { topology, parts }),
            seed,
            log,
            captures: AtomicU64::new(0),
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
        Some(Report { seed: Some(self.0.seed), ..Report::of(current.topology(), &current.snapshot()?) })
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
        let parts = self.followed(&topology)?;
        let mut changes = Vec::new();
        {
            let current = self.current();
            let mut ports: Vec<Option<(EdgeId, Box<dyn Port>)>> = ports.into_iter().map(Some).collect();
            for (old, new) in current.layout.parts.iter().zip(&parts) {
                let prepare = match self.0.log {
                    Some(_) => TopologyChange::with_departures,
                    None => TopologyChange::new,
                };
                let change = prepare(&old.topology, new.topology.clone(), options);
                let mut change = WorkerChange::new(change, old.edges.len());
                for port in &mut ports {
                    let here = port.as_ref().and_then(|(edge, _)| new.edges.binary_search(edge).ok());
                    if let Some(here) = here {
                        change.ports[here] = port.take().map(|(_, port)| port);
                    }
                }
                changes.push((old.topology != new.topology || change.has_ports()).then_some(change));
            }
        }
        let mut layout = self.0.layout.write().unwrap_or_else(PoisonError::into_inner);
        let mut done = Vec::new();
        for (commands, change) in self.0.commands.iter().zip(changes) {
            let Some(change) = change else { continue };
            done.push(commands.rearrange(Box::new(change)).ok_or(RearrangeError::Ended)?);
        }
        *layout = CurrentParts { topology, parts };
        drop(layout);
        // Closing thousands of ports takes time.
        drop(done);
        Ok(())
    }

    /// Returns the parts of a topology that takes the place of the current one.
    ///
    /// # Errors
    /// See [`RearrangeError`].
    pub(crate) fn followed(&self, topology: &Topology) -> Result<Vec<Part>, RearrangeError> {
        let current = self.current();
        let former = &current.layout.parts;
        let places = places(former);
        Ok(Part::follow(topology, former.len(), |name| places.get(name).copied())?)
    }

    /// Ends a capture: all workers pass on what they have.
    pub(crate) fn end_capture(&self, id: u64) {
        // A worker that has ended has passed on what it had.
        self.0.commands.iter().for_each(|commands| _ = commands.end_capture(id));
    }

    /// Tells all workers to end.
    pub(crate) fn stop(&self) {
        self.0.commands.iter().for_each(CommandSender::stop);
    }
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
    /// the last command arrives.
    pub(crate) fn change(&self, at: Option<Time>, changes: Vec<LinkChange>) -> Option<Result<Time, Refusal>> {
        let parts = &self.layout.parts;
        let mut shares: Vec<Vec<LinkChange>> = parts.iter().map(|_| Vec::new()).collect();
        for (link, direction, change) in changes {
            let (number, place) = parts.iter().enumerate().find_map(|(number, part)| {
                // Links keep their order in a part.
                Some((number, part.links.binary_search(&link).ok()?))
            })?;
            shares[number].push((LinkId(place as u32), direction, change));
        }
        let mut when = at.map_or(When::Now, When::At);
        if shares.iter().filter(|share| !share.is_empty()).count() > 1 {
            let now = self.snapshot()?.at;
            let soonest = now.saturating_add(AHEAD);
            if at.is_some_and(|at| at < now) {
                return Some(Err(Refusal::Past { now }));
            }
            when = When::Agreed(at.map_or(soonest, |at| at.max(soonest)));
        }
        let mut done = None;
        let workers = self.group.commands.iter().zip(shares);
        for (commands, share) in workers.filter(|(_, share)| !share.is_empty()) {
            match commands.change(when, share)? {
                Ok(at) => done = Some(Ok(at)),
                refused => return Some(refused),
            }
        }
        done
    }

    /// Starts the traces of a group; `None` if its worker has ended. A network with groups has one
    /// worker.
    pub(crate) fn start(&self, group: usize) -> Option<Time> {
        self.group.commands[0].start(group)
    }

    /// Returns the combined sample; `None` if a worker has ended.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let parts = &self.layout.parts;
        let links = parts.iter().map(|part| part.links.len()).sum::<usize>();
        let mut whole = Sample { pipes: vec![PipeSample::default(); 2 * links], ..Sample::default() };
        for (part, commands) in parts.iter().zip(&self.group.commands) {
            let own = commands.sample()?;
            whole.at = whole.at.max(own.at);
            for (number, pipe) in own.pipes.into_iter().enumerate() {
                whole.pipes[2 * part.links[number / 2].0 as usize + number % 2] = pipe;
            }
            whole.flows.extend(own.flows);
        }
        Some(whole)
    }

    /// Starts a capture; `None` if a worker has ended. It follows changes of the topology.
    pub(crate) fn capture(&self, request: &CaptureRequest) -> Option<CaptureQueue> {
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
        let links = parts.iter().map(|part| part.links.len()).sum::<usize>();
        let edge_count = parts.iter().map(|part| part.edges.len()).sum::<usize>();
        let mut pipes: Vec<Option<PipeState>> = std::iter::repeat_with(|| None).take(2 * links).collect();
        let mut edges: Vec<Option<EdgeState>> = std::iter::repeat_with(|| None).take(edge_count).collect();
        let mut answers = all.into_iter();
        let mut whole = answers.next().expect("a group has a worker");
        let mut place = |part: &Part, snapshot: &mut Snapshot| {
            for (number, pipe) in snapshot.pipes.drain(..).enumerate() {
                pipes[2 * part.links[number / 2].0 as usize + number % 2] = Some(pipe);
            }
            for (edge, state) in part.edges.iter().zip(snapshot.edges.drain(..)) {
                edges[edge.0 as usize] = Some(state);
            }
        };
        place(&parts[0], &mut whole);
        for (part, mut next) in parts[1..].iter().zip(answers) {
            place(part, &mut next);
            whole.at = whole.at.max(next.at);
            whole.workers.append(&mut next.workers);
            whole.accounting.add(next.accounting);
            whole.removed_ports += next.removed_ports;
        }
        whole.pipes = pipes.into_iter().map(|pipe| pipe.expect("every link is in a part")).collect();
        whole.edges = edges.into_iter().map(|edge| edge.expect("every edge is in a part")).collect();
        whole.packet_log = self.group.log.as_ref().map(|status| status.report());
        whole
    }
}
