//! Several workers as one: each runs a part of the network; requests come with the numbers of the whole, and answers
//! are put together.

use crate::mail::{EdgeState, Mailbox, PipeState, Snapshot};
use fastpath_link::Change;
use fastpath_net::{Conservation, Direction, EdgeId, LinkId, Part};
use std::sync::Arc;

/// The letter boxes of all workers. A copy reaches the same ones.
#[derive(Clone)]
pub(crate) struct Team(Arc<Vec<Member>>);

/// A worker and what its numbers are in the whole.
struct Member {
    mailbox: Mailbox,
    links: Vec<LinkId>,
    edges: Vec<EdgeId>,
}

impl Team {
    /// A worker for each part.
    pub(crate) fn new(members: impl IntoIterator<Item = (Mailbox, Part)>) -> Team {
        let member =
            |(mailbox, part): (Mailbox, Part)| Member { mailbox, links: part.links, edges: part.edges };
        Team(Arc::new(members.into_iter().map(member).collect()))
    }

    /// How things stand; `None` if a worker has ended.
    pub(crate) fn look(&self) -> Option<Snapshot> {
        let all: Option<Vec<Snapshot>> = self.0.iter().map(|member| member.mailbox.look()).collect();
        Some(self.join(all?))
    }

    /// Changes a link; `None` if its worker has ended.
    pub(crate) fn change(&self, link: LinkId, direction: Direction, change: Change) -> Option<()> {
        let (member, place) = self.0.iter().find_map(|member| {
            // Links keep their order in a part.
            Some((member, member.links.binary_search(&link).ok()?))
        })?;
        member.mailbox.change(LinkId(place as u32), direction, change)
    }

    /// Asks all workers to end.
    pub(crate) fn stop(&self) {
        self.0.iter().for_each(|member| member.mailbox.stop());
    }

    /// One answer of the answers of all workers, in their order.
    pub(crate) fn join(&self, all: Vec<Snapshot>) -> Snapshot {
        let links = self.0.iter().map(|member| member.links.len()).sum::<usize>();
        let edge_count = self.0.iter().map(|member| member.edges.len()).sum::<usize>();
        let mut pipes: Vec<Option<PipeState>> = std::iter::repeat_with(|| None).take(2 * links).collect();
        let mut edges: Vec<Option<EdgeState>> = std::iter::repeat_with(|| None).take(edge_count).collect();
        let mut answers = all.into_iter();
        let mut whole = answers.next().expect("a team has a worker");
        let mut place = |member: &Member, snapshot: &mut Snapshot| {
            for (number, pipe) in snapshot.pipes.drain(..).enumerate() {
                pipes[2 * member.links[number / 2].0 as usize + number % 2] = Some(pipe);
            }
            for (edge, state) in member.edges.iter().zip(snapshot.edges.drain(..)) {
                edges[edge.0 as usize] = Some(state);
            }
        };
        place(&self.0[0], &mut whole);
        for (member, mut next) in self.0[1..].iter().zip(answers) {
            place(member, &mut next);
            whole.at = whole.at.max(next.at);
            whole.workers.append(&mut next.workers);
            add(&mut whole.conservation, next.conservation);
        }
        whole.pipes = pipes.into_iter().map(|pipe| pipe.expect("every link is in a part")).collect();
        whole.edges = edges.into_iter().map(|edge| edge.expect("every edge is in a part")).collect();
        whole
    }
}

fn add(sum: &mut Conservation, other: Conservation) {
    sum.entered += other.entered;
    sum.generated += other.generated;
    sum.delivered += other.delivered;
    sum.held += other.held;
    for (reason, count) in other.dropped {
        *sum.dropped.entry(reason).or_default() += count;
    }
}
