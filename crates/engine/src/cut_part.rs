//! The part of a network that a worker runs, where the network is cut: its edges, its mail, and how
//! late the frames were that came from others.

use crate::clock::Clock;
use crate::lateness::{LatenessPolicy, Releases};
use crate::worker_clock::WorkerClock;
use fastpath_net::{Crossings, EdgeId, Network, Observer, Partition, PipeId, Reason};
use fastpath_port::mail::{Post, Posted};
use fastpath_spec::{Late, Topology};
use fastpath_units::{Duration, Time};

/// See the head of this file.
pub(crate) struct CutPart {
    pub(crate) post: Post,
    edges: Vec<EdgeId>,
    /// By edge of the network: its place among the own ones.
    places: Vec<u32>,
    pub(crate) inbound: Inbound,
    /// By former pipe: its number, for mail from before the latest change of the topology.
    pipes_to: Vec<Option<u32>>,
    /// Empty between iterations, kept for its memory.
    mail: Crossings,
    time: Clock,
    /// The time that was spent on passing frames on and taking them.
    pub(crate) spent: Duration,
}

/// The pipes from other parts that lead to nodes. Frames for hosts are measured at their ports.
pub(crate) struct Inbound {
    /// By pipe: its place in `releases`.
    places: Vec<u32>,
    pub(crate) releases: Vec<(PipeId, Releases)>,
    /// By place: frames in time that are not in `releases` yet.
    in_time: Vec<u32>,
}

impl CutPart {
    /// The part of the worker at `post`, which has these edges.
    pub(crate) fn new(
        post: Post,
        (topology, partition): (&Topology, &Partition),
        edges: Vec<EdgeId>,
        time: Clock,
    ) -> CutPart {
        let inbound = Inbound::of(topology, partition, post.part());
        let (pipes_to, mail, spent) = (Vec::new(), Crossings::default(), Duration::ZERO);
        CutPart { places: places(topology, &edges), edges, post, inbound, pipes_to, mail, time, spent }
    }

    /// Follows a change of the topology: `from` has by pipe its former number.
    pub(crate) fn follow(
        &mut self,
        topology: &Topology,
        partition: &Partition,
        edges: Vec<EdgeId>,
        from: &[Option<u32>],
    ) {
        let mut former =
            std::mem::replace(&mut self.inbound, Inbound::of(topology, partition, self.post.part()));
        former.settled();
        let pipe = |id: PipeId| 2 * id.link.0 + id.index as u32;
        for (id, releases) in &mut self.inbound.releases {
            let place = from[pipe(*id) as usize].and_then(|was| former.places.get(was as usize));
            if let Some((_, kept)) = place.and_then(|place| former.releases.get_mut(*place as usize)) {
                std::mem::swap(releases, kept);
            }
        }
        self.pipes_to = vec![None; former.places.len()];
        for (now, was) in from.iter().enumerate() {
            if let Some(was) = was {
                self.pipes_to[*was as usize] = Some(now as u32);
            }
        }
        (self.places, self.edges) = (places(topology, &edges), edges);
        self.post.follow_change();
    }

    /// The edge of the network at a place among the own ones.
    pub(crate) fn edge(&self, place: usize) -> EdgeId {
        self.edges[place]
    }

    /// The place of an own edge.
    pub(crate) fn place(&self, edge: EdgeId) -> usize {
        self.places[edge.0 as usize] as usize
    }

    /// Whether an edge is an own one.
    pub(crate) fn has(&self, edge: EdgeId) -> bool {
        self.places[edge.0 as usize] != u32::MAX
    }

    /// Takes the mail of other parts into the network of this one. Returns whether there was any.
    pub(crate) fn take_mail<O: Observer>(
        &mut self,
        network: &mut Network<O>,
        policy: &LatenessPolicy,
        clock: &WorkerClock,
    ) -> bool {
        let CutPart { post, inbound, pipes_to, mail, time, spent, .. } = self;
        let mut has_mail = false;
        for from in 0..post.count() {
            let Some(is_former) = post.take(from, mail) else { continue };
            has_mail = true;
            let start = time.now();
            // Mail from before the latest change of the topology has its numbers.
            let pipe = |id: u32| if is_former { *pipes_to.get(id as usize)? } else { Some(id) };
            network.receive_any(mail, pipe, |pipe, due, now| inbound.record(pipe, (due, now), policy, clock));
            *spent = spent.saturating_add(time.now().since(start));
        }
        has_mail
    }

    /// Sends what is ready to pass on to others. Returns whether there was anything.
    pub(crate) fn send_mail<O: Observer>(&mut self, network: &mut Network<O>, now: Time) -> bool {
        if !network.may_hand_over() {
            return false;
        }
        network.advance(now);
        let start = self.time.now();
        let has_any = network.hand_over(now);
        for to in 0..self.post.count() {
            let crossings = network.crossings_mut(to);
            if self.post.send(to, crossings) == Posted::Full {
                network.discard_crossings(to, Reason::PoolFull);
            }
        }
        if has_any {
            self.spent = self.spent.saturating_add(self.time.now().since(start));
        }
        has_any
    }
}

fn places(topology: &Topology, own: &[EdgeId]) -> Vec<u32> {
    let count = topology.hosts().map(|(_, host)| host.interfaces.len()).sum();
    let mut places = vec![u32::MAX; count];
    for (place, edge) in own.iter().enumerate() {
        places[edge.0 as usize] = place as u32;
    }
    places
}

impl Inbound {
    fn of(topology: &Topology, partition: &Partition, part: usize) -> Inbound {
        let places = vec![u32::MAX; 2 * topology.links.len()];
        let mut inbound = Inbound { places, releases: Vec::new(), in_time: Vec::new() };
        let count = partition.cuts().len();
        for cut in partition.cuts() {
            for index in 0..2 {
                let (end, _) = topology.link(cut.link).ends[1 - index];
                if cut.parts[1 - index] == part && !topology.node(end).kind.is_edge() {
                    inbound.places[2 * cut.link.0 as usize + index] = inbound.releases.len() as u32;
                    inbound.releases.push((PipeId { link: cut.link, index }, Releases::new(count)));
                }
            }
        }
        inbound.in_time = vec![0; inbound.releases.len()];
        inbound
    }

    /// Returns how late frames were, by pipe.
    pub(crate) fn settled(&mut self) -> &[(PipeId, Releases)] {
        for ((_, releases), in_time) in self.releases.iter_mut().zip(&mut self.in_time) {
            releases.record_in_time(std::mem::take(in_time));
        }
        &self.releases
    }

    /// Records that a frame due at `due` has come by `now`. Returns whether it goes on.
    pub(crate) fn record(
        &mut self,
        pipe: PipeId,
        (due, now): (Time, Time),
        policy: &LatenessPolicy,
        clock: &WorkerClock,
    ) -> bool {
        let place = self.places[2 * pipe.link.0 as usize + pipe.index] as usize;
        let Some((_, releases)) = self.releases.get_mut(place) else { return true };
        if due >= now {
            self.in_time[place] += 1;
            return true;
        }
        if policy.late == Late::Drop && now.since(due) > policy.tolerance {
            releases.count_late(due, now, policy, clock);
            return false;
        }
        releases.record(due, now, policy, clock);
        true
    }
}
