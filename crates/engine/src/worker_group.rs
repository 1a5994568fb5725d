//! Several workers as one. Each worker runs a part of the network. Requests name links and edges of
//! the whole network, and the answers of the workers are combined.

use crate::capture::{CaptureQueue, CaptureRequest, ChunkSender};
use crate::command::{CommandSender, EdgeState, PipeState, Refusal, Snapshot, When};
use crate::packet_log::LogStatus;
use fastpath_net::capture::CaptureOrder;
use fastpath_net::sample::{PipeSample, Sample};
use fastpath_net::{EdgeId, LinkChange, Part};
use fastpath_spec::LinkId;
use fastpath_units::{Duration, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far in the future an instant is that several workers agree on.
const AHEAD: Duration = Duration::from_ms(10);

/// The command queues of all workers. A clone reaches the same workers.
#[derive(Clone)]
pub(crate) struct WorkerGroup {
    members: Arc<Vec<Member>>,
    log: Option<Arc<LogStatus>>,
    /// Captures started so far.
    captures: Arc<AtomicU64>,
}

/// A worker, with the numbers that its links and edges have in the whole network.
struct Member {
    commands: CommandSender,
    links: Vec<LinkId>,
    edges: Vec<EdgeId>,
}

impl WorkerGroup {
    /// Creates a group with a worker for each part.
    pub(crate) fn new(
        members: impl IntoIterator<Item = (CommandSender, Part)>,
        log: Option<Arc<LogStatus>>,
    ) -> WorkerGroup {
        let member = |(commands, part): (CommandSender, Part)| Member {
            commands,
            links: part.links,
            edges: part.edges,
        };
        let members = Arc::new(members.into_iter().map(member).collect());
        WorkerGroup { members, log, captures: Arc::default() }
    }

    /// Returns the combined snapshot; `None` if a worker has ended.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let all: Option<Vec<Snapshot>> =
            self.members.iter().map(|member| member.commands.snapshot()).collect();
        Some(self.join(all?))
    }

    /// Changes links, all at one instant; `None` if a worker has ended. Where several workers run
    /// the links, the instant lies a little in the future, so that it has hardly ever passed when
    /// the last command arrives.
    pub(crate) fn change(&self, at: Option<Time>, changes: Vec<LinkChange>) -> Option<Result<Time, Refusal>> {
        let mut shares: Vec<Vec<LinkChange>> = self.members.iter().map(|_| Vec::new()).collect();
        for (link, direction, change) in changes {
            let (number, place) = self.members.iter().enumerate().find_map(|(number, member)| {
                // Links keep their order in a part.
                Some((number, member.links.binary_search(&link).ok()?))
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
        for (member, share) in self.members.iter().zip(shares).filter(|(_, share)| !share.is_empty()) {
            match member.commands.change(when, share)? {
                Ok(at) => done = Some(Ok(at)),
                refused => return Some(refused),
            }
        }
        done
    }

    /// Starts the traces of a group; `None` if its worker has ended. A network with groups has one
    /// worker.
    pub(crate) fn start(&self, group: usize) -> Option<Time> {
        self.members[0].commands.start(group)
    }

    /// Returns the combined sample; `None` if a worker has ended.
    pub(crate) fn sample(&self) -> Option<Sample> {
        let links = self.members.iter().map(|member| member.links.len()).sum::<usize>();
        let mut whole = Sample { pipes: vec![PipeSample::default(); 2 * links], ..Sample::default() };
        for member in self.members.iter() {
            let part = member.commands.sample()?;
            whole.at = whole.at.max(part.at);
            for (number, pipe) in part.pipes.into_iter().enumerate() {
                whole.pipes[2 * member.links[number / 2].0 as usize + number % 2] = pipe;
            }
            whole.flows.extend(part.flows);
        }
        Some(whole)
    }

    /// Starts a capture; `None` if a worker has ended.
    pub(crate) fn capture(&self, request: &CaptureRequest) -> Option<CaptureQueue> {
        let id = self.captures.fetch_add(1, Ordering::Relaxed);
        let (sender, chunks, missed) = ChunkSender::new(request.pipes.len());
        let mut queue = CaptureQueue { id, chunks, missed, started: Time::ZERO, is_merged: false };
        let mut count = 0;
        for member in self.members.iter() {
            let mut interfaces = vec![None; 2 * member.links.len()];
            for (pipe, interface) in request.pipes.iter().zip(0..) {
                if let Ok(place) = member.links.binary_search(&pipe.link) {
                    interfaces[2 * place + pipe.index] = Some(interface);
                }
            }
            if interfaces.iter().any(Option::is_some) {
                let sink = Box::new(sender.clone());
                let (has_drops, snap_len) = (request.has_drops, request.snap_len);
                let order = CaptureOrder { id, interfaces, has_drops, snap_len, sink };
                queue.started = queue.started.max(member.commands.start_capture(order)?);
                count += 1;
            }
        }
        queue.is_merged = count > 1;
        Some(queue)
    }

    /// Ends a capture: all workers pass on what they have.
    pub(crate) fn end_capture(&self, id: u64) {
        // A worker that has ended has passed on what it had.
        self.members.iter().for_each(|member| _ = member.commands.end_capture(id));
    }

    /// Tells all workers to end.
    pub(crate) fn stop(&self) {
        self.members.iter().for_each(|member| member.commands.stop());
    }

    /// Combines the snapshots of all workers, given in the order of the workers.
    pub(crate) fn join(&self, all: Vec<Snapshot>) -> Snapshot {
        let links = self.members.iter().map(|member| member.links.len()).sum::<usize>();
        let edge_count = self.members.iter().map(|member| member.edges.len()).sum::<usize>();
        let mut pipes: Vec<Option<PipeState>> = std::iter::repeat_with(|| None).take(2 * links).collect();
        let mut edges: Vec<Option<EdgeState>> = std::iter::repeat_with(|| None).take(edge_count).collect();
        let mut answers = all.into_iter();
        let mut whole = answers.next().expect("a group has a worker");
        let mut place = |member: &Member, snapshot: &mut Snapshot| {
            for (number, pipe) in snapshot.pipes.drain(..).enumerate() {
                pipes[2 * member.links[number / 2].0 as usize + number % 2] = Some(pipe);
            }
            for (edge, state) in member.edges.iter().zip(snapshot.edges.drain(..)) {
                edges[edge.0 as usize] = Some(state);
            }
        };
        place(&self.members[0], &mut whole);
        for (member, mut next) in self.members[1..].iter().zip(answers) {
            place(member, &mut next);
            whole.at = whole.at.max(next.at);
            whole.workers.append(&mut next.workers);
            whole.conservation.add(next.conservation);
        }
        whole.pipes = pipes.into_iter().map(|pipe| pipe.expect("every link is in a part")).collect();
        whole.edges = edges.into_iter().map(|edge| edge.expect("every edge is in a part")).collect();
        whole.packet_log = self.log.as_ref().map(|status| status.report());
        whole
    }
}
